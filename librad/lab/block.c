/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the parsed form of a block file: parameters, edges, weights, states,
 * constants and nodes, each checked to be used, every name checked to be
 * declared. Ops and their operand order are the kernels' schemas: they are
 * checked when the graph is declared, not here. */
#include "config.h"

#include <cjson/cJSON.h>

#include "lab/lab.h"

#include "banned.h"

struct bp {
    struct rad_lab *lab;
    struct lab_block *b;
    struct rad_err *err;
};

static rad_status use(struct bp *p, const struct lab_at *at, const struct lab_ex *e)
{
    return lab_params_use(at, p->b->param, p->b->n_params, "i", e, p->err);
}

/* An array for the members of an object or array. */
static rad_status table(struct bp *p, const struct lab_at *at, const struct cJSON *j, bool object,
                        size_t item, void *out)
{
    void *mem;
    if (object)
        RAD_TRY(lab_want_object(at, j, NULL, p->err));
    else
        RAD_TRY(lab_want_array(at, j, p->err));
    mem = radi_arena_array(&p->lab->arena, (size_t)cJSON_GetArraySize(j) + 1, item);
    if (!mem)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    memcpy(out, &mem, sizeof(mem));
    return RAD_OK;
}

/* ---- names of the four kinds */
#define FIND(kind, type, field, count)                                   \
    static struct type *find_##kind(const struct lab_block *b, const char *name) \
    {                                                                    \
        for (int i = 0; i < b->count; i++)                               \
            if (!strcmp(b->field[i].name, name))                         \
                return &b->field[i];                                     \
        return NULL;                                                     \
    }
FIND(edge, lab_edge, edge, n_edges)
FIND(weight, lab_bweight, weight, n_weights)
FIND(state, lab_bstate, state, n_states)
FIND(const, lab_bconst, constant, n_consts)

static bool is_stream(const struct lab_block *b, const char *name)
{
    for (int i = 0; i < b->n_streams; i++)
        if (!strcmp(b->stream[i], name))
            return true;
    return false;
}

/* ---- sections */
static rad_status streams(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(table(p, at, j, false, sizeof(char *), &p->b->stream));
    for (const cJSON *c = j->child; c; c = c->next) {
        if (!cJSON_IsString(c))
            return lab_at_fail(at, p->err, "want names");
        p->b->stream[p->b->n_streams++] = c->valuestring;
    }
    return RAD_OK;
}

static rad_status edges(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(table(p, at, j, true, sizeof(struct lab_edge), &p->b->edge));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_edge *e = &p->b->edge[p->b->n_edges];
        struct lab_at in = lab_at_key(at, c->string);
        e->name = c->string;
        if (is_stream(p->b, e->name))
            return lab_at_fail(&in, p->err, "the name of a stream");
        RAD_TRY(lab_edge_parse(p->lab, &in, c, e, p->err));
        for (int i = 0; i < e->rank; i++)
            RAD_TRY(use(p, &in, e->dim[i]));
        p->b->n_edges++;
    }
    return RAD_OK;
}

static rad_status word(struct bp *p, const struct lab_at *at, const struct cJSON *o,
                       const char *key, const char *const *words, int n, int *out)
{
    const char *s;
    struct lab_at in = lab_at_key(at, key);
    RAD_TRY(lab_want_str(at, o, key, false, &s, p->err));
    *out = 0;
    for (int i = 0; s && i < n; i++)
        if (!strcmp(words[i], s)) {
            *out = i;
            return RAD_OK;
        }
    return s ? lab_at_fail(&in, p->err, "'%s' is none of its words", s) : RAD_OK;
}

/* Names a weight that stands before this one, so that there is no circle. */
static rad_status fallback(struct bp *p, const struct lab_at *at, const struct cJSON *j,
                           struct lab_bweight *w)
{
    const char *name;
    struct lab_at in = lab_at_key(at, "fallback");
    w->fallback = -1;
    RAD_TRY(lab_want_str(at, j, "fallback", false, &name, p->err));
    for (int i = 0; name && i < p->b->n_weights; i++)
        if (!strcmp(p->b->weight[i].name, name)) {
            w->fallback = i;
            p->b->weight[i].used = true;
            return RAD_OK;
        }
    return name ? lab_at_fail(&in, p->err, "no weight '%s' stands before this one", name) : RAD_OK;
}

