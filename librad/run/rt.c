/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded model, opened and stepped. A step is: pack its arrays into pinned
 * staging, one upload, the architecture's issues, one download of the logits,
 * one event. wait() is the only place that waits, once. */
#include "config.h"

#include "run/rt.h"

#include "banned.h"

static rad_status instances(struct radi_rt *rt, struct rad_err *err)
{
    struct rad_plan *p = rt->plan;
    size_t n = 0;
    rt->first_band = radi_calloc(p->n_ops + 1, sizeof *rt->first_band);
    for (size_t i = 0; rt->first_band && i < p->n_ops; i++) {
        rt->first_band[i] = n;
        n += (size_t)p->op[i].n_bands;
    }
    rt->instance = radi_calloc(n + 1, sizeof *rt->instance);
    if (!rt->first_band || !rt->instance)
        return rad_fail(err, RAD_E_NOMEM, "instances: out of memory");
    rt->n_instances = n;
    for (size_t i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->op[i].n_bands; k++) {
            const struct radi_band *b = &p->op[i].band[k];
            if (!b->row || !b->row->init)
                continue;
            int rc = b->row->init(b->params, p->ctx.rank, p->ctx.world_size,
                                  &rt->instance[rt->first_band[i] + (size_t)k]);
            if (rc < 0)
                return rad_fail(err, (rad_status)rc, "kernel '%s' does not start: %s",
                                b->row->name, rad_strstatus((rad_status)rc));
        }
    return RAD_OK;
}

static void instances_release(struct radi_rt *rt)
{
    struct rad_plan *p = rt->plan;
    for (size_t i = 0; rt->instance && rt->n_instances && i < p->n_ops; i++)
        for (int k = 0; k < p->op[i].n_bands; k++) {
            const RadKernelRow *r = p->op[i].band[k].row;
            void *at = rt->instance[rt->first_band[i] + (size_t)k];
            if (r && r->fini && at)
                r->fini(at);
        }
    radi_free(rt->instance);
    radi_free(rt->first_band);
}

static size_t largest_params(const struct rad_plan *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->op[i].n_bands; k++)
            if (p->op[i].band[k].row)
                n = RADI_MAX(n, p->op[i].band[k].row->params_size);
    return n;
}

static rad_status open_device(struct radi_rt *rt, struct rad_err *err)
{
    struct rad_plan *p = rt->plan;
    struct radi_device_opts o = { .kind = p->device, .pool = rt->pool, .parts = p->parts,
                                  .records = radi_ring_records(p),
                                  .params_bytes = largest_params(p) };
    RAD_TRY(radi_device_open(&o, &rt->dev, err));
    rad_status st = rt->dev->ops->stream_new(rt->dev, &rt->stream);
    if (!st)
        st = rt->dev->ops->event_new(rt->dev, &rt->done);
    return st ? rad_fail(err, st, "device '%s': %s", rt->dev->ops->name, rad_strstatus(st)) : st;
}

rad_status radi_rt_open(struct rad_plan *plan, struct rad_model *model, struct radi_pool *pool,
                        struct radi_rt **out, struct rad_err *err)
{
    *out = NULL;
    struct radi_rt *rt = radi_calloc(1, sizeof *rt);
    if (!rt)
        return rad_fail(err, RAD_E_NOMEM, "runtime: out of memory");
    rt->plan = plan;
    rt->model = model;
    rt->pool = pool;
    rt->ctx.rt = rt;
    rad_status st = open_device(rt, err);
    if (!st)
        st = radi_rt_memory(rt, err);
    if (!st)
        st = radi_rt_bind(rt, err);
    if (!st)
        st = instances(rt, err);
    if (st) {
        radi_rt_close(rt);
        return st;
    }
    *out = rt;
    return RAD_OK;
}

void radi_rt_close(struct radi_rt *rt)
{
    if (!rt)
        return;
    if (rt->in_flight)
        (void)rt->dev->ops->event_sync(rt->dev, rt->done);
    instances_release(rt);
    radi_rt_memory_release(rt);
    if (rt->dev) {
        if (rt->done)
            rt->dev->ops->event_free(rt->dev, rt->done);
        if (rt->stream)
            rt->dev->ops->stream_free(rt->dev, rt->stream);
        radi_device_close(rt->dev);
    }
    radi_free(rt->weight);
    radi_free(rt->layout);
    radi_free(rt);
}

int radi_rt_n_kv(const struct radi_rt *rt)
{
    return rt->plan->n_kv;
}

