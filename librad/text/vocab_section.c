/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the container's vocab section (reference: container, §9): a specification
 * to bytes and back. What that table cannot say is put in steps of our own kinds
 * (>= 128, see enum radi_step_kind) behind the others, and only when it differs
 * from what the plain section means, so that the usual tokenizers come out as
 * every reader of the format expects them. */
#include "config.h"

#include <stdlib.h>

#include <rad/model.h>

#include "text/tok.h"

#include "banned.h"

enum { HEADER = 128, STEP = 32 };

static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }
static void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }
static uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint64_t get64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }

/* Flags of an added token that its type alone implies. */
static unsigned default_flags(uint8_t type)
{
    if (type == RAD_TOK_CONTROL || type == RAD_TOK_UNKNOWN)
        return RADI_ADDED_SPECIAL | RADI_ADDED_OUTSIDE;
    return RADI_ADDED_OUTSIDE;
}

static bool implied(uint8_t type)
{
    return type == RAD_TOK_CONTROL || type == RAD_TOK_UNKNOWN || type == RAD_TOK_USER;
}

/* ---- writing */
struct sink {
    rad_status (*intern)(void *user, const char *s, size_t n, uint64_t *offset,
                         struct rad_err *err);
    void *user;
    struct radi_str *out;
    size_t base;             /* of the section in out */
    struct rad_err *err;
};

static rad_status intern(const struct sink *k, const char *s, size_t n, uint64_t *off)
{
    *off = 0;
    return n ? k->intern(k->user, s, n, off, k->err) : RAD_OK;
}

/* Room for an aligned array; its offset goes to header field `at`. */
static uint8_t *array(const struct sink *k, size_t at, size_t n, size_t item)
{
    static const char zero[64] = { 0 };
    size_t bytes = 0;
    if (!radi_mul_size(n, item, &bytes))
        k->out->failed = true;
    while (!k->out->failed && (k->out->len - k->base) % 8)
        radi_str_addc(k->out, 0);
    size_t off = k->out->len - k->base;
    while (!k->out->failed && bytes) {
        size_t l = RADI_MIN(bytes, sizeof zero);
        radi_str_add(k->out, zero, l);
        bytes -= l;
    }
    if (k->out->failed)
        return NULL;
    put64((uint8_t *)k->out->s + k->base + at, off);
    return (uint8_t *)k->out->s + k->base + off;
}

static void add_range(struct radi_str *o, int32_t a, int32_t b)
{
    if (o->len)
        radi_str_addc(o, ' ');
    radi_str_addf(o, a == b ? "%d" : "%d-%d", a, b);
}

static void id_text(const struct radi_idlist *l, struct radi_str *o)
{
    radi_str_clear(o);
    for (size_t i = 0; i < l->n; i++)
        add_range(o, l->id[i], l->id[i]);
}

struct out_steps {
    struct radi_tok_step *v;
    size_t n, cap;
    struct radi_arena mem;
    struct rad_err *err;
};

static rad_status extra(struct out_steps *o, uint32_t kind, unsigned flags, const char *a0,
                        size_t n0, const char *a1, size_t n1, int64_t iarg)
{
    RAD_TRY(radi_grow((void **)&o->v, &o->cap, o->n + 1, sizeof *o->v, o->err));
    struct radi_tok_step s = { kind, flags, { NULL, n0 }, { NULL, n1 }, iarg };
    s.arg0.s = radi_arena_strndup(&o->mem, a0 ? a0 : "", n0);
    s.arg1.s = radi_arena_strndup(&o->mem, a1 ? a1 : "", n1);
    if (!s.arg0.s || !s.arg1.s)
        return rad_fail(o->err, RAD_E_NOMEM, "out of memory for pipeline steps");
    o->v[o->n++] = s;
    return RAD_OK;
}

