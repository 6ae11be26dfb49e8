/* SPDX-License-Identifier: Apache-2.0 */
/* Owns declaring a graph and issuing its step. What an op means is the
 * kernels' business, what a model is the data files': here a node's operands
 * become handles. Only `linear` is chosen: the matrix product with a bias where
 * there is a bias. */
#include <stdlib.h>
#include <string.h>

#include <arch/graph.h>

enum { MAX_PARAMS = 72 };

struct op {
    rad_op h;
    uint8_t linear;              /* operands are rearranged at issue: 1 plain, 2 with bias */
    uint8_t live;                /* 0: of a form that was not chosen */
};

struct arch_graph {
    struct rad_lab_graph *g;
    rad_weight *weight, *constant;
    rad_buf *buffer;
    rad_kv *state;
    struct op *op;
};

struct decl {
    RadBuilder *b;
    const RadBuildCtx *ctx;
    struct arch_graph *m;
    int64_t max_out;
    unsigned char *done;         /* nodes that are declared */
};

void arch_graph_free(void *graph)
{
    struct arch_graph *m = graph;
    if (!m)
        return;
    rad_lab_graph_free(m->g);
    free(m->weight);
    free(m->constant);
    free(m->buffer);
    free(m->state);
    free(m->op);
    free(m);
}

/* ---- declare */
static int weights(struct decl *d)
{
    const struct rad_lab_graph *g = d->m->g;
    for (int i = 0; i < g->n_weights; i++) {
        const struct rad_lab_weight *w = &g->weight[i];
        rad_decl_name_map(d->b, &w->map);
        d->m->weight[i] = rad_decl_weight(d->b, w->name, &w->decl);
        if (w->refuse && d->m->weight[i] != RAD_NULL_HANDLE)
            return rad_declare_fail(d->b, RAD_E_UNSUPPORTED, "weight '%s': %s", w->name,
                                    w->refuse);
        if (w->fallback >= 0 && d->m->weight[i] == RAD_NULL_HANDLE)
            d->m->weight[i] = d->m->weight[w->fallback];    /* one weight, two readers */
    }
    for (int i = 0; i < g->n_consts; i++) {
        const struct rad_lab_const *c = &g->constant[i];
        d->m->constant[i] = rad_decl_constant(d->b, c->name, RAD_F32, c->rank, c->shape, c->data);
    }
    return 0;
}

static int dtype_of(const struct decl *d, const char *name)
{
    if (!strcmp(name, "$act"))
        return d->ctx->act_dtype ? d->ctx->act_dtype : RAD_F32;
    if (!strcmp(name, "$kv"))
        return d->ctx->kv_dtype ? d->ctx->kv_dtype : RAD_F32;
    for (int t = 1; t < RAD_DT_PRIVATE; t++)
        if (rad_dtype_bits(t) && !strcmp(rad_dtype_name(t), name))
            return t;
    return 0;
}

static int64_t max_rows(const struct decl *d, int rows)
{
    return rows == RAD_LAB_ROWS_TOK ? d->ctx->max_tok : rows == RAD_LAB_ROWS_OUT ? d->max_out : 1;
}

static int buffers(struct decl *d)
{
    const struct rad_lab_graph *g = d->m->g;
    for (int i = 0; i < g->n_buffers; i++) {
        const struct rad_lab_buffer *u = &g->buffer[i];
        RadBufferDecl bd = { .dtype = dtype_of(d, u->dtype), .rank = u->rank,
                             .kind = RAD_BUF_TRANSIENT, .kv = RAD_NULL_HANDLE };
        memcpy(bd.shape, u->shape, sizeof(bd.shape));
        if (__builtin_mul_overflow(bd.shape[0], max_rows(d, u->rows), &bd.shape[0]))
            return rad_declare_fail(d->b, RAD_E_SHAPE, "buffer '%s' is too large", u->name);
        d->m->buffer[i] = rad_decl_buffer(d->b, u->name, &bd);
    }
    return 0;
}

