/* SPDX-License-Identifier: Apache-2.0 */
/* A container from memory: open, walk everything, decode rows of each weight,
 * verify, read its metadata as an architecture would, load its tokenizer and
 * use it. The input is taken as the file's tables; the data blob, which in a file
 * begins at 2 MiB, is made right behind them and offsets are moved, for speed.
 * So are digests that agree: verification is then a walk, not one comparison. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include <rad/model.h>
#include <rad/plan.h>
#include <rad/tokenizer.h>

#include "format/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static float row[4096];

static volatile size_t sink;

/* Refused with a reason, or loaded: then it encodes, decodes what it made, and
 * the container's certificate is looked at. */
static void tokenizer(struct rad_model *m)
{
    static const char text[] = "Hello  w\xc3\xb6rld ab abb 12345!\n<s>";
    struct rad_err err = { 0 };
    struct rad_tokenizer *t;
    struct rad_ids ids = { 0 };
    struct rad_tok_text out = { 0 };
    const void *bytes;
    size_t n;
    rad_status st = rad_tokenizer_from_model(m, &t, &err);

    if ((st == RAD_OK) != (t != NULL) || st == RAD_E_NOMEM || (st && !err.text[0]))
        abort();
    if (!t)
        return;
    st = rad_tokenizer_encode(t, text, sizeof text - 1,
                              RAD_TOK_ADD_SPECIAL | RAD_TOK_PARSE_SPECIAL, &ids, &err);
    if (st && st != RAD_E_UNSUPPORTED)
        abort();
    if (rad_tokenizer_decode(t, ids.id, ids.n, 0, &out, &err))
        abort();
    const char *chat = rad_tokenizer_chat_template(t);
    sink += chat ? strlen(chat) : 0;
    for (size_t i = 0; i < rad_tokenizer_count(t); i++) {
        const char *s = rad_tokenizer_text(t, (int32_t)i, &n);
        sink += s ? strlen(s) : 0;
        out.len = 0;
        if (rad_tokenizer_type(t, (int32_t)i) != RAD_TOK_UNUSED
            && rad_tokenizer_piece(t, (int32_t)i, &out, &err))
            abort();
    }
    rad_model_certificate(m, &bytes, &n);
    if (bytes && n < 2048)       /* thousands of texts would take all the time */
        sink += (size_t)rad_tokenizer_certificate_check(t, bytes, n, NULL, &err);
    rad_ids_release(&ids);
    rad_tok_text_release(&out);
    rad_tokenizer_free(t);
}

static void vocab(const struct rad_model *m)
{
    struct rad_vocab_info v = { .size = sizeof v };

    if (!rad_model_vocab_info(m, &v))
        return;
    sink += strlen(v.kind_name) + strlen(v.chat_template);
    for (uint32_t i = 0; i <= v.n_tokens; i++) {
        struct rad_vocab_token t = { .size = sizeof t };
        if (rad_model_vocab_token(m, i, &t) != (i < v.n_tokens))
            abort();
        sink += i < v.n_tokens ? strlen(t.text) + t.type : 0;
    }
    for (uint32_t i = 0; i <= v.n_steps; i++) {
        struct rad_vocab_step s = { .size = sizeof s };
        if (rad_model_vocab_step(m, i, &s) != (i < v.n_steps))
            abort();
        sink += i < v.n_steps ? strlen(s.stage) + strlen(s.name) + strlen(s.arg0)
            + strlen(s.arg1) : 0;
    }
}

static void metadata(struct rad_model *m)
{
    struct rad_err err = { 0 };
    const char *s = "";
    int64_t i64;
    double f;

    for (size_t i = 0; i < rad_model_meta_count(m); i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);

        sink += strlen(r->key) + (r->type == RAD_META_STR ? strlen(r->v.s) : 0);
        sink += rad_model_meta(m, r->key) != NULL;
        sink += (size_t)rad_model_meta_int(m, r->key, &i64, &err);
        sink += (size_t)rad_model_meta_f64(m, r->key, &f, &err);
        sink += (size_t)rad_model_meta_str(m, r->key, &s, &err);
    }
    const RadModelMeta *b = rad_model_build_meta(m);
    if (!b)
        abort();
    for (int64_t i = 0; i < b->n_kv; i++) {
        sink += (size_t)rad_meta_geti(b, b->kv_key[i], 0);
        sink += rad_meta_getf(b, b->kv_key[i], 0) > 0;
        sink += strlen(rad_meta_gets(b, b->kv_key[i], ""));
    }
}

static void weights(const struct rad_model *m)
{
    struct rad_err err = { 0 };

    for (size_t i = 0; i < rad_model_weight_count(m); i++) {
        const struct rad_weight *w = rad_model_weight_at(m, i);
        char text[64];

        sink += strlen(w->name) + strlen(w->quantizer) + strlen(w->options);
        sink += rad_encoding_text(w->enc, text, sizeof text);
        for (uint32_t p = 0; p < w->n_planes; p++)
            if (w->plane[p].bytes)
                sink += ((const uint8_t *)w->plane[p].data)[w->plane[p].bytes - 1];
        if (w->cols <= 4096 && i < 64) {
            sink += (size_t)rad_weight_decode(w, 0, 1, row, 4096, &err);
            sink += (size_t)rad_weight_decode(w, w->rows - 1, 1, row, 4096, &err);
            if (rad_weight_decode(w, w->rows, 1, row, 4096, &err) == RAD_OK)
                abort();
        }
        if (w->rows > 1 && w->cols > 1 && w->cols <= 4096 && w->enc->n_planes > 0) {
            RadSlice s = { 0, w->rows / 2, 0, w->cols / 2 };
            sink += (size_t)rad_encoding_slice(w->enc, w->rows, w->cols, &s, &err);
        }
    }
    for (size_t i = 0; i < rad_model_group_count(m); i++)
        sink += rad_model_group_at(m, i)->n_experts;
}

