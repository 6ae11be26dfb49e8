/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the safetensors format: header, shards, and what config.json says about
 * the tensors (architecture id, quantisation, FP8 scales). The header is JSON,
 * checked by radi_json_parse; all else about it is checked here: types, shapes,
 * and that the tensors fill the data to the byte, without holes or overlaps. */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "format/ckpt.h"

#include "banned.h"

enum { MAX_HEADER = 100000000, MAX_INDEX = 256 << 20 };

/*     name      bits  container type, conversion */
static const struct st_dtype {
    const char *name;
    int bits, dtype;                /* dtype 0: nothing here can hold it */
    enum radi_ckpt_conv conv;
} dtypes[] = {
    { "F32", 32, RAD_DT_f32, RADI_CONV_COPY },
    { "F16", 16, RAD_DT_f16, RADI_CONV_COPY },
    { "BF16", 16, RAD_DT_bf16, RADI_CONV_COPY },
    { "F64", 64, RAD_DT_f32, RADI_CONV_F64 },
    { "I64", 64, RAD_DT_i64, RADI_CONV_COPY },
    { "I32", 32, RAD_DT_i32, RADI_CONV_COPY },
    { "I16", 16, RAD_DT_i16, RADI_CONV_COPY },
    { "I8", 8, RAD_DT_i8, RADI_CONV_COPY },
    { "U64", 64, RAD_DT_i64, RADI_CONV_U64 },
    { "U32", 32, RAD_DT_u32, RADI_CONV_COPY },
    { "U16", 16, RAD_DT_u16, RADI_CONV_COPY },
    { "U8", 8, RAD_DT_u8, RADI_CONV_COPY },
    { "BOOL", 8, RAD_DT_bool, RADI_CONV_COPY },
    { "F8_E4M3", 8, RAD_DT_fp8_e4m3, RADI_CONV_COPY },
    { "F8_E5M2", 8, RAD_DT_fp8_e5m2, RADI_CONV_COPY },
    { "F8_E8M0", 8, RAD_DT_e8m0, RADI_CONV_COPY },
    { "F8_E4M3FNUZ", 8, 0, RADI_CONV_COPY },
    { "F8_E5M2FNUZ", 8, 0, RADI_CONV_COPY },
    { "F4", 4, RAD_DT_fp4_e2m1, RADI_CONV_COPY },
    { "F6_E2M3", 6, RAD_DT_fp6_e2m3, RADI_CONV_COPY },
    { "F6_E3M2", 6, RAD_DT_fp6_e3m2, RADI_CONV_COPY },
    { "C64", 64, 0, RADI_CONV_COPY },
};

static const struct st_dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < RADI_COUNT(dtypes); i++)
        if (!strcmp(dtypes[i].name, name))
            return &dtypes[i];
    return NULL;
}

/* A whole number from 0 to 2^53: beyond that a JSON number is not exact. */
static rad_status whole(const cJSON *j, const char *what, uint64_t *out, struct rad_err *err)
{
    char buf[64];
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= 0 && j->valuedouble <= 0x1p53) ||
        j->valuedouble != floor(j->valuedouble))
        return rad_fail(err, RAD_E_FORMAT, "%s holds %s, want a whole number from 0 to 2^53",
                        what, radi_json_what(j, buf));
    *out = (uint64_t)j->valuedouble;
    return RAD_OK;
}

static rad_status want_array(const cJSON *obj, const char *key, const cJSON **out,
                             struct rad_err *err)
{
    char buf[64];
    *out = radi_json_get(obj, key);
    if (!*out)
        return rad_fail(err, RAD_E_FORMAT, "no '%s'", key);
    if (!cJSON_IsArray(*out))
        return rad_fail(err, RAD_E_FORMAT, "'%s' is %s, want an array", key,
                        radi_json_what(*out, buf));
    return RAD_OK;
}

