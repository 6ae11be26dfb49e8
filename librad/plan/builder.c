/* SPDX-License-Identifier: Apache-2.0 */
/* The declare calls for weights, name maps, buffers, KV groups and outputs.
 * Nothing here stops a declare: what is wrong is collected (radi_miss) and a
 * handle is given out all the same, so that one run finds every mistake. Ops
 * are builder_op.c's. */
#include "config.h"

#include <stdio.h>

#include "plan/plan_priv.h"

#include "banned.h"

void radi_miss(RadBuilder *b, int32_t op, rad_status st, const char *fmt, ...)
{
    struct radi_str s = { 0 };
    va_list ap;
    va_start(ap, fmt);
    radi_str_addv(&s, fmt, ap);
    va_end(ap);
    if (s.failed)
        goto nomem;
    for (size_t i = 0; i < b->n_misses; i++)
        if (b->miss[i].op < 0 && op < 0 && !strcmp(b->miss[i].text, s.s)) {
            b->miss[i].count++;
            radi_str_release(&s);
            return;
        }
    if (radi_grow((void **)&b->miss, &b->cap_misses, b->n_misses + 1, sizeof *b->miss, NULL))
        goto nomem;
    char *text = radi_arena_strndup(&b->plan->mem, s.s, s.len);
    if (!text)
        goto nomem;
    b->miss[b->n_misses++] = (struct radi_miss){ text, op, 1, st };
    radi_str_release(&s);
    return;
nomem:
    radi_str_release(&s);
    b->failed = true;
}

static const char *copy(RadBuilder *b, const char *s)
{
    if (!s)
        return NULL;
    char *c = radi_arena_strndup(&b->plan->mem, s, strlen(s));
    if (!c)
        b->failed = true;
    return c ? c : "";
}

/* True when the name is new. */
static bool take_name(RadBuilder *b, struct radi_map *index, const char *name, size_t value,
                      const char *what)
{
    bool existed = false;
    if (!radi_map_put(index, name, strlen(name), value, &existed))
        b->failed = true;
    if (existed)
        radi_miss(b, -1, RAD_E_DUPLICATE, "%s '%s' is declared twice", what, name);
    return !existed;
}

/* Elements of a shape; false when it is none. */
static bool shape_numel(int32_t rank, const int64_t *shape, uint64_t *numel)
{
    if (rank < 1 || rank > RAD_MAX_RANK)
        return false;
    *numel = 1;
    for (int i = 0; i < rank; i++)
        if (shape[i] < 1 || !radi_mul_u64(*numel, (uint64_t)shape[i], numel)
            || *numel > (uint64_t)1 << 48)
            return false;
    return true;
}

/* What is declared by an enum of the ABI and not served: refused by its name. */
static void unserved_value(RadBuilder *b, const char *what, const char *name, const char *field,
                           const char *value)
{
    radi_miss(b, -1, RAD_E_UNSUPPORTED, "%s '%s': %s %s is not served", what, name, field, value);
}

/* ---- name maps: what the converter can follow (convert_plan.c) */
static void refuse_map(RadBuilder *b, const RadNameMap *m)
{
    static const char *const mode[] = {
        [RAD_MAP_WNORM] = "RAD_MAP_WNORM",
        [RAD_MAP_EMA] = "RAD_MAP_EMA", [RAD_MAP_TAP] = "RAD_MAP_TAP",
        [RAD_MAP_COLS] = "RAD_MAP_COLS",
    };
    char text[24];
    if (mode[m->mode])
        unserved_value(b, "name map", m->declared, "mode", mode[m->mode]);
    if (m->mode == RAD_MAP_CONCAT && m->concat_dim) {
        snprintf(text, sizeof text, "%d", m->concat_dim);
        unserved_value(b, "name map", m->declared, "concat_dim", text);
    }
}

