/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the built tokenizer: compiling a specification, the encode driver, and
 * the getters. The order of encoding is the reference's: repair the bytes, cut
 * out added tokens that are matched in raw text, normalise what is between, cut
 * out those matched in normalised text, pre-tokenise, give pieces to the model. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "text/tok.h"

#include "banned.h"

/* ---- specification */
void radi_tok_spec_init(struct radi_tok_spec *s)
{
    *s = (struct radi_tok_spec){ .bos = -1, .eos = -1, .eot = -1, .pad = -1, .unk = -1,
                                 .sep = -1, .max_word = 100 };
    radi_arena_init(&s->mem, 0);
}

void radi_tok_spec_release(struct radi_tok_spec *s)
{
    radi_free(s->text);
    radi_free(s->type);
    radi_free(s->score);
    radi_free(s->merge);
    radi_free(s->step);
    radi_free(s->added);
    radi_free(s->prefix.id);
    radi_free(s->suffix.id);
    radi_free(s->eog.id);
    radi_arena_release(&s->mem);
    radi_tok_spec_init(s);
}

rad_status radi_tok_spec_reserve(struct radi_tok_spec *s, size_t n, struct rad_err *err)
{
    if (n <= s->n_tokens)
        return RAD_OK;
    if (n > RADI_TOK_MAX_TOKENS)
        return rad_fail(err, RAD_E_FORMAT, "vocabulary: token id %zu, want below %u", n - 1,
                        RADI_TOK_MAX_TOKENS);
    RAD_TRY(radi_grow((void **)&s->text, &s->cap_text, n, sizeof *s->text, err));
    RAD_TRY(radi_grow((void **)&s->type, &s->cap_type, n, sizeof *s->type, err));
    RAD_TRY(radi_grow((void **)&s->score, &s->cap_score, n, sizeof *s->score, err));
    for (size_t i = s->n_tokens; i < n; i++) {
        s->text[i] = (struct radi_tstr){ NULL, 0 };
        s->type[i] = RAD_TOK_UNUSED;
        s->score[i] = 0;
    }
    s->n_tokens = n;
    return RAD_OK;
}

rad_status radi_tok_spec_text(struct radi_tok_spec *s, struct radi_tstr *out, const char *p,
                              size_t n, struct rad_err *err)
{
    out->s = radi_arena_strndup(&s->mem, p ? p : "", n);
    out->n = n;
    return out->s ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory for a vocabulary");
}

rad_status radi_tok_spec_step(struct radi_tok_spec *s, struct radi_tok_step st,
                              struct rad_err *err)
{
    if (s->n_steps >= RADI_TOK_MAX_STEPS)
        return rad_fail(err, RAD_E_UNSUPPORTED, "more than %d pipeline steps",
                        RADI_TOK_MAX_STEPS);
    RAD_TRY(radi_grow((void **)&s->step, &s->cap_steps, s->n_steps + 1, sizeof *s->step, err));
    struct radi_tok_step *o = &s->step[s->n_steps];
    *o = st;
    if (st.arg0.s)
        RAD_TRY(radi_tok_spec_text(s, &o->arg0, st.arg0.s, st.arg0.n, err));
    if (st.arg1.s)
        RAD_TRY(radi_tok_spec_text(s, &o->arg1, st.arg1.s, st.arg1.n, err));
    s->n_steps++;
    return RAD_OK;
}

/* ---- building */
static rad_status check_id(const struct radi_tok_spec *s, const char *what, int32_t id,
                           struct rad_err *err)
{
    if (id < -1 || (id >= 0 && (size_t)id >= s->n_tokens))
        return rad_fail(err, RAD_E_FORMAT, "%s token %d in a vocabulary of %zu", what, id,
                        s->n_tokens);
    return RAD_OK;
}

static rad_status check_list(const struct radi_tok_spec *s, const char *what,
                             const struct radi_idlist *l, struct rad_err *err)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->id[i] < 0 || (size_t)l->id[i] >= s->n_tokens)
            return rad_fail(err, RAD_E_FORMAT, "%s token %d in a vocabulary of %zu", what,
                            l->id[i], s->n_tokens);
    return RAD_OK;
}

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static size_t chars(const struct radi_tstr *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += ((uint8_t)s->s[i] & 0xc0) != 0x80;
    return n;
}

/* Drops what is told but makes no difference, so that the usual tokenizers need
 * nothing that the plain vocab section cannot say. */
