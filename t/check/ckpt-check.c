/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint readers: every ggml type against recorded values (made by
 * contrib/mk-ggml-golden.py), every safetensors type, FP8 with its scales,
 * split and damaged files, failing allocations. `ckpt-check open PATH` opens a
 * checkpoint, reads it whole and prints what it is (exit 3: refused). */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rad/ckpt.h>

#include "base/base.h"
#include "tap.h"

/* ---- files in the making */
static void put(struct radi_str *s, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        radi_str_addc(s, (char)(v >> (8 * i)));
}

static void put_str(struct radi_str *s, const char *t)
{
    put(s, strlen(t), 8);
    radi_str_adds(s, t);
}

static void put_key(struct radi_str *s, const char *key, int type)
{
    put_str(s, key);
    put(s, (uint64_t)type, 4);
}

static void put_u32(struct radi_str *s, const char *key, uint32_t v)
{
    put_key(s, key, RAD_CKPT_U32);
    put(s, v, 4);
}

static void pad(struct radi_str *s, size_t to)
{
    while (s->len % to)
        radi_str_addc(s, 0);
}

/* A GGUF of one or more tensors "t0", "t1", ... of [2, 32] f32, each counting. */
static void make_gguf(struct radi_str *s, int first, int tensors, int keys,
                      void (*put_keys)(struct radi_str *))
{
    put(s, 0x46554747, 4);
    put(s, 3, 4);
    put(s, (uint64_t)tensors, 8);
    put(s, (uint64_t)keys, 8);
    put_keys(s);
    for (int i = 0; i < tensors; i++) {
        char name[16];
        snprintf(name, sizeof(name), "t%d", first + i);
        put_str(s, name);
        put(s, 2, 4);
        put(s, 32, 8);
        put(s, 2, 8);
        put(s, 0, 4);
        put(s, (uint64_t)i * 256, 8);
    }
    pad(s, 32);
    for (int i = 0; i < tensors * 64; i++)
        put(s, rad_bits_f32((float)(first * 64 + i)), 4);
}

static void make_st(struct radi_str *s, const char *header, const void *data, size_t n)
{
    put(s, strlen(header), 8);
    radi_str_adds(s, header);
    radi_str_add(s, data, n);
}

/* A copy of exactly n bytes, so that a sanitizer sees reads past the end. */
static struct rad_ckpt *open_bytes(const void *p, size_t n, const char *config, void **hold,
                                   struct rad_err *err)
{
    struct rad_ckpt *ck = NULL;
    *hold = malloc(n ? n : 1);
    memcpy(*hold, p, n);
    if (rad_ckpt_open_memory(*hold, n, "mem", config, &ck, err) != RAD_OK)
        CHECK(ck == NULL);
    return ck;
}

/* Reads every tensor both ways; the sum keeps the compiler from skipping it. */
static double read_all(const struct rad_ckpt *ck, struct rad_err *err, size_t *refused)
{
    double sum = 0;
    *refused = 0;
    for (size_t i = 0; i < rad_ckpt_count(ck); i++) {
        const struct rad_ckpt_tensor *t = rad_ckpt_tensor(ck, i);
        uint64_t step = RADI_MAX(t->row_step, 64);
        for (uint64_t r = 0; r < t->rows; r += step) {
            uint64_t n = RADI_MIN(step, t->rows - r);
            float *x = malloc((size_t)(n * t->cols) * 4 + 1);
            void *dst[RAD_MAX_PLANES] = { 0 };
            int planes = t->enc ? t->enc->n_planes : 0;
            rad_status st = rad_ckpt_read_f32(ck, i, r, n, x, err);
            for (int p = 0; p < planes; p++) {
                RadPlaneGeom g = { 0 };
                CHECK(rad_plane_geom(t->enc, p, n, t->cols, &g, NULL) == RAD_OK);
                dst[p] = malloc((size_t)g.bytes + 1);
            }
            if (st == RAD_OK)
                st = rad_ckpt_read_planes(ck, i, r, n, dst, err);
            if (st)
                ++*refused;
            else
                for (uint64_t k = 0; k < n * t->cols; k += 7)
                    sum += isfinite(x[k]) ? (double)x[k] : 0;
            for (int p = 0; p < planes; p++)
                free(dst[p]);
            free(x);
            if (st)
                break;
        }
    }
    return sum;
}