int rad_decl_name_map(RadBuilder *b, const RadNameMap *m)
{
    uint64_t at;
    if (!m->declared || m->n_src < 1 || m->n_src > 8 || m->mode < RAD_MAP_COPY
        || m->mode > RAD_MAP_COLS) {
        radi_miss(b, -1, RAD_E_ARG, "name map of '%s': mode %d with %d sources, want 1 to 8",
                  m->declared ? m->declared : "?", m->mode, m->n_src);
        return RAD_E_ARG;
    }
    if (radi_map_get(b->weight_index, m->declared, strlen(m->declared), &at)) {
        radi_miss(b, -1, RAD_E_STATE, "name map of '%s' comes after its weight", m->declared);
        return RAD_E_STATE;
    }
    refuse_map(b, m);
    if (radi_grow((void **)&b->map, &b->cap_maps, b->n_maps + 1, sizeof *b->map, NULL)) {
        b->failed = true;
        return RAD_E_NOMEM;
    }
    struct radi_map_entry *e = &b->map[b->n_maps];
    *e = (struct radi_map_entry){ *m, -1 };
    e->m.declared = copy(b, m->declared);
    for (int i = 0; i < m->n_src; i++)
        e->m.src[i] = copy(b, m->src[i] ? m->src[i] : "");
    bool existed = false;
    if (!radi_map_put(b->map_index, m->declared, strlen(m->declared), b->n_maps, &existed))
        b->failed = true;
    if (existed && radi_map_get(b->map_index, m->declared, strlen(m->declared), &at)) {
        while (b->map[at].next >= 0)
            at = (uint64_t)b->map[at].next;
        b->map[at].next = (int32_t)b->n_maps;
    }
    b->n_maps++;
    return RAD_OK;
}

/* The weight's entries as an array of the plan. */
static void find_maps(RadBuilder *b, struct radi_weight *w)
{
    uint64_t at;
    if (!radi_map_get(b->map_index, w->name, strlen(w->name), &at))
        return;
    int n = 0;
    for (int32_t i = (int32_t)at; i >= 0; i = b->map[i].next)
        n++;
    w->map = radi_arena_array(&b->plan->mem, (size_t)n, sizeof *w->map);
    if (!w->map) {
        b->failed = true;
        return;
    }
    for (int32_t i = (int32_t)at; i >= 0; i = b->map[i].next) {
        RadNameMap *m = radi_arena_alloc(&b->plan->mem, sizeof *m);
        if (!m) {
            b->failed = true;
            return;
        }
        *m = b->map[i].m;
        w->map[w->n_map++] = m;
    }
}

/* ---- weights */
static const RadEncoding *keep_encoding(RadBuilder *b, const RadEncoding *e)
{
    RadEncoding *c = radi_arena_alloc(&b->plan->mem, sizeof *c);
    if (!c) {
        b->failed = true;
        return NULL;
    }
    *c = *e;
    return c;
}

static void shape_text(int32_t rank, const int64_t *shape, char *buf, size_t n)
{
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? "," : "", (long long)shape[i]);
    if (at < n)
        snprintf(buf + at, n - at, "]");
}

static void check_stored_shape(RadBuilder *b, const struct radi_weight *w)
{
    const struct rad_weight *s = b->model ? rad_model_weight(b->model, w->stored) : NULL;
    if (!s)
        return;
    if (s->rank == w->d.rank && !memcmp(s->shape, w->d.shape, (size_t)s->rank * sizeof *s->shape))
        return;
    char have[128], want[128];
    shape_text(s->rank, s->shape, have, sizeof have);
    shape_text(w->d.rank, w->d.shape, want, sizeof want);
    radi_miss(b, -1, RAD_E_SHAPE, "weight '%s': stored as %s, want %s", w->stored, have, want);
}

