/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of a conversion: open the checkpoint, map its config, declare
 * the model through the same start-up as a server, reserve every weight, write.
 * Nothing is written before everything has been planned. */
#include "config.h"

#include <rad/tokenizer.h>

#include "convert/convert.h"
#include "text/tok.h"

#include "banned.h"

static const RadEncoding *encoding_hook(void *user, const char *name, const RadWeightDecl *d,
                                        const RadNameMap *const *map, int n_map)
{
    struct rad_convert *c = user;
    const RadEncoding *enc = NULL;
    struct rad_err err = { 0 };
    rad_status st = radi_cv_resolve(c, name, d, map, n_map, &enc, &err);
    if (!st)
        return enc;
    if (!c->fail.code) {
        c->fail = err;
        c->fail.code = st;
    }
    /* A stand-in, so that the plan does not report misses that follow from it. */
    rad_encoding_plain(&c->stand_in, RAD_F32);
    return &c->stand_in;
}

/* The last path component without a model file's ending. */
static char *base_name(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    static const char *const ends[] = { ".gguf", ".safetensors", ".index.json" };
    for (size_t i = 0; i < RADI_COUNT(ends); i++) {
        size_t k = strlen(ends[i]);
        if (n - at > k && !memcmp(path + n - k, ends[i], k))
            n -= k;
    }
    return radi_strndup(path + at, n - at);
}

static rad_status check_recipe(const struct rad_convert *c, struct rad_err *err)
{
    for (size_t i = 0; c->recipe && i < rad_recipe_count(c->recipe); i++) {
        const struct rad_recipe_rule *r = rad_recipe_at(c->recipe, i);
        const RadQuantizer *q = rad_plugins_quant(c->plugins, r->quantizer);
        struct radi_str legal = { 0 };
        rad_status st = RAD_OK;
        if (!q) {
            for (int k = 0; k < rad_plugins_quant_count(c->plugins); k++)
                radi_str_addf(&legal, "%s%s", k ? ", " : "",
                              rad_plugins_quant_at(c->plugins, k)->name);
            st = rad_fail(err, RAD_E_ARG, "%s: no quantiser '%s', there are: %s", r->where,
                          r->quantizer, legal.len ? legal.s : "none");
        }
        for (size_t o = 0; q && !st && o < r->n_options; o++) {
            const RadQuantOption *opt = NULL;
            for (int k = 0; k < q->n_options; k++)
                if (!strcmp(q->options[k].key, r->option[o].key))
                    opt = &q->options[k];
            int64_t iv;
            double fv;
            if (!opt) {
                for (int k = 0; k < q->n_options; k++)
                    radi_str_addf(&legal, "%s%s", k ? ", " : "", q->options[k].key);
                st = rad_fail(err, RAD_E_ARG, "%s: '%s' has no option '%s', there are: %s",
                              r->where, q->name, r->option[o].key, legal.len ? legal.s : "none");
            } else if ((opt->type == RAD_QOPT_INT && !radi_parse_i64(r->option[o].value, &iv)) ||
                       (opt->type == RAD_QOPT_REAL && !radi_parse_f64(r->option[o].value, &fv))) {
                st = rad_fail(err, RAD_E_ARG, "%s: option '%s' is '%s', want a%s number", r->where,
                              opt->key, r->option[o].value,
                              opt->type == RAD_QOPT_INT ? " whole" : "");
            }
        }
        radi_str_release(&legal);
        RAD_TRY(st);
    }
    return RAD_OK;
}

