/* SPDX-License-Identifier: Apache-2.0 */
/* The op vocabulary. The first library of the hierarchy that declares an op
 * fixes its schema; a later one must say the same or is refused, naming both.
 * Every row implements an op of the vocabulary and constrains parameters that
 * the op has. */
#include "config.h"

#include <stdio.h>

#include "plugin/plugin.h"

#include "banned.h"

/* ---- suggestions */
enum { WORD = 64 };

static int distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n >= WORD || m >= WORD)
        return WORD;
    int row[WORD + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diag = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int sub = diag + (a[i - 1] != b[j - 1]);
            diag = row[j];
            row[j] = RADI_MIN(sub, RADI_MIN(diag, row[j - 1]) + 1);
        }
    }
    return row[m];
}

void radi_suggest_try(struct radi_suggest *s, const char *name)
{
    size_t len = strlen(s->word);
    int budget = len <= 4 ? 1 : len <= 10 ? 2 : 3;
    int d = distance(s->word, name);
    if (d <= budget && (!s->best || d < s->dist)) {
        s->best = name;
        s->dist = d;
    }
}

const char *radi_suggest_text(const struct radi_suggest *s, char *buf, size_t n)
{
    if (!s->best)
        return "";
    snprintf(buf, n, "; did you mean '%s'?", s->best);
    return buf;
}

/* ---- schemas */
const RadParamSpec *radi_schema_param(const RadOpSchema *s, const char *key)
{
    for (int i = 0; i < s->n_params; i++)
        if (!strcmp(s->params[i].key, key))
            return &s->params[i];
    return NULL;
}

static rad_status check_schema(const RadOpSchema *s, struct rad_err *err)
{
    int ranges = 0;
    if (s->n_params < 0 || s->n_params > 64 || s->n_operands < 0
        || s->n_operands > RAD_MAX_OPERANDS)
        return rad_fail(err, RAD_E_SCHEMA, "%d parameters and %d operands, at most 64 and %d",
                        s->n_params, s->n_operands, RAD_MAX_OPERANDS);
    for (int i = 0; i < s->n_params; i++) {
        const RadParamSpec *q = &s->params[i];
        if (!q->key || q->kind < RAD_PK_INT || q->kind > RAD_PK_REAL)
            return rad_fail(err, RAD_E_SCHEMA, "parameter %d has kind %d", i, q->kind);
        if (q->need < RAD_PARAM_OPTIONAL || q->need > RAD_PARAM_DERIVED
            || q->role < RAD_PROLE_NONE || q->role > RAD_PROLE_CAPACITY)
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s': need %d, role %d", q->key, q->need,
                            q->role);
        if (radi_schema_param(s, q->key) != q)
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s' stands twice", q->key);
        ranges += q->kind == RAD_PK_RANGE;
    }
    for (int i = 0; i < s->n_operands; i++)
        if (!s->operands[i].name || s->operands[i].role < RAD_OPD_IN
            || s->operands[i].role > RAD_OPD_TABLE)
            return rad_fail(err, RAD_E_SCHEMA, "operand %d has role %d", i, s->operands[i].role);
    if (ranges > 1)
        return rad_fail(err, RAD_E_SCHEMA, "%d ranged parameters, at most 1", ranges);
    return RAD_OK;
}

/* NULL when equal, else what differs. */
static const char *differs(const RadOpSchema *a, const RadOpSchema *b, char *buf, size_t n)
{
    if (a->n_params != b->n_params || a->n_operands != b->n_operands) {
        snprintf(buf, n, "%d parameters and %d operands, want %d and %d", b->n_params,
                 b->n_operands, a->n_params, a->n_operands);
        return buf;
    }
    for (int i = 0; i < b->n_params; i++) {
        const RadParamSpec *q = &b->params[i], *want = radi_schema_param(a, q->key);
        if (!want || want->kind != q->kind || want->need != q->need || want->role != q->role) {
            snprintf(buf, n, "parameter '%s'", q->key);
            return buf;
        }
    }
    for (int i = 0; i < b->n_operands; i++) {
        const RadOperandSpec *q = &b->operands[i], *want = &a->operands[i];
        if (strcmp(q->name, want->name) || q->role != want->role
            || !q->optional != !want->optional) {
            snprintf(buf, n, "operand %d '%s'", i, q->name);
            return buf;
        }
    }
    return NULL;
}

static rad_status add_schema(struct rad_plugins *p, int lib, const RadOpSchema *s,
                             struct rad_err *err)
{
    char buf[160];
    uint64_t at;
    rad_status st = check_schema(s, err);
    if (st)
        return rad_fail_in(err, st, "op '%s'", s->op);
    if (radi_map_get(p->op_index, s->op, strlen(s->op), &at)) {
        const struct radi_vocab *v = &p->op[at];
        const char *what = differs(v->schema, s, buf, sizeof buf);
        if (what)
            return rad_fail(err, RAD_E_SCHEMA, "schema of op '%s' differs from that of '%s': %s",
                            s->op, p->lib[v->lib].info->name, what);
        return RAD_OK;
    }
    RAD_TRY(radi_grow((void **)&p->op, &p->cap_ops, p->n_ops + 1, sizeof *p->op, err));
    if (!radi_map_put(p->op_index, s->op, strlen(s->op), p->n_ops, NULL))
        return rad_fail(err, RAD_E_NOMEM, "schemas: out of memory");
    p->op[p->n_ops++] = (struct radi_vocab){ s, lib };
    return RAD_OK;
}