static rad_status weight(struct bp *p, const struct lab_at *at, const struct cJSON *j,
                         struct lab_bweight *w)
{
    static const char *const access[] = { "token", "request", "conditional", "rare", "vocab" };
    static const char *const shard[] = { "none", "row", "col" };
    const cJSON *shape = radi_json_get(j, "shape");
    struct lab_at in = lab_at_key(at, "shape");

    RAD_TRY(lab_want_object(at, j, "shape access shard when global optional refuse fallback",
                            p->err));
    RAD_TRY(lab_want_array(&in, shape, p->err));
    for (const cJSON *c = shape->child; c; c = c->next) {
        struct lab_at el = lab_at_index(&in, w->rank);
        if (w->rank == LAB_MAX_DIMS)
            return lab_at_fail(&in, p->err, "more than %d extents", LAB_MAX_DIMS);
        RAD_TRY(lab_want_expr(p->lab, &el, c, &w->dim[w->rank], p->err));
        RAD_TRY(use(p, &el, w->dim[w->rank++]));
    }
    if (!w->rank)
        return lab_at_fail(&in, p->err, "empty");
    RAD_TRY(word(p, at, j, "access", access, (int)RADI_COUNT(access), &w->access));
    RAD_TRY(word(p, at, j, "shard", shard, (int)RADI_COUNT(shard), &w->shard));
    RAD_TRY(lab_want_bool(at, j, "global", false, &w->global, p->err));
    RAD_TRY(lab_want_bool(at, j, "optional", false, &w->optional, p->err));
    RAD_TRY(lab_want_str(at, j, "refuse", false, &w->refuse, p->err));
    if (w->refuse && !w->optional)
        return lab_at_fail(at, p->err, "'refuse' wants an optional weight");
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "when", false, &w->when, p->err));
    w->used = w->refuse != NULL;
    RAD_TRY(fallback(p, at, j, w));
    return use(p, at, w->when);
}

static rad_status weights(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(table(p, at, j, true, sizeof(struct lab_bweight), &p->b->weight));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        p->b->weight[p->b->n_weights].name = c->string;
        RAD_TRY(weight(p, &in, c, &p->b->weight[p->b->n_weights]));
        p->b->n_weights++;
    }
    return RAD_OK;
}

static rad_status states(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(table(p, at, j, true, sizeof(struct lab_bstate), &p->b->state));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_bstate *s = &p->b->state[p->b->n_states++];
        struct {
            const char *key;
            struct lab_ex **to;
        } part[] = { { "kind", &s->kind }, { "window", &s->window }, { "heads", &s->heads },
                     { "dim", &s->dim }, { "rows", &s->rows }, { "cols", &s->cols },
                     { "width", &s->width } };
        s->name = c->string;
        RAD_TRY(lab_want_object(&in, c, "kind window heads dim rows cols width", p->err));
        for (size_t i = 0; i < RADI_COUNT(part); i++) {
            RAD_TRY(lab_want_expr_key(p->lab, &in, c, part[i].key, i == 0, part[i].to, p->err));
            RAD_TRY(use(p, &in, *part[i].to));
        }
    }
    return RAD_OK;
}

