/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings against small formulas of their own: values of every type, every
 * role, transforms, spans, slices, spelling and the rules. `bench` prints the
 * decoder's rates. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <rad/rad_encoding.h>

#include "tap.h"

#define FAIL(...) tap_note(__FILE__, __LINE__, __VA_ARGS__)

/* xorshift64*: the same numbers everywhere */
static uint64_t check_rand(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545f4914f6cdd1dull;
}

/* ---- a second decoder, one element at a time, as the definition reads */

static uint64_t bits_at(const uint8_t *row, uint64_t bit, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v |= (uint64_t)(row[(bit + (uint64_t)i) / 8] >> ((bit + (uint64_t)i) % 8) & 1) << i;
    return v;
}

static double small_float(uint64_t v, int ebits, int mbits, int bias)
{
    uint64_t m = v & ((1u << mbits) - 1), e = v >> mbits & ((1u << ebits) - 1);
    double f = e ? (1 + (double)m / (1 << mbits)) * pow(2, (double)e - bias)
                 : (double)m / (1 << mbits) * pow(2, 1 - bias);

    return v >> (ebits + mbits) & 1 ? -f : f;
}

static double value_of(int dt, uint64_t v)
{
    int bits = rad_dtype_bits(dt);
    float f;

    switch (dt) {
    case RAD_DT_f32:
        memcpy(&f, &v, 4);
        return (double)f;
    case RAD_DT_bf16:
        v <<= 16;
        memcpy(&f, &v, 4);
        return (double)f;
    case RAD_DT_f16:
        if ((v >> 10 & 31) == 31)
            return v & 1023 ? (double)NAN : v >> 15 ? -(double)INFINITY : (double)INFINITY;
        return small_float(v, 5, 10, 15);
    case RAD_DT_fp8_e4m3: return (v & 127) == 127 ? (double)NAN : small_float(v, 4, 3, 7);
    case RAD_DT_fp8_e5m2:
        if ((v >> 2 & 31) == 31)
            return v & 3 ? (double)NAN : v >> 7 ? -(double)INFINITY : (double)INFINITY;
        return small_float(v, 5, 2, 15);
    case RAD_DT_fp4_e2m1: return small_float(v, 2, 1, 1);
    case RAD_DT_fp6_e2m3: return small_float(v, 2, 3, 1);
    case RAD_DT_fp6_e3m2: return small_float(v, 3, 2, 3);
    case RAD_DT_e8m0: return v == 255 ? (double)NAN : pow(2, (double)v - 127);
    default: break;
    }
    if (rad_dtype_kind(dt) == 'i') {
        int64_t s = bits == 64 ? (int64_t)v
                               : (int64_t)(v << (64 - bits)) >> (64 - bits);
        return (double)(float)s;
    }
    return (double)(float)v;
}

struct weight {
    RadEncoding e;
    uint64_t rows, cols;
    uint8_t *plane[RAD_MAX_PLANES];
    uint64_t bytes[RAD_MAX_PLANES];
};

static float element(const struct weight *w, const char *role, uint64_t r, uint64_t c)
{
    int p = rad_encoding_find(&w->e, role);
    const RadPlaneDesc *d = &w->e.plane[p];
    RadPlaneGeom g;
    int bits = rad_dtype_bits((int)d->dtype);

    if (rad_plane_geom(&w->e, p, w->rows, w->cols, &g, NULL))
        FAIL("geometry of %s", role);
    if (d->kind == RAD_PLANE_TILED) {
        r = d->block[0] ? r / (uint64_t)d->block[0] : 0;
        c = d->block[1] ? c / (uint64_t)d->block[1] : 0;
    }
    return (float)value_of((int)d->dtype,
                           bits_at(w->plane[p] + r * g.row_bytes, c * (uint64_t)bits, bits));
}

static float decode_one(const struct weight *w, uint64_t r, uint64_t c)
{
    float x = element(w, "codes", r, c), m = 0;
    char role[24];

    if (rad_encoding_find(&w->e, "grid") >= 0)
        x = element(w, "grid", (uint64_t)x, c % (uint64_t)w->e.plane[0].block[1]);
    if (rad_encoding_find(&w->e, "table") >= 0)
        x = element(w, "table", 0, (uint64_t)x);
    if (rad_encoding_find(&w->e, "signs") >= 0 && element(w, "signs", r, c) != 0)
        x = -x;
    if (rad_encoding_find(&w->e, "zero") >= 0)
        x -= element(w, "zero", r, c);
    for (int i = 0; i < 8; i++) {
        snprintf(role, sizeof role, i ? "scale.%d" : "scale", i);
        if (rad_encoding_find(&w->e, role) >= 0)
            x *= element(w, role, r, c);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(role, sizeof role, i ? "min.%d" : "min", i);
        if (rad_encoding_find(&w->e, role) >= 0)
            m = i ? m * element(w, role, r, c) : element(w, role, r, c);
    }
    if (rad_encoding_find(&w->e, "min") >= 0)
        x -= m;
    return x;
}