static int states(struct decl *d)
{
    const struct rad_lab_graph *g = d->m->g;
    for (int i = 0; i < g->n_states; i++) {
        RadKvGroupDecl k = g->state[i].decl;
        k.dtype = k.kind == RAD_KV_LINEAR || k.kind == RAD_KV_CONV ? d->ctx->state_dtype
                                                                   : d->ctx->kv_dtype;
        d->m->state[i] = rad_decl_kv_group(d->b, g->state[i].name, &k);
        if (d->m->state[i] == RAD_NULL_HANDLE)
            continue;
        for (int l = 0; l < g->state[i].n_layers; l++)
            rad_bind_layer_kv(d->b, g->state[i].layer[l], d->m->state[i]);
    }
    return 0;
}

/* The state that a node's cache operand names, or -1. */
static int node_state(const struct rad_lab_node *n)
{
    for (int i = 0; i < n->n_args; i++)
        if (n->arg[i].kind == RAD_LAB_ARG_CACHE)
            return n->arg[i].index;
    return -1;
}

/* Values that only the deployment knows. */
static RadParam fill(const struct decl *d, const struct rad_lab_node *n, RadParam p)
{
    if (p.kind != RAD_PK_STR || p.sval[0] != '$')
        return p;
    if (!strcmp(p.sval, "$act") || !strcmp(p.sval, "$kv"))
        return RAD_STR(p.key, rad_dtype_name(dtype_of(d, p.sval)));
    if (!strcmp(p.sval, "$max_ctx"))
        return RAD_INT(p.key, d->ctx->max_ctx);
    if (!strcmp(p.sval, "$max_seqs"))
        return RAD_INT(p.key, d->ctx->max_seqs);
    if (!strcmp(p.sval, "$kv_block") && node_state(n) >= 0)
        return RAD_INT(p.key, rad_kv_block_size(d->b, d->m->state[node_state(n)]));
    return p;                    /* no schema has such a word: reported there */
}

static int wants_block(const struct rad_lab_node *n)
{
    for (int i = 0; i < n->n_params; i++)
        if (n->param[i].kind == RAD_PK_STR && !strcmp(n->param[i].sval, "$kv_block"))
            return 1;
    return 0;
}

/* A weight operand's handle; a null handle stands for an absent one. */
static rad_weight weight_of(const struct arch_graph *m, const struct rad_lab_arg *a)
{
    if (a->index < 0)
        return RAD_NULL_HANDLE;
    return a->kind == RAD_LAB_ARG_WEIGHT ? m->weight[a->index] : m->constant[a->index];
}

static void touches(struct decl *d, const struct rad_lab_node *n, rad_op h)
{
    rad_buf rd[RAD_MAX_OPERANDS], wr[RAD_MAX_OPERANDS];
    int nr = 0, nw = 0;
    for (int i = 0; i < n->n_args; i++) {
        if (n->arg[i].kind != RAD_LAB_ARG_BUFFER)
            continue;
        if (n->arg[i].access & RAD_LAB_READ)
            rd[nr++] = d->m->buffer[n->arg[i].index];
        if (n->arg[i].access & RAD_LAB_WRITE)
            wr[nw++] = d->m->buffer[n->arg[i].index];
    }
    if (nr)
        rad_op_reads(d->b, h, rd, nr);
    if (nw)
        rad_op_writes(d->b, h, wr, nw);
    if (node_state(n) >= 0 && d->m->state[node_state(n)] != RAD_NULL_HANDLE)
        rad_op_kv(d->b, h, d->m->state[node_state(n)]);
}

static RadParam range(const struct decl *d, const struct rad_lab_node *n)
{
    return RAD_RANGE(n->range, 1, max_rows(d, n->rows));
}

/* linear: x, weight, bias -> y */
static rad_op linear(struct decl *d, const struct rad_lab_node *n, struct op *o)
{
    const struct rad_lab_graph *g = d->m->g;
    const RadWeightDecl *w = &g->weight[n->arg[1].index].decl;
    rad_weight h[2] = { weight_of(d->m, &n->arg[1]), weight_of(d->m, &n->arg[2]) };
    int bias = h[1] != RAD_NULL_HANDLE;
    int64_t rows = 1, cols = w->shape[w->rank - 1];
    const char *act = rad_dtype_name(dtype_of(d, "$act"));

    for (int i = 0; i + 1 < w->rank; i++)
        rows *= w->shape[i];
    o->linear = bias ? 2 : 1;
    const RadParam p[] = { range(d, n), RAD_INT("N", rows), RAD_INT("K", cols),
                           RAD_STR("dtype", act) };
    return rad_decl_op(d->b, bias ? "gemm_nt_bias" : "gemm_nt", p,
                       (int)(sizeof(p) / sizeof(*p)), h, bias ? 2 : 1);
}