static rad_status check_row(const struct rad_plugins *p, const RadKernelRow *r,
                            struct rad_err *err)
{
    if (r->struct_size != sizeof *r)
        return rad_fail(err, RAD_E_ABI, "row of %u bytes, want %zu", r->struct_size, sizeof *r);
    if (!r->name || !r->op || !r->launch || !r->parse)
        return rad_fail(err, RAD_E_SCHEMA, "row '%s' has no %s", r->name ? r->name : "?",
                        !r->name ? "name" : !r->op ? "op" : !r->launch ? "launch" : "parse");
    if (r->params_size > 1 << 20
        || (r->domain != RAD_DOMAIN_HOST && r->domain != RAD_DOMAIN_DEVICE))
        return rad_fail(err, RAD_E_SCHEMA, "row '%s': domain %d, parameters of %zu bytes", r->name,
                        r->domain, r->params_size);
    const RadOpSchema *s = radi_schema_find(p, r->op);
    if (!s)
        return rad_fail(err, RAD_E_NOSCHEMA, "row '%s': no library has a schema of op '%s'",
                        r->name, r->op);
    for (int i = 0; i < r->n_constraints; i++) {
        const RadConstraint *c = &r->constraints[i];
        if (!radi_schema_param(s, c->key))
            return rad_fail(err, RAD_E_SCHEMA, "row '%s' constrains '%s', which op '%s' has not",
                            r->name, c->key, r->op);
        if (c->op < RAD_C_EQ || c->op > RAD_C_IN || (c->op == RAD_C_IN && !c->sval)
            || (c->op == RAD_C_DIV && c->ival <= 0))
            return rad_fail(err, RAD_E_SCHEMA, "row '%s': bad constraint on '%s'", r->name, c->key);
    }
    for (int i = 0; i < r->n_derived; i++) {
        const RadParamSpec *q = radi_schema_param(s, r->derived[i].key);
        if (!q || q->need != RAD_PARAM_DERIVED)
            return rad_fail(err, RAD_E_SCHEMA, "row '%s' derives '%s', which op '%s' does not ask",
                            r->name, r->derived[i].key, r->op);
    }
    return RAD_OK;
}

rad_status radi_schema_settle(struct rad_plugins *p, struct rad_err *err)
{
    radi_map_free(p->op_index);
    p->n_ops = 0;
    p->op_index = radi_map_new(256);
    if (!p->op_index)
        return rad_fail(err, RAD_E_NOMEM, "schemas: out of memory");
    for (int k = 0; k < p->n_order; k++) {
        const struct radi_lib *l = &p->lib[p->order[k]];
        for (int i = 0; i < l->n_schemas; i++) {
            const RadOpSchema *s = l->x.schema_at(i);
            rad_status st = s && s->struct_size == sizeof *s && s->op
                ? add_schema(p, p->order[k], s, err)
                : rad_fail(err, RAD_E_ABI, "schema %d is not of this ABI", i);
            if (st)
                return rad_fail_in(err, st, "kernel library '%s'", l->info->name);
        }
    }
    for (int k = 0; k < p->n_order; k++) {
        const struct radi_lib *l = &p->lib[p->order[k]];
        for (int i = 0; i < l->n_rows; i++) {
            const RadKernelRow *r = l->x.row_at(i);
            rad_status st = r ? check_row(p, r, err)
                              : rad_fail(err, RAD_E_ABI, "row %d is absent", i);
            if (st)
                return rad_fail_in(err, st, "kernel library '%s'", l->info->name);
        }
    }
    return RAD_OK;
}

const RadOpSchema *radi_schema_find(const struct rad_plugins *p, const char *op)
{
    uint64_t at;
    return radi_map_get(p->op_index, op, strlen(op), &at) ? p->op[at].schema : NULL;
}

rad_status radi_schema_check(const RadOpSchema *s, const RadParam *p, int n, struct rad_err *err)
{
    static const char *const kinds[] = { "?", "an integer", "a string", "a range", "a real" };
    for (int i = 0; i < n; i++) {
        const RadParamSpec *q = p[i].key ? radi_schema_param(s, p[i].key) : NULL;
        if (!q) {
            char buf[160];
            struct radi_suggest sg = { .word = p[i].key ? p[i].key : "" };
            for (int k = 0; k < s->n_params; k++)
                radi_suggest_try(&sg, s->params[k].key);
            return rad_fail(err, RAD_E_SCHEMA, "unknown parameter '%s'%s", sg.word,
                            radi_suggest_text(&sg, buf, sizeof buf));
        }
        if (rad_param(p, n, p[i].key) != &p[i])
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s' stands twice", p[i].key);
        /* a whole number is a real, too */
        bool widen = q->kind == RAD_PK_REAL && p[i].kind == RAD_PK_INT;
        if (p[i].kind != q->kind && !widen)
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s' is %s, want %s", p[i].key,
                            p[i].kind >= 1 && p[i].kind <= 4 ? kinds[p[i].kind] : kinds[0],
                            kinds[q->kind]);
        if (q->kind == RAD_PK_STR && !p[i].sval)
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s' has no value", p[i].key);
        if (q->kind == RAD_PK_RANGE && (p[i].ival < 0 || p[i].ihi < p[i].ival))
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s' is the empty range %lld to %lld",
                            p[i].key, (long long)p[i].ival, (long long)p[i].ihi);
    }
    for (int k = 0; k < s->n_params; k++)
        if (s->params[k].need == RAD_PARAM_REQUIRED && !rad_param(p, n, s->params[k].key))
            return rad_fail(err, RAD_E_SCHEMA, "parameter '%s' is missing", s->params[k].key);
    return RAD_OK;
}
