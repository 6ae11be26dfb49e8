/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a plan and of the builder that makes it. builder.c owns the
 * declarations, declare.c the run of an architecture's declare, bands.c and
 * select.c the choice of kernels, bufplan.c the arena, placement.c every size
 * in bytes, graphdump.c the text. run/ reads the plan and changes nothing.
 *
 * A plan is built by one thread and immutable afterwards. */
#ifndef RADI_PLAN_H
#define RADI_PLAN_H

#include <rad/model.h>

#include "plugin/plugin.h"

#define RADI_KV_MAX 8            /* KV groups of a model */

struct radi_map_entry {
    RadNameMap m;                /* strings are the plan's */
    int32_t next;                /* of the same weight, or -1 */
};

struct radi_weight {
    const char *name, *stored;   /* stored: the container's name */
    RadWeightDecl d;
    const RadEncoding *enc;      /* as stored */
    const RadEncoding *read;     /* as the ops see it: enc, or the widened type */
    const RadNameMap **map;
    int n_map;
    const void *constant;        /* rad_decl_constant: its bytes */
    uint64_t rows, cols;
    bool canonical;              /* somebody reads the planes themselves */
};

/* A weight as a kernel wants it stored. */
struct radi_layout {
    rad_weight weight;
    int lib, operand;
    RadLayoutDesc desc;
    const RadKernelRow *row;
    const void *params;
};

struct radi_buf {
    const char *name;
    RadBufferDecl d;
    uint64_t numel, bytes, offset;
    int64_t stride[RAD_MAX_RANK];
    int32_t first, last;         /* op indices; first > last: not used yet */
};

struct radi_kv_decl {
    const char *name;
    RadKvGroupDecl d;
    int64_t block_size;
    int32_t fixed_by;            /* op, or -1 */
    int32_t *layer;              /* bound layers in order */
    size_t n_layers, cap_layers;
    int32_t *slot;               /* [max_layer + 1] -> position in layer, -1 */
    int32_t max_layer;
    /* sizes, by placement.c */
    int64_t n_blocks, n_slots, max_blocks;
    int64_t shape[4];            /* of one layer's pool */
    uint64_t layer_bytes, bytes, offset, page_bytes;
};

struct radi_band {
    int64_t lo, hi;
    const RadKernelRow *row;     /* NULL: a miss */
    int lib;
    const void *params;          /* the row's struct */
    const RadParam *full;        /* geometry, derived, tuned */
    int n_full;
    size_t scratch;
    int32_t layout[RAD_MAX_OPERANDS];    /* into plan->layout, -1: planes */
    const char *why;             /* of the choice, or of the miss */
};

struct radi_op {
    const char *name;
    const RadOpSchema *schema;   /* NULL: no such op, or not of its schema */
    RadParam *p;
    int n_p, range;              /* range: index of the ranged parameter, or -1 */
    rad_weight *w;               /* by operand; RAD_NULL_HANDLE */
    struct radi_band *band;
    int n_bands;
    bool resolved, asked;        /* asked: the architecture takes the miss itself */
    rad_buf *reads, *writes;
    int n_reads, n_writes;
    rad_kv kv;
};

/* Byte sizes of everything that is allocated: the plan prints and the runtime
 * allocates from the same numbers. */
struct radi_sizes {
    uint64_t weights_mapped, weights_copied, weights_layout, constants;
    uint64_t arena, scratch, kv, staging, logits, ring;
};

/* One step's arrays, in the order in which they lie in the staging buffer. */
enum radi_stage {
    RADI_ST_TOKENS, RADI_ST_POSITIONS, RADI_ST_CU, RADI_ST_SEQ, RADI_ST_QLEN, RADI_ST_CTXLEN,
    RADI_ST_OUT, RADI_ST_COMMON,
    RADI_ST_SLOT = 0, RADI_ST_TABLE, RADI_ST_USED, RADI_ST_STATE, RADI_ST_PER_KV
};

struct rad_plan {
    struct radi_arena mem;
    const struct rad_plugins *plugins;
    const struct radi_lib *arch;
    const RadModelMeta *meta;    /* borrowed from the source */
    const char *arch_id, *quant, *model_name;
    RadBuildCtx ctx;
    RadArchProbe probe;
    int device, parts;
    int64_t max_out;
    int64_t kv_tokens;
    uint64_t kv_bytes;

    struct radi_weight *weight;
    size_t n_weights, cap_weights;
    struct radi_layout *layout;
    size_t n_layouts, cap_layouts;
    struct radi_buf *buf;
    size_t n_bufs, cap_bufs;
    struct radi_op *op;
    size_t n_ops, cap_ops;
    struct radi_kv_decl kv[RADI_KV_MAX];
    int n_kv;
    const char **note;
    size_t n_notes, cap_notes;
    rad_buf logits;

    struct radi_sizes size;
    void *state;
    void (*state_fini)(void *);
};

/* One thing that is wrong; equal texts are counted, not repeated. */
struct radi_miss {
    const char *text;
    int32_t op;                  /* a missing kernel of this op, or -1 */
    int count;
    rad_status st;
};

struct RadBuilder {
    struct rad_plan *plan;
    const struct rad_plan_source *src;
    struct rad_model *model;     /* NULL: not from a container */
    struct radi_map_entry *map;
    size_t n_maps, cap_maps;
    struct radi_map *map_index, *weight_index, *buf_index;
    struct radi_miss *miss;
    size_t n_misses, cap_misses;
    bool failed;                 /* out of memory: nothing after it counts */
    rad_status fail;             /* rad_declare_fail */
    char *fail_text;
};

/* builder.c */
void radi_miss(RadBuilder *b, int32_t op, rad_status st, const char *fmt, ...) RAD_PRINTF(4, 5);

/* declare.c: from a source, with the model it is (for shapes) or NULL. */
rad_status radi_plan_declare(struct rad_plugins *p, const struct rad_plan_source *src,
                             struct rad_model *m, const struct rad_deployment *d,
                             struct rad_plan **out, struct rad_err *err) RAD_MUSTCHECK;

/* bands.c: cuts the op's range; the bands live in the plan's arena. */
bool radi_bands_cut(struct rad_plan *p, struct radi_op *op);

/* select.c: fills one band. False when out of memory. */
bool radi_select(RadBuilder *b, int32_t op, struct radi_band *band);
/* "gemm_nt(M=1..512, N=64, dtype=f32)" */
void radi_op_text(const struct radi_op *op, struct radi_str *out);

/* bufplan.c */
void radi_buf_use(struct rad_plan *p, rad_buf buf, int32_t op);
rad_status radi_bufplan(struct rad_plan *p, struct rad_err *err) RAD_MUSTCHECK;

/* placement.c: KV pools, staging, weights. */
rad_status radi_placement(struct rad_plan *p, struct rad_err *err) RAD_MUSTCHECK;
uint64_t radi_weight_bytes(const RadEncoding *e, uint64_t rows, uint64_t cols);
bool radi_kv_paged(const RadKvGroupDecl *d);
/* i32 elements of a step's array at the maxima; group -1: the common ones. */
uint64_t radi_stage_len(const struct rad_plan *p, int group, int which);
#define RADI_STAGE_ALIGN 64
#define RADI_ALIGN 256           /* of buffers and planes on a device */
/* Whether the device keeps a copy of the weight's planes (else: the mapping). */
bool radi_weight_copied(const struct rad_plan *p, const struct radi_weight *w);
/* Launch records a test device needs; see device/device.h. */
uint64_t radi_ring_records(const struct rad_plan *p);

#endif
