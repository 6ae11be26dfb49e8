/* SPDX-License-Identifier: Apache-2.0 */
/* An architecture plugin written by hand against <arch/rad_arch.h>, in the form
 * that the ABI's document shows: a dense decoder with a fused query, key and
 * value projection. A test, not shipped: abi-check runs it in its own process,
 * and the install test builds it outside of the tree. It claims the pair of the
 * circuit plugin, so the two may be compared, never loaded together. */
#include <stdio.h>
#include <stdlib.h>

#include <arch/rad_arch.h>

struct layer {
    rad_weight w_norm, w_qkv, w_o, w_ffn_norm, w_gate_up, w_down;
    rad_op norm, qkv, rope, store, attn, o, add, ffn_norm, gate_up, act, down, ffn_add;
};

struct model {
    int64_t n_layers, d, h, hkv, c, f, v;
    double eps, theta;
    rad_weight w_tok, w_norm, w_head;
    rad_buf b_x, b_h, b_qkv, b_att, b_gate_up, b_act, b_rows, b_logits;
    rad_kv kv;
    rad_op op_embed, op_gather, op_norm, op_head;
    struct layer layer[];
};

/* ---- declare */
struct decl {
    RadBuilder *b;
    struct model *m;
    int64_t max_tok, max_out;
};

/* The weight `name` from the checkpoint tensors of `src`, stacked when several. */
static rad_weight weight(const struct decl *d, const char *name, const RadNameMap *map,
                         const RadWeightDecl *w)
{
    RadNameMap m = *map;
    m.declared = name;
    for (int i = 0; i < 8; i++)
        m.src_index[i] = -1;
    rad_decl_name_map(d->b, &m);
    return rad_decl_weight(d->b, name, w);
}

/* Layer l's weight: parts[i] rows from the tensor parts_of[i]. */
static rad_weight stacked(const struct decl *d, int32_t l, const char *name, int64_t cols,
                          int shard, int n, const int64_t *parts, const char *const *parts_of)
{
    char full[64], src[8][96];
    RadNameMap map = { .mode = n > 1 ? RAD_MAP_CONCAT : RAD_MAP_COPY, .n_src = n };
    RadWeightDecl w = {
        .dtype = 0, .rank = cols ? 2 : 1, .shape = { 0, cols },
        .access = RAD_ACCESS_PER_TOKEN, .shard = shard,
        .group = grp_layer(l), .optional = 0,
        .n_row_parts = n > 1 ? n : 0, .source = NULL, .planes = NULL,
    };
    snprintf(full, sizeof full, "blk.%d.%s", l, name);
    for (int i = 0; i < n; i++) {
        snprintf(src[i], sizeof src[i], "model.layers.%d.%s.weight", l, parts_of[i]);
        map.src[i] = src[i];
        w.shape[0] += parts[i];
        if (n > 1)
            w.row_parts[i] = parts[i];
    }
    if (!cols)
        w.dtype = RAD_F32;
    return weight(d, full, &map, &w);
}
#define ROWS(...) (const int64_t[]){ __VA_ARGS__ }
#define FROM(...) (const char *const[]){ __VA_ARGS__ }

static rad_buf buffer(const struct decl *d, const char *name, int64_t rows, int64_t cols)
{
    return rad_decl_buffer(d->b, name, &(RadBufferDecl){
        .dtype = RAD_F32, .rank = 2, .shape = { rows, cols }, .kind = RAD_BUF_TRANSIENT });
}

static rad_op reads_writes(const struct decl *d, rad_op h, rad_buf in, rad_buf out)
{
    rad_op_reads(d->b, h, RAD_BUFS(in), 1);
    rad_op_writes(d->b, h, RAD_BUFS(out), 1);
    return h;
}

#define M_TOK RAD_RANGE("M", 1, d->max_tok)
#define M_OUT RAD_RANGE("M", 1, d->max_out)
#define F32 RAD_STR("dtype", "f32")

static rad_op gemm(const struct decl *d, rad_weight w, int64_t n, int64_t k, rad_buf b_x,
                   rad_buf b_y)
{
    RadBuilder *b = d->b;
    rad_op h = RAD_OP(b, "gemm_nt",
                      RAD_PARAMS(RAD_RANGE("M", 1, d->max_tok), RAD_INT("N", n), RAD_INT("K", k),
                                 F32),
                      RAD_WEIGHTS(w));
    rad_op_reads(b, h, RAD_BUFS(b_x), 1);
    rad_op_writes(b, h, RAD_BUFS(b_y), 1);
    return h;
}