/* ---- making weights */

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static void fill(struct weight *w)
{
    for (int p = 0; p < w->e.n_planes; p++) {
        RadPlaneGeom g;
        struct rad_err err = { 0 };

        if (rad_plane_geom(&w->e, p, w->rows, w->cols, &g, &err)) {
            FAIL("%s", err.text);
            abort();
        }
        w->bytes[p] = g.bytes;
        w->plane[p] = malloc(g.bytes);       /* exact: ASan sees an overrun */
        if (!w->plane[p])
            abort();
        for (uint64_t i = 0; i < g.bytes; i++)
            w->plane[p][i] = (uint8_t)(check_rand(&seed) >> 33);
    }
}

static void drop(struct weight *w)
{
    for (int p = 0; p < w->e.n_planes; p++)
        free(w->plane[p]);
}

static int same_float(float a, float b)
{
    return (a != a && b != b) || memcmp(&a, &b, 4) == 0;
}

static const void *const *planes(const struct weight *w)
{
    return (const void *const *)w->plane;
}

/* Every element by both decoders, as rows and as spans. */
static void compare(const struct weight *w)
{
    size_t n = (size_t)(w->rows * w->cols);
    float *rows = malloc(n * sizeof *rows), span[64];
    struct rad_err err = { 0 };
    char text[256];

    rad_encoding_text(&w->e, text, sizeof text);
    if (rad_encoding_validate(&w->e, &err)
        || rad_decode_rows(&w->e, planes(w), w->rows, w->cols, 0, w->rows, rows,
                           (size_t)w->cols, &err)) {
        FAIL("%s: %s", text, err.text);
        free(rows);
        return;
    }
    for (uint64_t r = 0; r < w->rows; r++) {
        for (uint64_t c = 0; c < w->cols; c++) {
            float want = decode_one(w, r, c), got = rows[r * w->cols + c];

            if (!same_float(want, got))
                FAIL("%s at %d,%d of %dx%d: %a, want %a", text, (int)r, (int)c, (int)w->rows,
                     (int)w->cols, (double)got, (double)want);
        }
        uint64_t nc = check_rand(&seed) % (w->cols < 64 ? w->cols : 64) + 1;
        uint64_t c0 = check_rand(&seed) % (w->cols - nc + 1);
        if (rad_decode_span(&w->e, planes(w), w->rows, w->cols, r, c0, nc, span, &err))
            FAIL("%s: %s", text, err.text);
        for (uint64_t c = 0; c < nc; c++)
            if (!same_float(span[c], rows[r * w->cols + c0 + c]))
                FAIL("%s: span %d+%d of row %d differs at %d", text, (int)c0, (int)nc, (int)r,
                     (int)c);
    }
    free(rows);
}

static void add(RadEncoding *e, const char *role, int dt, int kind, int64_t r, int64_t c)
{
    CHECK(rad_encoding_add(e, role, dt, kind, r, c) == RAD_OK);
}

#define TILE(role, dt, r, c) add(&w.e, role, RAD_DT_##dt, RAD_PLANE_TILED, r, c)
#define TABLE(role, dt, r, c) add(&w.e, role, RAD_DT_##dt, RAD_PLANE_TABLE, r, c)

/* ---- cases */

