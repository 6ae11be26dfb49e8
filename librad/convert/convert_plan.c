/* SPDX-License-Identifier: Apache-2.0 */
/* Decides, for one declared weight, which checkpoint tensors it is made of and
 * which encoding it gets: the recipe's first matching rule, or the checkpoint's
 * own numbers when every part stores them alike. */
#include "config.h"

#include <stdio.h>

#include "convert/convert.h"

#include "banned.h"

static void shape_text(char buf[96], const int64_t *shape, int rank)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < rank && at < 90; i++)
        at += (size_t)snprintf(buf + at, 96 - at, "%s%lld", i ? "x" : "", (long long)shape[i]);
}

static rad_status add_part(struct rad_convert *c, struct radi_cv_item *it, size_t tensor,
                           uint64_t row0, uint64_t rows, struct rad_err *err)
{
    (void)c;
    size_t cap = it->n_part;
    RAD_TRY(radi_grow((void **)&it->part, &cap, it->n_part + 1, sizeof *it->part, err));
    it->part[it->n_part++] = (struct radi_cv_part){ tensor, row0, rows };
    return RAD_OK;
}

/* The same rows of each group: a fused tensor that lies head by head. */
static rad_status take_groups(struct rad_convert *c, struct radi_cv_item *it, size_t tensor,
                              const RadNameMap *m, uint64_t row0, uint64_t rows,
                              struct rad_err *err)
{
    if (m->every < m->count || m->first > m->every - m->count || rows % (uint64_t)m->every)
        return rad_fail(err, RAD_E_FORMAT, "tensor '%s': %llu rows are no groups of %lld with "
                        "rows %lld to %lld", rad_ckpt_tensor(c->ckpt, tensor)->name,
                        (unsigned long long)rows, (long long)m->every, (long long)m->first,
                        (long long)(m->first + m->count));
    for (uint64_t at = 0; at < rows; at += (uint64_t)m->every)
        RAD_TRY(add_part(c, it, tensor, row0 + at + (uint64_t)m->first, (uint64_t)m->count, err));
    return RAD_OK;
}

/* One name-map entry. *found false: its source is absent. */
static rad_status take_map(struct rad_convert *c, struct radi_cv_item *it, const RadNameMap *m,
                           bool *found, struct rad_err *err)
{
    *found = false;
    if (m->mode != RAD_MAP_COPY && m->mode != RAD_MAP_CONCAT && m->mode != RAD_MAP_ROWS &&
        m->mode != RAD_MAP_TRANSPOSE)
        return rad_fail(err, RAD_E_UNSUPPORTED, "weight '%s': name map mode %d is not served",
                        it->name, m->mode);
    if (m->mode == RAD_MAP_CONCAT && m->concat_dim != 0)
        return rad_fail(err, RAD_E_UNSUPPORTED,
                        "weight '%s': joining along dimension %d is not served", it->name,
                        m->concat_dim);
    for (int i = 0; i < m->n_src; i++) {
        int64_t t = rad_ckpt_find(c->ckpt, m->src[i]);
        if (t < 0) {
            if (m->mode == RAD_MAP_CONCAT)
                return RAD_OK;
            continue;
        }
        const struct rad_ckpt_tensor *x = rad_ckpt_tensor(c->ckpt, (size_t)t);
        uint64_t row0 = 0, rows = x->rows;
        if (m->src_index[i] >= 0) {
            if (x->rank < 2 || m->src_index[i] >= x->shape[0])
                return rad_fail(err, RAD_E_FORMAT, "tensor '%s': no entry %lld to take",
                                x->name, (long long)m->src_index[i]);
            rows = x->rows / (uint64_t)x->shape[0];
            row0 = rows * (uint64_t)m->src_index[i];
        }
        it->by_column = m->mode == RAD_MAP_TRANSPOSE || (m->mode == RAD_MAP_ROWS && x->rank == 1);
        if (it->by_column) {
            if (m->src_index[i] >= 0)
                return rad_fail(err, RAD_E_UNSUPPORTED, "tensor '%s': columns of one entry are "
                                "not served", x->name);
            row0 = 0;
            rows = x->cols;
        }
        if (m->mode == RAD_MAP_ROWS || (it->by_column && m->count)) {
            if (m->first < 0 || m->count <= 0 ||
                !radi_span_ok((uint64_t)m->first, (uint64_t)m->count, rows))
                return rad_fail(err, RAD_E_FORMAT, "tensor '%s': no rows %lld to %lld of %llu",
                                x->name, (long long)m->first, (long long)(m->first + m->count),
                                (unsigned long long)rows);
            if (m->every) {
                RAD_TRY(take_groups(c, it, (size_t)t, m, row0, rows, err));
                *found = true;
                return RAD_OK;
            }
            row0 += (uint64_t)m->first;
            rows = (uint64_t)m->count;
        }
        RAD_TRY(add_part(c, it, (size_t)t, row0, rows, err));
        *found = true;
        if (m->mode != RAD_MAP_CONCAT)
            return RAD_OK;
    }
    return RAD_OK;
}