static rad_op norm(const struct decl *d, rad_weight w, rad_buf in, rad_buf out, int64_t rows)
{
    return reads_writes(d, RAD_OP(d->b, "rmsnorm",
                                  RAD_PARAMS(RAD_RANGE("M", 1, rows), RAD_INT("n", d->m->d),
                                             RAD_REAL("eps", d->m->eps), F32),
                                  RAD_WEIGHTS(w)), in, out);
}

static rad_op add(const struct decl *d)
{
    const struct model *m = d->m;
    rad_op h = RAD_OP(d->b, "add", RAD_PARAMS(M_TOK, RAD_INT("n", m->d), F32), RAD_NO_WEIGHTS);
    rad_op_reads(d->b, h, RAD_BUFS(m->b_x, m->b_h), 2);
    rad_op_writes(d->b, h, RAD_BUFS(m->b_x), 1);
    return h;
}

static void declare_attn(const struct decl *d, const RadBuildCtx *ctx, int32_t l, struct layer *y)
{
    const struct model *m = d->m;
    int64_t q = m->h * m->c, kv = m->hkv * m->c;
    y->w_norm = stacked(d, l, "attn_norm.weight", 0, RAD_SHARD_NONE, 1, ROWS(m->d),
                        FROM("input_layernorm"));
    y->w_qkv = stacked(d, l, "attn_qkv.weight", m->d, RAD_SHARD_ROW, 3, ROWS(q, kv, kv),
                       FROM("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"));
    y->w_o = stacked(d, l, "attn_output.weight", q, RAD_SHARD_COL, 1, ROWS(m->d),
                     FROM("self_attn.o_proj"));
    rad_bind_layer_kv(d->b, l, m->kv);
    y->norm = norm(d, y->w_norm, m->b_x, m->b_h, d->max_tok);
    y->qkv = gemm(d, y->w_qkv, q + 2 * kv, m->d, m->b_h, m->b_qkv);
    y->rope = reads_writes(d, RAD_OP(d->b, "rope",
        RAD_PARAMS(M_TOK, RAD_INT("head_dim", m->c), RAD_INT("n_head", m->h),
                   RAD_INT("n_head_kv", m->hkv), RAD_REAL("theta", m->theta),
                   RAD_REAL("scale", 1), RAD_STR("mode", "neox")),
        RAD_NO_WEIGHTS), m->b_qkv, m->b_qkv);
    y->attn = reads_writes(d, RAD_OP(d->b, "attn_paged",
        RAD_PARAMS(RAD_RANGE("q_len", 1, d->max_tok), RAD_INT("head_dim", m->c),
                   RAD_INT("gqa", m->h / m->hkv), RAD_INT("causal", 1), RAD_INT("window", 0),
                   RAD_STR("q_dtype", "f32"), RAD_STR("kv_dtype", rad_dtype_name(ctx->kv_dtype)),
                   RAD_INT("max_ctx", ctx->max_ctx)),
        RAD_NO_WEIGHTS), m->b_qkv, m->b_att);
    rad_op_kv(d->b, y->attn, m->kv);
    y->store = RAD_OP(d->b, "kv_store",
        RAD_PARAMS(M_TOK, RAD_INT("head_dim", m->c), RAD_INT("n_head_kv", m->hkv),
                   RAD_INT("block_size", rad_kv_block_size(d->b, m->kv)),
                   RAD_STR("kv_dtype", rad_dtype_name(ctx->kv_dtype))),
        RAD_NO_WEIGHTS);
    rad_op_reads(d->b, y->store, RAD_BUFS(m->b_qkv), 1);
    rad_op_kv(d->b, y->store, m->kv);
    y->o = gemm(d, y->w_o, m->d, q, m->b_att, m->b_h);
    y->add = add(d);
}

static void declare_mlp(const struct decl *d, int32_t l, struct layer *y)
{
    const struct model *m = d->m;
    y->w_ffn_norm = stacked(d, l, "ffn_norm.weight", 0, RAD_SHARD_NONE, 1, ROWS(m->d),
                            FROM("post_attention_layernorm"));
    y->w_gate_up = stacked(d, l, "ffn_gate_up.weight", m->d, RAD_SHARD_ROW, 2, ROWS(m->f, m->f),
                           FROM("mlp.gate_proj", "mlp.up_proj"));
    y->w_down = stacked(d, l, "ffn_down.weight", m->f, RAD_SHARD_COL, 1, ROWS(m->d),
                        FROM("mlp.down_proj"));
    y->ffn_norm = norm(d, y->w_ffn_norm, m->b_x, m->b_h, d->max_tok);
    y->gate_up = gemm(d, y->w_gate_up, 2 * m->f, m->d, m->b_h, m->b_gate_up);
    y->act = reads_writes(d, RAD_OP(d->b, "silu_mul",
                                    RAD_PARAMS(M_TOK, RAD_INT("n", m->f), F32), RAD_NO_WEIGHTS),
                          m->b_gate_up, m->b_act);
    y->down = gemm(d, y->w_down, m->d, m->f, m->b_act, m->b_h);
    y->ffn_add = add(d);
}

