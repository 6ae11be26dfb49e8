/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/ref against formulas written here again, in double and the naive
 * way. Every op runs as one part and as several; the bytes must be the same. */
#include "ref-check.h"

/* ---- the table */

static void table_is_whole(void)
{
    CHECK(rad_plugin_abi_version() == RAD_ABI_VERSION);
    CHECK(rad_plugin_reference() == 1);
    CHECK(rad_kernel_schema_count() == REF_N_OPS);
    for (int i = 0; i < rad_kernel_schema_count(); i++) {
        const RadOpSchema *s = rad_kernel_schema_at(i);
        const RadKernelRow *r = rad_kernel_at(i);
        int ranges = 0, outs = 0;
        for (int k = 0; k < s->n_params; k++)
            ranges += s->params[k].kind == RAD_PK_RANGE;
        for (int k = 0; k < s->n_operands; k++)
            outs += s->operands[k].role == RAD_OPD_OUT || s->operands[k].role == RAD_OPD_INOUT;
        CHECK_MSG(ranges == 1 && outs >= 1, "%s: %d ranges, %d outputs", s->op, ranges, outs);
        CHECK_MSG(s->doc[0] && s->tolerance > 0, "%s: no meaning or tolerance", s->op);
        CHECK_MSG(!strcmp(s->op, r->op), "row %d is of %s, want %s", i, r->op, s->op);
        CHECK_MSG(r->parse && r->launch && r->cost && r->params_size, "%s: no hook", s->op);
        CHECK_MSG(!strncmp(r->name, r->op, strlen(r->op)), "row name %s", r->name);
        const char *isa = strrchr(r->name, '_');
        CHECK_MSG(isa && !strcmp(isa, "_ref"), "row name %s", r->name);
    }
    CHECK(!rad_kernel_at(-1) && !rad_kernel_at(REF_N_OPS));
}

/* Whatever is handed over, a launch returns a status and does not crash. */
static void bad_calls_are_refused(void)
{
    for (int i = 0; i < rad_kernel_count(); i++) {
        const RadKernelRow *r = rad_kernel_at(i);
        RadTensor none[RAD_MAX_OPERANDS] = { 0 };
        void *params = calloc(1, r->params_size);
        RadLaunch l = { .struct_size = sizeof l, .opd = none, .params = params, .parts = 1 };
        CHECK_MSG(r->launch(&l) < 0, "%s: ran without operands", r->op);
        l.n_opd = rad_kernel_schema_at(i)->n_operands;
        CHECK_MSG(r->launch(&l) < 0, "%s: ran on absent operands", r->op);
        CHECK_MSG(r->parse(NULL, 0, params) < 0, "%s: parsed nothing", r->op);
        free(params);
    }
    struct buf a = act(RAD_F32, 3, 8, 8), w = act(RAD_F32, 5, 8, 8), y = act(RAD_F32, 3, 5, 5);
    RadTensor o[3] = { a.t, w.t, y.t };
    RadParam p[] = { P_N("N", 5), P_N("K", 8) };
    CHECK(run_as("gemm_nt", p, 2, o, 3, 1) == RAD_OK);
    o[0].shape[1] = 7;
    CHECK(run_as("gemm_nt", p, 2, o, 3, 1) == RAD_E_SHAPE);
    o[0].shape[1] = 8;
    o[0].stride[1] = 2;
    CHECK(run_as("gemm_nt", p, 2, o, 3, 1) == RAD_E_STRIDE);
    o[0].stride[1] = 1;
    o[0].dtype = RAD_I32;
    CHECK(run_as("gemm_nt", p, 2, o, 3, 1) == RAD_E_DTYPE);
    o[0].dtype = RAD_F32;
    o[1].shape[0] = 4;
    CHECK(run_as("gemm_nt", p, 2, o, 3, 1) == RAD_E_SHAPE);
    o[1].shape[0] = 5;
    o[2].shape[0] = 2;
    CHECK(run_as("gemm_nt", p, 2, o, 3, 1) == RAD_E_SHAPE);
    const RadKernelRow *r = rad_kernel_at(RAD_OP_gemm_nt);
    struct ref_gemm g = { 3, 5, 8, NULL };
    RadTensor ok[3] = { a.t, w.t, y.t };
    RadLaunch l = { .struct_size = sizeof l, .n_opd = 3, .opd = ok, .params = &g, .parts = 1 };
    CHECK(r->launch(&l) == RAD_E_SCRATCH);
    drop(&a), drop(&w), drop(&y);
}

/* ---- matrix products */

