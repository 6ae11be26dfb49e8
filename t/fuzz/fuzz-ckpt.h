/* SPDX-License-Identifier: Apache-2.0 */
/* What the checkpoint fuzz targets do with a file that opened. */
#ifndef T_FUZZ_CKPT_H
#define T_FUZZ_CKPT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rad/ckpt.h>
#include <rad/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static inline void walk_metadata(const struct rad_ckpt *ck)
{
    sink += strlen(rad_ckpt_config_json(ck));
    sink += strlen(rad_ckpt_arch(ck)) + strlen(rad_ckpt_quant(ck));
    for (size_t i = 0; i < rad_ckpt_kv_count(ck); i++) {
        const struct rad_ckpt_kv *kv = rad_ckpt_kv(ck, i);
        sink += (size_t)rad_ckpt_kv_find(ck, kv->key);
        for (uint64_t k = 0; k <= kv->n && k < 4096; k++) {
            int64_t v = 0;
            double d = 0;
            size_t len = 0;
            const char *s = rad_ckpt_kv_str(ck, i, k, &len);
            sink += (size_t)rad_ckpt_kv_int(ck, i, k, &v) + (size_t)rad_ckpt_kv_f64(ck, i, k, &d);
            for (size_t j = 0; s && j < len; j++)
                sink += (unsigned char)s[j];
        }
    }
}

static inline void walk_rows(const struct rad_ckpt *ck, size_t i, uint64_t r, uint64_t n)
{
    const struct rad_ckpt_tensor *t = rad_ckpt_tensor(ck, i);
    struct rad_err err = { 0 };
    void *dst[RAD_MAX_PLANES] = { 0 };
    int ok = 1;

    float *x = malloc((size_t)(n * t->cols) * 4 + 1);
    if (x)
        sink += (size_t)rad_ckpt_read_f32(ck, i, r, n, x, &err);
    free(x);
    for (int p = 0; t->enc && p < t->enc->n_planes; p++) {
        RadPlaneGeom g = { 0 };
        if (rad_plane_geom(t->enc, p, n, t->cols, &g, &err) != RAD_OK ||
            !(dst[p] = malloc((size_t)g.bytes + 1)))
            ok = 0;
    }
    if (ok)
        sink += (size_t)rad_ckpt_read_planes(ck, i, r, n, dst, &err);
    for (int p = 0; p < RAD_MAX_PLANES; p++)
        free(dst[p]);
}

static inline void walk_tensors(const struct rad_ckpt *ck)
{
    for (size_t i = 0; i < rad_ckpt_count(ck) && i < 64; i++) {
        const struct rad_ckpt_tensor *t = rad_ckpt_tensor(ck, i);
        uint64_t n = t->rows < t->row_step ? t->rows : t->row_step;
        sink += (size_t)rad_ckpt_find(ck, t->name);
        /* the bytes are all in the input, so a row that is large is not real */
        if (!t->rows || (t->cols && n > (1u << 17) / t->cols))
            continue;
        walk_rows(ck, i, 0, n);
        walk_rows(ck, i, (t->rows - 1) / t->row_step * t->row_step,
                  (t->rows - 1) % t->row_step + 1);
    }
}

/* Refused with a reason, or it encodes, and decodes what it made. */
static inline void walk_tokenizer(const struct rad_ckpt *ck)
{
    static const char text[] = "Hello  w\xc3\xb6rld 12345!\n<s>";
    struct rad_err err = { 0 };
    struct rad_tokenizer *t;
    struct rad_ids ids = { 0 };
    struct rad_tok_text out = { 0 };
    rad_status st = rad_tokenizer_from_ckpt(ck, &t, &err);

    if ((st == RAD_OK) != (t != NULL) || st == RAD_E_NOMEM || (st && !err.text[0]))
        abort();
    if (!t)
        return;
    st = rad_tokenizer_encode(t, text, sizeof text - 1,
                              RAD_TOK_ADD_SPECIAL | RAD_TOK_PARSE_SPECIAL, &ids, &err);
    if ((st && st != RAD_E_UNSUPPORTED) || rad_tokenizer_decode(t, ids.id, ids.n, 0, &out, &err))
        abort();
    const char *chat = rad_tokenizer_chat_template(t);
    sink += chat ? strlen(chat) : 0;
    rad_ids_release(&ids);
    rad_tok_text_release(&out);
    rad_tokenizer_free(t);
}

#endif
