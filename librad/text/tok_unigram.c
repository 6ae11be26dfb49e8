/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the unigram model: the best path over all tokens that fit, scores summed
 * in double. An unknown character costs ten below the worst score; runs of
 * unknown characters become one token (or their bytes). */
#include "config.h"

#include <math.h>

#include "text/tok.h"

#include "banned.h"

struct radi_unigram {
    struct radi_trie *trie;
    double unk_score;
};
struct node {
    double score;
    size_t from;             /* SIZE_MAX: not reached */
    int32_t id;
};

rad_status radi_unigram_new(const struct rad_tokenizer *t, struct radi_unigram **out,
                            struct rad_err *err)
{
    *out = NULL;
    const struct radi_tok_spec *s = &t->spec;
    if (!s->score)
        return rad_fail(err, RAD_E_FORMAT, "unigram vocabulary: no scores");
    struct radi_unigram *u = radi_calloc(1, sizeof *u);
    struct radi_added_text *it = radi_calloc(s->n_tokens, sizeof *it);
    rad_status st = RAD_OK;
    if (!u || !it) {
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for %zu tokens", s->n_tokens);
        goto out;
    }
    double min = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < s->n_tokens; i++) {
        if (!t->key[i].s || !t->key[i].n)
            continue;
        if (!isfinite(s->score[i])) {
            st = rad_fail(err, RAD_E_FORMAT, "token %zu: its score is not finite", i);
            goto out;
        }
        min = fmin(min, s->score[i]);
        it[n++] = (struct radi_added_text){ t->key[i], (int32_t)i };
    }
    if (!n) {
        st = rad_fail(err, RAD_E_FORMAT, "unigram vocabulary: no tokens");
        goto out;
    }
    u->unk_score = min - 10.0;
    st = radi_trie_new(it, n, &u->trie, err);
out:
    radi_free(it);
    if (st) {
        radi_unigram_free(u);
        return st;
    }
    *out = u;
    return RAD_OK;
}

void radi_unigram_free(struct radi_unigram *u)
{
    if (!u)
        return;
    radi_trie_free(u->trie);
    radi_free(u);
}

static rad_status emit_unknown(const struct rad_tokenizer *t, const char *s, size_t n,
                               struct rad_ids *out, struct rad_err *err)
{
    int32_t id = radi_vmap_get(&t->by_key, t->key, s, n);
    if (id >= 0)
        return radi_ids_add(out, id, err);
    bool fb = t->spec.byte_fallback;
    for (size_t i = 0; fb && i < n; i++)
        fb = t->byte_id[(uint8_t)s[i]] >= 0;
    if (fb) {
        for (size_t i = 0; i < n; i++)
            RAD_TRY(radi_ids_add(out, t->byte_id[(uint8_t)s[i]], err));
        return RAD_OK;
    }
    return radi_ids_add(out, t->spec.unk, err);
}

rad_status radi_unigram_encode(const struct rad_tokenizer *t, struct radi_mscratch *m,
                               const char *s, size_t n, struct rad_ids *out, struct rad_err *err)
{
    const struct radi_unigram *u = t->uni;
    const struct radi_trie *tr = u->trie;
    size_t bytes;
    struct node *v = NULL;
    if (radi_add_size(n, 1, &bytes) && radi_mul_size(bytes, sizeof *v, &bytes))
        v = radi_mscratch_get(m, 0, bytes);
    if (!v)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a piece of %zu bytes", n);
    for (size_t i = 0; i <= n; i++)
        v[i] = (struct node){ 0, SIZE_MAX, -1 };
    for (size_t at = 0; at < n;) {
        uint32_t cp;
        size_t cl = radi_utf8_next(s + at, n - at, &cp);
        if (!cl)
            cl = 1;
        bool single = false;
        size_t lo = tr->start[(uint8_t)s[at]], hi = tr->start[(uint8_t)s[at] + 1];
        for (size_t d = 1; lo < hi; d++) {
            if (tr->item[lo].text.n == d) {
                int32_t id = tr->item[lo].id;
                double x = (double)t->spec.score[id] + v[at].score;
                if (v[at + d].from == SIZE_MAX || x > v[at + d].score)
                    v[at + d] = (struct node){ x, at, id };
                single |= d == cl;
            }
            if (at + d == n)
                break;
            radi_trie_narrow(tr, &lo, &hi, d, (uint8_t)s[at + d]);
        }
        if (!single) {
            if (t->spec.unk < 0)
                return rad_fail(err, RAD_E_UNSUPPORTED,
                                "a character outside the vocabulary, and no unknown token");
            double x = u->unk_score + v[at].score;
            if (v[at + cl].from == SIZE_MAX || x > v[at + cl].score)
                v[at + cl] = (struct node){ x, at, t->spec.unk };
        }
        at += cl;
    }
    /* The path, back to front, then turned: reuse `from` as the list. */
    size_t next = n;
    for (size_t at = n; at > 0;) {
        size_t from = v[at].from;
        v[at].from = next;               /* of the token that ends at `at`: the next end */
        next = at;
        at = from;
    }
    for (size_t at = 0, end = next; at < n;) {
        int32_t id = v[end].id;
        size_t after = v[end].from;
        if (id == t->spec.unk) {
            while (end < n && v[after].id == t->spec.unk) {
                end = after;
                after = v[end].from;
            }
            RAD_TRY(emit_unknown(t, s + at, end - at, out, err));
        } else
            RAD_TRY(radi_ids_add(out, id, err));
        at = end;
        end = after;
    }
    return RAD_OK;
}