static void simplify(struct radi_tok_spec *s)
{
    bool byte[256] = { false };
    size_t bytes = 0;
    if (s->kind != RAD_TOK_BPE)
        return;
    for (size_t i = 0; s->byte_fallback && i < s->n_tokens; i++) {
        int b = radi_byte_token(s->text[i].s ? s->text[i].s : "", s->text[i].n);
        if (b >= 0 && !byte[b]) {
            byte[b] = true;
            bytes++;
        }
    }
    if (bytes == 256)        /* no character is ever unknown */
        s->model &= ~(unsigned)RADI_TOKM_FUSE_UNK;
    /* The model looks up single characters and nothing longer. */
    if (!(s->model & RADI_TOKM_IGNORE_MERGES) && !s->sub_prefix.n && !s->end_suffix.n)
        for (size_t i = 0; i < s->n_added; i++)
            if (chars(&s->text[s->added[i].id]) > 1)
                s->added[i].flags |= RADI_ADDED_OUTSIDE;
}

static rad_status check_spec(struct radi_tok_spec *s, struct rad_err *err)
{
    if (s->kind < RAD_TOK_BPE || s->kind > RAD_TOK_WORDPIECE)
        return rad_fail(err, RAD_E_UNSUPPORTED, "vocabulary kind %d", s->kind);
    if (!s->n_tokens)
        return rad_fail(err, RAD_E_FORMAT, "vocabulary: no tokens");
    RAD_TRY(check_id(s, "bos", s->bos, err));
    RAD_TRY(check_id(s, "eos", s->eos, err));
    RAD_TRY(check_id(s, "eot", s->eot, err));
    RAD_TRY(check_id(s, "pad", s->pad, err));
    RAD_TRY(check_id(s, "unk", s->unk, err));
    RAD_TRY(check_id(s, "sep", s->sep, err));
    RAD_TRY(check_list(s, "template", &s->prefix, err));
    RAD_TRY(check_list(s, "template", &s->suffix, err));
    RAD_TRY(check_list(s, "end-of-generation", &s->eog, err));
    if (s->sub_prefix.n > 64 || s->end_suffix.n > 64)
        return rad_fail(err, RAD_E_FORMAT, "'continuing_subword_prefix' or 'end_of_word_suffix' "
                        "of more than 64 bytes");
    if (s->max_word < 1 || s->max_word > 1000)
        return rad_fail(err, RAD_E_FORMAT, "'max_input_chars_per_word' %lld, want 1 to 1000",
                        (long long)s->max_word);
    for (size_t i = 0; i < s->n_merges; i++)
        if (s->merge[i][0] >= s->n_tokens || s->merge[i][1] >= s->n_tokens)
            return rad_fail(err, RAD_E_FORMAT, "merge %zu: tokens %u and %u in a vocabulary of %zu",
                            i, s->merge[i][0], s->merge[i][1], s->n_tokens);
    for (size_t i = 0; i < s->n_added; i++)
        if (s->added[i].id < 0 || (size_t)s->added[i].id >= s->n_tokens ||
            !s->text[s->added[i].id].n)
            return rad_fail(err, RAD_E_FORMAT, "added token %d has no text", s->added[i].id);
    for (size_t i = 0; i < s->n_tokens; i++)
        if (s->text[i].s && !radi_utf8_valid(s->text[i].s, s->text[i].n))
            return rad_fail(err, RAD_E_FORMAT, "token %zu: its text is not UTF-8", i);
    simplify(s);
    if (s->eos >= 0)
        RAD_TRY(radi_idlist_add(&s->eog, s->eos, err));
    if (s->eot < 0)
        s->eot = s->eos;
    if (s->eot >= 0)
        RAD_TRY(radi_idlist_add(&s->eog, s->eot, err));
    size_t k = 0;
    if (s->eog.n)
        qsort(s->eog.id, s->eog.n, sizeof *s->eog.id, by_id);
    for (size_t i = 0; i < s->eog.n; i++)
        if (!k || s->eog.id[k - 1] != s->eog.id[i])
            s->eog.id[k++] = s->eog.id[i];
    s->eog.n = k;
    return RAD_OK;
}