static rad_status parse_shape(const cJSON *obj, int bits, struct rad_ckpt_tensor *t,
                              uint64_t *bytes, struct rad_err *err)
{
    const cJSON *shape, *d;
    uint64_t n = 1, total;
    int rank = 0;

    RAD_TRY(want_array(obj, "shape", &shape, err));
    cJSON_ArrayForEach(d, shape) {
        uint64_t v;
        RAD_TRY(whole(d, "'shape'", &v, err));
        if (rank == RAD_MAX_RANK)
            return rad_fail(err, RAD_E_FORMAT, "'shape' has %d dimensions, want at most %d",
                            cJSON_GetArraySize(shape), RAD_MAX_RANK);
        t->shape[rank++] = (int64_t)v;
        if (!radi_mul_u64(n, v, &n))
            return rad_fail(err, RAD_E_FORMAT, "'shape': the number of elements overflows");
    }
    if (!radi_mul_u64(n, (uint64_t)bits, &total))
        return rad_fail(err, RAD_E_FORMAT, "'shape': the number of bytes overflows");
    if (total % 8)
        return rad_fail(err, RAD_E_FORMAT, "'shape': %llu bits, want whole bytes",
                        (unsigned long long)total);
    t->rank = rank;
    *bytes = total / 8;
    return RAD_OK;
}

static rad_status parse_offsets(const cJSON *obj, uint64_t size, struct radi_ckpt_range *r,
                                struct rad_err *err)
{
    const cJSON *a;
    uint64_t v[2];

    RAD_TRY(want_array(obj, "data_offsets", &a, err));
    if (cJSON_GetArraySize(a) != 2)
        return rad_fail(err, RAD_E_FORMAT, "'data_offsets' has %d numbers, want 2",
                        cJSON_GetArraySize(a));
    RAD_TRY(whole(a->child, "'data_offsets'", &v[0], err));
    RAD_TRY(whole(a->child->next, "'data_offsets'", &v[1], err));
    if (v[0] > v[1] || v[1] > size)
        return rad_fail(err, RAD_E_FORMAT, "'data_offsets' %llu to %llu, "
                        "want a range in %llu bytes of data",
                        (unsigned long long)v[0], (unsigned long long)v[1],
                        (unsigned long long)size);
    r->begin = v[0];
    r->end = v[1];
    return RAD_OK;
}

static rad_status parse_tensor(struct rad_ckpt *ck, const cJSON *obj, struct radi_ckpt_tensor *t,
                               const uint8_t *data, uint64_t size, struct radi_ckpt_range *r,
                               struct rad_err *err)
{
    char buf[64];
    const char *name;
    bool present;
    uint64_t bytes = 0;
    RadEncoding e;

    if (!cJSON_IsObject(obj))
        return rad_fail(err, RAD_E_FORMAT, "is %s, want an object", radi_json_what(obj, buf));
    RAD_TRY(radi_json_str(obj, "dtype", &name, &present, err));
    if (!present)
        return rad_fail(err, RAD_E_FORMAT, "no 'dtype'");
    const struct st_dtype *dt = find_dtype(name);
    if (!dt)
        return rad_fail(err, RAD_E_FORMAT, "'dtype' is \"%.32s\", which the format does not have",
                        name);
    RAD_TRY(parse_shape(obj, dt->bits, &t->pub, &bytes, err));
    RAD_TRY(parse_offsets(obj, size, r, err));
    if (r->end - r->begin != bytes)
        return rad_fail(err, RAD_E_FORMAT, "'data_offsets' span %llu bytes, "
                        "'shape' and 'dtype' ask for %llu",
                        (unsigned long long)(r->end - r->begin), (unsigned long long)bytes);
    t->pub.name = obj->string;
    t->pub.type = dt->name;
    t->pub.ggml_type = -1;
    t->pub.data = data + r->begin;
    t->pub.bytes = bytes;
    t->conv = dt->conv;
    /* a row of packed elements has to end on a byte, as in a plane */
    uint64_t cols = t->pub.rank ? (uint64_t)t->pub.shape[t->pub.rank - 1] : 1;
    bool usable = dt->dtype && (dt->bits >= 8 || cols * (uint64_t)dt->bits % 8 == 0);
    if (usable)
        rad_encoding_plain(&e, dt->dtype);
    RAD_TRY(radi_ckpt_add_tensor(ck, t, strlen(obj->string), usable ? &e : NULL, err));
    r->name = ck->tensor[ck->tensors - 1].pub.name;
    return RAD_OK;
}

