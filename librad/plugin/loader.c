/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects to function tables. Owns dlopen, the ABI check, which exports
 * a kind needs, and the walk over the search path. A plugin of another ABI
 * version is refused before anything else of it is called. */
#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "plugin/plugin.h"

#include "banned.h"

enum { NEED_ALL = 8 };
static const struct export {
    const char *name;
    size_t at;
    int kind;                    /* RadPluginKind, or NEED_ALL */
    int required;
} exports[] = {
#define X(sym, field, kind, req) { sym, offsetof(struct radi_exports, field), kind, req }
    X("rad_plugin_open", open, NEED_ALL, 0),
    X("rad_plugin_close", close, NEED_ALL, 0),
    X("rad_kernel_schema_count", schema_count, RAD_PLUGIN_KERNEL, 1),
    X("rad_kernel_schema_at", schema_at, RAD_PLUGIN_KERNEL, 1),
    X("rad_kernel_count", row_count, RAD_PLUGIN_KERNEL, 1),
    X("rad_kernel_at", row_at, RAD_PLUGIN_KERNEL, 1),
    X("rad_kernel_concurrent", concurrent, RAD_PLUGIN_KERNEL, 0),
    X("rad_plugin_reference", reference, RAD_PLUGIN_KERNEL, 0),
    X("rad_arch_id", arch_id, RAD_PLUGIN_ARCH, 0),
    X("rad_arch_quant", arch_quant, RAD_PLUGIN_ARCH, 0),
    X("rad_arch_pair_count", pair_count, RAD_PLUGIN_ARCH, 0),
    X("rad_arch_pair_at", pair_at, RAD_PLUGIN_ARCH, 0),
    X("rad_arch_probe", probe, RAD_PLUGIN_ARCH, 0),
    X("rad_arch_declare", declare, RAD_PLUGIN_ARCH, 1),
    X("rad_arch_step", step, RAD_PLUGIN_ARCH, 1),
    X("rad_quant_count", quant_count, RAD_PLUGIN_QUANT, 1),
    X("rad_quant_at", quant_at, RAD_PLUGIN_QUANT, 1),
#undef X
};
/* Exports of the ABI that no part of the core calls yet. */
static const char *const unserved[] = {
    "rad_arch_text_prepare", "rad_arch_video_positions", "rad_arch_video_pack",
    "rad_arch_encode_geom", "rad_arch_chat_format", "rad_arch_audio_format",
};

/* A pair is matched as it is written; no import is handed to another's plugin,
 * so only the answer "no" is honoured. */
static bool serves_imports(void *dl)
{
    void *sym = dlsym(dl, "rad_arch_serves_imports");
    int (*ask)(void);
    memcpy(&ask, &sym, sizeof ask);
    return ask && ask();
}

static void put_symbol(struct radi_exports *x, size_t at, void *sym)
{
    memcpy((char *)x + at, &sym, sizeof sym);
}

static rad_status fill(void *dl, struct radi_exports *x, struct rad_err *err)
{
    memset(x, 0, sizeof *x);
    put_symbol(x, offsetof(struct radi_exports, abi_version), dlsym(dl, "rad_plugin_abi_version"));
    put_symbol(x, offsetof(struct radi_exports, info), dlsym(dl, "rad_plugin_info"));
    if (!x->abi_version || !x->info)
        return rad_fail(err, RAD_E_FORMAT, "not a plugin: no symbol '%s'",
                        x->abi_version ? "rad_plugin_info" : "rad_plugin_abi_version");
    uint32_t v = x->abi_version();
    if (v != RAD_ABI_VERSION)
        return rad_fail(err, RAD_E_ABI, "plugin ABI %u, want %u", v, (unsigned)RAD_ABI_VERSION);
    const RadPluginInfo *info = x->info();
    if (!info || info->struct_size < sizeof *info)
        return rad_fail(err, RAD_E_ABI, "rad_plugin_info: %u bytes, want %zu",
                        info ? info->struct_size : 0, sizeof *info);
    if (info->kind < RAD_PLUGIN_KERNEL || info->kind > RAD_PLUGIN_QUANT)
        return rad_fail(err, RAD_E_FORMAT, "plugin kind %d, want 1 to 3", info->kind);
    for (size_t i = 0; i < RADI_COUNT(exports); i++) {
        const struct export *e = &exports[i];
        if (e->kind != NEED_ALL && e->kind != info->kind)
            continue;
        void *sym = dlsym(dl, e->name);
        if (!sym && e->required)
            return rad_fail(err, RAD_E_FORMAT, "plugin '%s' does not export '%s'", info->name,
                            e->name);
        put_symbol(x, e->at, sym);
    }
    if (info->kind == RAD_PLUGIN_ARCH)
        for (size_t i = 0; i < RADI_COUNT(unserved); i++)
            if (dlsym(dl, unserved[i]))
                return rad_fail(err, RAD_E_UNSUPPORTED,
                                "plugin '%s' exports '%s', which is not served", info->name,
                                unserved[i]);
    if (info->kind == RAD_PLUGIN_ARCH && serves_imports(dl))
        return rad_fail(err, RAD_E_UNSUPPORTED, "plugin '%s': rad_arch_serves_imports: imported "
                        "quantisations are not served", info->name);
    return RAD_OK;
}

