/* SPDX-License-Identifier: Apache-2.0 */
/* rad_issue: operands to tensors, the band to its kernel, one launch. What a
 * plan could not know is checked here: slices stay inside what was declared,
 * a buffer is used while it lives, a weight is one the op was planned for.
 * Allocates nothing and waits for nothing. */
#include "config.h"

#include "run/rt.h"

#include "banned.h"

/* Narrows dim 0 to `rows` and the last to `cols`, offset in elements; the
 * whole slice lies inside [0, numel). */
static rad_status narrow(RadTensor *t, const RadOperand *o, uint64_t numel)
{
    int last = t->rank - 1;
    if (o->offset < 0 || o->rows < 0 || o->cols < 0 || (last == 0 && o->rows && o->cols))
        return RAD_E_ARG;
    if (o->cols) {
        int64_t pitch = t->shape[last];
        /* a slice does not run over into the next row */
        if (o->cols > pitch || (last > 0 && o->offset % pitch > pitch - o->cols))
            return RAD_E_SHAPE;
        t->shape[last] = o->cols;
    }
    if (o->rows)
        t->shape[0] = o->rows;
    uint64_t end = (uint64_t)o->offset;
    for (int i = 0; i <= last; i++) {
        uint64_t step;
        if (!radi_mul_u64((uint64_t)t->shape[i] - 1, (uint64_t)t->stride[i], &step)
            || !radi_add_u64(end, step, &end))
            return RAD_E_SHAPE;
    }
    return end < numel ? RAD_OK : RAD_E_SHAPE;
}

static int from_buf(RadCtx *c, rad_op op, const RadOperand *o, RadTensor *t)
{
    const struct rad_plan *p = c->rt->plan;
    const char *name = p->op[op].name;
    if (o->handle < 0 || (size_t)o->handle >= p->n_bufs)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': buffer handle %d", name, o->handle);
    const struct radi_buf *f = &p->buf[o->handle];
    if (op < f->first || op > f->last)
        return radi_ctx_fail(c, RAD_E_STATE, "op %d '%s' uses buffer '%s', which lives from op %d "
                             "to %d: declare the use", op, name, f->name, f->first, f->last);
    t->dtype = f->d.dtype;
    t->rank = f->d.rank;
    memcpy(t->shape, f->d.shape, sizeof t->shape);
    memcpy(t->stride, f->stride, sizeof t->stride);
    rad_status st = narrow(t, o, f->numel);
    if (st)
        return radi_ctx_fail(c, st, "op '%s': slice %lld + [%lld,%lld] of buffer '%s' [%lld,%lld]",
                             name, (long long)o->offset, (long long)o->rows, (long long)o->cols,
                             f->name, (long long)f->d.shape[0],
                             (long long)f->d.shape[f->d.rank - 1]);
    uint64_t bits = (uint64_t)rad_dtype_bits(f->d.dtype) * (uint64_t)o->offset;
    if (bits % 8)
        return radi_ctx_fail(c, RAD_E_ALIGN, "op '%s': buffer '%s': element %lld of %s begins "
                             "inside a byte", name, f->name, (long long)o->offset,
                             rad_dtype_name(f->d.dtype));
    t->data = c->rt->arena + f->offset + bits / 8;
    return RAD_OK;
}

static int from_weight(RadCtx *c, rad_op op, const struct radi_band *band, int k,
                       const RadOperand *o, RadTensor *t)
{
    const struct rad_plan *p = c->rt->plan;
    const struct radi_op *q = &p->op[op];
    if (o->handle < 0 || (size_t)o->handle >= p->n_weights)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': weight handle %d", q->name, o->handle);
    const struct radi_weight *w = &p->weight[o->handle];
    if (q->w[k] != o->handle)
        return radi_ctx_fail(c, RAD_E_STATE, "op '%s' was not declared with weight '%s'", q->name,
                             w->name);
    bool whole = !o->rows && !o->cols && !o->offset;
    if (band->layout[k] >= 0) {
        if (!whole)
            return radi_ctx_fail(c, RAD_E_ARG, "op '%s': weight '%s' is laid out for '%s' and has "
                                 "no slices", q->name, w->name, band->row->name);
        *t = c->rt->layout[band->layout[k]];
        return RAD_OK;
    }
    *t = c->rt->weight[o->handle];
    if (whole)
        return RAD_OK;
    int64_t cols = (int64_t)w->cols;
    if (t->rank != 2 || o->cols || o->rows < 0 || o->offset < 0 || o->offset % cols)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': weight '%s': only whole rows may be taken",
                             q->name, w->name);
    int64_t row0 = o->offset / cols, rows = o->rows ? o->rows : t->shape[0] - row0;
    if (row0 >= t->shape[0] || rows > t->shape[0] - row0)
        return radi_ctx_fail(c, RAD_E_SHAPE, "op '%s': rows %lld + %lld of weight '%s' with %lld",
                             q->name, (long long)row0, (long long)rows, w->name,
                             (long long)t->shape[0]);
    t->row0 = row0;
    t->shape[0] = rows;
    if (t->data)
        t->data = (uint8_t *)t->data
            + (size_t)row0 * rad_row_bytes(t->dtype, (size_t)cols);
    return RAD_OK;
}

static int from_raw(RadCtx *c, rad_op op, const RadOperand *o, RadTensor *t)
{
    const char *name = c->rt->plan->op[op].name;
    int bits = rad_dtype_bits(o->dtype);
    if (bits < 8 || o->offset < 0)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': a raw operand of type %s at %lld", name,
                             rad_dtype_name(o->dtype), (long long)o->offset);
    if (o->rows <= 0 || o->cols < 0)
        return radi_ctx_fail(c, RAD_E_SHAPE, "op '%s': a raw operand of %lld rows", name,
                             (long long)o->rows);
    t->dtype = o->dtype;
    t->rank = o->cols ? 2 : 1;
    t->shape[0] = o->rows;
    t->stride[0] = o->cols ? o->cols : 1;
    if (o->cols) {
        t->shape[1] = o->cols;
        t->stride[1] = 1;
    }
    t->data = (uint8_t *)o->raw + (size_t)o->offset * (size_t)bits / 8;
    return RAD_OK;
}

