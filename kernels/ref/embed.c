/* SPDX-License-Identifier: Apache-2.0 */
/* Row movement: embed_lookup, gather_rows, scatter_rows, cast. */
#include "ref.h"

int ref_embed_parse(const RadParam *p, int n, void *out)
{
    struct ref_embed *e = out;
    e->M = rad_param_int(p, n, "M", 0);
    e->n = rad_param_int(p, n, "n_embd", 0);
    e->n_vocab = rad_param_int(p, n, "n_vocab", 0);
    e->offset = rad_param_int(p, n, "vocab_offset", 0);
    e->wscale = (float)rad_param_real(p, n, "wscale", 1);
    return e->n > 0 && e->n_vocab > 0 ? RAD_OK : RAD_E_ARG;
}

size_t ref_embed_scratch(const void *params, int parts)
{
    const struct ref_embed *e = params;
    return ref_scratch_all((size_t)e->n * sizeof(float), parts);
}

int ref_embed_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    (void)params;
    if (n_opd < 3)
        return RAD_E_ARG;
    uint64_t rows = (uint64_t)rad_numel(&opd[0]);
    out->bytes = ref_bytes(&opd[0]) + rows * ref_row_bytes(&opd[1]) + ref_bytes(&opd[2]);
    out->ops = 0;
    return RAD_OK;
}

/* tokens, wte -> x. A token of another rank's slice is a row of zeros, for the
 * sum over ranks; past the vocabulary is an error only where it can be told. */
int ref_embed_lookup(const RadLaunch *a)
{
    const struct ref_embed *e = a->params;
    const int32_t *tok;
    struct ref_view x;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    const RadTensor *w = &a->opd[1];
    RAD_TRY(ref_act(&a->opd[2], e->n, &x));
    RAD_TRY(ref_i32(&a->opd[0], x.rows, &tok));
    RAD_TRY(ref_weight_check(w, e->n_vocab, e->n));
    float *b = ref_scratch(a, (size_t)e->n * sizeof *b);
    if (!b)
        return RAD_E_SCRATCH;
    int64_t r0, r1;
    ref_share(a, x.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t id = (int64_t)tok[r] - e->offset;
        if (tok[r] >= 0 && id >= e->n_vocab && e->offset == 0 && a->world_size <= 1)
            return RAD_E_ARG;
        if (tok[r] < 0 || id < 0 || id >= e->n_vocab)
            memset(b, 0, (size_t)e->n * sizeof *b);
        else
            RAD_TRY(ref_weight_rows(w, id, 1, e->n, b));
        if (e->wscale != 1)
            for (int64_t i = 0; i < e->n; i++)
                b[i] *= e->wscale;
        ref_store(ref_row(&x, r), x.dt, 0, e->n, b);
    }
    return RAD_OK;
}

/* The rows moved, read and written, and their indices. */
int ref_gather_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    (void)params;
    if (n_opd < 3)
        return RAD_E_ARG;
    out->bytes = ref_bytes(&opd[1]) + 2 * ref_bytes(&opd[2]);
    out->ops = 0;
    return RAD_OK;
}
int ref_scatter_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    (void)params;
    if (n_opd < 3)
        return RAD_E_ARG;
    out->bytes = ref_bytes(&opd[1]) + 2 * ref_bytes(&opd[0]);
    out->ops = 0;
    return RAD_OK;
}

/* Rows of the same type move as bytes. */
int ref_gather_rows(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    const int32_t *idx;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    RAD_TRY(ref_view(&a->opd[0], e->n, &x));
    RAD_TRY(ref_view(&a->opd[2], e->n, &y));
    RAD_TRY(ref_i32(&a->opd[1], y.rows, &idx));
    if (x.dt != y.dt)
        return RAD_E_DTYPE;
    int64_t r0, r1;
    ref_share(a, y.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        if (idx[r] >= x.rows)
            return RAD_E_ARG;
        if (idx[r] < 0)
            memset(ref_row(&y, r), 0, (size_t)e->n * y.esz);
        else
            memmove(ref_row(&y, r), ref_row(&x, idx[r]), (size_t)e->n * y.esz);
    }
    return RAD_OK;
}

int ref_scatter_rows(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view v, x;
    const int32_t *idx;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    RAD_TRY(ref_view(&a->opd[0], e->n, &v));
    RAD_TRY(ref_view(&a->opd[2], e->n, &x));
    RAD_TRY(ref_i32(&a->opd[1], v.rows, &idx));
    if (x.dt != v.dt)
        return RAD_E_DTYPE;
    int64_t r0, r1;
    ref_share(a, v.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        if (idx[r] >= x.rows)
            return RAD_E_ARG;
        if (idx[r] >= 0)
            memmove(ref_row(&x, idx[r]), ref_row(&v, r), (size_t)e->n * v.esz);
    }
    return RAD_OK;
}

static int is_int(int dt)
{
    char k = rad_dtype_kind(dt);
    return k == 'i' || k == 'u' || k == 'b';
}

static int64_t int_at(const uint8_t *row, int dt, int64_t i)
{
    int bits = rad_dtype_bits(dt);
    uint64_t v = rad_bits_get(row, bits, (size_t)i);
    if (rad_dtype_kind(dt) == 'i' && bits < 64 && (v >> (bits - 1)) & 1)
        v |= ~0ull << bits;
    return (int64_t)v;
}

/* Integers never pass through f32; they saturate. */
static void int_copy(uint8_t *dst, int to, const uint8_t *src, int from, int64_t n)
{
    int bits = rad_dtype_bits(to), sgn = rad_dtype_kind(to) == 'i';
    int64_t lo = !sgn ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    int64_t hi = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - sgn)) - 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = int_at(src, from, i);
        v = v < lo ? lo : v > hi ? hi : v;
        rad_bits_put(dst, bits, (size_t)i, (uint64_t)v);
    }
}

int ref_cast(const RadLaunch *a)
{
    enum { CHUNK = 256 };
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 2)
        return RAD_E_ARG;
    RAD_TRY(ref_view(&a->opd[0], e->n, &x));
    RAD_TRY(ref_view(&a->opd[1], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    if (y.dt == RAD_DT_e8m0)
        return RAD_E_DTYPE;
    int64_t r0, r1;
    ref_share(a, x.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        if (x.dt == y.dt) {
            memmove(ref_row(&y, r), ref_row(&x, r), (size_t)e->n * y.esz);
            continue;
        }
        if (is_int(x.dt) && is_int(y.dt)) {
            int_copy(ref_row(&y, r), y.dt, ref_row(&x, r), x.dt, e->n);
            continue;
        }
        for (int64_t c = 0; c < e->n; c += CHUNK) {
            float b[CHUNK];
            int64_t len = e->n - c < CHUNK ? e->n - c : CHUNK;
            ref_load(ref_row(&x, r), x.dt, c, len, b);
            ref_store(ref_row(&y, r), y.dt, c, len, b);
        }
    }
    return RAD_OK;
}