static void gemm_case(const struct weight *w, int64_t M, int adt, int ydt, int64_t pitch_extra)
{
    int64_t N = w->t.shape[0], K = w->t.shape[1];
    struct buf a = act(adt, M, K, K + pitch_extra), y = act(ydt, M, N, N + pitch_extra);
    float *wf = malloc((size_t)(N * K) * sizeof *wf);
    CHECK(rad_decode_rows(&w->enc, w->t.plane, (uint64_t)(N + w->t.row0), (uint64_t)K,
                          (uint64_t)w->t.row0, (uint64_t)N, wf, (size_t)K, NULL) == RAD_OK);
    RadTensor o[3] = { a.t, w->t, y.t };
    RadParam p[] = { P_N("N", N), P_N("K", K) };
    run("gemm_nt", p, 2, o, 3, 2);
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double s = 0;
            for (int64_t k = 0; k < K; k++)
                s += (double)get(&a, m, k) * (double)wf[n * K + k];
            float want = narrowed(ydt, (float)s);
            CHECK_MSG(same(get(&y, m, n), want), "%s M=%d [%d,%d]: %a, want %a", w->name, (int)M,
                      (int)m, (int)n, (double)get(&y, m, n), (double)want);
        }
    RadParam q[] = { P_N("n_vocab", N), P_N("n_embd", K) };
    if (ydt == RAD_F32) {
        struct buf z = act(RAD_F32, M, N, N);
        RadTensor lo[3] = { a.t, w->t, z.t };
        run("logits_gemm", q, 2, lo, 3, 2);
        for (int64_t m = 0; m < M; m++)
            for (int64_t n = 0; n < N; n++)
                CHECK(same(get(&y, m, n), get(&z, m, n)));
        drop(&z);
    }
    drop(&a), drop(&y);
    free(wf);
}

static void gemm_reads_every_encoding(void)
{
    struct weight w;
    for (int i = 0; weight_at(i, 19, 64, &w); i++) {
        gemm_case(&w, 1, RAD_F32, RAD_F32, 0);
        gemm_case(&w, 5, RAD_BF16, RAD_BF16, 0);
        gemm_case(&w, 3, RAD_F32, RAD_F32, 11);
        /* a view that begins at row 8: rows [8, 19) */
        w.t.row0 = 8;
        w.t.shape[0] = 11;
        gemm_case(&w, 2, RAD_F32, RAD_F32, 0);
        weight_free(&w);
    }
    CHECK(weight_at(0, 67, 515, &w));        /* odd tails, more than one K tile */
    gemm_case(&w, 67, RAD_F32, RAD_F32, 3);
    gemm_case(&w, 1, RAD_BF16, RAD_F32, 0);
    gemm_case(&w, 2, RAD_F32, RAD_BF16, 0);
    weight_free(&w);
}

static void gemm_row_alone_is_the_row_in_a_batch(void)
{
    struct weight w;
    CHECK(weight_at(8, 40, 320, &w));
    struct buf a = act(RAD_F32, 130, 320, 320), y = act(RAD_F32, 130, 40, 40);
    RadTensor o[3] = { a.t, w.t, y.t };
    RadParam p[] = { P_N("N", 40), P_N("K", 320) };
    run("gemm_nt", p, 2, o, 3, 2);
    for (int64_t m0 = 0, n = 1; m0 + n <= 130; m0 += n, n++) {
        struct buf z = act(RAD_F32, n, 40, 40);
        RadTensor part[3] = { a.t, w.t, z.t };
        part[0].data = (float *)a.t.data + m0 * 320;
        part[0].shape[0] = n;
        run("gemm_nt", p, 2, part, 3, 2);
        CHECK_MSG(!memcmp(z.t.data, (float *)y.t.data + m0 * 40, (size_t)n * 40 * 4),
                  "rows %d+%d differ from the batch's", (int)m0, (int)n);
        drop(&z);
    }
    drop(&a), drop(&y);
    weight_free(&w);
}