static int node(struct decl *d, int at)
{
    const struct rad_lab_node *n = &d->m->g->node[at];
    struct op *o = &d->m->op[at];
    RadParam p[MAX_PARAMS];
    rad_weight w[RAD_MAX_OPERANDS];
    int np = 0, nw = 0;

    if (!strcmp(n->op, "linear")) {
        if (n->n_args != 4 || n->arg[1].kind != RAD_LAB_ARG_WEIGHT || n->arg[1].index < 0 ||
            n->arg[2].kind != RAD_LAB_ARG_WEIGHT || n->arg[3].kind != RAD_LAB_ARG_BUFFER)
            return rad_declare_fail(d->b, RAD_E_FORMAT,
                                    "block '%s': linear wants x, weight, bias, y", n->block);
        o->h = linear(d, n, o);
    } else {
        p[np++] = range(d, n);
        for (int i = 0; i < n->n_params && np < MAX_PARAMS; i++)
            p[np++] = fill(d, n, n->param[i]);
        for (int i = 0; i < n->n_args; i++)
            if (n->arg[i].kind == RAD_LAB_ARG_WEIGHT || n->arg[i].kind == RAD_LAB_ARG_CONST)
                w[nw++] = weight_of(d->m, &n->arg[i]);
        o->h = rad_decl_op(d->b, n->op, p, np, w, nw);
    }
    o->live = 1;
    d->done[at] = 1;
    touches(d, n, o->h);
    return 0;
}

/* Nodes that follow a group's page size wait for the op that fixes it; they are
 * issued in the graph's order all the same. */
static int waiting(struct decl *d, int upto)
{
    for (int i = upto; i >= 0 && d->m->g->node[i].layer == d->m->g->node[upto].layer; i--) {
        const struct rad_lab_node *n = &d->m->g->node[i];
        if (d->done[i] || !wants_block(n))
            continue;
        if (node_state(n) < 0 || node_state(n) != node_state(&d->m->g->node[upto]))
            continue;
        int st = node(d, i);
        if (st)
            return st;
    }
    return 0;
}

/* Nodes [at, end) are the alternatives of one set, in order: the first whose
 * ops all resolve stays. The last is declared without asking, so that what it
 * lacks is reported. */
static int forms(struct decl *d, int at, int end)
{
    const struct rad_lab_node *n = d->m->g->node;
    for (int a = at; a < end;) {
        int b = a, ok = 1, st;
        while (b < end && n[b].form == n[a].form)
            b++;
        for (int i = a; i < b && b < end; i++)
            ok = ok && (!strcmp(n[i].op, "linear") || rad_op_declared(d->b, n[i].op));
        for (int i = a; i < b && ok; i++) {
            if ((st = node(d, i)) != 0)
                return st;
            if (b < end && !rad_op_resolved(d->b, d->m->op[i].h))
                ok = 0;
        }
        if (ok)
            return 0;
        for (int i = a; i < b; i++)
            d->m->op[i].live = 0;
        a = b;
    }
    return 0;
}

static int ops(struct decl *d)
{
    const struct rad_lab_graph *g = d->m->g;
    int st = 0;

    for (int i = 0; i < g->n_nodes && !st; i++) {
        const struct rad_lab_node *n = &g->node[i];
        if (n->section == RAD_LAB_DRAFT)
            return rad_declare_fail(d->b, RAD_E_UNSUPPORTED, "draft layers are not issued");
        if (n->forms >= 0) {
            int end = i;
            while (end < g->n_nodes && g->node[end].forms == n->forms)
                end++;
            st = forms(d, i, end);
            i = end - 1;
        } else if (!wants_block(n)) {
            st = node(d, i);
            if (!st && node_state(n) >= 0)
                st = waiting(d, i);
        }
    }
    for (int i = 0; i < g->n_nodes && !st; i++)     /* no op fixes their pages */
        if (g->node[i].forms < 0 && !d->done[i])
            st = node(d, i);
    return st;
}