/* A declared type that is not the stored one is legal as an exact widening. */
static void set_read_type(RadBuilder *b, struct radi_weight *w)
{
    char text[160];
    w->read = w->enc;
    if (!w->d.dtype || rad_encoding_is_plain(w->enc, w->d.dtype))
        return;
    static const int exact[] = { RAD_DT_bf16, RAD_DT_f16, RAD_DT_fp8_e4m3, RAD_DT_fp8_e5m2,
                                 RAD_DT_i8, RAD_DT_u8, RAD_DT_i16, RAD_DT_u16 };
    bool ok = false;
    for (size_t i = 0; i < RADI_COUNT(exact); i++)
        ok |= w->d.dtype == RAD_F32 && rad_encoding_is_plain(w->enc, exact[i]);
    if (!ok) {
        rad_encoding_text(w->enc, text, sizeof text);
        radi_miss(b, -1, RAD_E_DTYPE, "weight '%s': stored as %s, which is no exact %s", w->name,
                  text, rad_dtype_name(w->d.dtype));
        return;
    }
    RadEncoding e;
    rad_encoding_plain(&e, w->d.dtype);
    w->read = keep_encoding(b, &e);
}

static rad_weight push_weight(RadBuilder *b, const struct radi_weight *w)
{
    struct rad_plan *p = b->plan;
    if (radi_grow((void **)&p->weight, &p->cap_weights, p->n_weights + 1, sizeof *p->weight,
                  NULL)) {
        b->failed = true;
        return RAD_NULL_HANDLE;
    }
    take_name(b, b->weight_index, w->name, p->n_weights, "weight");
    p->weight[p->n_weights] = *w;
    return (rad_weight)p->n_weights++;
}

/* How a weight is read, split and stacked. Every weight is resident, so an
 * access that asks the placement for less is not served. */
static void check_use(RadBuilder *b, const char *name, const RadWeightDecl *d)
{
    static const char *const access[] = {
        [RAD_ACCESS_PER_REQUEST] = "RAD_ACCESS_PER_REQUEST",
        [RAD_ACCESS_CONDITIONAL] = "RAD_ACCESS_CONDITIONAL",
        [RAD_ACCESS_RARE] = "RAD_ACCESS_RARE", [RAD_ACCESS_VOCAB] = NULL,
    };
    int64_t sum = 0;
    if (d->access < 0 || d->access > RAD_ACCESS_VOCAB || d->shard < RAD_SHARD_NONE
        || d->shard > RAD_SHARD_COL)
        radi_miss(b, -1, RAD_E_ARG, "weight '%s': access %d, shard %d", name, d->access, d->shard);
    else if (access[d->access])
        unserved_value(b, "weight", name, "access", access[d->access]);
    if (d->group.expert >= 0)                    /* a zeroed group is expert 0 of layer 0 */
        radi_miss(b, -1, RAD_E_UNSUPPORTED, "weight '%s': group.expert %d is not served, want -1",
                  name, d->group.expert);
    if (d->n_row_parts < 0 || d->n_row_parts > 8) {
        radi_miss(b, -1, RAD_E_ARG, "weight '%s': n_row_parts %d, want 0 to 8", name,
                  d->n_row_parts);
        return;
    }
    for (int i = 0; i < d->n_row_parts; i++)
        if (d->row_parts[i] < 1 || __builtin_add_overflow(sum, d->row_parts[i], &sum))
            sum = -1;
    if (d->n_row_parts && sum != d->shape[0])
        radi_miss(b, -1, RAD_E_SHAPE, "weight '%s': row_parts add up to %lld of %lld rows", name,
                  (long long)sum, (long long)d->shape[0]);
}

