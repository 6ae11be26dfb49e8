/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a container front to back: everything but the planes' bytes is known
 * at plan(), so no byte is written twice and a pipe will do. The layout is
 * rad(5)'s; the digests, whose number is known, lie behind the data.
 *
 * Equal calls give equal bytes: unused fields are zero, strings are interned
 * in the order of first use, weights are sorted by (layer, expert, slot, name). */
#include <stdlib.h>

#include <rad/model_write.h>

#include "format/container.h"
#include "banned.h"

enum state { COLLECTING, PLANNED, WRITING, DONE, BROKEN };

struct meta_in {
    char *key, *text;
    uint32_t type;
    int64_t i;
    double f;
};
struct weight_in {
    uint64_t name, quantizer, options;   /* in the string blob */
    uint32_t enc;
    int32_t rank, layer, expert, slot;
    int64_t shape[RAD_MAX_RANK];
    uint64_t rows, cols;
    size_t id;
    const char *sort_name;               /* set by plan() */
};

struct rad_model_writer {
    enum state state;
    struct radi_str strings;
    struct radi_map *interned, *meta_index, *names;
    char *head[5];                       /* arch, name, quant, recipe, created_by */
    char *source, *pem;
    struct meta_in *meta;
    struct weight_in *weight;
    RadEncoding *enc;
    size_t n_meta, cap_meta, n_weights, cap_weights, n_enc, cap_enc;
    uint8_t *vocab, *cert;
    size_t n_vocab, n_cert, n_profile;
    struct rad_profile_row *profile;

    /* from plan() on */
    struct radi_rad_header h;
    struct radi_rad_meta *meta_row;
    struct radi_rad_entry *entry;
    struct radi_rad_plane *plane_row;
    struct rad_weight *info;
    struct rad_plane *plane;
    size_t n_planes;

    /* from open() on */
    struct radi_outfile file;
    bool opened;
    struct radi_sha256 sha;
    bool hashing;
    size_t at_weight, at_plane;          /* plane: index in the plane table */
    uint64_t done;                       /* bytes of it that are written */
    uint8_t *digests;                    /* tables, then planes */
};

rad_status rad_model_writer_new(struct rad_model_writer **out, struct rad_err *err)
{
    struct rad_model_writer *w = radi_calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return rad_fail(err, RAD_E_NOMEM, "container writer");
    w->interned = radi_map_new(1024);
    w->meta_index = radi_map_new(64);
    w->names = radi_map_new(256);
    radi_str_addc(&w->strings, 0);       /* offset 0: the empty string */
    if (!w->interned || !w->meta_index || !w->names || w->strings.failed) {
        rad_model_writer_free(w);
        return rad_fail(err, RAD_E_NOMEM, "container writer");
    }
    *out = w;
    return RAD_OK;
}

void rad_model_writer_free(struct rad_model_writer *w)
{
    uint8_t drop[32];

    if (!w)
        return;
    if (w->hashing)
        radi_sha256_end(&w->sha, drop);
    if (w->opened)
        radi_outfile_abort(&w->file);
    for (size_t i = 0; i < RADI_COUNT(w->head); i++)
        radi_free(w->head[i]);
    for (size_t i = 0; i < w->n_meta; i++) {
        radi_free(w->meta[i].key);
        radi_free(w->meta[i].text);
    }
    radi_str_release(&w->strings);
    radi_map_free(w->interned);
    radi_map_free(w->meta_index);
    radi_map_free(w->names);
    radi_free(w->source);
    radi_free(w->pem);
    radi_free(w->meta);
    radi_free(w->weight);
    radi_free(w->enc);
    radi_free(w->vocab);
    radi_free(w->cert);
    radi_free(w->profile);
    radi_free(w->meta_row);
    radi_free(w->entry);
    radi_free(w->plane_row);
    radi_free(w->info);
    radi_free(w->plane);
    radi_free(w->digests);
    radi_free(w);
}

static rad_status in_state(const struct rad_model_writer *w, enum state want, const char *call,
                           struct rad_err *err)
{
    static const char *const name[] = { "before plan", "after plan", "after open",
                                        "after finish", "after an error" };

    if (w->state != want)
        return rad_fail(err, RAD_E_STATE, "container writer: %s %s, want it %s", call,
                        name[w->state], name[want]);
    return RAD_OK;
}

/* ---- collecting */

