/* SPDX-License-Identifier: Apache-2.0 */
/* Owns patterns of normalisers and pre-tokenisers: known ones by hand-written
 * splitter, literals by search, the rest by PCRE2 with Unicode properties and
 * with match and depth limits, since a pattern is a stranger's text.
 *
 * Patterns are written for Oniguruma. What it reads differently is rewritten
 * first: \s (PCRE2 adds U+180E), \h, \u, and class intersections. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config.h"

#include <pcre2.h>

#include "text/tok.h"

#include "banned.h"

enum {
    MATCH_LIMIT = 2000000,
    DEPTH_LIMIT = 50000,
    HEAP_KIB = 64 * 1024,
    PATTERN_MAX = 16384,
};

struct radi_regex {
    pcre2_code *code;        /* or */
    radi_splitter *known;    /* or */
    char *lit;               /* a literal */
    size_t lit_len;
    char *text;              /* for messages */
};

#define SPACE_SET "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
                  "\\x{202f}\\x{205f}\\x{3000}"

/* ---- rewriting. `i` stands behind the backslash. */
static rad_status escape(const char *p, size_t n, size_t *i, bool in_class, struct radi_str *o,
                         struct rad_err *err)
{
    if (*i >= n)
        return rad_fail(err, RAD_E_FORMAT, "a backslash ends the pattern");
    char c = p[*i];
    switch (c) {
    case 's':
        radi_str_adds(o, in_class ? SPACE_SET : "[" SPACE_SET "]");
        break;
    case 'S':
        radi_str_adds(o, in_class ? "\\S" : "[^" SPACE_SET "]");
        break;
    case 'h':
        radi_str_adds(o, in_class ? "0-9a-fA-F" : "[0-9a-fA-F]");
        break;
    case 'u':
        if (n - *i < 5)
            return rad_fail(err, RAD_E_FORMAT, "\\u without four digits");
        radi_str_addf(o, "\\x{%.4s}", p + *i + 1);
        *i += 4;
        break;
    default:
        radi_str_addc(o, '\\');
        radi_str_addc(o, c);
    }
    ++*i;
    return RAD_OK;
}

/* One class at p[*i] == '['. `[A&&[^B]]` becomes (?![B])[A], `[A&&[B]]`
 * (?=[B])[A]; other nesting is refused. */
static rad_status class(const char *p, size_t n, size_t *i, struct radi_str *o, int depth,
                        struct rad_err *err)
{
    struct radi_str body = { 0 }, guard = { 0 };
    rad_status st = RAD_OK;
    size_t k = *i + 1;
    bool first = true;
    radi_str_addc(&body, '[');
    if (k < n && p[k] == '^') {
        radi_str_addc(&body, '^');
        k++;
    }
    for (;; first = false) {
        if (k >= n) {
            st = rad_fail(err, RAD_E_FORMAT, "a character class is not closed");
            break;
        }
        if (p[k] == ']' && !first)
            break;
        if (p[k] == '\\') {
            k++;
            if ((st = escape(p, n, &k, true, &body, err)))
                break;
        } else if (p[k] == '[' && k + 1 < n && p[k + 1] == ':') {
            size_t e = k + 2;
            while (e + 1 < n && !(p[e] == ':' && p[e + 1] == ']'))
                e++;
            if (e + 1 >= n) {
                st = rad_fail(err, RAD_E_FORMAT, "a [: is not closed");
                break;
            }
            radi_str_add(&body, p + k, e + 2 - k);
            k = e + 2;
        } else if (p[k] == '&' && k + 2 < n && p[k + 1] == '&' && p[k + 2] == '[' && depth == 0) {
            k += 2;
            bool not = k + 1 < n && p[k + 1] == '^';
            struct radi_str in = { 0 };
            if (!(st = class(p, n, &k, &in, depth + 1, err))) {
                radi_str_adds(&guard, not ? "(?!" : "(?=");
                if (not) {           /* [^B] -> not B, without the ^ */
                    radi_str_addc(&guard, '[');
                    radi_str_add(&guard, in.s ? in.s + 2 : "", in.len > 2 ? in.len - 2 : 0);
                } else
                    radi_str_add(&guard, in.s ? in.s : "", in.len);
                radi_str_addc(&guard, ')');
            }
            radi_str_release(&in);
            if (st)
                break;
        } else if (p[k] == '[' || (p[k] == '&' && k + 1 < n && p[k + 1] == '&')) {
            st = rad_fail(err, RAD_E_UNSUPPORTED, "a character class of this form");
            break;
        } else
            radi_str_addc(&body, p[k++]);
    }
    if (!st) {
        radi_str_addc(&body, ']');
        if (guard.len) {
            radi_str_adds(o, "(?:");
            radi_str_add(o, guard.s, guard.len);
        }
        radi_str_add(o, body.s ? body.s : "", body.len);
        if (guard.len)
            radi_str_addc(o, ')');
        if (body.failed || guard.failed)
            o->failed = true;
        *i = k + 1;
    }
    radi_str_release(&body);
    radi_str_release(&guard);
    return st;
}

