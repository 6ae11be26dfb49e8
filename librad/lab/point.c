/* SPDX-License-Identifier: Apache-2.0 */
/* Owns running a map over a config: every key meets its rule, then the point's
 * entries are evaluated, each once (per layer where they depend on it). Nothing
 * is passed over in silence: a key without a rule is refused, because it may
 * change the mathematics. */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "lab/lab.h"

#include "banned.h"

enum { MAX_CONFIG = 16 << 20, MAX_DEPTH = 16, MAX_VECTOR = 4096 };

struct run {
    const struct rad_lab *lab;
    struct rad_lab_point *p;
    const struct lab_cmap *m;
    bool *present;
    int64_t layer;                   /* of the entry under way, or -1 */
    struct rad_err *err;
};

static rad_status no_mem(struct rad_err *err)
{
    return rad_fail(err, RAD_E_NOMEM, "out of memory for a parameter point");
}

/* ---- rules */
static bool rule_is(const struct run *r, const char *path, const char *rule)
{
    size_t n = strlen(rule);
    if (*rule == '.' && r->p->prefix) {     /* behind the architecture's name */
        size_t k = strlen(r->p->prefix);
        if (strncmp(path, r->p->prefix, k))
            return false;
        path += k;
    }
    if (n && rule[n - 1] == '*')
        return strncmp(path, rule, n - 1) == 0;
    return strcmp(path, rule) == 0;
}

/* Exact rules come before those with a star. */
static const struct lab_key *rule_of(const struct run *r, const struct lab_key *tab, int n,
                                     const char *path)
{
    const struct lab_key *star = NULL;
    for (int i = 0; i < n; i++)
        if (rule_is(r, path, tab[i].path)) {
            if (tab[i].path[strlen(tab[i].path) - 1] != '*')
                return &tab[i];
            star = &tab[i];
        }
    return star;
}

/* A key's path as the config spells it. */
static const char *full_path(const struct run *r, const struct lab_key *k)
{
    const char *nest = r->m->nest && radi_json_get(r->p->json, r->m->nest) ? r->m->nest : NULL;
    const char *s = k->path;
    if (*k->path == '.' && r->p->prefix)
        s = radi_arena_printf(&r->p->arena, "%s%s", r->p->prefix, k->path);
    else if (nest && k >= r->m->key && k < r->m->key + r->m->n_keys)
        s = radi_arena_printf(&r->p->arena, "%s.%s", nest, k->path);
    return s ? s : k->path;
}

/* ---- values of flattened metadata are strings */
static void unflatten(struct run *r, const struct lab_key *k, struct lab_val *v)
{
    int64_t i;
    double d;
    if (!r->p->flat || v->t != LAB_STR)
        return;
    if (k->base == LAB_BOOL && (!strcmp(v->s, "0") || !strcmp(v->s, "1")))
        *v = (struct lab_val){ .t = LAB_BOOL, .b = *v->s == '1' };
    else if (k->base == LAB_INT && radi_parse_i64(v->s, &i))
        *v = (struct lab_val){ .t = LAB_INT, .i = i };
    else if (k->base == LAB_REAL && radi_parse_f64(v->s, &d))
        *v = (struct lab_val){ .t = LAB_REAL, .d = d };
    else if (k->base == LAB_LIST || k->scalar_or_list) {   /* "a b c" */
        struct lab_val l = { .t = LAB_LIST };
        size_t cap = 1;
        for (const char *s = v->s; *s; s++)
            cap += *s == ' ';
        l.l.v = radi_arena_array(&r->p->arena, cap, sizeof(*l.l.v));
        for (const char *s = v->s; l.l.v && *s;) {
            size_t n = strcspn(s, " ");
            struct lab_val *e = &l.l.v[l.l.n++];
            e->t = LAB_STR;
            e->s = radi_arena_strndup(&r->p->arena, s, n);
            if (!e->s)
                return;
            if (k->of != LAB_STR && radi_parse_i64(e->s, &i))
                *e = (struct lab_val){ .t = LAB_INT, .i = i };
            else if (k->of == LAB_REAL && radi_parse_f64(e->s, &d))
                *e = (struct lab_val){ .t = LAB_REAL, .d = d };
            s += n + (s[n] == ' ');
        }
        if (l.l.v)
            *v = l;
    }
}