static int alloc(struct arch_graph *m)
{
    const struct rad_lab_graph *g = m->g;
    m->weight = calloc((size_t)g->n_weights + 1, sizeof(*m->weight));
    m->constant = calloc((size_t)g->n_consts + 1, sizeof(*m->constant));
    m->buffer = calloc((size_t)g->n_buffers + 1, sizeof(*m->buffer));
    m->state = calloc((size_t)g->n_states + 1, sizeof(*m->state));
    m->op = calloc((size_t)g->n_nodes + 1, sizeof(*m->op));
    return m->weight && m->constant && m->buffer && m->state && m->op ? 0 : RAD_E_NOMEM;
}

static int64_t most_out(const RadBuildCtx *ctx)
{
    int64_t n;
    if (ctx->max_out_rows > 0)
        return ctx->max_out_rows;
    if (__builtin_mul_overflow(ctx->max_seqs, 1 + ctx->max_spec, &n) || n > ctx->max_tok)
        n = ctx->max_tok;
    return n > 0 ? n : 1;
}

int arch_graph_declare(RadBuilder *b, const RadBuildCtx *ctx, struct rad_lab_graph *g,
                       struct arch_graph **out)
{
    struct arch_graph *m = calloc(1, sizeof(*m));
    struct decl d = { .b = b, .ctx = ctx, .m = m, .max_out = most_out(ctx) };
    int st;

    *out = NULL;
    if (!m) {
        rad_lab_graph_free(g);
        return rad_declare_fail(b, RAD_E_NOMEM, "out of memory");
    }
    m->g = g;
    d.done = calloc((size_t)g->n_nodes + 1, 1);
    if (alloc(m) || !d.done)
        st = rad_declare_fail(b, RAD_E_NOMEM, "out of memory");
    else if (ctx->world_size > 1)
        st = rad_declare_fail(b, RAD_E_UNSUPPORTED,
                              "more than one rank is not served by this architecture plugin");
    else {
        st = weights(&d);
        if (!st)
            st = buffers(&d);
        if (!st)
            st = states(&d);
        if (!st)
            st = ops(&d);
        if (!st && g->logits >= 0)
            rad_declare_logits(b, m->buffer[g->logits]);
    }
    free(d.done);
    if (st) {
        arch_graph_free(m);
        return st;
    }
    *out = m;
    return 0;
}

/* ---- step */
struct span {                    /* what of the batch a node works on */
    int64_t rows;                /* rows of its buffers */
    int64_t seq0, seqs;          /* sequences */
    int64_t q_len;               /* longest query of them */
};

/* The halves of a mixed step: decode rows come first and stand for themselves;
 * the prefill half sees every row at its base and only its own sequences, whose
 * cu_seqlens are absolute. */
static struct span span_of(const RadBatch *t, const struct rad_lab_node *n)
{
    if (n->rows == RAD_LAB_ROWS_OUT)
        return (struct span){ t->n_out, 0, t->n_seq, t->max_q_len };
    if (n->half == RAD_LAB_DECODE)
        return (struct span){ t->n_tok_decode, 0, t->n_seq_decode,
                              t->n_seq_decode < t->n_seq ? t->max_q_len_decode : t->max_q_len };
    if (n->half == RAD_LAB_PREFILL)
        return (struct span){ t->n_seq_decode < t->n_seq ? t->n_tok : 0, t->n_seq_decode,
                              t->n_seq - t->n_seq_decode,
                              t->n_seq_decode ? t->max_q_len_prefill : t->max_q_len };
    return (struct span){ t->n_tok, 0, t->n_seq, t->max_q_len };
}

static RadOperand ids(const int32_t *p, int64_t first, int64_t n)
{
    return p ? praw(p + first, RAD_I32, n) : pnone();
}

