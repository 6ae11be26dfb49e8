/* SPDX-License-Identifier: Apache-2.0 */
/* Owns "%" formatting and str.format. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "text/template.h"

#include "banned.h"

enum { MAX_WIDTH = 1 << 20, MAX_PLACES = 300 };

struct spec {
    char fill[5], align, sign, conv;
    bool alt, zero, comma, has_prec;
    int64_t width, prec;
};

/* A double in one of e f g and their capitals, with a point whatever the
 * locale says. "#" changes nothing here. */
static void put_double(struct radi_jsb *b, double f, int places, char conv)
{
    char text[700];
    if (!isfinite(f)) {
        radi_jsb_adds(b, isnan(f) ? "nan" : "inf");
        return;
    }
    switch (conv) {
    case 'e': snprintf(text, sizeof text, "%.*e", places, f); break;
    case 'E': snprintf(text, sizeof text, "%.*E", places, f); break;
    case 'g': snprintf(text, sizeof text, "%.*g", places, f); break;
    case 'G': snprintf(text, sizeof text, "%.*G", places, f); break;
    default: snprintf(text, sizeof text, "%.*f", places, f); break;
    }
    for (const char *p = text; *p; p++)
        radi_jsb_addc(b, *p == ',' ? '.' : *p);
}

static void group_thousands(struct radi_jsb *b, const char *s, size_t n)
{
    size_t whole = 0;
    while (whole < n && s[whole] >= '0' && s[whole] <= '9')
        whole++;
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % 3 == 0)
            radi_jsb_addc(b, ',');
        radi_jsb_addc(b, s[i]);
    }
    radi_jsb_add(b, s + whole, n - whole);
}

/* Sign, prefix and digits padded to the width. */
static void pad(struct radi_jsb *b, const struct spec *o, const char *sign, struct radi_jv body,
                char align)
{
    int64_t n = (int64_t)strlen(sign) + (int64_t)body.s->chars, room = o->width - n;
    int64_t left = align == '>' ? room : align == '^' ? room / 2 : 0;
    const char *fill = o->fill[0] ? o->fill : " ";
    if (align == '=') {
        radi_jsb_adds(b, sign);
        radi_jsb_fill(b, o->zero && !o->fill[0] ? "0" : fill,
                      o->zero && !o->fill[0] ? 1 : strlen(fill), room);
        radi_jsb_str(b, body.s);
        return;
    }
    radi_jsb_fill(b, fill, strlen(fill), left);
    radi_jsb_adds(b, sign);
    radi_jsb_str(b, body.s);
    radi_jsb_fill(b, fill, strlen(fill), room - RADI_MAX(left, (int64_t)0));
}

static void put_number(struct radi_jsb *b, struct spec *o, struct radi_jv v)
{
    struct radi_jsb d = { .ev = b->ev };
    bool neg = v.kind == J_FLOAT ? signbit(v.f) && !isnan(v.f) : v.kind == J_INT && v.i < 0;
    char sign[4] = { 0 }, text[80];
    size_t s = 0;

    if (neg || o->sign == '+' || o->sign == ' ')
        sign[s++] = neg ? '-' : o->sign;
    if (strchr("eEfFgG%", o->conv)) {
        double f = fabs(radi_j_num(v));
        int places = o->has_prec ? (int)o->prec : 6;
        if (o->conv == '%')
            f *= 100;
        put_double(&d, f, places, o->conv);
        if (o->conv == '%')
            radi_jsb_addc(&d, '%');
    } else {
        uint64_t u = v.kind == J_BOOL ? v.b : v.i < 0 ? 0 - (uint64_t)v.i : (uint64_t)v.i;
        size_t n = 0;
        unsigned base = o->conv == 'x' || o->conv == 'X' ? 16 : o->conv == 'o' ? 8
                      : o->conv == 'b' ? 2 : 10;
        const char *digit = o->conv == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
        do
            text[n++] = digit[u % base];
        while (u /= base);
        if (o->alt && base != 10) {
            sign[s++] = '0';
            sign[s++] = o->conv;
        }
        for (int64_t i = (int64_t)n; o->has_prec && i < o->prec; i++)
            radi_jsb_addc(&d, '0');
        while (n)
            radi_jsb_addc(&d, text[--n]);
    }
    if (o->comma) {
        struct radi_jsb g = { .ev = b->ev };
        group_thousands(&g, d.p, d.len);
        d = g;
    }
    pad(b, o, sign, radi_jsb_done(&d), o->align ? o->align : o->zero ? '=' : '>');
}

/* ---- % */
struct percent {
    struct radi_jev *ev;
    const struct radi_jstr *fmt;
    size_t i;
    struct radi_jv args;
    size_t used;
    bool tuple, markup;     /* markup: what goes in is escaped */
};

