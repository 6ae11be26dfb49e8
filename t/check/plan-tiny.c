/* SPDX-License-Identifier: Apache-2.0 */
/* The tiny decoder of plan-check; see plan-check.h. */
#include "plan-check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum bend bend;
int step_rc, step_rc2;
const RadBatch *seen_batch;
int64_t peek;

const RadPluginInfo tiny_info = { sizeof tiny_info, RAD_PLUGIN_ARCH, "tiny", "1", "", "" };

static const RadPluginInfo *arch_info(void) { return &tiny_info; }
static const char *arch_id(void) { return "tiny"; }
const struct radi_exports tiny_exports = { .info = arch_info, .arch_id = arch_id,
    .declare = tiny_declare, .step = tiny_step };

struct tiny {
    rad_weight embed, head, out_norm;
    rad_buf x, h, qkv, att, gu, f, rows, logits, early, nibbles;
    rad_kv kv;
    rad_op op_embed, op_gather, op_fnorm, op_head;
    struct {
        rad_weight n1, qkv, o, n2, gu, down;
        rad_op norm1, mqkv, rope, attn, store, mo, add1, norm2, mgu, act, mdown, add2;
    } l[L];
};

static rad_weight weight(RadBuilder *b, const char *name, int layer, int64_t n, int64_t k,
                         int dtype)
{
    char full[64];
    if (layer >= 0)
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    RadNameMap m = { .declared = full, .mode = RAD_MAP_COPY, .n_src = 1, .src = { full } };
    rad_decl_name_map(b, &m);
    RadWeightDecl d = { .dtype = dtype, .rank = k ? 2 : 1, .shape = { n, k },
                        .group = layer >= 0 ? rad_group_layer(layer) : rad_group_model() };
    return rad_decl_weight(b, full, &d);
}

static rad_buf buffer(RadBuilder *b, const char *name, int64_t rows, int64_t cols)
{
    RadBufferDecl d = { .dtype = RAD_F32, .rank = 2, .shape = { rows, cols } };
    return rad_decl_buffer(b, name, &d);
}

static rad_op op1(RadBuilder *b, rad_op o, rad_buf in, rad_buf in2, rad_buf out)
{
    rad_buf r[] = { in, in2 };
    rad_op_reads(b, o, r, in2 >= 0 ? 2 : in >= 0 ? 1 : 0);
    rad_op_writes(b, o, &out, 1);
    return o;
}

#define M RAD_RANGE("M", 1, T)
#define F32 RAD_STR("dtype", "f32")

static rad_op gemm(RadBuilder *b, int64_t T, rad_weight w, int64_t n, int64_t k, rad_buf in,
                   rad_buf out)
{
    return op1(b, RAD_OP(b, "gemm_nt", RAD_PARAMS(M, RAD_INT("N", n), RAD_INT("K", k), F32),
                         RAD_WEIGHTS(w)), in, -1, out);
}

static rad_op norm(RadBuilder *b, int64_t T, rad_weight w, rad_buf in, rad_buf out)
{
    return op1(b, RAD_OP(b, "rmsnorm", RAD_PARAMS(M, RAD_INT("n", D), RAD_REAL("eps", 1e-5), F32),
                         RAD_WEIGHTS(w)), in, -1, out);
}

