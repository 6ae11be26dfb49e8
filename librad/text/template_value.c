/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the values of a template: strings that share bytes, sequences, dicts in
 * order of insertion, undefined; equality and order as in Python; and the
 * limits, because every value is paid for here. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "text/template.h"

#include "banned.h"

enum { C_DEPTH_PER_CALL = 20 };     /* C recursion that one macro level may use */

void radi_j_fail(struct radi_jev *ev, rad_status st, const char *fmt, ...)
{
    char text[RAD_ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ev->st = st == RAD_E_ARG ? rad_fail(ev->err, st, "%s", text)
                             : rad_fail(ev->err, st, "line %u: %s", ev->line, text);
    longjmp(ev->env, 1);
}

void radi_j_charge(struct radi_jev *ev, uint64_t steps)
{
    ev->steps += steps;
    if (ev->steps > ev->lim.steps)
        radi_j_fail(ev, RAD_E_FULL, "more than %llu steps",
                    (unsigned long long)ev->lim.steps);
}

void radi_j_enter(struct radi_jev *ev)
{
    if (++ev->depth > ev->lim.depth * C_DEPTH_PER_CALL)
        radi_j_fail(ev, RAD_E_FULL, "nested deeper than %u levels",
                    ev->lim.depth * C_DEPTH_PER_CALL);
}

void *radi_j_alloc(struct radi_jev *ev, size_t n, size_t item)
{
    size_t bytes, all;
    if (!radi_mul_size(n, item, &bytes) || !radi_add_size(bytes, 16, &bytes) ||
        !radi_add_size(ev->arena->used, bytes, &all) ||
        (ev->arena->limit && all > ev->arena->limit))
        radi_j_fail(ev, RAD_E_FULL, "more than %llu bytes of memory",
                    (unsigned long long)ev->lim.memory_bytes);
    radi_j_charge(ev, bytes / 1024);
    void *p = radi_arena_alloc(ev->arena, n * item);
    if (!p)
        radi_j_fail(ev, RAD_E_NOMEM, "out of memory");
    return p;
}

/* ---- string builder */
static void sb_room(struct radi_jsb *b, size_t n)
{
    size_t want;
    if (!radi_add_size(b->len, n, &want))
        want = SIZE_MAX;
    if (want <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 32;
    if (want > cap * 2)
        cap = want;
    else
        cap *= 2;
    char *p = radi_j_alloc(b->ev, cap, 1);
    if (b->len)
        memcpy(p, b->p, b->len);
    b->p = p;
    b->cap = cap;
}

void radi_jsb_add(struct radi_jsb *b, const char *s, size_t n)
{
    sb_room(b, n);
    if (n)
        memcpy(b->p + b->len, s, n);
    b->len += n;
}

void radi_jsb_adds(struct radi_jsb *b, const char *s)
{
    radi_jsb_add(b, s, strlen(s));
}

void radi_jsb_addc(struct radi_jsb *b, char c)
{
    radi_jsb_add(b, &c, 1);
}

void radi_jsb_cp(struct radi_jsb *b, uint32_t cp)
{
    char s[4];
    size_t n;
    if (cp >= 0xd800 && cp < 0xe000)
        cp = 0xfffd;                /* half of a pair: not text */
    if (cp < 0x80) {
        s[0] = (char)cp;
        n = 1;
    } else if (cp < 0x800) {
        s[0] = (char)(0xc0 | cp >> 6);
        s[1] = (char)(0x80 | (cp & 63));
        n = 2;
    } else if (cp < 0x10000) {
        s[0] = (char)(0xe0 | cp >> 12);
        s[1] = (char)(0x80 | (cp >> 6 & 63));
        s[2] = (char)(0x80 | (cp & 63));
        n = 3;
    } else {
        s[0] = (char)(0xf0 | cp >> 18);
        s[1] = (char)(0x80 | (cp >> 12 & 63));
        s[2] = (char)(0x80 | (cp >> 6 & 63));
        s[3] = (char)(0x80 | (cp & 63));
        n = 4;
    }
    radi_jsb_add(b, s, n);
}

void radi_jsb_str(struct radi_jsb *b, const struct radi_jstr *s)
{
    radi_jsb_add(b, s->p, s->len);
}

void radi_jsb_fill(struct radi_jsb *b, const char *s, size_t n, int64_t times)
{
    size_t bytes;
    if (times <= 0 || n == 0)
        return;
    if (!radi_mul_size(n, (size_t)times, &bytes))
        bytes = SIZE_MAX / 2;       /* the limit refuses it */
    sb_room(b, bytes);
    for (int64_t i = 0; i < times; i++)
        radi_jsb_add(b, s, n);
}

struct radi_jv radi_jsb_done(struct radi_jsb *b)
{
    return radi_jv_borrow(b->ev, b->p, b->len);
}

/* ---- strings */
size_t radi_j_chars(const char *s, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++)
        c += ((unsigned char)s[i] & 0xc0) != 0x80;
    return c;
}

static struct radi_jstr *str_new(struct radi_jev *ev, const char *p, size_t n)
{
    struct radi_jstr *s = radi_j_alloc(ev, 1, sizeof *s);
    *s = (struct radi_jstr){ n ? p : "", n, radi_j_chars(p, n), NULL };
    return s;
}

struct radi_jv radi_jv_str(const struct radi_jstr *s)
{
    return (struct radi_jv){ .kind = J_STR, .s = s };
}

struct radi_jv radi_jv_borrow(struct radi_jev *ev, const char *s, size_t n)
{
    return radi_jv_str(str_new(ev, s, n));
}

struct radi_jv radi_jv_text(struct radi_jev *ev, const char *s, size_t n)
{
    char *p = radi_j_alloc(ev, n, 1);
    if (n)
        memcpy(p, s, n);
    return radi_jv_borrow(ev, p, n);
}

struct radi_jv radi_jv_sub(struct radi_jev *ev, struct radi_jv like, size_t at, size_t n)
{
    if (at == 0 && n == like.s->len)
        return like;
    struct radi_jv v = radi_jv_borrow(ev, like.s->p + at, n);
    v.markup = like.markup;
    return v;
}

/* Appends in place when `a` ends where its buffer ends, so that a text built
 * piece by piece costs linear memory. The older, shorter string stays what it
 * was. */
struct radi_jv radi_jv_cat(struct radi_jev *ev, struct radi_jv a, struct radi_jv b)
{
    const struct radi_jstr *x = a.s, *y = b.s;
    size_t len;

    if (y->len == 0)
        return a;
    if (x->len == 0)
        return b;
    if (!radi_add_size(x->len, y->len, &len))
        radi_j_fail(ev, RAD_E_FULL, "string is too long");
    struct radi_jstr *s = radi_j_alloc(ev, 1, sizeof *s);
    struct radi_jbuf *buf = x->buf;
    if (!buf || x->p + x->len != buf->p + buf->used || buf->cap - buf->used < y->len) {
        size_t cap = buf ? len + len / 2 : len;
        struct radi_jbuf *bigger = radi_j_alloc(ev, 1, sizeof *bigger);
        bigger->p = radi_j_alloc(ev, cap, 1);
        bigger->cap = cap;
        memcpy(bigger->p, x->p, x->len);
        bigger->used = x->len;
        buf = bigger;
    }
    memcpy(buf->p + buf->used, y->p, y->len);
    *s = (struct radi_jstr){ buf->p + buf->used - x->len, len, x->chars + y->chars, buf };
    buf->used += y->len;
    return radi_jv_str(s);
}

bool radi_j_streq(const struct radi_jstr *s, const char *c)
{
    size_t n = strlen(c);
    return s->len == n && memcmp(s->p, c, n) == 0;
}

/* ---- sequences */
struct radi_jseq *radi_j_seq(struct radi_jev *ev, enum radi_jseq_type type, size_t cap)
{
    struct radi_jseq *q = radi_j_alloc(ev, 1, sizeof *q);
    q->type = (uint8_t)type;
    q->v = radi_j_alloc(ev, cap, sizeof *q->v);
    return q;
}

struct radi_jv radi_jv_seq(struct radi_jseq *q)
{
    return (struct radi_jv){ .kind = J_SEQ, .q = q };
}

void radi_j_push(struct radi_jev *ev, struct radi_jseq *q, size_t *cap, struct radi_jv v)
{
    if (q->n == *cap) {
        size_t n = *cap ? *cap * 2 : 8;
        struct radi_jv *p = radi_j_alloc(ev, n, sizeof *p);
        if (q->n)
            memcpy(p, q->v, q->n * sizeof *p);
        q->v = p;
        *cap = n;
    }
    q->v[q->n++] = v;
}

struct radi_jv radi_jv_pair(struct radi_jev *ev, struct radi_jv a, struct radi_jv b)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_TUPLE, 2);
    q->v[0] = a;
    q->v[1] = b;
    q->n = 2;
    return radi_jv_seq(q);
}

