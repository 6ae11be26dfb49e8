/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the execution of statements: output, loops, assignment, macros. Output
 * goes to one growing text; what a macro or block says is cut off its end
 * again. Loops, macros, with, call and block bodies have scopes of their own,
 * if has none. */
#include "config.h"

#include "text/template.h"

#include "banned.h"

enum flow { F_NEXT, F_BREAK, F_CONTINUE };

static enum flow exec(struct radi_jev *ev, const struct radi_jnode *n);

static void emit(struct radi_jev *ev, const char *s, size_t n)
{
    if (n > ev->lim.output_bytes || ev->out.len > ev->lim.output_bytes - n)
        radi_j_fail(ev, RAD_E_FULL, "more than %llu bytes of output",
                    (unsigned long long)ev->lim.output_bytes);
    radi_j_charge(ev, n / 1024);
    radi_str_add(&ev->out, s, n);
    if (ev->out.failed)
        radi_j_fail(ev, RAD_E_NOMEM, "out of memory");
}

static struct radi_jv cut(struct radi_jev *ev, size_t from)
{
    struct radi_jv v = radi_jv_text(ev, ev->out.s ? ev->out.s + from : "", ev->out.len - from);
    if (ev->out.s) {
        ev->out.len = from;
        ev->out.s[from] = 0;
    }
    return v;
}

/* Output of `body` in `scope`, as a string. */
static struct radi_jv capture(struct radi_jev *ev, const struct radi_jnode *body,
                              struct radi_jscope *scope)
{
    struct radi_jscope *old = ev->scope;
    size_t from = ev->out.len;
    ev->scope = scope;
    (void)exec(ev, body);
    ev->scope = old;
    return cut(ev, from);
}

/* ---- assignment */
static void assign(struct radi_jev *ev, const struct radi_jnode *to, struct radi_jscope *scope,
                   struct radi_jv v)
{
    if (to->op == JN_NAME) {
        radi_j_bind(ev, scope, to->name, v);
        return;
    }
    if (to->op == JN_NSREF) {
        struct radi_jnode name = { .op = JN_NAME, .line = to->line, .name = to->name };
        struct radi_jv ns = radi_j_eval(ev, &name);
        if (ns.kind != J_NS)
            radi_j_fail(ev, RAD_E_FORMAT, "cannot assign attribute on non-namespace object");
        radi_j_put(ev, ns.d, to->v, v);
        return;
    }
    size_t want = 0, i = 0;
    if (!radi_j_iterable(v))
        radi_j_fail(ev, RAD_E_FORMAT, "cannot unpack non-iterable %s object", radi_j_type(v));
    const struct radi_jseq *q = radi_j_iter(ev, v);
    for (const struct radi_jnode *t = to->a; t; t = t->next)
        want++;
    if (q->n < want)
        radi_j_fail(ev, RAD_E_FORMAT, "not enough values to unpack (expected %zu, got %zu)", want,
                    q->n);
    if (q->n > want)
        radi_j_fail(ev, RAD_E_FORMAT, "too many values to unpack (expected %zu)", want);
    radi_j_enter(ev);
    for (const struct radi_jnode *t = to->a; t; t = t->next)
        assign(ev, t, scope, q->v[i++]);
    radi_j_leave(ev);
}

/* ---- loops */
static struct radi_jseq *filtered(struct radi_jev *ev, const struct radi_jnode *node,
                                  struct radi_jseq *all)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, 0);
    struct radi_jscope *scope = radi_j_scope(ev, ev->scope), *old = ev->scope;
    size_t cap = 0;
    for (size_t i = 0; i < all->n; i++) {
        scope->n = 0;
        assign(ev, node->a, scope, all->v[i]);
        ev->scope = scope;
        bool keep = radi_j_truth(radi_j_eval(ev, node->b->b));
        ev->scope = old;
        if (keep)
            radi_j_push(ev, q, &cap, all->v[i]);
    }
    return q;
}

static void run_loop(struct radi_jev *ev, const struct radi_jnode *node, struct radi_jv iter,
                     uint32_t depth0)
{
    struct radi_jscope *old = ev->scope, *scope = NULL;
    struct radi_jseq *q = radi_j_iter(ev, iter);
    struct radi_jloop *loop = radi_j_alloc(ev, 1, sizeof *loop);

    if (node->b->b)
        q = filtered(ev, node, q);
    *loop = (struct radi_jloop){ .items = q, .depth0 = depth0, .node = node, .scope = old };
    for (size_t i = 0; i < q->n; i++) {
        loop->i = i;
        if (!scope || scope->captured)
            scope = radi_j_scope(ev, old);
        scope->n = 0;
        radi_j_bind(ev, scope, ev->t->loop, (struct radi_jv){ .kind = J_LOOP, .loop = loop });
        assign(ev, node->a, scope, q->v[i]);
        ev->scope = scope;
        enum flow f = exec(ev, node->c);
        ev->scope = old;
        radi_j_charge(ev, 1);
        if (f == F_BREAK)
            break;
    }
    if (q->n == 0 && node->d)
        (void)exec(ev, node->d);
}