static rad_status check_metadata(const cJSON *m, struct rad_err *err)
{
    char buf[64];
    const cJSON *v;
    if (!cJSON_IsObject(m))
        return rad_fail(err, RAD_E_FORMAT, "'__metadata__' is %s, want an object",
                        radi_json_what(m, buf));
    cJSON_ArrayForEach(v, m)
        if (!cJSON_IsString(v))
            return rad_fail(err, RAD_E_FORMAT, "'__metadata__': '%.64s' is %s, want a string",
                            v->string, radi_json_what(v, buf));
    return RAD_OK;
}

/* The data is filled from its first byte to its last, each byte once. */
static rad_status check_ranges(struct radi_ckpt_range *r, size_t n, uint64_t size,
                               struct rad_err *err)
{
    uint64_t at = 0;
    radi_ckpt_sort(r, n);
    for (size_t i = 0; i < n; i++) {
        if (r[i].begin < at)
            return rad_fail(err, RAD_E_FORMAT, "tensor '%s': 'data_offsets' overlap those of '%s'",
                            r[i].name, r[i - 1].name);
        if (r[i].begin > at)
            return rad_fail(err, RAD_E_FORMAT,
                            "tensor '%s': 'data_offsets' begin at %llu, "
                            "the data before it ends at %llu",
                            r[i].name, (unsigned long long)r[i].begin, (unsigned long long)at);
        at = r[i].end;
    }
    if (at != size)
        return rad_fail(err, RAD_E_FORMAT, "%llu bytes behind the last tensor, want none",
                        (unsigned long long)(size - at));
    return RAD_OK;
}

static rad_status read_header(struct rad_ckpt *ck, uint32_t file, const cJSON *root,
                              const uint8_t *data, uint64_t size, struct rad_err *err)
{
    struct radi_ckpt_range *r = NULL;
    size_t n = 0, cap;
    const cJSON *j;
    rad_status st = RAD_OK;

    cJSON_ArrayForEach(j, root)
        n++;
    cap = n;
    if (cap && !(r = radi_calloc(cap, sizeof(*r))))
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    n = 0;
    cJSON_ArrayForEach(j, root) {
        if (!strcmp(j->string, "__metadata__")) {
            st = check_metadata(j, err);
        } else {
            struct radi_ckpt_tensor t = { .file = file };
            st = parse_tensor(ck, j, &t, data, size, &r[n++], err);
            if (st)
                rad_fail_in(err, st, "tensor '%.128s'", j->string);
        }
        if (st)
            goto out;
    }
    st = check_ranges(r, n, size, err);
out:
    radi_free(r);
    return st;
}

static rad_status parse_file(struct rad_ckpt *ck, uint32_t file, struct rad_err *err)
{
    const uint8_t *p = ck->file[file].map.data;
    uint64_t size = ck->file[file].map.size, len = 0;
    char buf[64];
    cJSON *root;

    if (size < 8)
        return rad_fail(err, RAD_E_FORMAT, "%llu bytes, want at least the 8 of the header length",
                        (unsigned long long)size);
    for (int i = 7; i >= 0; i--)
        len = len << 8 | p[i];
    if (len > size - 8)
        return rad_fail(err, RAD_E_FORMAT, "header length %llu, the file has %llu bytes behind it",
                        (unsigned long long)len, (unsigned long long)(size - 8));
    if (len > MAX_HEADER)
        return rad_fail(err, RAD_E_FORMAT, "header length %llu, want at most %d",
                        (unsigned long long)len, MAX_HEADER);
    if (!len || p[8] != '{')
        return rad_fail(err, RAD_E_FORMAT, "header of %llu bytes does not begin with '{'",
                        (unsigned long long)len);
    rad_status st = radi_json_parse((const char *)p + 8, (size_t)len, MAX_HEADER, 0, &root, err);
    if (st)
        return rad_fail_in(err, st, "header");
    if (cJSON_IsObject(root))
        st = read_header(ck, file, root, p + 8 + len, size - 8 - len, err);
    else
        st = rad_fail(err, RAD_E_FORMAT, "header is %s, want an object", radi_json_what(root, buf));
    radi_json_free(root);
    return st;
}

