/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against a runtime that computes nothing but can see everything:
 * it stores each token in the page that the scheduler named and makes logits
 * from a hash of all the tokens that a query can reach through its block
 * table. A page handed out twice, a missing token, a wrong position or a lost
 * row changes the text. The functions below take the place of librad's. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/sched.h"
#include "tap.h"

enum { VOCAB = 101, BLOCK = 4, MAX_CTX = 96 };

struct radi_rt {
    struct radi_step step;
    int64_t max_tok, max_seqs, max_out, n_blocks, window;
    int32_t *page;               /* [n_blocks * BLOCK] token + 1, 0 empty */
    float *logits;
    uint64_t syncs;
    bool bad, (*unwanted)(void *user);
    void *user;
};
static int64_t cfg_blocks = 200, cfg_window, cfg_row_us;
static bool cfg_fail_step, cfg_chunk_one;     /* short chunks may be one row long */
static RadModelMeta cfg_meta = { .struct_size = sizeof(RadModelMeta), .n_ctx_train = MAX_CTX };
static struct rad_deployment seen;
static struct radi_rt *last_rt;

struct rad_model *rad_model_ref(struct rad_model *m) { return m; }
void rad_model_unref(struct rad_model *m) { (void)m; }
const RadModelMeta *rad_model_build_meta(struct rad_model *m) { (void)m; return &cfg_meta; }
rad_status rad_plugins_open(const char *h, const char *k, struct rad_plugins **o, struct rad_err *e)
{
    (void)h; (void)k; (void)e;
    *o = NULL;
    return RAD_OK;
}
void rad_plugins_close(struct rad_plugins *p) { (void)p; }
rad_status rad_plan_build_model(struct rad_plugins *p, struct rad_model *m,
                                const struct rad_deployment *d, struct rad_plan **o, struct rad_err *e)
{
    (void)p; (void)m; (void)e;
    seen = *d;
    *o = NULL;
    return RAD_OK;
}
void rad_plan_free(struct rad_plan *p) { (void)p; }

rad_status radi_rt_open(struct rad_plan *plan, struct rad_model *model, struct radi_pool *pool,
                        struct radi_rt **out, struct rad_err *err)
{
    (void)plan; (void)model; (void)pool; (void)err;
    struct radi_rt *rt = calloc(1, sizeof *rt);
    rt->max_tok = seen.max_tok;
    rt->max_seqs = seen.max_seqs;
    rt->max_out = seen.max_out > 0 ? seen.max_out : seen.max_seqs;
    rt->n_blocks = cfg_blocks;
    rt->window = cfg_window;
    rt->page = calloc((size_t)(cfg_blocks * BLOCK), sizeof *rt->page);
    rt->logits = calloc((size_t)(rt->max_out * VOCAB), sizeof *rt->logits);
    struct radi_step *s = &rt->step;
    size_t t = (size_t)rt->max_tok, n = (size_t)rt->max_seqs, mb = MAX_CTX / BLOCK;
    s->token_ids = calloc(t, 4);
    s->positions = calloc(t, 4);
    s->seq_ids = calloc(t, 4);
    s->cu_seqlens = calloc(n + 1, 4);
    s->q_lens = calloc(n, 4);
    s->ctx_lens = calloc(n, 4);
    s->out_ids = calloc((size_t)rt->max_out, 4);
    s->kv[0].slot_mapping = calloc(t, 4);
    s->kv[0].block_table = calloc(n * mb, 4);
    s->kv[0].max_blocks = (int64_t)mb;
    s->kv[0].seqused = calloc(n, 4);
    *out = last_rt = rt;
    return RAD_OK;
}
void radi_rt_close(struct radi_rt *rt)
{
    if (!rt)
        return;
    struct radi_step *s = &rt->step;
    void *all[] = { s->token_ids, s->positions, s->seq_ids, s->cu_seqlens, s->q_lens, s->ctx_lens,
                    s->out_ids, s->kv[0].slot_mapping, s->kv[0].block_table, s->kv[0].seqused,
                    rt->page, rt->logits };
    for (size_t i = 0; i < RADI_COUNT(all); i++)
        free(all[i]);
    free(rt);
}
int radi_rt_n_kv(const struct radi_rt *rt) { (void)rt; return 1; }
void radi_rt_kv_info(const struct radi_rt *rt, int g, struct radi_kv_info *o)
{
    (void)g;
    *o = (struct radi_kv_info){ .kind = rt->window ? RAD_KV_WINDOW : RAD_KV_FULL,
        .block_size = BLOCK, .n_blocks = rt->n_blocks, .window = rt->window, .n_layers = 1 };
}
int64_t radi_rt_vocab(const struct radi_rt *rt) { (void)rt; return VOCAB; }
int64_t radi_rt_max_out(const struct radi_rt *rt) { return rt->max_out; }
struct radi_step *radi_rt_step(struct radi_rt *rt) { return &rt->step; }
uint64_t radi_rt_syncs(const struct radi_rt *rt) { return rt->syncs; }