static struct radi_jseq *chars_of(struct radi_jev *ev, struct radi_jv v)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, v.s->chars);
    struct radi_jstr *s = radi_j_alloc(ev, v.s->chars, sizeof *s);
    const char *p = v.s->p, *end = p + v.s->len;
    radi_j_charge(ev, v.s->chars / 8);
    while (p < end) {
        uint32_t cp;
        size_t n = radi_utf8_next(p, (size_t)(end - p), &cp);
        n = n ? n : 1;
        *s = (struct radi_jstr){ p, n, 1, NULL };
        q->v[q->n] = radi_jv_str(s++);
        q->v[q->n++].markup = v.markup;
        p += n;
    }
    return q;
}

bool radi_j_iterable(struct radi_jv v)
{
    return v.kind == J_UNDEF || v.kind == J_STR || v.kind == J_SEQ || v.kind == J_DICT ||
           v.kind == J_LOOP;
}

struct radi_jseq *radi_j_iter(struct radi_jev *ev, struct radi_jv v)
{
    struct radi_jseq *q;
    switch (v.kind) {
    case J_UNDEF:
        if (v.u->unsafe)
            radi_j_undef_fail(ev, v);
        return radi_j_seq(ev, JQ_LIST, 0);
    case J_STR:
        return chars_of(ev, v);
    case J_DICT:
        q = radi_j_seq(ev, JQ_LIST, v.d->n);
        for (size_t i = 0; i < v.d->n; i++)
            q->v[q->n++] = v.d->e[i].key;
        return q;
    case J_SEQ:
        if (v.q->type != JQ_GEN && v.q->type != JQ_REV)
            return v.q;
        q = radi_j_alloc(ev, 1, sizeof *q);
        q->v = v.q->v + v.q->pos;
        q->n = v.q->n - v.q->pos;
        v.q->pos = v.q->n;
        return q;
    default:
        radi_j_fail(ev, RAD_E_FORMAT, "'%s' object is not iterable", radi_j_type(v));
    }
}

