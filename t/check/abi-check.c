/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin ABI as its document has it: a plugin written by hand runs
 * (seed-arch.c), and what nothing serves yet is refused by its own name, not
 * ignored: each field of the deployment, each declaration, each call of a step. */
#include "config.h"

#include <math.h>
#include <unistd.h>

#include <rad/model_write.h>

#include "run/rt.h"
#include "tap.h"

enum { V = 40, D = 16, H = 4, HKV = 2, C = 8, F = 24, QKV = (H + 2 * HKV) * C, MAX_TOK = 12 };
#define HAS(text, part) CHECK_MSG(strstr(text, part), "no '%s' in '%s'", part, text)

static struct rad_model *model;
static struct radi_pool *pool;
static const struct rad_deployment small = { .size = sizeof small, .max_tok = MAX_TOK,
    .max_seqs = 2, .max_ctx = 32, .max_out = MAX_TOK, .parts = 2 };

/* ---- the model: one layer of seeded weights, kept to compute with */
static float w_tok[V][D], w_head[V][D], w_norm[D], w_anorm[D], w_fnorm[D];
static float w_qkv[QKV][D], w_o[D][H * C], w_gu[2 * F][D], w_down[D][F];
static const struct stored {
    const char *name;
    int layer;
    int64_t n, k;
    float *at;
} stored[] = {
    { "token_embd.weight", -1, V, D, w_tok[0] }, { "output_norm.weight", -1, D, 0, w_norm },
    { "output.weight", -1, V, D, w_head[0] }, { "blk.0.attn_norm.weight", 0, D, 0, w_anorm },
    { "blk.0.attn_qkv.weight", 0, QKV, D, w_qkv[0] },
    { "blk.0.attn_output.weight", 0, D, H * C, w_o[0] },
    { "blk.0.ffn_norm.weight", 0, D, 0, w_fnorm },
    { "blk.0.ffn_gate_up.weight", 0, 2 * F, D, w_gu[0] },
    { "blk.0.ffn_down.weight", 0, D, F, w_down[0] },
};

static rad_status write_weights(struct rad_model_writer *w, const char *path, struct rad_err *err)
{
    uint32_t seed = 9;
    RadEncoding e;
    size_t id;
    rad_encoding_plain(&e, RAD_F32);
    for (size_t i = 0; i < RADI_COUNT(stored); i++) {
        const struct stored *s = &stored[i];
        struct rad_weight_spec spec = { .size = sizeof spec, .name = s->name, .enc = &e,
            .rank = s->k ? 2 : 1, .shape = { s->n, s->k }, .layer = s->layer, .expert = -1 };
        RAD_TRY(rad_model_writer_weight(w, &spec, &id, err));
        for (int64_t j = 0; j < s->n * (s->k ? s->k : 1); j++) {
            seed = seed * 1664525u + 1013904223u;
            s->at[j] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
        }
    }
    RAD_TRY(rad_model_writer_plan(w, err));
    RAD_TRY(rad_model_writer_open(w, path, err));
    for (size_t i = 0; i < RADI_COUNT(stored); i++) {
        const struct rad_weight *x = rad_model_writer_at(w, i, &id);
        for (size_t k = 0; k < RADI_COUNT(stored); k++)
            if (!strcmp(stored[k].name, x->name))
                RAD_TRY(rad_model_writer_write(w, i, 0, stored[k].at,
                                               (size_t)(x->rows * x->cols) * sizeof(float), err));
    }
    return rad_model_writer_finish(w, err);
}

