/* SPDX-License-Identifier: Apache-2.0 */
/* Owns laying out a point: circuit and blocks become one list of nodes with
 * every number put in. Buffers of a block are shared by the layers that give
 * them the same shape; a state group is one kind, window and geometry. */
#include "config.h"

#include <cjson/cJSON.h>

#include "lab/lab.h"

#include "banned.h"

enum { MAX_NODES = 1 << 20, MAX_PARAMS = 64, MAX_NEST = 32 };
static const int64_t MAX_ELEMENTS = (int64_t)1 << 42;

struct graph {
    struct rad_lab_graph pub;
    struct radi_arena arena;
    struct rad_lab_weight *weight;
    struct rad_lab_const *constant;
    struct rad_lab_buffer *buffer;
    struct rad_lab_state *state;
    struct rad_lab_node *node;
    size_t weight_cap, const_cap, buffer_cap, state_cap, node_cap;
    struct radi_map *weight_name;
};

struct gb {
    struct graph *g;
    const struct rad_lab_point *p;
    const struct lab_circuit *c;
    int64_t n_layers;
    int *stream;                     /* buffer of each stream; -1: not written yet */
    struct rad_err *err;
};

/* One block at one place. */
struct inst {
    struct gb *g;
    const struct lab_block *b;
    const struct lab_ref *ref;
    int section;
    int32_t layer;
    struct lab_val *val;             /* of the block's parameters */
    uint8_t *known;
    int nest;
    int *edge, *weight, *state, *constant;   /* index in the graph, or -1 */
    bool *written;
    int form_base;
};

static rad_status no_mem(struct rad_err *err)
{
    return rad_fail(err, RAD_E_NOMEM, "out of memory for a graph");
}

#define GROW(gb, field, capf, n) \
    grow((gb), (void **)&(gb)->g->field, &(gb)->g->capf, (size_t)(n) + 1, \
         sizeof(*(gb)->g->field))
static rad_status grow(struct gb *b, void **p, size_t *cap, size_t want, size_t item)
{
    if (want > MAX_NODES)
        return rad_fail(b->err, RAD_E_FORMAT, "more than %d of one kind in a graph", MAX_NODES);
    return radi_grow(p, cap, want, item, b->err);
}

/* ---- parameters of a block at a place */
static rad_status circuit_get(void *user, bool key, const char *name, struct lab_val *out,
                              struct rad_err *err)
{
    struct inst *in = user;
    (void)key;
    if (!strcmp(name, "i")) {
        *out = (struct lab_val){ .t = LAB_INT, .i = in->layer };
        return in->layer >= 0 ? RAD_OK :
            rad_fail(err, RAD_E_FORMAT, "'i' has no value outside of layers");
    }
    if (lab_point_get(in->g->p, name, in->layer, out))
        return RAD_OK;
    for (int i = 0; i < in->g->c->n_params; i++) {
        const struct lab_param *q = &in->g->c->param[i];
        if (strcmp(q->name, name))
            continue;
        struct lab_env env = { circuit_get, in, &in->g->g->arena };
        if (++in->nest > MAX_NEST)
            return rad_fail(err, RAD_E_FORMAT, "'%s' depends on itself", name);
        rad_status st = q->def ? lab_ex_eval(q->def, &env, out, err) :
            rad_fail(err, RAD_E_NOTFOUND, "'%s' is not given", name);
        in->nest--;
        return st;
    }
    return rad_fail(err, RAD_E_NOTFOUND, "no parameter '%s'", name);
}

static rad_status block_get(void *user, bool key, const char *name, struct lab_val *out,
                            struct rad_err *err);

static rad_status block_param(struct inst *in, int at, struct lab_val *out, struct rad_err *err)
{
    const struct lab_param *q = &in->b->param[at];
    struct radi_arena *a = &in->g->g->arena;
    struct lab_env own = { block_get, in, a }, outer = { circuit_get, in, a };
    const struct lab_ex *set = NULL;
    rad_status st;

    if (in->known[at] == 2) {
        *out = in->val[at];
        return RAD_OK;
    }
    if (in->known[at] == 1)
        return rad_fail(err, RAD_E_FORMAT, "'%s' depends on itself", q->name);
    in->known[at] = 1;
    for (int i = 0; i < in->ref->n_sets; i++)
        if (!strcmp(in->ref->set[i].name, q->name))
            set = in->ref->set[i].val;
    if (set)
        st = lab_ex_eval(set, &outer, out, err);
    else if (lab_point_get(in->g->p, q->name, in->layer, out))
        st = RAD_OK;
    else
        st = q->def ? lab_ex_eval(q->def, &own, out, err) :
            rad_fail(err, RAD_E_NOTFOUND, "parameter '%s' is not given", q->name);
    if (!st)
        st = lab_param_check(q, out, err);
    if (st)
        return st;
    in->val[at] = *out;
    in->known[at] = 2;
    return RAD_OK;
}