rad_status rad_model_writer_intern(void *writer, const char *s, size_t n, uint64_t *offset,
                                   struct rad_err *err)
{
    struct rad_model_writer *w = writer;
    uint64_t at;

    *offset = 0;
    if (!n)
        return RAD_OK;
    if (memchr(s, 0, n))
        return rad_fail(err, RAD_E_ARG, "string of %zu bytes: holds a zero byte", n);
    if (radi_map_get(w->interned, s, n, offset))
        return RAD_OK;
    RAD_TRY(in_state(w, COLLECTING, "a new string", err));
    at = w->strings.len;
    radi_str_add(&w->strings, s, n);
    radi_str_addc(&w->strings, 0);
    if (w->strings.failed || !radi_map_put(w->interned, s, n, at, NULL))
        return rad_fail(err, RAD_E_NOMEM, "string of %zu bytes", n);
    *offset = at;
    return RAD_OK;
}

static rad_status intern(struct rad_model_writer *w, const char *s, uint64_t *offset,
                         struct rad_err *err)
{
    return rad_model_writer_intern(w, s ? s : "", s ? strlen(s) : 0, offset, err);
}

static rad_status keep(char **slot, const char *s, struct rad_err *err)
{
    char *copy = radi_strdup(s ? s : "");

    if (!copy)
        return rad_fail(err, RAD_E_NOMEM, "string");
    radi_free(*slot);
    *slot = copy;
    return RAD_OK;
}

rad_status rad_model_writer_header(struct rad_model_writer *w, const char *arch,
                                   const char *name, const char *quant, const char *recipe,
                                   const char *created_by, struct rad_err *err)
{
    const char *const s[] = { arch, name, quant, recipe, created_by };

    RAD_TRY(in_state(w, COLLECTING, "header", err));
    for (size_t i = 0; i < RADI_COUNT(s); i++)
        RAD_TRY(keep(&w->head[i], s[i], err));
    return RAD_OK;
}

static rad_status set_meta(struct rad_model_writer *w, const char *key,
                           const struct meta_in *v, struct rad_err *err)
{
    uint64_t i;
    struct meta_in *m;

    RAD_TRY(in_state(w, COLLECTING, "metadata", err));
    if (!key || !*key)
        return rad_fail(err, RAD_E_ARG, "metadata: empty key");
    if (!radi_map_get(w->meta_index, key, strlen(key), &i)) {
        i = w->n_meta;
        RAD_TRY(radi_grow((void **)&w->meta, &w->cap_meta, w->n_meta + 1, sizeof *w->meta,
                          err));
        memset(&w->meta[i], 0, sizeof w->meta[i]);
        RAD_TRY(keep(&w->meta[i].key, key, err));
        w->n_meta++;
        if (!radi_map_put(w->meta_index, key, strlen(key), i, NULL))
            return rad_fail(err, RAD_E_NOMEM, "metadata '%s'", key);
    }
    m = &w->meta[i];
    m->type = v->type;
    m->i = v->i;
    m->f = v->f;
    return keep(&m->text, v->text, err);
}

rad_status rad_model_writer_meta_int(struct rad_model_writer *w, const char *key, int64_t v,
                                     struct rad_err *err)
{
    return set_meta(w, key, &(struct meta_in){ .type = RAD_META_INT, .i = v }, err);
}

rad_status rad_model_writer_meta_f64(struct rad_model_writer *w, const char *key, double v,
                                     struct rad_err *err)
{
    return set_meta(w, key, &(struct meta_in){ .type = RAD_META_F64, .f = v }, err);
}

rad_status rad_model_writer_meta_str(struct rad_model_writer *w, const char *key,
                                     const char *v, struct rad_err *err)
{
    char *copy = NULL;
    rad_status st = keep(&copy, v, err);

    if (!st)
        st = set_meta(w, key, &(struct meta_in){ .type = RAD_META_STR, .text = copy }, err);
    radi_free(copy);
    return st;
}

/* Each distinct encoding is stored once; there are few, so a walk will do. */
static rad_status add_encoding(struct rad_model_writer *w, const RadEncoding *e, uint32_t *ix,
                               struct rad_err *err)
{
    for (*ix = 0; *ix < w->n_enc; ++*ix)
        if (rad_encoding_equal(&w->enc[*ix], e))
            return RAD_OK;
    RAD_TRY(rad_encoding_validate(e, err));
    RAD_TRY(radi_grow((void **)&w->enc, &w->cap_enc, w->n_enc + 1, sizeof *w->enc, err));
    w->enc[w->n_enc++] = *e;
    return RAD_OK;
}