/* The tokenizer and, drawn from it, the certificate. */
static rad_status take_tokenizer(struct rad_convert *c, const char *path, struct rad_err *err)
{
    struct rad_tokenizer *t = NULL;
    rad_status st = path ? rad_tokenizer_open(path, &t, err)
                         : rad_tokenizer_from_ckpt(c->ckpt, &t, err);
    if (st == RAD_E_NOTFOUND && !path) {
        rad_log(RAD_LOG_WARN, "convert",
                "no tokenizer beside the checkpoint: the file will hold none");
        return RAD_OK;
    }
    if (st)
        return st;
    struct radi_str vocab = { 0 };
    struct rad_tok_text cert = { 0 };
    struct radi_vocab_sink sink = { c->writer, rad_model_writer_intern };
    /* Embeddings of a folder may be padded; a GGUF states one token a row. */
    int64_t n = (int64_t)rad_tokenizer_count(t);
    bool gguf = rad_ckpt_kind(c->ckpt) == RAD_CKPT_GGUF && !path;
    if (n > c->meta.n_vocab || (gguf && n != c->meta.n_vocab))
        st = rad_fail(err, RAD_E_FORMAT,
                      "'%s': the tokenizer has %lld tokens, the embedding %lld rows",
                      path ? path : rad_ckpt_path(c->ckpt), (long long)n,
                      (long long)c->meta.n_vocab);
    if (!st)
        st = radi_vocab_write(t, &sink, &vocab, err);
    if (!st)
        st = rad_model_writer_vocab(c->writer, vocab.s, vocab.len, err);
    if (!st)
        st = rad_tokenizer_certificate_make(t, &cert, err);
    if (!st)
        st = rad_model_writer_certificate(c->writer, cert.s, cert.len, err);
    radi_str_release(&vocab);
    rad_tok_text_release(&cert);
    rad_tokenizer_free(t);
    return st;
}

static rad_status reserve(struct rad_convert *c, struct rad_err *err)
{
    for (size_t i = 0; i < c->n_item; i++) {
        struct radi_cv_item *it = c->item[i];
        struct rad_weight_spec s = {
            .size = sizeof s, .name = it->name, .enc = &it->enc, .rank = it->decl->rank,
            .quantizer = it->quant ? it->quant->name : "",
            .options = it->rule ? it->rule->options : "",
            .layer = it->decl->group.layer, .expert = it->decl->group.expert,
            .slot = it->decl->group.slot,
        };
        memcpy(s.shape, it->decl->shape, sizeof s.shape);
        size_t id;
        RAD_TRY(rad_model_writer_weight(c->writer, &s, &id, err));
        RADI_BUG_IF(id != i);
    }
    return RAD_OK;
}

/* Optional weights that the checkpoint lacks are no items. */
static void squeeze(struct rad_convert *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_item; i++)
        if (c->item[i]->n_part)
            c->item[n++] = c->item[i];
    c->n_item = n;
}

static void warn_unused_rules(const struct rad_convert *c)
{
    for (size_t r = 0; c->recipe && r < rad_recipe_count(c->recipe); r++) {
        bool used = false;
        for (size_t i = 0; i < c->n_item; i++)
            used = used || c->item[i]->rule_index == (int64_t)r;
        if (!used)
            rad_log(RAD_LOG_WARN, "convert", "%s: the rule matched no weight",
                    rad_recipe_at(c->recipe, r)->where);
    }
}