static rad_status block_get(void *user, bool key, const char *name, struct lab_val *out,
                            struct rad_err *err)
{
    struct inst *in = user;
    (void)key;
    for (int i = 0; i < in->b->n_params; i++)
        if (!strcmp(in->b->param[i].name, name))
            return block_param(in, i, out, err);
    if (!strcmp(name, "i"))
        return circuit_get(user, false, name, out, err);
    return rad_fail(err, RAD_E_NOTFOUND, "no parameter '%s'", name);
}

static rad_status ev(struct inst *in, const struct lab_ex *e, struct lab_val *out)
{
    struct lab_env env = { block_get, in, &in->g->g->arena };
    return lab_ex_eval(e, &env, out, in->g->err);
}

static rad_status ev_bool(struct inst *in, const struct lab_ex *e, bool *out)
{
    struct lab_env env = { block_get, in, &in->g->g->arena };
    *out = true;
    return e ? lab_ex_bool(e, &env, out, in->g->err) : RAD_OK;
}

static rad_status ev_int(struct inst *in, const struct lab_ex *e, int64_t *out)
{
    struct lab_env env = { block_get, in, &in->g->g->arena };
    *out = 0;
    return e ? lab_ex_int(e, &env, out, in->g->err) : RAD_OK;
}

/* Extents are positive, and so is their bounded product. */
static rad_status shape(struct gb *b, const char *what, int64_t *dims, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 1 || __builtin_mul_overflow(n, dims[i], &n) || n > MAX_ELEMENTS)
            return rad_fail(b->err, RAD_E_FORMAT, "'%s': extent %d is %lld: no tensor has that",
                            what, i, (long long)dims[i]);
    return RAD_OK;
}

/* ---- buffers */
static rad_status buffer(struct gb *b, const char *name, const struct rad_lab_buffer *want,
                         int *out)
{
    struct graph *g = b->g;
    int same = 1;

    for (int i = 0; i < g->pub.n_buffers; i++) {
        struct rad_lab_buffer *o = &g->buffer[i];
        size_t n = strlen(name);
        if (strncmp(o->name, name, n) || (o->name[n] && o->name[n] != '~'))
            continue;
        if (o->rows == want->rows && o->rank == want->rank && !strcmp(o->dtype, want->dtype) &&
            !memcmp(o->shape, want->shape, sizeof(o->shape))) {
            *out = i;
            return RAD_OK;
        }
        same++;
    }
    RAD_TRY(GROW(b, buffer, buffer_cap, g->pub.n_buffers));
    struct rad_lab_buffer *n = &g->buffer[g->pub.n_buffers];
    *n = *want;
    n->name = same == 1 ? radi_arena_strndup(&g->arena, name, strlen(name))
                        : radi_arena_printf(&g->arena, "%s~%d", name, same);
    if (!n->name)
        return no_mem(b->err);
    *out = g->pub.n_buffers++;
    return RAD_OK;
}

static rad_status edge_buffer(struct inst *in, const struct lab_edge *e, const char *name,
                              const struct lab_env *env, int *out)
{
    struct rad_lab_buffer w = { .dtype = e->dtype, .rows = e->rows, .rank = e->rank };
    for (int i = 0; i < e->rank; i++)
        RAD_TRY(lab_ex_int(e->dim[i], env, &w.shape[i], in->g->err));
    RAD_TRY(shape(in->g, name, w.shape, w.rank));
    return buffer(in->g, name, &w, out);
}