static struct rad_model *write_model(void)
{
    static const struct { const char *k; int64_t v; } meta[] = {
        { "n_layers", 1 }, { "n_embd", D }, { "n_head", H }, { "n_head_kv", HKV },
        { "head_dim", C }, { "n_ff", F }, { "n_vocab", V }, { "n_ctx_train", 32 } };
    char path[] = "/tmp/abi-check-XXXXXX";
    struct rad_err err = { 0 };
    struct rad_model_writer *w = NULL;
    struct rad_model *m = NULL;
    int fd = mkstemp(path);
    rad_status st = fd < 0 ? RAD_E_IO : rad_model_writer_new(&w, &err);
    if (!st)
        st = rad_model_writer_header(w, "llama", "abi test", "", "", "abi-check", &err);
    for (size_t i = 0; i < RADI_COUNT(meta) && !st; i++)
        st = rad_model_writer_meta_int(w, meta[i].k, meta[i].v, &err);
    if (!st)
        st = rad_model_writer_meta_f64(w, "rms_eps", 1e-5, &err);
    if (!st)
        st = rad_model_writer_meta_f64(w, "rope_theta", 10000, &err);
    if (!st)
        st = write_weights(w, path, &err);
    rad_model_writer_free(w);
    if (!st)
        st = rad_model_open(path, &m, &err);
    if (st)
        printf("# %s\n", err.text);
    if (fd >= 0)
        close(fd);
    unlink(path);
    return m;
}

/* ---- a library of ops that ask the core for what it does not do */
static const RadParamSpec chunk_param[] = {
    { "n", RAD_PK_INT, RAD_PARAM_REQUIRED, RAD_PROLE_SEQ_CHUNK } };
static const RadParamSpec capacity_param[] = {
    { "n", RAD_PK_INT, RAD_PARAM_REQUIRED, RAD_PROLE_CAPACITY } };
static const RadOperandSpec table_opd[] = { { "experts", RAD_OPD_TABLE, 0 } };
static const RadOpSchema wish_schema[] = {
    { sizeof(RadOpSchema), "cut", chunk_param, 1, NULL, 0, 0, "" },
    { sizeof(RadOpSchema), "cap", capacity_param, 1, NULL, 0, 0, "" },
    { sizeof(RadOpSchema), "tabled", NULL, 0, table_opd, 1, 0, "" },
};
static const RadPluginInfo wish_info = { sizeof wish_info, RAD_PLUGIN_KERNEL, "wish", "1", "",
                                         "" };
static const RadPluginInfo *wish_info_of(void) { return &wish_info; }
static int wish_schemas(void) { return (int)RADI_COUNT(wish_schema); }
static const RadOpSchema *wish_schema_at(int i) { return &wish_schema[i]; }
static int no_rows(void) { return 0; }
static const RadKernelRow *no_row(int i) { (void)i; return NULL; }
static const struct radi_exports wish = { .info = wish_info_of, .schema_count = wish_schemas,
    .schema_at = wish_schema_at, .row_count = no_rows, .row_at = no_row };

/* ---- the hand-written plugin, with something done after its own */
static const RadPluginInfo bent_info = { sizeof bent_info, RAD_PLUGIN_ARCH, "bent", "1", "", "" };
static const RadPluginInfo *bent_info_of(void) { return &bent_info; }
static void (*more_declare)(RadBuilder *b);
static void (*more_step)(RadCtx *c, const RadBatch *batch);
static RadArchProbe grant;

static int bent_probe(const RadModelMeta *meta, RadArchProbe *out)
{
    (void)meta;
    *out = grant;
    out->struct_size = sizeof *out;
    return RAD_OK;
}
static int bent_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx)
{
    int rc = rad_arch_declare(b, meta, ctx);
    if (more_declare)
        more_declare(b);
    return rc;
}
static void bent_step(RadCtx *c, const RadBatch *batch)
{
    rad_arch_step(c, batch);
    if (more_step)
        more_step(c, batch);
}
static const struct radi_exports bent = { .info = bent_info_of, .arch_id = rad_arch_id,
    .arch_quant = rad_arch_quant, .probe = bent_probe, .declare = bent_declare,
    .step = bent_step };
static const struct radi_exports seed = { .info = rad_plugin_info, .arch_id = rad_arch_id,
    .arch_quant = rad_arch_quant, .probe = rad_arch_probe, .declare = rad_arch_declare,
    .step = rad_arch_step };

