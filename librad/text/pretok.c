/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pre-tokeniser chain: every step turns a list of pieces into another;
 * a step that rewrites text fills the other buffer. Ends with a list of pieces
 * that the model takes one by one. Empty pieces never appear. */
#include "config.h"

#include "text/tok.h"

#include "banned.h"

struct step {
    const struct radi_tok_step *st;
    struct radi_regex *re;
    bool map;                /* byte level with steps behind it: really spell it out */
};
struct radi_pretok {
    struct step *step;
    size_t n;
    bool bytes, mapped;
    radi_splitter *simple;
};

void radi_pieces_release(struct radi_pieces *w)
{
    radi_str_release(&w->buf[0]);
    radi_str_release(&w->buf[1]);
    radi_free(w->p);
    radi_free(w->q);
    *w = (struct radi_pieces){ 0 };
}

/* ---- building the next list, in w->q */
struct builder {
    struct radi_pieces *w;
    size_t n;
    int behaviour;
    bool prev;               /* the span before was a match (of this piece) */
    size_t mark;             /* pieces of q before this piece */
    bool first;              /* the piece that is being split starts the text */
    size_t start;
    struct rad_err *err;
};

static rad_status add(struct builder *b, size_t off, size_t len)
{
    if (!len)
        return RAD_OK;
    struct radi_pieces *w = b->w;
    if (b->n == w->qcap)
        RAD_TRY(radi_grow((void **)&w->q, &w->qcap, b->n + 1, sizeof *w->q, b->err));
    w->q[b->n++] = (struct radi_piece){ off, len, b->first && off == b->start };
    return RAD_OK;
}

static void begin(struct builder *b, const struct radi_piece *p)
{
    b->prev = false;
    b->mark = b->n;
    b->first = p->first;
    b->start = p->off;
}

/* One span of a piece, in order; the spans cover it. */
static rad_status span(struct builder *b, size_t off, size_t len, bool match)
{
    struct radi_piece *last = b->n > b->mark ? &b->w->q[b->n - 1] : NULL;
    bool prev = b->prev;
    if (!len)
        return RAD_OK;
    b->prev = match;
    switch (b->behaviour) {
    case RADI_SPLIT_REMOVED:
        return match ? RAD_OK : add(b, off, len);
    case RADI_SPLIT_ISOLATED:
        return add(b, off, len);
    case RADI_SPLIT_PREVIOUS:
        if (match && !prev && last) {
            last->len += len;
            return RAD_OK;
        }
        return add(b, off, len);
    case RADI_SPLIT_NEXT:
        /* a match waits as its own piece; what follows joins it unless it is
         * another match */
        if (!match && prev && last) {
            last->len += len;
            return RAD_OK;
        }
        return add(b, off, len);
    default:
        if (match == prev && last) {
            last->len += len;
            return RAD_OK;
        }
        return add(b, off, len);
    }
}

static void swap(struct builder *b)
{
    struct radi_pieces *w = b->w;
    struct radi_piece *p = w->p;
    size_t c = w->cap;
    w->p = w->q;
    w->q = p;
    w->cap = w->qcap;
    w->qcap = c;
    w->n = b->n;
}

static rad_status split_regex(const struct radi_regex *re, struct radi_rxctx *rx, bool invert,
                              int behaviour, struct radi_pieces *w, struct rad_err *err)
{
    struct builder b = { .w = w, .behaviour = behaviour, .err = err };
    for (size_t i = 0; i < w->n; i++) {
        struct radi_piece p = w->p[i];
        const char *s = w->text + p.off;
        size_t at = 0, ms, me;
        int r = 0;
        begin(&b, &p);
        while (at < p.len && (r = radi_regex_find(re, rx, s, p.len, at, &ms, &me, err)) > 0) {
            RAD_TRY(span(&b, p.off + at, ms - at, invert));
            RAD_TRY(span(&b, p.off + ms, me - ms, !invert));
            at = me;
        }
        if (r < 0)
            return err && err->code ? err->code : RAD_E_UNSUPPORTED;
        RAD_TRY(span(&b, p.off + at, p.len - at, invert));
    }
    swap(&b);
    return RAD_OK;
}

