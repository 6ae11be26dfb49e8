/* SPDX-License-Identifier: Apache-2.0 */
/* The number conversions of rad_types.h against a second way to say the same:
 * values are built from the fields with ldexp, and rounding is a search among
 * all codes of the type for the nearest value, ties to the even code. Every
 * code of every small type, and the floats around every boundary of it. */
#include <math.h>
#include <string.h>

#include <rad/rad_types.h>

#include "tap.h"

/* What a type looks like: sign, `e` exponent bits, `m` mantissa bits. `ieee`:
 * the highest exponent is infinity and NaN; otherwise `nan` code, if any. */
struct format {
    const char *name;
    int e, m, bias;
    bool ieee;
    int nan;                     /* of the magnitude; -1: none */
    bool saturates;              /* beyond the largest: that; else infinity */
    float (*to)(uint16_t);
    uint16_t (*from)(float);
};

static float to_e4m3(uint16_t v) { return rad_e4m3_to_f32((uint8_t)v); }
static float to_e5m2(uint16_t v) { return rad_e5m2_to_f32((uint8_t)v); }
static float to_e2m1(uint16_t v) { return rad_minifloat(v, 2, 1, 1); }
static float to_e2m3(uint16_t v) { return rad_minifloat(v, 2, 3, 1); }
static float to_e3m2(uint16_t v) { return rad_minifloat(v, 3, 2, 3); }
static uint16_t from_e4m3(float f) { return rad_f32_to_e4m3(f); }
static uint16_t from_e5m2(float f) { return rad_f32_to_e5m2(f); }
static uint16_t from_e2m1(float f) { return (uint16_t)rad_f32_to_minifloat(f, 2, 1, 1, 6.0f); }
static uint16_t from_e2m3(float f) { return (uint16_t)rad_f32_to_minifloat(f, 2, 3, 1, 7.5f); }
static uint16_t from_e3m2(float f) { return (uint16_t)rad_f32_to_minifloat(f, 3, 2, 3, 28.0f); }

static const struct format format[] = {
    { "f16", 5, 10, 15, true, -1, false, rad_f16_to_f32, rad_f32_to_f16 },
    { "bf16", 8, 7, 127, true, -1, false, rad_bf16_to_f32, rad_f32_to_bf16 },
    { "fp8_e4m3", 4, 3, 7, false, 0x7f, true, to_e4m3, from_e4m3 },
    { "fp8_e5m2", 5, 2, 15, true, -1, true, to_e5m2, from_e5m2 },
    { "fp4_e2m1", 2, 1, 1, false, -1, true, to_e2m1, from_e2m1 },
    { "fp6_e2m3", 2, 3, 1, false, -1, true, to_e2m3, from_e2m3 },
    { "fp6_e3m2", 3, 2, 3, false, -1, true, to_e3m2, from_e3m2 },
};
static const struct format *f;
static double value[1 << 15];    /* of every magnitude code, infinity included */
static int n_finite, n_codes;    /* magnitudes: finite, and all */

static double define(int code)
{
    int e = code >> f->m, m = code & ((1 << f->m) - 1), top = (1 << f->e) - 1;
    if (f->ieee && e == top)
        return m ? (double)NAN : (double)INFINITY;
    if (code == f->nan)
        return (double)NAN;
    return e ? ldexp(1.0 + ldexp(m, -f->m), e - f->bias) : ldexp(m, 1 - f->bias - f->m);
}

static int sign_bit(void) { return 1 << (f->e + f->m); }

/* Every code means what its fields say, and comes back from its value. */
static void every_code(void)
{
    for (int c = 0; c < 2 * n_codes; c++) {
        int mag = c & (n_codes - 1);
        float x = f->to((uint16_t)c);
        if (isnan(value[mag])) {
            CHECK_MSG(isnan(x), "%s 0x%x: %g, want NaN", f->name, c, (double)x);
            float back = f->to(f->from(x));
            CHECK_MSG(isnan(back), "%s 0x%x: NaN comes back as %g", f->name, c, (double)back);
            continue;
        }
        double want = c >= n_codes ? -value[mag] : value[mag];
        CHECK_MSG((double)x == want && !signbit(x) == !signbit(want), "%s 0x%x: %.9g, want %.9g",
                  f->name, c, (double)x, want);
        int back = f->from(x), expect = isinf(want) && f->saturates ? c - 1 : c;
        CHECK_MSG(back == expect, "%s: %g becomes 0x%x, want 0x%x", f->name, want, back, expect);
    }
}

/* The nearest magnitude code by search. Beyond the largest finite value stands
 * the value that would come next; a type with infinity rounds to it. */