static void bent_declare(RadBuilder *b, struct tiny *t, int64_t T)
{
    switch (bend) {
    case BEND_PARAM_TYPO:
        RAD_OP(b, "silu", RAD_PARAMS(M, RAD_INT("n", D), RAD_STR("dtyp", "f32")), RAD_NO_WEIGHTS);
        break;
    case BEND_OP_TYPO:
        RAD_OP(b, "gem_nt", RAD_PARAMS(M), RAD_NO_WEIGHTS);
        break;
    case BEND_PARAM_MISSING:
        RAD_OP(b, "silu", RAD_PARAMS(M, F32), RAD_NO_WEIGHTS);
        break;
    case BEND_PARAM_TWICE:
        RAD_OP(b, "silu", RAD_PARAMS(M, RAD_INT("n", D), RAD_INT("n", D), F32), RAD_NO_WEIGHTS);
        break;
    case BEND_PARAM_KIND:
        RAD_OP(b, "silu", RAD_PARAMS(M, RAD_STR("n", "32"), F32), RAD_NO_WEIGHTS);
        break;
    case BEND_NO_WEIGHT:
        weight(b, "absent.weight", -1, D, 0, 0);
        break;
    case BEND_CONCURRENT:
        rad_buf_concurrent(b, t->x);
        break;
    case BEND_ENCODER:
        rad_declare_encoder(b, &(RadEncoderDecl){ .struct_size = sizeof(RadEncoderDecl) });
        break;
    case BEND_FAIL:
        rad_declare_fail(b, RAD_E_FORMAT, "tiny.%s is odd", "key");
        break;
    case BEND_MANY:
        for (int i = 0; i < 3; i++)
            RAD_OP(b, "silu", RAD_PARAMS(M, RAD_INT("n", D), RAD_STR("dtype", "i32")),
                   RAD_NO_WEIGHTS);
        RAD_OP(b, "mul", RAD_PARAMS(M, RAD_INT("n", D), RAD_STR("dtype", "u8")), RAD_NO_WEIGHTS);
        break;
    case BEND_ASKED: {
        rad_op o = RAD_OP(b, "silu", RAD_PARAMS(M, RAD_INT("n", D), RAD_STR("dtype", "i32")),
                          RAD_NO_WEIGHTS);
        if (!rad_op_resolved(b, o) && rad_op_declared(b, "silu") && !rad_op_declared(b, "no_such"))
            rad_note(b, "the fused form is %s", "absent");
        break;
    }
    default:
        break;
    }
}

