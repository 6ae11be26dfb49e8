/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a step contains. Decode rows come first and always fit; prompt
 * chunks fill what is left of the token budget; admission follows. When the KV
 * pool is full the youngest sequence is preempted and recomputed later. The
 * bits of a request do not depend on any of this: kernels are batch-invariant
 * and the sampler's draw depends on seed and position only. */
#include "config.h"

#include "engine/sched.h"

#include "banned.h"

static bool ends(const struct rad_engine *e, const struct rad_request *r, int32_t id)
{
    if (!r->ignore_eos)
        for (int i = 0; i < e->n_end_ids; i++)
            if (e->end_ids[i] == id)
                return true;
    for (int i = 0; i < r->n_stop_ids; i++)
        if (r->stop_ids[i] == id)
            return true;
    return false;
}

void radi_sched_finish(struct rad_engine *e, struct rad_request *r, enum rad_finish f,
                       const char *error)
{
    radi_kv_drop(&e->kv, &r->kv);
    pthread_mutex_lock(&e->lock);
    for (int64_t i = 0; i < e->n_live; i++)
        if (e->live[i] == r) {
            e->live[i] = e->live[--e->n_live];
            break;
        }
    e->stats.finished[f]++;
    pthread_mutex_unlock(&e->lock);
    struct rad_token_event ev = {
        .done = 1, .id = -1, .finish = f, .error = error,
        .n_prompt = r->n_prompt, .n_output = r->n_tok - r->n_prompt,
    };
    if (r->sink)
        (void)r->sink(r->user, &ev);
    radi_request_free(r);
}

static void remove_running(struct rad_engine *e, int64_t i)
{
    memmove(e->running + i, e->running + i + 1,
            (size_t)(e->n_running - i - 1) * sizeof *e->running);
    e->n_running--;
}

void radi_sched_reap(struct rad_engine *e)
{
    for (int64_t i = 0; i < e->n_running;) {
        struct rad_request *r = e->running[i];
        if (!atomic_load(&r->cancel)) {
            i++;
            continue;
        }
        remove_running(e, i);
        radi_sched_finish(e, r, RAD_FINISH_CANCELLED, NULL);
    }
    for (;;) {
        struct rad_request *dead = NULL;
        pthread_mutex_lock(&e->lock);
        for (struct rad_request **p = &e->waiting; *p; p = &(*p)->next)
            if (atomic_load(&(*p)->cancel)) {
                dead = *p;
                *p = dead->next;
                e->n_waiting--;
                break;
            }
        pthread_mutex_unlock(&e->lock);
        if (!dead)
            return;
        radi_sched_finish(e, dead, RAD_FINISH_CANCELLED, NULL);
    }
}

/* Gives the pages of running[i] back and queues it before its equals: it is
 * older than they are. */
static void preempt(struct rad_engine *e, int64_t i)
{
    struct rad_request *r = e->running[i];
    radi_kv_drop(&e->kv, &r->kv);
    r->n_done = 0;
    remove_running(e, i);
    pthread_mutex_lock(&e->lock);
    struct rad_request **p = &e->waiting;
    while (*p && (*p)->priority > r->priority)
        p = &(*p)->next;
    r->next = *p;
    *p = r;
    e->n_waiting++;
    e->stats.preemptions++;
    pthread_mutex_unlock(&e->lock);
}

static void plan_one(struct rad_engine *e, struct rad_request *r, int64_t q)
{
    struct radi_planned *p = &e->planned[e->n_planned++];
    *p = (struct radi_planned){ .r = r, .q = q };
    p->n_out = r->logits ? q : r->n_done + q == r->n_tok && r->max_new > 0;
}

/* Tokens that request r may take of `budget` rows and `out` logits rows. */
static int64_t chunk_of(const struct rad_engine *e, const struct rad_request *r,
                        int64_t budget, int64_t out)
{
    int64_t q = r->n_tok - r->n_done;
    q = RADI_MIN(q, RADI_MIN(e->chunk, budget));
    if (r->logits)
        q = RADI_MIN(q, out);
    return q;
}

