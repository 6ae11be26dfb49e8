/* SPDX-License-Identifier: Apache-2.0 */
/* Owns byte-pair merging. Short pieces are merged by scanning for the lowest
 * rank, long ones with a heap over a linked list, so a piece of n symbols costs
 * O(n log n). A vocabulary token whose own merge gives it back is recognised
 * with one look-up; that fact is found on first use and is the same for every
 * thread, which is why a relaxed byte a token is enough. */
#include "config.h"

#include <stdlib.h>

#include "text/tok.h"

#include "banned.h"

enum {
    NAIVE = 4096,            /* symbols up to which the reference way is taken */
    SHORT = 48,              /* symbols up to which a scan beats the heap */
    CACHE = 2048,            /* entries of a call's piece cache */
    CACHE_KEY = 38,
    CACHE_IDS = 12,
};

struct merge {
    uint32_t a, b;           /* a == UINT32_MAX: empty slot */
    uint32_t rank, id;
};
struct radi_bpe {
    struct merge *tab;
    size_t mask;
    uint8_t *self;           /* [n_tokens] 0 unknown, 1 merges to itself, 2 does not */
    int32_t byte[256];       /* byte-level: id of each byte */
    int32_t ascii[128];      /* else: id of each ASCII character */
    bool cut_meta;           /* cut before a U+2581 that follows something else, but */
    bool cross[256];         /* not behind these bytes: a merge reaches over there */
    bool affix;              /* continuing prefix or end suffix in use */
};
struct sym {
    int32_t id;
    int32_t prev, next;
};
struct cand {
    uint32_t rank;
    uint32_t pos;
    int32_t a, b, id;
};
struct cached {
    uint64_t hash;
    uint8_t len, n;
    char key[CACHE_KEY];
    int32_t id[CACHE_IDS];
};

static inline size_t pair_hash(uint32_t a, uint32_t b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 29);
}

static inline const struct merge *find(const struct radi_bpe *p, int32_t a, int32_t b)
{
    for (size_t i = pair_hash((uint32_t)a, (uint32_t)b) & p->mask;; i = (i + 1) & p->mask) {
        const struct merge *m = &p->tab[i];
        if (m->a == (uint32_t)a && m->b == (uint32_t)b)
            return m;
        if (m->a == UINT32_MAX)
            return NULL;
    }
}

static void put(struct radi_bpe *p, uint32_t a, uint32_t b, uint32_t rank, uint32_t id)
{
    for (size_t i = pair_hash(a, b) & p->mask;; i = (i + 1) & p->mask) {
        struct merge *m = &p->tab[i];
        if (m->a == UINT32_MAX || (m->a == a && m->b == b)) {
            *m = (struct merge){ a, b, rank, id };   /* a repeated pair: the last wins */
            return;
        }
    }
}

static const char meta[] = "\xe2\x96\x81";

static bool ends_meta(const struct radi_tstr *s)
{
    return s->n >= 3 && !memcmp(s->s + s->n - 3, meta, 3);
}

static bool starts_meta(const struct radi_tstr *s)
{
    return s->n >= 3 && !memcmp(s->s, meta, 3);
}

struct scored {
    float score;
    uint32_t i;
};
static int by_score(const void *x, const void *y)
{
    const struct scored *a = x, *b = y;
    return a->score > b->score ? -1 : a->score < b->score;
}

/* rank[i] of merge i: its place, or the place of its result's score. */
static rad_status score_ranks(const struct radi_tok_spec *s, const uint32_t *id, uint32_t *rank,
                              struct rad_err *err)
{
    struct scored *v = radi_calloc(s->n_merges ? s->n_merges : 1, sizeof *v);
    if (!v)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for %zu merges", s->n_merges);
    for (size_t i = 0; i < s->n_merges; i++)
        v[i] = (struct scored){ s->score[id[i]], (uint32_t)i };
    qsort(v, s->n_merges, sizeof *v, by_score);
    uint32_t r = 0;
    for (size_t i = 0; i < s->n_merges; i++) {
        if (i && v[i].score < v[i - 1].score)
            r++;
        rank[v[i].i] = r;
    }
    radi_free(v);
    return RAD_OK;
}