static void values_by_hand(void)
{
    static const struct {
        int dt;
        uint64_t code;
        double value;
    } known[] = {
        { RAD_DT_f32, 0x3fc00000, 1.5 },     { RAD_DT_f16, 0x3e00, 1.5 },
        { RAD_DT_f16, 0x0001, 0x1p-24 },     { RAD_DT_f16, 0x7bff, 65504 },
        { RAD_DT_bf16, 0xbfc0, -1.5 },       { RAD_DT_fp8_e4m3, 0x7e, 448 },
        { RAD_DT_fp8_e4m3, 0x01, 0x1p-9 },   { RAD_DT_fp8_e4m3, 0xb8, -1 },
        { RAD_DT_fp8_e5m2, 0x7b, 57344 },    { RAD_DT_fp8_e5m2, 0x01, 0x1p-16 },
        { RAD_DT_fp6_e2m3, 0x1f, 7.5 },      { RAD_DT_fp6_e2m3, 0x21, -0.125 },
        { RAD_DT_fp6_e3m2, 0x1f, 28 },       { RAD_DT_fp6_e3m2, 0x01, 0.0625 },
        { RAD_DT_fp4_e2m1, 0x7, 6 },         { RAD_DT_fp4_e2m1, 0x1, 0.5 },
        { RAD_DT_fp4_e2m1, 0xb, -1.5 },      { RAD_DT_e8m0, 127, 1 },
        { RAD_DT_e8m0, 0, 0x1p-127 },        { RAD_DT_e8m0, 254, 0x1p127 },
        { RAD_DT_i2, 2, -2 },  { RAD_DT_i3, 4, -4 },  { RAD_DT_i4, 8, -8 },
        { RAD_DT_i4, 7, 7 },   { RAD_DT_i5, 31, -1 }, { RAD_DT_i6, 32, -32 },
        { RAD_DT_i7, 64, -64 },{ RAD_DT_i8, 128, -128 }, { RAD_DT_i16, 0x8000, -32768 },
        { RAD_DT_i32, 0xfffffff6, -10 },     { RAD_DT_i64, ~0ull, -1 },
        { RAD_DT_u1, 1, 1 },   { RAD_DT_u2, 3, 3 },   { RAD_DT_u3, 7, 7 },
        { RAD_DT_u4, 15, 15 }, { RAD_DT_u5, 31, 31 }, { RAD_DT_u6, 63, 63 },
        { RAD_DT_u7, 127, 127 }, { RAD_DT_u8, 255, 255 }, { RAD_DT_u9, 511, 511 },
        { RAD_DT_u10, 1023, 1023 }, { RAD_DT_u11, 2047, 2047 }, { RAD_DT_u12, 4095, 4095 },
        { RAD_DT_u16, 65535, 65535 }, { RAD_DT_u32, 4294967295u, 4294967296.0 },
        { RAD_DT_bool, 1, 1 },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct weight w = { .rows = 1, .cols = 3 };
        float out[3];
        int bits = rad_dtype_bits(known[i].dt);

        rad_encoding_plain(&w.e, known[i].dt);
        fill(&w);
        for (int b = 0; b < bits; b++) {     /* element 1 of the row */
            int at = bits + b;

            w.plane[0][at / 8] = (uint8_t)((w.plane[0][at / 8] & ~(1 << (at % 8)))
                                           | (int)(known[i].code >> b & 1) << (at % 8));
        }
        CHECK(rad_decode_rows(&w.e, planes(&w), 1, 3, 0, 1, out, 3, NULL) == RAD_OK);
        if ((double)out[1] != known[i].value)
            FAIL("%s 0x%llx: %a, want %a", rad_dtype_name(known[i].dt),
                 (unsigned long long)known[i].code, (double)out[1], known[i].value);
        drop(&w);
    }
    /* u9: five elements take six bytes, element 0 in the low bits of byte 0 */
    RadEncoding e;
    RadPlaneGeom g;
    rad_encoding_plain(&e, RAD_DT_u9);
    CHECK(rad_plane_geom(&e, 0, 2, 5, &g, NULL) == RAD_OK && g.row_bytes == 6
          && g.bytes == 12);
}

static void plain_types(void)
{
    static const uint64_t cols[] = { 1, 3, 7, 8, 33, 511, 512, 513, 1100 };
#define X(n, id, bits, kind) id,
    static const int types[] = { RAD_DTYPES(X) };
#undef X

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
            struct weight w = { .rows = 3, .cols = cols[c] };

            rad_encoding_plain(&w.e, types[t]);
            fill(&w);
            compare(&w);
            drop(&w);
        }
}

static void affine_types(void)
{
#define X(n, id, bits, kind) id,
    static const int types[] = { RAD_DTYPES(X) };
#undef X
    static const int64_t block[][2] = { { 1, 1 }, { 1, 32 }, { 2, 16 }, { 0, 0 }, { 0, 1 },
                                        { 1, 0 }, { 3, 128 }, { 1, 5 }, { 128, 128 } };

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t b = 0; b < sizeof block / sizeof block[0]; b++) {
            struct weight w = { .rows = 5, .cols = 32 * (1 + t % 3) + t % 2 * 600 };
            int other = types[(t * 7 + b) % (sizeof types / sizeof types[0])];

            rad_encoding_affine(&w.e);
            add(&w.e, "codes", types[t], RAD_PLANE_TILED, 1, 1);
            add(&w.e, "scale", other, RAD_PLANE_TILED, block[b][0], block[b][1]);
            if (b % 2)
                add(&w.e, "zero", types[t], RAD_PLANE_TILED, block[8 - b][0], block[8 - b][1]);
            if (b % 3)
                TILE("scale.1", f16, 1, 256);
            if (b % 3 == 2)
                TILE("scale.2", f32, 0, 0);
            if (b % 4 == 3) {
                add(&w.e, "min", other, RAD_PLANE_TILED, 1, 16);
                TILE("min.1", f16, 1, 256);
            }
            fill(&w);
            compare(&w);
            drop(&w);
        }
}

