/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the import of Hugging Face tokenizers: tokenizer.json's model and added
 * tokens, and what tokenizer_config.json and generation_config.json say about
 * special tokens and the chat template. The pipeline is tok_json_pipe.c.
 *
 * The ids of a file are bounded by its size, so a table by id cannot be made
 * huge by a small file. */
#include "config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/tok_json.h"

#include "banned.h"

enum { JSON_LIMIT = 512 << 20 };

struct import {
    struct radi_tok_spec s;
    struct radi_vmap by_text;
    size_t limit;            /* ids below */
    const char *unk;         /* name */
    struct rad_err *err;
};

/* ---- vocabulary */
static rad_status get_id(const struct import *im, const cJSON *x, const char *what,
                         const char *name, int32_t *id)
{
    char buf[64];
    double v = cJSON_IsNumber(x) ? x->valuedouble : -1;
    if (!cJSON_IsNumber(x) || !(v >= 0) || v >= (double)im->limit ||
        v != (double)(int64_t)v)
        return rad_fail(im->err, RAD_E_FORMAT,
                        "%s '%.60s': its id: found %s, want an integer from 0 to %zu", what, name,
                        x ? radi_json_what(x, buf) : "nothing", im->limit - 1);
    *id = (int32_t)v;
    return RAD_OK;
}

static rad_status set_token(struct import *im, int32_t id, const char *text, enum rad_tok_type ty)
{
    struct radi_tok_spec *s = &im->s;
    size_t n = strlen(text);
    RAD_TRY(radi_tok_spec_reserve(s, (size_t)id + 1, im->err));
    if (s->text[id].s)
        return rad_fail(im->err, RAD_E_FORMAT, "token id %d: both '%.60s' and '%.60s'", id,
                        s->text[id].s, text);
    RAD_TRY(radi_tok_spec_text(s, &s->text[id], text, n, im->err));
    s->type[id] = (uint8_t)ty;
    if (ty == RAD_TOK_NORMAL && s->byte_fallback && radi_byte_token(text, n) >= 0)
        s->type[id] = RAD_TOK_BYTE;
    return RAD_OK;
}

static rad_status vocab_object(struct import *im, const cJSON *v)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, v) {
        int32_t id;
        RAD_TRY(get_id(im, x, "token", x->string, &id));
        RAD_TRY(set_token(im, id, x->string, RAD_TOK_NORMAL));
    }
    return RAD_OK;
}

static rad_status vocab_scores(struct import *im, const cJSON *v)
{
    const cJSON *x;
    int32_t id = 0;
    cJSON_ArrayForEach(x, v) {
        const cJSON *t = cJSON_IsArray(x) ? x->child : NULL, *sc = t ? t->next : NULL;
        if (!cJSON_IsString(t) || !cJSON_IsNumber(sc) || sc->next)
            return rad_fail(im->err, RAD_E_FORMAT, "'vocab' item %d: want a text and a score", id);
        RAD_TRY(set_token(im, id, t->valuestring, RAD_TOK_NORMAL));
        im->s.score[id++] = (float)sc->valuedouble;
    }
    return RAD_OK;
}

static rad_status index_texts(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    RAD_TRY(radi_vmap_init(&im->by_text, s->n_tokens + 1, im->err));
    for (size_t i = 0; i < s->n_tokens; i++)
        if (s->text[i].s)
            radi_vmap_put(&im->by_text, s->text, (int32_t)i);
    return RAD_OK;
}

static rad_status merge_part(struct import *im, size_t i, const char *p, size_t n, uint32_t *out)
{
    int32_t id = radi_vmap_get(&im->by_text, im->s.text, p, n);
    if (!n || id < 0)
        return rad_fail(im->err, RAD_E_FORMAT,
                        "merge %zu: its part '%.*s' is not in the vocabulary", i,
                        (int)RADI_MIN(n, (size_t)60), p);
    *out = (uint32_t)id;
    return RAD_OK;
}