/* Display texts, what the model matches, byte tokens. */
static rad_status index_tokens(struct rad_tokenizer *t, struct rad_err *err)
{
    struct radi_tok_spec *s = &t->spec;
    size_t n = s->n_tokens, bytes = 1;
    RAD_TRY(radi_vmap_init(&t->by_text, n, err));
    RAD_TRY(radi_vmap_init(&t->by_key, n, err));
    t->key = radi_calloc(n, sizeof *t->key);
    t->added_flags = radi_calloc(n, 1);
    for (size_t i = 0; i < n; i++)
        bytes += s->text[i].n;
    t->key_mem = t->bytes ? radi_malloc(bytes) : NULL;
    if (!t->key || !t->added_flags || (t->bytes && !t->key_mem))
        return rad_fail(err, RAD_E_NOMEM, "out of memory for %zu tokens", n);
    for (int b = 0; b < 256; b++)
        t->byte_id[b] = -1;
    for (size_t i = 0; i < s->n_added; i++)
        t->added_flags[s->added[i].id] = (uint8_t)(s->added[i].flags | RADI_ADDED_IS);
    char *k = t->key_mem;
    for (size_t i = 0; i < n; i++) {
        struct radi_tstr *x = &s->text[i];
        size_t len;
        if (!x->s || !x->n)
            continue;
        radi_vmap_put(&t->by_text, s->text, (int32_t)i);
        int b = radi_byte_token(x->s, x->n);
        if (b >= 0 && s->byte_fallback && t->byte_id[b] < 0)
            t->byte_id[b] = (int32_t)i;
        if (t->added_flags[i] & RADI_ADDED_OUTSIDE)
            continue;
        if (!t->bytes)
            t->key[i] = *x;
        else if (radi_bytechar_decode(x->s, x->n, k, &len)) {
            t->key[i] = (struct radi_tstr){ k, len };
            k += len;
        } else
            continue;
        radi_vmap_put(&t->by_key, t->key, (int32_t)i);
    }
    return RAD_OK;
}

/* Added tokens of one of the two passes; contents normalised for the second. */
static rad_status build_added(struct rad_tokenizer *t, bool normal, struct radi_trie **out,
                              struct rad_err *err)
{
    struct radi_tok_spec *s = &t->spec;
    struct radi_added_text *it = radi_calloc(s->n_added ? s->n_added : 1, sizeof *it);
    struct radi_str buf[2] = { { 0 }, { 0 } };
    struct radi_rxctx rx = { 0 };
    size_t n = 0;
    rad_status st = it ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory for added tokens");
    for (size_t i = 0; !st && i < s->n_added; i++) {
        const struct radi_tok_added *a = &s->added[i];
        if (!(a->flags & RADI_ADDED_NORMALIZED) == normal)
            continue;
        struct radi_tstr x = s->text[a->id];
        const char *p = x.s;
        size_t len = x.n;
        if (normal && !radi_norm_empty(t->norm)) {
            st = radi_norm_run(t->norm, &rx, &p, &len, buf, err);
            if (!st && len)
                st = radi_tok_spec_text(s, &x, p, len, err);
        }
        if (!st && len)
            it[n++] = (struct radi_added_text){ { x.s, len }, a->id };
    }
    if (!st && n)
        st = radi_trie_new(it, n, out, err);
    radi_free(it);
    radi_str_release(&buf[0]);
    radi_str_release(&buf[1]);
    radi_rxctx_release(&rx);
    return st;
}

static rad_status build(struct rad_tokenizer *t, struct rad_err *err)
{
    RAD_TRY(check_spec(&t->spec, err));
    RAD_TRY(radi_norm_new(&t->spec, &t->norm, err));
    RAD_TRY(radi_pretok_new(&t->spec, &t->pre, err));
    RAD_TRY(radi_decoder_new(&t->spec, &t->dec, err));
    t->bytes = radi_pretok_bytes(t->pre);
    RAD_TRY(index_tokens(t, err));
    RAD_TRY(build_added(t, false, &t->raw, err));
    RAD_TRY(build_added(t, true, &t->normal, err));
    if (t->spec.kind == RAD_TOK_BPE)
        return radi_bpe_new(t, &t->bpe, err);
    if (t->spec.kind == RAD_TOK_UNIGRAM)
        return radi_unigram_new(t, &t->uni, err);
    return RAD_OK;
}

rad_status radi_tok_build(struct radi_tok_spec *spec, struct rad_tokenizer **out,
                          struct rad_err *err)
{
    *out = NULL;
    struct rad_tokenizer *t = radi_calloc(1, sizeof *t);
    if (!t) {
        radi_tok_spec_release(spec);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a tokenizer");
    }
    t->spec = *spec;
    radi_tok_spec_init(spec);
    rad_status st = build(t, err);
    if (st) {
        rad_tokenizer_free(t);
        return st;
    }
    *out = t;
    return RAD_OK;
}