static rad_status add_weight(struct rad_model_writer *w, const struct rad_weight_spec *s,
                             size_t *id, struct rad_err *err)
{
    struct weight_in in = { .rank = s->rank, .layer = s->layer, .expert = s->expert,
                            .slot = s->expert < 0 ? 0 : s->slot, .id = w->n_weights };
    bool existed;

    if (s->layer < -1 || s->expert < -1 || in.slot < 0)
        return rad_fail(err, RAD_E_ARG, "layer %d, expert %d, slot %d, want -1, -1, 0 or more",
                        s->layer, s->expert, s->slot);
    memcpy(in.shape, s->shape, sizeof in.shape);
    for (int i = s->rank < 0 ? 0 : s->rank; i < RAD_MAX_RANK; i++)
        in.shape[i] = 0;
    if (!radi_shape_matrix(in.shape, in.rank, &in.rows, &in.cols))
        return rad_fail(err, RAD_E_ARG, "shape of rank %d: want rank 1 to %d, extents of at"
                        " least 1", s->rank, RAD_MAX_RANK);
    RAD_TRY(add_encoding(w, s->enc, &in.enc, err));
    for (int p = 0; p < s->enc->n_planes; p++) {
        RadPlaneGeom g;

        RAD_TRY(rad_plane_geom(s->enc, p, in.rows, in.cols, &g, err));
    }
    RAD_TRY(intern(w, s->name, &in.name, err));
    RAD_TRY(intern(w, s->quantizer, &in.quantizer, err));
    RAD_TRY(intern(w, s->options, &in.options, err));
    RAD_TRY(radi_grow((void **)&w->weight, &w->cap_weights, w->n_weights + 1,
                      sizeof *w->weight, err));
    if (!radi_map_put(w->names, s->name, strlen(s->name), w->n_weights, &existed))
        return rad_fail(err, RAD_E_NOMEM, "name");
    if (existed)
        return rad_fail(err, RAD_E_DUPLICATE, "is there twice");
    *id = w->n_weights;
    w->weight[w->n_weights++] = in;
    return RAD_OK;
}

rad_status rad_model_writer_weight(struct rad_model_writer *w,
                                   const struct rad_weight_spec *spec, size_t *id,
                                   struct rad_err *err)
{
    size_t mine;
    rad_status st;

    RAD_TRY(in_state(w, COLLECTING, "weight", err));
    if (spec->size != sizeof *spec || !spec->name || !*spec->name || !spec->enc)
        return rad_fail(err, RAD_E_ARG, "weight: size %u, want %zu, a name and an encoding",
                        spec->size, sizeof *spec);
    st = add_weight(w, spec, id ? id : &mine, err);
    return st ? rad_fail_in(err, st, "weight '%s'", spec->name) : RAD_OK;
}

static rad_status keep_bytes(const void *bytes, size_t n, void **out, struct rad_err *err)
{
    void *copy = n ? radi_malloc(n) : NULL;

    if (n && !copy)
        return rad_fail(err, RAD_E_NOMEM, "%zu bytes", n);
    if (n)
        memcpy(copy, bytes, n);
    radi_free(*out);
    *out = copy;
    return RAD_OK;
}

rad_status rad_model_writer_vocab(struct rad_model_writer *w, const void *bytes, size_t n,
                                  struct rad_err *err)
{
    RAD_TRY(in_state(w, COLLECTING, "vocab", err));
    if (n && n < RADI_VOCAB_HEAD)
        return rad_fail(err, RAD_E_ARG, "vocab: %zu bytes, want at least %d", n,
                        RADI_VOCAB_HEAD);
    RAD_TRY(keep_bytes(bytes, n, (void **)&w->vocab, err));
    w->n_vocab = n;
    return RAD_OK;
}

rad_status rad_model_writer_profile(struct rad_model_writer *w,
                                    const struct rad_profile_row *rows, size_t n,
                                    struct rad_err *err)
{
    size_t bytes;

    RAD_TRY(in_state(w, COLLECTING, "profile", err));
    if (!radi_mul_size(n, sizeof *rows, &bytes))
        return rad_fail(err, RAD_E_ARG, "profile: %zu rows", n);
    RAD_TRY(keep_bytes(rows, bytes, (void **)&w->profile, err));
    for (size_t i = 0; i < n; i++)
        w->profile[i].reserved = 0;
    w->n_profile = n;
    return RAD_OK;
}

