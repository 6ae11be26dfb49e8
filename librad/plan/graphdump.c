/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as text for people and for golden files (stable: nothing in it
 * depends on the machine, the thread count or a path), and as JSON with every
 * byte that loading will take. */
#include "config.h"

#include <stdlib.h>

#include "plan/plan_priv.h"

#include "banned.h"

static const char *const kv_kinds[] = { "full", "window", "linear", "conv", "ring" };

static void add_shape(struct radi_str *s, int rank, const int64_t *shape)
{
    radi_str_addc(s, '[');
    for (int i = 0; i < rank; i++)
        radi_str_addf(s, "%s%lld", i ? "," : "", (long long)shape[i]);
    radi_str_addc(s, ']');
}

static void add_encoding(struct radi_str *s, const RadEncoding *e)
{
    char text[256];
    rad_encoding_text(e, text, sizeof text);
    radi_str_adds(s, text);
}

static rad_status give(struct radi_str *s, char **out, struct rad_err *err)
{
    *out = NULL;
    size_t n = s->len + 1;
    if (!s->failed && s->s && (*out = malloc(n)))
        memcpy(*out, s->s, n);
    radi_str_release(s);
    return *out ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "plan text: out of memory");
}

/* ---- text */
static void text_op(struct radi_str *s, const struct rad_plan *p, size_t i)
{
    const struct radi_op *o = &p->op[i];
    radi_str_addf(s, "op %zu ", i);
    radi_op_text(o, s);
    for (int k = 0; o->schema && o->w && k < o->schema->n_operands; k++)
        if (o->w[k] >= 0)
            radi_str_addf(s, " %s='%s'", o->schema->operands[k].name, p->weight[o->w[k]].name);
    for (int k = 0; k < o->n_reads; k++)
        radi_str_addf(s, "%s%s", k ? "," : " <", p->buf[o->reads[k]].name);
    for (int k = 0; k < o->n_writes; k++)
        radi_str_addf(s, "%s%s", k ? "," : " >", p->buf[o->writes[k]].name);
    if (o->kv >= 0)
        radi_str_addf(s, " kv=%s", p->kv[o->kv].name);
    radi_str_addc(s, '\n');
    for (int k = 0; k < o->n_bands; k++) {
        const struct radi_band *b = &o->band[k];
        if (o->range >= 0)
            radi_str_addf(s, "  %lld..%lld ", (long long)b->lo, (long long)b->hi);
        else
            radi_str_adds(s, "  * ");
        if (b->row)
            radi_str_addf(s, "%s/%s rank %d", p->plugins->lib[b->lib].info->name, b->row->name,
                          b->row->rank);
        else
            radi_str_adds(s, "none");
        if (b->why && *b->why)
            radi_str_addf(s, " (not %s)", b->why);
        radi_str_addc(s, '\n');
    }
}