static rad_status merges_build(const struct rad_tokenizer *t, struct radi_bpe *p,
                               struct rad_err *err)
{
    const struct radi_tok_spec *s = &t->spec;
    struct radi_str cat = { 0 };
    size_t n = s->n_merges;
    uint32_t *id = radi_calloc(n ? n : 1, sizeof *id);
    uint32_t *rank = radi_calloc(n ? n : 1, sizeof *rank);
    rad_status st = RAD_OK;
    if (!id || !rank) {
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for %zu merges", n);
        goto out;
    }
    p->cut_meta = !t->bytes && !p->affix && !(s->model & RADI_TOKM_IGNORE_MERGES) &&
                  radi_vmap_get(&t->by_key, t->key, meta, 3) >= 0;
    for (size_t i = 0; i < n; i++) {
        const struct radi_tstr *a = &s->text[s->merge[i][0]], *b = &s->text[s->merge[i][1]];
        size_t skip = 0;
        if (!a->s || !b->s) {
            st = rad_fail(err, RAD_E_FORMAT, "merge %zu: an id without a token", i);
            goto out;
        }
        if (s->sub_prefix.n && b->n >= s->sub_prefix.n &&
            !memcmp(b->s, s->sub_prefix.s, s->sub_prefix.n))
            skip = s->sub_prefix.n;
        radi_str_clear(&cat);
        radi_str_add(&cat, a->s, a->n);
        radi_str_add(&cat, b->s + skip, b->n - skip);
        if (cat.failed) {
            st = rad_fail(err, RAD_E_NOMEM, "out of memory for merges");
            goto out;
        }
        int32_t r = radi_vmap_get(&t->by_text, s->text, cat.s ? cat.s : "", cat.len);
        if (r < 0) {
            st = rad_fail(err, RAD_E_FORMAT,
                          "merge %zu ('%.40s' '%.40s'): the result is not in the vocabulary", i,
                          a->s, b->s);
            goto out;
        }
        id[i] = (uint32_t)r;
        rank[i] = (uint32_t)i;
        if (a->n && starts_meta(b) && !ends_meta(a))
            p->cross[(uint8_t)a->s[a->n - 1]] = true;
    }
    if ((s->model & RADI_TOKM_SCORE_RANKS) && s->score)
        if ((st = score_ranks(s, id, rank, err)))
            goto out;
    for (size_t i = 0; i < n; i++)
        put(p, s->merge[i][0], s->merge[i][1], rank[i], id[i]);
out:
    radi_str_release(&cat);
    radi_free(id);
    radi_free(rank);
    return st;
}

rad_status radi_bpe_new(const struct rad_tokenizer *t, struct radi_bpe **out, struct rad_err *err)
{
    const struct radi_tok_spec *s = &t->spec;
    *out = NULL;
    struct radi_bpe *p = radi_calloc(1, sizeof *p);
    size_t cap = 16;
    while (cap < s->n_merges * 2)
        cap *= 2;
    p = p ? p : NULL;
    if (p) {
        p->tab = radi_malloc(cap * sizeof *p->tab);
        p->self = radi_calloc(s->n_tokens, 1);
    }
    if (!p || !p->tab || !p->self) {
        radi_bpe_free(p);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for %zu merges", s->n_merges);
    }
    memset(p->tab, 0xff, cap * sizeof *p->tab);
    p->mask = cap - 1;
    p->affix = s->sub_prefix.n || s->end_suffix.n;
    rad_status st = merges_build(t, p, err);
    if (st) {
        radi_bpe_free(p);
        return st;
    }
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        p->byte[b] = t->bytes ? radi_vmap_get(&t->by_key, t->key, &c, 1) : -1;
        if (b < 128)
            p->ascii[b] = radi_vmap_get(&t->by_key, t->key, &c, 1);
    }
    *out = p;
    return RAD_OK;
}

