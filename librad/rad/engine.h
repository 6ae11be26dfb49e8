/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: continuous batching over a loaded model. Requests are token ids
 * in, token events out; text is rad_text's work, HTTP is the server's.
 *
 * One thread of the engine runs steps and calls every sink. submit, cancel and
 * stats may be called from any thread. */
#ifndef RAD_ENGINE_H
#define RAD_ENGINE_H

#include <rad/plan.h>
#include <rad/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_engine;
struct rad_request;

struct rad_engine_opts {         /* zero = default in every field */
    uint32_t size;
    const char *home, *kernels;  /* as rad_plugins_open */
    struct rad_deployment dep;
    int threads;                 /* 0: one per allowed CPU */
    int64_t chunk;               /* most prompt tokens of one sequence a step; 0: max_tok */
    int64_t max_queue;           /* waiting requests; 0: 8 * max_seqs */
    /* Prompts take no more of a step than is expected to be done in this time,
     * so that cancels, new requests and running streams do not wait behind a
     * long prompt; 0: 300 ms, negative: no limit. Changes no bytes. */
    int64_t step_ms;
};

/* Takes a reference on the model. Refuses by name what cannot be honoured. */
rad_status rad_engine_open(struct rad_model *m, const struct rad_engine_opts *o,
                           struct rad_engine **out, struct rad_err *err) RAD_MUSTCHECK;
/* Cancels what runs, waits for the engine's thread, frees. */
void rad_engine_close(struct rad_engine *e);
const struct rad_plan *rad_engine_plan(const struct rad_engine *e);
int64_t rad_engine_max_ctx(const struct rad_engine *e);
int64_t rad_engine_vocab(const struct rad_engine *e);

struct rad_sampling {            /* rad_sampling_default fills it */
    double temperature;          /* <= 0: greedy */
    double top_p, min_p;
    double repetition_penalty, frequency_penalty, presence_penalty;
    int64_t top_k;               /* 0: off; 1: greedy; at most 1024 */
    int64_t repeat_last_n;       /* -1: all; 0: none */
    uint64_t seed;
};
void rad_sampling_default(struct rad_sampling *s);

enum rad_finish {
    RAD_FINISH_NONE = 0, RAD_FINISH_STOP = 1, RAD_FINISH_LENGTH = 2,
    RAD_FINISH_CANCELLED = 3, RAD_FINISH_ERROR = 4
};

struct rad_top_logprob { int32_t id; float logprob; };

struct rad_token_event {
    int done;                    /* 1: the last event; id is -1 */
    int32_t id;
    float logprob;               /* of id, natural log, raw distribution */
    const struct rad_top_logprob *top;   /* n_top, descending; this call only */
    int n_top;
    enum rad_finish finish;      /* done */
    const char *error;           /* RAD_FINISH_ERROR */
    int64_t n_prompt, n_output, n_cached;
};

/* On the engine's thread; must not block. Non-zero: stop this request now
 * (finish STOP); the done event follows. */
typedef int rad_token_fn(void *user, const struct rad_token_event *ev);
/* Raw logits of a prompt or output position: row predicts position pos + 1. */
typedef void rad_logits_fn(void *user, int64_t pos, const float *logits, int64_t vocab);

struct rad_request_opts {        /* zero = default in every field */
    uint32_t size;
    const int32_t *ids;          /* copied */
    int64_t n_ids;               /* at least 1 */
    int64_t max_tokens;          /* 0: up to the context */
    struct rad_sampling sampling;
    int logprobs;                /* fill logprob; top_logprobs alternatives too */
    int top_logprobs;            /* at most 20 */
    int ignore_eos;              /* drops the end tokens' effect */
    const int32_t *stop_ids;     /* copied; besides the tokenizer's end tokens */
    int n_stop_ids;
    int priority;                /* higher first */
    rad_token_fn *sink;
    rad_logits_fn *logits;       /* optional: every position's logits (scoring) */
    void *user;
};

/* RAD_E_FULL: the queue is full. RAD_E_ARG: names the field; a prompt that
 * does not leave room for one token says its length and the context's. */
rad_status rad_engine_submit(struct rad_engine *e, const struct rad_request_opts *o,
                             uint64_t *id, struct rad_err *err) RAD_MUSTCHECK;
/* The request ends with CANCELLED within a step; unknown ids do nothing. */
void rad_engine_cancel(struct rad_engine *e, uint64_t id);
/* End tokens every request stops at (copied); usually the tokenizer's. */
rad_status rad_engine_set_end_ids(struct rad_engine *e, const int32_t *ids, int n,
                                  struct rad_err *err) RAD_MUSTCHECK;
/* Refuses new requests; returns when none is left or after timeout_ms. */
rad_status rad_engine_drain(struct rad_engine *e, int64_t timeout_ms, struct rad_err *err);

struct rad_engine_stats {
    int64_t running, waiting, queue_cap;
    int64_t kv_blocks_used, kv_blocks_total;
    uint64_t steps, steps_prefill, steps_decode, steps_mixed, step_ns;
    uint64_t prompt_tokens, output_tokens, preemptions, rejected, syncs;
    uint64_t finished[5];        /* by rad_finish */
};
void rad_engine_stats(struct rad_engine *e, struct rad_engine_stats *out);

/* ---- text of one output: detokenises, watches for stop strings, holds back
 * what may be the start of one, and never emits half a character. One thread
 * at a time. */
struct rad_text;
rad_status rad_text_new(const struct rad_tokenizer *t, const char *const *stop, int n_stop,
                        int skip_special, struct rad_text **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_text_free(struct rad_text *t);
/* Feeds one id. *delta: final text to emit now (may be empty), valid until the
 * next call. *stopped: a stop string was completed; the text before it is in
 * *delta and nothing follows. */
rad_status rad_text_push(struct rad_text *t, int32_t id, const char **delta, size_t *n,
                         int *stopped, struct rad_err *err) RAD_MUSTCHECK;
/* At the end: what was held back. */
rad_status rad_text_finish(struct rad_text *t, const char **delta, size_t *n,
                           struct rad_err *err) RAD_MUSTCHECK;
const char *rad_text_stop_reason(const struct rad_text *t);  /* the stop string, or NULL */

#ifdef __cplusplus
}
#endif
#endif
