/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the parsed form of a circuit file: which blocks stand before, in and
 * behind the layers, the streams they pass on, and the parameters that all of
 * it together asks of a point (the face). Blocks are parsed before circuits. */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "lab/lab.h"

#include "banned.h"

struct cp {
    struct rad_lab *lab;
    struct lab_circuit *c;
    struct rad_err *err;
};

static const struct lab_block *find_block(const struct rad_lab *lab, const char *name)
{
    for (const struct lab_block *b = lab->blocks; b; b = b->next)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

static rad_status use(struct cp *p, const struct lab_at *at, const struct lab_ex *e)
{
    return lab_params_use(at, p->c->param, p->c->n_params, "i", e, p->err);
}

static rad_status sets(struct cp *p, const struct lab_at *at, const struct cJSON *j,
                       struct lab_ref *r)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    r->set = radi_arena_array(&p->lab->arena, (size_t)cJSON_GetArraySize(j) + 1, sizeof(*r->set));
    if (!r->set)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_set *s = &r->set[r->n_sets++];
        bool known = false;
        for (int i = 0; i < r->block->n_params; i++)
            known = known || !strcmp(r->block->param[i].name, c->string);
        if (!known)
            return lab_at_fail(&in, p->err, "block '%s' has no such parameter", r->name);
        s->name = c->string;
        RAD_TRY(lab_want_expr(p->lab, &in, c, &s->val, p->err));
        RAD_TRY(use(p, &in, s->val));
    }
    return RAD_OK;
}

/* A block's name, or an object with block, as, when, set. */
static rad_status ref(struct cp *p, const struct lab_at *at, const struct cJSON *j,
                      struct lab_ref *r)
{
    struct lab_at in = lab_at_key(at, "set");

    if (cJSON_IsString(j))
        r->name = j->valuestring;
    else {
        RAD_TRY(lab_want_object(at, j, "block as when set", p->err));
        RAD_TRY(lab_want_str(at, j, "block", true, &r->name, p->err));
        RAD_TRY(lab_want_str(at, j, "as", false, &r->as, p->err));
        RAD_TRY(lab_want_expr_key(p->lab, at, j, "when", false, &r->when, p->err));
        RAD_TRY(use(p, at, r->when));
    }
    if (!r->as)
        r->as = r->name;
    r->block = find_block(p->lab, r->name);
    if (!r->block)
        return lab_at_fail(at, p->err, "no block '%s'", r->name);
    for (int i = 0; i < r->block->n_streams; i++) {
        bool known = false;
        for (int k = 0; k < p->c->n_streams; k++)
            if (!strcmp(p->c->stream[k].name, r->block->stream[i]))
                known = p->c->stream[k].used = true;
        if (!known)
            return lab_at_fail(at, p->err, "block '%s' wants a stream '%s'", r->name,
                               r->block->stream[i]);
    }
    return cJSON_IsString(j) ? RAD_OK : sets(p, &in, radi_json_get(j, "set"), r);
}

static rad_status refs(struct cp *p, const struct lab_at *at, const struct cJSON *j,
                       struct lab_refs *out)
{
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_array(at, j, p->err));
    out->ref = radi_arena_array(&p->lab->arena, (size_t)cJSON_GetArraySize(j) + 1,
                                sizeof(*out->ref));
    if (!out->ref)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_index(at, out->n);
        RAD_TRY(ref(p, &in, c, &out->ref[out->n]));
        out->n++;
    }
    return RAD_OK;
}

