/* SPDX-License-Identifier: Apache-2.0 */
/* Owns checking a map against its circuit: every name means something, every
 * definition is used, everything the circuit asks for is given and every
 * weight of its blocks has a place in the checkpoint. */
#include "config.h"

#include "lab/lab.h"

#include "banned.h"

struct lp {
    struct lab_cmap *m;
    struct lab_at at;            /* of the expression under way */
    const struct lab_ex *e;
    bool names_ok;               /* entries may be named, not only keys */
    bool saw_name, per_layer;
};

static struct lab_key *find_key(struct lab_cmap *m, const char *path)
{
    for (int i = 0; i < m->n_keys; i++)
        if (!strcmp(m->key[i].path, path))
            return &m->key[i];
    return NULL;
}

static struct lab_entry *find_entry(struct lab_cmap *m, const char *name)
{
    for (int i = 0; i < m->n_entries; i++)
        if (!strcmp(m->entry[i].name, name))
            return &m->entry[i];
    return NULL;
}

static rad_status name(void *user, bool key, const char *s, struct rad_err *err)
{
    struct lp *p = user;
    if (key) {
        struct lab_key *k = find_key(p->m, s);
        if (!k || k->verdict != LAB_TYPED)
            return lab_at_fail(&p->at, err, "'%.200s': the map has no typed key '%s'",
                               lab_ex_text(p->e), s);
        k->used = true;
        return RAD_OK;
    }
    p->saw_name = true;
    if (!strcmp(s, "i") && p->names_ok) {
        p->per_layer = true;
        return RAD_OK;
    }
    struct lab_entry *e = p->names_ok ? find_entry(p->m, s) : NULL;
    if (!e)
        return lab_at_fail(&p->at, err, "'%.200s': no entry '%s' of point or let",
                           lab_ex_text(p->e), s);
    e->used = true;
    p->per_layer = p->per_layer || e->per_layer;
    return RAD_OK;
}

static rad_status names(struct lp *p, const struct lab_at *at, const struct lab_ex *e,
                        struct rad_err *err)
{
    p->at = *at;
    p->e = e;
    p->saw_name = p->per_layer = false;
    return e ? lab_ex_names(e, name, p, err) : RAD_OK;
}

static rad_status link_keys(struct lp *p, struct rad_err *err)
{
    p->names_ok = false;
    for (int i = 0; i < p->m->n_keys; i++) {
        struct lab_key *k = &p->m->key[i];
        struct lab_at root = { NULL, k->owner, NULL, 0 }, s = lab_at_key(&root, "keys"),
                      at = lab_at_key(&s, k->path);
        RAD_TRY(names(p, &at, k->len, err));
    }
    return RAD_OK;
}

static rad_status link_checks(struct lp *p, struct rad_err *err)
{
    p->names_ok = true;
    for (int i = 0; i < p->m->n_checks; i++) {
        struct lab_check *c = &p->m->check[i];
        struct lab_at root = { NULL, c->doc, NULL, 0 }, s = lab_at_key(&root, "checks"),
                      at = lab_at_index(&s, c->index);
        RAD_TRY(names(p, &at, c->cond, err));
        c->keys_only = !p->saw_name;
        for (int k = 0; k < c->n_keys; k++)
            if (!find_key(p->m, c->key[k]))
                return lab_at_fail(&at, err, "the map has no key '%s'", c->key[k]);
    }
    return RAD_OK;
}

static rad_status link_entries(struct lp *p, struct rad_err *err)
{
    struct lab_cmap *m = p->m;
    bool more = true;

    p->names_ok = true;
    /* until nothing more turns out to be per layer; a round adds one at least */
    for (int round = 0; more && round <= m->n_entries; round++) {
        more = false;
        for (int i = 0; i < m->n_entries; i++) {
            struct lab_entry *e = &m->entry[i];
            struct lab_at root = { NULL, e->owner, NULL, 0 },
                          s = lab_at_key(&root, e->let ? "let" : "point"),
                          at = lab_at_key(&s, e->name);
            RAD_TRY(names(p, &at, e->val, err));
            more = more || p->per_layer != e->per_layer;
            e->per_layer = p->per_layer;
        }
    }
    for (int i = 0; i < m->n_entries; i++) {
        struct lab_entry *e = &m->entry[i];
        struct lab_at root = { NULL, e->owner, NULL, 0 },
                      s = lab_at_key(&root, e->let ? "let" : "point"),
                      at = lab_at_key(&s, e->name);
        for (int k = 0; k < m->circuit->n_face && !e->let; k++)
            if (!strcmp(m->circuit->face[k]->name, e->name))
                e->param = m->circuit->face[k];
        if (!e->let && !e->param)
            return lab_at_fail(&at, err, "no parameter of circuit '%s' or of its blocks",
                               m->circuit->name);
        if (!strcmp(e->name, "n_layers") && e->per_layer)
            return lab_at_fail(&at, err, "may not depend on the layer");
        if (e->let && !strcmp(e->name, "quant"))
            e->used = true;
    }
    return RAD_OK;
}

static rad_status face_given(struct lp *p, struct rad_err *err)
{
    struct lab_at root = { NULL, p->m->doc, NULL, 0 }, at = lab_at_key(&root, "point");
    const struct lab_circuit *c = p->m->circuit;
    for (int i = 0; i < c->n_face; i++) {
        const struct lab_entry *e = find_entry(p->m, c->face[i]->name);
        if (!c->face[i]->def && (!e || e->let))
            return lab_at_fail(&at, err, "parameter '%s' of '%s' is not given", c->face[i]->name,
                               c->face[i]->doc->path);
    }
    const struct lab_entry *n = find_entry(p->m, "n_layers");
    return n && !n->let ? RAD_OK : lab_at_fail(&at, err, "parameter 'n_layers' is not given");
}