rad_weight rad_decl_weight(RadBuilder *b, const char *name, const RadWeightDecl *d)
{
    struct radi_weight w = { .name = copy(b, name), .d = *d };
    uint64_t numel;
    if (!shape_numel(d->rank, d->shape, &numel)) {
        radi_miss(b, -1, RAD_E_SHAPE, "weight '%s': rank %d is no shape", name, d->rank);
        return RAD_NULL_HANDLE;
    }
    w.cols = (uint64_t)d->shape[d->rank - 1];
    w.rows = numel / w.cols;
    check_use(b, name, d);
    w.stored = d->source ? copy(b, d->source) : w.name;
    w.d.source = d->source ? w.stored : NULL;
    if (d->planes) {
        radi_miss(b, -1, RAD_E_UNSUPPORTED, "weight '%s': a view of planes '%s' is not served",
                  name, d->planes);
        w.d.planes = NULL;
    }
    find_maps(b, &w);
    const RadEncoding *e = b->src->encoding
        ? b->src->encoding(b->src->user, w.stored, &w.d, w.map, w.n_map) : NULL;
    if (!e) {
        if (!d->optional)
            radi_miss(b, -1, RAD_E_NOTFOUND, "weight '%s' is missing", w.stored);
        return RAD_NULL_HANDLE;
    }
    w.enc = keep_encoding(b, e);
    if (!w.enc)
        return RAD_NULL_HANDLE;
    check_stored_shape(b, &w);
    set_read_type(b, &w);
    return push_weight(b, &w);
}

static struct radi_weight *weight_of(RadBuilder *b, rad_weight w, const char *call)
{
    if (w >= 0 && (size_t)w < b->plan->n_weights)
        return &b->plan->weight[w];
    radi_miss(b, -1, RAD_E_ARG, "%s: weight handle %d was not given out", call, w);
    return NULL;
}

const RadEncoding *rad_weight_encoding(RadBuilder *b, rad_weight w)
{
    if (w == RAD_NULL_HANDLE)
        return NULL;
    const struct radi_weight *x = weight_of(b, w, "rad_weight_encoding");
    return x ? x->enc : NULL;
}

rad_weight rad_decl_constant(RadBuilder *b, const char *name, int32_t dtype, int32_t rank,
                             const int64_t *shape, const void *data)
{
    uint64_t numel;
    int bits = rad_dtype_bits(dtype);
    if (rank < 1 || rank > RAD_MAX_RANK || !shape_numel(rank, shape, &numel) || bits < 8
        || numel > 1 << 24) {
        radi_miss(b, -1, RAD_E_SHAPE, "constant '%s': type %s, rank %d", name,
                  rad_dtype_name(dtype), rank);
        return RAD_NULL_HANDLE;
    }
    struct radi_weight w = { .name = copy(b, name) };
    w.stored = w.name;
    w.d = (RadWeightDecl){ .dtype = dtype, .rank = rank, .group = rad_group_model() };
    memcpy(w.d.shape, shape, (size_t)rank * sizeof *shape);
    w.cols = (uint64_t)shape[rank - 1];
    w.rows = numel / w.cols;
    size_t bytes = (size_t)numel * (size_t)bits / 8;
    void *bytes_at = radi_arena_alloc(&b->plan->mem, bytes);
    RadEncoding e;
    rad_encoding_plain(&e, dtype);
    w.enc = w.read = keep_encoding(b, &e);
    if (!bytes_at || !w.enc) {
        b->failed = true;
        return RAD_NULL_HANDLE;
    }
    memcpy(bytes_at, data, bytes);
    w.constant = bytes_at;
    return push_weight(b, &w);
}

const char *rad_build_home(const RadBuilder *b)
{
    return b->plan->plugins->home;
}

static int unserved(RadBuilder *b, const char *call, const char *what)
{
    radi_miss(b, -1, RAD_E_UNSUPPORTED, "%s: %s", call, what);
    return RAD_E_UNSUPPORTED;
}

int rad_weight_shard_span(RadBuilder *b, rad_weight w, int64_t first, int64_t n)
{
    const struct radi_weight *x = weight_of(b, w, "rad_weight_shard_span");
    if (x && (first || (uint64_t)n != x->rows))
        return unserved(b, "rad_weight_shard_span", "more than one rank is not served");
    return x ? RAD_OK : RAD_E_ARG;
}

