/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up shared by rad-convert, rad-kbench, rad-tune and radiance: find the
 * plugins, declare the model, resolve every op, plan the memory. A plan is
 * immutable once built. Thread-safe to read. */
#ifndef RAD_PLAN_H
#define RAD_PLAN_H

#include <rad/rad_builder.h>
#include <rad/rad_quant.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_plugins;
struct rad_plan;
struct rad_model;
struct rad_ckpt;

/* ---- plugins. home: colon-separated search path, NULL reads RADIANCE_HOME,
 * then the compiled-in default. kernels: comma- or colon-separated order,
 * NULL reads RADIANCE_KERNELS. */
rad_status rad_plugins_open(const char *home, const char *kernels,
                            struct rad_plugins **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_plugins_close(struct rad_plugins *p);
/* Loads one kernel plugin file for inspection (rad-schemas, rad-info). */
rad_status rad_plugins_add_file(struct rad_plugins *p, const char *path, struct rad_err *err)
    RAD_MUSTCHECK;
const char *rad_plugins_home(const struct rad_plugins *p);
struct rad_plugin_desc {
    const RadPluginInfo *info;
    const char *path;
    int is_reference, order;         /* order in the kernel hierarchy, or -1 */
    int n_schemas, n_rows;           /* kernel */
};
int rad_plugins_count(const struct rad_plugins *p);
void rad_plugins_at(const struct rad_plugins *p, int i, struct rad_plugin_desc *out);
const RadOpSchema *rad_plugins_schema(const struct rad_plugins *p, int plugin, int i);
const RadKernelRow *rad_plugins_row(const struct rad_plugins *p, int plugin, int i);
/* Quantisers of all quantiser plugins. */
int rad_plugins_quant_count(const struct rad_plugins *p);
const RadQuantizer *rad_plugins_quant_at(const struct rad_plugins *p, int i);
const RadQuantizer *rad_plugins_quant(const struct rad_plugins *p, const char *name); /* or NULL */

/* ---- the model to declare: where metadata and encodings come from */
struct rad_plan_source {
    const RadModelMeta *meta;
    /* The encoding the named container weight has or will get; NULL = the
     * weight is absent. Called after its name map entry is known. `map` is the
     * declared name-map entry or NULL. */
    const RadEncoding *(*encoding)(void *user, const char *name, const RadWeightDecl *d,
                                   const RadNameMap *const *map, int n_map);
    void *user;
};
/* Metadata of an open container; owned by the model. */
const RadModelMeta *rad_model_build_meta(struct rad_model *m);

enum { RAD_DEVICE_HOST = 0, RAD_DEVICE_TEST = 1 };

struct rad_deployment {              /* zero = default in every field */
    uint32_t size;
    int64_t max_tok;                 /* tokens a step (default 512) */
    int64_t max_seqs;                /* running sequences (default 16) */
    int64_t max_ctx;                 /* 0: the training context */
    int64_t max_out;                 /* logits rows a step (0: max_seqs); score wants max_tok */
    int64_t kv_tokens;               /* KV budget in tokens; 0: by kv_bytes or max_seqs */
    uint64_t kv_bytes;               /* KV budget in bytes; 0: derived */
    int kv_dtype, act_dtype;         /* 0: f32 on the host */
    int device;                      /* RAD_DEVICE_* */
    int parts;                       /* threads of the pool (scratch sizing) */
    RadBuildCtx ctx;                 /* further seed fields; checked against the probe */
};

/* Picks the architecture plugin by exact (id, quant), probes, declares,
 * resolves every band, plans buffers and KV. Every miss is reported together. */
rad_status rad_plan_build(struct rad_plugins *p, const struct rad_plan_source *src,
                          const struct rad_deployment *d, struct rad_plan **out,
                          struct rad_err *err) RAD_MUSTCHECK;
/* Convenience: source = an open container. */
rad_status rad_plan_build_model(struct rad_plugins *p, struct rad_model *m,
                                const struct rad_deployment *d, struct rad_plan **out,
                                struct rad_err *err) RAD_MUSTCHECK;
void rad_plan_free(struct rad_plan *plan);

/* Declared weights in declaration order (the converter's work list). */
struct rad_plan_weight {
    const char *name;
    const RadWeightDecl *decl;
    const RadEncoding *enc;          /* what the source answered */
    const RadNameMap *const *map;    /* entries of this weight, in order */
    int n_map;
};
int rad_plan_weight_count(const struct rad_plan *p);
void rad_plan_weight_at(const struct rad_plan *p, int i, struct rad_plan_weight *out);

/* Memory plan as JSON: weights, arena, KV per group, staging, totals; and the
 * graph with every op, band, chosen kernel and why. Caller frees with free(). */
rad_status rad_plan_memory_json(const struct rad_plan *p, char **out, struct rad_err *err)
    RAD_MUSTCHECK;
rad_status rad_plan_graph_text(const struct rad_plan *p, char **out, struct rad_err *err)
    RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