void radi_bpe_free(struct radi_bpe *b)
{
    if (!b)
        return;
    radi_free(b->tab);
    radi_free(b->self);
    radi_free(b);
}

/* ---- symbols of a piece. Writes at most one symbol a byte. */
struct symbols {
    int32_t *id;
    size_t n;
    int32_t unk;             /* pending unknown, or -1 */
};

static void unknown(const struct rad_tokenizer *t, struct symbols *y)
{
    if (t->spec.unk < 0)
        return;              /* as the reference does: the character vanishes */
    if (y->unk >= 0 && !(t->spec.model & RADI_TOKM_FUSE_UNK))
        y->id[y->n++] = y->unk;
    y->unk = t->spec.unk;
}

static void known(struct symbols *y, int32_t id)
{
    if (y->unk >= 0) {
        y->id[y->n++] = y->unk;
        y->unk = -1;
    }
    y->id[y->n++] = id;
}

static int32_t char_id(const struct rad_tokenizer *t, const char *s, size_t l, bool head,
                       bool tail)
{
    const struct radi_tok_spec *sp = &t->spec;
    if (!t->bpe->affix)
        return l == 1 ? t->bpe->ascii[(uint8_t)*s] : radi_vmap_get(&t->by_key, t->key, s, l);
    char buf[160];
    size_t k = 0;
    if (!head) {
        memcpy(buf, sp->sub_prefix.s ? sp->sub_prefix.s : "", sp->sub_prefix.n);
        k = sp->sub_prefix.n;
    }
    memcpy(buf + k, s, l);
    k += l;
    if (tail) {
        memcpy(buf + k, sp->end_suffix.s ? sp->end_suffix.s : "", sp->end_suffix.n);
        k += sp->end_suffix.n;
    }
    return radi_vmap_get(&t->by_key, t->key, buf, k);
}

static void symbols_of(const struct rad_tokenizer *t, const char *s, size_t n, struct symbols *y)
{
    const struct radi_bpe *p = t->bpe;
    if (t->bytes && !p->affix) {
        for (size_t i = 0; i < n; i++) {
            int32_t id = p->byte[(uint8_t)s[i]];
            if (id >= 0)
                known(y, id);
            else
                unknown(t, y);
        }
    } else {
        for (size_t i = 0; i < n;) {
            uint32_t cp;
            size_t l = t->bytes ? 1 : radi_utf8_next(s + i, n - i, &cp);
            if (!l)
                l = 1;
            int32_t id = char_id(t, s + i, l, i == 0, i + l == n);
            bool fb = id < 0 && t->spec.byte_fallback;
            for (size_t k = 0; fb && k < l; k++)
                fb = t->byte_id[(uint8_t)s[i + k]] >= 0;
            if (id >= 0)
                known(y, id);
            else if (fb)     /* does not end a pending unknown: as the reference */
                for (size_t k = 0; k < l; k++)
                    y->id[y->n++] = t->byte_id[(uint8_t)s[i + k]];
            else
                unknown(t, y);
            i += l;
        }
    }
    if (y->unk >= 0)
        y->id[y->n++] = y->unk;
}

static size_t merge_scan(const struct radi_bpe *p, int32_t *id, size_t n)
{
    uint32_t rank[SHORT];
    int32_t to[SHORT];
    for (size_t i = 0; i + 1 < n; i++) {
        const struct merge *m = find(p, id[i], id[i + 1]);
        rank[i] = m ? m->rank : UINT32_MAX;
        to[i] = m ? (int32_t)m->id : -1;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == UINT32_MAX)
            break;
        id[best] = to[best];
        n--;
        memmove(id + best + 1, id + best + 2, (n - best - 1) * sizeof *id);
        if (best + 1 < n) {
            memmove(rank + best + 1, rank + best + 2, (n - best - 2) * sizeof *rank);
            memmove(to + best + 1, to + best + 2, (n - best - 2) * sizeof *to);
        }
        size_t from = best ? best - 1 : 0;
        for (size_t i = from; i <= best && i + 1 < n; i++) {
            const struct merge *m = find(p, id[i], id[i + 1]);
            rank[i] = m ? m->rank : UINT32_MAX;
            to[i] = m ? (int32_t)m->id : -1;
        }
    }
    return n;
}