static int by_flags(const void *a, const void *b)
{
    const struct radi_tok_added *x = a, *y = b;
    if (x->flags != y->flags)
        return x->flags < y->flags ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* One step for each set of flags that the type does not imply. */
static rad_status extra_added(const struct radi_tok_spec *s, struct out_steps *o)
{
    struct radi_tok_added *v = radi_calloc(s->n_tokens, sizeof *v);
    struct radi_str ids = { 0 };
    size_t n = 0;
    rad_status st = RAD_OK;
    if (!v)
        return rad_fail(o->err, RAD_E_NOMEM, "out of memory for added tokens");
    for (size_t i = 0; i < s->n_tokens; i++)     /* 256: implied, but not an added token */
        v[i] = (struct radi_tok_added){ (int32_t)i, implied(s->type[i]) ? 256 : 0 };
    for (size_t i = 0; i < s->n_added; i++) {
        struct radi_tok_added *x = &v[s->added[i].id];
        x->flags = s->added[i].flags | 512;
        if (implied(s->type[x->id]) && s->added[i].flags == default_flags(s->type[x->id]))
            x->flags = 0;
    }
    for (size_t i = 0; i < s->n_tokens; i++)
        if (v[i].flags)
            v[n++] = v[i];
    qsort(v, n, sizeof *v, by_flags);
    for (size_t i = 0; !st && i < n;) {
        size_t e = i;
        radi_str_clear(&ids);
        while (e < n && v[e].flags == v[i].flags) {
            size_t r = e;
            while (r + 1 < n && v[r + 1].flags == v[i].flags && v[r + 1].id == v[r].id + 1)
                r++;
            add_range(&ids, v[e].id, v[r].id);
            e = r + 1;
        }
        if (ids.failed)
            st = rad_fail(o->err, RAD_E_NOMEM, "out of memory for added tokens");
        else
            st = extra(o, RADI_STEP_X_ADDED, 0, ids.s, ids.len, NULL, 0,
                       v[i].flags & 256 ? -1 : (int64_t)(v[i].flags & 255));
        i = e;
    }
    radi_str_release(&ids);
    radi_free(v);
    return st;
}

static bool plain_around(const struct radi_idlist *l, int32_t id)
{
    return l->n == 0 || (l->n == 1 && l->id[0] == id && id >= 0);
}

static rad_status extras(const struct radi_tok_spec *s, struct out_steps *o)
{
    struct radi_str a = { 0 }, b = { 0 };
    rad_status st = RAD_OK;
    const char *sub = s->kind == RAD_TOK_WORDPIECE ? "##" : "";
    bool sub_default = s->sub_prefix.n == strlen(sub) &&
                       !memcmp(s->sub_prefix.s ? s->sub_prefix.s : "", sub, s->sub_prefix.n);
    if (s->model || s->end_suffix.n || s->max_word != 100 || !sub_default)
        st = extra(o, RADI_STEP_X_MODEL, s->model, s->sub_prefix.s, s->sub_prefix.n,
                   s->end_suffix.s, s->end_suffix.n, s->max_word);
    if (!st)
        st = extra_added(s, o);
    if (!st && (!plain_around(&s->prefix, s->bos) || !plain_around(&s->suffix, s->eos))) {
        id_text(&s->prefix, &a);
        id_text(&s->suffix, &b);
        st = a.failed || b.failed ? rad_fail(o->err, RAD_E_NOMEM, "out of memory for ids")
             : extra(o, RADI_STEP_X_AROUND, 0, a.s, a.len, b.s, b.len, 0);
    }
    int32_t lo = RADI_MIN(s->eos, s->eot), hi = RADI_MAX(s->eos, s->eot);
    size_t n = 0;
    int32_t want[2];
    if (lo >= 0)
        want[n++] = lo;
    if (hi >= 0 && hi != lo)
        want[n++] = hi;
    if (!st && (s->eog.n != n || (n && memcmp(s->eog.id, want, n * sizeof *want)))) {
        id_text(&s->eog, &a);
        st = a.failed ? rad_fail(o->err, RAD_E_NOMEM, "out of memory for ids")
             : extra(o, RADI_STEP_X_EOG, 0, a.s, a.len, NULL, 0, 0);
    }
    for (size_t i = 0; !st && i < s->n_tokens; i++)
        if (s->text[i].s && memchr(s->text[i].s, 0, s->text[i].n)) {
            radi_str_clear(&a);
            for (size_t k = 0; k < s->text[i].n; k++)
                radi_str_addf(&a, "%02x", (uint8_t)s->text[i].s[k]);
            st = a.failed ? rad_fail(o->err, RAD_E_NOMEM, "out of memory for a token")
                 : extra(o, RADI_STEP_X_TEXT, 0, a.s, a.len, NULL, 0, (int64_t)i);
        }
    radi_str_release(&a);
    radi_str_release(&b);
    return st;
}

static rad_status write_steps(const struct sink *k, const struct radi_tok_step *v, size_t n,
                              size_t at)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t a0, a1;
        if ((v[i].arg0.n && memchr(v[i].arg0.s, 0, v[i].arg0.n)) ||
            (v[i].arg1.n && memchr(v[i].arg1.s, 0, v[i].arg1.n)))
            return rad_fail(k->err, RAD_E_UNSUPPORTED, "a pipeline step with NUL in its text");
        RAD_TRY(intern(k, v[i].arg0.s, v[i].arg0.n, &a0));
        RAD_TRY(intern(k, v[i].arg1.s, v[i].arg1.n, &a1));
        uint8_t *p = (uint8_t *)k->out->s + k->base + at + i * STEP;
        put32(p, v[i].kind);
        put32(p + 4, v[i].flags);
        put64(p + 8, a0);
        put64(p + 16, a1);
        put64(p + 24, (uint64_t)v[i].iarg);
    }
    return RAD_OK;
}

