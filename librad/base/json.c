/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading JSON from strangers. One pass of our own checks the whole
 * grammar (RFC 8259), depth, UTF-8, numbers, escapes and repeated keys, and
 * knows line and column; only then does cJSON build the tree. What cJSON is
 * lax about (NUL inside a string, numbers of 64 characters, "01", control
 * characters) therefore never reaches it, and its recursion is bounded by our
 * depth. */
#include "config.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#include "banned.h"

enum {
    MAX_DEPTH = 128,
    MAX_NUMBER = 63,        /* what cJSON can hold */
};

struct key {                /* of an object that is still open */
    uint64_t hash;
    size_t off, len;        /* in the text, or in `plain` when it had escapes */
    size_t at;              /* in the text, for the message */
    bool escaped;
};

struct scan {
    const char *s;
    size_t n, i;
    unsigned flags;
    struct rad_err *err;
    struct radi_str plain;  /* keys without their escapes */
    struct key *key;
    size_t keys, key_cap;
    size_t *bare;           /* offsets of NaN, Infinity, -Infinity */
    size_t bares, bare_cap;
    int depth;
    struct {
        size_t first_key, plain_len;
        bool object;
    } open[MAX_DEPTH];
};

__attribute__((constructor)) static void hook_cjson(void)
{
    /* malloc underneath, so memory of other users of cJSON stays good */
    cJSON_Hooks h = { radi_malloc, radi_free };
    cJSON_InitHooks(&h);
}

/* Puts "line:column: " (from 1, in characters) in front of the message. */
static rad_status fail_at(const struct scan *c, size_t at, rad_status st)
{
    size_t line = 1, col = 1;
    for (size_t i = 0; i < at && i < c->n; i++) {
        if (c->s[i] == '\n') {
            line++;
            col = 1;
        } else if (((unsigned char)c->s[i] & 0xc0) != 0x80)
            col++;
    }
    return rad_fail_in(c->err, st, "%zu:%zu", line, col);
}

#define FAIL_AT(c, at, ...) \
    (rad_fail((c)->err, RAD_E_FORMAT, __VA_ARGS__), \
     fail_at((c), (at), RAD_E_FORMAT))

static rad_status no_memory(struct scan *c)
{
    return rad_fail(c->err, RAD_E_NOMEM, "out of memory for JSON of %zu bytes",
                    c->n);
}

static rad_status unexpected(struct scan *c, const char *want)
{
    if (c->i >= c->n)
        return FAIL_AT(c, c->i, "the text ends, want %s", want);
    unsigned char b = (unsigned char)c->s[c->i];
    if (b > 0x20 && b < 0x7f)
        return FAIL_AT(c, c->i, "found '%c', want %s", b, want);
    return FAIL_AT(c, c->i, "found byte 0x%02x, want %s", b, want);
}

static void skip_space(struct scan *c)
{
    while (c->i < c->n && (c->s[c->i] == ' ' || c->s[c->i] == '\n' ||
                           c->s[c->i] == '\t' || c->s[c->i] == '\r'))
        c->i++;
}

static bool at_digit(const struct scan *c)
{
    return c->i < c->n && c->s[c->i] >= '0' && c->s[c->i] <= '9';
}

static bool at_word(const struct scan *c, const char *w)
{
    size_t n = strlen(w);
    return c->n - c->i >= n && !memcmp(c->s + c->i, w, n);
}

static bool at_escape(const struct scan *c)
{
    return c->n - c->i >= 2 && c->s[c->i] == '\\' && c->s[c->i + 1] == 'u';
}

static rad_status scan_hex4(struct scan *c, uint32_t *out)
{
    uint32_t v = 0;
    for (int k = 0; k < 4; k++, c->i++) {
        char d = c->i < c->n ? c->s[c->i] : 0;
        if (d >= '0' && d <= '9')
            v = v * 16 + (uint32_t)(d - '0');
        else if ((d | 32) >= 'a' && (d | 32) <= 'f')
            v = v * 16 + (uint32_t)((d | 32) - 'a') + 10;
        else
            return unexpected(c, "four hexadecimal digits behind \\u");
    }
    *out = v;
    return RAD_OK;
}

