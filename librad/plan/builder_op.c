/* SPDX-License-Identifier: Apache-2.0 */
/* Declaring ops: parameters against the schema, bands, a kernel for each band,
 * what the op touches. An op is resolved at once, so that the architecture can
 * ask and choose another form. */
#include "config.h"

#include "plan/plan_priv.h"

#include "banned.h"

static struct radi_op *op_of(RadBuilder *b, rad_op op, const char *call)
{
    if (op >= 0 && (size_t)op < b->plan->n_ops)
        return &b->plan->op[op];
    radi_miss(b, -1, RAD_E_ARG, "%s: op handle %d was not given out", call, op);
    return NULL;
}

static void copy_params(RadBuilder *b, struct radi_op *o, const RadParam *p, int n)
{
    o->p = radi_arena_array(&b->plan->mem, (size_t)n + 1, sizeof *o->p);
    if (!o->p) {
        b->failed = true;
        return;
    }
    for (int i = 0; i < n; i++) {
        RadParam *q = &o->p[i];
        *q = p[i];
        q->key = radi_arena_strndup(&b->plan->mem, p[i].key, strlen(p[i].key));
        if (p[i].sval)
            q->sval = radi_arena_strndup(&b->plan->mem, p[i].sval, strlen(p[i].sval));
        if (!q->key || (p[i].sval && !q->sval)) {
            b->failed = true;
            return;
        }
        const RadParamSpec *spec = o->schema ? radi_schema_param(o->schema, q->key) : NULL;
        if (spec && spec->kind == RAD_PK_REAL && q->kind == RAD_PK_INT) {
            q->kind = RAD_PK_REAL;
            q->dval = (double)q->ival;
        }
        if (q->kind == RAD_PK_RANGE)
            o->range = i;
    }
    o->n_p = n;
}

/* The i-th weight belongs to the i-th weight operand of the schema. */
static bool place_weights(RadBuilder *b, int32_t at, struct radi_op *o, const rad_weight *w,
                          int n_w)
{
    int k = 0;
    const char *miss = NULL;
    o->w = radi_arena_array(&b->plan->mem, RAD_MAX_OPERANDS, sizeof *o->w);
    if (!o->w) {
        b->failed = true;
        return false;
    }
    for (int i = 0; i < RAD_MAX_OPERANDS; i++)
        o->w[i] = RAD_NULL_HANDLE;
    for (int i = 0; o->schema && i < o->schema->n_operands; i++) {
        const RadOperandSpec *s = &o->schema->operands[i];
        if (s->role == RAD_OPD_TABLE && !s->optional) {
            radi_miss(b, -1, RAD_E_UNSUPPORTED, "op '%s': weight tables are not served", o->name);
            return false;
        }
        if (s->role != RAD_OPD_WEIGHT)
            continue;
        rad_weight h = k < n_w ? w[k] : RAD_NULL_HANDLE;
        k++;
        if (h != RAD_NULL_HANDLE && (h < 0 || (size_t)h >= b->plan->n_weights)) {
            radi_miss(b, -1, RAD_E_ARG, "op '%s': weight handle %d was not given out", o->name, h);
            return false;
        }
        if (h == RAD_NULL_HANDLE && !s->optional)
            miss = s->name;
        o->w[i] = h;
    }
    if (n_w > k) {
        radi_miss(b, -1, RAD_E_SCHEMA, "op '%s' takes %d weights, %d were given", o->name, k, n_w);
        return false;
    }
    if (miss) {
        /* A weight that is missing has been reported by itself. */
        radi_miss(b, at, RAD_E_SCHEMA, "op '%s': no weight for operand '%s'", o->name, miss);
        return false;
    }
    return true;
}

/* A derived value must be one for the whole op, whatever the step's size. */
static void check_derived(RadBuilder *b, const struct radi_op *o)
{
    for (int i = 1; i < o->n_bands; i++)
        for (int k = 0; k < o->band[0].row->n_derived; k++) {
            const RadDerived *d = &o->band[0].row->derived[k];
            const RadParam *q = rad_param(o->band[i].full, o->band[i].n_full, d->key);
            if (!q || q->ival != d->value)
                radi_miss(b, -1, RAD_E_MISMATCH,
                          "op '%s': '%s' is %lld in '%s' and %lld in '%s'", o->name, d->key,
                          (long long)d->value, o->band[0].row->name,
                          q ? (long long)q->ival : 0LL, o->band[i].row->name);
        }
}

static void resolve(RadBuilder *b, int32_t at, struct radi_op *o)
{
    if (!radi_bands_cut(b->plan, o)) {
        b->failed = true;
        return;
    }
    o->resolved = true;
    for (int i = 0; i < o->n_bands; i++) {
        if (!radi_select(b, at, &o->band[i])) {
            b->failed = true;
            o->resolved = false;
            return;
        }
        o->resolved &= o->band[i].row != NULL;
    }
    if (o->resolved) {
        check_derived(b, o);
        return;
    }
    struct radi_str s = { 0 };
    radi_op_text(o, &s);
    for (int i = 0; i < o->n_bands; i++)
        if (!o->band[i].row) {
            if (o->range >= 0 && o->n_bands > 1)
                radi_str_addf(&s, "; %s=%lld..%lld", o->p[o->range].key,
                              (long long)o->band[i].lo, (long long)o->band[i].hi);
            radi_str_addf(&s, ": %s", o->band[i].why);
        }
    if (s.failed)
        b->failed = true;
    else
        radi_miss(b, at, RAD_E_NOKERNEL, "no kernel for %s", s.s);
    radi_str_release(&s);
}

