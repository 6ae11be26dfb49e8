/* SPDX-License-Identifier: Apache-2.0 */
/* From a checkpoint to a container: the architecture declares the model, every
 * declared weight is written, and nothing else. */
#ifndef RAD_CONVERT_H
#define RAD_CONVERT_H

#include <rad/plan.h>
#include <rad/recipe.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_convert;

struct rad_convert_opts {            /* zero = default in every field */
    uint32_t size;
    const char *home, *kernels;      /* as rad_plugins_open */
    const char *arch;                /* instead of the checkpoint's id */
    const char *tokenizer;           /* instead of the one beside the checkpoint */
    const struct rad_recipe *recipe; /* NULL: every weight as it is */
    const char *const *set;          /* "KEY=VALUE" metadata, n_set of them */
    int n_set;
    int64_t max_tok, max_ctx;        /* what the model is declared at */
    int threads;
    const char *created_by;          /* header text; NULL: none */
};

/* Opens the checkpoint, declares the model, plans every weight. Every miss is
 * named: key, tensor, shape, encoding no kernel reads. Writes nothing. */
rad_status rad_convert_open(const char *input, const struct rad_convert_opts *o,
                            struct rad_convert **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_convert_close(struct rad_convert *c);

struct rad_convert_weight {
    const char *name, *source;       /* source: first checkpoint tensor */
    const RadEncoding *enc;
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];
    uint64_t bytes;                  /* of all planes */
    const char *quantizer, *options; /* "": the checkpoint's own */
    int64_t rule;                    /* index in the recipe, or -1 */
    double error;                    /* relative Frobenius, after write; -1 none */
};
size_t rad_convert_count(const struct rad_convert *c);
void rad_convert_at(const struct rad_convert *c, size_t i, struct rad_convert_weight *out);
uint64_t rad_convert_file_bytes(const struct rad_convert *c);
const char *rad_convert_name(const struct rad_convert *c);   /* model name */

/* done of total bytes of the file; called now and then from the writing thread. */
typedef void rad_progress_fn(void *user, uint64_t done, uint64_t total);

/* Writes the file front to back ("-": stdout); beside the target and renamed
 * otherwise. Once. */
rad_status rad_convert_write(struct rad_convert *c, const char *output, rad_progress_fn *progress,
                             void *user, struct rad_err *err) RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