void radi_rt_kv_info(const struct radi_rt *rt, int group, struct radi_kv_info *out)
{
    const struct radi_kv_decl *g = &rt->plan->kv[group];
    *out = (struct radi_kv_info){ .kind = g->d.kind, .block_size = g->block_size,
        .n_blocks = g->n_blocks, .n_slots = g->n_slots, .window = g->d.window,
        .n_layers = (int64_t)g->n_layers, .page_bytes = g->page_bytes };
}

int64_t radi_rt_vocab(const struct radi_rt *rt)
{
    return rt->plan->buf[rt->plan->logits].d.shape[1];
}

int64_t radi_rt_max_out(const struct radi_rt *rt)
{
    return RADI_MIN(rt->plan->max_out, rt->plan->buf[rt->plan->logits].d.shape[0]);
}

struct radi_step *radi_rt_step(struct radi_rt *rt)
{
    return &rt->step;
}

uint64_t radi_rt_syncs(const struct radi_rt *rt)
{
    return rt->syncs;
}

/* ---- a step */
struct packer {
    struct radi_rt *rt;
    uint64_t at;
};

/* Copies n numbers into the staging and returns where the device will have them. */
static const int32_t *pack(struct packer *k, const int32_t *src, int64_t n)
{
    if (n <= 0)
        return NULL;
    uint64_t bytes = (uint64_t)n * sizeof *src, at = k->at;
    RADI_BUG_IF(!radi_span_ok(at, bytes, k->rt->plan->size.staging));
    memcpy(k->rt->stage_host + at, src, (size_t)bytes);
    k->at = (at + bytes + RADI_STAGE_ALIGN - 1) / RADI_STAGE_ALIGN * RADI_STAGE_ALIGN;
    return (const int32_t *)(k->rt->stage_dev + at);
}

static void split(const struct radi_step *s, RadBatch *b)
{
    for (int64_t i = 0; i < s->n_seq; i++) {
        int64_t q = s->q_lens[i];
        b->max_q_len = RADI_MAX(b->max_q_len, q);
        b->max_ctx_len = RADI_MAX(b->max_ctx_len, (int64_t)s->ctx_lens[i]);
        if (i < s->n_seq_decode) {
            b->n_tok_decode += q;
            b->max_q_len_decode = RADI_MAX(b->max_q_len_decode, q);
        } else {
            b->max_q_len_prefill = RADI_MAX(b->max_q_len_prefill, q);
        }
    }
    b->phase = s->n_seq_decode == s->n_seq ? RAD_PHASE_DECODE
        : s->n_seq_decode == 0 ? RAD_PHASE_PREFILL : RAD_PHASE_MIXED;
}

static void make_batch(struct radi_rt *rt, struct packer *k)
{
    const struct radi_step *s = &rt->step;
    const struct rad_plan *p = rt->plan;
    RadBatch *b = &rt->ctx.batch;
    memset(b, 0, sizeof *b);
    memset(rt->ctx.kv, 0, sizeof rt->ctx.kv);
    *b = (RadBatch){
        .struct_size = sizeof *b, .step = (int64_t)rt->steps, .n_tok = s->n_tok,
        .n_seq = s->n_seq, .n_out = s->n_out, .n_seq_decode = s->n_seq_decode,
        .n_kv_groups = p->n_kv, .kv = rt->ctx.kv,
    };
    split(s, b);
    b->token_ids = pack(k, s->token_ids, s->n_tok);
    b->positions = pack(k, s->positions, s->n_tok);
    b->cu_seqlens = pack(k, s->cu_seqlens, s->n_seq + 1);
    b->seq_ids = pack(k, s->seq_ids, s->n_tok);
    b->q_lens = pack(k, s->q_lens, s->n_seq);
    b->ctx_lens = pack(k, s->ctx_lens, s->n_seq);
    b->out_ids = pack(k, s->out_ids, s->n_out);
    for (int g = 0; g < p->n_kv; g++) {
        const struct radi_step_kv *q = &s->kv[g];
        RadKvBatch *o = &rt->ctx.kv[g];
        o->block_size = p->kv[g].block_size;
        o->max_blocks = p->kv[g].max_blocks;
        if (radi_kv_paged(&p->kv[g].d)) {
            o->block_pitch = q->max_blocks;
            o->slot_mapping = pack(k, q->slot_mapping, s->n_tok);
            o->block_table = pack(k, q->block_table, s->n_seq * q->max_blocks);
            o->seqused = pack(k, q->seqused, s->n_seq);
        } else {
            o->state_pitch = 1;
            o->state_index = pack(k, q->state_index, s->n_seq);
        }
    }
}

