/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way back: the decoder chain as a row of stages that tokens are pushed
 * through. Decoding at once is the same pushes and one finish, so streaming and
 * whole decoding cannot differ. A stage holds back exactly what later tokens
 * may still change: half a character, a run of byte tokens (which the reference
 * judges as a whole), the last token before a suffix rule. */
#include "config.h"

#include "text/tok.h"

#include "banned.h"

enum kind { K_BYTELEVEL, K_METASPACE, K_REPLACE, K_STRIP, K_FUSE, K_BYTEFALLBACK, K_WORDPIECE,
            K_BPE, K_JOIN };

struct stage {
    enum kind kind;
    struct radi_tstr a, b;
    int64_t start, stop;     /* STRIP */
    bool drop_first;         /* METASPACE: the first token loses its marks */
    bool clean;              /* WORDPIECE */
    bool fused;              /* its input is one string in parts */
    bool whole;              /* fused, and a part cannot be treated alone */
};
struct radi_decoder {
    struct stage *stage;
    size_t n;
};
struct state {
    struct radi_str held, tmp;
    size_t index;            /* tokens seen */
    int64_t cut;             /* STRIP: removed at the start so far */
    bool open;               /* STRIP: past the start */
};
struct rad_detok {
    const struct rad_tokenizer *t;
    unsigned flags;
    struct state *state;
};

/* ---- building */
rad_status radi_decoder_new(const struct radi_tok_spec *s, struct radi_decoder **out,
                            struct rad_err *err)
{
    *out = NULL;
    struct radi_decoder *d = radi_calloc(1, sizeof *d);
    if (!d || !(d->stage = radi_calloc(s->n_steps + 1, sizeof *d->stage))) {
        radi_decoder_free(d);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for the decoder");
    }
    bool fused = false;
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct radi_tok_step *p = &s->step[i];
        struct stage g = { .a = p->arg0, .b = p->arg1 };
        if ((p->kind < 64 || p->kind > 95) && (p->kind < 144 || p->kind > 159))
            continue;
        switch (p->kind) {
        case RADI_STEP_D_BYTELEVEL: g.kind = K_BYTELEVEL; break;
        case RADI_STEP_D_METASPACE:
            g.kind = K_METASPACE;
            g.drop_first = p->iarg != 0;
            if (!g.a.n)
                g.a = (struct radi_tstr){ "\xe2\x96\x81", 3 };
            break;
        case RADI_STEP_D_REPLACE: g.kind = K_REPLACE; break;
        case RADI_STEP_D_STRIP:
            g.kind = K_STRIP;
            g.start = p->iarg & 0xffffffff;
            g.stop = p->iarg >> 32;
            break;
        case RADI_STEP_D_FUSE: g.kind = K_FUSE; break;
        case RADI_STEP_D_BYTEFALLBACK: g.kind = K_BYTEFALLBACK; break;
        case RADI_STEP_D_WORDPIECE:
            g.kind = K_WORDPIECE;
            g.clean = p->flags & 1;
            break;
        case RADI_STEP_D_BPE: g.kind = K_BPE; break;
        default:
            radi_decoder_free(d);
            return rad_fail(err, RAD_E_UNSUPPORTED, "decoder: step %u", p->kind);
        }
        if ((g.kind == K_REPLACE || g.kind == K_STRIP || g.kind == K_BPE) && !g.a.n) {
            radi_decoder_free(d);
            return rad_fail(err, RAD_E_FORMAT, "decoder: step %u with an empty pattern", p->kind);
        }
        g.fused = fused;
        g.whole = fused && g.kind != K_STRIP && g.kind != K_FUSE;
        if (g.kind == K_FUSE || g.kind == K_BYTELEVEL)
            fused = true;
        d->stage[d->n++] = g;
    }
    if (s->model & RADI_TOKM_NO_DECODER)
        d->stage[d->n++] = (struct stage){ .kind = K_JOIN };
    *out = d;
    return RAD_OK;
}