/* ---- dicts */
static uint64_t hash_of(struct radi_jev *ev, struct radi_jv v)
{
    uint64_t h;
    switch (v.kind) {
    case J_STR:
        return radi_hash(v.s->p, v.s->len, 1);
    case J_BIG:
        return radi_hash(v.s->p, v.s->len, 2);
    case J_BOOL: case J_INT: case J_FLOAT: {
        double f = radi_j_num(v);       /* 1, 1.0 and true are one key */
        f = f == 0 ? 0 : f;
        return radi_hash(&f, sizeof f, 3);
    }
    case J_SEQ:
        if (v.q->type != JQ_TUPLE)
            break;
        radi_j_enter(ev);
        h = 4;
        for (size_t i = 0; i < v.q->n; i++) {
            uint64_t x = hash_of(ev, v.q->v[i]);
            h = radi_hash(&x, sizeof x, h);
        }
        radi_j_leave(ev);
        return h;
    case J_DICT:
        break;
    case J_NONE: case J_UNDEF:
        return v.kind;
    default: {
        const void *p = v.fn;
        return radi_hash(&p, sizeof p, 5);
    }
    }
    radi_j_fail(ev, RAD_E_FORMAT, "unhashable type: '%s'", radi_j_type(v));
}

struct radi_jdict *radi_j_dict(struct radi_jev *ev, size_t expect)
{
    struct radi_jdict *d = radi_j_alloc(ev, 1, sizeof *d);
    d->cap = expect;
    d->e = radi_j_alloc(ev, expect, sizeof *d->e);
    return d;
}