static void gemm_nt_bias_rounds_three_times(void)
{
    static const char *const acts[] = { "none", "gelu", "gelu_tanh" };
    struct weight w, b;
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 3; k++)
            for (int with_res = 0; with_res < 2; with_res++) {
                int dt = t ? RAD_BF16 : RAD_F32;
                CHECK(weight_at(0, 13, 30, &w));
                CHECK(weight_at(0, 1, 13, &b));
                b.t.rank = 1;
                b.t.shape[0] = 13;
                struct buf a = act(dt, 5, 30, 30), y = act(dt, 5, 13, 13), r = act(dt, 5, 13, 20);
                RadTensor o[5] = { a.t, w.t, b.t, with_res ? r.t : (RadTensor){ 0 }, y.t };
                RadParam p[] = { P_N("N", 13), P_N("K", 30), P_S("act", acts[k]) };
                run("gemm_nt_bias", p, 3, o, 5, 4);
                const float *wf = w.t.plane[0], *bf = b.t.plane[0];
                for (int64_t m = 0; m < 5; m++)
                    for (int64_t n = 0; n < 13; n++) {
                        double s = 0;
                        for (int64_t c = 0; c < 30; c++)
                            s += (double)get(&a, m, c) * (double)wf[n * 30 + c];
                        float v = narrowed(dt, (float)(s + (double)bf[n]));
                        double x = (double)v;
                        if (k == 1)
                            v = narrowed(dt, (float)(0.5 * x * (1 + erf(x / sqrt(2)))));
                        if (k == 2)
                            v = narrowed(dt, (float)(0.5 * x * (1 + tanh(sqrt(2 / M_PI)
                                                     * (x + 0.044715 * x * x * x)))));
                        if (with_res)
                            v = narrowed(dt, get(&r, m, n) + v);
                        CHECK_MSG(near(get(&y, m, n), v, k ? 2 : 0, dt), "act %s: %a, want %a",
                                  acts[k], (double)get(&y, m, n), (double)v);
                    }
                drop(&a), drop(&y), drop(&r);
                weight_free(&w), weight_free(&b);
            }
}

/* What a launch must move: the weight as stored, the activations, no more. */
static void cost_is_exact(void)
{
    struct weight w;
    CHECK(weight_at(8, 24, 64, &w));                /* u4, f16 scale and min of 32 */
    struct buf a = act(RAD_BF16, 3, 64, 80), y = act(RAD_F32, 3, 24, 24);
    RadTensor o[3] = { a.t, w.t, y.t };
    struct ref_gemm g = { 3, 24, 64, NULL };
    RadCost c = { 0, 0 };
    CHECK(!rad_kernel_at(RAD_OP_gemm_nt)->cost(&g, o, 3, &c));
    CHECK(c.bytes == 24 * (32 + 2 * 2 + 2 * 2) + 3 * 64 * 2 + 3 * 24 * 4);
    CHECK(c.ops == 2 * 3 * 24 * 64);
    drop(&a), drop(&y);
    weight_free(&w);

    /* two sequences, 5 and 40 keys, of which the last 2 and 3 are queries */
    int32_t used[] = { 5, 40 }, cu[] = { 0, 2, 5 }, blocks[6] = { 0 };
    struct ref_attn p = { .C = 8, .gqa = 2, .causal = 1, .kv_dt = RAD_BF16 };
    RadTensor q[9] = { 0 };
    q[0] = q[8] = (RadTensor){ .dtype = RAD_F32, .rank = 2, .shape = { 5, 32 } };
    q[1] = (RadTensor){ .dtype = RAD_BF16, .rank = 4, .shape = { 9, 2, 16, 16 } };
    q[2] = flat(blocks, RAD_I32, 2, 3);
    q[3] = (RadTensor){ .data = used, .dtype = RAD_I32, .rank = 1, .shape = { 2 } };
    q[6] = (RadTensor){ .data = cu, .dtype = RAD_I32, .rank = 1, .shape = { 3 } };
    CHECK(!rad_kernel_at(RAD_OP_attn_paged)->cost(&p, q, 9, &c));
    CHECK(c.bytes == 45 * 2 * 16 * 2 + 2 * 5 * 32 * 4 + 6 * 4 + 2 * 4 + 3 * 4);
    CHECK(c.ops == 4 * (4 + 5 + 38 + 39 + 40) * 4 * 8);
}

/* ---- rows that move */

static void embed_lookup_zeroes_what_it_does_not_hold(void)
{
    struct weight w;
    int32_t tok[] = { 3, -1, 0, 18, 3 };
    for (int i = 0; weight_at(i, 19, 64, &w); i++) {
        struct buf x = act(i % 2 ? RAD_BF16 : RAD_F32, 5, 64, 70), t = ints(tok, 5);
        RadTensor o[3] = { t.t, w.t, x.t };
        RadParam p[] = { P_N("n_embd", 64), P_N("n_vocab", 19) };
        run("embed_lookup", p, 2, o, 3, 2);
        float row[64];
        for (int64_t m = 0; m < 5; m++) {
            memset(row, 0, sizeof row);
            if (tok[m] >= 0)
                CHECK(!rad_decode_rows(&w.enc, w.t.plane, 19, 64, (uint64_t)tok[m], 1, row, 64,
                                       NULL));
            for (int64_t c = 0; c < 64; c++)
                CHECK(same(get(&x, m, c), narrowed(x.t.dtype, row[c])));
        }
        drop(&x), drop(&t);
        weight_free(&w);
    }
    CHECK(weight_at(0, 19, 64, &w));
    int32_t split[] = { 30, 9, 28, 29, 10 };
    struct buf x = act(RAD_F32, 5, 64, 64), t = ints(split, 5);
    RadTensor o[3] = { t.t, w.t, x.t };
    RadParam p[] = { P_N("n_embd", 64), P_N("n_vocab", 19), P_N("vocab_offset", 10),
                     P_R("wscale", 2.0) };
    run("embed_lookup", p, 4, o, 3, 2);      /* rows [10, 29) of a split table */
    const float *wf = w.t.plane[0];
    for (int64_t c = 0; c < 64; c++) {
        CHECK(get(&x, 0, c) == 0 && get(&x, 1, c) == 0 && get(&x, 3, c) == 0);
        CHECK(get(&x, 2, c) == 2 * wf[18 * 64 + c] && get(&x, 4, c) == 2 * wf[c]);
    }
    CHECK(run_as("embed_lookup", p, 2, o, 3, 1) == RAD_E_ARG);   /* the whole vocabulary */
    drop(&x), drop(&t);
    weight_free(&w);
}