static void walk(struct rad_model *m, bool verified)
{
    struct rad_err err = { 0 };
    size_t n;

    sink += strlen(rad_model_info(m)->arch) + strlen(rad_model_info(m)->recipe);
    metadata(m);
    weights(m);
    vocab(m);
    tokenizer(m);
    const struct rad_profile_row *p = rad_model_profile(m, &n);
    for (size_t i = 0; i < n; i++)
        sink += (size_t)p[i].layer;
    err.text[0] = 0;
    rad_status st = rad_model_verify(m, NULL, &err);
    if (st && !err.text[0])
        abort();
    /* digests agree, so what may be wrong is padding, or a plane of the table */
    if (verified && st == RAD_E_MISMATCH && strstr(err.text, "digest differs"))
        abort();
}

enum { POOL = 2 << 20, TABLES = 1 << 17, BLOB = 1 << 17, DIGESTS = 32 * 1024 };
static uint8_t big[TABLES + BLOB + sizeof(struct radi_rad_integrity) + DIGESTS];

/* Offsets of the file at `at` move from 2 MiB on to `to`. */
static void move(uint64_t at, uint64_t n, size_t record, size_t field, uint64_t to)
{
    for (uint64_t i = 0; i < n && radi_span_ok(at, (i + 1) * record, TABLES); i++) {
        uint64_t off;
        uint8_t *p = big + at + i * record + field;
        memcpy(&off, p, 8);
        if (off >= POOL && off < POOL + BLOB) {
            off += to - POOL;
            memcpy(p, &off, 8);
        }
    }
}

/* Behind the blob: digests of what the header says; false if they have no place. */
static bool seal(struct radi_rad_header *h, size_t at)
{
    struct radi_rad_integrity *head = (void *)(big + at);
    uint8_t *digest = (uint8_t *)(head + 1);
    struct rad_section table[RADI_T_COUNT];
    struct rad_err err;

    h->integrity_off = h->integrity_bytes = 0;
    if (h->plane_count > DIGESTS / 32 - RADI_T_COUNT
        || !radi_span_ok(h->plane_off, h->plane_count * 16, at))
        return false;
    h->integrity_off = at;
    h->integrity_bytes = sizeof *head + 32 * (RADI_T_COUNT + h->plane_count);
    h->file_bytes = at + h->integrity_bytes;
    memcpy(big, h, sizeof *h);
    memset(head, 0, sizeof *head);
    memcpy(head->magic, RADI_INT_MAGIC, 8);
    head->version = RADI_INT_VERSION;
    head->algorithm = RADI_INT_SHA256;
    head->n_tables = RADI_T_COUNT;
    head->n_planes = h->plane_count;
    radi_table_spans(h, table);
    for (size_t i = 0; i < RADI_T_COUNT; i++, digest += 32)
        if (radi_span_ok(table[i].offset, table[i].bytes, at))
            SHA256(big + table[i].offset, table[i].bytes, digest);
    for (size_t i = 0; i < h->plane_count; i++, digest += 32) {
        struct radi_rad_plane p;
        memcpy(&p, big + h->plane_off + i * sizeof p, sizeof p);
        if (radi_span_ok(p.offset, p.bytes, at))
            SHA256(big + p.offset, p.bytes, digest);
    }
    return radi_integrity_seal(head, (uint8_t *)(head + 1), RADI_T_COUNT + h->plane_count, NULL,
                               &err) == RAD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct rad_model *m;
    struct radi_rad_header h;

    if (rad_model_open_memory(data, size, &m, &err) == RAD_OK) {
        walk(m, false);
        rad_model_unref(m);
    } else if (!err.text[0])
        abort();
    if (size < sizeof h || size > TABLES)
        return 0;
    /* once more with a blob behind the tables, and a header that agrees */
    size_t blob = (size + RADI_RAD_UNIT - 1) / RADI_RAD_UNIT * RADI_RAD_UNIT;
    memcpy(big, data, size);
    memset(big + size, 0, blob - size);
    for (size_t at = blob; at < blob + BLOB; at += size)
        memcpy(big + at, data, size < blob + BLOB - at ? size : blob + BLOB - at);
    memcpy(&h, data, sizeof h);
    h.magic = RADI_RAD_MAGIC;
    h.version = RADI_RAD_VERSION;
    h.file_bytes = blob + BLOB;
    h.data_off = 0;
    h.data_bytes = blob + BLOB;
    memset(h.reserved, 0, sizeof h.reserved);
    move(h.dir_off, h.dir_count, sizeof(struct radi_rad_entry),
         offsetof(struct radi_rad_entry, offset), blob);
    move(h.plane_off, h.plane_count, sizeof(struct radi_rad_plane), 0, blob);
    bool sealed = seal(&h, blob + BLOB);
    memcpy(big, &h, sizeof h);
    if (rad_model_open_memory(big, (size_t)h.file_bytes, &m, &err) == RAD_OK) {
        walk(m, sealed);
        rad_model_unref(m);
    }
    return 0;
}
