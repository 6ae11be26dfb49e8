/* SPDX-License-Identifier: Apache-2.0 */
/* The declare phase: an architecture names every weight, buffer, KV group and
 * op once, in order, against the model's metadata. Declare is a pure function
 * of its inputs and runs more than once (sizing probes, the converter, each
 * rank). It never stops half way: what cannot be resolved is collected and
 * reported together.
 *
 * Names and fields are the seed's (radiance-architecture-plugins). A field or
 * call that nothing serves yet is refused by name when it is set. */
#ifndef RAD_BUILDER_H
#define RAD_BUILDER_H

#include <rad/rad_kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RadBuilder RadBuilder;
typedef int32_t rad_weight;
typedef int32_t rad_buf;
typedef int32_t rad_op;
typedef int32_t rad_kv;
#define RAD_NULL_HANDLE (-1)

/* ---- inputs */
typedef struct RadModelMeta {       /* the container's header, or a checkpoint's */
    uint32_t struct_size;
    const char *arch_id, *name, *quant;
    int64_t n_layers, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train;
    int64_t n_expert, n_expert_used, n_expert_shared;
    double rms_eps, rope_theta, rope_scale;
    int64_t n_kv;                   /* entries of the free-form table */
    const char *const *kv_key;
    const char *const *kv_val;      /* text; numbers as written */
} RadModelMeta;

/* Typed getters of the free-form table; `def` when absent or not of the type. */
int64_t rad_meta_geti(const RadModelMeta *m, const char *key, int64_t def);
double rad_meta_getf(const RadModelMeta *m, const char *key, double def);
const char *rad_meta_gets(const RadModelMeta *m, const char *key, const char *def);

enum { RAD_KVQ_NONE = 0, RAD_KVQ_V4 = 1, RAD_KVQ_K6V4 = 2 };      /* kv_quant, and probe bits */
enum { RAD_ATTN_FP8_QK = 1, RAD_ATTN_FP8_PV = 2 };                /* attn_prefill_fp8 */
enum { RAD_COUPLING_NONE = 0, RAD_COUPLING_COUPLED = 1 };         /* draft_coupling */

typedef struct RadControlVector {
    int32_t n_layers;
    int64_t n_embd;
    const float *dir;               /* [n_layers, n_embd] f32 */
    double scale;
} RadControlVector;

typedef struct RadBuildCtx {        /* the deployment to declare against */
    uint32_t struct_size;
    int32_t rank, world_size;       /* dimensions are divided by the plugin */
    int64_t max_tok, max_seqs, max_ctx, max_spec;
    int64_t max_mixed_tok;
    int32_t tp_wire_lossy;
    int64_t tp_wire_min_bytes;
    int32_t act_dtype;              /* activations: RAD_F32 or RAD_BF16 */
    int32_t kv_dtype;               /* attention cache element */
    int32_t kv_quant;               /* RAD_KVQ_* */
    int32_t attn_prefill_fp8;
    int64_t kv_resident_blocks;
    int32_t kv_stream_ok;
    int32_t state_dtype;            /* recurrent state; 0 = f32 */
    int32_t is_draft;
    const char *scope;              /* prefixes declared names; "" = none */
    int32_t shape_probe;            /* a sizing declare at smaller maxima */
    int64_t max_enc_patches, max_audio_frames;
    int64_t max_out_rows;           /* 0: max_seqs * (1 + max_spec), capped */
    const RadControlVector *cvec;
    int32_t tp_attn_rows;
    int32_t draft_coupling, draft_tree;
    int32_t weight_prefetch_off;
} RadBuildCtx;

/* ---- weights */
enum { RAD_ACCESS_PER_TOKEN = 0, RAD_ACCESS_PER_REQUEST = 1, RAD_ACCESS_CONDITIONAL = 2,
       RAD_ACCESS_RARE = 3, RAD_ACCESS_VOCAB = 4 };
enum { RAD_SHARD_NONE = 0, RAD_SHARD_ROW = 1, RAD_SHARD_COL = 2 };

