/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the engine's life: open, the thread that steps, submit and cancel from
 * any thread, drain and close. What a step contains is sched.c's. */
#include "config.h"

#include "engine/sched.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "banned.h"

void rad_sampling_default(struct rad_sampling *s)
{
    *s = (struct rad_sampling){ .temperature = 1, .top_p = 1, .repetition_penalty = 1,
                                .repeat_last_n = 64 };
}

/* All that the step in flight serves was cancelled: a long prompt of a client
 * that went away does not keep its pages to the end of the step. */
static bool unwanted(void *user)
{
    const struct rad_engine *e = user;
    for (int64_t i = 0; i < e->n_planned; i++)
        if (!atomic_load(&e->planned[i].r->cancel))
            return false;
    return true;
}

static void *run(void *arg)
{
    struct rad_engine *e = arg;
    for (;;) {
        pthread_mutex_lock(&e->lock);
        while (!e->closing && !e->n_live) {
            pthread_cond_broadcast(&e->idle);
            pthread_cond_wait(&e->work, &e->lock);
        }
        if (e->closing)
            for (int64_t i = 0; i < e->n_live; i++)
                atomic_store(&e->live[i]->cancel, true);
        bool stop = e->closing && !e->n_live;
        pthread_mutex_unlock(&e->lock);
        if (stop)
            return NULL;
        uint64_t t0 = radi_now_ns();
        if (!radi_sched_plan(e)) {
            /* What waits cannot start yet only while something runs; with
             * nothing planned everything left was just cancelled. */
            continue;
        }
        struct rad_err err = { 0 };
        const float *logits = NULL;
        rad_status st = radi_rt_submit(e->rt, &err);
        if (!st)
            st = radi_rt_wait(e->rt, &logits, &err);
        if (st == RAD_E_CANCELLED)
            continue;                          /* the next plan ends them */
        if (st)
            rad_log(RAD_LOG_ERROR, "engine", "step failed: %s", err.text);
        uint64_t dt = radi_now_ns() - t0;
        radi_sched_measure(e, dt);
        radi_sched_commit(e, logits, st ? err.text : NULL);
        pthread_mutex_lock(&e->lock);
        e->stats.step_ns += dt;
        pthread_mutex_unlock(&e->lock);
    }
}

rad_status rad_engine_open(struct rad_model *m, const struct rad_engine_opts *o,
                           struct rad_engine **out, struct rad_err *err)
{
    *out = NULL;
    struct rad_engine *e = radi_calloc(1, sizeof *e);
    if (!e)
        return rad_fail(err, RAD_E_NOMEM, "engine: out of memory");
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->idle, NULL);
    e->model = rad_model_ref(m);
    struct rad_deployment d = o->dep;
    d.size = sizeof d;
    d.max_tok = d.max_tok > 0 ? d.max_tok : 512;
    d.max_seqs = d.max_seqs > 0 ? d.max_seqs : 16;
    /* A step must be able to decode every running sequence. */
    if (d.max_tok < d.max_seqs)
        d.max_tok = d.max_seqs;
    rad_status st = radi_pool_new(o->threads, &e->pool, err);
    if (!st)
        st = rad_plugins_open(o->home, o->kernels, &e->plugins, err);
    if (!st) {
        d.parts = radi_pool_parts(e->pool);
        st = rad_plan_build_model(e->plugins, m, &d, &e->plan, err);
    }
    if (!st)
        st = radi_rt_open(e->plan, m, e->pool, &e->rt, err);
    if (!st) {
        radi_rt_unwanted(e->rt, unwanted, e);
        const RadModelMeta *meta = rad_model_build_meta(m);
        e->max_ctx = d.max_ctx > 0 ? d.max_ctx : meta->n_ctx_train;
        e->max_tok = d.max_tok;
        e->max_seqs = d.max_seqs;
        e->vocab = radi_rt_vocab(e->rt);
        e->chunk = o->chunk > 0 ? o->chunk : d.max_tok;
        e->step_ns = (o->step_ms ? RADI_MAX(o->step_ms, 0) : 300) * 1000000;
        e->max_queue = o->max_queue > 0 ? o->max_queue : 8 * d.max_seqs;
        e->running = radi_calloc((size_t)d.max_seqs, sizeof *e->running);
        e->planned = radi_calloc((size_t)d.max_seqs, sizeof *e->planned);
        if (!e->running || !e->planned)
            st = rad_fail(err, RAD_E_NOMEM, "engine: out of memory");
    }
    if (!st)
        st = radi_kv_init(&e->kv, e->rt, e->max_ctx, err);
    if (!st && !radi_kv_fits(&e->kv, e->max_ctx))
        st = rad_fail(err, RAD_E_ARG, "the kv cache does not hold one sequence of %lld tokens",
                      (long long)e->max_ctx);
    if (!st)
        st = radi_sampler_init(&e->sampler, e->vocab, err);
    if (!st) {
        e->stats.queue_cap = e->max_queue;
        e->stats.kv_blocks_total = radi_kv_total(&e->kv);
        int rc = pthread_create(&e->thread, NULL, run, e);
        e->thread_up = rc == 0;
        if (rc)
            st = rad_fail(err, RAD_E_NOMEM, "engine thread: %s", strerror(rc));
    }
    if (st) {
        rad_engine_close(e);
        return st;
    }
    *out = e;
    return RAD_OK;
}

