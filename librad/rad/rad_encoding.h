/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings: how a weight's numbers are stored, as data. The structs are the
 * container's encoding row, byte for byte (reference: container, §2.5, §4-6). */
#ifndef RAD_ENCODING_H
#define RAD_ENCODING_H

#include <rad/rad_types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RAD_PLANE_TILED = 0, RAD_PLANE_TABLE = 1 };

typedef struct RadPlaneDesc {       /* 64 bytes */
    char role[24];                  /* zero padded: "codes", "scale", "min.1" */
    uint32_t dtype;
    uint32_t kind;
    int64_t block[2];               /* TILED: rows, cols of one element; 0 = whole */
    int64_t extent[2];              /* TABLE: rows, cols; 0 for TILED */
} RadPlaneDesc;

typedef struct RadEncoding {        /* 568 bytes */
    char scheme[24];                /* "plain", "affine", or a quantiser's own */
    char transform[24];             /* "", "fwhtN", "perm", "givens" */
    int32_t n_planes;
    int32_t reserved;
    RadPlaneDesc plane[RAD_MAX_PLANES];
} RadEncoding;

_Static_assert(sizeof(RadPlaneDesc) == 64, "plane descriptor");
_Static_assert(sizeof(RadEncoding) == 568, "encoding row");

/* Builders. Every unused byte is zero, so two equal encodings are equal bytes. */
void rad_encoding_plain(RadEncoding *e, int dtype);
void rad_encoding_affine(RadEncoding *e);
/* Appends a plane; RAD_E_FULL past RAD_MAX_PLANES, RAD_E_ARG for a long role. */
rad_status rad_encoding_add(RadEncoding *e, const char *role, int dtype, int kind,
                            int64_t r, int64_t c);

/* Every rule of container §4 and §5.1; the message names role and reason. */
rad_status rad_encoding_validate(const RadEncoding *e, struct rad_err *err);
int rad_encoding_equal(const RadEncoding *a, const RadEncoding *b);
int rad_encoding_is_plain(const RadEncoding *e, int dtype);   /* dtype 0: any */
int rad_encoding_find(const RadEncoding *e, const char *role); /* plane or -1 */

/* Canonical spelling (container §5.3), e.g. "i4*bf16[1x128]/fwht128".
 * Writes at most n bytes with the NUL; returns the length it needs. */
size_t rad_encoding_text(const RadEncoding *e, char *buf, size_t n);

/* Geometry of plane p for a weight [rows, cols]: elements a row, rows, bytes a
 * row. RAD_E_FORMAT on overflow or a transform that does not fit. */
typedef struct RadPlaneGeom {
    uint64_t rows, cols, row_bytes, bytes;
} RadPlaneGeom;
rad_status rad_plane_geom(const RadEncoding *e, int p, uint64_t rows, uint64_t cols,
                          RadPlaneGeom *out, struct rad_err *err);

/* The one decoder: rows [r0, r0+n) of a plain or affine weight as f32.
 * plane[i] points at the whole plane i; out is n rows of `pitch` floats.
 * All arithmetic is float32 in the order of container §5.2. RAD_E_FORMAT when
 * a code indexes outside its table or grid, RAD_E_UNSUPPORTED for a private
 * scheme. Allocates only for transforms (one row). Thread-safe. */
rad_status rad_decode_rows(const RadEncoding *e, const void *const plane[],
                           uint64_t rows, uint64_t cols, uint64_t r0, uint64_t n,
                           float *out, size_t pitch, struct rad_err *err);
/* As above for columns [c0, c0+nc) of one row; no transform may be present. */
rad_status rad_decode_span(const RadEncoding *e, const void *const plane[],
                           uint64_t rows, uint64_t cols, uint64_t r, uint64_t c0,
                           uint64_t nc, float *out, struct rad_err *err);

/* Slicing (container §8): the rectangle rows [r0, r0+nr), cols [c0, c0+nc) as a
 * weight of its own with the same encoding. Refused (RAD_E_SHAPE, naming the
 * role) when a cut would split a block of any plane or a transform's span. */
typedef struct RadSlice {
    uint64_t r0, nr, c0, nc;
} RadSlice;
rad_status rad_encoding_slice(const RadEncoding *e, uint64_t rows, uint64_t cols,
                              const RadSlice *s, struct rad_err *err);
/* Copies plane p of the slice to `out`, which holds exactly the bytes that
 * rad_plane_geom(e, p, s->nr, s->nc) says. `plane` is the whole plane. */
rad_status rad_plane_slice(const RadEncoding *e, int p, const void *plane, uint64_t rows,
                           uint64_t cols, const RadSlice *s, void *out, size_t out_bytes,
                           struct rad_err *err);

#ifdef __cplusplus
}
#endif
#endif