static _Noreturn void incomplete(struct percent *p)
{
    radi_j_fail(p->ev, RAD_E_FORMAT, "incomplete format");
}

static struct radi_jv next_arg(struct percent *p)
{
    if (p->tuple ? p->used >= p->args.q->n : p->used > 0)
        radi_j_fail(p->ev, RAD_E_FORMAT, "not enough arguments for format string");
    p->used++;
    return p->tuple ? p->args.q->v[p->used - 1] : p->args;
}

static int64_t size_at(struct percent *p)
{
    int64_t x = 0;
    if (p->i < p->fmt->len && p->fmt->p[p->i] == '*') {
        struct radi_jv v = next_arg(p);
        if (v.kind != J_INT)
            radi_j_fail(p->ev, RAD_E_FORMAT, "* wants int");
        p->i++;
        x = v.i;
    } else
        for (; p->i < p->fmt->len && p->fmt->p[p->i] >= '0' && p->fmt->p[p->i] <= '9'; p->i++)
            if (x <= MAX_WIDTH)
                x = x * 10 + (p->fmt->p[p->i] - '0');
    if (x > MAX_WIDTH || x < -MAX_WIDTH)
        radi_j_fail(p->ev, RAD_E_FULL, "width is larger than %d", MAX_WIDTH);
    return x;
}

static struct radi_jv as_int(struct radi_jev *ev, struct radi_jv v, char conv)
{
    bool hex = strchr("oxX", conv) != NULL;
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind == J_FLOAT && !hex && v.f > -9.2e18 && v.f < 9.2e18)
        return radi_jv_int((int64_t)v.f);
    if (v.kind == J_BIG)
        radi_j_fail(ev, RAD_E_UNSUPPORTED, "integer of more than 64 bits in a format");
    if (v.kind != J_INT && v.kind != J_BOOL)
        radi_j_fail(ev, RAD_E_FORMAT, "%%%c format: %s is required, not %s", conv,
                    hex ? "an integer" : "a real number", radi_j_type(v));
    return v;
}

static void convert(struct percent *p, struct radi_jsb *b, struct spec *o, struct radi_jv v)
{
    struct radi_jsb t = { .ev = p->ev };
    switch (o->conv) {
    case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
        v = as_int(p->ev, v, o->conv);
        if (!strchr("oxX", o->conv))
            o->conv = 'd';
        put_number(b, o, v);
        return;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        if (v.kind == J_UNDEF)
            radi_j_undef_fail(p->ev, v);
        if (!radi_j_is_num(v))
            radi_j_fail(p->ev, RAD_E_FORMAT, "must be real number, not %s", radi_j_type(v));
        if (o->has_prec && o->prec > MAX_PLACES)
            radi_j_fail(p->ev, RAD_E_FULL, "more than %d places", MAX_PLACES);
        put_number(b, o, v);
        return;
    case 'c':
        if (v.kind == J_STR && v.s->chars == 1)
            radi_jsb_str(&t, v.s);
        else if (v.kind == J_INT && v.i >= 0 && v.i < 0x110000)
            radi_jsb_cp(&t, (uint32_t)v.i);
        else
            radi_j_fail(p->ev, RAD_E_FORMAT, "%%c requires int or char");
        break;
    case 'r': case 'a':
        radi_jsb_repr(&t, v);
        break;
    case 's':
        radi_jsb_print(&t, p->markup ? radi_j_escape(p->ev, v) : v);
        break;
    default:
        radi_j_fail(p->ev, RAD_E_FORMAT, "unsupported format character '%c' (0x%x) at index %zu",
                    o->conv >= ' ' && o->conv < 127 ? o->conv : '?', (unsigned char)o->conv,
                    p->i - 1);
    }
    v = radi_jsb_done(&t);
    if (o->has_prec && o->prec < (int64_t)v.s->chars)
        v = radi_jv_sub(p->ev, v, 0, radi_j_byte_at(v.s, (size_t)RADI_MAX(o->prec, 0)));
    o->zero = false;
    pad(b, o, "", v, o->align ? o->align : '>');
}

