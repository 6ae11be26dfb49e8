/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding a weight to a grid: scales first, stored as their type stores them,
 * then the codes nearest under the stored scale.
 *
 * Under a rotation the rows are multiplied by the unnormalised Hadamard matrix
 * H; the stored scale (of two levels: the second) is the one used here divided
 * by the span N, so that a decoder applies H alone. */
#include <stdlib.h>

#include "quant.h"

/* One scale block inside the rows of a call. */
struct block {
    const float *x;
    const float *imp;         /* of its first column, or NULL */
    int64_t pitch, rows, cols;
};

/* How a block's scale is stored: stored = round(s / unit), used = stored * unit.
 * dt 0: not stored, used as it is. */
struct level {
    int dt;
    double unit;
};

struct pick {
    double s;                 /* as used */
    uint64_t bits;            /* as stored */
    int64_t zero;
    double err;
};

/* ---- storing scales */

static double from_bits(int dt, uint64_t bits)
{
    uint8_t b[4];
    for (int i = 0; i < 4; i++)
        b[i] = (uint8_t)(bits >> (8 * i));
    return (double)rad_get_f32(b, dt, 0);
}

/* Nearest value of a scale's type, saturating, never infinite. */
static uint64_t to_bits(int dt, double v, int up)
{
    float f = (float)v;
    switch (dt) {
    case RAD_F32:
        return rad_bits_f32(isinf(f) ? copysignf(0x1.fffffep127f, f) : f);
    case RAD_BF16:
        return rad_f32_to_bf16(fabsf(f) > 0x1.fep127f ? copysignf(0x1.fep127f, f) : f);
    case RAD_F16:
        return rad_f32_to_f16(fabsf(f) > 65504 ? copysignf(65504, f) : f);
    case RAD_FP8_E4M3:
        return rad_f32_to_e4m3(f);
    case RAD_DT_e8m0: {
        int e;
        if (!(v > 0))
            return 0;
        double m = frexp(v, &e);              /* v = m 2^e, m in [0.5, 1) */
        e += (up && m > 0.5) - 1 + 127;
        return (uint64_t)(e < 0 ? 0 : e > 254 ? 254 : e);
    }
    default: {
        int bits = rad_dtype_bits(dt), sgn = rad_dtype_kind(dt) == 'i';
        double hi = ldexp(1, bits - sgn) - 1, r = round(v);
        r = r > hi ? hi : r < (sgn ? -hi : 0) ? (sgn ? -hi : 0) : r;
        return (uint64_t)(int64_t)r & (bits == 64 ? ~0ull : (1ull << bits) - 1);
    }
    }
}

/* Largest value of a first level under a second. */
static double level_max(int dt)
{
    char k = rad_dtype_kind(dt);
    return dt == RAD_FP8_E4M3 ? 448 : k == 'f' ? 1 : ldexp(1, rad_dtype_bits(dt) - (k == 'i')) - 1;
}

static void store(const struct level *l, double s, int nonzero, struct pick *p)
{
    if (!l->dt) {
        p->s = s;
        return;
    }
    p->bits = to_bits(l->dt, s / l->unit, 0);
    p->s = from_bits(l->dt, p->bits) * l->unit;
    if (p->s == 0 && nonzero) {               /* the smallest, with its sign */
        int top = rad_dtype_bits(l->dt) - 1;
        int is_float = rad_dtype_kind(l->dt) == 'f';
        p->bits = s < 0 ? is_float ? 1ull << top | 1 : (2ull << top) - 1 : 1;
        p->s = from_bits(l->dt, p->bits) * l->unit;
    }
}

/* ---- codes */

