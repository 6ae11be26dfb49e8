/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the filters over sequences. What is a generator in Jinja is one here:
 * computed at once, but read only once, without a length, and no JSON. */
#include "config.h"

#include "text/template.h"

#include "banned.h"

#define FILTER(name)                                                                      \
    static struct radi_jv name(struct radi_jev *ev, struct radi_jv v,                     \
                               const struct radi_jv *a, const struct radi_jargs *raw)
#define UNUSED (void)ev, (void)v, (void)a, (void)raw

/* ---- attribute getters: "a.b.0" goes down step by step */
struct getter {
    struct radi_jev *ev;
    struct radi_jseq *parts;    /* NULL: the item itself */
    struct radi_jv def;         /* J_MISSING: none */
    bool fold;                  /* strings in lower case, to compare */
};

static struct radi_jseq *parts_of(struct radi_jev *ev, struct radi_jv attr)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, 0);
    size_t cap = 0;
    if (attr.kind != J_STR) {
        radi_j_push(ev, q, &cap, attr);
        return q;
    }
    for (size_t from = 0;;) {
        const char *p = attr.s->p + from, *dot = memchr(p, '.', attr.s->len - from);
        size_t n = dot ? (size_t)(dot - p) : attr.s->len - from, k = 0;
        int64_t i = 0;
        while (k < n && k < 18 && p[k] >= '0' && p[k] <= '9')
            i = i * 10 + (p[k++] - '0');
        radi_j_push(ev, q, &cap, n && k == n ? radi_jv_int(i) : radi_jv_borrow(ev, p, n));
        if (!dot)
            return q;
        from += n + 1;
    }
}

static struct getter getter(struct radi_jev *ev, struct radi_jv attr, struct radi_jv def,
                            struct radi_jv case_sensitive)
{
    struct getter g = { .ev = ev, .def = def };
    if (radi_jv_given(attr) && attr.kind != J_NONE)
        g.parts = parts_of(ev, attr);
    g.fold = !radi_jv_given(case_sensitive) || !radi_j_truth(case_sensitive);
    return g;
}

static struct radi_jv plain_get(const struct getter *g, struct radi_jv v)
{
    for (size_t i = 0; g->parts && i < g->parts->n; i++) {
        v = radi_j_item(g->ev, v, g->parts->v[i]);
        if (v.kind == J_UNDEF && radi_jv_given(g->def) && g->def.kind != J_NONE)
            v = g->def;
    }
    return v;
}

static struct radi_jv get(const struct getter *g, struct radi_jv v)
{
    v = plain_get(g, v);
    return g->fold && v.kind == J_STR ? radi_j_recase(g->ev, v, JC_LOWER) : v;
}

static struct radi_jv generator(struct radi_jseq *q)
{
    q->type = JQ_GEN;
    return radi_jv_seq(q);
}

/* ---- sorting: stable, by keys that were computed before */
struct keyed {
    struct radi_jv key, v;
};

static void merge_sort(struct radi_jev *ev, struct keyed *e, struct keyed *tmp, size_t n,
                       bool reverse)
{
    size_t h = n / 2, i = 0, j = h, k = 0;
    if (n < 2)
        return;
    merge_sort(ev, e, tmp, h, reverse);
    merge_sort(ev, e + h, tmp, n - h, reverse);
    while (i < h && j < n) {
        int c = radi_j_cmp(ev, e[j].key, e[i].key, "<");
        bool right = c != 2 && (reverse ? c > 0 : c < 0);
        tmp[k++] = right ? e[j++] : e[i++];
    }
    while (i < h)
        tmp[k++] = e[i++];
    while (j < n)
        tmp[k++] = e[j++];
    memcpy(e, tmp, n * sizeof *e);
}

static struct radi_jseq *sort_by(struct radi_jev *ev, struct keyed *e, size_t n, bool reverse)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, n);
    merge_sort(ev, e, radi_j_alloc(ev, n, sizeof *e), n, reverse);
    for (size_t i = 0; i < n; i++)
        q->v[i] = e[i].v;
    q->n = n;
    return q;
}

