/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a container and checks every rule of its §12 before anything of it is
 * used. Rules between records are container_check.c's; getters model.c's.
 *
 * Spans are compared by subtraction and products by overflow checks, so no
 * number in a file can make a sum wrap. The message names the field. */
#include <stdio.h>

#include "format/container.h"
#include "banned.h"

static rad_status bad_span(struct rad_err *err, const char *what, uint64_t off, uint64_t n,
                           uint64_t size)
{
    return rad_fail(err, RAD_E_FORMAT, "%s: %llu bytes at %llu lie outside the file of %llu"
                    " bytes", what, (unsigned long long)n, (unsigned long long)off,
                    (unsigned long long)size);
}

static rad_status span(const struct rad_model *m, const char *what, uint64_t off,
                       uint64_t count, uint64_t item, struct rad_section *out, bool records,
                       struct rad_err *err)
{
    uint64_t bytes;

    if (!radi_mul_u64(count, item, &bytes))
        return rad_fail(err, RAD_E_FORMAT, "%s: count %llu overflows", what,
                        (unsigned long long)count);
    if (!radi_span_ok(off, bytes, m->head.file_bytes))
        return bad_span(err, what, off, bytes, m->head.file_bytes);
    if (bytes && records && off % RADI_RAD_TABLE)
        return rad_fail(err, RAD_E_FORMAT, "%s: offset %llu, want a multiple of %d", what,
                        (unsigned long long)off, RADI_RAD_TABLE);
    out->offset = off;
    out->bytes = bytes;
    out->count = records ? count : 0;
    return RAD_OK;
}

static rad_status read_header(struct rad_model *m, struct rad_err *err)
{
    struct radi_rad_header *h = &m->head;
    struct rad_model_info *f = &m->info;

    if (m->real_size < sizeof *h)
        return rad_fail(err, RAD_E_FORMAT, "header: %llu bytes, want at least %zu",
                        (unsigned long long)m->real_size, sizeof *h);
    memcpy(h, m->data, sizeof *h);
    if (h->magic != RADI_RAD_MAGIC)
        return rad_fail(err, RAD_E_FORMAT, "magic: 0x%08x, want 0x%08x (not a container)",
                        h->magic, RADI_RAD_MAGIC);
    if (h->version != RADI_RAD_VERSION)
        return rad_fail(err, RAD_E_FORMAT, "version: %u, want %d; convert the model again",
                        h->version, RADI_RAD_VERSION);
    if (h->file_bytes > m->real_size)
        return rad_fail(err, RAD_E_FORMAT, "file_bytes: %llu, but the file has %llu (cut"
                        " short?)", (unsigned long long)h->file_bytes,
                        (unsigned long long)m->real_size);
    if (h->file_bytes < sizeof *h)
        return rad_fail(err, RAD_E_FORMAT, "file_bytes: %llu, want at least %zu",
                        (unsigned long long)h->file_bytes, sizeof *h);
    for (size_t i = 0; i < RADI_COUNT(h->reserved); i++)
        if (h->reserved[i])
            return rad_fail(err, RAD_E_FORMAT, "reserved[%zu]: 0x%llx, want 0", i + 4,
                            (unsigned long long)h->reserved[i]);

    f->size = sizeof *f;
    f->version = h->version;
    f->file_bytes = h->file_bytes;
    RAD_TRY(span(m, "strings", h->str_off, h->str_bytes, 1, &f->strings, false, err));
    RAD_TRY(span(m, "metadata", h->meta_off, h->meta_count, sizeof(struct radi_rad_meta),
                 &f->meta, true, err));
    RAD_TRY(span(m, "directory", h->dir_off, h->dir_count, sizeof(struct radi_rad_entry),
                 &f->dir, true, err));
    RAD_TRY(span(m, "planes", h->plane_off, h->plane_count, sizeof(struct radi_rad_plane),
                 &f->planes, true, err));
    RAD_TRY(span(m, "encodings", h->enc_off, h->enc_count, sizeof(RadEncoding),
                 &f->encodings, true, err));
    RAD_TRY(span(m, "vocab", h->vocab_off, h->vocab_bytes, 1, &f->vocab, false, err));
    RAD_TRY(span(m, "profile", h->prof_off, h->prof_count, sizeof(struct rad_profile_row),
                 &f->profile, true, err));
    RAD_TRY(span(m, "data", h->data_off, h->data_bytes, 1, &f->data, false, err));
    RAD_TRY(span(m, "integrity", h->integrity_off, h->integrity_bytes, 1, &f->integrity,
                 false, err));
    RAD_TRY(span(m, "certificate", h->cert_off, h->cert_bytes, 1, &f->certificate, false,
                 err));
    if (h->data_off % RADI_RAD_POOL)
        return rad_fail(err, RAD_E_FORMAT, "data_off: %llu, want a multiple of %d",
                        (unsigned long long)h->data_off, RADI_RAD_POOL);
    if (!h->integrity_off != !h->integrity_bytes || h->integrity_off % RADI_RAD_TABLE)
        return rad_fail(err, RAD_E_FORMAT, "integrity: %llu bytes at %llu, want both 0 or a"
                        " multiple of %d", (unsigned long long)h->integrity_bytes,
                        (unsigned long long)h->integrity_off, RADI_RAD_TABLE);
    if (!h->cert_off != !h->cert_bytes || h->cert_off % RADI_RAD_TABLE)
        return rad_fail(err, RAD_E_FORMAT, "certificate: %llu bytes at %llu, want both 0 or a"
                        " multiple of %d", (unsigned long long)h->cert_bytes,
                        (unsigned long long)h->cert_off, RADI_RAD_TABLE);
    return RAD_OK;
}

