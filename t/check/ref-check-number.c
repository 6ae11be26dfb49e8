/* SPDX-License-Identifier: Apache-2.0 */
/* ref-check: elementwise ops that numbers or small weights shape. */
#include "ref-check.h"

static const int types[] = { RAD_F32, RAD_BF16 };

static double f_scale(double x) { return x * -1.75; }
static double f_softcap(double x) { return 1.5 * tanh(x / 1.5); }
static double f_clip(double x) { return fmin(fmax(x, -0.5), 0.5); }

static void constant_ops(void)
{
    static const struct { const char *op, *key; double val; double (*f)(double); } ops[] = {
        { "scale", "s", -1.75, f_scale }, { "softcap", "cap", 1.5, f_softcap },
        { "clip", "limit", 0.5, f_clip },
    };
    for (int k = 0; k < 6; k++) {
        int t = k & 1;
        const char *op = ops[k / 2].op;
        struct buf x = act(types[t], 5, 300, 310), y = act(types[t], 5, 300, 301);
        set(&x, 1, 3, 1e30f);
        set(&x, 1, 4, -1e30f);
        RadTensor o[2] = { x.t, y.t };
        RadParam p[] = { P_N("n", 300), P_R(ops[k / 2].key, ops[k / 2].val) };
        run(op, p, 2, o, 2, 1);
        for (int64_t r = 0; r < 5; r++)
            for (int64_t c = 0; c < 300; c++)
                CHECK(near(get(&y, r, c),
                           narrowed(types[t], (float)ops[k / 2].f((double)get(&x, r, c))), 2,
                           types[t]));
        o[1] = x.t;                                  /* in place */
        CHECK(run_as(op, p, 2, o, 2, 3) == RAD_OK);
        for (int64_t c = 0; c < 300; c++)
            CHECK(same(get(&x, 1, c), get(&y, 1, c)));
        drop(&x), drop(&y);
    }
    RadParam none[] = { P_N("n", 300), P_R("limit", 0) };
    CHECK(run_as("clip", none, 2, NULL, 0, 1) == RAD_E_ARG);
    CHECK(run_as("softcap", none, 1, NULL, 0, 1) == RAD_E_ARG);
}

static void xielu_bends_at_zero(void)
{
    for (int t = 0; t < 2; t++) {
        struct weight hp, hn;
        CHECK(weight_at(0, 1, 1, &hp) && weight_at(0, 1, 1, &hn));
        double ap = (double)((const float *)hp.t.plane[0])[0];
        double an = (double)((const float *)hn.t.plane[0])[0];
        struct buf x = act(types[t], 4, 100, 103), y = act(types[t], 4, 100, 100);
        set(&x, 0, 0, 0);
        set(&x, 0, 1, -1e-9f);
        set(&x, 0, 2, -200);
        RadTensor o[4] = { x.t, hp.t, hn.t, y.t };
        RadParam p[] = { P_N("n", 100), P_R("beta", 0.5), P_R("eps", -1e-6) };
        run("xielu", p, 3, o, 4, 3);
        double a = log(1 + exp(ap)), b = 0.5 + log(1 + exp(an));
        for (int64_t r = 0; r < 4; r++)
            for (int64_t c = 0; c < 100; c++) {
                double v = (double)get(&x, r, c);
                double want = v > 0 ? a * v * v + 0.5 * v
                    : (expm1(fmin(v, -1e-6)) - v) * b + 0.5 * v;
                CHECK(fabs((double)get(&y, r, c) - want)
                      <= (t ? 0x1p-7 : 1e-6) * (fabs(want) + 1e-6));
            }
        drop(&x), drop(&y);
        weight_free(&hp), weight_free(&hn);
    }
}

static void add_bias_adds_a_weight(void)
{
    for (int t = 0; t < 2; t++)
        for (int enc = 0; enc < 2; enc++) {
            struct weight w;
            CHECK(weight_at(enc, 1, 300, &w));
            struct buf x = act(types[t], 3, 300, 301), y = act(types[t], 3, 300, 300);
            RadTensor o[3] = { x.t, w.t, y.t };
            RadParam p[] = { P_N("n", 300) };
            run("add_bias", p, 1, o, 3, 2);
            for (int64_t r = 0; r < 3; r++)
                for (int64_t c = 0; c < 300; c++) {
                    float b = rad_get_f32(w.t.plane[0], types[enc], (size_t)c);
                    CHECK(same(get(&y, r, c), narrowed(types[t], get(&x, r, c) + b)));
                }
            drop(&x), drop(&y);
            weight_free(&w);
        }
}

static void scale_by_position_steps(void)
{
    int32_t at[] = { 0, 31, 32, 1000 };
    for (int t = 0; t < 2; t++)
        for (int shift = 0; shift < 2; shift++) {
            struct buf x = act(types[t], 4, 40, 44), y = act(types[t], 4, 40, 40);
            struct buf pos = ints(at, 4);
            RadTensor o[3] = { x.t, pos.t, y.t };
            RadParam p[] = { P_N("n", 40), P_R("beta", 0.1), P_N("every", 32),
                             P_N("shift", shift) };
            run("scale_by_position", p, shift ? 4 : 3, o, 3, 2);
            for (int64_t r = 0; r < 4; r++)
                for (int64_t c = 0; c < 40; c++) {
                    double f = 1 + 0.1 * log(1 + floor((at[r] + shift) / 32.0));
                    float want = narrowed(types[t], (float)((double)get(&x, r, c) * f));
                    CHECK(near(get(&y, r, c), want, 2, types[t]));
                }
            drop(&x), drop(&y), drop(&pos);
        }
    RadParam bad[] = { P_N("n", 40), P_R("beta", 0.1), P_N("every", 0) };
    CHECK(run_as("scale_by_position", bad, 3, NULL, 0, 1) == RAD_E_ARG);
}

void ref_check_number(void)
{
    TAP_RUN(constant_ops);
    TAP_RUN(xielu_bends_at_zero);
    TAP_RUN(add_bias_adds_a_weight);
    TAP_RUN(scale_by_position_steps);
}
