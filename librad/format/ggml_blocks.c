/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the layouts of ggml's block types. Each is a row of the table at the
 * end: its planes, and a function that takes one block apart. Packing the
 * parts into planes is common to all. GGUF's bounds are checked by the reader.
 *
 * The planes decode to ggml's own values bit for bit: products of a code, its
 * integer scale and the f16 scale have at most 24 significant bits, so their
 * order does not matter, and ggml too subtracts a minimum with one rounding. */
#include "config.h"

#include "format/ggml_blocks.h"

#include "banned.h"

struct radi_ggml_plane {
    const char *role;
    int dtype, kind;
    int64_t r, c;
    float whole;                /* value of a whole-extent plane */
    const int8_t *table;        /* content of a table plane */
};

#define T(role, dt, c) { role, RAD_DT_##dt, RAD_PLANE_TILED, 1, c, 0, NULL }
#define WHOLE(role, dt, x) { role, RAD_DT_##dt, RAD_PLANE_TILED, 0, 0, x, NULL }
#define GRID(dt, r, c) { "grid", RAD_DT_##dt, RAD_PLANE_TABLE, r, c, 0, NULL }
#define TABLE(n, values) { "table", RAD_DT_i8, RAD_PLANE_TABLE, 1, n, 0, values }
#define PLANES(name, ...) \
    static const struct radi_ggml_plane name[] = { __VA_ARGS__, { 0 } }

static const int8_t table_iq4nl[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
};
static const int8_t table_sign[2] = { -1, 1 };

/* The order of planes is the container reference's; the indices of v[] below
 * follow it. */
PLANES(p_q4_0, T("codes", i4, 1), T("scale", f16, 32));
PLANES(p_q4_1, T("codes", u4, 1), T("scale", f16, 32), T("min", f16, 32));
PLANES(p_q5_0, T("codes", i5, 1), T("scale", f16, 32));
PLANES(p_q5_1, T("codes", u5, 1), T("scale", f16, 32), T("min", f16, 32));
PLANES(p_q8_0, T("codes", i8, 1), T("scale", f16, 32));
PLANES(p_q2_k, T("codes", u2, 1), T("scale", u4, 16), T("scale.1", f16, 256),
       T("min", u4, 16), T("min.1", f16, 256));
PLANES(p_q3_k, T("codes", i3, 1), T("scale", i6, 16), T("scale.1", f16, 256));
PLANES(p_q4_k, T("codes", u4, 1), T("scale", u6, 32), T("scale.1", f16, 256),
       T("min", u6, 32), T("min.1", f16, 256));
PLANES(p_q5_k, T("codes", u5, 1), T("scale", u6, 32), T("scale.1", f16, 256),
       T("min", u6, 32), T("min.1", f16, 256));
PLANES(p_q6_k, T("codes", i6, 1), T("scale", i8, 16), T("scale.1", f16, 256));
PLANES(p_iq4_nl, T("codes", u4, 1), TABLE(16, table_iq4nl), T("scale", f16, 32));
PLANES(p_iq4_xs, T("codes", u4, 1), TABLE(16, table_iq4nl), T("scale", i6, 32),
       T("scale.1", f16, 256));
PLANES(p_iq2_xxs, T("codes", u8, 8), GRID(u8, 256, 8), T("signs", u1, 1),
       T("scale", u5, 32), T("scale.1", f16, 256), WHOLE("scale.2", f32, 0.125f));
PLANES(p_iq2_xs, T("codes", u9, 8), GRID(u8, 512, 8), T("signs", u1, 1),
       T("scale", u5, 16), T("scale.1", f16, 256), WHOLE("scale.2", f32, 0.125f));
PLANES(p_iq2_s, T("codes", u10, 8), GRID(u8, 1024, 8), T("signs", u1, 1),
       T("scale", u5, 16), T("scale.1", f16, 256), WHOLE("scale.2", f32, 0.125f));
PLANES(p_iq3_xxs, T("codes", u8, 4), GRID(u8, 256, 4), T("signs", u1, 1),
       T("scale", u5, 32), T("scale.1", f16, 256), WHOLE("scale.2", f32, 0.25f));
PLANES(p_iq3_s, T("codes", u9, 4), GRID(u8, 512, 4), T("signs", u1, 1),
       T("scale", u5, 32), T("scale.1", f16, 256));