/* A string by its offset; `what` names the field that holds it. */
static rad_status string_at(const struct rad_model *m, uint64_t off, const char *what,
                            const char **out, struct rad_err *err)
{
    if (off >= m->head.str_bytes)
        return rad_fail(err, RAD_E_FORMAT, "%s: string offset %llu outside the %llu bytes of"
                        " strings", what, (unsigned long long)off,
                        (unsigned long long)m->head.str_bytes);
    *out = m->strings + off;
    return RAD_OK;
}

static rad_status read_strings(struct rad_model *m, struct rad_err *err)
{
    const struct radi_rad_header *h = &m->head;
    struct rad_model_info *f = &m->info;

    m->strings = (const char *)m->data + h->str_off;
    if (!h->str_bytes)
        return rad_fail(err, RAD_E_FORMAT, "str_bytes: 0, want at least 1");
    if (m->strings[h->str_bytes - 1])
        return rad_fail(err, RAD_E_FORMAT, "strings: the last byte is 0x%02x, want 0",
                        (unsigned char)m->strings[h->str_bytes - 1]);
    RAD_TRY(string_at(m, h->arch, "arch_id", &f->arch, err));
    RAD_TRY(string_at(m, h->name, "model_name", &f->name, err));
    RAD_TRY(string_at(m, h->quant, "quant", &f->quant, err));
    RAD_TRY(string_at(m, h->recipe, "recipe", &f->recipe, err));
    return string_at(m, h->created_by, "created_by", &f->created_by, err);
}

static rad_status alloc_table(uint64_t n, size_t item, void **out, struct rad_err *err)
{
    *out = n > SIZE_MAX ? NULL : radi_calloc((size_t)n + 1, item);
    if (!*out)
        return rad_fail(err, RAD_E_NOMEM, "%llu records of %zu bytes", (unsigned long long)n,
                        item);
    return RAD_OK;
}

static rad_status read_meta(struct rad_model *m, struct rad_err *err)
{
    const uint8_t *p = m->data + m->head.meta_off;
    char what[64];

    RAD_TRY(alloc_table(m->head.meta_count, sizeof *m->meta, (void **)&m->meta, err));
    m->meta_index = radi_map_new((size_t)m->head.meta_count);
    if (!m->meta_index)
        return rad_fail(err, RAD_E_NOMEM, "metadata index");
    for (uint64_t i = 0; i < m->head.meta_count; i++, p += sizeof(struct radi_rad_meta)) {
        struct rad_meta *o = &m->meta[i];
        struct radi_rad_meta r;
        bool existed;

        memcpy(&r, p, sizeof r);
        (void)snprintf(what, sizeof what, "metadata %llu: key", (unsigned long long)i);
        RAD_TRY(string_at(m, r.key, what, &o->key, err));
        o->size = sizeof *o;
        o->type = r.type;
        switch (r.type) {
        case RAD_META_INT: o->v.i = r.v.i; break;
        case RAD_META_F64: o->v.f = r.v.f; break;
        case RAD_META_STR:
            (void)snprintf(what, sizeof what, "metadata '%.32s'", o->key);
            RAD_TRY(string_at(m, r.v.s, what, &o->v.s, err));
            break;
        default:
            return rad_fail(err, RAD_E_FORMAT, "metadata '%s': type %u, want 1, 2 or 100",
                            o->key, r.type);
        }
        if (r.pad)
            return rad_fail(err, RAD_E_FORMAT, "metadata '%s': padding 0x%x, want 0", o->key,
                            r.pad);
        if (!radi_map_put(m->meta_index, o->key, strlen(o->key), i, &existed))
            return rad_fail(err, RAD_E_NOMEM, "metadata index");
    }
    return RAD_OK;
}