/* At a backslash. The character goes to `plain` when it is a key's. */
static rad_status scan_escape(struct scan *c, bool keep)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t at = c->i++;
    uint32_t u, low;

    const char *p = c->i < c->n && c->s[c->i] ? strchr(from, c->s[c->i]) : NULL;
    if (p) {
        c->i++;
        if (keep)
            radi_str_addc(&c->plain, to[p - from]);
        return RAD_OK;
    }
    if (c->i >= c->n || c->s[c->i] != 'u')
        return unexpected(c, "an escape, one of \" \\ / b f n r t u");
    c->i++;
    RAD_TRY(scan_hex4(c, &u));
    if (u == 0)
        return FAIL_AT(c, at, "\\u0000 in a string is not supported");
    if (u >= 0xdc00 && u < 0xe000)
        return FAIL_AT(c, at, "low surrogate \\u%04x without a high one", u);
    if (u >= 0xd800 && u < 0xdc00) {
        if (!at_escape(c))
            return FAIL_AT(c, at, "high surrogate \\u%04x without a low one",
                           u);
        c->i += 2;
        RAD_TRY(scan_hex4(c, &low));
        if (low < 0xdc00 || low >= 0xe000)
            return FAIL_AT(c, at, "high surrogate \\u%04x without a low one",
                           u);
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    if (keep)
        radi_str_add_utf8(&c->plain, u);
    return RAD_OK;
}

/* At the opening quote. A key is noted in `k`, which may be NULL. */
static rad_status scan_string(struct scan *c, struct key *k)
{
    size_t start = c->i++, body = c->i, len;
    size_t plain = c->plain.len;
    uint32_t cp;
    bool esc = false;

    for (;;) {
        if (c->i >= c->n)
            return FAIL_AT(c, start, "string without an end");
        unsigned char b = (unsigned char)c->s[c->i];
        if (b == '"')
            break;
        if (b == '\\') {
            if (k && !esc)
                radi_str_add(&c->plain, c->s + body, c->i - body);
            esc = true;
            RAD_TRY(scan_escape(c, k != NULL));
            continue;
        }
        if (b < 0x20)
            return FAIL_AT(c, c->i, "control character 0x%02x in a string", b);
        if ((len = radi_utf8_next(c->s + c->i, c->n - c->i, &cp)) == 0)
            return FAIL_AT(c, c->i, "byte 0x%02x is not UTF-8", b);
        if (k && esc)
            radi_str_add(&c->plain, c->s + c->i, len);
        c->i += len;
    }
    c->i++;
    if (!k)
        return RAD_OK;
    if (c->plain.failed)
        return no_memory(c);
    *k = (struct key){ .at = start, .escaped = esc };
    k->off = esc ? plain : body;
    k->len = esc ? c->plain.len - plain : c->i - 1 - body;
    k->hash = radi_hash((esc ? c->plain.s : c->s) + k->off, k->len, 0);
    return RAD_OK;
}

static rad_status scan_number(struct scan *c)
{
    size_t start = c->i, len;
    char buf[MAX_NUMBER + 1];

    if (c->s[c->i] == '-')
        c->i++;
    if (!at_digit(c))
        return unexpected(c, "a digit");
    if (c->s[c->i] == '0') {
        c->i++;
        if (at_digit(c))
            return FAIL_AT(c, start, "number with a leading zero");
    }
    while (at_digit(c))
        c->i++;
    if (c->i < c->n && c->s[c->i] == '.') {
        c->i++;
        if (!at_digit(c))
            return unexpected(c, "a digit behind the point");
        while (at_digit(c))
            c->i++;
    }
    if (c->i < c->n && (c->s[c->i] | 32) == 'e') {
        c->i++;
        if (c->i < c->n && (c->s[c->i] == '+' || c->s[c->i] == '-'))
            c->i++;
        if (!at_digit(c))
            return unexpected(c, "a digit of the exponent");
        while (at_digit(c))
            c->i++;
    }
    len = c->i - start;
    if (len > MAX_NUMBER)
        return FAIL_AT(c, start, "number of %zu characters, want at most %d",
                       len, MAX_NUMBER);
    memcpy(buf, c->s + start, len);
    buf[len] = 0;
    char *point = strchr(buf, '.');
    if (point)                      /* as strtod and cJSON expect it */
        *point = localeconv()->decimal_point[0];
    if (!isfinite(strtod(buf, NULL)))
        return FAIL_AT(c, start, "number %.*s is not finite",
                       (int)len, c->s + start);
    return RAD_OK;
}

