/* SPDX-License-Identifier: Apache-2.0 */
/* The one decoder: planes to float32, in the order of the format (container
 * §5.2). Rules of encodings are encoding.c's.
 *
 * A row is decoded in tiles. Each plane makes one pass over the tile, in the
 * order of the definition, so every element sees exactly the defined sequence
 * of float32 operations, while a block's value is read once a block and the
 * inner loops are plain. Nothing is fused or reassociated: (q*s)*s1 is not
 * q*(s*s1). */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "format/encoding_priv.h"
#include "banned.h"

enum {
    TILE = 512                 /* columns a pass */
};

struct lane {                  /* one plane, ready to read */
    const uint8_t *base;
    uint64_t row_bytes, n_rows, n_cols;
    uint64_t br, bc;           /* block; 0 = whole */
    int dtype;
    const float *lut;          /* the value of each code when it has at most 8 bits, or NULL */
};

struct decoder {
    const RadEncoding *enc;
    struct lane codes, book, signs, zero;
    struct lane scale[RAD_MAX_PLANES], min[RAD_MAX_PLANES];
    int n_scale, n_min;
    bool has_grid, has_table, has_signs, has_zero;
    const float *table;        /* the whole table as f32, when it is small */
    uint64_t cols;
    uint64_t elements;         /* that this call decodes: says which tables pay */
    size_t n_lut;
    float lut[RAD_MAX_PLANES][256];
};

/* ---- reading runs of elements */

/* Eight elements of B bits are B bytes, so a group starts on a byte. B and
 * `sign` are constants where this is called. */
static inline __attribute__((always_inline)) void
unpack_groups(const uint8_t *p, size_t groups, int B, bool sign, float *out)
{
    uint32_t mask = (1u << B) - 1, top = 1u << (B - 1);

    for (size_t g = 0; g < groups; g++, p += B, out += 8) {
        uint64_t w = 0;

        memcpy(&w, p, (size_t)B);
        for (int k = 0; k < 8; k++) {
            uint32_t v = (uint32_t)(w >> (k * B)) & mask;

            out[k] = sign ? (float)((int32_t)(v ^ top) - (int32_t)top) : (float)(int32_t)v;
        }
    }
}

static void unpack_bits(const struct lane *l, const uint8_t *row, uint64_t i, size_t n,
                        float *out)
{
    int bits = rad_dtype_bits(l->dtype);

    for (; n && i % 8; n--)
        *out++ = rad_get_f32(row, l->dtype, i++);

    size_t groups = n / 8;
    const uint8_t *p = row + i / 8 * (uint64_t)bits;
    switch (l->dtype) {
    case RAD_DT_u1: unpack_groups(p, groups, 1, false, out); break;
    case RAD_DT_u2: unpack_groups(p, groups, 2, false, out); break;
    case RAD_DT_u3: unpack_groups(p, groups, 3, false, out); break;
    case RAD_DT_u4: unpack_groups(p, groups, 4, false, out); break;
    case RAD_DT_u5: unpack_groups(p, groups, 5, false, out); break;
    case RAD_DT_u6: unpack_groups(p, groups, 6, false, out); break;
    case RAD_DT_u7: unpack_groups(p, groups, 7, false, out); break;
    case RAD_DT_i2: unpack_groups(p, groups, 2, true, out); break;
    case RAD_DT_i3: unpack_groups(p, groups, 3, true, out); break;
    case RAD_DT_i4: unpack_groups(p, groups, 4, true, out); break;
    case RAD_DT_i5: unpack_groups(p, groups, 5, true, out); break;
    case RAD_DT_i6: unpack_groups(p, groups, 6, true, out); break;
    case RAD_DT_i7: unpack_groups(p, groups, 7, true, out); break;
    default: groups = 0; break;
    }
    for (size_t k = groups * 8; k < n; k++)
        out[k] = rad_get_f32(row, l->dtype, i + k);
}