static int nearest_entry(const struct grid *g, float t)
{
    int lo = 0, hi = g->n_table - 1;
    while (lo < hi) {                         /* first entry >= t, or the last */
        int mid = (lo + hi) / 2;
        if (g->table[g->order[mid]] < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0) {                             /* a tie goes to the lower entry */
        double above = (double)g->table[g->order[lo]] - (double)t;
        double below = (double)t - (double)g->table[g->order[lo - 1]];
        if (below <= above)
            lo--;
        while (lo > 0 && g->table[g->order[lo - 1]] == g->table[g->order[lo]])
            lo--;
    }
    return g->order[lo];
}

/* t = x / scale */
static uint64_t code_of(const struct grid *g, float t, int64_t zero)
{
    if (g->n_table)
        return (uint64_t)nearest_entry(g, t);
    switch (g->code_dt) {
    case RAD_FP8_E4M3: return rad_f32_to_e4m3(t);
    case RAD_FP8_E5M2: return rad_f32_to_e5m2(t);
    case RAD_DT_fp6_e2m3: return rad_f32_to_minifloat(t, 2, 3, 1, 7.5f);
    case RAD_DT_fp6_e3m2: return rad_f32_to_minifloat(t, 3, 2, 3, 28.0f);
    case RAD_DT_fp4_e2m1: return rad_f32_to_minifloat(t, 2, 1, 1, 6.0f);
    default: break;
    }
    double q = round((double)t) + (double)zero;          /* half away from zero */
    q = q < g->lo ? g->lo : q > g->hi ? g->hi : q;
    return (uint64_t)(int64_t)q;
}

static double value_of(const struct grid *g, uint64_t code, int64_t zero)
{
    if (g->n_table)
        return (double)g->table[code];
    if (rad_dtype_kind(g->code_dt) != 'f')
        return (double)((int64_t)code - zero);
    return from_bits(g->code_dt, code);
}

static double reciprocal(const struct grid *g, double s)
{
    if (g->rule == RULE_FIXED)
        return 1.0 / g->scale_value;
    float inv = 1.0f / (float)s;
    return s == 0 || isinf(inv) ? 0 : (double)inv;
}

static int64_t zero_of(const struct grid *g, double lo, double s)
{
    double top = ldexp(1, rad_dtype_bits(g->zero_dt)) - 1;
    double z = s > 0 ? round(-lo / s) : 0;
    top = top < g->hi ? top : g->hi;
    return (int64_t)(z < 0 ? 0 : z > top ? top : z);
}

/* Weighted squared error of the block under p; with xq and qq also the sums
 * whose ratio is the least-squares scale of the same codes. */
static double error_of(const struct grid *g, const struct block *b, const struct pick *p,
                       double *xq, double *qq)
{
    double inv = reciprocal(g, p->s), sum = 0;
    if (xq)
        *xq = *qq = 0;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t c = 0; c < b->cols; c++) {
            double x = (double)b->x[r * b->pitch + c], w = b->imp ? (double)b->imp[c] : 1;
            double q = value_of(g, code_of(g, (float)(x * inv), p->zero), p->zero);
            double d = x - p->s * q;
            sum += w * d * d;
            if (xq) {
                *xq += w * x * q;
                *qq += w * q * q;
            }
        }
    return sum;
}

/* ---- choosing a block's scale */

static void range(const struct block *b, double *lo, double *hi, double *peak)
{
    *lo = *hi = *peak = 0;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t c = 0; c < b->cols; c++) {
            double x = (double)b->x[r * b->pitch + c];
            *lo = x < *lo ? x : *lo;
            *hi = x > *hi ? x : *hi;
            if (fabs(x) > fabs(*peak))
                *peak = x;
        }
}

static void search_zero(const struct grid *g, const struct block *b, const struct level *l,
                        double lo, double hi, struct pick *best)
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            double a = lo * (1 - 0.04 * i);
            struct pick p = { 0 };
            store(l, (hi * (1 - 0.04 * j) - a) / g->hi, 1, &p);
            p.zero = zero_of(g, a, p.s);
            p.err = error_of(g, b, &p, NULL, NULL);
            if ((i == 0 && j == 0) || p.err < best->err)
                *best = p;
        }
}

static void search_scale(const struct grid *g, const struct block *b, const struct level *l,
                         double s, struct pick *best)
{
    double xq, qq;
    for (int i = 0; i <= 20; i++) {
        struct pick p = { 0 };
        store(l, s * (0.70 + 0.02 * i), 1, &p);
        p.err = error_of(g, b, &p, NULL, NULL);
        if (i == 0 || p.err < best->err)
            *best = p;
    }
    for (int i = 0; i < 8; i++) {             /* refits, while they help */
        struct pick p = { 0 };
        error_of(g, b, best, &xq, &qq);
        if (!(qq > 0) || xq / qq == 0 || (xq < 0) != (s < 0))
            return;
        store(l, xq / qq, 1, &p);
        p.err = error_of(g, b, &p, NULL, NULL);
        if (!(p.err < best->err))
            return;
        *best = p;
    }
}

