/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the filters that make text or numbers of one value. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "text/template.h"

#include "banned.h"

#define FILTER(name)                                                                      \
    static struct radi_jv name(struct radi_jev *ev, struct radi_jv v,                     \
                               const struct radi_jv *a, const struct radi_jargs *raw)
#define UNUSED (void)ev, (void)v, (void)a, (void)raw

/* A method of str on the text of any value, without its own arguments. */
static struct radi_jv method(struct radi_jev *ev, const char *name, struct radi_jv v,
                             const struct radi_jv *args, size_t n)
{
    struct radi_jargs pass = { .n = n };
    struct radi_jv copy[3];
    for (size_t i = 0; i < n && i < 3; i++)
        copy[i] = args[i];
    pass.v = copy;
    return radi_j_apply(ev, radi_j_lookup(radi_j_str_methods, name, strlen(name)),
                        radi_jv_print(ev, v), &pass);
}

FILTER(f_upper) { UNUSED; return method(ev, "upper", v, NULL, 0); }
FILTER(f_lower) { UNUSED; return method(ev, "lower", v, NULL, 0); }
FILTER(f_capitalize) { UNUSED; return method(ev, "capitalize", v, NULL, 0); }
FILTER(f_trim) { UNUSED; return method(ev, "strip", v, a, radi_jv_given(a[0])); }
FILTER(f_string) { UNUSED; return radi_jv_print(ev, v); }
FILTER(f_escape) { UNUSED; return radi_j_escape(ev, v); }

FILTER(f_forceescape)
{
    UNUSED;
    v = radi_jv_print(ev, v);
    v.markup = false;
    return radi_j_escape(ev, v);
}

FILTER(f_safe)
{
    UNUSED;
    v = radi_jv_print(ev, v);
    v.markup = true;
    return v;
}

FILTER(f_center)
{
    struct radi_jv width = radi_jv_given(a[0]) ? a[0] : radi_jv_int(80);
    UNUSED;
    return method(ev, "center", v, &width, 1);
}

FILTER(f_replace)
{
    struct radi_jv args[3] = { radi_jv_print(ev, a[0]), radi_jv_print(ev, a[1]), a[2] };
    UNUSED;
    v = radi_jv_print(ev, v);
    v.markup = false;
    return method(ev, "replace", v, args, radi_jv_given(a[2]) ? 3 : 2);
}

/* Words begin after white space and any of -({[< */
FILTER(f_title)
{
    struct radi_jsb b = { .ev = ev };
    size_t k, from = 0;
    UNUSED;
    v = radi_jv_print(ev, v);
    for (size_t i = 0; i <= v.s->len; i += k ? k : 1) {
        uint32_t cp = ' ';
        k = i < v.s->len ? radi_utf8_next(v.s->p + i, v.s->len - i, &cp) : 1;
        if (i < v.s->len && !radi_j_is_space(cp) && !(cp && cp < 128 && strchr("-({[<", (int)cp)))
            continue;
        if (i > from)
            radi_jsb_str(&b, radi_j_recase(ev, radi_jv_sub(ev, v, from, i - from),
                                           JC_CAPITALIZE).s);
        if (i < v.s->len)
            radi_jsb_add(&b, v.s->p + i, k);
        from = i + k;
    }
    return radi_jsb_done(&b);
}

FILTER(f_default)
{
    bool boolean = radi_jv_given(a[1]) && radi_j_truth(a[1]);
    UNUSED;
    if (v.kind == J_UNDEF || (boolean && !radi_j_truth(v)))
        return radi_jv_given(a[0]) ? a[0] : radi_jv_borrow(ev, "", 0);
    return v;
}