FILTER(f_sort)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct keyed *e = radi_j_alloc(ev, q->n, sizeof *e);
    struct radi_jv missing = { 0 };
    UNUSED;
    bool many = a[2].kind == J_STR && a[2].s->len && memchr(a[2].s->p, ',', a[2].s->len);
    struct getter g = getter(ev, many ? missing : a[2], missing, a[1]);
    struct radi_jv names = missing;
    if (many) {
        struct radi_jv comma = radi_jv_borrow(ev, ",", 1);
        struct radi_jargs args = { .n = 1, .v = &comma };
        names = radi_j_apply(ev, radi_j_lookup(radi_j_str_methods, "split", 5), a[2], &args);
    }
    for (size_t i = 0; i < q->n; i++) {
        e[i].v = q->v[i];
        if (!many) {
            e[i].key = get(&g, q->v[i]);
            continue;
        }
        struct radi_jseq *keys = radi_j_seq(ev, JQ_LIST, names.q->n);
        for (size_t k = 0; k < names.q->n; k++) {
            g.parts = parts_of(ev, names.q->v[k]);
            keys->v[keys->n++] = get(&g, q->v[i]);
        }
        e[i].key = radi_jv_seq(keys);
    }
    return radi_jv_seq(sort_by(ev, e, q->n, radi_jv_given(a[0]) && radi_j_truth(a[0])));
}

FILTER(f_dictsort)
{
    struct radi_jv missing = { 0 };
    struct getter g = getter(ev, missing, missing, a[0]);
    bool by_value = a[1].kind == J_STR && radi_j_streq(a[1].s, "value");
    UNUSED;
    if (radi_jv_given(a[1]) && !by_value && !(a[1].kind == J_STR && radi_j_streq(a[1].s, "key")))
        radi_j_fail(ev, RAD_E_FORMAT, "You can only sort by either \"key\" or \"value\"");
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind != J_DICT)
        radi_j_fail(ev, RAD_E_FORMAT, "'%s' object has no attribute 'items'", radi_j_type(v));
    struct keyed *e = radi_j_alloc(ev, v.d->n, sizeof *e);
    for (size_t i = 0; i < v.d->n; i++) {
        e[i].key = get(&g, by_value ? v.d->e[i].v : v.d->e[i].key);
        e[i].v = radi_jv_pair(ev, v.d->e[i].key, v.d->e[i].v);
    }
    return radi_jv_seq(sort_by(ev, e, v.d->n, radi_jv_given(a[2]) && radi_j_truth(a[2])));
}

FILTER(f_groupby)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct keyed *e = radi_j_alloc(ev, q->n, sizeof *e);
    struct getter g = getter(ev, a[0], a[1], a[2]), plain = g;
    size_t cap = 0, inner = 0;
    UNUSED;
    for (size_t i = 0; i < q->n; i++)
        e[i] = (struct keyed){ get(&g, q->v[i]), q->v[i] };
    const struct radi_jseq *sorted = sort_by(ev, e, q->n, false);
    struct radi_jseq *out = radi_j_seq(ev, JQ_LIST, 0), *group = NULL;
    plain.fold = false;
    for (size_t i = 0; i < sorted->n; i++) {
        if (!group || !radi_j_eq(ev, e[i].key, e[i - 1].key)) {
            group = radi_j_seq(ev, JQ_LIST, 0);
            inner = 0;
            radi_j_push(ev, out, &cap, radi_jv_pair(ev, plain_get(&plain, sorted->v[i]),
                                                    radi_jv_seq(group)));
        }
        radi_j_push(ev, group, &inner, sorted->v[i]);
    }
    return radi_jv_seq(out);
}

static struct radi_jv extreme(struct radi_jev *ev, struct radi_jv v, const struct radi_jv *a,
                              bool max)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jv missing = { 0 }, best = missing, best_key = missing;
    struct getter g = getter(ev, a[1], missing, a[0]);
    for (size_t i = 0; i < q->n; i++) {
        struct radi_jv key = get(&g, q->v[i]);
        int c = i ? radi_j_cmp(ev, key, best_key, max ? ">" : "<") : 0;
        if (i == 0 || (c != 2 && (max ? c > 0 : c < 0))) {
            best = q->v[i];
            best_key = key;
        }
    }
    return q->n ? best : radi_jv_hint(ev, "No aggregated item, sequence was empty.");
}

