/* SPDX-License-Identifier: Apache-2.0 */
/* Owns JSON in and out of templates. Reading is our own and not base's because
 * a template must see what Python's json would give it: 1 and 1.0 apart, all 64
 * bits of an integer, keys in order, the last of equal keys. Writing is
 * json.dumps. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "text/template.h"

#include "banned.h"

enum { MAX_DEPTH = 128 };

struct in {
    struct radi_jev *ev;
    const char *s, *what;
    size_t n, i;
    int depth;
};

static _Noreturn void bad(struct in *p, const char *what)
{
    size_t line = 1, col = 1;
    for (size_t k = 0; k < p->i && k < p->n; k++) {
        col++;
        if (p->s[k] == '\n') {
            line++;
            col = 1;
        }
    }
    p->ev->st = rad_fail(p->ev->err, RAD_E_FORMAT, "%s: %zu:%zu: %s", p->what, line, col, what);
    longjmp(p->ev->env, 1);
}

static void space(struct in *p)
{
    while (p->i < p->n && memchr(" \t\r\n", p->s[p->i], 4))
        p->i++;
}

static bool word(struct in *p, const char *w)
{
    size_t n = strlen(w);
    if (p->n - p->i < n || memcmp(p->s + p->i, w, n) != 0)
        return false;
    p->i += n;
    return true;
}

static uint32_t hex4(struct in *p)
{
    uint32_t x = 0;
    for (int k = 0; k < 4; k++, p->i++) {
        char c = p->i < p->n ? p->s[p->i] : 0;
        uint32_t d = c >= '0' && c <= '9' ? (uint32_t)(c - '0')
                   : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)((c | 32) - 'a') + 10 : 99;
        if (d == 99)
            bad(p, "want four hexadecimal digits");
        x = x << 4 | d;
    }
    return x;
}

static void escape(struct in *p, struct radi_jsb *b)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = p->i < p->n ? p->s[p->i] : 0;
    const char *k = c ? strchr(from, c) : NULL;
    if (k) {
        p->i++;
        radi_jsb_addc(b, to[k - from]);
        return;
    }
    if (c != 'u')
        bad(p, "unknown escape in a string");
    p->i++;
    uint32_t cp = hex4(p);
    if (cp >= 0xd800 && cp < 0xdc00 && p->n - p->i >= 6 && p->s[p->i] == '\\' &&
        p->s[p->i + 1] == 'u') {
        size_t back = p->i;
        p->i += 2;
        uint32_t low = hex4(p);
        if (low >= 0xdc00 && low < 0xe000)
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        else
            p->i = back;
    }
    radi_jsb_cp(b, cp);         /* half of a pair becomes U+FFFD */
}

static struct radi_jv string(struct in *p)
{
    size_t from = ++p->i;
    struct radi_jsb b = { .ev = p->ev };
    for (;;) {
        if (p->i >= p->n)
            bad(p, "string without an end");
        unsigned char c = (unsigned char)p->s[p->i];
        if (c != '"' && c != '\\') {
            if (c < 0x20)
                bad(p, "control character in a string");
            p->i++;
            continue;
        }
        radi_jsb_add(&b, p->s + from, p->i - from);
        p->i++;
        if (c == '"')
            return radi_jsb_done(&b);
        escape(p, &b);
        from = p->i;
    }
}

static size_t run(const struct in *p, size_t i)
{
    while (i < p->n && p->s[i] >= '0' && p->s[i] <= '9')
        i++;
    return i;
}

static struct radi_jv number(struct in *p)
{
    size_t from = p->i, i = from + (p->s[from] == '-'), k = run(p, i);
    struct radi_jsb b = { .ev = p->ev };
    bool real = false;
    int64_t whole;
    double f;