/* Small float types through their table of values. */
static void unpack_lut(const struct lane *l, const uint8_t *row, uint64_t i, size_t n,
                       float *out)
{
    int bits = rad_dtype_bits(l->dtype);
    size_t k = 0;

    if (bits == 8) {
        for (; k < n; k++)
            out[k] = l->lut[row[i + k]];
        return;
    }
    if (bits == 4) {
        if (n && i % 2)
            out[k++] = l->lut[row[i / 2] >> 4];
        for (; k + 1 < n; k += 2) {
            uint8_t b = row[(i + k) / 2];

            out[k] = l->lut[b & 15];
            out[k + 1] = l->lut[b >> 4];
        }
    }
    for (; k < n; k++)
        out[k] = l->lut[rad_bits_get(row, bits, i + k)];
}

/* Elements [i, i+n) of a plane's row as f32; every value equals rad_get_f32's. */
static void unpack(const struct lane *l, const uint8_t *row, uint64_t i, size_t n,
                   float *out)
{
    uint16_t h;

    if (l->lut) {
        unpack_lut(l, row, i, n, out);
        return;
    }
    switch (l->dtype) {
    case RAD_DT_f32:
        memcpy(out, row + 4 * i, 4 * n);
        return;
    case RAD_DT_bf16:
        for (size_t k = 0; k < n; k++) {
            memcpy(&h, row + 2 * (i + k), 2);
            out[k] = rad_bf16_to_f32(h);
        }
        return;
    case RAD_DT_f16:
        for (size_t k = 0; k < n; k++) {
            memcpy(&h, row + 2 * (i + k), 2);
            out[k] = rad_f16_to_f32(h);
        }
        return;
    case RAD_DT_i8:
        for (size_t k = 0; k < n; k++)
            out[k] = (float)(int8_t)row[i + k];
        return;
    case RAD_DT_u8:
    case RAD_DT_bool:
        for (size_t k = 0; k < n; k++)
            out[k] = (float)row[i + k];
        return;
    default:
        unpack_bits(l, row, i, n, out);
        return;
    }
}

/* Codes as indexes; a negative one of a signed type becomes huge. */
static void unpack_index(const struct lane *l, const uint8_t *row, uint64_t i, size_t n,
                         uint64_t *out)
{
    int bits = rad_dtype_bits(l->dtype);
    uint64_t top = rad_dtype_kind(l->dtype) == 'i' ? 1ull << (bits - 1) : 0;

    if (bits == 8)
        for (size_t k = 0; k < n; k++)
            out[k] = row[i + k];
    else if (bits == 4)
        for (size_t k = 0; k < n; k++)
            out[k] = row[(i + k) / 2] >> ((i + k) % 2 * 4) & 15;
    else
        for (size_t k = 0; k < n; k++)
            out[k] = rad_bits_get(row, bits, i + k);
    if (top)
        for (size_t k = 0; k < n; k++)
            out[k] = (out[k] ^ top) - top;
}

static const uint8_t *lane_row(const struct lane *l, uint64_t r)
{
    return l->base + (l->br ? r / l->br : 0) * l->row_bytes;
}

/* ---- passes over a tile of columns [c, c+n) of row r */

enum pass { SET, MUL, SUB, NEG };

/* Steps of eight with a constant count: compilers turn those into vectors at
 * -O2 already. Elements do not depend on each other, so the bits are the same. */
#define EACH(n, stmt)                                  \
    do {                                               \
        size_t k = 0;                                  \
        for (; k + 8 <= (n); k += 8)                   \
            for (size_t j = k; j < k + 8; j++) {       \
                stmt;                                  \
            }                                          \
        for (size_t j = k; j < (n); j++) {             \
            stmt;                                      \
        }                                              \
    } while (0)

/* `v` covers `n` columns of one block. */
static void pass_block(enum pass op, float v, float *restrict x, size_t n)
{
    switch (op) {
    case SET: EACH(n, x[j] = v); break;
    case MUL: EACH(n, x[j] *= v); break;
    case SUB: EACH(n, x[j] -= v); break;
    case NEG: if (v != 0) EACH(n, x[j] = -x[j]); break;
    }
}