static rad_status scan_bare(struct scan *c, const char *w)
{
    if (!(c->flags & RADI_JSON_LENIENT))
        return FAIL_AT(c, c->i, "%s is not JSON", w);
    void *p = c->bare;
    rad_status st = radi_grow(&p, &c->bare_cap, c->bares + 1, sizeof(*c->bare),
                              c->err);
    c->bare = p;
    RAD_TRY(st);
    c->bare[c->bares++] = c->i;
    c->i += strlen(w);
    return RAD_OK;
}

/* Any value but an object or array. */
static rad_status scan_scalar(struct scan *c)
{
    static const char *const word[] = { "true", "false", "null" };
    static const char *const bare[] = { "NaN", "Infinity", "-Infinity" };

    if (c->i < c->n && c->s[c->i] == '"')
        return scan_string(c, NULL);
    for (size_t k = 0; k < RADI_COUNT(word); k++)
        if (at_word(c, word[k])) {
            c->i += strlen(word[k]);
            return RAD_OK;
        }
    for (size_t k = 0; k < RADI_COUNT(bare); k++)
        if (at_word(c, bare[k]))
            return scan_bare(c, bare[k]);
    if (at_digit(c) || (c->i < c->n && c->s[c->i] == '-'))
        return scan_number(c);
    return unexpected(c, "a value");
}

static rad_status scan_key(struct scan *c)
{
    void *p = c->key;
    struct key k;

    if (c->i >= c->n || c->s[c->i] != '"')
        return unexpected(c, "a key in double quotes");
    RAD_TRY(scan_string(c, &k));
    rad_status st = radi_grow(&p, &c->key_cap, c->keys + 1, sizeof(*c->key),
                              c->err);
    c->key = p;
    RAD_TRY(st);
    c->key[c->keys++] = k;
    skip_space(c);
    if (c->i >= c->n || c->s[c->i] != ':')
        return unexpected(c, "':'");
    c->i++;
    return RAD_OK;
}

static const char *key_text(const struct scan *c, const struct key *k)
{
    return (k->escaped ? c->plain.s : c->s) + k->off;
}

static int same_key(const struct scan *c, const struct key *a,
                    const struct key *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return a->len ? memcmp(key_text(c, a), key_text(c, b), a->len) : 0;
}

static int by_key(const void *a, const void *b, void *arg)
{
    const struct key *x = a, *y = b;
    int r = same_key(arg, x, y);
    return r ? r : x->at < y->at ? -1 : 1;
}

/* Keys of the object that closes are sorted, which keeps a hostile object at
 * n log n whatever its keys hash to. Reports the earliest repetition. */
static rad_status close_object(struct scan *c)
{
    size_t first = c->open[c->depth - 1].first_key, n = c->keys - first;
    struct key *k = n ? c->key + first : NULL;
    const struct key *again = NULL;

    if (n > 1 && !(c->flags & RADI_JSON_DUPOK)) {
        qsort_r(k, n, sizeof(*k), by_key, c);
        for (size_t i = 1; i < n; i++)
            if (same_key(c, &k[i - 1], &k[i]) == 0 &&
                (!again || k[i].at < again->at))
                again = &k[i];
    }
    if (again)
        return FAIL_AT(c, again->at, "key '%.*s' a second time",
                       (int)RADI_MIN(again->len, (size_t)200),
                       key_text(c, again));
    c->keys = first;
    c->plain.len = c->open[c->depth - 1].plain_len;
    return RAD_OK;
}

static rad_status scan_open(struct scan *c, bool object)
{
    if (c->depth == MAX_DEPTH)
        return FAIL_AT(c, c->i, "nested deeper than %d", MAX_DEPTH);
    c->open[c->depth].first_key = c->keys;
    c->open[c->depth].plain_len = c->plain.len;
    c->open[c->depth].object = object;
    c->depth++;
    c->i++;
    return RAD_OK;
}

static rad_status scan_close(struct scan *c)
{
    if (c->open[c->depth - 1].object)
        RAD_TRY(close_object(c));
    c->depth--;
    c->i++;
    return RAD_OK;
}

