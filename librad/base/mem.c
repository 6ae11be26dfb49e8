/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the one door through which librad takes memory, growing arrays, and
 * arenas. The door counts, and can be told to fail once, so that tests walk
 * every out-of-memory path. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#include "banned.h"

static _Atomic uint64_t alloc_count;
static _Atomic uint64_t alloc_fail;     /* the count that fails; 0: none */

static bool may_alloc(void)
{
    uint64_t c = atomic_fetch_add_explicit(&alloc_count, 1,
                                           memory_order_relaxed) + 1;
    return c != atomic_load_explicit(&alloc_fail, memory_order_relaxed);
}

void radi_alloc_fail_at(uint64_t n)
{
    atomic_store(&alloc_fail, n ? atomic_load(&alloc_count) + n : 0);
}

uint64_t radi_alloc_count(void)
{
    return atomic_load(&alloc_count);
}

void *radi_malloc(size_t bytes)
{
    return may_alloc() ? malloc(bytes ? bytes : 1) : NULL;
}

void *radi_calloc(size_t n, size_t size)
{
    return may_alloc() ? calloc(n ? n : 1, size ? size : 1) : NULL;
}

void *radi_realloc(void *p, size_t bytes)
{
    return may_alloc() ? realloc(p, bytes ? bytes : 1) : NULL;
}

void *radi_aligned(size_t align, size_t bytes)
{
    void *p;
    if (!may_alloc() || posix_memalign(&p, align, bytes ? bytes : 1))
        return NULL;
    return p;
}

char *radi_strndup(const char *s, size_t n)
{
    size_t bytes;
    n = strnlen(s, n);
    char *p = radi_add_size(n, 1, &bytes) ? radi_malloc(bytes) : NULL;
    if (p) {
        memcpy(p, s, n);
        p[n] = 0;
    }
    return p;
}

char *radi_strdup(const char *s)
{
    return radi_strndup(s, strlen(s));
}

void radi_free(void *p)
{
    free(p);
}

rad_status radi_grow(void **p, size_t *cap, size_t want, size_t item,
                     struct rad_err *err)
{
    size_t n = *cap ? *cap : 8, bytes;

    if (want <= *cap)
        return RAD_OK;
    while (n < want)
        if (!radi_mul_size(n, 2, &n))
            n = want;
    if (!radi_mul_size(n, item, &bytes))
        return rad_fail(err, RAD_E_NOMEM, "array of %zu items of %zu bytes "
                        "is too large", n, item);
    void *q = radi_realloc(*p, bytes);
    if (!q)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for %zu bytes",
                        bytes);
    *p = q;
    *cap = n;
    return RAD_OK;
}

/* ---- arena: blocks come zeroed from calloc and nothing is handed out twice,
 * so every allocation is zero without a memset. */
struct radi_arena_block {
    struct radi_arena_block *next;
    size_t size, pos;
    _Alignas(16) unsigned char data[];
};

enum { BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20 };

void radi_arena_init(struct radi_arena *a, size_t limit)
{
    *a = (struct radi_arena){ .limit = limit };
}

void radi_arena_release(struct radi_arena *a)
{
    struct radi_arena_block *b = a->head;
    while (b) {
        struct radi_arena_block *next = b->next;
        radi_free(b);
        b = next;
    }
    *a = (struct radi_arena){ .limit = a->limit };
}

static struct radi_arena_block *add_block(struct radi_arena *a, size_t need)
{
    size_t size = a->head ? a->head->size : BLOCK_MIN / 2, bytes;

    size = size < BLOCK_MAX ? size * 2 : BLOCK_MAX;
    if (size < need)
        size = need;
    if (!radi_add_size(size, sizeof(struct radi_arena_block), &bytes))
        return NULL;
    struct radi_arena_block *b = radi_calloc(1, bytes);
    if (!b)
        return NULL;
    b->size = size;
    if (need > BLOCK_MAX && a->head) {      /* keep filling the older block */
        b->next = a->head->next;
        a->head->next = b;
    } else {
        b->next = a->head;
        a->head = b;
    }
    return b;
}

void *radi_arena_alloc(struct radi_arena *a, size_t bytes)
{
    size_t need, used;

    if (!radi_add_size(bytes ? bytes : 1, 15, &need))
        return NULL;
    need &= ~(size_t)15;
    if (!radi_add_size(a->used, need, &used) || (a->limit && used > a->limit))
        return NULL;
    struct radi_arena_block *b = a->head;
    if (!b || b->size - b->pos < need)
        b = add_block(a, need);
    if (!b)
        return NULL;
    void *p = b->data + b->pos;
    b->pos += need;
    a->used = used;
    return p;
}

void *radi_arena_array(struct radi_arena *a, size_t n, size_t item)
{
    size_t bytes;
    return radi_mul_size(n, item, &bytes) ? radi_arena_alloc(a, bytes) : NULL;
}

char *radi_arena_strndup(struct radi_arena *a, const char *s, size_t n)
{
    size_t bytes;
    char *p = radi_add_size(n, 1, &bytes) ? radi_arena_alloc(a, bytes) : NULL;
    if (p && n)
        memcpy(p, s, n);
    return p;
}

char *radi_arena_printf(struct radi_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : radi_arena_alloc(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return p;
}