static rad_status rewrite(const char *p, size_t n, struct radi_str *o, struct rad_err *err)
{
    for (size_t i = 0; i < n;) {
        if (p[i] == '\\') {
            i++;
            RAD_TRY(escape(p, n, &i, false, o, err));
        } else if (p[i] == '[')
            RAD_TRY(class(p, n, &i, o, 0, err));
        else
            radi_str_addc(o, p[i++]);
    }
    return o->failed ? rad_fail(err, RAD_E_NOMEM, "out of memory for a pattern") : RAD_OK;
}

/* A pattern that only matches itself, unescaped; NULL if it is more. */
static char *literal(const char *p, size_t n, size_t *len)
{
    char *s = radi_malloc(n + 1);
    size_t k = 0;
    for (size_t i = 0; s && i < n; i++) {
        char c = p[i];
        if (c == '\\') {
            if (++i == n || (uint8_t)p[i] > 126 || !radi_cp_punct((uint8_t)p[i]))
                goto no;
            c = p[i];
        } else if (c && strchr(".^$|()[]{}*+?", c))
            goto no;
        s[k++] = c;
    }
    *len = k;
    return s;
no:
    radi_free(s);
    return NULL;
}

rad_status radi_regex_new(const char *pat, size_t n, struct radi_regex **out, struct rad_err *err)
{
    *out = NULL;
    if (n > PATTERN_MAX)
        return rad_fail(err, RAD_E_FORMAT, "a pattern of %zu bytes, want at most %d", n,
                        PATTERN_MAX);
    if (!n)
        return rad_fail(err, RAD_E_FORMAT, "an empty pattern");
    struct radi_regex *re = radi_calloc(1, sizeof *re);
    if (!re || !(re->text = radi_strndup(pat, n))) {
        radi_regex_free(re);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a pattern");
    }
    const struct radi_known_pattern *k = radi_pattern_known(pat, n);
    if (k) {
        re->known = k->fn;
        *out = re;
        return RAD_OK;
    }
    if ((re->lit = literal(pat, n, &re->lit_len)) != NULL) {
        *out = re;
        return RAD_OK;
    }
    rad_status st = radi_regex_compile(pat, n, (void **)&re->code, err);
    if (st) {
        radi_regex_free(re);
        return st;
    }
    *out = re;
    return RAD_OK;
}

/* Also for the test that compares the known splitters with PCRE2. */
rad_status radi_regex_compile(const char *pat, size_t n, void **out, struct rad_err *err)
{
    struct radi_str o = { 0 };
    rad_status st = rewrite(pat, n, &o, err);
    if (st) {
        radi_str_release(&o);
        return rad_fail_in(err, st, "pattern '%.200s'", pat);
    }
    int code;
    PCRE2_SIZE at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)(o.s ? o.s : ""), o.len,
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                   &code, &at, NULL);
    radi_str_release(&o);
    if (!re) {
        PCRE2_UCHAR msg[160];
        pcre2_get_error_message(code, msg, sizeof msg);
        return rad_fail(err, RAD_E_FORMAT, "pattern '%.200s': %s", pat, (const char *)msg);
    }
    (void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
    *out = re;
    return RAD_OK;
}