rad_status rad_model_writer_certificate(struct rad_model_writer *w, const void *bytes,
                                        size_t n, struct rad_err *err)
{
    RAD_TRY(in_state(w, COLLECTING, "certificate", err));
    RAD_TRY(keep_bytes(bytes, n, (void **)&w->cert, err));
    w->n_cert = n;
    return RAD_OK;
}

rad_status rad_model_writer_source(struct rad_model_writer *w, const char *revision,
                                   struct rad_err *err)
{
    RAD_TRY(in_state(w, COLLECTING, "source", err));
    return keep(&w->source, revision, err);
}

rad_status rad_model_writer_key(struct rad_model_writer *w, const char *pem,
                                struct rad_err *err)
{
    RAD_TRY(in_state(w, COLLECTING, "key", err));
    RAD_TRY(radi_integrity_check_key(pem, err));
    return keep(&w->pem, pem, err);
}

/* ---- planning */

static int by_unit(const void *a, const void *b)
{
    const struct weight_in *x = a, *y = b;

    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->expert != y->expert)
        return x->expert < y->expert ? -1 : 1;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return strcmp(x->sort_name, y->sort_name);
}

static void *table(size_t n, size_t item)
{
    return radi_calloc(n + 1, item);
}

static rad_status plan_tables(struct rad_model_writer *w, struct rad_err *err)
{
    uint64_t *const head[] = { &w->h.arch, &w->h.name, &w->h.quant, &w->h.recipe,
                               &w->h.created_by };
    uint64_t source;

    for (size_t i = 0; i < RADI_COUNT(head); i++)
        RAD_TRY(intern(w, w->head[i], head[i], err));
    RAD_TRY(intern(w, w->source, &source, err));
    w->meta_row = table(w->n_meta, sizeof *w->meta_row);
    if (!w->meta_row)
        return rad_fail(err, RAD_E_NOMEM, "metadata");
    for (size_t i = 0; i < w->n_meta; i++) {
        struct radi_rad_meta *r = &w->meta_row[i];

        RAD_TRY(intern(w, w->meta[i].key, &r->key, err));
        r->type = w->meta[i].type;
        if (r->type == RAD_META_INT)
            r->v.i = w->meta[i].i;
        else if (r->type == RAD_META_F64)
            r->v.f = w->meta[i].f;
        else
            RAD_TRY(intern(w, w->meta[i].text, &r->v.s, err));
    }
    for (size_t i = 0; i < w->n_weights; i++) {
        w->weight[i].sort_name = w->strings.s + w->weight[i].name;
        if (!radi_add_size(w->n_planes, (size_t)w->enc[w->weight[i].enc].n_planes,
                           &w->n_planes))
            return rad_fail(err, RAD_E_FULL, "planes");
    }
    if (w->n_weights)
        qsort(w->weight, w->n_weights, sizeof *w->weight, by_unit);
    return RAD_OK;
}

/* Places a section of n * item bytes at the next table boundary. */
static bool place(uint64_t *at, uint64_t n, uint64_t item, uint64_t *off)
{
    uint64_t bytes;

    return radi_align_u64(*at, RADI_RAD_TABLE, off) && radi_mul_u64(n, item, &bytes)
        && radi_add_u64(*off, bytes, at);
}

static bool place_tables(struct rad_model_writer *w)
{
    struct radi_rad_header *h = &w->h;
    uint64_t at = sizeof *h;

    h->magic = RADI_RAD_MAGIC;
    h->version = RADI_RAD_VERSION;
    h->str_bytes = w->strings.len;
    h->meta_count = w->n_meta;
    h->dir_count = w->n_weights;
    h->plane_count = w->n_planes;
    h->enc_count = w->n_enc;
    h->vocab_bytes = w->n_vocab;
    h->prof_count = w->n_profile;
    h->cert_bytes = w->n_cert;
    bool ok = place(&at, h->str_bytes, 1, &h->str_off)
        && place(&at, h->meta_count, sizeof(struct radi_rad_meta), &h->meta_off)
        && place(&at, h->dir_count, sizeof(struct radi_rad_entry), &h->dir_off)
        && place(&at, h->plane_count, sizeof(struct radi_rad_plane), &h->plane_off)
        && place(&at, h->enc_count, sizeof(RadEncoding), &h->enc_off)
        && place(&at, h->vocab_bytes, 1, &h->vocab_off)
        && place(&at, h->prof_count, sizeof(struct rad_profile_row), &h->prof_off);
    if (ok && w->n_cert)
        ok = place(&at, h->cert_bytes, 1, &h->cert_off);
    return ok && radi_align_u64(at, RADI_RAD_POOL, &h->data_off);
}

