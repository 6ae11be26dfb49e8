/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading the data files' JSON: typed members, places for messages, and
 * what all three kinds share (parameters, checks, edges). */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>

#include "lab/lab.h"

#include "banned.h"

/* ---- places */
static void pointer(struct radi_str *s, const struct lab_at *at)
{
    if (!at->up)
        return;
    pointer(s, at->up);
    radi_str_addc(s, '/');
    if (!at->key) {
        radi_str_addf(s, "%d", at->index);
        return;
    }
    for (const char *c = at->key; *c; c++)
        if (*c == '~')
            radi_str_adds(s, "~0");
        else if (*c == '/')
            radi_str_adds(s, "~1");
        else
            radi_str_addc(s, *c);
}

rad_status lab_at_in(const struct lab_at *at, rad_status st, struct rad_err *err)
{
    struct radi_str s = { 0 };
    pointer(&s, at);
    st = rad_fail_in(err, st, "'%s': %s", at->doc->path, s.s && *s.s ? s.s : "/");
    radi_str_release(&s);
    return st;
}

rad_status lab_at_fail(const struct lab_at *at, struct rad_err *err, const char *fmt, ...)
{
    struct rad_err e = { 0 };
    struct radi_str s = { 0 };
    va_list ap;

    va_start(ap, fmt);
    radi_str_addv(&s, fmt, ap);
    va_end(ap);
    rad_fail(err ? err : &e, RAD_E_FORMAT, "%s", s.s ? s.s : "malformed");
    radi_str_release(&s);
    return lab_at_in(at, RAD_E_FORMAT, err ? err : &e);
}

/* ---- members */
static bool listed(const char *words, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = words; *p; p += strcspn(p, " ")) {
        p += strspn(p, " ");
        if (strcspn(p, " ") == n && !strncmp(p, w, n))
            return true;
    }
    return false;
}

rad_status lab_want_object(const struct lab_at *at, const struct cJSON *j, const char *keys,
                           struct rad_err *err)
{
    char buf[64];
    if (!cJSON_IsObject(j))
        return lab_at_fail(at, err, "%s, want an object", radi_json_what(j, buf));
    for (const cJSON *c = j->child; keys && c; c = c->next)
        if (!listed(keys, c->string)) {
            struct lab_at in = lab_at_key(at, c->string);
            return lab_at_fail(&in, err, "unknown key, want one of: %s", keys);
        }
    return RAD_OK;
}

rad_status lab_want_array(const struct lab_at *at, const struct cJSON *j, struct rad_err *err)
{
    char buf[64];
    if (!cJSON_IsArray(j))
        return lab_at_fail(at, err, "%s, want an array", radi_json_what(j, buf));
    return RAD_OK;
}

rad_status lab_want_str(const struct lab_at *at, const struct cJSON *o, const char *key,
                        bool required, const char **out, struct rad_err *err)
{
    const cJSON *j = radi_json_get(o, key);
    struct lab_at in = lab_at_key(at, key);
    char buf[64];

    *out = NULL;
    if (!j && !required)
        return RAD_OK;
    if (!j)
        return lab_at_fail(at, err, "key '%s' is missing", key);
    if (!cJSON_IsString(j) || !*j->valuestring)
        return lab_at_fail(&in, err, "%s, want a string", radi_json_what(j, buf));
    *out = j->valuestring;
    return RAD_OK;
}

rad_status lab_want_bool(const struct lab_at *at, const struct cJSON *o, const char *key,
                         bool def, bool *out, struct rad_err *err)
{
    const cJSON *j = radi_json_get(o, key);
    struct lab_at in = lab_at_key(at, key);
    char buf[64];

    *out = def;
    if (!j)
        return RAD_OK;
    if (!cJSON_IsBool(j))
        return lab_at_fail(&in, err, "%s, want true or false", radi_json_what(j, buf));
    *out = cJSON_IsTrue(j);
    return RAD_OK;
}