static rad_status read_encodings(struct rad_model *m, struct rad_err *err)
{
    RAD_TRY(alloc_table(m->head.enc_count, sizeof *m->enc, (void **)&m->enc, err));
    if (m->head.enc_count)
        memcpy(m->enc, m->data + m->head.enc_off, (size_t)m->info.encodings.bytes);
    for (uint64_t i = 0; i < m->head.enc_count; i++) {
        rad_status st = rad_encoding_validate(&m->enc[i], err);

        if (st)
            return rad_fail_in(err, st, "encoding %llu", (unsigned long long)i);
    }
    return RAD_OK;
}

static rad_status read_planes(struct rad_model *m, struct rad_err *err)
{
    const uint8_t *p = m->data + m->head.plane_off;

    RAD_TRY(alloc_table(m->head.plane_count, sizeof *m->plane, (void **)&m->plane, err));
    for (uint64_t i = 0; i < m->head.plane_count; i++, p += sizeof(struct radi_rad_plane)) {
        struct radi_rad_plane r;

        memcpy(&r, p, sizeof r);
        m->plane[i].offset = r.offset;
        m->plane[i].bytes = r.bytes;
    }
    return RAD_OK;
}

/* The planes of one weight: exact size, alignment, inside the entry. */
static rad_status check_planes(struct rad_model *m, struct rad_weight *w, uint64_t first,
                               struct rad_err *err)
{
    for (uint32_t k = 0; k < w->n_planes; k++) {
        struct rad_plane *p = &m->plane[first + k];
        const char *role = w->enc->plane[k].role;
        RadPlaneGeom g;

        RAD_TRY(rad_plane_geom(w->enc, (int)k, w->rows, w->cols, &g, err));
        if (p->bytes != g.bytes)
            return rad_fail(err, RAD_E_FORMAT, "plane '%s': %llu bytes, want %llu", role,
                            (unsigned long long)p->bytes, (unsigned long long)g.bytes);
        if (p->offset % RADI_RAD_PLANE)
            return rad_fail(err, RAD_E_FORMAT, "plane '%s': offset %llu, want a multiple of"
                            " %d", role, (unsigned long long)p->offset, RADI_RAD_PLANE);
        if (p->offset < w->offset
            || !radi_span_ok(p->offset - w->offset, p->bytes, w->bytes))
            return rad_fail(err, RAD_E_FORMAT, "plane '%s': %llu bytes at %llu lie outside the"
                            " entry", role, (unsigned long long)p->bytes,
                            (unsigned long long)p->offset);
        p->data = m->data + p->offset;
    }
    return RAD_OK;
}

static rad_status read_entry(struct rad_model *m, const struct radi_rad_entry *e,
                             struct rad_weight *w, struct rad_err *err)
{
    const struct radi_rad_header *h = &m->head;

