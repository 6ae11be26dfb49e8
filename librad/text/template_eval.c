/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the evaluation of expressions and the scopes that names live in. A name
 * is looked for in the scopes from the inside out, then among the variables,
 * then among Jinja's globals. */
#include "config.h"

#include <stdio.h>

#include "text/template.h"

#include "banned.h"

struct radi_jscope *radi_j_scope(struct radi_jev *ev, struct radi_jscope *parent)
{
    struct radi_jscope *s = radi_j_alloc(ev, 1, sizeof *s);
    s->parent = parent;
    return s;
}

void radi_j_bind(struct radi_jev *ev, struct radi_jscope *s, const struct radi_jstr *name,
                 struct radi_jv v)
{
    radi_j_charge(ev, s->n / 8);
    for (size_t i = 0; i < s->n; i++)
        if (s->b[i].name == name) {
            s->b[i].v = v;
            return;
        }
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 4;
        struct radi_jbind *b = radi_j_alloc(ev, cap, sizeof *b);
        if (s->n)
            memcpy(b, s->b, s->n * sizeof *b);
        s->b = b;
        s->cap = cap;
    }
    s->b[s->n++] = (struct radi_jbind){ name, v };
}

static struct radi_jv lookup(struct radi_jev *ev, const struct radi_jstr *name)
{
    for (const struct radi_jscope *s = ev->scope; s; s = s->parent) {
        radi_j_charge(ev, s->n / 8);
        for (size_t i = 0; i < s->n; i++)
            if (s->b[i].name == name)
                return s->b[i].v;
    }
    const struct radi_jv *v = radi_j_find(ev, ev->vars, radi_jv_str(name));
    if (v)
        return *v;
    const struct radi_jdef *def = radi_j_global(name);
    if (def) {
        struct radi_jfunc *fn = radi_j_alloc(ev, 1, sizeof *fn);
        fn->type = JF_DEF;
        fn->def = def;
        return (struct radi_jv){ .kind = J_FUNC, .fn = fn };
    }
    struct radi_jundef u = { .name = name };
    return radi_jv_undef(ev, &u);
}

/* ---- arguments */
static void gather_star(struct radi_jev *ev, struct radi_jv v, struct radi_jseq *pos,
                        size_t *cap)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    for (size_t i = 0; i < q->n; i++)
        radi_j_push(ev, pos, cap, q->v[i]);
}

static void add_kw(struct radi_jev *ev, struct radi_jargs *out, size_t *cap,
                   const struct radi_jstr *name, struct radi_jv v)
{
    if (out->nkw == *cap) {
        *cap = *cap ? *cap * 2 : 4;
        struct radi_jkw *kw = radi_j_alloc(ev, *cap, sizeof *kw);
        if (out->nkw)
            memcpy(kw, out->kw, out->nkw * sizeof *kw);
        out->kw = kw;
    }
    out->kw[out->nkw++] = (struct radi_jkw){ name, v };
}

void radi_j_gather(struct radi_jev *ev, const struct radi_jnode *args, struct radi_jargs *out)
{
    struct radi_jseq pos = { 0 };
    size_t cap = 0, kwcap = 0;

    *out = (struct radi_jargs){ 0 };
    for (const struct radi_jnode *a = args; a; a = a->next) {
        struct radi_jv v = radi_j_eval(ev, a->a);
        if (a->flag == JA_POS)
            radi_j_push(ev, &pos, &cap, v);
        else if (a->flag == JA_KW)
            add_kw(ev, out, &kwcap, a->name, v);
        else if (a->flag == JA_STAR)
            gather_star(ev, v, &pos, &cap);
        else {
            if (v.kind != J_DICT)
                radi_j_fail(ev, RAD_E_FORMAT, "argument after ** must be a mapping, not %s",
                            radi_j_type(v));
            for (size_t i = 0; i < v.d->n; i++) {
                if (v.d->e[i].key.kind != J_STR)
                    radi_j_fail(ev, RAD_E_FORMAT, "keywords must be strings");
                add_kw(ev, out, &kwcap, v.d->e[i].key.s, v.d->e[i].v);
            }
        }
    }
    out->v = pos.v;
    out->n = pos.n;
}

/* ---- expressions, one function a kind */
static struct radi_jv eval_sequence(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jseq *q = radi_j_seq(ev, n->op == JN_LIST ? JQ_LIST : JQ_TUPLE, 0);
    size_t cap = 0;
    for (const struct radi_jnode *i = n->a; i; i = i->next)
        radi_j_push(ev, q, &cap, radi_j_eval(ev, i));
    return radi_jv_seq(q);
}

static struct radi_jv eval_dict(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jdict *d = radi_j_dict(ev, 0);
    for (const struct radi_jnode *i = n->a; i; i = i->next) {
        struct radi_jv k = radi_j_eval(ev, i->a);
        radi_j_put(ev, d, k, radi_j_eval(ev, i->b));
    }
    return radi_jv_dict(d);
}

static struct radi_jv eval_cond(struct radi_jev *ev, const struct radi_jnode *n)
{
    char text[128];
    if (radi_j_truth(radi_j_eval(ev, n->a)))
        return radi_j_eval(ev, n->b);
    if (n->c)
        return radi_j_eval(ev, n->c);
    snprintf(text, sizeof text, "the inline if-expression on line %u evaluated to false and no "
             "else section was defined.", n->line);
    struct radi_jv hint = radi_jv_text(ev, text, strlen(text) + 1);
    return radi_jv_hint(ev, hint.s->p);
}

static struct radi_jv eval_logic(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv v = { 0 };
    for (const struct radi_jnode *i = n->a; i; i = i->next) {
        v = radi_j_eval(ev, i);
        if (radi_j_truth(v) == (n->op == JN_OR))
            break;
    }
    return v;
}