/* fixed_s: nonzero = only store this scale. */
static void choose(const struct grid *g, const struct block *b, const struct level *l,
                   double fixed_s, struct pick *p)
{
    double lo, hi, peak, s;
    *p = (struct pick){ 0 };
    range(b, &lo, &hi, &peak);
    int nonzero = peak != 0;

    if (!nonzero) {
        int is_float = rad_dtype_kind(g->code_dt) == 'f';
        if (g->scale2_dt)                     /* must not count among the scales */
            store(l, 0, 0, p);
        else
            store(l, g->rule == RULE_FIXED ? g->scale_value : is_float ? 1 : 1e-12, 0, p);
        return;
    }
    if (g->zero_dt) {
        if (g->rule == RULE_SEARCH && fixed_s == 0) {
            search_zero(g, b, l, lo, hi, p);
            return;
        }
        store(l, fixed_s != 0 ? fixed_s : (hi - lo) / g->hi, g->scale2_dt != 0, p);
        p->zero = zero_of(g, lo, p->s);
        return;
    }
    switch (g->rule) {
    case RULE_FIXED:
        s = g->scale_value;
        break;
    case RULE_MX: {
        int e, top;
        frexp(peak, &e);
        frexp(g->hi, &top);
        s = ldexp(1, e - top);
        break;
    }
    default:
        s = g->n_table ? g->signed_scale ? peak / (double)g->extreme
                                         : fabs(peak / (double)g->extreme)
            : fabs(peak) / g->hi;
    }
    if (g->rule == RULE_SEARCH && fixed_s == 0)
        search_scale(g, b, l, s, p);
    else
        store(l, fixed_s != 0 ? fixed_s : s, g->scale2_dt != 0, p);
}

/* ---- the planes */

struct planes {
    uint8_t *code, *scale, *zero, *scale2, *table;
    size_t code_row, scale_row, zero_row, scale2_row;
    int64_t br, bc, nbr, nbc;         /* first-level blocks of the call */
    int64_t b2r, b2c;
};

static void put(uint8_t *row, int dt, int64_t i, uint64_t bits)
{
    rad_bits_put(row, rad_dtype_bits(dt), (size_t)i, bits);
}

static struct block block_at(const struct planes *pl, const float *x, const float *imp, int64_t n,
                             int64_t cols, int64_t i, int64_t j)
{
    int64_t r = i * pl->br, c = j * pl->bc;
    return (struct block){
        .x = x + r * cols + c, .imp = imp ? imp + c : NULL, .pitch = cols,
        .rows = n - r < pl->br ? n - r : pl->br, .cols = cols - c < pl->bc ? cols - c : pl->bc };
}

static void write_codes(const struct grid *g, const struct planes *pl, const struct block *b,
                        const struct pick *p, int64_t i, int64_t j)
{
    double inv = reciprocal(g, p->s);
    for (int64_t r = 0; r < b->rows; r++) {
        uint8_t *row = pl->code + (size_t)(i * pl->br + r) * pl->code_row;
        for (int64_t c = 0; c < b->cols; c++) {
            float t = (float)((double)b->x[r * b->pitch + c] * inv);
            put(row, g->code_dt, j * pl->bc + c, code_of(g, t, p->zero));
        }
    }
}

/* Multiplies each run of `span` columns by the unnormalised Hadamard matrix. */
static void rotate(float *x, int64_t n, int64_t span)
{
    for (int64_t at = 0; at < n; at += span)
        for (int64_t h = 1; h < span; h *= 2)
            for (int64_t i = at; i < at + span; i += 2 * h)
                for (int64_t k = i; k < i + h; k++) {
                    float a = x[k], b = x[k + h];
                    x[k] = a + b;
                    x[k + h] = a - b;
                }
}

/* The second level of the blocks (bi, bj) covers: max(first) / largest. */
static void second_levels(const struct grid *g, const struct planes *pl, const double *first,
                          double *second)
{
    double n = g->span ? (double)g->span : 1, most = level_max(g->scale_dt);
    int64_t per_r = pl->b2r / pl->br, per_c = pl->b2c / pl->bc;
    for (int64_t i2 = 0; i2 * per_r < pl->nbr; i2++)
        for (int64_t j2 = 0; j2 * per_c < pl->nbc; j2++) {
            double max = 0;
            for (int64_t i = i2 * per_r; i < pl->nbr && i < (i2 + 1) * per_r; i++)
                for (int64_t j = j2 * per_c; j < pl->nbc && j < (j2 + 1) * per_c; j++)
                    max = fmax(max, first ? fabs(first[i * pl->nbc + j]) : 0);
            double s = max > 0 ? max / most : 1;
            struct pick p = { 0 };
            if (g->scale2_value > 0) {
                p.bits = to_bits(g->scale2_dt, g->scale2_value, 0);
            } else {
                p.bits = to_bits(g->scale2_dt, s / n, 1);
                if (from_bits(g->scale2_dt, p.bits) == 0)
                    p.bits = 1;               /* the smallest there is */
            }
            put(pl->scale2 + (size_t)i2 * pl->scale2_row, g->scale2_dt, j2, p.bits);
            for (int64_t i = i2 * per_r; i < pl->nbr && i < (i2 + 1) * per_r; i++)
                for (int64_t j = j2 * per_c; j < pl->nbc && j < (j2 + 1) * per_c; j++)
                    second[i * pl->nbc + j] = from_bits(g->scale2_dt, p.bits) * n;
        }
}