rad_status lab_want_num(const struct lab_at *at, const struct cJSON *o, const char *key,
                        double def, double *out, struct rad_err *err)
{
    const cJSON *j = radi_json_get(o, key);
    struct lab_at in = lab_at_key(at, key);
    char buf[64];

    *out = def;
    if (!j)
        return RAD_OK;
    if (!cJSON_IsNumber(j))
        return lab_at_fail(&in, err, "%s, want a number", radi_json_what(j, buf));
    *out = j->valuedouble;
    return RAD_OK;
}

rad_status lab_want_expr(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                         struct lab_ex **out, struct rad_err *err)
{
    char buf[64];
    rad_status st;

    if (cJSON_IsString(j)) {
        st = lab_ex_parse(&lab->arena, j->valuestring, out, err);
        return st ? lab_at_in(at, st, err) : RAD_OK;
    }
    if (!cJSON_IsNumber(j) && !cJSON_IsBool(j) && !cJSON_IsNull(j))
        return lab_at_fail(at, err, "%s, want an expression", radi_json_what(j, buf));
    struct lab_val v;
    RAD_TRY(lab_val_of_json(&lab->arena, j, &v, err));
    *out = lab_ex_lit(&lab->arena, &v);
    return *out ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
}

rad_status lab_want_expr_key(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *o,
                             const char *key, bool required, struct lab_ex **out,
                             struct rad_err *err)
{
    const cJSON *j = radi_json_get(o, key);
    struct lab_at in = lab_at_key(at, key);

    *out = NULL;
    if (!j)
        return required ? lab_at_fail(at, err, "key '%s' is missing", key) : RAD_OK;
    return lab_want_expr(lab, &in, j, out, err);
}

rad_status lab_want_head(const struct lab_at *at, const struct cJSON *j, struct rad_err *err)
{
    const char *s;
    double v;
    struct lab_at in = lab_at_key(at, "schema");

    RAD_TRY(lab_want_num(at, j, "schema", 0, &v, err));
    if (v != 1)
        return lab_at_fail(&in, err, "schema %g, want 1", v);
    return lab_want_str(at, j, "description", true, &s, err);
}

/* ---- parameters */
static rad_status param_type(const struct lab_at *at, const char *s, enum lab_vtype *out,
                             struct rad_err *err)
{
    for (int t = LAB_BOOL; t <= LAB_LIST; t++)
        if (!strcmp(lab_vtype_name((enum lab_vtype)t), s)) {
            *out = (enum lab_vtype)t;
            return RAD_OK;
        }
    return lab_at_fail(at, err, "type '%s', want bool, int, real, str or list", s);
}

static rad_status param_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                              struct lab_param *p, struct rad_err *err)
{
    const char *type;
    const cJSON *k;

    RAD_TRY(lab_want_object(at, j, "type default min max above oneof doc", err));
    RAD_TRY(lab_want_str(at, j, "type", true, &type, err));
    RAD_TRY(param_type(at, type, &p->type, err));
    RAD_TRY(lab_want_num(at, j, "min", -INFINITY, &p->min, err));
    RAD_TRY(lab_want_num(at, j, "max", INFINITY, &p->max, err));
    p->above = radi_json_get(j, "above") != NULL;
    if (p->above)
        RAD_TRY(lab_want_num(at, j, "above", 0, &p->min, err));
    if ((k = radi_json_get(j, "default"))) {
        struct lab_at in = lab_at_key(at, "default");
        if (p->type == LAB_STR && cJSON_IsString(k)) {  /* stands for itself */
            struct lab_val v;
            RAD_TRY(lab_val_of_json(&lab->arena, k, &v, err));
            p->def = lab_ex_lit(&lab->arena, &v);
            if (!p->def)
                return rad_fail(err, RAD_E_NOMEM, "out of memory");
        } else
            RAD_TRY(lab_want_expr(lab, &in, k, &p->def, err));
    }
    if ((k = radi_json_get(j, "oneof"))) {
        struct lab_at in = lab_at_key(at, "oneof");
        struct lab_val v;
        RAD_TRY(lab_want_array(&in, k, err));
        RAD_TRY(lab_val_of_json(&lab->arena, k, &v, err));
        p->oneof = v.l.v;
        p->n_oneof = v.l.n;
    }
    return RAD_OK;
}