/* ---- weights */
static rad_status expand(struct inst *in, const char *pattern, const char *suffix,
                         const char *name, const char **out)
{
    struct radi_str s = { 0 };
    for (const char *c = pattern; *c;) {
        if (!strncmp(c, "{i}", 3)) {
            radi_str_addf(&s, "%d", in->layer);
            c += 3;
        } else if (!strncmp(c, "{name}", 6)) {
            radi_str_adds(&s, name);
            suffix = "";
            c += 6;
        } else
            radi_str_addc(&s, *c++);
    }
    radi_str_adds(&s, suffix);
    *out = s.failed ? NULL : radi_arena_strndup(&in->g->g->arena, s.s ? s.s : "", s.len);
    radi_str_release(&s);
    return *out ? RAD_OK : no_mem(in->g->err);
}

static rad_status point_int(struct inst *in, const struct lab_ex *e, int64_t *out)
{
    struct lab_val v;
    *out = 0;
    if (!e)
        return RAD_OK;
    RAD_TRY(lab_point_eval((struct rad_lab_point *)(uintptr_t)in->g->p, e, in->layer,
                           &in->g->g->arena, &v, in->g->err));
    if (v.t != LAB_INT)
        return rad_fail(in->g->err, RAD_E_FORMAT, "'%s' is no integer", lab_ex_text(e));
    *out = v.i;
    return RAD_OK;
}

/* Where a checkpoint has the weight; *never when it has not, *maybe when it may
 * not have it. */
static rad_status name_map(struct inst *in, const struct lab_bweight *bw, const char *name,
                           RadNameMap *m, bool *never, bool *maybe)
{
    const struct lab_binding *b = lab_binding_find(in->g->p->map, bw->name);
    const char *suffix = lab_base_suffix(bw->name);
    const struct lab_source *s = NULL;
    int64_t index = -1;

    RADI_BUG_IF(!b);
    if (!strcmp(b->name, bw->name) || !suffix)
        suffix = "";
    for (int i = 0; i < b->n_sources && !s; i++) {
        struct lab_val v = { .t = LAB_BOOL, .b = true };
        if (b->source[i].when)
            RAD_TRY(lab_point_eval((struct rad_lab_point *)(uintptr_t)in->g->p,
                                   b->source[i].when, in->layer, &in->g->g->arena, &v,
                                   in->g->err));
        if (v.t == LAB_BOOL && v.b)
            s = &b->source[i];
    }
    RADI_BUG_IF(!s);
    *never = s->mode < 0;
    *maybe = s->optional;
    if (*never)
        return RAD_OK;
    *m = (RadNameMap){ .declared = name, .mode = s->mode, .n_src = s->n_src,
                       .concat_dim = s->dim };
    if (s->index)
        RAD_TRY(point_int(in, s->index, &index));
    for (int i = 0; i < s->n_src; i++) {
        RAD_TRY(expand(in, s->src[i], suffix, name, &m->src[i]));
        m->src_index[i] = index;
    }
    RAD_TRY(point_int(in, s->first, &m->first));
    RAD_TRY(point_int(in, s->every, &m->every));
    return point_int(in, s->count, &m->count);
}

static bool same_shape(const RadWeightDecl *a, const RadWeightDecl *b)
{
    return a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof(a->shape));
}

static rad_status weight(struct inst *in, int at)
{
    const struct lab_bweight *bw = &in->b->weight[at];
    struct gb *b = in->g;
    struct rad_lab_weight w = { .refuse = bw->refuse, .fallback = -1 };
    bool present, never, maybe;
    uint64_t old;

    int other = bw->fallback < 0 ? -1 : in->weight[bw->fallback];

    in->weight[at] = -1;
    RAD_TRY(ev_bool(in, bw->when, &present));
    if (!present)
        return RAD_OK;
    bool layer = in->layer >= 0 && !bw->global;
    w.name = layer ? radi_arena_printf(&b->g->arena, "blk.%d.%s", in->layer, bw->name) : bw->name;
    if (!w.name)
        return no_mem(b->err);
    RAD_TRY(name_map(in, bw, w.name, &w.map, &never, &maybe));
    if (never && other < 0)
        return RAD_OK;
    w.decl = (RadWeightDecl){ .rank = bw->rank, .access = bw->access, .shard = bw->shard,
                              .group = layer ? rad_group_layer(in->layer) : rad_group_model(),
                              .optional = bw->optional || maybe };
    for (int i = 0; i < bw->rank; i++)
        RAD_TRY(ev_int(in, bw->dim[i], &w.decl.shape[i]));
    RAD_TRY(shape(b, w.name, w.decl.shape, w.decl.rank));
    if (other >= 0 && !same_shape(&b->g->weight[other].decl, &w.decl))
        return rad_fail(b->err, RAD_E_FORMAT, "weight '%s': '%s' stands in for it but has another "
                        "shape", w.name, b->g->weight[other].name);
    if (never) {
        in->weight[at] = other;
        return RAD_OK;
    }
    w.fallback = maybe ? other : -1;
    if (radi_map_get(b->g->weight_name, w.name, strlen(w.name), &old)) {
        const struct rad_lab_weight *o = &b->g->weight[old];
        if (!same_shape(&o->decl, &w.decl))
            return rad_fail(b->err, RAD_E_FORMAT, "weight '%s' is declared with two shapes",
                            w.name);
        in->weight[at] = (int)old;
        return RAD_OK;
    }
    RAD_TRY(GROW(b, weight, weight_cap, b->g->pub.n_weights));
    if (!radi_map_put(b->g->weight_name, w.name, strlen(w.name), (uint64_t)b->g->pub.n_weights,
                      NULL))
        return no_mem(b->err);
    b->g->weight[b->g->pub.n_weights] = w;
    in->weight[at] = b->g->pub.n_weights++;
    return RAD_OK;
}

