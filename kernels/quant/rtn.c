/* SPDX-License-Identifier: Apache-2.0 */
/* rtn: round to nearest on a grid, without calibration. */
#include <stdlib.h>

#include "quant.h"

static rad_status encoding(const RadQuantArg *arg, int n, const RadQuantWeight *w,
                           RadEncoding *out, struct rad_err *err)
{
    if (w->rank < 2)
        return rad_fail(err, RAD_E_UNSUPPORTED, "rtn: '%s' has one dimension, want two or more",
                        w->name);
    struct grid *g = malloc(sizeof *g);
    if (!g)
        return rad_fail(err, RAD_E_NOMEM, "rtn: out of memory");
    rad_status st = grid_parse(arg, n, w, NULL, g, err);
    if (!st)
        st = grid_encoding(g, out, err);
    free(g);
    return st;
}

static int64_t row_block(const RadQuantArg *arg, int n, const RadQuantWeight *w)
{
    struct grid *g = malloc(sizeof *g);
    int64_t b = g && !grid_parse(arg, n, w, NULL, g, NULL) ? grid_row_block(g) : 0;
    free(g);
    return b;
}

static rad_status quantize(const RadQuantArg *arg, int n_arg, const RadQuantWeight *w,
                           const RadEncoding *enc, int64_t r0, int64_t n, float *x,
                           void *const plane[], struct rad_err *err)
{
    struct grid *g = malloc(sizeof *g);
    if (!g)
        return rad_fail(err, RAD_E_NOMEM, "rtn: out of memory");
    rad_status st = grid_parse(arg, n_arg, w, NULL, g, err);
    if (!st)
        st = grid_round(g, w, enc, r0, n, x, plane, err);
    free(g);
    return st;
}

const RadQuantizer quant_rtn = {
    .struct_size = sizeof(RadQuantizer), .name = "rtn", .doc = "round to nearest on a grid",
    .options = grid_options, .n_options = GRID_N_OPTIONS, .encoding = encoding,
    .row_block = row_block, .quantize = quantize,
};