static void pass_each(enum pass op, const float *restrict v, float *restrict x, size_t n)
{
    switch (op) {
    case SET: memcpy(x, v, n * sizeof *x); break;
    case MUL: EACH(n, x[j] *= v[j]); break;
    case SUB: EACH(n, x[j] -= v[j]); break;
    case NEG: EACH(n, x[j] = v[j] != 0 ? -x[j] : x[j]); break;
    }
}

static void pass(enum pass op, const struct lane *l, uint64_t r, uint64_t c, size_t n,
                 float *x)
{
    const uint8_t *row = lane_row(l, r);
    float v[TILE];

    if (l->bc == 1) {
        unpack(l, row, c, n, v);
        pass_each(op, v, x, n);
        return;
    }
    uint64_t first = l->bc ? c / l->bc : 0, last = l->bc ? (c + n - 1) / l->bc : 0;
    unpack(l, row, first, (size_t)(last - first) + 1, v);
    if (first == last) {
        pass_block(op, v[0], x, n);
        return;
    }
    size_t k = 0, m = (size_t)((first + 1) * l->bc - c);
    for (size_t b = 0; k < n; b++) {
        pass_block(op, v[b], x + k, m);
        k += m;
        m = (size_t)RADI_MIN(l->bc, (uint64_t)(n - k));
    }
}

/* Step 1 with a codebook: the tile's codes looked up. */
static rad_status lookup(const struct decoder *d, uint64_t r, uint64_t c, size_t n,
                         float *x, struct rad_err *err)
{
    const struct lane *book = &d->book;
    uint64_t width = d->has_grid ? d->codes.bc : 1;
    uint64_t entries = d->has_grid ? book->n_rows : book->n_cols;
    uint64_t first = c / width, count = (c + n - 1) / width - first + 1;
    uint64_t code[TILE];

    unpack_index(&d->codes, lane_row(&d->codes, r), first, (size_t)count, code);
    for (size_t k = 0; k < count; k++)
        if (code[k] >= entries)
            return rad_fail(err, RAD_E_FORMAT, "row %llu, column %llu: code %lld outside the"
                            " %s of %llu entries", (unsigned long long)r,
                            (unsigned long long)RADI_MAX(c, (first + k) * width),
                            (long long)code[k], d->has_grid ? "grid" : "table",
                            (unsigned long long)entries);
    if (d->table) {
        for (size_t k = 0; k < n; k++)
            x[k] = d->table[code[k]];
        return RAD_OK;
    }
    if (!d->has_grid) {
        for (size_t k = 0; k < n; k++)
            x[k] = rad_get_f32(book->base, book->dtype, code[k]);
        return RAD_OK;
    }
    uint64_t at = c % width;   /* the first code may begin before the tile */
    for (size_t k = 0, b = 0; k < n; b++) {
        size_t m = (size_t)RADI_MIN(width - at, (uint64_t)(n - k));

        unpack(book, book->base + code[b] * book->row_bytes, at, m, x + k);
        k += m;
        at = 0;
    }
    return RAD_OK;
}

static rad_status decode_cols(const struct decoder *d, uint64_t r, uint64_t c, uint64_t nc,
                              float *out, struct rad_err *err)
{
    float m[TILE];

    while (nc) {
        size_t n = (size_t)RADI_MIN(nc, (uint64_t)TILE);

        if (d->has_grid || d->has_table)
            RAD_TRY(lookup(d, r, c, n, out, err));
        else
            unpack(&d->codes, lane_row(&d->codes, r), c, n, out);
        if (d->has_signs)
            pass(NEG, &d->signs, r, c, n, out);
        if (d->has_zero)
            pass(SUB, &d->zero, r, c, n, out);
        for (int i = 0; i < d->n_scale; i++)
            pass(MUL, &d->scale[i], r, c, n, out);
        if (d->n_min) {
            pass(SET, &d->min[0], r, c, n, m);
            for (int i = 1; i < d->n_min; i++)
                pass(MUL, &d->min[i], r, c, n, m);
            pass_each(SUB, m, out, n);
        }
        out += n;
        c += n;
        nc -= n;
    }
    return RAD_OK;
}