static bool cp_other(uint32_t cp)        /* [^\w\s] */
{
    return !radi_cp_word(cp) && !radi_cp_space(cp);
}

/* Every character of the class is a match of its own. */
static rad_status split_class(bool (*in)(uint32_t), int behaviour, struct radi_pieces *w,
                              struct rad_err *err)
{
    struct builder b = { .w = w, .behaviour = behaviour, .err = err };
    for (size_t i = 0; i < w->n; i++) {
        struct radi_piece p = w->p[i];
        size_t gap = 0, at = 0;
        begin(&b, &p);
        while (at < p.len) {
            uint32_t cp = 0;
            size_t l = radi_utf8_next(w->text + p.off + at, p.len - at, &cp);
            l = l ? l : 1;
            if (in(cp)) {
                RAD_TRY(span(&b, p.off + gap, at - gap, false));
                RAD_TRY(span(&b, p.off + at, l, true));
                gap = at + l;
            }
            at += l;
        }
        RAD_TRY(span(&b, p.off + gap, at - gap, false));
    }
    swap(&b);
    return RAD_OK;
}

/* \w+ | [^\w\s]+ */
static rad_status split_words(struct radi_pieces *w, struct rad_err *err)
{
    struct builder b = { .w = w, .behaviour = RADI_SPLIT_ISOLATED, .err = err };
    for (size_t i = 0; i < w->n; i++) {
        struct radi_piece p = w->p[i];
        size_t from = 0, at = 0;
        int kind = 0;
        begin(&b, &p);
        while (at < p.len) {
            uint32_t cp = 0;
            size_t l = radi_utf8_next(w->text + p.off + at, p.len - at, &cp);
            int k = radi_cp_word(cp) ? 1 : cp_other(cp) ? 2 : 0;
            if (k != kind) {
                if (kind)
                    RAD_TRY(add(&b, p.off + from, at - from));
                from = at;
                kind = k;
            }
            at += l ? l : 1;
        }
        if (kind)
            RAD_TRY(add(&b, p.off + from, at - from));
    }
    swap(&b);
    return RAD_OK;
}

/* A buffer that is not the current text. */
static struct radi_str *other(struct radi_pieces *w)
{
    struct radi_str *o = &w->buf[w->buf[0].s && w->text == w->buf[0].s];
    radi_str_clear(o);
    return o;
}

static rad_status rewritten(struct radi_pieces *w, struct radi_str *o, struct rad_err *err)
{
    if (o->failed)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a text");
    w->text = o->s ? o->s : "";
    return RAD_OK;
}

static rad_status metaspace(const struct step *p, struct radi_rxctx *rx, struct radi_pieces *w,
                            struct rad_err *err)
{
    const struct radi_tok_step *st = p->st;
    const char *rep = st->arg0.n ? st->arg0.s : "\xe2\x96\x81";
    size_t rn = st->arg0.n ? st->arg0.n : 3;
    struct radi_str *o = other(w);
    for (size_t i = 0; i < w->n; i++) {
        struct radi_piece *q = &w->p[i];
        const char *s = w->text + q->off;
        size_t at = o->len;
        bool want = st->iarg == 2 || (st->iarg == 1 && q->first);
        if (want && *s != ' ' && !(q->len >= rn && !memcmp(s, rep, rn)))
            radi_str_add(o, rep, rn);
        for (size_t k = 0; k < q->len;) {
            const char *sp = memchr(s + k, ' ', q->len - k);
            size_t e = sp ? (size_t)(sp - s) : q->len;
            radi_str_add(o, s + k, e - k);
            if (sp)
                radi_str_add(o, rep, rn);
            k = e + (sp != NULL);
        }
        q->off = at;
        q->len = o->len - at;
    }
    RAD_TRY(rewritten(w, o, err));
    return st->flags & 1 ? split_regex(p->re, rx, false, RADI_SPLIT_NEXT, w, err) : RAD_OK;
}