void rad_engine_close(struct rad_engine *e)
{
    if (!e)
        return;
    if (e->thread_up) {
        pthread_mutex_lock(&e->lock);
        e->closing = true;
        pthread_cond_broadcast(&e->work);
        pthread_mutex_unlock(&e->lock);
        pthread_join(e->thread, NULL);
    }
    radi_sampler_release(&e->sampler);
    radi_kv_release(&e->kv);
    radi_rt_close(e->rt);
    rad_plan_free(e->plan);
    rad_plugins_close(e->plugins);
    radi_pool_free(e->pool);
    rad_model_unref(e->model);
    radi_free(e->running);
    radi_free(e->planned);
    radi_free(e->live);
    radi_free(e->end_ids);
    pthread_cond_destroy(&e->work);
    pthread_cond_destroy(&e->idle);
    pthread_mutex_destroy(&e->lock);
    radi_free(e);
}

const struct rad_plan *rad_engine_plan(const struct rad_engine *e)
{
    return e->plan;
}

int64_t rad_engine_max_ctx(const struct rad_engine *e)
{
    return e->max_ctx;
}

int64_t rad_engine_vocab(const struct rad_engine *e)
{
    return e->vocab;
}

rad_status rad_engine_set_end_ids(struct rad_engine *e, const int32_t *ids, int n,
                                  struct rad_err *err)
{
    int32_t *copy = radi_malloc((size_t)(n > 0 ? n : 1) * sizeof *copy);
    if (!copy)
        return rad_fail(err, RAD_E_NOMEM, "end tokens: out of memory");
    if (n > 0)
        memcpy(copy, ids, (size_t)n * sizeof *copy);
    pthread_mutex_lock(&e->lock);
    bool busy = e->n_live > 0;
    if (!busy) {
        radi_free(e->end_ids);
        e->end_ids = copy;
        e->n_end_ids = n;
    }
    pthread_mutex_unlock(&e->lock);
    if (busy) {
        radi_free(copy);
        return rad_fail(err, RAD_E_STATE, "end tokens cannot change while requests run");
    }
    return RAD_OK;
}

void radi_request_free(struct rad_request *r)
{
    if (!r)
        return;
    radi_kv_seq_release(&r->kv);
    radi_free(r->tok);
    radi_free(r->stop_ids);
    radi_free(r);
}

