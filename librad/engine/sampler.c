/* SPDX-License-Identifier: Apache-2.0 */
/* Order of stages (engine reference, "Sampler"): penalties, greedy pick or
 * temperature, top-k, top-p, min-p, pick. Ties go to the lower id everywhere.
 * Candidates come off a heap in descending order, only as many as the stages
 * need, which gives the same prefix as sorting the whole vocabulary. */
#include "config.h"

#include "engine/sampler.h"

#include <math.h>

#include "banned.h"

rad_status radi_sampler_init(struct radi_sampler *s, int64_t vocab, struct rad_err *err)
{
    memset(s, 0, sizeof *s);
    s->vocab = vocab;
    s->row = radi_calloc((size_t)vocab, sizeof *s->row);
    s->cand = radi_calloc((size_t)vocab, sizeof *s->cand);
    s->count = radi_calloc((size_t)vocab, sizeof *s->count);
    if (!s->row || !s->cand || !s->count) {
        radi_sampler_release(s);
        return rad_fail(err, RAD_E_NOMEM, "sampler: out of memory");
    }
    return RAD_OK;
}

void radi_sampler_release(struct radi_sampler *s)
{
    radi_free(s->row);
    radi_free(s->cand);
    radi_free(s->count);
    memset(s, 0, sizeof *s);
}

/* a comes before b */
static bool before(struct radi_cand a, struct radi_cand b)
{
    return a.v > b.v || (a.v == b.v && a.id < b.id);
}

static void sift_down(struct radi_cand *h, int64_t n, int64_t i)
{
    struct radi_cand x = h[i];
    for (;;) {
        int64_t c = 2 * i + 1;
        if (c >= n)
            break;
        if (c + 1 < n && before(h[c + 1], h[c]))
            c++;
        if (!before(h[c], x))
            break;
        h[i] = h[c];
        i = c;
    }
    h[i] = x;
}

static void heapify(struct radi_cand *h, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(h, n, i);
}

/* Moves the best of heap [0, n) to h[n-1]; the heap shrinks by one. Popped
 * candidates therefore stand at the array's end, best last. */
static struct radi_cand pop(struct radi_cand *h, int64_t n)
{
    struct radi_cand top = h[0];
    h[0] = h[n - 1];
    h[n - 1] = top;
    if (n > 1)
        sift_down(h, n - 1, 0);
    return top;
}

static void penalise(struct radi_sampler *s, const RadSampleParams *p, const int32_t *hist,
                     int64_t n_hist)
{
    int64_t last = p->penalty_last_n < 0 ? n_hist : p->penalty_last_n;
    if (last > n_hist)
        last = n_hist;
    const int32_t *h = hist + (n_hist - last);
    for (int64_t i = 0; i < last; i++)
        if (h[i] >= 0 && h[i] < s->vocab && s->count[h[i]] < UINT16_MAX)
            s->count[h[i]]++;
    for (int64_t i = 0; i < last; i++) {
        if (h[i] < 0 || h[i] >= s->vocab || !s->count[h[i]])
            continue;
        float v = s->row[h[i]], n = (float)s->count[h[i]];
        v = v > 0 ? v / p->rep_penalty : v * p->rep_penalty;
        v -= n * p->freq_penalty;
        v -= p->pres_penalty;
        s->row[h[i]] = v;
        s->count[h[i]] = 0;                 /* once per distinct token */
    }
}

static bool argmax(const float *row, int64_t n, int32_t *id)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (row[i] > -INFINITY && (best < 0 || row[i] > row[best]))
            best = i;
    *id = (int32_t)best;
    return best >= 0;
}

rad_status radi_sample(struct radi_sampler *s, const float *logits, const RadSampleParams *p,
                       const int32_t *hist, int64_t n_hist, int32_t *id, struct rad_err *err)
{
    int64_t n = s->vocab;
    memcpy(s->row, logits, (size_t)n * sizeof *s->row);
    if (p->flags & RAD_SAMPLE_PENALTY)
        penalise(s, p, hist, n_hist);
    if (p->flags & RAD_SAMPLE_GREEDY) {
        if (argmax(s->row, n, id))
            return RAD_OK;
        return rad_fail(err, RAD_E_STATE, "no token has a finite logit");
    }
    struct radi_cand *h = s->cand;
    int64_t live = 0;
    float max = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        float v = s->row[i] / p->temp;
        if (!(v > -INFINITY))               /* also NaN */
            continue;
        h[live++] = (struct radi_cand){ v, (int32_t)i };
        max = v > max ? v : max;
    }
    if (!live || !(max < INFINITY))
        return rad_fail(err, RAD_E_STATE, "no token has a finite logit");
    heapify(h, live);
    float u = rad_sample_uniform(p->seed, RAD_STREAM_PICK, p->pos);
    int64_t limit = p->top_k > 0 && p->top_k < live ? p->top_k : live;

    /* Mass that top-p is a share of: what top-k left. */
    double total = 0;
    int64_t popped = 0;
    if (limit < live) {
        for (; popped < limit; popped++)
            total += exp((double)pop(h, live - popped).v - (double)max);
    } else {
        for (int64_t i = 0; i < live; i++)
            total += exp((double)h[i].v - (double)max);
    }
    /* The kept prefix: shortest that reaches top_p, cut by min_p. */
    double kept = 0, floor_v = p->min_p > 0 ? (double)max + log((double)p->min_p) : -INFINITY;
    bool narrow = p->top_p < 1 || p->min_p > 0;
    int64_t n_kept = 0;
    double target = narrow ? 0 : (double)u * total, acc = 0;
    for (int64_t k = 0; k < limit; k++) {
        struct radi_cand c = k < popped ? h[live - 1 - k] : pop(h, live - k);
        if (k >= popped)
            popped = k + 1;
        if (k > 0 && (double)c.v < floor_v)
            break;
        double w = exp((double)c.v - (double)max);
        if (!narrow) {                      /* pick while walking */
            acc += w;
            *id = c.id;
            if (acc > target)
                return RAD_OK;
            continue;
        }
        kept += w;
        n_kept++;
        if (p->top_p < 1 && kept >= (double)p->top_p * total)
            break;
    }
    if (!narrow)
        return RAD_OK;                      /* rounding: the last candidate */
    target = (double)u * kept;
    for (int64_t k = 0; k < n_kept; k++) {
        struct radi_cand c = h[live - 1 - k];
        acc += exp((double)c.v - (double)max);
        *id = c.id;
        if (acc > target)
            break;
    }
    return RAD_OK;
}

void radi_logprobs(struct radi_sampler *s, const float *logits, int32_t id, float *logprob,
                   struct rad_top_logprob *top, int n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < s->vocab; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (int64_t i = 0; i < s->vocab; i++)
        sum += exp((double)logits[i] - max);
    double lse = max + log(sum);
    if (id >= 0 && id < s->vocab)
        *logprob = (float)((double)logits[id] - lse);
    if (n <= 0)
        return;
    struct radi_cand *h = s->cand;
    for (int64_t i = 0; i < s->vocab; i++)
        h[i] = (struct radi_cand){ logits[i], (int32_t)i };
    heapify(h, s->vocab);
    for (int k = 0; k < n && k < s->vocab; k++) {
        struct radi_cand c = pop(h, s->vocab - k);
        top[k] = (struct rad_top_logprob){ c.id, (float)((double)c.v - lse) };
    }
}