static const char *want_text(struct run *r, const struct lab_key *k, enum lab_vtype base)
{
    static const char *const noun[] = { "nothing", "true or false", "an integer", "a number",
                                        "a string", "a list" };
    const char *s = k->object ? "an object" : noun[base];
    if (base != LAB_INT && base != LAB_REAL)
        return s;
    const char *t = NULL;
    if (isfinite(k->min) && isfinite(k->max))
        t = radi_arena_printf(&r->p->arena, "%s %s %.17g to %.17g", s, k->above ? "above" : "from",
                              k->min, k->max);
    else if (isfinite(k->min))
        t = radi_arena_printf(&r->p->arena, "%s %s %.17g", s, k->above ? "above" : "from", k->min);
    return t ? t : s;
}

/* One scalar (or element) against type, range and choice. */
static rad_status scalar(struct run *r, const struct lab_key *k, enum lab_vtype base,
                         struct lab_val *v, const cJSON *j, const char *path)
{
    double x = 0;

    if (base == LAB_REAL && v->t == LAB_INT)
        *v = (struct lab_val){ .t = LAB_REAL, .d = (double)v->i };
    bool ok = v->t == base;
    if (ok && lab_val_num(v, &x))
        ok = isfinite(x) && (k->above ? x > k->min : x >= k->min) && x <= k->max;
    if (!ok)
        return lab_refuse(r->err, RAD_E_FORMAT, path, j, "want %s", want_text(r, k, base));
    for (int i = 0; i < k->n_rename && v->t == LAB_STR; i++)
        if (!strcmp(v->s, k->from[i]))
            v->s = k->to[i];
    for (size_t i = 0; i < k->n_oneof; i++)
        if (lab_val_eq(v, &k->oneof[i]))
            return RAD_OK;
    if (!k->n_oneof)
        return RAD_OK;
    struct radi_str s = { 0 };
    for (size_t i = 0; i < k->n_oneof; i++) {
        radi_str_adds(&s, i ? ", " : "");
        lab_val_text(&s, &k->oneof[i]);
    }
    rad_status st = lab_refuse(r->err, RAD_E_UNSUPPORTED, path, j, "want %s: %s",
                               s.s ? s.s : "", k->reason);
    radi_str_release(&s);
    return st;
}

static rad_status typed(struct run *r, const struct lab_key *k, const cJSON *j, const char *path)
{
    struct lab_val v;
    size_t at = (size_t)(k - r->m->key);

    if (cJSON_IsNull(j)) {
        if (!k->null_ok)
            return lab_refuse(r->err, RAD_E_FORMAT, path, j, "want %s", want_text(r, k, k->base));
        r->p->key[at] = (struct lab_val){ .t = LAB_NULL };
        return RAD_OK;
    }
    if (k->object != cJSON_IsObject(j))
        return lab_refuse(r->err, RAD_E_FORMAT, path, j, "want %s", want_text(r, k, k->base));
    RAD_TRY(lab_val_of_json(&r->p->arena, j, &v, r->err));
    unflatten(r, k, &v);
    if (v.t == LAB_LIST && (k->base == LAB_LIST || k->scalar_or_list)) {
        enum lab_vtype of = k->base == LAB_LIST ? k->of : k->base;
        if (v.l.n > MAX_VECTOR)
            return lab_refuse(r->err, RAD_E_FORMAT, path, j, "%zu elements, want at most %d",
                              v.l.n, MAX_VECTOR);
        const cJSON *c = cJSON_IsArray(j) ? j->child : NULL;
        for (size_t i = 0; i < v.l.n; i++, c = c ? c->next : NULL) {
            const char *el = radi_arena_printf(&r->p->arena, "%s[%zu]", path, i);
            RAD_TRY(scalar(r, k, of, &v.l.v[i], c, el ? el : path));
        }
    } else
        RAD_TRY(scalar(r, k, k->base, &v, j, path));
    r->p->key[at] = v;
    return RAD_OK;
}