struct radi_jv radi_jv_dict(struct radi_jdict *d)
{
    return (struct radi_jv){ .kind = J_DICT, .d = d };
}

static struct radi_jpair *find_pair(struct radi_jev *ev, const struct radi_jdict *d,
                                    struct radi_jv k, uint64_t hash)
{
    if (!d->slot) {
        for (size_t i = 0; i < d->n; i++)
            if (d->e[i].hash == hash && radi_j_eq(ev, d->e[i].key, k))
                return &d->e[i];
        return NULL;
    }
    for (size_t i = hash & (d->slots - 1); d->slot[i]; i = (i + 1) & (d->slots - 1)) {
        struct radi_jpair *p = &d->e[d->slot[i] - 1];
        if (p->hash == hash && radi_j_eq(ev, p->key, k))
            return p;
    }
    return NULL;
}

static void dict_slot(struct radi_jdict *d, size_t entry)
{
    size_t i = d->e[entry].hash & (d->slots - 1);
    while (d->slot[i])
        i = (i + 1) & (d->slots - 1);
    d->slot[i] = (uint32_t)entry + 1;
}

void radi_j_put(struct radi_jev *ev, struct radi_jdict *d, struct radi_jv k, struct radi_jv v)
{
    uint64_t hash = hash_of(ev, k);
    struct radi_jpair *p = find_pair(ev, d, k, hash);
    if (p) {
        p->v = v;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;
        struct radi_jpair *e = radi_j_alloc(ev, cap, sizeof *e);
        if (d->n)
            memcpy(e, d->e, d->n * sizeof *e);
        d->e = e;
        d->cap = cap;
    }
    d->e[d->n++] = (struct radi_jpair){ k, v, hash };
    if (d->n > 8 && d->n * 2 > d->slots) {
        d->slots = d->slots ? d->slots * 2 : 32;
        d->slot = radi_j_alloc(ev, d->slots, sizeof *d->slot);
        for (size_t i = 0; i < d->n; i++)
            dict_slot(d, i);
    } else if (d->slot)
        dict_slot(d, d->n - 1);
}

struct radi_jv *radi_j_find(struct radi_jev *ev, const struct radi_jdict *d, struct radi_jv k)
{
    struct radi_jpair *p = find_pair(ev, d, k, hash_of(ev, k));
    return p ? &p->v : NULL;
}

struct radi_jv *radi_j_finds(struct radi_jev *ev, const struct radi_jdict *d, const char *k)
{
    struct radi_jstr s = { k, strlen(k), 0, NULL };
    return radi_j_find(ev, d, radi_jv_str(&s));
}

/* ---- what Python would call it */
const char *radi_j_type(struct radi_jv v)
{
    static const char *const seq[] = { "list", "tuple", "range", "dict_keys", "dict_values",
                                       "dict_items", "generator", "list_reverseiterator" };
    switch (v.kind) {
    case J_NONE: return "NoneType";
    case J_BOOL: return "bool";
    case J_INT: case J_BIG: return "int";
    case J_FLOAT: return "float";
    case J_STR: return v.markup ? "Markup" : "str";
    case J_SEQ: return seq[v.q->type];
    case J_DICT: return "dict";
    case J_NS: return "Namespace";
    case J_LOOP: return "LoopContext";
    case J_FUNC:
        switch (v.fn->type) {
        case JF_MACRO: return "Macro";
        case JF_CYCLER: return "Cycler";
        case JF_JOINER: return "Joiner";
        case JF_METHOD: return "builtin_function_or_method";
        default: return "function";
        }
    default: return "Undefined";
    }
}

bool radi_j_len(struct radi_jv v, size_t *n)
{
    switch (v.kind) {
    case J_UNDEF: *n = 0; return true;
    case J_STR: *n = v.s->chars; return true;
    case J_DICT: *n = v.d->n; return true;
    case J_LOOP: *n = v.loop->items->n; return true;
    case J_SEQ: *n = v.q->n; return v.q->type != JQ_GEN && v.q->type != JQ_REV;
    default: return false;
    }
}

