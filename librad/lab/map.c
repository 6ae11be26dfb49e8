/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the parsed form of a map: fragments are merged in, own definitions
 * replace a fragment's, two fragments may not define the same thing. */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

#include "lab/lab.h"

#include "banned.h"

enum { MAX_INCLUDE = 8, MAX_ITEMS = 4096 };

struct mp {
    struct rad_lab *lab;
    struct lab_cmap *m;
    const struct lab_doc *seen[64];     /* fragments read so far */
    int n_seen, depth;
    struct rad_err *err;
};

static rad_status no_mem(struct mp *p)
{
    return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
}

/* Grows an array that lies in the arena: the old one stays as waste. */
static rad_status grow(struct mp *p, void *array, int n, size_t *cap, size_t item)
{
    void *old, *mem;
    if ((size_t)n < *cap)
        return RAD_OK;
    if (n >= MAX_ITEMS)
        return rad_fail(p->err, RAD_E_FORMAT, "more than %d definitions", MAX_ITEMS);
    size_t want = *cap ? *cap * 2 : 16;
    mem = radi_arena_array(&p->lab->arena, want, item);
    if (!mem)
        return no_mem(p);
    memcpy(&old, array, sizeof(old));
    if (n)
        memcpy(mem, old, (size_t)n * item);
    memcpy(array, &mem, sizeof(mem));
    *cap = want;
    return RAD_OK;
}

static rad_status twice(struct mp *p, const struct lab_at *at, const struct lab_doc *other)
{
    return lab_at_fail(at, p->err, "is defined in '%s' too", other->path);
}

/* ---- key rules */
static const struct {
    const char *name;
    enum lab_vtype base;
    double min, max;
    bool above;
} key_type[] = {
    { "bool", LAB_BOOL, -INFINITY, INFINITY, false },
    { "int", LAB_INT, -INFINITY, INFINITY, false },
    { "dim", LAB_INT, 1, 1048576, false },         /* an extent of a tensor */
    { "count", LAB_INT, 0, 1048576, false },
    { "layers", LAB_INT, 1, 2048, false },
    { "real", LAB_REAL, -INFINITY, INFINITY, false },
    { "pos", LAB_REAL, 0, INFINITY, true },
    { "str", LAB_STR, -INFINITY, INFINITY, false },
    { "list", LAB_LIST, -INFINITY, INFINITY, false },
    { "ids", LAB_INT, -INFINITY, INFINITY, false },   /* an integer or a list of them */
    { "object", LAB_BOOL, -INFINITY, INFINITY, false },
};

static rad_status key_type_of(struct mp *p, const struct lab_at *at, const char *s,
                              struct lab_key *k)
{
    for (size_t i = 0; i < RADI_COUNT(key_type); i++)
        if (!strcmp(key_type[i].name, s)) {
            k->type = key_type[i].name;
            k->base = key_type[i].base;
            k->min = key_type[i].min;
            k->max = key_type[i].max;
            k->above = key_type[i].above;
            k->object = !strcmp(s, "object");
            k->scalar_or_list = !strcmp(s, "ids");
            return RAD_OK;
        }
    return lab_at_fail(at, p->err, "type '%s' is none of the language", s);
}

static rad_status key_words(struct mp *p, const struct lab_at *at, const struct cJSON *j,
                            struct lab_key *k)
{
    const cJSON *c;
    struct lab_val v;

    if ((c = radi_json_get(j, "oneof"))) {
        struct lab_at in = lab_at_key(at, "oneof");
        RAD_TRY(lab_want_array(&in, c, p->err));
        RAD_TRY(lab_val_of_json(&p->lab->arena, c, &v, p->err));
        k->oneof = v.l.v;
        k->n_oneof = v.l.n;
        if (!k->n_oneof || !k->reason)
            return lab_at_fail(at, p->err, "'oneof' wants values, and 'why' beside it");
        k->used = true;
    } else if (k->reason)
        return lab_at_fail(at, p->err, "'why' without 'oneof'");
    if ((c = radi_json_get(j, "rename"))) {
        struct lab_at in = lab_at_key(at, "rename");
        size_t n = (size_t)cJSON_GetArraySize(c) + 1;
        RAD_TRY(lab_want_object(&in, c, NULL, p->err));
        k->from = radi_arena_array(&p->lab->arena, n, sizeof(*k->from));
        k->to = radi_arena_array(&p->lab->arena, n, sizeof(*k->to));
        if (!k->from || !k->to)
            return no_mem(p);
        for (c = c->child; c; c = c->next) {
            if (!cJSON_IsString(c))
                return lab_at_fail(&in, p->err, "want strings");
            k->from[k->n_rename] = c->string;
            k->to[k->n_rename++] = c->valuestring;
        }
    }
    return RAD_OK;
}