/* ---- ggml types */
static void hex(const uint8_t d[32], char out[65])
{
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", d[i]);
}

static void ggml_type(const char *path, const char *name)
{
    struct rad_ckpt *ck;
    struct rad_err err = { 0 };
    uint8_t digest[32];
    char got[65];
    size_t n = 0;

    tap_begin(name);
    if (rad_ckpt_open(path, &ck, &err) != RAD_OK) {
        CHECK_MSG(0, "%s", err.text);
        tap_end();
        return;
    }
    const struct rad_ckpt_tensor *t = rad_ckpt_tensor(ck, 0);
    size_t sha = (size_t)rad_ckpt_kv_find(ck, "golden.sha256");
    size_t head = (size_t)rad_ckpt_kv_find(ck, "golden.head");
    const char *want = rad_ckpt_kv_str(ck, sha, 0, &n);
    float *x = malloc((size_t)(t->rows * t->cols) * 4);
    CHECK(t->enc && rad_encoding_validate(t->enc, &err) == RAD_OK);
    rad_status st = rad_ckpt_read_f32(ck, 0, 0, t->rows, x, &err);
    CHECK_MSG(st == RAD_OK, "%s", err.text);
    for (uint64_t i = 0; i < 256; i++) {
        int64_t v = 0;
        CHECK(rad_ckpt_kv_int(ck, head, i, &v));
        CHECK_MSG(rad_bits_f32(x[i]) == (uint32_t)v, "element %d: %.9g, want %.9g", (int)i,
                  (double)x[i], (double)rad_f32_bits((uint32_t)v));
    }
    CHECK(radi_sha256_of(x, (size_t)(t->rows * t->cols) * 4, digest, NULL) == RAD_OK);
    hex(digest, got);
    CHECK_MSG(n == 64 && !memcmp(want, got, 64), "digest %s, want %.*s", got, (int)n, want);
    /* a row from the middle is the same row */
    float *row = malloc((size_t)t->cols * 4);
    CHECK(rad_ckpt_read_f32(ck, 0, t->rows / 2, 1, row, &err) == RAD_OK);
    CHECK(!memcmp(row, x + t->rows / 2 * t->cols, (size_t)t->cols * 4));
    free(row);
    free(x);
    rad_ckpt_close(ck);
    tap_end();
}

static void ggml_types(void)
{
    static const char *const types[] = {
        "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
        "iq4_xs", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s", "iq1_m", "tq1_0",
        "tq2_0", "mxfp4", "nvfp4"
    };
    const char *src = getenv("RAD_SRCDIR");
    for (size_t i = 0; i < RADI_COUNT(types); i++) {
        char path[4096], name[64];
        snprintf(path, sizeof(path), "%s/t/golden/enc/%s.gguf", src ? src : ".", types[i]);
        snprintf(name, sizeof(name), "ggml %s decodes to the recorded bits", types[i]);
        ggml_type(path, name);
    }
}

/* ---- GGUF */
static void some_keys(struct radi_str *s)
{
    put_key(s, "general.architecture", RAD_CKPT_STR);
    put_str(s, "toy");
    put_u32(s, "general.file_type", 15);
    put_key(s, "toy.neg", RAD_CKPT_I16);
    put(s, 0xfffe, 2);
    put_key(s, "toy.eps", RAD_CKPT_F32);
    put(s, rad_bits_f32(1e-5f), 4);
    put_key(s, "toy.on", RAD_CKPT_BOOL);
    put(s, 1, 1);
    put_key(s, "toy.big", RAD_CKPT_U64);
    put(s, UINT64_MAX, 8);
    put_key(s, "toy.list", 9);
    put(s, RAD_CKPT_I32, 4);
    put(s, 3, 8);
    for (int i = 0; i < 3; i++)
        put(s, (uint64_t)(i - 1), 4);
    put_key(s, "tokenizer.ggml.tokens", 9);
    put(s, RAD_CKPT_STR, 4);
    put(s, 3, 8);
    put_str(s, "a");
    put_str(s, "");
    put_str(s, "xyz");
}
enum { SOME_KEYS = 8 };