/* ---- making ready */

static rad_status lane_init(struct decoder *d, struct lane *l, int p,
                            const void *const plane[], uint64_t rows, struct rad_err *err)
{
    const RadPlaneDesc *desc = &d->enc->plane[p];
    RadPlaneGeom g;

    RAD_TRY(rad_plane_geom(d->enc, p, rows, d->cols, &g, err));
    if (!plane[p] && g.bytes)
        return rad_fail(err, RAD_E_ARG, "plane '%s': no bytes given", desc->role);
    l->base = plane[p];
    l->row_bytes = g.row_bytes;
    l->n_rows = g.rows;
    l->n_cols = g.cols;
    l->br = (uint64_t)desc->block[0];
    l->bc = (uint64_t)desc->block[1];
    l->dtype = (int)desc->dtype;

    int bits = rad_dtype_bits(l->dtype);
    uint64_t reads = l->bc > 1 ? d->elements / l->bc : l->bc ? d->elements : 1;
    if (bits <= 8 && rad_dtype_kind(l->dtype) == 'f' && reads >= 2u << bits) {
        float *t = d->lut[d->n_lut++];

        for (unsigned v = 0; v < 1u << bits; v++) {
            uint8_t b = (uint8_t)v;

            t[v] = rad_get_f32(&b, l->dtype, 0);
        }
        l->lut = t;
    }
    return RAD_OK;
}

static rad_status chain_init(struct decoder *d, const char *base, struct lane *l, int *n,
                             const void *const plane[], uint64_t rows,
                             struct rad_err *err)
{
    char role[24];
    int p = rad_encoding_find(d->enc, base);

    for (*n = 0; p >= 0; p = rad_encoding_find(d->enc, role)) {
        RAD_TRY(lane_init(d, &l[(*n)++], p, plane, rows, err));
        (void)snprintf(role, sizeof role, "%s.%d", base, *n);
    }
    return RAD_OK;
}

static rad_status decoder_init(struct decoder *d, const RadEncoding *e,
                               const void *const plane[], uint64_t rows, uint64_t cols,
                               uint64_t elements, struct rad_err *err)
{
    memset(d, 0, offsetof(struct decoder, lut));
    d->enc = e;
    d->cols = cols;
    d->elements = elements;
    RAD_TRY(rad_encoding_validate(e, err));
    if (strcmp(e->scheme, "plain") == 0)
        return lane_init(d, &d->codes, 0, plane, rows, err);
    if (strcmp(e->scheme, "affine"))
        return rad_fail(err, RAD_E_UNSUPPORTED,
                        "scheme '%s': only its quantiser can decode it", e->scheme);

    int grid = rad_encoding_find(e, "grid"), table = rad_encoding_find(e, "table");
    int signs = rad_encoding_find(e, "signs"), zero = rad_encoding_find(e, "zero");
    RAD_TRY(lane_init(d, &d->codes, 0, plane, rows, err));
    RAD_TRY(chain_init(d, "scale", d->scale, &d->n_scale, plane, rows, err));
    RAD_TRY(chain_init(d, "min", d->min, &d->n_min, plane, rows, err));
    d->has_signs = signs >= 0;
    d->has_zero = zero >= 0;
    d->has_grid = grid >= 0;
    d->has_table = table >= 0;
    if (d->has_signs)
        RAD_TRY(lane_init(d, &d->signs, signs, plane, rows, err));
    if (d->has_zero)
        RAD_TRY(lane_init(d, &d->zero, zero, plane, rows, err));
    if (d->has_grid)
        RAD_TRY(lane_init(d, &d->book, grid, plane, rows, err));
    if (d->has_table) {
        RAD_TRY(lane_init(d, &d->book, table, plane, rows, err));
        if (d->book.n_cols <= 256) {
            float *t = d->lut[d->n_lut++];

            int bits = rad_dtype_bits(d->codes.dtype);

            unpack(&d->book, d->book.base, 0, (size_t)d->book.n_cols, t);
            d->table = t;
            if (rad_dtype_kind(d->codes.dtype) == 'u' && bits <= 8
                && 1u << bits <= d->book.n_cols) {
                d->codes.lut = t;        /* no code can lie outside */
                d->has_table = false;
            }
        }
    }
    return RAD_OK;
}

