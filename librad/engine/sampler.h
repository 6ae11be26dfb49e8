/* SPDX-License-Identifier: Apache-2.0 */
/* The host sampler: one row of logits to one token. */
#ifndef RADI_SAMPLER_H
#define RADI_SAMPLER_H

#include <rad/engine.h>
#include <rad/rad_sample.h>

#include "base/base.h"

#define RADI_TOP_K_MAX 1024

struct radi_cand { float v; int32_t id; };

/* Scratch of one sampling thread; sized once. */
struct radi_sampler {
    int64_t vocab;
    float *row;                  /* [V] logits after penalties */
    struct radi_cand *cand;      /* [V] heap, then the sorted prefix */
    uint16_t *count;             /* [V] zero between calls */
};

rad_status radi_sampler_init(struct radi_sampler *s, int64_t vocab, struct rad_err *err)
    RAD_MUSTCHECK;
void radi_sampler_release(struct radi_sampler *s);

/* logits [V]; hist: the sequence's tokens so far (prompt and output), of which
 * the last penalty_last_n count. The draw depends on (seed, pos) only.
 * RAD_E_STATE when no token is possible. Allocates nothing. */
rad_status radi_sample(struct radi_sampler *s, const float *logits, const RadSampleParams *p,
                       const int32_t *hist, int64_t n_hist, int32_t *id, struct rad_err *err)
    RAD_MUSTCHECK;

/* Log-probability of `id`, and the n most likely tokens, of the raw row. */
void radi_logprobs(struct radi_sampler *s, const float *logits, int32_t id, float *logprob,
                   struct rad_top_logprob *top, int n);

#endif