static rad_status byte_level(const struct step *p, struct radi_rxctx *rx, struct radi_pieces *w,
                             struct rad_err *err)
{
    if (p->st->flags & 1) {
        struct radi_str *o = other(w);
        for (size_t i = 0; i < w->n; i++) {
            struct radi_piece *q = &w->p[i];
            size_t at = o->len;
            if (w->text[q->off] != ' ')
                radi_str_addc(o, ' ');
            radi_str_add(o, w->text + q->off, q->len);
            q->off = at;
            q->len = o->len - at;
        }
        RAD_TRY(rewritten(w, o, err));
    }
    if (p->re)
        RAD_TRY(split_regex(p->re, rx, false, RADI_SPLIT_ISOLATED, w, err));
    if (!p->map)
        return RAD_OK;
    struct radi_str *o = other(w);
    for (size_t i = 0; i < w->n; i++) {
        struct radi_piece *q = &w->p[i];
        size_t at = o->len;
        for (size_t k = 0; k < q->len; k++)
            radi_str_add_utf8(o, radi_bytechar((uint8_t)w->text[q->off + k]));
        q->off = at;
        q->len = o->len - at;
    }
    return rewritten(w, o, err);
}

/* Back from the printable alphabet, in place: shorter or equal. */
static void unmap(struct radi_pieces *w)
{
    struct radi_str *o = &w->buf[w->text != w->buf[0].s];
    for (size_t i = 0; i < w->n; i++) {
        size_t n;
        if (radi_bytechar_decode(o->s + w->p[i].off, w->p[i].len, o->s + w->p[i].off, &n))
            w->p[i].len = n;
    }
}

rad_status radi_pretok_run(const struct radi_pretok *pt, struct radi_rxctx *rx, const char *s,
                           size_t n, bool first, struct radi_pieces *w, struct rad_err *err)
{
    w->text = s;
    w->n = 0;
    if (!n)
        return RAD_OK;
    if (!w->cap)
        RAD_TRY(radi_grow((void **)&w->p, &w->cap, 1, sizeof *w->p, err));
    w->p[0] = (struct radi_piece){ 0, n, first };
    w->n = 1;
    for (size_t i = 0; i < pt->n; i++) {
        const struct step *p = &pt->step[i];
        int how = (int)p->st->iarg;
        switch (p->st->kind) {
        case RADI_STEP_BYTELEVEL:
            RAD_TRY(byte_level(p, rx, w, err));
            break;
        case RADI_STEP_SPLIT:
            RAD_TRY(split_regex(p->re, rx, p->st->flags & 1, how, w, err));
            break;
        case RADI_STEP_METASPACE:
            RAD_TRY(metaspace(p, rx, w, err));
            break;
        case RADI_STEP_PUNCTUATION:
            RAD_TRY(split_class(radi_cp_punct, how, w, err));
            break;
        case RADI_STEP_DIGITS:
            RAD_TRY(split_class(radi_cp_numeric, p->st->flags & 1 ? RADI_SPLIT_ISOLATED
                                                                  : RADI_SPLIT_CONTIGUOUS, w, err));
            break;
        case RADI_STEP_WHITESPACE:
            if (how == 0)
                RAD_TRY(split_words(w, err));
            else {
                RAD_TRY(split_class(radi_cp_space, RADI_SPLIT_REMOVED, w, err));
                if (how == 2)
                    RAD_TRY(split_class(radi_cp_punct, RADI_SPLIT_ISOLATED, w, err));
            }
            break;
        default:
            break;
        }
    }
    if (pt->mapped)
        unmap(w);
    return RAD_OK;
}