static rad_status key_rule(struct mp *p, const struct lab_at *at, const struct cJSON *j,
                           struct lab_key *k)
{
    const char *type, *of;
    const cJSON *c;
    struct lab_at in = lab_at_key(at, "type");

    RAD_TRY(lab_want_object(at, j, "type of default null optional min max above oneof why rename "
                            "len doc", p->err));
    RAD_TRY(lab_want_str(at, j, "type", true, &type, p->err));
    RAD_TRY(key_type_of(p, &in, type, k));
    RAD_TRY(lab_want_str(at, j, "of", k->base == LAB_LIST, &of, p->err));
    if (of) {
        struct lab_key el = { 0 };
        in = lab_at_key(at, "of");
        RAD_TRY(key_type_of(p, &in, of, &el));
        k->of = el.base;
        k->min = el.min;
        k->max = el.max;
    }
    RAD_TRY(lab_want_bool(at, j, "null", false, &k->null_ok, p->err));
    RAD_TRY(lab_want_bool(at, j, "optional", false, &k->optional, p->err));
    RAD_TRY(lab_want_num(at, j, "min", k->min, &k->min, p->err));
    RAD_TRY(lab_want_num(at, j, "max", k->max, &k->max, p->err));
    RAD_TRY(lab_want_str(at, j, "why", false, &k->reason, p->err));
    RAD_TRY(key_words(p, at, j, k));
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "len", false, &k->len, p->err));
    if ((c = radi_json_get(j, "default"))) {
        k->has_def = true;
        RAD_TRY(lab_val_of_json(&p->lab->arena, c, &k->def, p->err));
        if (k->base == LAB_REAL && k->def.t == LAB_INT)
            k->def = (struct lab_val){ .t = LAB_REAL, .d = (double)k->def.i };
        in = lab_at_key(at, "default");
        if (k->def.t != LAB_NULL && k->def.t != k->base)
            return lab_at_fail(&in, p->err, "is %s, want %s", lab_vtype_name(k->def.t),
                               lab_vtype_name(k->base));
        if (k->optional)
            return lab_at_fail(&in, p->err, "'default' beside 'optional'");
    }
    return RAD_OK;
}

/* A place in the table for `path`: a new one, or a fragment's that the map
 * itself replaces. */
static rad_status key_slot(struct mp *p, const struct lab_at *at, bool root, const char *path,
                           struct lab_key **out)
{
    struct lab_key **tab = root ? &p->m->root : &p->m->key;
    int *n = root ? &p->m->n_root : &p->m->n_keys;
    struct lab_key *k = NULL;

    for (int i = 0; i < *n; i++)
        if (!strcmp((*tab)[i].path, path))
            k = &(*tab)[i];
    if (k && (k->owner == at->doc || at->doc != p->m->doc))
        return twice(p, at, k->owner);
    if (!k) {
        RAD_TRY(grow(p, tab, *n, root ? &p->m->root_cap : &p->m->key_cap, sizeof(*k)));
        k = &(*tab)[(*n)++];
    }
    *k = (struct lab_key){ .path = path, .owner = at->doc };
    *out = k;
    return RAD_OK;
}

static rad_status keys(struct mp *p, const struct lab_at *at, const struct cJSON *j, bool root)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_key *k;
        RAD_TRY(key_slot(p, &in, root, c->string, &k));
        RAD_TRY(key_rule(p, &in, c, k));
    }
    return RAD_OK;
}

/* ignored, refused: key -> reason */
static rad_status verdicts(struct mp *p, const struct lab_at *at, const struct cJSON *j, bool root,
                           enum lab_verdict verdict)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_key *k;
        if (!cJSON_IsString(c) || !*c->valuestring)
            return lab_at_fail(&in, p->err, "want a reason");
        RAD_TRY(key_slot(p, &in, root, c->string, &k));
        k->verdict = verdict;
        k->reason = c->valuestring;
    }
    return RAD_OK;
}

/* ---- point and let */
static rad_status entries(struct mp *p, const struct lab_at *at, const struct cJSON *j, bool let)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_entry *e = NULL;
        for (int i = 0; i < p->m->n_entries; i++)
            if (!strcmp(p->m->entry[i].name, c->string))
                e = &p->m->entry[i];
        if (e && (e->owner == at->doc || at->doc != p->m->doc))
            return twice(p, &in, e->owner);
        if (!e) {
            RAD_TRY(grow(p, &p->m->entry, p->m->n_entries, &p->m->entry_cap, sizeof(*e)));
            e = &p->m->entry[p->m->n_entries++];
        }
        *e = (struct lab_entry){ .name = c->string, .owner = at->doc, .let = let };
        if (!strcmp(e->name, "i"))
            return lab_at_fail(&in, p->err, "the name is taken by the language");
        RAD_TRY(lab_want_expr(p->lab, &in, c, &e->val, p->err));
    }
    return RAD_OK;
}