static rad_status check_sampling(const struct rad_sampling *s, struct rad_err *err)
{
    struct { const char *name; double v, lo, hi; bool open_lo; } range[] = {
        { "temperature", s->temperature, -1, 1e6, false },
        { "top_p", s->top_p, 0, 1, true },
        { "min_p", s->min_p, 0, 1, false },
        { "repetition_penalty", s->repetition_penalty, 0, 1e6, true },
        { "frequency_penalty", s->frequency_penalty, -1e6, 1e6, false },
        { "presence_penalty", s->presence_penalty, -1e6, 1e6, false },
    };
    for (size_t i = 0; i < RADI_COUNT(range); i++)
        if (!(range[i].v >= range[i].lo && range[i].v <= range[i].hi) ||
            (range[i].open_lo && range[i].v <= range[i].lo))
            return rad_fail(err, RAD_E_ARG, "'%s' is %g, want %s%g to %g", range[i].name,
                            range[i].v, range[i].open_lo ? "above " : "", range[i].lo,
                            range[i].hi);
    if (s->top_k < 0 || s->top_k > RADI_TOP_K_MAX)
        return rad_fail(err, RAD_E_ARG, "'top_k' is %lld, want 0 to %d",
                        (long long)s->top_k, RADI_TOP_K_MAX);
    if (s->repeat_last_n < -1)
        return rad_fail(err, RAD_E_ARG, "'repeat_last_n' is %lld, want -1 or more",
                        (long long)s->repeat_last_n);
    return RAD_OK;
}

static void fill_sampling(RadSampleParams *p, const struct rad_sampling *s)
{
    *p = (RadSampleParams){
        .seed = s->seed, .temp = (float)s->temperature, .top_p = (float)s->top_p,
        .min_p = (float)s->min_p, .typical_p = 1, .rep_penalty = (float)s->repetition_penalty,
        .freq_penalty = (float)s->frequency_penalty, .pres_penalty = (float)s->presence_penalty,
        .dry_base = 1.75f, .dry_allowed_length = 2, .dry_penalty_last_n = -1,
        .top_k = (int32_t)s->top_k, .mask_row = -1,
        .penalty_last_n = (int32_t)RADI_MIN(s->repeat_last_n, INT32_MAX),
    };
    /* Dividing by less overflows; the first token has all the weight long before. */
    if (s->temperature < 1e-8 || s->top_k == 1)
        p->flags |= RAD_SAMPLE_GREEDY;
    if ((s->repetition_penalty < 1 || s->repetition_penalty > 1 || s->frequency_penalty < 0 ||
         s->frequency_penalty > 0 || s->presence_penalty < 0 || s->presence_penalty > 0) &&
        s->repeat_last_n != 0)
        p->flags |= RAD_SAMPLE_PENALTY;
}

static rad_status check_request(const struct rad_engine *e, const struct rad_request_opts *o,
                                struct rad_err *err)
{
    if (o->n_ids < 1)
        return rad_fail(err, RAD_E_ARG, "the prompt has no tokens");
    int64_t room = o->max_tokens < 0 ? 0 : 1;
    if (o->n_ids > e->max_ctx - room)
        return rad_fail(err, RAD_E_ARG,
                        "the prompt has %lld tokens; the context holds %lld, %lld too few",
                        (long long)o->n_ids, (long long)e->max_ctx,
                        (long long)(o->n_ids + room - e->max_ctx));
    for (int64_t i = 0; i < o->n_ids; i++)
        if (o->ids[i] < 0 || o->ids[i] >= e->vocab)
            return rad_fail(err, RAD_E_ARG, "prompt token %lld is %d, want 0 to %lld",
                            (long long)i, o->ids[i], (long long)e->vocab - 1);
    if (o->top_logprobs < 0 || o->top_logprobs > 20)
        return rad_fail(err, RAD_E_ARG, "'top_logprobs' is %d, want 0 to 20", o->top_logprobs);
    return check_sampling(&o->sampling, err);
}