static int from_kv(RadCtx *c, rad_op op, const RadOperand *o, RadTensor *t)
{
    const struct rad_plan *p = c->rt->plan;
    const char *name = p->op[op].name;
    if (o->handle < 0 || o->handle >= p->n_kv)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': kv group handle %d", name, o->handle);
    const struct radi_kv_decl *g = &p->kv[o->handle];
    if (o->offset < 0 || o->offset > g->max_layer || g->slot[o->offset] < 0)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': layer %lld is not bound to kv group '%s'",
                             name, (long long)o->offset, g->name);
    if (o->rows || o->cols)
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': kv group '%s' has no slices", name, g->name);
    t->dtype = g->d.dtype;
    t->rank = 4;
    int64_t s = 1;
    for (int i = 3; i >= 0; i--) {
        t->shape[i] = g->shape[i];
        t->stride[i] = s;
        s *= g->shape[i];
    }
    t->data = c->rt->kv + g->offset + (uint64_t)g->slot[o->offset] * g->layer_bytes;
    return RAD_OK;
}

static int operand(RadCtx *c, rad_op op, const struct radi_band *band, int k, const RadOperand *o,
                   RadTensor *t)
{
    const struct radi_op *q = &c->rt->plan->op[op];
    const RadOperandSpec *s = &q->schema->operands[k];
    bool written = s->role == RAD_OPD_OUT || s->role == RAD_OPD_INOUT;
    bool none = o->kind == RAD_OPERAND_NONE || (o->kind == RAD_OPERAND_RAW && !o->raw)
        || (o->kind == RAD_OPERAND_WEIGHT && o->handle == RAD_NULL_HANDLE);
    memset(t, 0, sizeof *t);
    if (none) {
        if (s->optional)
            return RAD_OK;
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': operand %d '%s' is not optional", q->name, k,
                             s->name);
    }
    switch (o->kind) {
    case RAD_OPERAND_BUF: return from_buf(c, op, o, t);
    case RAD_OPERAND_RAW: return from_raw(c, op, o, t);
    case RAD_OPERAND_KV: return from_kv(c, op, o, t);
    case RAD_OPERAND_WEIGHT:
        if (!written && s->role == RAD_OPD_WEIGHT)
            return from_weight(c, op, band, k, o, t);
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': operand %d '%s' takes no weight", q->name, k,
                             s->name);
    case RAD_OPERAND_TABLE:
        return radi_ctx_fail(c, RAD_E_UNSUPPORTED, "op '%s': weight tables are not served",
                             q->name);
    default:
        return radi_ctx_fail(c, RAD_E_ARG, "op '%s': operand %d of kind %d", q->name, k, o->kind);
    }
}

int rad_issue(RadCtx *c, rad_op op, const RadOperand *opd, int n_opd, int64_t n)
{
    struct radi_rt *rt = c->rt;
    const struct rad_plan *p = rt->plan;
    if (c->err.code)
        return c->err.code;
    if (rt->unwanted && rt->unwanted(rt->unwanted_user))
        return radi_ctx_fail(c, RAD_E_CANCELLED, "nobody wants the step any more");
    if (op < 0 || (size_t)op >= p->n_ops)
        return radi_ctx_fail(c, RAD_E_ARG, "op handle %d was not given out", op);
    const struct radi_op *q = &p->op[op];
    if (!q->resolved)
        return radi_ctx_fail(c, RAD_E_NOKERNEL, "op %d '%s' has no kernel", op, q->name);
    if (n_opd != q->schema->n_operands)
        return radi_ctx_fail(c, RAD_E_SCHEMA, "op '%s': %d operands, want %d", q->name, n_opd,
                             q->schema->n_operands);
    if (n < 0)
        n = c->batch.n_tok;
    if (n == 0)
        return radi_ctx_fail(c, RAD_E_SHAPE, "op '%s' is issued over no rows", q->name);
    const struct radi_band *band = NULL;
    int at = 0;
    for (; at < q->n_bands && !band; at++)
        if (q->range < 0 || (n >= q->band[at].lo && n <= q->band[at].hi))
            band = &q->band[at];
    if (!band)
        return radi_ctx_fail(c, RAD_E_NOKERNEL, "op '%s': %s=%lld is outside of %lld..%lld",
                             q->name, q->p[q->range].key, (long long)n,
                             (long long)q->p[q->range].ival, (long long)q->p[q->range].ihi);
    RadTensor t[RAD_MAX_OPERANDS];
    for (int k = 0; k < n_opd; k++) {
        int rc = operand(c, op, band, k, &opd[k], &t[k]);
        if (rc < 0)
            return rc;
    }
    RadLaunch a = {
        .struct_size = sizeof a, .n_opd = n_opd, .opd = t, .params = band->params,
        .scratch = band->scratch ? rt->scratch : NULL, .scratch_bytes = band->scratch,
        .instance = rt->instance[rt->first_band[op] + (size_t)at - 1], .n = n,
        .rank = p->ctx.rank, .world_size = p->ctx.world_size,
    };
    rad_status st = rt->dev->ops->launch(rt->dev, rt->stream, band->row, &a);
    if (st)
        return radi_ctx_fail(c, st, "op %d '%s': kernel '%s': %s", op, q->name, band->row->name,
                             rad_strstatus(st));
    return RAD_OK;
}