FILTER(f_format)
{
    struct radi_jv args;
    UNUSED;
    v = radi_jv_print(ev, v);
    if (raw->nkw) {
        struct radi_jdict *d = radi_j_dict(ev, raw->nkw);
        if (raw->n)
            radi_j_fail(ev, RAD_E_FORMAT, "can't handle positional and keyword arguments at the "
                        "same time");
        for (size_t i = 0; i < raw->nkw; i++)
            radi_j_put(ev, d, radi_jv_str(raw->kw[i].name), raw->kw[i].v);
        args = radi_jv_dict(d);
    } else {
        struct radi_jseq *q = radi_j_seq(ev, JQ_TUPLE, raw->n);
        if (raw->n)
            memcpy(q->v, raw->v, raw->n * sizeof *q->v);
        q->n = raw->n;
        args = radi_jv_seq(q);
    }
    return radi_j_percent(ev, v, args);
}

FILTER(f_indent)
{
    struct radi_jsb pad = { .ev = ev }, b = { .ev = ev }, all = { .ev = ev };
    bool first = radi_jv_given(a[1]) && radi_j_truth(a[1]);
    bool blank = radi_jv_given(a[2]) && radi_j_truth(a[2]);
    UNUSED;

    if (a[0].kind == J_STR)
        radi_jsb_str(&pad, a[0].s);
    else if (!radi_jv_given(a[0]))
        radi_jsb_adds(&pad, "    ");
    else if (a[0].kind == J_INT || a[0].kind == J_BOOL)
        radi_jsb_fill(&pad, " ", 1, a[0].kind == J_INT ? a[0].i : a[0].b);
    else
        radi_j_fail(ev, RAD_E_FORMAT, "can't multiply sequence by non-int of type '%s'",
                    radi_j_type(a[0]));
    if (v.kind != J_STR && v.kind != J_UNDEF)
        radi_j_fail(ev, RAD_E_FORMAT, "unsupported operand type(s) for +=: '%s' and 'str'",
                    radi_j_type(v));
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    radi_jsb_str(&all, v.s);
    radi_jsb_addc(&all, '\n');
    struct radi_jv lines = method(ev, "splitlines", radi_jsb_done(&all), NULL, 0);
    for (size_t i = 0; i < lines.q->n; i++) {
        const struct radi_jstr *line = lines.q->v[i].s;
        if (i)
            radi_jsb_addc(&b, '\n');
        if (i ? blank || line->len : first)
            radi_jsb_add(&b, pad.p, pad.len);
        radi_jsb_str(&b, line);
    }
    struct radi_jv r = radi_jsb_done(&b);
    r.markup = v.markup;
    return r;
}

FILTER(f_truncate)
{
    int64_t length = 255, leeway = 5;
    struct radi_jv end = radi_jv_given(a[2]) ? radi_jv_print(ev, a[2])
                                             : radi_jv_borrow(ev, "...", 3);
    UNUSED;
    v = radi_jv_print(ev, v);
    if (a[0].kind == J_INT)
        length = a[0].i;
    if (a[3].kind == J_INT)
        leeway = a[3].i;
    if (length < (int64_t)end.s->chars)
        radi_j_fail(ev, RAD_E_FORMAT, "expected length >= %zu, got %lld", end.s->chars,
                    (long long)length);
    if ((int64_t)v.s->chars <= length || (int64_t)v.s->chars - length <= leeway)
        return v;
    size_t cut = radi_j_byte_at(v.s, (size_t)(length - (int64_t)end.s->chars));
    if (!radi_jv_given(a[1]) || !radi_j_truth(a[1])) {
        size_t i = cut;
        while (i && v.s->p[i - 1] != ' ')
            i--;
        if (i)
            cut = i - 1;
    }
    return radi_jv_cat(ev, radi_jv_sub(ev, v, 0, cut), end);
}

FILTER(f_wordcount)
{
    int64_t n = 0;
    bool in_word = false;
    size_t k;
    UNUSED;
    v = radi_jv_print(ev, v);
    for (size_t i = 0; i < v.s->len; i += k ? k : 1) {
        uint32_t cp;
        k = radi_utf8_next(v.s->p + i, v.s->len - i, &cp);
        struct radi_jstr one = { v.s->p + i, k, 1, NULL };
        bool word = k && (cp == '_' || radi_j_class(&one, JCL_ALNUM));
        n += word && !in_word;
        in_word = word;
    }
    return radi_jv_int(n);
}