void radi_regex_free(struct radi_regex *re)
{
    if (!re)
        return;
    if (re->code)
        pcre2_code_free(re->code);
    radi_free(re->lit);
    radi_free(re->text);
    radi_free(re);
}

static rad_status context(struct radi_rxctx *c, struct rad_err *err)
{
    if (c->md)
        return RAD_OK;
    c->md = pcre2_match_data_create(16, NULL);
    c->mc = pcre2_match_context_create(NULL);
    if (!c->md || !c->mc)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for matching");
    pcre2_set_match_limit(c->mc, MATCH_LIMIT);
    pcre2_set_depth_limit(c->mc, DEPTH_LIMIT);
    pcre2_set_heap_limit(c->mc, HEAP_KIB);
    return RAD_OK;
}

void radi_rxctx_release(struct radi_rxctx *c)
{
    if (c->md)
        pcre2_match_data_free(c->md);
    if (c->mc)
        pcre2_match_context_free(c->mc);
    for (int i = 0; i < RADI_RX_ALT; i++)
        if (c->alt[i])
            pcre2_code_free(c->alt[i]);
    *c = (struct radi_rxctx){ 0 };
}

/* The code of a known pattern, for the slow way; NULL: err is set. */
static pcre2_code *alternative(const struct radi_regex *re, struct radi_rxctx *c,
                               struct rad_err *err)
{
    int i = 0;
    while (i < RADI_RX_ALT - 1 && c->alt_of[i] && c->alt_of[i] != re)
        i++;
    if (c->alt_of[i] == re)
        return c->alt[i];
    if (c->alt[i])
        pcre2_code_free(c->alt[i]);
    c->alt[i] = NULL;
    c->alt_of[i] = NULL;
    if (radi_regex_compile(re->text, strlen(re->text), &c->alt[i], err))
        return NULL;
    c->alt_of[i] = re;
    return c->alt[i];
}

int radi_regex_find(const struct radi_regex *re, struct radi_rxctx *c, const char *s, size_t n,
                    size_t from, size_t *ms, size_t *me, struct rad_err *err)
{
    const pcre2_code *code = re->code;
    if (re->known && c->plain) {
        if (!(code = alternative(re, c, err)))
            return -1;
    } else if (re->known) {
        while (from < n) {
            bool matched;
            size_t e = re->known(s, n, from, &matched);
            if (matched) {
                *ms = from;
                *me = e;
                return 1;
            }
            from = e;
        }
        return 0;
    }
    if (re->lit) {
        const char *p = from < n ? memmem(s + from, n - from, re->lit, re->lit_len) : NULL;
        if (!p)
            return 0;
        *ms = (size_t)(p - s);
        *me = *ms + re->lit_len;
        return 1;
    }
    if (context(c, err))
        return -1;
    while (from < n) {
        /* the text was made valid at the door: no check a call */
        int rc = pcre2_match(code, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK, c->md, c->mc);
        if (rc == PCRE2_ERROR_NOMATCH)
            return 0;
        if (rc < 0) {
            PCRE2_UCHAR msg[160];
            pcre2_get_error_message(rc, msg, sizeof msg);
            rad_fail(err, RAD_E_UNSUPPORTED, "pattern '%.200s' on a text of %zu bytes: %s",
                     re->text, n, (const char *)msg);
            return -1;
        }
        const PCRE2_SIZE *ov = pcre2_get_ovector_pointer(c->md);
        if (ov[1] > ov[0]) {
            *ms = ov[0];
            *me = ov[1];
            return 1;
        }
        from = RADI_MAX(ov[0], from) + 1;    /* empty: look behind the next character */
        while (from < n && ((uint8_t)s[from] & 0xc0) == 0x80)
            from++;
    }
    return 0;
}
