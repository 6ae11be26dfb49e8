/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the import of a vocabulary from GGUF metadata, which names a model and a
 * pre-tokeniser instead of spelling out the pipeline: the tables here spell it.
 * An unknown name is refused, since a wrong split is wrong in every answer. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <rad/ckpt.h>

#include "text/tok_json.h"

#include "banned.h"

#define GGML "tokenizer.ggml."
#define META "\xe2\x96\x81"

struct import {
    const struct rad_ckpt *ck;
    struct radi_tok_spec s;
    struct radi_vmap by_text;
    struct rad_err *err;
};

/* ---- patterns a pre-tokeniser name stands for; at most six, in order */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define NOCASE "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2 \
    NOCASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL
#define QWEN35 NOCASE "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|" \
    " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" TAIL
#define LLAMA3 \
    NOCASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL
#define OPEN "[^\\r\\n\\p{L}\\p{N}]?"
#define UP "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOW "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K OPEN UP "*" LOW "+" NOCASE "?|" OPEN UP "+" LOW "*" NOCASE \
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TAIL
#define TEKKEN OPEN UP "*" LOW "+|" OPEN UP "+" LOW "*|\\p{N}|" \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TAIL
#define K_UP "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define K_LOW "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI "[\\p{Han}]+|" OPEN K_UP "*" K_LOW "+" NOCASE "?|" OPEN K_UP "+" K_LOW "*" NOCASE \
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL
#define DS_CJK "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"
#define DS3 "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?" \
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
#define DS_EAST "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+"
/* DeepSeek LLM: letters of scripts with case, as its tokenizer lists them. */
#define DS_CASED \
    "\\s?[" \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}" \
    "-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}" \
    "\\x{386}\\x{388}-\\x{1FDB}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-" \
    "\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}" \
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}" \
    "\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}" \
    "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}" \
    "\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-" \
    "\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-" \
    "\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}" \
    "\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-" \
    "\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}" \
    "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}" \
    "-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-" \
    "\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-" \
    "\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-" \
    "\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-" \
    "\\x{1E943}" \
    "]+"
#define DS_MARKS "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}" \
    "\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"
#define BLOOM " ?[^(\\s|.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4" \
    "\xdb\x94\xd8\x8c)]+"

enum { IGNORE = 1, BOS = 2, SEP = 4 };