/* ---- bindings */
const char *lab_base_suffix(const char *s)
{
    size_t n = strlen(s);
    if (n > 7 && !strcmp(s + n - 7, ".weight"))
        return s + n - 7;
    if (n > 5 && !strcmp(s + n - 5, ".bias"))
        return s + n - 5;
    return NULL;
}

/* By full name, then without .weight and .bias, then "*". */
const struct lab_binding *lab_binding_find(const struct lab_cmap *m, const char *s)
{
    const char *suffix = lab_base_suffix(s);
    const struct lab_binding *base = NULL, *any = NULL;

    for (int i = 0; i < m->n_bindings; i++) {
        const struct lab_binding *b = &m->binding[i];
        if (!strcmp(b->name, s))
            return b;
        if (suffix && strlen(b->name) == (size_t)(suffix - s) &&
            !strncmp(b->name, s, (size_t)(suffix - s)))
            base = b;
        if (!strcmp(b->name, "*"))
            any = b;
    }
    return base ? base : any;
}

static rad_status block_bound(struct lp *p, const struct lab_block *b, bool *hit,
                              struct rad_err *err)
{
    struct lab_at root = { NULL, p->m->doc, NULL, 0 }, at = lab_at_key(&root, "tensors");
    for (int i = 0; i < b->n_weights; i++) {
        const struct lab_binding *f = lab_binding_find(p->m, b->weight[i].name);
        if (!f)
            return lab_at_fail(&at, err, "weight '%s' of '%s' is not bound", b->weight[i].name,
                               b->doc->path);
        bool may_lack = b->weight[i].optional || b->weight[i].fallback >= 0;
        for (int k = 0; k < f->n_sources && !may_lack; k++)
            if (f->source[k].mode < 0 || f->source[k].optional)
                return lab_at_fail(&at, err, "weight '%s' of '%s' is not optional",
                                   b->weight[i].name, b->doc->path);
        hit[f - p->m->binding] = true;
    }
    return RAD_OK;
}

static rad_status refs_bound(struct lp *p, const struct lab_refs *r, bool *hit,
                             struct rad_err *err)
{
    for (int i = 0; i < r->n; i++)
        RAD_TRY(block_bound(p, r->ref[i].block, hit, err));
    return RAD_OK;
}

static rad_status link_bindings(struct rad_lab *lab, struct lp *p, struct rad_err *err)
{
    struct lab_cmap *m = p->m;
    const struct lab_circuit *c = m->circuit;
    bool *hit = radi_arena_array(&lab->arena, (size_t)m->n_bindings + 1, sizeof(*hit));

    if (!hit)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    RAD_TRY(refs_bound(p, &c->prologue, hit, err));
    for (int i = 0; i < c->n_kinds; i++)
        RAD_TRY(refs_bound(p, &c->layer[i].refs, hit, err));
    RAD_TRY(refs_bound(p, &c->epilogue, hit, err));
    RAD_TRY(refs_bound(p, &c->draft, hit, err));
    p->names_ok = true;
    for (int i = 0; i < m->n_bindings; i++) {
        struct lab_binding *b = &m->binding[i];
        struct lab_at root = { NULL, b->owner, NULL, 0 }, s = lab_at_key(&root, "tensors"),
                      at = lab_at_key(&s, b->name);
        if (!hit[i] && b->owner == m->doc)
            return lab_at_fail(&at, err, "no block of circuit '%s' has such a weight", c->name);
        for (int k = 0; k < b->n_sources; k++) {
            RAD_TRY(names(p, &at, b->source[k].when, err));
            RAD_TRY(names(p, &at, b->source[k].first, err));
            RAD_TRY(names(p, &at, b->source[k].count, err));
            RAD_TRY(names(p, &at, b->source[k].every, err));
            RAD_TRY(names(p, &at, b->source[k].index, err));
        }
        if (b->source[b->n_sources - 1].when)
            return lab_at_fail(&at, err, "the last alternative may have no 'when'");
    }
    return RAD_OK;
}

/* Typed keys that nothing reads or constrains, and names that nothing reads. */
static rad_status all_used(struct lp *p, struct rad_err *err)
{
    for (int i = 0; i < p->m->n_keys; i++) {
        const struct lab_key *k = &p->m->key[i];
        struct lab_at root = { NULL, k->owner, NULL, 0 }, s = lab_at_key(&root, "keys"),
                      at = lab_at_key(&s, k->path);
        if (k->verdict == LAB_TYPED && !k->object && !k->used)
            return lab_at_fail(&at, err, "nothing reads it");
    }
    for (int i = 0; i < p->m->n_entries; i++) {
        const struct lab_entry *e = &p->m->entry[i];
        struct lab_at root = { NULL, e->owner, NULL, 0 }, s = lab_at_key(&root, "let"),
                      at = lab_at_key(&s, e->name);
        if (e->let && !e->used)
            return lab_at_fail(&at, err, "nothing reads it");
    }
    return RAD_OK;
}

rad_status lab_map_link(struct rad_lab *lab, struct lab_cmap *m, struct rad_err *err)
{
    struct lp p = { .m = m };
    RAD_TRY(link_keys(&p, err));
    RAD_TRY(link_checks(&p, err));
    RAD_TRY(link_entries(&p, err));
    RAD_TRY(face_given(&p, err));
    RAD_TRY(link_bindings(lab, &p, err));
    return all_used(&p, err);
}
