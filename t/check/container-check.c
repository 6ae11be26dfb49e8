/* SPDX-License-Identifier: Apache-2.0 */
/* The container: what the writer writes comes back; each rule, broken alone,
 * is refused by name; cuts and flipped bytes never crash; digests and
 * signatures say no when they must. Everything runs in memory but the writing. */
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <rad/model_write.h>
#include <rad/recipe.h>

#include "format/container.h"
#include "tap.h"

#define OK(call)                                                              \
    do {                                                                      \
        struct rad_err *e_ = &err;                                            \
        e_->text[0] = 0;                                                      \
        rad_status st_ = (call);                                              \
        CHECK_MSG(st_ == RAD_OK, "%s: %d: %s", #call, (int)st_, e_->text);    \
    } while (0)
#define REFUSED(call, code, what)                                             \
    do {                                                                      \
        err.text[0] = 0;                                                      \
        rad_status st_ = (call);                                              \
        CHECK_MSG(st_ == (code) && strstr(err.text, what), "%s: %d: '%s', want %d: '%s'", \
                  #call, (int)st_, err.text, (int)(code), what);              \
    } while (0)

static struct rad_err err;
static char dir[] = "/tmp/container-check.XXXXXX", target[256];
static uint8_t *file;          /* the bytes that all cases begin with */
static size_t file_len;

/* ---- one small model with a bit of everything */

static uint64_t intern(struct rad_model_writer *w, const char *s)
{
    uint64_t off = 0;

    OK(rad_model_writer_intern(w, s, strlen(s), &off, &err));
    return off;
}

/* Four tokens, two merges, one step. */
static void add_vocab(struct rad_model_writer *w)
{
    static const char *const token[] = { "a", "b", "ab", "abb" };
    struct {
        struct radi_rad_vocab v;
        uint64_t text[4];
        struct radi_rad_step step;
        uint32_t merge[4];
        uint8_t type[8];
    } s = { .v = { .kind = 1, .n_tokens = 4, .n_merges = 2, .n_steps = 1,
                   .id = { -1, 3, -1, -1, -1, -1 } },
            .step = { .kind = 32, .flags = 2 }, .merge = { 0, 1, 2, 1 },
            .type = { 1, 1, 1, 1 } };

    s.v.text = (uint64_t)((char *)s.text - (char *)&s);
    s.v.step = (uint64_t)((char *)&s.step - (char *)&s);
    s.v.merge = (uint64_t)((char *)s.merge - (char *)&s);
    s.v.type = (uint64_t)((char *)s.type - (char *)&s);
    for (int i = 0; i < 4; i++)
        s.text[i] = intern(w, token[i]);
    s.v.template = intern(w, "{{ messages }}");
    OK(rad_model_writer_vocab(w, &s, sizeof s, &err));
}

static void add_weight(struct rad_model_writer *w, const char *name, const RadEncoding *e,
                       int64_t r, int64_t c, int layer, int expert, int slot)
{
    struct rad_weight_spec s = { .size = sizeof s, .name = name, .enc = e, .rank = r ? 2 : 1,
                                 .shape = { r ? r : c, r ? c : 0 }, .layer = layer,
                                 .expert = expert, .slot = slot };

    if (strcmp(e->scheme, "plain")) {
        s.quantizer = "rtn";
        s.options = "codes=i4,group=32";
    }
    OK(rad_model_writer_weight(w, &s, NULL, &err));
}

static struct rad_model_writer *make_plan(const char *pem)
{
    struct rad_model_writer *w;
    RadEncoding f32, bf16, q4;

    rad_encoding_plain(&f32, RAD_F32);
    rad_encoding_plain(&bf16, RAD_BF16);
    rad_encoding_affine(&q4);
    OK(rad_encoding_add(&q4, "codes", RAD_DT_i4, RAD_PLANE_TILED, 1, 1));
    OK(rad_encoding_add(&q4, "scale", RAD_BF16, RAD_PLANE_TILED, 1, 32));
    memcpy(q4.transform, "fwht32", 6);

    OK(rad_model_writer_new(&w, &err));
    OK(rad_model_writer_header(w, "llama", "tiny", "", "* rtn codes=i4\n", "a test", &err));
    OK(rad_model_writer_source(w, "commit 1234", &err));
    OK(rad_model_writer_meta_int(w, "n_layers", 1, &err));
    OK(rad_model_writer_meta_f64(w, "rms_eps", 1e-5, &err));
    OK(rad_model_writer_meta_str(w, "model_type", "mistral", &err));
    OK(rad_model_writer_meta_str(w, "model_type", "llama", &err));   /* replaces */
    /* out of order on purpose */
    for (int e = 2; e >= 0; e--)
        for (int slot = 1; slot >= 0; slot--) {
            char name[64];

            snprintf(name, sizeof name, "blk.0.ffn_%s_exps.%d.weight",
                     slot ? "down" : "gate_up", e);
            add_weight(w, name, &q4, slot ? 32 : 16, 32, 0, e, slot);
        }
    add_weight(w, "blk.0.attn_norm.weight", &f32, 0, 32, 0, -1, 0);
    add_weight(w, "blk.0.attn_q.weight", &q4, 32, 64, 0, -1, 0);
    add_weight(w, "token_embd.weight", &bf16, 4, 32, -1, -1, 0);
    add_vocab(w);
    const struct rad_profile_row profile[] = { { 0, 0, 0.5f, 0 }, { 0, 1, 0.5f, 7.0f } };
    OK(rad_model_writer_profile(w, profile, 2, &err));
    OK(rad_model_writer_certificate(w, "certificate", 11, &err));
    if (pem)
        OK(rad_model_writer_key(w, pem, &err));
    OK(rad_model_writer_plan(w, &err));
    return w;
}

static uint8_t plane_byte(size_t weight, uint32_t plane, uint64_t i)
{
    return (uint8_t)(weight * 31 + plane * 7 + i * 13 + 1);
}

/* `chunk` bytes a call. */
static void write_planes(struct rad_model_writer *w, size_t chunk)
{
    for (size_t i = 0; i < rad_model_writer_count(w); i++) {
        const struct rad_weight *o = rad_model_writer_at(w, i, NULL);

        for (uint32_t p = 0; p < o->n_planes; p++)
            for (uint64_t at = 0; at < o->plane[p].bytes; at += chunk) {
                uint8_t buf[4096];
                uint64_t n = o->plane[p].bytes - at;

                n = n < chunk ? n : chunk;
                for (uint64_t k = 0; k < n; k++)
                    buf[k] = plane_byte(i, p, at + k);
                OK(rad_model_writer_write(w, i, p, buf, (size_t)n, &err));
            }
    }
}

static uint8_t *slurp(size_t *len)
{
    FILE *f = fopen(target, "rb");
    uint8_t *p = NULL;

    if (f && fseek(f, 0, SEEK_END) == 0) {
        *len = (size_t)ftell(f);
        rewind(f);
        p = malloc(*len);
        if (p && fread(p, 1, *len, f) != *len)
            abort();
    }
    if (f)
        fclose(f);
    return p;
}

static void make_file(size_t chunk, const char *pem)
{
    struct rad_model_writer *w = make_plan(pem);

    OK(rad_model_writer_open(w, target, &err));
    write_planes(w, chunk);
    OK(rad_model_writer_finish(w, &err));
    rad_model_writer_free(w);
}

static struct rad_model *open_bytes(const uint8_t *p, size_t n)
{
    struct rad_model *m = NULL;

    OK(rad_model_open_memory(p, n, &m, &err));
    return m;
}

/* ---- cases */

static void round_trip(void)
{
    static const char *const order[] = {
        "token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
        "blk.0.ffn_gate_up_exps.0.weight", "blk.0.ffn_down_exps.0.weight",
        "blk.0.ffn_gate_up_exps.1.weight", "blk.0.ffn_down_exps.1.weight",
        "blk.0.ffn_gate_up_exps.2.weight", "blk.0.ffn_down_exps.2.weight",
    };
    struct rad_model *m;
    const void *bytes;
    size_t len;
    int64_t i = 0;
    double f = 0;
    const char *s = "";

    OK(rad_model_open(target, &m, &err));
    if (!m)
        return;
    const struct rad_model_info *h = rad_model_info(m);
    CHECK(!strcmp(h->arch, "llama") && !strcmp(h->name, "tiny") && !*h->quant
          && !strcmp(h->recipe, "* rtn codes=i4\n") && !strcmp(h->created_by, "a test"));
    CHECK(h->version == 2 && h->file_bytes == file_len && h->strings.offset == 248
          && h->data.offset == 2 << 20 && h->data.bytes % 4096 == 0
          && h->integrity.offset == h->data.offset + h->data.bytes);
    CHECK(rad_model_meta_count(m) == 3);
    OK(rad_model_meta_int(m, "n_layers", &i, &err));
    OK(rad_model_meta_f64(m, "n_layers", &f, &err));
    CHECK(i == 1 && f == 1);
    OK(rad_model_meta_f64(m, "rms_eps", &f, &err));
    OK(rad_model_meta_str(m, "model_type", &s, &err));
    CHECK(f == 1e-5 && !strcmp(s, "llama"));
    REFUSED(rad_model_meta_int(m, "rms_eps", &i, &err), RAD_E_FORMAT, "a double");
    REFUSED(rad_model_meta_int(m, "no", &i, &err), RAD_E_NOTFOUND, "'no'");

    CHECK(rad_model_weight_count(m) == 9 && rad_model_encoding_count(m) == 3);
    for (size_t k = 0; k < 9; k++) {
        const struct rad_weight *w = rad_model_weight_at(m, k);

        CHECK_MSG(!strcmp(w->name, order[k]), "%zu: '%s', want '%s'", k, w->name, order[k]);
        CHECK(rad_model_weight(m, w->name) == w && w->index == k && w->offset % 4096 == 0);
        for (uint32_t p = 0; p < w->n_planes; p++) {
            const uint8_t *b = w->plane[p].data;

            CHECK(w->plane[p].offset % 256 == 0);
            for (uint64_t j = 0; j < w->plane[p].bytes; j++)
                CHECK(b[j] == plane_byte(k, p, j));
        }
    }
    const struct rad_weight *q = rad_model_weight(m, "blk.0.attn_q.weight");
    float row[64];
    CHECK(q->rank == 2 && q->shape[0] == 32 && q->shape[1] == 64 && q->layer == 0
          && q->expert == -1 && !strcmp(q->quantizer, "rtn")
          && !strcmp(q->options, "codes=i4,group=32") && q->plane[0].bytes == 32 * 32
          && q->plane[1].bytes == 32 * 2 * 2);
    OK(rad_weight_decode(q, 31, 1, row, 64, &err));
    CHECK(!rad_model_weight(m, "nothing"));
    const struct rad_expert_group *g = rad_model_group_at(m, 0);
    CHECK(rad_model_group_count(m) == 1 && g->layer == 0 && g->n_experts == 3
          && g->n_slots == 2 && g->first == 3 && g->stride == 8192
          && rad_model_weight_at(m, 7)->offset == g->base + 2 * g->stride);

    rad_model_vocab(m, &bytes, &len);
    CHECK(len == sizeof(struct radi_rad_vocab) + 32 + 32 + 16 + 8);
    struct radi_rad_vocab v;
    memcpy(&v, bytes, sizeof v);
    CHECK(v.text == h->vocab.offset + 128 && v.score == 0);
    uint64_t off;
    memcpy(&off, (const char *)bytes + (v.text - h->vocab.offset) + 24, 8);
    CHECK(rad_model_string(m, off) && !strcmp(rad_model_string(m, off), "abb"));
    CHECK(!rad_model_string(m, h->strings.bytes));
    const struct rad_profile_row *pr = rad_model_profile(m, &len);
    CHECK(len == 2 && pr[1].expert == 1 && pr[1].share == 0.5f && pr[1].reserved == 0);
    rad_model_certificate(m, &bytes, &len);
    CHECK(len == 11 && !memcmp(bytes, "certificate", 11));
    CHECK(rad_model_integrity(m) && !strcmp(rad_model_integrity(m)->source, "commit 1234")
          && !rad_model_integrity(m)->is_signed);

    struct rad_verify_report r;
    OK(rad_model_verify(m, &r, &err));
    CHECK(r.tables == 9 && r.planes == 16 && r.signature == 0);
    rad_model_unref(rad_model_ref(m));
    rad_model_unref(m);
}

/* Chunks and the order of calls change nothing. */
static void deterministic(void)
{
    size_t n;

    make_file(1, NULL);
    uint8_t *again = slurp(&n);
    CHECK(n == file_len && !memcmp(again, file, n));
    free(again);
}

static void writer_refuses(void)
{
    struct rad_model_writer *w = make_plan(NULL);
    uint8_t buf[4096] = { 0 };
    size_t bytes = (size_t)rad_model_writer_at(w, 0, NULL)->plane[0].bytes;

    CHECK(rad_model_writer_file_bytes(w) == file_len);
    REFUSED(rad_model_writer_meta_int(w, "x", 1, &err), RAD_E_STATE, "after plan");
    REFUSED(rad_model_writer_write(w, 0, 0, buf, 1, &err), RAD_E_STATE, "after plan");
    unlink(target);
    OK(rad_model_writer_open(w, target, &err));
    REFUSED(rad_model_writer_write(w, 1, 0, buf, 1, &err), RAD_E_STATE, "not the next");
    REFUSED(rad_model_writer_write(w, 0, 0, buf, bytes + 1, &err), RAD_E_STATE, "at most 256");
    OK(rad_model_writer_write(w, 0, 0, buf, 10, &err));
    REFUSED(rad_model_writer_write(w, 1, 0, buf, 1, &err), RAD_E_STATE, "10 bytes so far");
    REFUSED(rad_model_writer_finish(w, &err), RAD_E_STATE, "10 of 256 bytes");
    REFUSED(rad_model_writer_write(w, 9, 0, buf, 1, &err), RAD_E_ARG, "none");
    rad_model_writer_free(w);
    CHECK(access(target, F_OK) != 0);      /* nothing half-written stays */

    RadEncoding f32, q4;
    rad_encoding_plain(&f32, RAD_F32);
    rad_encoding_affine(&q4);
    OK(rad_encoding_add(&q4, "codes", RAD_DT_i4, RAD_PLANE_TILED, 1, 1));
    memcpy(q4.transform, "fwht64", 6);
    struct rad_weight_spec s = { .size = sizeof s, .name = "a", .enc = &f32, .rank = 1,
                                 .shape = { 4 }, .layer = -1, .expert = -1 };
    OK(rad_model_writer_new(&w, &err));
    OK(rad_model_writer_weight(w, &s, NULL, &err));
    REFUSED(rad_model_writer_weight(w, &s, NULL, &err), RAD_E_DUPLICATE, "'a'");
    s.name = "b", s.rank = 7;
    REFUSED(rad_model_writer_weight(w, &s, NULL, &err), RAD_E_ARG, "rank 7");
    s.rank = 1, s.shape[0] = 0;
    REFUSED(rad_model_writer_weight(w, &s, NULL, &err), RAD_E_ARG, "shape");
    s.shape[0] = 32, s.enc = &q4;
    REFUSED(rad_model_writer_weight(w, &s, NULL, &err), RAD_E_FORMAT, "fwht64");
    s.enc = &f32, s.layer = 0, s.expert = 1;
    OK(rad_model_writer_weight(w, &s, NULL, &err));
    REFUSED(rad_model_writer_plan(w, &err), RAD_E_FORMAT, "want expert 0");
    uint64_t off;
    REFUSED(rad_model_writer_intern(w, "a\0b", 3, &off, &err), RAD_E_ARG, "zero byte");
    REFUSED(rad_model_writer_key(w, "no key", &err), RAD_E_STATE, "");
    rad_model_writer_free(w);

    OK(rad_model_writer_new(&w, &err));    /* no weights at all is a container, too */
    REFUSED(rad_model_writer_key(w, "no key", &err), RAD_E_ARG, "PEM");
    OK(rad_model_writer_plan(w, &err));
    OK(rad_model_writer_open(w, target, &err));
    OK(rad_model_writer_finish(w, &err));
    rad_model_writer_free(w);
    struct rad_model *m;
    OK(rad_model_open(target, &m, &err));
    OK(rad_model_verify(m, NULL, &err));
    rad_model_unref(m);
}

/* ---- every rule of §12, broken alone */

struct broken {
    struct radi_rad_header *h;
    struct radi_rad_meta *meta;
    struct radi_rad_entry *dir;            /* in the order of round_trip */
    struct radi_rad_plane *plane;
    RadEncoding *enc;
    struct radi_rad_vocab *vocab;
    struct radi_rad_integrity *integ;
    uint8_t *bytes;
};

static uint8_t *scratch;

static struct broken fresh(void)
{
    struct broken b = { .bytes = scratch };

    memcpy(scratch, file, file_len);
    b.h = (struct radi_rad_header *)scratch;
    b.meta = (struct radi_rad_meta *)(scratch + b.h->meta_off);
    b.dir = (struct radi_rad_entry *)(scratch + b.h->dir_off);
    b.plane = (struct radi_rad_plane *)(scratch + b.h->plane_off);
    b.enc = (RadEncoding *)(scratch + b.h->enc_off);
    b.vocab = (struct radi_rad_vocab *)(scratch + b.h->vocab_off);
    b.integ = (struct radi_rad_integrity *)(scratch + b.h->integrity_off);
    return b;
}

static void expect(const char *file_name, int line, const char *change, const char *what)
{
    struct rad_model *m = NULL;

    err.text[0] = 0;
    rad_status st = rad_model_open_memory(scratch, file_len, &m, &err);
    if (st != RAD_E_FORMAT || !strstr(err.text, what))
        tap_note(file_name, line, "%s: %d: '%s', want '%s'", change, (int)st, err.text, what);
    rad_model_unref(m);
}

#define BREAK(change, what)                            \
    do {                                               \
        struct broken b = fresh();                     \
        change;                                        \
        expect(__FILE__, __LINE__, #change, what);     \
    } while (0)

static void rules_header(void)
{
    struct rad_model *m;

    REFUSED(rad_model_open_memory(file, 247, &m, &err), RAD_E_FORMAT, "header: 247 bytes");
    REFUSED(rad_model_open_memory(file, 0, &m, &err), RAD_E_FORMAT, "header: 0 bytes");
    REFUSED(rad_model_open_memory(file, file_len - 1, &m, &err), RAD_E_FORMAT, "file_bytes");
    BREAK(b.h->magic++, "magic");
    BREAK(b.h->version = 3, "version: 3, want 2; convert");
    BREAK(b.h->version = 1, "version: 1");
    BREAK(b.h->file_bytes++, "file_bytes");
    BREAK(b.h->file_bytes = 0, "file_bytes");
    BREAK(b.h->file_bytes = UINT64_MAX, "file_bytes");
    BREAK(b.h->str_off = file_len, "strings: ");
    BREAK(b.h->str_off = UINT64_MAX, "strings: ");
    BREAK(b.h->str_bytes = UINT64_MAX, "strings: ");
    BREAK(b.h->meta_off = file_len, "metadata: ");
    BREAK(b.h->meta_off += 4, "metadata: offset");
    BREAK(b.h->meta_count = UINT64_MAX / 24 + 2, "metadata: count");
    BREAK(b.h->dir_count = 1ull << 60, "directory: ");
    BREAK(b.h->dir_off = UINT64_MAX - 8, "directory: ");
    BREAK(b.h->plane_count = 1ull << 62, "planes: ");
    BREAK(b.h->plane_off = 1ull << 62, "planes: ");
    BREAK(b.h->enc_count = 1ull << 40, "encodings: ");
    BREAK(b.h->enc_off = ~7ull, "encodings: ");
    BREAK(b.h->vocab_bytes = 1ull << 62, "vocab: ");
    BREAK(b.h->vocab_off = file_len + 8, "vocab: ");
    BREAK(b.h->prof_count = 1ull << 60, "profile: ");
    BREAK(b.h->prof_off = file_len, "profile: ");
    BREAK(b.h->data_bytes = file_len, "data: ");
    BREAK(b.h->data_off = UINT64_MAX, "data: ");
    BREAK(b.h->data_off -= 4096, "data_off");
    BREAK(b.h->reserved[0] = 1, "reserved[4]");
    BREAK(b.h->reserved[3] = 1, "reserved[7]");
    BREAK(b.h->integrity_off = 0, "integrity: ");
    BREAK(b.h->integrity_bytes = 0, "integrity: ");
    BREAK(b.h->integrity_bytes -= 8, "integrity: ");
    BREAK(b.h->integrity_bytes = 1ull << 62, "integrity: ");
    BREAK(b.h->integrity_off -= 4, "integrity: ");
    BREAK(b.h->cert_off = 0, "certificate: ");
    BREAK(b.h->cert_bytes = 1ull << 62, "certificate: ");
    BREAK(b.h->cert_off += 1, "certificate: ");
    BREAK(b.integ->magic[0] = 0, "integrity: magic");
    BREAK(b.integ->version = 2, "integrity: version 2");
    BREAK(b.integ->algorithm = 2, "algorithm 2");
    BREAK(b.integ->n_tables = 8, "integrity: ");
    BREAK(b.integ->n_planes = UINT64_MAX, "integrity: ");
    BREAK(b.integ->reserved1 = 1, "reserved");
    BREAK(b.integ->signature_kind = 2, "signature kind 2");
    BREAK(b.integ->source = 1 << 30, "integrity: source");
}

static void rules_strings(void)
{
    BREAK(b.h->str_bytes = 0, "str_bytes: 0");
    BREAK(b.bytes[b.h->str_off + b.h->str_bytes - 1] = 'x', "strings: the last byte");
    BREAK(b.h->arch = b.h->str_bytes, "arch_id");
    BREAK(b.h->name = UINT64_MAX, "model_name");
    BREAK(b.h->quant = b.h->str_bytes, "quant");
    BREAK(b.h->recipe = b.h->str_bytes, "recipe");
    BREAK(b.h->created_by = b.h->str_bytes, "created_by");
    BREAK(b.meta[1].key = b.h->str_bytes, "metadata 1: key");
    BREAK(b.meta[2].v.s = b.h->str_bytes, "metadata 'model_type'");
    BREAK(b.meta[0].type = 3, "metadata 'n_layers': type 3");
    BREAK(b.meta[0].pad = 1, "metadata 'n_layers': padding");
    BREAK(b.dir[3].name = b.h->str_bytes, "weight 3: name");
    BREAK(b.dir[3].quantizer = b.h->str_bytes, "quantizer");
    BREAK(b.dir[3].options = b.h->str_bytes, "options");
}

static void rules_encodings(void)
{
    BREAK(b.enc[1].n_planes = 0, "encoding 1: 0 planes");
    BREAK(b.enc[0].plane[7].dtype = 1, "encoding 0: plane 7");
    BREAK(b.enc[0].scheme[23] = 'x', "encoding 0: scheme");
    BREAK(memset(b.enc[0].plane[0].role, 'x', 24), "encoding 0: plane 0: role");
    BREAK(b.enc[1].plane[0].dtype = 7, "encoding 1: plane 'codes': dtype 7");
    BREAK(b.enc[0].transform[4] = '4', "transform 'fwht42'");
}

static void rules_entries(void)
{
    BREAK(b.dir[0].rank = 0, "'token_embd.weight': rank: 0");
    BREAK(b.dir[0].rank = 7, "rank: 7");
    BREAK(b.dir[0].shape[1] = 0, "shape[1]: 0");
    BREAK(b.dir[0].shape[0] = -4, "shape[0]: -4");
    BREAK(b.dir[0].shape[2] = 1, "shape[2]: 1");
    BREAK((b.dir[0].rank = 3, b.dir[0].shape[0] = b.dir[0].shape[1] = INT64_MAX,
           b.dir[0].shape[2] = 1), "shape: product");
    BREAK((b.dir[0].shape[0] = 1ll << 61, b.dir[0].shape[1] = 1ll << 61), "overflow");
    BREAK(b.dir[0].layer = -2, "layer: -2");
    BREAK(b.dir[0].expert = -2, "expert: -2");
    BREAK(b.dir[0].reserved[0] = 1, "reserved[0]");
    BREAK(b.dir[0].reserved[1] = 1, "reserved[1]");
    BREAK(b.dir[0].offset = file_len, "bytes: ");
    BREAK(b.dir[0].bytes = UINT64_MAX, "bytes: ");
    BREAK(b.dir[0].offset += 256, "offset: ");
    BREAK(b.dir[0].enc = 3, "enc: 3");
    BREAK(b.dir[0].n_planes = 2, "n_planes: 2");
    BREAK(b.dir[0].plane_first = 16, "plane_first: 16+1 of 16");
    BREAK(b.dir[0].plane_first = UINT64_MAX, "plane_first");
    BREAK(b.plane[0].bytes--, "plane 'codes': 255 bytes, want 256");
    BREAK(b.plane[3].bytes++, "'blk.0.attn_q.weight': plane 'scale'");
    BREAK(b.plane[0].offset += 8, "multiple of 256");
    BREAK(b.plane[0].offset += 256, "outside the entry");
    BREAK(b.plane[0].offset = UINT64_MAX - 255, "outside the entry");
    BREAK(b.plane[2].offset -= 4096, "outside the entry");
    BREAK(b.dir[2].shape[1] = 80, "fwht32");

    /* the first of two equal names counts, and that is no error */
    struct broken b = fresh();
    b.dir[1].name = b.dir[0].name;
    struct rad_model *m = open_bytes(scratch, file_len);
    CHECK(m && rad_model_weight(m, "token_embd.weight")->index == 0);
    rad_model_unref(m);
}

static void rules_vocab(void)
{
    BREAK(b.h->vocab_off += 4, "vocab_off");
    BREAK(b.h->vocab_bytes = 127, "vocab_bytes: 127");
    BREAK(b.vocab->kind = 5, "vocab: kind: 5");
    BREAK(b.vocab->n_tokens = 1 << 30, "vocab: tok_text");
    BREAK(b.vocab->text += 4, "vocab: tok_text");
    BREAK(b.vocab->text = 0, "vocab: tok_text");
    BREAK(b.vocab->text = 248, "vocab: tok_text");
    BREAK(b.vocab->score = b.h->vocab_off + b.h->vocab_bytes - 4, "vocab: tok_score");
    BREAK(b.vocab->type = UINT64_MAX, "vocab: tok_type");
    BREAK(b.vocab->merge += 2, "vocab: merge");
    BREAK(b.vocab->n_merges = UINT32_MAX, "vocab: merge");
    BREAK(b.vocab->step = UINT64_MAX - 7, "vocab: step");
    BREAK(b.vocab->n_steps = UINT32_MAX, "vocab: step");
    BREAK(b.vocab->template = b.h->str_bytes, "vocab: chat template");
    BREAK(*(uint64_t *)(b.bytes + b.vocab->text + 8) = b.h->str_bytes, "vocab: tok_text 1");
    BREAK(*(uint32_t *)(b.bytes + b.vocab->merge + 12) = 4, "vocab: merge 1: tokens 2 and 4");
    BREAK(*(uint64_t *)(b.bytes + b.vocab->step + 8) = b.h->str_bytes, "vocab: step 0");
}

static void swap_entries(struct radi_rad_entry *a, struct radi_rad_entry *b)
{
    struct radi_rad_entry t = *a;

    *a = *b;
    *b = t;
}

static void rules_experts(void)
{
    BREAK(b.dir[3].expert = 1, "want expert 0, slot 0");
    BREAK(b.dir[3].slot = 1, "want expert 0, slot 0");
    BREAK(b.dir[4].slot = 2, "expert 0, slot 2, want expert 1, slot 0");
    BREAK(b.dir[5].expert = 2, "expert 2, slot 0, want expert 1, slot 0");
    BREAK(b.dir[8].slot = 0, "expert 2, slot 0, want expert 2, slot 1");
    BREAK(b.dir[8].expert = -1, "has 1 slots, want 2");
    BREAK(swap_entries(&b.dir[5], &b.dir[6]), "slot 1, want expert 1, slot 0");
    BREAK(swap_entries(&b.dir[2], &b.dir[5]), "expert 1, slot 0 begins");
    BREAK((swap_entries(&b.dir[2], &b.dir[6]), swap_entries(&b.dir[6], &b.dir[4])), "slot");
    BREAK(b.dir[6].bytes += 8, "as in expert 0");
    BREAK((b.dir[4].layer = 1, b.dir[4].slot = 0), "slot");
    BREAK((b.dir[7].offset += 4096, b.plane[12].offset += 4096, b.plane[13].offset += 4096),
          "expert 0");
    /* experts of one layer in two places */
    BREAK((b.dir[5].expert = -1, b.dir[6].expert = -1, b.dir[7].expert = 0,
           b.dir[8].expert = 0), "do not lie together");
}

/* ---- damage: never a crash */

static void walk(struct rad_model *m, bool verify)
{
    static float row[65536];

    for (size_t i = 0; i < rad_model_weight_count(m); i++) {
        const struct rad_weight *w = rad_model_weight_at(m, i);

        if (w->cols <= 65536)
            (void)rad_weight_decode(w, w->rows - 1, 1, row, 65536, &err);
    }
    for (size_t i = 0; i < rad_model_meta_count(m); i++)
        (void)strlen(rad_model_meta_at(m, i)->key);
    if (verify && rad_model_verify(m, NULL, &err) == RAD_OK)
        tap_note(__FILE__, __LINE__, "a changed file verifies");
}

static void cuts(void)
{
    uint64_t tables = ((struct radi_rad_header *)file)->cert_off + 16, data = 2 << 20;

    for (size_t n = 0; n < file_len; n += 97) {
        struct rad_model *m = NULL;

        if (n > tables && n < data && n / 97 % 64)
            continue;                      /* padding: a few will do */
        memcpy(scratch, file, n);
        if (rad_model_open_memory(scratch, n, &m, &err) == RAD_OK)
            tap_note(__FILE__, __LINE__, "opens when cut at %zu", n);
        rad_model_unref(m);
        if (n < sizeof(struct radi_rad_header))
            continue;
        ((struct radi_rad_header *)scratch)->file_bytes = n;   /* says so itself */
        if (rad_model_open_memory(scratch, n, &m, &err) == RAD_OK)
            walk(m, true);
        rad_model_unref(m);
    }
}

static void flips(void)
{
    uint64_t tables = ((struct radi_rad_header *)file)->cert_off + 16, data = 2 << 20;
    size_t opened = 0, tried = 0;

    memcpy(scratch, file, file_len);
    for (size_t i = 0; i < file_len; i += 101) {
        bool padding = i > tables && i < data;

        if (padding && i / 101 % 64)
            continue;
        for (int k = 0; k < (padding ? 1 : 2); k++) {
            struct rad_model *m = NULL;

            scratch[i] ^= k ? 0xff : 0x10;
            tried++;
            if (rad_model_open_memory(scratch, file_len, &m, &err) == RAD_OK) {
                opened++;
                walk(m, true);
            }
            rad_model_unref(m);
            scratch[i] = file[i];
        }
    }
    CHECK(tried > 500 && opened > tried / 4);
    /* and every byte of the tables */
    for (size_t i = 0; i < tables; i++) {
        struct rad_model *m = NULL;

        scratch[i] ^= (uint8_t)(1 << i % 8);
        if (rad_model_open_memory(scratch, file_len, &m, &err) == RAD_OK)
            walk(m, i % 16 == 0);
        rad_model_unref(m);
        scratch[i] = file[i];
    }
}

/* ---- digests and signatures */

#define MISMATCH(change, what)                                                \
    do {                                                                      \
        struct broken b = fresh();                                            \
        change;                                                               \
        struct rad_model *m_ = open_bytes(scratch, file_len);                 \
        if (m_)                                                               \
            REFUSED(rad_model_verify(m_, NULL, &err), RAD_E_MISMATCH, what);  \
        rad_model_unref(m_);                                                  \
    } while (0)

static void digests(void)
{
    MISMATCH(b.bytes[b.plane[3].offset] ^= 1,
             "weight 'blk.0.attn_q.weight': plane 'scale': digest differs");
    MISMATCH(b.bytes[b.plane[15].offset] ^= 128, "down_exps.2.weight': plane 'scale'");
    MISMATCH(b.h->quant = 5, "table 'header'");
    MISMATCH(b.bytes[b.h->str_off + 3] ^= 1, "table 'strings'");
    MISMATCH(b.meta[0].v.i++, "table 'metadata'");
    MISMATCH(b.dir[0].slot = 3, "table 'directory'");
    MISMATCH(b.vocab->id[0] = 2, "table 'vocab'");
    MISMATCH(b.bytes[b.h->prof_off + 8] ^= 1, "table 'profile'");
    MISMATCH(b.bytes[b.h->cert_off] ^= 1, "table 'certificate'");
    MISMATCH(b.integ->root[0] ^= 1, "root");
    MISMATCH(b.bytes[b.h->integrity_off + 192] ^= 1, "root");
    MISMATCH(b.integ->source = 0, "root");
    MISMATCH(b.integ->key[0] = 1, "signature");
    MISMATCH(b.integ->signature[63] = 1, "signature");
    MISMATCH(b.integ->signature_kind = 1, "signature");
    MISMATCH(b.bytes[(2 << 20) - 1] = 1, "padding: byte 2097151");
    MISMATCH(b.bytes[b.h->integrity_off - 1] = 1, "padding");
    uint8_t *longer = calloc(1, file_len + 1);
    memcpy(longer, file, file_len);
    struct rad_model *m = open_bytes(longer, file_len + 1);
    REFUSED(rad_model_verify(m, NULL, &err), RAD_E_MISMATCH, "1 bytes behind");
    rad_model_unref(m);
    free(longer);

    /* an upstream file: no digests, reserved words zero */
    struct broken b = fresh();
    b.h->integrity_off = b.h->integrity_bytes = b.h->cert_off = b.h->cert_bytes = 0;
    m = open_bytes(scratch, file_len);
    CHECK(m && !rad_model_integrity(m));
    REFUSED(rad_model_verify(m, NULL, &err), RAD_E_NOTFOUND, "no digests");
    rad_model_unref(m);
}

static char *new_key(void)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem());
    char *text, *copy;

    if (!key || !bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        abort();
    long n = BIO_get_mem_data(bio, &text);
    copy = calloc(1, (size_t)n + 1);
    memcpy(copy, text, (size_t)n);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return copy;
}

static void signatures(void)
{
    char *a = new_key(), *b = new_key();
    struct rad_model *m;
    struct rad_verify_report r;
    size_t n, n2;

    make_file(4096, a);
    uint8_t *signed_at_once = slurp(&n);
    OK(rad_model_open(target, &m, &err));
    OK(rad_model_verify(m, &r, &err));
    CHECK(r.signature == 1 && rad_model_integrity(m)->is_signed);
    OK(rad_model_verify_signature(m, a, &err));
    REFUSED(rad_model_verify_signature(m, b, &err), RAD_E_MISMATCH, "not by this key");
    REFUSED(rad_model_verify_signature(m, "x", &err), RAD_E_ARG, "PEM");
    rad_model_unref(m);

    make_file(4096, NULL);
    OK(rad_model_open(target, &m, &err));
    REFUSED(rad_model_verify_signature(m, a, &err), RAD_E_MISMATCH, "not signed");
    rad_model_unref(m);
    OK(rad_model_sign(target, a, &err));   /* later, in place: the same bytes */
    uint8_t *signed_later = slurp(&n2);
    CHECK(n == n2 && !memcmp(signed_at_once, signed_later, n));
    signed_later[((struct radi_rad_header *)signed_later)->integrity_off + 100] ^= 1;
    m = open_bytes(signed_later, n2);
    REFUSED(rad_model_verify(m, NULL, &err), RAD_E_MISMATCH, "signature");
    rad_model_unref(m);
    free(signed_at_once);
    free(signed_later);
    free(a);
    free(b);
}

/* ---- recipes */

static const char *test_env(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "CALIB") == 0 ? "/data/calib" : strcmp(name, "BAD") == 0 ? "a b" : NULL;
}

static void bad_recipe(int line, const char *text, const char *what)
{
    struct rad_recipe *r;

    OK(rad_recipe_new(&r, &err));
    rad_recipe_set_env(r, test_env, NULL);
    err.text[0] = 0;
    if (rad_recipe_add_text(r, "f", text, &err) != RAD_E_FORMAT || !strstr(err.text, what))
        tap_note(__FILE__, line, "'%s', want '%s'", err.text, what);
    CHECK(rad_recipe_count(r) == 0);
    rad_recipe_free(r);
}

static void recipes(void)
{
    struct rad_recipe *r;
    const char *text;

    OK(rad_recipe_new(&r, &err));
    rad_recipe_set_env(r, test_env, NULL);
    OK(rad_recipe_text(r, &text, &err));
    CHECK(!*text);
    OK(rad_recipe_add_text(r, "f", "# a comment\n\n  blk.*.w\tgptq  group=64 calib=$CALIB # c\n"
                           "*.bias cast dtype=f32\r\n", &err));
    OK(rad_recipe_add_inline(r, "blk.1.*=rtn:codes=i4,block=1x2", &err));
    OK(rad_recipe_add_inline(r, "out*=cast", &err));
    CHECK(rad_recipe_count(r) == 4);
    CHECK(rad_recipe_match(r, "blk.1.w") == 0 && rad_recipe_match(r, "blk.2.x.w") == 2
          && rad_recipe_match(r, "output") == 1 && rad_recipe_match(r, "x.bias") == 3
          && rad_recipe_match(r, "norm") == -1);
    const struct rad_recipe_rule *rule = rad_recipe_at(r, 2);
    CHECK(!strcmp(rule->where, "f:3") && !strcmp(rule->quantizer, "gptq")
          && !strcmp(rule->options, "calib=/data/calib,group=64")
          && !strcmp(rad_recipe_option(rule, "group"), "64")
          && !rad_recipe_option(rule, "nothing") && !rad_recipe_at(r, 4));
    OK(rad_recipe_text(r, &text, &err));
    CHECK_MSG(!strcmp(text, "blk.1.* rtn codes=i4 block=1x2\nout* cast\n"
                            "blk.*.w gptq group=64 calib=/data/calib\n*.bias cast dtype=f32\n"),
              "%s", text);
    REFUSED(rad_recipe_add_inline(r, "abc", &err), RAD_E_FORMAT, "--quant 'abc': no '='");
    REFUSED(rad_recipe_add_inline(r, "=x", &err), RAD_E_FORMAT, "no pattern");
    REFUSED(rad_recipe_add_inline(r, "a=", &err), RAD_E_FORMAT, "no quantiser");
    REFUSED(rad_recipe_add_inline(r, "a=:b=c", &err), RAD_E_FORMAT, "no quantiser");
    REFUSED(rad_recipe_add_inline(r, "a=b:c", &err), RAD_E_FORMAT, "KEY=VALUE");
    REFUSED(rad_recipe_add_inline(r, "a=b:c=1,c=2", &err), RAD_E_FORMAT, "'c' is there twice");
    REFUSED(rad_recipe_add_inline(r, "a b=c", &err), RAD_E_FORMAT, "white space");
    CHECK(rad_recipe_count(r) == 4);
    rad_recipe_free(r);

    bad_recipe(__LINE__, "a b\nc\n", "f:2: 'c' alone");
    bad_recipe(__LINE__, "a b c", "f:1: 'c', want KEY=VALUE");
    bad_recipe(__LINE__, "a b =c", "f:1: '=c'");
    bad_recipe(__LINE__, "a b k=1 k=2", "f:1: option 'k' is there twice");
    bad_recipe(__LINE__, "\n\na b k=$NO", "f:3: variable 'NO' is not set");
    bad_recipe(__LINE__, "a b k=$", "'$' without");
    bad_recipe(__LINE__, "a b k=${CALIB", "without '}'");
    bad_recipe(__LINE__, "a b k=${}", "'$' without");
    bad_recipe(__LINE__, "a b k=$BAD", "white space");

    static const struct { const char *p, *t; bool m; } glob[] = {
        { "*", "", true }, { "", "", true }, { "", "a", false }, { "?", "", false },
        { "a*b", "ab", true }, { "a*b", "a.x.b", true }, { "a*b", "abc", false },
        { "*a*a*", "xaya", true }, { "??", "ab", true }, { "?", "\xc3\xa9", true },
        { "a.b", "axb", false }, { "*.*.*", "a.b", false }, { "[ab]", "a", false },
    };
    for (size_t i = 0; i < RADI_COUNT(glob); i++)
        CHECK_MSG(rad_glob_match(glob[i].p, glob[i].t) == glob[i].m, "'%s' '%s'", glob[i].p,
                  glob[i].t);
}

/* ---- the n-th allocation fails */

static void no_memory(void)
{
    struct rad_model *m = NULL;
    rad_status st = RAD_E_NOMEM;
    int n;

    for (n = 1; st && n < 10000; n++) {
        radi_alloc_fail_at((uint64_t)n);
        st = rad_model_open_memory(file, file_len, &m, &err);
        CHECK_MSG(st == RAD_OK || st == RAD_E_NOMEM, "%d: %s", n, err.text);
        if (st)
            CHECK(!m);
    }
    radi_alloc_fail_at(0);
    CHECK(n > 10 && m);
    rad_model_unref(m);
}

/* `write FILE` makes the model for tests of commands; '-' is stdout. */
int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "write")) {
        snprintf(target, sizeof target, "%s", argv[2]);
        make_file(4096, NULL);
        return tap_bad != 0;
    }
    if (!mkdtemp(dir))
        abort();
    snprintf(target, sizeof target, "%s/m.rad", dir);
    tap_begin("write");
    make_file(4096, NULL);
    file = slurp(&file_len);
    tap_end();
    scratch = file ? malloc(file_len) : NULL;
    if (!scratch)
        return 1;
    TAP_RUN(round_trip);
    TAP_RUN(deterministic);
    TAP_RUN(writer_refuses);
    TAP_RUN(rules_header);
    TAP_RUN(rules_strings);
    TAP_RUN(rules_encodings);
    TAP_RUN(rules_entries);
    TAP_RUN(rules_vocab);
    TAP_RUN(rules_experts);
    TAP_RUN(digests);
    TAP_RUN(signatures);
    TAP_RUN(recipes);
    TAP_RUN(no_memory);
    TAP_RUN(cuts);
    TAP_RUN(flips);
    unlink(target);
    rmdir(dir);
    free(file);
    free(scratch);
    return tap_done();
}
