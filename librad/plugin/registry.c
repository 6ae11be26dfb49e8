/* SPDX-License-Identifier: Apache-2.0 */
/* The set of loaded plugins. Owns their lifetime, the order of the kernel
 * hierarchy (named first, then by file name, reference libraries last), and
 * the look-up of architectures by exact (id, quant) and quantisers by name. */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "plugin/plugin.h"

#include "banned.h"

/* A shared object that two sets loaded is one object: it is opened by the
 * first and closed by the last. The lock guards the list and is held while the
 * plugin opens or closes. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened {
    void *dl;
    int users;
    struct opened *next;
} *open_list;

static struct opened **opened_at(void *dl)
{
    struct opened **o = &open_list;
    while (*o && (*o)->dl != dl)
        o = &(*o)->next;
    return o;
}

static int lib_open(struct radi_lib *l)
{
    int rc = RAD_OK;
    pthread_mutex_lock(&open_lock);
    struct opened **at = opened_at(l->dl), *o = l->dl ? *at : NULL;
    if (!o)
        rc = l->x.open ? l->x.open() : RAD_OK;
    if (rc >= 0 && l->dl && !o) {
        o = radi_calloc(1, sizeof *o);
        if (o) {
            o->dl = l->dl;
            *at = o;
        } else {
            if (l->x.close)
                l->x.close();
            rc = RAD_E_NOMEM;
        }
    }
    if (rc >= 0 && o)
        o->users++;
    l->opened = rc >= 0;
    pthread_mutex_unlock(&open_lock);
    return rc;
}

static void lib_close(struct radi_lib *l)
{
    pthread_mutex_lock(&open_lock);
    struct opened **at = opened_at(l->dl), *o = l->dl ? *at : NULL;
    if ((!o || --o->users == 0) && l->x.close)
        l->x.close();
    if (o && !o->users) {
        *at = o->next;
        radi_free(o);
    }
    pthread_mutex_unlock(&open_lock);
}

static void lib_release(struct radi_lib *l)
{
    for (int i = 0; l->pair && i < l->n_pairs; i++) {
        radi_free((char *)(uintptr_t)l->pair[i].arch_id);
        radi_free((char *)(uintptr_t)l->pair[i].quant);
    }
    radi_free(l->pair);
    if (l->opened)
        lib_close(l);
    if (l->dl)
        dlclose(l->dl);
    radi_free(l->path);
    memset(l, 0, sizeof *l);
}

void rad_plugins_close(struct rad_plugins *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_libs; i++)
        lib_release(&p->lib[i]);
    radi_free(p->lib);
    radi_free(p->order);
    radi_free(p->op);
    radi_map_free(p->op_index);
    radi_free(p->home);
    radi_free(p->kernels);
    radi_free(p);
}

rad_status radi_plugins_new(const char *home, const char *kernels, struct rad_plugins **out,
                            struct rad_err *err)
{
    *out = NULL;
    struct rad_plugins *p = radi_calloc(1, sizeof *p);
    if (!p)
        return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
    p->home = radi_strdup(home);
    p->kernels = radi_strdup(kernels ? kernels : "");
    if (!p->home || !p->kernels) {
        rad_plugins_close(p);
        return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
    }
    *out = p;
    return RAD_OK;
}

static const char *or_env(const char *s, const char *env, const char *def)
{
    if (!s)
        s = getenv(env);
    return s && *s ? s : def;
}

rad_status rad_plugins_open(const char *home, const char *kernels, struct rad_plugins **out,
                            struct rad_err *err)
{
    struct rad_plugins *p;
    *out = NULL;
    RAD_TRY(radi_plugins_new(or_env(home, "RADIANCE_HOME", RAD_PKGDATADIR),
                             or_env(kernels, "RADIANCE_KERNELS", ""), &p, err));
    rad_status st = radi_load_home(p, err);
    if (!st)
        st = radi_plugins_settle(p, err);
    if (st) {
        rad_plugins_close(p);
        return st;
    }
    *out = p;
    return RAD_OK;
}

rad_status rad_plugins_add_file(struct rad_plugins *p, const char *path, struct rad_err *err)
{
    struct radi_exports x;
    void *dl;
    RAD_TRY(radi_load_file(path, &x, &dl, err));
    int32_t kind = x.info()->kind;
    if (kind != RAD_PLUGIN_KERNEL) {
        dlclose(dl);
        return rad_fail(err, RAD_E_FORMAT, "'%s': plugin of kind %d, want a kernel library", path,
                        kind);
    }
    RAD_TRY(radi_plugins_add(p, path, &x, dl, err));
    return radi_plugins_settle(p, err);
}

/* ---- adding one */
static rad_status read_pairs(struct rad_plugins *p, struct radi_lib *l, struct rad_err *err)
{
    int n = 1;
    if (l->x.pair_count) {
        if (!l->x.pair_at)
            return rad_fail(err, RAD_E_FORMAT, "no symbol 'rad_arch_pair_at'");
        n = l->x.pair_count(p->home);
        if (n < 0)
            return rad_fail(err, (rad_status)n, "rad_arch_pair_count: %s",
                            rad_strstatus((rad_status)n));
    } else if (!l->x.arch_id) {
        return rad_fail(err, RAD_E_FORMAT, "no symbol 'rad_arch_id' or 'rad_arch_pair_count'");
    }
    l->pair = radi_calloc((size_t)(n ? n : 1), sizeof *l->pair);
    if (!l->pair)
        return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
    l->n_pairs = n;
    for (int i = 0; i < n; i++) {
        RadArchPair one = { 0 };
        if (l->x.pair_count) {
            const RadArchPair *q = l->x.pair_at(p->home, i);
            if (q)
                one = *q;
        } else {
            one = (RadArchPair){ l->x.arch_id(), l->x.arch_quant ? l->x.arch_quant() : "" };
        }
        if (!one.arch_id || !*one.arch_id)
            return rad_fail(err, RAD_E_FORMAT, "pair %d has no architecture id", i);
        l->pair[i] = (RadArchPair){ radi_strdup(one.arch_id),
                                    radi_strdup(one.quant ? one.quant : "") };
        if (!l->pair[i].arch_id || !l->pair[i].quant)
            return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
    }
    return RAD_OK;
}

