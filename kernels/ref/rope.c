/* SPDX-License-Identifier: Apache-2.0 */
/* rope: rotary embedding in place. The angle is an f32 product of f32 factors,
 * because the models were trained with references that round it so; cosine and
 * sine are of that angle in double, rounded to f32. */
#include "ref.h"

int ref_rope_parse(const RadParam *p, int n, void *out)
{
    struct ref_rope *r = out;
    r->M = rad_param_int(p, n, "M", 0);
    r->C = rad_param_int(p, n, "head_dim", 0);
    int64_t h = rad_param_int(p, n, "n_head", 0), hkv = rad_param_int(p, n, "n_head_kv", 0);
    r->rot = rad_param_int(p, n, "rotary_dim", 0);
    if (!r->rot)
        r->rot = r->C;
    r->mscale = (float)rad_param_real(p, n, "mscale", 1);
    float theta = (float)rad_param_real(p, n, "theta", 0);
    float scale = (float)rad_param_real(p, n, "scale", 1);
    const char *mode = rad_param_str(p, n, "mode", "neox");
    r->gptj = !strcmp(mode, "gptj");
    if (!r->gptj && strcmp(mode, "neox"))
        return RAD_E_UNSUPPORTED;
    if (r->C <= 0 || h < 0 || hkv < 0 || h + hkv <= 0 || !(theta > 0) || !(scale > 0))
        return RAD_E_ARG;
    if (r->rot < 2 || r->rot > r->C || r->rot % 2 || r->rot > REF_MAX_ROTARY)
        return RAD_E_SHAPE;
    r->heads = h + hkv;
    for (int64_t i = 0; i < r->rot / 2; i++)
        r->inv[i] = 1.0f / powf(theta, (float)(2 * i) / (float)r->rot) / scale;
    return RAD_OK;
}

int ref_rope_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    const struct ref_rope *r = params;
    if (n_opd < 4)
        return RAD_E_ARG;
    uint64_t rows = opd[0].rank ? (uint64_t)opd[0].shape[0] : 0;
    uint64_t pairs = rows * (uint64_t)r->heads * (uint64_t)(r->rot / 2);
    uint64_t esz = (uint64_t)rad_dtype_bits(opd[0].dtype) / 8;
    out->bytes = 4 * pairs * esz + ref_bytes(&opd[1]) + ref_bytes(&opd[2])
        + ref_bytes(&opd[3]);
    out->ops = 6 * pairs;
    return RAD_OK;
}

static void rotate(const struct ref_rope *r, void *row, int dt, int64_t at, const float *cs,
                   const float *sn)
{
    float b[REF_MAX_ROTARY];
    int64_t half = r->rot / 2, step = r->gptj ? 2 : 1, far = r->gptj ? 1 : half;
    ref_load(row, dt, at, r->rot, b);
    for (int64_t i = 0; i < half; i++) {
        double x = (double)b[i * step], y = (double)b[i * step + far];
        double c = (double)cs[i], s = (double)sn[i];
        b[i * step] = (float)(x * c - y * s);
        b[i * step + far] = (float)(y * c + x * s);
    }
    ref_store(row, dt, at, r->rot, b);
}

/* qkv!, positions, inv_freq?, freq_factors?. Each of the first `heads` heads of a row turns. */
int ref_rope(const RadLaunch *a)
{
    const struct ref_rope *r = a->params;
    if (a->n_opd < 4 || rad_absent(&a->opd[0]))
        return RAD_E_ARG;
    const RadTensor *t = &a->opd[0];
    if (t->rank < 2)
        return RAD_E_SHAPE;
    if (t->shape[0] == 0)
        return RAD_OK;
    struct ref_view x;
    const int32_t *pos;
    int64_t width = rad_numel(t) / t->shape[0];
    if (width < r->heads * r->C)
        return RAD_E_SHAPE;
    RAD_TRY(ref_act(t, width, &x));
    RAD_TRY(ref_i32(&a->opd[1], x.rows, &pos));
    float inv[REF_MAX_ROTARY / 2];
    memcpy(inv, r->inv, sizeof inv);
    if (!rad_absent(&a->opd[2])) {
        RAD_TRY(ref_weight_check(&a->opd[2], 1, r->rot / 2));
        RAD_TRY(ref_weight_rows(&a->opd[2], 0, 1, r->rot / 2, inv));
    }
    if (!rad_absent(&a->opd[3])) {
        float f[REF_MAX_ROTARY / 2];
        RAD_TRY(ref_weight_check(&a->opd[3], 1, r->rot / 2));
        RAD_TRY(ref_weight_rows(&a->opd[3], 0, 1, r->rot / 2, f));
        for (int64_t i = 0; i < r->rot / 2; i++)
            inv[i] /= f[i];
    }
    int64_t r0, r1;
    ref_share(a, x.rows, &r0, &r1);
    for (int64_t m = r0; m < r1; m++) {
        float cs[REF_MAX_ROTARY / 2], sn[REF_MAX_ROTARY / 2];
        for (int64_t i = 0; i < r->rot / 2; i++) {
            float angle = (float)pos[m] * inv[i];
            cs[i] = (float)cos((double)angle) * r->mscale;
            sn[i] = (float)sin((double)angle) * r->mscale;
        }
        for (int64_t h = 0; h < r->heads; h++)
            rotate(r, ref_row(&x, m), x.dt, h * r->C, cs, sn);
    }
    return RAD_OK;
}
