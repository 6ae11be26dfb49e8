/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the normaliser chain. Steps read one buffer and write the other; a step
 * that changes nothing hands its input on. Text is valid UTF-8 on both sides.
 *
 * Unicode forms: only runs of characters that could change are given to
 * utf8proc, with the ASCII character before them, since most text is in its
 * form already. */
#include "config.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "text/tok.h"

#include "banned.h"

enum { GROWTH = 64 };        /* a chain may make a text this much longer, + 1 MiB */

struct step {
    const struct radi_tok_step *st;
    struct radi_regex *re;
    struct radi_charsmap *map;
};
struct radi_norm {
    struct step *step;
    size_t n;
};

/* ---- sentencepiece's compiled map: a double-array trie, then texts */
struct radi_charsmap {
    uint32_t *unit;
    size_t units;
    char *text;
    size_t text_len;
};

static int b64(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static rad_status base64(const char *s, size_t n, struct radi_str *o, struct rad_err *err)
{
    while (n && s[n - 1] == '=')
        n--;
    uint32_t acc = 0;
    int bits = 0;
    for (size_t i = 0; i < n; i++) {
        int v = b64(s[i]);
        if (v < 0)
            return rad_fail(err, RAD_E_FORMAT,
                            "'precompiled_charsmap': byte 0x%02x at %zu is not base64",
                            (uint8_t)s[i], i);
        acc = (acc << 6 | (uint32_t)v) & 0xffffff;
        if ((bits += 6) >= 8) {
            bits -= 8;
            radi_str_addc(o, (char)(acc >> bits & 255));
        }
    }
    return o->failed ? rad_fail(err, RAD_E_NOMEM, "out of memory for a charsmap") : RAD_OK;
}

static void charsmap_free(struct radi_charsmap *m)
{
    if (!m)
        return;
    radi_free(m->unit);
    radi_free(m->text);
    radi_free(m);
}

static rad_status charsmap_new(const struct radi_tstr *src, struct radi_charsmap **out,
                               struct rad_err *err)
{
    struct radi_str raw = { 0 };
    struct radi_charsmap *m = NULL;
    uint32_t size = 0;
    rad_status st = base64(src->s, src->n, &raw, err);
    if (st)
        goto out;
    if (raw.len >= 4)
        memcpy(&size, raw.s, 4);
    if (raw.len < 4 || size % 4 || size < 4 || size > raw.len - 4) {
        st = rad_fail(err, RAD_E_FORMAT,
                      "'precompiled_charsmap': a trie of %u bytes in a map of %zu", size, raw.len);
        goto out;
    }
    m = radi_calloc(1, sizeof *m);
    if (m) {
        m->units = size / 4;
        m->text_len = raw.len - 4 - size;
        m->unit = radi_malloc(size);
        m->text = radi_strndup("", 0);
    }
    char *text = radi_malloc(raw.len + 1 - 4 - size);
    if (!m || !m->unit || !m->text || !text) {
        radi_free(text);
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for a charsmap");
        goto out;
    }
    radi_free(m->text);
    m->text = text;
    memcpy(m->unit, raw.s + 4, size);
    memcpy(m->text, raw.s + 4 + size, m->text_len);
    m->text[m->text_len] = 0;
    if (!radi_utf8_valid(m->text, m->text_len))
        st = rad_fail(err, RAD_E_FORMAT, "'precompiled_charsmap': its texts are not UTF-8");
out:
    radi_str_release(&raw);
    if (st) {
        charsmap_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}

static size_t unit_offset(uint32_t u)
{
    return (size_t)(u >> 10) << ((u & (1u << 9)) >> 6);
}

/* Text that the shortest matching prefix of s stands for, or NULL: the
 * reference takes the first hit for the whole chunk. */
static const char *charsmap_find(const struct radi_charsmap *m, const char *s, size_t n)
{
    size_t at = unit_offset(m->unit[0]);
    for (size_t i = 0; i < n && s[i]; i++) {
        at ^= (uint8_t)s[i];
        if (at >= m->units)
            return NULL;
        uint32_t u = m->unit[at];
        if ((u & (1u << 31 | 255)) != (uint8_t)s[i])
            return NULL;
        at ^= unit_offset(u);
        if (at >= m->units)
            return NULL;
        if (u >> 8 & 1) {
            size_t v = m->unit[at] & 0x7fffffffu;
            return v <= m->text_len ? m->text + v : NULL;
        }
    }
    return NULL;
}

static void charsmap_run(const struct radi_charsmap *m, const char *s, size_t n,
                         struct radi_str *o)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp, next;
        size_t l = radi_utf8_next(s + i, n - i, &cp), e = i + (l ? l : 1);
        utf8proc_int32_t state = 0;
        while (e < n && (l = radi_utf8_next(s + e, n - e, &next)) &&
               !utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next,
                                                 &state)) {
            e += l;
            cp = next;
        }
        const char *to = e - i < 6 ? charsmap_find(m, s + i, e - i) : NULL;
        if (to)
            radi_str_adds(o, to);
        for (size_t k = i; !to && k < e;) {
            l = radi_utf8_next(s + k, e - k, &cp);
            l = l ? l : 1;
            const char *one = charsmap_find(m, s + k, l);
            if (one)
                radi_str_adds(o, one);
            else
                radi_str_add(o, s + k, l);
            k += l;
        }
        i = e;
    }
}

