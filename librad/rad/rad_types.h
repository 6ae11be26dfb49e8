/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, tensors, and number conversions (inline: plugins have no other
 * code from the core). Ids and spellings: container format, "Data types". */
#ifndef RAD_TYPES_H
#define RAD_TYPES_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <rad/rad_abi.h>

/*       name       id  bits  kind: f float, i signed, u unsigned, b bool */
#define RAD_DTYPES(X)            \
    X(f32,       1, 32, 'f')     \
    X(f16,       2, 16, 'f')     \
    X(bf16,      3, 16, 'f')     \
    X(fp8_e4m3,  4,  8, 'f')     \
    X(fp8_e5m2,  5,  8, 'f')     \
    X(i8,        8,  8, 'i')     \
    X(u8,        9,  8, 'u')     \
    X(i16,      10, 16, 'i')     \
    X(i32,      11, 32, 'i')     \
    X(i64,      12, 64, 'i')     \
    X(u32,      13, 32, 'u')     \
    X(bool,     14,  8, 'b')     \
    X(i4,       16,  4, 'i')     \
    X(i2,       17,  2, 'i')     \
    X(fp4_e2m1, 18,  4, 'f')     \
    X(u4,       19,  4, 'u')     \
    X(u2,       20,  2, 'u')     \
    X(e8m0,     21,  8, 'f')     \
    X(u1,       22,  1, 'u')     \
    X(i3,       23,  3, 'i')     \
    X(u3,       24,  3, 'u')     \
    X(i5,       25,  5, 'i')     \
    X(u5,       26,  5, 'u')     \
    X(i6,       27,  6, 'i')     \
    X(u6,       28,  6, 'u')     \
    X(i7,       29,  7, 'i')     \
    X(u7,       30,  7, 'u')     \
    X(u9,       31,  9, 'u')     \
    X(u10,      32, 10, 'u')     \
    X(u11,      33, 11, 'u')     \
    X(u12,      34, 12, 'u')     \
    X(fp6_e2m3, 35,  6, 'f')     \
    X(fp6_e3m2, 36,  6, 'f')     \
    X(u16,      37, 16, 'u')

typedef enum RadDtype {
    RAD_DT_NONE = 0,
#define X(n, id, bits, kind) RAD_DT_##n = id,
    RAD_DTYPES(X)
#undef X
    RAD_DT_PRIVATE = 256    /* from here on: a plugin's packed layouts */
} RadDtype;

/* The seeds' spellings of the common ones. */
#define RAD_F32 RAD_DT_f32
#define RAD_F16 RAD_DT_f16
#define RAD_BF16 RAD_DT_bf16
#define RAD_FP8_E4M3 RAD_DT_fp8_e4m3
#define RAD_FP8_E5M2 RAD_DT_fp8_e5m2
#define RAD_I8 RAD_DT_i8
#define RAD_U8 RAD_DT_u8
#define RAD_I32 RAD_DT_i32
#define RAD_I64 RAD_DT_i64
#define RAD_U32 RAD_DT_u32

/* Storage bits, or 0 for an id that is not a type of the format. */
static inline int rad_dtype_bits(int dt)
{
    switch (dt) {
#define X(n, id, bits, kind) case id: return bits;
    RAD_DTYPES(X)
#undef X
    default: return 0;
    }
}
/* 'f', 'i', 'u', 'b', or 0. */
static inline char rad_dtype_kind(int dt)
{
    switch (dt) {
#define X(n, id, bits, kind) case id: return kind;
    RAD_DTYPES(X)
#undef X
    default: return 0;
    }
}
static inline const char *rad_dtype_name(int dt)
{
    switch (dt) {
#define X(n, id, bits, kind) case id: return #n;
    RAD_DTYPES(X)
#undef X
    default: return dt >= RAD_DT_PRIVATE ? "private" : "invalid";
    }
}
/* Bytes of n elements of one row; sub-byte rows end on a byte. */
static inline size_t rad_row_bytes(int dt, size_t n)
{
    return (size_t)(((uint64_t)rad_dtype_bits(dt) * n + 7) / 8);
}

