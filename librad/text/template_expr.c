/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the grammar of expressions. Chains of operators of one rank become one
 * node with a list, so that a long sum does not nest. */
#include "config.h"

#include <stdio.h>

#include "text/template.h"

#include "banned.h"

enum { MAX_NEST = 100 };

void radi_jp_fail(struct radi_jparse *p, const char *fmt, ...)
{
    char text[RAD_ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->ev->line = p->k->line;
    radi_j_fail(p->ev, RAD_E_FORMAT, "%s", text);
}

void radi_jp_enter(struct radi_jparse *p)
{
    if (++p->depth > MAX_NEST) {
        p->ev->line = p->k->line;
        radi_j_fail(p->ev, RAD_E_FULL, "nested deeper than %d levels", MAX_NEST);
    }
}

struct radi_jnode *radi_jp_node(struct radi_jparse *p, enum radi_jop op, uint32_t line)
{
    struct radi_jnode *n = radi_j_alloc(p->ev, 1, sizeof *n);
    n->op = (uint8_t)op;
    n->line = line;
    return n;
}

const struct radi_jstr *radi_jp_intern(struct radi_jparse *p, const char *s, size_t n)
{
    uint64_t at;
    if (!radi_map_get(p->t->names, s, n, &at)) {
        at = (uintptr_t)radi_jv_borrow(p->ev, s, n).s;
        if (!radi_map_put(p->t->names, s, n, at, NULL))
            radi_j_fail(p->ev, RAD_E_NOMEM, "out of memory");
    }
    return (const struct radi_jstr *)(uintptr_t)at;
}

bool radi_jp_is_op(const struct radi_jtok *k, const char *op)
{
    return k->type == JT_OP && strcmp(k->op, op) == 0;
}

bool radi_jp_is_name(const struct radi_jtok *k, const char *name)
{
    return k->type == JT_NAME && k->n == strlen(name) && memcmp(k->s, name, k->n) == 0;
}

bool radi_jp_skip_op(struct radi_jparse *p, const char *op)
{
    bool is = radi_jp_is_op(p->k, op);
    p->k += is;
    return is;
}

bool radi_jp_skip_name(struct radi_jparse *p, const char *name)
{
    bool is = radi_jp_is_name(p->k, name);
    p->k += is;
    return is;
}

/* The current token, for a message. */
static const char *found(const struct radi_jtok *k, char buf[64])
{
    switch (k->type) {
    case JT_EOF: return "end of template";
    case JT_VAR_END: return "end of print statement";
    case JT_BLOCK_END: return "end of statement block";
    case JT_STR: return "a string";
    case JT_NUM: return "a number";
    case JT_NAME:
        snprintf(buf, 64, "'%.*s'", (int)RADI_MIN(k->n, (size_t)40), k->s);
        return buf;
    case JT_OP:
        snprintf(buf, 64, "'%s'", k->op);
        return buf;
    default: return "template text";
    }
}

void radi_jp_want_op(struct radi_jparse *p, const char *op)
{
    char buf[64];
    if (!radi_jp_skip_op(p, op))
        radi_jp_fail(p, "found %s, want '%s'", found(p->k, buf), op);
}

/* ---- lists of nodes */
struct list {
    struct radi_jnode *head, **tail;
};

static void append(struct list *l, struct radi_jnode *n)
{
    if (!l->tail)
        l->tail = &l->head;
    *l->tail = n;
    l->tail = &n->next;
}

static struct radi_jnode *arg(struct radi_jparse *p, int flag, struct radi_jnode *a)
{
    struct radi_jnode *n = radi_jp_node(p, JN_ARG, a ? a->line : p->k->line);
    n->flag = (uint8_t)flag;
    n->a = a;
    return n;
}

/* ---- primary expressions */
static struct radi_jnode *name(struct radi_jparse *p)
{
    const struct radi_jtok *k = p->k++;
    static const struct { const char *text; uint8_t kind; bool b; } words[] = {
        { "true", J_BOOL, true }, { "True", J_BOOL, true }, { "false", J_BOOL, false },
        { "False", J_BOOL, false }, { "none", J_NONE, false }, { "None", J_NONE, false },
    };
    for (size_t i = 0; i < RADI_COUNT(words); i++)
        if (radi_jp_is_name(k, words[i].text)) {
            struct radi_jnode *n = radi_jp_node(p, JN_CONST, k->line);
            n->v.kind = words[i].kind;
            if (n->v.kind == J_BOOL)
                n->v.b = words[i].b;
            return n;
        }
    struct radi_jnode *n = radi_jp_node(p, JN_NAME, k->line);
    n->name = radi_jp_intern(p, k->s, k->n);
    struct radi_jname *r = p->t->reads;
    for (; r && r->name != n->name; r = r->next)
        radi_j_charge(p->ev, 1);
    if (!r) {
        r = radi_j_alloc(p->ev, 1, sizeof *r);
        *r = (struct radi_jname){ p->t->reads, n->name };
        p->t->reads = r;
    }
    return n;
}

static struct radi_jnode *list_of(struct radi_jparse *p)
{
    struct radi_jnode *n = radi_jp_node(p, JN_LIST, p->k->line);
    struct list l = { 0 };
    p->k++;
    while (!radi_jp_is_op(p->k, "]")) {
        if (l.head)
            radi_jp_want_op(p, ",");
        if (radi_jp_is_op(p->k, "]"))
            break;
        append(&l, radi_jp_expr(p, true));
    }
    p->k++;
    n->a = l.head;
    return n;
}

static struct radi_jnode *dict_of(struct radi_jparse *p)
{
    struct radi_jnode *n = radi_jp_node(p, JN_DICT, p->k->line);
    struct list l = { 0 };
    p->k++;
    while (!radi_jp_is_op(p->k, "}")) {
        if (l.head)
            radi_jp_want_op(p, ",");
        if (radi_jp_is_op(p->k, "}"))
            break;
        struct radi_jnode *pair = arg(p, 0, radi_jp_expr(p, true));
        radi_jp_want_op(p, ":");
        pair->b = radi_jp_expr(p, true);
        append(&l, pair);
    }
    p->k++;
    n->a = l.head;
    return n;
}

struct radi_jnode *radi_jp_primary(struct radi_jparse *p)
{
    const struct radi_jtok *k = p->k;
    struct radi_jnode *n;
    char buf[64];

    if (k->type == JT_NAME)
        return name(p);
    if (k->type == JT_STR || k->type == JT_NUM) {
        n = radi_jp_node(p, JN_CONST, k->line);
        n->v = k->v;
        p->k++;
        if (k->type == JT_STR && p->k->type == JT_STR) {
            struct radi_jsb b = { .ev = p->ev };
            radi_jsb_str(&b, k->v.s);
            for (; p->k->type == JT_STR; p->k++)
                radi_jsb_str(&b, p->k->v.s);
            n->v = radi_jsb_done(&b);
        }
        return n;
    }
    if (!radi_jp_is_op(k, "(") && !radi_jp_is_op(k, "[") && !radi_jp_is_op(k, "{"))
        radi_jp_fail(p, "unexpected %s", found(k, buf));
    radi_jp_enter(p);
    if (k->op[0] == '(') {
        p->k++;
        n = radi_jp_tuple(p, true, true, NULL);
        radi_jp_want_op(p, ")");
    } else
        n = k->op[0] == '[' ? list_of(p) : dict_of(p);
    p->depth--;
    return n;
}

/* ---- calls, subscripts */
struct radi_jnode *radi_jp_args(struct radi_jparse *p)
{
    struct list l = { 0 };
    bool named = false;

    radi_jp_want_op(p, "(");
    radi_jp_enter(p);
    while (!radi_jp_is_op(p->k, ")")) {
        struct radi_jnode *a;
        if (l.head) {
            radi_jp_want_op(p, ",");
            if (radi_jp_is_op(p->k, ")"))
                break;
        }
        if (radi_jp_skip_op(p, "**"))
            a = arg(p, JA_DSTAR, radi_jp_expr(p, true));
        else if (radi_jp_skip_op(p, "*"))
            a = arg(p, JA_STAR, radi_jp_expr(p, true));
        else if (p->k->type == JT_NAME && radi_jp_is_op(p->k + 1, "=")) {
            const struct radi_jtok *k = p->k;
            p->k += 2;
            a = arg(p, JA_KW, radi_jp_expr(p, true));
            a->name = radi_jp_intern(p, k->s, k->n);
        } else {
            if (named)
                radi_jp_fail(p, "positional argument after a named one");
            a = arg(p, JA_POS, radi_jp_expr(p, true));
        }
        named |= a->flag == JA_KW || a->flag == JA_DSTAR;
        append(&l, a);
    }
    p->k++;
    p->depth--;
    return l.head;
}

static struct radi_jnode *call(struct radi_jparse *p, struct radi_jnode *fn)
{
    struct radi_jnode *n = radi_jp_node(p, JN_CALL, p->k->line);
    n->a = fn;
    n->b = radi_jp_args(p);
    return n;
}

static struct radi_jnode *subscript(struct radi_jparse *p, struct radi_jnode *obj)
{
    struct radi_jnode *n, *part[3] = { NULL, NULL, NULL };
    uint32_t line = p->k->line;
    int colons = 0;
    char buf[64];

    if (radi_jp_skip_op(p, ".")) {
        const struct radi_jtok *k = p->k++;
        if (k->type == JT_NAME) {
            n = radi_jp_node(p, JN_ATTR, line);
            n->name = radi_jp_intern(p, k->s, k->n);
        } else if (k->type == JT_NUM && k->v.kind == J_INT) {
            n = radi_jp_node(p, JN_ITEM, line);
            n->b = radi_jp_node(p, JN_CONST, line);
            n->b->v = k->v;
        } else {
            p->k--;
            radi_jp_fail(p, "found %s, want a name or a number", found(k, buf));
        }
        n->a = obj;
        return n;
    }
    p->k++;
    radi_jp_enter(p);
    while (!radi_jp_is_op(p->k, "]")) {
        if (radi_jp_is_op(p->k, ":")) {
            if (++colons > 2)
                radi_jp_fail(p, "unexpected ':'");
            p->k++;
        } else if (part[colons])
            radi_jp_fail(p, "found %s, want ']'", found(p->k, buf));
        else
            part[colons] = radi_jp_expr(p, true);
    }
    if (!colons && !part[0])
        radi_jp_fail(p, "expected a subscript");
    p->k++;
    p->depth--;
    n = radi_jp_node(p, colons ? JN_SLICE : JN_ITEM, line);
    if (colons) {
        n->a = part[0];
        n->b = part[1];
        n->c = part[2];
        n->d = obj;
    } else {
        n->a = obj;
        n->b = part[0];
    }
    return n;
}

struct radi_jnode *radi_jp_postfix(struct radi_jparse *p, struct radi_jnode *n)
{
    for (;;) {
        if (radi_jp_is_op(p->k, ".") || radi_jp_is_op(p->k, "["))
            n = subscript(p, n);
        else if (radi_jp_is_op(p->k, "("))
            n = call(p, n);
        else
            return n;
    }
}

/* ---- filters and tests */
static const struct radi_jstr *dotted(struct radi_jparse *p)
{
    char buf[64];
    const struct radi_jtok *k = p->k;
    if (k->type != JT_NAME)
        radi_jp_fail(p, "found %s, want a name", found(k, buf));
    p->k++;
    if (!radi_jp_is_op(p->k, "."))
        return radi_jp_intern(p, k->s, k->n);
    struct radi_jsb b = { .ev = p->ev };
    radi_jsb_add(&b, k->s, k->n);
    while (radi_jp_skip_op(p, ".")) {
        if (p->k->type != JT_NAME)
            radi_jp_fail(p, "found %s, want a name", found(p->k, buf));
        radi_jsb_addc(&b, '.');
        radi_jsb_add(&b, p->k->s, p->k->n);
        p->k++;
    }
    return radi_jp_intern(p, b.p, b.len);
}

struct radi_jnode *radi_jp_filters(struct radi_jparse *p, struct radi_jnode *n, bool first)
{
    while (first || radi_jp_skip_op(p, "|")) {
        struct radi_jnode *f = radi_jp_node(p, JN_FILTER, p->k->line);
        first = false;
        f->name = dotted(p);
        f->def = radi_j_filter(f->name->p, f->name->len);
        f->a = n;
        if (radi_jp_is_op(p->k, "("))
            f->b = radi_jp_args(p);
        n = f;
    }
    return n;
}

static struct radi_jnode *test(struct radi_jparse *p, struct radi_jnode *obj)
{
    struct radi_jnode *n = radi_jp_node(p, JN_TEST, p->k->line);
    n->a = obj;
    n->flag = radi_jp_skip_name(p, "not");
    n->name = dotted(p);
    n->def = radi_j_test(n->name->p, n->name->len);
    const struct radi_jtok *k = p->k;
    if (radi_jp_is_op(k, "("))
        n->b = radi_jp_args(p);
    else if (radi_jp_is_name(k, "is"))
        radi_jp_fail(p, "you cannot chain multiple tests with is");
    else if (k->type == JT_STR || k->type == JT_NUM || radi_jp_is_op(k, "[") ||
             radi_jp_is_op(k, "{") ||
             (k->type == JT_NAME && !radi_jp_is_name(k, "else") && !radi_jp_is_name(k, "or") &&
              !radi_jp_is_name(k, "and")))
        n->b = arg(p, JA_POS, radi_jp_postfix(p, radi_jp_primary(p)));
    return n;
}

/* ---- operators, from the tightest */
struct radi_jnode *radi_jp_unary(struct radi_jparse *p, bool with_filter)
{
    struct radi_jnode *n;
    const struct radi_jtok *k = p->k;

    if (radi_jp_is_op(k, "-") || radi_jp_is_op(k, "+")) {
        p->k++;
        radi_jp_enter(p);
        n = radi_jp_node(p, k->op[0] == '-' ? JN_NEG : JN_POS, k->line);
        n->a = radi_jp_unary(p, false);
        p->depth--;
    } else
        n = radi_jp_primary(p);
    n = radi_jp_postfix(p, n);
    while (with_filter) {
        if (radi_jp_is_op(p->k, "|"))
            n = radi_jp_filters(p, n, false);
        else if (radi_jp_skip_name(p, "is"))
            n = test(p, n);
        else if (radi_jp_is_op(p->k, "("))
            n = call(p, n);
        else
            break;
    }
    return n;
}

struct rank {
    const char *op[5];
    uint8_t code[5];
};
static const struct rank ranks[] = {
    { { "+", "-" }, { JB_ADD, JB_SUB } },
    { { "~" }, { 0 } },
    { { "*", "/", "//", "%" }, { JB_MUL, JB_DIV, JB_FLOORDIV, JB_MOD } },
    { { "**" }, { JB_POW } },
};

static struct radi_jnode *chain(struct radi_jparse *p, size_t rank)
{
    if (rank == RADI_COUNT(ranks))
        return radi_jp_unary(p, true);
    const struct rank *r = &ranks[rank];
    struct radi_jnode *first = chain(p, rank + 1);
    struct list l = { 0 };
    for (;;) {
        int i = 0;
        while (r->op[i] && !radi_jp_is_op(p->k, r->op[i]))
            i++;
        if (!r->op[i])
            break;
        p->k++;
        append(&l, arg(p, r->code[i], chain(p, rank + 1)));
    }
    if (!l.head)
        return first;
    struct radi_jnode *n = radi_jp_node(p, r->op[0][0] == '~' ? JN_CONCAT : JN_CHAIN,
                                        first->line);
    n->a = first;
    n->b = l.head;
    return n;
}

static int comparison(struct radi_jparse *p)
{
    static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=" };
    for (int i = 0; i < 6; i++)
        if (radi_jp_skip_op(p, ops[i]))
            return JB_EQ + i;
    if (radi_jp_skip_name(p, "in"))
        return JB_IN;
    if (radi_jp_is_name(p->k, "not") && radi_jp_is_name(p->k + 1, "in")) {
        p->k += 2;
        return JB_NOTIN;
    }
    return -1;
}

static struct radi_jnode *compare(struct radi_jparse *p)
{
    struct radi_jnode *first = chain(p, 0);
    struct list l = { 0 };
    int op;
    while ((op = comparison(p)) >= 0)
        append(&l, arg(p, op, chain(p, 0)));
    if (!l.head)
        return first;
    struct radi_jnode *n = radi_jp_node(p, JN_CMP, first->line);
    n->a = first;
    n->b = l.head;
    return n;
}

static struct radi_jnode *not_(struct radi_jparse *p)
{
    if (!radi_jp_is_name(p->k, "not"))
        return compare(p);
    struct radi_jnode *n = radi_jp_node(p, JN_NOT, p->k->line);
    p->k++;
    radi_jp_enter(p);
    n->a = not_(p);
    p->depth--;
    return n;
}

static struct radi_jnode *logic(struct radi_jparse *p, bool or)
{
    struct radi_jnode *first = or ? logic(p, false) : not_(p);
    struct list l = { 0 };
    while (radi_jp_skip_name(p, or ? "or" : "and"))
        append(&l, or ? logic(p, false) : not_(p));
    if (!l.head)
        return first;
    struct radi_jnode *n = radi_jp_node(p, or ? JN_OR : JN_AND, first->line);
    first->next = l.head;
    n->a = first;
    return n;
}

struct radi_jnode *radi_jp_expr(struct radi_jparse *p, bool cond)
{
    struct radi_jnode *n = logic(p, true);
    if (!cond)
        return n;
    radi_jp_enter(p);
    while (radi_jp_is_name(p->k, "if")) {
        struct radi_jnode *c = radi_jp_node(p, JN_COND, p->k->line);
        p->k++;
        c->b = n;
        c->a = logic(p, true);
        if (radi_jp_skip_name(p, "else"))
            c->c = radi_jp_expr(p, true);
        n = c;
    }
    p->depth--;
    return n;
}

/* One expression, or several with commas as a tuple. `stop` is a name that
 * ends it ("in", "recursive"). */
struct radi_jnode *radi_jp_tuple(struct radi_jparse *p, bool cond, bool parens, const char *stop)
{
    struct list l = { 0 };
    uint32_t line = p->k->line;
    bool is_tuple = false;
    char buf[64];

    for (;;) {
        if (l.head) {
            if (!radi_jp_skip_op(p, ","))
                break;
            is_tuple = true;
        }
        const struct radi_jtok *k = p->k;
        if (k->type == JT_VAR_END || k->type == JT_BLOCK_END || radi_jp_is_op(k, ")") ||
            (stop && radi_jp_is_name(k, stop)))
            break;
        append(&l, radi_jp_expr(p, cond));
    }
    if (!is_tuple && l.head)
        return l.head;
    if (!l.head && !parens)
        radi_jp_fail(p, "found %s, want an expression", found(p->k, buf));
    struct radi_jnode *n = radi_jp_node(p, JN_TUPLE, line);
    n->a = l.head;
    return n;
}
