/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the string hash map: open addressing, linear probing, at most 3/4 full.
 * Keys come from hostile files, so the hash is seeded with bytes that the
 * kernel gave this process; nothing depends on the order of the slots. */
#include "config.h"

#include <sys/auxv.h>

#include "base/base.h"

#include "banned.h"

struct slot {
    uint64_t hash, value;
    const char *key;            /* NULL: empty */
    size_t n;
};

struct radi_map {
    struct slot *slot;
    size_t mask, count;
    uint64_t seed;
    struct radi_arena keys;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Folds eight bytes at a time by a 64x64 multiply. The odd constants are
 * bits of the fractions of sqrt(2), sqrt(3) and sqrt(5). */
uint64_t radi_hash(const void *p, size_t n, uint64_t seed)
{
    const uint64_t k1 = 0x6a09e667f3bcc909u, k2 = 0xbb67ae8584caa73bu,
                   k3 = 0x3c6ef372fe94f82bu;
    const unsigned char *s = p;
    uint64_t h = mix(seed ^ k1, k2) ^ n, w;

    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&w, s, 8);
        h = mix(h ^ w, k3) + (h << 1);
    }
    w = 0;
    if (n)
        memcpy(&w, s, n);
    h = mix(h ^ w, k3);
    return mix(h ^ k2, k1);
}

static uint64_t process_seed(void)
{
    uint64_t s = 0;
    const void *p = (const void *)getauxval(AT_RANDOM);
    if (p)
        memcpy(&s, p, sizeof(s));
    return s;
}

struct radi_map *radi_map_new(size_t expect)
{
    size_t n = 16, want;

    if (!radi_add_size(expect, expect / 2 + 1, &want))
        return NULL;
    while (n < want)
        if (!radi_mul_size(n, 2, &n))
            return NULL;
    struct radi_map *m = radi_calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->slot = radi_calloc(n, sizeof(*m->slot));
    if (!m->slot) {
        radi_free(m);
        return NULL;
    }
    m->mask = n - 1;
    m->seed = process_seed();
    radi_arena_init(&m->keys, 0);
    return m;
}

void radi_map_free(struct radi_map *m)
{
    if (!m)
        return;
    radi_arena_release(&m->keys);
    radi_free(m->slot);
    radi_free(m);
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct slot *find(const struct radi_map *m, const char *key, size_t n,
                         uint64_t hash)
{
    for (size_t i = hash & m->mask;; i = (i + 1) & m->mask) {
        struct slot *s = &m->slot[i];
        if (!s->key || (s->hash == hash && s->n == n &&
                        (n == 0 || memcmp(s->key, key, n) == 0)))
            return s;
    }
}

static bool rehash(struct radi_map *m)
{
    size_t n;
    if (!radi_mul_size(m->mask + 1, 2, &n))
        return false;
    struct slot *s = radi_calloc(n, sizeof(*s));
    if (!s)
        return false;
    for (size_t i = 0; i <= m->mask; i++) {
        if (!m->slot[i].key)
            continue;
        size_t j = m->slot[i].hash & (n - 1);
        while (s[j].key)
            j = (j + 1) & (n - 1);
        s[j] = m->slot[i];
    }
    radi_free(m->slot);
    m->slot = s;
    m->mask = n - 1;
    return true;
}

bool radi_map_put(struct radi_map *m, const char *key, size_t n,
                  uint64_t value, bool *existed)
{
    uint64_t hash = radi_hash(key, n, m->seed);
    struct slot *s = find(m, key, n, hash);

    if (existed)
        *existed = s->key != NULL;
    if (s->key)
        return true;
    if (m->count >= (m->mask + 1) / 4 * 3) {
        if (!rehash(m))
            return false;
        s = find(m, key, n, hash);
    }
    char *copy = radi_arena_strndup(&m->keys, key, n);
    if (!copy)
        return false;
    *s = (struct slot){ .hash = hash, .value = value, .key = copy, .n = n };
    m->count++;
    return true;
}

bool radi_map_get(const struct radi_map *m, const char *key, size_t n,
                  uint64_t *value)
{
    const struct slot *s = find(m, key, n, radi_hash(key, n, m->seed));
    if (!s->key)
        return false;
    if (value)
        *value = s->value;
    return true;
}

size_t radi_map_count(const struct radi_map *m)
{
    return m->count;
}
