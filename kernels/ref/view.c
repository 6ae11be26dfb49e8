/* SPDX-License-Identifier: Apache-2.0 */
/* Operands as the kernels read them. Owns: the walk over pitched tensors, the
 * conversions of activation types, weight rows through librad's one decoder.
 * Leaves bounds of index tensors to the ops. */
#include "ref.h"

int ref_view(const RadTensor *t, int64_t n, struct ref_view *v)
{
    if (!t || !t->data || n <= 0)
        return RAD_E_ARG;
    int bits = rad_dtype_bits(t->dtype);
    if (!bits || bits % 8)
        return RAD_E_DTYPE;
    if (t->rank < 1 || t->rank > RAD_MAX_RANK)
        return RAD_E_SHAPE;
    v->base = t->data;
    v->dt = t->dtype;
    v->esz = (size_t)bits / 8;
    v->n = n;

    /* Merge neighbours that are contiguous; what is left is at most two
     * pitches and the run of elements. */
    int64_t ext[RAD_MAX_RANK], str[RAD_MAX_RANK];
    int d = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0)
            return RAD_E_SHAPE;
        if (t->shape[i] == 0) {
            v->rows = 0;
            v->inner = 1;
            v->so = v->si = 0;
            return RAD_OK;
        }
        if (t->shape[i] == 1)
            continue;
        if (d && str[d - 1] == t->stride[i] * t->shape[i]) {
            ext[d - 1] *= t->shape[i];
            str[d - 1] = t->stride[i];
        } else {
            ext[d] = t->shape[i];
            str[d++] = t->stride[i];
        }
    }
    int64_t trail = t->rank > 1 ? rad_numel(t) / t->shape[0] : t->shape[0];
    if (trail % n)
        return RAD_E_SHAPE;
    v->rows = rad_numel(t) / n;
    if (n == 1 && d && (str[d - 1] != 1 || d > 1)) {     /* a pitched column */
        if (d > 2)
            return RAD_E_STRIDE;
        v->inner = d == 2 ? ext[1] : 1;
        v->so = str[0];
        v->si = d == 2 ? str[1] : 0;
        return RAD_OK;
    }
    if (d == 0) {                                        /* one element */
        v->inner = 1;
        v->so = v->si = 0;
        return RAD_OK;
    }
    if (str[d - 1] != 1 || ext[d - 1] % n)
        return RAD_E_STRIDE;
    int64_t cut = ext[d - 1] / n;                        /* rows in the run */
    if (cut > 1) {
        if (d > 2)
            return RAD_E_STRIDE;
        v->inner = d == 2 ? cut : 1;
        v->so = d == 2 ? str[0] : n;
        v->si = n;
        return RAD_OK;
    }
    if (d > 3)
        return RAD_E_STRIDE;
    v->inner = d == 3 ? ext[1] : 1;
    v->so = d > 1 ? str[0] : 0;
    v->si = d == 3 ? str[1] : 0;
    return RAD_OK;
}

int ref_act(const RadTensor *t, int64_t n, struct ref_view *v)
{
    RAD_TRY(ref_view(t, n, v));
    return v->dt == RAD_F32 || v->dt == RAD_BF16 || v->dt == RAD_F16 ? RAD_OK : RAD_E_DTYPE;
}

int ref_i32(const RadTensor *t, int64_t n, const int32_t **out)
{
    if (!t || !t->data)
        return RAD_E_ARG;
    if (t->dtype != RAD_I32)
        return RAD_E_DTYPE;
    int64_t want = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->shape[i] > 1 && t->stride[i] != want)
            return RAD_E_STRIDE;
        want *= t->shape[i];
    }
    if (want < n)
        return RAD_E_SHAPE;
    *out = t->data;
    return RAD_OK;
}

void ref_load(const void *row, int dt, int64_t i, int64_t n, float *out)
{
    if (dt == RAD_F32) {
        memcpy(out, (const float *)row + i, (size_t)n * sizeof *out);
        return;
    }
    if (dt == RAD_BF16) {
        const uint16_t *h = (const uint16_t *)row + i;
        for (int64_t c = 0; c < n; c++)
            out[c] = rad_bf16_to_f32(h[c]);
        return;
    }
    for (int64_t c = 0; c < n; c++)
        out[c] = rad_get_f32(row, dt, (size_t)(i + c));
}