/* {{ loop(children) }} of a recursive loop */
struct radi_jv radi_j_call_loop(struct radi_jev *ev, const struct radi_jloop *loop,
                                const struct radi_jargs *args)
{
    struct radi_jscope *old = ev->scope;
    size_t from = ev->out.len;

    if (!loop->node->flag)
        radi_j_fail(ev, RAD_E_FORMAT, "The loop must have the 'recursive' marker to be called "
                    "recursively.");
    if (args->n != 1 || args->nkw)
        radi_j_fail(ev, RAD_E_FORMAT, "loop() takes one argument");
    if (++ev->calls > ev->lim.depth)
        radi_j_fail(ev, RAD_E_FULL, "loops and macros nested deeper than %u", ev->lim.depth);
    ev->scope = loop->scope;
    run_loop(ev, loop->node, args->v[0], loop->depth0 + 1);
    ev->scope = old;
    ev->calls--;
    return cut(ev, from);
}

/* ---- macros */
static struct radi_jv macro_value(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jfunc *fn = radi_j_alloc(ev, 1, sizeof *fn);
    fn->type = JF_MACRO;
    fn->macro = n;
    fn->scope = ev->scope;
    for (struct radi_jscope *s = ev->scope; s && !s->captured; s = s->parent)
        s->captured = true;
    return (struct radi_jv){ .kind = J_FUNC, .fn = fn };
}

static bool take_kw(const struct radi_jargs *args, bool *used, const struct radi_jstr *name,
                    struct radi_jv *v)
{
    for (size_t i = 0; i < args->nkw; i++)
        if (!used[i] && args->kw[i].name->len == name->len &&
            memcmp(args->kw[i].name->p, name->p, name->len) == 0) {
            used[i] = true;
            *v = args->kw[i].v;
            return true;
        }
    return false;
}

/* Arguments that no parameter took. */
static void macro_rest(struct radi_jev *ev, const struct radi_jnode *m, struct radi_jscope *scope,
                       const struct radi_jargs *args, bool *used, size_t params)
{
    struct radi_jv v;
    struct radi_jsb label = { .ev = ev };

    if (m->name == ev->t->caller)
        radi_jsb_adds(&label, "None");      /* the body of a call block */
    else
        radi_jsb_repr(&label, radi_jv_str(m->name));
    radi_jsb_addc(&label, 0);
    if (m->flag & J_USES_CALLER) {
        if (!take_kw(args, used, ev->t->caller, &v))
            v = radi_jv_hint(ev, "No caller defined");
        radi_j_bind(ev, scope, ev->t->caller, v);
    }
    if (m->flag & J_USES_KWARGS) {
        struct radi_jdict *d = radi_j_dict(ev, 0);
        for (size_t i = 0; i < args->nkw; i++)
            if (!used[i])
                radi_j_put(ev, d, radi_jv_str(args->kw[i].name), args->kw[i].v);
        radi_j_bind(ev, scope, ev->t->kwargs, radi_jv_dict(d));
    } else
        for (size_t i = 0; i < args->nkw; i++)
            if (!used[i])
                radi_j_fail(ev, RAD_E_FORMAT, "macro %s takes no keyword argument '%.*s'",
                            label.p, (int)RADI_MIN(args->kw[i].name->len, (size_t)200),
                            args->kw[i].name->p);
    if (m->flag & J_USES_VARARGS) {
        struct radi_jseq *q = radi_j_seq(ev, JQ_TUPLE, 0);
        size_t cap = 0;
        for (size_t i = params; i < args->n; i++)
            radi_j_push(ev, q, &cap, args->v[i]);
        radi_j_bind(ev, scope, ev->t->varargs, radi_jv_seq(q));
    } else if (args->n > params)
        radi_j_fail(ev, RAD_E_FORMAT, "macro %s takes not more than %zu argument(s)", label.p,
                    params);
}