static bool is_decode(const struct rad_request *r)
{
    return r->n_done > 0 && r->n_tok - r->n_done == 1;
}

enum { FIRST_TOK = 32, LEAST_TOK = 16 };   /* prompt tokens: unmeasured, always allowed */

/* Prompt tokens that this step may take besides `n_decode` decode rows. */
static int64_t prompt_budget(const struct rad_engine *e, int64_t rows, int64_t n_decode)
{
    int64_t most = rows - n_decode;
    if (!e->step_ns)
        return most;
    double fit = e->tok_per_ns > 0 ? (double)e->step_ns * e->tok_per_ns - (double)n_decode
                                   : FIRST_TOK;
    return fit < LEAST_TOK ? RADI_MIN(most, LEAST_TOK)
        : fit < (double)most ? (int64_t)fit : most;
}

void radi_sched_measure(struct rad_engine *e, uint64_t dt_ns)
{
    int64_t n = 0;
    for (int64_t i = 0; i < e->n_planned; i++)
        n += e->planned[i].q;
    if (n < LEAST_TOK || !dt_ns)
        return;                            /* decode steps cost more a token */
    double rate = (double)n / (double)dt_ns;
    e->tok_per_ns = e->tok_per_ns > 0 ? 0.5 * (e->tok_per_ns + rate) : rate;
}

/* Adds what already runs. Returns whether a sequence was preempted. */
static bool plan_running(struct rad_engine *e, int64_t *budget, int64_t *out, int64_t *prompt)
{
    bool preempted = false;
    int64_t n_decode = 0;
    for (int64_t i = 0; i < e->n_running; i++)
        n_decode += is_decode(e->running[i]);
    *prompt = prompt_budget(e, *budget, n_decode);
    for (int64_t i = 0; i < e->n_running; i++) {
        struct rad_request *r = e->running[i];
        int64_t q = is_decode(r) ? RADI_MIN(1, *out) : chunk_of(e, r, *prompt, *out);
        if (q <= 0 || *out <= 0)
            continue;
        bool ok;
        while (!(ok = radi_kv_ensure(&e->kv, &r->kv, r->n_done + q)) && e->n_running > 1) {
            preempted = true;
            preempt(e, e->n_running - 1);        /* the youngest; maybe r itself */
            if (i == e->n_running)
                break;
        }
        if (i == e->n_running)
            break;
        if (!ok) {
            remove_running(e, i--);
            radi_sched_finish(e, r, RAD_FINISH_ERROR, "the kv cache is too small for this request");
            continue;
        }
        if (!is_decode(r))
            *prompt -= q;
        plan_one(e, r, q);
        *budget -= q;
        *out -= e->planned[e->n_planned - 1].n_out;
    }
    return preempted;
}

static void admit(struct rad_engine *e, int64_t *budget, int64_t *out, int64_t prompt)
{
    while (e->n_running < e->max_seqs && RADI_MIN(*budget, prompt) > 0 && *out > 0) {
        pthread_mutex_lock(&e->lock);
        struct rad_request *r = e->waiting;
        pthread_mutex_unlock(&e->lock);
        if (!r)
            return;
        int64_t q = chunk_of(e, r, RADI_MIN(*budget, prompt), *out);
        /* The whole prompt must fit what is free, or it would only push
         * somebody else out; head-of-line blocking keeps the order fair. */
        if (!radi_kv_ensure(&e->kv, &r->kv, RADI_MIN(r->n_tok + 1, e->max_ctx))) {
            radi_kv_drop(&e->kv, &r->kv);
            return;
        }
        pthread_mutex_lock(&e->lock);
        RADI_BUG_IF(!e->waiting);
        struct rad_request **p = &e->waiting;     /* submit may have put one before it */
        while (*p != r)
            p = &(*p)->next;
        *p = r->next;
        r->next = NULL;
        e->n_waiting--;
        pthread_mutex_unlock(&e->lock);
        int64_t at = e->n_running;
        while (at > 0 && e->running[at - 1]->priority < r->priority)
            at--;
        memmove(e->running + at + 1, e->running + at,
                (size_t)(e->n_running - at) * sizeof *e->running);
        e->running[at] = r;
        e->n_running++;
        plan_one(e, r, q);
        *budget -= q;
        prompt -= q;
        *out -= e->planned[e->n_planned - 1].n_out;
    }
}