rad_status rad_convert_open(const char *input, const struct rad_convert_opts *o,
                            struct rad_convert **out, struct rad_err *err)
{
    *out = NULL;
    struct rad_convert *c = radi_calloc(1, sizeof *c);
    if (!c)
        return rad_fail(err, RAD_E_NOMEM, "convert: out of memory");
    radi_arena_init(&c->arena, 0);
    c->recipe = o->recipe;
    c->by_name = radi_map_new(1024);
    c->name = base_name(input);
    rad_status st = c->by_name && c->name ? RAD_OK
                                          : rad_fail(err, RAD_E_NOMEM, "convert: out of memory");
    if (!st)
        st = radi_pool_new(o->threads, &c->pool, err);
    if (!st)
        st = rad_plugins_open(o->home, o->kernels, &c->plugins, err);
    if (!st)
        st = check_recipe(c, err);
    if (!st)
        st = rad_ckpt_open(input, &c->ckpt, err);
    if (!st) {
        st = radi_cv_meta(c, o, err);
        if (st)
            rad_fail_in(err, st, "'%s'", input);
    }
    struct rad_plan_source src = { &c->meta, encoding_hook, c };
    struct rad_deployment d = { .size = sizeof d, .max_ctx = o->max_ctx, .max_tok = o->max_tok,
                                .parts = c->pool ? radi_pool_parts(c->pool) : 1 };
    if (!st) {
        st = rad_plan_build(c->plugins, &src, &d, &c->plan, err);
        /* A weight that the hook refused is the cause of whatever came after; but
         * without memory the hook may not have been told what it needs. */
        if (c->fail.code && st != RAD_E_NOMEM)
            st = rad_fail(err, c->fail.code, "%s", c->fail.text);
        if (st)
            rad_fail_in(err, st, "'%s'", input);
    }
    if (!st)
        st = rad_model_writer_new(&c->writer, err);
    if (!st) {
        squeeze(c);
        warn_unused_rules(c);
        st = radi_cv_write_meta(c, o, err);
    }
    if (!st)
        st = take_tokenizer(c, o->tokenizer, err);
    if (!st)
        st = reserve(c, err);
    if (!st)
        st = rad_model_writer_plan(c->writer, err);
    if (st) {
        rad_convert_close(c);
        return st;
    }
    *out = c;
    return RAD_OK;
}

void rad_convert_close(struct rad_convert *c)
{
    if (!c)
        return;
    rad_model_writer_free(c->writer);
    rad_plan_free(c->plan);
    rad_plugins_close(c->plugins);
    rad_ckpt_close(c->ckpt);
    radi_pool_free(c->pool);
    radi_map_free(c->by_name);
    for (size_t i = 0; i < c->n_item; i++)
        radi_free(c->item[i]->part);
    radi_free(c->item);
    radi_json_free(c->config);
    radi_free(c->config_text);
    radi_free((void *)c->kv_key);
    radi_free((void *)c->kv_val);
    radi_free(c->name);
    radi_arena_release(&c->arena);
    radi_free(c);
}

size_t rad_convert_count(const struct rad_convert *c)
{
    return c->n_item;
}

void rad_convert_at(const struct rad_convert *c, size_t i, struct rad_convert_weight *w)
{
    const struct radi_cv_item *it = c->item[i];
    *w = (struct rad_convert_weight){
        .name = it->name, .source = rad_ckpt_tensor(c->ckpt, it->part[0].tensor)->name,
        .enc = &it->enc, .rank = it->decl->rank, .bytes = it->bytes,
        .quantizer = it->quant ? it->quant->name : "",
        .options = it->rule ? it->rule->options : "",
        .rule = it->rule_index, .error = it->error,
    };
    memcpy(w->shape, it->decl->shape, sizeof w->shape);
}

uint64_t rad_convert_file_bytes(const struct rad_convert *c)
{
    return rad_model_writer_file_bytes(c->writer);
}

const char *rad_convert_name(const struct rad_convert *c)
{
    return c->name;
}

rad_status rad_convert_write(struct rad_convert *c, const char *output, rad_progress_fn *progress,
                             void *user, struct rad_err *err)
{
    if (c->written)
        return rad_fail(err, RAD_E_STATE, "this conversion was written already");
    c->written = true;
    RAD_TRY(rad_model_writer_open(c->writer, output, err));
    uint64_t total = rad_convert_file_bytes(c);
    for (size_t pos = 0; pos < rad_model_writer_count(c->writer); pos++) {
        size_t id;
        const struct rad_weight *w = rad_model_writer_at(c->writer, pos, &id);
        if (progress)
            progress(user, w->offset, total);
        RAD_TRY(radi_cv_write_item(c, c->item[id], pos, err));
    }
    RAD_TRY(rad_model_writer_finish(c->writer, err));
    if (progress)
        progress(user, total, total);
    return RAD_OK;
}
