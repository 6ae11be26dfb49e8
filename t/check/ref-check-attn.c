/* SPDX-License-Identifier: Apache-2.0 */
/* ref-check: kv_store and attn_paged, against a dense softmax over keys that
 * are also kept in plain order. */
#include "ref-check.h"

enum { C = 20, HKV = 2, BLOCK = 16, NBLOCKS = 40, MAXB = 6, S = 3 };

/* Three sequences whose blocks are scattered over the pool. */
struct world {
    int kv_dt, adt;
    int64_t used[S], H;
    float k[S][MAXB * BLOCK][HKV * C], v[S][MAXB * BLOCK][HKV * C];   /* as the cache holds them */
    RadTensor cache, table;
    int32_t blocks[S][MAXB];
};

static float stored(int dt, float f, float scale)
{
    switch (dt) {
    case RAD_BF16: return rad_bf16_to_f32(rad_f32_to_bf16(f));
    case RAD_F16: return rad_f16_to_f32(rad_f32_to_f16(f));
    case RAD_FP8_E4M3: return rad_e4m3_to_f32(rad_f32_to_e4m3(f / scale));
    default: return f;
    }
}

static const char *name_of(int dt)
{
    return rad_dtype_name(dt);
}

/* Fills the cache through kv_store, tokens of all sequences shuffled. */
static struct world *make(int kv_dt, int adt, int64_t gqa, float k_scale, float v_scale)
{
    struct world *w = calloc(1, sizeof *w);
    w->kv_dt = kv_dt;
    w->adt = adt;
    w->H = gqa * HKV;
    w->used[0] = 5;
    w->used[1] = 61;
    w->used[2] = 96;
    size_t esz = (size_t)rad_dtype_bits(kv_dt) / 8, line = HKV * BLOCK * 2 * C;
    w->cache = (RadTensor){ .data = malloc(NBLOCKS * line * esz), .dtype = kv_dt, .rank = 4,
                            .shape = { NBLOCKS, HKV, BLOCK, 2 * C },
                            .stride = { (int64_t)line, BLOCK * 2 * C, 2 * C, 1 } };
    memset(w->cache.data, 0x7f, NBLOCKS * line * esz);    /* NaN where nothing was stored */
    for (int s = 0, b = 0; s < S; s++)
        for (int i = 0; i < MAXB; i++, b++)
            w->blocks[s][i] = (b * 11 + 3) % NBLOCKS;
    w->table = (RadTensor){ .data = w->blocks, .dtype = RAD_I32, .rank = 2, .shape = { S, MAXB },
                            .stride = { MAXB, 1 } };
    RadParam p[] = { P_N("head_dim", C), P_N("n_head_kv", HKV), P_N("block_size", BLOCK),
                     P_S("kv_dtype", name_of(kv_dt)), P_R("k_scale", (double)k_scale),
                     P_R("v_scale", (double)v_scale) };
    for (int s = 0; s < S; s++) {
        int64_t n = w->used[s];
        struct buf k = act(adt, n + 2, HKV * C, HKV * C + 4), v = act(adt, n + 2, HKV * C, HKV * C);
        int32_t slot[MAXB * BLOCK + 2];
        for (int64_t m = 0; m < n; m++) {
            int64_t j = (m * 7) % n == 0 && m ? m : (n % 7 ? m * 7 % n : m);
            slot[m] = w->blocks[s][j / BLOCK] * BLOCK + (int32_t)(j % BLOCK);
            for (int c = 0; c < HKV * C; c++) {
                w->k[s][j][c] = stored(kv_dt, get(&k, m, c), k_scale);
                w->v[s][j][c] = stored(kv_dt, get(&v, m, c), v_scale);
            }
        }
        slot[n] = -1;
        slot[n + 1] = NBLOCKS * BLOCK;                    /* neither stores anything */
        struct buf sl = ints(slot, n + 2);
        RadTensor o[4] = { k.t, v.t, sl.t, w->cache };
        run("kv_store", p, 6, o, 4, 3);
        drop(&k), drop(&v), drop(&sl);
    }
    return w;
}
static void done(struct world *w)
{
    free(w->cache.data);
    free(w);
}

struct rules {
    int causal, window;
    double scale, softcap;
    const float *sinks, *kd, *vd;
};