static void one_percent(struct percent *p, struct radi_jsb *b)
{
    const struct radi_jstr *f = p->fmt;
    struct spec o = { 0 };
    struct radi_jv v = { 0 };

    if (p->i < f->len && f->p[p->i] == '%') {
        radi_jsb_addc(b, '%');
        p->i++;
        return;
    }
    if (p->i < f->len && f->p[p->i] == '(') {
        const char *name = f->p + p->i + 1, *end = memchr(name, ')', f->len - p->i - 1);
        if (!end)
            radi_j_fail(p->ev, RAD_E_FORMAT, "incomplete format key");
        if (p->args.kind != J_DICT)
            radi_j_fail(p->ev, RAD_E_FORMAT, "format requires a mapping");
        struct radi_jv key = radi_jv_borrow(p->ev, name, (size_t)(end - name));
        const struct radi_jv *found = radi_j_find(p->ev, p->args.d, key);
        if (!found)
            radi_j_fail(p->ev, RAD_E_FORMAT, "no such key: '%.*s'",
                        (int)RADI_MIN(key.s->len, (size_t)200), key.s->p);
        v = *found;
        p->i += (size_t)(end - name) + 2;
        p->used = 1;
    }
    for (; p->i < f->len && memchr("#0- +", f->p[p->i], 5); p->i++) {
        char c = f->p[p->i];
        o.alt |= c == '#';
        o.zero |= c == '0';
        if (c == '-')
            o.align = '<';
        else if (c == '+' || (c == ' ' && o.sign != '+'))
            o.sign = c;
    }
    o.width = size_at(p);
    if (o.width < 0) {
        o.width = -o.width;
        o.align = '<';
    }
    if (p->i < f->len && f->p[p->i] == '.') {
        p->i++;
        o.prec = size_at(p);
        o.has_prec = true;
    }
    while (p->i < f->len && memchr("hlL", f->p[p->i], 3))
        p->i++;
    if (p->i >= f->len)
        incomplete(p);
    o.conv = f->p[p->i++];
    if (!radi_jv_given(v))
        v = next_arg(p);
    convert(p, b, &o, v);
}

struct radi_jv radi_j_percent(struct radi_jev *ev, struct radi_jv fmt, struct radi_jv args)
{
    struct percent p = { .ev = ev, .fmt = fmt.s, .args = args, .markup = fmt.markup };
    struct radi_jsb b = { .ev = ev };

    p.tuple = args.kind == J_SEQ && args.q->type == JQ_TUPLE;
    while (p.i < fmt.s->len) {
        char c = fmt.s->p[p.i++];
        if (c == '%')
            one_percent(&p, &b);
        else
            radi_jsb_addc(&b, c);
    }
    bool mapping = args.kind == J_DICT || (args.kind == J_SEQ && !p.tuple);
    if (p.tuple ? p.used < args.q->n : p.used == 0 && !mapping)
        radi_j_fail(ev, RAD_E_FORMAT, "not all arguments converted during string formatting");
    struct radi_jv v = radi_jsb_done(&b);
    v.markup = fmt.markup;
    return v;
}

/* ---- str.format */
static int64_t digits(const char *s, size_t n, size_t *i, struct radi_jev *ev)
{
    int64_t x = 0;
    for (; *i < n && s[*i] >= '0' && s[*i] <= '9'; ++*i) {
        x = x * 10 + (s[*i] - '0');
        if (x > MAX_WIDTH)
            radi_j_fail(ev, RAD_E_FULL, "width is larger than %d", MAX_WIDTH);
    }
    return x;
}

static void apply_spec(struct radi_jsb *b, struct radi_jv v, const char *s, size_t n)
{
    struct radi_jev *ev = b->ev;
    struct spec o = { 0 };
    size_t i = 0, k;
    uint32_t cp;

    if (n == 0) {
        radi_jsb_print(b, v);
        return;
    }
    k = radi_utf8_next(s, n, &cp);
    if (k && k < n && memchr("<>=^", s[k], 4)) {
        memcpy(o.fill, s, k);
        o.align = s[k];
        i = k + 1;
    } else if (memchr("<>=^", s[0], 4))
        o.align = s[i++];
    if (i < n && memchr("+- ", s[i], 3))
        o.sign = s[i++];
    if (i < n && s[i] == '#') {
        o.alt = true;
        i++;
    }
    if (i < n && s[i] == '0') {
        o.zero = true;
        i++;
    }
    o.width = digits(s, n, &i, ev);
    if (i < n && s[i] == ',') {
        o.comma = true;
        i++;
    }
    if (i < n && s[i] == '.') {
        i++;
        o.prec = digits(s, n, &i, ev);
        o.has_prec = true;
    }
    o.conv = i < n ? s[i++] : 0;
    if (i < n)
        radi_j_fail(ev, RAD_E_FORMAT, "Invalid format specifier");
    if (radi_j_is_num(v) && o.conv != 's') {
        bool real = o.conv && strchr("eEfFgG%", o.conv);
        if (real && o.prec > MAX_PLACES)
            radi_j_fail(ev, RAD_E_FULL, "more than %d places", MAX_PLACES);
        if (v.kind == J_FLOAT && !o.conv && !o.has_prec) {
            struct radi_jsb t = { .ev = ev };
            radi_jsb_float(&t, fabs(v.f));
            pad(b, &o, signbit(v.f) ? "-" : o.sign == '+' ? "+" : "", radi_jsb_done(&t),
                o.align ? o.align : o.zero ? '=' : '>');
            return;
        }
        if (v.kind == J_FLOAT && !o.conv)
            o.conv = 'g';
        else if (!o.conv)
            o.conv = 'd';
        else if (!real && (v.kind == J_FLOAT || !strchr("bdoxX", o.conv)))
            radi_j_fail(ev, RAD_E_FORMAT, "Unknown format code '%c' for object of type '%s'",
                        o.conv, radi_j_type(v));
        put_number(b, &o, v);
        return;
    }
    if (o.conv && o.conv != 's')
        radi_j_fail(ev, RAD_E_FORMAT, "Unknown format code '%c' for object of type '%s'",
                    o.conv >= ' ' ? o.conv : '?', radi_j_type(v));
    if (v.kind != J_STR && v.kind != J_UNDEF)
        radi_j_fail(ev, RAD_E_FORMAT, "unsupported format string passed to %s.__format__",
                    radi_j_type(v));
    v = radi_jv_print(ev, v);
    if (o.has_prec && o.prec < (int64_t)v.s->chars)
        v = radi_jv_sub(ev, v, 0, radi_j_byte_at(v.s, (size_t)o.prec));
    o.zero = false;
    pad(b, &o, "", v, o.align ? o.align : '<');
}