struct RadEncoding;

/* A view: data, or for a canonical weight its planes. Strides in elements. */
typedef struct RadTensor {
    void *data;                       /* NULL: an absent optional operand */
    int32_t dtype;
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];      /* outermost first */
    int64_t stride[RAD_MAX_RANK];
    /* Weights in canonical form only: how `plane` is to be read. A weight that
     * a kernel's layout rearranged has enc NULL and its bytes at `data`. */
    const struct RadEncoding *enc;
    const void *plane[RAD_MAX_PLANES];
    int64_t row0;                     /* first matrix row the view begins at */
} RadTensor;

static inline int rad_absent(const RadTensor *t)
{
    return !t || (!t->data && !t->enc);
}
static inline int64_t rad_numel(const RadTensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}
/* Extent of the last dimension; product of the others; elements between rows. */
static inline int64_t rad_last(const RadTensor *t)
{
    return t->rank ? t->shape[t->rank - 1] : 1;
}
static inline int64_t rad_rows(const RadTensor *t)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* ---- number conversions: round to nearest even; NaN stays NaN (quiet) */
static inline uint32_t rad_bits_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float rad_f32_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline float rad_bf16_to_f32(uint16_t h)
{
    return rad_f32_bits((uint32_t)h << 16);
}
static inline uint16_t rad_f32_to_bf16(float f)
{
    uint32_t u = rad_bits_f32(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
static inline float rad_f16_to_f32(uint16_t h)
{
    uint32_t s = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 1023;
    if (e == 31)
        return rad_f32_bits(s | 0x7f800000u | m << 13 | (m ? 0x400000u : 0));
    if (e)
        return rad_f32_bits(s | (e + 112) << 23 | m << 13);
    float f = (float)m * 0x1p-24f;
    return s ? -f : f;
}
static inline uint16_t rad_f32_to_f16(float f)
{
    uint32_t u = rad_bits_f32(f), s = (u >> 16) & 0x8000, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(s | 0x7e00);
    if (a >= 0x477ff000u)                 /* rounds to 65536 or more */
        return (uint16_t)(s | 0x7c00);
    if (a >= 0x38800000u)                 /* normal */
        return (uint16_t)(s | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1)) >> 13));
    /* subnormal: the addition does the rounding, to even */
    float r = rad_f32_bits(a) + 0.5f;
    return (uint16_t)(s | (rad_bits_f32(r) - 0x3f000000u));
}
/* Small floats without infinities: sign, e exponent bits, m mantissa bits. */
static inline float rad_minifloat(unsigned v, int ebits, int mbits, int bias)
{
    unsigned m = v & ((1u << mbits) - 1), e = (v >> mbits) & ((1u << ebits) - 1);
    float x = e ? ldexpf(1.0f + (float)m / (float)(1u << mbits), (int)e - bias)
                : ldexpf((float)m / (float)(1u << mbits), 1 - bias);
    return (v >> (ebits + mbits)) & 1 ? -x : x;
}
static inline float rad_e4m3_to_f32(uint8_t v)
{
    return (v & 0x7f) == 0x7f ? NAN : rad_minifloat(v, 4, 3, 7);
}
static inline float rad_e5m2_to_f32(uint8_t v)
{
    return rad_f16_to_f32((uint16_t)(v << 8));
}
static inline float rad_e8m0_to_f32(uint8_t v)
{
    return v == 0xff ? NAN : ldexpf(1.0f, (int)v - 127);
}
/* Nearest value of a finite minifloat, ties to even code, saturating. */
static inline unsigned rad_f32_to_minifloat(float f, int ebits, int mbits, int bias, float max)
{
    unsigned s = signbit(f) ? 1u << (ebits + mbits) : 0;
    float a = fabsf(f);
    if (!(a < max)) {                     /* also infinities */
        a = max;
    }
    int e;
    frexpf(a, &e);
    e -= 1;
    if (a == 0 || e < 1 - bias)
        e = 1 - bias;
    float q = ldexpf(a, mbits - e);       /* exact scaling */
    float r = rintf(q);                   /* to even in the default mode */
    unsigned k = (unsigned)r;             /* in units of 2^(e-mbits) */
    if (k >= 2u << mbits) {
        k >>= 1;
        e++;
    }
    unsigned code = k < 1u << mbits ? k
        : ((unsigned)(e + bias) << mbits | (k & ((1u << mbits) - 1)));
    return s | code;
}
static inline uint8_t rad_f32_to_e4m3(float f)
{
    return f != f ? 0x7f : (uint8_t)rad_f32_to_minifloat(f, 4, 3, 7, 448.0f);
}
static inline uint8_t rad_f32_to_e5m2(float f)
{
    return f != f ? 0x7f : (uint8_t)rad_f32_to_minifloat(f, 5, 2, 15, 57344.0f);
}

