/* SPDX-License-Identifier: Apache-2.0 */
/* The latent architecture blueprint: models as parameter points of block
 * families. Three layers, all data:
 *
 *   map      a checkpoint's config -> a parameter point, or a refusal
 *   circuit  a point -> a sequence of blocks
 *   block    nodes (ops), edges, states and weights in terms of parameters
 *
 * The graph that comes out names no device and no deployment: an architecture
 * plugin declares it on the builder and issues it (arch/common).
 *
 * A lab is immutable once open; points and graphs are independent of each
 * other and may be made by several threads at once. */
#ifndef RAD_LAB_H
#define RAD_LAB_H

#include <rad/rad_builder.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_lab;
struct rad_lab_point;

/* Reads every map, circuit and block of the search path's maps/, circuits/ and
 * blocks/ folders (colon-separated; the first file of a name counts; NULL reads
 * RADIANCE_HOME, then the compiled-in default) and checks them against each
 * other. Errors name the file and the JSON pointer. */
rad_status rad_lab_open(const char *home, struct rad_lab **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_lab_free(struct rad_lab *lab);              /* NULL is fine */

/* The (arch id, quant descriptor) pairs that the maps claim, each once. */
int rad_lab_pair_count(const struct rad_lab *lab);
void rad_lab_pair_at(const struct rad_lab *lab, int i, const char **arch, const char **quant);

/* ---- parameter points
 * `config`: config.json, or a GGUF's metadata as one flat object (told apart by
 * the key general.architecture). Every key is consumed, ignored with a reason,
 * or refused. RAD_E_UNSUPPORTED: known to be outside of what the blocks can say;
 * RAD_E_FORMAT: a value that no model can have. Both name key, value, reason. */
rad_status rad_lab_point_new(const struct rad_lab *lab, const char *config, size_t n,
                             struct rad_lab_point **out, struct rad_err *err) RAD_MUSTCHECK;
/* From a container's free-form table: the config that radiance.config holds, or
 * in a file without it one rebuilt from the flattened keys. */
rad_status rad_lab_point_from_meta(const struct rad_lab *lab, const RadModelMeta *meta,
                                   struct rad_lab_point **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_lab_point_free(struct rad_lab_point *p);    /* NULL is fine */

struct rad_lab_point_info {
    uint32_t size;
    const char *model_type;      /* as the checkpoint spells it */
    const char *arch, *quant;    /* what an architecture plugin claims */
    const char *map, *circuit;   /* names of the data files */
};
void rad_lab_point_info(const struct rad_lab_point *p, struct rad_lab_point_info *out);
/* The typed fields of the container's metadata (n_layers, head_dim, ...); of a
 * per-layer value the first layer's. Strings live as long as the point; the
 * free-form table is left empty. */
void rad_lab_point_meta(const struct rad_lab_point *p, RadModelMeta *out);
/* Parameters (scalars, and one array per per-layer vector), ignored keys with
 * their reasons. Caller frees with free(). */
rad_status rad_lab_point_json(const struct rad_lab_point *p, char **out,
                              struct rad_err *err) RAD_MUSTCHECK;

/* ---- graphs */
/* Strings that only a deployment can fill: "$act" and "$kv" (type names),
 * "$kv_block", "$max_ctx", "$max_seqs" (numbers). Parameters hold them as
 * strings; the lowering puts the value in. */

enum rad_lab_rows {              /* how many rows a node has at a step */
    RAD_LAB_ROWS_TOK = 0,        /* every token of the step */
    RAD_LAB_ROWS_OUT = 1,        /* rows that want logits; 0: the node is skipped */
    RAD_LAB_ROWS_FIXED = 2       /* buffers only */
};
enum rad_lab_half {              /* recurrent nodes issue their halves apart */
    RAD_LAB_WHOLE = 0, RAD_LAB_DECODE = 1, RAD_LAB_PREFILL = 2
};
enum rad_lab_section {
    RAD_LAB_PROLOGUE = 0, RAD_LAB_LAYER = 1, RAD_LAB_EPILOGUE = 2, RAD_LAB_DRAFT = 3
};
enum rad_lab_access { RAD_LAB_READ = 1, RAD_LAB_WRITE = 2 };   /* bits */
enum rad_lab_arg_kind {
    RAD_LAB_ARG_NONE = 0,        /* an absent optional operand */
    RAD_LAB_ARG_BUFFER = 1,
    RAD_LAB_ARG_WEIGHT = 2,
    RAD_LAB_ARG_CONST = 3,
    RAD_LAB_ARG_CACHE = 4,       /* the state's pool, at the node's layer */
    RAD_LAB_ARG_BATCH = 5,       /* enum rad_lab_batch; index: the state, or -1 */
};
enum rad_lab_batch {
    RAD_LAB_TOKEN_IDS, RAD_LAB_POSITIONS, RAD_LAB_CU_SEQLENS, RAD_LAB_SEQ_IDS, RAD_LAB_OUT_IDS,
    RAD_LAB_Q_LENS, RAD_LAB_CTX_LENS, RAD_LAB_NUM_ACCEPTED,
    RAD_LAB_SLOT_MAPPING, RAD_LAB_BLOCK_TABLE, RAD_LAB_SEQUSED, RAD_LAB_STATE_INDEX,
    RAD_LAB_N_BATCH
};

struct rad_lab_weight {
    const char *name;            /* in the container */
    RadWeightDecl decl;
    RadNameMap map;              /* where a checkpoint has it */
    const char *refuse;          /* optional weight whose presence is refused: why */
    int32_t fallback;            /* stands in when there is none: of the same shape; or -1 */
};
struct rad_lab_const {           /* computed from the point */
    const char *name;
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];
    const float *data;
};
struct rad_lab_buffer {
    const char *name;
    const char *dtype;           /* "$act", or a type's name */
    int32_t rows;                /* enum rad_lab_rows; shape[0] multiplies them */
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];
};
struct rad_lab_state {
    const char *name;
    RadKvGroupDecl decl;         /* dtype 0: the deployment's */
    int32_t n_layers;
    const int32_t *layer;        /* ascending */
};
struct rad_lab_arg {
    uint8_t kind, access;        /* enum rad_lab_arg_kind; rad_lab_access bits */
    uint8_t batch;               /* enum rad_lab_batch */
    int32_t index;               /* into weight, constant (-1: absent), buffer or state */
    int64_t col0, cols;          /* BUFFER: a column slice; cols 0: whole rows */
};
struct rad_lab_node {
    const char *op;              /* "linear": the matrix product that the weights ask for */
    const char *block;           /* the block's name, for messages */
    int32_t section, layer;      /* layer -1 outside of layers */
    uint8_t rows, half;
    int32_t forms, form;         /* alternative `form` of set `forms`; forms -1: none */
    int32_t n_params, n_args;
    const RadParam *param;       /* without the row count and its like */
    const char *range;           /* the parameter that carries the row count */
    const struct rad_lab_arg *arg;   /* in the op's operand order */
};
struct rad_lab_graph {           /* nodes stand in the order they are issued */
    uint32_t size;
    int32_t n_layers, n_weights, n_consts, n_buffers, n_states, n_nodes, n_form_sets;
    int32_t logits;              /* buffer, or -1 */
    const struct rad_lab_weight *weight;
    const struct rad_lab_const *constant;
    const struct rad_lab_buffer *buffer;
    const struct rad_lab_state *state;
    const struct rad_lab_node *node;
};
rad_status rad_lab_graph_new(const struct rad_lab *lab, const struct rad_lab_point *p,
                             struct rad_lab_graph **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_lab_graph_free(struct rad_lab_graph *g);    /* NULL is fine */
/* Point and graph as stable text (the golden plans). Caller frees with free(). */
rad_status rad_lab_graph_text(const struct rad_lab_point *p, const struct rad_lab_graph *g,
                              char **out, struct rad_err *err) RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
