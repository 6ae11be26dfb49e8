/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a loaded model. arena.c owns its memory, relayout.c binds the
 * weights, rt.c makes the batch and drives a step, issue.c turns operands into
 * a launch, ctx.c has the other calls of an architecture's step.
 *
 * One thread at a time. Nothing is allocated between open and close. */
#ifndef RADI_RT_H
#define RADI_RT_H

#include "device/device.h"
#include "plan/plan_priv.h"
#include "run/run.h"

struct RadCtx {
    struct radi_rt *rt;
    RadBatch batch;
    RadKvBatch kv[RADI_KV_MAX];
    struct rad_err err;          /* the first failure of the step; sticky */
};

struct radi_rt {
    bool (*unwanted)(void *user);
    void *unwanted_user;
    struct rad_plan *plan;
    struct rad_model *model;
    struct radi_pool *pool;
    struct radi_device *dev;
    struct radi_stream *stream;
    struct radi_event *done;
    uint8_t *arena, *scratch, *kv, *weights, *stage_dev;
    uint8_t *stage_host;         /* pinned: one step's arrays, packed */
    float *logits;               /* pinned, or the buffer itself on the host */
    uint64_t weights_bytes;
    RadTensor *weight;           /* canonical views, by handle */
    RadTensor *layout;           /* rearranged ones */
    void **instance;             /* by op and band */
    size_t *first_band;          /* of an op, in instance */
    size_t n_instances;
    struct radi_step step;
    int32_t *step_mem;
    RadCtx ctx;
    uint64_t steps, syncs;
    int64_t n_out;
    bool in_flight;
};

/* arena.c */
rad_status radi_rt_memory(struct radi_rt *rt, struct rad_err *err) RAD_MUSTCHECK;
void radi_rt_memory_release(struct radi_rt *rt);

/* relayout.c */
rad_status radi_rt_bind(struct radi_rt *rt, struct rad_err *err) RAD_MUSTCHECK;

/* ctx.c: remembers the first failure and returns its code. */
int radi_ctx_fail(RadCtx *c, rad_status st, const char *fmt, ...) RAD_PRINTF(3, 4);

#endif
