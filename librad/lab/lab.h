/* SPDX-License-Identifier: Apache-2.0 */
/* Private to librad/lab: values, expressions, the parsed form of the three
 * kinds of data files, and places in them for messages. Everything parsed lives
 * in the lab's arena; a point and a graph have arenas of their own. */
#ifndef RADI_LAB_H
#define RADI_LAB_H

#include <rad/lab.h>

#include "base/base.h"

struct cJSON;

/* ---- values */
enum lab_vtype { LAB_NULL, LAB_BOOL, LAB_INT, LAB_REAL, LAB_STR, LAB_LIST };
struct lab_val {
    enum lab_vtype t;
    bool absent;                     /* NULL only: the config has no such key */
    union {
        bool b;
        int64_t i;
        double d;
        const char *s;
        struct {
            struct lab_val *v;
            size_t n;
        } l;
    };
};
const char *lab_vtype_name(enum lab_vtype t);
bool lab_val_eq(const struct lab_val *a, const struct lab_val *b);
void lab_val_text(struct radi_str *out, const struct lab_val *v);   /* as JSON */
bool lab_val_num(const struct lab_val *v, double *out);
/* From JSON: integers that are written as such become INT. */
rad_status lab_val_of_json(struct radi_arena *a, const struct cJSON *j, struct lab_val *out,
                           struct rad_err *err);

/* ---- expressions */
struct lab_ex;
struct lab_env {
    /* `key`: the name stood behind $. RAD_E_NOTFOUND for an unknown name. */
    rad_status (*get)(void *user, bool key, const char *name, struct lab_val *out,
                      struct rad_err *err);
    void *user;
    struct radi_arena *arena;        /* for lists and strings that come up */
};
rad_status lab_ex_parse(struct radi_arena *a, const char *text, struct lab_ex **out,
                        struct rad_err *err);
struct lab_ex *lab_ex_lit(struct radi_arena *a, const struct lab_val *v);
rad_status lab_ex_eval(const struct lab_ex *e, const struct lab_env *env, struct lab_val *out,
                       struct rad_err *err);
const char *lab_ex_text(const struct lab_ex *e);
/* Calls fn on every name; stops at the first that returns non-zero. */
rad_status lab_ex_names(const struct lab_ex *e,
                        rad_status (*fn)(void *user, bool key, const char *name,
                                         struct rad_err *err),
                        void *user, struct rad_err *err);
rad_status lab_ex_bool(const struct lab_ex *e, const struct lab_env *env, bool *out,
                       struct rad_err *err);
rad_status lab_ex_int(const struct lab_ex *e, const struct lab_env *env, int64_t *out,
                      struct rad_err *err);

/* ---- data files and places in them */
struct lab_doc {
    const char *path, *name;         /* name: the stem */
    struct cJSON *json;
    struct lab_doc *next;
};
struct lab_at {                      /* a chain from the value up to the root */
    const struct lab_at *up;
    const struct lab_doc *doc;
    const char *key;                 /* NULL: an index */
    int index;
};
static inline struct lab_at lab_at_key(const struct lab_at *up, const char *key)
{
    return (struct lab_at){ up, up->doc, key, 0 };
}
static inline struct lab_at lab_at_index(const struct lab_at *up, int i)
{
    return (struct lab_at){ up, up->doc, NULL, i };
}
/* "'file': /pointer: text" */
rad_status lab_at_fail(const struct lab_at *at, struct rad_err *err, const char *fmt, ...)
    RAD_PRINTF(3, 4);
rad_status lab_at_in(const struct lab_at *at, rad_status st, struct rad_err *err);
/* An object whose keys are all in `keys` (space-separated); NULL: any. */
rad_status lab_want_object(const struct lab_at *at, const struct cJSON *j, const char *keys,
                           struct rad_err *err);
rad_status lab_want_array(const struct lab_at *at, const struct cJSON *j, struct rad_err *err);
/* Members; *out NULL or `def` when absent and not required. */
rad_status lab_want_str(const struct lab_at *at, const struct cJSON *o, const char *key,
                        bool required, const char **out, struct rad_err *err);
rad_status lab_want_bool(const struct lab_at *at, const struct cJSON *o, const char *key,
                         bool def, bool *out, struct rad_err *err);
rad_status lab_want_num(const struct lab_at *at, const struct cJSON *o, const char *key,
                        double def, double *out, struct rad_err *err);
/* A string is an expression; a number or truth value stands for itself. */
rad_status lab_want_expr(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                         struct lab_ex **out, struct rad_err *err);
rad_status lab_want_expr_key(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *o,
                             const char *key, bool required, struct lab_ex **out,
                             struct rad_err *err);
/* Opening lines of every file: schema 1, a description. */
rad_status lab_want_head(const struct lab_at *at, const struct cJSON *j, struct rad_err *err);