/* ---- Unicode forms */

/* In the composed form, and never part of a composition by itself: a run of
 * only these is NFC already. A conservative list. */
static bool nfc_inert(uint32_t c)
{
    return c < 0x300 || (c >= 0x400 && c <= 0x482) || (c >= 0x2010 && c <= 0x2027) ||
           (c >= 0x2030 && c <= 0x205e) || (c >= 0x3400 && c <= 0x9fff) ||
           (c >= 0x3041 && c <= 0x3096) || (c >= 0x30a1 && c <= 0x30fa) ||
           (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xff01 && c <= 0xff60) ||
           (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x3000 && c <= 0x3029);
}

static size_t ascii_run(const char *s, size_t n, size_t i)
{
    uint64_t w;
    while (n - i >= 8) {
        memcpy(&w, s + i, 8);
        if (w & 0x8080808080808080u)
            break;
        i += 8;
    }
    while (i < n && !(s[i] & 0x80))
        i++;
    return i;
}

/* True when something was written to o; false: s is in its form. */
static rad_status unicode_form(int kind, const char *s, size_t n, struct radi_str *o, bool *wrote,
                               struct rad_err *err)
{
    int opt = kind == RADI_STEP_NFC || kind == RADI_STEP_NFKC ? UTF8PROC_COMPOSE
                                                              : UTF8PROC_DECOMPOSE;
    if (kind == RADI_STEP_NFKC || kind == RADI_STEP_NFKD)
        opt |= UTF8PROC_COMPAT;
    size_t done = 0;             /* copied up to here */
    *wrote = false;
    for (size_t i = 0; i < n;) {
        size_t from = ascii_run(s, n, i), e = from;
        bool inert = kind == RADI_STEP_NFC;
        while (e < n && (s[e] & 0x80)) {
            uint32_t cp = 0;
            size_t l = radi_utf8_next(s + e, n - e, &cp);
            inert = inert && nfc_inert(cp);
            e += l ? l : 1;
        }
        i = e;
        if (from == e || inert)
            continue;
        if (from > 0)
            from--;              /* an accent composes with the letter before */
        utf8proc_uint8_t *r = NULL;
        utf8proc_ssize_t k = utf8proc_map((const utf8proc_uint8_t *)s + from,
                                          (utf8proc_ssize_t)(e - from), &r,
                                          (utf8proc_option_t)(opt | UTF8PROC_STABLE));
        if (k < 0) {
            free(r);
            return rad_fail(err, k == UTF8PROC_ERROR_NOMEM ? RAD_E_NOMEM : RAD_E_FORMAT,
                            "normalising: %s", utf8proc_errmsg(k));
        }
        radi_str_add(o, s + done, from - done);
        radi_str_add(o, (const char *)r, (size_t)k);
        free(r);
        done = e;
        *wrote = true;
    }
    if (*wrote)
        radi_str_add(o, s + done, n - done);
    return RAD_OK;
}