static rad_status constants(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(table(p, at, j, true, sizeof(struct lab_bconst), &p->b->constant));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string), args = lab_at_key(&in, "args");
        struct lab_bconst *k = &p->b->constant[p->b->n_consts++];
        const cJSON *a = radi_json_get(c, "args");
        k->name = c->string;
        RAD_TRY(lab_want_object(&in, c, "fn when args", p->err));
        RAD_TRY(lab_want_str(&in, c, "fn", true, &k->fn, p->err));
        if (!lab_fn_known(k->fn))
            return lab_at_fail(&in, p->err, "no function '%s'", k->fn);
        RAD_TRY(lab_want_expr_key(p->lab, &in, c, "when", false, &k->when, p->err));
        RAD_TRY(use(p, &in, k->when));
        RAD_TRY(table(p, &args, a, true, sizeof(char *), &k->arg));
        RAD_TRY(table(p, &args, a, true, sizeof(struct lab_ex *), &k->val));
        for (const cJSON *v = a->child; v; v = v->next) {
            struct lab_at el = lab_at_key(&args, v->string);
            if (!lab_fn_arg_known(k->fn, v->string))
                return lab_at_fail(&el, p->err, "'%s' takes no such argument", k->fn);
            k->arg[k->n_args] = v->string;
            RAD_TRY(lab_want_expr(p->lab, &el, v, &k->val[k->n_args], p->err));
            RAD_TRY(use(p, &el, k->val[k->n_args++]));
        }
    }
    return RAD_OK;
}

/* ---- operands:  edge   >edge (written)   ~edge (both)   edge[col : cols]
 *   edge|edge (the first that something wrote)
 *   #weight   ?#weight (absent with its weight)   %constant   &state (its cache)
 *   @batch field   @state.field   - (absent) */
static const struct {
    const char *name;
    uint8_t id;
    bool of_state;
} batch_field[] = {
    { "token_ids", RAD_LAB_TOKEN_IDS, false }, { "positions", RAD_LAB_POSITIONS, false },
    { "cu_seqlens", RAD_LAB_CU_SEQLENS, false }, { "seq_ids", RAD_LAB_SEQ_IDS, false },
    { "out_ids", RAD_LAB_OUT_IDS, false }, { "q_lens", RAD_LAB_Q_LENS, false },
    { "ctx_lens", RAD_LAB_CTX_LENS, false }, { "num_accepted", RAD_LAB_NUM_ACCEPTED, false },
    { "slot_mapping", RAD_LAB_SLOT_MAPPING, true }, { "block_table", RAD_LAB_BLOCK_TABLE, true },
    { "seqused", RAD_LAB_SEQUSED, true }, { "state_index", RAD_LAB_STATE_INDEX, true },
};

static rad_status arg_batch(struct bp *p, const struct lab_at *at, const char *s,
                            struct lab_barg *a)
{
    const char *dot = strchr(s, '.'), *field = dot ? dot + 1 : s;

    a->kind = RAD_LAB_ARG_BATCH;
    if (dot) {
        const char *name = radi_arena_strndup(&p->lab->arena, s, (size_t)(dot - s));
        struct lab_bstate *st = name ? find_state(p->b, name) : NULL;
        if (!st)
            return lab_at_fail(at, p->err, "'@%s': no such state", s);
        st->used = true;
        a->name = st->name;
    }
    for (size_t i = 0; i < RADI_COUNT(batch_field); i++)
        if (!strcmp(batch_field[i].name, field) && batch_field[i].of_state == (dot != NULL)) {
            a->batch = batch_field[i].id;
            return RAD_OK;
        }
    return lab_at_fail(at, p->err, "'@%s': no such field of the batch", s);
}

static rad_status arg_edge(struct bp *p, const struct lab_at *at, const char *s,
                           struct lab_barg *a)
{
    const char *open = strchr(s, '[');
    size_t n = open ? (size_t)(open - s) : strlen(s);
    char *name = radi_arena_strndup(&p->lab->arena, s, n);
    struct lab_edge *e;

    if (!name)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    a->kind = RAD_LAB_ARG_BUFFER;
    a->name = name;
    if (is_stream(p->b, name))
        a->stream = true;
    else if ((e = find_edge(p->b, name)))
        e->used = true;
    else
        return lab_at_fail(at, p->err, "'%s': no such edge or stream", name);
    if (!open)
        return RAD_OK;
    const char *mid = strchr(open, ':'), *end = strrchr(open, ']');
    if (!mid || !end || end[1] || end < mid)
        return lab_at_fail(at, p->err, "'%s': want edge[column : columns]", s);
    char *c0 = radi_arena_strndup(&p->lab->arena, open + 1, (size_t)(mid - open - 1));
    char *nc = radi_arena_strndup(&p->lab->arena, mid + 1, (size_t)(end - mid - 1));
    if (!c0 || !nc)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    rad_status st = lab_ex_parse(&p->lab->arena, c0, &a->col0, p->err);
    if (!st)
        st = lab_ex_parse(&p->lab->arena, nc, &a->cols, p->err);
    if (st)
        return lab_at_in(at, st, p->err);
    RAD_TRY(use(p, at, a->col0));
    return use(p, at, a->cols);
}