/* ---- transforms, undone a row at a time */

struct undo {
    uint64_t span;             /* fwht */
    int32_t *index;            /* perm, or the pairs of all stages */
    float *cos_sin;            /* givens: (cos, sin) of each pair */
    const uint8_t *scale;      /* givens: t.scale or NULL */
    uint64_t stages;
    float *row;                /* perm: the row as stored */
};

static void undo_release(struct undo *u)
{
    radi_free(u->index);
    radi_free(u->cos_sin);
    radi_free(u->row);
}

/* Every index inside the row and none twice in a stage, or elements would be
 * left without a value. */
static rad_status check_index(const int32_t *ix, uint64_t stages, uint64_t cols,
                              const char *role, struct rad_err *err)
{
    uint8_t *seen = radi_malloc((size_t)cols);
    rad_status st = RAD_OK;

    if (!seen)
        return rad_fail(err, RAD_E_NOMEM, "%s: %llu columns", role, (unsigned long long)cols);
    for (uint64_t s = 0; s < stages && !st; s++, ix += cols) {
        memset(seen, 0, (size_t)cols);
        for (uint64_t j = 0; j < cols; j++) {
            if (ix[j] < 0 || (uint64_t)ix[j] >= cols || seen[ix[j]]) {
                st = rad_fail(err, RAD_E_FORMAT, "plane '%s': row %llu: column %d is %s", role,
                              (unsigned long long)s, ix[j],
                              ix[j] < 0 || (uint64_t)ix[j] >= cols ? "outside the weight"
                                                                    : "there twice");
                break;
            }
            seen[ix[j]] = 1;
        }
    }
    radi_free(seen);
    return st;
}

static rad_status undo_init(struct undo *u, const RadEncoding *e, const void *const plane[],
                            uint64_t cols, struct rad_err *err)
{
    memset(u, 0, sizeof *u);
    if (strcmp(e->scheme, "affine") || !e->transform[0]
        || radi_transform_fwht(e, &u->span))
        return RAD_OK;

    bool perm = strcmp(e->transform, "perm") == 0;
    const char *role = perm ? "t.perm" : "t.pairs";
    int p = rad_encoding_find(e, role);
    size_t n, bytes;
    u->stages = (uint64_t)e->plane[p].extent[0];
    if (!plane[p])
        return rad_fail(err, RAD_E_ARG, "plane '%s': no bytes given", role);
    if (!radi_mul_size((size_t)u->stages, (size_t)cols, &n) || !radi_mul_size(n, 4, &bytes))
        return rad_fail(err, RAD_E_FORMAT, "plane '%s': size overflows", role);
    u->index = radi_malloc(bytes);
    if (perm)
        u->row = radi_malloc((size_t)cols * sizeof *u->row);
    else
        u->cos_sin = radi_malloc(bytes);
    if (!u->index || (perm ? !u->row : !u->cos_sin))
        return rad_fail(err, RAD_E_NOMEM, "transform '%s': %zu bytes", e->transform, bytes);
    memcpy(u->index, plane[p], bytes);
    RAD_TRY(check_index(u->index, u->stages, cols, role, err));
    if (perm)
        return RAD_OK;

    const uint8_t *angle = plane[rad_encoding_find(e, "t.angle")];
    if (!angle)
        return rad_fail(err, RAD_E_ARG, "plane 't.angle': no bytes given");
    for (size_t k = 0; k < n / 2; k++) {
        float t = rad_get_f32(angle, RAD_DT_f32, k);

        u->cos_sin[2 * k] = cosf(t);
        u->cos_sin[2 * k + 1] = sinf(t);
    }
    p = rad_encoding_find(e, "t.scale");
    if (p >= 0 && !plane[p])
        return rad_fail(err, RAD_E_ARG, "plane 't.scale': no bytes given");
    u->scale = p >= 0 ? plane[p] : NULL;
    return RAD_OK;
}

