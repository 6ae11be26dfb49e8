/* SPDX-License-Identifier: Apache-2.0 */
/* The step phase: an architecture issues the handles it got at declare. It may
 * not allocate, wait, or read what the batch's pointers point at: they are the
 * device's. Errors are sticky: the first one ends the step. */
#ifndef RAD_RUNTIME_H
#define RAD_RUNTIME_H

#include <rad/rad_builder.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RadCtx RadCtx;

enum { RAD_OPERAND_BUF = 0, RAD_OPERAND_WEIGHT = 1, RAD_OPERAND_RAW = 2, RAD_OPERAND_NONE = 3,
       RAD_OPERAND_KV = 4, RAD_OPERAND_TABLE = 5 };

typedef struct RadOperand {
    int32_t kind, dtype;     /* dtype: RAW only */
    int32_t handle;
    void *raw;
    int64_t offset;          /* elements; KV: the absolute layer index */
    int64_t rows, cols;      /* 0 = all; narrow dim 0 / the last dim (pitch kept) */
} RadOperand;

/* Whole buffer narrowed to its first `rows` rows. */
static inline RadOperand brows(rad_buf b, int64_t rows)
{
    return (RadOperand){ RAD_OPERAND_BUF, 0, b, NULL, 0, rows, 0 };
}
/* Rows [row0, row0 + rows) of a buffer whose rows have `pitch` elements. */
static inline RadOperand brange(rad_buf b, int64_t row0, int64_t rows, int64_t pitch)
{
    return (RadOperand){ RAD_OPERAND_BUF, 0, b, NULL, row0 * pitch, rows, 0 };
}
/* Columns [col0, col0 + cols) of the first `rows` rows. */
static inline RadOperand bcols(rad_buf b, int64_t rows, int64_t col0, int64_t cols)
{
    return (RadOperand){ RAD_OPERAND_BUF, 0, b, NULL, col0, rows, cols };
}
static inline RadOperand bweight(rad_weight w)
{
    return (RadOperand){ RAD_OPERAND_WEIGHT, 0, w, NULL, 0, 0, 0 };
}
#define RAD_W(w) bweight(w)
/* A batch pointer: [n], or [rows, cols] when cols > 0. */
static inline RadOperand praw(const void *p, int32_t dtype, int64_t n)
{
    return (RadOperand){ RAD_OPERAND_RAW, dtype, 0, (void *)(uintptr_t)p, 0, n, 0 };
}
static inline RadOperand praw2(const void *p, int32_t dtype, int64_t rows, int64_t cols)
{
    return (RadOperand){ RAD_OPERAND_RAW, dtype, 0, (void *)(uintptr_t)p, 0, rows, cols };
}
static inline RadOperand pnone(void)
{
    return (RadOperand){ RAD_OPERAND_NONE, 0, 0, NULL, 0, 0, 0 };
}
static inline RadOperand pkv(rad_kv g, int64_t layer)
{
    return (RadOperand){ RAD_OPERAND_KV, 0, g, NULL, layer, 0, 0 };
}

enum { RAD_PHASE_PREFILL = 0, RAD_PHASE_DECODE = 1, RAD_PHASE_MIXED = 2 };

typedef struct RadKvBatch {          /* one KV group; device pointers */
    const int32_t *slot_mapping;     /* [n_tok] page * block_size + line; -1 none */
    const int32_t *block_table;      /* [n_seq, block_pitch]; -1 none */
    int64_t block_pitch;
    const int32_t *seqused;          /* [n_seq] keys visible, this step's included */
    const int32_t *state_index;      /* [n_seq, state_pitch] LINEAR, CONV */
    int64_t state_pitch;
    int64_t block_size, max_blocks;
} RadKvBatch;

typedef struct RadBatch {
    uint32_t struct_size;
    int32_t phase;
    int64_t step;
    int64_t n_tok, n_seq;
    const int32_t *token_ids;        /* [n_tok] device */
    const int32_t *positions;        /* [n_tok] device */
    const int32_t *cu_seqlens;       /* [n_seq + 1] device, absolute offsets */
    const int32_t *seq_ids;          /* [n_tok] device */
    const int32_t *lora_slot;
    const int32_t *q_lens, *ctx_lens;/* [n_seq] device; ctx: tokens before this step */
    int64_t max_q_len, max_ctx_len;
    int64_t n_out;
    const int32_t *out_ids;          /* [n_out] device: rows that want logits */
    int32_t n_kv_groups;
    const RadKvBatch *kv;            /* host array of device pointers */
    /* decode rows come first: sequences [0, n_seq_decode) */
    int64_t n_seq_decode, n_tok_decode, max_q_len_decode, max_q_len_prefill;
    /* speculation */
    int32_t n_spec;
    const int32_t *num_accepted;     /* [n_seq], one-based */
    const int32_t *spec_parent;
    int32_t draft_pass;              /* 0 trunk; < 0 context; > 0 query */
    int64_t n_draft_out;
    const int32_t *draft_out_ids;
    int64_t n_ahead;
    /* recurrent-state checkpoints */
    int64_t n_checkpoints;
    const int32_t *checkpoint_tok, *checkpoint_slot;
    /* multimodal */
    const int32_t *rope_pos;         /* [3, n_tok] component-major */
    int32_t rope_mixed;
    int64_t n_mm_rows;
    const int32_t *mm_rows;
    const void *mm_embd;
    int32_t enc;
    int64_t enc_n_patch;
    const void *enc_pixels;
    const int32_t *enc_coord;
    int64_t enc_n_seg;
    const int32_t *enc_cu;
    int64_t enc_max_seg;
} RadBatch;

/* n: the ranged value; -1 = the batch's token count. Zero rows is RAD_E_SHAPE
 * and writes nothing. The operand count must be the schema's. */
int rad_issue(RadCtx *c, rad_op op, const RadOperand *opd, int n_opd, int64_t n);
#define RAD_ISSUE_N(c, op, n, ...) \
    rad_issue((c), (op), (const RadOperand[]){ __VA_ARGS__ }, \
              (int)(sizeof((const RadOperand[]){ __VA_ARGS__ }) / sizeof(RadOperand)), (n))
#define RAD_ISSUE(c, op, ...) RAD_ISSUE_N(c, op, -1, __VA_ARGS__)

void rad_step_fail(RadCtx *c, const char *what);
void *rad_state(RadCtx *c);          /* what declare gave rad_set_state */
const RadBatch *rad_batch(RadCtx *c);
int rad_rank(RadCtx *c);
int rad_world_size(RadCtx *c);
void *rad_stream(RadCtx *c);
void *rad_weight_ptr(RadCtx *c, rad_weight w);
void *rad_buf_ptr(RadCtx *c, rad_buf b);
int rad_lane(RadCtx *c, int lane);
int rad_lane_join(RadCtx *c, int from, int to);

typedef struct RadRouting {
    const int32_t *expert_ids;
    const float *expert_w;
    const int32_t *expert_count, *sorted_tok, *expert_offset;
    int32_t top_k, n_expert;
} RadRouting;
int rad_route_report(RadCtx *c, int32_t layer, const RadRouting *r);
int rad_route_counts(RadCtx *c, int32_t layer, int64_t *counts, int32_t n);

#ifdef __cplusplus
}
#endif
#endif