static RadOperand table(const int32_t *p, int64_t pitch, const struct span *s)
{
    return p ? praw2(p + s->seq0 * pitch, RAD_I32, s->seqs, pitch) : pnone();
}

static RadOperand batch_operand(const RadBatch *t, const RadKvBatch *kv, int field,
                                const struct span *s)
{
    switch (field) {
    case RAD_LAB_TOKEN_IDS: return ids(t->token_ids, 0, s->rows);
    case RAD_LAB_POSITIONS: return ids(t->positions, 0, s->rows);
    case RAD_LAB_SEQ_IDS: return ids(t->seq_ids, 0, s->rows);
    case RAD_LAB_OUT_IDS: return ids(t->out_ids, 0, t->n_out);
    case RAD_LAB_CU_SEQLENS: return ids(t->cu_seqlens, s->seq0, s->seqs + 1);
    case RAD_LAB_Q_LENS: return ids(t->q_lens, s->seq0, s->seqs);
    case RAD_LAB_CTX_LENS: return ids(t->ctx_lens, s->seq0, s->seqs);
    case RAD_LAB_NUM_ACCEPTED: return ids(t->num_accepted, s->seq0, s->seqs);
    default: break;
    }
    if (!kv)
        return pnone();
    switch (field) {
    case RAD_LAB_SLOT_MAPPING: return ids(kv->slot_mapping, 0, s->rows);
    case RAD_LAB_BLOCK_TABLE: return table(kv->block_table, kv->block_pitch, s);
    case RAD_LAB_SEQUSED: return ids(kv->seqused, s->seq0, s->seqs);
    case RAD_LAB_STATE_INDEX: return table(kv->state_index, kv->state_pitch, s);
    default: return pnone();
    }
}

static RadOperand operand(const struct arch_graph *m, const RadBatch *t,
                          const struct rad_lab_node *n, const struct rad_lab_arg *a,
                          const struct span *s)
{
    switch (a->kind) {
    case RAD_LAB_ARG_BUFFER: {
        const struct rad_lab_buffer *u = &m->g->buffer[a->index];
        int64_t rows = u->rows == RAD_LAB_ROWS_FIXED ? 0 :
                       u->rows == RAD_LAB_ROWS_OUT ? t->n_out :
                       n->rows == RAD_LAB_ROWS_OUT ? t->n_tok : s->rows;
        if (a->cols)
            return bcols(m->buffer[a->index], rows * u->shape[0], a->col0, a->cols);
        return brows(m->buffer[a->index], rows * u->shape[0]);
    }
    case RAD_LAB_ARG_WEIGHT:
    case RAD_LAB_ARG_CONST: {
        rad_weight w = weight_of(m, a);
        return w == RAD_NULL_HANDLE ? pnone() : RAD_W(w);
    }
    case RAD_LAB_ARG_CACHE:
        return pkv(m->state[a->index], n->layer);
    case RAD_LAB_ARG_BATCH: {
        const RadKvBatch *kv = NULL;
        if (a->index >= 0 && m->state[a->index] < t->n_kv_groups)
            kv = &t->kv[m->state[a->index]];
        return batch_operand(t, kv, a->batch, s);
    }
    default:
        return pnone();
    }
}

void arch_graph_step(RadCtx *c, const RadBatch *batch, const struct arch_graph *m)
{
    if (batch->draft_pass)
        return;
    for (int i = 0; i < m->g->n_nodes; i++) {
        const struct rad_lab_node *n = &m->g->node[i];
        const struct op *o = &m->op[i];
        struct span s = span_of(batch, n);
        RadOperand opd[RAD_MAX_OPERANDS];
        int k = 0;

        if (!o->live || s.rows <= 0)
            continue;
        for (int a = 0; a < n->n_args; a++) {
            if (o->linear && a == 2 && o->linear == 1)
                continue;               /* no bias: the op has no slot for it */
            if (o->linear == 2 && a == 3)
                opd[k++] = pnone();     /* nothing is added behind the bias */
            opd[k++] = operand(m, batch, n, &n->arg[a], &s);
        }
        if (rad_issue(c, o->h, opd, k, strcmp(n->range, "q_len") ? s.rows : s.q_len))
            return;
    }
}