/* ---- states */
static rad_status state_kind(struct inst *in, const struct lab_bstate *s, int32_t *out)
{
    static const char *const name[] = { "full", "window", "linear", "conv", "ring" };
    struct lab_val v;
    RAD_TRY(ev(in, s->kind, &v));
    for (size_t i = 0; v.t == LAB_STR && i < RADI_COUNT(name); i++)
        if (!strcmp(name[i], v.s)) {
            *out = (int32_t)i;
            return RAD_OK;
        }
    return rad_fail(in->g->err, RAD_E_FORMAT,
                    "state '%s': want one of full, window, linear, conv, ring", s->name);
}

static rad_status state(struct inst *in, int at)
{
    static const char *const suffix[] = { "full", "window", "linear", "conv", "ring" };
    const struct lab_bstate *s = &in->b->state[at];
    struct gb *b = in->g;
    RadKvGroupDecl d = { 0 };
    int found = -1, same = 1;

    RAD_TRY(state_kind(in, s, &d.kind));
    RAD_TRY(ev_int(in, s->window, &d.window));
    RAD_TRY(ev_int(in, s->heads, &d.n_head_kv));
    RAD_TRY(ev_int(in, s->dim, &d.head_dim));
    RAD_TRY(ev_int(in, s->rows, &d.state_dim[0]));
    RAD_TRY(ev_int(in, s->cols, &d.state_dim[1]));
    RAD_TRY(ev_int(in, s->width, &d.conv_width));
    for (int i = 0; i < b->g->pub.n_states; i++) {
        const RadKvGroupDecl *o = &b->g->state[i].decl;
        same += o->kind == d.kind;
        if (o->kind == d.kind && o->window == d.window && o->n_head_kv == d.n_head_kv &&
            o->head_dim == d.head_dim && o->state_dim[0] == d.state_dim[0] &&
            o->state_dim[1] == d.state_dim[1] && o->conv_width == d.conv_width)
            found = i;
    }
    if (found < 0) {
        RAD_TRY(GROW(b, state, state_cap, b->g->pub.n_states));
        struct rad_lab_state *n = &b->g->state[b->g->pub.n_states];
        *n = (struct rad_lab_state){ .decl = d };
        n->name = same == 1 ? radi_arena_printf(&b->g->arena, "%s.%s", s->name, suffix[d.kind])
                            : radi_arena_printf(&b->g->arena, "%s.%s~%d", s->name,
                                                suffix[d.kind], same);
        /* at most one entry a layer and state */
        n->layer = radi_arena_array(&b->g->arena, (size_t)b->n_layers * 2 + 64,
                                    sizeof(*n->layer));
        if (!n->name || !n->layer)
            return no_mem(b->err);
        found = b->g->pub.n_states++;
    }
    struct rad_lab_state *o = &b->g->state[found];
    if (o->n_layers && o->layer[o->n_layers - 1] == in->layer)
        return rad_fail(b->err, RAD_E_UNSUPPORTED, "two states of one kind in layer %d", in->layer);
    if (o->n_layers >= b->n_layers * 2 + 64)
        return rad_fail(b->err, RAD_E_FORMAT, "too many layers");
    ((int32_t *)(uintptr_t)o->layer)[o->n_layers++] = in->layer;
    in->state[at] = found;
    return RAD_OK;
}