/* ---- parameters of circuits and blocks */
struct lab_param {
    const char *name;
    enum lab_vtype type;
    struct lab_ex *def;              /* NULL: required */
    double min, max;
    bool above;                      /* min itself is outside */
    struct lab_val *oneof;
    size_t n_oneof;
    bool used;                       /* by an expression of its file */
    const struct lab_doc *doc;
};
struct lab_check {
    struct lab_ex *cond;
    const char **key;                /* maps: config keys; blocks: a parameter */
    int n_keys;
    const char *reason;
    bool bad;                        /* RAD_E_FORMAT rather than RAD_E_UNSUPPORTED */
    bool keys_only;                  /* reads nothing of the point */
    const struct lab_doc *doc;
    int index;
};

/* ---- blocks */
enum { LAB_MAX_DIMS = RAD_MAX_RANK, LAB_MAX_ARGS = RAD_MAX_OPERANDS };
struct lab_edge {
    const char *name, *dtype;        /* "$act" */
    int rows;                        /* enum rad_lab_rows */
    int rank;
    struct lab_ex *dim[LAB_MAX_DIMS];   /* dim[0]: what multiplies the rows */
    bool used;
};
struct lab_bweight {
    const char *name;                /* "attn_q.weight" */
    int rank;
    struct lab_ex *dim[LAB_MAX_DIMS];
    int access, shard;
    bool global, optional, used;
    const char *refuse;
    int fallback;                    /* weight that stands in when this is absent, or -1 */
    struct lab_ex *when;
};
struct lab_bstate {
    const char *name;
    struct lab_ex *kind, *window, *heads, *dim, *rows, *cols, *width;
    bool used;
};
struct lab_bconst {
    const char *name, *fn;
    struct lab_ex *when;
    const char **arg;
    struct lab_ex **val;
    int n_args;
    bool used;
};
struct lab_barg {
    uint8_t kind, access, batch;     /* as in the graph */
    bool maybe;                      /* absent when its weight is */
    bool stream;
    const struct lab_barg *other;    /* edge: stands in while nothing has written it */
    const char *name;                /* edge, weight, constant or state */
    struct lab_ex *col0, *cols;
};
struct lab_bparam {
    const char *key;
    struct lab_ex *val;
    struct lab_ex *when;             /* of params_when */
};
struct lab_bnode {
    const char *op, *range;
    struct lab_ex *when;
    uint8_t rows, half;
    int forms, form;                 /* set number in the block, or -1 */
    struct lab_bparam *param;
    int n_params;
    struct lab_barg *arg;
    int n_args;
    int index;                       /* for messages */
};
struct lab_block {
    const char *name;
    const struct lab_doc *doc;
    struct lab_param *param;
    int n_params;
    struct lab_check *check;
    int n_checks;
    const char **stream;
    int n_streams;
    struct lab_edge *edge;
    int n_edges;
    struct lab_bweight *weight;
    int n_weights;
    struct lab_bstate *state;
    int n_states;
    struct lab_bconst *constant;
    int n_consts;
    struct lab_bnode *node;
    int n_nodes, n_form_sets;
    struct lab_block *next;
};

/* ---- circuits */
struct lab_set {
    const char *name;
    struct lab_ex *val;
};
struct lab_ref {                     /* a block at a place of a circuit */
    const char *name;
    const struct lab_block *block;
    const char *as;                  /* names its buffers */
    struct lab_ex *when;
    struct lab_set *set;
    int n_sets;
};
struct lab_refs {
    struct lab_ref *ref;
    int n;
};
struct lab_kind {
    const char *name;
    struct lab_refs refs;
};
struct lab_circuit {
    const char *name;
    const struct lab_doc *doc;
    struct lab_param *param;
    int n_params;
    struct lab_check *check;
    int n_checks;
    struct lab_edge *stream;
    int n_streams;
    const char *logits;
    struct lab_refs prologue, epilogue, draft;
    struct lab_ex *count, *kind, *draft_count;
    struct lab_kind *layer;
    int n_kinds;
    /* what a point must or may give: the parameters of the circuit and of its
     * blocks that the circuit does not set itself */
    const struct lab_param **face;
    int n_face;
    struct lab_circuit *next;
};

/* ---- maps */
struct lab_key {
    const char *path;
    const struct lab_doc *owner;
    int verdict;                     /* enum lab_verdict */
    const char *reason;              /* ignored, refused; oneof: why */
    const char *type;
    bool object, null_ok, optional, has_def, used;
    enum lab_vtype base, of;         /* of: elements of a list */
    bool scalar_or_list;
    struct lab_val def;
    double min, max;
    bool above;
    struct lab_val *oneof;
    size_t n_oneof;
    const char **from, **to;         /* rename */
    int n_rename;
    struct lab_ex *len;
};
enum lab_verdict { LAB_TYPED, LAB_IGNORED, LAB_REFUSED };
struct lab_entry {                   /* of point and let */
    const char *name;
    const struct lab_doc *owner;
    struct lab_ex *val;
    bool let, used, per_layer;
    const struct lab_param *param;   /* point entries, once linked */
};
struct lab_source {                  /* one alternative of a tensor binding */
    struct lab_ex *when;
    int mode;                        /* RAD_MAP_*; -1: never in a checkpoint */
    const char *src[8];
    int n_src, dim;
    bool optional;                   /* a checkpoint may lack it: the fallback stands in */
    struct lab_ex *first, *count, *every;
    struct lab_ex *index;
};
struct lab_binding {
    const char *name;
    const struct lab_doc *owner;
    struct lab_source *source;
    int n_sources;
};
struct lab_cmap {
    const char *name;
    const struct lab_doc *doc;
    bool gguf;
    const char **match;
    int n_match;
    const char **quant;
    int n_quants;
    const char *nest;
    const struct lab_circuit *circuit;
    struct lab_key *key, *root;      /* root: top level of a nested config */
    int n_keys, n_root;
    size_t key_cap, root_cap;
    struct lab_check *check;
    int n_checks;
    size_t check_cap;
    struct lab_entry *entry;
    int n_entries;
    size_t entry_cap;
    struct lab_binding *binding;
    int n_bindings;
    size_t binding_cap;
    struct lab_cmap *next;
};