static rad_status merges(struct import *im, const cJSON *m)
{
    struct radi_tok_spec *s = &im->s;
    const cJSON *x;
    size_t i = 0;
    char what[64];
    if (!cJSON_IsArray(m))
        return rad_fail(im->err, RAD_E_FORMAT, "'merges': found %s, want an array",
                        m ? radi_json_what(m, what) : "nothing");
    cJSON_ArrayForEach(x, m) {
        const char *a, *b;
        size_t an, bn;
        if (cJSON_IsString(x)) {
            a = x->valuestring;
            if (i == 0 && !strncmp(a, "#version", 8))
                continue;
            b = strchr(a, ' ');
            if (!b || strchr(b + 1, ' '))
                return rad_fail(im->err, RAD_E_FORMAT, "merge %zu: '%.60s', want two parts", i, a);
            an = (size_t)(b - a);
            bn = strlen(++b);
        } else {
            const cJSON *p = cJSON_IsArray(x) ? x->child : NULL, *q = p ? p->next : NULL;
            if (!cJSON_IsString(p) || !cJSON_IsString(q) || q->next)
                return rad_fail(im->err, RAD_E_FORMAT, "merge %zu: found %s, want two parts", i,
                                radi_json_what(x, what));
            a = p->valuestring;
            b = q->valuestring;
            an = strlen(a);
            bn = strlen(b);
        }
        RAD_TRY(radi_grow((void **)&s->merge, &s->cap_merges, i + 1, sizeof *s->merge, im->err));
        RAD_TRY(merge_part(im, i, a, an, &s->merge[i][0]));
        RAD_TRY(merge_part(im, i, b, bn, &s->merge[i][1]));
        s->n_merges = ++i;
    }
    return RAD_OK;
}

/* ---- model */
static rad_status opt_str(const cJSON *j, const char *key, const char **out, struct rad_err *err)
{
    const cJSON *x = radi_json_get(j, key);
    bool have;
    *out = NULL;
    if (!x || cJSON_IsNull(x))
        return RAD_OK;
    return radi_json_str(j, key, out, &have, err);
}

static rad_status opt_bool(const cJSON *j, const char *key, bool *out, struct rad_err *err)
{
    const cJSON *x = radi_json_get(j, key);
    bool have;
    *out = false;
    if (!x || cJSON_IsNull(x))
        return RAD_OK;
    return radi_json_bool(j, key, out, &have, err);
}

static const char *model_type(const cJSON *m)
{
    const cJSON *t = radi_json_get(m, "type");
    if (cJSON_IsString(t))
        return t->valuestring;
    if (radi_json_get(m, "merges"))      /* files from before the field */
        return "BPE";
    if (cJSON_IsArray(radi_json_get(m, "vocab")))
        return "Unigram";
    return radi_json_get(m, "max_input_chars_per_word") ? "WordPiece" : "(none)";
}

static rad_status model_bpe(struct import *im, const cJSON *m)
{
    struct radi_tok_spec *s = &im->s;
    const char *pre, *suf;
    const cJSON *drop = radi_json_get(m, "dropout");
    bool fuse, ignore;
    if (drop && !cJSON_IsNull(drop) && !(cJSON_IsNumber(drop) && drop->valuedouble <= 0))
        return rad_fail(im->err, RAD_E_UNSUPPORTED, "'dropout' other than null");
    RAD_TRY(opt_bool(m, "fuse_unk", &fuse, im->err));
    RAD_TRY(opt_bool(m, "ignore_merges", &ignore, im->err));
    RAD_TRY(opt_str(m, "continuing_subword_prefix", &pre, im->err));
    RAD_TRY(opt_str(m, "end_of_word_suffix", &suf, im->err));
    s->model |= (fuse ? (unsigned)RADI_TOKM_FUSE_UNK : 0) |
                (ignore ? (unsigned)RADI_TOKM_IGNORE_MERGES : 0);
    if (pre && *pre)
        RAD_TRY(radi_tok_spec_text(s, &s->sub_prefix, pre, strlen(pre), im->err));
    if (suf && *suf)
        RAD_TRY(radi_tok_spec_text(s, &s->end_suffix, suf, strlen(suf), im->err));
    return merges(im, radi_json_get(m, "merges"));
}

