/* SPDX-License-Identifier: Apache-2.0 */
/* The activation arena. A buffer lives from the first to the last op that
 * names it, in declaration order; a buffer that no op names lives for the
 * whole program, which is wasteful and sound. Persistent buffers lie at the
 * bottom and never move; transients are coloured greedily, largest first (ties
 * by start, then by index), each at the lowest place where no buffer that
 * lives at the same time is. */
#include "config.h"

#include <stdlib.h>

#include "plan/plan_priv.h"

#include "banned.h"

void radi_buf_use(struct rad_plan *p, rad_buf buf, int32_t op)
{
    struct radi_buf *f = &p->buf[buf];
    f->first = RADI_MIN(f->first, op);
    f->last = RADI_MAX(f->last, op);
}

static int by_size(const void *x, const void *y)
{
    const struct radi_buf *a = *(struct radi_buf *const *)x, *b = *(struct radi_buf *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool overlap(const struct radi_buf *a, const struct radi_buf *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int by_offset(const void *x, const void *y)
{
    const struct radi_buf *a = *(struct radi_buf *const *)x, *b = *(struct radi_buf *const *)y;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

rad_status radi_bufplan(struct rad_plan *p, struct rad_err *err)
{
    struct radi_buf **order = radi_arena_array(&p->mem, p->n_bufs + 1, sizeof *order);
    struct radi_buf **live = radi_arena_array(&p->mem, p->n_bufs + 1, sizeof *live);
    uint64_t base = 0, top = 0;
    size_t n = 0;
    if (!order || !live)
        return rad_fail(err, RAD_E_NOMEM, "buffer plan: out of memory");
    for (size_t i = 0; i < p->n_bufs; i++) {
        struct radi_buf *f = &p->buf[i];
        if (f->first > f->last || f->d.kind == RAD_BUF_PERSIST) {
            f->first = 0;
            f->last = INT32_MAX;
        }
        if (p->logits == (rad_buf)i)             /* the core reads it at the end */
            f->last = INT32_MAX;
        if (f->d.kind != RAD_BUF_PERSIST) {
            order[n++] = f;
            continue;
        }
        f->offset = base;
        if (!radi_add_u64(base, f->bytes, &base) || !radi_align_u64(base, RADI_ALIGN, &base))
            return rad_fail(err, RAD_E_NOMEM, "buffer '%s': the arena is too large", f->name);
    }
    top = base;
    qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) {
        struct radi_buf *f = order[i];
        size_t n_live = 0;
        for (size_t k = 0; k < i; k++)
            if (overlap(f, order[k]))
                live[n_live++] = order[k];
        qsort(live, n_live, sizeof *live, by_offset);
        uint64_t at = base, end;
        for (size_t k = 0; k < n_live; k++) {
            if (live[k]->offset >= at && live[k]->offset - at >= f->bytes)
                break;
            uint64_t past;
            if (!radi_add_u64(live[k]->offset, live[k]->bytes, &past)
                || !radi_align_u64(past, RADI_ALIGN, &past))
                return rad_fail(err, RAD_E_NOMEM, "buffer '%s': the arena is too large", f->name);
            at = RADI_MAX(at, past);
        }
        f->offset = at;
        if (!radi_add_u64(at, f->bytes, &end) || !radi_align_u64(end, RADI_ALIGN, &end))
            return rad_fail(err, RAD_E_NOMEM, "buffer '%s': the arena is too large", f->name);
        top = RADI_MAX(top, end);
    }
    /* A vector kernel may read a little past its last row. */
    p->size.arena = top + RADI_ALIGN;
    return RAD_OK;
}
