/* SPDX-License-Identifier: Apache-2.0 */
/* Owns calls: binding arguments to the parameters of built-in functions,
 * Jinja's globals, and the attributes of `loop`. */
#include "config.h"

#include <stdio.h>

#include "text/template.h"

#include "banned.h"

enum { MAX_RANGE = 100000 };        /* the sandbox's */

const struct radi_jdef *radi_j_lookup(const struct radi_jdef *t, const char *s, size_t n)
{
    for (; t->name; t++)
        if (strlen(t->name) == n && memcmp(t->name, s, n) == 0)
            return t;
    return NULL;
}

/* The i-th of "a,b,c"; *len 0 when there is none. */
static const char *param(const char *list, int i, size_t *len)
{
    for (; i && *list; list++)
        i -= *list == ',';
    *len = strcspn(list, ",");
    return list;
}

struct radi_jv radi_j_apply(struct radi_jev *ev, const struct radi_jdef *def, struct radi_jv self,
                            const struct radi_jargs *args)
{
    struct radi_jv a[J_MAX_PARAMS] = { 0 };
    size_t len, used = 0;
    int i;

    if (!def->fn)
        radi_j_fail(ev, RAD_E_UNSUPPORTED, "'%s' is not supported", def->name);
    if (!def->params)
        return def->fn(ev, self, a, args);
    for (i = 0; i < J_MAX_PARAMS; i++) {
        const char *p = param(def->params, i, &len);
        if (!len)
            break;
        if ((size_t)i < args->n)
            a[i] = args->v[i];
        for (size_t k = 0; k < args->nkw; k++) {
            if (args->kw[k].name->len != len || memcmp(args->kw[k].name->p, p, len) != 0)
                continue;
            if (radi_jv_given(a[i]))
                radi_j_fail(ev, RAD_E_FORMAT, "%s() got multiple values for argument '%.*s'",
                            def->name, (int)len, p);
            a[i] = args->kw[k].v;
            used++;
        }
        if (i < def->required && !radi_jv_given(a[i]))
            radi_j_fail(ev, RAD_E_FORMAT, "%s() missing a required argument: '%.*s'", def->name,
                        (int)len, p);
    }
    if (args->n > (size_t)i)
        radi_j_fail(ev, RAD_E_FORMAT, "%s() takes at most %d arguments (%zu given)", def->name, i,
                    args->n);
    if (used < args->nkw) {
        for (size_t k = 0; k < args->nkw; k++) {
            bool known = false;
            for (i = 0; !known; i++) {
                const char *p = param(def->params, i, &len);
                if (!len)
                    break;
                known = args->kw[k].name->len == len &&
                        memcmp(args->kw[k].name->p, p, len) == 0;
            }
            if (!known)
                radi_j_fail(ev, RAD_E_FORMAT, "%s() got an unexpected keyword argument '%.*s'",
                            def->name, (int)RADI_MIN(args->kw[k].name->len, (size_t)200),
                            args->kw[k].name->p);
        }
    }
    return def->fn(ev, self, a, args);
}

struct radi_jv radi_j_call(struct radi_jev *ev, struct radi_jv v, const struct radi_jargs *args)
{
    radi_j_charge(ev, 1);
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind == J_LOOP)
        return radi_j_call_loop(ev, v.loop, args);
    if (v.kind != J_FUNC)
        radi_j_fail(ev, RAD_E_FORMAT, "'%s' object is not callable", radi_j_type(v));
    switch (v.fn->type) {
    case JF_MACRO:
        return radi_j_call_macro(ev, v.fn, args);
    case JF_JOINER:
        if (v.fn->pos++ == 0)
            return radi_jv_borrow(ev, "", 0);
        return v.fn->self;
    case JF_CYCLER:
        radi_j_fail(ev, RAD_E_FORMAT, "'Cycler' object is not callable");
    default:
        return radi_j_apply(ev, v.fn->def, v.fn->self, args);
    }
}

/* ---- globals */
static struct radi_jv g_range(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                              const struct radi_jargs *raw)
{
    int64_t r[3] = { 0, 0, 1 };
    (void)self, (void)a;

