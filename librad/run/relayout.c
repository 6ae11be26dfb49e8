/* SPDX-License-Identifier: Apache-2.0 */
/* Binding weights: what the ops will read. A canonical weight is the
 * container's planes themselves (host), a copy (device), or its values in a
 * wider type; a weight that a kernel rearranged is made from the planes by the
 * row's codec, on the pool. */
#include "config.h"

#include <stdatomic.h>

#include "run/rt.h"

#include "banned.h"

enum { WINDOW = 4 << 20 };       /* pinned bytes a weight goes through */

struct bind {
    struct radi_rt *rt;
    uint64_t at;                 /* in rt->weights */
    uint8_t *window;             /* pinned; NULL on the host */
};

/* Host bytes to the device's, waiting: loading is not a step. */
static rad_status put(struct bind *b, uint8_t *dst, const void *src, uint64_t n,
                      struct rad_err *err)
{
    struct radi_rt *rt = b->rt;
    const struct radi_device_ops *ops = rt->dev->ops;
    if (ops->host_visible) {
        memcpy(dst, src, (size_t)n);
        return RAD_OK;
    }
    for (uint64_t done = 0; done < n;) {
        size_t len = (size_t)RADI_MIN(n - done, (uint64_t)WINDOW);
        memcpy(b->window, (const uint8_t *)src + done, len);
        rad_status st = ops->upload(rt->dev, rt->stream, dst + done, b->window, len);
        if (!st)
            st = ops->event_record(rt->dev, rt->done, rt->stream);
        if (!st)
            st = ops->event_sync(rt->dev, rt->done);
        if (st)
            return rad_fail(err, st, "upload of %zu bytes: %s", len, rad_strstatus(st));
        done += len;
    }
    return RAD_OK;
}

static void view(const struct radi_weight *w, RadTensor *t)
{
    int64_t s = 1;
    memset(t, 0, sizeof *t);
    t->dtype = (int32_t)w->read->plane[0].dtype;
    t->rank = w->d.rank;
    for (int i = w->d.rank - 1; i >= 0; i--) {
        t->shape[i] = w->d.shape[i];
        t->stride[i] = s;
        s *= w->d.shape[i];
    }
    t->enc = w->read;
}

static void plain_data(const struct radi_weight *w, RadTensor *t)
{
    if (rad_encoding_is_plain(w->read, 0))
        t->data = (void *)(uintptr_t)t->plane[0];
}

/* Planes as they are stored, on the host. */
static rad_status stored(const struct radi_rt *rt, const struct radi_weight *w,
                         const void *plane[RAD_MAX_PLANES], const struct rad_weight **out,
                         struct rad_err *err)
{
    *out = NULL;
    if (w->constant) {
        plane[0] = w->constant;
        return RAD_OK;
    }
    const struct rad_weight *s = rad_model_weight(rt->model, w->stored);
    if (!s || !rad_encoding_equal(s->enc, w->enc) || s->rows != w->rows || s->cols != w->cols)
        return rad_fail(err, RAD_E_MISMATCH, "weight '%s': the container is not the planned one",
                        w->stored);
    for (uint32_t i = 0; i < s->n_planes && i < RAD_MAX_PLANES; i++)
        plane[i] = s->plane[i].data;
    *out = s;
    return RAD_OK;
}

/* The weight's values in f32, some rows at a time. */
static rad_status widen(struct bind *b, const struct radi_weight *w, const struct rad_weight *s,
                        uint8_t *dst, struct rad_err *err)
{
    uint64_t rows = RADI_MAX((uint64_t)WINDOW / 4 / w->cols, (uint64_t)1);
    size_t bytes;
    rows = RADI_MIN(rows, w->rows);
    if (!radi_mul_size((size_t)rows, (size_t)w->cols, &bytes) || !radi_mul_size(bytes, 4, &bytes))
        return rad_fail(err, RAD_E_NOMEM, "weight '%s': rows are too wide", w->name);
    float *tmp = radi_malloc(bytes);
    if (!tmp)
        return rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", w->name);
    rad_status st = RAD_OK;
    for (uint64_t r = 0; r < w->rows && !st; r += rows) {
        uint64_t n = RADI_MIN(rows, w->rows - r);
        st = rad_weight_decode(s, r, n, tmp, (size_t)w->cols, err);
        if (!st)
            st = put(b, dst + r * w->cols * 4, tmp, n * w->cols * 4, err);
    }
    radi_free(tmp);
    return st;
}