static void gather_and_scatter(void)
{
    int32_t idx[] = { 2, -1, 0, 6 };
    struct buf x = act(RAD_BF16, 7, 10, 13), y = act(RAD_BF16, 4, 10, 10), i = ints(idx, 4);
    RadTensor g[3] = { x.t, i.t, y.t };
    RadParam p[] = { P_N("n", 10) };
    run("gather_rows", p, 1, g, 3, 2);
    for (int64_t c = 0; c < 10; c++) {
        CHECK(get(&y, 0, c) == get(&x, 2, c) && get(&y, 1, c) == 0);
        CHECK(get(&y, 2, c) == get(&x, 0, c) && get(&y, 3, c) == get(&x, 6, c));
    }
    struct buf z = act(RAD_BF16, 7, 10, 10);
    float keep = get(&z, 1, 4);
    RadTensor s[3] = { y.t, i.t, z.t };
    run("scatter_rows", p, 1, s, 3, 2);
    for (int64_t c = 0; c < 10; c++)
        CHECK(get(&z, 2, c) == get(&x, 2, c) && get(&z, 6, c) == get(&x, 6, c));
    CHECK(get(&z, 1, 4) == keep);
    ((int32_t *)i.t.data)[3] = 7;
    CHECK(run_as("gather_rows", p, 1, g, 3, 1) == RAD_E_ARG);
    CHECK(run_as("scatter_rows", p, 1, s, 3, 1) == RAD_E_ARG);
    drop(&x), drop(&y), drop(&z), drop(&i);
}

static void cast_keeps_integers_whole(void)
{
    int64_t big[] = { 16777217, -5, 3000000000LL, INT64_MIN };
    int32_t out[4];
    RadTensor x = flat(big, RAD_I64, 1, 4), y = flat(out, RAD_I32, 1, 4);
    RadTensor o[2] = { x, y };
    RadParam p[] = { P_N("n", 4) };
    run("cast", p, 1, o, 2, 1);
    CHECK(out[0] == 16777217 && out[1] == -5 && out[2] == INT32_MAX && out[3] == INT32_MIN);
    float f[] = { 2.5f, -300.0f, NAN, 1e30f };
    int8_t b[4];
    RadTensor q[2] = { flat(f, RAD_F32, 1, 4), flat(b, RAD_I8, 1, 4) };
    run("cast", p, 1, q, 2, 1);
    CHECK(b[0] == 2 && b[1] == -128 && b[2] == 0 && b[3] == 127);
    struct buf a = act(RAD_F32, 9, 300, 310), c = act(RAD_BF16, 9, 300, 301);
    RadParam pa[] = { P_N("n", 300) };
    RadTensor r[2] = { a.t, c.t };
    run("cast", pa, 1, r, 2, 1);
    for (int64_t m = 0; m < 9; m++)
        for (int64_t k = 0; k < 300; k++)
            CHECK(same(get(&c, m, k), narrowed(RAD_BF16, get(&a, m, k))));
    drop(&a), drop(&c);
}

int main(void)
{
    TAP_RUN(table_is_whole);
    TAP_RUN(bad_calls_are_refused);
    TAP_RUN(gemm_reads_every_encoding);
    TAP_RUN(gemm_row_alone_is_the_row_in_a_batch);
    TAP_RUN(gemm_nt_bias_rounds_three_times);
    TAP_RUN(cost_is_exact);
    TAP_RUN(embed_lookup_zeroes_what_it_does_not_hold);
    TAP_RUN(gather_and_scatter);
    TAP_RUN(cast_keeps_integers_whole);
    ref_check_elem();
    ref_check_attn();
    return tap_done();
}