struct radi_jv radi_j_call_macro(struct radi_jev *ev, const struct radi_jfunc *fn,
                                 const struct radi_jargs *args)
{
    const struct radi_jnode *m = fn->macro;
    struct radi_jscope *scope = radi_j_scope(ev, fn->scope), *old = ev->scope;
    bool *used = radi_j_alloc(ev, args->nkw, sizeof *used);
    size_t i = 0;

    if (++ev->calls > ev->lim.depth)
        radi_j_fail(ev, RAD_E_FULL, "loops and macros nested deeper than %u", ev->lim.depth);
    for (const struct radi_jnode *p = m->a; p; p = p->next, i++) {
        struct radi_jv v;
        bool named = take_kw(args, used, p->name, &v);
        if (i < args->n) {
            if (named)
                radi_j_fail(ev, RAD_E_FORMAT, "macro got multiple values for argument '%.*s'",
                            (int)RADI_MIN(p->name->len, (size_t)200), p->name->p);
            v = args->v[i];
        } else if (!named) {
            if (p->a) {
                ev->scope = scope;
                v = radi_j_eval(ev, p->a);
                ev->scope = old;
            } else {
                struct radi_jsb b = { .ev = ev };
                radi_jsb_adds(&b, "parameter ");
                radi_jsb_repr(&b, radi_jv_str(p->name));
                radi_jsb_add(&b, " was not provided", 18);
                v = radi_jv_hint(ev, b.p);
            }
        }
        radi_j_bind(ev, scope, p->name, v);
    }
    macro_rest(ev, m, scope, args, used, i);
    struct radi_jv out = capture(ev, m->b, scope);
    ev->calls--;
    return out;
}

static void call_block(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jargs args;
    struct radi_jv fn = radi_j_eval(ev, n->a->a);
    radi_j_gather(ev, n->a->b, &args);
    struct radi_jkw *kw = radi_j_alloc(ev, args.nkw + 1, sizeof *kw);
    if (args.nkw)
        memcpy(kw, args.kw, args.nkw * sizeof *kw);
    kw[args.nkw++] = (struct radi_jkw){ ev->t->caller, macro_value(ev, n->b) };
    args.kw = kw;
    ev->line = n->line;
    struct radi_jv v = radi_jv_print(ev, radi_j_call(ev, fn, &args));
    emit(ev, v.s->p, v.s->len);
}

/* ---- the rest */
static enum flow with_block(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jscope *scope = radi_j_scope(ev, ev->scope), *old = ev->scope;
    for (const struct radi_jnode *i = n->a; i; i = i->next)
        assign(ev, i->a, scope, radi_j_eval(ev, i->b));
    ev->scope = scope;
    enum flow f = exec(ev, n->b);
    ev->scope = old;
    return f;
}

static enum flow exec_if(struct radi_jev *ev, const struct radi_jnode *n)
{
    for (const struct radi_jnode *i = n->a; i; i = i->next)
        if (radi_j_truth(radi_j_eval(ev, i->a)))
            return exec(ev, i->b);
    return exec(ev, n->b);
}

static enum flow exec_one(struct radi_jev *ev, const struct radi_jnode *n)
{
    struct radi_jscope *old = ev->scope;
    struct radi_jv v;
    enum flow f;

    switch (n->op) {
    case JN_TEXT:
        emit(ev, n->v.s->p, n->v.s->len);
        break;
    case JN_PRINT:
        v = radi_jv_print(ev, radi_j_eval(ev, n->a));
        emit(ev, v.s->p, v.s->len);
        break;
    case JN_IF:
        return exec_if(ev, n);
    case JN_FOR:
        run_loop(ev, n, radi_j_eval(ev, n->b->a), 0);
        break;
    case JN_SET:
        v = radi_j_eval(ev, n->b);
        ev->line = n->line;
        assign(ev, n->a, ev->scope, v);
        break;
    case JN_SETBLOCK:
        v = capture(ev, n->b, radi_j_scope(ev, ev->scope));
        if (n->c)
            v = radi_j_eval_filters(ev, n->c, v);
        assign(ev, n->a, ev->scope, v);
        break;
    case JN_MACRO:
        radi_j_bind(ev, ev->scope, n->name, macro_value(ev, n));
        break;
    case JN_CALLBLOCK:
        call_block(ev, n);
        break;
    case JN_FILTERBLOCK:
        v = capture(ev, n->b, radi_j_scope(ev, ev->scope));
        v = radi_jv_print(ev, radi_j_eval_filters(ev, n->a, v));
        emit(ev, v.s->p, v.s->len);
        break;
    case JN_WITH:
        return with_block(ev, n);
    case JN_SCOPE:
        ev->scope = radi_j_scope(ev, old);
        f = exec(ev, n->a);
        ev->scope = old;
        return f;
    case JN_BREAK:
        return F_BREAK;
    case JN_CONTINUE:
        return F_CONTINUE;
    default:
        radi_bug(__FILE__, __LINE__, "node is no statement");
    }
    return F_NEXT;
}

static enum flow exec(struct radi_jev *ev, const struct radi_jnode *n)
{
    enum flow f = F_NEXT;
    radi_j_enter(ev);
    for (; n && f == F_NEXT; n = n->next) {
        radi_j_charge(ev, 1);
        ev->line = n->line;
        f = exec_one(ev, n);
    }
    radi_j_leave(ev);
    return f;
}

void radi_j_exec_root(struct radi_jev *ev, const struct radi_jnode *body)
{
    ev->scope = radi_j_scope(ev, NULL);
    (void)exec(ev, body);
}