static int nearest(double a)
{
    int lo = 0, hi = n_finite - 1;
    if (a > value[hi]) {
        double next = 2 * value[hi] - value[hi - 1];
        return !f->saturates && a >= (value[hi] + next) / 2 ? hi + 1 : hi;
    }
    while (lo < hi) {                      /* the last with value <= a */
        int mid = (lo + hi + 1) / 2;
        if (value[mid] <= a)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (lo == n_finite - 1)
        return lo;
    double below = a - value[lo], above = value[lo + 1] - a;
    return below < above || (below == above && !(lo & 1)) ? lo : lo + 1;
}

static void rounds(float x)
{
    int want = nearest(fabs((double)x)) | (signbit(x) ? sign_bit() : 0), got = f->from(x);
    CHECK_MSG(got == want, "%s: %.9g (0x%08x) becomes 0x%x, want 0x%x", f->name, (double)x,
              rad_bits_f32(x), got, want);
}

/* x, its float neighbours, and the negatives of them. */
static void around(float x)
{
    const float all[] = { x, nextafterf(x, 0), nextafterf(x, INFINITY) };
    for (int i = 0; i < 3; i++)
        if (isfinite(all[i])) {
            rounds(all[i]);
            rounds(-all[i]);
        }
}

static void boundaries(void)
{
    for (int c = 0; c + 1 < n_finite; c++) {
        around((float)value[c]);
        around((float)((value[c] + value[c + 1]) / 2));   /* exact in a float */
    }
    double top = value[n_finite - 1], step = top - value[n_finite - 2];
    around((float)top);
    if (top + step / 2 < (double)3.4e38f) {
        around((float)(top + step / 2));
        around((float)(top + step));
        around(3e38f);
    }
    rounds(3.40282347e38f);
    around(1e-45f);
    around(1.17549435e-38f);
    int inf = f->from(INFINITY), want = f->saturates ? n_finite - 1 : n_finite;
    CHECK_MSG(inf == want, "%s: infinity becomes 0x%x, want 0x%x", f->name, inf, want);
    CHECK(f->from(-INFINITY) == (want | sign_bit()));
}

/* Random bit patterns, and random values in the range of the type. */
static void at_random(void)
{
    uint64_t s = 88172645463325252u;
    for (int i = 0; i < 400000; i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        float x = rad_f32_bits((uint32_t)(s >> 16));
        if (i & 1)
            x = (float)(ldexp((double)(uint32_t)s, -32) * value[n_finite - 1] *
                        ldexp(1, -(int)(s >> 60)));
        if (isfinite(x))
            rounds(x);
        else if (isnan(x) && (f->ieee || f->nan >= 0))
            CHECK_MSG(isnan(f->to(f->from(x))), "%s: a NaN (0x%08x) is lost", f->name,
                      rad_bits_f32(x));
    }
}

static void set_up(const struct format *of)
{
    f = of;
    n_codes = sign_bit();
    n_finite = 0;
    for (int c = 0; c < n_codes; c++) {
        value[c] = define(c);
        n_finite += isfinite(value[c]) ? 1 : 0;
    }
}

static void scales(void)
{
    for (int c = 0; c < 255; c++)
        CHECK((double)rad_e8m0_to_f32((uint8_t)c) == ldexp(1, c - 127));
    CHECK(isnan(rad_e8m0_to_f32(255)));
}

/* Elements of every width: what is put is got, neighbours stay, and the value
 * is what two's complement says. */
static void packed(void)
{
    uint8_t row[64];
    for (int dt = 1; dt < 64; dt++) {
        int bits = rad_dtype_bits(dt);
        char kind = rad_dtype_kind(dt);
        if (!bits || kind == 'f')
            continue;
        uint64_t all = bits == 64 ? ~0ull : (1ull << bits) - 1;
        size_t n = sizeof row * 8 / (size_t)bits;
        CHECK(rad_row_bytes(dt, 3) == (size_t)(3 * bits + 7) / 8);
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < 4; k++) {
                uint64_t v = (const uint64_t[]){ 0, all, all >> 1, 0x5ae3c71d0f96a84b & all }[k];
                memset(row, k & 1 ? 0 : 0xff, sizeof row);
                rad_bits_put(row, bits, i, v);
                CHECK(rad_bits_get(row, bits, i) == v);
                for (size_t b = 0; b < sizeof row * 8; b++)
                    if (b < i * (size_t)bits || b >= (i + 1) * (size_t)bits)
                        CHECK(((row[b / 8] >> (b % 8)) & 1) == (k & 1 ? 0 : 1));
                double want = (double)v;
                if (kind == 'i' && (v >> (bits - 1)) & 1)
                    want = -(double)((all - v) + 1);
                CHECK_MSG((double)rad_get_f32(row, dt, i) == (double)(float)want
                          || (bits == 64 && rad_get_f32(row, dt, i) == (float)(int64_t)v),
                          "%s: %llx is %g, want %g", rad_dtype_name(dt), (unsigned long long)v,
                          (double)rad_get_f32(row, dt, i), want);
            }
    }
    CHECK(isnan(rad_get_f32(row, 0, 0)) && isnan(rad_get_f32(row, 63, 0)));
}

/* The reader of rows agrees with the conversion of one code. */
static void rows(void)
{
    static const struct { int dt, of; } type[] = {
        { RAD_DT_f16, 0 }, { RAD_DT_bf16, 1 }, { RAD_DT_fp8_e4m3, 2 }, { RAD_DT_fp8_e5m2, 3 },
        { RAD_DT_fp4_e2m1, 4 }, { RAD_DT_fp6_e2m3, 5 }, { RAD_DT_fp6_e3m2, 6 } };
    uint8_t row[16];
    for (size_t t = 0; t < sizeof type / sizeof *type; t++) {
        int bits = rad_dtype_bits(type[t].dt);
        for (unsigned c = 0; c < 1u << bits; c++) {
            memset(row, 0xa5, sizeof row);
            rad_bits_put(row, bits, 5, c);
            float got = rad_get_f32(row, type[t].dt, 5), want = format[type[t].of].to((uint16_t)c);
            CHECK((isnan(got) && isnan(want)) || rad_bits_f32(got) == rad_bits_f32(want));
        }
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof format / sizeof *format; i++) {
        set_up(&format[i]);
        tap_begin(f->name);
        every_code();
        boundaries();
        at_random();
        tap_end();
    }
    TAP_RUN(scales);
    TAP_RUN(packed);
    TAP_RUN(rows);
    return tap_done();
}