void rad_tokenizer_free(struct rad_tokenizer *t)
{
    if (!t)
        return;
    radi_bpe_free(t->bpe);
    radi_unigram_free(t->uni);
    radi_norm_free(t->norm);
    radi_pretok_free(t->pre);
    radi_decoder_free(t->dec);
    radi_trie_free(t->raw);
    radi_trie_free(t->normal);
    radi_vmap_release(&t->by_text);
    radi_vmap_release(&t->by_key);
    radi_free(t->key);
    radi_free(t->key_mem);
    radi_free(t->added_flags);
    radi_tok_spec_release(&t->spec);
    radi_free(t);
}

const struct radi_tok_spec *radi_tok_spec_of(const struct rad_tokenizer *t)
{
    return &t->spec;
}

/* ---- encoding */
struct call {
    const struct rad_tokenizer *t;
    bool special;            /* special tokens are recognised */
    struct radi_rxctx rx;
    struct radi_str norm[2];
    struct radi_pieces pieces;
    struct radi_mscratch ms;
    struct rad_ids *out;
    struct rad_err *err;
};

static rad_status model(struct call *c, const char *s, size_t n)
{
    const struct rad_tokenizer *t = c->t;
    switch (t->spec.kind) {
    case RAD_TOK_BPE: return radi_bpe_encode(t, &c->ms, s, n, c->out, c->err);
    case RAD_TOK_UNIGRAM: return radi_unigram_encode(t, &c->ms, s, n, c->out, c->err);
    default: return radi_wordpiece_encode(t, &c->ms, s, n, c->out, c->err);
    }
}

/* Normalised text without added tokens. */
static rad_status plain(struct call *c, const char *s, size_t n, bool first)
{
    radi_splitter *split = radi_pretok_simple(c->t->pre);
    if (split && !c->ms.plain) {
        bool matched;
        for (size_t i = 0; i < n;) {
            size_t e = split(s, n, i, &matched);
            RAD_TRY(model(c, s + i, e - i));
            i = e;
        }
        return RAD_OK;
    }
    RAD_TRY(radi_pretok_run(c->t->pre, &c->rx, s, n, first, &c->pieces, c->err));
    for (size_t i = 0; i < c->pieces.n; i++)
        RAD_TRY(model(c, c->pieces.text + c->pieces.p[i].off, c->pieces.p[i].len));
    return RAD_OK;
}

static bool word_before(const char *s, size_t at)
{
    size_t k = at;
    uint32_t cp;
    if (!at)
        return false;
    do
        k--;
    while (k && ((uint8_t)s[k] & 0xc0) == 0x80);
    return radi_utf8_next(s + k, at - k, &cp) && radi_cp_word(cp);
}

static bool word_at(const char *s, size_t n, size_t at)
{
    uint32_t cp;
    return at < n && radi_utf8_next(s + at, n - at, &cp) && radi_cp_word(cp);
}

typedef rad_status between(struct call *c, const char *s, size_t n, bool first);

/* Cuts the added tokens of `tr` out of s; what lies between goes to `fn`. */
static rad_status cut(struct call *c, const struct radi_trie *tr, const char *s, size_t n,
                      bool first, between *fn)
{
    size_t done = 0;
    uint32_t cp;
    for (size_t i = 0; tr && i < n;) {
        size_t len = 0, l;
        uint8_t b = (uint8_t)s[i];
        if (tr->start[b] == tr->start[b + 1]) {
            i++;
            continue;
        }
        int32_t id = radi_trie_match(tr, s + i, n - i, &len);
        if (id < 0) {
            i++;
            continue;
        }
        unsigned f = c->t->added_flags[id];
        size_t from = i, end = i + len;
        i = end;                 /* a match that is passed over still is one */
        if ((f & RADI_ADDED_SPECIAL) && !c->special)
            continue;
        if ((f & RADI_ADDED_SINGLE_WORD) && (word_before(s, from) || word_at(s, n, end)))
            continue;
        if (f & RADI_ADDED_LSTRIP)
            while (from > done) {
                size_t k = from;
                do
                    k--;
                while (k > done && ((uint8_t)s[k] & 0xc0) == 0x80);
                if (!radi_utf8_next(s + k, from - k, &cp) || !radi_cp_space(cp))
                    break;
                from = k;
            }
        if (f & RADI_ADDED_RSTRIP)
            while (end < n && (l = radi_utf8_next(s + end, n - end, &cp)) && radi_cp_space(cp))
                end += l;
        if (from > done)
            RAD_TRY(fn(c, s + done, from - done, first && done == 0));
        RAD_TRY(radi_ids_add(c->out, id, c->err));
        done = i = end;
    }
    return done < n ? fn(c, s + done, n - done, first && done == 0) : RAD_OK;
}

