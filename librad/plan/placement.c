/* SPDX-License-Identifier: Apache-2.0 */
/* Every size in bytes: KV pools, weights, staging, scratch. The runtime
 * allocates what stands here and the memory plan prints it, so the two cannot
 * differ. */
#include "config.h"

#include "plan/plan_priv.h"

#include "banned.h"

/* Pool size when the deployment states none: never less than one sequence of
 * full length, never more than all of them. */
#define KV_DEFAULT_BYTES ((uint64_t)2 << 30)

uint64_t radi_weight_bytes(const RadEncoding *e, uint64_t rows, uint64_t cols)
{
    uint64_t sum = 0;
    for (int i = 0; i < e->n_planes && i < RAD_MAX_PLANES; i++) {
        RadPlaneGeom g;
        if (rad_plane_geom(e, i, rows, cols, &g, NULL) == RAD_OK)
            sum += g.bytes;
    }
    return sum;
}

static uint64_t up(uint64_t x, uint64_t a)
{
    return (x + a - 1) / a * a;
}

/* ---- KV */
static rad_status kv_shape(struct rad_plan *p, struct radi_kv_decl *g, struct rad_err *err)
{
    uint64_t elem = (uint64_t)rad_dtype_bits(g->d.dtype) / 8, n = elem;
    const RadKvGroupDecl *d = &g->d;
    g->n_slots = p->ctx.max_seqs;
    if (radi_kv_paged(d)) {
        if (!g->block_size)
            return rad_fail(err, RAD_E_STATE, "kv group '%s': no op fixes its page size", g->name);
        g->max_blocks = (p->ctx.max_ctx + g->block_size - 1) / g->block_size;
        g->n_slots = 0;
        memcpy(g->shape, ((int64_t[]){ 1, d->n_head_kv, g->block_size, 2 * d->head_dim }),
               sizeof g->shape);
    } else if (d->kind == RAD_KV_LINEAR) {
        memcpy(g->shape, ((int64_t[]){ 1, d->n_head_kv, d->state_dim[0], d->state_dim[1] }),
               sizeof g->shape);
    } else if (d->kind == RAD_KV_CONV) {
        memcpy(g->shape, ((int64_t[]){ 1, RADI_MAX(d->n_head_kv, 1), d->head_dim,
                                       d->conv_width - 1 + p->ctx.max_spec }), sizeof g->shape);
    } else {
        memcpy(g->shape, ((int64_t[]){ 1, d->n_head_kv, d->window, 2 * d->head_dim }),
               sizeof g->shape);
    }
    for (int i = 1; i < 4; i++)
        if (!radi_mul_u64(n, (uint64_t)g->shape[i], &n) || n > (uint64_t)1 << 44)
            return rad_fail(err, RAD_E_SHAPE, "kv group '%s': a page is too large", g->name);
    g->layer_bytes = n;                         /* one page or slot; times their number below */
    g->page_bytes = n * g->n_layers;
    g->slot = radi_arena_array(&p->mem, (size_t)g->max_layer + 2, sizeof *g->slot);
    if (!g->slot)
        return rad_fail(err, RAD_E_NOMEM, "kv group '%s': out of memory", g->name);
    for (int32_t l = 0; l <= g->max_layer; l++)
        g->slot[l] = -1;
    for (size_t i = 0; i < g->n_layers; i++)
        g->slot[g->layer[i]] = (int32_t)i;
    return RAD_OK;
}

/* Pages of every paged group for a budget of tokens or bytes. */
static rad_status kv_sizes(struct rad_plan *p, struct rad_err *err)
{
    uint64_t token = 0, fixed = 0;
    for (int i = 0; i < p->n_kv; i++) {
        struct radi_kv_decl *g = &p->kv[i];
        RAD_TRY(kv_shape(p, g, err));
        if (radi_kv_paged(&g->d)) {
            token += (g->page_bytes + (uint64_t)g->block_size - 1) / (uint64_t)g->block_size;
            fixed += g->page_bytes;
        } else {
            fixed += g->page_bytes * (uint64_t)g->n_slots;
        }
    }
    int64_t ctx = p->ctx.max_ctx, worst, want;
    if (__builtin_mul_overflow(ctx, p->ctx.max_seqs, &worst))
        worst = INT64_MAX;
    if (p->kv_tokens > 0) {
        want = p->kv_tokens;
    } else {
        uint64_t budget = p->kv_bytes ? p->kv_bytes : KV_DEFAULT_BYTES;
        uint64_t n = token && budget > fixed ? (budget - fixed) / token : 0;
        want = n > INT64_MAX ? INT64_MAX : (int64_t)n;
        if (!p->kv_bytes)
            want = RADI_MAX(want, ctx);
    }
    for (int i = 0; i < p->n_kv; i++) {
        struct radi_kv_decl *g = &p->kv[i];
        uint64_t n;
        if (radi_kv_paged(&g->d)) {
            int64_t most;
            if (__builtin_mul_overflow(g->max_blocks, p->ctx.max_seqs, &most))
                most = INT64_MAX - 1;
            /* a byte budget rounds down, a token budget up */
            int64_t blocks = p->kv_bytes && !p->kv_tokens ? want / g->block_size
                : want / g->block_size + (want % g->block_size != 0);
            blocks = RADI_MIN(blocks, most);
            if (blocks < g->max_blocks || (p->kv_tokens > 0 && want < ctx))
                return rad_fail(err, RAD_E_ARG, "kv group '%s': the budget holds %lld tokens, "
                                "one sequence of %lld must fit", g->name,
                                (long long)RADI_MIN(blocks * g->block_size, want),
                                (long long)ctx);
            if (blocks + 1 > INT32_MAX / g->block_size)
                return rad_fail(err, RAD_E_ARG, "kv group '%s': %lld pages are too many", g->name,
                                (long long)blocks);
            g->n_blocks = blocks + 1;            /* page 0 is never used */
            n = (uint64_t)g->n_blocks;
        } else {
            n = (uint64_t)g->n_slots;
        }
        g->shape[0] = (int64_t)n;
        if (!radi_mul_u64(g->layer_bytes, n, &g->layer_bytes))
            return rad_fail(err, RAD_E_NOMEM, "kv group '%s': too large", g->name);
        g->layer_bytes = up(g->layer_bytes, RADI_ALIGN);
        if (!radi_mul_u64(g->layer_bytes, g->n_layers, &g->bytes)
            || !radi_add_u64(p->size.kv, g->bytes, &p->size.kv)
            || p->size.kv > (uint64_t)1 << 47)
            return rad_fail(err, RAD_E_NOMEM, "kv group '%s': too large", g->name);
        g->offset = p->size.kv - g->bytes;
    }
    return RAD_OK;
}