int tiny_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx)
{
    struct tiny *t = calloc(1, sizeof *t);
    int64_t T = ctx->max_tok, O = ctx->max_out_rows;
    if (!t || meta->n_embd != D)
        return RAD_E_NOMEM;
    rad_set_state(b, t, free);
    t->embed = weight(b, "token_embd.weight", -1, V, bend == BEND_SHAPE ? D + 1 : D, 0);
    t->head = weight(b, "output.weight", -1, V, D, 0);
    t->out_norm = weight(b, "output_norm.weight", -1, D, 0, RAD_F32);
    t->early = buffer(b, "early", T, D);
    t->x = buffer(b, "x", T, D);
    t->h = buffer(b, "h", T, D);
    t->qkv = buffer(b, "qkv", T, (H + 2 * HKV) * C);
    t->att = buffer(b, "att", T, H * C);
    t->gu = buffer(b, "gu", T, 2 * F);
    t->f = buffer(b, "f", T, F);
    t->rows = buffer(b, "rows", O, D);
    t->nibbles = rad_decl_buffer(b, "nibbles", &(RadBufferDecl){ .dtype = RAD_DT_u4, .rank = 2,
                                                                 .shape = { 4, 2 * D } });
    t->logits = buffer(b, "logits", O, V);
    t->kv = rad_decl_kv_group(b, "kv", &(RadKvGroupDecl){ .kind = RAD_KV_FULL, .n_head_kv = HKV,
                                                          .head_dim = C });
    t->op_embed = op1(b, RAD_OP(b, "embed_lookup", RAD_PARAMS(M, RAD_INT("n_embd", D),
                      RAD_INT("n_vocab", V), F32), RAD_WEIGHTS(t->embed)), t->early, -1, t->x);
    for (int i = 0; i < L; i++) {
        t->l[i].n1 = weight(b, "attn_norm.weight", i, D, 0, RAD_F32);
        t->l[i].qkv = weight(b, "attn_qkv.weight", i, (H + 2 * HKV) * C, D, 0);
        t->l[i].o = weight(b, "attn_output.weight", i, D, H * C, 0);
        t->l[i].n2 = weight(b, "ffn_norm.weight", i, D, 0, RAD_F32);
        t->l[i].gu = weight(b, "ffn_gate_up.weight", i, 2 * F, D, 0);
        t->l[i].down = weight(b, "ffn_down.weight", i, D, F, 0);
        rad_bind_layer_kv(b, i, t->kv);
        t->l[i].norm1 = norm(b, T, t->l[i].n1, t->x, t->h);
        t->l[i].mqkv = gemm(b, T, t->l[i].qkv, (H + 2 * HKV) * C, D, t->h, t->qkv);
        t->l[i].rope = op1(b, RAD_OP(b, "rope", RAD_PARAMS(M, RAD_INT("head_dim", C),
            RAD_INT("n_head", H), RAD_INT("n_head_kv", HKV), RAD_REAL("theta", 10000),
            RAD_INT("scale", 1), RAD_STR("mode", "neox")), RAD_NO_WEIGHTS), t->qkv, -1, t->qkv);
        t->l[i].attn = op1(b, RAD_OP(b, "attn_paged", RAD_PARAMS(RAD_RANGE("q_len", 1, T),
            RAD_INT("head_dim", C), RAD_INT("gqa", H / HKV), RAD_INT("causal", 1),
            RAD_INT("window", 0), RAD_STR("q_dtype", "f32"), RAD_STR("kv_dtype", "f32"),
            RAD_INT("max_ctx", ctx->max_ctx)), RAD_NO_WEIGHTS), t->qkv, -1, t->att);
        rad_op_kv(b, t->l[i].attn, t->kv);
        t->l[i].store = RAD_OP(b, "kv_store", RAD_PARAMS(M, RAD_INT("head_dim", C),
            RAD_INT("n_head_kv", HKV), RAD_INT("block_size", rad_kv_block_size(b, t->kv)),
            RAD_STR("kv_dtype", "f32")), RAD_NO_WEIGHTS);
        rad_op_reads(b, t->l[i].store, &t->qkv, 1);
        rad_op_kv(b, t->l[i].store, t->kv);
        t->l[i].mo = gemm(b, T, t->l[i].o, D, H * C, t->att, t->h);
        t->l[i].add1 = op1(b, RAD_OP(b, "add", RAD_PARAMS(M, RAD_INT("n", D), F32),
                           RAD_NO_WEIGHTS), t->x, t->h, t->x);
        t->l[i].norm2 = norm(b, T, t->l[i].n2, t->x, t->h);
        t->l[i].mgu = gemm(b, T, t->l[i].gu, 2 * F, D, t->h, t->gu);
        t->l[i].act = op1(b, RAD_OP(b, "silu_mul", RAD_PARAMS(M, RAD_INT("n", F), F32),
                          RAD_NO_WEIGHTS), t->gu, -1, t->f);
        t->l[i].mdown = gemm(b, T, t->l[i].down, D, F, t->f, t->h);
        t->l[i].add2 = op1(b, RAD_OP(b, "add", RAD_PARAMS(M, RAD_INT("n", D), F32),
                           RAD_NO_WEIGHTS), t->x, t->h, t->x);
    }
    t->op_gather = op1(b, RAD_OP(b, "gather_rows", RAD_PARAMS(M, RAD_INT("n", D), F32),
                       RAD_NO_WEIGHTS), t->x, -1, t->rows);
    t->op_fnorm = norm(b, T, t->out_norm, t->rows, t->rows);
    t->op_head = op1(b, RAD_OP(b, "logits_gemm", RAD_PARAMS(M, RAD_INT("n_vocab", V),
                     RAD_INT("n_embd", D), F32), RAD_WEIGHTS(t->head)), t->rows, -1, t->logits);
    if (bend != BEND_NO_OUTPUT)
        rad_declare_logits(b, t->logits);
    bent_declare(b, t, T);
    return RAD_OK;
}

static int bent_step(RadCtx *c, const RadBatch *bt, const struct tiny *t)
{
    int64_t n = bt->n_tok;
#define ADD(a, b_, y) RAD_ISSUE(c, t->l[0].add1, a, b_, y)
    switch (bend) {
    case BEND_SPAN:
        return ADD(brange(t->x, MAX_TOK - n + 1, n, D), brows(t->h, n), brows(t->x, n));
    case BEND_COLS:
        return ADD(bcols(t->x, n, 1, D), brows(t->h, n), brows(t->x, n));
    case BEND_ZERO:
        return RAD_ISSUE_N(c, t->l[0].add1, 0, brows(t->x, 0), brows(t->h, 0), brows(t->x, 0));
    case BEND_LIFE:
        return ADD(brows(t->early, n), brows(t->h, n), brows(t->x, n));
    case BEND_COUNT:
        return RAD_ISSUE(c, t->l[0].add1, brows(t->x, n), brows(t->h, n));
    case BEND_BAND:
        return RAD_ISSUE_N(c, t->l[0].add1, MAX_TOK + 1, brows(t->x, n), brows(t->h, n),
                           brows(t->x, n));
    case BEND_KV_LAYER:
        return RAD_ISSUE(c, t->l[0].store, bcols(t->qkv, n, H * C, HKV * C),
                         bcols(t->qkv, n, (H + HKV) * C, HKV * C),
                         praw(bt->kv[0].slot_mapping, RAD_I32, n), pkv(t->kv, L));
    case BEND_NO_TYPE:
        return ADD(praw(bt->token_ids, 0, n), brows(t->h, n), brows(t->x, n));
    case BEND_LANE:
        return rad_lane(c, 1);
    case BEND_WEIGHT:
        return RAD_ISSUE(c, t->l[0].mqkv, brows(t->h, n), RAD_W(t->l[1].qkv), brows(t->qkv, n));
    case BEND_ALIGN: {
        RadOperand o = bcols(t->nibbles, 1, 1, D);
        return ADD(o, brows(t->h, 1), brows(t->x, 1));
    }
    case BEND_KERNEL:                            /* only the kernel can tell */
        return ADD(bcols(t->x, n, 0, D / 2), brows(t->h, n), brows(t->x, n));
    case BEND_GIVE_UP:
        rad_step_fail(c, "no more");
        return RAD_E_STATE;
    default:
        return 0;
    }
}

