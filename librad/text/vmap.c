/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the small indexes of a tokenizer: bytes -> id, the longest added token
 * at a place, GPT-2's printable alphabet, id lists. Keys are borrowed. */
#include "config.h"

#include <stdlib.h>

#include "text/tok.h"

#include "banned.h"

rad_status radi_vmap_init(struct radi_vmap *m, size_t n, struct rad_err *err)
{
    size_t cap = 16;
    while (cap < n * 2)
        cap *= 2;
    m->slot = radi_calloc(cap, sizeof *m->slot);
    m->mask = cap - 1;
    if (!m->slot)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for an index of %zu tokens", n);
    return RAD_OK;
}

void radi_vmap_release(struct radi_vmap *m)
{
    radi_free(m->slot);
    m->slot = NULL;
}

int32_t radi_vmap_put(struct radi_vmap *m, const struct radi_tstr *key, int32_t id)
{
    const struct radi_tstr *k = &key[id];
    uint64_t h = radi_tok_hash(k->s, k->n);
    for (size_t i = h & m->mask;; i = (i + 1) & m->mask) {
        uint64_t v = m->slot[i];
        if (!v) {
            m->slot[i] = (h >> 32) << 32 | ((uint32_t)id + 1);
            return -1;
        }
        if (v >> 32 != h >> 32)
            continue;
        int32_t o = (int32_t)((uint32_t)v - 1);
        if (key[o].n == k->n && !memcmp(key[o].s, k->s, k->n))
            return o;
    }
}

int32_t radi_vmap_get_hashed(const struct radi_vmap *m, const struct radi_tstr *key,
                             const char *s, size_t n, uint64_t h)
{
    for (size_t i = h & m->mask;; i = (i + 1) & m->mask) {
        uint64_t v = m->slot[i];
        if (!v)
            return -1;
        if (v >> 32 != h >> 32)
            continue;
        int32_t o = (int32_t)((uint32_t)v - 1);
        if (key[o].n == n && !memcmp(key[o].s, s, n))
            return o;
    }
}

int32_t radi_vmap_get(const struct radi_vmap *m, const struct radi_tstr *key, const char *s,
                      size_t n)
{
    return radi_vmap_get_hashed(m, key, s, n, radi_tok_hash(s, n));
}

