/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pipeline part of tokenizer.json: normalizer, pre_tokenizer, decoder
 * and post_processor become steps and id lists. A component or a mode that we do
 * not implement is refused by its name, never skipped. */
#include "config.h"

#include <cjson/cJSON.h>

#include "text/tok_json.h"

#include "banned.h"

typedef rad_status part_fn(struct radi_tok_spec *s, const cJSON *j, const char *type,
                           struct rad_err *err);

static rad_status unknown(const char *where, const char *type, struct rad_err *err)
{
    return rad_fail(err, RAD_E_UNSUPPORTED, "%s type '%.60s'", where, type);
}

/* Calls fn for the component j or, in order, for the parts of a Sequence. */
static rad_status each(struct radi_tok_spec *s, const cJSON *j, const char *where,
                       const char *list, part_fn *fn, struct rad_err *err)
{
    char what[64];
    const char *type;
    bool have;
    if (!j || cJSON_IsNull(j))
        return RAD_OK;
    if (!cJSON_IsObject(j))
        return rad_fail(err, RAD_E_FORMAT, "%s: found %s, want an object", where,
                        radi_json_what(j, what));
    RAD_TRY(radi_json_str(j, "type", &type, &have, err));
    if (!have)
        return rad_fail(err, RAD_E_FORMAT, "%s: no 'type'", where);
    if (!strcmp(type, "Sequence")) {
        const cJSON *a = radi_json_get(j, list), *p;
        if (!cJSON_IsArray(a))
            return rad_fail(err, RAD_E_FORMAT, "%s: '%s' of the Sequence: found %s, want an array",
                            where, list, a ? radi_json_what(a, what) : "nothing");
        cJSON_ArrayForEach(p, a) {
            if (cJSON_IsNull(p))
                return rad_fail(err, RAD_E_FORMAT, "%s: found null in a Sequence", where);
            RAD_TRY(each(s, p, where, list, fn, err));
        }
        return RAD_OK;
    }
    rad_status st = fn(s, j, type, err);
    return st == RAD_OK || st == RAD_E_NOMEM ? st : rad_fail_in(err, st, "%s", where);
}

static struct radi_tstr str(const char *s)
{
    return (struct radi_tstr){ s, strlen(s) };
}

static rad_status flag(const cJSON *j, const char *key, bool *v, struct rad_err *err)
{
    const cJSON *x = radi_json_get(j, key);
    bool have;
    if (!x || cJSON_IsNull(x))
        return RAD_OK;
    return radi_json_bool(j, key, v, &have, err);
}

static rad_status need_str(const cJSON *j, const char *type, const char *key, const char **out,
                           struct rad_err *err)
{
    bool have;
    RAD_TRY(radi_json_str(j, key, out, &have, err));
    return have ? RAD_OK : rad_fail(err, RAD_E_FORMAT, "%s: no '%s'", type, key);
}

/* {"String": s} or {"Regex": s} */
static rad_status pattern(const cJSON *j, const char *type, const char **s, bool *regex,
                          struct rad_err *err)
{
    const cJSON *p = radi_json_get(j, "pattern");
    char what[64];
    if (cJSON_IsObject(p)) {
        bool have;
        RAD_TRY(radi_json_str(p, "String", s, &have, err));
        *regex = false;
        if (have)
            return RAD_OK;
        RAD_TRY(radi_json_str(p, "Regex", s, &have, err));
        *regex = true;
        if (have)
            return RAD_OK;
    }
    return rad_fail(err, RAD_E_FORMAT, "%s: 'pattern': found %s, want a String or a Regex", type,
                    p ? radi_json_what(p, what) : "nothing");
}