void radi_rt_unwanted(struct radi_rt *rt, bool (*fn)(void *user), void *user)
{
    rt->unwanted = fn;
    rt->user = user;
}

static uint64_t visible(struct radi_rt *rt, int64_t seq, int64_t pos)
{
    const struct radi_step_kv *k = &rt->step.kv[0];
    uint64_t h = 1469598103934665603ull;
    int64_t from = rt->window && pos - rt->window + 1 > 0 ? pos - rt->window + 1 : 0;
    for (int64_t p = from; p <= pos; p++) {
        int32_t b = k->block_table[seq * k->max_blocks + p / BLOCK];
        if (b <= 0 || b >= rt->n_blocks) {
            rt->bad = true;
            continue;
        }
        h = (h ^ (uint64_t)rt->page[b * BLOCK + p % BLOCK]) * 1099511628211ull;
    }
    return h ^ (uint64_t)pos;
}
rad_status radi_rt_submit(struct radi_rt *rt, struct rad_err *err)
{
    struct radi_step *s = &rt->step;
    if (cfg_fail_step)
        return rad_fail(err, RAD_E_DEVICE, "the device is gone");
    for (int64_t i = 0; cfg_row_us && i < s->n_tok; i++) {
        usleep((useconds_t)cfg_row_us);
        if (rt->unwanted(rt->user))
            return rad_fail(err, RAD_E_CANCELLED, "unwanted");
    }
    rt->bad |= s->n_tok > rt->max_tok || s->n_seq > rt->max_seqs || s->n_out > rt->max_out;
    for (int64_t i = 0; i < s->n_tok; i++) {
        int32_t slot = s->kv[0].slot_mapping[i];
        if (slot < BLOCK || slot >= rt->n_blocks * BLOCK)
            rt->bad = true;
        else
            rt->page[slot] = s->token_ids[i] + 1;
    }
    for (int64_t q = 0; q < s->n_seq; q++) {
        rt->bad |= s->kv[0].seqused[q] != s->ctx_lens[q] + s->q_lens[q];
        rt->bad |= q < s->n_seq_decode && !(s->q_lens[q] == 1 && s->ctx_lens[q] > 0);
        rt->bad |= q >= s->n_seq_decode && s->q_lens[q] == 1 && s->ctx_lens[q] > 0 && !cfg_chunk_one;
    }
    for (int64_t i = 0; i < s->n_out; i++) {
        int64_t row = s->out_ids[i];
        uint64_t h = visible(rt, s->seq_ids[row], s->positions[row]);
        for (int v = 0; v < VOCAB; v++) {
            h = h * 6364136223846793005ull + 1442695040888963407ull;
            rt->logits[i * VOCAB + v] = (float)(h >> 40) * 0x1p-22f;
        }
    }
    return RAD_OK;
}
rad_status radi_rt_wait(struct radi_rt *rt, const float **logits, struct rad_err *err)
{
    (void)err;
    rt->syncs++;
    *logits = rt->logits;
    return RAD_OK;
}

