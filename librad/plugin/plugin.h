/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the plugin registry: libraries as function tables, the kernel
 * hierarchy, the op vocabulary. loader.c turns a shared object into a table,
 * registry.c owns the set and its order, schema.c the vocabulary.
 *
 * Built by one thread, immutable afterwards. */
#ifndef RADI_PLUGIN_H
#define RADI_PLUGIN_H

#include <rad/plan.h>
#include <rad/rad_runtime.h>

#include "base/base.h"

/* What a plugin exports; absent optional ones are NULL. */
struct radi_exports {
    uint32_t (*abi_version)(void);
    const RadPluginInfo *(*info)(void);
    int (*open)(void);
    void (*close)(void);
    /* kernel */
    int (*schema_count)(void);
    const RadOpSchema *(*schema_at)(int i);
    int (*row_count)(void);
    const RadKernelRow *(*row_at)(int i);
    int (*concurrent)(int i);
    int (*reference)(void);
    /* architecture */
    const char *(*arch_id)(void);
    const char *(*arch_quant)(void);
    int (*pair_count)(const char *home);
    const RadArchPair *(*pair_at)(const char *home, int i);
    int (*probe)(const RadModelMeta *meta, RadArchProbe *out);
    int (*declare)(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx);
    void (*step)(RadCtx *c, const RadBatch *batch);
    /* quantiser */
    int (*quant_count)(void);
    const RadQuantizer *(*quant_at)(int i);
};

struct radi_lib {
    void *dl;                    /* NULL: a table given by a test */
    char *path;
    const char *file;            /* last part of path */
    struct radi_exports x;
    const RadPluginInfo *info;
    bool reference, opened;
    int order;                   /* in the kernel hierarchy, or -1 */
    int n_schemas, n_rows, n_quant, n_pairs;
    RadArchPair *pair;           /* strings are copies */
};

struct radi_vocab {              /* one op: the schema that counts */
    const RadOpSchema *schema;
    int lib;
};

struct rad_plugins {
    char *home, *kernels;
    struct radi_lib *lib;
    size_t n_libs, cap_libs;
    int *order;                  /* kernel libraries, first wins */
    int n_order;
    struct radi_vocab *op;
    size_t n_ops, cap_ops;
    struct radi_map *op_index;
};

/* loader.c */
rad_status radi_load_file(const char *path, struct radi_exports *x, void **dl, struct rad_err *err);
rad_status radi_load_home(struct rad_plugins *p, struct rad_err *err);

/* registry.c: an empty set; takes the library that `x` describes. Declined
 * libraries are closed again and not an error. radi_plugins_settle orders the
 * hierarchy and makes the vocabulary after the last one was added. */
rad_status radi_plugins_new(const char *home, const char *kernels, struct rad_plugins **out,
                            struct rad_err *err) RAD_MUSTCHECK;
rad_status radi_plugins_add(struct rad_plugins *p, const char *path, const struct radi_exports *x,
                            void *dl, struct rad_err *err) RAD_MUSTCHECK;
rad_status radi_plugins_settle(struct rad_plugins *p, struct rad_err *err) RAD_MUSTCHECK;
/* The library that claims the pair, or an error that names what is claimed. */
rad_status radi_plugins_arch(const struct rad_plugins *p, const char *id, const char *quant,
                             const struct radi_lib **out, struct rad_err *err) RAD_MUSTCHECK;

/* schema.c */
rad_status radi_schema_settle(struct rad_plugins *p, struct rad_err *err) RAD_MUSTCHECK;
const RadOpSchema *radi_schema_find(const struct rad_plugins *p, const char *op);
const RadParamSpec *radi_schema_param(const RadOpSchema *s, const char *key);
/* Declared parameters against the schema; the message is without the op. */
rad_status radi_schema_check(const RadOpSchema *s, const RadParam *p, int n, struct rad_err *err)
    RAD_MUSTCHECK;

/* The nearest of the names tried, within a budget that grows with the length
 * of the word: 1 up to 4 characters, 2 up to 10, else 3. */
struct radi_suggest {
    const char *word, *best;
    int dist;
};
void radi_suggest_try(struct radi_suggest *s, const char *name);
/* "; did you mean 'x'?" or "". */
const char *radi_suggest_text(const struct radi_suggest *s, char *buf, size_t n);

#endif