/* Element i of a row stored least-significant bit first. */
static inline uint64_t rad_bits_get(const uint8_t *row, int bits, size_t i)
{
    size_t at = i * (size_t)bits;
    uint64_t v = 0;
    for (int got = 0; got < bits;) {
        int off = (int)((at + (size_t)got) & 7), n = 8 - off;
        if (n > bits - got)
            n = bits - got;
        v |= (uint64_t)((row[(at + (size_t)got) >> 3] >> off) & ((1u << n) - 1)) << got;
        got += n;
    }
    return v;
}
static inline void rad_bits_put(uint8_t *row, int bits, size_t i, uint64_t v)
{
    size_t at = i * (size_t)bits;
    for (int put = 0; put < bits;) {
        int off = (int)((at + (size_t)put) & 7), n = 8 - off;
        if (n > bits - put)
            n = bits - put;
        unsigned mask = ((1u << n) - 1) << off;
        uint8_t *b = &row[(at + (size_t)put) >> 3];
        *b = (uint8_t)((*b & ~mask) | (((unsigned)(v >> put) << off) & mask));
        put += n;
    }
}
/* Value of element i of a row of any type of the format. */
static inline float rad_get_f32(const void *row, int dt, size_t i)
{
    const uint8_t *b = (const uint8_t *)row;
    uint16_t h;
    float f;
    switch (dt) {
    case RAD_DT_f32: memcpy(&f, b + 4 * i, 4); return f;
    case RAD_DT_f16: memcpy(&h, b + 2 * i, 2); return rad_f16_to_f32(h);
    case RAD_DT_bf16: memcpy(&h, b + 2 * i, 2); return rad_bf16_to_f32(h);
    case RAD_DT_fp8_e4m3: return rad_e4m3_to_f32(b[i]);
    case RAD_DT_fp8_e5m2: return rad_e5m2_to_f32(b[i]);
    case RAD_DT_e8m0: return rad_e8m0_to_f32(b[i]);
    case RAD_DT_fp4_e2m1: return rad_minifloat((unsigned)rad_bits_get(b, 4, i), 2, 1, 1);
    case RAD_DT_fp6_e2m3: return rad_minifloat((unsigned)rad_bits_get(b, 6, i), 2, 3, 1);
    case RAD_DT_fp6_e3m2: return rad_minifloat((unsigned)rad_bits_get(b, 6, i), 3, 2, 3);
    default: break;
    }
    int bits = rad_dtype_bits(dt);
    if (!bits)
        return NAN;
    uint64_t v = rad_bits_get(b, bits, i);
    if (rad_dtype_kind(dt) == 'i') {
        if (bits < 64 && (v >> (bits - 1)) & 1)
            v |= ~0ull << bits;
        return (float)(int64_t)v;
    }
    return (float)v;
}

#endif