static void source_names(char buf[256], const RadNameMap *const *map, int n_map, const char *name)
{
    size_t at = 0;
    buf[0] = 0;
    if (!n_map)
        snprintf(buf, 256, "'%s'", name);
    for (int k = 0; k < n_map; k++)
        for (int i = 0; i < map[k]->n_src && at < 200; i++)
            at += (size_t)snprintf(buf + at, 256 - at, "%s'%s'", at ? " or " : "", map[k]->src[i]);
}

/* The tensor that has a wanted name without the part before its first point:
 * what an embedding model's checkpoint holds. */
static const char *bare_name(const struct rad_convert *c, const RadNameMap *const *map, int n_map)
{
    for (int k = 0; k < n_map; k++)
        for (int i = 0; i < map[k]->n_src; i++) {
            const char *dot = strchr(map[k]->src[i], '.');
            if (dot && strchr(dot + 1, '.') && rad_ckpt_find(c->ckpt, dot + 1) >= 0)
                return dot + 1;
        }
    return NULL;
}

static rad_status check_shape(const struct rad_convert *c, struct radi_cv_item *it,
                              struct rad_err *err)
{
    uint64_t rows = 0;
    const struct rad_ckpt_tensor *x = NULL;
    /* the columns of a vector are the columns of a weight of one row */
    bool vector = it->by_column && it->decl->rank == 1;
    for (size_t i = 0; i < it->n_part; i++) {
        x = rad_ckpt_tensor(c->ckpt, it->part[i].tensor);
        rows += it->part[i].rows;
        if ((it->by_column ? x->rows : x->cols) != (vector ? 1 : it->cols)) {
            rows = 0;
            break;
        }
    }
    if (rows == (vector ? it->cols : it->rows) && x)
        return RAD_OK;
    char found[96], want[96];
    x = rad_ckpt_tensor(c->ckpt, it->part[0].tensor);
    shape_text(found, x->shape, x->rank);
    shape_text(want, it->decl->shape, it->decl->rank);
    return rad_fail(err, RAD_E_FORMAT, "tensor '%s': shape %s%s, want %s for '%s'", x->name, found,
                    it->n_part > 1 ? " (and others)" : "", want, it->name);
}

/* The checkpoint's own encoding, if all parts share one and no scale block is
 * split by the joints. */
static rad_status own_encoding(const struct rad_convert *c, struct radi_cv_item *it,
                               struct rad_err *err)
{
    const struct rad_ckpt_tensor *first = rad_ckpt_tensor(c->ckpt, it->part[0].tensor);
    for (size_t i = 0; i < it->n_part; i++) {
        const struct rad_ckpt_tensor *x = rad_ckpt_tensor(c->ckpt, it->part[i].tensor);
        if (!x->enc)
            return rad_fail(err, RAD_E_UNSUPPORTED, "tensor '%s': type %s has no encoding",
                            x->name, x->type);
        if (!rad_encoding_equal(x->enc, first->enc))
            return rad_fail(err, RAD_E_UNSUPPORTED,
                            "tensor '%s': type %s cannot be joined with '%s' of type %s; "
                            "give '%s' a recipe rule", x->name, x->type, first->name,
                            first->type, it->name);
        if (it->by_column) {
            if (!rad_encoding_is_plain(x->enc, 0) || rad_dtype_bits(x->enc->plane[0].dtype) % 8)
                return rad_fail(err, RAD_E_UNSUPPORTED, "tensor '%s': columns of type %s cannot "
                                "be taken; give '%s' a recipe rule", x->name, x->type, it->name);
            continue;
        }
        uint64_t step = x->row_step ? x->row_step : 1;
        bool last = i + 1 == it->n_part;
        if (it->part[i].row0 % step || (!last && it->part[i].rows % step))
            return rad_fail(err, RAD_E_UNSUPPORTED,
                            "tensor '%s': rows are taken inside a block of %llu; "
                            "give '%s' a recipe rule", x->name, (unsigned long long)step, it->name);
        for (int p = 0; it->n_part > 1 && p < x->enc->n_planes; p++)
            if (x->enc->plane[p].kind == RAD_PLANE_TILED && x->enc->plane[p].block[0] == 0)
                return rad_fail(err, RAD_E_UNSUPPORTED,
                                "tensor '%s': one %s covers all rows, so it cannot be joined; "
                                "give '%s' a recipe rule", x->name, x->enc->plane[p].role,
                                it->name);
    }
    it->enc = *first->enc;
    return RAD_OK;
}

