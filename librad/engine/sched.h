/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's inside: requests, the step that is being built, and the lock. */
#ifndef RADI_SCHED_H
#define RADI_SCHED_H

#include <pthread.h>
#include <stdatomic.h>

#include <rad/engine.h>
#include <rad/model.h>

#include "engine/kv.h"
#include "engine/sampler.h"

struct rad_request {
    struct rad_request *next;        /* waiting list */
    uint64_t id;
    int priority;
    atomic_bool cancel;
    /* set at submit, constant afterwards */
    int64_t n_prompt, max_new;       /* max_new 0: nothing is generated */
    RadSampleParams sample;
    int logprobs, top_logprobs, ignore_eos, n_stop_ids;
    int32_t *stop_ids;
    rad_token_fn *sink;
    rad_logits_fn *logits;
    void *user;
    /* the engine's thread only */
    int32_t *tok;                    /* [n_prompt + max_new] */
    int64_t n_tok;                   /* known tokens: prompt and output */
    int64_t n_done;                  /* tokens whose KV is computed */
    struct radi_kv_seq kv;
};

/* One sequence of the step in flight. */
struct radi_planned {
    struct rad_request *r;
    int64_t q;                       /* tokens this step */
    int64_t row0;                    /* its first row */
    int64_t out0, n_out;             /* its logits rows */
};

/* Lock order: there is one lock. It guards the fields below it; everything
 * else is the engine thread's or constant after open. */
struct rad_engine {
    struct rad_model *model;
    struct rad_plugins *plugins;
    struct rad_plan *plan;
    struct radi_pool *pool;
    struct radi_rt *rt;
    int64_t max_tok, max_seqs, max_ctx, vocab, chunk, max_queue;
    int32_t *end_ids;
    int n_end_ids;

    struct radi_kv kv;
    struct radi_sampler sampler;
    struct rad_request **running;    /* [max_seqs], by priority then age */
    int64_t n_running;
    struct radi_planned *planned;    /* [max_seqs] */
    int64_t n_planned;
    int64_t step_ns;                 /* what a step should take; 0: no limit */
    double tok_per_ns;               /* measured on steps with prompts; 0: not yet */
    pthread_t thread;
    bool thread_up;

    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    struct rad_request *waiting;     /* by priority, then arrival */
    int64_t n_waiting;
    bool closing, draining;
    uint64_t next_id;
    /* Every live request, for cancel by id: open addressing is not worth it. */
    struct rad_request **live;
    int64_t n_live, cap_live;
    struct rad_engine_stats stats;
};

/* Builds a step from what runs and waits. False: nothing to do. */
bool radi_sched_plan(struct rad_engine *e);
/* Samples, emits, finishes; err_text fails the whole step. */
void radi_sched_commit(struct rad_engine *e, const float *logits, const char *err_text);
/* Ends a request: gives its pages back, calls its sink, frees it. */
void radi_sched_finish(struct rad_engine *e, struct rad_request *r, enum rad_finish f,
                       const char *error);
/* Learns from a step that took dt_ns. */
void radi_sched_measure(struct rad_engine *e, uint64_t dt_ns);
/* Ends what was cancelled. Engine thread. */
void radi_sched_reap(struct rad_engine *e);
void radi_request_free(struct rad_request *r);

#endif