rad_status radi_st_file(struct rad_ckpt *ck, uint32_t file, struct rad_err *err)
{
    rad_status st = parse_file(ck, file, err);
    return st ? rad_fail_in(err, st, "'%s'", ck->file[file].name) : RAD_OK;
}

/* ---- shards */
/* A shard lies beside its index; a name that leads elsewhere is not followed. */
static rad_status open_shard(struct rad_ckpt *ck, const char *index, const char *name,
                             struct radi_map *seen, uint64_t *file, struct rad_err *err)
{
    uint32_t f;
    bool existed;
    const char *slash = strrchr(index, '/');

    if (radi_map_get(seen, name, strlen(name), file))
        return RAD_OK;
    if (!*name || strchr(name, '/') || name[0] == '.')
        return rad_fail(err, RAD_E_FORMAT, "'weight_map' names \"%.128s\", "
                        "want a file beside the index", name);
    char *p = radi_arena_printf(&ck->arena, "%.*s%s", slash ? (int)(slash + 1 - index) : 0, index,
                                name);
    if (!p)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    RAD_TRY(radi_ckpt_add_file(ck, p, &f, err));
    RAD_TRY(radi_st_file(ck, f, err));
    if (!radi_map_put(seen, name, strlen(name), f, &existed))
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    *file = f;
    return RAD_OK;
}

static rad_status read_index(struct rad_ckpt *ck, const char *path, const cJSON *root,
                             struct radi_map *seen, struct rad_err *err)
{
    char buf[64];
    const cJSON *map = radi_json_get(root, "weight_map"), *j;

    if (!cJSON_IsObject(map))
        return rad_fail(err, RAD_E_FORMAT, "'weight_map' is %s, want an object",
                        map ? radi_json_what(map, buf) : "absent");
    cJSON_ArrayForEach(j, map) {
        uint64_t file;
        if (!cJSON_IsString(j))
            return rad_fail(err, RAD_E_FORMAT, "'weight_map': '%.128s' is %s, want a file name",
                            j->string, radi_json_what(j, buf));
        RAD_TRY(open_shard(ck, path, j->valuestring, seen, &file, err));
        int64_t t = rad_ckpt_find(ck, j->string);
        if (t < 0 || ck->tensor[t].file != file)
            return rad_fail(err, RAD_E_FORMAT, "'weight_map' places '%.128s' in '%.128s', "
                            "which does not hold it", j->string, j->valuestring);
    }
    return RAD_OK;
}

rad_status radi_st_index(struct rad_ckpt *ck, const char *path, struct rad_err *err)
{
    char *text = NULL;
    size_t n;
    cJSON *root = NULL;
    struct radi_map *seen = radi_map_new(64);
    rad_status st;

    if (!seen)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    if ((st = radi_read_text(path, MAX_INDEX, &text, &n, err)) != RAD_OK)
        goto out;
    if ((st = radi_json_parse(text, n, MAX_INDEX, 0, &root, err)) == RAD_OK)
        st = read_index(ck, path, root, seen, err);
    if (st)
        rad_fail_in(err, st, "'%s'", path);
out:
    radi_json_free(root);
    radi_free(text);
    radi_map_free(seen);
    return st;
}