void radi_decoder_free(struct radi_decoder *d)
{
    if (!d)
        return;
    radi_free(d->stage);
    radi_free(d);
}

/* ---- helpers */
static void replace(const char *s, size_t n, const struct radi_tstr *a, const char *b, size_t bn,
                    struct radi_str *o)
{
    while (n) {
        const char *p = memmem(s, n, a->s, a->n);
        if (!p)
            break;
        radi_str_add(o, s, (size_t)(p - s));
        radi_str_add(o, b, bn);
        n -= (size_t)(p - s) + a->n;
        s = p + a->n;
    }
    radi_str_add(o, s, n);
}

/* Bytes at s that belong to one broken or unfinished character (>= 1);
 * *more: they may still become whole. */
static size_t broken(const char *s, size_t n, bool *more)
{
    uint8_t b = (uint8_t)s[0], lo = 0x80, hi = 0xbf;
    size_t want = b >= 0xc2 && b <= 0xdf ? 2 : (b & 0xf0) == 0xe0 ? 3
                : b >= 0xf0 && b <= 0xf4 ? 4 : 0;
    *more = false;
    if (!want)
        return 1;
    if (b == 0xe0)
        lo = 0xa0;
    else if (b == 0xed)
        hi = 0x9f;
    else if (b == 0xf0)
        lo = 0x90;
    else if (b == 0xf4)
        hi = 0x8f;
    size_t i = 1;
    while (i < want && i < n && (uint8_t)s[i] >= lo && (uint8_t)s[i] <= hi) {
        i++;
        lo = 0x80;
        hi = 0xbf;
    }
    *more = i == n && i < want;
    return i;
}

#define BAD "\xef\xbf\xbd"

/* Valid text of b to o; what may still become whole stays in b unless `end`. */
static void lossy(struct radi_str *b, bool end, struct radi_str *o)
{
    size_t i = 0, from = 0;
    while (i < b->len) {
        uint32_t cp;
        size_t l = radi_utf8_next(b->s + i, b->len - i, &cp);
        if (l) {
            i += l;
            continue;
        }
        bool more;
        l = broken(b->s + i, b->len - i, &more);
        radi_str_add(o, b->s + from, i - from);
        from = i;
        if (more && !end)
            break;
        radi_str_add(o, BAD, 3);
        i += l;
        from = i;
    }
    if (i == b->len && i > from) {
        radi_str_add(o, b->s + from, i - from);
        from = i;
    }
    size_t rest = b->len - from;
    if (b->s) {
        memmove(b->s, b->s + from, rest);
        b->s[rest] = 0;
        b->len = rest;
    }
}

void radi_utf8_repair(const char *s, size_t n, struct radi_str *o)
{
    struct radi_str b = { 0 };
    radi_str_add(&b, s, n);
    o->failed |= b.failed;
    if (!b.failed)
        lossy(&b, true, o);
    radi_str_release(&b);
}

static size_t head(const char *s, size_t n, const struct radi_tstr *c)
{
    return n >= c->n && !memcmp(s, c->s, c->n) ? c->n : 0;
}
static size_t tail(const char *s, size_t n, const struct radi_tstr *c)
{
    return n >= c->n && !memcmp(s + n - c->n, c->s, c->n) ? c->n : 0;
}

