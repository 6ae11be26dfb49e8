/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one weight's planes and hands them to the writer. A plane must be
 * written whole before the next one begins, so the planes of one weight are
 * held in memory; the input is read in row blocks. Blocks are spread over the
 * pool; their bytes do not depend on how. */
#include "config.h"

#include <math.h>
#include <pthread.h>

#include "convert/convert.h"

#include "banned.h"

#define BLOCK_BYTES (16u << 20)      /* f32 bytes of one row block */

struct work {
    struct rad_convert *c;
    struct radi_cv_item *it;
    RadPlaneGeom geom[RAD_MAX_PLANES];
    uint8_t *plane[RAD_MAX_PLANES];
    uint64_t step;                   /* rows a block */
    uint64_t n_block;
    bool measure;
    pthread_mutex_t lock;            /* guards next, st, err, num, den */
    uint64_t next;
    rad_status st;
    struct rad_err err;
    double *num, *den;               /* [n_block] squared error and square */
};

/* Where a block that begins at row r0 starts in plane p. */
static uint8_t *plane_at(const struct work *w, int p, uint64_t r0)
{
    const RadPlaneDesc *d = &w->it->enc.plane[p];
    if (d->kind == RAD_PLANE_TABLE || d->block[0] == 0)
        return w->plane[p];
    return w->plane[p] + r0 / (uint64_t)d->block[0] * w->geom[p].row_bytes;
}

/* Calls fn for the stretches of [r0, r0+n) that lie in one part each. */
typedef rad_status stretch_fn(struct work *w, const struct radi_cv_part *part, uint64_t src0,
                              uint64_t dst0, uint64_t n, void *user, struct rad_err *err);

static rad_status stretches(struct work *w, uint64_t r0, uint64_t n, stretch_fn *fn, void *user,
                            struct rad_err *err)
{
    uint64_t base = 0;
    for (size_t i = 0; i < w->it->n_part && n; i++) {
        const struct radi_cv_part *p = &w->it->part[i];
        if (r0 < base + p->rows) {
            uint64_t off = r0 - base, k = RADI_MIN(n, p->rows - off);
            RAD_TRY(fn(w, p, p->row0 + off, r0, k, user, err));
            r0 += k;
            n -= k;
        }
        base += p->rows;
    }
    return RAD_OK;
}

static rad_status copy_stretch(struct work *w, const struct radi_cv_part *part, uint64_t src0,
                               uint64_t dst0, uint64_t n, void *user, struct rad_err *err)
{
    (void)user;
    void *dst[RAD_MAX_PLANES];
    for (int p = 0; p < w->it->enc.n_planes; p++)
        dst[p] = plane_at(w, p, dst0);
    return rad_ckpt_read_planes(w->c->ckpt, part->tensor, src0, n, dst, err);
}

static rad_status f32_stretch(struct work *w, const struct radi_cv_part *part, uint64_t src0,
                              uint64_t dst0, uint64_t n, void *user, struct rad_err *err)
{
    struct { float *x; uint64_t r0; } *to = user;
    return rad_ckpt_read_f32(w->c->ckpt, part->tensor, src0, n,
                             to->x + (dst0 - to->r0) * w->it->cols, err);
}

/* All of a weight made of columns, as f32 or in its own plain type. */
static rad_status columns(struct work *w, void *out, bool f32, struct rad_err *err)
{
    const struct radi_cv_item *it = w->it;
    size_t esz = f32 ? sizeof(float) : (size_t)rad_dtype_bits(it->enc.plane[0].dtype) / 8;
    uint8_t *dst = out;

    for (size_t i = 0; i < it->n_part; i++) {
        const struct radi_cv_part *p = &it->part[i];
        const struct rad_ckpt_tensor *x = rad_ckpt_tensor(w->c->ckpt, p->tensor);
        size_t bytes;
        if (!radi_mul_size((size_t)x->rows, (size_t)x->cols, &bytes) ||
            !radi_mul_size(bytes, esz, &bytes))
            return rad_fail(err, RAD_E_FORMAT, "tensor '%s': its size overflows", x->name);
        uint8_t *src = radi_aligned(64, bytes ? bytes : 1);
        void *plane[RAD_MAX_PLANES] = { src };
        if (!src)
            return rad_fail(err, RAD_E_NOMEM, "tensor '%s': out of memory", x->name);
        rad_status st = f32 ? rad_ckpt_read_f32(w->c->ckpt, p->tensor, 0, x->rows,
                                                (float *)(void *)src, err)
                            : rad_ckpt_read_planes(w->c->ckpt, p->tensor, 0, x->rows, plane, err);
        for (uint64_t c = p->row0; !st && c < p->row0 + p->rows; c++)
            for (uint64_t r = 0; r < x->rows; r++, dst += esz)
                memcpy(dst, src + (r * x->cols + c) * esz, esz);
        radi_free(src);
        RAD_TRY(st);
    }
    return RAD_OK;
}