static rad_status bind_canonical(struct bind *b, size_t i, struct rad_err *err)
{
    struct radi_rt *rt = b->rt;
    const struct radi_weight *w = &rt->plan->weight[i];
    RadTensor *t = &rt->weight[i];
    const struct rad_weight *s;
    const void *plane[RAD_MAX_PLANES] = { 0 };
    view(w, t);
    if (!w->canonical) {                         /* nobody reads the planes */
        t->enc = NULL;
        return RAD_OK;
    }
    RAD_TRY(stored(rt, w, plane, &s, err));
    if (!radi_weight_copied(rt->plan, w)) {
        memcpy(t->plane, plane, sizeof plane);
        plain_data(w, t);
        return RAD_OK;
    }
    for (int k = 0; k < w->read->n_planes && k < RAD_MAX_PLANES; k++) {
        RadPlaneGeom g;
        RAD_TRY(rad_plane_geom(w->read, k, w->rows, w->cols, &g, err));
        uint8_t *dst = rt->weights + b->at;
        t->plane[k] = dst;
        RADI_BUG_IF(!radi_span_ok(b->at, g.bytes, rt->weights_bytes));
        if (w->read != w->enc)
            RAD_TRY(widen(b, w, s, dst, err));
        else
            RAD_TRY(put(b, dst, plane[k], g.bytes, err));
        b->at += (g.bytes + RADI_ALIGN - 1) / RADI_ALIGN * RADI_ALIGN;
    }
    plain_data(w, t);
    return RAD_OK;
}

/* ---- rearranged weights */
struct relayout {
    const struct radi_layout *l;
    const struct radi_weight *w;
    const void *const *plane;
    void *dst;
    atomic_int rc;
};

static void relayout_part(void *arg, int part, int parts)
{
    struct relayout *r = arg;
    int rc = r->l->row->codec->relayout(r->l->params, r->l->operand, r->w->read, r->plane,
                                        (int64_t)r->w->rows, (int64_t)r->w->cols, r->dst, part,
                                        parts);
    int ok = 0;
    if (rc < 0)
        atomic_compare_exchange_strong(&r->rc, &ok, rc);
}

static rad_status bind_layout(struct bind *b, size_t i, struct rad_err *err)
{
    struct radi_rt *rt = b->rt;
    const struct radi_layout *l = &rt->plan->layout[i];
    const struct radi_weight *w = &rt->plan->weight[l->weight];
    const struct rad_weight *s;
    const void *plane[RAD_MAX_PLANES] = { 0 };
    RadTensor *t = &rt->layout[i];
    void *wide = NULL, *tmp = NULL;
    size_t bytes = (size_t)l->desc.bytes;
    rad_status st;
    RAD_TRY(stored(rt, w, plane, &s, err));
    if (w->read != w->enc) {
        size_t n = (size_t)radi_weight_bytes(w->read, w->rows, w->cols);
        wide = radi_malloc(n);
        if (!wide)
            return rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", w->name);
        st = rad_weight_decode(s, 0, w->rows, wide, (size_t)w->cols, err);
        if (st)
            goto out;
        plane[0] = wide;
    }
    uint8_t *dst = rt->weights + b->at;
    RADI_BUG_IF(!radi_span_ok(b->at, bytes, rt->weights_bytes));
    b->at += (bytes + 4095) / 4096 * 4096;
    if (!rt->dev->ops->host_visible && !(tmp = radi_aligned(4096, bytes))) {
        st = rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", w->name);
        goto out;
    }
    struct relayout r = { .l = l, .w = w, .plane = plane, .dst = tmp ? tmp : dst };
    memset(r.dst, 0, bytes);                     /* padding has known bytes */
    if (rt->pool)
        radi_pool_run(rt->pool, relayout_part, &r);
    else
        relayout_part(&r, 0, 1);
    st = (rad_status)atomic_load(&r.rc);
    if (st)
        rad_fail(err, st, "weight '%s': '%s' cannot lay it out: %s", w->name, l->row->name,
                 rad_strstatus(st));
    else if (tmp)
        st = put(b, dst, tmp, bytes, err);
    memset(t, 0, sizeof *t);
    t->data = dst;
    t->dtype = l->desc.dtype;
    t->rank = RADI_MIN(RADI_MAX(l->desc.rank, 0), RAD_MAX_RANK);
    int64_t stride = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        t->shape[k] = l->desc.shape[k];
        t->stride[k] = stride;
        stride *= l->desc.shape[k];
    }
out:
    radi_free(wide);
    radi_free(tmp);
    return st;
}

rad_status radi_rt_bind(struct radi_rt *rt, struct rad_err *err)
{
    struct rad_plan *p = rt->plan;
    struct bind b = { .rt = rt };
    void *window = NULL;
    rad_status st = RAD_OK;
    rt->weight = radi_calloc(p->n_weights + 1, sizeof *rt->weight);
    rt->layout = radi_calloc(p->n_layouts + 1, sizeof *rt->layout);
    if (!rt->weight || !rt->layout)
        return rad_fail(err, RAD_E_NOMEM, "weights: out of memory");
    if (!rt->dev->ops->host_visible) {
        st = rt->dev->ops->alloc(rt->dev, RADI_MEM_PINNED, WINDOW, &window);
        if (st)
            return rad_fail(err, st, "weights: no pinned memory");
        b.window = window;
    }
    for (size_t i = 0; i < p->n_layouts && !st; i++)
        st = bind_layout(&b, i, err);
    for (size_t i = 0; i < p->n_weights && !st; i++)
        st = bind_canonical(&b, i, err);
    if (window)
        rt->dev->ops->free(rt->dev, RADI_MEM_PINNED, window);
    return st;
}
