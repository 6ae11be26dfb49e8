/* SPDX-License-Identifier: Apache-2.0 */
/* The reference library's exports: schemas made from ops.def, one row an op. */
#include "ref.h"

#define P(k, kd, nd) { .key = #k, .kind = RAD_PK_##kd, .need = RAD_PARAM_##nd }
#define P_RANGE(k) P(k, RANGE, REQUIRED)
#define P_INT(k) P(k, INT, REQUIRED)
#define P_INT_OPT(k) P(k, INT, OPTIONAL)
#define P_STR(k) P(k, STR, REQUIRED)
#define P_STR_OPT(k) P(k, STR, OPTIONAL)
#define P_REAL(k) P(k, REAL, REQUIRED)
#define P_REAL_OPT(k) P(k, REAL, OPTIONAL)
#define P_DERIVED(k) P(k, INT, DERIVED)
#define O_IN(k) { .name = #k, .role = RAD_OPD_IN }
#define O_IN_OPT(k) { .name = #k, .role = RAD_OPD_IN, .optional = 1 }
#define O_OUT(k) { .name = #k, .role = RAD_OPD_OUT }
#define O_INOUT(k) { .name = #k, .role = RAD_OPD_INOUT }
#define O_WEIGHT(k) { .name = #k, .role = RAD_OPD_WEIGHT }
#define O_WEIGHT_OPT(k) { .name = #k, .role = RAD_OPD_WEIGHT, .optional = 1 }
#define UNWRAP(...) __VA_ARGS__

#define RAD_OP(name, tol, doc, params, operands)                         \
    static const RadParamSpec params_##name[] = { UNWRAP params };       \
    static const RadOperandSpec operands_##name[] = { UNWRAP operands };
#include "ops.def"
#undef RAD_OP

#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]))
static const RadOpSchema schemas[] = {
#define RAD_OP(name, tol, meaning, p, o)                                 \
    [RAD_OP_##name] = {                                                  \
        .struct_size = sizeof(RadOpSchema), .op = #name,                 \
        .params = params_##name, .n_params = COUNT(params_##name),       \
        .operands = operands_##name, .n_operands = COUNT(operands_##name), \
        .tolerance = tol, .doc = meaning,                                \
    },
#include "ops.def"
#undef RAD_OP
};

static const RadConstraint act_dtype[] = {
    { .key = "dtype", .op = RAD_C_IN, .sval = "f32 bf16 f16" },
};
static const RadConstraint row_dtype[] = {
    { .key = "dtype", .op = RAD_C_IN, .sval = "f32 bf16 f16 u8 i32" },
};
static const RadConstraint kv_dtype[] = {
    { .key = "kv_dtype", .op = RAD_C_IN, .sval = "f32 bf16 f16 fp8_e4m3" },
};
static const RadConstraint attn_dtype[] = {
    { .key = "q_dtype", .op = RAD_C_IN, .sval = "f32 bf16 f16" },
    { .key = "kv_dtype", .op = RAD_C_IN, .sval = "f32 bf16 f16 fp8_e4m3" },
};
static const RadDerived attn_block[] = { { "block_size", 16 } };

#define ROW(o, nm, type)                                                 \
    .struct_size = sizeof(RadKernelRow), .name = nm, .op = #o,           \
    .domain = RAD_DOMAIN_HOST, .params_size = sizeof(struct type)
#define WHEN(c) .constraints = c, .n_constraints = COUNT(c)