static void gguf_metadata(void)
{
    struct radi_str s = { 0 };
    struct rad_err err = { 0 };
    void *hold;
    int64_t v = 0;
    double d = 0;
    size_t n = 0;

    make_gguf(&s, 0, 2, SOME_KEYS, some_keys);
    struct rad_ckpt *ck = open_bytes(s.s, s.len, NULL, &hold, &err);
    CHECK_MSG(ck != NULL, "%s", err.text);
    if (!ck)
        return;
    CHECK(rad_ckpt_kind(ck) == RAD_CKPT_GGUF);
    CHECK(!strcmp(rad_ckpt_arch(ck), "toy"));
    CHECK(!strcmp(rad_ckpt_quant(ck), "gguf_ftype_15"));
    CHECK(!strcmp(rad_ckpt_config_json(ck),
                  "{\n\"general.architecture\": \"toy\",\n\"general.file_type\": 15,\n"
                  "\"toy.neg\": -2,\n\"toy.eps\": 9.99999975e-06,\n\"toy.on\": true,\n"
                  "\"toy.big\": 18446744073709551615,\n\"toy.list\": [-1, 0, 1],\n"
                  "\"tokenizer.ggml.tokens.length\": 3\n}\n"));
    size_t toks = (size_t)rad_ckpt_kv_find(ck, "tokenizer.ggml.tokens");
    CHECK(rad_ckpt_kv(ck, toks)->n == 3 && rad_ckpt_kv(ck, toks)->is_array);
    const char *t = rad_ckpt_kv_str(ck, toks, 2, &n);
    CHECK(t && n == 3 && !memcmp(t, "xyz", 3));
    CHECK(rad_ckpt_kv_str(ck, toks, 1, &n) && n == 0);
    CHECK(!rad_ckpt_kv_str(ck, toks, 3, &n));
    CHECK(!rad_ckpt_kv_int(ck, toks, 0, &v));
    CHECK(rad_ckpt_kv_int(ck, (size_t)rad_ckpt_kv_find(ck, "toy.list"), 0, &v) && v == -1);
    CHECK(!rad_ckpt_kv_int(ck, (size_t)rad_ckpt_kv_find(ck, "toy.big"), 0, &v));
    CHECK(rad_ckpt_kv_f64(ck, (size_t)rad_ckpt_kv_find(ck, "toy.eps"), 0, &d));
    CHECK(d == (double)1e-5f);
    CHECK(rad_ckpt_kv_find(ck, "toy") == -1);
    int64_t i = rad_ckpt_find(ck, "t1");
    CHECK(i == 1 && rad_ckpt_find(ck, "t2") == -1);
    const struct rad_ckpt_tensor *w = rad_ckpt_tensor(ck, 1);
    CHECK(w->rank == 2 && w->shape[0] == 2 && w->shape[1] == 32 && w->rows == 2);
    float x[32];
    CHECK(rad_ckpt_read_f32(ck, 1, 1, 1, x, &err) == RAD_OK && x[0] == 96.0f && x[31] == 127.0f);
    CHECK(rad_ckpt_read_f32(ck, 1, 1, 2, x, &err) == RAD_E_ARG);
    rad_ckpt_close(ck);
    free(hold);
    radi_str_release(&s);
}