static void codebooks(void)
{
    for (int k = 0; k < 6; k++) {
        struct weight w = { .rows = 3, .cols = 531 };

        rad_encoding_affine(&w.e);
        switch (k) {
        case 0: TILE("codes", u4, 1, 1); TABLE("table", i8, 1, 16); break;
        case 1: TILE("codes", u8, 1, 8); TABLE("grid", u8, 256, 8); break;
        case 2: TILE("codes", u9, 1, 4); TABLE("grid", i8, 512, 4); break;
        case 3: TILE("codes", u11, 1, 8); TABLE("grid", f16, 2048, 8); break;
        case 4: TILE("codes", u10, 1, 1); TABLE("table", f32, 1, 1024); break;
        default: TILE("codes", u5, 1, 1); TABLE("table", bf16, 1, 32); break;
        }
        if (k % 2)
            TILE("signs", u1, 1, 1);
        TILE("scale", u5, 1, 32);
        TILE("scale.1", f16, 1, 256);
        if (k == 3)
            TILE("zero", bf16, 1, 8);
        fill(&w);
        compare(&w);
        drop(&w);
    }
    /* a code outside its table or grid */
    for (int k = 0; k < 3; k++) {
        struct weight w = { .rows = 1, .cols = 16 };
        struct rad_err err = { 0 };
        float out[16];

        rad_encoding_affine(&w.e);
        if (k == 0) {
            TILE("codes", u4, 1, 1);
            TABLE("table", f32, 1, 15);
        } else if (k == 1) {
            TILE("codes", u8, 1, 4);
            TABLE("grid", f32, 100, 4);
        } else {
            TILE("codes", i4, 1, 1);
            TABLE("table", f32, 1, 16);
        }
        fill(&w);
        memset(w.plane[0], 0, w.bytes[0]);
        CHECK(rad_decode_rows(&w.e, planes(&w), 1, 16, 0, 1, out, 16, &err) == RAD_OK);
        w.plane[0][w.bytes[0] - 1] = 0xf0;
        CHECK(rad_decode_rows(&w.e, planes(&w), 1, 16, 0, 1, out, 16, &err) == RAD_E_FORMAT);
        CHECK(strstr(err.text, k == 1 ? "outside the grid of 100" : "outside the table of 1"));
        drop(&w);
    }
}

/* The forward transforms, in double, as the format defines them. */
static void forward_fwht(double *w, size_t cols, size_t n)
{
    for (size_t b = 0; b < cols; b += n) {
        double v[256];

        for (size_t j = 0; j < n; j++) {
            v[j] = 0;
            for (size_t i = 0; i < n; i++)   /* H[i][j] = (-1)^popcount(i & j) */
                v[j] += (__builtin_popcountll(i & j) & 1 ? -1 : 1) * w[b + i];
            v[j] /= (double)n;
        }
        memcpy(w + b, v, n * sizeof *v);
    }
}