FILTER(f_min) { UNUSED; return extreme(ev, v, a, false); }
FILTER(f_max) { UNUSED; return extreme(ev, v, a, true); }

FILTER(f_unique)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_seq(ev, JQ_LIST, 0);
    struct radi_jdict *seen = radi_j_dict(ev, 0);
    struct radi_jv missing = { 0 };
    struct getter g = getter(ev, a[1], missing, a[0]);
    size_t cap = 0;
    UNUSED;
    for (size_t i = 0; i < q->n; i++) {
        size_t before = seen->n;
        radi_j_put(ev, seen, get(&g, q->v[i]), radi_jv_none());
        if (seen->n > before)
            radi_j_push(ev, out, &cap, q->v[i]);
    }
    return generator(out);
}

/* ---- items one by one */
FILTER(f_length)
{
    size_t n;
    UNUSED;
    if (!radi_j_len(v, &n))
        radi_j_fail(ev, RAD_E_FORMAT, "object of type '%s' has no len()", radi_j_type(v));
    return radi_jv_int((int64_t)n);
}

FILTER(f_first)
{
    UNUSED;
    if (v.kind == J_SEQ && (v.q->type == JQ_GEN || v.q->type == JQ_REV) && v.q->pos < v.q->n)
        return v.q->v[v.q->pos++];
    if (v.kind == J_STR && v.s->len)
        return radi_j_item(ev, v, radi_jv_int(0));
    const struct radi_jseq *q = radi_j_iter(ev, v);
    return q->n ? q->v[0] : radi_jv_hint(ev, "No first item, sequence was empty.");
}

static void want_reversible(struct radi_jev *ev, struct radi_jv v)
{
    if (!radi_j_iterable(v) || v.kind == J_LOOP ||
        (v.kind == J_SEQ && (v.q->type == JQ_GEN || v.q->type == JQ_REV)))
        radi_j_fail(ev, RAD_E_FORMAT, "'%s' object is not reversible", radi_j_type(v));
}

FILTER(f_last)
{
    UNUSED;
    want_reversible(ev, v);
    if (v.kind == J_STR && v.s->len)
        return radi_j_item(ev, v, radi_jv_int(-1));
    const struct radi_jseq *q = radi_j_iter(ev, v);
    return q->n ? q->v[q->n - 1] : radi_jv_hint(ev, "No last item, sequence was empty.");
}

FILTER(f_reverse)
{
    UNUSED;
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_seq(ev, JQ_REV, q->n);
    for (size_t i = q->n; i-- > 0;)
        out->v[out->n++] = q->v[i];
    if (v.kind != J_STR)
        return radi_jv_seq(out);
    struct radi_jsb b = { .ev = ev };
    for (size_t i = 0; i < out->n; i++)
        radi_jsb_str(&b, out->v[i].s);
    return radi_jsb_done(&b);
}

FILTER(f_list)
{
    UNUSED;
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_alloc(ev, 1, sizeof *out);
    out->type = JQ_LIST;
    out->v = q->v;
    out->n = q->n;
    return radi_jv_seq(out);
}

FILTER(f_items)
{
    struct radi_jargs none = { 0 };
    UNUSED;
    if (v.kind == J_UNDEF)
        return generator(radi_j_seq(ev, JQ_LIST, 0));
    if (v.kind != J_DICT)
        radi_j_fail(ev, RAD_E_FORMAT, "Can only get item pairs from a mapping.");
    v = radi_j_apply(ev, radi_j_lookup(radi_j_dict_methods, "items", 5), v, &none);
    return generator(v.q);
}

FILTER(f_join)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jv missing = { 0 };
    struct getter g = getter(ev, a[1], missing, radi_jv_bool(true));
    struct radi_jsb b = { .ev = ev };
    UNUSED;
    for (size_t i = 0; i < q->n; i++) {
        radi_j_charge(ev, 1);
        if (i && radi_jv_given(a[0]))
            radi_jsb_print(&b, a[0]);
        radi_jsb_print(&b, plain_get(&g, q->v[i]));
    }
    return radi_jsb_done(&b);
}

