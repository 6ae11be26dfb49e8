/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops: eight dot products side by side, each in ascending order.
 * Two-wide vectors are what every x86-64 and AArch64 has; they hold different
 * sums, so no sum is ever reordered. */
#include "ref.h"

typedef double v2 __attribute__((vector_size(16)));

void ref_dot8(const double *a, const double *w, int64_t k, double c[8])
{
    const v2 *b = (const v2 *)w;
    v2 s0 = { c[0], c[1] }, s1 = { c[2], c[3] }, s2 = { c[4], c[5] }, s3 = { c[6], c[7] };
    for (int64_t i = 0; i < k; i++, b += 4) {
        v2 x = { a[i], a[i] };
        s0 += x * b[0];
        s1 += x * b[1];
        s2 += x * b[2];
        s3 += x * b[3];
    }
    memcpy(c, &s0, 16);
    memcpy(c + 2, &s1, 16);
    memcpy(c + 4, &s2, 16);
    memcpy(c + 6, &s3, 16);
}

void ref_dot8x2(const double *a0, const double *a1, const double *w, int64_t k,
                double c0[8], double c1[8])
{
    const v2 *b = (const v2 *)w;
    v2 s0 = { c0[0], c0[1] }, s1 = { c0[2], c0[3] }, s2 = { c0[4], c0[5] }, s3 = { c0[6], c0[7] };
    v2 t0 = { c1[0], c1[1] }, t1 = { c1[2], c1[3] }, t2 = { c1[4], c1[5] }, t3 = { c1[6], c1[7] };
    for (int64_t i = 0; i < k; i++, b += 4) {
        v2 x = { a0[i], a0[i] }, y = { a1[i], a1[i] };
        s0 += x * b[0];
        s1 += x * b[1];
        s2 += x * b[2];
        s3 += x * b[3];
        t0 += y * b[0];
        t1 += y * b[1];
        t2 += y * b[2];
        t3 += y * b[3];
    }
    memcpy(c0, &s0, 16);
    memcpy(c0 + 2, &s1, 16);
    memcpy(c0 + 4, &s2, 16);
    memcpy(c0 + 6, &s3, 16);
    memcpy(c1, &t0, 16);
    memcpy(c1 + 2, &t1, 16);
    memcpy(c1 + 4, &t2, 16);
    memcpy(c1 + 6, &t3, 16);
}

typedef float f4 __attribute__((vector_size(16)));

/* Two rows, four columns: a pair of sums takes them in column order. */
#define PAIR(s, r)                                                                  \
    do {                                                                            \
        f4 p, q;                                                                    \
        memcpy(&p, w + (r) * pitch + i, 16);                                        \
        memcpy(&q, w + ((r) + 1) * pitch + i, 16);                                  \
        f4 lo = __builtin_shufflevector(p, q, 0, 4, 1, 5);                          \
        f4 hi = __builtin_shufflevector(p, q, 2, 6, 3, 7);                          \
        s += x0 * __builtin_convertvector(__builtin_shufflevector(lo, lo, 0, 1), v2); \
        s += x1 * __builtin_convertvector(__builtin_shufflevector(lo, lo, 2, 3), v2); \
        s += x2 * __builtin_convertvector(__builtin_shufflevector(hi, hi, 0, 1), v2); \
        s += x3 * __builtin_convertvector(__builtin_shufflevector(hi, hi, 2, 3), v2); \
    } while (0)

void ref_dot8_rows(const double *a, const float *w, int64_t pitch, int64_t k, double c[8])
{
    v2 s0 = { c[0], c[1] }, s1 = { c[2], c[3] }, s2 = { c[4], c[5] }, s3 = { c[6], c[7] };
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
        v2 x0 = { a[i], a[i] }, x1 = { a[i + 1], a[i + 1] };
        v2 x2 = { a[i + 2], a[i + 2] }, x3 = { a[i + 3], a[i + 3] };
        PAIR(s0, 0);
        PAIR(s1, 2);
        PAIR(s2, 4);
        PAIR(s3, 6);
    }
    memcpy(c, &s0, 16);
    memcpy(c + 2, &s1, 16);
    memcpy(c + 4, &s2, 16);
    memcpy(c + 6, &s3, 16);
    for (; i < k; i++)
        for (int j = 0; j < 8; j++)
            c[j] += a[i] * (double)w[j * pitch + i];
}

double ref_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
double ref_silu(double x)
{
    return x * ref_sigmoid(x);
}
double ref_gelu(double x)
{
    return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
}
double ref_relu2(double x)
{
    return x > 0 ? x * x : isnan(x) ? x : 0;
}
double ref_gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