static void split_first(struct radi_str *s)
{
    put_key(s, "general.architecture", RAD_CKPT_STR);
    put_str(s, "toy");
    put_key(s, "split.no", RAD_CKPT_U16);
    put(s, 0, 2);
    put_key(s, "split.count", RAD_CKPT_U16);
    put(s, 2, 2);
    put_key(s, "split.tensors.count", RAD_CKPT_I32);
    put(s, 3, 4);
}

static void split_second(struct radi_str *s)
{
    put_key(s, "split.no", RAD_CKPT_U16);
    put(s, 1, 2);
    put_key(s, "split.count", RAD_CKPT_U16);
    put(s, 2, 2);
}

static void write_file(const char *path, const struct radi_str *s)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(s->s, 1, s->len, f) == s->len);
    if (f)
        fclose(f);
}

static void gguf_split(void)
{
    char dir[] = "/tmp/ckpt-check-XXXXXX", a[64], b[64];
    struct radi_str s = { 0 };
    struct rad_ckpt *ck;
    struct rad_err err = { 0 };
    float x[64];

    CHECK(mkdtemp(dir) != NULL);
    snprintf(a, sizeof(a), "%s/m-00001-of-00002.gguf", dir);
    snprintf(b, sizeof(b), "%s/m-00002-of-00002.gguf", dir);
    make_gguf(&s, 0, 1, 4, split_first);
    write_file(a, &s);
    CHECK(rad_ckpt_open(a, &ck, &err) == RAD_E_IO || err.code);      /* b is not there */
    CHECK_MSG(strstr(err.text, "m-00002-of-00002.gguf"), "%s", err.text);
    radi_str_clear(&s);
    make_gguf(&s, 1, 2, 2, split_second);
    write_file(b, &s);
    CHECK_MSG(rad_ckpt_open(dir, &ck, &err) == RAD_OK, "%s", err.text);
    if (ck) {
        CHECK(rad_ckpt_count(ck) == 3);
        CHECK(rad_ckpt_kv_count(ck) == 4);
        int64_t i = rad_ckpt_find(ck, "t2");
        CHECK(i >= 0 && rad_ckpt_read_f32(ck, (size_t)i, 0, 2, x, &err) == RAD_OK);
        CHECK(x[0] == 128.0f && x[63] == 191.0f);
    }
    rad_ckpt_close(ck);
    CHECK(rad_ckpt_open(b, &ck, &err) != RAD_OK);       /* not the first file */
    radi_str_clear(&s);
    make_gguf(&s, 0, 2, 2, split_second);               /* t0 twice */
    write_file(b, &s);
    CHECK(rad_ckpt_open(a, &ck, &err) == RAD_E_FORMAT);
    CHECK_MSG(strstr(err.text, "'t0'"), "%s", err.text);
    unlink(a);
    unlink(b);
    rmdir(dir);
    radi_str_release(&s);
}

/* ---- safetensors */
struct st_case {
    const char *dtype;
    int bytes;
    uint8_t data[16];
    int n;
    float want[4];
    int enc;            /* plain type, 0: none */
};

