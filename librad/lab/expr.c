/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the expression language of the data files: typed values, a parser with
 * bounded depth, evaluation. Integers are exact: overflow and a division that
 * leaves a rest are errors, because every one of them is a size of something.
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

#include "lab/lab.h"

#include "banned.h"

enum { MAX_DEPTH = 48, MAX_TEXT = 1024 };

enum op {
    X_LIT, X_NAME, X_KEY, X_LIST, X_COND, X_COALESCE, X_OR, X_AND, X_NOT,
    X_EQ, X_NE, X_LT, X_LE, X_GT, X_GE, X_IN, X_NOTIN,
    X_ADD, X_SUB, X_MUL, X_DIV, X_MOD, X_NEG, X_AT, X_CALL
};

struct lab_ex {
    enum op op;
    int fn, n;
    struct lab_ex **arg;
    struct lab_val lit;
    const char *text;           /* name; of the root: the source */
};

/* ---- values */
const char *lab_vtype_name(enum lab_vtype t)
{
    static const char *const name[] = { "null", "bool", "int", "real", "str", "list" };
    return name[t];
}

bool lab_val_num(const struct lab_val *v, double *out)
{
    if (v->t == LAB_INT)
        *out = (double)v->i;
    else if (v->t == LAB_REAL)
        *out = v->d;
    else
        return false;
    return true;
}

bool lab_val_eq(const struct lab_val *a, const struct lab_val *b)
{
    double x, y;
    if (a->t == LAB_INT && b->t == LAB_INT)
        return a->i == b->i;
    if (lab_val_num(a, &x) && lab_val_num(b, &y))
        return x == y;
    if (a->t != b->t)
        return false;
    if (a->t == LAB_BOOL)
        return a->b == b->b;
    if (a->t == LAB_STR)
        return strcmp(a->s, b->s) == 0;
    if (a->t == LAB_LIST) {
        if (a->l.n != b->l.n)
            return false;
        for (size_t i = 0; i < a->l.n; i++)
            if (!lab_val_eq(&a->l.v[i], &b->l.v[i]))
                return false;
    }
    return true;
}

void lab_val_text(struct radi_str *out, const struct lab_val *v)
{
    switch (v->t) {
    case LAB_NULL: radi_str_adds(out, "null"); break;
    case LAB_BOOL: radi_str_adds(out, v->b ? "true" : "false"); break;
    case LAB_INT: radi_str_addf(out, "%lld", (long long)v->i); break;
    case LAB_REAL: {
        char b[40];
        snprintf(b, sizeof(b), "%.15g", v->d);
        if (strtod(b, NULL) != v->d)
            snprintf(b, sizeof(b), "%.17g", v->d);
        radi_str_adds(out, b);
        if (!strpbrk(b, ".en"))
            radi_str_adds(out, ".0");
        break;
    }
    case LAB_STR: radi_str_add_json(out, v->s, strlen(v->s)); break;
    case LAB_LIST:
        radi_str_addc(out, '[');
        for (size_t i = 0; i < v->l.n; i++) {
            if (i)
                radi_str_adds(out, ", ");
            lab_val_text(out, &v->l.v[i]);
        }
        radi_str_addc(out, ']');
        break;
    }
}

rad_status lab_val_of_json(struct radi_arena *a, const struct cJSON *j, struct lab_val *out,
                           struct rad_err *err)
{
    *out = (struct lab_val){ .t = LAB_NULL };
    if (cJSON_IsBool(j)) {
        out->t = LAB_BOOL;
        out->b = cJSON_IsTrue(j);
    } else if (cJSON_IsNumber(j)) {
        double d = j->valuedouble;
        if (d == floor(d) && fabs(d) < 9007199254740992.0) {
            out->t = LAB_INT;
            out->i = (int64_t)d;
        } else {
            out->t = LAB_REAL;
            out->d = d;
        }
    } else if (cJSON_IsString(j)) {
        out->t = LAB_STR;
        out->s = radi_arena_strndup(a, j->valuestring, strlen(j->valuestring));
        if (!out->s)
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
    } else if (cJSON_IsArray(j)) {
        size_t n = (size_t)cJSON_GetArraySize(j), i = 0;
        out->t = LAB_LIST;
        out->l.n = n;
        out->l.v = radi_arena_array(a, n ? n : 1, sizeof(*out->l.v));
        if (!out->l.v)
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
        for (const cJSON *c = j->child; c; c = c->next)
            RAD_TRY(lab_val_of_json(a, c, &out->l.v[i++], err));
    } else if (cJSON_IsObject(j)) {
        out->t = LAB_BOOL;          /* that it is there is all there is to say */
        out->b = true;
    }
    return RAD_OK;
}

