/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the quantisers: the grid that options describe, and rounding to
 * it. A grid is the set of numbers a block of a weight may take: a code's
 * value (integer, small float or table entry), less a zero point, times one
 * or two scales.
 *
 * Everything here depends on the numbers of one scale block only (of one
 * second-level block where there are two levels), so the bytes do not depend
 * on how rows are cut into calls nor on threads. */
#ifndef QUANT_H
#define QUANT_H

#include <rad/rad_quant.h>

enum quant_rule { RULE_ABSMAX, RULE_MX, RULE_FIXED, RULE_SEARCH };
enum { QUANT_MAX_TABLE = 4096 };

struct grid {
    int code_dt;
    double lo, hi;               /* integer codes: range; floats: hi = largest */
    int n_table;                 /* 0: codes stand for themselves */
    float table[QUANT_MAX_TABLE];
    uint16_t order[QUANT_MAX_TABLE];     /* of the table, by value */
    int table_dt;
    float extreme;               /* table: the entry of largest magnitude */
    int signed_scale;            /* the table's ends differ: the scale has a sign */
    int64_t br, bc, b2r, b2c;    /* scale blocks; 0 = whole extent */
    int scale_dt, scale2_dt, zero_dt;    /* the latter two 0 = absent */
    double scale2_value;         /* 0 = derived */
    double scale_value;          /* rule fixed */
    int64_t span;                /* fwht width, 0 = none */
    int rule;
};

/* The options of every grid quantiser. */
enum { GRID_N_OPTIONS = 14 };
extern const RadQuantOption grid_options[GRID_N_OPTIONS];

/* RAD_E_ARG names the option and what it may be. Options in `extra` (NULL
 * terminated) are the caller's own and passed over. */
rad_status grid_parse(const RadQuantArg *arg, int n, const RadQuantWeight *w,
                      const char *const *extra, struct grid *g, struct rad_err *err);
rad_status grid_encoding(const struct grid *g, RadEncoding *out, struct rad_err *err);
int64_t grid_row_block(const struct grid *g);
/* Round to nearest: all planes of rows [r0, r0+n). x is overwritten. */
rad_status grid_round(const struct grid *g, const RadQuantWeight *w, const RadEncoding *enc,
                      int64_t r0, int64_t n, float *x, void *const plane[],
                      struct rad_err *err);

/* The option as given, or NULL. */
const char *quant_arg(const RadQuantArg *arg, int n, const char *key);
int quant_dtype(const char *name);       /* 0: no such type */

extern const RadQuantizer quant_rtn, quant_cast;

#endif