static void declare_head(const struct decl *d)
{
    struct model *m = d->m;
    RadWeightDecl norm_w = { .dtype = RAD_F32, .rank = 1, .shape = { m->d },
                             .group = rad_group_model() };
    RadWeightDecl head_w = { .rank = 2, .shape = { m->v, m->d }, .access = RAD_ACCESS_VOCAB,
                             .shard = RAD_SHARD_ROW, .group = rad_group_model() };
    m->w_norm = weight(d, "output_norm.weight", &(RadNameMap){
        .mode = RAD_MAP_COPY, .n_src = 1, .src = { "model.norm.weight" } }, &norm_w);
    m->w_head = weight(d, "output.weight", &(RadNameMap){
        .mode = RAD_MAP_COPY, .n_src = 2,          /* the first present: a tied head */
        .src = { "lm_head.weight", "model.embed_tokens.weight" } }, &head_w);
    m->op_gather = reads_writes(d, RAD_OP(d->b, "gather_rows",
                                          RAD_PARAMS(M_OUT, RAD_INT("n", m->d), F32),
                                          RAD_NO_WEIGHTS), m->b_x, m->b_rows);
    m->op_norm = norm(d, m->w_norm, m->b_rows, m->b_rows, d->max_out);
    m->op_head = reads_writes(d, RAD_OP(d->b, "logits_gemm",
                                        RAD_PARAMS(M_OUT, RAD_INT("n_vocab", m->v),
                                                   RAD_INT("n_embd", m->d), F32),
                                        RAD_WEIGHTS(m->w_head)), m->b_rows, m->b_logits);
    rad_declare_logits(d->b, m->b_logits);
}

static int seed_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx)
{
    if (meta->n_layers < 1 || meta->n_layers > 1000 || meta->n_head_kv < 1)
        return rad_declare_fail(b, RAD_E_FORMAT, "%lld layers", (long long)meta->n_layers);
    struct model *m = calloc(1, sizeof *m + (size_t)meta->n_layers * sizeof m->layer[0]);
    if (!m)
        return RAD_E_NOMEM;
    rad_set_state(b, m, free);
    m->n_layers = meta->n_layers;
    m->d = meta->n_embd;
    m->h = meta->n_head;
    m->hkv = meta->n_head_kv;
    m->c = meta->head_dim;                       /* read, never derived */
    m->f = meta->n_ff;
    m->v = meta->n_vocab;
    m->eps = meta->rms_eps;
    m->theta = meta->rope_theta;
    struct decl it = { b, m, ctx->max_tok, ctx->max_out_rows }, *d = &it;
    RadWeightDecl tok = { .rank = 2, .shape = { m->v, m->d }, .access = RAD_ACCESS_VOCAB,
                          .group = rad_group_model() };
    m->w_tok = weight(d, "token_embd.weight", &(RadNameMap){
        .mode = RAD_MAP_COPY, .n_src = 1, .src = { "model.embed_tokens.weight" } }, &tok);
    m->b_x = buffer(d, "x", d->max_tok, m->d);
    m->b_h = buffer(d, "h", d->max_tok, m->d);
    m->b_qkv = buffer(d, "qkv", d->max_tok, (m->h + 2 * m->hkv) * m->c);
    m->b_att = buffer(d, "att", d->max_tok, m->h * m->c);
    m->b_gate_up = buffer(d, "gate_up", d->max_tok, 2 * m->f);
    m->b_act = buffer(d, "act", d->max_tok, m->f);
    m->b_rows = buffer(d, "rows", d->max_out, m->d);
    m->b_logits = buffer(d, "logits", d->max_out, m->v);
    m->kv = rad_decl_kv_group(b, "kv", &(RadKvGroupDecl){
        .kind = RAD_KV_FULL, .dtype = ctx->kv_dtype, .n_head_kv = m->hkv, .head_dim = m->c });
    m->op_embed = RAD_OP(b, "embed_lookup",
                         RAD_PARAMS(M_TOK, RAD_INT("n_embd", m->d), RAD_INT("n_vocab", m->v), F32),
                         RAD_WEIGHTS(m->w_tok));
    rad_op_writes(b, m->op_embed, RAD_BUFS(m->b_x), 1);
    for (int32_t l = 0; l < m->n_layers; l++) {
        declare_attn(d, ctx, l, &m->layer[l]);
        declare_mlp(d, l, &m->layer[l]);
    }
    declare_head(d);
    rad_note(b, "written by hand: %lld layers, query, key and value in one weight",
             (long long)m->n_layers);
    return RAD_OK;
}