FILTER(f_sum)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jv missing = { 0 }, sum = radi_jv_given(a[1]) ? a[1] : radi_jv_int(0);
    struct getter g = getter(ev, a[0], missing, radi_jv_bool(true));
    UNUSED;
    if (sum.kind == J_STR)
        radi_j_fail(ev, RAD_E_FORMAT, "sum() can't sum strings [use ''.join(seq) instead]");
    for (size_t i = 0; i < q->n; i++)
        sum = radi_j_binary(ev, JB_ADD, sum, plain_get(&g, q->v[i]));
    return sum;
}

FILTER(f_batch)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_seq(ev, JQ_LIST, 0), *row = NULL;
    size_t cap = 0, inner = 0;
    UNUSED;
    if (a[0].kind != J_INT || a[0].i < 1)
        radi_j_fail(ev, RAD_E_FORMAT, "batch needs a positive number");
    for (size_t i = 0; i < q->n; i++) {
        if (i % (uint64_t)a[0].i == 0) {
            row = radi_j_seq(ev, JQ_LIST, 0);
            inner = 0;
            radi_j_push(ev, out, &cap, radi_jv_seq(row));
        }
        radi_j_push(ev, row, &inner, q->v[i]);
    }
    if (row && radi_jv_given(a[1]) && a[1].kind != J_NONE)
        while ((int64_t)row->n < a[0].i)
            radi_j_push(ev, row, &inner, a[1]);
    return generator(out);
}

FILTER(f_slice)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_seq(ev, JQ_LIST, 0);
    size_t cap = 0, at = 0;
    UNUSED;
    if (a[0].kind != J_INT || a[0].i < 1)
        radi_j_fail(ev, RAD_E_FORMAT, "slice needs a positive number");
    size_t slices = (size_t)a[0].i, base = q->n / slices, extra = q->n % slices;
    for (size_t i = 0; i < slices; i++) {
        struct radi_jseq *row = radi_j_seq(ev, JQ_LIST, 0);
        size_t n = base + (i < extra), inner = 0;
        while (n--)
            radi_j_push(ev, row, &inner, q->v[at++]);
        if (i >= extra && radi_jv_given(a[1]) && a[1].kind != J_NONE)
            radi_j_push(ev, row, &inner, a[1]);
        radi_j_push(ev, out, &cap, radi_jv_seq(row));
    }
    return generator(out);
}

FILTER(f_attr)
{
    struct radi_jdict *none = v.kind == J_DICT ? radi_j_dict(ev, 0) : NULL;
    UNUSED;
    if (a[0].kind != J_STR)
        radi_j_fail(ev, RAD_E_FORMAT, "attribute name must be string, not '%s'",
                    radi_j_type(a[0]));
    if (none) {                     /* attributes only, never a key */
        struct radi_jv r = radi_j_attr(ev, radi_jv_dict(none), a[0].s);
        if (r.kind == J_UNDEF)
            return r;
    }
    return radi_j_attr(ev, v, a[0].s);
}

/* ---- filters and tests by name */
static const struct radi_jdef *named(struct radi_jev *ev, struct radi_jv name, bool filter)
{
    const struct radi_jdef *d = NULL;
    if (name.kind == J_STR)
        d = filter ? radi_j_filter(name.s->p, name.s->len) : radi_j_test(name.s->p, name.s->len);
    if (!d) {
        name = radi_jv_print(ev, name);
        radi_j_fail(ev, RAD_E_FORMAT, "No %s named '%.*s'.", filter ? "filter" : "test",
                    (int)RADI_MIN(name.s->len, (size_t)200), name.s->p);
    }
    return d;
}