/* One weight at *at: its entry, planes, and what the caller gets to see. */
static rad_status place_weight(struct rad_model_writer *w, size_t i, size_t first,
                               uint64_t *at, struct rad_err *err)
{
    const struct weight_in *in = &w->weight[i];
    const RadEncoding *e = &w->enc[in->enc];
    struct radi_rad_entry *r = &w->entry[i];
    struct rad_weight *o = &w->info[i];
    uint64_t end;

    if (!radi_align_u64(*at, RADI_RAD_UNIT, &end))
        return rad_fail(err, RAD_E_FULL, "weight '%s': offset overflows", in->sort_name);
    *r = (struct radi_rad_entry){
        .name = in->name, .quantizer = in->quantizer, .options = in->options,
        .enc = in->enc, .rank = (uint32_t)in->rank, .layer = in->layer,
        .expert = in->expert, .slot = in->slot, .n_planes = (uint32_t)e->n_planes,
        .plane_first = first, .offset = end,
    };
    memcpy(r->shape, in->shape, sizeof r->shape);
    for (int p = 0; p < e->n_planes; p++) {
        struct radi_rad_plane *pr = &w->plane_row[first + (size_t)p];
        RadPlaneGeom g;

        RAD_TRY(rad_plane_geom(e, p, in->rows, in->cols, &g, err));
        if (!radi_align_u64(end, RADI_RAD_PLANE, &pr->offset)
            || !radi_add_u64(pr->offset, g.bytes, &end))
            return rad_fail(err, RAD_E_FULL, "weight '%s': offset overflows", in->sort_name);
        pr->bytes = g.bytes;
        w->plane[first + (size_t)p] = (struct rad_plane){ pr->offset, g.bytes, NULL };
    }
    r->bytes = end - r->offset;
    *at = end;
    *o = (struct rad_weight){
        .size = sizeof *o, .index = (uint32_t)i, .name = in->sort_name,
        .quantizer = w->strings.s + in->quantizer, .options = w->strings.s + in->options,
        .enc = e, .enc_index = in->enc, .rank = in->rank, .rows = in->rows, .cols = in->cols,
        .layer = in->layer, .expert = in->expert, .slot = in->slot, .n_planes = r->n_planes,
        .plane = &w->plane[first], .offset = r->offset, .bytes = r->bytes,
    };
    memcpy(o->shape, in->shape, sizeof o->shape);
    return RAD_OK;
}

static rad_status place_weights(struct rad_model_writer *w, struct rad_err *err)
{
    struct radi_rad_header *h = &w->h;
    uint64_t at = h->data_off, digests;
    size_t first = 0, n = 1;

    for (size_t i = 0; i < w->n_weights; i++) {
        RAD_TRY(place_weight(w, i, first, &at, err));
        first += w->info[i].n_planes;
    }
    for (size_t i = 0; i < w->n_weights; i += n) {
        struct rad_expert_group g;

        n = 1;
        if (w->info[i].expert >= 0)
            RAD_TRY(radi_group_at(w->info, w->n_weights, i, &g, &n, err));
    }
    /* whole movement units, so that the last one can be read as one, too */
    if (!radi_align_u64(at, RADI_RAD_UNIT, &h->integrity_off)
        || !radi_add_u64(w->n_planes, RADI_T_COUNT, &digests)
        || !radi_mul_u64(digests, RADI_DIGEST, &h->integrity_bytes)
        || !radi_add_u64(h->integrity_bytes, sizeof(struct radi_rad_integrity),
                         &h->integrity_bytes)
        || !radi_add_u64(h->integrity_off, h->integrity_bytes, &h->file_bytes))
        return rad_fail(err, RAD_E_FULL, "file size overflows");
    h->data_bytes = h->integrity_off - h->data_off;
    return RAD_OK;
}