static rad_status model(struct import *im, const cJSON *m)
{
    struct radi_tok_spec *s = &im->s;
    char what[64];
    bool have;
    if (!cJSON_IsObject(m))
        return rad_fail(im->err, RAD_E_FORMAT, "'model': found %s, want an object",
                        m ? radi_json_what(m, what) : "nothing");
    const char *type = model_type(m), *pre;
    const cJSON *v = radi_json_get(m, "vocab");
    s->kind = !strcmp(type, "BPE") ? RAD_TOK_BPE : !strcmp(type, "Unigram") ? RAD_TOK_UNIGRAM
              : !strcmp(type, "WordPiece") ? RAD_TOK_WORDPIECE : 0;
    if (!s->kind)
        return rad_fail(im->err, RAD_E_UNSUPPORTED, "model type '%.60s'", type);
    RAD_TRY(opt_bool(m, "byte_fallback", &s->byte_fallback, im->err));
    bool array = s->kind == RAD_TOK_UNIGRAM;
    if (array ? !cJSON_IsArray(v) : !cJSON_IsObject(v))
        return rad_fail(im->err, RAD_E_FORMAT, "model 'vocab': found %s, want an %s",
                        v ? radi_json_what(v, what) : "nothing", array ? "array" : "object");
    RAD_TRY(array ? vocab_scores(im, v) : vocab_object(im, v));
    RAD_TRY(index_texts(im));
    if (s->kind == RAD_TOK_UNIGRAM) {
        const cJSON *u = radi_json_get(m, "unk_id");
        if (u && !cJSON_IsNull(u))
            RAD_TRY(get_id(im, u, "model", "unk_id", &s->unk));
        return RAD_OK;
    }
    radi_free(s->score);
    s->score = NULL;
    s->cap_score = 0;
    RAD_TRY(opt_str(m, "unk_token", &im->unk, im->err));
    if (s->kind == RAD_TOK_BPE)
        return model_bpe(im, m);
    if (!im->unk)
        im->unk = "[UNK]";
    RAD_TRY(opt_str(m, "continuing_subword_prefix", &pre, im->err));
    pre = pre ? pre : "##";
    RAD_TRY(radi_tok_spec_text(s, &s->sub_prefix, pre, strlen(pre), im->err));
    return radi_json_i64(m, "max_input_chars_per_word", &s->max_word, &have, im->err);
}

/* ---- added tokens */
static int32_t find(const struct import *im, const char *text)
{
    return text ? radi_vmap_get(&im->by_text, im->s.text, text, strlen(text)) : -1;
}

static rad_status reindex(struct import *im)
{
    radi_vmap_release(&im->by_text);
    return index_texts(im);
}

static rad_status add_token(struct import *im, const cJSON *a, int32_t id)
{
    struct radi_tok_spec *s = &im->s;
    bool special, norm, l, r, w, have;
    const char *text;
    RAD_TRY(radi_json_str(a, "content", &text, &have, im->err));
    if (!have || !*text)
        return rad_fail(im->err, RAD_E_FORMAT, "added token %d: no 'content'", id);
    RAD_TRY(opt_bool(a, "special", &special, im->err));
    RAD_TRY(opt_bool(a, "lstrip", &l, im->err));
    RAD_TRY(opt_bool(a, "rstrip", &r, im->err));
    RAD_TRY(opt_bool(a, "single_word", &w, im->err));
    RAD_TRY(opt_bool(a, "normalized", &norm, im->err));
    if (!radi_json_get(a, "normalized"))
        norm = !special;
    unsigned f = (special ? (unsigned)RADI_ADDED_SPECIAL : 0) |
                 (norm ? (unsigned)RADI_ADDED_NORMALIZED : 0) |
                 (l ? (unsigned)RADI_ADDED_LSTRIP : 0) | (r ? (unsigned)RADI_ADDED_RSTRIP : 0) |
                 (w ? (unsigned)RADI_ADDED_SINGLE_WORD : 0);
    int32_t old = find(im, text);
    if (old >= 0)
        id = old;                /* the model's id counts, as in the reference */
    else {
        RAD_TRY(set_token(im, id, text, RAD_TOK_USER));
        f |= RADI_ADDED_OUTSIDE;
    }
    for (size_t i = 0; i < s->n_added; i++)
        if (s->added[i].id == id)
            return RAD_OK;       /* told twice */
    s->type[id] = special ? RAD_TOK_CONTROL : RAD_TOK_USER;
    RAD_TRY(radi_grow((void **)&s->added, &s->cap_added, s->n_added + 1, sizeof *s->added,
                      im->err));
    s->added[s->n_added++] = (struct radi_tok_added){ id, f };
    return RAD_OK;
}

static rad_status added_tokens(struct import *im, const cJSON *list)
{
    char what[64];
    const cJSON *a;
    if (!list || cJSON_IsNull(list))
        return RAD_OK;
    if (!cJSON_IsArray(list))
        return rad_fail(im->err, RAD_E_FORMAT, "'added_tokens': found %s, want an array",
                        radi_json_what(list, what));
    cJSON_ArrayForEach(a, list) {
        int32_t id;
        if (!cJSON_IsObject(a))
            return rad_fail(im->err, RAD_E_FORMAT, "'added_tokens': found %s, want an object",
                            radi_json_what(a, what));
        const cJSON *c = radi_json_get(a, "content");
        RAD_TRY(get_id(im, radi_json_get(a, "id"), "added token",
                       cJSON_IsString(c) ? c->valuestring : "?", &id));
        RAD_TRY(add_token(im, a, id));
    }
    return reindex(im);
}