static rad_status raw_part(struct call *c, const char *s, size_t n, bool first)
{
    RAD_TRY(radi_norm_run(c->t->norm, &c->rx, &s, &n, c->norm, c->err));
    return cut(c, c->t->normal, s, n, first, plain);
}

rad_status rad_tokenizer_encode(const struct rad_tokenizer *t, const char *text, size_t len,
                                unsigned flags, struct rad_ids *out, struct rad_err *err)
{
    struct rad_err own = { 0 };
    struct call c = { .t = t, .special = flags & RAD_TOK_PARSE_SPECIAL, .out = out,
                      .err = err ? err : &own };
    c.ms.plain = c.rx.plain = flags & RAD_TOK_REFERENCE;
    struct radi_str fixed = { 0 };
    size_t had = out->n;
    rad_status st = RAD_OK;
    if (len > SIZE_MAX / 8)
        return rad_fail(err, RAD_E_ARG, "a text of %zu bytes", len);
    if (!radi_utf8_valid(text, len)) {
        radi_utf8_repair(text, len, &fixed);
        if (fixed.failed) {
            st = rad_fail(err, RAD_E_NOMEM, "out of memory for a text of %zu bytes", len);
            goto out;
        }
        text = fixed.s;
        len = fixed.len;
    }
    if (t->bpe && len > 4096 && !c.ms.plain)
        radi_bpe_want_cache(&c.ms);
    if (flags & RAD_TOK_ADD_SPECIAL)
        for (size_t i = 0; !st && i < t->spec.prefix.n; i++)
            st = radi_ids_add(out, t->spec.prefix.id[i], err);
    if (!st && len)
        st = cut(&c, t->raw, text, len, true, raw_part);
    if (flags & RAD_TOK_ADD_SPECIAL)
        for (size_t i = 0; !st && i < t->spec.suffix.n; i++)
            st = radi_ids_add(out, t->spec.suffix.id[i], err);
out:
    radi_str_release(&fixed);
    radi_str_release(&c.norm[0]);
    radi_str_release(&c.norm[1]);
    radi_pieces_release(&c.pieces);
    radi_mscratch_release(&c.ms);
    radi_rxctx_release(&c.rx);
    if (st)
        out->n = had;
    return st;
}

/* ---- getters */
enum rad_tok_kind rad_tokenizer_kind(const struct rad_tokenizer *t)
{
    return (enum rad_tok_kind)t->spec.kind;
}
size_t rad_tokenizer_count(const struct rad_tokenizer *t) { return t->spec.n_tokens; }
size_t rad_tokenizer_merge_count(const struct rad_tokenizer *t) { return t->spec.n_merges; }

const char *rad_tokenizer_text(const struct rad_tokenizer *t, int32_t id, size_t *len)
{
    if (id < 0 || (size_t)id >= t->spec.n_tokens)
        return NULL;
    if (len)
        *len = t->spec.text[id].n;
    return t->spec.text[id].s;
}

enum rad_tok_type rad_tokenizer_type(const struct rad_tokenizer *t, int32_t id)
{
    if (id < 0 || (size_t)id >= t->spec.n_tokens)
        return RAD_TOK_UNUSED;
    return (enum rad_tok_type)t->spec.type[id];
}

float rad_tokenizer_score(const struct rad_tokenizer *t, int32_t id)
{
    return t->spec.score && id >= 0 && (size_t)id < t->spec.n_tokens ? t->spec.score[id] : 0;
}

int32_t rad_tokenizer_find(const struct rad_tokenizer *t, const char *text, size_t len)
{
    return radi_vmap_get(&t->by_text, t->spec.text, text, len);
}

