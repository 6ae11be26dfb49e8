/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the two written forms: a point as JSON, and point with graph as the
 * stable text of the golden plans. One fact a line and no dependence on width,
 * so that a text diff is a plan diff. */
#include "config.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "lab/lab.h"

#include "banned.h"

static const char *const map_mode[] = {
    [RAD_MAP_COPY] = "copy", [RAD_MAP_CONCAT] = "concat", [RAD_MAP_WNORM] = "wnorm",
    [RAD_MAP_ROWS] = "rows", [RAD_MAP_TRANSPOSE] = "transpose", [RAD_MAP_EMA] = "ema",
    [RAD_MAP_TAP] = "tap", [RAD_MAP_COLS] = "cols",
};
static const char *const batch_name[RAD_LAB_N_BATCH] = {
    [RAD_LAB_TOKEN_IDS] = "token_ids", [RAD_LAB_POSITIONS] = "positions",
    [RAD_LAB_CU_SEQLENS] = "cu_seqlens", [RAD_LAB_SEQ_IDS] = "seq_ids",
    [RAD_LAB_OUT_IDS] = "out_ids", [RAD_LAB_Q_LENS] = "q_lens", [RAD_LAB_CTX_LENS] = "ctx_lens",
    [RAD_LAB_NUM_ACCEPTED] = "num_accepted", [RAD_LAB_SLOT_MAPPING] = "slot_mapping",
    [RAD_LAB_BLOCK_TABLE] = "block_table", [RAD_LAB_SEQUSED] = "seqused",
    [RAD_LAB_STATE_INDEX] = "state_index",
};

/* The caller frees with free(): the library's allocator is that of malloc. */
static rad_status give(struct radi_str *s, char **out, struct rad_err *err)
{
    *out = radi_str_take(s);
    radi_str_release(s);
    return *out ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
}

/* ---- the point */
static void member(struct radi_str *s, const char *key, const char *val, bool last)
{
    radi_str_addf(s, "  \"%s\": ", key);
    radi_str_add_json(s, val, strlen(val));
    radi_str_adds(s, last ? "\n" : ",\n");
}

rad_status rad_lab_point_json(const struct rad_lab_point *p, char **out, struct rad_err *err)
{
    struct radi_str s = { 0 };
    bool first = true;

    radi_str_adds(&s, "{\n");
    member(&s, "model_type", p->model_type, false);
    member(&s, "arch", p->arch, false);
    member(&s, "quant", p->quant, false);
    member(&s, "map", p->map->name, false);
    member(&s, "circuit", p->map->circuit->name, false);
    radi_str_adds(&s, "  \"parameters\": {");
    for (int i = 0; i < p->map->n_entries; i++) {
        if (p->map->entry[i].let)
            continue;
        radi_str_adds(&s, first ? "\n    " : ",\n    ");
        radi_str_add_json(&s, p->map->entry[i].name, strlen(p->map->entry[i].name));
        radi_str_adds(&s, ": ");
        lab_val_text(&s, &p->value[i].v);
        first = false;
    }
    radi_str_adds(&s, "\n  },\n  \"ignored\": {");
    for (int i = 0; i < p->n_notes; i++) {
        radi_str_adds(&s, i ? ",\n    " : "\n    ");
        radi_str_add_json(&s, p->note[i].path, strlen(p->note[i].path));
        radi_str_adds(&s, ": ");
        radi_str_add_json(&s, p->note[i].reason, strlen(p->note[i].reason));
    }
    radi_str_adds(&s, p->n_notes ? "\n  }\n}\n" : "}\n}\n");
    return give(&s, out, err);
}

/* ---- the graph */
static void dims(struct radi_str *s, const int64_t *d, int rank)
{
    radi_str_addc(s, '[');
    for (int i = 0; i < rank; i++)
        radi_str_addf(s, "%s%lld", i ? ", " : "", (long long)d[i]);
    radi_str_addc(s, ']');
}

static void buffers(struct radi_str *s, const struct rad_lab_graph *g)
{
    for (int i = 0; i < g->n_buffers; i++) {
        const struct rad_lab_buffer *b = &g->buffer[i];
        radi_str_addf(s, "buffer %s %s [", b->name, b->dtype);
        for (int k = 0; k < b->rank; k++)
            if (k == 0 && b->rows != RAD_LAB_ROWS_FIXED) {
                radi_str_addc(s, b->rows == RAD_LAB_ROWS_TOK ? 'T' : 'O');
                if (b->shape[0] != 1)
                    radi_str_addf(s, "*%lld", (long long)b->shape[0]);
            } else
                radi_str_addf(s, "%s%lld", k ? ", " : "", (long long)b->shape[k]);
        radi_str_adds(s, "]\n");
    }
}

