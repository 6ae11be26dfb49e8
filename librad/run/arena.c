/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a loaded model, exactly as the plan counted it: arena, scratch,
 * KV pools, weight copies and the staging of a step. */
#include "config.h"

#include "run/rt.h"

#include "banned.h"

static rad_status take(struct radi_rt *rt, enum radi_mem kind, uint64_t bytes, const char *what,
                       void *out, struct rad_err *err)
{
    void *p = NULL;
    if (bytes) {
        rad_status st = bytes > SIZE_MAX ? RAD_E_NOMEM
            : rt->dev->ops->alloc(rt->dev, kind, (size_t)bytes, &p);
        if (st)
            return rad_fail(err, st, "%s: %llu bytes on device '%s': %s", what,
                            (unsigned long long)bytes, rt->dev->ops->name, rad_strstatus(st));
    }
    memcpy(out, &p, sizeof p);
    return RAD_OK;
}

/* The step that the engine fills: plain host memory, one block. */
static rad_status step_arrays(struct radi_rt *rt, struct rad_err *err)
{
    const struct rad_plan *p = rt->plan;
    struct radi_step *s = &rt->step;
    int32_t **common[RADI_ST_COMMON] = {
        [RADI_ST_TOKENS] = &s->token_ids, [RADI_ST_POSITIONS] = &s->positions,
        [RADI_ST_CU] = &s->cu_seqlens, [RADI_ST_SEQ] = &s->seq_ids, [RADI_ST_QLEN] = &s->q_lens,
        [RADI_ST_CTXLEN] = &s->ctx_lens, [RADI_ST_OUT] = &s->out_ids,
    };
    uint64_t n = 0;
    for (int w = 0; w < RADI_ST_COMMON; w++)
        n += radi_stage_len(p, -1, w);
    for (int g = 0; g < p->n_kv; g++)
        for (int w = 0; w < RADI_ST_PER_KV; w++)
            n += radi_stage_len(p, g, w);
    rt->step_mem = radi_calloc((size_t)n, sizeof *rt->step_mem);
    if (!rt->step_mem)
        return rad_fail(err, RAD_E_NOMEM, "step arrays: out of memory");
    int32_t *at = rt->step_mem;
    for (int w = 0; w < RADI_ST_COMMON; w++) {
        *common[w] = at;
        at += radi_stage_len(p, -1, w);
    }
    for (int g = 0; g < p->n_kv; g++) {
        struct radi_step_kv *k = &s->kv[g];
        int32_t **of[RADI_ST_PER_KV] = {
            [RADI_ST_SLOT] = &k->slot_mapping, [RADI_ST_TABLE] = &k->block_table,
            [RADI_ST_USED] = &k->seqused, [RADI_ST_STATE] = &k->state_index,
        };
        k->max_blocks = p->kv[g].max_blocks;
        for (int w = 0; w < RADI_ST_PER_KV; w++) {
            *of[w] = at;
            at += radi_stage_len(p, g, w);
        }
    }
    return RAD_OK;
}

rad_status radi_rt_memory(struct radi_rt *rt, struct rad_err *err)
{
    const struct rad_plan *p = rt->plan;
    const struct radi_sizes *z = &p->size;
    rt->weights_bytes = z->weights_layout + z->weights_copied;
    RAD_TRY(take(rt, RADI_MEM_DEVICE, rt->weights_bytes, "weights", &rt->weights, err));
    RAD_TRY(take(rt, RADI_MEM_DEVICE, z->arena, "arena", &rt->arena, err));
    RAD_TRY(take(rt, RADI_MEM_DEVICE, z->scratch, "scratch", &rt->scratch, err));
    RAD_TRY(take(rt, RADI_MEM_DEVICE, z->kv, "kv cache", &rt->kv, err));
    RAD_TRY(take(rt, RADI_MEM_DEVICE, z->staging, "staging", &rt->stage_dev, err));
    RAD_TRY(take(rt, RADI_MEM_PINNED, z->staging, "staging", &rt->stage_host, err));
    if (rt->dev->ops->host_visible)
        rt->logits = (float *)(rt->arena + p->buf[p->logits].offset);
    else
        RAD_TRY(take(rt, RADI_MEM_PINNED, z->logits, "logits", &rt->logits, err));
    return step_arrays(rt, err);
}

void radi_rt_memory_release(struct radi_rt *rt)
{
    struct radi_device *d = rt->dev;
    radi_free(rt->step_mem);
    if (!d)
        return;
    if (!d->ops->host_visible)
        d->ops->free(d, RADI_MEM_PINNED, rt->logits);
    d->ops->free(d, RADI_MEM_PINNED, rt->stage_host);
    void *dev[] = { rt->stage_dev, rt->kv, rt->scratch, rt->arena, rt->weights };
    for (size_t i = 0; i < RADI_COUNT(dev); i++)
        d->ops->free(d, RADI_MEM_DEVICE, dev[i]);
}
