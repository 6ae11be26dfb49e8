/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded model that can run steps: plan + weights + arena + KV pools on one
 * device. The engine fills a step in host memory, submits it, and waits once;
 * nothing else here blocks, and the engine never sees a device pointer.
 *
 * One submit may be in flight. submit() copies everything it needs into
 * pinned staging before it returns, so the caller may refill its step. */
#ifndef RADI_RUN_H
#define RADI_RUN_H

#include <rad/plan.h>
#include <rad/rad_runtime.h>

#include "base/base.h"

/* Per KV group, what the manager must hand out (from the plan). */
struct radi_kv_info {
    int kind;                    /* RAD_KV_* */
    int64_t block_size;          /* FULL, WINDOW: tokens a page */
    int64_t n_blocks;            /* pages in the pool; page 0 is never used */
    int64_t n_slots;             /* LINEAR, CONV */
    int64_t window;
    int64_t n_layers;
    uint64_t page_bytes;         /* of one page over all bound layers */
};

/* One step, host side. Arrays belong to the runtime (radi_rt_step) and are
 * sized by the plan's maxima; the engine fills the first n_* entries. */
struct radi_step {
    int64_t n_tok, n_seq, n_seq_decode, n_out;
    int32_t *token_ids, *positions;      /* [max_tok] */
    int32_t *cu_seqlens;                 /* [max_seqs + 1] */
    int32_t *seq_ids;                    /* [max_tok] index of the sequence */
    int32_t *q_lens, *ctx_lens;          /* [max_seqs] */
    int32_t *out_ids;                    /* [max_out] rows of this step */
    struct radi_step_kv {
        int32_t *slot_mapping;           /* [max_tok] */
        int32_t *block_table;            /* [max_seqs, max_blocks]; -1 none */
        int64_t max_blocks;              /* pitch: blocks of max_ctx */
        int32_t *seqused;                /* [max_seqs] */
        int32_t *state_index;            /* [max_seqs] LINEAR, CONV */
    } kv[8];
};

struct radi_rt;

/* Reads the weights the plan declares from `model`, lays them out, places them
 * on the plan's device, carves the KV pools. `plan` and `model` must outlive it. */
rad_status radi_rt_open(struct rad_plan *plan, struct rad_model *model, struct radi_pool *pool,
                        struct radi_rt **out, struct rad_err *err) RAD_MUSTCHECK;
void radi_rt_close(struct radi_rt *rt);

int radi_rt_n_kv(const struct radi_rt *rt);
void radi_rt_kv_info(const struct radi_rt *rt, int group, struct radi_kv_info *out);
int64_t radi_rt_vocab(const struct radi_rt *rt);      /* columns of the logits */
int64_t radi_rt_max_out(const struct radi_rt *rt);

struct radi_step *radi_rt_step(struct radi_rt *rt);   /* the step to fill */
/* Asked before each op of a step, on the submitting thread: true drops the
 * rest, and submit returns RAD_E_CANCELLED. Nobody wants the step any more. */
void radi_rt_unwanted(struct radi_rt *rt, bool (*fn)(void *user), void *user);
/* Derives phase, maxima and the rest; uploads; issues; copies logits back.
 * Allocates nothing. */
rad_status radi_rt_submit(struct radi_rt *rt, struct rad_err *err) RAD_MUSTCHECK;
/* The one synchronisation of a step. *logits: [n_out, vocab] f32 host rows,
 * valid until the next submit. */
rad_status radi_rt_wait(struct radi_rt *rt, const float **logits, struct rad_err *err)
    RAD_MUSTCHECK;
uint64_t radi_rt_syncs(const struct radi_rt *rt);     /* for the test that counts */

#endif