/* The definition: the lowest rank, of equals the leftmost, until there is none. */
static size_t merge_naive(const struct radi_bpe *p, int32_t *id, size_t n)
{
    for (;;) {
        const struct merge *best = NULL, *m;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            if ((m = find(p, id[i], id[i + 1])) && (!best || m->rank < best->rank)) {
                best = m;
                at = i;
            }
        if (!best)
            return n;
        id[at] = (int32_t)best->id;
        n--;
        memmove(id + at + 1, id + at + 2, (n - at - 1) * sizeof *id);
    }
}

static bool less(const struct cand *a, const struct cand *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->pos < b->pos;
}

static void heap_down(struct cand *h, size_t n, size_t i)
{
    struct cand x = h[i];
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= n)
            break;
        if (c + 1 < n && less(&h[c + 1], &h[c]))
            c++;
        if (!less(&h[c], &x))
            break;
        h[i] = h[c];
        i = c;
    }
    h[i] = x;
}

static void heap_push(struct cand *h, size_t *n, struct cand x)
{
    size_t i = (*n)++;
    while (i) {
        size_t up = (i - 1) / 2;
        if (!less(&x, &h[up]))
            break;
        h[i] = h[up];
        i = up;
    }
    h[i] = x;
}

static bool candidate(const struct radi_bpe *p, const struct sym *y, int32_t i, struct cand *c)
{
    if (i < 0 || y[i].next < 0)
        return false;
    int32_t a = y[i].id, b = y[y[i].next].id;
    const struct merge *m = find(p, a, b);
    if (!m)
        return false;
    *c = (struct cand){ m->rank, (uint32_t)i, a, b, (int32_t)m->id };
    return true;
}

