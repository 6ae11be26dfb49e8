/* SPDX-License-Identifier: Apache-2.0 */
/* From a source and a deployment to a plan: picks the architecture, asks its
 * probe, refuses by name what the plugin or the core does not serve, runs
 * declare, and reports everything that is wrong at once. */
#include "config.h"

#include <stdio.h>

#include "plan/plan_priv.h"

#include "banned.h"

/* ---- the deployment */
struct request {
    const char *name;
    bool set;
    bool by_probe;               /* a permission of the plugin ... */
    bool allowed;                /* ... which it gave */
};

static rad_status refuse_unserved(const struct rad_plan *p, const RadBuildCtx *c,
                                  struct rad_err *err)
{
    const RadArchProbe *q = &p->probe;
    const struct request r[] = {
        { "rank", c->rank != 0, false, false },
        { "world_size", c->world_size && c->world_size != 1, false, false },
        { "max_spec", c->max_spec != 0, true, q->draft_depth > 0 },
        { "max_mixed_tok", c->max_mixed_tok != 0, false, false },
        { "tp_wire_lossy", c->tp_wire_lossy != 0, false, false },
        { "tp_wire_min_bytes", c->tp_wire_min_bytes != 0, false, false },
        { "kv_quant", c->kv_quant != RAD_KVQ_NONE, true,
          c->kv_quant > 0 && c->kv_quant < 31 && (q->kv_quant_ok & 1 << c->kv_quant) },
        { "attn_prefill_fp8", c->attn_prefill_fp8 != 0, false, false },
        { "kv_resident_blocks", c->kv_resident_blocks != 0, true, q->kv_stream_ok != 0 },
        { "kv_stream_ok", c->kv_stream_ok != 0, true, q->kv_stream_ok != 0 },
        { "state_dtype", c->state_dtype != 0 && c->state_dtype != RAD_F32, true,
          c->state_dtype == RAD_F16 && q->state_f16_ok },
        { "is_draft", c->is_draft != 0, false, false },
        { "scope", c->scope && *c->scope, false, false },
        { "shape_probe", c->shape_probe != 0, true, q->shape_probe_ok != 0 },
        { "max_enc_patches", c->max_enc_patches != 0, true, q->enc_merge > 0 },
        { "max_audio_frames", c->max_audio_frames != 0, true, q->audio_frames > 0 },
        { "cvec", c->cvec != NULL, true, q->control_vector_ok != 0 },
        { "tp_attn_rows", c->tp_attn_rows != 0, true, q->tp_attn_rows_ok != 0 },
        { "draft_coupling", c->draft_coupling != RAD_COUPLING_NONE, true, q->draft_depth > 0 },
        { "draft_tree", c->draft_tree != 0, true, q->tree_pays != 0 },
        { "weight_prefetch_off", c->weight_prefetch_off != 0, false, false },
    };
    for (size_t i = 0; i < RADI_COUNT(r); i++) {
        if (!r[i].set)
            continue;
        if (r[i].by_probe && !r[i].allowed)
            return rad_fail(err, RAD_E_UNSUPPORTED, "deployment field '%s': plugin '%s' does not "
                            "serve it for this model", r[i].name, p->arch->info->name);
        return rad_fail(err, RAD_E_UNSUPPORTED, "deployment field '%s' is not served", r[i].name);
    }
    return RAD_OK;
}

static rad_status check_type(const char *field, int dt, const int *ok, size_t n,
                             struct rad_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (ok[i] == dt)
            return RAD_OK;
    return rad_fail(err, RAD_E_UNSUPPORTED, "deployment field '%s': type %s is not served", field,
                    rad_dtype_name(dt));
}