static struct rad_plugins *plugins(const struct radi_exports *arch)
{
    struct rad_plugins *p;
    struct rad_err err = { 0 };
    char path[512];
    const char *dir = getenv("RAD_BUILDDIR");
    snprintf(path, sizeof path, "%s/kernels/.libs/libref.so", dir ? dir : ".");
    rad_status st = radi_plugins_new("test", "", &p, &err);
    if (!st)
        st = rad_plugins_add_file(p, path, &err);
    if (!st)
        st = radi_plugins_add(p, "wish.so", &wish, NULL, &err);
    if (!st)
        st = radi_plugins_add(p, "arch.so", arch, NULL, &err);
    if (!st)
        st = radi_plugins_settle(p, &err);
    if (st) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return p;
}

/* ---- the pattern of the document, computed */
static void normed(const float *x, const float *g, double *y)
{
    double sum = 0;
    for (int i = 0; i < D; i++)
        sum += (double)x[i] * (double)x[i];
    for (int i = 0; i < D; i++)
        y[i] = (double)x[i] * (double)g[i] / sqrt(sum / D + 1e-5);
}

static double dot(const float *w, const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)w[i] * x[i];
    return sum;
}

static void rotate(double *head, int pos)
{
    for (int i = 0; i < C / 2; i++) {
        double a = pos * pow(10000, -2.0 * i / C), x = head[i], y = head[i + C / 2];
        head[i] = x * cos(a) - y * sin(a);
        head[i + C / 2] = x * sin(a) + y * cos(a);
    }
}

enum { N = 6 };
static const int32_t text[N] = { 3, 39, 0, 17, 3, 8 };

static void attend(double (*qkv)[QKV], int t, int h, double *out)
{
    double p[N], sum = 0;
    int k0 = (H + h / (H / HKV)) * C, v0 = k0 + HKV * C;
    for (int s = 0; s <= t; s++) {
        double e = 0;
        for (int i = 0; i < C; i++)
            e += qkv[t][h * C + i] * qkv[s][k0 + i];
        sum += p[s] = exp(e / sqrt(C));
    }
    for (int i = 0; i < C; i++) {
        out[i] = 0;
        for (int s = 0; s <= t; s++)
            out[i] += p[s] / sum * qkv[s][v0 + i];
    }
}

static void expected(double logits[N][V])
{
    static double qkv[N][QKV];
    for (int t = 0; t < N; t++) {
        double h[D], att[H * C], g[2 * F], f[F];
        float x[D];
        memcpy(x, w_tok[text[t]], sizeof x);
        normed(x, w_anorm, h);
        for (int i = 0; i < QKV; i++)
            qkv[t][i] = dot(w_qkv[i], h, D);
        for (int i = 0; i < H + HKV; i++)
            rotate(&qkv[t][i * C], t);
        for (int i = 0; i < H; i++)
            attend(qkv, t, i, &att[i * C]);
        for (int i = 0; i < D; i++)
            x[i] += (float)dot(w_o[i], att, H * C);
        normed(x, w_fnorm, h);
        for (int i = 0; i < 2 * F; i++)
            g[i] = dot(w_gu[i], h, D);
        for (int i = 0; i < F; i++)
            f[i] = g[i] / (1 + exp(-g[i])) * g[F + i];
        for (int i = 0; i < D; i++)
            x[i] += (float)dot(w_down[i], f, F);
        normed(x, w_norm, h);
        for (int i = 0; i < V; i++)
            logits[t][i] = dot(w_head[i], h, D);
    }
}

/* Tokens [from, from + n) of the text. */
static void fill(struct radi_rt *rt, int from, int n)
{
    struct radi_step *s = radi_rt_step(rt);
    struct radi_step_kv *k = &s->kv[0];
    struct radi_kv_info kv;
    radi_rt_kv_info(rt, 0, &kv);
    s->n_seq = 1;
    s->n_tok = s->n_out = n;
    s->n_seq_decode = n == 1;
    s->cu_seqlens[0] = 0;
    s->cu_seqlens[1] = s->q_lens[0] = n;
    s->ctx_lens[0] = from;
    k->seqused[0] = from + n;
    for (int64_t j = 0; j < k->max_blocks; j++)
        k->block_table[j] = (int32_t)(1 + j);
    for (int i = 0; i < n; i++) {
        int32_t pos = from + i;
        s->token_ids[i] = text[pos];
        s->positions[i] = pos;
        s->seq_ids[i] = 0;
        s->out_ids[i] = i;
        k->slot_mapping[i] = k->block_table[pos / kv.block_size] * (int32_t)kv.block_size
            + pos % (int32_t)kv.block_size;
    }
}

