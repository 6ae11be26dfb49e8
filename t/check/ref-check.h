/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ref-check share: operands with guards around them, random
 * weights of every encoding, and a launch that is split in every way. */
#ifndef REF_CHECK_H
#define REF_CHECK_H

#include "../../kernels/ref/ref.h"
#include "tap.h"

/* An activation [rows, cols] inside a pitched buffer; what lies between the
 * rows is checked when it is dropped. */
struct buf {
    RadTensor t;
    int64_t pitch;
    void *mem;
};
struct buf act(int dtype, int64_t rows, int64_t cols, int64_t pitch);
struct buf ints(const int32_t *v, int64_t n);
RadTensor flat(void *data, int dtype, int64_t rows, int64_t cols);
void drop(struct buf *b);
float get(const struct buf *b, int64_t r, int64_t c);
void set(struct buf *b, int64_t r, int64_t c, float v);

float uniform(void);                       /* (-1, 1) */
float narrowed(int dtype, float f);
int same(float a, float b);                /* the same bits, or both NaN */
int near(float a, float b, int ulps, int dtype);

struct weight {
    const char *name;
    RadEncoding enc;
    RadTensor t;
};
/* The i-th encoding of the list, filled at random; 0 past the end. */
int weight_at(int i, int64_t rows, int64_t cols, struct weight *w);
void weight_free(struct weight *w);

#define P_N(k, v) { .key = k, .kind = RAD_PK_INT, .ival = (v) }
#define P_R(k, v) { .key = k, .kind = RAD_PK_REAL, .dval = (v) }
#define P_S(k, v) { .key = k, .kind = RAD_PK_STR, .sval = (v) }

/* One launch of all parts, in order; the first failure. */
int run_as(const char *op, const RadParam *p, int n, RadTensor *opd, int n_opd, int parts);
/* Runs as 1 part, then as 2, 3 and 8: CHECKs success and that the output
 * operand `out` has the same bytes each time and no byte two writers. */
void run(const char *op, const RadParam *p, int n, RadTensor *opd, int n_opd, int out);

void ref_check_elem(void);
void ref_check_number(void);
void ref_check_attn(void);

#endif