/* ---- step */
static void step_layer(RadCtx *c, const RadBatch *batch, const struct model *m, int32_t l)
{
    const struct layer *y = &m->layer[l];
    const RadKvBatch *kv = &batch->kv[m->kv];
    int64_t n = batch->n_tok, q = m->h * m->c, k = m->hkv * m->c;
    RAD_ISSUE(c, y->norm, brows(m->b_x, n), RAD_W(y->w_norm), brows(m->b_h, n));
    RAD_ISSUE(c, y->qkv, brows(m->b_h, n), RAD_W(y->w_qkv), brows(m->b_qkv, n));
    RAD_ISSUE(c, y->rope, brows(m->b_qkv, n), praw(batch->positions, RAD_I32, n), pnone(),
              pnone());
    RAD_ISSUE(c, y->store, bcols(m->b_qkv, n, q, k), bcols(m->b_qkv, n, q + k, k),
              praw(kv->slot_mapping, RAD_I32, n), pkv(m->kv, l));
    RAD_ISSUE_N(c, y->attn, batch->max_q_len, bcols(m->b_qkv, n, 0, q), pkv(m->kv, l),
                praw2(kv->block_table, RAD_I32, batch->n_seq, kv->block_pitch),
                praw(kv->seqused, RAD_I32, batch->n_seq), pnone(), pnone(),
                praw(batch->cu_seqlens, RAD_I32, batch->n_seq + 1), pnone(), brows(m->b_att, n));
    RAD_ISSUE(c, y->o, brows(m->b_att, n), RAD_W(y->w_o), brows(m->b_h, n));
    RAD_ISSUE(c, y->add, brows(m->b_x, n), brows(m->b_h, n), brows(m->b_x, n));
    RAD_ISSUE(c, y->ffn_norm, brows(m->b_x, n), RAD_W(y->w_ffn_norm), brows(m->b_h, n));
    RAD_ISSUE(c, y->gate_up, brows(m->b_h, n), RAD_W(y->w_gate_up), brows(m->b_gate_up, n));
    RAD_ISSUE(c, y->act, brows(m->b_gate_up, n), brows(m->b_act, n));
    RAD_ISSUE(c, y->down, brows(m->b_act, n), RAD_W(y->w_down), brows(m->b_h, n));
    RAD_ISSUE(c, y->ffn_add, brows(m->b_x, n), brows(m->b_h, n), brows(m->b_x, n));
}

static void seed_step(RadCtx *c, const RadBatch *batch)
{
    const struct model *m = rad_state(c);
    int64_t o = batch->n_out;
    if (batch->draft_pass) {
        rad_step_fail(c, "no drafter was declared");
        return;
    }
    RAD_ISSUE(c, m->op_embed, praw(batch->token_ids, RAD_I32, batch->n_tok),
              RAD_W(m->w_tok), brows(m->b_x, batch->n_tok));
    for (int32_t l = 0; l < m->n_layers; l++)
        step_layer(c, batch, m, l);
    if (!o)                                      /* no sequence ends here: no head */
        return;
    RAD_ISSUE_N(c, m->op_gather, o, brows(m->b_x, batch->n_tok),
                praw(batch->out_ids, RAD_I32, o), brows(m->b_rows, o));
    RAD_ISSUE_N(c, m->op_norm, o, brows(m->b_rows, o), RAD_W(m->w_norm), brows(m->b_rows, o));
    RAD_ISSUE_N(c, m->op_head, o, brows(m->b_rows, o), RAD_W(m->w_head), brows(m->b_logits, o));
}

static int seed_probe(const RadModelMeta *meta, RadArchProbe *out)
{
    (void)meta;
    *out = (RadArchProbe){ .struct_size = out->struct_size };
    return RAD_OK;
}

RAD_ARCH_PLUGIN(seed, "llama", "", "1.0", "a decoder written by hand")