/* tokenizer_config.json's list; only what tokenizer.json does not have. */
static rad_status added_decoder(struct import *im, const cJSON *obj)
{
    const cJSON *a;
    if (!cJSON_IsObject(obj))
        return RAD_OK;
    cJSON_ArrayForEach(a, obj) {
        int64_t id;
        const cJSON *c = cJSON_IsObject(a) ? radi_json_get(a, "content") : NULL;
        if (!cJSON_IsString(c) || !radi_parse_i64(a->string, &id) || id < 0 ||
            (size_t)id >= im->limit)
            return rad_fail(im->err, RAD_E_FORMAT,
                            "tokenizer_config: 'added_tokens_decoder': entry '%.40s'", a->string);
        if (find(im, c->valuestring) >= 0)
            continue;
        if ((size_t)id < im->s.n_tokens && im->s.text[id].s) {
            rad_log(RAD_LOG_WARN, "tok",
                    "tokenizer_config gives token %lld twice: '%s' is left out", (long long)id,
                    c->valuestring);
            continue;
        }
        RAD_TRY(add_token(im, a, (int32_t)id));
    }
    return reindex(im);
}

/* ---- the files beside */
/* A token's text: a string, or an object with "content". */
static const char *token_name(const cJSON *cfg, const char *key)
{
    const cJSON *x = radi_json_get(cfg, key);
    if (cJSON_IsObject(x))
        x = radi_json_get(x, "content");
    return cJSON_IsString(x) ? x->valuestring : NULL;
}

static rad_status set_template(struct import *im, const char *p, size_t n)
{
    struct radi_tstr t;
    RAD_TRY(radi_tok_spec_text(&im->s, &t, p, n, im->err));
    im->s.chat_template = t.s;
    return RAD_OK;
}

static rad_status template_of(struct import *im, const cJSON *t)
{
    const cJSON *e, *pick = NULL;
    if (!t || cJSON_IsNull(t))
        return RAD_OK;
    if (cJSON_IsString(t))
        return set_template(im, t->valuestring, strlen(t->valuestring));
    if (cJSON_IsArray(t))
        cJSON_ArrayForEach(e, t) {
            const cJSON *name = cJSON_IsObject(e) ? radi_json_get(e, "name") : NULL;
            const cJSON *text = cJSON_IsObject(e) ? radi_json_get(e, "template") : NULL;
            if (cJSON_IsString(text) &&
                (!pick || (cJSON_IsString(name) && !strcmp(name->valuestring, "default"))))
                pick = text;
        }
    if (!pick)
        return rad_fail(im->err, RAD_E_FORMAT,
                        "tokenizer_config: 'chat_template' is neither a text nor a list of them");
    return set_template(im, pick->valuestring, strlen(pick->valuestring));
}

/* Classes that build their template from add_bos_token and add_eos_token. */
static bool rebuilds(const char *cls)
{
    return cls && (!strncmp(cls, "Llama", 5) || !strncmp(cls, "CodeLlama", 9) ||
                   !strncmp(cls, "Gemma", 5));
}

static rad_status around(struct import *im, const cJSON *cfg, const char *key, int32_t id,
                         bool front)
{
    struct radi_idlist *l = front ? &im->s.prefix : &im->s.suffix;
    const cJSON *x = radi_json_get(cfg, key);
    if (!cJSON_IsBool(x) || id < 0)
        return RAD_OK;
    bool have = l->n && l->id[front ? 0 : l->n - 1] == id;
    if (cJSON_IsTrue(x) && !have) {
        RAD_TRY(radi_idlist_add(l, id, im->err));
        if (front)
            for (size_t i = l->n - 1; i > 0; i--) {
                l->id[i] = l->id[i - 1];
                l->id[i - 1] = id;
            }
    } else if (cJSON_IsFalse(x) && have && rebuilds(token_name(cfg, "tokenizer_class"))) {
        if (front)
            memmove(l->id, l->id + 1, (l->n - 1) * sizeof *l->id);
        l->n--;
    }
    return RAD_OK;
}