/* Stable partition: decode rows (one token, history behind it) first. */
static int64_t decode_first(struct rad_engine *e)
{
    int64_t n = 0;
    for (int64_t i = 0; i < e->n_planned; i++) {
        if (!is_decode(e->planned[i].r))
            continue;
        struct radi_planned p = e->planned[i];
        memmove(e->planned + n + 1, e->planned + n, (size_t)(i - n) * sizeof p);
        e->planned[n++] = p;
    }
    return n;
}

static void fill_kv(const struct rad_engine *e, struct radi_step *s, const struct radi_planned *p,
                    int64_t seq)
{
    const struct rad_request *r = p->r;
    for (int g = 0; g < e->kv.n_groups; g++) {
        const struct radi_kv_group *kg = &e->kv.g[g];
        struct radi_step_kv *k = &s->kv[g];
        if (!r->kv.table[g]) {
            k->state_index[seq] = r->kv.slot[g];
            continue;
        }
        int64_t bs = kg->info.block_size;
        const int32_t *table = r->kv.table[g];
        memcpy(k->block_table + seq * k->max_blocks, table,
               (size_t)r->kv.n_blocks[g] * sizeof *table);
        for (int64_t b = r->kv.n_blocks[g]; b < k->max_blocks; b++)
            k->block_table[seq * k->max_blocks + b] = -1;
        k->seqused[seq] = (int32_t)(r->n_done + p->q);
        for (int64_t i = 0; i < p->q; i++) {
            int64_t pos = r->n_done + i;
            k->slot_mapping[p->row0 + i] = (int32_t)(table[pos / bs] * bs + pos % bs);
        }
    }
}

static void fill_step(struct rad_engine *e)
{
    struct radi_step *s = radi_rt_step(e->rt);
    s->n_tok = s->n_out = 0;
    s->n_seq = e->n_planned;
    s->n_seq_decode = decode_first(e);
    s->cu_seqlens[0] = 0;
    for (int64_t i = 0; i < e->n_planned; i++) {
        struct radi_planned *p = &e->planned[i];
        const struct rad_request *r = p->r;
        p->row0 = s->n_tok;
        p->out0 = s->n_out;
        for (int64_t k = 0; k < p->q; k++) {
            s->token_ids[s->n_tok + k] = r->tok[r->n_done + k];
            s->positions[s->n_tok + k] = (int32_t)(r->n_done + k);
            s->seq_ids[s->n_tok + k] = (int32_t)i;
        }
        s->q_lens[i] = (int32_t)p->q;
        s->ctx_lens[i] = (int32_t)r->n_done;
        fill_kv(e, s, p, i);
        for (int64_t k = p->q - p->n_out; k < p->q; k++)
            s->out_ids[s->n_out++] = (int32_t)(p->row0 + k);
        s->n_tok += p->q;
        s->cu_seqlens[i + 1] = (int32_t)s->n_tok;
    }
}

bool radi_sched_plan(struct rad_engine *e)
{
    radi_sched_reap(e);
    e->n_planned = 0;
    int64_t budget = e->max_tok, out = radi_rt_max_out(e->rt), prompt = 0;
    bool preempted = plan_running(e, &budget, &out, &prompt);
    if (!preempted)
        admit(e, &budget, &out, prompt);
    if (!e->n_planned)
        return false;
    fill_step(e);
    return true;
}