static rad_status write_tokens(const struct sink *k, const struct radi_tok_spec *s)
{
    uint8_t *p = array(k, 16, s->n_tokens, 8);
    size_t at = p ? (size_t)(p - (uint8_t *)k->out->s) : 0;
    for (size_t i = 0; p && i < s->n_tokens; i++) {
        uint64_t off = 0;
        if (s->text[i].s && !memchr(s->text[i].s, 0, s->text[i].n))
            RAD_TRY(intern(k, s->text[i].s, s->text[i].n, &off));
        put64((uint8_t *)k->out->s + at + 8 * i, off);
    }
    if (s->score && (s->kind == RAD_TOK_UNIGRAM || (s->model & RADI_TOKM_SCORE_RANKS)) &&
        (p = array(k, 24, s->n_tokens, 4)))
        memcpy(p, s->score, 4 * s->n_tokens);
    if ((p = array(k, 32, s->n_tokens, 1)))
        for (size_t i = 0; i < s->n_tokens; i++)
            p[i] = s->type[i] == RAD_TOK_UNUSED ? RAD_TOK_NORMAL : s->type[i];
    if (s->n_merges && (p = array(k, 40, s->n_merges, 8)))
        memcpy(p, s->merge, 8 * s->n_merges);
    return RAD_OK;
}

static rad_status write_all(const struct sink *k, const struct radi_tok_spec *s,
                            const struct out_steps *x)
{
    size_t steps = s->n_steps + x->n, at = 0;
    uint64_t tmpl = 0;
    if (s->n_tokens > UINT32_MAX || s->n_merges > UINT32_MAX || steps > UINT32_MAX)
        return rad_fail(k->err, RAD_E_UNSUPPORTED, "a vocabulary of %zu tokens", s->n_tokens);
    for (int i = 0; i < HEADER; i++)
        radi_str_addc(k->out, 0);
    RAD_TRY(write_tokens(k, s));
    if (steps) {
        uint8_t *p = array(k, 48, steps, STEP);
        at = p ? (size_t)(p - (uint8_t *)k->out->s) - k->base : 0;
    }
    if (k->out->failed)
        return rad_fail(k->err, RAD_E_NOMEM, "out of memory for the vocab section");
    RAD_TRY(write_steps(k, s->step, s->n_steps, at));
    RAD_TRY(write_steps(k, x->v, x->n, at + s->n_steps * STEP));
    if (s->chat_template)
        RAD_TRY(intern(k, s->chat_template, strlen(s->chat_template), &tmpl));
    uint8_t *h = (uint8_t *)k->out->s + k->base;
    const int32_t ids[6] = { s->bos, s->eos, s->eot, s->pad, s->unk, s->sep };
    put32(h, (uint32_t)s->kind);
    put32(h + 4, (uint32_t)s->n_tokens);
    put32(h + 8, (uint32_t)s->n_merges);
    put32(h + 12, (uint32_t)steps);
    memcpy(h + 56, ids, sizeof ids);
    put32(h + 80, s->prefix.n && s->bos >= 0 && s->prefix.id[0] == s->bos);
    put32(h + 84, s->suffix.n && s->eos >= 0 && s->suffix.id[s->suffix.n - 1] == s->eos);
    put64(h + 88, tmpl);
    return RAD_OK;
}