static rad_status set_deployment(struct rad_plan *p, const struct rad_deployment *d,
                                 struct rad_err *err)
{
    static const int act[] = { RAD_F32, RAD_BF16 };
    static const int kv[] = { RAD_F32, RAD_BF16, RAD_F16, RAD_FP8_E4M3 };
    RadBuildCtx *c = &p->ctx;
    const struct { const char *name; int64_t v; } limits[] = {
        { "max_tok", d->max_tok }, { "max_seqs", d->max_seqs }, { "max_ctx", d->max_ctx },
        { "max_out", d->max_out }, { "kv_tokens", d->kv_tokens },
        { "ctx.max_tok", d->ctx.max_tok }, { "ctx.max_seqs", d->ctx.max_seqs },
        { "ctx.max_ctx", d->ctx.max_ctx }, { "ctx.max_out_rows", d->ctx.max_out_rows },
    };
    for (size_t i = 0; i < RADI_COUNT(limits); i++)
        if (limits[i].v < 0 || limits[i].v > 1 << 30)
            return rad_fail(err, RAD_E_ARG, "deployment field '%s': %lld, want 0 to %d",
                            limits[i].name, (long long)limits[i].v, 1 << 30);
    RAD_TRY(refuse_unserved(p, &d->ctx, err));
    if (d->device != RAD_DEVICE_HOST && d->device != RAD_DEVICE_TEST)
        return rad_fail(err, RAD_E_UNSUPPORTED, "deployment field 'device': %d is not served",
                        d->device);
    *c = d->ctx;
    c->struct_size = sizeof *c;
    c->world_size = 1;
    c->scope = "";
    c->max_tok = d->max_tok ? d->max_tok : c->max_tok ? c->max_tok : 512;
    c->max_seqs = d->max_seqs ? d->max_seqs : c->max_seqs ? c->max_seqs : 16;
    c->max_ctx = d->max_ctx ? d->max_ctx : c->max_ctx ? c->max_ctx : p->meta->n_ctx_train;
    if (c->max_ctx < 1 || c->max_ctx > 1 << 30)
        return rad_fail(err, RAD_E_ARG, "deployment field 'max_ctx': the model states no training "
                        "context, so it must be given");
    int64_t out = d->max_out ? d->max_out : d->ctx.max_out_rows ? d->ctx.max_out_rows : c->max_seqs;
    c->max_out_rows = RADI_MIN(out, c->max_tok);
    p->max_out = c->max_out_rows;
    c->act_dtype = d->act_dtype ? d->act_dtype : c->act_dtype ? c->act_dtype : RAD_F32;
    c->kv_dtype = d->kv_dtype ? d->kv_dtype : c->kv_dtype ? c->kv_dtype : RAD_F32;
    RAD_TRY(check_type("act_dtype", c->act_dtype, act, RADI_COUNT(act), err));
    RAD_TRY(check_type("kv_dtype", c->kv_dtype, kv, RADI_COUNT(kv), err));
    p->device = d->device;
    p->parts = d->parts > 0 ? d->parts : 1;
    p->kv_tokens = d->kv_tokens;
    p->kv_bytes = d->kv_bytes;
    return RAD_OK;
}

/* ---- the report */
static rad_status report(RadBuilder *b, struct rad_err *err)
{
    if (b->fail)
        return rad_fail(err, b->fail, "architecture plugin '%s': %s", b->plan->arch->info->name,
                        b->fail_text ? b->fail_text : "declare failed");
    if (b->failed)
        return rad_fail(err, RAD_E_NOMEM, "declare: out of memory");
    struct radi_str s = { 0 };
    rad_status st = RAD_OK;
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < b->n_misses; i++) {
        struct radi_miss *m = &b->miss[i];
        if (m->op >= 0 && b->plan->op[m->op].asked)
            continue;                            /* the architecture chose another form */
        for (size_t k = 0; k < i; k++)           /* the same op of another layer */
            if (m->count && b->miss[k].count && !strcmp(b->miss[k].text, m->text)) {
                b->miss[k].count += m->count;
                m->count = 0;
            }
    }
    for (size_t i = 0; i < b->n_misses; i++) {
        const struct radi_miss *m = &b->miss[i];
        if (!m->count || (m->op >= 0 && b->plan->op[m->op].asked))
            continue;
        st = st ? st : m->st;
        n++;
        char times[32] = "";
        if (m->count > 1)
            snprintf(times, sizeof times, " (%d times)", m->count);
        rad_log(RAD_LOG_ERROR, "plan", "%s%s", m->text, times);
        if (s.len + strlen(m->text) < RAD_ERR_TEXT - 160 || !shown) {
            radi_str_addf(&s, "%s%s%s", shown ? "; " : "", m->text, times);
            shown++;
        }
    }
    if (st) {
        if (s.failed)
            rad_fail(err, st, "declare: %zu faults", n);
        else if (n > shown)
            rad_fail(err, st, "%zu faults, the first %zu: %s", n, shown, s.s);
        else
            rad_fail(err, st, "%s", s.s);
        rad_fail_in(err, st, "model '%s', plugin '%s'", b->plan->model_name,
                    b->plan->arch->info->name);
    }
    radi_str_release(&s);
    return st;
}

static void check_whole(RadBuilder *b)
{
    const struct rad_plan *p = b->plan;
    if (p->logits < 0)
        radi_miss(b, -1, RAD_E_STATE, "declare named no output (rad_declare_logits)");
    for (int i = 0; i < p->n_kv; i++)
        if (radi_kv_paged(&p->kv[i].d) && !p->kv[i].block_size)
            radi_miss(b, -1, RAD_E_STATE, "kv group '%s': no op fixes its page size",
                      p->kv[i].name);
}

/* ---- entry */
static const char *own(struct rad_plan *p, const char *s)
{
    return radi_arena_strndup(&p->mem, s ? s : "", s ? strlen(s) : 0);
}

static void builder_release(RadBuilder *b)
{
    radi_free(b->map);
    radi_map_free(b->map_index);
    radi_map_free(b->weight_index);
    radi_map_free(b->buf_index);
    radi_free(b->miss);
    radi_free(b->fail_text);
}