static void states(struct radi_str *s, const struct rad_lab_graph *g)
{
    static const char *const kind[] = { "full", "window", "linear", "conv", "ring" };
    for (int i = 0; i < g->n_states; i++) {
        const struct rad_lab_state *t = &g->state[i];
        radi_str_addf(s, "state %s kind=%s window=%lld heads=%lld dim=%lld", t->name,
                      kind[t->decl.kind], (long long)t->decl.window,
                      (long long)t->decl.n_head_kv, (long long)t->decl.head_dim);
        if (t->decl.state_dim[0] || t->decl.state_dim[1])
            radi_str_addf(s, " state=%lldx%lld", (long long)t->decl.state_dim[0],
                          (long long)t->decl.state_dim[1]);
        if (t->decl.conv_width)
            radi_str_addf(s, " width=%lld", (long long)t->decl.conv_width);
        radi_str_adds(s, " layers=");
        for (int k = 0; k < t->n_layers; k++)
            radi_str_addf(s, "%s%d", k ? "," : "", t->layer[k]);
        radi_str_addc(s, '\n');
    }
}

static void constants(struct radi_str *s, const struct rad_lab_graph *g)
{
    for (int i = 0; i < g->n_consts; i++) {
        const struct rad_lab_const *c = &g->constant[i];
        size_t n = 1;
        for (int k = 0; k < c->rank; k++)
            n *= (size_t)c->shape[k];
        radi_str_addf(s, "constant %s f32 ", c->name);
        dims(s, c->shape, c->rank);
        for (size_t k = 0; k < n; k++)
            radi_str_addf(s, "%s%.9g", k ? " " : " = ", (double)c->data[k]);
        radi_str_addc(s, '\n');
    }
}

static void weights(struct radi_str *s, const struct rad_lab_graph *g)
{
    static const char *const access[] = { "token", "request", "conditional", "rare", "vocab" };
    static const char *const shard[] = { "none", "row", "col" };
    for (int i = 0; i < g->n_weights; i++) {
        const struct rad_lab_weight *w = &g->weight[i];
        radi_str_addf(s, "weight %s ", w->name);
        dims(s, w->decl.shape, w->decl.rank);
        radi_str_addf(s, " access=%s shard=%s%s%s <- %s", access[w->decl.access],
                      shard[w->decl.shard], w->decl.optional ? " optional" : "",
                      w->refuse ? " refused" : "", map_mode[w->map.mode]);
        for (int k = 0; k < w->map.n_src; k++) {
            radi_str_addf(s, "%s%s", k ? " | " : " ", w->map.src[k]);
            if (w->map.src_index[k] >= 0)
                radi_str_addf(s, "[%lld]", (long long)w->map.src_index[k]);
        }
        if (w->map.mode == RAD_MAP_CONCAT)
            radi_str_addf(s, " dim=%d", w->map.concat_dim);
        if (w->map.count)
            radi_str_addf(s, " first=%lld count=%lld", (long long)w->map.first,
                          (long long)w->map.count);
        if (w->map.every)
            radi_str_addf(s, " every=%lld", (long long)w->map.every);
        if (w->fallback >= 0)
            radi_str_addf(s, " or #%s", g->weight[w->fallback].name);
        radi_str_addc(s, '\n');
    }
}

static void operand(struct radi_str *s, const struct rad_lab_graph *g, const struct rad_lab_arg *a)
{
    int kind = a->index < 0 && (a->kind == RAD_LAB_ARG_WEIGHT || a->kind == RAD_LAB_ARG_CONST) ?
        RAD_LAB_ARG_NONE : a->kind;

    switch (kind) {
    case RAD_LAB_ARG_NONE: radi_str_addc(s, '-'); break;
    case RAD_LAB_ARG_BUFFER:
        radi_str_addf(s, "%s%s", a->access == RAD_LAB_WRITE ? ">" :
                      a->access == RAD_LAB_READ ? "" : "~", g->buffer[a->index].name);
        if (a->cols)
            radi_str_addf(s, "[%lld:%lld]", (long long)a->col0, (long long)a->cols);
        break;
    case RAD_LAB_ARG_WEIGHT: radi_str_addf(s, "#%s", g->weight[a->index].name); break;
    case RAD_LAB_ARG_CONST: radi_str_addf(s, "%%%s", g->constant[a->index].name); break;
    case RAD_LAB_ARG_CACHE: radi_str_addf(s, "&%s", g->state[a->index].name); break;
    default:
        radi_str_addf(s, "@%s%s%s", a->index >= 0 ? g->state[a->index].name : "",
                      a->index >= 0 ? ":" : "", batch_name[a->batch]);
    }
}