FILTER(f_map)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_seq(ev, JQ_LIST, q->n);
    struct getter g = { .ev = ev };
    const struct radi_jdef *def = NULL;
    struct radi_jargs rest = *raw;
    UNUSED;

    if (raw->n) {
        def = named(ev, raw->v[0], true);
        rest.v++;
        rest.n--;
    } else {
        const struct radi_jstr *other = NULL;
        for (size_t i = 0; i < raw->nkw; i++) {
            if (radi_j_streq(raw->kw[i].name, "attribute"))
                g.parts = parts_of(ev, raw->kw[i].v);
            else if (radi_j_streq(raw->kw[i].name, "default"))
                g.def = raw->kw[i].v;
            else
                other = raw->kw[i].name;
        }
        if (!g.parts)
            radi_j_fail(ev, RAD_E_FORMAT, "map requires a filter argument");
        if (other)
            radi_j_fail(ev, RAD_E_FORMAT, "Unexpected keyword argument '%.*s'",
                        (int)RADI_MIN(other->len, (size_t)200), other->p);
    }
    radi_j_enter(ev);
    for (size_t i = 0; i < q->n; i++) {
        radi_j_charge(ev, 1);
        out->v[out->n++] = def ? radi_j_apply(ev, def, q->v[i], &rest) : plain_get(&g, q->v[i]);
    }
    radi_j_leave(ev);
    return generator(out);
}

static struct radi_jv choose(struct radi_jev *ev, struct radi_jv v, const struct radi_jargs *raw,
                             bool attr, bool keep)
{
    const struct radi_jseq *q = radi_j_iter(ev, v);
    struct radi_jseq *out = radi_j_seq(ev, JQ_LIST, 0);
    struct radi_jargs rest = *raw;
    struct getter g = { .ev = ev };
    const struct radi_jdef *def = NULL;
    size_t cap = 0;

    if (attr) {
        if (!rest.n)
            radi_j_fail(ev, RAD_E_FORMAT, "Missing parameter for attribute name");
        g.parts = parts_of(ev, rest.v[0]);
        rest.v++;
        rest.n--;
    }
    if (rest.n) {
        def = named(ev, rest.v[0], false);
        rest.v++;
        rest.n--;
    }
    radi_j_enter(ev);
    for (size_t i = 0; i < q->n; i++) {
        radi_j_charge(ev, 1);
        struct radi_jv x = plain_get(&g, q->v[i]);
        bool yes = radi_j_truth(def ? radi_j_apply(ev, def, x, &rest) : x);
        if (yes == keep)
            radi_j_push(ev, out, &cap, q->v[i]);
    }
    radi_j_leave(ev);
    return generator(out);
}

FILTER(f_select) { UNUSED; return choose(ev, v, raw, false, true); }
FILTER(f_reject) { UNUSED; return choose(ev, v, raw, false, false); }
FILTER(f_selectattr) { UNUSED; return choose(ev, v, raw, true, true); }
FILTER(f_rejectattr) { UNUSED; return choose(ev, v, raw, true, false); }

const struct radi_jdef radi_j_filters_seq[] = {
    { "length", f_length, "", 0 },
    { "count", f_length, "", 0 },
    { "first", f_first, "", 0 },
    { "last", f_last, "", 0 },
    { "join", f_join, "d,attribute", 0 },
    { "list", f_list, "", 0 },
    { "items", f_items, "", 0 },
    { "map", f_map, NULL, 0 },
    { "select", f_select, NULL, 0 },
    { "reject", f_reject, NULL, 0 },
    { "selectattr", f_selectattr, NULL, 0 },
    { "rejectattr", f_rejectattr, NULL, 0 },
    { "dictsort", f_dictsort, "case_sensitive,by,reverse", 0 },
    { "sort", f_sort, "reverse,case_sensitive,attribute", 0 },
    { "groupby", f_groupby, "attribute,default,case_sensitive", 1 },
    { "min", f_min, "case_sensitive,attribute", 0 },
    { "max", f_max, "case_sensitive,attribute", 0 },
    { "sum", f_sum, "attribute,start", 0 },
    { "unique", f_unique, "case_sensitive,attribute", 0 },
    { "reverse", f_reverse, "", 0 },
    { "batch", f_batch, "linecount,fill_with", 1 },
    { "slice", f_slice, "slices,fill_with", 1 },
    { "attr", f_attr, "name", 1 },
    { "random", NULL, NULL, 0 },
    { NULL, NULL, NULL, 0 },
};
