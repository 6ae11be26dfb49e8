/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for one band. Libraries are walked in the order of the hierarchy;
 * the first one with a row that fits wins, whatever a later one has. Inside a
 * library the highest rank wins, then the earlier row. A row fits when its
 * constraints hold at the band's upper bound, its parse hook takes the
 * geometry, and its codec can read the weights' encodings.
 *
 * Why a row was not taken is kept: a miss that does not say so is useless. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "plan/plan_priv.h"

#include "banned.h"

enum { WHY = 200 };

static bool in_set(const char *set, const char *v)
{
    size_t len = strlen(v);
    for (const char *s = set; *s;) {
        size_t n = strcspn(s, " ");
        if (n == len && !memcmp(s, v, n))
            return true;
        s += n + (s[n] == ' ');
    }
    return false;
}

static bool holds(const RadConstraint *c, const RadParam *p, char *why)
{
    static const char *const ops[] = { "=", "<=", ">=", "a multiple of", "one of" };
    if (!p) {
        snprintf(why, WHY, "it wants '%s'", c->key);
        return false;
    }
    if (p->kind == RAD_PK_STR) {
        if ((c->op == RAD_C_EQ && c->sval && !strcmp(c->sval, p->sval))
            || (c->op == RAD_C_IN && in_set(c->sval, p->sval)))
            return true;
        snprintf(why, WHY, "%s=%s, want %s %s", c->key, p->sval, ops[c->op],
                 c->sval ? c->sval : "a number");
        return false;
    }
    if (p->kind == RAD_PK_REAL) {
        snprintf(why, WHY, "it constrains the real '%s'", c->key);
        return false;
    }
    int64_t v = p->kind == RAD_PK_RANGE ? p->ihi : p->ival;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)v);
    bool ok = c->op == RAD_C_EQ ? !c->sval && v == c->ival
        : c->op == RAD_C_LE ? v <= c->ival
        : c->op == RAD_C_GE ? v >= c->ival
        : c->op == RAD_C_DIV ? v % c->ival == 0 : in_set(c->sval, text);
    if (ok)
        return true;
    if (c->op == RAD_C_IN)
        snprintf(why, WHY, "%s=%s, want one of %s", c->key, text, c->sval);
    else
        snprintf(why, WHY, "%s=%s, want %s %lld", c->key, text, ops[c->op], (long long)c->ival);
    return false;
}

static bool constraints_hold(const struct radi_op *o, const RadParam *p, int n,
                             const RadKernelRow *row, char *why)
{
    for (int i = 0; i < row->n_constraints; i++) {
        const RadConstraint *c = &row->constraints[i];
        const RadParamSpec *s = radi_schema_param(o->schema, c->key);
        if (s && s->need == RAD_PARAM_DERIVED)
            continue;
        if (!holds(c, rad_param(p, n, c->key), why))
            return false;
    }
    for (int i = 0; i < row->n_derived; i++) {
        const RadParam *q = rad_param(p, n, row->derived[i].key);
        if (q && q->ival != row->derived[i].value) {
            snprintf(why, WHY, "it has %s=%lld, %lld is asked", row->derived[i].key,
                     (long long)row->derived[i].value, (long long)q->ival);
            return false;
        }
    }
    return true;
}

/* Geometry with the band as the range, then derived values, then defaults of
 * the axes. NULL: out of memory. */
static RadParam *full_params(struct rad_plan *p, const struct radi_op *o,
                             const struct radi_band *band, const RadKernelRow *row, int *n)
{
    RadParam *f = radi_arena_array(&p->mem, (size_t)(o->n_p + row->n_derived + row->n_axes) + 1,
                                   sizeof *f);
    if (!f)
        return NULL;
    memcpy(f, o->p, (size_t)o->n_p * sizeof *f);
    *n = o->n_p;
    if (o->range >= 0) {
        f[o->range].ival = band->lo;
        f[o->range].ihi = band->hi;
    }
    for (int i = 0; i < row->n_derived; i++)
        if (!rad_param(f, *n, row->derived[i].key))
            f[(*n)++] = RAD_INT(row->derived[i].key, row->derived[i].value);
    for (int i = 0; i < row->n_axes; i++)
        f[(*n)++] = RAD_INT(row->axes[i].key, row->axes[i].def);
    return f;
}

static bool desc_ok(const RadLayoutDesc *d)
{
    return d->bytes && d->align && d->align <= 4096 && !(d->align & (d->align - 1));
}

/* Whether the row reads the operand's encoding; *want 1: rearranged as *d. */
static bool reads(const struct rad_plan *p, const struct radi_op *o, const RadKernelRow *row,
                  const void *params, int operand, RadLayoutDesc *d, int *want, char *why)
{
    const struct radi_weight *w = &p->weight[o->w[operand]];
    char text[120];
    *want = 0;
    if (!row->codec || !row->codec->layout) {
        if (!strcmp(w->read->scheme, "plain") || !strcmp(w->read->scheme, "affine"))
            return true;
        snprintf(why, WHY, "it reads planes, '%s' is stored as '%s'", w->name, w->read->scheme);
        return false;
    }
    int rc = row->codec->layout(params, operand, w->read, (int64_t)w->rows, (int64_t)w->cols, d);
    if (rc == RAD_E_UNSUPPORTED)
        return true;
    if (rc >= 0 && row->codec->relayout && desc_ok(d)) {
        *want = 1;
        return true;
    }
    rad_encoding_text(w->read, text, sizeof text);
    snprintf(why, WHY, "it cannot read '%s' as %s [%llu,%llu]: %s", w->name, text,
             (unsigned long long)w->rows, (unsigned long long)w->cols,
             rc >= 0 ? "bad layout" : rad_strstatus((rad_status)rc));
    return false;
}