static void st_types(void)
{
    static const struct st_case cases[] = {
        { "F32", 4, { 0, 0, 0xc0, 0x3f }, 1, { 1.5f }, RAD_DT_f32 },
        { "F64", 8, { 0, 0, 0, 0, 0, 0, 0xf8, 0x3f }, 1, { 1.5f }, RAD_DT_f32 },
        { "F16", 2, { 0, 0x3e }, 1, { 1.5f }, RAD_DT_f16 },
        { "BF16", 2, { 0xc0, 0x3f }, 1, { 1.5f }, RAD_DT_bf16 },
        { "I64", 8, { 0xfe, 255, 255, 255, 255, 255, 255, 255 }, 1, { -2 }, RAD_DT_i64 },
        { "I32", 4, { 0xfe, 255, 255, 255 }, 1, { -2 }, RAD_DT_i32 },
        { "I16", 2, { 0xfe, 255 }, 1, { -2 }, RAD_DT_i16 },
        { "I8", 2, { 0xfe, 2 }, 2, { -2, 2 }, RAD_DT_i8 },
        { "U64", 8, { 7 }, 1, { 7 }, RAD_DT_i64 },
        { "U32", 4, { 0, 0, 0, 0x80 }, 1, { 0x1p31f }, RAD_DT_u32 },
        { "U16", 2, { 0, 0x80 }, 1, { 32768 }, RAD_DT_u16 },
        { "U8", 2, { 255, 1 }, 2, { 255, 1 }, RAD_DT_u8 },
        { "BOOL", 2, { 1, 0 }, 2, { 1, 0 }, RAD_DT_bool },
        { "F8_E4M3", 2, { 0x38, 0xc0 }, 2, { 1, -2 }, RAD_DT_fp8_e4m3 },
        { "F8_E5M2", 2, { 0x3c, 0xc0 }, 2, { 1, -2 }, RAD_DT_fp8_e5m2 },
        { "F8_E8M0", 2, { 127, 129 }, 2, { 1, 4 }, RAD_DT_e8m0 },
        { "F4", 1, { 0x72 }, 2, { 1, 6 }, RAD_DT_fp4_e2m1 },
        { "C64", 8, { 0 }, 1, { 0 }, 0 },
        { "F8_E4M3FNUZ", 1, { 0 }, 1, { 0 }, 0 },
    };
    for (size_t i = 0; i < RADI_COUNT(cases); i++) {
        const struct st_case *c = &cases[i];
        struct radi_str s = { 0 };
        struct rad_err err = { 0 };
        char h[256];
        void *hold;
        float x[4];

        snprintf(h, sizeof(h), "{\"a\":{\"dtype\":\"%s\",\"shape\":[1,%d],"
                 "\"data_offsets\":[0,%d]}}", c->dtype, c->n, c->bytes);
        make_st(&s, h, c->data, (size_t)c->bytes);
        struct rad_ckpt *ck = open_bytes(s.s, s.len, NULL, &hold, &err);
        CHECK_MSG(ck != NULL, "%s: %s", c->dtype, err.text);
        if (ck && c->enc) {
            CHECK_MSG(rad_encoding_is_plain(rad_ckpt_tensor(ck, 0)->enc, c->enc), "%s", c->dtype);
            rad_status st = rad_ckpt_read_f32(ck, 0, 0, 1, x, &err);
            CHECK_MSG(st == RAD_OK, "%s: %s", c->dtype, err.text);
            CHECK_MSG(!memcmp(x, c->want, 4 * (size_t)c->n), "%s: %g", c->dtype, (double)x[0]);
        } else if (ck) {
            CHECK(rad_ckpt_read_f32(ck, 0, 0, 1, x, &err) == RAD_E_UNSUPPORTED);
            CHECK_MSG(strstr(err.text, "'a'") && strstr(err.text, c->dtype), "%s", err.text);
        }
        rad_ckpt_close(ck);
        free(hold);
        radi_str_release(&s);
    }
}