static rad_status layers(struct cp *p, const struct lab_at *at, const struct cJSON *j)
{
    const cJSON *b = radi_json_get(j, "blocks");
    struct lab_at in = lab_at_key(at, "blocks");

    RAD_TRY(lab_want_object(at, j, "count kind blocks", p->err));
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "count", true, &p->c->count, p->err));
    RAD_TRY(use(p, at, p->c->count));
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "kind", true, &p->c->kind, p->err));
    RAD_TRY(use(p, at, p->c->kind));
    RAD_TRY(lab_want_object(&in, b, NULL, p->err));
    p->c->layer = radi_arena_array(&p->lab->arena, (size_t)cJSON_GetArraySize(b) + 1,
                                   sizeof(*p->c->layer));
    if (!p->c->layer)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = b->child; c; c = c->next) {
        struct lab_at el = lab_at_key(&in, c->string);
        struct lab_kind *k = &p->c->layer[p->c->n_kinds++];
        k->name = c->string;
        RAD_TRY(refs(p, &el, c, &k->refs));
    }
    return p->c->n_kinds ? RAD_OK : lab_at_fail(&in, p->err, "empty");
}

static rad_status draft(struct cp *p, const struct lab_at *at, const struct cJSON *j)
{
    struct lab_at in = lab_at_key(at, "blocks");
    if (!j)
        return RAD_OK;
    RAD_TRY(lab_want_object(at, j, "count blocks", p->err));
    RAD_TRY(lab_want_expr_key(p->lab, at, j, "count", true, &p->c->draft_count, p->err));
    RAD_TRY(use(p, at, p->c->draft_count));
    return refs(p, &in, radi_json_get(j, "blocks"), &p->c->draft);
}

static rad_status streams(struct cp *p, const struct lab_at *at, const struct cJSON *j)
{
    RAD_TRY(lab_want_object(at, j, NULL, p->err));
    p->c->stream = radi_arena_array(&p->lab->arena, (size_t)cJSON_GetArraySize(j) + 1,
                                    sizeof(*p->c->stream));
    if (!p->c->stream)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    for (const cJSON *c = j->child; c; c = c->next) {
        struct lab_at in = lab_at_key(at, c->string);
        struct lab_edge *e = &p->c->stream[p->c->n_streams++];
        e->name = c->string;
        RAD_TRY(lab_edge_parse(p->lab, &in, c, e, p->err));
        for (int i = 0; i < e->rank; i++)
            RAD_TRY(use(p, &in, e->dim[i]));
    }
    return RAD_OK;
}

/* ---- the face */
static rad_status face_add(struct cp *p, const struct lab_param *q)
{
    struct lab_at root = { NULL, q->doc, NULL, 0 }, s = lab_at_key(&root, "params"),
                  at = lab_at_key(&s, q->name);

    for (int i = 0; i < p->c->n_face; i++)
        if (!strcmp(p->c->face[i]->name, q->name)) {
            const struct lab_param *old = p->c->face[i];
            if (old->type != q->type)
                return lab_at_fail(&at, p->err, "is %s, but %s in '%s'", lab_vtype_name(q->type),
                                   lab_vtype_name(old->type), old->doc->path);
            /* where one insists and another does not, the point must give it */
            if (!q->def)
                p->c->face[i] = q;
            return RAD_OK;
        }
    p->c->face[p->c->n_face++] = q;
    return RAD_OK;
}

static rad_status face_refs(struct cp *p, const struct lab_refs *r)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->ref[i].block->n_params; k++) {
            const struct lab_param *q = &r->ref[i].block->param[k];
            bool own = false;
            for (int s = 0; s < r->ref[i].n_sets; s++)
                own = own || !strcmp(r->ref[i].set[s].name, q->name);
            if (!own)
                RAD_TRY(face_add(p, q));
        }
    return RAD_OK;
}

static int count_params(const struct lab_refs *r)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += r->ref[i].block->n_params;
    return n;
}

static rad_status face(struct cp *p)
{
    struct lab_circuit *c = p->c;
    int n = c->n_params + count_params(&c->prologue) + count_params(&c->epilogue) +
            count_params(&c->draft);

    for (int i = 0; i < c->n_kinds; i++)
        n += count_params(&c->layer[i].refs);
    c->face = radi_arena_array(&p->lab->arena, (size_t)n + 1, sizeof(*c->face));
    if (!c->face)
        return rad_fail(p->err, RAD_E_NOMEM, "out of memory");
    for (int i = 0; i < c->n_params; i++)
        RAD_TRY(face_add(p, &c->param[i]));
    RAD_TRY(face_refs(p, &c->prologue));
    for (int i = 0; i < c->n_kinds; i++)
        RAD_TRY(face_refs(p, &c->layer[i].refs));
    RAD_TRY(face_refs(p, &c->epilogue));
    return face_refs(p, &c->draft);
}