/* ---- added tokens */
static int by_text(const void *a, const void *b)
{
    const struct radi_added_text *x = a, *y = b;
    size_t n = RADI_MIN(x->text.n, y->text.n);
    int c = memcmp(x->text.s, y->text.s, n);
    if (c)
        return c;
    if (x->text.n != y->text.n)
        return x->text.n < y->text.n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

rad_status radi_trie_new(const struct radi_added_text *item, size_t n, struct radi_trie **out,
                         struct rad_err *err)
{
    *out = NULL;
    struct radi_trie *t = radi_calloc(1, sizeof *t);
    size_t bytes = 0;
    if (t && radi_mul_size(n, sizeof *item, &bytes))
        t->item = radi_malloc(bytes);
    if (!t || !t->item) {
        radi_trie_free(t);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for %zu added tokens", n);
    }
    memcpy(t->item, item, bytes);
    t->n = n;
    qsort(t->item, n, sizeof *item, by_text);
    size_t k = 0;
    for (unsigned b = 0; b <= 256; b++) {
        while (b && k < n && (uint8_t)t->item[k].text.s[0] < b)
            k++;
        t->start[b] = (uint32_t)k;
    }
    *out = t;
    return RAD_OK;
}

void radi_trie_free(struct radi_trie *t)
{
    if (!t)
        return;
    radi_free(t->item);
    radi_free(t);
}

void radi_trie_narrow(const struct radi_trie *t, size_t *lo, size_t *hi, size_t d, uint8_t c)
{
    size_t a = *lo, b = *hi;
    while (a < b) {                      /* first that ends here is before all bytes */
        size_t m = a + (b - a) / 2;
        if (t->item[m].text.n <= d || (uint8_t)t->item[m].text.s[d] < c)
            a = m + 1;
        else
            b = m;
    }
    *lo = a;
    b = *hi;
    while (a < b) {                      /* first with a byte > c */
        size_t m = a + (b - a) / 2;
        if ((uint8_t)t->item[m].text.s[d] <= c)
            a = m + 1;
        else
            b = m;
    }
    *hi = a;
}

int32_t radi_trie_match(const struct radi_trie *t, const char *s, size_t n, size_t *len)
{
    size_t lo = t->start[(uint8_t)s[0]], hi = t->start[(uint8_t)s[0] + 1];
    int32_t best = -1;
    for (size_t d = 1; lo < hi; d++) {
        /* all of [lo, hi) begin with s[0..d) */
        if (t->item[lo].text.n == d) {
            best = t->item[lo].id;
            *len = d;
        }
        if (d == n)
            break;
        radi_trie_narrow(t, &lo, &hi, d, (uint8_t)s[d]);
    }
    return best;
}

/* ---- GPT-2's alphabet: printable Latin-1 stands for itself, the other 68
 * bytes in order for U+0100 onwards. */
static bool self_byte(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

uint32_t radi_bytechar(uint8_t b)
{
    if (self_byte(b))
        return b;
    if (b <= 32)
        return 256u + b;
    if (b <= 160)
        return 256u + 33 + (b - 127u);
    return 256u + 67;                    /* 173 */
}

int radi_bytechar_inv(uint32_t cp)
{
    if (cp < 256)
        return self_byte(cp) ? (int)cp : -1;
    if (cp < 256 + 33)
        return (int)(cp - 256);
    if (cp < 256 + 67)
        return (int)(cp - 256 - 33 + 127);
    return cp == 256 + 67 ? 173 : -1;
}

bool radi_bytechar_decode(const char *s, size_t n, char *buf, size_t *len)
{
    size_t k = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t l = radi_utf8_next(s + i, n - i, &cp);
        int b = l ? radi_bytechar_inv(cp) : -1;
        if (b < 0)
            return false;
        buf[k++] = (char)b;
        i += l;
    }
    *len = k;
    return true;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int radi_byte_token(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>')
        return -1;
    int a = hex(s[3]), b = hex(s[4]);
    return a < 0 || b < 0 ? -1 : a * 16 + b;
}

/* ---- growing lists */
rad_status radi_idlist_add(struct radi_idlist *l, int32_t id, struct rad_err *err)
{
    RAD_TRY(radi_grow((void **)&l->id, &l->cap, l->n + 1, sizeof *l->id, err));
    l->id[l->n++] = id;
    return RAD_OK;
}

rad_status radi_ids_add(struct rad_ids *o, int32_t id, struct rad_err *err)
{
    if (o->n == o->cap)
        RAD_TRY(radi_grow((void **)&o->id, &o->cap, o->n + 1, sizeof *o->id, err));
    o->id[o->n++] = id;
    return RAD_OK;
}

void rad_ids_release(struct rad_ids *ids)
{
    radi_free(ids->id);
    *ids = (struct rad_ids){ 0 };
}

void rad_tok_text_release(struct rad_tok_text *t)
{
    radi_free(t->s);
    *t = (struct rad_tok_text){ 0 };
}

void *radi_mscratch_get(struct radi_mscratch *m, int i, size_t bytes)
{
    if (bytes > m->cap[i]) {
        size_t want = bytes + bytes / 2;
        void *p = radi_malloc(want);
        if (!p)
            return NULL;
        radi_free(m->mem[i]);
        m->mem[i] = p;
        m->cap[i] = want;
    }
    return m->mem[i];
}

void radi_mscratch_release(struct radi_mscratch *m)
{
    for (size_t i = 0; i < RADI_COUNT(m->mem); i++)
        radi_free(m->mem[i]);
    *m = (struct radi_mscratch){ 0 };
}