/* A parameter that the core would have to act upon. */
static void refuse_roles(RadBuilder *b, const struct radi_op *o)
{
    static const char *const role[] = { [RAD_PROLE_SEQ_CHUNK] = "RAD_PROLE_SEQ_CHUNK",
                                        [RAD_PROLE_CAPACITY] = "RAD_PROLE_CAPACITY" };
    for (int i = 0; i < o->n_p; i++) {
        const RadParamSpec *s = radi_schema_param(o->schema, o->p[i].key);
        if (s && role[s->role])
            radi_miss(b, -1, RAD_E_UNSUPPORTED, "op '%s': parameter '%s': role %s is not served",
                      o->name, s->key, role[s->role]);
    }
}

rad_op rad_decl_op(RadBuilder *b, const char *op, const RadParam *p, int n_p, const rad_weight *w,
                   int n_w)
{
    struct rad_plan *plan = b->plan;
    struct rad_err why = { 0 };
    int32_t at = (int32_t)plan->n_ops;
    if (radi_grow((void **)&plan->op, &plan->cap_ops, plan->n_ops + 1, sizeof *plan->op, NULL)) {
        b->failed = true;
        return RAD_NULL_HANDLE;
    }
    struct radi_op *o = &plan->op[plan->n_ops++];
    *o = (struct radi_op){ .range = -1, .kv = RAD_NULL_HANDLE };
    o->name = radi_arena_strndup(&plan->mem, op, strlen(op));
    if (!o->name) {
        o->name = "";
        b->failed = true;
        return at;
    }
    o->schema = radi_schema_find(plan->plugins, op);
    if (!o->schema) {
        char buf[160];
        struct radi_suggest sg = { .word = op };
        for (size_t i = 0; i < plan->plugins->n_ops; i++)
            radi_suggest_try(&sg, plan->plugins->op[i].schema->op);
        radi_miss(b, -1, RAD_E_NOSCHEMA, "no kernel library defines op '%s'%s", op,
                  radi_suggest_text(&sg, buf, sizeof buf));
    } else if (radi_schema_check(o->schema, p, n_p, &why)) {
        radi_miss(b, -1, RAD_E_SCHEMA, "op '%s': %s", op, why.text);
        o->schema = NULL;
    }
    if (!o->schema || b->failed)
        return at;
    copy_params(b, o, p, n_p);
    refuse_roles(b, o);
    if (!b->failed && place_weights(b, at, o, w, n_w) && !b->failed)
        resolve(b, at, o);
    return at;
}

static void touch(RadBuilder *b, rad_op op, const rad_buf *bufs, int n, bool write)
{
    struct radi_op *o = op_of(b, op, write ? "rad_op_writes" : "rad_op_reads");
    if (!o || n <= 0)
        return;
    rad_buf **list = write ? &o->writes : &o->reads;
    int *count = write ? &o->n_writes : &o->n_reads;
    rad_buf *all = radi_arena_array(&b->plan->mem, (size_t)(*count + n), sizeof *all);
    if (!all) {
        b->failed = true;
        return;
    }
    if (*count)
        memcpy(all, *list, (size_t)*count * sizeof *all);
    *list = all;
    for (int i = 0; i < n; i++) {
        if (bufs[i] == RAD_NULL_HANDLE)
            continue;
        if (bufs[i] < 0 || (size_t)bufs[i] >= b->plan->n_bufs) {
            radi_miss(b, -1, RAD_E_ARG, "op '%s': buffer handle %d was not given out", o->name,
                      bufs[i]);
            continue;
        }
        all[(*count)++] = bufs[i];
        radi_buf_use(b->plan, bufs[i], op);
    }
}

void rad_op_reads(RadBuilder *b, rad_op op, const rad_buf *bufs, int n)
{
    touch(b, op, bufs, n, false);
}

void rad_op_writes(RadBuilder *b, rad_op op, const rad_buf *bufs, int n)
{
    touch(b, op, bufs, n, true);
}

void rad_op_kv(RadBuilder *b, rad_op op, rad_kv g)
{
    struct radi_op *o = op_of(b, op, "rad_op_kv");
    if (!o)
        return;
    if (g < 0 || g >= b->plan->n_kv) {
        radi_miss(b, -1, RAD_E_ARG, "op '%s': kv group handle %d was not given out", o->name, g);
        return;
    }
    o->kv = g;
    struct radi_kv_decl *k = &b->plan->kv[g];
    int64_t size = rad_op_derived(b, op, "block_size");
    if (!size && o->p)
        size = rad_param_int(o->p, o->n_p, "block_size", 0);
    if (!size)
        return;
    if (!k->block_size && size > 0 && size <= 1 << 16) {
        k->block_size = size;
        k->fixed_by = op;
    } else if (k->block_size != size) {
        radi_miss(b, -1, RAD_E_MISMATCH, "op '%s': pages of %lld, kv group '%s' has pages of %lld",
                  o->name, (long long)size, k->name, (long long)k->block_size);
    }
}

int rad_op_resolved(RadBuilder *b, rad_op op)
{
    struct radi_op *o = op_of(b, op, "rad_op_resolved");
    if (!o)
        return 0;
    o->asked = true;
    return o->resolved;
}

int rad_op_declared(RadBuilder *b, const char *op)
{
    return radi_schema_find(b->plan->plugins, op) != NULL;
}

int64_t rad_op_derived(RadBuilder *b, rad_op op, const char *key)
{
    const struct radi_op *o = op_of(b, op, "rad_op_derived");
    for (int i = 0; o && i < o->n_bands; i++) {
        const RadKernelRow *r = o->band[i].row;
        for (int k = 0; r && k < r->n_derived; k++)
            if (!strcmp(r->derived[k].key, key))
                return r->derived[k].value;
    }
    return 0;
}