static rad_status note(struct run *r, const char *path, const char *reason)
{
    struct rad_lab_point *p = r->p;
    void *mem = p->note;
    rad_status st = radi_grow(&mem, &p->note_cap, (size_t)p->n_notes + 1, sizeof(*p->note),
                              r->err);
    p->note = mem;
    RAD_TRY(st);
    p->note[p->n_notes++] = (struct lab_note){ path, reason };
    return RAD_OK;
}

static bool has_below(const struct run *r, const struct lab_key *tab, int n, const char *path)
{
    size_t len = strlen(path);
    (void)r;
    for (int i = 0; i < n; i++)
        if (!strncmp(tab[i].path, path, len) && tab[i].path[len] == '.')
            return true;
    return false;
}

/* Keys that every source has and the choice of the map consumed. */
static bool is_match_key(const struct run *r, const char *path)
{
    return !strcmp(path, r->m->gguf ? "general.architecture" : "model_type");
}

static rad_status walk(struct run *r, const cJSON *o, const char *prefix, const char *shown,
                       bool root, int depth)
{
    const struct lab_key *tab = root ? r->m->root : r->m->key;
    int n = root ? r->m->n_root : r->m->n_keys;

    for (const cJSON *c = o->child; c; c = c->next) {
        struct radi_arena *a = &r->p->arena;
        const char *path = *prefix ? radi_arena_printf(a, "%s.%s", prefix, c->string)
                                   : radi_arena_strndup(a, c->string, strlen(c->string));
        const char *full = !path ? NULL : *shown ? radi_arena_printf(a, "%s.%s", shown, path)
                                                 : path;
        if (!full)
            return no_mem(r->err);
        if (root && r->m->nest && !*prefix && !strcmp(c->string, r->m->nest))
            continue;
        if (!*prefix && is_match_key(r, path))
            continue;
        const struct lab_key *k = rule_of(r, tab, n, path);
        if (k && k->verdict == LAB_IGNORED) {
            RAD_TRY(note(r, full, k->reason));
            continue;
        }
        if (k && k->verdict == LAB_REFUSED)
            return lab_refuse(r->err, RAD_E_UNSUPPORTED, full, c, "%s", k->reason);
        if (k && !root) {
            r->present[k - tab] = true;
            r->p->key_json[k - tab] = c;
            RAD_TRY(typed(r, k, c, full));
        }
        if (cJSON_IsObject(c) && (k ? k->object : has_below(r, tab, n, path))) {
            if (depth == MAX_DEPTH)
                return lab_refuse(r->err, RAD_E_FORMAT, full, c, "nested too deep");
            RAD_TRY(walk(r, c, path, shown, root, depth + 1));
            continue;
        }
        if (!k)
            return lab_refuse(r->err, RAD_E_UNSUPPORTED, full, c,
                              "map '%s' does not say what it means", r->m->name);
    }
    return RAD_OK;
}

/* ---- environments */
static rad_status entry_value(struct run *r, size_t at, struct lab_val *out);

static rad_status get(void *user, bool key, const char *name, struct lab_val *out,
                      struct rad_err *err)
{
    struct run *r = user;