rad_status rad_plan_graph_text(const struct rad_plan *p, char **out, struct rad_err *err)
{
    struct radi_str s = { 0 };
    radi_str_addf(&s, "plan of '%s' quant '%s' by plugin '%s'\n", p->arch_id, p->quant,
                  p->arch->info->name);
    radi_str_addf(&s, "max_tok %lld max_seqs %lld max_ctx %lld max_out %lld act %s kv %s\n",
                  (long long)p->ctx.max_tok, (long long)p->ctx.max_seqs, (long long)p->ctx.max_ctx,
                  (long long)p->max_out, rad_dtype_name(p->ctx.act_dtype),
                  rad_dtype_name(p->ctx.kv_dtype));
    for (size_t i = 0; i < p->n_notes; i++)
        radi_str_addf(&s, "note %s\n", p->note[i]);
    for (size_t i = 0; i < p->n_weights; i++) {
        const struct radi_weight *w = &p->weight[i];
        radi_str_addf(&s, "%s '%s' ", w->constant ? "constant" : "weight", w->name);
        add_shape(&s, w->d.rank, w->d.shape);
        radi_str_addc(&s, ' ');
        add_encoding(&s, w->enc);
        if (w->read != w->enc) {
            radi_str_adds(&s, " as ");
            add_encoding(&s, w->read);
        }
        radi_str_addc(&s, '\n');
    }
    for (size_t i = 0; i < p->n_bufs; i++) {
        const struct radi_buf *f = &p->buf[i];
        radi_str_addf(&s, "buffer '%s' ", f->name);
        add_shape(&s, f->d.rank, f->d.shape);
        radi_str_addf(&s, " %s%s at %llu", rad_dtype_name(f->d.dtype),
                      f->d.kind == RAD_BUF_PERSIST ? " persistent" : "",
                      (unsigned long long)f->offset);
        if (f->last == INT32_MAX)
            radi_str_addf(&s, " live %d..end\n", f->first);
        else
            radi_str_addf(&s, " live %d..%d\n", f->first, f->last);
    }
    for (int i = 0; i < p->n_kv; i++) {
        const struct radi_kv_decl *g = &p->kv[i];
        radi_str_addf(&s, "kv '%s' %s %s layers %zu ", g->name, kv_kinds[g->d.kind],
                      rad_dtype_name(g->d.dtype), g->n_layers);
        add_shape(&s, 4, g->shape);
        if (g->fixed_by >= 0)
            radi_str_addf(&s, " pages of %lld by op %d", (long long)g->block_size, g->fixed_by);
        radi_str_addc(&s, '\n');
    }
    for (size_t i = 0; i < p->n_ops; i++)
        text_op(&s, p, i);
    if (p->logits >= 0)
        radi_str_addf(&s, "logits '%s'\n", p->buf[p->logits].name);
    return give(&s, out, err);
}

/* ---- JSON */
static void str_member(struct radi_str *s, const char *key, const char *v)
{
    radi_str_addf(s, "\"%s\":", key);
    radi_str_add_json(s, v, strlen(v));
}

/* Stored bytes by the type of the codes, each weight once. */
static void json_types(struct radi_str *s, const struct rad_plan *p)
{
    bool first = true;
    radi_str_adds(s, "\"by_type\":{");
    for (int dt = 1; dt < RAD_DT_PRIVATE; dt++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < p->n_weights; i++) {
            const struct radi_weight *w = &p->weight[i];
            if (!w->constant && w->enc->plane[0].dtype == (uint32_t)dt)
                sum += radi_weight_bytes(w->enc, w->rows, w->cols);
        }
        if (!sum)
            continue;
        radi_str_addf(s, "%s\"%s\":%llu", first ? "" : ",", rad_dtype_name(dt),
                      (unsigned long long)sum);
        first = false;
    }
    radi_str_adds(s, "}");
}

static void json_kv(struct radi_str *s, const struct rad_plan *p)
{
    radi_str_adds(s, "\"kv\":[");
    for (int i = 0; i < p->n_kv; i++) {
        const struct radi_kv_decl *g = &p->kv[i];
        radi_str_adds(s, i ? ",{" : "{");
        str_member(s, "name", g->name);
        radi_str_addf(s, ",\"kind\":\"%s\",\"dtype\":\"%s\",\"layers\":%zu,\"block_size\":%lld,"
                      "\"blocks\":%lld,\"slots\":%lld,\"page_bytes\":%llu,\"bytes\":%llu}",
                      kv_kinds[g->d.kind], rad_dtype_name(g->d.dtype), g->n_layers,
                      (long long)g->block_size, (long long)g->n_blocks, (long long)g->n_slots,
                      (unsigned long long)g->page_bytes, (unsigned long long)g->bytes);
    }
    radi_str_adds(s, "]");
}