/* Values that only the container's metadata wants; no expression reads them. */
static bool of_meta(const char *name)
{
    static const char *const meta[] = { "n_head", "n_head_kv", "head_dim", "n_ff", "n_ctx_train",
        "n_expert", "n_expert_used", "n_expert_shared", "rms_eps", "rope_theta", "rope_scale" };
    for (size_t i = 0; i < RADI_COUNT(meta); i++)
        if (!strcmp(meta[i], name))
            return true;
    return false;
}

rad_status lab_circuit_parse(struct rad_lab *lab, struct lab_doc *doc, struct rad_err *err)
{
    const cJSON *j = doc->json;
    struct lab_at at = { NULL, doc, NULL, 0 }, in;
    struct lab_circuit *c = radi_arena_alloc(&lab->arena, sizeof(*c));
    struct cp p = { lab, c, err };

    if (!c)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    c->name = doc->name;
    c->doc = doc;
    RAD_TRY(lab_want_object(&at, j, "schema description params checks streams logits prologue "
                            "layers epilogue draft", err));
    RAD_TRY(lab_want_head(&at, j, err));
    in = lab_at_key(&at, "params");
    RAD_TRY(lab_params_parse(lab, &in, radi_json_get(j, "params"), &c->param, &c->n_params, err));
    for (int i = 0; i < c->n_params; i++) {
        struct lab_at el = lab_at_key(&in, c->param[i].name);
        RAD_TRY(use(&p, &el, c->param[i].def));
    }
    in = lab_at_key(&at, "checks");
    RAD_TRY(lab_checks_parse(lab, &in, radi_json_get(j, "checks"), "param", &c->check,
                             &c->n_checks, err));
    for (int i = 0; i < c->n_checks; i++) {
        struct lab_at el = lab_at_index(&in, i);
        RAD_TRY(use(&p, &el, c->check[i].cond));
    }
    in = lab_at_key(&at, "streams");
    RAD_TRY(streams(&p, &in, radi_json_get(j, "streams")));
    in = lab_at_key(&at, "prologue");
    RAD_TRY(refs(&p, &in, radi_json_get(j, "prologue"), &c->prologue));
    in = lab_at_key(&at, "layers");
    RAD_TRY(layers(&p, &in, radi_json_get(j, "layers")));
    in = lab_at_key(&at, "epilogue");
    RAD_TRY(refs(&p, &in, radi_json_get(j, "epilogue"), &c->epilogue));
    in = lab_at_key(&at, "draft");
    RAD_TRY(draft(&p, &in, radi_json_get(j, "draft")));
    RAD_TRY(lab_want_str(&at, j, "logits", false, &c->logits, err));
    bool known = !c->logits;
    in = lab_at_key(&at, "streams");
    for (int i = 0; i < c->n_streams; i++) {
        struct lab_at el = lab_at_key(&in, c->stream[i].name);
        known = known || !strcmp(c->stream[i].name, c->logits);
        if (!c->stream[i].used)
            return lab_at_fail(&el, err, "nothing uses it");
    }
    in = lab_at_key(&at, "logits");
    if (!known)
        return lab_at_fail(&in, err, "no stream '%s'", c->logits);
    in = lab_at_key(&at, "params");
    for (int i = 0; i < c->n_params; i++) {
        struct lab_at el = lab_at_key(&in, c->param[i].name);
        if (!c->param[i].used && !of_meta(c->param[i].name))
            return lab_at_fail(&el, err, "nothing uses it");
    }
    RAD_TRY(face(&p));
    c->next = lab->circuits;
    lab->circuits = c;
    return RAD_OK;
}