static rad_status check_step(const struct radi_rt *rt, struct rad_err *err)
{
    const struct radi_step *s = &rt->step;
    const struct rad_plan *p = rt->plan;
    if (s->n_tok < 1 || s->n_tok > p->ctx.max_tok || s->n_seq < 1 || s->n_seq > p->ctx.max_seqs
        || s->n_out < 0 || s->n_out > radi_rt_max_out(rt) || s->n_seq_decode < 0
        || s->n_seq_decode > s->n_seq)
        return rad_fail(err, RAD_E_ARG, "a step of %lld tokens, %lld sequences, %lld outputs, at "
                        "most %lld, %lld, %lld", (long long)s->n_tok, (long long)s->n_seq,
                        (long long)s->n_out, (long long)p->ctx.max_tok, (long long)p->ctx.max_seqs,
                        (long long)radi_rt_max_out(rt));
    int64_t sum = 0;
    for (int64_t i = 0; i < s->n_seq; i++) {
        if (s->q_lens[i] < 1 || s->cu_seqlens[i] != sum)
            return rad_fail(err, RAD_E_ARG, "sequence %lld of the step begins at %d, want %lld",
                            (long long)i, s->cu_seqlens[i], (long long)sum);
        sum += s->q_lens[i];
    }
    if (sum != s->n_tok || s->cu_seqlens[s->n_seq] != sum)
        return rad_fail(err, RAD_E_ARG, "the step's sequences have %lld tokens, want %lld",
                        (long long)sum, (long long)s->n_tok);
    return RAD_OK;
}

static rad_status device_error(const struct radi_rt *rt, const char *what, rad_status st,
                               struct rad_err *err)
{
    return st ? rad_fail(err, st, "step %llu: %s on device '%s': %s",
                         (unsigned long long)rt->steps, what, rt->dev->ops->name,
                         rad_strstatus(st)) : RAD_OK;
}

void radi_rt_unwanted(struct radi_rt *rt, bool (*fn)(void *user), void *user)
{
    rt->unwanted = fn;
    rt->unwanted_user = user;
}

rad_status radi_rt_submit(struct radi_rt *rt, struct rad_err *err)
{
    const struct radi_device_ops *ops = rt->dev->ops;
    struct packer k = { .rt = rt };
    if (rt->in_flight)
        return rad_fail(err, RAD_E_STATE, "a step is in flight; wait for it first");
    RAD_TRY(check_step(rt, err));
    rt->steps++;
    rt->ctx.err.code = RAD_OK;
    make_batch(rt, &k);
    RAD_TRY(device_error(rt, "upload",
                         ops->upload(rt->dev, rt->stream, rt->stage_dev, rt->stage_host,
                                     (size_t)k.at), err));
    rt->plan->arch->x.step(&rt->ctx, &rt->ctx.batch);
    rad_status st = rt->ctx.err.code;
    if (st)
        rad_fail(err, st, "step %llu: %s", (unsigned long long)rt->steps, rt->ctx.err.text);
    rt->n_out = rt->step.n_out;
    if (!st && rt->n_out && !ops->host_visible)
        st = device_error(rt, "download",
                          ops->download(rt->dev, rt->stream, rt->logits,
                                        rt->arena + rt->plan->buf[rt->plan->logits].offset,
                                        (size_t)(rt->n_out * radi_rt_vocab(rt)) * sizeof(float)),
                          err);
    rad_status rec = ops->event_record(rt->dev, rt->done, rt->stream);
    if (st) {                                    /* what was issued still runs */
        if (!rec)
            (void)ops->event_sync(rt->dev, rt->done);
        return st;
    }
    if (rec)
        return device_error(rt, "event", rec, err);
    rt->in_flight = true;
    return RAD_OK;
}

rad_status radi_rt_wait(struct radi_rt *rt, const float **logits, struct rad_err *err)
{
    *logits = NULL;
    if (!rt->in_flight)
        return rad_fail(err, RAD_E_STATE, "no step is in flight");
    rt->in_flight = false;
    rt->syncs++;
    rad_status st = rt->dev->ops->event_sync(rt->dev, rt->done);
    if (st)
        return device_error(rt, "wait", st, err);
    *logits = rt->n_out ? rt->logits : NULL;
    return RAD_OK;
}