static int64_t count(int64_t n, int64_t block)
{
    return (n + block - 1) / block;
}

static void planes_of(const struct grid *g, const RadEncoding *enc, int64_t n, int64_t cols,
                      void *const plane[], struct planes *pl)
{
    int zero = rad_encoding_find(enc, "zero"), s1 = rad_encoding_find(enc, "scale.1");
    int table = rad_encoding_find(enc, "table");
    *pl = (struct planes){
        .code = plane[rad_encoding_find(enc, "codes")],
        .scale = plane[rad_encoding_find(enc, "scale")],
        .zero = zero < 0 ? NULL : plane[zero], .scale2 = s1 < 0 ? NULL : plane[s1],
        .table = table < 0 ? NULL : plane[table],
        .br = g->br ? g->br : n, .bc = g->bc ? g->bc : cols };
    /* a whole second level covers every block, the short last one too */
    pl->nbr = count(n, pl->br);
    pl->nbc = count(cols, pl->bc);
    pl->b2r = g->b2r ? g->b2r : pl->nbr * pl->br;
    pl->b2c = g->b2c ? g->b2c : pl->nbc * pl->bc;
    pl->code_row = rad_row_bytes(g->code_dt, (size_t)cols);
    pl->scale_row = rad_row_bytes(g->scale_dt, (size_t)pl->nbc);
    if (g->zero_dt)
        pl->zero_row = rad_row_bytes(g->zero_dt, (size_t)pl->nbc);
    if (g->scale2_dt)
        pl->scale2_row = rad_row_bytes(g->scale2_dt, (size_t)count(cols, pl->b2c));
}

rad_status grid_round(const struct grid *g, const RadQuantWeight *w, const RadEncoding *enc,
                      int64_t r0, int64_t n, float *x, void *const plane[],
                      struct rad_err *err)
{
    int64_t cols = w->cols;
    if (n <= 0 || cols <= 0)
        return RAD_OK;
    for (int64_t i = 0; i < n * cols; i++)
        if (!isfinite(x[i]))
            return rad_fail(err, RAD_E_FORMAT, "'%s': row %lld, column %lld: %g cannot be rounded"
                            " to a grid", w->name, (long long)(r0 + i / cols),
                            (long long)(i % cols), (double)x[i]);
    if (g->span)
        for (int64_t r = 0; r < n; r++)
            rotate(x + r * cols, cols, g->span);

    struct planes pl;
    planes_of(g, enc, n, cols, plane, &pl);
    const float *imp = g->span ? NULL : w->importance;
    double *first = NULL, *second = NULL;
    size_t n_blocks = (size_t)(pl.nbr * pl.nbc);
    struct pick p;
    if (g->scale2_dt) {
        first = calloc(2 * n_blocks, sizeof *first);
        if (!first)
            return rad_fail(err, RAD_E_NOMEM, "'%s': %zu scales", w->name, n_blocks);
        second = first + n_blocks;
        struct level none = { 0, 1 };
        for (int64_t i = 0; i < pl.nbr; i++)
            for (int64_t j = 0; j < pl.nbc; j++) {
                struct block b = block_at(&pl, x, imp, n, cols, i, j);
                choose(g, &b, &none, 0, &p);
                first[i * pl.nbc + j] = p.s;
            }
        second_levels(g, &pl, first, second);
    }
    if (pl.table)
        for (int i = 0; i < g->n_table; i++)
            put(pl.table, g->table_dt, i, g->table_dt == RAD_I8
                ? (uint64_t)(int64_t)g->table[i] & 0xff : rad_bits_f32(g->table[i]));

    int again = g->rule == RULE_SEARCH && rad_dtype_kind(g->scale_dt) == 'f';
    for (int64_t i = 0; i < pl.nbr; i++)
        for (int64_t j = 0; j < pl.nbc; j++) {
            struct block b = block_at(&pl, x, imp, n, cols, i, j);
            struct level l = { g->scale_dt, g->span ? (double)g->span : 1 };
            double s = 0;
            if (second) {
                l.unit = second[i * pl.nbc + j];
                s = again ? 0 : first[i * pl.nbc + j];
            }
            choose(g, &b, &l, s, &p);
            put(pl.scale + (size_t)i * pl.scale_row, g->scale_dt, j, p.bits);
            if (g->zero_dt)
                put(pl.zero + (size_t)i * pl.zero_row, g->zero_dt, j, (uint64_t)p.zero);
            write_codes(g, &pl, &b, &p, i, j);
        }
    free(first);
    return RAD_OK;
}