static void worked_pattern(void)
{
    static double want[N][V];
    struct rad_plugins *p = plugins(&seed);
    struct rad_err err = { 0 };
    struct rad_plan *plan = NULL;
    struct radi_rt *rt = NULL;
    const float *l = NULL;
    char *graph = NULL;
    rad_status st = rad_plan_build_model(p, model, &small, &plan, &err);
    if (!st)
        st = rad_plan_graph_text(plan, &graph, &err);
    if (!st)
        st = radi_rt_open(plan, model, pool, &rt, &err);
    CHECK_MSG(!st, "%s", err.text);
    if (graph)
        HAS(graph, "note written by hand: 1 layers");
    expected(want);
    for (int chunk = 1; !st && chunk <= N; chunk += 5)
        for (int at = 0; at < N; at += chunk) {
            fill(rt, at, chunk);
            st = radi_rt_submit(rt, &err);
            if (!st)
                st = radi_rt_wait(rt, &l, &err);
            CHECK_MSG(!st && l, "%s", err.text);
            for (int i = 0; l && i < chunk * V; i++) {
                double w = want[at + i / V][i % V];
                CHECK_MSG(fabs((double)l[i] - w) < 1e-4, "token %d: %g, want %g", at + i / V,
                          (double)l[i], w);
            }
        }
    radi_rt_close(rt);
    rad_plan_free(plan);
    free(graph);
    rad_plugins_close(p);
}

/* ---- refusals */
static struct rad_plugins *bent_set;

static void refused(const struct rad_deployment *d, const char *part)
{
    struct rad_err err = { 0 };
    struct rad_plan *plan = NULL;
    rad_status st = rad_plan_build_model(bent_set, model, d, &plan, &err);
    CHECK_MSG(st == RAD_E_UNSUPPORTED && !plan, "%d, want a refusal with '%s': %s", st, part,
              err.text);
    HAS(err.text, part);
    rad_plan_free(plan);
}

/* FIELD: nothing serves it. PERMIT: the probe's bit says whose refusal it is. */
#define FIELD(f, v) do { \
        struct rad_deployment d = small; \
        d.ctx.f = (v); \
        refused(&d, "deployment field '" #f "' is not served"); \
    } while (0)