    if (key) {
        for (int i = 0; i < r->m->n_keys; i++)
            if (!strcmp(r->m->key[i].path, name)) {
                *out = r->p->key[i];
                return RAD_OK;
            }
    } else if (!strcmp(name, "i")) {
        *out = (struct lab_val){ .t = LAB_INT, .i = r->layer };
        return r->layer >= 0 ? RAD_OK :
            rad_fail(err, RAD_E_FORMAT, "'i' has no value outside of layers");
    } else
        for (int i = 0; i < r->m->n_entries; i++)
            if (!strcmp(r->m->entry[i].name, name))
                return entry_value(r, (size_t)i, out);
    return rad_fail(err, RAD_E_NOTFOUND, "no '%s'", name);
}

static rad_status entry_eval(struct run *r, const struct lab_entry *e, struct lab_val *out)
{
    struct lab_env env = { get, r, &r->p->arena };
    rad_status st = lab_ex_eval(e->val, &env, out, r->err);
    if (!st && e->param)
        st = lab_param_check(e->param, out, r->err);
    return st;
}

static rad_status entry_value(struct run *r, size_t at, struct lab_val *out)
{
    struct lab_pvalue *v = &r->p->value[at];
    const struct lab_entry *e = &r->m->entry[at];
    int64_t layer = r->layer;
    rad_status st = RAD_OK;

    if (v->state == 1)
        return rad_fail(r->err, RAD_E_FORMAT, "'%s' depends on itself", e->name);
    if (v->state == 0) {
        v->state = 1;
        if (e->per_layer) {
            v->v = (struct lab_val){ .t = LAB_LIST };
            v->v.l.n = (size_t)r->p->n_layers;
            v->v.l.v = radi_arena_array(&r->p->arena, v->v.l.n, sizeof(*v->v.l.v));
            if (!v->v.l.v)
                return no_mem(r->err);
            for (r->layer = 0; !st && r->layer < r->p->n_layers; r->layer++)
                st = entry_eval(r, e, &v->v.l.v[r->layer]);
            r->layer = layer;
        } else
            st = entry_eval(r, e, &v->v);
        if (st)
            return rad_fail_in(r->err, st, "map '%s': '%s'", r->m->name, e->name);
        v->state = 2;
    }
    *out = v->v;
    if (e->per_layer && layer >= 0)
        *out = v->v.l.v[layer];
    return RAD_OK;
}

static rad_status checks(struct run *r, bool keys_only)
{
    struct lab_env env = { get, r, &r->p->arena };
    r->layer = -1;
    for (int i = 0; i < r->m->n_checks; i++) {
        const struct lab_check *c = &r->m->check[i];
        const struct lab_key *k = NULL;
        bool hit;
        if (c->keys_only != keys_only)
            continue;
        RAD_TRY(lab_ex_bool(c->cond, &env, &hit, r->err));
        if (!hit)
            continue;
        /* the first of its keys that is there, else the first */
        for (int n = 0; n < c->n_keys; n++)
            for (int q = 0; q < r->m->n_keys; q++)
                if (!strcmp(r->m->key[q].path, c->key[n]) && (!k || !r->present[k - r->m->key]))
                    k = !k || r->present[q] ? &r->m->key[q] : k;
        return lab_refuse(r->err, c->bad ? RAD_E_FORMAT : RAD_E_UNSUPPORTED, full_path(r, k),
                          r->p->key_json[k - r->m->key], "%s", c->reason);
    }
    return RAD_OK;
}

/* Lengths, once every key has its value. */
static rad_status lengths(struct run *r)
{
    struct lab_env env = { get, r, &r->p->arena };
    for (int i = 0; i < r->m->n_keys; i++) {
        const struct lab_key *k = &r->m->key[i];
        int64_t want;
        if (!k->len || r->p->key[i].t != LAB_LIST)
            continue;
        RAD_TRY(lab_ex_int(k->len, &env, &want, r->err));
        if (want < 0 || (uint64_t)want != r->p->key[i].l.n)
            return lab_refuse(r->err, RAD_E_FORMAT, full_path(r, k), r->p->key_json[i],
                              "%zu elements, want %lld", r->p->key[i].l.n, (long long)want);
    }
    return RAD_OK;
}