    if (raw->n < 1 || raw->n > 3 || raw->nkw)
        radi_j_fail(ev, RAD_E_FORMAT, "range expected 1 to 3 arguments, got %zu", raw->n);
    for (size_t i = 0; i < raw->n; i++) {
        struct radi_jv v = raw->v[i];
        if (v.kind == J_UNDEF)
            radi_j_undef_fail(ev, v);
        if (v.kind != J_INT && v.kind != J_BOOL)
            radi_j_fail(ev, RAD_E_FORMAT, "'%s' object cannot be interpreted as an integer",
                        radi_j_type(v));
        r[raw->n == 1 ? 1 : i] = v.kind == J_BOOL ? v.b : v.i;
    }
    if (r[2] == 0)
        radi_j_fail(ev, RAD_E_FORMAT, "range() arg 3 must not be zero");
    uint64_t span = 0, step = r[2] > 0 ? (uint64_t)r[2] : 0 - (uint64_t)r[2];
    if (r[2] > 0 ? r[0] < r[1] : r[0] > r[1])
        span = r[2] > 0 ? (uint64_t)r[1] - (uint64_t)r[0] : (uint64_t)r[0] - (uint64_t)r[1];
    uint64_t n = span / step + (span % step != 0);
    if (n > MAX_RANGE)
        radi_j_fail(ev, RAD_E_FULL, "Range too big. The sandbox blocks ranges larger than "
                    "MAX_RANGE (%d).", MAX_RANGE);
    struct radi_jseq *q = radi_j_seq(ev, JQ_RANGE, (size_t)n);
    memcpy(q->range, r, sizeof r);
    for (q->n = 0; q->n < n; q->n++)
        q->v[q->n] = radi_jv_int(r[0] + (int64_t)q->n * r[2]);
    return radi_jv_seq(q);
}

/* dict() and namespace(): a mapping or pairs, then keywords */
static struct radi_jdict *make_dict(struct radi_jev *ev, const struct radi_jargs *raw,
                                    const char *name)
{
    struct radi_jdict *d = radi_j_dict(ev, raw->nkw);
    if (raw->n > 1)
        radi_j_fail(ev, RAD_E_FORMAT, "%s expected at most 1 argument, got %zu", name, raw->n);
    if (raw->n && raw->v[0].kind == J_DICT) {
        for (size_t i = 0; i < raw->v[0].d->n; i++)
            radi_j_put(ev, d, raw->v[0].d->e[i].key, raw->v[0].d->e[i].v);
    } else if (raw->n) {
        const struct radi_jseq *q = radi_j_iter(ev, raw->v[0]);
        for (size_t i = 0; i < q->n; i++) {
            const struct radi_jseq *pair = radi_j_iter(ev, q->v[i]);
            if (pair->n != 2)
                radi_j_fail(ev, RAD_E_FORMAT, "dictionary update sequence element #%zu has length "
                            "%zu; 2 is required", i, pair->n);
            radi_j_put(ev, d, pair->v[0], pair->v[1]);
        }
    }
    for (size_t i = 0; i < raw->nkw; i++)
        radi_j_put(ev, d, radi_jv_str(raw->kw[i].name), raw->kw[i].v);
    return d;
}

static struct radi_jv g_dict(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                             const struct radi_jargs *raw)
{
    (void)self, (void)a;
    return radi_jv_dict(make_dict(ev, raw, "dict"));
}

static struct radi_jv g_namespace(struct radi_jev *ev, struct radi_jv self,
                                  const struct radi_jv *a, const struct radi_jargs *raw)
{
    struct radi_jv v = radi_jv_dict(make_dict(ev, raw, "namespace"));
    (void)self, (void)a;
    v.kind = J_NS;
    return v;
}

static struct radi_jv make_func(struct radi_jev *ev, enum radi_jfunc_type type, struct radi_jv self)
{
    struct radi_jfunc *fn = radi_j_alloc(ev, 1, sizeof *fn);
    fn->type = (uint8_t)type;
    fn->self = self;
    return (struct radi_jv){ .kind = J_FUNC, .fn = fn };
}

static struct radi_jv g_cycler(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                               const struct radi_jargs *raw)
{
    (void)self, (void)a;
    if (!raw->n)
        radi_j_fail(ev, RAD_E_FORMAT, "at least one item has to be provided");
    struct radi_jseq *q = radi_j_seq(ev, JQ_TUPLE, raw->n);
    memcpy(q->v, raw->v, raw->n * sizeof *q->v);
    q->n = raw->n;
    return make_func(ev, JF_CYCLER, radi_jv_seq(q));
}

static struct radi_jv g_joiner(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                               const struct radi_jargs *raw)
{
    (void)self, (void)raw;
    return make_func(ev, JF_JOINER, radi_jv_given(a[0]) ? a[0] : radi_jv_borrow(ev, ", ", 2));
}