static const struct pre {
    const char *names;       /* separated by spaces */
    unsigned flags;
    const char *pattern[7];     /* NULL behind the last */
} pres[] = {
    { "default", 0, { "[\\p{P}\\$\\+<=>\\^~\\|]+",
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)", "\\p{N}+",
      "[0-9][0-9][0-9]" } },
    { "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 "
      "jina-v5-nano", IGNORE | BOS,
      { LLAMA3 } },
    { "dbrx smaug-bpe glm4 chatglm-bpe", 0, { LLAMA3 } },
    { "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt "
      "olmo "
      "jais trillion granite-docling exaone4", 0, { GPT2 } },
    { "jina-v1-en jina-v2-code roberta-bpe", SEP, { GPT2 } },
    { "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open grok-2", 0,
      { QWEN2 } },
    { "qwen35", 0, { QWEN35 } },
    { "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", 0,
      { "\\p{N}", GPT2 } },
    { "falcon", 0, { "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]" } },
    { "deepseek-v3 hunyuan-dense joyai-llm", 0, { "\\p{N}{1,3}", DS_CJK, DS3 } },
    { "deepseek-llm", 0, { "[\r\n]", DS_CASED, DS_MARKS, "\\s+$", DS_EAST, "\\p{N}+" } },
    { "deepseek-coder", 0, { "[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DS_EAST, "\\p{N}" } },
    { "gpt-4o llama4 minimax-m2", 0, { O200K } },
    { "tekken", IGNORE | BOS, { TEKKEN } },
    { "kimi-k2", 0, { KIMI } },
    { "minicpm5", IGNORE, { "\\p{N}{1,3}", NOCASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+|"
      " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL } },
    { "bailingmoe bailingmoe2 llada-moe", 0,
      { "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|"
      "\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+" } },
    { "seed-coder", 0, { NOCASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}|"
      " ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+" } },
    { "poro-chat bloom gpt3-finnish", 0, { BLOOM } },
    { "viking", 0, { BLOOM, "\\p{N}" } },
};

static bool in_list(const char *list, const char *s, size_t n)
{
    while (*list) {
        const char *e = strchr(list, ' ');
        size_t l = e ? (size_t)(e - list) : strlen(list);
        if (l == n && !memcmp(list, s, n))
            return true;
        list += l + (e != NULL);
    }
    return false;
}

/* ---- metadata access */
static int64_t key(const struct import *im, const char *name)
{
    char buf[96];
    snprintf(buf, sizeof buf, GGML "%s", name);
    return rad_ckpt_kv_find(im->ck, buf);
}

static const char *get_str(const struct import *im, const char *name, size_t *n)
{
    int64_t i = key(im, name);
    return i < 0 || rad_ckpt_kv(im->ck, (size_t)i)->is_array
               ? NULL : rad_ckpt_kv_str(im->ck, (size_t)i, 0, n);
}

static bool get_bool(const struct import *im, const char *name, bool def)
{
    int64_t i = key(im, name), v;
    return i >= 0 && rad_ckpt_kv_int(im->ck, (size_t)i, 0, &v) ? v != 0 : def;
}

static rad_status get_id(const struct import *im, const char *name, int32_t def, int32_t *out)
{
    int64_t i = key(im, name), v;
    *out = def >= 0 && (size_t)def < im->s.n_tokens ? def : -1;
    if (i < 0)
        return RAD_OK;
    if (!rad_ckpt_kv_int(im->ck, (size_t)i, 0, &v))
        return rad_fail(im->err, RAD_E_FORMAT, "'" GGML "%s' is not an integer", name);
    if (v == -1 || v == UINT32_MAX) {
        *out = -1;
        return RAD_OK;
    }
    if (v < 0 || (uint64_t)v >= im->s.n_tokens)
        return rad_fail(im->err, RAD_E_FORMAT, "'" GGML "%s': token %lld in a vocabulary of %zu",
                        name, (long long)v, im->s.n_tokens);
    *out = (int32_t)v;
    return RAD_OK;
}

/* The array's index and length; -1 when absent and not needed. */
static rad_status get_array(const struct import *im, const char *name, size_t want, bool need,
                            int64_t *at, size_t *n, struct rad_err *err)
{
    *at = key(im, name);
    *n = 0;
    if (*at < 0)
        return need ? rad_fail(err, RAD_E_FORMAT, "no '" GGML "%s'", name) : RAD_OK;
    const struct rad_ckpt_kv *kv = rad_ckpt_kv(im->ck, (size_t)*at);
    if (!kv->is_array)
        return rad_fail(err, RAD_E_FORMAT, "'" GGML "%s' is not an array", name);
    if (want && kv->n != want)
        return rad_fail(err, RAD_E_FORMAT, "'" GGML "%s': %llu items for %zu tokens", name,
                        (unsigned long long)kv->n, want);
    *n = (size_t)kv->n;
    return RAD_OK;
}

static rad_status read_tokens(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    int64_t at, sc, ty;
    size_t n, k;
    RAD_TRY(get_array(im, "tokens", 0, true, &at, &n, im->err));
    if (!n)
        return rad_fail(im->err, RAD_E_FORMAT, "'" GGML "tokens' is empty");
    RAD_TRY(radi_tok_spec_reserve(s, n, im->err));
    RAD_TRY(get_array(im, "scores", n, false, &sc, &k, im->err));
    RAD_TRY(get_array(im, "token_type", n, false, &ty, &k, im->err));
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *t = rad_ckpt_kv_str(im->ck, (size_t)at, i, &len);
        double score = 0;
        int64_t type = RAD_TOK_NORMAL;
        if (!t)
            return rad_fail(im->err, RAD_E_FORMAT, "'" GGML "tokens': item %zu is not a string",
                            i);
        if (sc >= 0 && !rad_ckpt_kv_f64(im->ck, (size_t)sc, i, &score))
            return rad_fail(im->err, RAD_E_FORMAT, "'" GGML "scores': item %zu is not a number",
                            i);
        if (ty >= 0 && (!rad_ckpt_kv_int(im->ck, (size_t)ty, i, &type) || type < 0 || type > 6))
            return rad_fail(im->err, RAD_E_FORMAT, "'" GGML "token_type': item %zu, want 1 to 6",
                            i);
        RAD_TRY(radi_tok_spec_text(s, &s->text[i], t, len, im->err));
        s->type[i] = (uint8_t)(type ? type : RAD_TOK_NORMAL);
        s->score[i] = (float)score;
    }
    if (sc < 0) {
        radi_free(s->score);
        s->score = NULL;
        s->cap_score = 0;
    }
    return RAD_OK;
}

static rad_status index_texts(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    radi_vmap_release(&im->by_text);
    RAD_TRY(radi_vmap_init(&im->by_text, s->n_tokens, im->err));
    for (size_t i = 0; i < s->n_tokens; i++)
        if (s->text[i].n)
            radi_vmap_put(&im->by_text, s->text, (int32_t)i);
    return RAD_OK;
}

static rad_status add_added(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    for (size_t i = 0; i < s->n_tokens; i++) {
        uint8_t ty = s->type[i];
        bool special = ty == RAD_TOK_CONTROL || ty == RAD_TOK_UNKNOWN;
        if ((!special && ty != RAD_TOK_USER) || !s->text[i].n)
            continue;
        RAD_TRY(radi_grow((void **)&s->added, &s->cap_added, s->n_added + 1, sizeof *s->added,
                          im->err));
        s->added[s->n_added++] = (struct radi_tok_added){
            (int32_t)i, RADI_ADDED_OUTSIDE | (special ? (unsigned)RADI_ADDED_SPECIAL : 0) };
    }
    return RAD_OK;
}

static rad_status add_merge(struct import *im, int32_t a, int32_t b)
{
    struct radi_tok_spec *s = &im->s;
    RAD_TRY(radi_grow((void **)&s->merge, &s->cap_merges, s->n_merges + 1, sizeof *s->merge,
                      im->err));
    s->merge[s->n_merges][0] = (uint32_t)a;
    s->merge[s->n_merges++][1] = (uint32_t)b;
    return RAD_OK;
}

static rad_status read_merges(struct import *im)
{
    int64_t at;
    size_t n, dropped = 0;
    struct radi_str cat = { 0 };
    rad_status st = get_array(im, "merges", 0, true, &at, &n, im->err);
    for (size_t i = 0; !st && i < n; i++) {
        size_t len;
        const char *m = rad_ckpt_kv_str(im->ck, (size_t)at, i, &len);
        const char *sp = m && len > 2 ? memchr(m + 1, ' ', len - 1) : NULL;
        if (!sp || sp + 1 == m + len) {
            st = rad_fail(im->err, RAD_E_FORMAT, "'" GGML "merges': item %zu, want two parts", i);
            break;
        }
        size_t an = (size_t)(sp - m), bn = len - an - 1;
        radi_str_clear(&cat);
        radi_str_add(&cat, m, an);
        radi_str_add(&cat, sp + 1, bn);
        if (cat.failed) {
            st = rad_fail(im->err, RAD_E_NOMEM, "out of memory for merges");
            break;
        }
        int32_t a = radi_vmap_get(&im->by_text, im->s.text, m, an);
        int32_t b = radi_vmap_get(&im->by_text, im->s.text, sp + 1, bn);
        if (a < 0 || b < 0 || radi_vmap_get(&im->by_text, im->s.text, cat.s, cat.len) < 0)
            dropped++;
        else
            st = add_merge(im, a, b);
    }
    if (dropped)
        rad_log(RAD_LOG_WARN, "tok", "%zu merges of tokens outside the vocabulary are left out",
                dropped);
    radi_str_release(&cat);
    return st;
}

struct made {
    float score;
    uint32_t id;             /* of the result */
    uint32_t pair[2];
};
static int by_rank(const void *x, const void *y)
{
    const struct made *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Puts the merges into the order of their results' scores. Only where two
 * results share a score does the place not say the rank. */
static rad_status sort_merges(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    struct made *v = radi_calloc(s->n_merges ? s->n_merges : 1, sizeof *v);
    struct radi_str cat = { 0 };
    bool tie = false;
    for (size_t i = 0; v && i < s->n_merges; i++) {
        radi_str_clear(&cat);
        for (int k = 0; k < 2; k++)
            radi_str_add(&cat, s->text[s->merge[i][k]].s, s->text[s->merge[i][k]].n);
        int32_t id = cat.failed ? 0 : radi_vmap_get(&im->by_text, s->text, cat.s, cat.len);
        v[i] = (struct made){ s->score[id], (uint32_t)id, { s->merge[i][0], s->merge[i][1] } };
    }
    if (v)
        qsort(v, s->n_merges, sizeof *v, by_rank);
    for (size_t i = 0; v && i < s->n_merges; i++) {
        memcpy(s->merge[i], v[i].pair, sizeof v[i].pair);
        tie |= i && v[i].id != v[i - 1].id && v[i].score == v[i - 1].score;
    }
    rad_status st = !v || cat.failed ? rad_fail(im->err, RAD_E_NOMEM, "out of memory for merges")
                                     : RAD_OK;
    if (!tie)
        s->model &= ~(unsigned)RADI_TOKM_SCORE_RANKS;
    radi_free(v);
    radi_str_release(&cat);
    return st;
}

/* Every way to make a token of two others; the token's score is the rank, which
 * is what merging by score does. */
static rad_status derive_merges(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    for (size_t i = 0; i < s->n_tokens; i++) {
        const struct radi_tstr *t = &s->text[i];
        if (s->type[i] != RAD_TOK_NORMAL || t->n > 256)
            continue;
        for (size_t k = 1; k < t->n; k++) {
            if (((uint8_t)t->s[k] & 0xc0) == 0x80)
                continue;
            int32_t a = radi_vmap_get(&im->by_text, s->text, t->s, k);
            int32_t b = a < 0 ? -1 : radi_vmap_get(&im->by_text, s->text, t->s + k, t->n - k);
            if (b >= 0 && s->type[a] == RAD_TOK_NORMAL && s->type[b] == RAD_TOK_NORMAL)
                RAD_TRY(add_merge(im, a, b));
        }
    }
    return sort_merges(im);
}

static rad_status step(struct import *im, uint32_t kind, uint32_t flags, const char *a,
                       const char *b, int64_t iarg)
{
    struct radi_tok_step st = { .kind = kind, .flags = flags, .iarg = iarg };
    if (a)
        st.arg0 = (struct radi_tstr){ a, strlen(a) };
    if (b)
        st.arg1 = (struct radi_tstr){ b, strlen(b) };
    return radi_tok_spec_step(&im->s, st, im->err);
}

static rad_status around(struct import *im, bool bos, bool eos)
{
    struct radi_tok_spec *s = &im->s;
    if (get_bool(im, "add_bos_token", bos) && s->bos >= 0)
        RAD_TRY(radi_idlist_add(&s->prefix, s->bos, im->err));
    if (get_bool(im, "add_eos_token", eos) && s->eos >= 0)
        RAD_TRY(radi_idlist_add(&s->suffix, s->eos, im->err));
    return RAD_OK;
}

/* ---- the models */
static rad_status model_spm(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    bool prefix = get_bool(im, "add_space_prefix", true);
    if (!s->score)
        return rad_fail(im->err, RAD_E_FORMAT, "no '" GGML "scores'");
    s->kind = RAD_TOK_BPE;
    s->byte_fallback = true;
    s->model = RADI_TOKM_FUSE_UNK | RADI_TOKM_SCORE_RANKS;
    RAD_TRY(get_id(im, "bos_token_id", 1, &s->bos));
    RAD_TRY(get_id(im, "eos_token_id", 2, &s->eos));
    RAD_TRY(get_id(im, "unknown_token_id", 0, &s->unk));
    RAD_TRY(derive_merges(im));
    if (prefix)
        RAD_TRY(step(im, RADI_STEP_PREPEND, 0, META, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_REPLACE, 0, " ", META, 0));
    RAD_TRY(step(im, RADI_STEP_BYTEFALLBACK, 0, NULL, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_D_REPLACE, 0, META, " ", 0));
    RAD_TRY(step(im, RADI_STEP_D_BYTEFALLBACK, 0, NULL, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_D_FUSE, 0, NULL, NULL, 0));
    if (prefix)
        RAD_TRY(step(im, RADI_STEP_D_STRIP, 0, " ", NULL, 1));
    return around(im, true, false);
}

static rad_status model_gpt2(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    size_t n = 7;
    const char *name = get_str(im, "pre", &n);
    const struct pre *p = NULL;
    bool last_gpt2 = false;
    if (!name)
        name = "default";
    for (size_t i = 0; i < RADI_COUNT(pres); i++)
        if (in_list(pres[i].names, name, n))
            p = &pres[i];
    if (!p)
        return rad_fail(im->err, RAD_E_UNSUPPORTED, "'" GGML "pre' '%.*s'",
                        (int)RADI_MIN(n, (size_t)60), name);
    s->kind = RAD_TOK_BPE;
    if (p->flags & IGNORE)
        s->model |= RADI_TOKM_IGNORE_MERGES;
    radi_free(s->score);
    s->score = NULL;
    s->cap_score = 0;
    RAD_TRY(get_id(im, "bos_token_id", -1, &s->bos));
    RAD_TRY(get_id(im, "eos_token_id", -1, &s->eos));
    RAD_TRY(read_merges(im));
    for (size_t i = 0; p->pattern[i]; i++) {
        last_gpt2 = !strcmp(p->pattern[i], GPT2) && !p->pattern[i + 1];
        if (!last_gpt2)
            RAD_TRY(step(im, RADI_STEP_SPLIT, 0, p->pattern[i], NULL, RADI_SPLIT_ISOLATED));
    }
    RAD_TRY(step(im, RADI_STEP_BYTELEVEL,
                 2u * last_gpt2 + get_bool(im, "add_space_prefix", false), NULL, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_D_BYTELEVEL, 0, NULL, NULL, 0));
    RAD_TRY(around(im, p->flags & BOS, false));
    if ((p->flags & SEP) && s->sep >= 0 && get_bool(im, "add_sep_token", true)) {
        if (!s->prefix.n && s->bos >= 0)
            RAD_TRY(radi_idlist_add(&s->prefix, s->bos, im->err));
        if (!s->suffix.n)
            RAD_TRY(radi_idlist_add(&s->suffix, s->sep, im->err));
    }
    return RAD_OK;
}

/* Merges over whole lines of plain text, spaces as U+2581, bytes as a last resort. */
static rad_status model_gemma4(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    s->kind = RAD_TOK_BPE;
    s->byte_fallback = true;
    s->model |= RADI_TOKM_FUSE_UNK;
    radi_free(s->score);
    s->score = NULL;
    s->cap_score = 0;
    RAD_TRY(get_id(im, "bos_token_id", -1, &s->bos));
    RAD_TRY(get_id(im, "eos_token_id", -1, &s->eos));
    RAD_TRY(get_id(im, "unknown_token_id", -1, &s->unk));
    RAD_TRY(read_merges(im));
    RAD_TRY(step(im, RADI_STEP_REPLACE, 0, " ", META, 0));
    RAD_TRY(step(im, RADI_STEP_SPLIT, 0, "[^\\n]+|[\\n]+", NULL, RADI_SPLIT_ISOLATED));
    RAD_TRY(step(im, RADI_STEP_BYTEFALLBACK, 0, NULL, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_D_REPLACE, 0, META, " ", 0));
    RAD_TRY(step(im, RADI_STEP_D_BYTEFALLBACK, 0, NULL, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_D_FUSE, 0, NULL, NULL, 0));
    return around(im, true, false);
}

/* GGUF marks the starts of words with U+2581 instead of the rest with "##". */
static rad_status model_bert(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    struct radi_str b = { 0 };
    bool marked = false;
    rad_status st = RAD_OK;
    s->kind = RAD_TOK_WORDPIECE;
    for (size_t i = 0; i < s->n_tokens && !marked; i++)
        marked = s->type[i] == RAD_TOK_NORMAL && s->text[i].n > 3 && !memcmp(s->text[i].s, META, 3);
    for (size_t i = 0; !st && marked && i < s->n_tokens; i++) {
        struct radi_tstr *t = &s->text[i];
        if (s->type[i] != RAD_TOK_NORMAL || !t->n)
            continue;
        if (t->n > 3 && !memcmp(t->s, META, 3)) {
            t->s += 3;
            t->n -= 3;
            continue;
        }
        radi_str_clear(&b);
        radi_str_adds(&b, "##");
        radi_str_add(&b, t->s, t->n);
        st = b.failed ? rad_fail(im->err, RAD_E_NOMEM, "out of memory for a vocabulary")
                      : radi_tok_spec_text(s, t, b.s, b.len, im->err);
    }
    radi_str_release(&b);
    RAD_TRY(st);
    RAD_TRY(radi_tok_spec_text(s, &s->sub_prefix, "##", 2, im->err));
    int32_t cls;
    RAD_TRY(get_id(im, "cls_token_id", 101, &cls));
    RAD_TRY(get_id(im, "bos_token_id", cls, &s->bos));
    RAD_TRY(get_id(im, "eos_token_id", -1, &s->eos));
    RAD_TRY(get_id(im, "unknown_token_id", 100, &s->unk));
    RAD_TRY(get_id(im, "seperator_token_id", 102, &s->sep));
    RAD_TRY(step(im, RADI_STEP_BERT, 15, NULL, NULL, 0));
    RAD_TRY(step(im, RADI_STEP_WHITESPACE, 0, NULL, NULL, 2));
    RAD_TRY(step(im, RADI_STEP_D_WORDPIECE, 1, "##", NULL, 0));
    if (s->bos >= 0 && get_bool(im, "add_bos_token", true))
        RAD_TRY(radi_idlist_add(&s->prefix, s->bos, im->err));
    if (s->sep >= 0 && get_bool(im, "add_sep_token", true))
        RAD_TRY(radi_idlist_add(&s->suffix, s->sep, im->err));
    return RAD_OK;
}

static rad_status charsmap(struct import *im)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int64_t at;
    size_t n;
    struct radi_str o = { 0 };
    RAD_TRY(get_array(im, "precompiled_charsmap", 0, false, &at, &n, im->err));
    if (at < 0 || !n)
        return RAD_OK;
    rad_status st = RAD_OK;
    for (size_t i = 0; !st && i < n; i += 3) {
        uint32_t w = 0;
        for (size_t k = 0; k < 3; k++) {
            int64_t v = 0;
            if (i + k < n && !rad_ckpt_kv_int(im->ck, (size_t)at, i + k, &v))
                st = rad_fail(im->err, RAD_E_FORMAT,
                              "'" GGML "precompiled_charsmap' is not bytes");
            w = w << 8 | (uint32_t)(v & 255);
        }
        for (size_t k = 0; k < 4; k++)
            if (i + k <= n)
                radi_str_addc(&o, digit[w >> (18 - 6 * k) & 63]);
    }
    if (!st)
        st = o.failed ? rad_fail(im->err, RAD_E_NOMEM, "out of memory for a charsmap")
                      : step(im, RADI_STEP_PRECOMPILED, 0, o.s, NULL, 0);
    radi_str_release(&o);
    return st;
}

static rad_status model_t5(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    bool prefix = get_bool(im, "add_space_prefix", true);
    s->kind = RAD_TOK_UNIGRAM;
    RAD_TRY(get_id(im, "bos_token_id", -1, &s->bos));
    RAD_TRY(get_id(im, "eos_token_id", 1, &s->eos));
    RAD_TRY(get_id(im, "unknown_token_id", 2, &s->unk));
    RAD_TRY(charsmap(im));
    if (get_bool(im, "remove_extra_whitespaces", true)) {
        RAD_TRY(step(im, RADI_STEP_REPLACE, 1, " {2,}", " ", 0));
        RAD_TRY(step(im, RADI_STEP_STRIP, 3, NULL, NULL, 0));
    }
    RAD_TRY(step(im, RADI_STEP_METASPACE, 1, META, NULL, prefix ? 2 : 0));
    RAD_TRY(step(im, RADI_STEP_D_METASPACE, 0, META, NULL, prefix ? 2 : 0));
    return around(im, false, true);
}

static rad_status import(struct import *im)
{
    struct radi_tok_spec *s = &im->s;
    size_t n = 0, len;
    const char *model = get_str(im, "model", &n);
    if (!model)
        return rad_fail(im->err, RAD_E_FORMAT, "no '" GGML "model'");
    RAD_TRY(read_tokens(im));
    RAD_TRY(index_texts(im));
    RAD_TRY(get_id(im, "seperator_token_id", -1, &s->sep));
    if (n == 5 && !memcmp(model, "llama", n))
        RAD_TRY(model_spm(im));
    else if (n == 4 && !memcmp(model, "gpt2", n))
        RAD_TRY(model_gpt2(im));
    else if (n == 6 && !memcmp(model, "gemma4", n))
        RAD_TRY(model_gemma4(im));
    else if (n == 4 && !memcmp(model, "bert", n))
        RAD_TRY(model_bert(im));
    else if ((n == 2 && !memcmp(model, "t5", n)) || (n == 7 && !memcmp(model, "unigram", n)))
        RAD_TRY(model_t5(im));
    else
        return rad_fail(im->err, RAD_E_UNSUPPORTED, "'" GGML "model' '%.*s'",
                        (int)RADI_MIN(n, (size_t)60), model);
    RAD_TRY(index_texts(im));
    RAD_TRY(add_added(im));
    RAD_TRY(get_id(im, "eot_token_id", -1, &s->eot));
    RAD_TRY(get_id(im, "padding_token_id", -1, &s->pad));
    if (s->eot < 0)
        s->eot = radi_tok_guess_eot(s, &im->by_text);
    int32_t eom;
    RAD_TRY(get_id(im, "eom_token_id", -1, &eom));
    if (eom >= 0)
        RAD_TRY(radi_idlist_add(&s->eog, eom, im->err));
    const char *t = rad_ckpt_text(im->ck, RAD_CKPT_CHAT_TEMPLATE, &len);
    if (t) {
        struct radi_tstr copy;
        RAD_TRY(radi_tok_spec_text(s, &copy, t, len, im->err));
        s->chat_template = copy.s;
    }
    return RAD_OK;
}

rad_status rad_tokenizer_from_ckpt(const struct rad_ckpt *ck, struct rad_tokenizer **out,
                                   struct rad_err *err)
{
    struct rad_err own = { 0 };
    rad_status st;
    *out = NULL;
    if (rad_ckpt_kind(ck) == RAD_CKPT_SAFETENSORS) {
        struct rad_tok_files f = { .size = sizeof f };
        f.tokenizer = rad_ckpt_text(ck, RAD_CKPT_TOKENIZER, &f.tokenizer_len);
        f.config = rad_ckpt_text(ck, RAD_CKPT_TOKENIZER_CONFIG, &f.config_len);
        f.generation = rad_ckpt_text(ck, RAD_CKPT_GENERATION_CONFIG, &f.generation_len);
        f.chat_template = rad_ckpt_text(ck, RAD_CKPT_CHAT_TEMPLATE, &f.chat_template_len);
        if (!f.tokenizer)
            return rad_fail(err, RAD_E_NOTFOUND, "'%s': no tokenizer.json", rad_ckpt_path(ck));
        st = rad_tokenizer_from_json(&f, out, err);
    } else {
        struct import im = { .ck = ck, .err = err ? err : &own };
        radi_tok_spec_init(&im.s);
        st = import(&im);
        radi_vmap_release(&im.by_text);
        if (!st)
            st = radi_tok_build(&im.s, out, im.err);
        radi_tok_spec_release(&im.s);
    }
    return st ? rad_fail_in(err, st, "'%s'", rad_ckpt_path(ck)) : RAD_OK;
}