static const struct radi_lib *claims(const struct rad_plugins *p, const char *id,
                                     const char *quant)
{
    for (size_t i = 0; i < p->n_libs; i++)
        for (int k = 0; k < p->lib[i].n_pairs; k++)
            if (!strcmp(p->lib[i].pair[k].arch_id, id) && !strcmp(p->lib[i].pair[k].quant, quant))
                return &p->lib[i];
    return NULL;
}

static rad_status check_unique(const struct rad_plugins *p, const struct radi_lib *l,
                               struct rad_err *err)
{
    for (size_t i = 0; i < p->n_libs; i++) {
        const struct radi_lib *o = &p->lib[i];
        if (o->info->kind == l->info->kind && !strcmp(o->info->name, l->info->name))
            return rad_fail(err, RAD_E_DUPLICATE, "plugin name '%s' is taken by '%s'",
                            l->info->name, o->path);
    }
    for (int k = 0; k < l->n_pairs; k++) {
        const struct radi_lib *o = claims(p, l->pair[k].arch_id, l->pair[k].quant);
        if (o)
            return rad_fail(err, RAD_E_DUPLICATE,
                            "plugins '%s' and '%s' both claim architecture '%s', quant '%s'",
                            o->info->name, l->info->name, l->pair[k].arch_id, l->pair[k].quant);
    }
    for (int k = 0; k < l->n_quant; k++) {
        const RadQuantizer *q = l->x.quant_at(k);
        if (!q || q->struct_size < sizeof *q || !q->name || !q->encoding || !q->quantize)
            return rad_fail(err, RAD_E_FORMAT, "quantiser %d of '%s' is incomplete", k,
                            l->info->name);
        if (rad_plugins_quant(p, q->name))
            return rad_fail(err, RAD_E_DUPLICATE, "quantiser '%s' of '%s' is defined already",
                            q->name, l->info->name);
    }
    return RAD_OK;
}