void tiny_step(RadCtx *c, const RadBatch *bt)
{
    const struct tiny *t = rad_state(c);
    int64_t n = bt->n_tok;
    const RadKvBatch *k = &bt->kv[0];
    seen_batch = bt;
    if (peek)
        step_rc = *(const volatile int32_t *)bt->token_ids;
    if (bend >= BEND_SPAN) {
        step_rc = bent_step(c, bt, t);
        step_rc2 = RAD_ISSUE(c, t->l[0].add1, brows(t->x, n), brows(t->h, n), brows(t->x, n));
        return;
    }
    RAD_ISSUE(c, t->op_embed, praw(bt->token_ids, RAD_I32, n), RAD_W(t->embed), brows(t->x, n));
    for (int i = 0; i < L; i++) {
        RAD_ISSUE(c, t->l[i].norm1, brows(t->x, n), RAD_W(t->l[i].n1), brows(t->h, n));
        RAD_ISSUE(c, t->l[i].mqkv, brows(t->h, n), RAD_W(t->l[i].qkv), brows(t->qkv, n));
        RAD_ISSUE(c, t->l[i].rope, brows(t->qkv, n), praw(bt->positions, RAD_I32, n), pnone(),
                  pnone());
        RAD_ISSUE(c, t->l[i].store, bcols(t->qkv, n, H * C, HKV * C),
                  bcols(t->qkv, n, (H + HKV) * C, HKV * C), praw(k->slot_mapping, RAD_I32, n),
                  pkv(t->kv, i));
        RAD_ISSUE_N(c, t->l[i].attn, bt->max_q_len, bcols(t->qkv, n, 0, H * C), pkv(t->kv, i),
                    praw2(k->block_table, RAD_I32, bt->n_seq, k->block_pitch),
                    praw(k->seqused, RAD_I32, bt->n_seq), pnone(), pnone(),
                    praw(bt->cu_seqlens, RAD_I32, bt->n_seq + 1), pnone(), brows(t->att, n));
        RAD_ISSUE(c, t->l[i].mo, brows(t->att, n), RAD_W(t->l[i].o), brows(t->h, n));
        RAD_ISSUE(c, t->l[i].add1, brows(t->x, n), brows(t->h, n), brows(t->x, n));
        RAD_ISSUE(c, t->l[i].norm2, brows(t->x, n), RAD_W(t->l[i].n2), brows(t->h, n));
        RAD_ISSUE(c, t->l[i].mgu, brows(t->h, n), RAD_W(t->l[i].gu), brows(t->gu, n));
        RAD_ISSUE(c, t->l[i].act, brows(t->gu, n), brows(t->f, n));
        RAD_ISSUE(c, t->l[i].mdown, brows(t->f, n), RAD_W(t->l[i].down), brows(t->h, n));
        RAD_ISSUE(c, t->l[i].add2, brows(t->x, n), brows(t->h, n), brows(t->x, n));
    }
    int64_t o = bt->n_out;
    if (!o)
        return;
    RAD_ISSUE_N(c, t->op_gather, o, brows(t->x, n), praw(bt->out_ids, RAD_I32, o),
                brows(t->rows, o));
    RAD_ISSUE_N(c, t->op_fnorm, o, brows(t->rows, o), RAD_W(t->out_norm), brows(t->rows, o));
    RAD_ISSUE_N(c, t->op_head, o, brows(t->rows, o), RAD_W(t->head), brows(t->logits, o));
}