/* One value, with an explicit stack. */
static rad_status scan_value(struct scan *c)
{
    for (;;) {
        skip_space(c);
        char b = c->i < c->n ? c->s[c->i] : 0;
        if (b == '{' || b == '[') {
            RAD_TRY(scan_open(c, b == '{'));
            skip_space(c);
            if (c->i < c->n && c->s[c->i] == (b == '{' ? '}' : ']'))
                RAD_TRY(scan_close(c));
            else {
                if (b == '{')
                    RAD_TRY(scan_key(c));
                continue;
            }
        } else
            RAD_TRY(scan_scalar(c));
        /* behind a value: close as many levels as end here */
        for (;;) {
            if (c->depth == 0)
                return RAD_OK;
            bool object = c->open[c->depth - 1].object;
            skip_space(c);
            b = c->i < c->n ? c->s[c->i] : 0;
            if (b == ',')
                break;
            if (b != (object ? '}' : ']'))
                return unexpected(c, object ? "',' or '}'" : "',' or ']'");
            RAD_TRY(scan_close(c));
        }
        c->i++;
        skip_space(c);
        if (c->open[c->depth - 1].object)
            RAD_TRY(scan_key(c));
    }
}

/* Blanks comments outside strings; newlines stay, so positions stay true. */
static rad_status blank_comments(struct scan *c, char *s)
{
    bool in = false;
    for (size_t i = 0; i < c->n; i++) {
        if (in) {
            if (s[i] == '\\' && i + 1 < c->n)
                i++;
            else if (s[i] == '"')
                in = false;
        } else if (s[i] == '"')
            in = true;
        else if (s[i] == '/' && i + 1 < c->n && s[i + 1] == '/') {
            for (; i < c->n && s[i] != '\n'; i++)
                s[i] = ' ';
        } else if (s[i] == '/' && i + 1 < c->n && s[i + 1] == '*') {
            size_t start = i;
            while (i + 1 < c->n && !(i > start + 1 && s[i] == '*' &&
                                     s[i + 1] == '/'))
                i++;
            if (i + 1 >= c->n)
                return FAIL_AT(c, start, "comment without an end");
            for (size_t k = start; k <= i + 1; k++)
                if (s[k] != '\n')
                    s[k] = ' ';
            i++;
        }
    }
    return RAD_OK;
}

/* Quotes the bare literals, so that cJSON reads them as strings. */
static rad_status quote_bare(struct scan *c, struct radi_str *out)
{
    size_t from = 0;
    for (size_t k = 0; k < c->bares; k++) {
        size_t at = c->bare[k];
        size_t n = c->s[at] == 'N' ? 3 : c->s[at] == '-' ? 9 : 8;
        radi_str_add(out, c->s + from, at - from);
        radi_str_addc(out, '"');
        radi_str_add(out, c->s + at, n);
        radi_str_addc(out, '"');
        from = at + n;
    }
    radi_str_add(out, c->s + from, c->n - from);
    return out->failed ? no_memory(c) : RAD_OK;
}

static rad_status build(struct scan *c, struct cJSON **out)
{
    struct radi_str quoted = { 0 };
    const char *s = c->s;
    size_t n = c->n;

    if (c->bares) {
        rad_status st = quote_bare(c, &quoted);
        if (st) {
            radi_str_release(&quoted);
            return st;
        }
        s = quoted.s;
        n = quoted.len;
    }
    *out = cJSON_ParseWithLengthOpts(s, n, NULL, 0);
    radi_str_release(&quoted);
    return *out ? RAD_OK : no_memory(c);    /* the grammar was checked */
}

rad_status radi_json_parse(const char *text, size_t n, size_t limit,
                           unsigned flags, struct cJSON **out,
                           struct rad_err *err)
{
    rad_status st = RAD_OK;
    char *copy = NULL;