static rad_status quantise_block(struct work *w, uint64_t b, uint64_t r0, uint64_t n,
                                 struct rad_err *err)
{
    struct radi_cv_item *it = w->it;
    size_t count;
    if (!radi_mul_size((size_t)n, (size_t)it->cols, &count))
        return rad_fail(err, RAD_E_FORMAT, "weight '%s': its size overflows", it->name);
    struct { float *x; uint64_t r0; } to = { radi_aligned(64, count * sizeof(float)), r0 };
    float *y = w->measure ? radi_aligned(64, count * sizeof(float)) : NULL;
    rad_status st = RAD_OK;
    if (!to.x || (w->measure && !y))
        st = rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", it->name);
    if (!st)
        st = it->by_column ? columns(w, to.x, true, err)
                           : stretches(w, r0, n, f32_stretch, &to, err);
    if (!st && w->measure)
        memcpy(y, to.x, count * sizeof(float));
    void *dst[RAD_MAX_PLANES];
    for (int p = 0; p < it->enc.n_planes; p++)
        dst[p] = plane_at(w, p, r0);
    if (!st)
        st = it->quant->quantize((const RadQuantArg *)it->rule->option, (int)it->rule->n_options,
                                 &it->qw, &it->enc, (int64_t)r0, (int64_t)n, to.x, dst, err);
    if (!st && w->measure) {
        /* What a reader will see, by librad's decoder. */
        st = rad_decode_rows(&it->enc, (const void *const *)dst, n, it->cols, 0, n, to.x,
                             (size_t)it->cols, err);
        double num = 0, den = 0;
        for (size_t i = 0; !st && i < count; i++) {
            double e = (double)y[i] - (double)to.x[i];
            num += e * e;
            den += (double)y[i] * (double)y[i];
        }
        w->num[b] = num;
        w->den[b] = den;
    }
    radi_free(to.x);
    radi_free(y);
    return st;
}

static void run_part(void *arg, int part, int parts)
{
    struct work *w = arg;
    (void)part;
    (void)parts;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        uint64_t b = w->next++;
        bool stop = w->st || b >= w->n_block;
        pthread_mutex_unlock(&w->lock);
        if (stop)
            return;
        struct rad_err err = { 0 };
        uint64_t r0 = b * w->step, n = RADI_MIN(w->step, w->it->rows - r0);
        rad_status st = w->it->quant ? quantise_block(w, b, r0, n, &err)
                      : w->it->by_column ? columns(w, w->plane[0], false, &err)
                                     : stretches(w, r0, n, copy_stretch, NULL, &err);
        if (!st)
            continue;
        pthread_mutex_lock(&w->lock);
        if (!w->st) {
            w->st = st;
            w->err = err;
        }
        pthread_mutex_unlock(&w->lock);
    }
}

/* Rows a block: near BLOCK_BYTES, and no plane's element split. */
static uint64_t block_rows(const struct work *w)
{
    const struct radi_cv_item *it = w->it;
    uint64_t unit = 1, whole = it->rows;
    if (it->by_column)
        return whole;
    if (it->quant) {
        int64_t rb = it->quant->row_block
            ? it->quant->row_block((const RadQuantArg *)it->rule->option,
                                   (int)it->rule->n_options, &it->qw) : 1;
        if (rb <= 0)
            return whole;
        unit = (uint64_t)rb;
    } else {
        for (size_t i = 0; i < it->n_part; i++)
            unit = RADI_MAX(unit, rad_ckpt_tensor(w->c->ckpt, it->part[i].tensor)->row_step);
    }
    for (int p = 0; p < it->enc.n_planes; p++) {
        const RadPlaneDesc *d = &it->enc.plane[p];
        /* One table or whole-extent plane is shared by all blocks. */
        if (d->kind == RAD_PLANE_TABLE || d->block[0] == 0)
            return whole;
        uint64_t b = (uint64_t)d->block[0];
        if (unit % b)
            unit *= b;
    }
    uint64_t rows = BLOCK_BYTES / sizeof(float) / (it->cols ? it->cols : 1) / unit * unit;
    return RADI_MIN(rows ? rows : unit, whole);
}

rad_status radi_cv_write_item(struct rad_convert *c, struct radi_cv_item *it, size_t pos,
                              struct rad_err *err)
{
    struct work w = { .c = c, .it = it, .lock = PTHREAD_MUTEX_INITIALIZER };
    rad_status st = RAD_OK;
    w.measure = it->quant && (rad_encoding_find(&it->enc, "codes") >= 0 ||
                              rad_encoding_is_plain(&it->enc, 0));
    for (int p = 0; !st && p < it->enc.n_planes; p++) {
        st = rad_plane_geom(&it->enc, p, it->rows, it->cols, &w.geom[p], err);
        size_t bytes = w.geom[p].bytes ? (size_t)w.geom[p].bytes : 1;
        if (!st && !(w.plane[p] = radi_aligned(64, bytes)))
            st = rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory for %llu bytes", it->name,
                          (unsigned long long)w.geom[p].bytes);
        if (!st)
            memset(w.plane[p], 0, (size_t)w.geom[p].bytes);
    }
    if (!st) {
        w.step = block_rows(&w);
        w.n_block = (it->rows + w.step - 1) / w.step;
        w.num = radi_calloc((size_t)w.n_block, sizeof *w.num);
        w.den = radi_calloc((size_t)w.n_block, sizeof *w.den);
        if (!w.num || !w.den)
            st = rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", it->name);
    }
    if (!st) {
        radi_pool_run(c->pool, run_part, &w);
        st = w.st;
        if (st)
            rad_fail(err, st, "weight '%s': %s", it->name, w.err.text);
    }
    if (!st && w.measure) {
        double num = 0, den = 0;
        for (uint64_t b = 0; b < w.n_block; b++) {
            num += w.num[b];
            den += w.den[b];
        }
        it->error = den > 0 ? sqrt(num / den) : sqrt(num);
    }
    for (int p = 0; !st && p < it->enc.n_planes; p++)
        st = rad_model_writer_write(c->writer, pos, (uint32_t)p, w.plane[p],
                                    (size_t)w.geom[p].bytes, err);
    for (int p = 0; p < RAD_MAX_PLANES; p++)
        radi_free(w.plane[p]);
    radi_free(w.num);
    radi_free(w.den);
    return st;
}