rad_status lab_params_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                            struct lab_param **out, int *n, struct rad_err *err)
{
    *out = NULL;
    *n = 0;
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, NULL, err));
    *out = radi_arena_array(&lab->arena, (size_t)cJSON_GetArraySize(j) + 1, sizeof(**out));
    if (!*out)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_param *p = &(*out)[*n];
        struct lab_at in = lab_at_key(at, c->string);
        p->name = c->string;
        p->doc = at->doc;
        if (!strcmp(p->name, "i") || !strcmp(p->name, "T") || !strcmp(p->name, "O"))
            return lab_at_fail(&in, err, "the name is taken by the language");
        RAD_TRY(param_parse(lab, &in, c, p, err));
        ++*n;
    }
    return RAD_OK;
}

struct use {
    const struct lab_at *at;
    struct lab_param *p;
    int n;
    const char *extra;
    const struct lab_ex *e;
};

static rad_status use_name(void *user, bool key, const char *name, struct rad_err *err)
{
    struct use *u = user;
    if (key)
        return lab_at_fail(u->at, err, "'%.200s': '$%s' reads the config, which only a map does",
                           lab_ex_text(u->e), name);
    for (int i = 0; i < u->n; i++)
        if (!strcmp(u->p[i].name, name)) {
            u->p[i].used = true;
            return RAD_OK;
        }
    if (listed(u->extra, name))
        return RAD_OK;
    return lab_at_fail(u->at, err, "'%.200s': no parameter '%s'", lab_ex_text(u->e), name);
}

rad_status lab_params_use(const struct lab_at *at, struct lab_param *p, int n, const char *extra,
                          const struct lab_ex *e, struct rad_err *err)
{
    struct use u = { at, p, n, extra, e };
    return e ? lab_ex_names(e, use_name, &u, err) : RAD_OK;
}

rad_status lab_param_check(const struct lab_param *p, struct lab_val *v, struct rad_err *err)
{
    struct radi_str s = { 0 };
    rad_status st = RAD_E_FORMAT;
    bool ok = v->t == p->type;
    double x;

    if (p->type == LAB_REAL && v->t == LAB_INT) {
        *v = (struct lab_val){ .t = LAB_REAL, .d = (double)v->i };
        ok = true;
    }
    if (ok && p->n_oneof) {
        ok = false;
        for (size_t i = 0; i < p->n_oneof; i++)
            ok = ok || lab_val_eq(v, &p->oneof[i]);
        st = RAD_E_UNSUPPORTED;
    }
    if (ok && lab_val_num(v, &x))
        ok = (p->above ? x > p->min : x >= p->min) && x <= p->max && isfinite(x);
    if (ok)
        return RAD_OK;
    radi_str_addf(&s, "parameter '%s' is ", p->name);
    lab_val_text(&s, v);
    radi_str_addf(&s, ", want %s", lab_vtype_name(p->type));
    for (size_t i = 0; i < p->n_oneof; i++) {
        radi_str_adds(&s, i ? ", " : " of ");
        lab_val_text(&s, &p->oneof[i]);
    }
    if (isfinite(p->min))
        radi_str_addf(&s, " %s %.17g", p->above ? "above" : "from", p->min);
    if (isfinite(p->max))
        radi_str_addf(&s, " to %.17g", p->max);
    rad_fail(err, st, "%s", s.s ? s.s : "out of memory");
    radi_str_release(&s);
    return st;
}