bool radi_j_truth(struct radi_jv v)
{
    size_t n;
    switch (v.kind) {
    case J_NONE: case J_MISSING: return false;
    case J_BOOL: return v.b;
    case J_INT: return v.i != 0;
    case J_FLOAT: return v.f != 0;
    case J_LOOP: return true;
    default: return !radi_j_len(v, &n) || n > 0;
    }
}

bool radi_j_is_num(struct radi_jv v)
{
    return v.kind == J_BOOL || v.kind == J_INT || v.kind == J_FLOAT;
}

double radi_j_num(struct radi_jv v)
{
    return v.kind == J_FLOAT ? v.f : v.kind == J_BOOL ? (double)v.b : (double)v.i;
}

static int64_t whole(struct radi_jv v)
{
    return v.kind == J_BOOL ? v.b : v.i;
}

/* An integer against a double, exactly. */
static int cmp_int_float(int64_t i, double f)
{
    if (isnan(f))
        return 2;
    if (f >= 9223372036854775808.0)
        return -1;
    if (f < -9223372036854775808.0)
        return 1;
    double t = trunc(f);
    int64_t k = (int64_t)t;
    if (i != k)
        return i < k ? -1 : 1;
    return f > t ? -1 : f < t;
}

static int cmp_num(struct radi_jv a, struct radi_jv b)
{
    int c;
    if (a.kind == J_FLOAT && b.kind == J_FLOAT)
        return isnan(a.f) || isnan(b.f) ? 2 : a.f < b.f ? -1 : a.f > b.f;
    if (b.kind == J_FLOAT)
        return cmp_int_float(whole(a), b.f);
    if (a.kind == J_FLOAT) {
        c = cmp_int_float(whole(b), a.f);
        return c == 2 ? 2 : -c;
    }
    return whole(a) < whole(b) ? -1 : whole(a) > whole(b);
}

static bool eq_deep(struct radi_jev *ev, struct radi_jv a, struct radi_jv b)
{
    if (a.kind == J_SEQ) {
        if (a.q == b.q)
            return true;
        if (a.q->type != b.q->type || a.q->n != b.q->n || a.q->type > JQ_RANGE)
            return false;
        for (size_t i = 0; i < a.q->n; i++)
            if (!radi_j_eq(ev, a.q->v[i], b.q->v[i]))
                return false;
        return true;
    }
    if (a.d == b.d)
        return true;
    if (a.d->n != b.d->n)
        return false;
    for (size_t i = 0; i < a.d->n; i++) {
        const struct radi_jpair *p = &a.d->e[i], *o = find_pair(ev, b.d, p->key, p->hash);
        if (!o || !radi_j_eq(ev, p->v, o->v))
            return false;
    }
    return true;
}

bool radi_j_eq(struct radi_jev *ev, struct radi_jv a, struct radi_jv b)
{
    radi_j_charge(ev, 1);
    if (radi_j_is_num(a) && radi_j_is_num(b))
        return cmp_num(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case J_NONE: return true;
    case J_UNDEF: return true;
    case J_STR: case J_BIG:
        radi_j_charge(ev, RADI_MIN(a.s->len, b.s->len) / 256);
        return a.s->len == b.s->len &&
               (a.s->p == b.s->p || memcmp(a.s->p, b.s->p, a.s->len) == 0);
    case J_SEQ: case J_DICT: {
        radi_j_enter(ev);
        bool eq = eq_deep(ev, a, b);
        radi_j_leave(ev);
        return eq;
    }
    default:
        return a.fn == b.fn;
    }
}