int32_t rad_tokenizer_bos(const struct rad_tokenizer *t) { return t->spec.bos; }
int32_t rad_tokenizer_eos(const struct rad_tokenizer *t) { return t->spec.eos; }
int32_t rad_tokenizer_eot(const struct rad_tokenizer *t) { return t->spec.eot; }
int32_t rad_tokenizer_pad(const struct rad_tokenizer *t) { return t->spec.pad; }
int32_t rad_tokenizer_unk(const struct rad_tokenizer *t) { return t->spec.unk; }
int32_t rad_tokenizer_sep(const struct rad_tokenizer *t) { return t->spec.sep; }

bool rad_tokenizer_add_bos(const struct rad_tokenizer *t)
{
    return t->spec.bos >= 0 && t->spec.prefix.n && t->spec.prefix.id[0] == t->spec.bos;
}
bool rad_tokenizer_add_eos(const struct rad_tokenizer *t)
{
    return t->spec.eos >= 0 && t->spec.suffix.n &&
           t->spec.suffix.id[t->spec.suffix.n - 1] == t->spec.eos;
}

static const int32_t *list(const struct radi_idlist *l, size_t *n)
{
    *n = l->n;
    return l->id;
}
const int32_t *rad_tokenizer_eog(const struct rad_tokenizer *t, size_t *n)
{
    return list(&t->spec.eog, n);
}
const int32_t *rad_tokenizer_prefix(const struct rad_tokenizer *t, size_t *n)
{
    return list(&t->spec.prefix, n);
}
const int32_t *rad_tokenizer_suffix(const struct rad_tokenizer *t, size_t *n)
{
    return list(&t->spec.suffix, n);
}

bool rad_tokenizer_is_eog(const struct rad_tokenizer *t, int32_t id)
{
    for (size_t i = 0; i < t->spec.eog.n; i++)
        if (t->spec.eog.id[i] == id)
            return true;
    return false;
}

const char *rad_tokenizer_chat_template(const struct rad_tokenizer *t)
{
    return t->spec.chat_template;
}

static const struct { uint32_t kind; const char *name; } step_names[] = {
    { RADI_STEP_NFC, "nfc" }, { RADI_STEP_NFKC, "nfkc" }, { RADI_STEP_NFD, "nfd" },
    { RADI_STEP_NFKD, "nfkd" }, { RADI_STEP_LOWER, "lowercase" }, { RADI_STEP_STRIP, "strip" },
    { RADI_STEP_REPLACE, "replace" }, { RADI_STEP_PREPEND, "prepend" },
    { RADI_STEP_STRIP_ACCENTS, "strip-accents" }, { RADI_STEP_BERT, "bert-normalise" },
    { RADI_STEP_PRECOMPILED, "precompiled" }, { RADI_STEP_NMT, "nmt" },
    { RADI_STEP_BYTELEVEL, "byte-level" }, { RADI_STEP_SPLIT, "split" },
    { RADI_STEP_METASPACE, "metaspace" }, { RADI_STEP_WHITESPACE, "whitespace" },
    { RADI_STEP_PUNCTUATION, "punctuation" }, { RADI_STEP_DIGITS, "digits" },
    { RADI_STEP_D_BYTELEVEL, "decode byte-level" }, { RADI_STEP_D_METASPACE, "decode metaspace" },
    { RADI_STEP_D_REPLACE, "decode replace" }, { RADI_STEP_D_STRIP, "decode strip" },
    { RADI_STEP_D_FUSE, "decode fuse" }, { RADI_STEP_D_BYTEFALLBACK, "decode byte-fallback" },
    { RADI_STEP_D_WORDPIECE, "decode wordpiece" }, { RADI_STEP_D_BPE, "decode bpe" },
};

const char *rad_tokenizer_step(const struct rad_tokenizer *t, size_t i, char *buf, size_t n)
{
    if (i >= t->spec.n_steps)
        return NULL;
    const struct radi_tok_step *st = &t->spec.step[i];
    const char *name = "?";
    for (size_t k = 0; k < RADI_COUNT(step_names); k++)
        if (step_names[k].kind == st->kind)
            name = step_names[k].name;
    if (st->kind == RADI_STEP_SPLIT || st->kind == RADI_STEP_REPLACE ||
        st->kind == RADI_STEP_D_REPLACE)
        snprintf(buf, n, "%s /%.*s/", name, (int)RADI_MIN(st->arg0.n, (size_t)200),
                 st->arg0.s ? st->arg0.s : "");
    else
        snprintf(buf, n, "%s", name);
    return buf;
}