/* ---- checks */
static rad_status check_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                              const char *which, struct lab_check *c, struct rad_err *err)
{
    const char *badr, *refuse, *one;
    const cJSON *many = radi_json_get(j, "keys");
    bool map = !strcmp(which, "key");

    RAD_TRY(lab_want_object(at, j, map ? "if key keys bad refuse" : "if param bad refuse", err));
    RAD_TRY(lab_want_expr_key(lab, at, j, "if", true, &c->cond, err));
    RAD_TRY(lab_want_str(at, j, "bad", false, &badr, err));
    RAD_TRY(lab_want_str(at, j, "refuse", false, &refuse, err));
    if (!badr == !refuse)
        return lab_at_fail(at, err, "want one of 'bad' and 'refuse'");
    c->bad = badr != NULL;
    c->reason = badr ? badr : refuse;
    RAD_TRY(lab_want_str(at, j, which, !many, &one, err));
    c->key = radi_arena_array(&lab->arena, (size_t)(many ? cJSON_GetArraySize(many) : 0) + 1,
                              sizeof(*c->key));
    if (!c->key)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    if (one)
        c->key[c->n_keys++] = one;
    if (many) {
        struct lab_at in = lab_at_key(at, "keys");
        RAD_TRY(lab_want_array(&in, many, err));
        for (const cJSON *k = many->child; k; k = k->next) {
            if (!cJSON_IsString(k))
                return lab_at_fail(&in, err, "want strings");
            c->key[c->n_keys++] = k->valuestring;
        }
        if (!c->n_keys)
            return lab_at_fail(&in, err, "empty");
    }
    return RAD_OK;
}

rad_status lab_checks_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                            const char *which, struct lab_check **out, int *n,
                            struct rad_err *err)
{
    *out = NULL;
    *n = 0;
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_array(at, j, err));
    *out = radi_arena_array(&lab->arena, (size_t)cJSON_GetArraySize(j) + 1, sizeof(**out));
    if (!*out)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_index(at, *n);
        (*out)[*n].doc = at->doc;
        (*out)[*n].index = *n;
        RAD_TRY(check_parse(lab, &in, c, which, &(*out)[(*n)], err));
        ++*n;
    }
    return RAD_OK;
}

/* ---- edges: ["T", "n_embd"], or an object with shape and dtype. The first
 * extent is T (tokens), O (rows with logits), either times an expression, or
 * a plain expression. */
rad_status lab_edge_parse(struct rad_lab *lab, const struct lab_at *at, const struct cJSON *j,
                          struct lab_edge *e, struct rad_err *err)
{
    const cJSON *shape = j;
    struct lab_at in = *at;

    e->dtype = "$act";
    if (cJSON_IsObject(j)) {
        const char *dt;
        RAD_TRY(lab_want_object(at, j, "shape dtype", err));
        RAD_TRY(lab_want_str(at, j, "dtype", false, &dt, err));
        if (dt)
            e->dtype = dt;
        bool known = !strcmp(e->dtype, "$act");
        for (int t = 1; t < RAD_DT_PRIVATE && !known; t++)
            known = rad_dtype_bits(t) && !strcmp(rad_dtype_name(t), e->dtype);
        if (!known)
            return lab_at_fail(at, err, "no type '%s'", e->dtype);
        shape = radi_json_get(j, "shape");
        in = lab_at_key(at, "shape");
    }
    RAD_TRY(lab_want_array(&in, shape, err));
    e->rows = RAD_LAB_ROWS_FIXED;
    for (const cJSON *c = shape->child; c; c = c->next) {
        struct lab_at el = lab_at_index(&in, e->rank);
        if (e->rank == LAB_MAX_DIMS)
            return lab_at_fail(&in, err, "more than %d extents", LAB_MAX_DIMS);
        const char *s = cJSON_IsString(c) ? c->valuestring : "";
        if (e->rank == 0 && (*s == 'T' || *s == 'O') && (!s[1] || s[1] == ' ' || s[1] == '*')) {
            const char *rest = s + 1 + strspn(s + 1, " *");
            e->rows = *s == 'T' ? RAD_LAB_ROWS_TOK : RAD_LAB_ROWS_OUT;
            rad_status st = lab_ex_parse(&lab->arena, *rest ? rest : "1", &e->dim[0], err);
            if (st)
                return lab_at_in(&el, st, err);
        } else
            RAD_TRY(lab_want_expr(lab, &el, c, &e->dim[e->rank], err));
        e->rank++;
    }
    if (e->rank < 2 && e->rows != RAD_LAB_ROWS_FIXED)
        return lab_at_fail(&in, err, "want rows and at least one extent");
    return e->rank ? RAD_OK : lab_at_fail(&in, err, "empty");
}