static rad_status config(struct import *im, const cJSON *cfg)
{
    struct radi_tok_spec *s = &im->s;
    RAD_TRY(added_decoder(im, radi_json_get(cfg, "added_tokens_decoder")));
    s->bos = find(im, token_name(cfg, "bos_token"));
    s->eos = find(im, token_name(cfg, "eos_token"));
    s->eot = find(im, token_name(cfg, "eot_token"));
    s->pad = find(im, token_name(cfg, "pad_token"));
    s->sep = find(im, token_name(cfg, "sep_token"));
    RAD_TRY(around(im, cfg, "add_bos_token", s->bos, true));
    RAD_TRY(around(im, cfg, "add_eos_token", s->eos, false));
    return template_of(im, radi_json_get(cfg, "chat_template"));
}

static rad_status generation_id(struct import *im, const cJSON *x, int32_t *out)
{
    RAD_TRY(get_id(im, x, "generation_config", "eos_token_id", out));
    if ((size_t)*out >= im->s.n_tokens)
        return rad_fail(im->err, RAD_E_FORMAT,
                        "generation_config: token id %d in a vocabulary of %zu", *out,
                        im->s.n_tokens);
    return RAD_OK;
}

static rad_status generation(struct import *im, const cJSON *g)
{
    const cJSON *e = radi_json_get(g, "eos_token_id"), *x;
    int32_t id;
    if (cJSON_IsNumber(e)) {
        RAD_TRY(generation_id(im, e, &id));
        RAD_TRY(radi_idlist_add(&im->s.eog, id, im->err));
    } else if (cJSON_IsArray(e))
        cJSON_ArrayForEach(x, e) {
            RAD_TRY(generation_id(im, x, &id));
            RAD_TRY(radi_idlist_add(&im->s.eog, id, im->err));
        }
    if (im->s.eos < 0 && im->s.eog.n)
        im->s.eos = im->s.eog.id[0];
    return RAD_OK;
}

int32_t radi_tok_guess_eot(const struct radi_tok_spec *s, const struct radi_vmap *m)
{
    static const char *const names[] = {
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|end_of_turn|>",
        "<|endofturn|>", "<|END_OF_TURN_TOKEN|>", "<|eot|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
    };
    bool harmony = radi_vmap_get(m, s->text, "<|return|>", 10) >= 0;
    for (size_t i = 0; i < RADI_COUNT(names); i++) {
        int32_t id = radi_vmap_get(m, s->text, names[i], strlen(names[i]));
        if (id < 0 || (s->type[id] != RAD_TOK_CONTROL && s->type[id] != RAD_TOK_USER))
            continue;
        if (harmony && !strcmp(names[i], "<|end|>"))
            continue;            /* ends a message there, not the turn */
        return id;
    }
    return -1;
}

static rad_status specials(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    if (im->unk) {
        s->unk = find(im, im->unk);
        if (s->unk < 0)
            return rad_fail(im->err, RAD_E_FORMAT,
                            "model 'unk_token' '%.60s' is not in the vocabulary", im->unk);
    }
    if (s->unk >= 0 && (size_t)s->unk >= s->n_tokens)
        return rad_fail(im->err, RAD_E_FORMAT, "model 'unk_id' %d in a vocabulary of %zu", s->unk,
                        s->n_tokens);
    if (s->unk >= 0 && s->type[s->unk] == RAD_TOK_CONTROL)
        s->type[s->unk] = RAD_TOK_UNKNOWN;
    return RAD_OK;
}

static rad_status parse(const char *name, const char *text, size_t n, cJSON **out,
                        struct rad_err *err)
{
    char what[64];
    rad_status st = radi_json_parse(text, n, JSON_LIMIT, RADI_JSON_LENIENT, out, err);
    if (!st && !cJSON_IsObject(*out)) {
        st = rad_fail(err, RAD_E_FORMAT, "found %s, want an object", radi_json_what(*out, what));
        radi_json_free(*out);
        *out = NULL;
    }
    return st ? rad_fail_in(err, st, "%s", name) : RAD_OK;
}

