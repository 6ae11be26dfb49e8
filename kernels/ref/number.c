/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops that numbers or small weights shape: xielu, scale, softcap,
 * clip, add_bias, scale_by_position. A part owns whole rows; every chunk is
 * read before it is written, so y may be x. */
#include "ref.h"

enum { CHUNK = 256 };

int ref_xielu_parse(const RadParam *p, int n, void *out)
{
    struct ref_number *k = out;
    k->a = rad_param_real(p, n, "beta", 0.5);
    k->b = rad_param_real(p, n, "eps", 0);
    return ref_elem_parse(p, n, &k->e);
}
int ref_scale_parse(const RadParam *p, int n, void *out)
{
    struct ref_number *k = out;
    k->a = rad_param_real(p, n, "s", 1);
    return ref_elem_parse(p, n, &k->e);
}
int ref_softcap_parse(const RadParam *p, int n, void *out)
{
    struct ref_number *k = out;
    k->a = rad_param_real(p, n, "cap", 0);
    return k->a > 0 ? ref_elem_parse(p, n, &k->e) : RAD_E_ARG;
}
int ref_clip_parse(const RadParam *p, int n, void *out)
{
    struct ref_number *k = out;
    k->a = rad_param_real(p, n, "limit", 0);
    return k->a > 0 ? ref_elem_parse(p, n, &k->e) : RAD_E_ARG;
}
int ref_scale_by_position_parse(const RadParam *p, int n, void *out)
{
    struct ref_number *k = out;
    k->a = rad_param_real(p, n, "beta", 0);
    k->every = rad_param_int(p, n, "every", 0);
    k->shift = rad_param_int(p, n, "shift", 0);
    return k->every > 0 && k->shift >= 0 ? ref_elem_parse(p, n, &k->e) : RAD_E_ARG;
}

static double f_xielu(const struct ref_number *k, double x, double p, double q)
{
    if (x > 0)
        return p * x * x + k->a * x;
    double low = x < k->b ? x : k->b;
    return (expm1(isnan(x) ? x : low) - x) * q + k->a * x;
}
static double f_scale(const struct ref_number *k, double x, double p, double q)
{
    (void)p, (void)q;
    return x * k->a;
}
static double f_softcap(const struct ref_number *k, double x, double p, double q)
{
    (void)p, (void)q;
    return k->a * tanh(x / k->a);
}
static double f_clip(const struct ref_number *k, double x, double p, double q)
{
    (void)p, (void)q;
    return x > k->a ? k->a : x < -k->a ? -k->a : x;
}
static double f_by(const struct ref_number *k, double x, double p, double q)
{
    (void)k, (void)q;
    return x * p;
}

static int rows(const RadLaunch *a, int last, const int32_t *pos, double p, double q,
                double (*f)(const struct ref_number *, double, double, double))
{
    const struct ref_number *k = a->params;
    struct ref_view x, y;
    RAD_TRY(ref_act(&a->opd[0], k->e.n, &x));
    RAD_TRY(ref_act(&a->opd[last], k->e.n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    int64_t r0, r1;
    ref_share(a, y.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        if (pos)
            p = 1.0 + k->a * log(1.0 + (double)(((int64_t)pos[r] + k->shift) / k->every));
        for (int64_t c = 0; c < k->e.n; c += CHUNK) {
            float b[CHUNK];
            int64_t len = k->e.n - c < CHUNK ? k->e.n - c : CHUNK;
            ref_load(ref_row(&x, r), x.dt, c, len, b);
            for (int64_t i = 0; i < len; i++)
                b[i] = (float)f(k, (double)b[i], p, q);
            ref_store(ref_row(&y, r), y.dt, c, len, b);
        }
    }
    return RAD_OK;
}

int ref_scale(const RadLaunch *a)
{
    return a->n_opd < 2 ? RAD_E_ARG : rows(a, 1, NULL, 0, 0, f_scale);
}
int ref_softcap(const RadLaunch *a)
{
    return a->n_opd < 2 ? RAD_E_ARG : rows(a, 1, NULL, 0, 0, f_softcap);
}
int ref_clip(const RadLaunch *a)
{
    return a->n_opd < 2 ? RAD_E_ARG : rows(a, 1, NULL, 0, 0, f_clip);
}

/* x, positions -> y; one position a row, none of them negative */
int ref_scale_by_position(const RadLaunch *a)
{
    const struct ref_number *k = a->params;
    const int32_t *pos;
    struct ref_view x;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], k->e.n, &x));
    if (x.rows == 0)
        return RAD_OK;
    RAD_TRY(ref_i32(&a->opd[1], x.rows, &pos));
    return rows(a, 2, pos, 1, 0, f_by);
}

static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

/* x, alpha_p, alpha_n -> y */
int ref_xielu(const RadLaunch *a)
{
    const struct ref_number *k = a->params;
    float p, q;
    if (a->n_opd < 4)
        return RAD_E_ARG;
    RAD_TRY(ref_weight_check(&a->opd[1], 1, 1));
    RAD_TRY(ref_weight_rows(&a->opd[1], 0, 1, 1, &p));
    RAD_TRY(ref_weight_check(&a->opd[2], 1, 1));
    RAD_TRY(ref_weight_rows(&a->opd[2], 0, 1, 1, &q));
    return rows(a, 3, NULL, softplus((double)p), k->a + softplus((double)q), f_xielu);
}

size_t ref_add_bias_scratch(const void *params, int parts)
{
    const struct ref_elem *e = params;
    return ref_scratch_all((size_t)e->n * sizeof(float), parts);
}

/* x, b -> y */
int ref_add_bias(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[2], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    float *bias = ref_scratch(a, (size_t)e->n * sizeof *bias);
    if (!bias)
        return RAD_E_SCRATCH;
    RAD_TRY(ref_weight_check(&a->opd[1], 1, e->n));
    RAD_TRY(ref_weight_rows(&a->opd[1], 0, 1, e->n, bias));
    int64_t r0, r1;
    ref_share(a, y.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++)
        for (int64_t c = 0; c < e->n; c += CHUNK) {
            float b[CHUNK];
            int64_t len = e->n - c < CHUNK ? e->n - c : CHUNK;
            ref_load(ref_row(&x, r), x.dt, c, len, b);
            for (int64_t i = 0; i < len; i++)
                b[i] += bias[c + i];
            ref_store(ref_row(&y, r), y.dt, c, len, b);
        }
    return RAD_OK;
}
