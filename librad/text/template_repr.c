/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the text of values: Python's str and repr, and HTML escaping. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "text/template.h"

#include "banned.h"

/* The shortest digits that read back as the same number, laid out as Python
 * does: an exponent below 1e-4 and from 1e16 on. */
void radi_jsb_float(struct radi_jsb *b, double f)
{
    char text[40], digits[24], back[48];
    int n = 0, exp = 0;
    double again;

    if (isnan(f) || isinf(f)) {
        radi_jsb_adds(b, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    if (signbit(f))
        radi_jsb_addc(b, '-');
    f = fabs(f);
    for (int p = 0; p < 17; p++) {
        snprintf(text, sizeof text, "%.*e", p, f);
        const char *e = strchr(text, 'e');      /* the point may be the locale's */
        int64_t x = 0;
        n = 0;
        for (const char *c = text; c < e && n < 20; c++)
            if (*c >= '0' && *c <= '9')
                digits[n++] = *c;
        (void)radi_parse_i64(e[1] == '+' ? e + 2 : e + 1, &x);
        exp = (int)x;
        snprintf(back, sizeof back, "%.*se%d", n, digits, exp - (n - 1));
        if (radi_parse_f64(back, &again) && again == f)
            break;
    }
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (exp < -4 || exp >= 16) {
        radi_jsb_addc(b, digits[0]);
        if (n > 1)
            radi_jsb_addc(b, '.');
        radi_jsb_add(b, digits + 1, (size_t)n - 1);
        snprintf(text, sizeof text, "e%c%02d", exp < 0 ? '-' : '+', exp < 0 ? -exp : exp);
        radi_jsb_adds(b, text);
        return;
    }
    if (exp < 0) {
        radi_jsb_adds(b, "0.");
        radi_jsb_fill(b, "0", 1, -exp - 1);
        radi_jsb_add(b, digits, (size_t)n);
        return;
    }
    for (int i = 0; i <= exp; i++)
        radi_jsb_addc(b, i < n ? digits[i] : '0');
    radi_jsb_addc(b, '.');
    if (n > exp + 1)
        radi_jsb_add(b, digits + exp + 1, (size_t)(n - exp - 1));
    else
        radi_jsb_addc(b, '0');
}

static void add_int(struct radi_jsb *b, int64_t i)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)i);
    radi_jsb_adds(b, text);
}

static void repr_str(struct radi_jsb *b, const struct radi_jstr *s)
{
    static const char hex[] = "0123456789abcdef";
    bool one = s->len && memchr(s->p, '\'', s->len), two = s->len && memchr(s->p, '"', s->len);
    char q = one && !two ? '"' : '\'';
    size_t k;

    radi_jsb_addc(b, q);
    for (size_t i = 0; i < s->len; i += k) {
        uint32_t cp;
        k = radi_utf8_next(s->p + i, s->len - i, &cp);
        if (!k)
            break;
        const char *p = cp && cp < 128 ? strchr("\nn\rr\tt", (int)cp) : NULL;
        if (cp == (uint32_t)q || cp == '\\') {
            radi_jsb_addc(b, '\\');
            radi_jsb_addc(b, (char)cp);
        } else if (p && cp < 0x20) {
            radi_jsb_addc(b, '\\');
            radi_jsb_addc(b, p[1]);
        } else if (radi_j_printable(cp))
            radi_jsb_add(b, s->p + i, k);
        else {
            int width = cp < 0x100 ? 2 : cp < 0x10000 ? 4 : 8;
            radi_jsb_addc(b, '\\');
            radi_jsb_addc(b, width == 2 ? 'x' : width == 4 ? 'u' : 'U');
            while (width--)
                radi_jsb_addc(b, hex[cp >> (width * 4) & 15]);
        }
    }
    radi_jsb_addc(b, q);
}

static void repr_items(struct radi_jsb *b, const struct radi_jseq *q)
{
    for (size_t i = 0; i < q->n; i++) {
        if (i)
            radi_jsb_adds(b, ", ");
        radi_jsb_repr(b, q->v[i]);
    }
}