typedef struct RadGroup {           /* the unit of movement; -1 = none */
    int32_t layer, expert, slot;
} RadGroup;
static inline RadGroup rad_group_model(void) { return (RadGroup){ -1, -1, 0 }; }
static inline RadGroup rad_group_layer(int32_t l) { return (RadGroup){ l, -1, 0 }; }
static inline RadGroup grp_layer(int32_t l) { return rad_group_layer(l); }  /* the seed's word */

typedef struct RadWeightDecl {
    int32_t dtype;                  /* as the ops read it; 0 = any stored form */
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];    /* this rank's */
    int32_t access, shard;
    RadGroup group;
    int32_t optional;               /* absent in the file: a null handle */
    int32_t n_row_parts;
    int64_t row_parts[8];
    const char *source;             /* NULL: the stored weight of this name */
    const char *planes;             /* NULL: every plane; else "codes,scale" */
} RadWeightDecl;

rad_weight rad_decl_weight(RadBuilder *b, const char *name, const RadWeightDecl *d);
/* How the container stores (or the recipe will store) the weight; ask after its
 * name map entry. NULL for a null handle. Lives as long as the builder. */
const RadEncoding *rad_weight_encoding(RadBuilder *b, rad_weight w);
/* Uneven splits: this rank keeps rows [first, first + n) of part `part`. */
int rad_weight_shard_span(RadBuilder *b, rad_weight w, int64_t first, int64_t n);
int rad_weight_shard_parts(RadBuilder *b, rad_weight w, int part, int64_t first, int64_t n);
/* A small host constant (frequencies, tables) that ops read as a weight. Its
 * bytes are copied; it is not stored in a container. Not in the seed. */
rad_weight rad_decl_constant(RadBuilder *b, const char *name, int32_t dtype, int32_t rank,
                             const int64_t *shape, const void *data);

/* ---- name map: checkpoint tensors -> declared weights. The only place where
 * convert-time fusions live. Declare an entry before the weight it names. */
enum { RAD_MAP_COPY = 0, RAD_MAP_CONCAT = 1, RAD_MAP_WNORM = 2, RAD_MAP_ROWS = 3,
       RAD_MAP_TRANSPOSE = 4, RAD_MAP_EMA = 5, RAD_MAP_TAP = 6, RAD_MAP_COLS = 7 };
typedef struct RadNameMap {
    const char *declared;
    int32_t mode;
    int32_t n_src;                  /* COPY: first present wins; CONCAT: all */
    const char *src[8];
    int32_t concat_dim;
    int64_t src_index[8];           /* index into dim 0 of a stacked source; -1 = whole */
    int64_t first, count;           /* ROWS, COLS */
    int64_t every;                  /* ROWS: again in each group of so many rows; 0: once */
} RadNameMap;
int rad_decl_name_map(RadBuilder *b, const RadNameMap *m);

/* ---- buffers */
enum { RAD_BUF_TRANSIENT = 0, RAD_BUF_PERSIST = 1, RAD_BUF_DERIVED = 2 };
typedef struct RadBufferDecl {
    int32_t dtype, rank;
    int64_t shape[RAD_MAX_RANK];    /* dim 0: the most rows of a step */
    int32_t kind, domain;
    const char *derive;             /* DERIVED: name of the derivation */
    rad_kv kv;                      /* DERIVED: the group it reads */
} RadBufferDecl;
rad_buf rad_decl_buffer(RadBuilder *b, const char *name, const RadBufferDecl *d);
void rad_buf_concurrent(RadBuilder *b, rad_buf buf);
void rad_lane1_window_begin(RadBuilder *b);
void rad_lane1_window_end(RadBuilder *b);