/* ---- URLs */
static void quote(struct radi_jsb *b, const struct radi_jstr *s, bool query)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s->len; i++) {
        unsigned char c = (unsigned char)s->p[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                     (c && strchr("_.-~", c)) || (c == '/' && !query);
        if (plain)
            radi_jsb_addc(b, (char)c);
        else if (query && c == ' ')
            radi_jsb_addc(b, '+');
        else {
            radi_jsb_addc(b, '%');
            radi_jsb_addc(b, hex[c >> 4]);
            radi_jsb_addc(b, hex[c & 15]);
        }
    }
}

FILTER(f_urlencode)
{
    struct radi_jsb b = { .ev = ev };
    UNUSED;
    if (v.kind != J_DICT && (v.kind == J_STR || !radi_j_iterable(v))) {
        quote(&b, radi_jv_print(ev, v).s, false);
        return radi_jsb_done(&b);
    }
    struct radi_jargs none = { 0 };
    if (v.kind == J_DICT)
        v = radi_j_apply(ev, radi_j_lookup(radi_j_dict_methods, "items", 5), v, &none);
    const struct radi_jseq *q = radi_j_iter(ev, v);
    for (size_t i = 0; i < q->n; i++) {
        const struct radi_jseq *pair = radi_j_iter(ev, q->v[i]);
        if (pair->n != 2)
            radi_j_fail(ev, RAD_E_FORMAT, "want pairs of key and value");
        if (i)
            radi_jsb_addc(&b, '&');
        quote(&b, radi_jv_print(ev, pair->v[0]).s, true);
        radi_jsb_addc(&b, '=');
        quote(&b, radi_jv_print(ev, pair->v[1]).s, true);
    }
    return radi_jsb_done(&b);
}

/* ---- numbers */
/* Digits of a Python literal: white space around, "_" between digits. */
static bool clean(struct radi_jev *ev, const struct radi_jstr *s, struct radi_jsb *b)
{
    size_t from = radi_j_lstrip(s->p, s->len), to = from + radi_j_rstrip(s->p + from,
                                                                         s->len - from);
    *b = (struct radi_jsb){ .ev = ev };
    for (size_t i = from; i < to; i++) {
        char c = s->p[i];
        if (c == '_' && i > from && i + 1 < to && s->p[i - 1] != '_' && s->p[i + 1] != '_')
            continue;
        if (c <= ' ' || c == '_' || c > '~')
            return false;
        radi_jsb_addc(b, c);
    }
    radi_jsb_addc(b, 0);
    return b->len > 1;
}

static bool to_float(struct radi_jev *ev, struct radi_jv v, double *out)
{
    struct radi_jsb b;
    if (radi_j_is_num(v)) {
        *out = radi_j_num(v);
        return true;
    }
    if ((v.kind != J_STR && v.kind != J_BIG) || !clean(ev, v.s, &b))
        return false;
    const char *s = b.p + (b.p[0] == '+' || b.p[0] == '-');
    static const char *const words[] = { "inf", "infinity", "nan" };
    for (size_t i = 0; i < RADI_COUNT(words); i++)
        if (strcasecmp(s, words[i]) == 0) {
            *out = i == 2 ? (double)NAN : b.p[0] == '-' ? -HUGE_VAL : HUGE_VAL;
            return true;
        }
    if (strpbrk(b.p, "xXpP"))
        return false;
    return radi_parse_f64(b.p[0] == '+' ? b.p + 1 : b.p, out);
}