/* Index of the plan's copy of that layout, made if new; -1: out of memory. */
static int32_t layout_of(struct rad_plan *p, const struct radi_op *o, int lib,
                         const struct radi_band *band, int operand, const RadLayoutDesc *d)
{
    for (size_t i = 0; i < p->n_layouts; i++) {
        const struct radi_layout *l = &p->layout[i];
        if (l->weight == o->w[operand] && l->lib == lib && l->desc.tag == d->tag
            && l->desc.bytes == d->bytes && l->desc.dtype == d->dtype && l->desc.rank == d->rank
            && !memcmp(l->desc.shape, d->shape, sizeof d->shape))
            return (int32_t)i;
    }
    if (radi_grow((void **)&p->layout, &p->cap_layouts, p->n_layouts + 1, sizeof *p->layout, NULL))
        return -1;
    p->layout[p->n_layouts] = (struct radi_layout){ o->w[operand], lib, operand, *d, band->row,
                                                    band->params };
    return (int32_t)p->n_layouts++;
}

enum fit { FITS, FITS_NOT, NO_MEMORY };

static enum fit try_row(struct rad_plan *p, const struct radi_op *o, int lib,
                        const RadKernelRow *row, struct radi_band *band, char *why)
{
    if (row->domain != RAD_DOMAIN_HOST) {
        snprintf(why, WHY, "it is for the device domain");
        return FITS_NOT;
    }
    int n;
    RadParam *full = full_params(p, o, band, row, &n);
    if (!full)
        return NO_MEMORY;
    if (!constraints_hold(o, full, o->n_p, row, why))
        return FITS_NOT;
    if (row->n_axes && row->tune_valid && !row->tune_valid(full, n)) {
        snprintf(why, WHY, "the defaults of its axes do not fit");
        return FITS_NOT;
    }
    void *params = radi_arena_alloc(&p->mem, row->params_size ? row->params_size : 1);
    if (!params)
        return NO_MEMORY;
    int rc = row->parse(full, n, params);
    if (rc < 0) {
        snprintf(why, WHY, "it refuses this geometry: %s", rad_strstatus((rad_status)rc));
        return FITS_NOT;
    }
    RadLayoutDesc d[RAD_MAX_OPERANDS];
    int want[RAD_MAX_OPERANDS] = { 0 };
    memset(d, 0, sizeof d);
    for (int i = 0; i < o->schema->n_operands; i++)
        if (o->w[i] >= 0 && !reads(p, o, row, params, i, &d[i], &want[i], why))
            return FITS_NOT;
    band->row = row;
    band->lib = lib;
    band->params = params;
    band->full = full;
    band->n_full = n;
    band->scratch = row->scratch ? row->scratch(params, p->parts) : 0;
    for (int i = 0; i < o->schema->n_operands; i++) {
        band->layout[i] = -1;
        if (o->w[i] < 0)
            continue;
        if (!want[i]) {
            p->weight[o->w[i]].canonical = true;
            continue;
        }
        band->layout[i] = layout_of(p, o, lib, band, i, &d[i]);
        if (band->layout[i] < 0)
            return NO_MEMORY;
    }
    return FITS;
}

/* Rows of the op in a library, best first: rank, then declaration order. */
static const RadKernelRow *next_row(const struct radi_lib *l, const char *op,
                                    const RadKernelRow *after, int *after_at)
{
    const RadKernelRow *best = NULL;
    int at = -1;
    for (int i = 0; i < l->n_rows; i++) {
        const RadKernelRow *r = l->x.row_at(i);
        if (strcmp(r->op, op))
            continue;
        if (after && (r->rank > after->rank || (r->rank == after->rank && i <= *after_at)))
            continue;
        if (!best || r->rank > best->rank) {
            best = r;
            at = i;
        }
    }
    *after_at = at;
    return best;
}

bool radi_select(RadBuilder *b, int32_t op, struct radi_band *band)
{
    struct rad_plan *p = b->plan;
    const struct radi_op *o = &p->op[op];
    struct radi_str not = { 0 };
    int tried = 0;
    for (int k = 0; k < p->plugins->n_order && !band->row; k++) {
        int lib = p->plugins->order[k], at = -1;
        const struct radi_lib *l = &p->plugins->lib[lib];
        for (const RadKernelRow *r = next_row(l, o->name, NULL, &at); r;
             r = next_row(l, o->name, r, &at)) {
            char why[WHY] = "";
            enum fit f = try_row(p, o, lib, r, band, why);
            if (f == NO_MEMORY) {
                radi_str_release(&not);
                return false;
            }
            if (f == FITS)
                break;
            radi_str_addf(&not, "%s%s/%s: %s", tried++ ? "; " : "", l->info->name, r->name, why);
        }
    }
    if (!band->row && !tried)
        radi_str_adds(&not, "no library has a row of this op");
    bool ok = !not.failed;
    if (ok)
        band->why = radi_arena_strndup(&p->mem, not.s ? not.s : "", not.len);
    radi_str_release(&not);
    return ok && band->why;
}

void radi_op_text(const struct radi_op *o, struct radi_str *out)
{
    radi_str_addf(out, "%s(", o->name);
    for (int i = 0; i < o->n_p; i++) {
        const RadParam *q = &o->p[i];
        radi_str_addf(out, "%s%s=", i ? ", " : "", q->key);
        if (q->kind == RAD_PK_STR)
            radi_str_adds(out, q->sval);
        else if (q->kind == RAD_PK_RANGE)
            radi_str_addf(out, "%lld..%lld", (long long)q->ival, (long long)q->ihi);
        else if (q->kind == RAD_PK_REAL)
            radi_str_addf(out, "%.9g", q->dval);
        else
            radi_str_addf(out, "%lld", (long long)q->ival);
    }
    radi_str_adds(out, ")");
}