static void json_ops(struct radi_str *s, const struct rad_plan *p)
{
    radi_str_adds(s, "\"graph\":[");
    for (size_t i = 0; i < p->n_ops; i++) {
        const struct radi_op *o = &p->op[i];
        struct radi_str t = { 0 };
        radi_op_text(o, &t);
        radi_str_adds(s, i ? ",{" : "{");
        str_member(s, "op", o->name);
        radi_str_addc(s, ',');
        str_member(s, "call", t.s ? t.s : "");
        radi_str_adds(s, ",\"bands\":[");
        for (int k = 0; k < o->n_bands; k++) {
            const struct radi_band *b = &o->band[k];
            radi_str_addf(s, "%s{\"from\":%lld,\"to\":%lld,", k ? "," : "", (long long)b->lo,
                          (long long)b->hi);
            str_member(s, "library", b->row ? p->plugins->lib[b->lib].info->name : "");
            radi_str_addc(s, ',');
            str_member(s, "kernel", b->row ? b->row->name : "");
            radi_str_addf(s, ",\"rank\":%d,\"scratch\":%zu,", b->row ? b->row->rank : 0,
                          b->scratch);
            str_member(s, "not", b->why ? b->why : "");
            radi_str_addc(s, '}');
        }
        radi_str_adds(s, "]}");
        radi_str_release(&t);
    }
    radi_str_adds(s, "]");
}

rad_status rad_plan_memory_json(const struct rad_plan *p, char **out, struct rad_err *err)
{
    static const char *const devices[] = { "host", "test" };
    const struct radi_sizes *z = &p->size;
    struct radi_str s = { 0 };
    uint64_t stored = 0;
    for (size_t i = 0; i < p->n_weights; i++)
        if (!p->weight[i].constant)
            stored += radi_weight_bytes(p->weight[i].enc, p->weight[i].rows, p->weight[i].cols);
    uint64_t total = z->weights_copied + z->weights_layout + z->constants + z->arena + z->scratch
        + z->kv + 2 * z->staging + z->logits;
    radi_str_addc(&s, '{');
    str_member(&s, "architecture", p->arch_id);
    radi_str_addc(&s, ',');
    str_member(&s, "quant", p->quant);
    radi_str_addc(&s, ',');
    str_member(&s, "plugin", p->arch->info->name);
    radi_str_addf(&s, ",\"device\":\"%s\",\"max_tok\":%lld,\"max_seqs\":%lld,\"max_ctx\":%lld,"
                  "\"max_out\":%lld,\"parts\":%d,", devices[p->device], (long long)p->ctx.max_tok,
                  (long long)p->ctx.max_seqs, (long long)p->ctx.max_ctx, (long long)p->max_out,
                  p->parts);
    radi_str_addf(&s, "\"weights\":{\"count\":%d,\"stored_bytes\":%llu,\"mapped_bytes\":%llu,"
                  "\"copied_bytes\":%llu,\"layout_bytes\":%llu,\"constant_bytes\":%llu,",
                  rad_plan_weight_count(p), (unsigned long long)stored,
                  (unsigned long long)z->weights_mapped, (unsigned long long)z->weights_copied,
                  (unsigned long long)z->weights_layout, (unsigned long long)z->constants);
    json_types(&s, p);
    radi_str_addf(&s, "},\"arena_bytes\":%llu,\"scratch_bytes\":%llu,\"staging\":{"
                  "\"host_bytes\":%llu,\"device_bytes\":%llu,\"logits_bytes\":%llu},",
                  (unsigned long long)z->arena, (unsigned long long)z->scratch,
                  (unsigned long long)z->staging, (unsigned long long)z->staging,
                  (unsigned long long)z->logits);
    json_kv(&s, p);
    radi_str_addf(&s, ",\"kv_bytes\":%llu,\"total_bytes\":%llu,", (unsigned long long)z->kv,
                  (unsigned long long)total);
    json_ops(&s, p);
    radi_str_adds(&s, "}\n");
    return give(&s, out, err);
}