int rad_weight_shard_parts(RadBuilder *b, rad_weight w, int part, int64_t first, int64_t n)
{
    const struct radi_weight *x = weight_of(b, w, "rad_weight_shard_parts");
    if (x && (part < 0 || part >= RADI_MIN(x->d.n_row_parts, 8) || first
              || n != x->d.row_parts[part]))
        return unserved(b, "rad_weight_shard_parts", "more than one rank is not served");
    return x ? RAD_OK : RAD_E_ARG;
}

/* ---- buffers */
rad_buf rad_decl_buffer(RadBuilder *b, const char *name, const RadBufferDecl *d)
{
    struct rad_plan *p = b->plan;
    struct radi_buf f = { .name = copy(b, name), .d = *d, .first = INT32_MAX, .last = -1 };
    int bits = rad_dtype_bits(d->dtype);
    if (!bits || !shape_numel(d->rank, d->shape, &f.numel)) {
        radi_miss(b, -1, RAD_E_SHAPE, "buffer '%s': type %s, rank %d is no shape", name,
                  rad_dtype_name(d->dtype), d->rank);
        return RAD_NULL_HANDLE;
    }
    if (d->kind == RAD_BUF_DERIVED)
        radi_miss(b, -1, RAD_E_UNSUPPORTED,
                  "buffer '%s': kind RAD_BUF_DERIVED ('%s') is not served", name, d->derive ? d->derive : "");
    else if (d->kind != RAD_BUF_TRANSIENT && d->kind != RAD_BUF_PERSIST)
        radi_miss(b, -1, RAD_E_ARG, "buffer '%s': kind %d", name, d->kind);
    if (d->domain != RAD_DOMAIN_HOST)
        radi_miss(b, -1, RAD_E_UNSUPPORTED, "buffer '%s': domain %d is not served", name,
                  d->domain);
    f.d.derive = NULL;
    uint64_t cols = (uint64_t)d->shape[d->rank - 1];
    f.bytes = f.numel / cols * rad_row_bytes(d->dtype, cols);
    int64_t s = 1;
    for (int i = d->rank - 1; i >= 0; i--) {
        f.stride[i] = s;
        s *= d->shape[i];
    }
    if (radi_grow((void **)&p->buf, &p->cap_bufs, p->n_bufs + 1, sizeof *p->buf, NULL)) {
        b->failed = true;
        return RAD_NULL_HANDLE;
    }
    take_name(b, b->buf_index, f.name, p->n_bufs, "buffer");
    p->buf[p->n_bufs] = f;
    return (rad_buf)p->n_bufs++;
}

void rad_buf_concurrent(RadBuilder *b, rad_buf buf)
{
    (void)buf;
    unserved(b, "rad_buf_concurrent", "a second lane is not served");
}

void rad_lane1_window_begin(RadBuilder *b)
{
    unserved(b, "rad_lane1_window_begin", "a second lane is not served");
}

void rad_lane1_window_end(RadBuilder *b)
{
    unserved(b, "rad_lane1_window_end", "a second lane is not served");
}

/* ---- KV groups */
bool radi_kv_paged(const RadKvGroupDecl *d)
{
    return d->kind == RAD_KV_FULL || d->kind == RAD_KV_WINDOW;
}