/* ---- the container */
static uint32_t seed = 1;

static float noise(void)
{
    seed = seed * 1664525u + 1013904223u;
    return ((float)(seed >> 8) / (float)(1 << 24) - 0.5f) * 0.5f;
}

static void put_weight(struct rad_model_writer *w, const char *name, int layer, int64_t n,
                       int64_t k, int dtype)
{
    char full[64];
    RadEncoding e;
    size_t id;
    if (layer >= 0)
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    rad_encoding_plain(&e, dtype);
    struct rad_weight_spec s = { .size = sizeof s, .name = full, .enc = &e, .rank = k ? 2 : 1,
                                 .shape = { n, k }, .layer = layer, .expert = -1 };
    if (rad_model_writer_weight(w, &s, &id, NULL))
        abort();
}

struct rad_model *tiny_model(void)
{
    char path[] = "/tmp/plan-check-XXXXXX";
    struct rad_err err = { 0 };
    struct rad_model_writer *w = NULL;
    struct rad_model *m = NULL;
    int fd = mkstemp(path);
    rad_status st = fd < 0 ? RAD_E_IO : rad_model_writer_new(&w, &err);
    const struct { const char *k; int64_t v; } meta[] = {
        { "n_layers", L }, { "n_embd", D }, { "n_head", H }, { "n_head_kv", HKV },
        { "head_dim", C }, { "n_ff", F }, { "n_vocab", V }, { "n_ctx_train", MAX_CTX } };
    if (!st)
        st = rad_model_writer_header(w, "tiny", "tiny test", "", "", "plan-check", &err);
    for (size_t i = 0; i < RADI_COUNT(meta) && !st; i++)
        st = rad_model_writer_meta_int(w, meta[i].k, meta[i].v, &err);
    if (!st)
        st = rad_model_writer_meta_f64(w, "rms_eps", 1e-5, &err);
    put_weight(w, "token_embd.weight", -1, V, D, RAD_BF16);
    put_weight(w, "output.weight", -1, V, D, RAD_F32);
    put_weight(w, "output_norm.weight", -1, D, 0, RAD_BF16);
    for (int i = 0; i < L; i++) {
        put_weight(w, "attn_norm.weight", i, D, 0, RAD_BF16);
        put_weight(w, "attn_qkv.weight", i, (H + 2 * HKV) * C, D, RAD_BF16);
        put_weight(w, "attn_output.weight", i, D, H * C, RAD_F16);
        put_weight(w, "ffn_norm.weight", i, D, 0, RAD_F32);
        put_weight(w, "ffn_gate_up.weight", i, 2 * F, D, RAD_F32);
        put_weight(w, "ffn_down.weight", i, D, F, RAD_BF16);
    }
    if (!st)
        st = rad_model_writer_plan(w, &err);
    if (!st)
        st = rad_model_writer_open(w, path, &err);
    seed = 1;
    for (size_t i = 0; !st && i < rad_model_writer_count(w); i++) {
        size_t id;
        const struct rad_weight *x = rad_model_writer_at(w, i, &id);
        uint8_t row[256 * 4];
        for (uint64_t r = 0; r < x->rows && !st; r++) {
            for (uint64_t c = 0; c < x->cols; c++) {
                float f = noise();
                uint16_t h = x->enc->plane[0].dtype == RAD_BF16 ? rad_f32_to_bf16(f)
                                                                : rad_f32_to_f16(f);
                if (x->enc->plane[0].dtype == RAD_F32)
                    memcpy(row + 4 * c, &f, 4);
                else
                    memcpy(row + 2 * c, &h, 2);
            }
            st = rad_model_writer_write(w, i, 0, row,
                                        rad_row_bytes((int)x->enc->plane[0].dtype, x->cols), &err);
        }
    }
    if (!st)
        st = rad_model_writer_finish(w, &err);
    rad_model_writer_free(w);
    if (!st)
        st = rad_model_open(path, &m, &err);
    if (st)
        fprintf(stderr, "# tiny_model: %s\n", err.text);
    close(fd);
    unlink(path);
    return m;
}