/* ---- KV groups */
enum { RAD_KV_FULL = 0, RAD_KV_WINDOW = 1, RAD_KV_LINEAR = 2, RAD_KV_CONV = 3, RAD_KV_RING = 4 };
typedef struct RadKvGroupDecl {
    int32_t kind, dtype;
    int64_t window;                 /* WINDOW: tokens a query sees, itself included */
    int64_t n_head_kv, head_dim;    /* FULL, WINDOW: page [n_head_kv, block, 2 head_dim] */
    int64_t state_dim[2];           /* LINEAR */
    int64_t conv_width;             /* CONV */
} RadKvGroupDecl;
rad_kv rad_decl_kv_group(RadBuilder *b, const char *name, const RadKvGroupDecl *d);
int64_t rad_kv_block_size(RadBuilder *b, rad_kv g);  /* 0 until a consumer op is declared */
int rad_bind_layer_kv(RadBuilder *b, int32_t layer, rad_kv g);
void rad_kv_group_zero(RadBuilder *b, rad_kv g);
void rad_kv_group_replicated(RadBuilder *b, rad_kv g);
void rad_kv_group_dense_read(RadBuilder *b, rad_kv g);

/* ---- ops */
rad_op rad_decl_op(RadBuilder *b, const char *op, const RadParam *p, int n_p,
                   const rad_weight *w, int n_w);
/* Buffers the op touches: the planner's liveness. KV groups by rad_op_kv. */
void rad_op_reads(RadBuilder *b, rad_op op, const rad_buf *bufs, int n);
void rad_op_writes(RadBuilder *b, rad_op op, const rad_buf *bufs, int n);
/* The KV group whose page size this op fixes or follows (block_size). */
void rad_op_kv(RadBuilder *b, rad_op op, rad_kv g);
int rad_op_resolved(RadBuilder *b, rad_op op);
int rad_op_declared(RadBuilder *b, const char *op);
/* Derived parameter as the selected row answers it; 0 if none. */
int64_t rad_op_derived(RadBuilder *b, rad_op op, const char *key);

#define RAD_RANGE(k, lo, hi) ((RadParam){ k, RAD_PK_RANGE, (lo), (hi), NULL, 0 })
#define RAD_INT(k, v) ((RadParam){ k, RAD_PK_INT, (v), 0, NULL, 0 })
#define RAD_STR(k, v) ((RadParam){ k, RAD_PK_STR, 0, 0, (v), 0 })
#define RAD_REAL(k, v) ((RadParam){ k, RAD_PK_REAL, 0, 0, NULL, (v) })
/* RAD_PARAMS and RAD_WEIGHTS expand to an array and its count. */
#define RAD_PARAMS(...) (const RadParam[]){ __VA_ARGS__ }, \
    (int)(sizeof((const RadParam[]){ __VA_ARGS__ }) / sizeof(RadParam))
#define RAD_WEIGHTS(...) (const rad_weight[]){ __VA_ARGS__ }, \
    (int)(sizeof((const rad_weight[]){ __VA_ARGS__ }) / sizeof(rad_weight))
#define RAD_NO_WEIGHTS NULL, 0
#define RAD_BUFS(...) (const rad_buf[]){ __VA_ARGS__ }
#define RAD_OP(...) rad_decl_op(__VA_ARGS__)

/* ---- outputs, drafters, encoders, generators */
void rad_declare_logits(RadBuilder *b, rad_buf buf);     /* dim 0 bounds n_out */
void rad_declare_pooled(RadBuilder *b, rad_buf buf);
void rad_declare_scores(RadBuilder *b);
void rad_note(RadBuilder *b, const char *fmt, ...) RAD_PRINTF(2, 3);
/* Declare cannot go on: the message is reported with the model's name. */
int rad_declare_fail(RadBuilder *b, int status, const char *fmt, ...) RAD_PRINTF(3, 4);

enum { RAD_DRAFT_NONE = 0, RAD_DRAFT_SERIAL = 1, RAD_DRAFT_BLOCK = 2 };
typedef struct RadDrafterDecl {
    uint32_t struct_size;
    const char *name;
    int32_t kind, depth;
    rad_buf proposal;
    int64_t pitch;
    int32_t mask_token, window, block;    /* block 0 = depth + 1 */
} RadDrafterDecl;
int rad_declare_drafter(RadBuilder *b, const RadDrafterDecl *d);
void rad_drafter_shared_kv(RadBuilder *b);
void rad_drafter_tree(RadBuilder *b, int32_t width);
void rad_drafter_short_block(RadBuilder *b, int32_t block);