/* ---- a client */
struct got {
    pthread_mutex_t m;
    pthread_cond_t c;
    int32_t id[MAX_CTX];
    float lp[MAX_CTX];
    int n, done, stop_after;
    enum rad_finish finish;
    char error[128];
};
static int sink(void *user, const struct rad_token_event *ev)
{
    struct got *g = user;
    int stop = 0;
    pthread_mutex_lock(&g->m);
    if (ev->done) {
        g->done++;
        g->finish = ev->finish;
        snprintf(g->error, sizeof g->error, "%s", ev->error ? ev->error : "");
        pthread_cond_signal(&g->c);
    } else {
        g->lp[g->n] = ev->logprob;
        g->id[g->n++] = ev->id;
        stop = g->stop_after && g->n >= g->stop_after;
    }
    pthread_mutex_unlock(&g->m);
    return stop;
}
static void got_init(struct got *g)
{
    memset(g, 0, sizeof *g);
    pthread_mutex_init(&g->m, NULL);
    pthread_cond_init(&g->c, NULL);
}
static void got_wait(struct got *g)
{
    pthread_mutex_lock(&g->m);
    while (!g->done)
        pthread_cond_wait(&g->c, &g->m);
    pthread_mutex_unlock(&g->m);
}
static struct rad_engine *open_engine(int64_t max_tok, int64_t max_seqs, int64_t chunk)
{
    struct rad_engine_opts o = { .size = sizeof o, .threads = 1, .chunk = chunk, .max_queue = 64 };
    o.dep.max_tok = max_tok;
    o.dep.max_seqs = max_seqs;
    struct rad_engine *e = NULL;
    struct rad_err err = { 0 };
    rad_status st = rad_engine_open(NULL, &o, &e, &err);
    CHECK_MSG(!st, "open: %s", err.text);
    return e;
}
static struct rad_request_opts request(int k, int32_t *ids, struct got *g)
{
    int n = 1 + k * 7 % 40;
    for (int i = 0; i < n; i++)
        ids[i] = (i * 13 + k * 5) % VOCAB;
    struct rad_request_opts o = { .size = sizeof o, .ids = ids, .n_ids = n,
                                  .max_tokens = 5 + k % 20, .sink = sink, .user = g };
    rad_sampling_default(&o.sampling);
    o.sampling.temperature = k % 3 ? 0.8 : 0;
    o.sampling.top_p = k % 2 ? 0.9 : 1;
    o.sampling.top_k = k % 4 == 1 ? 20 : 0;
    o.sampling.min_p = k % 5 == 2 ? 0.05 : 0;
    o.sampling.frequency_penalty = k % 3 == 2 ? 0.5 : 0;
    o.sampling.seed = (uint64_t)k;
    return o;
}
static void submit(struct rad_engine *e, int k, struct got *g, uint64_t *id)
{
    int32_t ids[64];
    struct rad_err err = { 0 };
    struct rad_request_opts o = request(k, ids, g);
    rad_status st = rad_engine_submit(e, &o, id, &err);
    CHECK_MSG(!st, "submit %d: %s", k, err.text);
}

enum { N = 32 };
static struct got alone[N];

/* Every request by itself, whole prompts: what all the others must equal. */
static void each_alone(void)
{
    struct rad_engine *e = open_engine(64, 4, 0);
    for (int k = 0; k < N; k++) {
        got_init(&alone[k]);
        submit(e, k, &alone[k], NULL);
        got_wait(&alone[k]);
        CHECK(alone[k].finish == RAD_FINISH_LENGTH);
        CHECK(alone[k].n == 5 + k % 20);
    }
    CHECK(!last_rt->bad);
    rad_engine_close(e);
}
static void together(int64_t max_tok, int64_t seqs, int64_t chunk, int64_t blocks, bool preempts)
{
    cfg_blocks = blocks;
    cfg_chunk_one = chunk > 0;
    struct rad_engine *e = open_engine(max_tok, seqs, chunk);
    struct got g[N];
    for (int k = 0; k < N; k++) {
        got_init(&g[k]);
        submit(e, k, &g[k], NULL);
    }
    for (int k = 0; k < N; k++) {
        got_wait(&g[k]);
        CHECK_MSG(g[k].n == alone[k].n && !memcmp(g[k].id, alone[k].id, sizeof g[k].id[0] * (size_t)g[k].n),
                  "request %d differs from itself alone", k);
        CHECK(g[k].done == 1);
    }
    struct rad_err err = { 0 };
    CHECK(!rad_engine_drain(e, 5000, &err));
    struct rad_engine_stats st;
    rad_engine_stats(e, &st);
    CHECK(!last_rt->bad);
    CHECK_MSG(!preempts || st.preemptions > 0, "nothing was preempted");
    CHECK(st.syncs == st.steps);
    CHECK(st.kv_blocks_used == 0);
    rad_engine_close(e);
    cfg_blocks = 200;
}
static void batch_of_eight(void) { together(64, 8, 0, 200, false); }
static void batch_chunk_one(void) { together(64, 8, 1, 200, false); }
static void batch_chunk_seven(void) { together(16, 16, 7, 400, false); }
static void tight_pool_preempts(void) { together(64, 16, 0, 26, true); }