#define PERMIT(f, v, bit, on) do { \
        struct rad_deployment d = small; \
        d.ctx.f = (v); \
        refused(&d, "deployment field '" #f "': plugin 'bent' does not serve it"); \
        grant.bit = (on); \
        refused(&d, "deployment field '" #f "' is not served"); \
        memset(&grant, 0, sizeof grant); \
    } while (0)
#define TYPE(f, v) do { \
        struct rad_deployment d = small; \
        d.ctx.f = (v); \
        refused(&d, "deployment field '" #f "': type"); \
    } while (0)

static void deployment(void)
{
    static const RadControlVector cv;
    FIELD(rank, 1);
    FIELD(world_size, 2);
    FIELD(world_size, -1);
    PERMIT(max_spec, 1, draft_depth, 1);
    FIELD(max_mixed_tok, 1);
    FIELD(tp_wire_lossy, 1);
    FIELD(tp_wire_min_bytes, 1);
    TYPE(act_dtype, RAD_I8);
    TYPE(kv_dtype, RAD_I8);
    PERMIT(kv_quant, RAD_KVQ_V4, kv_quant_ok, 1 << RAD_KVQ_V4);
    PERMIT(kv_quant, RAD_KVQ_K6V4, kv_quant_ok, 1 << RAD_KVQ_K6V4);
    FIELD(attn_prefill_fp8, RAD_ATTN_FP8_QK);
    PERMIT(kv_resident_blocks, 4, kv_stream_ok, 1);
    PERMIT(kv_stream_ok, 1, kv_stream_ok, 1);
    PERMIT(state_dtype, RAD_F16, state_f16_ok, 1);
    FIELD(is_draft, 1);
    FIELD(scope, "draft");
    PERMIT(shape_probe, 1, shape_probe_ok, 1);
    PERMIT(max_enc_patches, 1, enc_merge, 2);
    PERMIT(max_audio_frames, 1, audio_frames, 100);
    PERMIT(cvec, &cv, control_vector_ok, 1);
    PERMIT(tp_attn_rows, 1, tp_attn_rows_ok, 1);
    PERMIT(draft_coupling, RAD_COUPLING_COUPLED, draft_depth, 1);
    PERMIT(draft_tree, 1, tree_pays, 1);
    FIELD(weight_prefetch_off, 1);
    /* K6V4 is not granted by V4's bit */
    struct rad_deployment d = small;
    d.ctx.kv_quant = RAD_KVQ_K6V4;
    grant.kv_quant_ok = 1 << RAD_KVQ_V4;
    refused(&d, "deployment field 'kv_quant': plugin 'bent'");
    memset(&grant, 0, sizeof grant);
}

/* Served ones count wherever they are given; no bit of the probe hinders. */
static void served(void)
{
    struct rad_deployment d = small;
    struct rad_err err = { 0 };
    struct rad_plan *plan = NULL;
    memset(&grant, 0x11, sizeof grant);
    d.max_tok = d.max_seqs = d.max_ctx = d.max_out = 0;
    d.ctx.max_tok = 7;
    d.ctx.max_seqs = 3;
    d.ctx.max_ctx = 21;
    d.ctx.max_out_rows = 2;
    d.ctx.world_size = 1;
    CHECK_MSG(!rad_plan_build_model(bent_set, model, &d, &plan, &err), "%s", err.text);
    CHECK(plan && plan->ctx.max_tok == 7 && plan->ctx.max_seqs == 3);
    CHECK(plan && plan->ctx.max_ctx == 21 && plan->max_out == 2);
    rad_plan_free(plan);
    memset(&grant, 0, sizeof grant);
    d.ctx.max_tok = -1;
    CHECK(rad_plan_build_model(bent_set, model, &d, &plan, &err) == RAD_E_ARG);
    HAS(err.text, "'ctx.max_tok': -1");
}

#define IN_GROUP(g, ...) rad_decl_weight(b, "view", &(RadWeightDecl){ .rank = 1, \
        .shape = { D }, .source = "output_norm.weight", .group = g, __VA_ARGS__ })
#define WEIGHT(...) IN_GROUP(rad_group_model(), __VA_ARGS__)
#define MAP(...) rad_decl_name_map(b, &(RadNameMap){ .declared = "view", .n_src = 1, \
        .src = { "x" }, __VA_ARGS__ })
#define KV(k) rad_decl_kv_group(b, "state", &(RadKvGroupDecl){ .kind = k, .dtype = RAD_F32, \
        .window = 8, .n_head_kv = 1, .head_dim = 8, .state_dim = { 8, 8 }, .conv_width = 4 })