/* ---- staging */
uint64_t radi_stage_len(const struct rad_plan *p, int group, int which)
{
    uint64_t tok = (uint64_t)p->ctx.max_tok, seqs = (uint64_t)p->ctx.max_seqs;
    if (group < 0)
        switch (which) {
        case RADI_ST_CU: return seqs + 1;
        case RADI_ST_QLEN:
        case RADI_ST_CTXLEN: return seqs;
        case RADI_ST_OUT: return (uint64_t)p->max_out;
        default: return tok;
        }
    const struct radi_kv_decl *g = &p->kv[group];
    bool paged = radi_kv_paged(&g->d);
    switch (which) {
    case RADI_ST_SLOT: return paged ? tok : 0;
    case RADI_ST_TABLE: return paged ? seqs * (uint64_t)g->max_blocks : 0;
    case RADI_ST_USED: return paged ? seqs : 0;
    default: return paged ? 0 : seqs;
    }
}

static rad_status staging(struct rad_plan *p, struct rad_err *err)
{
    uint64_t sum = 0;
    for (int g = -1; g < p->n_kv; g++)
        for (int w = 0; w < (g < 0 ? RADI_ST_COMMON : RADI_ST_PER_KV); w++) {
            uint64_t n = radi_stage_len(p, g, w);   /* at most 2^60 */
            if (n > (uint64_t)1 << 34)
                return rad_fail(err, RAD_E_NOMEM, "kv group '%s': block tables of %llu entries",
                                g < 0 ? "" : p->kv[g].name, (unsigned long long)n);
            sum += up(4 * n, RADI_STAGE_ALIGN);
        }
    p->size.staging = sum;
    return RAD_OK;
}

/* ---- weights */
bool radi_weight_copied(const struct rad_plan *p, const struct radi_weight *w)
{
    if (!w->canonical)
        return false;
    return p->device != RAD_DEVICE_HOST || (!w->constant && w->read != w->enc);
}

static uint64_t copied_bytes(const struct radi_weight *w)
{
    uint64_t sum = 0;
    for (int i = 0; i < w->read->n_planes && i < RAD_MAX_PLANES; i++) {
        RadPlaneGeom g;
        if (rad_plane_geom(w->read, i, w->rows, w->cols, &g, NULL) == RAD_OK)
            sum += up(g.bytes, RADI_ALIGN);
    }
    return sum;
}

static void weight_sizes(struct rad_plan *p)
{
    for (size_t i = 0; i < p->n_weights; i++) {
        const struct radi_weight *w = &p->weight[i];
        if (radi_weight_copied(p, w))
            p->size.weights_copied += copied_bytes(w);
        else if (w->constant)
            p->size.constants += radi_weight_bytes(w->read, w->rows, w->cols);
        else if (w->canonical)
            p->size.weights_mapped += radi_weight_bytes(w->enc, w->rows, w->cols);
    }
    for (size_t i = 0; i < p->n_layouts; i++)
        p->size.weights_layout += up(p->layout[i].desc.bytes, 4096);
}

uint64_t radi_ring_records(const struct rad_plan *p)
{
    return 2 * (uint64_t)p->n_ops + 64;
}

rad_status radi_placement(struct rad_plan *p, struct rad_err *err)
{
    RAD_TRY(kv_sizes(p, err));
    weight_sizes(p);
    RAD_TRY(staging(p, err));
    for (size_t i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->op[i].n_bands; k++)
            p->size.scratch = RADI_MAX(p->size.scratch, p->op[i].band[k].scratch);
    p->size.scratch = up(p->size.scratch, RADI_ALIGN);
    if (p->device != RAD_DEVICE_HOST && p->logits >= 0)
        p->size.logits = p->buf[p->logits].bytes;
    return RAD_OK;
}