/* ---- config.json */
static rad_status set_arch(struct rad_ckpt *ck, const cJSON *root, struct rad_err *err)
{
    const char *type = "";
    bool present;
    RAD_TRY(radi_json_str(root, "model_type", &type, &present, err));
    char *s = radi_strdup(present ? type : "");
    if (!s)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    size_t n = 0;
    for (const char *p = s; *p; p++)
        if (*p != '_')
            s[n++] = *p;
    s[n] = 0;
    ck->arch = s;
    return RAD_OK;
}

static const char *fp8_format(const struct rad_ckpt *ck)
{
    for (size_t i = 0; i < ck->tensors; i++)
        if (!strncmp(ck->tensor[i].pub.type, "F8_E5M2", 7))
            return "e5m2";
    return "e4m3";
}

/* "fp8_e4m3", "compressed-tensors_int-quantized", "gptq": method and format. */
static rad_status set_quant(struct rad_ckpt *ck, const cJSON *q, struct rad_err *err)
{
    static const char *const key[] = { "fmt", "format", "quant_algo" };
    const char *method = NULL, *format = NULL;
    bool present = false;
    struct radi_str s = { 0 };

    if (q)
        RAD_TRY(radi_json_str(q, "quant_method", &method, &present, err));
    if (q && !present)
        return rad_fail(err, RAD_E_FORMAT, "no 'quant_method'");
    for (size_t i = 0; i < RADI_COUNT(key) && q; i++) {
        const cJSON *f = radi_json_get(q, key[i]);
        if (cJSON_IsString(f)) {
            format = f->valuestring;
            break;
        }
    }
    if (method && !format && !strcmp(method, "fp8"))
        format = fp8_format(ck);
    radi_str_adds(&s, method ? method : "");
    if (format)
        radi_str_addc(&s, '_');
    for (const char *p = format; p && *p; p++)
        radi_str_addc(&s, (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p));
    ck->quant = radi_str_take(&s);
    return ck->quant ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
}

static rad_status set_block(struct rad_ckpt *ck, const cJSON *q, struct rad_err *err)
{
    const cJSON *b = q ? radi_json_get(q, "weight_block_size") : NULL;
    uint64_t v[2];

    ck->fp8_block[0] = ck->fp8_block[1] = 128;
    if (!b || cJSON_IsNull(b))
        return RAD_OK;
    if (!cJSON_IsArray(b) || cJSON_GetArraySize(b) != 2)
        return rad_fail(err, RAD_E_FORMAT, "'weight_block_size': want two numbers");
    RAD_TRY(whole(b->child, "'weight_block_size'", &v[0], err));
    RAD_TRY(whole(b->child->next, "'weight_block_size'", &v[1], err));
    if (!v[0] || !v[1] || v[0] > INT32_MAX || v[1] > INT32_MAX)
        return rad_fail(err, RAD_E_FORMAT, "'weight_block_size' %llu x %llu, want 1 to 2^31-1",
                        (unsigned long long)v[0], (unsigned long long)v[1]);
    ck->fp8_block[0] = (int64_t)v[0];
    ck->fp8_block[1] = (int64_t)v[1];
    return RAD_OK;
}

/* The block that a scale tensor's shape means: one scale, one a row, or the
 * configured blocks. False when it is none of these. */
static bool scale_block(const struct rad_ckpt *ck, const struct rad_ckpt_tensor *t,
                        const struct rad_ckpt_tensor *s, int64_t block[2])
{
    uint64_t br = (uint64_t)ck->fp8_block[0], bc = (uint64_t)ck->fp8_block[1];
    uint64_t inner = t->rank >= 2 ? (uint64_t)t->shape[t->rank - 2] : 1;

    if (s->rows == 1 && s->cols == 1) {
        block[0] = block[1] = 0;
        return true;
    }
    block[0] = (int64_t)br;
    block[1] = (int64_t)bc;
    /* stacked matrices: rows are numbered through, so each fills its blocks */
    bool stacked_ok = t->rank <= 2 || inner % br == 0;
    if (stacked_ok && s->rows == (t->rows + br - 1) / br && s->cols == (t->cols + bc - 1) / bc)
        return true;
    block[0] = 1;
    block[1] = 0;
    return (s->rows == t->rows && s->cols == 1) || (s->rows == 1 && s->cols == t->rows);
}

