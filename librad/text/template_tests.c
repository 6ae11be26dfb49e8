/* SPDX-License-Identifier: Apache-2.0 */
/* Owns Jinja's tests: what may stand behind `is`. */
#include "config.h"

#include <math.h>

#include "text/template.h"

#include "banned.h"

#define TEST(name)                                                                        \
    static struct radi_jv name(struct radi_jev *ev, struct radi_jv v,                     \
                               const struct radi_jv *a, const struct radi_jargs *raw)
#define UNUSED (void)ev, (void)v, (void)a, (void)raw
#define KIND_TEST(name, cond) TEST(name) { UNUSED; return radi_jv_bool(cond); }

KIND_TEST(t_defined, v.kind != J_UNDEF)
KIND_TEST(t_undefined, v.kind == J_UNDEF)
KIND_TEST(t_none, v.kind == J_NONE)
KIND_TEST(t_string, v.kind == J_STR)
KIND_TEST(t_mapping, v.kind == J_DICT)
KIND_TEST(t_boolean, v.kind == J_BOOL)
KIND_TEST(t_true, v.kind == J_BOOL && v.b)
KIND_TEST(t_false, v.kind == J_BOOL && !v.b)
KIND_TEST(t_integer, v.kind == J_INT || v.kind == J_BIG)
KIND_TEST(t_float, v.kind == J_FLOAT)
KIND_TEST(t_number, radi_j_is_num(v) || v.kind == J_BIG)
KIND_TEST(t_iterable, radi_j_iterable(v))
KIND_TEST(t_callable, v.kind == J_FUNC || v.kind == J_LOOP || v.kind == J_UNDEF)
KIND_TEST(t_sequence, v.kind == J_STR || v.kind == J_DICT || v.kind == J_UNDEF ||
          (v.kind == J_SEQ && v.q->type <= JQ_RANGE))
KIND_TEST(t_escaped, v.kind == J_STR && v.markup)
KIND_TEST(t_upper, v.kind == J_STR && radi_j_class(v.s, JCL_UPPER))
KIND_TEST(t_lower, v.kind == J_STR && radi_j_class(v.s, JCL_LOWER))

KIND_TEST(t_eq, radi_j_compare(ev, JB_EQ, v, a[0]))
KIND_TEST(t_ne, radi_j_compare(ev, JB_NE, v, a[0]))
KIND_TEST(t_lt, radi_j_compare(ev, JB_LT, v, a[0]))
KIND_TEST(t_le, radi_j_compare(ev, JB_LE, v, a[0]))
KIND_TEST(t_gt, radi_j_compare(ev, JB_GT, v, a[0]))
KIND_TEST(t_ge, radi_j_compare(ev, JB_GE, v, a[0]))
KIND_TEST(t_in, radi_j_contains(ev, v, a[0]))

static bool zero_mod(struct radi_jev *ev, struct radi_jv v, struct radi_jv by)
{
    struct radi_jv r = radi_j_binary(ev, JB_MOD, v, by);
    return radi_j_is_num(r) && radi_j_num(r) == 0;
}

KIND_TEST(t_even, zero_mod(ev, v, radi_jv_int(2)))
KIND_TEST(t_divisibleby, zero_mod(ev, v, a[0]))

TEST(t_odd)
{
    struct radi_jv r = radi_j_binary(ev, JB_MOD, v, radi_jv_int(2));
    UNUSED;
    return radi_jv_bool(radi_j_is_num(r) && radi_j_num(r) == 1);
}

TEST(t_sameas)
{
    bool same = v.kind == a[0].kind;
    UNUSED;
    if (same && v.kind > J_BOOL)
        same = v.kind == J_INT || v.kind == J_FLOAT || v.kind == J_STR ? radi_j_eq(ev, v, a[0])
                                                                       : v.fn == a[0].fn;
    else if (same && v.kind == J_BOOL)
        same = v.b == a[0].b;
    return radi_jv_bool(same);
}

TEST(t_filter)
{
    UNUSED;
    return radi_jv_bool(v.kind == J_STR && radi_j_filter(v.s->p, v.s->len));
}

TEST(t_test)
{
    UNUSED;
    return radi_jv_bool(v.kind == J_STR && radi_j_test(v.s->p, v.s->len));
}

const struct radi_jdef radi_j_tests[] = {
    { "defined", t_defined, "", 0 },
    { "string", t_string, "", 0 },
    { "none", t_none, "", 0 },
    { "mapping", t_mapping, "", 0 },
    { "iterable", t_iterable, "", 0 },
    { "sequence", t_sequence, "", 0 },
    { "undefined", t_undefined, "", 0 },
    { "boolean", t_boolean, "", 0 },
    { "true", t_true, "", 0 },
    { "false", t_false, "", 0 },
    { "integer", t_integer, "", 0 },
    { "float", t_float, "", 0 },
    { "number", t_number, "", 0 },
    { "callable", t_callable, "", 0 },
    { "escaped", t_escaped, "", 0 },
    { "upper", t_upper, "", 0 },
    { "lower", t_lower, "", 0 },
    { "even", t_even, "", 0 },
    { "odd", t_odd, "", 0 },
    { "divisibleby", t_divisibleby, "num", 1 },
    { "sameas", t_sameas, "other", 1 },
    { "filter", t_filter, "", 0 },
    { "test", t_test, "", 0 },
    { "in", t_in, "seq", 1 },
    { "eq", t_eq, "other", 1 },
    { "==", t_eq, "other", 1 },
    { "equalto", t_eq, "other", 1 },
    { "ne", t_ne, "other", 1 },
    { "!=", t_ne, "other", 1 },
    { "lt", t_lt, "other", 1 },
    { "<", t_lt, "other", 1 },
    { "lessthan", t_lt, "other", 1 },
    { "le", t_le, "other", 1 },
    { "<=", t_le, "other", 1 },
    { "gt", t_gt, "other", 1 },
    { ">", t_gt, "other", 1 },
    { "greaterthan", t_gt, "other", 1 },
    { "ge", t_ge, "other", 1 },
    { ">=", t_ge, "other", 1 },
    { NULL, NULL, NULL, 0 },
};

const struct radi_jdef *radi_j_test(const char *s, size_t n)
{
    return radi_j_lookup(radi_j_tests, s, n);
}