static rad_status request_new(const struct rad_engine *e, const struct rad_request_opts *o,
                              struct rad_request **out, struct rad_err *err)
{
    struct rad_request *r = radi_calloc(1, sizeof *r);
    if (!r)
        return rad_fail(err, RAD_E_NOMEM, "request: out of memory");
    r->priority = o->priority;
    atomic_init(&r->cancel, false);
    r->n_prompt = r->n_tok = o->n_ids;
    int64_t room = e->max_ctx - o->n_ids;
    r->max_new = o->max_tokens < 0 ? 0 : o->max_tokens == 0 ? room : RADI_MIN(o->max_tokens, room);
    fill_sampling(&r->sample, &o->sampling);
    r->logprobs = o->logprobs || o->top_logprobs > 0;
    r->top_logprobs = o->top_logprobs;
    r->ignore_eos = o->ignore_eos;
    r->sink = o->sink;
    r->logits = o->logits;
    r->user = o->user;
    r->n_stop_ids = o->n_stop_ids;
    size_t n_stop = (size_t)(o->n_stop_ids > 0 ? o->n_stop_ids : 0);
    r->tok = radi_malloc((size_t)(r->n_prompt + r->max_new) * sizeof *r->tok);
    r->stop_ids = radi_malloc((n_stop ? n_stop : 1) * sizeof *r->stop_ids);
    rad_status st = r->tok && r->stop_ids ? radi_kv_seq_init(&e->kv, &r->kv, err)
                                          : rad_fail(err, RAD_E_NOMEM, "request: out of memory");
    if (st) {
        radi_request_free(r);
        return st;
    }
    memcpy(r->tok, o->ids, (size_t)o->n_ids * sizeof *r->tok);
    if (n_stop)
        memcpy(r->stop_ids, o->stop_ids, n_stop * sizeof *r->stop_ids);
    *out = r;
    return RAD_OK;
}

rad_status rad_engine_submit(struct rad_engine *e, const struct rad_request_opts *o,
                             uint64_t *id, struct rad_err *err)
{
    RAD_TRY(check_request(e, o, err));
    struct rad_request *r = NULL;
    RAD_TRY(request_new(e, o, &r, err));
    rad_status st = RAD_OK;
    pthread_mutex_lock(&e->lock);
    if (e->closing || e->draining)
        st = rad_fail(err, RAD_E_FULL, "the server is stopping");
    else if (e->n_waiting >= e->max_queue)
        st = rad_fail(err, RAD_E_FULL, "the queue is full (%lld requests wait)",
                      (long long)e->n_waiting);
    else {
        size_t cap = (size_t)e->cap_live;
        st = radi_grow((void **)&e->live, &cap, (size_t)e->n_live + 1, sizeof *e->live, err);
        e->cap_live = (int64_t)cap;
    }
    if (!st) {
        r->id = ++e->next_id;
        if (id)
            *id = r->id;
        e->live[e->n_live++] = r;
        struct rad_request **p = &e->waiting;
        while (*p && (*p)->priority >= r->priority)
            p = &(*p)->next;
        r->next = *p;
        *p = r;
        e->n_waiting++;
        pthread_cond_signal(&e->work);
    } else {
        e->stats.rejected++;
    }
    pthread_mutex_unlock(&e->lock);
    if (st)
        radi_request_free(r);
    return st;
}

void rad_engine_cancel(struct rad_engine *e, uint64_t id)
{
    pthread_mutex_lock(&e->lock);
    for (int64_t i = 0; i < e->n_live; i++)
        if (e->live[i]->id == id)
            atomic_store(&e->live[i]->cancel, true);
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
}

rad_status rad_engine_drain(struct rad_engine *e, int64_t timeout_ms, struct rad_err *err)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&e->lock);
    e->draining = true;
    int rc = 0;
    while (e->n_live && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&e->idle, &e->lock, &t);
    int64_t left = e->n_live;
    pthread_mutex_unlock(&e->lock);
    if (left)
        return rad_fail(err, RAD_E_CANCELLED, "%lld requests were still running", (long long)left);
    return RAD_OK;
}

void rad_engine_stats(struct rad_engine *e, struct rad_engine_stats *out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->stats;
    out->waiting = e->n_waiting;
    if (!e->n_live)
        out->running = out->kv_blocks_used = 0;
    pthread_mutex_unlock(&e->lock);
}