/* Array offsets of the vocab section become absolute. */
static rad_status relocate_vocab(struct rad_model_writer *w, struct rad_err *err)
{
    struct radi_rad_vocab v;
    uint64_t *const array[] = { &v.text, &v.score, &v.type, &v.merge, &v.step };

    if (!w->n_vocab)
        return RAD_OK;
    memcpy(&v, w->vocab, sizeof v);
    for (size_t i = 0; i < RADI_COUNT(array); i++) {
        if (*array[i] > w->n_vocab)
            return rad_fail(err, RAD_E_ARG, "vocab: array at %llu of %zu bytes",
                            (unsigned long long)*array[i], w->n_vocab);
        if (*array[i])
            *array[i] += w->h.vocab_off;
    }
    memcpy(w->vocab, &v, sizeof v);
    return RAD_OK;
}

static rad_status plan(struct rad_model_writer *w, struct rad_err *err)
{
    RAD_TRY(plan_tables(w, err));
    w->entry = table(w->n_weights, sizeof *w->entry);
    w->info = table(w->n_weights, sizeof *w->info);
    w->plane_row = table(w->n_planes, sizeof *w->plane_row);
    w->plane = table(w->n_planes, sizeof *w->plane);
    if (!w->entry || !w->info || !w->plane_row || !w->plane)
        return rad_fail(err, RAD_E_NOMEM, "%zu weights", w->n_weights);
    if (!place_tables(w))
        return rad_fail(err, RAD_E_FULL, "tables: size overflows");
    RAD_TRY(place_weights(w, err));
    return relocate_vocab(w, err);
}

rad_status rad_model_writer_plan(struct rad_model_writer *w, struct rad_err *err)
{
    rad_status st;

    RAD_TRY(in_state(w, COLLECTING, "plan", err));
    st = plan(w, err);
    w->state = st ? BROKEN : PLANNED;
    return st;
}

size_t rad_model_writer_count(const struct rad_model_writer *w)
{
    return w->state == COLLECTING ? 0 : w->n_weights;
}

const struct rad_weight *rad_model_writer_at(const struct rad_model_writer *w, size_t pos,
                                             size_t *id)
{
    if (pos >= rad_model_writer_count(w) || !w->info)
        return NULL;
    if (id)
        *id = w->weight[pos].id;
    return &w->info[pos];
}

uint64_t rad_model_writer_file_bytes(const struct rad_model_writer *w)
{
    return w->h.file_bytes;
}

/* ---- writing */

static rad_status pad_to(struct rad_model_writer *w, uint64_t at, struct rad_err *err)
{
    static const uint8_t zero[16384];

    while (w->file.written < at) {
        uint64_t n = RADI_MIN(at - w->file.written, (uint64_t)sizeof zero);

        RAD_TRY(radi_outfile_write(&w->file, zero, (size_t)n, err));
    }
    return RAD_OK;
}

static rad_status write_tables(struct rad_model_writer *w, struct rad_err *err)
{
    const void *const bytes[RADI_T_COUNT] = {
        [RADI_T_HEADER] = &w->h,          [RADI_T_STRINGS] = w->strings.s,
        [RADI_T_META] = w->meta_row,      [RADI_T_DIR] = w->entry,
        [RADI_T_PLANES] = w->plane_row,   [RADI_T_ENCODINGS] = w->enc,
        [RADI_T_VOCAB] = w->vocab,        [RADI_T_PROFILE] = w->profile,
        [RADI_T_CERT] = w->cert,
    };
    struct rad_section t[RADI_T_COUNT];

    radi_table_spans(&w->h, t);
    for (size_t i = 0; i < RADI_T_COUNT; i++) {
        RAD_TRY(radi_sha256_of(bytes[i] ? bytes[i] : "", (size_t)t[i].bytes,
                               w->digests + i * RADI_DIGEST, err));
        if (!t[i].bytes)
            continue;
        RAD_TRY(pad_to(w, t[i].offset, err));
        RAD_TRY(radi_outfile_write(&w->file, bytes[i], (size_t)t[i].bytes, err));
    }
    return pad_to(w, w->h.data_off, err);
}

rad_status rad_model_writer_open(struct rad_model_writer *w, const char *path,
                                 struct rad_err *err)
{
    rad_status st;