/* ---- tensor bindings */
static rad_status source_names(struct mp *p, const struct lab_at *at, const struct cJSON *j,
                               struct lab_source *s)
{
    if (cJSON_IsString(j)) {
        s->src[s->n_src++] = j->valuestring;
        return RAD_OK;
    }
    RAD_TRY(lab_want_array(at, j, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        if (!cJSON_IsString(c) || s->n_src == (int)RADI_COUNT(s->src))
            return lab_at_fail(at, p->err, "want up to %zu names", RADI_COUNT(s->src));
        s->src[s->n_src++] = c->valuestring;
    }
    return s->n_src ? RAD_OK : lab_at_fail(at, p->err, "empty");
}

static rad_status source(struct mp *p, const struct lab_at *at, const struct cJSON *j,
                         struct lab_source *s)
{
    static const struct {
        const char *word;
        int mode;
    } how[] = { { "copy", RAD_MAP_COPY }, { "concat", RAD_MAP_CONCAT },
                { "transpose", RAD_MAP_TRANSPOSE }, { "rows", RAD_MAP_ROWS },
                { "cols", RAD_MAP_COLS } };
    const cJSON *from = NULL;
    struct lab_at in = *at;
    double dim;

    if (!cJSON_IsObject(j)) {
        s->mode = RAD_MAP_COPY;
        return source_names(p, at, j, s);
    }
    RAD_TRY(lab_want_object(at, j, "when copy concat dim transpose rows cols first count every "
                            "index optional", p->err));
    for (size_t i = 0; i < RADI_COUNT(how); i++) {
        const cJSON *c = radi_json_get(j, how[i].word);
        if (c && from)
            return lab_at_fail(at, p->err, "more than one of copy, concat, transpose, rows, cols");
        if (c) {
            from = c;
            s->mode = how[i].mode;
            in = lab_at_key(at, how[i].word);
        }
    }
    if (!from)
        return lab_at_fail(at, p->err, "want one of copy, concat, transpose, rows, cols");
    RAD_TRY(lab_want_bool(at, j, "optional", false, &s->optional, p->err));
    if (cJSON_IsNull(from) && s->mode == RAD_MAP_COPY && !s->optional)
        s->mode = -1;
    else
        RAD_TRY(source_names(p, &in, from, s));
    if (s->n_src > 1 && s->mode == RAD_MAP_COLS)
        return lab_at_fail(&in, p->err, "want one name");
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "when", false, &s->when, p->err));
    bool part = s->mode == RAD_MAP_ROWS || s->mode == RAD_MAP_COLS;
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "first", part, &s->first, p->err));
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "count", part, &s->count, p->err));
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "every", false, &s->every, p->err));
    if (s->every && s->mode != RAD_MAP_ROWS)
        return lab_at_fail(at, p->err, "'every' without 'rows'");
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "index", false, &s->index, p->err));
    RAD_TRY(lab_want_num(at, j, "dim", 0, &dim, p->err));
    s->dim = dim >= 0 && dim < RAD_MAX_RANK ? (int)dim : 0;
    return RAD_OK;
}

static rad_status binding(struct mp *p, const struct lab_at *at, const struct cJSON *j,
                          struct lab_binding *b)
{
    /* an array of objects: the first whose `when` holds */
    bool many = cJSON_IsArray(j) && cJSON_IsObject(j->child);
    size_t n = many ? (size_t)cJSON_GetArraySize(j) : 1;

    b->source = radi_arena_array(&p->lab->arena, n, sizeof(*b->source));
    if (!b->source)
        return no_mem(p);
    if (cJSON_IsNull(j)) {
        b->source[b->n_sources++].mode = -1;
        return RAD_OK;
    }
    if (!many)
        return source(p, at, j, &b->source[b->n_sources++]);
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_index(at, b->n_sources);
        RAD_TRY(source(p, &in, c, &b->source[b->n_sources++]));
    }
    return RAD_OK;
}