rad_status radi_plugins_add(struct rad_plugins *p, const char *path, const struct radi_exports *x,
                            void *dl, struct rad_err *err)
{
    struct radi_lib l = { .dl = dl, .x = *x, .order = -1, .path = radi_strdup(path) };
    rad_status st = RAD_OK;
    if (!l.path) {
        st = rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
        goto out;
    }
    const char *slash = strrchr(l.path, '/');
    l.file = slash ? slash + 1 : l.path;
    l.info = x->info();
    if (!l.info->name || !*l.info->name) {
        st = rad_fail(err, RAD_E_FORMAT, "the plugin has no name");
        goto out;
    }
    int rc = lib_open(&l);
    if (rc == RAD_E_UNSUPPORTED) {
        rad_log(RAD_LOG_INFO, "plugin", "'%s' declines this machine", l.info->name);
        lib_release(&l);
        return RAD_OK;
    }
    if (rc < 0) {
        st = rad_fail(err, (rad_status)rc, "plugin '%s' does not open: %s", l.info->name,
                      rad_strstatus((rad_status)rc));
        goto out;
    }
    if (l.info->kind == RAD_PLUGIN_KERNEL) {
        l.reference = x->reference && x->reference();
        l.n_schemas = x->schema_count();
        l.n_rows = x->row_count();
    } else if (l.info->kind == RAD_PLUGIN_ARCH) {
        st = read_pairs(p, &l, err);
    } else {
        l.n_quant = x->quant_count();
    }
    if (!st)
        st = check_unique(p, &l, err);
    if (!st)
        st = radi_grow((void **)&p->lib, &p->cap_libs, p->n_libs + 1, sizeof *p->lib, err);
    if (!st) {
        p->lib[p->n_libs++] = l;
        return RAD_OK;
    }
out:
    lib_release(&l);
    return rad_fail_in(err, st, "'%s'", path);
}

/* ---- the hierarchy */
static bool named(const struct radi_lib *l, const char *s, size_t n)
{
    size_t f = strlen(l->file);
    if (f > 3 && !strcmp(l->file + f - 3, ".so"))
        f -= 3;
    return (strlen(l->info->name) == n && !memcmp(l->info->name, s, n))
        || (f == n && !memcmp(l->file, s, n));
}

static rad_status append_named(struct rad_plugins *p, bool reference, struct rad_err *err)
{
    for (const char *s = p->kernels; *s;) {
        size_t n = strcspn(s, ",:");
        size_t hit = p->n_libs;
        for (size_t i = 0; n && i < p->n_libs; i++)
            if (p->lib[i].info->kind == RAD_PLUGIN_KERNEL && named(&p->lib[i], s, n))
                hit = i;
        if (n && hit == p->n_libs) {
            char *word = radi_strndup(s, n), buf[160];
            struct radi_suggest sg = { .word = word ? word : "" };
            for (size_t i = 0; i < p->n_libs; i++)
                if (p->lib[i].info->kind == RAD_PLUGIN_KERNEL)
                    radi_suggest_try(&sg, p->lib[i].info->name);
            rad_status st = rad_fail(err, RAD_E_NOTFOUND, "no kernel library '%s' in '%s'%s",
                                     sg.word, p->home, radi_suggest_text(&sg, buf, sizeof buf));
            radi_free(word);
            return st;
        }
        if (n && p->lib[hit].order < 0 && p->lib[hit].reference == reference) {
            p->lib[hit].order = p->n_order;
            p->order[p->n_order++] = (int)hit;
        }
        s += n + (s[n] != 0);
    }
    return RAD_OK;
}

static void append_rest(struct rad_plugins *p, bool reference)
{
    for (;;) {
        int best = -1;
        for (size_t i = 0; i < p->n_libs; i++) {
            const struct radi_lib *l = &p->lib[i];
            if (l->info->kind == RAD_PLUGIN_KERNEL && l->order < 0 && l->reference == reference
                && (best < 0 || strcmp(l->file, p->lib[best].file) < 0))
                best = (int)i;
        }
        if (best < 0)
            return;
        p->lib[best].order = p->n_order;
        p->order[p->n_order++] = best;
    }
}