    RAD_TRY(string_at(m, e->quantizer, "quantizer", &w->quantizer, err));
    RAD_TRY(string_at(m, e->options, "options", &w->options, err));
    w->size = sizeof *w;
    w->rank = (int32_t)e->rank;
    w->enc_index = e->enc;
    w->layer = e->layer;
    w->expert = e->expert;
    w->slot = e->slot;
    w->n_planes = e->n_planes;
    w->offset = e->offset;
    w->bytes = e->bytes;
    memcpy(w->shape, e->shape, sizeof w->shape);
    if (e->rank < 1 || e->rank > RAD_MAX_RANK)
        return rad_fail(err, RAD_E_FORMAT, "rank: %u, want 1 to %d", e->rank, RAD_MAX_RANK);
    for (uint32_t i = 0; i < RAD_MAX_RANK; i++)
        if (i < e->rank ? e->shape[i] <= 0 : e->shape[i] != 0)
            return rad_fail(err, RAD_E_FORMAT, "shape[%u]: %lld, want %s", i,
                            (long long)e->shape[i], i < e->rank ? "more than 0" : "0");
    if (!radi_shape_matrix(e->shape, w->rank, &w->rows, &w->cols))
        return rad_fail(err, RAD_E_FORMAT, "shape: product overflows");
    if (e->layer < -1 || e->expert < -1)
        return rad_fail(err, RAD_E_FORMAT, "%s: %d, want -1 or more",
                        e->layer < -1 ? "layer" : "expert", e->layer < -1 ? e->layer
                                                                          : e->expert);
    for (int i = 0; i < 2; i++)
        if (e->reserved[i])
            return rad_fail(err, RAD_E_FORMAT, "reserved[%d]: 0x%llx, want 0", i,
                            (unsigned long long)e->reserved[i]);
    if (!radi_span_ok(e->offset, e->bytes, h->file_bytes))
        return bad_span(err, "bytes", e->offset, e->bytes, h->file_bytes);
    if (e->offset % RADI_RAD_UNIT)
        return rad_fail(err, RAD_E_FORMAT, "offset: %llu, want a multiple of %d",
                        (unsigned long long)e->offset, RADI_RAD_UNIT);
    if (e->enc >= h->enc_count)
        return rad_fail(err, RAD_E_FORMAT, "enc: %u, want less than %llu", e->enc,
                        (unsigned long long)h->enc_count);
    w->enc = &m->enc[e->enc];
    if (e->n_planes != (uint32_t)w->enc->n_planes)
        return rad_fail(err, RAD_E_FORMAT, "n_planes: %u, but its encoding has %d",
                        e->n_planes, w->enc->n_planes);
    if (!radi_span_ok(e->plane_first, e->n_planes, h->plane_count))
        return rad_fail(err, RAD_E_FORMAT, "plane_first: %llu+%u of %llu rows",
                        (unsigned long long)e->plane_first, e->n_planes,
                        (unsigned long long)h->plane_count);
    w->plane = &m->plane[e->plane_first];
    return check_planes(m, w, e->plane_first, err);
}

static rad_status read_directory(struct rad_model *m, struct rad_err *err)
{
    const uint8_t *p = m->data + m->head.dir_off;
    char what[64];

    if (m->head.dir_count > UINT32_MAX)
        return rad_fail(err, RAD_E_FORMAT, "dir_count: %llu is too many",
                        (unsigned long long)m->head.dir_count);
    RAD_TRY(alloc_table(m->head.dir_count, sizeof *m->weight, (void **)&m->weight, err));
    m->weight_index = radi_map_new((size_t)m->head.dir_count);
    if (!m->weight_index)
        return rad_fail(err, RAD_E_NOMEM, "weight index");
    for (uint64_t i = 0; i < m->head.dir_count; i++, p += sizeof(struct radi_rad_entry)) {
        struct rad_weight *w = &m->weight[i];
        struct radi_rad_entry e;
        rad_status st;
        bool existed;

        memcpy(&e, p, sizeof e);
        (void)snprintf(what, sizeof what, "weight %llu: name", (unsigned long long)i);
        RAD_TRY(string_at(m, e.name, what, &w->name, err));
        w->index = (uint32_t)i;
        st = read_entry(m, &e, w, err);
        if (st)
            return rad_fail_in(err, st, "weight '%s'", w->name);
        if (!radi_map_put(m->weight_index, w->name, strlen(w->name), i, &existed))
            return rad_fail(err, RAD_E_NOMEM, "weight index");
    }
    return RAD_OK;
}

static rad_status read_profile(struct rad_model *m, struct rad_err *err)
{
    RAD_TRY(alloc_table(m->head.prof_count, sizeof *m->profile, (void **)&m->profile, err));
    if (m->head.prof_count)
        memcpy(m->profile, m->data + m->head.prof_off, (size_t)m->info.profile.bytes);
    return RAD_OK;
}

