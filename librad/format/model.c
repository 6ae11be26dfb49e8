/* SPDX-License-Identifier: Apache-2.0 */
/* What an open model hands out. Reading and validating it is
 * container_read.c's; digests are integrity.c's. */
#include "format/container.h"
#include "banned.h"

struct rad_model *rad_model_ref(struct rad_model *m)
{
    atomic_fetch_add(&m->refs, 1);
    return m;
}

void rad_model_unref(struct rad_model *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    radi_free(m->meta);
    radi_map_free(m->meta_index);
    radi_free(m->enc);
    radi_free(m->plane);
    radi_free(m->weight);
    radi_map_free(m->weight_index);
    radi_free(m->group);
    radi_free(m->profile);
    radi_free(atomic_load(&m->build_meta));
    if (m->map.data)
        radi_filemap_close(&m->map);
    radi_free(m->copy);
    radi_free(m->path);
    radi_free(m);
}

bool rad_model_is_container(const char *path, const void *head, size_t n)
{
    const uint32_t magic = RADI_RAD_MAGIC;
    size_t len = path ? strlen(path) : 0;

    if (n >= sizeof magic && head && memcmp(head, &magic, sizeof magic) == 0)
        return true;
    return len >= 4 && strcmp(path + len - 4, ".rad") == 0;
}

const struct rad_model_info *rad_model_info(const struct rad_model *m)
{
    return &m->info;
}

const char *rad_model_path(const struct rad_model *m)
{
    return m->path;
}

/* ---- metadata */

size_t rad_model_meta_count(const struct rad_model *m)
{
    return (size_t)m->head.meta_count;
}

const struct rad_meta *rad_model_meta_at(const struct rad_model *m, size_t i)
{
    return i < m->head.meta_count ? &m->meta[i] : NULL;
}

const struct rad_meta *rad_model_meta(const struct rad_model *m, const char *key)
{
    uint64_t i;

    return radi_map_get(m->meta_index, key, strlen(key), &i) ? &m->meta[i] : NULL;
}

static const char *type_name(uint32_t type)
{
    return type == RAD_META_INT ? "an integer" : type == RAD_META_F64 ? "a double" : "a string";
}

static rad_status want(const struct rad_model *m, const char *key, uint32_t type,
                       const struct rad_meta **out, struct rad_err *err)
{
    *out = rad_model_meta(m, key);
    if (!*out)
        return rad_fail(err, RAD_E_NOTFOUND, "metadata '%s': not there", key);
    if ((*out)->type != type && !(type == RAD_META_F64 && (*out)->type == RAD_META_INT))
        return rad_fail(err, RAD_E_FORMAT, "metadata '%s': %s, want %s", key,
                        type_name((*out)->type), type_name(type));
    return RAD_OK;
}

rad_status rad_model_meta_int(const struct rad_model *m, const char *key, int64_t *out,
                              struct rad_err *err)
{
    const struct rad_meta *r;

    RAD_TRY(want(m, key, RAD_META_INT, &r, err));
    *out = r->v.i;
    return RAD_OK;
}

rad_status rad_model_meta_f64(const struct rad_model *m, const char *key, double *out,
                              struct rad_err *err)
{
    const struct rad_meta *r;

    RAD_TRY(want(m, key, RAD_META_F64, &r, err));
    *out = r->type == RAD_META_INT ? (double)r->v.i : r->v.f;
    return RAD_OK;
}

rad_status rad_model_meta_str(const struct rad_model *m, const char *key, const char **out,
                              struct rad_err *err)
{
    const struct rad_meta *r;

    RAD_TRY(want(m, key, RAD_META_STR, &r, err));
    *out = r->v.s;
    return RAD_OK;
}

/* ---- weights */

size_t rad_model_weight_count(const struct rad_model *m)
{
    return (size_t)m->head.dir_count;
}

const struct rad_weight *rad_model_weight_at(const struct rad_model *m, size_t i)
{
    return i < m->head.dir_count ? &m->weight[i] : NULL;
}

const struct rad_weight *rad_model_weight(const struct rad_model *m, const char *name)
{
    uint64_t i;

    return radi_map_get(m->weight_index, name, strlen(name), &i) ? &m->weight[i] : NULL;
}

rad_status rad_weight_decode(const struct rad_weight *w, uint64_t r0, uint64_t n, float *out,
                             size_t pitch, struct rad_err *err)
{
    const void *plane[RAD_MAX_PLANES] = { 0 };
    rad_status st;

    for (uint32_t i = 0; i < w->n_planes && i < RAD_MAX_PLANES; i++)
        plane[i] = w->plane[i].data;
    st = rad_decode_rows(w->enc, plane, w->rows, w->cols, r0, n, out, pitch, err);
    return st ? rad_fail_in(err, st, "weight '%s'", w->name) : RAD_OK;
}

size_t rad_model_encoding_count(const struct rad_model *m)
{
    return (size_t)m->head.enc_count;
}

const RadEncoding *rad_model_encoding_at(const struct rad_model *m, size_t i)
{
    return i < m->head.enc_count ? &m->enc[i] : NULL;
}

size_t rad_model_group_count(const struct rad_model *m)
{
    return m->n_groups;
}

const struct rad_expert_group *rad_model_group_at(const struct rad_model *m, size_t i)
{
    return i < m->n_groups ? &m->group[i] : NULL;
}

/* ---- the other sections */

void rad_model_vocab(const struct rad_model *m, const void **bytes, size_t *len)
{
    *len = (size_t)m->head.vocab_bytes;
    *bytes = *len ? m->data + m->head.vocab_off : NULL;
}

const char *rad_model_string(const struct rad_model *m, uint64_t offset)
{
    return offset < m->head.str_bytes ? m->strings + offset : NULL;
}

const struct rad_profile_row *rad_model_profile(const struct rad_model *m, size_t *n)
{
    *n = (size_t)m->head.prof_count;
    return m->profile;
}

void rad_model_certificate(const struct rad_model *m, const void **bytes, size_t *len)
{
    *len = (size_t)m->head.cert_bytes;
    *bytes = *len ? m->data + m->head.cert_off : NULL;
}

const struct rad_integrity *rad_model_integrity(const struct rad_model *m)
{
    return m->has_integrity ? &m->integrity : NULL;
}