rad_status rad_tokenizer_from_json(const struct rad_tok_files *f, struct rad_tokenizer **out,
                                   struct rad_err *err)
{
    struct rad_err own = { 0 };
    struct import im = { .err = err ? err : &own };
    cJSON *root = NULL, *cfg = NULL, *gen = NULL;
    rad_status st;
    *out = NULL;
    if (f->size < sizeof *f || !f->tokenizer)
        return rad_fail(err, RAD_E_ARG, "rad_tok_files: no tokenizer text");
    radi_tok_spec_init(&im.s);
    im.limit = RADI_MIN(f->tokenizer_len, (size_t)RADI_TOK_MAX_TOKENS);
    if ((st = parse("tokenizer", f->tokenizer, f->tokenizer_len, &root, im.err)))
        goto out;
    if ((st = model(&im, radi_json_get(root, "model"))) ||
        (st = added_tokens(&im, radi_json_get(root, "added_tokens"))) ||
        (st = radi_tok_json_pipeline(&im.s, root, im.err))) {
        rad_fail_in(im.err, st, "tokenizer");
        goto out;
    }
    if (f->config && ((st = parse("tokenizer_config", f->config, f->config_len, &cfg, im.err)) ||
                      (st = config(&im, cfg))))
        goto out;
    if ((st = specials(&im)))
        goto out;
    if (f->generation && ((st = parse("generation_config", f->generation, f->generation_len, &gen,
                                      im.err)) || (st = generation(&im, gen))))
        goto out;
    if (f->chat_template) {
        size_t n = f->chat_template_len;
        while (n && f->chat_template[n - 1] == '\n')
            n--;
        if ((st = set_template(&im, f->chat_template, n)))
            goto out;
    }
    if (im.s.eot < 0)
        im.s.eot = radi_tok_guess_eot(&im.s, &im.by_text);
    radi_json_free(root);        /* large: before the tables are built */
    root = NULL;
    st = radi_tok_build(&im.s, out, im.err);
out:
    radi_json_free(root);
    radi_json_free(cfg);
    radi_json_free(gen);
    radi_vmap_release(&im.by_text);
    radi_tok_spec_release(&im.s);
    return st;
}

/* ---- from files */
static rad_status map_beside(const char *dir, size_t dn, const char *name, bool need,
                             struct radi_filemap *m, struct rad_err *err)
{
    char path[4096], zst[4104];
    *m = (struct radi_filemap){ .fd = -1 };
    if (snprintf(path, sizeof path, "%.*s%s", (int)dn, dir, name) >= (int)sizeof path)
        return rad_fail(err, RAD_E_ARG, "'%.200s': the path is too long", dir);
    snprintf(zst, sizeof zst, "%s.zst", path);
    const char *p = access(path, F_OK) == 0 ? path : access(zst, F_OK) == 0 ? zst : NULL;
    if (!p)
        return need ? rad_fail(err, RAD_E_IO, "'%s': no such file", path) : RAD_OK;
    return radi_filemap_open(p, JSON_LIMIT, m, err);
}

rad_status rad_tokenizer_open(const char *path, struct rad_tokenizer **out, struct rad_err *err)
{
    static const char *const names[4] = { "tokenizer.json", "tokenizer_config.json",
                                          "generation_config.json", "chat_template.jinja" };
    struct radi_filemap m[4] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
    struct stat sb;
    struct radi_str dir = { 0 };
    rad_status st = RAD_OK;
    *out = NULL;
    bool folder = stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
    const char *slash = strrchr(path, '/');
    if (folder) {
        radi_str_adds(&dir, path);
        radi_str_addc(&dir, '/');
    } else
        radi_str_add(&dir, path, slash ? (size_t)(slash + 1 - path) : 0);
    if (dir.failed)
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for a path");
    if (!st && !folder)
        st = radi_filemap_open(path, JSON_LIMIT, &m[0], err);
    for (size_t i = folder ? 0 : 1; !st && i < 4; i++)
        st = map_beside(dir.s ? dir.s : "", dir.len, names[i], i == 0, &m[i], err);
    if (!st) {
        struct rad_tok_files f = {
            .size = sizeof f,
            .tokenizer = (const char *)m[0].data, .tokenizer_len = m[0].size,
            .config = (const char *)m[1].data, .config_len = m[1].size,
            .generation = (const char *)m[2].data, .generation_len = m[2].size,
            .chat_template = (const char *)m[3].data, .chat_template_len = m[3].size,
        };
        if (!f.tokenizer)
            f.tokenizer = "";
        st = rad_tokenizer_from_json(&f, out, err);
        if (st)
            rad_fail_in(err, st, "'%s'", path);
    }
    for (int i = 0; i < 4; i++)
        if (m[i].data)
            radi_filemap_close(&m[i]);
    radi_str_release(&dir);
    return st;
}
