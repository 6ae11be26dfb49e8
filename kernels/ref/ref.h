/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the reference library: views of operands, loads and
 * stores of every activation type, weight rows, each op's parsed parameters.
 *
 * Numerics of the whole library: values are f32 (bf16 and f16 are widened on
 * load and narrowed from the f32 result on store), products and sums are
 * double in ascending index order, the result is rounded once to f32. A row's
 * bits depend on that row alone: never on M, parts or tiling. */
#ifndef REF_H
#define REF_H

#include <rad/rad_kernel.h>

enum ref_op {
#define RAD_OP(name, tol, doc, params, operands) RAD_OP_##name,
#include "ops.def"
#undef RAD_OP
    REF_N_OPS
};

/* ---- operands (view.c) */

/* A tensor as rows of n contiguous elements; rows may be pitched twice, as
 * the heads of a column slice are. */
struct ref_view {
    uint8_t *base;
    int dt;
    size_t esz;           /* bytes an element */
    int64_t n, rows;
    int64_t inner;        /* row r lies at (r / inner) * so + (r % inner) * si */
    int64_t so, si;       /* elements */
};

/* RAD_E_ARG absent, RAD_E_DTYPE not whole bytes, RAD_E_SHAPE the rows are not
 * n wide, RAD_E_STRIDE their elements are not contiguous. */
int ref_view(const RadTensor *t, int64_t n, struct ref_view *v);
/* As ref_view for an activation: f32, bf16 or f16. */
int ref_act(const RadTensor *t, int64_t n, struct ref_view *v);
/* Contiguous i32 elements, at least n of them. */
int ref_i32(const RadTensor *t, int64_t n, const int32_t **out);

static inline void *ref_row(const struct ref_view *v, int64_t r)
{
    int64_t at = v->inner == 1 ? r * v->so : r / v->inner * v->so + r % v->inner * v->si;
    return v->base + (size_t)at * v->esz;
}
void ref_load(const void *row, int dt, int64_t i, int64_t n, float *out);
void ref_store(void *row, int dt, int64_t i, int64_t n, const float *in);
float ref_narrow(int dt, float f);        /* what a store and a load make of f */

/* Rows [r0, r0+n) of a weight of k columns as f32, k floats a row. */
int ref_weight_check(const RadTensor *w, int64_t rows, int64_t cols);
int ref_weight_rows(const RadTensor *w, int64_t r0, int64_t n, int64_t k, float *out);
/* Elements [c0, c0+n) of a vector weight (one row). */
int ref_weight_span(const RadTensor *w, int64_t c0, int64_t n, float *out);

uint64_t ref_bytes(const RadTensor *t);   /* as stored; 0 when absent */
uint64_t ref_row_bytes(const RadTensor *w);      /* one row of a weight */

/* [lo, hi): this part's share of n units. */
static inline void ref_share(const RadLaunch *a, int64_t n, int64_t *lo, int64_t *hi)
{
    int64_t parts = a->parts > 0 ? a->parts : 1;
    *lo = n / parts * a->part + (a->part < n % parts ? a->part : n % parts);
    *hi = *lo + n / parts + (a->part < n % parts);
}
/* This part's slice of the scratch, each of `bytes`, or NULL. */
static inline void *ref_scratch(const RadLaunch *a, size_t bytes)
{
    size_t each = (bytes + 63) & ~(size_t)63;
    size_t at = each * (size_t)a->part;
    return a->scratch && at + bytes <= a->scratch_bytes ? (char *)a->scratch + at : NULL;
}
static inline size_t ref_scratch_all(size_t bytes, int parts)
{
    return ((bytes + 63) & ~(size_t)63) * (size_t)(parts > 0 ? parts : 1);
}

/* ---- the product every matrix op is made of (dot.c) */

/* c[j] += sum over k of a[k] * w[k][j], k ascending; w 16-byte aligned. The
 * eight sums are independent, which is what makes the order affordable. */
void ref_dot8(const double *a, const double *w, int64_t k, double c[8]);
void ref_dot8x2(const double *a0, const double *a1, const double *w, int64_t k,
                double c0[8], double c1[8]);
/* The same sums from eight rows of floats, for when a row is used once. */
void ref_dot8_rows(const double *a, const float *w, int64_t pitch, int64_t k, double c[8]);