static void logprobs_and_stop(void)
{
    struct rad_engine *e = open_engine(64, 4, 0);
    struct got g, h;
    int32_t ids[64];
    struct rad_err err = { 0 };
    got_init(&g);
    struct rad_request_opts o = request(3, ids, &g);
    o.logprobs = 1;
    o.top_logprobs = 3;
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&g);
    for (int i = 0; i < g.n; i++)
        CHECK(g.lp[i] < 0 && g.lp[i] > -60);
    CHECK(!rad_engine_drain(e, 5000, &err));
    rad_engine_close(e);
    e = open_engine(64, 4, 0);
    int32_t end = g.id[2];                 /* is counted, not shown */
    CHECK(!rad_engine_set_end_ids(e, &end, 1, &err));
    got_init(&h);
    o.user = &h;
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&h);
    CHECK(h.finish == RAD_FINISH_STOP && h.n <= 2);
    got_init(&h);
    o.ignore_eos = 1;
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&h);
    CHECK(h.finish == RAD_FINISH_LENGTH && h.n == g.n);
    got_init(&h);
    h.stop_after = 1;                      /* the sink says stop */
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&h);
    CHECK(h.finish == RAD_FINISH_STOP && h.n == 1);
    rad_engine_close(e);
}
static void refusals(void)
{
    struct rad_engine *e = open_engine(64, 4, 0);
    struct got g;
    got_init(&g);
    int32_t ids[200] = { 0 };
    struct rad_err err = { 0 };
    struct rad_request_opts o = request(1, ids, &g);
    o.n_ids = MAX_CTX;
    CHECK(rad_engine_submit(e, &o, NULL, &err) == RAD_E_ARG);
    CHECK_MSG(strstr(err.text, "96") != NULL, "%s", err.text);
    o.n_ids = 2;
    ids[1] = VOCAB;
    CHECK(rad_engine_submit(e, &o, NULL, &err) == RAD_E_ARG);
    ids[1] = 0;
    o.sampling.top_p = 0;
    CHECK(rad_engine_submit(e, &o, NULL, &err) == RAD_E_ARG);
    CHECK_MSG(strstr(err.text, "top_p") != NULL, "%s", err.text);
    o.sampling.top_p = 1;
    o.sampling.top_k = 5000;
    CHECK(rad_engine_submit(e, &o, NULL, &err) == RAD_E_ARG);
    o.sampling.top_k = 0;
    o.n_ids = MAX_CTX - 1;                 /* room for exactly one token */
    o.max_tokens = 0;
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&g);
    CHECK(g.n == 1 && g.finish == RAD_FINISH_LENGTH);
    rad_engine_close(e);
}
static void cancel_and_drain(void)
{
    struct rad_engine *e = open_engine(64, 2, 0);
    struct got g[6];
    uint64_t id[6];
    struct rad_err err = { 0 };
    for (int k = 0; k < 6; k++) {
        got_init(&g[k]);
        submit(e, k + 10, &g[k], &id[k]);
    }
    rad_engine_cancel(e, id[5]);
    rad_engine_cancel(e, id[0]);
    rad_engine_cancel(e, 999);
    for (int k = 0; k < 6; k++)
        got_wait(&g[k]);
    CHECK(g[5].finish == RAD_FINISH_CANCELLED || g[5].finish == RAD_FINISH_LENGTH);
    CHECK(rad_engine_drain(e, 5000, &err) == RAD_OK);
    int32_t ids[64];
    struct rad_request_opts o = request(1, ids, &g[0]);
    CHECK(rad_engine_submit(e, &o, NULL, &err) == RAD_E_FULL);
    rad_engine_close(e);
}
/* A cancel waits for the step in flight: a step that nobody waits for is dropped. */
static void slow_steps_are_dropped(void)
{
    struct rad_engine *e = open_engine(80, 2, 0);
    struct got g;
    struct rad_err err = { 0 };
    int32_t ids[MAX_CTX] = { 0 };
    struct rad_request_opts o = request(1, ids, &g);
    uint64_t id;
    cfg_row_us = 100000;
    got_init(&g);
    o.n_ids = 80;
    CHECK(!rad_engine_submit(e, &o, &id, &err));
    usleep(50000);
    rad_engine_cancel(e, id);
    uint64_t t0 = radi_now_ns();
    got_wait(&g);
    CHECK_MSG(radi_now_ns() - t0 < 900000000u, "%llu ms to cancel",
              (unsigned long long)((radi_now_ns() - t0) / 1000000));
    CHECK(g.finish == RAD_FINISH_CANCELLED);
    cfg_row_us = 0;
    rad_engine_close(e);
}
static void almost_no_temperature_is_greedy(void)
{
    struct rad_engine *e = open_engine(64, 2, 0);
    struct got g, h;
    struct rad_err err = { 0 };
    int32_t ids[64];
    struct rad_request_opts o = request(3, ids, &g);
    o.sampling.temperature = 0;
    got_init(&g);
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&g);
    o.user = &h;
    for (double t = 1e-9; t > 1e-300; t *= 1e-10) {
        o.sampling.temperature = t;
        got_init(&h);
        CHECK(!rad_engine_submit(e, &o, NULL, &err));
        got_wait(&h);
        CHECK_MSG(h.n == g.n && !memcmp(h.id, g.id, sizeof g.id[0] * (size_t)g.n),
                  "temperature %g: %s", t, h.error);
    }
    rad_engine_close(e);
}
static void close_while_running(void)
{
    struct rad_engine *e = open_engine(64, 2, 1);
    struct got g[4];
    for (int k = 0; k < 4; k++) {
        got_init(&g[k]);
        submit(e, k + 10, &g[k], NULL);
    }
    rad_engine_close(e);
    for (int k = 0; k < 4; k++)
        CHECK(g[k].done == 1);
}
static void failed_step_fails_the_request(void)
{
    struct rad_engine *e = open_engine(64, 2, 0);
    struct got g;
    got_init(&g);
    cfg_fail_step = true;
    submit(e, 1, &g, NULL);
    got_wait(&g);
    CHECK(g.finish == RAD_FINISH_ERROR && strstr(g.error, "device is gone"));
    cfg_fail_step = false;
    got_init(&g);
    submit(e, 1, &g, NULL);
    got_wait(&g);
    CHECK(g.finish == RAD_FINISH_LENGTH);
    rad_engine_close(e);
}
static int n_rows;
static void rows(void *user, int64_t pos, const float *l, int64_t v)
{
    (void)user;
    (void)l;
    n_rows += v == VOCAB && pos == n_rows;
}
static void scoring_sees_every_position(void)
{
    struct rad_engine *e = open_engine(64, 4, 7);
    struct got g;
    got_init(&g);
    int32_t ids[64];
    struct rad_err err = { 0 };
    struct rad_request_opts o = request(5, ids, &g);
    o.max_tokens = -1;
    o.logits = rows;
    n_rows = 0;
    CHECK(!rad_engine_submit(e, &o, NULL, &err));
    got_wait(&g);
    CHECK_MSG(n_rows == o.n_ids, "%d rows of %d", n_rows, (int)o.n_ids);
    CHECK(g.n == 0);
    rad_engine_close(e);
}
static void window_frees_pages(void)
{
    cfg_window = 6;
    struct rad_engine *e = open_engine(64, 4, 3);
    struct got a, b;
    got_init(&a);
    submit(e, 7, &a, NULL);
    got_wait(&a);
    rad_engine_close(e);
    struct rad_engine *f = open_engine(64, 4, 0);
    got_init(&b);
    submit(f, 7, &b, NULL);
    got_wait(&b);
    CHECK(a.n == b.n && !memcmp(a.id, b.id, sizeof a.id[0] * (size_t)a.n));
    CHECK(!last_rt->bad);
    rad_engine_close(f);
    cfg_window = 0;
}