/* An FP8 tensor and its "<name>_scale_inv" are read as one. */
static rad_status join_fp8(struct rad_ckpt *ck, struct radi_ckpt_tensor *t, struct rad_err *err)
{
    struct rad_ckpt_tensor *p = &t->pub;
    int64_t block[2];
    RadEncoding e;

    if (strncmp(p->type, "F8_E4M3", 7) && strncmp(p->type, "F8_E5M2", 7))
        return RAD_OK;
    char *name = radi_arena_printf(&ck->arena, "%s_scale_inv", p->name);
    if (!name)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    int64_t i = rad_ckpt_find(ck, name);
    if (i < 0 || !p->enc)
        return RAD_OK;
    struct radi_ckpt_tensor *s = &ck->tensor[i];
    if (!s->pub.enc || s->conv != RADI_CONV_COPY ||
        rad_dtype_kind((int)s->pub.enc->plane[0].dtype) != 'f' || strstr(s->pub.type, "F4"))
        return rad_fail(err, RAD_E_FORMAT, "tensor '%s': scales of type %s", name, s->pub.type);
    if (!scale_block(ck, p, &s->pub, block))
        return rad_fail(err, RAD_E_FORMAT,
                        "tensor '%s': scales [%llu, %llu] do not fit a weight [%llu, %llu] "
                        "in blocks of %lld x %lld",
                        name, (unsigned long long)s->pub.rows, (unsigned long long)s->pub.cols,
                        (unsigned long long)p->rows, (unsigned long long)p->cols,
                        (long long)ck->fp8_block[0], (long long)ck->fp8_block[1]);
    rad_encoding_affine(&e);
    RAD_TRY(rad_encoding_add(&e, "codes", (int)p->enc->plane[0].dtype, RAD_PLANE_TILED, 1, 1));
    RAD_TRY(rad_encoding_add(&e, "scale", (int)s->pub.enc->plane[0].dtype, RAD_PLANE_TILED,
                             block[0], block[1]));
    RAD_TRY(radi_ckpt_intern(ck, &e, &p->enc, err));
    p->scale = i;
    p->row_step = block[0] ? (uint64_t)block[0] : 1;
    s->pub.is_scale = 1;
    return RAD_OK;
}

rad_status radi_st_finish(struct rad_ckpt *ck, struct rad_err *err)
{
    char buf[64];
    cJSON *root;
    const cJSON *q, *text;

    /* Infinity occurs in real configs; whoever uses such a key sees a string */
    RAD_TRY(radi_json_parse(ck->config, ck->config_len, ck->config_len + 1, RADI_JSON_LENIENT,
                            &root, err));
    rad_status st = RAD_OK;
    if (!cJSON_IsObject(root)) {
        st = rad_fail(err, RAD_E_FORMAT, "is %s, want an object", radi_json_what(root, buf));
        goto out;
    }
    q = radi_json_get(root, "quantization_config");
    text = radi_json_get(root, "text_config");
    if (!q && cJSON_IsObject(text))
        q = radi_json_get(text, "quantization_config");
    if (q && cJSON_IsNull(q))
        q = NULL;
    if (q && !cJSON_IsObject(q)) {
        st = rad_fail(err, RAD_E_FORMAT, "'quantization_config' is %s, want an object",
                      radi_json_what(q, buf));
        goto out;
    }
    if ((st = set_arch(ck, root, err)) != RAD_OK)
        goto out;
    if ((st = set_quant(ck, q, err)) == RAD_OK)
        st = set_block(ck, q, err);
    if (st)
        rad_fail_in(err, st, "'quantization_config'");
    for (size_t i = 0; i < ck->tensors && st == RAD_OK; i++)
        st = join_fp8(ck, &ck->tensor[i], err);
out:
    radi_json_free(root);
    return st;
}