/* The query of sequence s that stands at pos, head h. */
static void dense(const struct world *w, const struct rules *r, const float *q, int s, int64_t pos,
                  int64_t h, double *out)
{
    int64_t g = h / (w->H / HKV), n = 0;
    double x[MAXB * BLOCK], max = r->sinks ? (double)r->sinks[h] : -INFINITY, den = 0;
    int64_t key[MAXB * BLOCK];
    for (int64_t j = 0; j < w->used[s]; j++) {
        int far = r->window && (r->causal ? pos - j >= r->window : llabs(pos - j) >= r->window);
        if ((r->causal && j > pos) || far || w->blocks[s][j / BLOCK] < 0)
            continue;
        double d = 0;
        for (int c = 0; c < C; c++)
            d += (double)q[c] * (double)w->k[s][j][g * C + c];
        d *= (r->kd ? (double)r->kd[s * HKV + g] : 1) * r->scale;
        if (r->softcap > 0)
            d = r->softcap * tanh(d / r->softcap);
        key[n] = j;
        x[n++] = d;
        max = d > max ? d : max;
    }
    memset(out, 0, C * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        den += exp(x[i] - max);
    if (r->sinks)
        den += exp((double)r->sinks[h] - max);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < C; c++)
            out[c] += exp(x[i] - max) / den * (double)w->v[s][key[i]][g * C + c];
    for (int c = 0; c < C; c++)
        out[c] *= r->vd ? (double)r->vd[s * HKV + g] : 1;
}

/* Runs the last len[s] tokens of every sequence and compares. */
static void attend(struct world *w, const struct rules *r, const int *len, int64_t max_ctx)
{
    int32_t cu[S + 1] = { 0 }, used[S];
    for (int s = 0; s < S; s++) {
        cu[s + 1] = cu[s] + len[s];
        used[s] = (int32_t)w->used[s];
    }
    int64_t T = cu[S], W = w->H * C;
    struct buf q = act(w->adt, T, W, W + 8), out = act(w->adt, T, W, W);
    struct buf u = ints(used, S), cs = ints(cu, S + 1);
    RadTensor none = { 0 };
    RadTensor o[9] = { q.t, w->cache, w->table, u.t, none, none, cs.t, none, out.t };
    float sinks[16], kd[S * HKV], vd[S * HKV];
    if (r->kd) {
        memcpy(kd, r->kd, sizeof kd);
        memcpy(vd, r->vd, sizeof vd);
        o[4] = flat(kd, RAD_F32, 1, S * HKV);
        o[5] = flat(vd, RAD_F32, 1, S * HKV);
    }
    if (r->sinks) {
        memcpy(sinks, r->sinks, (size_t)w->H * sizeof *sinks);
        o[7] = flat(sinks, RAD_F32, 1, w->H);
        o[7].rank = 1;
        o[7].shape[0] = w->H;
        o[7].stride[0] = 1;
    }
    RadParam p[] = { P_N("head_dim", C), P_N("gqa", w->H / HKV), P_N("block_size", BLOCK),
                     P_N("causal", r->causal), P_N("window", r->window), P_S("q_dtype", "f32"),
                     P_S("kv_dtype", name_of(w->kv_dt)), P_R("scale", r->scale),
                     P_R("softcap", r->softcap), P_N("max_ctx", max_ctx) };
    run("attn_paged", p, 10, o, 9, 8);
    for (int s = 0; s < S; s++)
        for (int i = 0; i < len[s]; i++)
            for (int64_t h = 0; h < w->H; h++) {
                float qf[C];
                double want[C];
                for (int c = 0; c < C; c++)
                    qf[c] = get(&q, cu[s] + i, h * C + c);
                dense(w, r, qf, s, w->used[s] - len[s] + i, h, want);
                for (int c = 0; c < C; c++) {
                    double got = (double)get(&out, cu[s] + i, h * C + c);
                    double tol = w->adt == RAD_BF16 ? 0x1p-8 : 1e-6;
                    CHECK_MSG(fabs(got - want[c]) <= tol * (fabs(want[c]) + 0.01),
                              "s %d token %d head %d: %g, want %g", s, i, (int)h, got, want[c]);
                }
            }
    /* each token alone, and [T,H,C] views, give the same bytes */
    for (int s = 0; s < S; s++)
        for (int i = 0; i < len[s] && r->causal; i++) {  /* else it sees later keys too */
            struct buf one = act(w->adt, 1, W, W);
            int32_t n = (int32_t)(w->used[s] - len[s] + i + 1);
            struct buf un = ints(&n, 1);
            RadTensor a[9] = { q.t, w->cache, w->table, un.t, none, none, none, o[7], one.t };
            size_t esz = (size_t)rad_dtype_bits(w->adt) / 8;
            a[0].data = (char *)q.t.data + (size_t)((cu[s] + i) * q.pitch) * esz;
            a[0].rank = a[8].rank = 3;
            a[0].shape[0] = 1;
            a[0].shape[1] = a[8].shape[1] = w->H;
            a[0].shape[2] = a[8].shape[2] = C;
            a[0].stride[1] = a[8].stride[1] = C;
            a[0].stride[2] = a[8].stride[2] = 1;
            a[2].data = w->blocks[s];
            a[2].shape[0] = 1;
            if (r->kd) {
                a[4] = flat(kd + s * HKV, RAD_F32, 1, HKV);
                a[5] = flat(vd + s * HKV, RAD_F32, 1, HKV);
            }
            CHECK(run_as("attn_paged", p, 10, a, 9, 2) == RAD_OK);
            CHECK_MSG(!memcmp(one.mem, (char *)out.mem + (size_t)((cu[s] + i) * W) * esz,
                              (size_t)W * esz), "s %d token %d differs alone", s, i);
            one.t.shape[1] = W;
            drop(&un);
            free(one.mem);
        }
    drop(&q), drop(&out), drop(&u), drop(&cs);
}

