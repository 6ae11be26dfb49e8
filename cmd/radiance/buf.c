/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text: what a response is put together in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "server.h"

static bool room(struct buf *b, size_t n)
{
    if (b->failed || b->cap - b->len > n)
        return !b->failed;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->len <= n)
        cap *= 2;
    char *p = realloc(b->s, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->s = p;
    b->cap = cap;
    return true;
}

void buf_add(struct buf *b, const char *s, size_t n)
{
    if (!room(b, n))
        return;
    if (n)
        memcpy(b->s + b->len, s, n);
    b->len += n;
    b->s[b->len] = 0;
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char tmp[512];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(tmp, sizeof tmp, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof tmp) {
        buf_add(b, tmp, (size_t)n);
    } else if (n >= 0 && room(b, (size_t)n)) {
        vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

static void put(void *user, const char *s, size_t n)
{
    buf_add(user, s, n);
}

void buf_json(struct buf *b, const char *s, size_t n)
{
    cmd_json_quote(put, b, s, n);
}

void buf_release(struct buf *b)
{
    free(b->s);
    memset(b, 0, sizeof *b);
}