rad_status radi_vocab_write(const struct rad_tokenizer *t, const struct radi_vocab_sink *sink,
                            struct radi_str *out, struct rad_err *err)
{
    struct sink k = { sink->intern, sink->ctx, out, out->len, err };
    struct out_steps x = { .err = err };
    radi_arena_init(&x.mem, 0);
    rad_status st = extras(&t->spec, &x);
    if (!st)
        st = write_all(&k, &t->spec, &x);
    radi_free(x.v);
    radi_arena_release(&x.mem);
    return st;
}

rad_status rad_tokenizer_write_vocab(const struct rad_tokenizer *t,
                                     rad_status (*fn)(void *user, const char *s, size_t n,
                                                      uint64_t *offset, struct rad_err *err),
                                     void *user, struct rad_tok_text *out, struct rad_err *err)
{
    struct radi_str o = { out->s, out->len, out->cap, false };
    struct radi_vocab_sink sink = { user, fn };
    rad_status st = radi_vocab_write(t, &sink, &o, err);
    *out = (struct rad_tok_text){ o.s, o.len, o.cap };
    return st;
}

/* ---- reading */
struct source {
    const uint8_t *p;
    size_t n;
    uint64_t base;           /* what array offsets count from the file's start */
    const char *(*string)(const void *ctx, uint64_t off);
    const void *ctx;
    struct rad_err *err;
};

static rad_status span(const struct source *k, size_t at, size_t n, size_t item, bool need,
                       const char *what, const uint8_t **out)
{
    uint64_t off = get64(k->p + at), bytes;
    *out = NULL;
    if (!off && !need)
        return RAD_OK;
    if (!radi_mul_u64(n, item, &bytes) || off < k->base || off - k->base < HEADER ||
        !radi_span_ok(off - k->base, bytes, k->n) || (off - k->base) % (item == STEP ? 8 : item))
        return rad_fail(k->err, RAD_E_FORMAT, "vocab: '%s' at %llu, %zu items of %zu bytes, in a "
                        "section of %zu", what, (unsigned long long)off, n, item, k->n);
    *out = k->p + (off - k->base);
    return RAD_OK;
}

static rad_status string(const struct source *k, uint64_t off, const char *what, const char **out)
{
    *out = off ? k->string(k->ctx, off) : "";
    return *out ? RAD_OK : rad_fail(k->err, RAD_E_FORMAT, "vocab: '%s': a string at %llu", what,
                                    (unsigned long long)off);
}

/* "0-5 7 9" */
static rad_status parse_ids(const struct source *k, const char *s, size_t n_tokens,
                            struct radi_idlist *out)
{
    while (*s) {
        char *e;
        unsigned long long a, b;
        if (*s < '0' || *s > '9')
            goto bad;
        a = b = strtoull(s, &e, 10);
        if (*e == '-') {
            if (e[1] < '0' || e[1] > '9')
                goto bad;
            b = strtoull(e + 1, &e, 10);
        }
        if (a > b || b >= n_tokens || (*e && *e != ' ') || out->n + (b - a) >= n_tokens + 1024)
            goto bad;
        for (; a <= b; a++)
            RAD_TRY(radi_idlist_add(out, (int32_t)a, k->err));
        s = e + (*e == ' ');
    }
    return RAD_OK;
bad:
    return rad_fail(k->err, RAD_E_FORMAT, "vocab: a list of ids at '%.40s'", s);
}

static rad_status read_text_hex(const struct source *k, struct radi_tok_spec *s, int64_t id,
                                const char *hex)
{
    size_t n = strlen(hex) / 2;
    char *b = radi_malloc(n + 1);
    rad_status st = RAD_OK;
    if (!b)
        return rad_fail(k->err, RAD_E_NOMEM, "out of memory for a token");
    if (id < 0 || (uint64_t)id >= s->n_tokens || strlen(hex) != 2 * n || !n)
        st = rad_fail(k->err, RAD_E_FORMAT, "vocab: the text of token %lld", (long long)id);
    for (size_t i = 0; !st && i < n; i++) {
        char pair[7] = { '<', '0', 'x', hex[2 * i], hex[2 * i + 1], '>', 0 };
        int v = radi_byte_token(pair, 6);
        if (v < 0)
            st = rad_fail(k->err, RAD_E_FORMAT, "vocab: the text of token %lld", (long long)id);
        b[i] = (char)v;
    }
    if (!st)
        st = radi_tok_spec_text(s, &s->text[id], b, n, k->err);
    radi_free(b);
    return st;
}