/* ---- constants */
static rad_status constant(struct inst *in, int at)
{
    const struct lab_bconst *k = &in->b->constant[at];
    struct gb *b = in->g;
    struct lab_fn_arg arg[32];
    struct rad_lab_const c = { 0 };
    bool present;
    int same = 1;
    size_t n = 1;

    in->constant[at] = -1;
    RAD_TRY(ev_bool(in, k->when, &present));
    if (!present)
        return RAD_OK;
    RADI_BUG_IF(k->n_args > (int)RADI_COUNT(arg));
    for (int i = 0; i < k->n_args; i++) {
        arg[i].name = k->arg[i];
        RAD_TRY(ev(in, k->val[i], &arg[i].v));
    }
    RAD_TRY(lab_fn_call(k->fn, arg, k->n_args, &b->g->arena, &c, b->err));
    for (int i = 0; i < c.rank; i++)
        n *= (size_t)c.shape[i];
    for (int i = 0; i < b->g->pub.n_consts; i++) {
        const struct rad_lab_const *o = &b->g->constant[i];
        if (o->rank == c.rank && !memcmp(o->shape, c.shape, sizeof(o->shape)) &&
            !memcmp(o->data, c.data, n * sizeof(float))) {
            in->constant[at] = i;
            return RAD_OK;
        }
        same += !strncmp(o->name, k->name, strlen(k->name));
    }
    c.name = same == 1 ? k->name : radi_arena_printf(&b->g->arena, "%s~%d", k->name, same);
    if (!c.name)
        return no_mem(b->err);
    RAD_TRY(GROW(b, constant, const_cap, b->g->pub.n_consts));
    b->g->constant[b->g->pub.n_consts] = c;
    in->constant[at] = b->g->pub.n_consts++;
    return RAD_OK;
}

/* ---- nodes */
static rad_status params(struct inst *in, const struct lab_bnode *bn, struct rad_lab_node *n)
{
    RadParam p[MAX_PARAMS];
    int k = 0;

    for (int i = 0; i < bn->n_params; i++) {
        bool on;
        struct lab_val v;
        int at = 0;
        RAD_TRY(ev_bool(in, bn->param[i].when, &on));
        if (!on)
            continue;
        RAD_TRY(ev(in, bn->param[i].val, &v));
        while (at < k && strcmp(p[at].key, bn->param[i].key))
            at++;
        if (at == MAX_PARAMS)
            return rad_fail(in->g->err, RAD_E_FORMAT, "more than %d parameters", MAX_PARAMS);
        k += at == k;
        p[at] = (RadParam){ .key = bn->param[i].key };
        if (v.t == LAB_INT || v.t == LAB_BOOL) {
            p[at].kind = RAD_PK_INT;
            p[at].ival = v.t == LAB_INT ? v.i : v.b;
        } else if (v.t == LAB_REAL) {
            p[at].kind = RAD_PK_REAL;
            p[at].dval = v.d;
        } else if (v.t == LAB_STR) {
            p[at].kind = RAD_PK_STR;
            p[at].sval = v.s;
        } else
            return rad_fail(in->g->err, RAD_E_FORMAT, "parameter '%s' is %s", p[at].key,
                            lab_vtype_name(v.t));
    }
    RadParam *mem = radi_arena_array(&in->g->g->arena, (size_t)k + 1, sizeof(*mem));
    if (!mem)
        return no_mem(in->g->err);
    memcpy(mem, p, (size_t)k * sizeof(*mem));
    n->param = mem;
    n->n_params = k;
    return RAD_OK;
}

static int find_name(const char *const *name, size_t stride, int n, const char *want)
{
    for (int i = 0; i < n; i++) {
        const char *s;
        memcpy(&s, (const char *)name + (size_t)i * stride, sizeof(s));
        if (!strcmp(s, want))
            return i;
    }
    return -1;
}
/* the name is the first member of every row */
#define FIND(tab, n, want) \
    find_name((const char *const *)(const void *)(tab), sizeof(*(tab)), (n), (want))

