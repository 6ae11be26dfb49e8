/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_nt, gemm_nt_bias, logits_gemm: y[M,N] = a[M,K] * w[N,K]^T over a weight
 * of any plain or affine encoding.
 *
 * Eight weight rows are decoded once a launch and used for all M rows; a part
 * owns whole groups of eight. Inside, K is cut into tiles so that the widened
 * weights stay in the first cache; the sums live across tiles, so the cut is
 * not visible in the result. */
#include "ref.h"

enum { NR = 8, KT = 256, MB = 64 };

int ref_gemm_parse(const RadParam *p, int n, void *out)
{
    struct ref_gemm *g = out;
    g->M = rad_param_int(p, n, "M", 0);
    g->N = rad_param_int(p, n, "N", 0);
    g->K = rad_param_int(p, n, "K", 0);
    const char *act = rad_param_str(p, n, "act", "none");
    if (!strcmp(act, "gelu"))
        g->act = ref_gelu;
    else if (!strcmp(act, "gelu_tanh"))
        g->act = ref_gelu_tanh;
    else if (strcmp(act, "none"))
        return RAD_E_UNSUPPORTED;
    return g->N > 0 && g->K > 0 ? RAD_OK : RAD_E_ARG;
}

int ref_logits_parse(const RadParam *p, int n, void *out)
{
    struct ref_gemm *g = out;
    g->M = rad_param_int(p, n, "M", 0);
    g->N = rad_param_int(p, n, "n_vocab", 0);
    g->K = rad_param_int(p, n, "n_embd", 0);
    return g->N > 0 && g->K > 0 ? RAD_OK : RAD_E_ARG;
}

size_t ref_gemm_scratch(const void *params, int parts)
{
    const struct ref_gemm *g = params;
    return ref_scratch_all((size_t)g->K * NR * sizeof(float), parts);
}

int ref_gemm_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    const struct ref_gemm *g = params;
    struct ref_view v;
    out->bytes = 0;
    for (int i = 0; i < n_opd; i++)
        out->bytes += ref_bytes(&opd[i]);
    RadTensor a = opd[0];
    int64_t rows = ref_view(&a, g->K, &v) == RAD_OK ? v.rows : rad_numel(&a) / g->K;
    out->ops = 2 * (uint64_t)rows * (uint64_t)g->N * (uint64_t)g->K;
    return RAD_OK;
}

/* wt[k][j] = w[j][k0+k] as doubles, j < nr; the other lanes are zero. */
static void widen_w(const float *w, int64_t K, int64_t k0, int64_t kn, int nr, double *wt)
{
    if (nr == NR) {
        const float *r0 = w + k0, *r1 = r0 + K, *r2 = r1 + K, *r3 = r2 + K;
        const float *r4 = r3 + K, *r5 = r4 + K, *r6 = r5 + K, *r7 = r6 + K;
        for (int64_t k = 0; k < kn; k++, wt += NR) {
            wt[0] = (double)r0[k];
            wt[1] = (double)r1[k];
            wt[2] = (double)r2[k];
            wt[3] = (double)r3[k];
            wt[4] = (double)r4[k];
            wt[5] = (double)r5[k];
            wt[6] = (double)r6[k];
            wt[7] = (double)r7[k];
        }
        return;
    }
    for (int64_t k = 0; k < kn; k++)
        for (int j = 0; j < NR; j++)
            wt[k * NR + j] = j < nr ? (double)w[j * K + k0 + k] : 0.0;
}

static void widen_a(const struct ref_view *a, int64_t m, int64_t k0, int64_t kn, double *out)
{
    const void *row = ref_row(a, m);
    if (a->dt == RAD_F32) {
        const float *f = (const float *)row + k0;
        for (int64_t k = 0; k < kn; k++)
            out[k] = (double)f[k];
        return;
    }
    float f[KT];
    ref_load(row, a->dt, k0, kn, f);
    for (int64_t k = 0; k < kn; k++)
        out[k] = (double)f[k];
}

struct epilogue {
    const RadTensor *bias;
    struct ref_view res;
    int has_res;
    double (*act)(double);
};

/* Rounded after the bias, after the activation and after the residual, as the
 * chain of separate ops would. */