static const RadKernelRow rows[] = {
    [RAD_OP_embed_lookup] = {
        ROW(embed_lookup, "embed_lookup_any_any_u1_ref", ref_embed), WHEN(act_dtype),
        .parse = ref_embed_parse, .launch = ref_embed_lookup, .scratch = ref_embed_scratch,
        .cost = ref_embed_cost },
    [RAD_OP_gather_rows] = {
        ROW(gather_rows, "gather_rows_any_any_u1_ref", ref_elem), WHEN(row_dtype),
        .parse = ref_elem_parse, .launch = ref_gather_rows, .cost = ref_gather_cost },
    [RAD_OP_scatter_rows] = {
        ROW(scatter_rows, "scatter_rows_any_any_u1_ref", ref_elem), WHEN(row_dtype),
        .parse = ref_elem_parse, .launch = ref_scatter_rows, .cost = ref_scatter_cost },
    [RAD_OP_cast] = {
        ROW(cast, "cast_any_any_u1_ref", ref_elem),
        .parse = ref_elem_parse, .launch = ref_cast, .cost = ref_move_cost },
    [RAD_OP_rmsnorm] = {
        ROW(rmsnorm, "rmsnorm_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_norm_parse, .launch = ref_rmsnorm, .scratch = ref_norm_scratch,
        .cost = ref_norm_cost },
    [RAD_OP_rmsnorm_add] = {
        ROW(rmsnorm_add, "rmsnorm_add_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_norm_parse, .launch = ref_rmsnorm_add, .scratch = ref_norm_scratch,
        .cost = ref_norm_cost },
    [RAD_OP_layernorm] = {
        ROW(layernorm, "layernorm_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_norm_parse, .launch = ref_layernorm, .scratch = ref_norm_scratch,
        .cost = ref_norm_cost },
    [RAD_OP_add] = {
        ROW(add, "add_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_add, .cost = ref_elem_cost },
    [RAD_OP_mul] = {
        ROW(mul, "mul_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_mul, .cost = ref_elem_cost },
    [RAD_OP_silu_mul] = {
        ROW(silu_mul, "silu_mul_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_silu_mul_op, .cost = ref_elem_cost },
    [RAD_OP_silu] = {
        ROW(silu, "silu_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_silu_op, .cost = ref_elem_cost },
    [RAD_OP_sigmoid] = {
        ROW(sigmoid, "sigmoid_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_sigmoid_op, .cost = ref_elem_cost },
    [RAD_OP_gelu] = {
        ROW(gelu, "gelu_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_gelu_op, .cost = ref_elem_cost },
    [RAD_OP_gelu_tanh] = {
        ROW(gelu_tanh, "gelu_tanh_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_gelu_tanh_op, .cost = ref_elem_cost },
    [RAD_OP_gelu_mul] = {
        ROW(gelu_mul, "gelu_mul_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_gelu_mul_op, .cost = ref_elem_cost },
    [RAD_OP_gelu_tanh_mul] = {
        ROW(gelu_tanh_mul, "gelu_tanh_mul_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_gelu_tanh_mul_op, .cost = ref_elem_cost },
    [RAD_OP_relu2_mul] = {
        ROW(relu2_mul, "relu2_mul_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_relu2_mul_op, .cost = ref_elem_cost },
    [RAD_OP_relu2] = {
        ROW(relu2, "relu2_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_relu2_op, .cost = ref_elem_cost },
    [RAD_OP_xielu] = {
        ROW(xielu, "xielu_any_any_u1_ref", ref_number), WHEN(act_dtype),
        .parse = ref_xielu_parse, .launch = ref_xielu, .cost = ref_elem_cost },
    [RAD_OP_scale] = {
        ROW(scale, "scale_any_any_u1_ref", ref_number), WHEN(act_dtype),
        .parse = ref_scale_parse, .launch = ref_scale, .cost = ref_elem_cost },
    [RAD_OP_softcap] = {
        ROW(softcap, "softcap_any_any_u1_ref", ref_number), WHEN(act_dtype),
        .parse = ref_softcap_parse, .launch = ref_softcap, .cost = ref_elem_cost },
    [RAD_OP_clip] = {
        ROW(clip, "clip_any_any_u1_ref", ref_number), WHEN(act_dtype),
        .parse = ref_clip_parse, .launch = ref_clip, .cost = ref_elem_cost },
    [RAD_OP_add_bias] = {
        ROW(add_bias, "add_bias_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_add_bias, .scratch = ref_add_bias_scratch,
        .cost = ref_elem_cost },
    [RAD_OP_scale_by_position] = {
        ROW(scale_by_position, "scale_by_position_any_any_u1_ref", ref_number), WHEN(act_dtype),
        .parse = ref_scale_by_position_parse, .launch = ref_scale_by_position, .cost = ref_elem_cost },
    [RAD_OP_softmax] = {
        ROW(softmax, "softmax_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_elem_parse, .launch = ref_softmax, .cost = ref_norm_cost },
    [RAD_OP_scale_rows] = {
        ROW(scale_rows, "scale_rows_any_any_u1_ref", ref_elem), WHEN(act_dtype),
        .parse = ref_scale_rows_parse, .launch = ref_scale_rows, .cost = ref_elem_cost },
    [RAD_OP_gemm_nt] = {
        ROW(gemm_nt, "gemm_nt_any_any_any_2x8_ref", ref_gemm), WHEN(act_dtype),
        .parse = ref_gemm_parse, .launch = ref_gemm_nt, .scratch = ref_gemm_scratch,
        .cost = ref_gemm_cost },
    [RAD_OP_gemm_nt_bias] = {
        ROW(gemm_nt_bias, "gemm_nt_bias_any_any_any_2x8_ref", ref_gemm), WHEN(act_dtype),
        .parse = ref_gemm_parse, .launch = ref_gemm_nt_bias, .scratch = ref_gemm_scratch,
        .cost = ref_gemm_cost },
    [RAD_OP_logits_gemm] = {
        ROW(logits_gemm, "logits_gemm_any_any_f32_2x8_ref", ref_gemm), WHEN(act_dtype),
        .parse = ref_logits_parse, .launch = ref_gemm_nt, .scratch = ref_gemm_scratch,
        .cost = ref_gemm_cost },
    [RAD_OP_rope] = {
        ROW(rope, "rope_any_any_u1_ref", ref_rope),
        .parse = ref_rope_parse, .launch = ref_rope, .cost = ref_rope_cost },
    [RAD_OP_kv_store] = {
        ROW(kv_store, "kv_store_any_any_u1_ref", ref_kv), WHEN(kv_dtype),
        .parse = ref_kv_parse, .launch = ref_kv_store, .cost = ref_kv_cost },
    [RAD_OP_attn_paged] = {
        ROW(attn_paged, "attn_paged_any_any_any_hany_ref", ref_attn), WHEN(attn_dtype),
        .derived = attn_block, .n_derived = COUNT(attn_block),
        .parse = ref_attn_parse, .launch = ref_attn_paged, .scratch = ref_attn_scratch,
        .cost = ref_attn_cost },
};
_Static_assert(COUNT(rows) == REF_N_OPS, "every op of ops.def has a row");

uint32_t rad_plugin_abi_version(void)
{
    return RAD_ABI_VERSION;
}
const RadPluginInfo *rad_plugin_info(void)
{
    static const RadPluginInfo info = {
        .struct_size = sizeof info, .kind = RAD_PLUGIN_KERNEL, .name = "libref",
        .version = "0.1.0", .description = "reference kernels in plain C", .build_target = "",
    };
    return &info;
}
int rad_kernel_schema_count(void)
{
    return REF_N_OPS;
}
const RadOpSchema *rad_kernel_schema_at(int i)
{
    return i >= 0 && i < REF_N_OPS ? &schemas[i] : NULL;
}
int rad_kernel_count(void)
{
    return REF_N_OPS;
}
const RadKernelRow *rad_kernel_at(int i)
{
    return i >= 0 && i < REF_N_OPS ? &rows[i] : NULL;
}
int rad_kernel_concurrent(int i)
{
    return i >= 0 && i < REF_N_OPS;
}
int rad_plugin_reference(void)
{
    return 1;
}
