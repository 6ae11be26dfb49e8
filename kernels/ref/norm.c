/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm, rmsnorm_add, layernorm. A row is n elements; of an operand [T,H,C]
 * with n = C every head is a row. A part owns whole rows. */
#include "ref.h"

int ref_norm_parse(const RadParam *p, int n, void *out)
{
    struct ref_elem *e = out;
    e->eps = rad_param_real(p, n, "eps", 1e-6);
    e->wadd = (float)rad_param_real(p, n, "wadd", 0);
    return ref_elem_parse(p, n, out);
}

/* x, the gain and the bias as floats. */
size_t ref_norm_scratch(const void *params, int parts)
{
    const struct ref_elem *e = params;
    return ref_scratch_all(3 * (size_t)e->n * sizeof(float), parts);
}

/* A multiply and an add for the square, two multiplies to scale. */
int ref_norm_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    ref_move_cost(params, opd, n_opd, out);
    out->ops = 4 * (uint64_t)rad_numel(&opd[0]);
    return RAD_OK;
}

/* The gain with wadd added in f32, or ones. */
static int gain_of(const struct ref_elem *e, const RadTensor *w, float *gain)
{
    if (rad_absent(w)) {
        for (int64_t i = 0; i < e->n; i++)
            gain[i] = 1.0f;
        return RAD_OK;
    }
    RAD_TRY(ref_weight_check(w, 1, e->n));
    RAD_TRY(ref_weight_rows(w, 0, 1, e->n, gain));
    if (e->wadd != 0)
        for (int64_t i = 0; i < e->n; i++)
            gain[i] += e->wadd;
    return RAD_OK;
}

static double inv_rms(const float *x, int64_t n, double eps)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)x[i] * (double)x[i];
    return 1.0 / sqrt(s / (double)n + eps);
}

int ref_rmsnorm(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[2], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    float *b = ref_scratch(a, 3 * (size_t)e->n * sizeof *b);
    if (!b)
        return RAD_E_SCRATCH;
    float *gain = b + e->n;
    int64_t r0, r1;
    ref_share(a, x.rows, &r0, &r1);
    RAD_TRY(gain_of(e, &a->opd[1], gain));
    for (int64_t r = r0; r < r1; r++) {
        ref_load(ref_row(&x, r), x.dt, 0, e->n, b);
        double inv = inv_rms(b, e->n, e->eps);
        for (int64_t i = 0; i < e->n; i++)
            b[i] = (float)((double)b[i] * inv * (double)gain[i]);
        ref_store(ref_row(&y, r), y.dt, 0, e->n, b);
    }
    return RAD_OK;
}

/* x, residual, w -> y, residual_out. The mean square is of the unrounded sum,
 * y is of the sum as stored. */
int ref_rmsnorm_add(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, res, y, out;
    if (a->n_opd < 5)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[1], e->n, &res));
    RAD_TRY(ref_act(&a->opd[3], e->n, &y));
    RAD_TRY(ref_act(&a->opd[4], e->n, &out));
    if (x.rows != res.rows || x.rows != y.rows || x.rows != out.rows)
        return RAD_E_SHAPE;
    float *b = ref_scratch(a, 3 * (size_t)e->n * sizeof *b);
    if (!b)
        return RAD_E_SCRATCH;
    float *gain = b + e->n, *t = gain + e->n;
    RAD_TRY(gain_of(e, &a->opd[2], gain));
    int64_t r0, r1;
    ref_share(a, x.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        ref_load(ref_row(&x, r), x.dt, 0, e->n, b);
        ref_load(ref_row(&res, r), res.dt, 0, e->n, t);
        for (int64_t i = 0; i < e->n; i++)
            t[i] += b[i];
        double inv = inv_rms(t, e->n, e->eps);
        ref_store(ref_row(&out, r), out.dt, 0, e->n, t);
        for (int64_t i = 0; i < e->n; i++)
            b[i] = (float)((double)ref_narrow(out.dt, t[i]) * inv * (double)gain[i]);
        ref_store(ref_row(&y, r), y.dt, 0, e->n, b);
    }
    return RAD_OK;
}

/* x, w?, b? -> y. Biased variance in two passes. */
int ref_layernorm(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 4)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[3], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    float *b = ref_scratch(a, 3 * (size_t)e->n * sizeof *b);
    if (!b)
        return RAD_E_SCRATCH;
    float *gain = b + e->n, *bias = gain + e->n;
    RAD_TRY(gain_of(e, &a->opd[1], gain));
    memset(bias, 0, (size_t)e->n * sizeof *bias);
    if (!rad_absent(&a->opd[2])) {
        RAD_TRY(ref_weight_check(&a->opd[2], 1, e->n));
        RAD_TRY(ref_weight_rows(&a->opd[2], 0, 1, e->n, bias));
    }
    int64_t r0, r1;
    ref_share(a, x.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        double mean = 0, var = 0;
        ref_load(ref_row(&x, r), x.dt, 0, e->n, b);
        for (int64_t i = 0; i < e->n; i++)
            mean += (double)b[i];
        mean /= (double)e->n;
        for (int64_t i = 0; i < e->n; i++)
            var += ((double)b[i] - mean) * ((double)b[i] - mean);
        double inv = 1.0 / sqrt(var / (double)e->n + e->eps);
        for (int64_t i = 0; i < e->n; i++)
            b[i] = (float)(((double)b[i] - mean) * inv * (double)gain[i] + (double)bias[i]);
        ref_store(ref_row(&y, r), y.dt, 0, e->n, b);
    }
    return RAD_OK;
}