static struct radi_jv g_raise(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                              const struct radi_jargs *raw)
{
    struct radi_jv text = radi_jv_print(ev, a[0]);
    size_t n = RADI_MIN(text.s->len, (size_t)RAD_ERR_TEXT - 1);
    (void)self, (void)raw;
    while (n < text.s->len && n && ((unsigned char)text.s->p[n] & 0xc0) == 0x80)
        n--;                        /* no half character */
    radi_j_fail(ev, RAD_E_ARG, "%.*s", (int)n, text.s->p);
}

static struct radi_jv g_strftime(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                                 const struct radi_jargs *raw)
{
    (void)self, (void)raw;
    if (a[0].kind != J_STR)
        radi_j_fail(ev, RAD_E_FORMAT, "strftime() argument 1 must be str, not %s",
                    radi_j_type(a[0]));
    return radi_j_strftime(ev, a[0].s);
}

static const struct radi_jdef globals[] = {
    { "range", g_range, NULL, 0 },
    { "dict", g_dict, NULL, 0 },
    { "namespace", g_namespace, NULL, 0 },
    { "cycler", g_cycler, NULL, 0 },
    { "joiner", g_joiner, "sep", 0 },
    { "raise_exception", g_raise, "message", 1 },
    { "strftime_now", g_strftime, "format", 1 },
    { "lipsum", NULL, NULL, 0 },
    { NULL, NULL, NULL, 0 },
};

const struct radi_jdef *radi_j_global(const struct radi_jstr *name)
{
    return radi_j_lookup(globals, name->p, name->len);
}

/* ---- loop */
static struct radi_jv l_cycle(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                              const struct radi_jargs *raw)
{
    (void)a;
    if (!raw->n)
        radi_j_fail(ev, RAD_E_FORMAT, "no items for cycling given");
    return raw->v[self.loop->i % raw->n];
}

static struct radi_jv l_changed(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                                const struct radi_jargs *raw)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_TUPLE, raw->n);
    (void)a;
    if (raw->n)
        memcpy(q->v, raw->v, raw->n * sizeof *q->v);
    q->n = raw->n;
    struct radi_jv now = radi_jv_seq(q);
    bool changed = !self.loop->has_last || !radi_j_eq(ev, self.loop->last, now);
    self.loop->last = now;
    self.loop->has_last = true;
    return radi_jv_bool(changed);
}

static struct radi_jv c_next(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                             const struct radi_jargs *raw)
{
    (void)ev, (void)a, (void)raw;
    struct radi_jfunc *c = self.fn;
    struct radi_jv v = c->self.q->v[c->pos];
    c->pos = (c->pos + 1) % c->self.q->n;
    return v;
}

static struct radi_jv c_reset(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                              const struct radi_jargs *raw)
{
    (void)ev, (void)a, (void)raw;
    self.fn->pos = 0;
    return radi_jv_none();
}

static const struct radi_jdef loop_methods[] = {
    { "cycle", l_cycle, NULL, 0 }, { "changed", l_changed, NULL, 0 }, { NULL, NULL, NULL, 0 },
};
const struct radi_jdef radi_j_cycler_methods[] = {
    { "next", c_next, "", 0 }, { "reset", c_reset, "", 0 }, { NULL, NULL, NULL, 0 },
};

struct radi_jv radi_j_loop_attr(struct radi_jev *ev, struct radi_jv v,
                                const struct radi_jstr *name)
{
    const struct radi_jloop *l = v.loop;
    int64_t i = (int64_t)l->i, n = (int64_t)l->items->n;
    const struct { const char *name; int64_t v; } ints[] = {
        { "index", i + 1 }, { "index0", i }, { "length", n }, { "revindex", n - i },
        { "revindex0", n - i - 1 }, { "depth", l->depth0 + 1 }, { "depth0", l->depth0 },
    };
    for (size_t k = 0; k < RADI_COUNT(ints); k++)
        if (radi_j_streq(name, ints[k].name))
            return radi_jv_int(ints[k].v);
    if (radi_j_streq(name, "first"))
        return radi_jv_bool(i == 0);
    if (radi_j_streq(name, "last"))
        return radi_jv_bool(i == n - 1);
    if (radi_j_streq(name, "previtem"))
        return i ? l->items->v[i - 1] : radi_jv_hint(ev, "there is no previous item");
    if (radi_j_streq(name, "nextitem"))
        return i + 1 < n ? l->items->v[i + 1] : radi_jv_hint(ev, "there is no next item");
    const struct radi_jdef *def = radi_j_lookup(loop_methods, name->p, name->len);
    if (!def)
        return radi_jv_noattr(ev, v, radi_jv_str(name));
    struct radi_jv fn = make_func(ev, JF_METHOD, v);
    fn.fn->def = def;
    return fn;
}