static rad_status read_added(const struct source *k, struct radi_tok_spec *s, uint8_t *given,
                             const char *ids, int64_t flags)
{
    struct radi_idlist l = { 0 };
    rad_status st = parse_ids(k, ids, s->n_tokens, &l);
    if (!st && (flags < -1 || flags > 63))
        st = rad_fail(k->err, RAD_E_FORMAT, "vocab: flags %lld of added tokens", (long long)flags);
    for (size_t i = 0; !st && i < l.n; i++) {
        if (given[l.id[i]])
            st = rad_fail(k->err, RAD_E_FORMAT, "vocab: added token %d is told twice", l.id[i]);
        given[l.id[i]] = 1;
        if (st || flags < 0)
            continue;
        st = radi_grow((void **)&s->added, &s->cap_added, s->n_added + 1, sizeof *s->added,
                       k->err);
        if (!st)
            s->added[s->n_added++] = (struct radi_tok_added){ l.id[i], (unsigned)flags };
    }
    radi_free(l.id);
    return st;
}

struct seen { bool around, eog; };

static rad_status read_step(const struct source *k, struct radi_tok_spec *s, const uint8_t *p,
                            uint8_t *given, struct seen *seen)
{
    struct radi_tok_step st = { .kind = get32(p), .flags = get32(p + 4),
                                .iarg = (int64_t)get64(p + 24) };
    const char *a, *b;
    RAD_TRY(string(k, get64(p + 8), "step", &a));
    RAD_TRY(string(k, get64(p + 16), "step", &b));
    st.arg0 = (struct radi_tstr){ a, strlen(a) };
    st.arg1 = (struct radi_tstr){ b, strlen(b) };
    switch (st.kind) {
    case RADI_STEP_BYTEFALLBACK:
        s->byte_fallback = true;
        break;
    case RADI_STEP_X_MODEL:
        if (st.flags > 15)
            return rad_fail(k->err, RAD_E_UNSUPPORTED, "vocab: model flags %u", st.flags);
        s->model = st.flags;
        s->max_word = st.iarg;
        RAD_TRY(radi_tok_spec_text(s, &s->sub_prefix, a, strlen(a), k->err));
        return radi_tok_spec_text(s, &s->end_suffix, b, strlen(b), k->err);
    case RADI_STEP_X_ADDED:
        return read_added(k, s, given, a, st.iarg);
    case RADI_STEP_X_AROUND:
        seen->around = true;
        RAD_TRY(parse_ids(k, a, s->n_tokens, &s->prefix));
        return parse_ids(k, b, s->n_tokens, &s->suffix);
    case RADI_STEP_X_EOG:
        return parse_ids(k, a, s->n_tokens, &s->eog);
    case RADI_STEP_X_TEXT:
        return read_text_hex(k, s, st.iarg, a);
    default:
        if ((st.kind >= 1 && st.kind <= 8) || (st.kind >= 32 && st.kind <= 37) ||
            (st.kind >= 64 && st.kind <= 69) || (st.kind >= 128 && st.kind <= 131) ||
            st.kind == RADI_STEP_D_WORDPIECE || st.kind == RADI_STEP_D_BPE)
            break;
        return rad_fail(k->err, RAD_E_UNSUPPORTED, "vocab: pipeline step %u", st.kind);
    }
    return radi_tok_spec_step(s, st, k->err);
}

static rad_status read_tokens(const struct source *k, struct radi_tok_spec *s, size_t n,
                              size_t merges)
{
    const uint8_t *text, *score, *type, *merge;
    RAD_TRY(span(k, 16, n, 8, true, "tok_text", &text));
    RAD_TRY(span(k, 24, n, 4, false, "tok_score", &score));
    RAD_TRY(span(k, 32, n, 1, false, "tok_type", &type));
    RAD_TRY(span(k, 40, merges, 8, merges > 0, "merge", &merge));
    RAD_TRY(radi_tok_spec_reserve(s, n, k->err));
    for (size_t i = 0; i < n; i++) {
        const char *t;
        RAD_TRY(string(k, get64(text + 8 * i), "tok_text", &t));
        if (type && (type[i] < 1 || type[i] > 6))
            return rad_fail(k->err, RAD_E_FORMAT, "vocab: token %zu: type %u", i, type[i]);
        s->type[i] = type ? type[i] : RAD_TOK_NORMAL;
        if (score)
            memcpy(&s->score[i], score + 4 * i, 4);
        if (*t)
            RAD_TRY(radi_tok_spec_text(s, &s->text[i], t, strlen(t), k->err));
        else
            s->type[i] = RAD_TOK_UNUSED;
    }
    if (!score) {
        radi_free(s->score);
        s->score = NULL;
        s->cap_score = 0;
    }
    if (merges) {
        RAD_TRY(radi_grow((void **)&s->merge, &s->cap_merges, merges, sizeof *s->merge, k->err));
        memcpy(s->merge, merge, merges * 8);
        s->n_merges = merges;
    }
    return RAD_OK;
}