/* ---- parser */
enum { FN_MIN, FN_MAX, FN_DIV, FN_SQRT, FN_LN, FN_POW, FN_FLOOR, FN_CEIL, FN_REAL, FN_INT,
       FN_LEN, FN_HAS, FN_CAT, FN_CHAR, FN_HIGHEST, FN_INDEX, FN_STARTS };
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
        return rad_fail(p->err, RAD_E_FORMAT, "expression '%.200s': %s() of %d arguments, want %d%s",
                        p->text, e->text, e->n, function[e->fn].lo,
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

/* ---- evaluation */
struct eval {
    const struct lab_env *env;
    struct rad_err *err;
};

static rad_status eval(struct eval *c, const struct lab_ex *e, struct lab_val *v);

static rad_status wrong(struct eval *c, const struct lab_val *v, const char *want)
{
    return rad_fail(c->err, RAD_E_FORMAT, "%s where %s is wanted", lab_vtype_name(v->t), want);
}

static rad_status eval_bool(struct eval *c, const struct lab_ex *e, bool *out)
{
    struct lab_val v;
    RAD_TRY(eval(c, e, &v));
    if (v.t != LAB_BOOL)
        return wrong(c, &v, "true or false");
    *out = v.b;
    return RAD_OK;
}

static rad_status overflow(struct eval *c)
{
    return rad_fail(c->err, RAD_E_FORMAT, "the result does not fit 64 bits");
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b && (a < 0) != (b < 0) ? q - 1 : q;
}

static rad_status int_op(struct eval *c, enum op op, int64_t a, int64_t b, int64_t *out)
{
    bool over = false;
    switch (op) {
    case X_ADD: over = __builtin_add_overflow(a, b, out); break;
    case X_SUB: over = __builtin_sub_overflow(a, b, out); break;
    case X_MUL: over = __builtin_mul_overflow(a, b, out); break;
    default:
        if (b == 0)
            return rad_fail(c->err, RAD_E_FORMAT, "%lld is divided by 0", (long long)a);
        if (a == INT64_MIN && b == -1)
            return overflow(c);
        if (op == X_DIV && a % b)
            return rad_fail(c->err, RAD_E_FORMAT, "%lld is not a multiple of %lld", (long long)a,
                            (long long)b);
        *out = op == X_DIV ? a / b : a - floor_div(a, b) * b;
    }
    return over ? overflow(c) : RAD_OK;
}

static rad_status arith(struct eval *c, const struct lab_ex *e, struct lab_val *v)
{
    struct lab_val a, b;
    double x, y;

    RAD_TRY(eval(c, e->arg[0], &a));
    RAD_TRY(eval(c, e->arg[1], &b));
    if (a.t == LAB_INT && b.t == LAB_INT) {
        v->t = LAB_INT;
        return int_op(c, e->op, a.i, b.i, &v->i);
    }
    if (!lab_val_num(&a, &x))
        return wrong(c, &a, "a number");
    if (!lab_val_num(&b, &y))
        return wrong(c, &b, "a number");
    if (e->op == X_MOD)
        return rad_fail(c->err, RAD_E_FORMAT, "%% wants integers");
    if (e->op == X_DIV && y == 0)
        return rad_fail(c->err, RAD_E_FORMAT, "%g is divided by 0", x);
    v->t = LAB_REAL;
    v->d = e->op == X_ADD ? x + y : e->op == X_SUB ? x - y : e->op == X_MUL ? x * y : x / y;
    return isfinite(v->d) ? RAD_OK : rad_fail(c->err, RAD_E_FORMAT, "the result is not finite");
}

static rad_status compare(struct eval *c, const struct lab_ex *e, struct lab_val *v)
{
    struct lab_val a, b;
    double x, y;

    RAD_TRY(eval(c, e->arg[0], &a));
    RAD_TRY(eval(c, e->arg[1], &b));
    v->t = LAB_BOOL;
    if (e->op == X_EQ || e->op == X_NE) {
        v->b = lab_val_eq(&a, &b) == (e->op == X_EQ);
        return RAD_OK;
    }
    if (e->op == X_IN || e->op == X_NOTIN) {
        bool found = false;
        if (b.t != LAB_LIST)
            return wrong(c, &b, "a list");
        for (size_t i = 0; i < b.l.n && !found; i++)
            found = lab_val_eq(&a, &b.l.v[i]);
        v->b = found == (e->op == X_IN);
        return RAD_OK;
    }
    if (!lab_val_num(&a, &x))
        return wrong(c, &a, "a number");
    if (!lab_val_num(&b, &y))
        return wrong(c, &b, "a number");
    if (a.t == LAB_INT && b.t == LAB_INT)
        v->b = e->op == X_LT ? a.i < b.i : e->op == X_LE ? a.i <= b.i :
               e->op == X_GT ? a.i > b.i : a.i >= b.i;
    else
        v->b = e->op == X_LT ? x < y : e->op == X_LE ? x <= y : e->op == X_GT ? x > y : x >= y;
    return RAD_OK;
}

static rad_status at(struct eval *c, const struct lab_val *list, const struct lab_val *index,
                     struct lab_val *v)
{
    if (index->t != LAB_INT)
        return wrong(c, index, "an integer");
    if (list->t == LAB_STR) {           /* pattern strings */
        if (index->i < 0 || (uint64_t)index->i >= strlen(list->s))
            return rad_fail(c->err, RAD_E_FORMAT, "character %lld of %zu", (long long)index->i,
                            strlen(list->s));
        v->t = LAB_STR;
        v->s = radi_arena_strndup(c->env->arena, list->s + index->i, 1);
        return v->s ? RAD_OK : rad_fail(c->err, RAD_E_NOMEM, "out of memory");
    }
    if (list->t != LAB_LIST)
        return wrong(c, list, "a list");
    if (index->i < 0 || (uint64_t)index->i >= list->l.n)
        return rad_fail(c->err, RAD_E_FORMAT, "element %lld of a list of %zu",
                        (long long)index->i, list->l.n);
    *v = list->l.v[index->i];
    return RAD_OK;
}

static rad_status fn_real(struct eval *c, int fn, const struct lab_val *arg, struct lab_val *v)
{
    double x, y = 0;

    if (!lab_val_num(&arg[0], &x))
        return wrong(c, &arg[0], "a number");
    if (fn == FN_POW && !lab_val_num(&arg[1], &y))
        return wrong(c, &arg[1], "a number");
    if (fn == FN_INT || fn == FN_FLOOR || fn == FN_CEIL) {
        double r = fn == FN_CEIL ? ceil(x) : fn == FN_FLOOR ? floor(x) : trunc(x);
        if (arg[0].t == LAB_INT)
            r = 0;
        else if (!(fabs(r) < 9007199254740992.0))
            return overflow(c);
        v->t = LAB_INT;
        v->i = arg[0].t == LAB_INT ? arg[0].i : (int64_t)r;
        return RAD_OK;
    }
    v->t = LAB_REAL;
    v->d = fn == FN_SQRT ? sqrt(x) : fn == FN_LN ? log(x) : fn == FN_POW ? pow(x, y) : x;
    return isfinite(v->d) ? RAD_OK :
        rad_fail(c->err, RAD_E_FORMAT, "%s(%g) is not finite", function[fn].name, x);
}

static rad_status fn_minmax(struct eval *c, int fn, const struct lab_val *arg, int n,
                            struct lab_val *v)
{
    double x, best = 0;
    for (int i = 0; i < n; i++) {
        if (!lab_val_num(&arg[i], &x))
            return wrong(c, &arg[i], "a number");
        if (i == 0 || (fn == FN_MIN ? x < best : x > best)) {
            best = x;
            *v = arg[i];
        }
    }
    return RAD_OK;
}

static rad_status fn_cat(struct eval *c, const struct lab_val *arg, int n, struct lab_val *v)
{
    struct radi_str s = { 0 };
    for (int i = 0; i < n; i++)
        if (arg[i].t == LAB_STR)
            radi_str_adds(&s, arg[i].s);
        else
            lab_val_text(&s, &arg[i]);
    v->t = LAB_STR;
    v->s = s.failed ? NULL : radi_arena_strndup(c->env->arena, s.s ? s.s : "", s.len);
    radi_str_release(&s);
    return v->s ? RAD_OK : rad_fail(c->err, RAD_E_NOMEM, "out of memory");
}

static rad_status call(struct eval *c, const struct lab_ex *e, struct lab_val *v)
{
    struct lab_val arg[8];

    for (int i = 0; i < e->n; i++)
        RAD_TRY(eval(c, e->arg[i], &arg[i]));
    switch (e->fn) {
    case FN_MIN:
    case FN_MAX:
        return fn_minmax(c, e->fn, arg, e->n, v);
    case FN_DIV:
        if (arg[0].t != LAB_INT || arg[1].t != LAB_INT || arg[1].i == 0 ||
            (arg[0].i == INT64_MIN && arg[1].i == -1))
            return rad_fail(c->err, RAD_E_FORMAT, "div() wants integers, the second not 0");
        v->t = LAB_INT;
        v->i = floor_div(arg[0].i, arg[1].i);
        return RAD_OK;
    case FN_LEN:
        if (arg[0].t != LAB_LIST && arg[0].t != LAB_STR)
            return wrong(c, &arg[0], "a list");
        v->t = LAB_INT;
        v->i = (int64_t)(arg[0].t == LAB_STR ? strlen(arg[0].s) : arg[0].l.n);
        return RAD_OK;
    case FN_HAS:
        v->t = LAB_BOOL;
        v->b = !(arg[0].t == LAB_NULL && arg[0].absent);
        return RAD_OK;
    case FN_CAT:
        return fn_cat(c, arg, e->n, v);
    case FN_CHAR:
        return at(c, &arg[0], &arg[1], v);
    case FN_HIGHEST:
        *v = (struct lab_val){ .t = LAB_INT, .i = -1 };
        if (arg[0].t == LAB_INT)
            *v = arg[0];
        for (size_t i = 0; arg[0].t == LAB_LIST && i < arg[0].l.n; i++)
            if (arg[0].l.v[i].t == LAB_INT && arg[0].l.v[i].i > v->i)
                v->i = arg[0].l.v[i].i;
        return RAD_OK;
    case FN_INDEX:
        if (arg[0].t != LAB_LIST)
            return wrong(c, &arg[0], "a list");
        *v = (struct lab_val){ .t = LAB_INT, .i = -1 };
        for (size_t i = arg[0].l.n; i-- > 0;)
            if (lab_val_eq(&arg[0].l.v[i], &arg[1]))
                v->i = (int64_t)i;
        return RAD_OK;
    case FN_STARTS:
        if (arg[0].t != LAB_STR || arg[1].t != LAB_STR)
            return rad_fail(c->err, RAD_E_FORMAT, "starts() wants two strings");
        v->t = LAB_BOOL;
        v->b = strncmp(arg[0].s, arg[1].s, strlen(arg[1].s)) == 0;
        return RAD_OK;
    default:
        return fn_real(c, e->fn, arg, v);
    }
}

static rad_status eval(struct eval *c, const struct lab_ex *e, struct lab_val *v)
{
    struct lab_val a, b;
    bool t;

    *v = (struct lab_val){ .t = LAB_NULL };
    switch (e->op) {
    case X_LIT:
        *v = e->lit;
        return RAD_OK;
    case X_NAME:
    case X_KEY:
        return c->env->get(c->env->user, e->op == X_KEY, e->text, v, c->err);
    case X_LIST:
        v->t = LAB_LIST;
        v->l.n = (size_t)e->n;
        v->l.v = radi_arena_array(c->env->arena, (size_t)e->n + 1, sizeof(*v->l.v));
        if (!v->l.v)
            return rad_fail(c->err, RAD_E_NOMEM, "out of memory");
        for (int i = 0; i < e->n; i++)
            RAD_TRY(eval(c, e->arg[i], &v->l.v[i]));
        return RAD_OK;
    case X_COND:
        RAD_TRY(eval_bool(c, e->arg[0], &t));
        return eval(c, e->arg[t ? 1 : 2], v);
    case X_COALESCE:
        RAD_TRY(eval(c, e->arg[0], v));
        return v->t == LAB_NULL ? eval(c, e->arg[1], v) : RAD_OK;
    case X_OR:
    case X_AND:
        v->t = LAB_BOOL;
        RAD_TRY(eval_bool(c, e->arg[0], &v->b));
        return v->b == (e->op == X_OR) ? RAD_OK : eval_bool(c, e->arg[1], &v->b);
    case X_NOT:
        v->t = LAB_BOOL;
        RAD_TRY(eval_bool(c, e->arg[0], &t));
        v->b = !t;
        return RAD_OK;
    case X_EQ: case X_NE: case X_LT: case X_LE: case X_GT: case X_GE: case X_IN: case X_NOTIN:
        return compare(c, e, v);
    case X_ADD: case X_SUB: case X_MUL: case X_DIV: case X_MOD:
        return arith(c, e, v);
    case X_NEG:
        RAD_TRY(eval(c, e->arg[0], &a));
        if (a.t == LAB_INT && a.i == INT64_MIN)
            return overflow(c);
        if (a.t != LAB_INT && a.t != LAB_REAL)
            return wrong(c, &a, "a number");
        *v = a;
        if (a.t == LAB_INT)
            v->i = -a.i;
        else
            v->d = -a.d;
        return RAD_OK;
    case X_AT:
        RAD_TRY(eval(c, e->arg[0], &a));
        RAD_TRY(eval(c, e->arg[1], &b));
        return at(c, &a, &b, v);
    case X_CALL:
        return call(c, e, v);
    }
    return RAD_OK;
}

rad_status lab_ex_eval(const struct lab_ex *e, const struct lab_env *env, struct lab_val *out,
                       struct rad_err *err)
{
    struct eval c = { env, err };
    rad_status st = eval(&c, e->arg[0], out);
    return st ? rad_fail_in(err, st, "'%.200s'", e->text) : RAD_OK;
}

rad_status lab_ex_bool(const struct lab_ex *e, const struct lab_env *env, bool *out,
                       struct rad_err *err)
{
    struct lab_val v;
    RAD_TRY(lab_ex_eval(e, env, &v, err));
    if (v.t != LAB_BOOL)
        return rad_fail(err, RAD_E_FORMAT, "'%.200s' is %s, want true or false", e->text,
                        lab_vtype_name(v.t));
    *out = v.b;
    return RAD_OK;
}

rad_status lab_ex_int(const struct lab_ex *e, const struct lab_env *env, int64_t *out,
                      struct rad_err *err)
{
    struct lab_val v;
    RAD_TRY(lab_ex_eval(e, env, &v, err));
    if (v.t != LAB_INT)
        return rad_fail(err, RAD_E_FORMAT, "'%.200s' is %s, want an integer", e->text,
                        lab_vtype_name(v.t));
    *out = v.i;
    return RAD_OK;
}