/*      the refusal's text, the declaration */
#define DECLARES(X) \
    X("'view': access RAD_ACCESS_PER_REQUEST is", WEIGHT(.access = RAD_ACCESS_PER_REQUEST)) \
    X("'view': access RAD_ACCESS_CONDITIONAL is", WEIGHT(.access = RAD_ACCESS_CONDITIONAL)) \
    X("'view': access RAD_ACCESS_RARE is", WEIGHT(.access = RAD_ACCESS_RARE)) \
    X("'view': group.expert 3 is", IN_GROUP(((RadGroup){ 0, 3, 0 }), .optional = 0)) \
    X("'view': a view of planes 'codes'", WEIGHT(.planes = "codes")) \
    X("rad_weight_shard_span: more than one rank", \
      rad_weight_shard_span(b, WEIGHT(.shard = RAD_SHARD_ROW), 0, D / 2)) \
    X("rad_weight_shard_parts: more than one rank", \
      rad_weight_shard_parts(b, WEIGHT(.n_row_parts = 2, .row_parts = { 4, D - 4 }), 1, 0, 2)) \
    X("'view': mode RAD_MAP_WNORM is", MAP(.mode = RAD_MAP_WNORM)) \
    X("'view': mode RAD_MAP_EMA is", MAP(.mode = RAD_MAP_EMA)) \
    X("'view': mode RAD_MAP_TAP is", MAP(.mode = RAD_MAP_TAP)) \
    X("'view': mode RAD_MAP_COLS is", MAP(.mode = RAD_MAP_COLS)) \
    X("'view': concat_dim 1 is", MAP(.mode = RAD_MAP_CONCAT, .concat_dim = 1)) \
    X("'d': kind RAD_BUF_DERIVED ('conv_state_index') is", \
      rad_decl_buffer(b, "d", &(RadBufferDecl){ .dtype = RAD_I32, .rank = 1, .shape = { 4 }, \
                      .kind = RAD_BUF_DERIVED, .derive = "conv_state_index" })) \
    X("'d': domain 1 is", \
      rad_decl_buffer(b, "d", &(RadBufferDecl){ .dtype = RAD_I32, .rank = 1, .shape = { 4 }, \
                      .domain = RAD_DOMAIN_DEVICE })) \
    X("'state': kind RAD_KV_LINEAR is", KV(RAD_KV_LINEAR)) \
    X("'state': kind RAD_KV_CONV is", KV(RAD_KV_CONV)) \
    X("'state': kind RAD_KV_RING is", KV(RAD_KV_RING)) \
    X("rad_kv_group_zero: more than one rank", rad_kv_group_zero(b, 0)) \
    X("rad_buf_concurrent: a second lane", rad_buf_concurrent(b, 0)) \
    X("rad_lane1_window_begin: a second lane", rad_lane1_window_begin(b)) \
    X("rad_lane1_window_end: a second lane", rad_lane1_window_end(b)) \
    X("'cut': parameter 'n': role RAD_PROLE_SEQ_CHUNK is", \
      RAD_OP(b, "cut", RAD_PARAMS(RAD_INT("n", 4)), RAD_NO_WEIGHTS)) \
    X("'cap': parameter 'n': role RAD_PROLE_CAPACITY is", \
      RAD_OP(b, "cap", RAD_PARAMS(RAD_INT("n", 4)), RAD_NO_WEIGHTS)) \
    X("op 'tabled': weight tables are", RAD_OP(b, "tabled", NULL, 0, RAD_NO_WEIGHTS)) \
    X("rad_declare_pooled: ", rad_declare_pooled(b, 0)) \
    X("rad_declare_scores: ", rad_declare_scores(b)) \
    X("rad_declare_drafter: ", \
      rad_declare_drafter(b, &(RadDrafterDecl){ .kind = RAD_DRAFT_SERIAL, .depth = 1 })) \
    X("rad_drafter_shared_kv: ", rad_drafter_shared_kv(b)) \
    X("rad_drafter_tree: ", rad_drafter_tree(b, 2)) \
    X("rad_drafter_short_block: ", rad_drafter_short_block(b, 2)) \
    X("rad_declare_encoder: ", rad_declare_encoder(b, &(RadEncoderDecl){ .merge = 1 })) \
    X("rad_declare_generator: ", rad_declare_generator(b, &(RadGeneratorDecl){ .output = 0 })) \
    X("rad_declare_audio_generator: ", \
      rad_declare_audio_generator(b, &(RadGeneratorDecl){ .output = 0 })) \
    X("rad_declare_video_generator: ", \
      rad_declare_video_generator(b, &(RadGeneratorDecl){ .output = 0 }))

static int declare_case;
static const char *const declare_text[] = {
#define X(part, ...) part,
    DECLARES(X)
#undef X
};

static void declare_one(RadBuilder *b)
{
    int at = 0;
#define X(part, ...) if (at++ == declare_case) { (void)(__VA_ARGS__); return; }
    DECLARES(X)
#undef X
}

