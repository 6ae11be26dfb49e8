/* SPDX-License-Identifier: Apache-2.0 */
/* What an architecture's step may ask besides issuing ops. One rank, one lane,
 * no routing: the calls that need more say so, once, and the step fails. */
#include "config.h"

#include <stdio.h>

#include "run/rt.h"

#include "banned.h"

int radi_ctx_fail(RadCtx *c, rad_status st, const char *fmt, ...)
{
    if (c->err.code)                             /* the first one is the cause */
        return c->err.code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->err.text, sizeof c->err.text, fmt, ap);
    va_end(ap);
    c->err.code = st;
    return st;
}

void rad_step_fail(RadCtx *c, const char *what)
{
    radi_ctx_fail(c, RAD_E_STATE, "%s", what ? what : "the architecture gave up");
}

void *rad_state(RadCtx *c)
{
    return c->rt->plan->state;
}

const RadBatch *rad_batch(RadCtx *c)
{
    return &c->batch;
}

int rad_rank(RadCtx *c)
{
    return c->rt->plan->ctx.rank;
}

int rad_world_size(RadCtx *c)
{
    return c->rt->plan->ctx.world_size;
}

void *rad_stream(RadCtx *c)
{
    return c->rt->stream;
}

void *rad_weight_ptr(RadCtx *c, rad_weight w)
{
    if (w < 0 || (size_t)w >= c->rt->plan->n_weights)
        return NULL;
    return (void *)(uintptr_t)c->rt->weight[w].plane[0];
}

void *rad_buf_ptr(RadCtx *c, rad_buf b)
{
    if (b < 0 || (size_t)b >= c->rt->plan->n_bufs)
        return NULL;
    return c->rt->arena + c->rt->plan->buf[b].offset;
}

int rad_lane(RadCtx *c, int lane)
{
    return lane == 0 ? RAD_OK
        : radi_ctx_fail(c, RAD_E_UNSUPPORTED, "rad_lane(%d): a second lane is not served", lane);
}

int rad_lane_join(RadCtx *c, int from, int to)
{
    return from == 0 && to == 0 ? RAD_OK
        : radi_ctx_fail(c, RAD_E_UNSUPPORTED, "rad_lane_join(%d, %d): a second lane is not served",
                        from, to);
}

int rad_route_report(RadCtx *c, int32_t layer, const RadRouting *r)
{
    (void)r;
    return radi_ctx_fail(c, RAD_E_UNSUPPORTED, "rad_route_report of layer %d is not served", layer);
}

int rad_route_counts(RadCtx *c, int32_t layer, int64_t *counts, int32_t n)
{
    (void)counts;
    (void)n;
    return radi_ctx_fail(c, RAD_E_UNSUPPORTED, "rad_route_counts of layer %d is not served", layer);
}