static void st_u64_too_large(void)
{
    struct radi_str s = { 0 };
    struct rad_err err = { 0 };
    void *hold;
    float x;
    make_st(&s, "{\"a\":{\"dtype\":\"U64\",\"shape\":[],\"data_offsets\":[0,8]}}",
            "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    struct rad_ckpt *ck = open_bytes(s.s, s.len, NULL, &hold, &err);
    CHECK_MSG(ck && rad_ckpt_tensor(ck, 0)->rank == 0, "%s", err.text);
    CHECK(ck && rad_ckpt_read_f32(ck, 0, 0, 1, &x, &err) == RAD_E_UNSUPPORTED);
    rad_ckpt_close(ck);
    free(hold);
    radi_str_release(&s);
}

static const char fp8_header[] =
    "{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[3,5],\"data_offsets\":[0,15]},"
    "\"w_scale_inv\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[15,23]}}";
static const char fp8_config[] =
    "{\"model_type\":\"to_y\",\"quantization_config\":{\"quant_method\":\"fp8\","
    "\"weight_block_size\":[2,4]}}";

static void st_fp8_blocks(void)
{
    struct radi_str s = { 0 };
    struct rad_err err = { 0 };
    uint8_t data[23], codes[10];
    uint16_t scale[4] = { 0 };
    void *hold, *dst[2] = { codes, scale };
    float x[15];
    char text[64];

    memset(data, 0x38, 15);                             /* 1.0 */
    for (int i = 0; i < 4; i++) {
        uint16_t b = rad_f32_to_bf16((float)(i + 1));
        memcpy(data + 15 + 2 * i, &b, 2);
    }
    make_st(&s, fp8_header, data, sizeof(data));
    struct rad_ckpt *ck = open_bytes(s.s, s.len, fp8_config, &hold, &err);
    CHECK_MSG(ck != NULL, "%s", err.text);
    if (!ck)
        return;
    CHECK(!strcmp(rad_ckpt_quant(ck), "fp8_e4m3") && !strcmp(rad_ckpt_arch(ck), "toy"));
    size_t w = (size_t)rad_ckpt_find(ck, "w");
    const struct rad_ckpt_tensor *t = rad_ckpt_tensor(ck, w);
    CHECK(t->scale == rad_ckpt_find(ck, "w_scale_inv") && t->row_step == 2);
    CHECK(rad_ckpt_tensor(ck, (size_t)t->scale)->is_scale);
    rad_encoding_text(t->enc, text, sizeof(text));
    CHECK_MSG(!strcmp(text, "fp8_e4m3*bf16[2x4]"), "%s", text);
    CHECK(rad_ckpt_read_f32(ck, w, 0, 3, x, &err) == RAD_OK);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 5; c++)
            CHECK(x[5 * r + c] == (float)(r / 2 * 2 + c / 4 + 1));
    CHECK(rad_ckpt_read_planes(ck, w, 2, 1, dst, &err) == RAD_OK);
    CHECK(codes[0] == 0x38 && rad_bf16_to_f32(scale[0]) == 3 && rad_bf16_to_f32(scale[1]) == 4);
    CHECK(rad_ckpt_read_planes(ck, w, 1, 2, dst, &err) == RAD_E_ARG);
    CHECK(rad_ckpt_read_planes(ck, w, 0, 1, dst, &err) == RAD_E_ARG);
    rad_ckpt_close(ck);
    free(hold);
    /* blocks that the scales do not cover */
    ck = open_bytes(s.s, s.len, "{\"quantization_config\":{\"quant_method\":\"fp8\","
                    "\"weight_block_size\":[1,5]}}", &hold, &err);
    CHECK(!ck && err.code == RAD_E_FORMAT);
    CHECK_MSG(strstr(err.text, "'w_scale_inv'"), "%s", err.text);
    free(hold);
    radi_str_release(&s);
}