/* "h|x": h where a node before this one wrote it, else x */
static rad_status arg_read(struct bp *p, const struct lab_at *at, const char *s,
                           struct lab_barg *a)
{
    const char *bar = strchr(s, '|');
    if (!bar)
        return arg_edge(p, at, s, a);
    const char *first = radi_arena_strndup(&p->lab->arena, s, (size_t)(bar - s));
    struct lab_barg *o = radi_arena_alloc(&p->lab->arena, sizeof(*o));
    if (!first || !o)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    RAD_TRY(arg_edge(p, at, first, a));
    if (a->stream)
        return lab_at_fail(at, p->err, "'%s': want an edge before '|'", s);
    o->access = a->access;
    a->other = o;
    return arg_edge(p, at, bar + 1, o);
}

static rad_status arg(struct bp *p, const struct lab_at *at, const char *s, struct lab_barg *a)
{
    struct lab_bweight *w;
    struct lab_bstate *st;
    struct lab_bconst *k;

    a->access = RAD_LAB_READ;
    if (!strcmp(s, "-"))
        return RAD_OK;
    if (*s == '?') {
        a->maybe = true;
        if (*++s != '#' && *s != '%')
            return lab_at_fail(at, p->err, "'?' wants a weight or a constant behind it");
    }
    switch (*s) {
    case '#':
        if (!(w = find_weight(p->b, s + 1)))
            return lab_at_fail(at, p->err, "'%s': no such weight", s);
        w->used = true;
        a->kind = RAD_LAB_ARG_WEIGHT;
        a->name = w->name;
        return RAD_OK;
    case '%':
        if (!(k = find_const(p->b, s + 1)))
            return lab_at_fail(at, p->err, "'%s': no such constant", s);
        k->used = true;
        a->kind = RAD_LAB_ARG_CONST;
        a->name = k->name;
        return RAD_OK;
    case '&':
        if (!(st = find_state(p->b, s + 1)))
            return lab_at_fail(at, p->err, "'%s': no such state", s);
        st->used = true;
        a->kind = RAD_LAB_ARG_CACHE;
        a->name = st->name;
        return RAD_OK;
    case '@':
        return arg_batch(p, at, s + 1, a);
    case '>':
        a->access = RAD_LAB_WRITE;
        return arg_edge(p, at, s + 1, a);
    case '~':
        a->access = RAD_LAB_READ | RAD_LAB_WRITE;
        return arg_edge(p, at, s + 1, a);
    default:
        return arg_read(p, at, s, a);
    }
}

/* ---- nodes */
static rad_status node_params(struct bp *p, const struct lab_at *at, const struct cJSON *j,
                              struct lab_ex *when, struct lab_bnode *n)
{
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_bparam *q = &n->param[n->n_params++];
        struct lab_at in = lab_at_key(at, c->string);
        q->key = c->string;
        q->when = when;
        RAD_TRY(lab_want_expr(p->lab, &in, c, &q->val, p->err));
        RAD_TRY(lab_params_use(&in, p->b->param, p->b->n_params, "i", q->val, p->err));
    }
    return RAD_OK;
}

static rad_status node_all_params(struct bp *p, const struct lab_at *at, const struct cJSON *j,
                                  struct lab_bnode *n)
{
    const cJSON *base = radi_json_get(j, "params"), *more = radi_json_get(j, "params_when");
    struct lab_at in = lab_at_key(at, "params"), win = lab_at_key(at, "params_when");
    size_t count = (size_t)cJSON_GetArraySize(base);

