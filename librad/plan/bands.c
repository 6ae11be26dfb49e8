/* SPDX-License-Identifier: Apache-2.0 */
/* Bands: the range of an op's ranged parameter, cut at every boundary that any
 * row of any library has on it, whichever geometry the op has. LE v cuts after
 * v, GE v before v, EQ v on both sides; DIV and IN cut nothing. An op without
 * a range has one band without a bound. */
#include "config.h"

#include <stdlib.h>

#include "plan/plan_priv.h"

#include "banned.h"

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* A cut at v begins a band at v. */
static void cut(int64_t v, int64_t lo, int64_t hi, int64_t *cuts, size_t *n)
{
    if (v <= lo || v > hi)
        return;
    if (cuts)
        cuts[*n] = v;
    (*n)++;
}

static void all_cuts(const struct rad_plan *p, const struct radi_op *op, const RadParam *r,
                     int64_t *cuts, size_t *n)
{
    *n = 0;
    for (int k = 0; k < p->plugins->n_order; k++) {
        const struct radi_lib *l = &p->plugins->lib[p->plugins->order[k]];
        for (int i = 0; i < l->n_rows; i++) {
            const RadKernelRow *row = l->x.row_at(i);
            if (strcmp(row->op, op->name))
                continue;
            for (int c = 0; c < row->n_constraints; c++) {
                const RadConstraint *q = &row->constraints[c];
                if (strcmp(q->key, r->key))
                    continue;
                if ((q->op == RAD_C_GE || q->op == RAD_C_EQ) && !q->sval)
                    cut(q->ival, r->ival, r->ihi, cuts, n);
                if ((q->op == RAD_C_LE || q->op == RAD_C_EQ) && !q->sval && q->ival < INT64_MAX)
                    cut(q->ival + 1, r->ival, r->ihi, cuts, n);
            }
        }
    }
}

bool radi_bands_cut(struct rad_plan *p, struct radi_op *op)
{
    int64_t lo = 0, hi = INT64_MAX, *cuts = NULL;
    size_t n = 0, u = 0;
    if (op->range >= 0) {
        const RadParam *r = &op->p[op->range];
        lo = r->ival;
        hi = r->ihi;
        all_cuts(p, op, r, NULL, &n);
        cuts = radi_arena_array(&p->mem, n + 1, sizeof *cuts);
        if (!cuts)
            return false;
        all_cuts(p, op, r, cuts, &n);
        qsort(cuts, n, sizeof *cuts, ascending);
        for (size_t i = 0; i < n; i++)
            if (!u || cuts[i] != cuts[u - 1])
                cuts[u++] = cuts[i];
    }
    op->band = radi_arena_array(&p->mem, u + 1, sizeof *op->band);
    if (!op->band)
        return false;
    for (size_t i = 0; i <= u; i++) {
        op->band[i].lo = i ? cuts[i - 1] : lo;
        op->band[i].hi = i < u ? cuts[i] - 1 : hi;
    }
    op->n_bands = (int)u + 1;
    return true;
}