struct lab_pair {
    const char *arch, *quant;
};
struct rad_lab {
    struct radi_arena arena;
    struct lab_doc *docs, *fragments;
    struct lab_block *blocks;
    struct lab_circuit *circuits;
    struct lab_cmap *maps;
    struct lab_pair *pair;
    int n_pairs;
};

/* The same lab from texts in memory; names are borrowed. For tests. */
struct lab_text {
    const char *folder, *name, *text;    /* folder: "blocks", "circuits", "maps" */
    size_t n;
};
rad_status lab_open_texts(const struct lab_text *t, int n, struct rad_lab **out,
                          struct rad_err *err);

rad_status lab_block_parse(struct rad_lab *lab, struct lab_doc *doc, struct rad_err *err);
rad_status lab_circuit_parse(struct rad_lab *lab, struct lab_doc *doc, struct rad_err *err);
rad_status lab_map_parse(struct rad_lab *lab, struct lab_doc *doc, struct rad_err *err);
/* Checks a map's parameters, names and bindings against its circuit. */
rad_status lab_map_link(struct rad_lab *lab, struct lab_cmap *m, struct rad_err *err);

rad_status lab_params_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                            struct lab_param **out, int *n, struct rad_err *err);
/* "if", and "bad" or "refuse": the reason; `which`: name(s) of the culprit. */
rad_status lab_checks_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                            const char *which, struct lab_check **out, int *n,
                            struct rad_err *err);
rad_status lab_edge_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                          struct lab_edge *e, struct rad_err *err);
/* Names of an expression must be parameters (which it marks used) or `extra`
 * (space-separated). */
rad_status lab_params_use(const struct lab_at *at, struct lab_param *p, int n, const char *extra,
                          const struct lab_ex *e, struct rad_err *err);
const char *lab_base_suffix(const char *name);   /* ".weight", ".bias" or NULL */
const struct lab_binding *lab_binding_find(const struct lab_cmap *m, const char *name);

/* Value against a declared parameter; a message names the parameter. */
rad_status lab_param_check(const struct lab_param *p, struct lab_val *v, struct rad_err *err);

/* Refusals: "key 'path' (value): reason". */
rad_status lab_refuse(struct rad_err *err, rad_status st, const char *path, const struct cJSON *j,
                      const char *fmt, ...) RAD_PRINTF(5, 6);

/* ---- points */
struct lab_note {                    /* an ignored key */
    const char *path, *reason;
};
struct lab_pvalue {
    const struct lab_entry *entry;
    struct lab_val v;                /* a LIST of n_layers when per layer */
    int state;                       /* 0 not yet, 1 under way, 2 known */
};
struct rad_lab_point {
    struct radi_arena arena;
    const struct lab_cmap *map;
    const char *model_type, *arch, *quant, *prefix;
    struct cJSON *json;
    struct lab_val *key;             /* values of map->key */
    const struct cJSON **key_json;
    struct lab_pvalue *value;        /* of map->entry */
    int64_t n_layers;
    struct lab_note *note;
    int n_notes;
    size_t note_cap;
    bool flat;                       /* rebuilt: every value is a string */
};
/* The point's value of a parameter at a layer (-1: outside of layers); false
 * when the map does not give it. */
bool lab_point_get(const struct rad_lab_point *p, const char *name, int64_t layer,
                   struct lab_val *out);
/* A let or point entry for the bindings' conditions. */
rad_status lab_point_eval(struct rad_lab_point *p, const struct lab_ex *e, int64_t layer,
                          struct radi_arena *arena, struct lab_val *out, struct rad_err *err);

/* ---- constants computed by a named function: the table in rope.c */
struct lab_fn_arg {
    const char *name;
    struct lab_val v;
};
bool lab_fn_known(const char *fn);
bool lab_fn_arg_known(const char *fn, const char *arg);
rad_status lab_fn_call(const char *fn, const struct lab_fn_arg *arg, int n, struct radi_arena *a,
                       struct rad_lab_const *out, struct rad_err *err);

#endif