/* "name.attr[key]" or a number, or nothing for the next one. */
static struct radi_jv field(struct radi_jev *ev, const char *s, size_t n,
                            const struct radi_jargs *args, size_t *next)
{
    size_t i = 0;
    struct radi_jv v = { 0 };
    while (i < n && s[i] != '.' && s[i] != '[')
        i++;
    size_t k = 0;
    int64_t at = i ? digits(s, i, &k, ev) : (int64_t)(*next)++;
    if (k == i) {
        if ((uint64_t)at >= args->n)
            radi_j_fail(ev, RAD_E_FORMAT, "Replacement index %lld out of range for positional "
                        "args tuple", (long long)at);
        v = args->v[at];
    } else {
        for (size_t j = 0; j < args->nkw; j++)
            if (args->kw[j].name->len == i && memcmp(args->kw[j].name->p, s, i) == 0)
                v = args->kw[j].v;
        if (!radi_jv_given(v))
            radi_j_fail(ev, RAD_E_FORMAT, "'%.*s'", (int)RADI_MIN(i, (size_t)200), s);
    }
    while (i < n) {
        bool dot = s[i++] == '.';
        size_t from = i;
        while (i < n && (dot ? s[i] != '.' && s[i] != '[' : s[i] != ']'))
            i++;
        struct radi_jv key = radi_jv_borrow(ev, s + from, i - from);
        if (dot)
            v = radi_j_attr(ev, v, key.s);
        else {
            size_t j = 0;
            int64_t x = digits(key.s->p, key.s->len, &j, ev);
            v = radi_j_item(ev, v, j == key.s->len && j ? radi_jv_int(x) : key);
            i += i < n;
        }
    }
    return v;
}

struct radi_jv radi_j_str_format(struct radi_jev *ev, struct radi_jv fmt,
                                 const struct radi_jargs *args)
{
    struct radi_jsb b = { .ev = ev };
    const char *s = fmt.s->p;
    size_t n = fmt.s->len, next = 0;

    for (size_t i = 0; i < n; i++) {
        if ((s[i] == '{' || s[i] == '}') && i + 1 < n && s[i + 1] == s[i]) {
            radi_jsb_addc(&b, s[i++]);
            continue;
        }
        if (s[i] == '}')
            radi_j_fail(ev, RAD_E_FORMAT, "Single '}' encountered in format string");
        if (s[i] != '{') {
            radi_jsb_addc(&b, s[i]);
            continue;
        }
        size_t from = ++i, spec;
        while (i < n && s[i] != '}' && s[i] != '{')
            i++;
        if (i < n && s[i] == '{')
            radi_j_fail(ev, RAD_E_UNSUPPORTED, "fields inside a format specifier");
        if (i >= n)
            radi_j_fail(ev, RAD_E_FORMAT, "expected '}' before end of string");
        for (spec = from; spec < i && s[spec] != ':' && s[spec] != '!';)
            spec++;
        struct radi_jv v = field(ev, s + from, spec - from, args, &next);
        if (s[spec] == '!') {
            struct radi_jsb t = { .ev = ev };
            if (spec + 1 < i && s[spec + 1] == 'r')
                radi_jsb_repr(&t, v);
            else
                radi_jsb_print(&t, v);
            v = radi_jsb_done(&t);
            spec += 2;
        }
        spec = RADI_MIN(spec + 1, i);
        apply_spec(&b, v, s + spec, i - spec);
    }
    struct radi_jv v = radi_jsb_done(&b);
    v.markup = fmt.markup;
    return v;
}