    if (more)
        RAD_TRY(lab_want_array(&win, more, p->err));
    for (const cJSON *c = more ? more->child : NULL; c; c = c->next)
        count += (size_t)cJSON_GetArraySize(radi_json_get(c, "params"));
    n->param = radi_arena_array(&p->lab->arena, count + 1, sizeof(*n->param));
    if (!n->param)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    if (base)
        RAD_TRY(node_params(p, &in, base, NULL, n));
    int i = 0;
    for (const cJSON *c = more ? more->child : NULL; c; c = c->next) {
        struct lab_at el = lab_at_index(&win, i++), sub = lab_at_key(&el, "params");
        struct lab_ex *when;
        RAD_TRY(lab_want_object(&el, c, "when params", p->err));
        RAD_TRY(lab_want_expr_key(p->lab, &el, c, "when", true, &when, p->err));
        RAD_TRY(use(p, &el, when));
        RAD_TRY(node_params(p, &sub, radi_json_get(c, "params"), when, n));
    }
    return RAD_OK;
}

static rad_status node(struct bp *p, const struct lab_at *at, const struct cJSON *j, int forms,
                       int form)
{
    static const char *const rows[] = { "tok", "out" };
    static const char *const half[] = { "whole", "decode", "prefill" };
    const cJSON *args = radi_json_get(j, "args");
    struct lab_at in = lab_at_key(at, "args");
    struct lab_bnode *n = &p->b->node[p->b->n_nodes];
    int r, h;

    n->index = p->b->n_nodes++;
    n->forms = forms;
    n->form = form;
    RAD_TRY(lab_want_object(at, j, "op when rows half range args params params_when doc", p->err));
    RAD_TRY(lab_want_str(at, j, "op", true, &n->op, p->err));
    RAD_TRY(lab_want_str(at, j, "range", false, &n->range, p->err));
    if (!n->range)
        n->range = "M";
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "when", false, &n->when, p->err));
    RAD_TRY(use(p, at, n->when));
    RAD_TRY(word(p, at, j, "rows", rows, (int)RADI_COUNT(rows), &r));
    RAD_TRY(word(p, at, j, "half", half, (int)RADI_COUNT(half), &h));
    n->rows = (uint8_t)r;
    n->half = (uint8_t)h;
    RAD_TRY(node_all_params(p, at, j, n));
    RAD_TRY(table(p, &in, args, false, sizeof(struct lab_barg), &n->arg));
    for (const cJSON *c = args->child; c; c = c->next) {
        struct lab_at el = lab_at_index(&in, n->n_args);
        if (!cJSON_IsString(c))
            return lab_at_fail(&el, p->err, "want a string");
        if (n->n_args == LAB_MAX_ARGS)
            return lab_at_fail(&in, p->err, "more than %d operands", LAB_MAX_ARGS);
        RAD_TRY(arg(p, &el, c->valuestring, &n->arg[n->n_args++]));
    }
    return RAD_OK;
}

static rad_status forms(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    int set = p->b->n_form_sets++, form = 0;

    RAD_TRY(lab_want_array(at, j, p->err));
    if (cJSON_GetArraySize(j) < 2)
        return lab_at_fail(at, p->err, "want two alternatives or more");
    for (const cJSON *f = j->child; f; f = f->next, form++) {
        struct lab_at in = lab_at_index(at, form);
        int i = 0;
        RAD_TRY(lab_want_array(&in, f, p->err));
        for (const cJSON *c = f->child; c; c = c->next) {
            struct lab_at el = lab_at_index(&in, i++);
            RAD_TRY(node(p, &el, c, set, form));
        }
    }
    return RAD_OK;
}

static rad_status nodes(struct bp *p, const struct lab_at *at, const struct cJSON *j)
{
    size_t n = 0;
    int i = 0;

    RAD_TRY(lab_want_array(at, j, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        const cJSON *f = radi_json_get(c, "forms");
        n++;
        for (const cJSON *k = f ? f->child : NULL; k; k = k->next)
            n += (size_t)cJSON_GetArraySize(k);
    }
    p->b->node = radi_arena_array(&p->lab->arena, n + 1, sizeof(*p->b->node));
    if (!p->b->node)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at el = lab_at_index(at, i++), in = lab_at_key(&el, "forms");
        if (radi_json_get(c, "forms")) {
            RAD_TRY(lab_want_object(&el, c, "forms doc", p->err));
            RAD_TRY(forms(p, &in, radi_json_get(c, "forms")));
        } else
            RAD_TRY(node(p, &el, c, -1, 0));
    }
    return n ? RAD_OK : lab_at_fail(at, p->err, "no nodes");
}