enum { RAD_MODAL_IMAGE = 1, RAD_MODAL_VIDEO = 2, RAD_MODAL_AUDIO = 4 };
typedef struct RadEncoderDecl {
    uint32_t struct_size;
    const char *name;
    int32_t modalities;
    int64_t patch_dim, merge, max_patches, n_embd;
    rad_buf output;
} RadEncoderDecl;
int rad_declare_encoder(RadBuilder *b, const RadEncoderDecl *d);
typedef struct RadGeneratorDecl {
    uint32_t struct_size;
    const char *name;
    rad_buf output;
} RadGeneratorDecl;
int rad_declare_generator(RadBuilder *b, const RadGeneratorDecl *d);
int rad_declare_audio_generator(RadBuilder *b, const RadGeneratorDecl *d);
int rad_declare_video_generator(RadBuilder *b, const RadGeneratorDecl *d);

/* The plugin search path of the set that the model is built under, as
 * rad_arch_pair_count got it: a process may have several. Lives as long as the
 * plan. */
const char *rad_build_home(const RadBuilder *b);

/* ---- exports of an architecture plugin */
typedef struct RadArchProbe {       /* permissions; 0 = refused at start */
    uint32_t struct_size;
    int32_t draft_depth, draft_depth_fixed;
    int32_t shape_probe_ok;
    int32_t enc_merge, audio_frames;
    int64_t gen_rows, gen_patches, gen_audio, gen_ctx, gen_video;
    int32_t kv_quant_ok;            /* bits 1 << RAD_KVQ_* */
    int32_t chain_pays, tree_pays;
    int32_t kv_stream_ok, control_vector_ok, tp_attn_rows_ok, state_f16_ok;
} RadArchProbe;

typedef struct RadArchPair {        /* exactly what is claimed */
    const char *arch_id, *quant;
} RadArchPair;

typedef struct RadChatFormat {      /* reference: plugin ABI, "Chat format" */
    uint32_t struct_size;
    const char *name;
    const char *reasoning_open, *reasoning_close;
    const char *const *reasoning_breaks;
    int32_t n_reasoning_breaks, reasoning_in_prompt;
    const char *section_open, *section_close, *call_separator;
    const char *call_open, *call_close, *call_end;
    const char *name_prefix, *name_suffix;
    const char *arg_prefix, *arg_name_suffix, *arg_value_prefix, *arg_value_suffix;
    int32_t string_value, value_newlines;
    const char *const *triggers;
    int32_t n_triggers;
} RadChatFormat;
typedef struct RadAudioFormat {
    uint32_t struct_size;
    int32_t clip_tokens;
    const char *prompt, *language, *transcript_start;
} RadAudioFormat;

struct RadCtx;
struct RadBatch;
const char *rad_arch_id(void);
const char *rad_arch_quant(void);
/* Instead of the two above: a plugin that claims several pairs, each exact.
 * `home` is the plugin search path in force (colon-separated). */
int rad_arch_pair_count(const char *home);
const RadArchPair *rad_arch_pair_at(const char *home, int i);
/* Optional; refused when it answers 1: nothing serves imports yet. */
int rad_arch_serves_imports(void);
int rad_arch_probe(const RadModelMeta *meta, RadArchProbe *out);
int rad_arch_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx);
void rad_arch_step(struct RadCtx *c, const struct RadBatch *batch);
/* Optional, nothing calls them yet: the loader refuses a plugin that exports
 * one, by name. */
const RadChatFormat *rad_arch_chat_format(const RadModelMeta *meta);
const RadAudioFormat *rad_arch_audio_format(const RadModelMeta *meta);
int rad_arch_text_prepare(const RadModelMeta *meta, const char *in, char **out);
int rad_arch_video_positions(const RadModelMeta *meta, void *geom);
int rad_arch_video_pack(const RadModelMeta *meta, void *geom);
int rad_arch_encode_geom(const RadModelMeta *meta, void *geom);

/* The plugin's own state of one declared model (handles), set by declare and
 * read by step. The core owns the pointer and calls `fini` at close. Two
 * models of one plugin in one process keep two states. */
void rad_set_state(RadBuilder *b, void *state, void (*fini)(void *));

#ifdef __cplusplus
}
#endif
#endif