static rad_status bindings(struct mp *p, const struct lab_at *at, const struct cJSON *j)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_binding *b = NULL;
        for (int i = 0; i < p->m->n_bindings; i++)
            if (!strcmp(p->m->binding[i].name, c->string))
                b = &p->m->binding[i];
        if (b && (b->owner == at->doc || at->doc != p->m->doc))
            return twice(p, &in, b->owner);
        if (!b) {
            RAD_TRY(grow(p, &p->m->binding, p->m->n_bindings, &p->m->binding_cap, sizeof(*b)));
            b = &p->m->binding[p->m->n_bindings++];
        }
        *b = (struct lab_binding){ .name = c->string, .owner = at->doc };
        RAD_TRY(binding(p, &in, c, b));
    }
    return RAD_OK;
}

/* ---- sections that fragments and maps share */
static rad_status include(struct mp *p, const struct lab_at *at, const char *name);

static rad_status sections(struct mp *p, const struct lab_doc *doc)
{
    const cJSON *j = doc->json, *inc = radi_json_get(j, "include");
    struct lab_at root = { NULL, doc, NULL, 0 }, in = lab_at_key(&root, "include");
    struct lab_check *c;
    int n;

    if (inc)
        RAD_TRY(lab_want_array(&in, inc, p->err));
    int i = 0;
    for (const cJSON *k = inc ? inc->child : NULL; k; k = k->next) {
        struct lab_at el = lab_at_index(&in, i++);
        if (!cJSON_IsString(k))
            return lab_at_fail(&el, p->err, "want the name of a fragment");
        RAD_TRY(include(p, &el, k->valuestring));
    }
    in = lab_at_key(&root, "keys");
    RAD_TRY(keys(p, &in, radi_json_get(j, "keys"), false));
    in = lab_at_key(&root, "ignored");
    RAD_TRY(verdicts(p, &in, radi_json_get(j, "ignored"), false, LAB_IGNORED));
    in = lab_at_key(&root, "refused");
    RAD_TRY(verdicts(p, &in, radi_json_get(j, "refused"), false, LAB_REFUSED));
    in = lab_at_key(&root, "let");
    RAD_TRY(entries(p, &in, radi_json_get(j, "let"), true));
    in = lab_at_key(&root, "point");
    RAD_TRY(entries(p, &in, radi_json_get(j, "point"), false));
    in = lab_at_key(&root, "tensors");
    RAD_TRY(bindings(p, &in, radi_json_get(j, "tensors")));
    in = lab_at_key(&root, "checks");
    RAD_TRY(lab_checks_parse(p->lab, &in, radi_json_get(j, "checks"), "key", &c, &n, p->err));
    for (i = 0; i < n; i++) {
        RAD_TRY(grow(p, &p->m->check, p->m->n_checks, &p->m->check_cap, sizeof(*c)));
        p->m->check[p->m->n_checks++] = c[i];
    }
    return RAD_OK;
}

static rad_status include(struct mp *p, const struct lab_at *at, const char *name)
{
    const struct lab_doc *d = p->lab->fragments;
    const char *source;
    struct lab_at root;

    while (d && strcmp(d->name, name))
        d = d->next;
    if (!d)
        return lab_at_fail(at, p->err, "no fragment '%s'", name);
    root = (struct lab_at){ NULL, d, NULL, 0 };
    for (int i = 0; i < p->n_seen; i++)
        if (p->seen[i] == d)
            return RAD_OK;          /* by two ways */
    if (p->n_seen == (int)RADI_COUNT(p->seen) || ++p->depth > MAX_INCLUDE)
        return lab_at_fail(at, p->err, "too many fragments");
    p->seen[p->n_seen++] = d;
    RAD_TRY(lab_want_object(&root, d->json, "schema description source fragment include keys "
                            "ignored refused checks let point tensors", p->err));
    RAD_TRY(lab_want_head(&root, d->json, p->err));
    RAD_TRY(lab_want_str(&root, d->json, "source", true, &source, p->err));
    if (p->m->gguf != !strcmp(source, "gguf"))
        return lab_at_fail(at, p->err, "fragment '%s' is for source '%s'", name, source);
    RAD_TRY(sections(p, d));
    p->depth--;
    return RAD_OK;
}

static rad_status words(struct mp *p, const struct lab_at *at, const struct cJSON *j,
                        const char ***out, int *n)
{
    RAD_TRY(lab_want_array(at, j, p->err));
    *out = radi_arena_array(&p->lab->arena, (size_t)cJSON_GetArraySize(j) + 1, sizeof(**out));
    if (!*out)
        return no_mem(p);
    for (const cJSON *c = j->child; c; c = c->next) {
        if (!cJSON_IsString(c))
            return lab_at_fail(at, p->err, "want strings");
        (*out)[(*n)++] = c->valuestring;
    }
    return *n ? RAD_OK : lab_at_fail(at, p->err, "empty");
}