PLANES(p_iq1_s, T("codes", u11, 8), GRID(i8, 2048, 8), T("scale", u4, 32),
       T("scale.1", f16, 256), T("zero", bf16, 32));
PLANES(p_iq1_m, T("codes", u11, 8), GRID(i8, 2048, 8), T("scale", u4, 16),
       T("scale.1", f16, 256), T("zero", bf16, 8));
PLANES(p_tq1_0, T("codes", i2, 1), T("scale", f16, 256));
/* A code of 3 is legal bits and means 2, which i2 cannot hold. */
PLANES(p_tq2_0, T("codes", u2, 1), T("scale", f16, 256), WHOLE("zero", u1, 1));
PLANES(p_q1_0, T("codes", u1, 1), TABLE(2, table_sign), T("scale", f16, 128));
PLANES(p_mxfp4, T("codes", fp4_e2m1, 1), T("scale", e8m0, 32));
PLANES(p_nvfp4, T("codes", fp4_e2m1, 1), T("scale", fp8_e4m3, 16));

static uint16_t le16(const uint8_t *b)
{
    return (uint16_t)(b[0] | b[1] << 8);
}

static uint32_t le32(const uint8_t *b)
{
    return (uint32_t)le16(b) | (uint32_t)le16(b + 2) << 16;
}

/* 4-bit fields: first all low halves of n bytes, then all high ones. */
static void halves(const uint8_t *qs, int n, unsigned flip, uint16_t *out)
{
    for (int i = 0; i < n; i++) {
        out[i] = (uint16_t)((qs[i] & 15u) ^ flip);
        out[i + n] = (uint16_t)((unsigned)(qs[i] >> 4) ^ flip);
    }
}

/* Nibble k of a byte string, low half first. */
static uint16_t nibble(const uint8_t *b, int k)
{
    return (uint16_t)((b[k / 2] >> (4 * (k & 1))) & 15);
}

