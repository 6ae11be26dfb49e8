/* SPDX-License-Identifier: Apache-2.0 */
/* The quantiser ABI: turns f32 rows of a weight into an encoding's planes. */
#ifndef RAD_QUANT_H
#define RAD_QUANT_H

#include <rad/rad_encoding.h>
#include <rad/rad_plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RadQuantWeight {
    uint32_t struct_size;
    const char *name;
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];
    int64_t rows, cols;              /* as a matrix: cols is the last dimension */
    int32_t layer, expert;           /* -1 = none */
    const float *importance;         /* [cols], or NULL */
} RadQuantWeight;

enum { RAD_QOPT_INT = 1, RAD_QOPT_REAL = 2, RAD_QOPT_STR = 3 };
typedef struct RadQuantOption {
    const char *key;
    int32_t type;
    const char *def;                 /* NULL: no default */
    const char *doc;
} RadQuantOption;

typedef struct RadQuantArg {         /* an option as the recipe gave it */
    const char *key, *value;
} RadQuantArg;

typedef struct RadQuantizer {
    uint32_t struct_size;
    const char *name, *doc;          /* name unique across plugins */
    const RadQuantOption *options;
    int32_t n_options;
    /* The encoding this weight would get: depends on name, shape and options
     * only. RAD_E_UNSUPPORTED declines the weight (rank 1, say). */
    rad_status (*encoding)(const RadQuantArg *arg, int n_arg, const RadQuantWeight *w,
                           RadEncoding *out, struct rad_err *err);
    /* Rows one quantize call takes at a multiple of; 0 = all at once. */
    int64_t (*row_block)(const RadQuantArg *arg, int n_arg, const RadQuantWeight *w);
    /* rows [r0, r0+n) as f32 (may be modified); plane[i] points at the first
     * byte of the block's share of plane i, zeroed. Thread-safe; the bytes do
     * not depend on how rows are cut into calls. */
    rad_status (*quantize)(const RadQuantArg *arg, int n_arg, const RadQuantWeight *w,
                           const RadEncoding *enc, int64_t r0, int64_t n, float *x,
                           void *const plane[], struct rad_err *err);
    /* Only for a private scheme. */
    rad_status (*decode)(const RadEncoding *enc, const void *const plane[], int64_t rows,
                         int64_t cols, int64_t r0, int64_t n, float *out, struct rad_err *err);
} RadQuantizer;

int rad_quant_count(void);
const RadQuantizer *rad_quant_at(int i);

#ifdef __cplusplus
}
#endif
#endif