static rad_status choose_encoding(struct rad_convert *c, struct radi_cv_item *it,
                                  struct rad_err *err)
{
    const RadWeightDecl *d = it->decl;
    it->rule_index = c->recipe ? rad_recipe_match(c->recipe, it->name) : -1;
    if (it->rule_index >= 0) {
        it->rule = rad_recipe_at(c->recipe, (size_t)it->rule_index);
        const RadQuantizer *q = rad_plugins_quant(c->plugins, it->rule->quantizer);
        if (!q)
            return rad_fail(err, RAD_E_NOTFOUND, "%s: no quantiser '%s'", it->rule->where,
                            it->rule->quantizer);
        it->qw = (RadQuantWeight){ .struct_size = sizeof it->qw, .name = it->name,
            .rank = d->rank, .rows = (int64_t)it->rows, .cols = (int64_t)it->cols,
            .layer = d->group.layer, .expert = d->group.expert };
        memcpy(it->qw.shape, d->shape, sizeof it->qw.shape);
        rad_status st = q->encoding((const RadQuantArg *)it->rule->option,
                                    (int)it->rule->n_options, &it->qw, &it->enc, err);
        if (!st) {
            it->quant = q;
            return rad_encoding_validate(&it->enc, err);
        }
        if (st != RAD_E_UNSUPPORTED)
            return rad_fail_in(err, st, "%s: weight '%s'", it->rule->where, it->name);
        it->rule = NULL;                 /* declined: the checkpoint's own */
        it->rule_index = -1;
    }
    return own_encoding(c, it, err);
}

/* A recipe option and a quantiser argument are the same two pointers. */
_Static_assert(sizeof(RadQuantArg) == sizeof(struct rad_recipe_option) &&
               offsetof(RadQuantArg, value) == offsetof(struct rad_recipe_option, value),
               "recipe options are passed to quantisers as they are");

static rad_status item_bytes(struct radi_cv_item *it, struct rad_err *err)
{
    it->bytes = 0;
    for (int p = 0; p < it->enc.n_planes; p++) {
        RadPlaneGeom g;
        RAD_TRY(rad_plane_geom(&it->enc, p, it->rows, it->cols, &g, err));
        if (!radi_add_u64(it->bytes, g.bytes, &it->bytes))
            return rad_fail(err, RAD_E_FORMAT, "weight '%s': its size overflows", it->name);
    }
    return RAD_OK;
}

rad_status radi_cv_resolve(struct rad_convert *c, const char *name, const RadWeightDecl *d,
                           const RadNameMap *const *map, int n_map,
                           const RadEncoding **enc, struct rad_err *err)
{
    *enc = NULL;
    uint64_t at;
    if (radi_map_get(c->by_name, name, strlen(name), &at)) {   /* declared again */
        *enc = c->item[at]->n_part ? &c->item[at]->enc : NULL;
        return RAD_OK;
    }
    RAD_TRY(radi_grow((void **)&c->item, &c->cap_item, c->n_item + 1, sizeof *c->item, err));
    struct radi_cv_item *it = radi_arena_alloc(&c->arena, sizeof *it);
    RadWeightDecl *copy = radi_arena_alloc(&c->arena, sizeof *copy);
    char *own = radi_arena_strndup(&c->arena, name, strlen(name));
    if (!it || !copy || !own)
        return rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", name);
    c->item[c->n_item] = it;
    it->error = -1;
    it->name = own;
    *copy = *d;
    copy->source = copy->planes = NULL;
    it->decl = copy;
    if (!radi_map_put(c->by_name, name, strlen(name), c->n_item, NULL))
        return rad_fail(err, RAD_E_NOMEM, "weight '%s': out of memory", name);
    c->n_item++;
    it->rows = 1;
    for (int i = 0; i + 1 < d->rank; i++)
        it->rows *= (uint64_t)d->shape[i];
    it->cols = d->rank ? (uint64_t)d->shape[d->rank - 1] : 1;

    bool found = false, all = true;
    for (int k = 0; k < n_map; k++) {
        RAD_TRY(take_map(c, it, map[k], &found, err));
        all = all && found;
        if (map[k]->mode == RAD_MAP_COPY && found)
            break;
    }
    if (!n_map) {
        int64_t t = rad_ckpt_find(c->ckpt, name);
        all = t >= 0;
        if (all)
            RAD_TRY(add_part(c, it, (size_t)t, 0, rad_ckpt_tensor(c->ckpt, (size_t)t)->rows, err));
    }
    bool exists = all && it->n_part > 0;
    if (exists) {
        RAD_TRY(check_shape(c, it, err));
        RAD_TRY(choose_encoding(c, it, err));
        RAD_TRY(item_bytes(it, err));
    } else if (!d->optional) {
        char want[256];
        source_names(want, map, n_map, name);
        const char *bare = bare_name(c, map, n_map);
        return rad_fail(err, RAD_E_FORMAT, "no tensor %s for weight '%s'%s%s%s", want, name,
                        bare ? "; there is '" : "", bare ? bare : "",
                        bare ? "', as in a model stored without its language model head" : "");
    } else {
        radi_free(it->part);
        it->part = NULL;
        it->n_part = 0;
    }
    if (exists)
        *enc = &it->enc;
    return RAD_OK;
}
