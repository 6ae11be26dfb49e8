/* SPDX-License-Identifier: Apache-2.0 */
/* Owns growing strings, UTF-8 decoding and numbers from text. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#include "banned.h"

void radi_str_release(struct radi_str *b)
{
    radi_free(b->s);
    *b = (struct radi_str){ 0 };
}

void radi_str_clear(struct radi_str *b)
{
    b->len = 0;
    b->failed = false;
    if (b->s)
        b->s[0] = 0;
}

/* Room for n more bytes and the NUL. */
static bool reserve(struct radi_str *b, size_t n)
{
    size_t want;
    void *p = b->s;

    if (b->failed)
        return false;
    if (!radi_add_size(b->len, n, &want) || !radi_add_size(want, 1, &want) ||
        radi_grow(&p, &b->cap, want, 1, NULL)) {
        b->failed = true;
        return false;
    }
    b->s = p;
    return true;
}

void radi_str_add(struct radi_str *b, const char *s, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->s + b->len, s, n);
    b->len += n;
    b->s[b->len] = 0;
}

void radi_str_adds(struct radi_str *b, const char *s)
{
    radi_str_add(b, s, strlen(s));
}

void radi_str_addc(struct radi_str *b, char c)
{
    radi_str_add(b, &c, 1);
}

void radi_str_addv(struct radi_str *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        b->failed = true;
    else if (reserve(b, (size_t)n)) {
        vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void radi_str_addf(struct radi_str *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    radi_str_addv(b, fmt, ap);
    va_end(ap);
}

void radi_str_add_utf8(struct radi_str *b, uint32_t cp)
{
    char c[4];
    size_t n;

    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        cp = 0xfffd;
    if (cp < 0x80) {
        c[0] = (char)cp;
        n = 1;
    } else if (cp < 0x800) {
        c[0] = (char)(0xc0 | cp >> 6);
        c[1] = (char)(0x80 | (cp & 0x3f));
        n = 2;
    } else if (cp < 0x10000) {
        c[0] = (char)(0xe0 | cp >> 12);
        c[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        c[2] = (char)(0x80 | (cp & 0x3f));
        n = 3;
    } else {
        c[0] = (char)(0xf0 | cp >> 18);
        c[1] = (char)(0x80 | (cp >> 12 & 0x3f));
        c[2] = (char)(0x80 | (cp >> 6 & 0x3f));
        c[3] = (char)(0x80 | (cp & 0x3f));
        n = 4;
    }
    radi_str_add(b, c, n);
}

char *radi_str_take(struct radi_str *b)
{
    if (!b->s)
        radi_str_add(b, "", 0);
    char *s = b->failed ? NULL : b->s;
    if (!s)
        radi_free(b->s);
    *b = (struct radi_str){ 0 };
    return s;
}

void radi_str_add_json(struct radi_str *b, const char *s, size_t n)
{
    size_t i = 0;

    radi_str_addc(b, '"');
    while (i < n && !b->failed) {
        size_t plain = i;
        while (plain < n && (unsigned char)s[plain] >= 0x20 &&
               (unsigned char)s[plain] < 0x80 && s[plain] != '"' &&
               s[plain] != '\\')
            plain++;
        if (plain > i) {
            radi_str_add(b, s + i, plain - i);
            i = plain;
            continue;
        }
        unsigned char c = (unsigned char)s[i];
        uint32_t cp;
        size_t k;
        if (c == '"' || c == '\\')
            radi_str_addf(b, "\\%c", c);
        else if (c == '\n')
            radi_str_add(b, "\\n", 2);
        else if (c == '\t')
            radi_str_add(b, "\\t", 2);
        else if (c == '\r')
            radi_str_add(b, "\\r", 2);
        else if (c < 0x20)
            radi_str_addf(b, "\\u%04x", c);
        else if ((k = radi_utf8_next(s + i, n - i, &cp)) != 0) {
            radi_str_add(b, s + i, k);
            i += k;
            continue;
        } else
            radi_str_add_utf8(b, 0xfffd);
        i++;
    }
    radi_str_addc(b, '"');
}

size_t radi_utf8_next(const char *str, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)str;
    uint32_t c, least;
    size_t len;

    if (n == 0)
        return 0;
    if (s[0] < 0x80) {
        *cp = s[0];
        return 1;
    }
    if (s[0] >= 0xc2 && s[0] < 0xe0) {
        len = 2;
        c = s[0] & 0x1fu;
        least = 0x80;
    } else if (s[0] >= 0xe0 && s[0] < 0xf0) {
        len = 3;
        c = s[0] & 0x0fu;
        least = 0x800;
    } else if (s[0] >= 0xf0 && s[0] < 0xf5) {
        len = 4;
        c = s[0] & 0x07u;
        least = 0x10000;
    } else
        return 0;
    if (n < len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *cp = c;
    return len;
}

bool radi_utf8_valid(const char *s, size_t n)
{
    uint32_t cp;
    size_t i = 0, k;

    while (i < n) {
        if ((unsigned char)s[i] < 0x80) {
            i++;
            continue;
        }
        if ((k = radi_utf8_next(s + i, n - i, &cp)) == 0)
            return false;
        i += k;
    }
    return true;
}

bool radi_parse_i64(const char *s, int64_t *out)
{
    bool neg = *s == '-';
    int64_t v = 0;

    s += neg;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        int64_t d = neg ? -(*s - '0') : *s - '0';
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return true;
}

bool radi_parse_f64(const char *s, double *out)
{
    char *end;

    /* strtod also takes leading space, hexadecimal, "inf" and "nan" */
    if (!*s || strspn(s, "0123456789+-.eE") != strlen(s))
        return false;
    double v = strtod(s, &end);
    if (*end || end == s || !isfinite(v))
        return false;
    *out = v;
    return true;
}
