/* SPDX-License-Identifier: Apache-2.0 */
/* ref-check: elementwise ops, norms, softmax, rope. */
#include "ref-check.h"

static double f_silu(double x) { return x / (1 + exp(-x)); }
static double f_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double f_gelu(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double f_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double f_relu2(double x) { return x > 0 ? x * x : isnan(x) ? x : 0; }

static const int types[] = { RAD_F32, RAD_BF16 };

static void unary_ops(void)
{
    static const struct { const char *op; double (*f)(double); } ops[] = {
        { "silu", f_silu }, { "sigmoid", f_sigmoid }, { "gelu", f_gelu },
        { "gelu_tanh", f_gelu_tanh }, { "relu2", f_relu2 },
    };
    static const float extreme[] = { 0, -0.0f, 1e30f, -1e30f, 88, -104, INFINITY, -INFINITY, NAN };
    for (int t = 0; t < 2; t++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            struct buf x = act(types[t], 3, 517, 520), y = act(types[t], 3, 517, 519);
            for (int64_t c = 0; c < 9; c++)
                set(&x, 1, c, extreme[c]);
            RadTensor o[2] = { x.t, y.t };
            RadParam p[] = { P_N("n", 517) };
            run(ops[k].op, p, 1, o, 2, 1);
            for (int64_t r = 0; r < 3; r++)
                for (int64_t c = 0; c < 517; c++) {
                    float want = narrowed(types[t], (float)ops[k].f((double)get(&x, r, c)));
                    CHECK_MSG(near(get(&y, r, c), want, 2, types[t]), "%s(%a) = %a, want %a",
                              ops[k].op, (double)get(&x, r, c), (double)get(&y, r, c),
                              (double)want);
                }
            o[1] = x.t;                              /* in place */
            CHECK(run_as(ops[k].op, p, 1, o, 2, 3) == RAD_OK);
            for (int64_t c = 0; c < 517; c++)
                CHECK(same(get(&x, 1, c), get(&y, 1, c)));
            drop(&x), drop(&y);
        }
}

static void binary_ops(void)
{
    for (int t = 0; t < 2; t++)
        for (int mul = 0; mul < 2; mul++)
            for (int rows = 1; rows <= 5; rows += 4) {
                struct buf a = act(types[t], 5, 300, 303), b = act(types[t], rows, 300, 310);
                struct buf y = act(types[t], 5, 300, 300);
                RadTensor o[3] = { a.t, b.t, y.t };
                RadParam p[] = { P_N("n", 300) };
                if (rows == 1) {                     /* repeats down the rows */
                    o[1].rank = 1;
                    o[1].shape[0] = 300;
                    o[1].stride[0] = 1;
                }
                run(mul ? "mul" : "add", p, 1, o, 3, 2);
                for (int64_t r = 0; r < 5; r++)
                    for (int64_t c = 0; c < 300; c++) {
                        float u = get(&a, r, c), v = get(&b, rows == 1 ? 0 : r, c);
                        CHECK(same(get(&y, r, c), narrowed(types[t], mul ? u * v : u + v)));
                    }
                drop(&a), drop(&b), drop(&y);
            }
}

static void gated_ops_take_the_gate_first(void)
{
    static const struct { const char *op; double (*f)(double); } ops[] = {
        { "silu_mul", f_silu }, { "gelu_mul", f_gelu }, { "gelu_tanh_mul", f_gelu_tanh },
        { "relu2_mul", f_relu2 },
    };
    for (int k = 0; k < 8; k++) {
        int t = k & 1;
        struct buf x = act(types[t], 4, 2 * 131, 300), y = act(types[t], 4, 131, 140);
        RadTensor o[2] = { x.t, y.t };
        RadParam p[] = { P_N("n", 131) };
        run(ops[k / 2].op, p, 1, o, 2, 1);
        for (int64_t r = 0; r < 4; r++)
            for (int64_t c = 0; c < 131; c++) {
                double v = ops[k / 2].f((double)get(&x, r, c)) * (double)get(&x, r, 131 + c);
                CHECK(near(get(&y, r, c), narrowed(types[t], (float)v), 2, types[t]));
            }
        drop(&x), drop(&y);
    }
}

static void scale_rows_narrows_before_it_adds(void)
{
    for (int t = 0; t < 2; t++)
        for (int sig = 0; sig < 2; sig++)
            for (int add = 0; add < 2; add++) {
                struct buf x = act(types[t], 6, 33, 40), s = act(types[t], 6, 1, 5);
                struct buf z = act(types[t], 6, 33, 33), y = act(types[t], 6, 33, 33);
                RadTensor o[4] = { x.t, s.t, add ? z.t : (RadTensor){ 0 }, y.t };
                RadParam p[] = { P_N("n", 33), P_S("act", sig ? "sigmoid" : "none") };
                run("scale_rows", p, 2, o, 4, 3);
                for (int64_t r = 0; r < 6; r++)
                    for (int64_t c = 0; c < 33; c++) {
                        double g = (double)get(&s, r, 0);
                        float v = (float)((double)get(&x, r, c) * (sig ? f_sigmoid(g) : g));
                        v = narrowed(types[t], v);
                        if (add)
                            v = narrowed(types[t], v + get(&z, r, c));
                        CHECK(near(get(&y, r, c), v, 2, types[t]));
                    }
                drop(&x), drop(&s), drop(&z), drop(&y);
            }
}

static void softmax_of_far_values(void)
{
    struct buf x = act(RAD_F32, 4, 700, 701), y = act(RAD_F32, 4, 700, 700);
    set(&x, 1, 5, 3e38f);
    set(&x, 2, 699, -INFINITY);
    RadTensor o[2] = { x.t, y.t };
    RadParam p[] = { P_N("n", 700) };
    run("softmax", p, 1, o, 2, 1);
    CHECK(get(&y, 1, 5) == 1 && get(&y, 1, 6) == 0 && get(&y, 2, 699) == 0);
    for (int64_t r = 0; r < 4; r++) {
        double max = -INFINITY, sum = 0;
        for (int64_t c = 0; c < 700; c++)
            max = fmax(max, (double)get(&x, r, c));
        for (int64_t c = 0; c < 700; c++)
            sum += exp((double)get(&x, r, c) - max);
        for (int64_t c = 0; c < 700; c++)
            CHECK(near(get(&y, r, c), (float)(exp((double)get(&x, r, c) - max) / sum), 1, RAD_F32));
    }
    drop(&x), drop(&y);
}

/* rows of a matrix, heads of a column slice, with and without a gain */
static void rmsnorm_rows_and_heads(void)
{
    struct weight w;
    for (int t = 0; t < 2; t++)
        for (int heads = 0; heads < 3; heads++) {
            int64_t n = 24, H = heads ? 5 : 1;
            CHECK(weight_at(t, 1, n, &w));
            w.t.rank = 1;
            w.t.shape[0] = n;
            struct buf x = act(types[t], 4, H * n, H * n + 7);
            struct buf y = act(types[t], 4, H * n, H * n + 3);
            RadTensor o[3] = { x.t, w.t, y.t };
            if (heads == 1)
                for (int i = 0; i < 3; i += 2) {     /* [T,H,C] */
                    o[i].rank = 3;
                    o[i].shape[1] = H;
                    o[i].shape[2] = n;
                    o[i].stride[1] = n;
                    o[i].stride[2] = 1;
                }
            double wadd = heads == 2 ? 1 : 0;
            RadParam p[] = { P_N("n", n), P_R("eps", 1e-5), P_R("wadd", wadd) };
            run("rmsnorm", p, 3, o, 3, 2);
            for (int64_t r = 0; r < 4; r++)
                for (int64_t h = 0; h < H; h++) {
                    double ss = 0;
                    for (int64_t c = 0; c < n; c++)
                        ss += pow((double)get(&x, r, h * n + c), 2);
                    for (int64_t c = 0; c < n; c++) {
                        float g = rad_get_f32(w.t.plane[0], types[t], (size_t)c) + (float)wadd;
                        double v = (double)get(&x, r, h * n + c) / sqrt(ss / (double)n + 1e-5)
                            * (double)g;
                        float want = narrowed(types[t], (float)v);
                        CHECK(near(get(&y, r, h * n + c), want, 2, types[t]));
                    }
                }
            float had = get(&y, 0, 0);
            float g0 = rad_get_f32(w.t.plane[0], types[t], 0) + (float)wadd;
            o[1] = (RadTensor){ 0 };                 /* no gain */
            run("rmsnorm", p, 2, o, 3, 2);
            CHECK(near(get(&y, 0, 0) * g0, had, 4, types[t]));
            drop(&x), drop(&y);
            weight_free(&w);
        }
}

static void rmsnorm_add_keeps_the_sum(void)
{
    struct weight w;
    for (int t = 0; t < 2; t++) {
        int64_t n = 50;
        CHECK(weight_at(0, 1, n, &w));
        struct buf x = act(types[t], 3, n, n), res = act(types[t], 3, n, n + 5);
        struct buf y = act(types[t], 3, n, n), out = act(types[t], 3, n, n + 1);
        RadTensor o[5] = { x.t, res.t, w.t, y.t, out.t };
        RadParam p[] = { P_N("n", n), P_R("eps", 1e-6) };
        run("rmsnorm_add", p, 2, o, 5, 3);
        for (int64_t r = 0; r < 3; r++) {
            double ss = 0;
            for (int64_t c = 0; c < n; c++)
                ss += pow((double)(get(&x, r, c) + get(&res, r, c)), 2);
            for (int64_t c = 0; c < n; c++) {
                float s = narrowed(types[t], get(&x, r, c) + get(&res, r, c));
                CHECK(same(get(&out, r, c), s));
                double v = (double)s / sqrt(ss / (double)n + 1e-6)
                    * (double)((const float *)w.t.plane[0])[c];
                CHECK(near(get(&y, r, c), narrowed(types[t], (float)v), 2, types[t]));
            }
        }
        drop(&x), drop(&res), drop(&y), drop(&out);
        weight_free(&w);
    }
}

static void layernorm_gain_and_bias_are_optional(void)
{
    struct weight w, b;
    for (int t = 0; t < 2; t++)
        for (int has = 0; has < 8; has++) {          /* bits: bias, no gain, 1 + gain */
            int bias = has & 1;
            int64_t n = 41;
            CHECK(weight_at(0, 1, n, &w));
            CHECK(weight_at(0, 1, n, &b));
            struct buf x = act(types[t], 3, n, n + 2), y = act(types[t], 3, n, n);
            for (int64_t c = 0; c < n; c++)
                set(&x, 2, c, 1000 + get(&x, 2, c));     /* a mean far from zero */
            RadTensor none = { 0 };
            RadTensor o[4] = { x.t, has & 2 ? none : w.t, bias ? b.t : none, y.t };
            RadParam p[] = { P_N("n", n), P_R("eps", 1e-5), P_R("wadd", 1) };
            run("layernorm", p, has & 4 ? 3 : 2, o, 4, 3);
            for (int64_t r = 0; r < 3; r++) {
                double mean = 0, var = 0;
                for (int64_t c = 0; c < n; c++)
                    mean += (double)get(&x, r, c) / (double)n;
                for (int64_t c = 0; c < n; c++)
                    var += pow((double)get(&x, r, c) - mean, 2) / (double)n;
                for (int64_t c = 0; c < n; c++) {
                    double g = has & 2 ? 1 : (double)(((const float *)w.t.plane[0])[c]
                                                     + (has & 4 ? 1.0f : 0.0f));
                    double v = ((double)get(&x, r, c) - mean) / sqrt(var + 1e-5) * g;
                    if (bias)
                        v += (double)((const float *)b.t.plane[0])[c];
                    float want = narrowed(types[t], (float)v);
                    double tol = (t ? 0x1p-7 : 1e-6) * (fabs(v) + 1e-3);
                    CHECK(fabs((double)(get(&y, r, c) - want)) <= tol);
                }
            }
            drop(&x), drop(&y);
            weight_free(&w), weight_free(&b);
        }
}

static void rope_turns_pairs(void)
{
    int32_t at[] = { 0, 7, 100000, 3 };
    float table[8], factors[8];
    for (int i = 0; i < 8; i++) {
        table[i] = 1.0f / (float)(i + 1);
        factors[i] = 1.0f + 0.75f * (float)i;
    }
    for (int t = 0; t < 2; t++)
        for (int gptj = 0; gptj < 2; gptj++)
            for (int own = 0; own < 4; own++) {       /* bits: frequencies, factors */
                int64_t C = 24, R = 16, H = 3, V = 2;    /* two heads more stay as they are */
                struct buf x = act(types[t], 4, (H + V) * C, (H + V) * C + 5);
                struct buf was = act(types[t], 4, (H + V) * C, (H + V) * C), pos = ints(at, 4);
                for (int64_t r = 0; r < 4; r++)
                    for (int64_t c = 0; c < (H + V) * C; c++)
                        set(&was, r, c, get(&x, r, c));
                RadTensor o[4] = { x.t, pos.t, { 0 }, { 0 } };
                for (int k = 0; k < 2; k++)
                    if (own >> k & 1)
                        o[2 + k] = (RadTensor){ .data = k ? factors : table, .dtype = RAD_F32,
                                                .rank = 1, .shape = { 8 }, .stride = { 1 } };
                RadParam p[] = { P_N("head_dim", C), P_N("n_head", 2), P_N("n_head_kv", 1),
                                 P_R("theta", 10000), P_R("scale", 4), P_N("rotary_dim", R),
                                 P_S("mode", gptj ? "gptj" : "neox"), P_R("mscale", 1.25) };
                run("rope", p, 8, o, 4, 0);
                for (int64_t r = 0; r < 4; r++)
                    for (int64_t h = 0; h < H + V; h++)
                        for (int64_t c = 0; c < C; c++) {
                            float want = get(&was, r, h * C + c);
                            if (h < H && c < R) {
                                int64_t i = gptj ? c / 2 : c % (R / 2);
                                int64_t u = gptj ? 2 * i : i, v = gptj ? 2 * i + 1 : i + R / 2;
                                float inv = own & 1 ? table[i]
                                    : 1.0f / powf(10000, (float)(2 * i) / (float)R) / 4;
                                float a = (float)at[r] * (own & 2 ? inv / factors[i] : inv);
                                double cs = (double)((float)cos((double)a) * 1.25f);
                                double sn = (double)((float)sin((double)a) * 1.25f);
                                double p0 = (double)get(&was, r, h * C + u);
                                double p1 = (double)get(&was, r, h * C + v);
                                want = narrowed(types[t], (float)(c == u ? p0 * cs - p1 * sn
                                                                        : p1 * cs + p0 * sn));
                            }
                            CHECK(same(get(&x, r, h * C + c), want));
                        }
                drop(&x), drop(&was), drop(&pos);
            }
    RadParam bad[] = { P_N("head_dim", 8), P_N("n_head", 1), P_N("n_head_kv", 0),
                       P_R("theta", 10000), P_R("scale", 1), P_S("mode", "mrope") };
    CHECK(run_as("rope", bad, 6, NULL, 0, 1) == RAD_E_UNSUPPORTED);
}

void ref_check_elem(void)
{
    TAP_RUN(unary_ops);
    TAP_RUN(binary_ops);
    TAP_RUN(gated_ops_take_the_gate_first);
    ref_check_number();
    TAP_RUN(scale_rows_narrows_before_it_adds);
    TAP_RUN(softmax_of_far_values);
    TAP_RUN(rmsnorm_rows_and_heads);
    TAP_RUN(rmsnorm_add_keeps_the_sum);
    TAP_RUN(layernorm_gain_and_bias_are_optional);
    TAP_RUN(rope_turns_pairs);
}