/* Integers: nearest, saturated; NaN gives 0. */
static int64_t to_int(float f, int bits, int is_signed)
{
    double lo = is_signed ? -ldexp(1, bits - 1) : 0;
    double hi = ldexp(1, bits - is_signed);              /* first too large */
    double r = rint((double)f);
    if (!(r > lo))
        return f != f ? 0 : is_signed ? (int64_t)lo : 0;
    if (r >= hi)
        return bits == 64 ? INT64_MAX : (int64_t)(hi - 1);
    return (int64_t)r;
}

void ref_store(void *row, int dt, int64_t i, int64_t n, const float *in)
{
    if (dt == RAD_F32) {
        memcpy((float *)row + i, in, (size_t)n * sizeof *in);
        return;
    }
    uint8_t *b = row;
    for (int64_t c = 0; c < n; c++) {
        size_t at = (size_t)(i + c);
        uint16_t h;
        switch (dt) {
        case RAD_BF16:
            h = rad_f32_to_bf16(in[c]);
            memcpy(b + 2 * at, &h, 2);
            break;
        case RAD_F16:
            h = rad_f32_to_f16(in[c]);
            memcpy(b + 2 * at, &h, 2);
            break;
        case RAD_FP8_E4M3:
            b[at] = rad_f32_to_e4m3(in[c]);
            break;
        case RAD_FP8_E5M2:
            b[at] = rad_f32_to_e5m2(in[c]);
            break;
        default: {
            int bits = rad_dtype_bits(dt);
            rad_bits_put(row, bits, at,
                         (uint64_t)to_int(in[c], bits, rad_dtype_kind(dt) == 'i'));
        }
        }
    }
}

float ref_narrow(int dt, float f)
{
    return dt == RAD_BF16 ? rad_bf16_to_f32(rad_f32_to_bf16(f))
        : dt == RAD_F16 ? rad_f16_to_f32(rad_f32_to_f16(f)) : f;
}

int ref_weight_check(const RadTensor *w, int64_t rows, int64_t cols)
{
    if (rad_absent(w))
        return RAD_E_ARG;
    if (w->rank < 1 || rad_last(w) != cols || rad_rows(w) != rows || w->row0 < 0)
        return RAD_E_SHAPE;
    if (w->enc)
        return RAD_OK;
    struct ref_view v;
    return ref_view(w, cols, &v);
}

int ref_weight_rows(const RadTensor *w, int64_t r0, int64_t n, int64_t k, float *out)
{
    if (w->enc) {
        uint64_t all = (uint64_t)(w->row0 + rad_rows(w));
        return rad_decode_rows(w->enc, w->plane, all, (uint64_t)k, (uint64_t)(w->row0 + r0),
                               (uint64_t)n, out, (size_t)k, NULL);
    }
    struct ref_view v;
    RAD_TRY(ref_view(w, k, &v));
    for (int64_t r = 0; r < n; r++)
        ref_load(ref_row(&v, r0 + r), v.dt, 0, k, out + r * k);
    return RAD_OK;
}

int ref_weight_span(const RadTensor *w, int64_t c0, int64_t n, float *out)
{
    if (w->enc)
        return rad_decode_span(w->enc, w->plane, (uint64_t)(w->row0 + rad_rows(w)),
                               (uint64_t)rad_last(w), (uint64_t)w->row0, (uint64_t)c0,
                               (uint64_t)n, out, NULL);
    struct ref_view v;
    RAD_TRY(ref_view(w, rad_last(w), &v));
    ref_load(v.base, v.dt, c0, n, out);
    return RAD_OK;
}

static uint64_t weight_bytes(const RadTensor *w, int64_t rows)
{
    uint64_t sum = 0;
    for (int i = 0; i < w->enc->n_planes && i < RAD_MAX_PLANES; i++) {
        RadPlaneGeom g;
        if (rad_plane_geom(w->enc, i, (uint64_t)rows, (uint64_t)rad_last(w), &g, NULL) == RAD_OK)
            sum += g.bytes;
    }
    return sum;
}

uint64_t ref_bytes(const RadTensor *t)
{
    if (!t || !t->rank || (rad_absent(t) && !t->dtype))
        return 0;
    if (t->enc)
        return weight_bytes(t, rad_rows(t));
    return (uint64_t)rad_numel(t) * (uint64_t)rad_dtype_bits(t->dtype) / 8;
}

uint64_t ref_row_bytes(const RadTensor *w)
{
    return w->enc ? weight_bytes(w, 1) : rad_row_bytes(w->dtype, (size_t)rad_last(w));
}