static rad_status run_declare(struct rad_plan *p, const struct rad_plan_source *src,
                              struct rad_model *m, struct rad_err *err)
{
    RadBuilder b = { .plan = p, .src = src, .model = m };
    b.map_index = radi_map_new(512);
    b.weight_index = radi_map_new(512);
    b.buf_index = radi_map_new(64);
    b.failed = !b.map_index || !b.weight_index || !b.buf_index;
    int rc = b.failed ? RAD_E_NOMEM : p->arch->x.declare(&b, p->meta, &p->ctx);
    if (!b.failed && rc >= 0)
        check_whole(&b);
    rad_status st = report(&b, err);
    if (!st && rc < 0)
        st = rad_fail(err, (rad_status)rc, "architecture plugin '%s': declare failed: %s",
                      p->arch->info->name, rad_strstatus((rad_status)rc));
    builder_release(&b);
    return st;
}

static rad_status build(struct rad_plan *p, struct rad_plugins *plugins,
                        const struct rad_plan_source *src, struct rad_model *m,
                        const struct rad_deployment *d, struct rad_err *err)
{
    p->plugins = plugins;
    p->meta = src->meta;
    p->arch_id = own(p, src->meta->arch_id);
    p->quant = own(p, src->meta->quant);
    p->model_name = own(p, src->meta->name);
    if (!p->arch_id || !p->quant || !p->model_name)
        return rad_fail(err, RAD_E_NOMEM, "plan: out of memory");
    if (!plugins->n_order)
        return rad_fail(err, RAD_E_NOTFOUND, "no kernel library in '%s'", plugins->home);
    RAD_TRY(radi_plugins_arch(plugins, p->arch_id, p->quant, &p->arch, err));
    p->probe.struct_size = sizeof p->probe;
    if (p->arch->x.probe) {
        int rc = p->arch->x.probe(p->meta, &p->probe);
        if (rc < 0)
            return rad_fail(err, (rad_status)rc, "architecture plugin '%s' does not serve '%s': %s",
                            p->arch->info->name, p->model_name, rad_strstatus((rad_status)rc));
    }
    RAD_TRY(set_deployment(p, d, err));
    RAD_TRY(run_declare(p, src, m, err));
    RAD_TRY(radi_bufplan(p, err));
    return radi_placement(p, err);
}

rad_status radi_plan_declare(struct rad_plugins *plugins, const struct rad_plan_source *src,
                             struct rad_model *m, const struct rad_deployment *d,
                             struct rad_plan **out, struct rad_err *err)
{
    *out = NULL;
    struct rad_plan *p = radi_calloc(1, sizeof *p);
    if (!p)
        return rad_fail(err, RAD_E_NOMEM, "plan: out of memory");
    radi_arena_init(&p->mem, (size_t)4 << 30);
    p->logits = RAD_NULL_HANDLE;
    static const struct rad_deployment none;
    rad_status st = build(p, plugins, src, m, d ? d : &none, err);
    if (st) {
        rad_plan_free(p);
        return st;
    }
    *out = p;
    return RAD_OK;
}

rad_status rad_plan_build(struct rad_plugins *p, const struct rad_plan_source *src,
                          const struct rad_deployment *d, struct rad_plan **out,
                          struct rad_err *err)
{
    return radi_plan_declare(p, src, NULL, d, out, err);
}

static const RadEncoding *model_encoding(void *user, const char *name, const RadWeightDecl *d,
                                         const RadNameMap *const *map, int n_map)
{
    (void)d;
    (void)map;
    (void)n_map;
    const struct rad_weight *w = rad_model_weight(user, name);
    return w ? w->enc : NULL;
}

rad_status rad_plan_build_model(struct rad_plugins *p, struct rad_model *m,
                                const struct rad_deployment *d, struct rad_plan **out,
                                struct rad_err *err)
{
    *out = NULL;
    struct rad_plan_source src = { rad_model_build_meta(m), model_encoding, m };
    if (!src.meta)
        return rad_fail(err, RAD_E_NOMEM, "metadata: out of memory");
    return radi_plan_declare(p, &src, m, d, out, err);
}

void rad_plan_free(struct rad_plan *p)
{
    if (!p)
        return;
    if (p->state && p->state_fini)
        p->state_fini(p->state);
    for (int i = 0; i < p->n_kv; i++)
        radi_free(p->kv[i].layer);
    radi_free(p->weight);
    radi_free(p->layout);
    radi_free(p->buf);
    radi_free(p->op);
    radi_free(p->note);
    radi_arena_release(&p->mem);
    radi_free(p);
}

int rad_plan_weight_count(const struct rad_plan *p)
{
    int n = 0;
    for (size_t i = 0; i < p->n_weights; i++)
        n += !p->weight[i].constant;
    return n;
}

void rad_plan_weight_at(const struct rad_plan *p, int i, struct rad_plan_weight *out)
{
    for (size_t k = 0; k < p->n_weights; k++) {
        const struct radi_weight *w = &p->weight[k];
        if (w->constant || i-- > 0)
            continue;
        *out = (struct rad_plan_weight){ w->name, &w->d, w->enc,
                                         (const RadNameMap *const *)w->map, w->n_map };
        return;
    }
}
