/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the grammar of the data files' expressions and a parser with bounded
 * depth; eval.c gives it its meaning. Integers are exact: overflow and a
 * division that leaves a rest are errors, because each is a size of something.
 *
 *   e ? e : e     e ?? e (left unless null)     or  and  not
 *   == != < <= > >= in, not in     + - * / %     -e     e[i]     (e)
 *   1  2.5e-3  'text'  true  false  null  [e, ...]  name  $config.key  fn(e, ...) */
#include "config.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/expr.h"

#include "banned.h"

enum { MAX_DEPTH = 48, MAX_TEXT = 1024 };

/* ---- parser */
static const struct {
    const char *name;
    int lo, hi;
} function[] = {
    [FN_MIN] = { "min", 2, 8 },    [FN_MAX] = { "max", 2, 8 },
    [FN_DIV] = { "div", 2, 2 },    /* rounds towards minus infinity */
    [FN_SQRT] = { "sqrt", 1, 1 },  [FN_LN] = { "ln", 1, 1 },
    [FN_POW] = { "pow", 2, 2 },    [FN_FLOOR] = { "floor", 1, 1 },
    [FN_CEIL] = { "ceil", 1, 1 },  [FN_REAL] = { "real", 1, 1 },
    [FN_INT] = { "int", 1, 1 },    [FN_LEN] = { "len", 1, 1 },
    [FN_HAS] = { "has", 1, 1 },    /* the config has the key, be it null */
    [FN_CAT] = { "cat", 1, 8 },    [FN_CHAR] = { "char", 2, 2 },
    [FN_HIGHEST] = { "highest", 1, 1 },   /* of a number or list; of nothing -1 */
    [FN_INDEX] = { "index", 2, 2 },       /* of an element in a list, or -1 */
    [FN_STARTS] = { "starts", 2, 2 },
};

struct parse {
    struct radi_arena *a;
    const char *s, *text;
    int depth;
    struct rad_err *err;
};

static rad_status parse_expr(struct parse *p, struct lab_ex **out);

static rad_status bad(struct parse *p, const char *want)
{
    if (!*p->s)
        return rad_fail(p->err, RAD_E_FORMAT, "expression '%.200s': it ends, want %s", p->text,
                        want);
    return rad_fail(p->err, RAD_E_FORMAT, "expression '%.200s': at '%.20s', want %s", p->text,
                    p->s, want);
}