static struct radi_jv eval_compare(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv a = radi_j_eval(ev, n->a);
    for (const struct radi_jnode *i = n->b; i; i = i->next) {
        struct radi_jv b = radi_j_eval(ev, i->a);
        ev->line = i->line;
        if (!radi_j_compare(ev, (enum radi_jbinop)i->flag, a, b))
            return radi_jv_bool(false);
        a = b;
    }
    return radi_jv_bool(true);
}

static struct radi_jv eval_chain(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv a = radi_j_eval(ev, n->a);
    for (const struct radi_jnode *i = n->b; i; i = i->next) {
        struct radi_jv b = radi_j_eval(ev, i->a);
        ev->line = i->line;
        a = radi_j_binary(ev, (enum radi_jbinop)i->flag, a, b);
    }
    return a;
}

static struct radi_jv eval_concat(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jsb b = { .ev = ev };
    radi_jsb_print(&b, radi_j_eval(ev, n->a));
    for (const struct radi_jnode *i = n->b; i; i = i->next)
        radi_jsb_print(&b, radi_j_eval(ev, i->a));
    return radi_jsb_done(&b);
}

static struct radi_jv eval_sign(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv v = radi_j_eval(ev, n->a);
    bool neg = n->op == JN_NEG;
    ev->line = n->line;
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind == J_FLOAT)
        return radi_jv_float(neg ? -v.f : v.f);
    if (v.kind == J_BIG || (v.kind == J_INT && neg && v.i == INT64_MIN))
        radi_j_fail(ev, RAD_E_UNSUPPORTED, "integer of more than 64 bits in arithmetic");
    if (!radi_j_is_num(v))
        radi_j_fail(ev, RAD_E_FORMAT, "bad operand type for unary %c: '%s'", neg ? '-' : '+',
                    radi_j_type(v));
    int64_t i = v.kind == J_BOOL ? v.b : v.i;
    return radi_jv_int(neg ? -i : i);
}

static struct radi_jv eval_slice(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv obj = radi_j_eval(ev, n->d), none = radi_jv_none();
    struct radi_jv start = n->a ? radi_j_eval(ev, n->a) : none;
    struct radi_jv stop = n->b ? radi_j_eval(ev, n->b) : none;
    struct radi_jv step = n->c ? radi_j_eval(ev, n->c) : none;
    ev->line = n->line;
    return radi_j_slice(ev, obj, start, stop, step);
}

static struct radi_jv eval_call(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jargs args;
    struct radi_jv fn = radi_j_eval(ev, n->a);
    radi_j_gather(ev, n->b, &args);
    ev->line = n->line;
    return radi_j_call(ev, fn, &args);
}

static struct radi_jv apply_named(struct radi_jev *ev, const struct radi_jnode *n,
                                  struct radi_jv input, const char *what)
{
    struct radi_jargs args;
    if (!n->def) {
        ev->line = n->line;
        radi_j_fail(ev, RAD_E_FORMAT, "No %s named '%.*s' found.", what,
                    (int)RADI_MIN(n->name->len, (size_t)200), n->name->p);
    }
    radi_j_gather(ev, n->b, &args);
    ev->line = n->line;
    return radi_j_apply(ev, n->def, input, &args);
}

struct radi_jv radi_j_eval_filters(struct radi_jev *ev, const struct radi_jnode *n,
                                   struct radi_jv input)
{
    radi_j_enter(ev);
    radi_j_charge(ev, 1);
    if (n->a)
        input = radi_j_eval_filters(ev, n->a, input);
    input = apply_named(ev, n, input, "filter");
    radi_j_leave(ev);
    return input;
}

static struct radi_jv eval_test(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv v = apply_named(ev, n, radi_j_eval(ev, n->a), "test");
    return radi_jv_bool(radi_j_truth(v) != (n->flag != 0));
}

static struct radi_jv eval(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jv v;
    switch (n->op) {
    case JN_CONST:
        return n->v;
    case JN_NAME:
        return lookup(ev, n->name);
    case JN_TUPLE: case JN_LIST:
        return eval_sequence(ev, n);
    case JN_DICT:
        return eval_dict(ev, n);
    case JN_COND:
        return eval_cond(ev, n);
    case JN_OR: case JN_AND:
        return eval_logic(ev, n);
    case JN_NOT:
        return radi_jv_bool(!radi_j_truth(radi_j_eval(ev, n->a)));
    case JN_CMP:
        return eval_compare(ev, n);
    case JN_CHAIN:
        return eval_chain(ev, n);
    case JN_CONCAT:
        return eval_concat(ev, n);
    case JN_NEG: case JN_POS:
        return eval_sign(ev, n);
    case JN_ATTR:
        v = radi_j_eval(ev, n->a);
        ev->line = n->line;
        return radi_j_attr(ev, v, n->name);
    case JN_ITEM: {
        v = radi_j_eval(ev, n->a);
        struct radi_jv key = radi_j_eval(ev, n->b);
        ev->line = n->line;
        return radi_j_item(ev, v, key);
    }
    case JN_SLICE:
        return eval_slice(ev, n);
    case JN_CALL:
        return eval_call(ev, n);
    case JN_FILTER:
        return apply_named(ev, n, radi_j_eval(ev, n->a), "filter");
    case JN_TEST:
        return eval_test(ev, n);
    default:
        radi_bug(__FILE__, __LINE__, "node is no expression");
    }
}

struct radi_jv radi_j_eval(struct radi_jev *ev, const struct radi_jnode *n)
{
    radi_j_enter(ev);
    radi_j_charge(ev, 1);
    ev->line = n->line;
    struct radi_jv v = eval(ev, n);
    radi_j_leave(ev);
    return v;
}