rad_kv rad_decl_kv_group(RadBuilder *b, const char *name, const RadKvGroupDecl *d)
{
    static const char *const unserved_kind[] = { [RAD_KV_LINEAR] = "RAD_KV_LINEAR",
                                                 [RAD_KV_CONV] = "RAD_KV_CONV",
                                                 [RAD_KV_RING] = "RAD_KV_RING" };
    struct rad_plan *p = b->plan;
    bool ok = d->kind >= RAD_KV_FULL && d->kind <= RAD_KV_RING;
    if (ok && unserved_kind[d->kind])
        unserved_value(b, "kv group", name, "kind", unserved_kind[d->kind]);
    if (ok && (radi_kv_paged(d) || d->kind == RAD_KV_RING))
        ok = d->n_head_kv > 0 && d->head_dim > 0 && (d->kind == RAD_KV_FULL || d->window > 0);
    else if (ok && d->kind == RAD_KV_LINEAR)
        ok = d->n_head_kv > 0 && d->state_dim[0] > 0 && d->state_dim[1] > 0;
    else if (ok)
        ok = d->head_dim > 0 && d->conv_width > 1;
    if (!ok)
        radi_miss(b, -1, RAD_E_SHAPE, "kv group '%s': kind %d with %lld heads of %lld", name,
                  d->kind, (long long)d->n_head_kv, (long long)d->head_dim);
    for (int i = 0; i < p->n_kv; i++)
        if (!strcmp(p->kv[i].name, name))
            radi_miss(b, -1, RAD_E_DUPLICATE, "kv group '%s' is declared twice", name);
    if (p->n_kv == RADI_KV_MAX) {
        radi_miss(b, -1, RAD_E_FULL, "kv group '%s': more than %d groups", name, RADI_KV_MAX);
        return RAD_NULL_HANDLE;
    }
    struct radi_kv_decl *g = &p->kv[p->n_kv];
    *g = (struct radi_kv_decl){ .name = copy(b, name), .d = *d, .fixed_by = -1, .max_layer = -1 };
    if (!g->d.dtype)
        g->d.dtype = d->kind == RAD_KV_LINEAR || d->kind == RAD_KV_CONV ? RAD_F32 : p->ctx.kv_dtype;
    if (rad_dtype_bits(g->d.dtype) < 8)
        radi_miss(b, -1, RAD_E_DTYPE, "kv group '%s': type %s", name, rad_dtype_name(g->d.dtype));
    return p->n_kv++;
}

static struct radi_kv_decl *kv_of(RadBuilder *b, rad_kv g, const char *call)
{
    if (g >= 0 && g < b->plan->n_kv)
        return &b->plan->kv[g];
    radi_miss(b, -1, RAD_E_ARG, "%s: kv group handle %d was not given out", call, g);
    return NULL;
}

int64_t rad_kv_block_size(RadBuilder *b, rad_kv g)
{
    const struct radi_kv_decl *k = kv_of(b, g, "rad_kv_block_size");
    return k ? k->block_size : 0;
}

int rad_bind_layer_kv(RadBuilder *b, int32_t layer, rad_kv g)
{
    struct radi_kv_decl *k = kv_of(b, g, "rad_bind_layer_kv");
    if (!k)
        return RAD_E_ARG;
    if (layer < 0 || layer > 1 << 16) {
        radi_miss(b, -1, RAD_E_ARG, "kv group '%s': layer %d", k->name, layer);
        return RAD_E_ARG;
    }
    for (size_t i = 0; i < k->n_layers; i++)
        if (k->layer[i] == layer) {
            radi_miss(b, -1, RAD_E_DUPLICATE, "kv group '%s': layer %d is bound twice", k->name,
                      layer);
            return RAD_E_DUPLICATE;
        }
    if (radi_grow((void **)&k->layer, &k->cap_layers, k->n_layers + 1, sizeof *k->layer, NULL)) {
        b->failed = true;
        return RAD_E_NOMEM;
    }
    k->layer[k->n_layers++] = layer;
    k->max_layer = RADI_MAX(k->max_layer, layer);
    return RAD_OK;
}

void rad_kv_group_zero(RadBuilder *b, rad_kv g)
{
    (void)g;
    unserved(b, "rad_kv_group_zero", "more than one rank is not served");
}

/* True of every group when there is one rank. */
void rad_kv_group_replicated(RadBuilder *b, rad_kv g)
{
    kv_of(b, g, "rad_kv_group_replicated");
}

/* Forbids streaming, which nothing does. */
void rad_kv_group_dense_read(RadBuilder *b, rad_kv g)
{
    kv_of(b, g, "rad_kv_group_dense_read");
}