static rad_status operand_edge(struct inst *in, const struct lab_barg *a, struct rad_lab_arg *o)
{
    struct gb *b = in->g;
    bool ready;

    if (a->other && !in->written[FIND(in->b->edge, in->b->n_edges, a->name)])
        a = a->other;
    if (a->stream) {
        int s = FIND(b->c->stream, b->c->n_streams, a->name);
        RADI_BUG_IF(s < 0);
        ready = b->stream[s] >= 0;
        if (!ready) {
            struct lab_env env = { circuit_get, in, &b->g->arena };
            RAD_TRY(edge_buffer(in, &b->c->stream[s], a->name, &env, &o->index));
            if (a->access == RAD_LAB_WRITE)
                b->stream[s] = o->index;
        } else
            o->index = b->stream[s];
    } else {
        int e = FIND(in->b->edge, in->b->n_edges, a->name);
        RADI_BUG_IF(e < 0);
        ready = in->written[e];
        if (in->edge[e] < 0) {
            struct lab_env env = { block_get, in, &b->g->arena };
            char *name = radi_arena_printf(&b->g->arena, "%s.%s", in->ref->as, a->name);
            if (!name)
                return no_mem(b->err);
            RAD_TRY(edge_buffer(in, &in->b->edge[e], name, &env, &in->edge[e]));
        }
        o->index = in->edge[e];
        if (a->access & RAD_LAB_WRITE)
            in->written[e] = true;
    }
    if ((a->access & RAD_LAB_READ) && !ready)
        return rad_fail(b->err, RAD_E_FORMAT, "'%s' is read before anything writes it", a->name);
    if (!a->cols)
        return RAD_OK;
    const struct rad_lab_buffer *buf = &b->g->buffer[o->index];
    int64_t width = 1;
    for (int i = 1; i < buf->rank; i++)
        width *= buf->shape[i];
    RAD_TRY(ev_int(in, a->col0, &o->col0));
    RAD_TRY(ev_int(in, a->cols, &o->cols));
    if (o->col0 < 0 || o->cols < 1 || o->col0 > width || o->cols > width - o->col0)
        return rad_fail(b->err, RAD_E_FORMAT, "'%s': columns %lld + %lld of %lld", a->name,
                        (long long)o->col0, (long long)o->cols, (long long)width);
    return RAD_OK;
}

static rad_status operand(struct inst *in, const struct lab_barg *a, struct rad_lab_arg *o)
{
    int at;

    *o = (struct rad_lab_arg){ .kind = a->kind, .access = a->access, .batch = a->batch,
                               .index = -1 };
    switch (a->kind) {
    case RAD_LAB_ARG_BUFFER:
        return operand_edge(in, a, o);
    case RAD_LAB_ARG_WEIGHT:
    case RAD_LAB_ARG_CONST:
        at = a->kind == RAD_LAB_ARG_WEIGHT ? FIND(in->b->weight, in->b->n_weights, a->name)
                                           : FIND(in->b->constant, in->b->n_consts, a->name);
        RADI_BUG_IF(at < 0);
        o->index = a->kind == RAD_LAB_ARG_WEIGHT ? in->weight[at] : in->constant[at];
        return o->index >= 0 || a->maybe ? RAD_OK :
            rad_fail(in->g->err, RAD_E_FORMAT, "'%s' is absent at this point", a->name);
    case RAD_LAB_ARG_CACHE:
    case RAD_LAB_ARG_BATCH:
        if (a->name) {
            at = FIND(in->b->state, in->b->n_states, a->name);
            RADI_BUG_IF(at < 0);
            o->index = in->state[at];
        }
        return RAD_OK;
    default:
        return RAD_OK;
    }
}

static rad_status node(struct inst *in, const struct lab_bnode *bn)
{
    struct gb *b = in->g;
    bool on;

    RAD_TRY(ev_bool(in, bn->when, &on));
    if (!on)
        return RAD_OK;
    struct rad_lab_node n = { .op = bn->op, .block = in->ref->as, .section = in->section,
        .layer = in->layer, .rows = bn->rows, .half = bn->half, .range = bn->range,
        .forms = bn->forms < 0 ? -1 : in->form_base + bn->forms, .form = bn->form };
    RAD_TRY(params(in, bn, &n));
    struct rad_lab_arg *arg = radi_arena_array(&b->g->arena, (size_t)bn->n_args + 1,
                                               sizeof(*arg));
    if (!arg)
        return no_mem(b->err);
    /* what is read must have been written before this node */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < bn->n_args; i++)
            if ((bn->arg[i].access == RAD_LAB_WRITE) == (pass == 1))
                RAD_TRY(operand(in, &bn->arg[i], &arg[i]));
    n.arg = arg;
    n.n_args = bn->n_args;
    RAD_TRY(GROW(b, node, node_cap, b->g->pub.n_nodes));
    b->g->node[b->g->pub.n_nodes++] = n;
    return RAD_OK;
}