static rad_status missing(struct run *r)
{
    for (int i = 0; i < r->m->n_keys; i++) {
        const struct lab_key *k = &r->m->key[i];
        if (k->verdict != LAB_TYPED || r->present[i])
            continue;
        r->p->key[i] = (struct lab_val){ .t = LAB_NULL, .absent = true };
        if (k->has_def)
            r->p->key[i] = k->def;
        else if (!k->optional)
            return lab_refuse(r->err, RAD_E_FORMAT, full_path(r, k), NULL, "is missing, want %s",
                              want_text(r, k, k->base));
    }
    return RAD_OK;
}

/* Every entry; n_layers before all else, and checks before the values whose
 * errors would speak of parameters where a check speaks of keys. */
static rad_status values(struct run *r)
{
    struct rad_lab_point *p = r->p;
    struct lab_val v;

    r->layer = -1;
    for (int i = 0; i < r->m->n_entries; i++)
        if (!strcmp(r->m->entry[i].name, "n_layers")) {
            RAD_TRY(entry_value(r, (size_t)i, &v));
            p->n_layers = v.i;
        }
    RAD_TRY(checks(r, false));
    for (int i = 0; i < r->m->n_entries; i++)
        RAD_TRY(entry_value(r, (size_t)i, &v));
    p->quant = "";
    for (int i = 0; i < r->m->n_entries; i++)
        if (r->m->entry[i].let && !strcmp(r->m->entry[i].name, "quant") &&
            p->value[i].v.t == LAB_STR)
            p->quant = p->value[i].v.s;
    for (int i = 0; i < r->m->n_quants; i++)
        if (!strcmp(r->m->quant[i], p->quant))
            return RAD_OK;
    return rad_fail(r->err, RAD_E_UNSUPPORTED, "quantisation '%s': map '%s' does not claim it",
                    p->quant, r->m->name);
}

/* ---- which map */
static rad_status choose(struct run *r)
{
    struct rad_lab_point *p = r->p;
    const cJSON *g = radi_json_get(p->json, "general.architecture");
    const cJSON *t = g ? g : radi_json_get(p->json, "model_type");
    const char *key = g ? "general.architecture" : "model_type";

    if (!t || !cJSON_IsString(t))
        return lab_refuse(r->err, RAD_E_FORMAT, key, t, t ? "want a string" :
                          "is missing, want the type of the model");
    p->model_type = t->valuestring;
    for (const struct lab_cmap *m = r->lab->maps; m; m = m->next)
        for (int i = 0; i < m->n_match && m->gguf == (g != NULL); i++)
            if (!strcmp(m->match[i], p->model_type))
                r->m = p->map = m;
    if (!r->m)
        return lab_refuse(r->err, RAD_E_UNSUPPORTED, key, t, "no map serves this type");
    if (g)
        p->prefix = p->model_type;
    char *arch = radi_arena_strndup(&p->arena, p->model_type, strlen(p->model_type));
    if (!arch)
        return no_mem(r->err);
    if (!g) {                            /* as the container spells it */
        char *to = arch;
        for (const char *s = p->model_type; *s; s++)
            if (*s != '_')
                *to++ = *s;
        *to = 0;
    }
    p->arch = arch;
    return RAD_OK;
}