static void finish(const struct ref_view *y, int64_t m, int64_t n0, int nr, const double *c,
                   const float *bias, const struct epilogue *e)
{
    float out[NR];
    for (int j = 0; j < nr; j++)
        out[j] = (float)(bias ? c[j] + (double)bias[j] : c[j]);
    void *row = ref_row(y, m);
    if (e && e->act)
        for (int j = 0; j < nr; j++)
            out[j] = (float)e->act((double)ref_narrow(y->dt, out[j]));
    if (e && e->has_res) {
        float r[NR];
        ref_load(ref_row(&e->res, m), e->res.dt, n0, nr, r);
        for (int j = 0; j < nr; j++)
            out[j] = (float)((double)r[j] + (double)ref_narrow(y->dt, out[j]));
    }
    ref_store(row, y->dt, n0, nr, out);
}

static int gemm(const RadLaunch *l, const RadTensor *ta, const RadTensor *w, const RadTensor *ty,
                const struct epilogue *e)
{
    const struct ref_gemm *g = l->params;
    struct ref_view a, y;
    RAD_TRY(ref_act(ta, g->K, &a));
    RAD_TRY(ref_act(ty, g->N, &y));
    if (a.rows != y.rows || (e && e->has_res && e->res.rows != a.rows))
        return RAD_E_SHAPE;
    RAD_TRY(ref_weight_check(w, g->N, g->K));
    float *wrow = ref_scratch(l, (size_t)g->K * NR * sizeof(float));
    if (!wrow)
        return RAD_E_SCRATCH;

    int64_t u0, u1;
    ref_share(l, (g->N + NR - 1) / NR, &u0, &u1);
    for (int64_t u = u0; u < u1; u++) {
        int64_t n0 = u * NR;
        int nr = (int)(g->N - n0 < NR ? g->N - n0 : NR);
        float bias[NR];
        RAD_TRY(ref_weight_rows(w, n0, nr, g->K, wrow));
        if (e && e->bias)
            RAD_TRY(ref_weight_span(e->bias, n0, nr, bias));
        for (int64_t m0 = 0; m0 < a.rows; m0 += MB) {
            int64_t mn = a.rows - m0 < MB ? a.rows - m0 : MB;
            _Alignas(64) double acc[MB][NR], wt[KT * NR], x0[KT], x1[KT];
            memset(acc, 0, (size_t)mn * sizeof acc[0]);
            for (int64_t k0 = 0; k0 < g->K; k0 += KT) {
                int64_t kn = g->K - k0 < KT ? g->K - k0 : KT, m = 0;
                if (mn <= 2 && nr == NR) {
                    for (; m < mn; m++) {
                        widen_a(&a, m0 + m, k0, kn, x0);
                        ref_dot8_rows(x0, wrow + k0, g->K, kn, acc[m]);
                    }
                    continue;
                }
                widen_w(wrow, g->K, k0, kn, nr, wt);
                for (; m + 1 < mn; m += 2) {
                    widen_a(&a, m0 + m, k0, kn, x0);
                    widen_a(&a, m0 + m + 1, k0, kn, x1);
                    ref_dot8x2(x0, x1, wt, kn, acc[m], acc[m + 1]);
                }
                if (m < mn) {
                    widen_a(&a, m0 + m, k0, kn, x0);
                    ref_dot8(x0, wt, kn, acc[m]);
                }
            }
            for (int64_t m = 0; m < mn; m++)
                finish(&y, m0 + m, n0, nr, acc[m], e && e->bias ? bias : NULL, e);
        }
    }
    return RAD_OK;
}

/* gemm_nt: a, b -> y; logits_gemm: x, lm_head -> logits */
int ref_gemm_nt(const RadLaunch *a)
{
    return a->n_opd < 3 ? RAD_E_ARG : gemm(a, &a->opd[0], &a->opd[1], &a->opd[2], NULL);
}

/* a, b, bias, res? -> y */
int ref_gemm_nt_bias(const RadLaunch *a)
{
    const struct ref_gemm *g = a->params;
    if (a->n_opd < 5)
        return RAD_E_ARG;
    struct epilogue e = { .bias = &a->opd[2], .act = g->act };
    RAD_TRY(ref_weight_check(e.bias, 1, g->N));
    if (!rad_absent(&a->opd[3])) {
        RAD_TRY(ref_act(&a->opd[3], g->N, &e.res));
        e.has_res = 1;
    }
    return gemm(a, &a->opd[0], &a->opd[1], &a->opd[4], &e);
}