/* int(text, base) */
static bool to_int(struct radi_jev *ev, const struct radi_jstr *s, int64_t base, int64_t *out)
{
    struct radi_jsb b;
    if (!clean(ev, s, &b))
        return false;
    const char *p = b.p + (b.p[0] == '+' || b.p[0] == '-');
    if (p[0] == '0' && p[1]) {
        char c = (char)(p[1] | 32);
        int64_t has = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (has && (base == has || base == 0)) {
            base = has;
            p += 2;
        }
    }
    if (base == 0)
        base = 10;
    int64_t x = 0;
    if (!*p)
        return false;
    for (; *p; p++) {
        int d = *p >= '0' && *p <= '9' ? *p - '0' : (*p | 32) >= 'a' && (*p | 32) <= 'z'
              ? (*p | 32) - 'a' + 10 : 99;
        if (d >= base)
            return false;
        if (__builtin_mul_overflow(x, base, &x) || __builtin_add_overflow(x, d, &x))
            radi_j_fail(ev, RAD_E_UNSUPPORTED, "integer of more than 64 bits");
    }
    *out = b.p[0] == '-' ? -x : x;
    return true;
}

static struct radi_jv whole_of(struct radi_jev *ev, double f)
{
    if (!(f > -9.2e18 && f < 9.2e18))
        radi_j_fail(ev, isnan(f) || isinf(f) ? RAD_E_FORMAT : RAD_E_UNSUPPORTED,
                    "cannot convert this float to an integer");
    return radi_jv_int((int64_t)f);
}

FILTER(f_int)
{
    struct radi_jv def = radi_jv_given(a[0]) ? a[0] : radi_jv_int(0);
    int64_t base = a[1].kind == J_INT ? a[1].i : 10, i;
    double f;
    UNUSED;
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind == J_INT || v.kind == J_BIG)
        return v;
    if (v.kind == J_BOOL)
        return radi_jv_int(v.b);
    if (v.kind == J_STR && to_int(ev, v.s, base, &i))
        return radi_jv_int(i);
    if (!to_float(ev, v, &f) || isnan(f))
        return def;
    return whole_of(ev, f);
}

FILTER(f_float)
{
    double f;
    UNUSED;
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (to_float(ev, v, &f))
        return radi_jv_float(f);
    return radi_jv_given(a[0]) ? a[0] : radi_jv_float(0);
}

FILTER(f_abs)
{
    UNUSED;
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind == J_FLOAT)
        return radi_jv_float(fabs(v.f));
    if (v.kind == J_BOOL)
        return radi_jv_int(v.b);
    if (v.kind != J_INT)
        radi_j_fail(ev, RAD_E_FORMAT, "bad operand type for abs(): '%s'", radi_j_type(v));
    if (v.i == INT64_MIN)
        radi_j_fail(ev, RAD_E_UNSUPPORTED, "integer of more than 64 bits in arithmetic");
    return radi_jv_int(v.i < 0 ? -v.i : v.i);
}

/* Half to even in decimal, on the exact value, as Python's round. */
static double round_to(double f, int64_t places)
{
    char text[512];
    double r = f;
    if (places > 300 || !isfinite(f))
        return f;
    if (places < 0) {
        double unit = pow(10, (double)-places);
        return isfinite(unit) ? nearbyint(f / unit) * unit : 0;
    }
    snprintf(text, sizeof text, "%.*f", (int)RADI_MIN(places, (int64_t)180), f);
    char *point = strpbrk(text, ",");
    if (point)
        *point = '.';
    if (!radi_parse_f64(text, &r))
        return f;
    return r;
}

FILTER(f_round)
{
    int64_t places = a[0].kind == J_INT ? a[0].i : 0;
    const char *const methods[] = { "common", "ceil", "floor" };
    size_t m = 0;
    UNUSED;
    if (a[1].kind == J_STR)
        for (; m < 3 && !radi_j_streq(a[1].s, methods[m]); m++)
            ;
    if (m == 3)
        radi_j_fail(ev, RAD_E_FORMAT, "method must be common, ceil or floor");
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (!radi_j_is_num(v))
        radi_j_fail(ev, RAD_E_FORMAT, "type %s doesn't define __round__ method", radi_j_type(v));
    if (m == 0 && v.kind != J_FLOAT) {
        if (places >= 0)
            return radi_jv_int(v.kind == J_BOOL ? v.b : v.i);
        return whole_of(ev, round_to(radi_j_num(v), places));
    }
    if (m == 0)
        return radi_jv_float(round_to(v.f, places));
    double unit = pow(10, (double)places), x = radi_j_num(v) * unit;
    return radi_jv_float((m == 1 ? ceil(x) : floor(x)) / unit);
}