rad_status radi_plugins_settle(struct rad_plugins *p, struct rad_err *err)
{
    radi_free(p->order);
    p->n_order = 0;
    p->order = radi_calloc(p->n_libs + 1, sizeof *p->order);
    if (!p->order)
        return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
    for (size_t i = 0; i < p->n_libs; i++)
        p->lib[i].order = -1;
    for (int ref = 0; ref < 2; ref++) {
        RAD_TRY(append_named(p, ref, err));
        append_rest(p, ref);
    }
    return radi_schema_settle(p, err);
}

/* ---- look-up */
rad_status radi_plugins_arch(const struct rad_plugins *p, const char *id, const char *quant,
                             const struct radi_lib **out, struct rad_err *err)
{
    *out = claims(p, id, quant);
    if (*out)
        return RAD_OK;
    struct radi_str quants = { 0 };
    char buf[160];
    struct radi_suggest sg = { .word = id };
    for (size_t i = 0; i < p->n_libs; i++)
        for (int k = 0; k < p->lib[i].n_pairs; k++) {
            const RadArchPair *q = &p->lib[i].pair[k];
            radi_suggest_try(&sg, q->arch_id);
            if (!strcmp(q->arch_id, id))
                radi_str_addf(&quants, "%s'%s'", quants.len ? ", " : "", q->quant);
        }
    rad_status st = quants.len
        ? rad_fail(err, RAD_E_NOTFOUND,
                   "no architecture plugin claims '%s' with quant '%s'; claimed are %s", id, quant,
                   quants.s)
        : rad_fail(err, RAD_E_NOTFOUND, "no architecture plugin in '%s' claims '%s'%s", p->home, id,
                   radi_suggest_text(&sg, buf, sizeof buf));
    radi_str_release(&quants);
    return st;
}

const char *rad_plugins_home(const struct rad_plugins *p)
{
    return p->home;
}

int rad_plugins_count(const struct rad_plugins *p)
{
    return (int)p->n_libs;
}

void rad_plugins_at(const struct rad_plugins *p, int i, struct rad_plugin_desc *out)
{
    const struct radi_lib *l = &p->lib[i];
    *out = (struct rad_plugin_desc){ .info = l->info, .path = l->path,
        .is_reference = l->reference, .order = l->order, .n_schemas = l->n_schemas,
        .n_rows = l->n_rows };
}

const RadOpSchema *rad_plugins_schema(const struct rad_plugins *p, int plugin, int i)
{
    const struct radi_lib *l = &p->lib[plugin];
    return i >= 0 && i < l->n_schemas ? l->x.schema_at(i) : NULL;
}

const RadKernelRow *rad_plugins_row(const struct rad_plugins *p, int plugin, int i)
{
    const struct radi_lib *l = &p->lib[plugin];
    return i >= 0 && i < l->n_rows ? l->x.row_at(i) : NULL;
}

int rad_plugins_quant_count(const struct rad_plugins *p)
{
    int n = 0;
    for (size_t i = 0; i < p->n_libs; i++)
        n += p->lib[i].n_quant;
    return n;
}

const RadQuantizer *rad_plugins_quant_at(const struct rad_plugins *p, int i)
{
    for (size_t k = 0; k < p->n_libs; k++) {
        if (i < p->lib[k].n_quant)
            return p->lib[k].x.quant_at(i);
        i -= p->lib[k].n_quant;
    }
    return NULL;
}

const RadQuantizer *rad_plugins_quant(const struct rad_plugins *p, const char *name)
{
    for (int i = 0, n = rad_plugins_quant_count(p); i < n; i++) {
        const RadQuantizer *q = rad_plugins_quant_at(p, i);
        if (!strcmp(q->name, name))
            return q;
    }
    return NULL;
}