static rad_status run_map(const struct rad_lab *lab, struct rad_lab_point *p, struct rad_err *err)
{
    struct run r = { .lab = lab, .p = p, .layer = -1, .err = err };

    if (!cJSON_IsObject(p->json))
        return rad_fail(err, RAD_E_FORMAT, "the config is no object");
    RAD_TRY(choose(&r));
    size_t n = (size_t)r.m->n_keys + 1;
    r.present = radi_arena_array(&p->arena, n, sizeof(*r.present));
    p->key = radi_arena_array(&p->arena, n, sizeof(*p->key));
    p->key_json = radi_arena_array(&p->arena, n, sizeof(*p->key_json));
    p->value = radi_arena_array(&p->arena, (size_t)r.m->n_entries + 1, sizeof(*p->value));
    if (!r.present || !p->key || !p->key_json || !p->value)
        return no_mem(err);
    const cJSON *nest = r.m->nest ? radi_json_get(p->json, r.m->nest) : NULL;
    if (nest && !cJSON_IsObject(nest))
        return lab_refuse(err, RAD_E_FORMAT, r.m->nest, nest, "want an object");
    if (nest) {
        RAD_TRY(walk(&r, p->json, "", "", true, 0));
        RAD_TRY(walk(&r, nest, "", r.m->nest, false, 0));
    } else
        RAD_TRY(walk(&r, p->json, "", "", false, 0));
    RAD_TRY(missing(&r));
    RAD_TRY(lengths(&r));
    RAD_TRY(checks(&r, true));
    return values(&r);
}

rad_status lab_point_eval(struct rad_lab_point *p, const struct lab_ex *e, int64_t layer,
                          struct radi_arena *arena, struct lab_val *out, struct rad_err *err)
{
    struct run r = { .p = p, .m = p->map, .layer = layer, .err = err };
    struct lab_env env = { get, &r, arena };
    return lab_ex_eval(e, &env, out, err);
}

bool lab_point_get(const struct rad_lab_point *p, const char *name, int64_t layer,
                   struct lab_val *out)
{
    for (int i = 0; i < p->map->n_entries; i++) {
        const struct lab_entry *e = &p->map->entry[i];
        if (e->let || strcmp(e->name, name))
            continue;
        *out = p->value[i].v;
        if (e->per_layer && layer >= 0) {
            /* draft layers lie behind the last and read its values */
            if (layer >= p->n_layers)
                layer = p->n_layers - 1;
            *out = p->value[i].v.l.v[layer];
        }
        return true;
    }
    return false;
}

/* ---- entry points */
static rad_status point_of(const struct rad_lab *lab, struct cJSON *json, bool flat,
                           struct rad_lab_point **out, struct rad_err *err)
{
    struct rad_lab_point *p = radi_calloc(1, sizeof(*p));
    if (!p) {
        radi_json_free(json);
        return no_mem(err);
    }
    radi_arena_init(&p->arena, 64u << 20);
    p->json = json;
    p->flat = flat;
    rad_status st = run_map(lab, p, err);
    if (st) {
        rad_lab_point_free(p);
        return st;
    }
    *out = p;
    return RAD_OK;
}

rad_status rad_lab_point_new(const struct rad_lab *lab, const char *config, size_t n,
                             struct rad_lab_point **out, struct rad_err *err)
{
    struct cJSON *json;
    *out = NULL;
    RAD_TRY(radi_json_parse(config, n, MAX_CONFIG, RADI_JSON_LENIENT, &json, err));
    return point_of(lab, json, false, out, err);
}

/* Puts "a.b.c" = value into nested objects; a GGUF's keys stay as they are. */
static bool put_path(cJSON *root, const char *key, const char *val, bool nested)
{
    char part[256];
    cJSON *o = root;

    for (int depth = 0; nested && strchr(key, '.') && depth < MAX_DEPTH; depth++) {
        size_t n = strcspn(key, ".");
        if (n == 0 || n >= sizeof(part))
            break;
        memcpy(part, key, n);
        part[n] = 0;
        cJSON *next = cJSON_GetObjectItemCaseSensitive(o, part);
        if (!next)
            next = cJSON_AddObjectToObject(o, part);
        if (!cJSON_IsObject(next))
            return true;            /* a scalar of the same name stands there */
        o = next;
        key += n + 1;
    }
    return cJSON_HasObjectItem(o, key) || cJSON_AddStringToObject(o, key, val) != NULL;
}

