/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a conversion: one item a declared weight, its sources, and how
 * its bytes are made. */
#ifndef RADI_CONVERT_H
#define RADI_CONVERT_H

#include <rad/ckpt.h>
#include <rad/convert.h>
#include <rad/model_write.h>

#include "base/base.h"

struct cJSON;

/* Rows of one checkpoint tensor that make up rows of a weight. */
struct radi_cv_part {
    size_t tensor;
    uint64_t row0, rows;             /* in the tensor's matrix; by_column: its columns */
};

struct radi_cv_item {
    const char *name;                /* the plan's */
    const RadWeightDecl *decl;
    struct radi_cv_part *part;
    size_t n_part;
    bool by_column;                  /* parts are columns: of a vector, or turned into rows */
    uint64_t rows, cols;
    RadEncoding enc;
    const RadQuantizer *quant;       /* NULL: the checkpoint's own values */
    const struct rad_recipe_rule *rule;
    int64_t rule_index;
    RadQuantWeight qw;
    uint64_t bytes;
    double error;
};

struct rad_convert {
    struct radi_arena arena;
    struct rad_ckpt *ckpt;
    struct rad_plugins *plugins;
    struct rad_plan *plan;
    struct radi_pool *pool;
    struct rad_model_writer *writer;
    const struct rad_recipe *recipe;
    struct cJSON *config;            /* the checkpoint's, with --set applied */
    RadModelMeta meta;
    char *config_text;
    const char **kv_key, **kv_val;   /* flattened; arena strings */
    size_t n_kv, cap_key, cap_val;
    struct radi_cv_item **item;      /* arena; part arrays are heap */
    size_t n_item, cap_item;
    struct radi_map *by_name;        /* weight name -> item + 1 */
    struct rad_err fail;             /* first failure inside the encoding hook */
    RadEncoding stand_in;
    char *name;
    bool written;
};

/* convert_meta.c: config -> parameter point -> RadModelMeta and its table. */
rad_status radi_cv_meta(struct rad_convert *c, const struct rad_convert_opts *o,
                        struct rad_err *err) RAD_MUSTCHECK;
rad_status radi_cv_write_meta(struct rad_convert *c, const struct rad_convert_opts *o,
                              struct rad_err *err) RAD_MUSTCHECK;
/* convert_plan.c: the encoding hook's work for one declared weight. */
rad_status radi_cv_resolve(struct rad_convert *c, const char *name, const RadWeightDecl *d,
                           const RadNameMap *const *map, int n_map,
                           const RadEncoding **enc, struct rad_err *err) RAD_MUSTCHECK;
/* convert_data.c: all planes of an item into the writer at `pos`. */
rad_status radi_cv_write_item(struct rad_convert *c, struct radi_cv_item *it, size_t pos,
                              struct rad_err *err) RAD_MUSTCHECK;

#endif