/* 2-bit fields of 256: 32 bytes hold four runs of 32, lowest bits first. */
static uint16_t crumb(const uint8_t *qs, int i)
{
    return (uint16_t)((qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3);
}

static const char *u_q4_0(const uint8_t *b, uint16_t v[][256])
{
    halves(b + 2, 16, 8, v[0]);
    v[1][0] = le16(b);
    return NULL;
}

static const char *u_q4_1(const uint8_t *b, uint16_t v[][256])
{
    halves(b + 4, 16, 0, v[0]);
    v[1][0] = le16(b);
    v[2][0] = le16(b + 2) ^ 0x8000;     /* min is what gets subtracted */
    return NULL;
}

static void fifth_bits(uint32_t qh, unsigned flip, uint16_t *v)
{
    for (int i = 0; i < 32; i++)
        v[i] = (uint16_t)((v[i] | ((qh >> i) & 1) << 4) ^ flip);
}

static const char *u_q5_0(const uint8_t *b, uint16_t v[][256])
{
    halves(b + 6, 16, 0, v[0]);
    fifth_bits(le32(b + 2), 16, v[0]);
    v[1][0] = le16(b);
    return NULL;
}

static const char *u_q5_1(const uint8_t *b, uint16_t v[][256])
{
    halves(b + 8, 16, 0, v[0]);
    fifth_bits(le32(b + 4), 0, v[0]);
    v[1][0] = le16(b);
    v[2][0] = le16(b + 2) ^ 0x8000;
    return NULL;
}

static const char *u_q8_0(const uint8_t *b, uint16_t v[][256])
{
    for (int i = 0; i < 32; i++)
        v[0][i] = b[2 + i];
    v[1][0] = le16(b);
    return NULL;
}

static const char *u_q2_k(const uint8_t *b, uint16_t v[][256])
{
    for (int i = 0; i < 256; i++)
        v[0][i] = crumb(b + 16, i);
    for (int k = 0; k < 16; k++) {
        v[1][k] = b[k] & 15;
        v[3][k] = b[k] >> 4;
    }
    v[2][0] = le16(b + 80);
    v[4][0] = le16(b + 82);
    return NULL;
}

static const char *u_q3_k(const uint8_t *b, uint16_t v[][256])
{
    const uint8_t *sc = b + 96;
    for (int i = 0; i < 256; i++) {
        unsigned high = (b[i % 32] >> (i / 32)) & 1u;
        v[0][i] = (uint16_t)((crumb(b + 32, i) | high << 2) ^ 4);
    }
    for (int k = 0; k < 16; k++) {
        unsigned low = (sc[k % 8] >> (k / 8 * 4)) & 15u;
        unsigned high = (sc[8 + k % 4] >> (k / 4 * 2)) & 3u;
        v[1][k] = (uint16_t)((low | high << 4) ^ 32);
    }
    v[2][0] = le16(b + 108);
    return NULL;
}

/* Eight scales and minima of 6 bits in 12 bytes: the first four of each lie
 * whole; the upper bits of the others are in the same bytes' top. */
static void scales_k(const uint8_t *s, uint16_t *sc, uint16_t *m)
{
    for (int j = 0; j < 4; j++) {
        sc[j] = s[j] & 63;
        m[j] = s[j + 4] & 63;
        sc[j + 4] = (uint16_t)((s[j + 8] & 15) | (s[j] >> 6) << 4);
        m[j + 4] = (uint16_t)(s[j + 8] >> 4 | (s[j + 4] >> 6) << 4);
    }
}

static const char *u_q4_k(const uint8_t *b, uint16_t v[][256])
{
    for (int c = 0; c < 4; c++)
        halves(b + 16 + 32 * c, 32, 0, v[0] + 64 * c);
    scales_k(b + 4, v[1], v[3]);
    v[2][0] = le16(b);
    v[4][0] = le16(b + 2);
    return NULL;
}

static const char *u_q5_k(const uint8_t *b, uint16_t v[][256])
{
    for (int c = 0; c < 4; c++)
        halves(b + 48 + 32 * c, 32, 0, v[0] + 64 * c);
    for (int i = 0; i < 256; i++)
        v[0][i] = (uint16_t)(v[0][i] | ((b[16 + i % 32] >> (i / 32)) & 1) << 4);
    scales_k(b + 4, v[1], v[3]);
    v[2][0] = le16(b);
    v[4][0] = le16(b + 2);
    return NULL;
}

static const char *u_q6_k(const uint8_t *b, uint16_t v[][256])
{
    for (int c = 0; c < 2; c++)
        halves(b + 64 * c, 64, 0, v[0] + 128 * c);
    for (int i = 0; i < 256; i++)
        v[0][i] = (uint16_t)((v[0][i] | crumb(b + 128, i) << 4) ^ 32);
    for (int k = 0; k < 16; k++)
        v[1][k] = b[192 + k];
    v[2][0] = le16(b + 208);
    return NULL;
}

static const char *u_iq4_nl(const uint8_t *b, uint16_t v[][256])
{
    halves(b + 2, 16, 0, v[0]);
    v[2][0] = le16(b);
    return NULL;
}

static const char *u_iq4_xs(const uint8_t *b, uint16_t v[][256])
{
    unsigned high = le16(b + 2);
    for (int k = 0; k < 8; k++) {
        halves(b + 8 + 16 * k, 16, 0, v[0] + 32 * k);
        v[2][k] = (uint16_t)((nibble(b + 4, k) | ((high >> (2 * k)) & 3) << 4) ^ 32);
    }
    v[3][0] = le16(b);
    return NULL;
}

/* Eight signs from seven bits: the eighth makes their number even. */
static unsigned signs7(unsigned s)
{
    unsigned p = s ^ s >> 4;
    p ^= p >> 2;
    p ^= p >> 1;
    return s | (p & 1) << 7;
}

static void put_signs(unsigned bits, uint16_t *out)
{
    for (int i = 0; i < 8; i++)
        out[i] = (uint16_t)((bits >> i) & 1);
}

static void signs_and_scale(uint32_t w, uint16_t *signs, uint16_t *scale)
{
    for (int k = 0; k < 4; k++)
        put_signs(signs7((w >> (7 * k)) & 127), signs + 8 * k);
    *scale = (uint16_t)(2 * (w >> 28) + 1);
}

static const char *u_iq2_xxs(const uint8_t *b, uint16_t v[][256])
{
    for (int g = 0; g < 8; g++) {
        for (int k = 0; k < 4; k++)
            v[0][4 * g + k] = b[2 + 8 * g + k];
        signs_and_scale(le32(b + 2 + 8 * g + 4), v[2] + 32 * g, &v[3][g]);
    }
    v[4][0] = le16(b);
    return NULL;
}

static void odd_nibbles(const uint8_t *b, int n, uint16_t *out)
{
    for (int k = 0; k < n; k++)
        out[k] = (uint16_t)(2 * nibble(b, k) + 1);
}

static const char *u_iq2_xs(const uint8_t *b, uint16_t v[][256])
{
    for (int j = 0; j < 32; j++) {
        unsigned q = le16(b + 2 + 2 * j);
        v[0][j] = (uint16_t)(q & 511);
        put_signs(signs7(q >> 9), v[2] + 8 * j);
    }
    odd_nibbles(b + 66, 16, v[3]);
    v[4][0] = le16(b);
    return NULL;
}

static const char *u_iq2_s(const uint8_t *b, uint16_t v[][256])
{
    for (int j = 0; j < 32; j++) {
        unsigned high = (b[66 + j / 4] >> (2 * (j % 4))) & 3u;
        v[0][j] = (uint16_t)(b[2 + j] | high << 8);
        put_signs(b[34 + j], v[2] + 8 * j);
    }
    odd_nibbles(b + 74, 16, v[3]);
    v[4][0] = le16(b);
    return NULL;
}

static const char *u_iq3_xxs(const uint8_t *b, uint16_t v[][256])
{
    for (int j = 0; j < 64; j++)
        v[0][j] = b[2 + j];
    for (int g = 0; g < 8; g++)
        signs_and_scale(le32(b + 66 + 4 * g), v[2] + 32 * g, &v[3][g]);
    v[4][0] = le16(b);
    return NULL;
}

static const char *u_iq3_s(const uint8_t *b, uint16_t v[][256])
{
    for (int j = 0; j < 64; j++)
        v[0][j] = (uint16_t)(b[2 + j] | ((b[66 + j / 8] >> (j % 8)) & 1) << 8);
    for (int k = 0; k < 32; k++)
        put_signs(b[74 + k], v[2] + 8 * k);
    odd_nibbles(b + 106, 8, v[3]);
    v[4][0] = le16(b);
    return NULL;
}

/* bf16 of minus the shift of 1/8 that ggml adds to a grid value. */
static uint16_t iq1_zero(bool negative)
{
    return negative ? 0x3e00 : 0xbe00;
}

static const char *u_iq1_s(const uint8_t *b, uint16_t v[][256])
{
    for (int g = 0; g < 8; g++) {
        unsigned qh = le16(b + 34 + 2 * g);
        for (int k = 0; k < 4; k++)
            v[0][4 * g + k] = (uint16_t)(b[2 + 4 * g + k] | ((qh >> (3 * k)) & 7) << 8);
        v[2][g] = (uint16_t)(2 * ((qh >> 12) & 7) + 1);
        v[4][g] = iq1_zero(qh & 0x8000);
    }
    v[3][0] = le16(b);
    return NULL;
}

static const char *u_iq1_m(const uint8_t *b, uint16_t v[][256])
{
    unsigned d = 0;
    for (int j = 0; j < 32; j++) {
        unsigned qh = nibble(b + 32, j);
        v[0][j] = (uint16_t)(b[j] | (qh & 7) << 8);
        v[4][j] = iq1_zero(qh & 8);
    }
    for (int g = 0; g < 4; g++) {
        unsigned sc = le16(b + 48 + 2 * g);
        for (int k = 0; k < 4; k++)
            v[2][4 * g + k] = (uint16_t)(2 * ((sc >> (3 * k)) & 7) + 1);
        d |= sc >> 12 << (4 * g);
    }
    v[3][0] = (uint16_t)d;
    return NULL;
}

/* Digit n of five in base 3, kept as a fraction of 256; as i2 of digit - 1. */
static uint16_t trit(uint8_t q, int n)
{
    static const uint8_t pow3[] = { 1, 3, 9, 27, 81 };
    uint8_t t = (uint8_t)(q * pow3[n]);
    return (uint16_t)((((unsigned)t * 3 >> 8) + 3) & 3);
}

static const char *u_tq1_0(const uint8_t *b, uint16_t v[][256])
{
    for (int n = 0; n < 5; n++) {
        for (int j = 0; j < 32; j++)
            v[0][32 * n + j] = trit(b[j], n);
        for (int j = 0; j < 16; j++)
            v[0][160 + 16 * n + j] = trit(b[32 + j], n);
        for (int j = 0; j < 4 && n < 4; j++)
            v[0][240 + 4 * n + j] = trit(b[48 + j], n);
    }
    v[1][0] = le16(b + 52);
    return NULL;
}

static const char *u_tq2_0(const uint8_t *b, uint16_t v[][256])
{
    for (int i = 0; i < 256; i++)
        v[0][i] = crumb(b, i);
    v[1][0] = le16(b + 64);
    return NULL;
}

static const char *u_q1_0(const uint8_t *b, uint16_t v[][256])
{
    for (int i = 0; i < 128; i++)
        v[0][i] = (uint16_t)((b[2 + i / 8] >> (i % 8)) & 1);
    v[2][0] = le16(b);
    return NULL;
}

/* ggml's table of e2m1 has no minus zero: its code 8 is plus zero. */
static uint16_t e2m1(unsigned q)
{
    return (uint16_t)(q == 8 ? 0 : q);
}

static const char *u_mxfp4(const uint8_t *b, uint16_t v[][256])
{
    /* ggml reads exponent 255, which e8m0 keeps for NaN, as the next power of
     * two: 2^128. Only 0.5 of it is finite; the rest must come out infinite. */
    bool huge = b[0] == 255;
    halves(b + 1, 16, 0, v[0]);
    for (int i = 0; i < 32; i++) {
        unsigned q = e2m1(v[0][i]);
        if (huge && (q & 7))
            q = (q & 8) | ((q & 7) == 1 ? 2 : 7);
        v[0][i] = (uint16_t)q;
    }
    v[1][0] = huge ? 254 : b[0];
    return NULL;
}

static const char *u_nvfp4(const uint8_t *b, uint16_t v[][256])
{
    for (int s = 0; s < 4; s++) {
        halves(b + 4 + 8 * s, 8, 0, v[0] + 16 * s);
        if (b[s] == 255)
            return "scale byte 0xff is no unsigned e4m3 number";
        /* the sign bit is not looked at; NaN means 0 */
        v[1][s] = b[s] == 0x7f ? 0 : b[s] & 0x7f;
    }
    for (int i = 0; i < 64; i++)
        v[0][i] = e2m1(v[0][i]);
    return NULL;
}

/* id, name, block, bytes: the format's. Numbers that are missing were taken
 * out of the format or never used. */
#define PLAIN(id, name, bytes, dt) { id, name, 1, bytes, dt, RADI_GRID_NONE, NULL, NULL }
#define BLOCKS(id, name, n, bytes, fn) { id, name, n, bytes, 0, RADI_GRID_NONE, p_##fn, u_##fn }
#define GRIDS(id, name, bytes, fn, grid) \
    { id, name, 256, bytes, 0, RADI_GRID_##grid, p_##fn, u_##fn }
static const struct radi_ggml_type types[] = {
    PLAIN(0, "F32", 4, RAD_DT_f32),
    PLAIN(1, "F16", 2, RAD_DT_f16),
    BLOCKS(2, "Q4_0", 32, 18, q4_0),
    BLOCKS(3, "Q4_1", 32, 20, q4_1),
    BLOCKS(6, "Q5_0", 32, 22, q5_0),
    BLOCKS(7, "Q5_1", 32, 24, q5_1),
    BLOCKS(8, "Q8_0", 32, 34, q8_0),
    { 9, "Q8_1", 32, 36, 0, RADI_GRID_NONE, NULL, NULL },   /* activations only */
    BLOCKS(10, "Q2_K", 256, 84, q2_k),
    BLOCKS(11, "Q3_K", 256, 110, q3_k),
    BLOCKS(12, "Q4_K", 256, 144, q4_k),
    BLOCKS(13, "Q5_K", 256, 176, q5_k),
    BLOCKS(14, "Q6_K", 256, 210, q6_k),
    { 15, "Q8_K", 256, 292, 0, RADI_GRID_NONE, NULL, NULL },
    GRIDS(16, "IQ2_XXS", 66, iq2_xxs, IQ2_XXS),
    GRIDS(17, "IQ2_XS", 74, iq2_xs, IQ2_XS),
    GRIDS(18, "IQ3_XXS", 98, iq3_xxs, IQ3_XXS),
    GRIDS(19, "IQ1_S", 50, iq1_s, IQ1),
    BLOCKS(20, "IQ4_NL", 32, 18, iq4_nl),
    GRIDS(21, "IQ3_S", 110, iq3_s, IQ3_S),
    GRIDS(22, "IQ2_S", 82, iq2_s, IQ2_S),
    BLOCKS(23, "IQ4_XS", 256, 136, iq4_xs),
    PLAIN(24, "I8", 1, RAD_DT_i8),
    PLAIN(25, "I16", 2, RAD_DT_i16),
    PLAIN(26, "I32", 4, RAD_DT_i32),
    PLAIN(27, "I64", 8, RAD_DT_i64),
    PLAIN(28, "F64", 8, RAD_DT_f32),
    GRIDS(29, "IQ1_M", 56, iq1_m, IQ1),
    PLAIN(30, "BF16", 2, RAD_DT_bf16),
    BLOCKS(34, "TQ1_0", 256, 54, tq1_0),
    BLOCKS(35, "TQ2_0", 256, 66, tq2_0),
    BLOCKS(39, "MXFP4", 32, 17, mxfp4),
    BLOCKS(40, "NVFP4", 64, 36, nvfp4),
    BLOCKS(41, "Q1_0", 128, 18, q1_0),
};

const struct radi_ggml_type *radi_ggml_type(uint32_t id)
{
    for (size_t i = 0; i < RADI_COUNT(types); i++)
        if (types[i].id >= 0 && (uint32_t)types[i].id == id)
            return &types[i];
    return NULL;
}

rad_status radi_ggml_encoding(const struct radi_ggml_type *t, RadEncoding *e, struct rad_err *err)
{
    if (t->dtype) {
        rad_encoding_plain(e, t->dtype);
        return RAD_OK;
    }
    if (!t->unpack)
        return rad_fail(err, RAD_E_UNSUPPORTED, "type %s is for activations, not for weights",
                        t->name);
    rad_encoding_affine(e);
    for (const struct radi_ggml_plane *p = t->plane; p->role; p++)
        if (rad_encoding_add(e, p->role, p->dtype, p->kind, p->r, p->c) != RAD_OK)
            return rad_fail(err, RAD_E_FULL, "type %s: too many planes", t->name);
    return RAD_OK;
}

/* n elements of `bits` bits, the low bit first; their total is whole bytes. */
static uint8_t *pack(const uint16_t *v, size_t n, int bits, uint8_t *out)
{
    uint32_t acc = 0;
    int have = 0;
    if (bits == 8) {
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)v[i];
        return out + n;
    }
    for (size_t i = 0; i < n; i++) {
        acc |= (uint32_t)v[i] << have;
        for (have += bits; have >= 8; have -= 8, acc >>= 8)
            *out++ = (uint8_t)acc;
    }
    return out;
}

/* Planes that are the same whatever the rows. */
static void fill_fixed(const struct radi_ggml_type *t, const struct radi_ggml_plane *p,
                       uint8_t *out)
{
    const struct radi_ggml_grid *g = &radi_ggml_grids[t->grid];
    if (p->kind == RAD_PLANE_TILED) {
        if (p->dtype == RAD_DT_f32)
            memcpy(out, &p->whole, 4);
        else
            *out = (uint8_t)p->whole;
    } else if (p->table) {
        memcpy(out, p->table, (size_t)p->c);
    } else {
        for (size_t i = 0; i < g->n; i++)
            for (size_t k = 0; k < g->v; k++)
                *out++ = (uint8_t)g->level[(g->packed[i] >> (g->bits * k)) & ((1u << g->bits) - 1)];
    }
}

rad_status radi_ggml_planes(const struct radi_ggml_type *t, const uint8_t *src, uint64_t n,
                            uint64_t cols, void *const dst[], struct rad_err *err)
{
    uint16_t v[RAD_MAX_PLANES][256];
    uint8_t *out[RAD_MAX_PLANES];
    size_t planes = 0;

    for (; t->plane[planes].role; planes++) {
        out[planes] = dst[planes];
        if (t->plane[planes].kind == RAD_PLANE_TABLE || !t->plane[planes].c) {
            fill_fixed(t, &t->plane[planes], out[planes]);
            out[planes] = NULL;
        }
    }
    /* rows are whole blocks, and a block's share of any plane is whole bytes */
    uint64_t blocks = n * (cols / t->block);
    for (uint64_t b = 0; b < blocks; b++, src += t->bytes) {
        const char *bad = t->unpack(src, v);
        if (bad)
            return rad_fail(err, RAD_E_FORMAT, "block %llu: %s", (unsigned long long)b, bad);
        for (size_t p = 0; p < planes; p++)
            if (out[p])
                out[p] = pack(v[p], t->block / (size_t)t->plane[p].c,
                              rad_dtype_bits(t->plane[p].dtype), out[p]);
    }
    return RAD_OK;
}
