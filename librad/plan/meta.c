/* SPDX-License-Identifier: Apache-2.0 */
/* A container's metadata in the shape that an architecture reads: the typed
 * keys as fields, every row as text in the free-form table. Made on the first
 * ask, in one block that the model owns. */
#include "config.h"

#include <stdio.h>

#include "format/container.h"
#include "plan/plan_priv.h"

#include "banned.h"

static const struct field {
    const char *key;
    size_t at;
    bool real;
} fields[] = {
#define I(f) { #f, offsetof(RadModelMeta, f), false }
#define F(f) { #f, offsetof(RadModelMeta, f), true }
    I(n_layers), I(n_embd), I(n_head), I(n_head_kv), I(head_dim), I(n_ff), I(n_vocab),
    I(n_ctx_train), I(n_expert), I(n_expert_used), I(n_expert_shared),
    F(rms_eps), F(rope_theta), F(rope_scale),
#undef I
#undef F
};

static size_t number_text(const struct rad_meta *r, char *buf, size_t n)
{
    int len = r->type == RAD_META_INT ? snprintf(buf, n, "%lld", (long long)r->v.i)
                                      : snprintf(buf, n, "%.17g", r->v.f);
    return (size_t)len + 1;
}

static RadModelMeta *make(const struct rad_model *m)
{
    size_t n = rad_model_meta_count(m), text = 0, bytes;
    char buf[64];
    for (size_t i = 0; i < n; i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);
        if (r->type != RAD_META_STR)
            text += number_text(r, buf, sizeof buf);
    }
    if (!radi_mul_size(n, 2 * sizeof(char *), &bytes)
        || !radi_add_size(bytes, sizeof(RadModelMeta) + text, &bytes))
        return NULL;
    RadModelMeta *meta = radi_calloc(1, bytes);
    if (!meta)
        return NULL;
    const char **key = (const char **)(meta + 1), **val = key + n;
    char *at = (char *)(val + n);
    const struct rad_model_info *info = rad_model_info(m);
    meta->struct_size = sizeof *meta;
    meta->arch_id = info->arch;
    meta->name = info->name;
    meta->quant = info->quant;
    for (size_t i = 0; i < n; i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);
        key[i] = r->key;
        if (r->type == RAD_META_STR) {
            val[i] = r->v.s;
            continue;
        }
        size_t len = number_text(r, buf, sizeof buf);
        memcpy(at, buf, len);
        val[i] = at;
        at += len;
    }
    meta->n_kv = (int64_t)n;
    meta->kv_key = key;
    meta->kv_val = val;
    for (size_t i = 0; i < RADI_COUNT(fields); i++) {
        void *to = (char *)meta + fields[i].at;
        if (fields[i].real)
            (void)rad_model_meta_f64(m, fields[i].key, to, NULL);
        else
            (void)rad_model_meta_int(m, fields[i].key, to, NULL);
    }
    return meta;
}

const RadModelMeta *rad_model_build_meta(struct rad_model *m)
{
    void *have = atomic_load(&m->build_meta), *none = NULL;
    if (have)
        return have;
    RadModelMeta *meta = make(m);
    if (meta && !atomic_compare_exchange_strong(&m->build_meta, &none, (void *)meta)) {
        radi_free(meta);                         /* another thread was first */
        return none;
    }
    return meta;
}

static const char *find(const RadModelMeta *m, const char *key)
{
    for (int64_t i = 0; i < m->n_kv; i++)
        if (!strcmp(m->kv_key[i], key))
            return m->kv_val[i];
    return NULL;
}

int64_t rad_meta_geti(const RadModelMeta *m, const char *key, int64_t def)
{
    const char *s = find(m, key);
    int64_t v;
    return s && radi_parse_i64(s, &v) ? v : def;
}

double rad_meta_getf(const RadModelMeta *m, const char *key, double def)
{
    const char *s = find(m, key);
    double v;
    return s && radi_parse_f64(s, &v) ? v : def;
}

const char *rad_meta_gets(const RadModelMeta *m, const char *key, const char *def)
{
    const char *s = find(m, key);
    return s ? s : def;
}
