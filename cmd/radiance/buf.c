/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, and the JSON strings that streamed events are made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Length of the valid UTF-8 sequence at s, 0 if there is none. */
static size_t utf8(const unsigned char *s, size_t n)
{
    unsigned c = s[0], lo = 0x80, hi = 0xbf;
    size_t k = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3
             : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (!k || k > n)
        return 0;
    if (c == 0xe0) lo = 0xa0;
    if (c == 0xed) hi = 0x9f;
    if (c == 0xf0) lo = 0x90;
    if (c == 0xf4) hi = 0x8f;
    for (size_t i = 1; i < k; i++, lo = 0x80, hi = 0xbf)
        if (s[i] < lo || s[i] > hi)
            return 0;
    return k;
}

void buf_json(struct buf *b, const char *s, size_t n)
{
    buf_add(b, "\"", 1);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        size_t k = utf8((const unsigned char *)s + i, n - i);
        if (!k) {
            buf_adds(b, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (c == '"' || c == '\\')
            buf_addf(b, "\\%c", c);
        else if (c == '\n')
            buf_adds(b, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_addf(b, "\\u%04x", c);
        else
            buf_add(b, s + i, k);
        i += k;
    }
    buf_add(b, "\"", 1);
}

void buf_release(struct buf *b)
{
    free(b->s);
    memset(b, 0, sizeof *b);
}