/* ---- nothing is declared that nothing uses */
static rad_status unused(struct bp *p, const struct lab_at *root, const char *section,
                         const char *name)
{
    struct lab_at s = lab_at_key(root, section), in = lab_at_key(&s, name);
    return lab_at_fail(&in, p->err, "nothing uses it");
}

static rad_status all_used(struct bp *p, const struct lab_at *at)
{
    const struct lab_block *b = p->b;
    for (int i = 0; i < b->n_params; i++)
        if (!b->param[i].used)
            return unused(p, at, "params", b->param[i].name);
    for (int i = 0; i < b->n_edges; i++)
        if (!b->edge[i].used)
            return unused(p, at, "edges", b->edge[i].name);
    for (int i = 0; i < b->n_weights; i++)
        if (!b->weight[i].used)
            return unused(p, at, "weights", b->weight[i].name);
    for (int i = 0; i < b->n_states; i++)
        if (!b->state[i].used)
            return unused(p, at, "states", b->state[i].name);
    for (int i = 0; i < b->n_consts; i++)
        if (!b->constant[i].used)
            return unused(p, at, "constants", b->constant[i].name);
    return RAD_OK;
}

rad_status lab_block_parse(struct rad_lab *lab, struct lab_doc *doc, struct rad_err *err)
{
    const cJSON *j = doc->json;
    struct lab_at at = { NULL, doc, NULL, 0 };
    struct lab_block *b = radi_arena_alloc(&lab->arena, sizeof(*b));
    struct bp p = { lab, b, err };

    if (!b)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    b->name = doc->name;
    b->doc = doc;
    RAD_TRY(lab_want_object(&at, j, "schema description params checks streams edges states "
                            "constants weights nodes", err));
    RAD_TRY(lab_want_head(&at, j, err));
    struct lab_at in = lab_at_key(&at, "params");
    RAD_TRY(lab_params_parse(lab, &in, radi_json_get(j, "params"), &b->param, &b->n_params, err));
    for (int i = 0; i < b->n_params; i++) {
        struct lab_at el = lab_at_key(&in, b->param[i].name);
        RAD_TRY(use(&p, &el, b->param[i].def));
    }
    in = lab_at_key(&at, "checks");
    RAD_TRY(lab_checks_parse(lab, &in, radi_json_get(j, "checks"), "param", &b->check,
                             &b->n_checks, err));
    for (int i = 0; i < b->n_checks; i++) {
        struct lab_at el = lab_at_index(&in, i);
        struct lab_ex *name;
        RAD_TRY(use(&p, &el, b->check[i].cond));
        RAD_TRY(lab_ex_parse(&lab->arena, b->check[i].key[0], &name, err));
        RAD_TRY(use(&p, &el, name));
    }
    in = lab_at_key(&at, "streams");
    RAD_TRY(streams(&p, &in, radi_json_get(j, "streams")));
    in = lab_at_key(&at, "edges");
    RAD_TRY(edges(&p, &in, radi_json_get(j, "edges")));
    in = lab_at_key(&at, "states");
    RAD_TRY(states(&p, &in, radi_json_get(j, "states")));
    in = lab_at_key(&at, "constants");
    RAD_TRY(constants(&p, &in, radi_json_get(j, "constants")));
    in = lab_at_key(&at, "weights");
    RAD_TRY(weights(&p, &in, radi_json_get(j, "weights")));
    in = lab_at_key(&at, "nodes");
    RAD_TRY(nodes(&p, &in, radi_json_get(j, "nodes")));
    RAD_TRY(all_used(&p, &at));
    b->next = lab->blocks;
    lab->blocks = b;
    return RAD_OK;
}