/* ---- the sampler by itself, against sorting */
static int by_logit(const void *a, const void *b)
{
    const struct radi_cand *x = a, *y = b;
    return x->v > y->v ? -1 : x->v < y->v ? 1 : x->id < y->id ? -1 : 1;
}
static void sampler_equals_sorting(void)
{
    struct radi_sampler s;
    struct rad_err err = { 0 };
    enum { V = 500 };
    CHECK(!radi_sampler_init(&s, V, &err));
    float row[V];
    uint64_t h = 7;
    for (int t = 0; t < 400; t++) {
        struct radi_cand c[V];
        for (int i = 0; i < V; i++) {
            h = h * 6364136223846793005ull + 1442695040888963407ull;
            row[i] = (float)(h >> 58) * 0.25f;           /* many ties */
            c[i] = (struct radi_cand){ row[i] / 0.7f, i };
        }
        RadSampleParams p = { .seed = (uint64_t)t, .pos = 9, .temp = 0.7f, .rep_penalty = 1,
            .top_p = t % 2 ? 0.8f : 1, .min_p = t % 3 ? 0 : 0.02f, .top_k = t % 4 ? 0 : 40 };
        qsort(c, V, sizeof *c, by_logit);
        int n = p.top_k ? p.top_k : V;
        double total = 0, kept = 0, acc = 0, m = (double)c[0].v;
        for (int i = 0; i < n; i++)
            total += exp((double)c[i].v - m);
        int k = 0;
        while (k < n && (k == 0 || p.min_p <= 0 || (double)c[k].v >= m + log((double)p.min_p))) {
            kept += exp((double)c[k++].v - m);
            if (p.top_p < 1 && kept >= (double)p.top_p * total)
                break;
        }
        double want = (double)rad_sample_uniform(p.seed, 0, 9) * kept;
        int32_t expect = -1, id = -1;
        for (int i = 0; i < k && acc <= want; i++) {
            acc += exp((double)c[i].v - m);
            expect = c[i].id;
        }
        CHECK(!radi_sample(&s, row, &p, NULL, 0, &id, &err));
        CHECK_MSG(id == expect, "case %d: %d, want %d", t, id, expect);
    }
    radi_sampler_release(&s);
}
static void penalties(void)
{
    struct radi_sampler s;
    struct rad_err err = { 0 };
    CHECK(!radi_sampler_init(&s, 3, &err));
    float row[3] = { 2.0f, 1.9f, -1.0f };
    int32_t hist[4] = { 0, 0, 2, 0 }, id;
    RadSampleParams p = { .temp = 1, .top_p = 1, .rep_penalty = 1, .freq_penalty = 0.05f,
        .penalty_last_n = 1, .flags = RAD_SAMPLE_GREEDY | RAD_SAMPLE_PENALTY };
    CHECK(!radi_sample(&s, row, &p, hist, 4, &id, &err) && id == 0);  /* 1.95 */
    p.penalty_last_n = -1;
    CHECK(!radi_sample(&s, row, &p, hist, 4, &id, &err) && id == 1);  /* 1.85 */
    p.freq_penalty = 0;
    p.rep_penalty = 1.1f;
    CHECK(!radi_sample(&s, row, &p, hist, 4, &id, &err) && id == 1);
    float none[3] = { -INFINITY, -INFINITY, -INFINITY };
    CHECK(radi_sample(&s, none, &p, hist, 0, &id, &err) == RAD_E_STATE);
    for (int i = 0; i < 3; i++)
        CHECK(s.count[i] == 0);
    radi_sampler_release(&s);
}

int main(void)
{
    TAP_RUN(each_alone);
    TAP_RUN(batch_of_eight);
    TAP_RUN(batch_chunk_one);
    TAP_RUN(batch_chunk_seven);
    TAP_RUN(tight_pool_preempts);
    TAP_RUN(logprobs_and_stop);
    TAP_RUN(refusals);
    TAP_RUN(cancel_and_drain);
    TAP_RUN(slow_steps_are_dropped);
    TAP_RUN(almost_no_temperature_is_greedy);
    TAP_RUN(close_while_running);
    TAP_RUN(failed_step_fails_the_request);
    TAP_RUN(scoring_sees_every_position);
    TAP_RUN(window_frees_pages);
    TAP_RUN(sampler_equals_sorting);
    TAP_RUN(penalties);
    return tap_done();
}