    RAD_TRY(in_state(w, PLANNED, "open", err));
    w->digests = radi_calloc(w->n_planes + RADI_T_COUNT, RADI_DIGEST);
    if (!w->digests)
        return rad_fail(err, RAD_E_NOMEM, "%zu digests", w->n_planes);
    w->state = BROKEN;
    RAD_TRY(radi_outfile_open(&w->file, path, err));
    w->opened = true;
    st = write_tables(w, err);
    if (!st)
        w->state = WRITING;
    return st;
}

static rad_status write_chunk(struct rad_model_writer *w, const void *bytes, size_t n,
                              struct rad_err *err)
{
    const struct rad_plane *p = &w->plane[w->at_plane];

    if (!w->done) {
        RAD_TRY(pad_to(w, p->offset, err));
        RAD_TRY(radi_sha256_begin(&w->sha, err));
        w->hashing = true;
    }
    RAD_TRY(radi_outfile_write(&w->file, bytes, n, err));
    radi_sha256_add(&w->sha, bytes, n);
    w->done += n;
    if (w->done == p->bytes) {
        radi_sha256_end(&w->sha, w->digests + (RADI_T_COUNT + w->at_plane) * RADI_DIGEST);
        w->hashing = false;
        w->done = 0;
        w->at_plane++;
        if (&w->plane[w->at_plane] == w->info[w->at_weight].plane
                                      + w->info[w->at_weight].n_planes)
            w->at_weight++;
    }
    return RAD_OK;
}

rad_status rad_model_writer_write(struct rad_model_writer *w, size_t pos, uint32_t plane,
                                  const void *bytes, size_t n, struct rad_err *err)
{
    rad_status st;

    RAD_TRY(in_state(w, WRITING, "write", err));
    if (pos >= w->n_weights || plane >= w->info[pos].n_planes)
        return rad_fail(err, RAD_E_ARG, "weight %zu, plane %u: there is none", pos, plane);

    const struct rad_weight *o = &w->info[pos];
    const struct rad_plane *p = &o->plane[plane];
    const char *role = o->enc->plane[plane].role;
    if (w->at_plane >= w->n_planes || p != &w->plane[w->at_plane])
        return rad_fail(err, RAD_E_STATE, "weight '%s', plane '%s': not the next one in the"
                        " file; plane %zu of %zu has %llu bytes so far", o->name, role,
                        w->at_plane, w->n_planes, (unsigned long long)w->done);
    if (n > p->bytes - w->done)
        return rad_fail(err, RAD_E_STATE, "weight '%s', plane '%s': %zu bytes more, want at"
                        " most %llu", o->name, role, n,
                        (unsigned long long)(p->bytes - w->done));
    if (!n)
        return RAD_OK;
    st = write_chunk(w, bytes, n, err);
    if (st)
        w->state = BROKEN;
    return st;
}

static rad_status finish(struct rad_model_writer *w, struct rad_err *err)
{
    struct radi_rad_integrity head = {
        .version = RADI_INT_VERSION, .algorithm = RADI_INT_SHA256,
        .n_tables = RADI_T_COUNT, .n_planes = w->n_planes,
    };
    size_t n = w->n_planes + RADI_T_COUNT;

    memcpy(head.magic, RADI_INT_MAGIC, sizeof head.magic);
    RAD_TRY(intern(w, w->source, &head.source, err));
    RAD_TRY(radi_integrity_seal(&head, w->digests, n, w->pem, err));
    RAD_TRY(pad_to(w, w->h.integrity_off, err));
    RAD_TRY(radi_outfile_write(&w->file, &head, sizeof head, err));
    RAD_TRY(radi_outfile_write(&w->file, w->digests, n * RADI_DIGEST, err));
    RADI_BUG_IF(w->file.written != w->h.file_bytes);
    return radi_outfile_commit(&w->file, err);
}

rad_status rad_model_writer_finish(struct rad_model_writer *w, struct rad_err *err)
{
    rad_status st;

    RAD_TRY(in_state(w, WRITING, "finish", err));
    if (w->at_plane < w->n_planes) {
        const struct rad_weight *o = &w->info[w->at_weight];
        size_t k = w->at_plane - (size_t)(o->plane - w->plane);

        return rad_fail(err, RAD_E_STATE, "weight '%s', plane '%s': %llu of %llu bytes written",
                        o->name, o->enc->plane[k].role, (unsigned long long)w->done,
                        (unsigned long long)o->plane[k].bytes);
    }
    st = finish(w, err);
    w->state = st ? BROKEN : DONE;
    return st;
}