static rad_status norm_part(struct radi_tok_spec *s, const cJSON *j, const char *type,
                            struct rad_err *err)
{
    static const struct { const char *name; uint32_t kind; } simple[] = {
        { "NFC", RADI_STEP_NFC }, { "NFKC", RADI_STEP_NFKC }, { "NFD", RADI_STEP_NFD },
        { "NFKD", RADI_STEP_NFKD }, { "Lowercase", RADI_STEP_LOWER },
        { "StripAccents", RADI_STEP_STRIP_ACCENTS }, { "Nmt", RADI_STEP_NMT },
    };
    struct radi_tok_step st = { 0 };
    const char *a, *b;
    bool f = true, g = true, c = true, low = true, regex;
    for (size_t i = 0; i < RADI_COUNT(simple); i++)
        if (!strcmp(type, simple[i].name))
            st.kind = simple[i].kind;
    if (st.kind)
        return radi_tok_spec_step(s, st, err);
    if (!strcmp(type, "Strip")) {
        RAD_TRY(flag(j, "strip_left", &f, err));
        RAD_TRY(flag(j, "strip_right", &g, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_STRIP, .flags = f + 2u * g };
    } else if (!strcmp(type, "Replace")) {
        RAD_TRY(pattern(j, type, &a, &regex, err));
        RAD_TRY(need_str(j, type, "content", &b, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_REPLACE, .flags = regex,
                                     .arg0 = str(a), .arg1 = str(b) };
    } else if (!strcmp(type, "Prepend")) {
        RAD_TRY(need_str(j, type, "prepend", &a, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_PREPEND, .arg0 = str(a) };
    } else if (!strcmp(type, "Precompiled")) {
        RAD_TRY(need_str(j, type, "precompiled_charsmap", &a, err));
        if (!*a)
            return RAD_OK;       /* an identity map */
        st = (struct radi_tok_step){ .kind = RADI_STEP_PRECOMPILED, .arg0 = str(a) };
    } else if (!strcmp(type, "BertNormalizer")) {
        RAD_TRY(flag(j, "clean_text", &f, err));
        RAD_TRY(flag(j, "handle_chinese_chars", &g, err));
        RAD_TRY(flag(j, "lowercase", &low, err));
        c = low;
        RAD_TRY(flag(j, "strip_accents", &c, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_BERT,
                                     .flags = f + 2u * g + 4u * c + 8u * low };
    } else
        return unknown("component", type, err);
    return radi_tok_spec_step(s, st, err);
}

static rad_status behaviour(const cJSON *j, int64_t *out, struct rad_err *err)
{
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous" };
    const char *b;
    bool have;
    RAD_TRY(radi_json_str(j, "behavior", &b, &have, err));
    *out = RADI_SPLIT_ISOLATED;
    if (!have)
        return RAD_OK;
    for (size_t i = 0; i < RADI_COUNT(names); i++)
        if (!strcmp(b, names[i])) {
            *out = (int64_t)i;
            return RAD_OK;
        }
    return rad_fail(err, RAD_E_UNSUPPORTED, "'behavior' '%.60s'", b);
}

static rad_status scheme(const cJSON *j, int64_t *out, struct rad_err *err)
{
    const char *p;
    bool have, old = true;
    *out = 2;
    RAD_TRY(flag(j, "add_prefix_space", &old, err));
    if (!old)
        *out = 0;
    RAD_TRY(radi_json_str(j, "prepend_scheme", &p, &have, err));
    if (!have)
        return RAD_OK;
    if (!strcmp(p, "never"))
        *out = 0;
    else if (!strcmp(p, "first"))
        *out = 1;
    else if (!strcmp(p, "always"))
        *out = 2;
    else
        return rad_fail(err, RAD_E_UNSUPPORTED, "'prepend_scheme' '%.60s'", p);
    return RAD_OK;
}

/* Stored as a pattern that matches only the text. */
static rad_status split_literal(struct radi_tok_spec *s, struct radi_tok_step st, const char *p,
                                struct rad_err *err)
{
    struct radi_str lit = { 0 };
    for (; *p; p++) {
        if (strchr(".^$|()[]{}*+?\\-#&~", *p))
            radi_str_addc(&lit, '\\');
        radi_str_addc(&lit, *p);
    }
    st.arg0 = (struct radi_tstr){ lit.s ? lit.s : "", lit.len };
    rad_status rs = lit.failed ? rad_fail(err, RAD_E_NOMEM, "out of memory for a pattern")
                               : radi_tok_spec_step(s, st, err);
    radi_str_release(&lit);
    return rs;
}

static rad_status pre_part(struct radi_tok_spec *s, const cJSON *j, const char *type,
                           struct rad_err *err)
{
    struct radi_tok_step st = { 0 };
    const char *a = "\xe2\x96\x81";
    bool f = false, g = true, regex, have;
    if (!strcmp(type, "ByteLevel")) {
        f = true;
        RAD_TRY(flag(j, "add_prefix_space", &f, err));
        RAD_TRY(flag(j, "use_regex", &g, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_BYTELEVEL, .flags = f + 2u * g };
    } else if (!strcmp(type, "Split")) {
        st.kind = RADI_STEP_SPLIT;
        RAD_TRY(pattern(j, type, &a, &regex, err));
        RAD_TRY(behaviour(j, &st.iarg, err));
        RAD_TRY(flag(j, "invert", &f, err));
        st.flags = f;
        if (!regex)
            return split_literal(s, st, a, err);
        st.arg0 = str(a);
    } else if (!strcmp(type, "CharDelimiterSplit")) {
        st.kind = RADI_STEP_SPLIT;
        RAD_TRY(need_str(j, type, "delimiter", &a, err));
        return split_literal(s, st, a, err);
    } else if (!strcmp(type, "Metaspace")) {
        st.kind = RADI_STEP_METASPACE;
        RAD_TRY(radi_json_str(j, "replacement", &a, &have, err));
        if (!have)
            a = "\xe2\x96\x81";
        RAD_TRY(scheme(j, &st.iarg, err));
        RAD_TRY(flag(j, "split", &g, err));
        st.flags = g;
        st.arg0 = str(a);
    } else if (!strcmp(type, "Whitespace"))
        st.kind = RADI_STEP_WHITESPACE;
    else if (!strcmp(type, "WhitespaceSplit"))
        st = (struct radi_tok_step){ .kind = RADI_STEP_WHITESPACE, .iarg = 1 };
    else if (!strcmp(type, "BertPreTokenizer"))
        st = (struct radi_tok_step){ .kind = RADI_STEP_WHITESPACE, .iarg = 2 };
    else if (!strcmp(type, "Punctuation")) {
        st.kind = RADI_STEP_PUNCTUATION;
        RAD_TRY(behaviour(j, &st.iarg, err));
    } else if (!strcmp(type, "Digits")) {
        RAD_TRY(flag(j, "individual_digits", &f, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_DIGITS, .flags = f };
    } else
        return unknown("component", type, err);
    return radi_tok_spec_step(s, st, err);
}

static rad_status decode_part(struct radi_tok_spec *s, const cJSON *j, const char *type,
                              struct rad_err *err)
{
    struct radi_tok_step st = { 0 };
    const char *a, *b;
    bool have, f = true, regex;
    int64_t start = 0, stop = 0;
    if (!strcmp(type, "ByteLevel"))
        st.kind = RADI_STEP_D_BYTELEVEL;
    else if (!strcmp(type, "Fuse"))
        st.kind = RADI_STEP_D_FUSE;
    else if (!strcmp(type, "ByteFallback"))
        st.kind = RADI_STEP_D_BYTEFALLBACK;
    else if (!strcmp(type, "Metaspace")) {
        RAD_TRY(radi_json_str(j, "replacement", &a, &have, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_D_METASPACE,
                                     .arg0 = str(have ? a : "\xe2\x96\x81") };
        RAD_TRY(scheme(j, &st.iarg, err));
    } else if (!strcmp(type, "Replace")) {
        RAD_TRY(pattern(j, type, &a, &regex, err));
        RAD_TRY(need_str(j, type, "content", &b, err));
        if (regex)
            return rad_fail(err, RAD_E_UNSUPPORTED, "Replace with the Regex '%.60s'", a);
        st = (struct radi_tok_step){ .kind = RADI_STEP_D_REPLACE, .arg0 = str(a),
                                     .arg1 = str(b) };
    } else if (!strcmp(type, "Strip")) {
        RAD_TRY(need_str(j, type, "content", &a, err));
        RAD_TRY(radi_json_i64(j, "start", &start, &have, err));
        RAD_TRY(radi_json_i64(j, "stop", &stop, &have, err));
        if (start < 0 || stop < 0 || start > INT32_MAX || stop > INT32_MAX)
            return rad_fail(err, RAD_E_FORMAT, "Strip: 'start' %lld, 'stop' %lld",
                            (long long)start, (long long)stop);
        st = (struct radi_tok_step){ .kind = RADI_STEP_D_STRIP, .arg0 = str(a),
                                     .iarg = stop << 32 | start };
    } else if (!strcmp(type, "WordPiece")) {
        RAD_TRY(radi_json_str(j, "prefix", &a, &have, err));
        RAD_TRY(flag(j, "cleanup", &f, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_D_WORDPIECE, .flags = f,
                                     .arg0 = str(have ? a : "##") };
    } else if (!strcmp(type, "BPEDecoder")) {
        RAD_TRY(radi_json_str(j, "suffix", &a, &have, err));
        st = (struct radi_tok_step){ .kind = RADI_STEP_D_BPE, .arg0 = str(have ? a : "</w>") };
    } else
        return unknown("component", type, err);
    return radi_tok_spec_step(s, st, err);
}

/* ---- post-processor: what stands around the text */
static rad_status add_template_ids(const cJSON *specials, const char *name, struct radi_idlist *l,
                                   struct rad_err *err)
{
    const cJSON *e = cJSON_IsObject(specials) ? radi_json_get(specials, name) : NULL, *x;
    const cJSON *ids = cJSON_IsObject(e) ? radi_json_get(e, "ids") : NULL;
    if (!cJSON_IsArray(ids))
        return rad_fail(err, RAD_E_FORMAT,
                        "TemplateProcessing: no ids of '%.60s' in 'special_tokens'", name);
    cJSON_ArrayForEach(x, ids) {
        if (!cJSON_IsNumber(x) || x->valuedouble < 0 || x->valuedouble > INT32_MAX ||
            x->valuedouble != (double)(int32_t)x->valuedouble)
            return rad_fail(err, RAD_E_FORMAT, "TemplateProcessing: '%.60s' has a wrong id", name);
        RAD_TRY(radi_idlist_add(l, (int32_t)x->valuedouble, err));
    }
    return RAD_OK;
}

/* Later processors wrap what earlier ones made. */
static rad_status wrap(struct radi_tok_spec *s, struct radi_idlist *pre, struct radi_idlist *post,
                       struct rad_err *err)
{
    for (size_t i = 0; i < s->prefix.n; i++)
        RAD_TRY(radi_idlist_add(pre, s->prefix.id[i], err));
    for (size_t i = 0; i < post->n; i++)
        RAD_TRY(radi_idlist_add(&s->suffix, post->id[i], err));
    struct radi_idlist old = s->prefix;
    s->prefix = *pre;
    *pre = old;
    return RAD_OK;
}

static rad_status template(const cJSON *j, struct radi_idlist *pre, struct radi_idlist *post,
                           struct rad_err *err)
{
    const cJSON *single = radi_json_get(j, "single"), *e;
    const cJSON *specials = radi_json_get(j, "special_tokens");
    char what[64];
    bool seen = false, have;
    if (!cJSON_IsArray(single))
        return rad_fail(err, RAD_E_FORMAT, "TemplateProcessing: 'single': found %s, want an array",
                        single ? radi_json_what(single, what) : "nothing");
    cJSON_ArrayForEach(e, single) {
        const cJSON *seq = cJSON_IsObject(e) ? radi_json_get(e, "Sequence") : NULL;
        const cJSON *tok = cJSON_IsObject(e) ? radi_json_get(e, "SpecialToken") : NULL;
        const cJSON *in = seq ? seq : tok;
        const char *id;
        if (!cJSON_IsObject(in))
            return rad_fail(err, RAD_E_FORMAT,
                            "TemplateProcessing: 'single' holds %s, want Sequence or SpecialToken",
                            radi_json_what(e, what));
        RAD_TRY(radi_json_str(in, "id", &id, &have, err));
        if (!have)
            return rad_fail(err, RAD_E_FORMAT, "TemplateProcessing: no 'id' in 'single'");
        if (tok)
            RAD_TRY(add_template_ids(specials, id, seen ? post : pre, err));
        else if (seen || strcmp(id, "A"))
            return rad_fail(err, RAD_E_UNSUPPORTED, "TemplateProcessing: Sequence '%.20s'", id);
        else
            seen = true;
    }
    return seen ? RAD_OK : rad_fail(err, RAD_E_FORMAT, "TemplateProcessing: no Sequence A");
}

/* ["[SEP]", 102] */
static rad_status pair_id(const cJSON *j, const char *type, const char *key, struct radi_idlist *l,
                          struct rad_err *err)
{
    const cJSON *a = radi_json_get(j, key), *x = cJSON_IsArray(a) ? cJSON_GetArrayItem(a, 1) : NULL;
    if (!cJSON_IsNumber(x) || x->valuedouble < 0 || x->valuedouble > INT32_MAX)
        return rad_fail(err, RAD_E_FORMAT, "%s: '%s' is not a token and its id", type, key);
    return radi_idlist_add(l, (int32_t)x->valuedouble, err);
}

static rad_status post_part(struct radi_tok_spec *s, const cJSON *j, const char *type,
                            struct rad_err *err)
{
    struct radi_idlist pre = { 0 }, post = { 0 };
    rad_status st;
    if (!strcmp(type, "ByteLevel"))
        return RAD_OK;           /* only moves offsets */
    if (!strcmp(type, "TemplateProcessing"))
        st = template(j, &pre, &post, err);
    else if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing")) {
        st = pair_id(j, type, "cls", &pre, err);
        if (!st)
            st = pair_id(j, type, "sep", &post, err);
    } else
        return unknown("component", type, err);
    if (!st)
        st = wrap(s, &pre, &post, err);
    radi_free(pre.id);
    radi_free(post.id);
    return st;
}

rad_status radi_tok_json_pipeline(struct radi_tok_spec *s, const cJSON *root, struct rad_err *err)
{
    const cJSON *dec = radi_json_get(root, "decoder");
    RAD_TRY(each(s, radi_json_get(root, "normalizer"), "normalizer", "normalizers", norm_part,
                 err));
    RAD_TRY(each(s, radi_json_get(root, "pre_tokenizer"), "pre_tokenizer", "pretokenizers",
                 pre_part, err));
    if (s->byte_fallback)
        RAD_TRY(radi_tok_spec_step(s, (struct radi_tok_step){ .kind = RADI_STEP_BYTEFALLBACK },
                                   err));
    RAD_TRY(each(s, dec, "decoder", "decoders", decode_part, err));
    if (!dec || cJSON_IsNull(dec))
        s->model |= RADI_TOKM_NO_DECODER;
    return each(s, radi_json_get(root, "post_processor"), "post_processor", "processors",
                post_part, err);
}