static rad_status read_spec(const struct source *k, struct radi_tok_spec *s, uint8_t **given)
{
    const uint8_t *step;
    struct seen seen = { 0 };
    const char *tmpl;
    int32_t ids[6];
    if (k->n < HEADER)
        return rad_fail(k->err, RAD_E_FORMAT, "vocab: a section of %zu bytes, want %d", k->n,
                        HEADER);
    size_t n = get32(k->p + 4), merges = get32(k->p + 8), steps = get32(k->p + 12);
    s->kind = (int)get32(k->p);
    if (s->kind < RAD_TOK_BPE || s->kind > RAD_TOK_WORDPIECE)
        return rad_fail(k->err, RAD_E_UNSUPPORTED, "vocab: kind %d", s->kind);
    if (s->kind == RAD_TOK_WORDPIECE)
        RAD_TRY(radi_tok_spec_text(s, &s->sub_prefix, "##", 2, k->err));
    RAD_TRY(read_tokens(k, s, n, merges));
    memcpy(ids, k->p + 56, sizeof ids);
    s->bos = ids[0], s->eos = ids[1], s->eot = ids[2];
    s->pad = ids[3], s->unk = ids[4], s->sep = ids[5];
    *given = radi_calloc(n ? n : 1, 1);
    if (!*given)
        return rad_fail(k->err, RAD_E_NOMEM, "out of memory for %zu tokens", n);
    RAD_TRY(span(k, 48, steps, STEP, steps > 0, "step", &step));
    for (size_t i = 0; i < steps; i++)
        RAD_TRY(read_step(k, s, step + i * STEP, *given, &seen));
    for (size_t i = 0; i < n; i++) {
        if (!implied(s->type[i]) || (*given)[i] || !s->text[i].n)
            continue;
        RAD_TRY(radi_grow((void **)&s->added, &s->cap_added, s->n_added + 1, sizeof *s->added,
                          k->err));
        s->added[s->n_added++] = (struct radi_tok_added){ (int32_t)i, default_flags(s->type[i]) };
    }
    if (!seen.around && get32(k->p + 80) && s->bos >= 0)
        RAD_TRY(radi_idlist_add(&s->prefix, s->bos, k->err));
    if (!seen.around && get32(k->p + 84) && s->eos >= 0)
        RAD_TRY(radi_idlist_add(&s->suffix, s->eos, k->err));
    RAD_TRY(string(k, get64(k->p + 88), "chat template", &tmpl));
    if (*tmpl) {
        struct radi_tstr t;
        RAD_TRY(radi_tok_spec_text(s, &t, tmpl, strlen(tmpl), k->err));
        s->chat_template = t.s;
    }
    return RAD_OK;
}

static const char *model_string(const void *ctx, uint64_t off)
{
    return rad_model_string(ctx, off);
}

rad_status rad_tokenizer_from_model(const struct rad_model *m, struct rad_tokenizer **out,
                                    struct rad_err *err)
{
    const void *p;
    size_t n;
    struct radi_tok_spec s;
    uint8_t *given = NULL;
    *out = NULL;
    rad_model_vocab(m, &p, &n);
    if (!p)
        return rad_fail(err, RAD_E_NOTFOUND, "'%s': no vocabulary in the container",
                        rad_model_path(m));
    struct source k = { p, n, rad_model_info(m)->vocab.offset, model_string, m, err };
    radi_tok_spec_init(&s);
    rad_status st = read_spec(&k, &s, &given);
    radi_free(given);
    if (!st)
        st = radi_tok_build(&s, out, err);
    radi_tok_spec_release(&s);
    return st ? rad_fail_in(err, st, "'%s'", rad_model_path(m)) : RAD_OK;
}