int radi_j_cmp(struct radi_jev *ev, struct radi_jv a, struct radi_jv b, const char *op)
{
    radi_j_charge(ev, 1);
    if (radi_j_is_num(a) && radi_j_is_num(b))
        return cmp_num(a, b);
    if (a.kind == J_STR && b.kind == J_STR) {       /* bytes order as code points do */
        size_t n = RADI_MIN(a.s->len, b.s->len);
        radi_j_charge(ev, n / 256);
        int c = memcmp(a.s->p, b.s->p, n);
        return c ? c : a.s->len < b.s->len ? -1 : a.s->len > b.s->len;
    }
    if (a.kind == J_SEQ && b.kind == J_SEQ && a.q->type == b.q->type && a.q->type <= JQ_TUPLE) {
        int c = 0;
        radi_j_enter(ev);
        for (size_t i = 0; i < a.q->n && i < b.q->n; i++)
            if (!radi_j_eq(ev, a.q->v[i], b.q->v[i])) {
                c = radi_j_cmp(ev, a.q->v[i], b.q->v[i], op);
                radi_j_leave(ev);
                return c;
            }
        radi_j_leave(ev);
        return a.q->n < b.q->n ? -1 : a.q->n > b.q->n;
    }
    if (a.kind == J_UNDEF)
        radi_j_undef_fail(ev, a);
    if (b.kind == J_UNDEF)
        radi_j_undef_fail(ev, b);
    if (a.kind == J_BIG || b.kind == J_BIG)
        radi_j_fail(ev, RAD_E_UNSUPPORTED, "integer of more than 64 bits in a comparison");
    radi_j_fail(ev, RAD_E_FORMAT, "'%s' not supported between instances of '%s' and '%s'", op,
                radi_j_type(a), radi_j_type(b));
}

/* ---- undefined */
struct radi_jv radi_jv_undef(struct radi_jev *ev, const struct radi_jundef *u)
{
    struct radi_jundef *copy = radi_j_alloc(ev, 1, sizeof *copy);
    *copy = *u;
    return (struct radi_jv){ .kind = J_UNDEF, .u = copy };
}

struct radi_jv radi_jv_hint(struct radi_jev *ev, const char *hint)
{
    struct radi_jundef u = { .hint = hint };
    return radi_jv_undef(ev, &u);
}

struct radi_jv radi_jv_noattr(struct radi_jev *ev, struct radi_jv obj, struct radi_jv key)
{
    struct radi_jundef u = { .name = key.kind == J_STR ? key.s : NULL, .has_obj = true,
                             .obj = obj, .key = key };
    return radi_jv_undef(ev, &u);
}

static void object_name(struct radi_jsb *b, struct radi_jv v)
{
    if (v.kind == J_NONE) {
        radi_jsb_adds(b, "None");
        return;
    }
    if (v.kind == J_NS || (v.kind == J_FUNC && v.fn->type >= JF_CYCLER))
        radi_jsb_adds(b, "jinja2.utils.");
    else if (v.kind == J_LOOP || v.kind == J_UNDEF || (v.kind == J_FUNC && v.fn->type == JF_MACRO))
        radi_jsb_adds(b, "jinja2.runtime.");
    else if (v.kind == J_STR && v.markup)
        radi_jsb_adds(b, "markupsafe.");
    radi_jsb_adds(b, radi_j_type(v));
    radi_jsb_adds(b, " object");
}

void radi_j_undef_fail(struct radi_jev *ev, struct radi_jv v)
{
    const struct radi_jundef *u = v.u;
    struct radi_jsb b = { .ev = ev };

    if (u->hint)
        radi_j_fail(ev, RAD_E_FORMAT, "%s", u->hint);
    if (u->unsafe) {
        radi_jsb_adds(&b, "access to attribute ");
        radi_jsb_repr(&b, u->key);
        radi_jsb_adds(&b, " of '");
        radi_jsb_adds(&b, radi_j_type(u->obj));
        radi_jsb_adds(&b, "' object is unsafe.");
    } else if (!u->has_obj) {
        radi_jsb_repr(&b, radi_jv_str(u->name));
        radi_jsb_adds(&b, " is undefined");
    } else if (u->name) {
        radi_jsb_addc(&b, '\'');
        object_name(&b, u->obj);
        radi_jsb_adds(&b, "' has no attribute ");
        radi_jsb_repr(&b, u->key);
    } else {
        object_name(&b, u->obj);
        radi_jsb_adds(&b, " has no element ");
        radi_jsb_repr(&b, u->key);
    }
    radi_j_fail(ev, RAD_E_FORMAT, "%.*s", (int)RADI_MIN(b.len, (size_t)700), b.p);
}