    if (k == i || (p->s[i] == '0' && k > i + 1))
        bad(p, "want a value");
    if (k < p->n && p->s[k] == '.') {
        i = k + 1;
        k = run(p, i);
        real = true;
        if (k == i)
            bad(p, "want a digit");
    }
    if (k < p->n && (p->s[k] | 32) == 'e') {
        i = k + 1;
        i += i < p->n && (p->s[i] == '+' || p->s[i] == '-');
        k = run(p, i);
        real = true;
        if (k == i)
            bad(p, "want a digit");
    }
    radi_jsb_add(&b, p->s + from, k - from);
    radi_jsb_addc(&b, 0);
    if (!real && !radi_parse_i64(b.p, &whole)) {
        p->i = k;
        struct radi_jv v = radi_jv_text(p->ev, b.p, k - from);
        v.kind = J_BIG;
        return v;
    }
    if (real && !radi_parse_f64(b.p, &f))
        bad(p, "number is out of range");
    p->i = k;
    return real ? radi_jv_float(f) : radi_jv_int(whole);
}

static struct radi_jv value(struct in *p);

static struct radi_jv array(struct in *p)
{
    struct radi_jseq *q = radi_j_seq(p->ev, JQ_LIST, 0);
    size_t cap = 0;
    p->i++;
    for (space(p); p->i >= p->n || p->s[p->i] != ']'; space(p)) {
        if (q->n && !word(p, ","))
            bad(p, "want ',' or ']'");
        radi_j_push(p->ev, q, &cap, value(p));
    }
    p->i++;
    return radi_jv_seq(q);
}

static struct radi_jv object(struct in *p)
{
    struct radi_jdict *d = radi_j_dict(p->ev, 0);
    bool first = true;
    p->i++;
    for (space(p); p->i >= p->n || p->s[p->i] != '}'; space(p)) {
        if (!first && !word(p, ","))
            bad(p, "want ',' or '}'");
        first = false;
        space(p);
        if (p->i >= p->n || p->s[p->i] != '"')
            bad(p, "want a key");
        struct radi_jv k = string(p);
        space(p);
        if (!word(p, ":"))
            bad(p, "want ':'");
        radi_j_put(p->ev, d, k, value(p));
    }
    p->i++;
    return radi_jv_dict(d);
}

static struct radi_jv value(struct in *p)
{
    struct radi_jv v;
    space(p);
    char c = p->i < p->n ? p->s[p->i] : 0;
    if (c == '{' || c == '[') {
        if (++p->depth > MAX_DEPTH)
            bad(p, "nested too deep");
        v = c == '{' ? object(p) : array(p);
        p->depth--;
        return v;
    }
    if (c == '"')
        return string(p);
    if (word(p, "null"))
        return radi_jv_none();
    if (word(p, "true"))
        return radi_jv_bool(true);
    if (word(p, "false"))
        return radi_jv_bool(false);
    if (c != '-' && (c < '0' || c > '9'))
        bad(p, "want a value");
    return number(p);
}

struct radi_jv radi_j_from_json(struct radi_jev *ev, const char *s, size_t n, const char *what)
{
    struct in p = { .ev = ev, .s = s, .what = what, .n = n };
    uint64_t steps = ev->steps, limit = ev->lim.steps;
    ev->lim.steps = UINT64_MAX;     /* reading is bounded by its input */
    if (n && !radi_utf8_valid(s, n))
        bad(&p, "not UTF-8");
    struct radi_jv v = value(&p);
    space(&p);
    if (p.i < n)
        bad(&p, "text behind the value");
    ev->steps = steps;
    ev->lim.steps = limit;
    return v;
}

/* ---- writing */
static void json_str(struct radi_jsb *b, const struct radi_jstr *s, bool ascii)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    size_t k;
    char text[16];
    radi_jsb_addc(b, '"');
    for (size_t i = 0; i < s->len; i += k) {
        uint32_t cp;
        k = radi_utf8_next(s->p + i, s->len - i, &cp);
        if (!k)
            break;
        const char *e = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;
        if (e) {
            radi_jsb_addc(b, '\\');
            radi_jsb_addc(b, to[e - from]);
        } else if (cp < 0x20 || (ascii && cp > 0x7e && cp < 0x10000)) {
            snprintf(text, sizeof text, "\\u%04x", cp);
            radi_jsb_adds(b, text);
        } else if (ascii && cp >= 0x10000) {
            snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                     0xdc00 + ((cp - 0x10000) & 0x3ff));
            radi_jsb_adds(b, text);
        } else
            radi_jsb_add(b, s->p + i, k);
    }
    radi_jsb_addc(b, '"');
}