static void node(struct radi_str *s, const struct rad_lab_graph *g, int at)
{
    const struct rad_lab_node *n = &g->node[at];
    static const char *const half[] = { "", " decode", " prefill" };

    radi_str_addf(s, "n%05d %s.%s", at, n->block, n->op);
    if (n->forms >= 0)
        radi_str_addf(s, " form=%d.%d", n->forms, n->form);
    radi_str_addf(s, "%s%s %s", n->rows == RAD_LAB_ROWS_OUT ? " out" : "", half[n->half],
                  n->range);
    for (int i = 0; i < n->n_params; i++) {
        const RadParam *p = &n->param[i];
        radi_str_addf(s, " %s=", p->key);
        struct lab_val v = { .t = LAB_INT, .i = p->ival };
        if (p->kind == RAD_PK_REAL)
            v = (struct lab_val){ .t = LAB_REAL, .d = p->dval };
        if (p->kind == RAD_PK_STR)
            radi_str_adds(s, p->sval);
        else
            lab_val_text(s, &v);
    }
    radi_str_adds(s, " (");
    for (int i = 0; i < n->n_args; i++) {
        if (i)
            radi_str_adds(s, ", ");
        operand(s, g, &n->arg[i]);
    }
    radi_str_adds(s, ")\n");
}

static void nodes(struct radi_str *s, const struct rad_lab_graph *g)
{
    static const char *const section[] = { "prologue", "layer", "epilogue", "draft layer" };
    int sec = -1, layer = -2;
    for (int i = 0; i < g->n_nodes; i++) {
        const struct rad_lab_node *n = &g->node[i];
        if (n->section != sec || n->layer != layer) {
            sec = n->section;
            layer = n->layer;
            radi_str_addf(s, "== %s", section[sec]);
            if (layer >= 0)
                radi_str_addf(s, " %d", layer);
            radi_str_addc(s, '\n');
        }
        node(s, g, i);
    }
}

static int by_name(const void *a, const void *b)
{
    const struct lab_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Parameters that the map gives, by name. */
static rad_status parameters(struct radi_str *s, const struct rad_lab_point *p,
                             struct rad_err *err)
{
    const struct lab_entry **e = radi_calloc((size_t)p->map->n_entries + 1, sizeof(*e));
    size_t n = 0;

    if (!e)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    for (int i = 0; i < p->map->n_entries; i++)
        if (!p->map->entry[i].let)
            e[n++] = &p->map->entry[i];
    if (n)
        qsort(e, n, sizeof(*e), by_name);
    for (size_t i = 0; i < n; i++) {
        radi_str_addf(s, "parameter %s = ", e[i]->name);
        lab_val_text(s, &p->value[e[i] - p->map->entry].v);
        radi_str_addc(s, '\n');
    }
    radi_free(e);
    return RAD_OK;
}

rad_status rad_lab_graph_text(const struct rad_lab_point *p, const struct rad_lab_graph *g,
                              char **out, struct rad_err *err)
{
    struct radi_str s = { 0 };

    *out = NULL;
    radi_str_addf(&s, "# graph of a parameter point\nmodel_type %s\narch %s\nquant \"%s\"\n"
                  "map %s\ncircuit %s\n", p->model_type, p->arch, p->quant, p->map->name,
                  p->map->circuit->name);
    rad_status st = parameters(&s, p, err);
    if (st) {
        radi_str_release(&s);
        return st;
    }
    radi_str_addf(&s, "counts layers=%d weights=%d constants=%d buffers=%d states=%d nodes=%d\n",
                  g->n_layers, g->n_weights, g->n_consts, g->n_buffers, g->n_states, g->n_nodes);
    states(&s, g);
    constants(&s, g);
    buffers(&s, g);
    weights(&s, g);
    nodes(&s, g);
    if (g->logits >= 0)
        radi_str_addf(&s, "logits %s\n", g->buffer[g->logits].name);
    return give(&s, out, err);
}