/* ---- character by character */
static void lower(uint32_t cp, struct radi_str *o)
{
    if (cp == 0x130) {           /* the one letter whose small form is two */
        radi_str_adds(o, "i\xcc\x87");
        return;
    }
    radi_str_add_utf8(o, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

static bool mark(uint32_t cp, bool all)
{
    if (cp < 0x300)
        return false;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_MN ||
           (all && (c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME));
}

static bool chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool control(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    /* the reference's table of "other" has no unassigned code points */
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

static bool nmt_drop(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
           c == 0x9f;
}

static bool nmt_space(uint32_t c)
{
    return c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xfeff || c == 0xfffd;
}

enum { BERT_CLEAN = 1, BERT_CJK = 2, BERT_ACCENTS = 4, BERT_LOWER = 8 };

static void each_char(const struct radi_tok_step *st, const char *s, size_t n, struct radi_str *o)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0xfffd;
        size_t l = radi_utf8_next(s + i, n - i, &cp);
        if (!l)
            l = 1;
        switch (st->kind) {
        case RADI_STEP_LOWER:
            lower(cp, o);
            break;
        case RADI_STEP_STRIP_ACCENTS:
            if (!mark(cp, true))
                radi_str_add(o, s + i, l);
            break;
        case RADI_STEP_NMT:
            if (nmt_space(cp))
                radi_str_addc(o, ' ');
            else if (!nmt_drop(cp))
                radi_str_add(o, s + i, l);
            break;
        default:                 /* BERT's first two */
            if (st->flags & BERT_CLEAN) {
                if (cp == 0 || cp == 0xfffd || control(cp))
                    break;
                if (radi_cp_space(cp)) {
                    radi_str_addc(o, ' ');
                    break;
                }
            }
            if ((st->flags & BERT_CJK) && chinese(cp)) {
                radi_str_addc(o, ' ');
                radi_str_add(o, s + i, l);
                radi_str_addc(o, ' ');
            } else
                radi_str_add(o, s + i, l);
        }
        i += l;
    }
}

static rad_status bert(const struct radi_tok_step *st, const char *s, size_t n,
                       struct radi_str *o, struct rad_err *err)
{
    struct radi_str a = { 0 }, b = { 0 };
    rad_status rs = RAD_OK;
    each_char(st, s, n, &a);
    if (st->flags & BERT_ACCENTS) {
        bool wrote;
        rs = unicode_form(RADI_STEP_NFD, a.s ? a.s : "", a.len, &b, &wrote, err);
        struct radi_str *in = wrote ? &b : &a, *to = wrote ? &a : &b;
        size_t len = in->len;
        if (!rs) {
            radi_str_clear(to);
            for (size_t i = 0; i < len;) {
                uint32_t cp = 0;
                size_t l = radi_utf8_next(in->s + i, len - i, &cp);
                l = l ? l : 1;
                if (!mark(cp, false))
                    radi_str_add(to, in->s + i, l);
                i += l;
            }
            if (to != &a) {
                radi_str_clear(&a);
                radi_str_add(&a, b.s ? b.s : "", b.len);
            }
        }
    }
    if (!rs) {
        struct radi_tok_step low = { .kind = RADI_STEP_LOWER };
        if (st->flags & BERT_LOWER)
            each_char(&low, a.s ? a.s : "", a.len, o);
        else
            radi_str_add(o, a.s ? a.s : "", a.len);
        if (a.failed || b.failed)
            o->failed = true;
    }
    radi_str_release(&a);
    radi_str_release(&b);
    return rs;
}

static rad_status replace(const struct step *p, struct radi_rxctx *rx, const char *s, size_t n,
                          struct radi_str *o, bool *wrote, struct rad_err *err)
{
    size_t done = 0, ms, me;
    int r;
    *wrote = false;
    while ((r = radi_regex_find(p->re, rx, s, n, done, &ms, &me, err)) > 0) {
        radi_str_add(o, s + done, ms - done);
        radi_str_add(o, p->st->arg1.s ? p->st->arg1.s : "", p->st->arg1.n);
        done = me;
        *wrote = true;
        if (o->len > n * GROWTH + (1u << 20))
            return rad_fail(err, RAD_E_UNSUPPORTED, "normalising makes %zu bytes over %zu", n,
                            o->len);
    }
    if (r < 0)
        return err && err->code ? err->code : RAD_E_UNSUPPORTED;
    if (*wrote)
        radi_str_add(o, s + done, n - done);
    return RAD_OK;
}

static void strip(const struct radi_tok_step *st, const char **s, size_t *n)
{
    uint32_t cp;
    size_t l;
    while ((st->flags & 1) && *n && (l = radi_utf8_next(*s, *n, &cp)) && radi_cp_space(cp)) {
        *s += l;
        *n -= l;
    }
    while ((st->flags & 2) && *n) {
        size_t k = *n - 1;
        while (k && ((uint8_t)(*s)[k] & 0xc0) == 0x80)
            k--;
        if (!radi_utf8_next(*s + k, *n - k, &cp) || !radi_cp_space(cp))
            break;
        *n = k;
    }
}

rad_status radi_norm_run(const struct radi_norm *nm, struct radi_rxctx *rx, const char **s,
                         size_t *n, struct radi_str buf[2], struct rad_err *err)
{
    int cur = 0;
    for (size_t i = 0; i < nm->n; i++) {
        const struct step *p = &nm->step[i];
        struct radi_str *o = &buf[cur];
        bool wrote = true;
        radi_str_clear(o);
        switch (p->st->kind) {
        case RADI_STEP_NFC: case RADI_STEP_NFKC: case RADI_STEP_NFD: case RADI_STEP_NFKD:
            RAD_TRY(unicode_form((int)p->st->kind, *s, *n, o, &wrote, err));
            break;
        case RADI_STEP_STRIP:
            strip(p->st, s, n);
            continue;
        case RADI_STEP_REPLACE:
            RAD_TRY(replace(p, rx, *s, *n, o, &wrote, err));
            break;
        case RADI_STEP_PREPEND:
            if (!*n)
                continue;
            radi_str_add(o, p->st->arg0.s ? p->st->arg0.s : "", p->st->arg0.n);
            radi_str_add(o, *s, *n);
            break;
        case RADI_STEP_PRECOMPILED:
            charsmap_run(p->map, *s, *n, o);
            break;
        case RADI_STEP_BERT:
            RAD_TRY(bert(p->st, *s, *n, o, err));
            break;
        default:
            each_char(p->st, *s, *n, o);
        }
        if (o->failed)
            return rad_fail(err, RAD_E_NOMEM, "out of memory for a text of %zu bytes", *n);
        if (!wrote)
            continue;
        *s = o->s ? o->s : "";
        *n = o->len;
        cur ^= 1;
    }
    return RAD_OK;
}

static bool is_norm(uint32_t kind)
{
    return (kind >= 1 && kind <= 31) || (kind >= 128 && kind <= 143);
}

rad_status radi_norm_new(const struct radi_tok_spec *s, struct radi_norm **out,
                         struct rad_err *err)
{
    *out = NULL;
    struct radi_norm *nm = radi_calloc(1, sizeof *nm);
    if (!nm || !(nm->step = radi_calloc(s->n_steps ? s->n_steps : 1, sizeof *nm->step))) {
        radi_norm_free(nm);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for the normaliser");
    }
    rad_status st = RAD_OK;
    for (size_t i = 0; !st && i < s->n_steps; i++) {
        const struct radi_tok_step *p = &s->step[i];
        if (!is_norm(p->kind))
            continue;
        struct step *q = &nm->step[nm->n++];
        q->st = p;
        if (p->kind == RADI_STEP_REPLACE) {
            struct radi_str lit = { 0 };
            for (size_t k = 0; !(p->flags & 1) && k < p->arg0.n; k++) {
                if ((uint8_t)p->arg0.s[k] < 127 && radi_cp_punct((uint8_t)p->arg0.s[k]))
                    radi_str_addc(&lit, '\\');
                radi_str_addc(&lit, p->arg0.s[k]);
            }
            if (p->flags & 1)
                st = radi_regex_new(p->arg0.s ? p->arg0.s : "", p->arg0.n, &q->re, err);
            else
                st = radi_regex_new(lit.s ? lit.s : "", lit.len, &q->re, err);
            radi_str_release(&lit);
        } else if (p->kind == RADI_STEP_PRECOMPILED)
            st = charsmap_new(&p->arg0, &q->map, err);
        else if (p->kind > RADI_STEP_PREPEND && p->kind < 128)
            st = rad_fail(err, RAD_E_UNSUPPORTED, "normaliser step %u", p->kind);
        else if (p->kind > RADI_STEP_NMT)
            st = rad_fail(err, RAD_E_UNSUPPORTED, "normaliser step %u", p->kind);
        if (st)
            rad_fail_in(err, st, "normalizer");
    }
    if (st) {
        radi_norm_free(nm);
        return st;
    }
    *out = nm;
    return RAD_OK;
}

void radi_norm_free(struct radi_norm *nm)
{
    if (!nm)
        return;
    for (size_t i = 0; i < nm->n; i++) {
        radi_regex_free(nm->step[i].re);
        charsmap_free(nm->step[i].map);
    }
    radi_free(nm->step);
    radi_free(nm);
}

bool radi_norm_empty(const struct radi_norm *nm)
{
    return nm->n == 0;
}