    *out = NULL;
    if (limit && n > limit)
        return rad_fail(err, RAD_E_FORMAT, "JSON of %zu bytes, want at most "
                        "%zu", n, limit);
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;                  /* a byte order mark; it has no column */
        n -= 3;
    }
    struct scan *c = radi_calloc(1, sizeof(*c));
    if (!c)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for JSON");
    *c = (struct scan){ .s = text, .n = n, .flags = flags, .err = err };
    if (flags & RADI_JSON_COMMENTS) {
        copy = radi_malloc(n);
        if (!copy) {
            st = no_memory(c);
            goto out;
        }
        if (n)
            memcpy(copy, text, n);
        c->s = copy;
        if ((st = blank_comments(c, copy)) != RAD_OK)
            goto out;
    }
    if ((st = scan_value(c)) != RAD_OK)
        goto out;
    skip_space(c);
    st = c->i < c->n ? unexpected(c, "the end of the text") : build(c, out);
out:
    radi_str_release(&c->plain);
    radi_free(c->key);
    radi_free(c->bare);
    radi_free(c);
    radi_free(copy);
    return st;
}

void radi_json_free(struct cJSON *j)
{
    cJSON_Delete(j);
}

/* ---- typed members */
const struct cJSON *radi_json_get(const struct cJSON *obj, const char *key)
{
    return cJSON_IsObject(obj) ?
        cJSON_GetObjectItemCaseSensitive(obj, key) : NULL;
}

const char *radi_json_what(const struct cJSON *j, char buf[64])
{
    if (!j)
        snprintf(buf, 64, "nothing");
    else if (cJSON_IsString(j)) {
        size_t n = strnlen(j->valuestring, 46);
        bool cut = n == 46;
        while (cut && n && ((unsigned char)j->valuestring[n] & 0xc0) == 0x80)
            n--;
        snprintf(buf, 64, "string \"%.*s%s\"", (int)n, j->valuestring,
                 cut ? "..." : "");
    } else if (cJSON_IsNumber(j))
        snprintf(buf, 64, "number %.17g", j->valuedouble);
    else
        snprintf(buf, 64, "%s", cJSON_IsObject(j) ? "object" :
                 cJSON_IsArray(j) ? "array" : cJSON_IsTrue(j) ? "true" :
                 cJSON_IsFalse(j) ? "false" : "null");
    return buf;
}

static rad_status wrong_type(const struct cJSON *j, const char *key,
                             const char *want, struct rad_err *err)
{
    char buf[64];
    return rad_fail(err, RAD_E_FORMAT, "key '%s': %s, want %s", key,
                    radi_json_what(j, buf), want);
}

rad_status radi_json_str(const struct cJSON *obj, const char *key,
                         const char **out, bool *present, struct rad_err *err)
{
    const struct cJSON *j = radi_json_get(obj, key);
    if (present)
        *present = j != NULL;
    if (!j)
        return RAD_OK;
    if (!cJSON_IsString(j))
        return wrong_type(j, key, "a string", err);
    *out = j->valuestring;
    return RAD_OK;
}

/* cJSON keeps doubles: beyond 2^53 neighbours are lost, so it is refused. */
rad_status radi_json_i64(const struct cJSON *obj, const char *key,
                         int64_t *out, bool *present, struct rad_err *err)
{
    const struct cJSON *j = radi_json_get(obj, key);
    if (present)
        *present = j != NULL;
    if (!j)
        return RAD_OK;
    if (!cJSON_IsNumber(j) || j->valuedouble != floor(j->valuedouble))
        return wrong_type(j, key, "an integer", err);
    if (fabs(j->valuedouble) > 9007199254740991.0)
        return wrong_type(j, key, "an integer below 2^53", err);
    *out = (int64_t)j->valuedouble;
    return RAD_OK;
}

rad_status radi_json_f64(const struct cJSON *obj, const char *key,
                         double *out, bool *present, struct rad_err *err)
{
    const struct cJSON *j = radi_json_get(obj, key);
    if (present)
        *present = j != NULL;
    if (!j)
        return RAD_OK;
    if (!cJSON_IsNumber(j))
        return wrong_type(j, key, "a number", err);
    *out = j->valuedouble;
    return RAD_OK;
}

rad_status radi_json_bool(const struct cJSON *obj, const char *key, bool *out,
                          bool *present, struct rad_err *err)
{
    const struct cJSON *j = radi_json_get(obj, key);
    if (present)
        *present = j != NULL;
    if (!j)
        return RAD_OK;
    if (!cJSON_IsBool(j))
        return wrong_type(j, key, "true or false", err);
    *out = cJSON_IsTrue(j);
    return RAD_OK;
}