static rad_status read_integrity(struct rad_model *m, struct rad_err *err)
{
    struct radi_rad_integrity r;
    struct rad_integrity *o = &m->integrity;
    uint64_t n, bytes;

    if (!m->head.integrity_bytes)
        return RAD_OK;
    if (m->head.integrity_bytes < sizeof r)
        return rad_fail(err, RAD_E_FORMAT, "integrity: %llu bytes, want at least %zu",
                        (unsigned long long)m->head.integrity_bytes, sizeof r);
    memcpy(&r, m->data + m->head.integrity_off, sizeof r);
    if (memcmp(r.magic, RADI_INT_MAGIC, sizeof r.magic))
        return rad_fail(err, RAD_E_FORMAT, "integrity: magic is not " RADI_INT_MAGIC);
    if (r.version != RADI_INT_VERSION || r.algorithm != RADI_INT_SHA256)
        return rad_fail(err, RAD_E_FORMAT, "integrity: version %u, algorithm %u, want 1, 1",
                        r.version, r.algorithm);
    if (r.reserved0 || r.reserved1 || r.reserved2)
        return rad_fail(err, RAD_E_FORMAT, "integrity: reserved words are not 0");
    if (r.n_tables != RADI_T_COUNT || !radi_add_u64(r.n_tables, r.n_planes, &n)
        || !radi_mul_u64(n, RADI_DIGEST, &bytes) || !radi_add_u64(bytes, sizeof r, &bytes)
        || bytes != m->head.integrity_bytes)
        return rad_fail(err, RAD_E_FORMAT, "integrity: %llu bytes for %llu tables and %llu"
                        " planes", (unsigned long long)m->head.integrity_bytes,
                        (unsigned long long)r.n_tables, (unsigned long long)r.n_planes);
    if (r.signature_kind > RADI_INT_ED25519)
        return rad_fail(err, RAD_E_FORMAT, "integrity: signature kind %u, want 0 or 1",
                        r.signature_kind);
    o->size = sizeof *o;
    o->is_signed = r.signature_kind == RADI_INT_ED25519;
    memcpy(o->root, r.root, sizeof o->root);
    memcpy(o->key, r.key, sizeof o->key);
    m->has_integrity = true;
    return string_at(m, r.source, "integrity: source", &o->source, err);
}

static rad_status load(struct rad_model *m, struct rad_err *err)
{
    RAD_TRY(read_header(m, err));
    RAD_TRY(read_strings(m, err));
    RAD_TRY(read_meta(m, err));
    RAD_TRY(read_encodings(m, err));
    RAD_TRY(read_planes(m, err));
    RAD_TRY(read_directory(m, err));
    RAD_TRY(radi_check_vocab(m, err));
    RAD_TRY(radi_find_groups(m, err));
    RAD_TRY(read_profile(m, err));
    return read_integrity(m, err);
}

rad_status rad_model_open(const char *path, struct rad_model **out, struct rad_err *err)
{
    struct rad_model *m = radi_calloc(1, sizeof *m);
    rad_status st;

    *out = NULL;
    if (!m)
        return rad_fail(err, RAD_E_NOMEM, "'%s'", path);
    atomic_init(&m->refs, 1);
    m->map.fd = -1;
    m->path = radi_strdup(strcmp(path, "-") ? path : "stdin");
    if (!m->path) {
        rad_model_unref(m);
        return rad_fail(err, RAD_E_NOMEM, "'%s'", path);
    }
    st = radi_filemap_open(path, 0, &m->map, err);
    if (st) {                    /* the message names the file already */
        rad_model_unref(m);
        return st;
    }
    m->data = m->map.data;
    m->real_size = m->map.size;
    st = load(m, err);
    if (st) {
        st = rad_fail_in(err, st, "'%s'", m->path);
        rad_model_unref(m);
        return st;
    }
    *out = m;
    return RAD_OK;
}

rad_status rad_model_open_memory(const void *bytes, size_t n, struct rad_model **out,
                                 struct rad_err *err)
{
    struct rad_model *m = radi_calloc(1, sizeof *m);
    rad_status st;

    *out = NULL;
    if (!m)
        return rad_fail(err, RAD_E_NOMEM, "%zu bytes", n);
    atomic_init(&m->refs, 1);
    m->map.fd = -1;
    m->path = radi_strdup("");
    m->copy = radi_aligned(64, n ? n : 1);
    if (!m->path || !m->copy) {
        rad_model_unref(m);
        return rad_fail(err, RAD_E_NOMEM, "%zu bytes", n);
    }
    if (n)
        memcpy(m->copy, bytes, n);
    m->data = m->copy;
    m->real_size = n;
    st = load(m, err);
    if (st)
        rad_model_unref(m);
    else
        *out = m;
    return st;
}