static const struct { const char *from, *to; } clean_up[] = {
    { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" }, { " n't", "n't" },
    { " 'm", "'m" }, { " do not", " don't" }, { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
};

struct run {
    const struct radi_decoder *d;
    struct state *state;
    struct radi_str *out;
};
static void push(struct run *r, size_t k, const char *s, size_t n);

/* What stages from k on make of the end of the tokens. */
static void flush_bytes(struct run *r, size_t k)
{
    struct state *x = &r->state[k];
    if (!x->held.len)
        return;
    if (radi_utf8_valid(x->held.s, x->held.len))
        push(r, k + 1, x->held.s, x->held.len);
    else                     /* one mark for each byte of the run, as the reference */
        for (size_t i = 0; i < x->held.len; i++)
            push(r, k + 1, BAD, 3);
    radi_str_clear(&x->held);
}

static void strip(struct run *r, size_t k, const char *s, size_t n)
{
    const struct stage *g = &r->d->stage[k];
    struct state *x = &r->state[k];
    size_t l;
    if (!g->fused) {
        int64_t a = 0, b = 0;
        while (a < g->start && (l = head(s, n, &g->a))) {
            s += l;
            n -= l;
            a++;
        }
        while (b < g->stop && (l = tail(s, n, &g->a))) {
            n -= l;
            b++;
        }
        push(r, k + 1, s, n);
        return;
    }
    while (!x->open && n) {
        if (x->cut < g->start && (l = head(s, n, &g->a))) {
            s += l;
            n -= l;
            x->cut++;
        } else
            x->open = true;
    }
    if (!g->stop) {
        push(r, k + 1, s, n);
        return;
    }
    radi_str_add(&x->held, s, n);
    size_t keep = 0;
    int64_t b = 0;
    while (b < g->stop && (l = tail(x->held.s ? x->held.s : "", x->held.len - keep, &g->a))) {
        keep += l;
        b++;
    }
    size_t out = x->held.len - keep;
    if (out) {
        push(r, k + 1, x->held.s, out);
        memmove(x->held.s, x->held.s + out, keep);
        x->held.s[keep] = 0;
        x->held.len = keep;
    }
}

/* One token, or (fused) one part of the string. */
static void one(struct run *r, size_t k, const char *s, size_t n, bool last)
{
    const struct stage *g = &r->d->stage[k];
    struct state *x = &r->state[k];
    struct radi_str *o = &x->tmp;
    bool first = x->index++ == 0;
    radi_str_clear(o);
    switch (g->kind) {
    case K_REPLACE:
        replace(s, n, &g->a, g->b.s ? g->b.s : "", g->b.n, o);
        break;
    case K_METASPACE:
        replace(s, n, &g->a, " ", first && g->drop_first ? 0 : 1, o);
        break;
    case K_WORDPIECE:
        if (!first) {
            size_t l = g->a.n ? head(s, n, &g->a) : 0;
            if (!l)
                radi_str_addc(o, ' ');
            s += l;
            n -= l;
        }
        radi_str_add(o, s, n);
        for (size_t i = 0; g->clean && i < RADI_COUNT(clean_up); i++) {
            struct radi_tstr from = { clean_up[i].from, strlen(clean_up[i].from) };
            if (!o->len || !memmem(o->s, o->len, from.s, from.n))
                continue;
            struct radi_str b = { 0 };
            replace(o->s, o->len, &from, clean_up[i].to, strlen(clean_up[i].to), &b);
            radi_str_release(o);
            *o = b;
        }
        break;
    case K_BPE:
        replace(s, n, &g->a, " ", last ? 0 : 1, o);
        break;
    case K_JOIN:
        if (!first)
            radi_str_addc(o, ' ');
        radi_str_add(o, s, n);
        break;
    default:
        radi_str_add(o, s, n);
    }
    if (o->failed)
        r->out->failed = true;
    push(r, k + 1, o->s ? o->s : "", o->len);
}

static void push(struct run *r, size_t k, const char *s, size_t n)
{
    if (k == r->d->n) {
        radi_str_add(r->out, s, n);
        return;
    }
    const struct stage *g = &r->d->stage[k];
    struct state *x = &r->state[k];
    if (g->whole) {
        radi_str_add(&x->held, s, n);
        return;
    }
    switch (g->kind) {
    case K_BYTELEVEL: {
        size_t at = x->held.len, m = 0;
        radi_str_add(&x->held, s, n);
        if (x->held.failed)
            break;
        if (n && radi_bytechar_decode(s, n, x->held.s + at, &m)) {
            x->held.len = at + m;
            x->held.s[x->held.len] = 0;
        }
        radi_str_clear(&x->tmp);
        lossy(&x->held, false, &x->tmp);
        if (x->tmp.len)
            push(r, k + 1, x->tmp.s, x->tmp.len);
        break;
    }
    case K_FUSE:
        push(r, k + 1, s, n);
        break;
    case K_STRIP:
        strip(r, k, s, n);
        break;
    case K_BYTEFALLBACK: {
        int b = radi_byte_token(s, n);
        if (b >= 0) {
            radi_str_addc(&x->held, (char)b);
            break;
        }
        flush_bytes(r, k);
        push(r, k + 1, s, n);
        break;
    }
    case K_BPE: {            /* one token late: the last is treated apart */
        struct radi_str prev = x->held;
        x->held = (struct radi_str){ 0 };
        radi_str_add(&x->held, s, n);
        if (prev.s)
            one(r, k, prev.s, prev.len, false);
        radi_str_release(&prev);
        break;
    }
    default:
        one(r, k, s, n, false);
    }
    if (x->held.failed || x->tmp.failed)
        r->out->failed = true;
}

static void finish(struct run *r)
{
    for (size_t k = 0; k < r->d->n; k++) {
        const struct stage *g = &r->d->stage[k];
        struct state *x = &r->state[k];
        if (g->whole) {
            struct radi_str all = x->held;
            x->held = (struct radi_str){ 0 };
            if (all.len && g->kind == K_BYTEFALLBACK)
                push(r, k + 1, all.s, all.len);
            else if (all.len && g->kind == K_BYTELEVEL) {
                radi_str_clear(&x->tmp);
                radi_str_add(&x->tmp, all.s, all.len);
                push(r, k + 1, x->tmp.s ? x->tmp.s : "", x->tmp.len);
            } else if (all.len)
                one(r, k, all.s, all.len, true);
            radi_str_release(&all);
        } else if (g->kind == K_BYTELEVEL) {
            radi_str_clear(&x->tmp);
            lossy(&x->held, true, &x->tmp);
            if (x->tmp.len)
                push(r, k + 1, x->tmp.s, x->tmp.len);
        } else if (g->kind == K_BYTEFALLBACK)
            flush_bytes(r, k);
        else if (g->kind == K_BPE && x->held.s)
            one(r, k, x->held.s, x->held.len, true);
        if (x->held.failed || x->tmp.failed)
            r->out->failed = true;
        radi_str_clear(&x->held);
        if (g->kind == K_BPE)
            radi_str_release(&x->held);
        x->index = 0;
        x->cut = 0;
        x->open = false;
    }
}

/* ---- public */
rad_status rad_detok_new(const struct rad_tokenizer *t, unsigned flags, struct rad_detok **out,
                         struct rad_err *err)
{
    *out = NULL;
    struct rad_detok *d = radi_calloc(1, sizeof *d);
    if (!d || !(d->state = radi_calloc(t->dec->n ? t->dec->n : 1, sizeof *d->state))) {
        radi_free(d);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a detokeniser");
    }
    d->t = t;
    d->flags = flags;
    *out = d;
    return RAD_OK;
}

void rad_detok_free(struct rad_detok *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->t->dec->n; i++) {
        radi_str_release(&d->state[i].held);
        radi_str_release(&d->state[i].tmp);
    }
    radi_free(d->state);
    radi_free(d);
}

static rad_status one_id(struct rad_detok *d, int32_t id, struct radi_str *o, struct rad_err *err)
{
    const struct rad_tokenizer *t = d->t;
    if (id < 0 || (size_t)id >= t->spec.n_tokens)
        return rad_fail(err, RAD_E_ARG, "token %d in a vocabulary of %zu", id, t->spec.n_tokens);
    const struct radi_tstr *s = &t->spec.text[id];
    if (!s->s || ((d->flags & RAD_TOK_SKIP_SPECIAL) && (t->added_flags[id] & RADI_ADDED_SPECIAL)))
        return RAD_OK;
    struct run r = { t->dec, d->state, o };
    push(&r, 0, s->s, s->n);
    return RAD_OK;
}

static rad_status give(struct radi_str *o, struct rad_tok_text *out, struct rad_err *err)
{
    *out = (struct rad_tok_text){ o->s, o->len, o->cap };
    return o->failed ? rad_fail(err, RAD_E_NOMEM, "out of memory for text") : RAD_OK;
}

rad_status rad_detok_push(struct rad_detok *d, int32_t id, struct rad_tok_text *out,
                          struct rad_err *err)
{
    struct radi_str o = { out->s, out->len, out->cap, false };
    rad_status st = one_id(d, id, &o, err), st2 = give(&o, out, err);
    return st ? st : st2;
}

rad_status rad_detok_finish(struct rad_detok *d, struct rad_tok_text *out, struct rad_err *err)
{
    struct radi_str o = { out->s, out->len, out->cap, false };
    struct run r = { d->t->dec, d->state, &o };
    finish(&r);
    return give(&o, out, err);
}

rad_status rad_tokenizer_decode(const struct rad_tokenizer *t, const int32_t *id, size_t n,
                                unsigned flags, struct rad_tok_text *out, struct rad_err *err)
{
    struct rad_detok *d;
    RAD_TRY(rad_detok_new(t, flags, &d, err));
    struct radi_str o = { out->s, out->len, out->cap, false };
    rad_status st = RAD_OK;
    if (!o.s)
        radi_str_add(&o, "", 0);
    for (size_t i = 0; !st && i < n; i++)
        st = one_id(d, id[i], &o, err);
    if (!st) {
        struct run r = { t->dec, d->state, &o };
        finish(&r);
    }
    rad_detok_free(d);
    rad_status st2 = give(&o, out, err);
    return st ? st : st2;
}

rad_status rad_tokenizer_piece(const struct rad_tokenizer *t, int32_t id, struct rad_tok_text *out,
                               struct rad_err *err)
{
    if (id < 0 || (size_t)id >= t->spec.n_tokens)
        return rad_fail(err, RAD_E_ARG, "token %d in a vocabulary of %zu", id, t->spec.n_tokens);
    struct radi_str o = { out->s, out->len, out->cap, false }, cur = { 0 }, next = { 0 };
    const struct radi_tstr *s = &t->spec.text[id];
    radi_str_add(&cur, s->s ? s->s : "", s->n);
    bool added = t->added_flags[id] & RADI_ADDED_IS, stop = added || !s->s;
    for (size_t k = 0; !stop && k < t->dec->n; k++) {
        const struct stage *g = &t->dec->stage[k];
        size_t m, l;
        int b;
        radi_str_clear(&next);
        switch (g->kind) {
        case K_BYTELEVEL:
            if (radi_bytechar_decode(cur.s, cur.len, cur.s, &m))
                cur.len = m;
            stop = true;
            continue;
        case K_BYTEFALLBACK:
            if ((b = radi_byte_token(cur.s, cur.len)) >= 0) {
                cur.s[0] = (char)b;
                cur.len = 1;
                stop = true;
            }
            continue;
        case K_FUSE:
            stop = true;
            continue;
        case K_METASPACE:
            replace(cur.s, cur.len, &g->a, " ", 1, &next);
            break;
        case K_REPLACE:
            replace(cur.s, cur.len, &g->a, g->b.s ? g->b.s : "", g->b.n, &next);
            break;
        case K_BPE:
            replace(cur.s, cur.len, &g->a, " ", 1, &next);
            break;
        case K_WORDPIECE:
            l = g->a.n ? head(cur.s, cur.len, &g->a) : 0;
            if (!l)
                radi_str_addc(&next, ' ');
            radi_str_add(&next, cur.s + l, cur.len - l);
            break;
        default:
            continue;
        }
        struct radi_str sw = cur;
        cur = next;
        next = sw;
    }
    radi_str_add(&o, cur.s ? cur.s : "", cur.len);
    o.failed |= cur.failed || next.failed;
    radi_str_release(&cur);
    radi_str_release(&next);
    return give(&o, out, err);
}
