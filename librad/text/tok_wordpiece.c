/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the WordPiece model: the longest token first, continuations spelt with
 * the prefix; a word that does not come out whole is one unknown token. */
#include "config.h"

#include "text/tok.h"

#include "banned.h"

rad_status radi_wordpiece_encode(const struct rad_tokenizer *t, struct radi_mscratch *m,
                                 const char *s, size_t n, struct rad_ids *out,
                                 struct rad_err *err)
{
    const struct radi_tok_spec *sp = &t->spec;
    size_t start = out->n, chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((uint8_t)s[i] & 0xc0) != 0x80;
    if ((int64_t)chars > sp->max_word)   /* bounds the squares below */
        goto unknown;
    /* the longest word bounds n; the prefix stands before the rest */
    size_t pn = sp->sub_prefix.n, size;
    char *buf = radi_add_size(n, pn + 1, &size) ? radi_mscratch_get(m, 0, size) : NULL;
    if (!buf)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a word of %zu bytes", n);
    for (size_t at = 0; at < n;) {
        size_t k = at ? pn : 0, end = n;
        if (k)
            memcpy(buf, sp->sub_prefix.s, k);
        memcpy(buf + k, s + at, n - at);
        int32_t id = -1;
        while (end > at) {
            id = radi_vmap_get(&t->by_key, t->key, buf, k + end - at);
            if (id >= 0)
                break;
            do
                end--;
            while (end > at && ((uint8_t)s[end] & 0xc0) == 0x80);
        }
        if (id < 0)
            goto unknown;
        RAD_TRY(radi_ids_add(out, id, err));
        at = end;
    }
    return RAD_OK;
unknown:
    out->n = start;
    if (sp->unk < 0)
        return rad_fail(err, RAD_E_UNSUPPORTED,
                        "a word outside the vocabulary, and no unknown token");
    return radi_ids_add(out, sp->unk, err);
}