/* One sampled row. Returns false when the request ended. */
static bool emit(struct rad_engine *e, struct rad_request *r, const float *row)
{
    struct rad_err err = { 0 };
    int32_t id;
    r->sample.pos = (uint64_t)r->n_tok;
    if (radi_sample(&e->sampler, row, &r->sample, r->tok, r->n_tok, &id, &err)) {
        radi_sched_finish(e, r, RAD_FINISH_ERROR, err.text);
        return false;
    }
    struct rad_top_logprob top[20];
    struct rad_token_event ev = { .id = id, .n_prompt = r->n_prompt };
    if (r->logprobs) {
        radi_logprobs(&e->sampler, row, id, &ev.logprob, top, r->top_logprobs);
        ev.top = top;
        ev.n_top = r->top_logprobs;
    }
    r->tok[r->n_tok++] = id;
    ev.n_output = r->n_tok - r->n_prompt;
    enum rad_finish f = RAD_FINISH_NONE;
    if (ends(e, r, id))
        f = RAD_FINISH_STOP;                 /* end tokens are counted, not shown */
    else if (r->sink && r->sink(r->user, &ev))
        f = RAD_FINISH_STOP;
    else if (ev.n_output >= r->max_new)
        f = RAD_FINISH_LENGTH;
    if (f != RAD_FINISH_NONE) {
        radi_sched_finish(e, r, f, NULL);
        return false;
    }
    return true;
}

static int64_t find_running(const struct rad_engine *e, const struct rad_request *r)
{
    for (int64_t i = 0; i < e->n_running; i++)
        if (e->running[i] == r)
            return i;
    return -1;
}

void radi_sched_commit(struct rad_engine *e, const float *logits, const char *err_text)
{
    uint64_t n_in = 0, n_out = 0, kinds[3] = { 0 };
    int64_t n_decode = 0;
    for (int64_t i = 0; i < e->n_planned; i++)
        n_decode += is_decode(e->planned[i].r);
    kinds[n_decode == 0 ? 0 : n_decode == e->n_planned ? 1 : 2]++;
    for (int64_t i = 0; i < e->n_planned; i++) {
        struct radi_planned *p = &e->planned[i];
        struct rad_request *r = p->r;
        int64_t at = find_running(e, r);
        if (err_text) {
            remove_running(e, at);
            radi_sched_finish(e, r, RAD_FINISH_ERROR, err_text);
            continue;
        }
        const float *rows = logits + p->out0 * e->vocab;
        if (r->logits)
            for (int64_t k = 0; k < p->n_out; k++)
                r->logits(r->user, r->n_done + k, rows + k * e->vocab, e->vocab);
        int64_t prompt_left = r->n_prompt - r->n_done;
        n_in += (uint64_t)RADI_MAX(0, RADI_MIN(prompt_left, p->q));
        r->n_done += p->q;
        radi_kv_trim_window(&e->kv, &r->kv, r->n_done);
        if (r->n_done < r->n_tok)
            continue;
        if (r->max_new == 0) {
            remove_running(e, at);
            radi_sched_finish(e, r, RAD_FINISH_LENGTH, NULL);
            continue;
        }
        n_out++;
        if (!emit(e, r, rows + (p->n_out - 1) * e->vocab))
            remove_running(e, at);
    }
    pthread_mutex_lock(&e->lock);
    e->stats.steps++;
    e->stats.steps_prefill += kinds[0];
    e->stats.steps_decode += kinds[1];
    e->stats.steps_mixed += kinds[2];
    e->stats.prompt_tokens += n_in;
    e->stats.output_tokens += n_out;
    e->stats.running = e->n_running;
    e->stats.kv_blocks_used = radi_kv_used(&e->kv);
    e->stats.syncs = radi_rt_syncs(e->rt);
    pthread_mutex_unlock(&e->lock);
}