static rad_status step_new(const struct radi_tok_spec *s, size_t i, struct step *q,
                           struct radi_pretok *pt, struct rad_err *err)
{
    const struct radi_tok_step *p = &s->step[i];
    q->st = p;
    if (p->kind == RADI_STEP_SPLIT || p->kind == RADI_STEP_PUNCTUATION)
        if (p->iarg < 0 || p->iarg > RADI_SPLIT_CONTIGUOUS)
            return rad_fail(err, RAD_E_FORMAT, "split behaviour %lld, want 0 to 4",
                            (long long)p->iarg);
    switch (p->kind) {
    case RADI_STEP_SPLIT:
        return radi_regex_new(p->arg0.s ? p->arg0.s : "", p->arg0.n, &q->re, err);
    case RADI_STEP_BYTELEVEL:
        if (pt->bytes)
            return rad_fail(err, RAD_E_UNSUPPORTED, "two byte-level steps");
        pt->bytes = true;
        for (size_t k = i + 1; k < s->n_steps; k++)
            if (s->step[k].kind >= 32 && s->step[k].kind < RADI_STEP_BYTEFALLBACK)
                q->map = pt->mapped = true;
        return p->flags & 2 ? radi_regex_new(radi_known_patterns[0].pattern,
                                             strlen(radi_known_patterns[0].pattern), &q->re, err)
                            : RAD_OK;
    case RADI_STEP_METASPACE:
        if (p->iarg < 0 || p->iarg > 2)
            return rad_fail(err, RAD_E_FORMAT, "prepend scheme %lld, want 0 to 2",
                            (long long)p->iarg);
        return radi_regex_new(p->arg0.n ? p->arg0.s : "\xe2\x96\x81", p->arg0.n ? p->arg0.n : 3,
                              &q->re, err);
    case RADI_STEP_WHITESPACE:
        return p->iarg < 0 || p->iarg > 2 ? rad_fail(err, RAD_E_FORMAT, "whitespace variant %lld",
                                                     (long long)p->iarg) : RAD_OK;
    case RADI_STEP_PUNCTUATION: case RADI_STEP_DIGITS:
        return RAD_OK;
    default:
        return rad_fail(err, RAD_E_UNSUPPORTED, "pre-tokeniser step %u", p->kind);
    }
}

rad_status radi_pretok_new(const struct radi_tok_spec *s, struct radi_pretok **out,
                           struct rad_err *err)
{
    *out = NULL;
    struct radi_pretok *pt = radi_calloc(1, sizeof *pt);
    if (!pt || !(pt->step = radi_calloc(s->n_steps ? s->n_steps : 1, sizeof *pt->step))) {
        radi_pretok_free(pt);
        return rad_fail(err, RAD_E_NOMEM, "out of memory for the pre-tokeniser");
    }
    for (size_t i = 0; i < s->n_steps; i++) {
        uint32_t k = s->step[i].kind;
        if (k < 32 || k >= 64 || k == RADI_STEP_BYTEFALLBACK)
            continue;
        rad_status st = step_new(s, i, &pt->step[pt->n], pt, err);
        pt->n++;
        if (st) {
            radi_pretok_free(pt);
            return rad_fail_in(err, st, "pre_tokenizer");
        }
    }
    /* [split by a known total pattern,] byte level: no list is needed */
    const struct step *a = pt->step, *b = pt->n ? &pt->step[pt->n - 1] : NULL;
    if (b && b->st->kind == RADI_STEP_BYTELEVEL && !(b->st->flags & 1)) {
        const struct radi_known_pattern *k = NULL;
        if (pt->n == 1 && (b->st->flags & 2))
            k = &radi_known_patterns[0];
        else if (pt->n == 2 && !(b->st->flags & 2) && a->st->kind == RADI_STEP_SPLIT &&
                 (a->st->flags & 1 ? a->st->iarg == RADI_SPLIT_REMOVED
                                   : a->st->iarg == RADI_SPLIT_ISOLATED))
            k = radi_pattern_known(a->st->arg0.s, a->st->arg0.n);
        if (k && k->total)
            pt->simple = k->fn;
    }
    *out = pt;
    return RAD_OK;
}

void radi_pretok_free(struct radi_pretok *pt)
{
    if (!pt)
        return;
    for (size_t i = 0; i < pt->n; i++)
        radi_regex_free(pt->step[i].re);
    radi_free(pt->step);
    radi_free(pt);
}

bool radi_pretok_bytes(const struct radi_pretok *p)
{
    return p->bytes;
}

radi_splitter *radi_pretok_simple(const struct radi_pretok *p)
{
    return p->simple;
}