/* Not the config's: other files' keys and what the converter added. */
static bool foreign(const char *key)
{
    static const char *const prefix[] = { "generation.", "preprocessor.", "video_preprocessor.",
                                          "draft.", "radiance.", "processor." };
    /* typed rows; head_dim and rope_theta are spelt as the config's own keys */
    static const char *const word[] = { "n_layers", "n_embd", "n_head", "n_head_kv", "n_ff",
         "n_vocab", "n_ctx_train", "n_expert", "n_expert_used", "n_expert_shared",
        "rms_eps", "rope_scale" };
    for (size_t i = 0; i < RADI_COUNT(prefix); i++)
        if (!strncmp(key, prefix[i], strlen(prefix[i])))
            return true;
    for (size_t i = 0; i < RADI_COUNT(word); i++)
        if (!strcmp(key, word[i]))
            return true;
    return false;
}

rad_status rad_lab_point_from_meta(const struct rad_lab *lab, const RadModelMeta *meta,
                                   struct rad_lab_point **out, struct rad_err *err)
{
    bool gguf = false;

    *out = NULL;
    for (int64_t i = 0; i < meta->n_kv; i++) {
        if (!strcmp(meta->kv_key[i], "radiance.config"))
            return rad_lab_point_new(lab, meta->kv_val[i], strlen(meta->kv_val[i]), out, err);
        gguf = gguf || !strcmp(meta->kv_key[i], "general.architecture");
    }
    cJSON *json = cJSON_CreateObject();
    for (int64_t i = 0; json && i < meta->n_kv; i++)
        if (!foreign(meta->kv_key[i]) &&
            !put_path(json, meta->kv_key[i], meta->kv_val[i], !gguf)) {
            radi_json_free(json);
            json = NULL;
        }
    if (!json)
        return no_mem(err);
    return point_of(lab, json, true, out, err);
}

void rad_lab_point_free(struct rad_lab_point *p)
{
    if (!p)
        return;
    radi_json_free(p->json);
    radi_free(p->note);
    radi_arena_release(&p->arena);
    radi_free(p);
}

void rad_lab_point_info(const struct rad_lab_point *p, struct rad_lab_point_info *out)
{
    *out = (struct rad_lab_point_info){ .size = sizeof(*out), .model_type = p->model_type,
        .arch = p->arch, .quant = p->quant, .map = p->map->name,
        .circuit = p->map->circuit->name };
}

void rad_lab_point_meta(const struct rad_lab_point *p, RadModelMeta *out)
{
    *out = (RadModelMeta){ .struct_size = sizeof(*out), .arch_id = p->arch, .name = "",
                           .quant = p->quant, .rope_scale = 1 };
    const struct {
        const char *name;
        int64_t *i;
        double *d;
    } field[] = {
        { "n_layers", &out->n_layers, NULL }, { "n_embd", &out->n_embd, NULL },
        { "n_head", &out->n_head, NULL }, { "n_head_kv", &out->n_head_kv, NULL },
        { "head_dim", &out->head_dim, NULL }, { "n_ff", &out->n_ff, NULL },
        { "n_vocab", &out->n_vocab, NULL }, { "n_ctx_train", &out->n_ctx_train, NULL },
        { "n_expert", &out->n_expert, NULL }, { "n_expert_used", &out->n_expert_used, NULL },
        { "n_expert_shared", &out->n_expert_shared, NULL }, { "rms_eps", NULL, &out->rms_eps },
        { "rope_theta", NULL, &out->rope_theta }, { "rope_scale", NULL, &out->rope_scale },
    };
    for (size_t i = 0; i < RADI_COUNT(field); i++) {
        struct lab_val v;
        if (!lab_point_get(p, field[i].name, 0, &v))
            continue;
        if (field[i].i && v.t == LAB_INT)
            *field[i].i = v.i;
        if (field[i].d)
            lab_val_num(&v, field[i].d);
    }
}