static void st_quant_descriptor(void)
{
    static const char *const want[][2] = {
        { "{}", "" },
        { "{\"quantization_config\":null}", "" },
        { "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}", "gptq" },
        { "{\"text_config\":{\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}}}",
          "fp8_e5m2" },
        { "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":"
          "\"int-quantized\"}}", "compressed-tensors_int-quantized" },
        { "{\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}}",
          "modelopt_nvfp4" },
        { "{\"quantization_config\":{}}", NULL },
        { "{\"quantization_config\":7}", NULL },
        { "[]", NULL },
        { "{\"model_type\":3}", NULL },
        { "{", NULL },
    };
    struct radi_str s = { 0 };
    make_st(&s, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x", 1);
    for (size_t i = 0; i < RADI_COUNT(want); i++) {
        struct rad_err err = { 0 };
        void *hold;
        struct rad_ckpt *ck = open_bytes(s.s, s.len, want[i][0], &hold, &err);
        CHECK_MSG(!ck == !want[i][1], "%s", want[i][0]);
        CHECK_MSG(!ck || !strcmp(rad_ckpt_quant(ck), want[i][1]), "%s", want[i][0]);
        CHECK(ck || (err.code == RAD_E_FORMAT && err.text[0]));
        rad_ckpt_close(ck);
        free(hold);
    }
    radi_str_release(&s);
}

/* ---- damage */
static volatile double sink;    /* what was read is used */

static void damage(const struct radi_str *s, const char *config)
{
    struct rad_err err;
    size_t refused;
    void *hold;

    for (size_t cut = 0; cut < s->len; cut++) {
        struct rad_ckpt *ck = open_bytes(s->s, cut, config, &hold, &err);
        CHECK_MSG(!ck, "cut at %zu was accepted", cut);
        rad_ckpt_close(ck);
        free(hold);
    }
    char *copy = malloc(s->len);
    memcpy(copy, s->s, s->len);
    for (size_t i = 0; i < s->len; i++)
        for (int bit = 0; bit < 8; bit++) {
            copy[i] = (char)(copy[i] ^ 1 << bit);
            struct rad_ckpt *ck = open_bytes(copy, s->len, config, &hold, &err);
            if (ck)
                sink += read_all(ck, &err, &refused);
            rad_ckpt_close(ck);
            free(hold);
            copy[i] = (char)(copy[i] ^ 1 << bit);
        }
    free(copy);
}

static void fail_allocations(const struct radi_str *s, const char *config)
{
    for (uint64_t n = 1; n < 10000; n++) {
        struct rad_err err = { 0 };
        void *hold;
        radi_alloc_fail_at(n);
        struct rad_ckpt *ck = open_bytes(s->s, s->len, config, &hold, &err);
        radi_alloc_fail_at(0);
        if (ck) {
            CHECK(n > 5);
            rad_ckpt_close(ck);
            free(hold);
            return;
        }
        CHECK_MSG(err.code == RAD_E_NOMEM && err.text[0], "allocation %d: %d '%s'", (int)n,
                  err.code, err.text);
        free(hold);
    }
    CHECK_MSG(0, "never succeeded");
}

static void gguf_damaged(void)
{
    struct radi_str s = { 0 };
    make_gguf(&s, 0, 1, SOME_KEYS, some_keys);
    damage(&s, NULL);
    fail_allocations(&s, NULL);
    radi_str_release(&s);
}

static void st_damaged(void)
{
    struct radi_str s = { 0 };
    static const uint8_t data[23] = { 1, 2, 3 };
    make_st(&s, fp8_header, data, sizeof(data));
    damage(&s, fp8_config);
    fail_allocations(&s, fp8_config);
    radi_str_release(&s);
}

/* A tensor "t" of one block of n elements. */
static struct rad_ckpt *one_block(int type, int n, const uint8_t *block, int bytes, void **hold,
                                  struct rad_err *err)
{
    struct radi_str s = { 0 };
    put(&s, 0x46554747, 4);
    put(&s, 3, 4);
    put(&s, 1, 8);
    put(&s, 1, 8);
    put_key(&s, "general.architecture", RAD_CKPT_STR);
    put_str(&s, "toy");
    put_str(&s, "t");
    put(&s, 1, 4);
    put(&s, (uint64_t)n, 8);
    put(&s, (uint64_t)type, 4);
    put(&s, 0, 8);
    pad(&s, 32);
    radi_str_add(&s, (const char *)block, (size_t)bytes);
    struct rad_ckpt *ck = open_bytes(s.s, s.len, NULL, hold, err);
    radi_str_release(&s);
    return ck;
}

/* One bit an element, the low one first: set is d, clear is -d. */
static void q1_0_signs(void)
{
    uint8_t block[18] = { 0x00, 0x3e };                 /* 1.5 */
    struct rad_err err = { 0 };
    void *hold;
    float x[128];

    for (int i = 0; i < 16; i++)
        block[2 + i] = (uint8_t)(i * 37 + 5);
    struct rad_ckpt *ck = one_block(41, 128, block, sizeof(block), &hold, &err);
    CHECK_MSG(ck && rad_ckpt_read_f32(ck, 0, 0, 1, x, &err) == RAD_OK, "%s", err.text);
    for (int i = 0; ck && i < 128; i++)
        CHECK(x[i] == ((block[2 + i / 8] >> (i % 8)) & 1 ? 1.5f : -1.5f));
    rad_ckpt_close(ck);
    free(hold);
}

/* Types that only activations have are listed but not read. */
static void q8_k_is_refused(void)
{
    static const uint8_t block[292];
    struct rad_err err = { 0 };
    void *hold;
    float x[256];

    struct rad_ckpt *ck = one_block(15, 256, block, sizeof(block), &hold, &err);
    CHECK_MSG(ck && !rad_ckpt_tensor(ck, 0)->enc, "%s", err.text);
    CHECK(ck && rad_ckpt_read_f32(ck, 0, 0, 1, x, &err) == RAD_E_UNSUPPORTED);
    CHECK_MSG(strstr(err.text, "'t'") && strstr(err.text, "Q8_K"), "%s", err.text);
    rad_ckpt_close(ck);
    free(hold);
}

/* NVFP4's scale byte 0xff stands for no number of the type. */
static void nvfp4_bad_scale(void)
{
    struct rad_err err = { 0 };
    uint8_t block[36];
    void *hold;
    float x[64];

    memset(block, 0xff, sizeof(block));
    struct rad_ckpt *ck = one_block(40, 64, block, sizeof(block), &hold, &err);
    CHECK_MSG(ck != NULL, "%s", err.text);
    CHECK(ck && rad_ckpt_read_f32(ck, 0, 0, 1, x, &err) == RAD_E_FORMAT);
    CHECK_MSG(strstr(err.text, "'t'"), "%s", err.text);
    rad_ckpt_close(ck);
    free(hold);
}

/* ---- by hand and from bats */
static int open_command(const char *path)
{
    struct rad_ckpt *ck;
    struct rad_err err = { 0 };
    struct rusage use;
    size_t refused;
    uint64_t bytes = 0;

    if (rad_ckpt_open(path, &ck, &err) != RAD_OK) {
        fprintf(stderr, "ckpt-check: %s: %s\n", rad_strstatus(err.code), err.text);
        getrusage(RUSAGE_SELF, &use);
        fprintf(stderr, "peak %ld KiB\n", use.ru_maxrss);
        return err.code == RAD_E_FORMAT ? 3 : 4;
    }
    for (size_t i = 0; i < rad_ckpt_count(ck); i++)
        bytes += rad_ckpt_tensor(ck, i)->bytes;
    double sum = read_all(ck, &err, &refused);
    getrusage(RUSAGE_SELF, &use);
    printf("arch '%s' quant '%s' tensors %zu bytes %llu refused %zu sum %.6g peak %ld KiB\n",
           rad_ckpt_arch(ck), rad_ckpt_quant(ck), rad_ckpt_count(ck), (unsigned long long)bytes,
           refused, sum, use.ru_maxrss);
    for (int f = 0; f < RAD_CKPT_N_FILES; f++)
        if (rad_ckpt_text(ck, (enum rad_ckpt_file)f, NULL))
            printf("has %s\n", rad_ckpt_file_name((enum rad_ckpt_file)f));
    if (refused)
        fprintf(stderr, "ckpt-check: %s\n", err.text);
    rad_ckpt_close(ck);
    return refused ? 5 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "open"))
        return open_command(argv[2]);
    ggml_types();
    TAP_RUN(nvfp4_bad_scale);
    TAP_RUN(q1_0_signs);
    TAP_RUN(q8_k_is_refused);
    TAP_RUN(gguf_metadata);
    TAP_RUN(gguf_split);
    TAP_RUN(gguf_damaged);
    TAP_RUN(st_types);
    TAP_RUN(st_u64_too_large);
    TAP_RUN(st_fp8_blocks);
    TAP_RUN(st_quant_descriptor);
    TAP_RUN(st_damaged);
    return tap_done();
}