static rad_status block_checks(struct inst *in)
{
    for (int i = 0; i < in->b->n_checks; i++) {
        const struct lab_check *c = &in->b->check[i];
        struct lab_val v;
        struct radi_str s = { 0 };
        bool hit;
        RAD_TRY(ev_bool(in, c->cond, &hit));
        if (!hit)
            continue;
        RAD_TRY(block_get(in, false, c->key[0], &v, in->g->err));
        lab_val_text(&s, &v);
        rad_fail(in->g->err, c->bad ? RAD_E_FORMAT : RAD_E_UNSUPPORTED, "parameter '%s' (%s): %s",
                 c->key[0], s.s ? s.s : "", c->reason);
        radi_str_release(&s);
        return c->bad ? RAD_E_FORMAT : RAD_E_UNSUPPORTED;
    }
    return RAD_OK;
}

static rad_status inst_body(struct inst *in)
{
    struct lab_val v;
    for (int i = 0; i < in->b->n_params; i++)
        RAD_TRY(block_param(in, i, &v, in->g->err));
    RAD_TRY(block_checks(in));
    for (int i = 0; i < in->b->n_weights; i++)
        RAD_TRY(weight(in, i));
    for (int i = 0; i < in->b->n_states; i++)
        RAD_TRY(state(in, i));
    for (int i = 0; i < in->b->n_consts; i++)
        RAD_TRY(constant(in, i));
    for (int i = 0; i < in->b->n_nodes; i++) {
        rad_status st = node(in, &in->b->node[i]);
        if (st)
            return rad_fail_in(in->g->err, st, "node %d (%s)", i, in->b->node[i].op);
    }
    return RAD_OK;
}

static rad_status instance(struct gb *b, const struct lab_ref *ref, int section, int32_t layer)
{
    struct inst in = { .g = b, .b = ref->block, .ref = ref, .section = section, .layer = layer,
                       .form_base = b->g->pub.n_form_sets };
    struct radi_arena *a = &b->g->arena;
    const struct lab_block *k = ref->block;

    if (ref->when) {
        struct lab_env env = { circuit_get, &in, a };
        bool on;
        RAD_TRY(lab_ex_bool(ref->when, &env, &on, b->err));
        if (!on)
            return RAD_OK;
    }
    in.val = radi_arena_array(a, (size_t)k->n_params + 1, sizeof(*in.val));
    in.known = radi_arena_array(a, (size_t)k->n_params + 1, 1);
    in.edge = radi_arena_array(a, (size_t)k->n_edges + 1, sizeof(int));
    in.written = radi_arena_array(a, (size_t)k->n_edges + 1, sizeof(bool));
    in.weight = radi_arena_array(a, (size_t)k->n_weights + 1, sizeof(int));
    in.state = radi_arena_array(a, (size_t)k->n_states + 1, sizeof(int));
    in.constant = radi_arena_array(a, (size_t)k->n_consts + 1, sizeof(int));
    if (!in.val || !in.known || !in.edge || !in.written || !in.weight || !in.state ||
        !in.constant)
        return no_mem(b->err);
    for (int i = 0; i < k->n_edges; i++)
        in.edge[i] = -1;
    b->g->pub.n_form_sets += k->n_form_sets;
    rad_status st = inst_body(&in);
    if (!st)
        return RAD_OK;
    return layer < 0 ? rad_fail_in(b->err, st, "block '%s'", k->name)
                     : rad_fail_in(b->err, st, "layer %d: block '%s'", layer, k->name);
}

static rad_status all(struct gb *b, const struct lab_refs *r, int section, int32_t layer)
{
    for (int i = 0; i < r->n; i++)
        RAD_TRY(instance(b, &r->ref[i], section, layer));
    return RAD_OK;
}