static void transforms(void)
{
    enum { ROWS = 3, COLS = 64, STAGES = 5 };
    static const char *const name[] = { "fwht2", "fwht16", "fwht64", "perm", "givens",
                                        "givens" };

    for (int k = 0; k < 6; k++) {
        struct weight w = { .rows = ROWS, .cols = COLS };
        double want[ROWS][COLS];
        float got[ROWS][COLS];
        int32_t order[COLS], pair[STAGES][COLS];
        float angle[STAGES][COLS / 2], scale[COLS];
        struct rad_err err = { 0 };

        rad_encoding_affine(&w.e);
        memcpy(w.e.transform, name[k], strlen(name[k]));
        TILE("codes", f32, 1, 1);
        if (k == 3)
            TABLE("t.perm", i32, 1, COLS);
        if (k >= 4) {
            TABLE("t.pairs", i32, STAGES, COLS);
            TABLE("t.angle", f32, STAGES, COLS / 2);
        }
        if (k == 5)
            TABLE("t.scale", f32, 1, COLS);
        fill(&w);
        for (int j = 0; j < COLS; j++) {
            scale[j] = 0.5f + (float)(check_rand(&seed) % 1000) / 500.0f;
            order[j] = j;
        }
        for (int s = 0; s < STAGES; s++) {
            for (int j = COLS - 1; j > 0; j--) {
                int o = (int)(check_rand(&seed) % (uint64_t)(j + 1));
                int32_t t = order[j];

                order[j] = order[o];
                order[o] = t;
            }
            memcpy(pair[s], order, sizeof order);
            for (int j = 0; j < COLS / 2; j++)
                angle[s][j] = (float)(check_rand(&seed) % 6283) / 1000.0f;
        }
        for (int r = 0; r < ROWS; r++) {
            double v[COLS];
            float f[COLS];

            for (int c = 0; c < COLS; c++)
                v[c] = want[r][c] = (double)(int64_t)(check_rand(&seed) % 2001) / 1000 - 1;
            if (k < 3)
                forward_fwht(v, COLS, (size_t)atoi(name[k] + 4));
            if (k == 3)
                for (int j = 0; j < COLS; j++)
                    v[j] = want[r][order[j]];
            for (int j = 0; j < COLS && k == 5; j++)
                v[j] *= (double)scale[j];
            for (int s = 0; s < STAGES && k >= 4; s++)
                for (int j = 0; j < COLS; j += 2) {
                    double t = (double)angle[s][j / 2];
                    double a = v[pair[s][j]], b = v[pair[s][j + 1]];

                    v[pair[s][j]] = a * cos(t) + b * sin(t);
                    v[pair[s][j + 1]] = b * cos(t) - a * sin(t);
                }
            for (int c = 0; c < COLS; c++)
                f[c] = (float)v[c];
            memcpy(w.plane[0] + (size_t)r * sizeof f, f, sizeof f);
        }
        if (k == 3)
            memcpy(w.plane[1], order, sizeof order);
        if (k >= 4) {
            memcpy(w.plane[1], pair, sizeof pair);
            memcpy(w.plane[2], angle, sizeof angle);
        }
        if (k == 5)
            memcpy(w.plane[3], scale, sizeof scale);
        if (rad_decode_rows(&w.e, planes(&w), ROWS, COLS, 0, ROWS, got[0], COLS, &err))
            FAIL("%s: %s", name[k], err.text);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLS; c++)
                if (!(fabs((double)got[r][c] - want[r][c]) <= 4e-6))
                    FAIL("%s at %d,%d: %g, want %g", name[k], r, c, (double)got[r][c],
                         want[r][c]);
        CHECK(rad_decode_span(&w.e, planes(&w), ROWS, COLS, 0, 0, 4, got[0], &err)
              == RAD_E_UNSUPPORTED);
        if (k == 3) {                        /* not a permutation, or outside */
            order[0] = order[1];
            memcpy(w.plane[1], order, sizeof order);
            CHECK(rad_decode_rows(&w.e, planes(&w), ROWS, COLS, 0, 1, got[0], COLS, &err)
                  == RAD_E_FORMAT && strstr(err.text, "t.perm"));
            order[0] = COLS;
            memcpy(w.plane[1], order, sizeof order);
            CHECK(rad_decode_rows(&w.e, planes(&w), ROWS, COLS, 0, 1, got[0], COLS, &err)
                  == RAD_E_FORMAT && strstr(err.text, "outside"));
        }
        drop(&w);
    }
}

static void slices(void)
{
    for (int k = 0; k < 4; k++) {
        struct weight w = { .rows = 12, .cols = 96 }, s = { .rows = 4, .cols = 32 };
        RadSlice cut = { 4, 4, 32, 32 };
        float all[12][96], part[4][32];
        struct rad_err err = { 0 };

        rad_encoding_affine(&w.e);
        switch (k) {
        case 0: TILE("codes", u3, 1, 1); TILE("scale", f16, 4, 32); break;
        case 1: TILE("codes", u4, 1, 1); TILE("scale", bf16, 0, 0);
                TABLE("table", f32, 1, 16); break;
        case 2: TILE("codes", u9, 1, 4); TABLE("grid", i8, 512, 4);
                TILE("signs", u1, 1, 1); TILE("scale", u5, 1, 16); break;
        default: TILE("codes", i4, 1, 1); TILE("scale", f16, 0, 1);
                 memcpy(w.e.transform, "fwht32", 6); break;
        }
        fill(&w);
        s.e = w.e;
        fill(&s);
        for (int p = 0; p < w.e.n_planes; p++)
            if (rad_plane_slice(&w.e, p, w.plane[p], 12, 96, &cut, s.plane[p], s.bytes[p],
                                &err))
                FAIL("%d: %s", k, err.text);
        CHECK(!rad_decode_rows(&w.e, planes(&w), 12, 96, 0, 12, all[0], 96, &err));
        CHECK(!rad_decode_rows(&s.e, planes(&s), 4, 32, 0, 4, part[0], 32, &err));
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 32; c++)
                if (!same_float(all[r + 4][c + 32], part[r][c]))
                    FAIL("%d: slice differs at %d,%d", k, r, c);
        drop(&w);
        drop(&s);
    }
    struct weight w = { .rows = 10, .cols = 70 };
    struct rad_err err = { 0 };
    rad_encoding_affine(&w.e);
    TILE("codes", u3, 1, 1);
    TILE("scale", f16, 4, 32);
    CHECK(rad_encoding_slice(&w.e, 10, 70, &(RadSlice){ 8, 2, 64, 6 }, &err) == RAD_OK);
    CHECK(rad_encoding_slice(&w.e, 10, 70, &(RadSlice){ 2, 4, 0, 32 }, &err) == RAD_E_SHAPE
          && strstr(err.text, "scale"));
    CHECK(rad_encoding_slice(&w.e, 10, 70, &(RadSlice){ 0, 4, 0, 33 }, &err) == RAD_E_SHAPE);
    CHECK(rad_encoding_slice(&w.e, 10, 70, &(RadSlice){ 8, 4, 0, 32 }, &err) == RAD_E_SHAPE);
    /* odd columns: bits move, and the neighbour's do not come along */
    rad_encoding_plain(&w.e, RAD_DT_u3);
    uint8_t src[2] = { 0xff, 0xff }, dst[1] = { 0 };
    CHECK(!rad_plane_slice(&w.e, 0, src, 1, 5, &(RadSlice){ 0, 1, 1, 2 }, dst, 1, &err));
    CHECK(dst[0] == 0x3f);
}