static const int whole[] = { 5, 61, 96 }, tail[] = { 1, 1, 1 }, mixed[] = { 0, 7, 33 };

static void attention_is_a_dense_softmax(void)
{
    static const int kvs[] = { RAD_F32, RAD_BF16, RAD_F16 };
    for (int i = 0; i < 3; i++)
        for (int64_t gqa = 1; gqa <= 3; gqa += 2) {
            struct world *w = make(kvs[i], gqa == 3 ? RAD_BF16 : RAD_F32, gqa, 1, 1);
            struct rules r = { .causal = 1, .scale = 0.3 };
            attend(w, &r, whole, 0);
            attend(w, &r, tail, 96);
            attend(w, &r, mixed, 0);
            done(w);
        }
}

static void attention_window_softcap_and_sinks(void)
{
    static const float sinks[16] = { 2, -1, 0.5f, 30, -30, 1, 0, 3 };
    struct world *w = make(RAD_F32, RAD_F32, 2, 1, 1);
    for (int window = 1; window <= 40; window += 13)
        for (int causal = 0; causal < 2; causal++) {
            struct rules r = { .causal = causal, .window = window, .scale = 0.5 };
            attend(w, &r, whole, 0);
        }
    struct rules cap = { .causal = 1, .scale = 0.5, .softcap = 1.5 };
    attend(w, &cap, mixed, 0);
    struct rules sink = { .causal = 1, .scale = 0.5, .window = 20, .sinks = sinks };
    attend(w, &sink, whole, 0);
    struct rules all = { .causal = 0, .scale = 0.5, .softcap = 3, .sinks = sinks };
    attend(w, &all, tail, 0);
    done(w);
}

static void attention_descales_fp8(void)
{
    static const float kd[S * HKV] = { 0.5f, 2, 0.25f, 1, 0.125f, 0.5f };
    static const float vd[S * HKV] = { 2, 0.5f, 0.25f, 1, 3, 0.75f };
    struct world *w = make(RAD_FP8_E4M3, RAD_F32, 2, 0.25f, 0.5f);
    struct rules r = { .causal = 1, .scale = 0.3, .kd = kd, .vd = vd };
    attend(w, &r, whole, 0);
    attend(w, &r, tail, 0);
    done(w);
}

/* Past the scores that are kept the sums are made again: same bytes. */
static void attention_recomputes_what_it_does_not_keep(void)
{
    struct world *w = make(RAD_F32, RAD_F32, 2, 1, 1);
    struct rules r = { .causal = 1, .scale = 0.3 };
    attend(w, &r, mixed, 9);
    attend(w, &r, mixed, 40);
    done(w);
}

static void attention_skips_absent_blocks(void)
{
    struct world *w = make(RAD_F32, RAD_F32, 2, 1, 1);
    struct rules r = { .causal = 1, .scale = 0.3, .window = 30 };
    w->blocks[1][1] = -1;
    w->blocks[2][4] = w->blocks[2][5] = -1;   /* the last two: a zero row at the end */
    attend(w, &r, mixed, 0);
    attend(w, &r, tail, 0);
    r.window = 8;
    attend(w, &r, tail, 0);
    int32_t bad = NBLOCKS, used = 1;
    struct buf q = act(RAD_F32, 1, 4 * C, 4 * C), u = ints(&used, 1), b = ints(&bad, 1);
    RadTensor o[9] = { q.t, w->cache, b.t, u.t };
    o[8] = q.t;
    o[2].rank = 2;
    o[2].shape[1] = o[2].stride[0] = o[2].stride[1] = 1;
    RadParam p[] = { P_N("head_dim", C), P_N("gqa", 2), P_N("causal", 1), P_N("window", 0),
                     P_S("kv_dtype", "f32") };
    CHECK(run_as("attn_paged", p, 5, o, 9, 1) == RAD_E_ARG);
    *(int32_t *)u.mem = 17;                   /* more keys than the table has room for */
    *(int32_t *)b.mem = 0;
    CHECK(run_as("attn_paged", p, 5, o, 9, 1) == RAD_E_ARG);
    drop(&q), drop(&u), drop(&b);
    done(w);
}

void ref_check_attn(void)
{
    TAP_RUN(attention_is_a_dense_softmax);
    TAP_RUN(attention_window_softcap_and_sinks);
    TAP_RUN(attention_descales_fp8);
    TAP_RUN(attention_recomputes_what_it_does_not_keep);
    TAP_RUN(attention_skips_absent_blocks);
}