/* ---- outputs and the rest */
void rad_declare_logits(RadBuilder *b, rad_buf buf)
{
    struct rad_plan *p = b->plan;
    if (buf < 0 || (size_t)buf >= p->n_bufs) {
        radi_miss(b, -1, RAD_E_ARG, "rad_declare_logits: buffer handle %d was not given out", buf);
        return;
    }
    const struct radi_buf *f = &p->buf[buf];
    if (p->logits >= 0)
        radi_miss(b, -1, RAD_E_DUPLICATE, "logits are declared twice: '%s' and '%s'",
                  p->buf[p->logits].name, f->name);
    if (f->d.rank != 2 || f->d.dtype != RAD_F32)
        radi_miss(b, -1, RAD_E_SHAPE, "logits '%s': rank %d of %s, want [rows, vocabulary] f32",
                  f->name, f->d.rank, rad_dtype_name(f->d.dtype));
    p->logits = buf;
}

void rad_declare_pooled(RadBuilder *b, rad_buf buf)
{
    (void)buf;
    unserved(b, "rad_declare_pooled", "embedding programs are not served");
}

void rad_declare_scores(RadBuilder *b)
{
    unserved(b, "rad_declare_scores", "host-side scored steps are not served");
}

void rad_note(RadBuilder *b, const char *fmt, ...)
{
    struct rad_plan *p = b->plan;
    struct radi_str s = { 0 };
    va_list ap;
    va_start(ap, fmt);
    radi_str_addv(&s, fmt, ap);
    va_end(ap);
    if (s.failed || radi_grow((void **)&p->note, &p->cap_notes, p->n_notes + 1, sizeof *p->note,
                              NULL))
        b->failed = true;
    else
        p->note[p->n_notes++] = copy(b, s.s ? s.s : "");
    radi_str_release(&s);
}

int rad_declare_fail(RadBuilder *b, int status, const char *fmt, ...)
{
    struct radi_str s = { 0 };
    va_list ap;
    va_start(ap, fmt);
    radi_str_addv(&s, fmt, ap);
    va_end(ap);
    if (status >= 0)
        status = RAD_E_UNSUPPORTED;
    if (!b->fail) {                              /* the first is the cause */
        b->fail = (rad_status)status;
        b->fail_text = radi_str_take(&s);
    }
    radi_str_release(&s);
    return status;
}

int rad_declare_drafter(RadBuilder *b, const RadDrafterDecl *d)
{
    return d->kind == RAD_DRAFT_NONE ? RAD_OK
        : unserved(b, "rad_declare_drafter", "drafters are not served");
}

void rad_drafter_shared_kv(RadBuilder *b)
{
    unserved(b, "rad_drafter_shared_kv", "drafters are not served");
}

void rad_drafter_tree(RadBuilder *b, int32_t width)
{
    (void)width;
    unserved(b, "rad_drafter_tree", "drafters are not served");
}

void rad_drafter_short_block(RadBuilder *b, int32_t block)
{
    (void)block;
    unserved(b, "rad_drafter_short_block", "drafters are not served");
}

int rad_declare_encoder(RadBuilder *b, const RadEncoderDecl *d)
{
    (void)d;
    return unserved(b, "rad_declare_encoder", "encoders are not served");
}

int rad_declare_generator(RadBuilder *b, const RadGeneratorDecl *d)
{
    (void)d;
    return unserved(b, "rad_declare_generator", "generators are not served");
}

int rad_declare_audio_generator(RadBuilder *b, const RadGeneratorDecl *d)
{
    (void)d;
    return unserved(b, "rad_declare_audio_generator", "generators are not served");
}

int rad_declare_video_generator(RadBuilder *b, const RadGeneratorDecl *d)
{
    (void)d;
    return unserved(b, "rad_declare_video_generator", "generators are not served");
}

void rad_set_state(RadBuilder *b, void *state, void (*fini)(void *))
{
    struct rad_plan *p = b->plan;
    if (p->state && p->state_fini)
        p->state_fini(p->state);
    p->state = state;
    p->state_fini = fini;
}