static void spelling(void)
{
    struct weight w;
    char text[128];

#define SPELLS(want)                                                   \
    do {                                                               \
        rad_encoding_text(&w.e, text, sizeof text);                    \
        if (strcmp(text, want))                                        \
            FAIL("'%s', want '%s'", text, want);                       \
    } while (0)

    rad_encoding_plain(&w.e, RAD_BF16);
    SPELLS("bf16");
    rad_encoding_affine(&w.e);
    TILE("codes", fp8_e4m3, 1, 1);
    TILE("scale", bf16, 128, 128);
    SPELLS("fp8_e4m3*bf16[128x128]");
    w.e.plane[1].block[0] = w.e.plane[1].block[1] = 0;
    SPELLS("fp8_e4m3*bf16[*x*]");
    rad_encoding_affine(&w.e);
    TILE("codes", i4, 1, 1);
    TILE("scale", bf16, 1, 128);
    memcpy(w.e.transform, "fwht128", 7);
    SPELLS("i4*bf16[1x128]/fwht128");
    rad_encoding_affine(&w.e);
    TILE("codes", u2, 1, 1);
    TILE("scale", f16, 1, 128);
    TILE("zero", u8, 1, 128);
    SPELLS("u2*f16[1x128]-u8[1x128]");
    rad_encoding_affine(&w.e);
    TILE("codes", fp4_e2m1, 1, 1);
    TILE("scale", e8m0, 1, 32);
    SPELLS("fp4_e2m1*e8m0[1x32]");
    rad_encoding_affine(&w.e);
    TILE("codes", fp4_e2m1, 1, 1);
    TILE("scale", fp8_e4m3, 1, 16);
    TILE("scale.1", f32, 0, 0);
    SPELLS("fp4_e2m1*fp8_e4m3[1x16]*f32[*x*]");
    TILE("scale.2", bf16, 0, 1);
    SPELLS("fp4_e2m1*fp8_e4m3[1x16]*f32[*x*]*bf16[*x1]");
    rad_encoding_affine(&w.e);
    TILE("codes", u4, 1, 1);
    TILE("scale", fp8_e4m3, 1, 64);
    TILE("scale.1", f32, 0, 0);
    TABLE("table", f32, 1, 16);
    memcpy(w.e.transform, "fwht128", 7);
    SPELLS("affine:codes=u4[1x1],scale=fp8_e4m3[1x64],scale.1=f32[*x*],table=f32{1x16}/fwht128");
    CHECK(rad_encoding_text(&w.e, text, 8) == 82 && strcmp(text, "affine:") == 0);
}