rad_status radi_load_file(const char *path, struct radi_exports *x, void **dl, struct rad_err *err)
{
    *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*dl) {
        const char *why = dlerror();
        return rad_fail(err, RAD_E_IO, "'%s': cannot be loaded: %s", path, why ? why : "unknown");
    }
    rad_status st = fill(*dl, x, err);
    if (st) {
        dlclose(*dl);
        *dl = NULL;
        return rad_fail_in(err, st, "'%s'", path);
    }
    return RAD_OK;
}

/* ---- the search path */
struct found {
    char *file, *path;
};
struct finds {
    struct found *v;
    size_t n, cap;
};

static void finds_release(struct finds *f)
{
    for (size_t i = 0; i < f->n; i++) {
        radi_free(f->v[i].file);
        radi_free(f->v[i].path);
    }
    radi_free(f->v);
}

static rad_status scan(struct finds *f, const char *home, size_t n, const char *sub,
                       struct rad_err *err)
{
    struct radi_str dir = { 0 };
    radi_str_add(&dir, home, n);
    radi_str_addf(&dir, "/%s", sub);
    if (dir.failed) {
        radi_str_release(&dir);
        return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
    }
    rad_status st = RAD_OK;
    DIR *d = opendir(dir.s);
    if (!d && errno != ENOENT)
        st = rad_fail_errno(err, "'%s'", dir.s);
    for (struct dirent *e; d && !st && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len < 4 || e->d_name[0] == '.' || strcmp(e->d_name + len - 3, ".so"))
            continue;
        bool known = false;
        for (size_t i = 0; i < f->n && !known; i++)
            known = !strcmp(f->v[i].file, e->d_name);
        if (known)                                /* an earlier home has it */
            continue;
        st = radi_grow((void **)&f->v, &f->cap, f->n + 1, sizeof *f->v, err);
        if (st)
            break;
        struct radi_str path = { 0 };
        radi_str_addf(&path, "%s/%s", dir.s, e->d_name);
        f->v[f->n] = (struct found){ radi_strdup(e->d_name), radi_str_take(&path) };
        if (!f->v[f->n].file || !f->v[f->n].path)
            st = rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
        f->n++;
    }
    if (d)
        closedir(d);
    radi_str_release(&dir);
    return st;
}

static int by_file(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->file, ((const struct found *)b)->file);
}

static rad_status load_kind(struct rad_plugins *p, const char *sub, RadPluginKind kind,
                            struct rad_err *err)
{
    struct finds f = { 0 };
    rad_status st = RAD_OK;
    for (const char *s = p->home; *s && !st;) {
        size_t n = strcspn(s, ":");
        if (n)
            st = scan(&f, s, n, sub, err);
        s += n + (s[n] == ':');
    }
    if (f.n)
        qsort(f.v, f.n, sizeof *f.v, by_file);
    for (size_t i = 0; i < f.n && !st; i++) {
        struct radi_exports x;
        void *dl;
        st = radi_load_file(f.v[i].path, &x, &dl, err);
        if (st)
            break;
        if (x.info()->kind != (int32_t)kind) {
            st = rad_fail(err, RAD_E_FORMAT, "'%s': plugin of kind %d, want %d in '%s'",
                          f.v[i].path, x.info()->kind, (int)kind, sub);
            dlclose(dl);
            break;
        }
        st = radi_plugins_add(p, f.v[i].path, &x, dl, err);
    }
    finds_release(&f);
    return st;
}

static rad_status homes_exist(const char *home, struct rad_err *err)
{
    for (const char *s = home; *s;) {
        size_t n = strcspn(s, ":");
        if (n) {
            char *one = radi_strndup(s, n);
            struct stat sb;
            if (!one)
                return rad_fail(err, RAD_E_NOMEM, "plugins: out of memory");
            int bad = stat(one, &sb);
            rad_status st = bad ? rad_fail_errno(err, "plugin home '%s'", one)
                : S_ISDIR(sb.st_mode) ? RAD_OK
                : rad_fail(err, RAD_E_IO, "plugin home '%s': not a directory", one);
            radi_free(one);
            if (st)
                return st;
        }
        s += n + (s[n] == ':');
    }
    return RAD_OK;
}

rad_status radi_load_home(struct rad_plugins *p, struct rad_err *err)
{
    RAD_TRY(homes_exist(p->home, err));
    RAD_TRY(load_kind(p, "kernels", RAD_PLUGIN_KERNEL, err));
    RAD_TRY(load_kind(p, "architectures", RAD_PLUGIN_ARCH, err));
    return load_kind(p, "quantizers", RAD_PLUGIN_QUANT, err);
}