static void json_float(struct radi_jsb *b, double f)
{
    if (isnan(f))
        radi_jsb_adds(b, "NaN");
    else if (isinf(f))
        radi_jsb_adds(b, f < 0 ? "-Infinity" : "Infinity");
    else
        radi_jsb_float(b, f);
}

static void newline(struct radi_jsb *b, const struct radi_jjson *o, int depth)
{
    if (o->indent.kind == J_NONE)
        return;
    radi_jsb_addc(b, '\n');
    radi_jsb_fill(b, o->indent.s->p, o->indent.s->len, depth);
}

static void json_value(struct radi_jsb *b, struct radi_jv v, const struct radi_jjson *o, int depth);

static void json_key(struct radi_jsb *b, struct radi_jv k, const struct radi_jjson *o)
{
    if (k.kind == J_STR) {
        json_str(b, k.s, o->ascii);
        return;
    }
    if (!radi_j_is_num(k) && k.kind != J_NONE && k.kind != J_BIG)
        radi_j_fail(b->ev, RAD_E_FORMAT, "keys must be str, int, float, bool or None, not %s",
                    radi_j_type(k));
    radi_jsb_addc(b, '"');
    json_value(b, k, o, 0);
    radi_jsb_addc(b, '"');
}

/* Indices of the entries, by key. */
static size_t *sorted(struct radi_jev *ev, const struct radi_jdict *d)
{
    size_t *at = radi_j_alloc(ev, d->n, sizeof *at);
    for (size_t i = 0; i < d->n; i++) {
        size_t k = i;
        for (; k && radi_j_cmp(ev, d->e[i].key, d->e[at[k - 1]].key, "<") < 0; k--)
            at[k] = at[k - 1];
        at[k] = i;
    }
    return at;
}

static void json_dict(struct radi_jsb *b, const struct radi_jdict *d, const struct radi_jjson *o,
                      int depth)
{
    const size_t *order = o->sort ? sorted(b->ev, d) : NULL;
    radi_jsb_addc(b, '{');
    for (size_t i = 0; i < d->n; i++) {
        const struct radi_jpair *e = &d->e[order ? order[i] : i];
        if (i)
            radi_jsb_str(b, o->item_sep.s);
        newline(b, o, depth + 1);
        json_key(b, e->key, o);
        radi_jsb_str(b, o->key_sep.s);
        json_value(b, e->v, o, depth + 1);
    }
    if (d->n)
        newline(b, o, depth);
    radi_jsb_addc(b, '}');
}

static void json_list(struct radi_jsb *b, const struct radi_jseq *q, const struct radi_jjson *o,
                      int depth)
{
    radi_jsb_addc(b, '[');
    for (size_t i = 0; i < q->n; i++) {
        if (i)
            radi_jsb_str(b, o->item_sep.s);
        newline(b, o, depth + 1);
        json_value(b, q->v[i], o, depth + 1);
    }
    if (q->n)
        newline(b, o, depth);
    radi_jsb_addc(b, ']');
}

static void json_value(struct radi_jsb *b, struct radi_jv v, const struct radi_jjson *o, int depth)
{
    radi_j_enter(b->ev);
    radi_j_charge(b->ev, 1);
    if (v.kind == J_STR)
        json_str(b, v.s, o->ascii);
    else if (v.kind == J_NONE)
        radi_jsb_adds(b, "null");
    else if (v.kind == J_BOOL)
        radi_jsb_adds(b, v.b ? "true" : "false");
    else if (v.kind == J_INT || v.kind == J_BIG)
        radi_jsb_print(b, v.kind == J_INT ? v : radi_jv_str(v.s));
    else if (v.kind == J_FLOAT)
        json_float(b, v.f);
    else if (v.kind == J_SEQ && v.q->type <= JQ_TUPLE)
        json_list(b, v.q, o, depth);
    else if (v.kind == J_DICT)
        json_dict(b, v.d, o, depth);
    else
        radi_j_fail(b->ev, RAD_E_FORMAT, "Object of type %s is not JSON serializable",
                    radi_j_type(v));
    radi_j_leave(b->ev);
}

void radi_jsb_json(struct radi_jsb *b, struct radi_jv v, const struct radi_jjson *o)
{
    json_value(b, v, o, 0);
}