static void rules(void)
{
    struct weight w;
    struct rad_err err = { 0 };

#define REFUSED(what)                                                       \
    do {                                                                    \
        err.text[0] = 0;                                                    \
        if (rad_encoding_validate(&w.e, &err) != RAD_E_FORMAT               \
            || !strstr(err.text, what))                                     \
            FAIL("'%s', want '%s'", err.text, what);                        \
    } while (0)
#define AFFINE() rad_encoding_affine(&w.e), TILE("codes", u4, 1, 1)

    rad_encoding_plain(&w.e, 0), w.e.plane[0].dtype = 6; REFUSED("dtype 6");
    w.e.plane[0].dtype = 256; REFUSED("dtype 256");
    rad_encoding_plain(&w.e, RAD_F32), w.e.plane[0].block[1] = 2; REFUSED("1x1");
    rad_encoding_plain(&w.e, RAD_F32), w.e.transform[0] = 'p'; REFUSED("transform");
    rad_encoding_plain(&w.e, RAD_F32), TILE("x", f32, 1, 1); REFUSED("2 planes");
    rad_encoding_plain(&w.e, RAD_F32), w.e.reserved = 1; REFUSED("reserved");
    rad_encoding_plain(&w.e, RAD_F32), w.e.n_planes = 0; REFUSED("0 planes");
    rad_encoding_plain(&w.e, RAD_F32), w.e.n_planes = 9; REFUSED("9 planes");
    rad_encoding_plain(&w.e, RAD_F32), memset(w.e.scheme, 'x', 24); REFUSED("scheme");
    rad_encoding_plain(&w.e, RAD_F32), w.e.scheme[23] = 'x'; REFUSED("scheme");
    rad_encoding_plain(&w.e, RAD_F32), w.e.transform[9] = 'x'; REFUSED("transform");
    rad_encoding_plain(&w.e, RAD_F32), memset(w.e.plane[0].role, 'x', 24); REFUSED("role");
    rad_encoding_plain(&w.e, RAD_F32), w.e.plane[0].role[0] = 0; REFUSED("plane 0");
    rad_encoding_plain(&w.e, RAD_F32), w.e.plane[3].dtype = 1; REFUSED("plane 3");
    rad_encoding_plain(&w.e, RAD_F32), w.e.plane[0].kind = 2; REFUSED("kind 2");
    rad_encoding_plain(&w.e, RAD_F32), w.e.plane[0].block[0] = -1; REFUSED("negative");
    rad_encoding_plain(&w.e, RAD_F32), w.e.plane[0].extent[0] = 1; REFUSED("extent");
    AFFINE(); REFUSED("nothing but codes");
    AFFINE(); TILE("scale", f32, 1, 1); TILE("scale", f32, 1, 1); REFUSED("twice");
    AFFINE(); TILE("bias", f32, 1, 1); REFUSED("unknown role 'bias'");
    AFFINE(); TILE("scale.1", f32, 1, 1); REFUSED("'scale' is missing");
    AFFINE(); TILE("min.2", f32, 1, 1); REFUSED("'min.1' is missing");
    AFFINE(); TABLE("scale", f32, 1, 1); REFUSED("'scale'");
    AFFINE(); TABLE("table", f32, 0, 1); REFUSED("extent 0x1");
    AFFINE(); TABLE("table", f32, 2, 16); REFUSED("one row");
    AFFINE(); TABLE("table", f32, 1, 16); TABLE("grid", f32, 16, 1); REFUSED("both");
    AFFINE(); TABLE("grid", f32, 16, 4); REFUSED("'grid'");
    AFFINE(); TILE("scale", f32, 1, 1); w.e.plane[0].block[1] = 8; REFUSED("'codes'");
    AFFINE(); TILE("scale", f32, 1, 1); w.e.plane[0].block[0] = 2; REFUSED("'codes'");
    AFFINE(); TILE("signs", u2, 1, 1); REFUSED("'signs'");
    AFFINE(); TABLE("zero", u2, 1, 1); REFUSED("'zero'");
    AFFINE(); TABLE("t.perm", i32, 1, 8); REFUSED("'t.perm'");
    AFFINE(); memcpy(w.e.transform, "fwht12", 6); REFUSED("fwht12");
    AFFINE(); memcpy(w.e.transform, "fwht1", 5); REFUSED("fwht1");
    AFFINE(); memcpy(w.e.transform, "fwht99999999999999999", 21); REFUSED("fwht9");
    AFFINE(); memcpy(w.e.transform, "spin", 4); REFUSED("spin");
    AFFINE(); memcpy(w.e.transform, "perm", 4); REFUSED("t.perm");
    AFFINE(); memcpy(w.e.transform, "givens", 6); REFUSED("t.pairs");
    AFFINE(); memcpy(w.e.transform, "givens", 6); TABLE("t.pairs", i32, 2, 8);
    TABLE("t.angle", f32, 2, 8); REFUSED("t.angle");
    rad_encoding_affine(&w.e), TILE("scale", f32, 1, 1), TILE("codes", u4, 1, 1);
    REFUSED("'codes'");
    rad_encoding_affine(&w.e), TILE("codes", fp4_e2m1, 1, 1), TABLE("table", f32, 1, 16);
    REFUSED("codebook");
    rad_encoding_affine(&w.e), memcpy(w.e.scheme, "mine\0\0", 6), TILE("blob", u8, 1, 1);
    CHECK(rad_encoding_validate(&w.e, &err) == RAD_OK);
    float out[4];
    uint8_t blob[4] = { 0 };
    const void *p[8] = { blob };
    CHECK(rad_decode_rows(&w.e, p, 1, 4, 0, 1, out, 4, &err) == RAD_E_UNSUPPORTED);
    for (int i = 1; i < RAD_MAX_PLANES; i++) {
        char role[24];

        snprintf(role, sizeof role, "p%d", i);
        add(&w.e, role, RAD_U8, RAD_PLANE_TILED, 1, 1);
    }
    CHECK(rad_encoding_add(&w.e, "x", RAD_U8, RAD_PLANE_TILED, 1, 1) == RAD_E_FULL);
    RadPlaneGeom g;
    rad_encoding_plain(&w.e, RAD_F32);
    CHECK(rad_plane_geom(&w.e, 0, UINT64_MAX, 2, &g, &err) == RAD_E_FORMAT);
    CHECK(rad_plane_geom(&w.e, 0, 1, UINT64_MAX / 4, &g, &err) == RAD_E_FORMAT);
    CHECK(rad_plane_geom(&w.e, 1, 1, 1, &g, &err) == RAD_E_ARG);
}