/* The heap holds at most n - 1 first candidates and two more a merge. */
static rad_status merge_heap(const struct radi_bpe *p, struct radi_mscratch *ms, int32_t *id,
                             size_t *n_io, struct rad_err *err)
{
    size_t n = *n_io, hn = 0;
    struct sym *y = radi_mscratch_get(ms, 1, n * sizeof *y);
    struct cand *h = radi_mscratch_get(ms, 2, 3 * n * sizeof *h), c;
    if (!y || !h)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a piece of %zu symbols", n);
    for (size_t i = 0; i < n; i++)
        y[i] = (struct sym){ id[i], (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1 };
    for (size_t i = 0; i + 1 < n; i++)
        if (candidate(p, y, (int32_t)i, &c))
            h[hn++] = c;
    for (size_t i = hn / 2; i-- > 0;)
        heap_down(h, hn, i);
    while (hn) {
        c = h[0];
        h[0] = h[--hn];
        if (hn)
            heap_down(h, hn, 0);
        int32_t i = (int32_t)c.pos, j = y[i].next;
        if (y[i].id != c.a || j < 0 || y[j].id != c.b)
            continue;        /* one of the two is gone */
        y[i].id = c.id;
        y[j].id = -1;
        y[i].next = y[j].next;
        if (y[i].next >= 0)
            y[y[i].next].prev = i;
        if (candidate(p, y, y[i].prev, &c))
            heap_push(h, &hn, c);
        if (candidate(p, y, i, &c))
            heap_push(h, &hn, c);
    }
    size_t k = 0;
    for (int32_t i = 0; i >= 0; i = y[i].next)
        id[k++] = y[i].id;
    *n_io = k;
    return RAD_OK;
}

static rad_status merge_piece(const struct rad_tokenizer *t, struct radi_mscratch *ms,
                              const char *s, size_t n, int32_t **ids, size_t *count,
                              struct rad_err *err)
{
    if (n > INT32_MAX / 2)
        return rad_fail(err, RAD_E_UNSUPPORTED, "a piece of %zu bytes", n);
    struct symbols y = { radi_mscratch_get(ms, 0, (n + 1) * sizeof(int32_t)), 0, -1 };
    if (!y.id)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a piece of %zu bytes", n);
    symbols_of(t, s, n, &y);
    if (ms->plain && y.n <= NAIVE)
        y.n = merge_naive(t->bpe, y.id, y.n);
    else if (y.n > SHORT)
        RAD_TRY(merge_heap(t->bpe, ms, y.id, &y.n, err));
    else
        y.n = merge_scan(t->bpe, y.id, y.n);
    *ids = y.id;
    *count = y.n;
    return RAD_OK;
}

static rad_status emit(struct rad_ids *out, const int32_t *id, size_t n, struct rad_err *err)
{
    if (out->cap - out->n < n)
        RAD_TRY(radi_grow((void **)&out->id, &out->cap, out->n + n, sizeof *out->id, err));
    if (n)
        memcpy(out->id + out->n, id, n * sizeof *id);
    out->n += n;
    return RAD_OK;
}

static rad_status encode_piece(const struct rad_tokenizer *t, struct radi_mscratch *ms,
                               const char *s, size_t n, struct rad_ids *out, struct rad_err *err)
{
    struct radi_bpe *p = t->bpe;
    int32_t *ids = NULL;
    size_t count = 0;
    uint64_t h = radi_tok_hash(s, n);
    int32_t whole = p->affix && !(t->spec.model & RADI_TOKM_IGNORE_MERGES)
                        ? -1 : radi_vmap_get_hashed(&t->by_key, t->key, s, n, h);
    if (whole >= 0 && (t->spec.model & RADI_TOKM_IGNORE_MERGES))
        return radi_ids_add(out, whole, err);
    if (whole >= 0 && !ms->plain) {
        uint8_t self = __atomic_load_n(&p->self[whole], __ATOMIC_RELAXED);
        if (!self) {
            RAD_TRY(merge_piece(t, ms, s, n, &ids, &count, err));
            self = count == 1 && ids[0] == whole ? 1 : 2;
            __atomic_store_n(&p->self[whole], self, __ATOMIC_RELAXED);
        }
        if (self == 1)
            return radi_ids_add(out, whole, err);
    }
    struct cached *c = n <= CACHE_KEY ? ms->mem[3] : NULL;
    if (c) {
        c += (h >> 7) % CACHE;
        if (c->hash == h && c->len == n && !memcmp(c->key, s, n))
            return emit(out, c->id, c->n, err);
    }
    RAD_TRY(merge_piece(t, ms, s, n, &ids, &count, err));
    if (c && count <= CACHE_IDS) {
        c->hash = h;
        c->len = (uint8_t)n;
        c->n = (uint8_t)count;
        memcpy(c->key, s, n);
        memcpy(c->id, ids, count * sizeof *ids);
    }
    return emit(out, ids, count, err);
}

void radi_bpe_want_cache(struct radi_mscratch *m)
{
    if (!m->mem[3])
        m->mem[3] = radi_calloc(CACHE, sizeof(struct cached));
}

rad_status radi_bpe_encode(const struct rad_tokenizer *t, struct radi_mscratch *m, const char *s,
                           size_t n, struct rad_ids *out, struct rad_err *err)
{
    if (!t->bpe->cut_meta || m->plain)
        return encode_piece(t, m, s, n, out, err);
    /* Cut where a U+2581 follows something else: no merge reaches over, so the
     * parts merge alone as they do together. */
    size_t from = 0;
    for (size_t i = 1; i + 3 <= n; i++) {
        const char *q = memchr(s + i, meta[0], n - i - 2);
        if (!q)
            break;
        i = (size_t)(q - s);
        if (memcmp(q, meta, 3))
            continue;
        if (t->bpe->cross[(uint8_t)q[-1]] || (i - from >= 3 && !memcmp(q - 3, meta, 3)))
            continue;
        if (i > from) {
            RAD_TRY(encode_piece(t, m, s + from, i - from, out, err));
            from = i;
        }
    }
    return encode_piece(t, m, s + from, n - from, out, err);
}