double ref_silu(double x);
double ref_sigmoid(double x);
double ref_gelu(double x);
double ref_gelu_tanh(double x);
double ref_relu2(double x);

/* ---- parsed parameters */
struct ref_elem {         /* elementwise, norms, row movement */
    int64_t M, n;
    double eps;
    float wadd;
    int sigmoid;          /* scale_rows */
};
struct ref_number {       /* elementwise with numbers of its own */
    struct ref_elem e;    /* first: the shared hooks read it */
    double a, b;
    int64_t every, shift;
};
struct ref_embed {
    int64_t M, n, n_vocab, offset;
    float wscale;
};
struct ref_gemm {
    int64_t M, N, K;
    double (*act)(double);
};
#define REF_MAX_ROTARY 1024
struct ref_rope {
    int64_t M, C, heads, rot;
    float mscale;
    int gptj;
    float inv[REF_MAX_ROTARY / 2];
};
struct ref_kv {
    int64_t M, C, Hkv, block;
    int dt;
    float k_scale, v_scale;
};
struct ref_attn {
    int64_t q_len, C, gqa, block, window, cap;
    int causal, kv_dt;
    double scale, softcap;
};

/* ---- hooks of the rows, by family */
#define REF_PARSE(f) int f(const RadParam *p, int n, void *out)
#define REF_LAUNCH(f) int f(const RadLaunch *a)
#define REF_COST(f) int f(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
#define REF_SCRATCH(f) size_t f(const void *params, int parts)

REF_PARSE(ref_elem_parse);
REF_PARSE(ref_scale_rows_parse);
REF_COST(ref_move_cost);          /* operands read and written once, no sums */
REF_COST(ref_elem_cost);
REF_COST(ref_norm_cost);
REF_LAUNCH(ref_add);
REF_LAUNCH(ref_mul);
REF_LAUNCH(ref_silu_mul_op);
REF_LAUNCH(ref_silu_op);
REF_LAUNCH(ref_sigmoid_op);
REF_LAUNCH(ref_gelu_op);
REF_LAUNCH(ref_gelu_tanh_op);
REF_LAUNCH(ref_gelu_mul_op);
REF_LAUNCH(ref_gelu_tanh_mul_op);
REF_LAUNCH(ref_relu2_mul_op);
REF_LAUNCH(ref_relu2_op);
REF_PARSE(ref_xielu_parse);
REF_PARSE(ref_scale_parse);
REF_PARSE(ref_softcap_parse);
REF_PARSE(ref_clip_parse);
REF_PARSE(ref_scale_by_position_parse);
REF_LAUNCH(ref_xielu);
REF_LAUNCH(ref_scale);
REF_LAUNCH(ref_softcap);
REF_LAUNCH(ref_clip);
REF_LAUNCH(ref_scale_by_position);
REF_SCRATCH(ref_add_bias_scratch);
REF_LAUNCH(ref_add_bias);
REF_LAUNCH(ref_softmax);
REF_LAUNCH(ref_scale_rows);

REF_PARSE(ref_norm_parse);
REF_SCRATCH(ref_norm_scratch);
REF_LAUNCH(ref_rmsnorm);
REF_LAUNCH(ref_rmsnorm_add);
REF_LAUNCH(ref_layernorm);

REF_PARSE(ref_embed_parse);
REF_SCRATCH(ref_embed_scratch);
REF_COST(ref_embed_cost);
REF_LAUNCH(ref_embed_lookup);
REF_LAUNCH(ref_gather_rows);
REF_LAUNCH(ref_scatter_rows);
REF_LAUNCH(ref_cast);
REF_COST(ref_gather_cost);
REF_COST(ref_scatter_cost);

REF_PARSE(ref_gemm_parse);
REF_PARSE(ref_logits_parse);
REF_SCRATCH(ref_gemm_scratch);
REF_COST(ref_gemm_cost);
REF_LAUNCH(ref_gemm_nt);
REF_LAUNCH(ref_gemm_nt_bias);

REF_PARSE(ref_rope_parse);
REF_COST(ref_rope_cost);
REF_LAUNCH(ref_rope);

REF_PARSE(ref_kv_parse);
REF_COST(ref_kv_cost);
REF_LAUNCH(ref_kv_store);
REF_PARSE(ref_attn_parse);
REF_SCRATCH(ref_attn_scratch);
REF_COST(ref_attn_cost);
REF_LAUNCH(ref_attn_paged);

#endif