static void repr_seq(struct radi_jsb *b, const struct radi_jseq *q)
{
    static const char *const open[] = { "[", "(", "", "dict_keys([", "dict_values([",
                                        "dict_items([", "", "" };
    static const char *const close[] = { "]", ")", "", "])", "])", "])", "", "" };
    if (q->type == JQ_RANGE) {
        radi_jsb_adds(b, "range(");
        for (int i = 0; i < (q->range[2] == 1 ? 2 : 3); i++) {
            if (i)
                radi_jsb_adds(b, ", ");
            add_int(b, q->range[i]);
        }
        radi_jsb_addc(b, ')');
        return;
    }
    if (q->type == JQ_GEN || q->type == JQ_REV) {   /* Python prints an address */
        radi_jsb_adds(b, q->type == JQ_GEN ? "<generator object>"
                                           : "<list_reverseiterator object>");
        return;
    }
    radi_jsb_adds(b, open[q->type]);
    repr_items(b, q);
    if (q->type == JQ_TUPLE && q->n == 1)
        radi_jsb_addc(b, ',');
    radi_jsb_adds(b, close[q->type]);
}

static void repr_dict(struct radi_jsb *b, const struct radi_jdict *d)
{
    radi_jsb_addc(b, '{');
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            radi_jsb_adds(b, ", ");
        radi_jsb_repr(b, d->e[i].key);
        radi_jsb_adds(b, ": ");
        radi_jsb_repr(b, d->e[i].v);
    }
    radi_jsb_addc(b, '}');
}

static void repr_func(struct radi_jsb *b, const struct radi_jfunc *fn)
{
    if (fn->type == JF_MACRO) {
        radi_jsb_adds(b, "<Macro ");
        repr_str(b, fn->macro->name);
        radi_jsb_addc(b, '>');
        return;
    }
    radi_jsb_adds(b, fn->type == JF_METHOD ? "<built-in method " : "<function ");
    radi_jsb_adds(b, fn->def ? fn->def->name : "object");
    radi_jsb_addc(b, '>');
}

void radi_jsb_repr(struct radi_jsb *b, struct radi_jv v)
{
    radi_j_enter(b->ev);
    radi_j_charge(b->ev, 1);
    switch (v.kind) {
    case J_MISSING: break;
    case J_UNDEF: radi_jsb_adds(b, "Undefined"); break;
    case J_NONE: radi_jsb_adds(b, "None"); break;
    case J_BOOL: radi_jsb_adds(b, v.b ? "True" : "False"); break;
    case J_INT: add_int(b, v.i); break;
    case J_BIG: radi_jsb_str(b, v.s); break;
    case J_FLOAT: radi_jsb_float(b, v.f); break;
    case J_STR:
        radi_jsb_adds(b, v.markup ? "Markup(" : "");
        repr_str(b, v.s);
        radi_jsb_adds(b, v.markup ? ")" : "");
        break;
    case J_SEQ: repr_seq(b, v.q); break;
    case J_DICT: repr_dict(b, v.d); break;
    case J_NS:
        radi_jsb_adds(b, "<Namespace ");
        repr_dict(b, v.d);
        radi_jsb_addc(b, '>');
        break;
    case J_LOOP: {
        radi_jsb_adds(b, "<LoopContext ");
        add_int(b, (int64_t)v.loop->i + 1);
        radi_jsb_addc(b, '/');
        add_int(b, (int64_t)v.loop->items->n);
        radi_jsb_addc(b, '>');
        break;
    }
    default: repr_func(b, v.fn); break;
    }
    radi_j_leave(b->ev);
}

void radi_jsb_print(struct radi_jsb *b, struct radi_jv v)
{
    if (v.kind == J_STR)
        radi_jsb_str(b, v.s);
    else if (v.kind != J_UNDEF)
        radi_jsb_repr(b, v);
}

struct radi_jv radi_jv_print(struct radi_jev *ev, struct radi_jv v)
{
    struct radi_jsb b = { .ev = ev };
    if (v.kind == J_STR)
        return v;
    radi_jsb_print(&b, v);
    return radi_jsb_done(&b);
}

struct radi_jv radi_j_escape(struct radi_jev *ev, struct radi_jv v)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = { "&amp;", "&lt;", "&gt;", "&#39;", "&#34;" };
    struct radi_jsb b = { .ev = ev };

    if (v.kind == J_STR && v.markup)
        return v;
    v = radi_jv_print(ev, v);
    for (size_t i = 0; i < v.s->len; i++) {
        const char *p = memchr(from, v.s->p[i], sizeof from - 1);
        if (p)
            radi_jsb_adds(&b, to[p - from]);
        else
            radi_jsb_addc(&b, v.s->p[i]);
    }
    struct radi_jv r = radi_jsb_done(&b);
    r.markup = true;
    return r;
}