static void undo_fwht(float *x, uint64_t span, uint64_t cols)
{
    for (uint64_t at = 0; at < cols; at += span, x += span)
        for (uint64_t h = 1; h < span; h <<= 1)
            for (uint64_t i = 0; i < span; i += 2 * h)
                for (uint64_t j = i; j < i + h; j++) {
                    float a = x[j], b = x[j + h];

                    x[j] = a + b;
                    x[j + h] = a - b;
                }
}

static void undo_row(const struct undo *u, float *x, uint64_t cols)
{
    if (u->span) {
        undo_fwht(x, u->span, cols);
    } else if (u->row) {         /* v[j] = w[perm[j]] */
        memcpy(u->row, x, (size_t)cols * sizeof *x);
        for (uint64_t j = 0; j < cols; j++)
            x[u->index[j]] = u->row[j];
    } else if (u->index) {       /* stages backwards, the opposite angle */
        for (uint64_t s = u->stages; s-- > 0;) {
            const int32_t *pair = u->index + s * cols;
            const float *cs = u->cos_sin + s * cols;

            for (uint64_t k = 0; k < cols; k += 2) {
                float a = x[pair[k]], b = x[pair[k + 1]];

                x[pair[k]] = a * cs[k] - b * cs[k + 1];
                x[pair[k + 1]] = b * cs[k] + a * cs[k + 1];
            }
        }
        for (uint64_t j = 0; u->scale && j < cols; j++)
            x[j] /= rad_get_f32(u->scale, RAD_DT_f32, j);
    }
}

/* ---- public */

rad_status rad_decode_rows(const RadEncoding *e, const void *const plane[], uint64_t rows,
                           uint64_t cols, uint64_t r0, uint64_t n, float *out, size_t pitch,
                           struct rad_err *err)
{
    struct decoder d;
    struct undo u;
    rad_status st;

    if (!radi_span_ok(r0, n, rows))
        return rad_fail(err, RAD_E_ARG, "rows %llu+%llu of %llu", (unsigned long long)r0,
                        (unsigned long long)n, (unsigned long long)rows);
    if (pitch < cols)
        return rad_fail(err, RAD_E_ARG, "pitch %zu, want at least %llu", pitch,
                        (unsigned long long)cols);
    if (!n || !cols)
        return RAD_OK;
    RAD_TRY(decoder_init(&d, e, plane, rows, cols, n * cols, err));
    st = undo_init(&u, e, plane, cols, err);
    for (uint64_t r = r0; r < r0 + n && !st; r++, out += pitch) {
        st = decode_cols(&d, r, 0, cols, out, err);
        if (!st)
            undo_row(&u, out, cols);
    }
    undo_release(&u);
    return st;
}

rad_status rad_decode_span(const RadEncoding *e, const void *const plane[], uint64_t rows,
                           uint64_t cols, uint64_t r, uint64_t c0, uint64_t nc, float *out,
                           struct rad_err *err)
{
    struct decoder d;

    if (r >= rows || !radi_span_ok(c0, nc, cols))
        return rad_fail(err, RAD_E_ARG, "row %llu of %llu, columns %llu+%llu of %llu",
                        (unsigned long long)r, (unsigned long long)rows,
                        (unsigned long long)c0, (unsigned long long)nc,
                        (unsigned long long)cols);
    if (e->transform[0])
        return rad_fail(err, RAD_E_UNSUPPORTED,
                        "transform '%s': part of a row cannot be decoded", e->transform);
    if (!nc)
        return RAD_OK;
    RAD_TRY(decoder_init(&d, e, plane, rows, cols, nc, err));
    return decode_cols(&d, r, c0, nc, out, err);
}
