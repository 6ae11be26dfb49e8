/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's tensor types: sizes, and the lossless re-packing of their blocks into
 * canonical planes (reference: container, §7). */
#ifndef RADI_GGML_BLOCKS_H
#define RADI_GGML_BLOCKS_H

#include <rad/rad_encoding.h>

#include "base/base.h"

enum radi_ggml_grid_id {
    RADI_GRID_NONE, RADI_GRID_IQ2_XXS, RADI_GRID_IQ2_XS, RADI_GRID_IQ2_S,
    RADI_GRID_IQ3_XXS, RADI_GRID_IQ3_S, RADI_GRID_IQ1
};
struct radi_ggml_grid {
    uint16_t n;                 /* entries */
    uint8_t v, bits;            /* values an entry, bits a value */
    const int8_t *level;        /* what a field of `bits` bits means */
    const uint16_t *packed;
};
extern const struct radi_ggml_grid radi_ggml_grids[];

struct radi_ggml_plane;
/* Splits one block into elements of the type's tiled planes, as bit patterns.
 * NULL, or what is wrong with the block. */
typedef const char *radi_ggml_unpack_fn(const uint8_t *b, uint16_t v[][256]);

struct radi_ggml_type {
    int32_t id;
    const char *name;
    uint32_t block, bytes;      /* elements and bytes of one block */
    int dtype;                  /* stored plainly; 0 for block types */
    enum radi_ggml_grid_id grid;
    const struct radi_ggml_plane *plane;    /* ends at role NULL */
    radi_ggml_unpack_fn *unpack;            /* NULL: not kept as planes */
};

/* NULL when the format has no such type. */
const struct radi_ggml_type *radi_ggml_type(uint32_t id);
/* RAD_E_UNSUPPORTED for a type that is not kept as planes. */
rad_status radi_ggml_encoding(const struct radi_ggml_type *t, RadEncoding *e,
                              struct rad_err *err) RAD_MUSTCHECK;
/* n rows of `cols` elements (whole blocks) at src, into planes of these rows. */
rad_status radi_ggml_planes(const struct radi_ggml_type *t, const uint8_t *src, uint64_t n,
                            uint64_t cols, void *const dst[], struct rad_err *err) RAD_MUSTCHECK;

#endif