/* ---- rates */

static void rate(const char *name, struct weight *w)
{
    float *out = malloc((size_t)w->cols * sizeof *out);
    struct timespec a, b;
    double best = 1e9;

    fill(w);
    for (int rep = 0; rep < 5; rep++) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        for (uint64_t r = 0; r < w->rows; r++)
            if (rad_decode_rows(&w->e, planes(w), w->rows, w->cols, r, 1, out,
                                (size_t)w->cols, NULL))
                FAIL("%s", name);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
        best = s < best ? s : best;
    }
    printf("%-34s %7.0f M elements/s\n", name, (double)(w->rows * w->cols) / best / 1e6);
    drop(w);
    free(out);
}

static int bench(void)
{
    static const int plain[] = { RAD_F32, RAD_BF16, RAD_F16, RAD_I8, RAD_U8, RAD_DT_i4,
                                 RAD_DT_u4, RAD_DT_fp8_e4m3, RAD_DT_fp4_e2m1 };
    struct weight w = { .rows = 256, .cols = 4096 };
    char text[128];

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        rad_encoding_plain(&w.e, plain[i]);
        rad_encoding_text(&w.e, text, sizeof text);
        rate(text, &w);
    }
#define RATE() rad_encoding_text(&w.e, text, sizeof text), rate(text, &w)
    rad_encoding_affine(&w.e); TILE("codes", i4, 1, 1); TILE("scale", bf16, 1, 128); RATE();
    rad_encoding_affine(&w.e); TILE("codes", i8, 1, 1); TILE("scale", f16, 1, 32); RATE();
    rad_encoding_affine(&w.e); TILE("codes", u4, 1, 1); TILE("scale", f16, 1, 32);
    TILE("min", f16, 1, 32); RATE();
    rad_encoding_affine(&w.e); TILE("codes", u4, 1, 1); TILE("scale", u6, 1, 32);
    TILE("scale.1", f16, 1, 256); TILE("min", u6, 1, 32); TILE("min.1", f16, 1, 256); RATE();
    rad_encoding_affine(&w.e); TILE("codes", i6, 1, 1); TILE("scale", i8, 1, 16);
    TILE("scale.1", f16, 1, 256); RATE();
    rad_encoding_affine(&w.e); TILE("codes", fp8_e4m3, 1, 1); TILE("scale", bf16, 128, 128); RATE();
    rad_encoding_affine(&w.e); TILE("codes", fp4_e2m1, 1, 1); TILE("scale", e8m0, 1, 32); RATE();
    rad_encoding_affine(&w.e); TILE("codes", u4, 1, 1); TILE("scale", fp8_e4m3, 1, 64);
    TILE("scale.1", f32, 0, 0); TABLE("table", f32, 1, 16); RATE();
    rad_encoding_affine(&w.e); TILE("codes", u9, 1, 4); TABLE("grid", u8, 512, 4);
    TILE("signs", u1, 1, 1); TILE("scale", u5, 1, 32); TILE("scale.1", f16, 1, 256); RATE();
    rad_encoding_affine(&w.e); TILE("codes", i4, 1, 1); TILE("scale", bf16, 1, 128);
    memcpy(w.e.transform, "fwht128", 7); RATE();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return bench();
    TAP_RUN(values_by_hand);
    TAP_RUN(plain_types);
    TAP_RUN(affine_types);
    TAP_RUN(codebooks);
    TAP_RUN(transforms);
    TAP_RUN(slices);
    TAP_RUN(spelling);
    TAP_RUN(rules);
    return tap_done();
}