static void space(struct parse *p)
{
    while (*p->s == ' ')
        p->s++;
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A sign, or a word that no name goes on from. */
static bool take(struct parse *p, const char *w)
{
    size_t n = strlen(w);
    space(p);
    if (strncmp(p->s, w, n) || (name_char(w[0]) && name_char(p->s[n])))
        return false;
    p->s += n;
    return true;
}

static rad_status node(struct parse *p, enum op op, int n, struct lab_ex **out)
{
    struct lab_ex *e = radi_arena_alloc(p->a, sizeof(*e));
    if (e && n)
        e->arg = radi_arena_array(p->a, (size_t)n, sizeof(*e->arg));
    if (!e || (n && !e->arg))
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    e->op = op;
    e->n = n;
    *out = e;
    return RAD_OK;
}

static rad_status binary(struct parse *p, enum op op, struct lab_ex **left,
                         rad_status (*next)(struct parse *, struct lab_ex **))
{
    struct lab_ex *e;
    RAD_TRY(node(p, op, 2, &e));
    e->arg[0] = *left;
    *left = e;
    return next(p, &e->arg[1]);
}

/* Behind an opening bracket: expressions up to `end`. */
static rad_status parse_list(struct parse *p, char end, struct lab_ex *e)
{
    struct lab_ex *item[64];
    int n = 0;
    const char close[2] = { end, 0 };

    if (!take(p, close)) {
        do {
            if (n == 64)
                return bad(p, "at most 64 elements");
            RAD_TRY(parse_expr(p, &item[n]));
            n++;
        } while (take(p, ","));
        if (!take(p, close))
            return bad(p, end == ')' ? "',' or ')'" : "',' or ']'");
    }
    e->n = n;
    e->arg = radi_arena_array(p->a, (size_t)n + 1, sizeof(*e->arg));
    if (!e->arg)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    if (n)
        memcpy(e->arg, item, (size_t)n * sizeof(*item));
    return RAD_OK;
}

static rad_status parse_number(struct parse *p, struct lab_ex *e)
{
    char buf[48];
    size_t n = 0;
    bool real = false;

    while (n < sizeof(buf) - 1 &&
           (isdigit((unsigned char)p->s[n]) || p->s[n] == '.' || p->s[n] == 'e' ||
            ((p->s[n] == '-' || p->s[n] == '+') && n && p->s[n - 1] == 'e'))) {
        real = real || !isdigit((unsigned char)p->s[n]);
        buf[n] = p->s[n];
        n++;
    }
    buf[n] = 0;
    if (real) {
        e->lit.t = LAB_REAL;
        if (!radi_parse_f64(buf, &e->lit.d) || !isfinite(e->lit.d))
            return bad(p, "a number");
    } else {
        e->lit.t = LAB_INT;
        if (!radi_parse_i64(buf, &e->lit.i))
            return bad(p, "an integer of 64 bits");
    }
    p->s += n;
    return RAD_OK;
}

static rad_status parse_word(struct parse *p, struct lab_ex **out)
{
    const char *start = p->s;
    bool key = *p->s == '$';
    struct lab_ex *e = *out;

    if (key)
        start = ++p->s;
    while (name_char(*p->s) || (key && *p->s == '.' && name_char(p->s[1])))
        p->s++;
    if (p->s == start)
        return bad(p, "a key behind '$'");
    e->text = radi_arena_strndup(p->a, start, (size_t)(p->s - start));
    if (!e->text)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    if (key) {
        e->op = X_KEY;
        return RAD_OK;
    }
    if (!take(p, "(")) {
        e->op = X_NAME;
        return RAD_OK;
    }
    e->op = X_CALL;
    for (e->fn = 0; e->fn < (int)RADI_COUNT(function); e->fn++)
        if (!strcmp(function[e->fn].name, e->text))
            break;
    if (e->fn == (int)RADI_COUNT(function)) {
        p->s = start;
        return bad(p, "a function that there is");
    }
    RAD_TRY(parse_list(p, ')', e));
    if (e->n < function[e->fn].lo || e->n > function[e->fn].hi)
        return rad_fail(p->err, RAD_E_FORMAT,
                        "expression '%.200s': %s() of %d arguments, want %d%s", p->text, e->text,
                        e->n, function[e->fn].lo,
                        function[e->fn].lo < function[e->fn].hi ? " or more" : "");
    if (e->fn == FN_HAS && e->arg[0]->op != X_KEY)
        return rad_fail(p->err, RAD_E_FORMAT, "expression '%.200s': has() wants a $key", p->text);
    return RAD_OK;
}

static rad_status parse_primary(struct parse *p, struct lab_ex **out)
{
    struct lab_ex *e;

    space(p);
    if (take(p, "(")) {
        RAD_TRY(parse_expr(p, out));
        return take(p, ")") ? RAD_OK : bad(p, "')'");
    }
    RAD_TRY(node(p, X_LIT, 0, &e));
    *out = e;
    if (take(p, "true") || take(p, "false")) {
        e->lit.t = LAB_BOOL;
        e->lit.b = p->s[-2] == 'u';
        return RAD_OK;
    }
    if (take(p, "null"))
        return RAD_OK;
    if (take(p, "[")) {
        e->op = X_LIST;
        return parse_list(p, ']', e);
    }
    if (*p->s == '\'') {
        const char *end = strchr(p->s + 1, '\'');
        if (!end)
            return bad(p, "a quote that closes");
        e->lit.t = LAB_STR;
        e->lit.s = radi_arena_strndup(p->a, p->s + 1, (size_t)(end - p->s - 1));
        p->s = end + 1;
        return e->lit.s ? RAD_OK : rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    }
    if (isdigit((unsigned char)*p->s))
        return parse_number(p, e);
    if (*p->s == '$' || isalpha((unsigned char)*p->s) || *p->s == '_')
        return parse_word(p, out);
    return bad(p, "a value");
}

static rad_status parse_unary(struct parse *p, struct lab_ex **out)
{
    if (take(p, "-")) {
        struct lab_ex *e;
        if (++p->depth > MAX_DEPTH)
            return bad(p, "less nesting");
        RAD_TRY(node(p, X_NEG, 1, &e));
        *out = e;
        RAD_TRY(parse_unary(p, &e->arg[0]));
        p->depth--;
        return RAD_OK;
    }
    RAD_TRY(parse_primary(p, out));
    while (take(p, "[")) {
        RAD_TRY(binary(p, X_AT, out, parse_expr));
        if (!take(p, "]"))
            return bad(p, "']'");
    }
    return RAD_OK;
}

static rad_status parse_product(struct parse *p, struct lab_ex **out)
{
    RAD_TRY(parse_unary(p, out));
    for (;;) {
        enum op op = take(p, "*") ? X_MUL : take(p, "/") ? X_DIV : take(p, "%") ? X_MOD : X_LIT;
        if (op == X_LIT)
            return RAD_OK;
        RAD_TRY(binary(p, op, out, parse_unary));
    }
}

static rad_status parse_sum(struct parse *p, struct lab_ex **out)
{
    RAD_TRY(parse_product(p, out));
    for (;;) {
        enum op op = take(p, "+") ? X_ADD : take(p, "-") ? X_SUB : X_LIT;
        if (op == X_LIT)
            return RAD_OK;
        RAD_TRY(binary(p, op, out, parse_product));
    }
}

static rad_status parse_compare(struct parse *p, struct lab_ex **out)
{
    static const struct {
        const char *w;
        enum op op;
    } sign[] = { { "==", X_EQ }, { "!=", X_NE }, { "<=", X_LE }, { ">=", X_GE }, { "<", X_LT },
                 { ">", X_GT }, { "in", X_IN } };

    RAD_TRY(parse_sum(p, out));
    const char *back = p->s;
    if (take(p, "not")) {
        if (take(p, "in"))
            return binary(p, X_NOTIN, out, parse_sum);
        p->s = back;
        return RAD_OK;
    }
    for (size_t i = 0; i < RADI_COUNT(sign); i++)
        if (take(p, sign[i].w))
            return binary(p, sign[i].op, out, parse_sum);
    return RAD_OK;
}

static rad_status parse_not(struct parse *p, struct lab_ex **out)
{
    struct lab_ex *e;
    if (!take(p, "not"))
        return parse_compare(p, out);
    if (++p->depth > MAX_DEPTH)
        return bad(p, "less nesting");
    RAD_TRY(node(p, X_NOT, 1, &e));
    *out = e;
    RAD_TRY(parse_not(p, &e->arg[0]));
    p->depth--;
    return RAD_OK;
}

static rad_status parse_and(struct parse *p, struct lab_ex **out)
{
    RAD_TRY(parse_not(p, out));
    while (take(p, "and"))
        RAD_TRY(binary(p, X_AND, out, parse_not));
    return RAD_OK;
}

static rad_status parse_or(struct parse *p, struct lab_ex **out)
{
    RAD_TRY(parse_and(p, out));
    while (take(p, "or"))
        RAD_TRY(binary(p, X_OR, out, parse_and));
    return RAD_OK;
}

static rad_status parse_expr(struct parse *p, struct lab_ex **out)
{
    struct lab_ex *e;

    if (++p->depth > MAX_DEPTH)
        return bad(p, "less nesting");
    RAD_TRY(parse_or(p, out));
    while (take(p, "??"))
        RAD_TRY(binary(p, X_COALESCE, out, parse_or));
    if (take(p, "?")) {
        RAD_TRY(node(p, X_COND, 3, &e));
        e->arg[0] = *out;
        *out = e;
        RAD_TRY(parse_expr(p, &e->arg[1]));
        if (!take(p, ":"))
            return bad(p, "':'");
        RAD_TRY(parse_expr(p, &e->arg[2]));
    }
    p->depth--;
    return RAD_OK;
}

rad_status lab_ex_parse(struct radi_arena *a, const char *text, struct lab_ex **out,
                        struct rad_err *err)
{
    struct parse p = { .a = a, .s = text, .text = text, .err = err };
    struct lab_ex *e;

    *out = NULL;
    if (strlen(text) > MAX_TEXT)
        return rad_fail(err, RAD_E_FORMAT, "expression of %zu bytes, want at most %d",
                        strlen(text), MAX_TEXT);
    RAD_TRY(parse_expr(&p, &e));
    space(&p);
    if (*p.s)
        return bad(&p, "an operator or the end");
    /* the root remembers its source, for messages */
    struct lab_ex *root;
    RAD_TRY(node(&p, X_LIST, 1, &root));
    root->arg[0] = e;
    root->text = radi_arena_strndup(a, text, strlen(text));
    if (!root->text)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    *out = root;
    return RAD_OK;
}

struct lab_ex *lab_ex_lit(struct radi_arena *a, const struct lab_val *v)
{
    struct lab_ex *root = radi_arena_alloc(a, sizeof(*root)), *e = radi_arena_alloc(a, sizeof(*e));
    struct radi_str s = { 0 };

    if (!root || !e)
        return NULL;
    e->op = X_LIT;
    e->lit = *v;
    root->op = X_LIST;
    root->n = 1;
    root->arg = radi_arena_array(a, 1, sizeof(*root->arg));
    lab_val_text(&s, v);
    if (root->arg && !s.failed) {
        root->arg[0] = e;
        root->text = radi_arena_strndup(a, s.s, s.len);
    }
    radi_str_release(&s);
    return root->text ? root : NULL;
}

const char *lab_ex_text(const struct lab_ex *e)
{
    return e->text;
}

/* ---- names */
static rad_status names(const struct lab_ex *e,
                        rad_status (*fn)(void *, bool, const char *, struct rad_err *),
                        void *user, struct rad_err *err)
{
    if (e->op == X_NAME || e->op == X_KEY)
        return fn(user, e->op == X_KEY, e->text, err);
    for (int i = 0; i < e->n; i++)
        RAD_TRY(names(e->arg[i], fn, user, err));
    return RAD_OK;
}

rad_status lab_ex_names(const struct lab_ex *e,
                        rad_status (*fn)(void *user, bool key, const char *name,
                                         struct rad_err *err),
                        void *user, struct rad_err *err)
{
    return names(e->arg[0], fn, user, err);
}