static void declarations(void)
{
    more_declare = declare_one;
    for (declare_case = 0; declare_case < (int)RADI_COUNT(declare_text); declare_case++)
        refused(&small, declare_text[declare_case]);
    more_declare = NULL;
}

/* What is wrong at any time, not unserved. */
static void bad_parts(RadBuilder *b)
{
    WEIGHT(.n_row_parts = 9);
}
static void bad_sum(RadBuilder *b)
{
    WEIGHT(.n_row_parts = 2, .row_parts = { 4, D });
}
static void bad_access(RadBuilder *b)
{
    WEIGHT(.access = 77);
}

static void wrong(void)
{
    static const struct { void (*fn)(RadBuilder *); rad_status st; const char *part; } t[] = {
        { bad_parts, RAD_E_ARG, "weight 'view': n_row_parts 9, want 0 to 8" },
        { bad_sum, RAD_E_SHAPE, "weight 'view': row_parts add up to 20 of 16 rows" },
        { bad_access, RAD_E_ARG, "weight 'view': access 77" },
    };
    for (size_t i = 0; i < RADI_COUNT(t); i++) {
        struct rad_err err = { 0 };
        struct rad_plan *plan;
        more_declare = t[i].fn;
        CHECK(rad_plan_build_model(bent_set, model, &small, &plan, &err) == t[i].st);
        HAS(err.text, t[i].part);
    }
    more_declare = NULL;
}

#define STEPS(X) \
    X("rad_lane(1): a second lane", rad_lane(c, 1)) \
    X("rad_lane_join(1, 0): a second lane", rad_lane_join(c, 1, 0)) \
    X("rad_route_report of layer 0", rad_route_report(c, 0, &(RadRouting){ .top_k = 1 })) \
    X("rad_route_counts of layer 0", rad_route_counts(c, 0, (int64_t[1]){ 0 }, 1)) \
    X("op 'embed_lookup': weight tables are", \
      RAD_ISSUE(c, 0, (RadOperand){ .kind = RAD_OPERAND_TABLE }, pnone(), pnone()))

static int step_case;
static const char *const step_text[] = {
#define X(part, ...) part,
    STEPS(X)
#undef X
};

static void step_one(RadCtx *c, const RadBatch *batch)
{
    int at = 0;
    (void)batch;
#define X(part, ...) if (at++ == step_case) { \
        int rc = (__VA_ARGS__); \
        CHECK_MSG(rc == RAD_E_UNSUPPORTED, "%d from %s", rc, #__VA_ARGS__); \
        return; }
    STEPS(X)
#undef X
}

static void steps(void)
{
    struct rad_err err = { 0 };
    struct rad_plan *plan = NULL;
    struct radi_rt *rt = NULL;
    rad_status st = rad_plan_build_model(bent_set, model, &small, &plan, &err);
    if (!st)
        st = radi_rt_open(plan, model, pool, &rt, &err);
    CHECK_MSG(!st, "%s", err.text);
    more_step = step_one;
    for (step_case = 0; rt && step_case < (int)RADI_COUNT(step_text); step_case++) {
        fill(rt, 0, 2);
        st = radi_rt_submit(rt, &err);
        CHECK_MSG(st == RAD_E_UNSUPPORTED, "%d: %s", st, err.text);
        HAS(err.text, step_text[step_case]);
    }
    more_step = NULL;
    radi_rt_close(rt);
    rad_plan_free(plan);
}

int main(void)
{
    struct rad_err err = { 0 };
    model = write_model();
    if (!model || radi_pool_new(2, &pool, &err)) {
        printf("Bail out! no model or pool\n");
        return 1;
    }
    bent_set = plugins(&bent);
    TAP_RUN(worked_pattern);
    TAP_RUN(deployment);
    TAP_RUN(served);
    TAP_RUN(declarations);
    TAP_RUN(wrong);
    TAP_RUN(steps);
    rad_plugins_close(bent_set);
    radi_pool_free(pool);
    rad_model_unref(model);
    return tap_done();
}