/* "name_{0..40}" stands for its 41 words. */
static rad_status quants(struct mp *p, const struct lab_at *at, const struct cJSON *j)
{
    const char **w;
    int n = 0;

    RAD_TRY(words(p, at, j, &w, &n));
    p->m->quant = radi_arena_array(&p->lab->arena, 1024, sizeof(*p->m->quant));
    if (!p->m->quant)
        return no_mem(p);
    for (int i = 0; i < n; i++) {
        const char *open = strchr(w[i], '{');
        int lo = 0, hi = 0;
        if (open && (sscanf(open, "{%3d..%3d}", &lo, &hi) != 2 || lo < 0 || hi < lo ||
                     !strchr(open, '}') || strchr(open, '}')[1]))
            return lab_at_fail(at, p->err, "'%s': want {from..to} at the end", w[i]);
        for (int k = lo; k <= hi; k++) {
            const char *s = w[i];
            if (open && !(s = radi_arena_printf(&p->lab->arena, "%.*s%d", (int)(open - w[i]),
                                                w[i], k)))
                return no_mem(p);
            if (p->m->n_quants == 1024)
                return lab_at_fail(at, p->err, "more than 1024 descriptors");
            p->m->quant[p->m->n_quants++] = s;
        }
    }
    return RAD_OK;
}

rad_status lab_map_parse(struct rad_lab *lab, struct lab_doc *doc, struct rad_err *err)
{
    const cJSON *j = doc->json, *root;
    struct lab_at at = { NULL, doc, NULL, 0 }, in;
    struct lab_cmap *m = radi_arena_alloc(&lab->arena, sizeof(*m));
    struct mp p = { .lab = lab, .m = m, .err = err };
    const char *s;

    if (!m)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    m->name = doc->name;
    m->doc = doc;
    RAD_TRY(lab_want_object(&at, j, "schema description source match quants circuit nest root "
                            "include keys ignored refused checks let point tensors", err));
    RAD_TRY(lab_want_head(&at, j, err));
    RAD_TRY(lab_want_str(&at, j, "source", true, &s, err));
    in = lab_at_key(&at, "source");
    if (strcmp(s, "config") && strcmp(s, "gguf"))
        return lab_at_fail(&in, err, "'%s', want 'config' or 'gguf'", s);
    m->gguf = !strcmp(s, "gguf");
    in = lab_at_key(&at, "match");
    RAD_TRY(words(&p, &in, radi_json_get(j, "match"), &m->match, &m->n_match));
    in = lab_at_key(&at, "quants");
    RAD_TRY(quants(&p, &in, radi_json_get(j, "quants")));
    RAD_TRY(lab_want_str(&at, j, "circuit", true, &s, err));
    for (const struct lab_circuit *c = lab->circuits; c; c = c->next)
        if (!strcmp(c->name, s))
            m->circuit = c;
    in = lab_at_key(&at, "circuit");
    if (!m->circuit)
        return lab_at_fail(&in, err, "no circuit '%s'", s);
    RAD_TRY(lab_want_str(&at, j, "nest", false, &m->nest, err));
    if ((root = radi_json_get(j, "root"))) {
        struct lab_at r = lab_at_key(&at, "root");
        if (!m->nest)
            return lab_at_fail(&r, err, "'root' without 'nest'");
        RAD_TRY(lab_want_object(&r, root, "keys ignored refused", err));
        in = lab_at_key(&r, "keys");
        RAD_TRY(keys(&p, &in, radi_json_get(root, "keys"), true));
        in = lab_at_key(&r, "ignored");
        RAD_TRY(verdicts(&p, &in, radi_json_get(root, "ignored"), true, LAB_IGNORED));
        in = lab_at_key(&r, "refused");
        RAD_TRY(verdicts(&p, &in, radi_json_get(root, "refused"), true, LAB_REFUSED));
    }
    RAD_TRY(sections(&p, doc));
    for (const struct lab_cmap *o = lab->maps; o; o = o->next)
        for (int a = 0; a < o->n_match && o->gguf == m->gguf; a++)
            for (int b = 0; b < m->n_match; b++)
                if (!strcmp(o->match[a], m->match[b])) {
                    in = lab_at_key(&at, "match");
                    return lab_at_fail(&in, err, "'%s' is served by '%s' too", m->match[b],
                                       o->doc->path);
                }
    RAD_TRY(lab_map_link(lab, m, err));
    m->next = lab->maps;
    lab->maps = m;
    return RAD_OK;
}