static rad_status layers(struct gb *b)
{
    for (int32_t l = 0; l < (int32_t)b->n_layers; l++) {
        struct inst in = { .g = b, .layer = l };
        struct lab_env env = { circuit_get, &in, &b->g->arena };
        const struct lab_kind *k = NULL;
        struct lab_val v;
        RAD_TRY(lab_ex_eval(b->c->kind, &env, &v, b->err));
        for (int i = 0; v.t == LAB_STR && i < b->c->n_kinds; i++)
            if (!strcmp(b->c->layer[i].name, v.s))
                k = &b->c->layer[i];
        if (!k)
            return rad_fail(b->err, RAD_E_UNSUPPORTED, "layer %d: circuit '%s' has no kind '%s'",
                            l, b->c->name, v.t == LAB_STR ? v.s : lab_vtype_name(v.t));
        RAD_TRY(all(b, &k->refs, RAD_LAB_LAYER, l));
    }
    return RAD_OK;
}

static rad_status layout(struct gb *b)
{
    struct inst in = { .g = b, .layer = -1 };
    struct lab_env env = { circuit_get, &in, &b->g->arena };
    int64_t drafts = 0;

    b->stream = radi_arena_array(&b->g->arena, (size_t)b->c->n_streams + 1, sizeof(int));
    if (!b->stream)
        return no_mem(b->err);
    for (int i = 0; i < b->c->n_streams; i++)
        b->stream[i] = -1;
    RAD_TRY(lab_ex_int(b->c->count, &env, &b->n_layers, b->err));
    if (b->n_layers < 1 || b->n_layers > 4096)
        return rad_fail(b->err, RAD_E_FORMAT, "%lld layers", (long long)b->n_layers);
    RAD_TRY(all(b, &b->c->prologue, RAD_LAB_PROLOGUE, -1));
    RAD_TRY(layers(b));
    RAD_TRY(all(b, &b->c->epilogue, RAD_LAB_EPILOGUE, -1));
    if (b->c->draft_count)
        RAD_TRY(lab_ex_int(b->c->draft_count, &env, &drafts, b->err));
    if (drafts < 0 || drafts > 32)
        return rad_fail(b->err, RAD_E_FORMAT, "%lld draft layers", (long long)drafts);
    for (int64_t i = 0; i < drafts; i++)
        RAD_TRY(all(b, &b->c->draft, RAD_LAB_DRAFT, (int32_t)(b->n_layers + i)));
    b->g->pub.logits = -1;
    for (int i = 0; i < b->c->n_streams; i++)
        if (b->c->logits && !strcmp(b->c->stream[i].name, b->c->logits))
            b->g->pub.logits = b->stream[i];
    return b->c->logits && b->g->pub.logits < 0 ?
        rad_fail(b->err, RAD_E_FORMAT, "nothing writes '%s'", b->c->logits) : RAD_OK;
}

rad_status rad_lab_graph_new(const struct rad_lab *lab, const struct rad_lab_point *p,
                             struct rad_lab_graph **out, struct rad_err *err)
{
    struct graph *g = radi_calloc(1, sizeof(*g));
    struct gb b = { .g = g, .p = p, .c = p->map->circuit, .err = err };

    (void)lab;
    *out = NULL;
    if (!g)
        return no_mem(err);
    radi_arena_init(&g->arena, (size_t)1 << 30);
    g->weight_name = radi_map_new(256);
    rad_status st = g->weight_name ? layout(&b) : no_mem(err);
    if (st) {
        rad_lab_graph_free(&g->pub);
        return rad_fail_in(err, st, "circuit '%s'", p->map->circuit->name);
    }
    g->pub.size = sizeof(g->pub);
    g->pub.n_layers = (int32_t)b.n_layers;
    g->pub.weight = g->weight;
    g->pub.constant = g->constant;
    g->pub.buffer = g->buffer;
    g->pub.state = g->state;
    g->pub.node = g->node;
    *out = &g->pub;
    return RAD_OK;
}

void rad_lab_graph_free(struct rad_lab_graph *pub)
{
    struct graph *g = (struct graph *)pub;
    if (!g)
        return;
    radi_free(g->weight);
    radi_free(g->constant);
    radi_free(g->buffer);
    radi_free(g->state);
    radi_free(g->node);
    radi_map_free(g->weight_name);
    radi_arena_release(&g->arena);
    radi_free(g);
}
