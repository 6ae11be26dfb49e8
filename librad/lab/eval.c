/* SPDX-License-Identifier: Apache-2.0 */
/* Owns values and what expressions mean. Types are strict: no number is a truth
 * value, no division drops a rest. */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/expr.h"

#include "banned.h"

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

static rad_status fn_real(struct eval *c, int fn, const char *name, const struct lab_val *arg,
                          struct lab_val *v)
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
        rad_fail(c->err, RAD_E_FORMAT, "%s(%g) is not finite", name, x);
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
        return fn_real(c, e->fn, e->text, arg, v);
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