/* ---- JSON, with transformers' parameters */
FILTER(f_tojson)
{
    struct radi_jjson o = { .ascii = radi_jv_given(a[0]) && radi_j_truth(a[0]),
                            .sort = radi_jv_given(a[3]) && radi_j_truth(a[3]) };
    struct radi_jsb b = { .ev = ev };
    UNUSED;

    o.indent = radi_jv_none();
    if (a[1].kind == J_STR)
        o.indent = a[1];
    else if (a[1].kind == J_INT || a[1].kind == J_BOOL) {
        struct radi_jsb pad = { .ev = ev };
        radi_jsb_fill(&pad, " ", 1, a[1].kind == J_INT ? a[1].i : a[1].b);
        o.indent = radi_jsb_done(&pad);
    } else if (radi_jv_given(a[1]) && a[1].kind != J_NONE)
        radi_j_fail(ev, RAD_E_FORMAT, "indent must be an integer or a string, not %s",
                    radi_j_type(a[1]));
    o.item_sep = o.indent.kind == J_NONE ? radi_jv_borrow(ev, ", ", 2) : radi_jv_borrow(ev, ",", 1);
    o.key_sep = radi_jv_borrow(ev, ": ", 2);
    if (a[2].kind == J_SEQ && a[2].q->n == 2 && a[2].q->v[0].kind == J_STR &&
        a[2].q->v[1].kind == J_STR) {
        o.item_sep = a[2].q->v[0];
        o.key_sep = a[2].q->v[1];
    } else if (radi_jv_given(a[2]) && a[2].kind != J_NONE)
        radi_j_fail(ev, RAD_E_FORMAT, "separators must be two strings");
    radi_jsb_json(&b, v, &o);
    return radi_jsb_done(&b);
}

const struct radi_jdef radi_j_filters_text[] = {
    { "tojson", f_tojson, "ensure_ascii,indent,separators,sort_keys", 0 },
    { "trim", f_trim, "chars", 0 },
    { "string", f_string, "", 0 },
    { "default", f_default, "default_value,boolean", 0 },
    { "d", f_default, "default_value,boolean", 0 },
    { "upper", f_upper, "", 0 },
    { "lower", f_lower, "", 0 },
    { "title", f_title, "", 0 },
    { "capitalize", f_capitalize, "", 0 },
    { "replace", f_replace, "old,new,count", 2 },
    { "indent", f_indent, "width,first,blank", 0 },
    { "safe", f_safe, "", 0 },
    { "escape", f_escape, "", 0 },
    { "e", f_escape, "", 0 },
    { "forceescape", f_forceescape, "", 0 },
    { "center", f_center, "width", 0 },
    { "format", f_format, NULL, 0 },
    { "truncate", f_truncate, "length,killwords,end,leeway", 0 },
    { "wordcount", f_wordcount, "", 0 },
    { "urlencode", f_urlencode, "", 0 },
    { "int", f_int, "default,base", 0 },
    { "float", f_float, "default", 0 },
    { "abs", f_abs, "", 0 },
    { "round", f_round, "precision,method", 0 },
    { "filesizeformat", NULL, NULL, 0 },
    { "pprint", NULL, NULL, 0 },
    { "striptags", NULL, NULL, 0 },
    { "urlize", NULL, NULL, 0 },
    { "wordwrap", NULL, NULL, 0 },
    { "xmlattr", NULL, NULL, 0 },
    { NULL, NULL, NULL, 0 },
};

const struct radi_jdef *radi_j_filter(const char *s, size_t n)
{
    const struct radi_jdef *d = radi_j_lookup(radi_j_filters_text, s, n);
    return d ? d : radi_j_lookup(radi_j_filters_seq, s, n);
}
