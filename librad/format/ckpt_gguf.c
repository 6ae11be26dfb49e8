/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the GGUF format, versions 2 and 3, also in split files. One pass with a
 * cursor that cannot leave the file; counts from the file are compared with the
 * bytes that are left before anything is allocated, and arrays do not nest. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/ckpt.h"

#include "banned.h"

enum {
    MAX_NAME = 64, MAX_KEY = 65535, MAX_DIMS = 4, MAX_SPLITS = 65535,
    MAX_JSON_ARRAY = 1024,
    TYPE_ARRAY = 9,
    KV_BYTES = 8 + 1 + 4 + 1,               /* the least that a key takes */
    TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8    /* the least that a record takes */
};

struct cursor {
    const uint8_t *p;
    uint64_t at, size;
    struct rad_err *err;
};

static const struct kv_type {
    const char *name;
    uint8_t bytes;                          /* 0: not of fixed size */
} kv_types[] = {
    [RAD_CKPT_U8] = { "uint8", 1 },    [RAD_CKPT_I8] = { "int8", 1 },
    [RAD_CKPT_U16] = { "uint16", 2 },  [RAD_CKPT_I16] = { "int16", 2 },
    [RAD_CKPT_U32] = { "uint32", 4 },  [RAD_CKPT_I32] = { "int32", 4 },
    [RAD_CKPT_F32] = { "float32", 4 }, [RAD_CKPT_BOOL] = { "bool", 1 },
    [RAD_CKPT_STR] = { "string", 0 },  [TYPE_ARRAY] = { "array", 0 },
    [RAD_CKPT_U64] = { "uint64", 8 },  [RAD_CKPT_I64] = { "int64", 8 },
    [RAD_CKPT_F64] = { "float64", 8 },
};

static uint64_t le(const uint8_t *p, int n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static rad_status get(struct cursor *c, int n, const char *what, uint64_t *out)
{
    *out = 0;
    if (!radi_span_ok(c->at, (uint64_t)n, c->size))
        return rad_fail(c->err, RAD_E_FORMAT, "the file ends at byte %llu inside %s",
                        (unsigned long long)c->size, what);
    *out = le(c->p + c->at, n);
    c->at += (uint64_t)n;
    return RAD_OK;
}

static rad_status get_str(struct cursor *c, const char *what, uint64_t max, const char **s,
                          uint64_t *n)
{
    RAD_TRY(get(c, 8, what, n));
    if (*n > c->size - c->at)
        return rad_fail(c->err, RAD_E_FORMAT, "%s: length %llu, the file has %llu bytes left", what,
                        (unsigned long long)*n, (unsigned long long)(c->size - c->at));
    if (max && *n > max)
        return rad_fail(c->err, RAD_E_FORMAT, "%s: length %llu, want at most %llu", what,
                        (unsigned long long)*n, (unsigned long long)max);
    *s = (const char *)c->p + c->at;
    c->at += *n;
    return RAD_OK;
}

/* A key or tensor name: text that C code and messages can carry. */
static rad_status get_name(struct cursor *c, const char *what, uint64_t max, const char **s,
                           uint64_t *n)
{
    RAD_TRY(get_str(c, what, max, s, n));
    if (!*n)
        return rad_fail(c->err, RAD_E_FORMAT, "%s: empty", what);
    if (memchr(*s, 0, (size_t)*n))
        return rad_fail(c->err, RAD_E_FORMAT, "%s '%.*s': holds a NUL byte", what, (int)*n, *s);
    if (!radi_utf8_valid(*s, (size_t)*n))
        return rad_fail(c->err, RAD_E_FORMAT, "%s: not UTF-8", what);
    return RAD_OK;
}

/* ---- metadata */
static rad_status check_type(struct cursor *c, uint64_t type, const char *what)
{
    if (type >= RADI_COUNT(kv_types))
        return rad_fail(c->err, RAD_E_FORMAT, "%s %llu, want 0 to 12", what,
                        (unsigned long long)type);
    return RAD_OK;
}

/* Skips n elements; *str_at of an array of strings. */
static rad_status skip_values(struct rad_ckpt *ck, struct cursor *c, struct radi_ckpt_kv *kv)
{
    uint64_t n = kv->pub.n, left = c->size - c->at, len;
    unsigned size = kv_types[kv->pub.type].bytes;
    const char *s;

    if (n > left / (size ? size : 8))
        return rad_fail(c->err, RAD_E_FORMAT, "%llu elements of %s, the file has %llu bytes left",
                        (unsigned long long)n, kv_types[kv->pub.type].name,
                        (unsigned long long)left);
    kv->data = c->p + c->at;
    if (size) {
        c->at += n * size;
        for (uint64_t i = 0; kv->pub.type == RAD_CKPT_BOOL && i < n; i++)
            if (kv->data[i] > 1)
                return rad_fail(c->err, RAD_E_FORMAT, "bool with the value %d, want 0 or 1",
                                kv->data[i]);
        return RAD_OK;
    }
    if (kv->pub.is_array &&
        !(kv->str_at = radi_arena_array(&ck->arena, (size_t)n + 1, sizeof(uint64_t))))
        return rad_fail(c->err, RAD_E_NOMEM, "out of memory");
    for (uint64_t i = 0; i < n; i++) {
        if (kv->str_at)
            kv->str_at[i] = (uint64_t)(c->p + c->at - kv->data);
        RAD_TRY(get_str(c, kv->pub.is_array ? "string of an array" : "string", 0, &s, &len));
    }
    return RAD_OK;
}

static rad_status get_value(struct rad_ckpt *ck, struct cursor *c, struct radi_ckpt_kv *kv)
{
    uint64_t type, n = 1;
    RAD_TRY(get(c, 4, "a value's type", &type));
    RAD_TRY(check_type(c, type, "value type"));
    if (type == TYPE_ARRAY) {
        kv->pub.is_array = 1;
        RAD_TRY(get(c, 4, "an array's type", &type));
        RAD_TRY(check_type(c, type, "array element type"));
        if (type == TYPE_ARRAY)
            return rad_fail(c->err, RAD_E_FORMAT, "array element type 9, "
                            "want no arrays inside arrays");
        RAD_TRY(get(c, 8, "an array's length", &n));
    }
    kv->pub.type = (int)type;
    kv->pub.n = n;
    RAD_TRY(skip_values(ck, c, kv));
    double d = 0;
    if (!kv->pub.is_array && (type == RAD_CKPT_F32 || type == RAD_CKPT_F64)) {
        if (type == RAD_CKPT_F64)
            memcpy(&d, kv->data, 8);
        else
            d = rad_f32_bits((uint32_t)le(kv->data, 4));
        if (!isfinite(d))
            return rad_fail(c->err, RAD_E_FORMAT, "value is %s, want a finite number",
                            isnan(d) ? "NaN" : "infinite");
    }
    return RAD_OK;
}

/* One key and its value. */
static rad_status get_kv(struct rad_ckpt *ck, struct cursor *c, uint64_t i)
{
    struct radi_ckpt_kv kv = { 0 };
    const char *key;
    uint64_t n;
    bool existed;
    rad_status st = get_name(c, "key", MAX_KEY, &key, &n);

    if (st)
        return rad_fail_in(c->err, st, "metadata %llu", (unsigned long long)i);
    kv.pub.key = radi_arena_strndup(&ck->arena, key, (size_t)n);
    if (!kv.pub.key)
        return rad_fail(c->err, RAD_E_NOMEM, "out of memory");
    st = get_value(ck, c, &kv);
    if (st)
        return rad_fail_in(c->err, st, "key '%.200s'", kv.pub.key);
    void *p = ck->kv;
    st = radi_grow(&p, &ck->kv_cap, ck->kvs + 1, sizeof(*ck->kv), c->err);
    ck->kv = p;
    RAD_TRY(st);
    if (!radi_map_put(ck->keys, key, (size_t)n, ck->kvs, &existed))
        return rad_fail(c->err, RAD_E_NOMEM, "out of memory");
    if (existed)
        return rad_fail(c->err, RAD_E_FORMAT, "key '%.200s': given twice", kv.pub.key);
    ck->kv[ck->kvs++] = kv;
    return RAD_OK;
}

/* An unsigned number of the metadata, with a default. */
static rad_status kv_uint(const struct rad_ckpt *ck, const char *key, int64_t absent, int64_t *out,
                          struct rad_err *err)
{
    int64_t i = rad_ckpt_kv_find(ck, key);
    *out = absent;
    if (i < 0)
        return RAD_OK;
    const struct rad_ckpt_kv *kv = &ck->kv[i].pub;
    if (kv->is_array || !rad_ckpt_kv_int(ck, (size_t)i, 0, out) || *out < 0)
        return rad_fail(err, RAD_E_FORMAT, "key '%s': type %s or value is wrong, "
                        "want an unsigned number",
                        key, kv->is_array ? "array" : kv_types[kv->type].name);
    return RAD_OK;
}

/* ---- tensors */
static rad_status get_dims(struct cursor *c, const struct radi_ggml_type **type,
                           struct rad_ckpt_tensor *t)
{
    uint64_t dims, ne[MAX_DIMS] = { 0 }, n = 1, id;

    RAD_TRY(get(c, 4, "a tensor record", &dims));
    if (dims < 1 || dims > MAX_DIMS)
        return rad_fail(c->err, RAD_E_FORMAT, "%llu dimensions, want 1 to %d",
                        (unsigned long long)dims, MAX_DIMS);
    for (uint64_t d = 0; d < dims; d++) {
        RAD_TRY(get(c, 8, "a tensor record", &ne[d]));
        if (!ne[d] || ne[d] > INT64_MAX)
            return rad_fail(c->err, RAD_E_FORMAT, "dimension %llu is %lld, want at least 1",
                            (unsigned long long)d, (long long)ne[d]);
        if (!radi_mul_u64(n, ne[d], &n))
            return rad_fail(c->err, RAD_E_FORMAT, "dimensions: the number of elements overflows");
        t->shape[dims - 1 - d] = (int64_t)ne[d];
    }
    RAD_TRY(get(c, 4, "a tensor record", &id));
    *type = radi_ggml_type((uint32_t)id);
    if (!*type)
        return rad_fail(c->err, RAD_E_FORMAT, "type %llu, which the format does not have",
                        (unsigned long long)id);
    if (ne[0] % (*type)->block)
        return rad_fail(c->err, RAD_E_FORMAT, "rows of %llu, type %s wants a multiple of %u",
                        (unsigned long long)ne[0], (*type)->name, (*type)->block);
    if (!radi_mul_u64(n / (*type)->block, (*type)->bytes, &t->bytes))
        return rad_fail(c->err, RAD_E_FORMAT, "dimensions: the number of bytes overflows");
    t->rank = (int32_t)dims;
    return RAD_OK;
}

/* A tensor record. Its offset goes to r, relative: where the data begins is
 * known only behind the last record. */
static rad_status get_tensor(struct rad_ckpt *ck, struct cursor *c, uint32_t file, uint64_t i,
                             uint64_t align, struct radi_ckpt_range *r)
{
    struct radi_ckpt_tensor t = { .file = file };
    const char *name;
    uint64_t n;
    RadEncoding e;
    rad_status st = get_name(c, "name", MAX_NAME, &name, &n);

    if (st)
        return rad_fail_in(c->err, st, "tensor %llu", (unsigned long long)i);
    st = get_dims(c, &t.ggml, &t.pub);
    if (st == RAD_OK)
        st = get(c, 8, "a tensor record", &r->begin);
    if (st == RAD_OK && r->begin % align)
        st = rad_fail(c->err, RAD_E_FORMAT, "offset %llu, want a multiple of the alignment %llu",
                      (unsigned long long)r->begin, (unsigned long long)align);
    if (st == RAD_OK && !radi_add_u64(r->begin, t.pub.bytes, &r->end))
        st = rad_fail(c->err, RAD_E_FORMAT, "offset %llu: its end overflows",
                      (unsigned long long)r->begin);
    if (st)
        return rad_fail_in(c->err, st, "tensor '%.*s'", (int)n, name);
    t.pub.name = name;
    t.pub.type = t.ggml->name;
    t.pub.ggml_type = t.ggml->id;
    t.conv = t.ggml->unpack ? RADI_CONV_BLOCKS :
             !strcmp(t.ggml->name, "F64") ? RADI_CONV_F64 : RADI_CONV_COPY;
    bool usable = t.ggml->dtype || t.ggml->unpack;
    if (usable)
        RAD_TRY(radi_ggml_encoding(t.ggml, &e, c->err));
    RAD_TRY(radi_ckpt_add_tensor(ck, &t, (size_t)n, usable ? &e : NULL, c->err));
    r->name = ck->tensor[ck->tensors - 1].pub.name;
    return RAD_OK;
}

/* Tensor data starts behind the records, at the next aligned byte. */
static rad_status place_tensors(struct rad_ckpt *ck, struct cursor *c, size_t first,
                                struct radi_ckpt_range *r, size_t n, uint64_t align)
{
    uint64_t pad = (align - c->at % align) % align, data, size;

    if (!radi_add_u64(c->at, pad, &data) || data > c->size)
        return rad_fail(c->err, RAD_E_FORMAT,
                        "alignment %llu: tensor data would begin past the end, "
                        "at byte %llu of %llu",
                        (unsigned long long)align, (unsigned long long)(c->at + pad),
                        (unsigned long long)c->size);
    size = c->size - data;
    for (size_t i = 0; i < n; i++) {
        if (r[i].end > size)
            return rad_fail(c->err, RAD_E_FORMAT,
                            "tensor '%s': offset %llu and %llu bytes, "
                            "the file has %llu bytes of data",
                            r[i].name, (unsigned long long)r[i].begin,
                            (unsigned long long)(r[i].end - r[i].begin), (unsigned long long)size);
        ck->tensor[first + i].pub.data = c->p + data + r[i].begin;
    }
    radi_ckpt_sort(r, n);
    for (size_t i = 1; i < n; i++)
        if (r[i].begin < r[i - 1].end)
            return rad_fail(c->err, RAD_E_FORMAT, "tensor '%s': offset %llu overlaps tensor '%s'",
                            r[i].name, (unsigned long long)r[i].begin, r[i - 1].name);
    return RAD_OK;
}

static rad_status get_tensors(struct rad_ckpt *ck, struct cursor *c, uint32_t file, uint64_t n,
                              uint64_t align)
{
    size_t first = ck->tensors;
    rad_status st = RAD_OK;

    if (n > (c->size - c->at) / TENSOR_BYTES)
        return rad_fail(c->err, RAD_E_FORMAT, "tensor count %llu, the file has %llu bytes left",
                        (unsigned long long)n, (unsigned long long)(c->size - c->at));
    if (!n)
        return RAD_OK;
    struct radi_ckpt_range *r = radi_calloc((size_t)n, sizeof(*r));
    if (!r)
        return rad_fail(c->err, RAD_E_NOMEM, "out of memory");
    for (uint64_t i = 0; i < n && st == RAD_OK; i++)
        st = get_tensor(ck, c, file, i, align, &r[i]);
    if (st == RAD_OK)
        st = place_tensors(ck, c, first, r, (size_t)n, align);
    radi_free(r);
    return st;
}

/* ---- files */
static rad_status get_alignment(const struct rad_ckpt *ck, uint64_t *align, struct rad_err *err)
{
    int64_t i = rad_ckpt_kv_find(ck, "general.alignment"), v = 32;
    *align = 32;
    if (i < 0)
        return RAD_OK;
    const struct rad_ckpt_kv *kv = &ck->kv[i].pub;
    if (kv->is_array || kv->type != RAD_CKPT_U32)
        return rad_fail(err, RAD_E_FORMAT, "key 'general.alignment': type %s, want uint32",
                        kv->is_array ? "array" : kv_types[kv->type].name);
    rad_ckpt_kv_int(ck, (size_t)i, 0, &v);
    if (v < 8 || v % 8)
        return rad_fail(err, RAD_E_FORMAT, "key 'general.alignment': %lld, want a multiple of 8",
                        (long long)v);
    *align = (uint64_t)v;
    return RAD_OK;
}

static rad_status parse_file(struct rad_ckpt *ck, uint32_t file, struct rad_err *err)
{
    struct radi_filemap *m = &ck->file[file].map;
    struct cursor c = { m->data, 0, m->size, err };
    uint64_t magic, version, tensors, kvs, align;

    RAD_TRY(get(&c, 4, "the magic", &magic));
    if (magic != 0x46554747)
        return rad_fail(err, RAD_E_FORMAT, "magic 0x%08x, want \"GGUF\"", (unsigned)magic);
    RAD_TRY(get(&c, 4, "the version", &version));
    if ((version & 0xffff) == 0 && version)
        return rad_fail(err, RAD_E_FORMAT, "version 0x%08x: the file is big-endian, "
                        "want little-endian",
                        (unsigned)version);
    if (version != 2 && version != 3)
        return rad_fail(err, RAD_E_FORMAT, "version %llu, want 2 or 3",
                        (unsigned long long)version);
    RAD_TRY(get(&c, 8, "the tensor count", &tensors));
    RAD_TRY(get(&c, 8, "the metadata count", &kvs));
    if (kvs > (c.size - c.at) / KV_BYTES)
        return rad_fail(err, RAD_E_FORMAT, "metadata count %llu, the file has %llu bytes left",
                        (unsigned long long)kvs, (unsigned long long)(c.size - c.at));
    for (uint64_t i = 0; i < kvs; i++)
        RAD_TRY(get_kv(ck, &c, i));
    RAD_TRY(get_alignment(ck, &align, err));
    return get_tensors(ck, &c, file, tensors, align);
}

rad_status radi_gguf_file(struct rad_ckpt *ck, uint32_t file, struct rad_err *err)
{
    rad_status st = parse_file(ck, file, err);
    return st ? rad_fail_in(err, st, "'%s'", ck->file[file].name) : RAD_OK;
}

/* File i of a split model: parsed on its own, so that its metadata does not
 * meet the first file's; then the tensors move over. */
static rad_status add_split(struct rad_ckpt *ck, const char *path, int64_t i, int64_t count,
                            struct rad_err *err)
{
    struct rad_ckpt part = *ck;
    uint32_t f;
    int64_t no, of;
    rad_status st;

    RAD_TRY(radi_ckpt_add_file(ck, path, &f, err));
    /* everything is shared but the metadata, which is parsed and dropped */
    part = *ck;
    part.kv = NULL;
    part.kvs = part.kv_cap = 0;
    part.keys = radi_map_new(16);
    if (!part.keys)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    st = radi_gguf_file(&part, f, err);
    if (st == RAD_OK)
        st = kv_uint(&part, "split.no", -1, &no, err);
    if (st == RAD_OK)
        st = kv_uint(&part, "split.count", -1, &of, err);
    if (st == RAD_OK && (no != i || of != count))
        st = rad_fail(err, RAD_E_FORMAT, "'%s': 'split.no' %lld of %lld, want %lld of %lld", path,
                      (long long)no, (long long)of, (long long)i, (long long)count);
    radi_map_free(part.keys);
    radi_free(part.kv);
    part.kv = ck->kv;
    part.kvs = ck->kvs;
    part.kv_cap = ck->kv_cap;
    part.keys = ck->keys;
    *ck = part;
    return st;
}

rad_status radi_gguf_split(struct rad_ckpt *ck, const char *path, struct rad_err *err)
{
    int64_t count, no, total;
    char tail[32];

    RAD_TRY(kv_uint(ck, "split.count", 1, &count, err));
    if (count <= 1)
        return RAD_OK;
    RAD_TRY(kv_uint(ck, "split.no", 0, &no, err));
    RAD_TRY(kv_uint(ck, "split.tensors.count", -1, &total, err));
    if (no != 0)
        return rad_fail(err, RAD_E_ARG, "'%s': file %lld of a split model, want the first",
                        ck->path, (long long)no + 1);
    if (!path)
        return rad_fail(err, RAD_E_UNSUPPORTED, "'%s': 'split.count' is %lld, want one file "
                        "in memory", ck->path, (long long)count);
    if (count > MAX_SPLITS)
        return rad_fail(err, RAD_E_FORMAT, "'%s': 'split.count' is %lld, want at most %d", ck->path,
                        (long long)count, MAX_SPLITS);
    snprintf(tail, sizeof(tail), "-%05d-of-%05d.gguf", 1, (int)count);
    size_t n = strlen(path), m = strlen(tail);
    if (n < m || strcmp(path + n - m, tail))
        return rad_fail(err, RAD_E_FORMAT, "'%s': first of %lld files, want a name that ends "
                        "in '%s'", path, (long long)count, tail);
    for (int64_t i = 1; i < count; i++) {
        char *p = radi_arena_printf(&ck->arena, "%.*s-%05d-of-%05d.gguf", (int)(n - m), path,
                                    (int)i + 1, (int)count);
        if (!p)
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
        RAD_TRY(add_split(ck, p, i, count, err));
    }
    if (total >= 0 && (uint64_t)total != ck->tensors)
        return rad_fail(err, RAD_E_FORMAT, "'%s': 'split.tensors.count' is %lld, "
                        "the files hold %zu", path, (long long)total, ck->tensors);
    return RAD_OK;
}

/* ---- metadata as JSON */
static void add_json_value(const struct rad_ckpt *ck, size_t i, uint64_t k, struct radi_str *s)
{
    const struct rad_ckpt_kv *kv = &ck->kv[i].pub;
    int64_t v = 0;
    double d = 0;
    size_t n;

    if (kv->type == RAD_CKPT_STR) {
        const char *p = rad_ckpt_kv_str(ck, i, k, &n);
        radi_str_add_json(s, p, n);
    } else if (kv->type == RAD_CKPT_BOOL) {
        radi_str_adds(s, ck->kv[i].data[k] ? "true" : "false");
    } else if (kv->type == RAD_CKPT_U64) {
        radi_str_addf(s, "%llu", (unsigned long long)le(ck->kv[i].data + 8 * k, 8));
    } else if (rad_ckpt_kv_int(ck, i, k, &v)) {
        radi_str_addf(s, "%lld", (long long)v);
    } else {
        rad_ckpt_kv_f64(ck, i, k, &d);
        if (isfinite(d))
            radi_str_addf(s, kv->type == RAD_CKPT_F32 ? "%.9g" : "%.17g", d);
        else                        /* only inside arrays; as lenient JSON reads it */
            radi_str_adds(s, isnan(d) ? "\"NaN\"" : d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    }
}

static rad_status make_config(struct rad_ckpt *ck, struct rad_err *err)
{
    struct radi_str s = { 0 };
    bool first = true;

    radi_str_addc(&s, '{');
    for (size_t i = 0; i < ck->kvs; i++) {
        const struct rad_ckpt_kv *kv = &ck->kv[i].pub;
        bool cut = kv->is_array &&
            (kv->n > MAX_JSON_ARRAY || !strncmp(kv->key, "tokenizer.", 10));
        radi_str_adds(&s, first ? "\n" : ",\n");
        first = false;
        if (cut) {                          /* "KEY.length": its elements */
            struct radi_str k = { 0 };
            radi_str_addf(&k, "%s.length", kv->key);
            radi_str_add_json(&s, k.s ? k.s : "", k.len);
            radi_str_addf(&s, ": %llu", (unsigned long long)kv->n);
            s.failed = s.failed || k.failed;
            radi_str_release(&k);
            continue;
        }
        radi_str_add_json(&s, kv->key, strlen(kv->key));
        radi_str_adds(&s, kv->is_array ? ": [" : ": ");
        for (uint64_t k = 0; k < kv->n; k++) {
            if (k)
                radi_str_adds(&s, ", ");
            add_json_value(ck, i, k, &s);
        }
        if (kv->is_array)
            radi_str_addc(&s, ']');
    }
    radi_str_adds(&s, "\n}\n");
    ck->config_len = s.len;
    ck->config = radi_str_take(&s);
    return ck->config ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
}

/* A string of the metadata as a text of its own; NULL in *out when absent. */
static rad_status kv_text(const struct rad_ckpt *ck, const char *key, char **out, size_t *len,
                          struct rad_err *err)
{
    int64_t i = rad_ckpt_kv_find(ck, key);
    *out = NULL;
    if (i < 0)
        return RAD_OK;
    const struct rad_ckpt_kv *kv = &ck->kv[i].pub;
    const char *s = kv->is_array ? NULL : rad_ckpt_kv_str(ck, (size_t)i, 0, len);
    if (!s || memchr(s, 0, *len) || !radi_utf8_valid(s, *len))
        return rad_fail(err, RAD_E_FORMAT, "'%s': key '%s': type %s, want a string of UTF-8",
                        ck->path, key, kv->is_array ? "array" : kv_types[kv->type].name);
    *out = radi_strndup(s, *len);
    return *out ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
}

rad_status radi_gguf_finish(struct rad_ckpt *ck, struct rad_err *err)
{
    enum { GUESSED = 1024 };        /* flag: the file type was not given but guessed */
    struct radi_str s = { 0 };
    int64_t type;
    size_t n;

    RAD_TRY(kv_text(ck, "general.architecture", &ck->arch, &n, err));
    if (!ck->arch || !n)
        return rad_fail(err, RAD_E_FORMAT, "'%s': no key 'general.architecture'", ck->path);
    rad_status st = kv_uint(ck, "general.file_type", 0, &type, err);
    if (st)
        return rad_fail_in(err, st, "'%s'", ck->path);
    type &= ~(int64_t)GUESSED;
    radi_str_adds(&s, "");
    if (type != 0 && type != 1 && type != 32)
        radi_str_addf(&s, "gguf_ftype_%lld", (long long)type);
    ck->quant = radi_str_take(&s);
    if (!ck->quant)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    RAD_TRY(kv_text(ck, "tokenizer.chat_template", &ck->text[RAD_CKPT_CHAT_TEMPLATE],
                    &ck->text_len[RAD_CKPT_CHAT_TEMPLATE], err));
    return make_config(ck, err);
}

/* ---- metadata by type */
size_t rad_ckpt_kv_count(const struct rad_ckpt *ck)
{
    return ck->kvs;
}

const struct rad_ckpt_kv *rad_ckpt_kv(const struct rad_ckpt *ck, size_t i)
{
    return i < ck->kvs ? &ck->kv[i].pub : NULL;
}

int64_t rad_ckpt_kv_find(const struct rad_ckpt *ck, const char *key)
{
    uint64_t i;
    return radi_map_get(ck->keys, key, strlen(key), &i) ? (int64_t)i : -1;
}

/* Element k of fixed size, or NULL. */
static const uint8_t *element(const struct rad_ckpt *ck, size_t i, uint64_t k)
{
    if (i >= ck->kvs || k >= ck->kv[i].pub.n)
        return NULL;
    return ck->kv[i].data + k * kv_types[ck->kv[i].pub.type].bytes;
}

int rad_ckpt_kv_int(const struct rad_ckpt *ck, size_t i, uint64_t k, int64_t *out)
{
    const uint8_t *p = element(ck, i, k);
    if (!p)
        return 0;
    switch (ck->kv[i].pub.type) {
    case RAD_CKPT_U8: case RAD_CKPT_BOOL: *out = *p; return 1;
    case RAD_CKPT_I8: *out = (int8_t)*p; return 1;
    case RAD_CKPT_U16: *out = (int64_t)le(p, 2); return 1;
    case RAD_CKPT_I16: *out = (int16_t)le(p, 2); return 1;
    case RAD_CKPT_U32: *out = (int64_t)le(p, 4); return 1;
    case RAD_CKPT_I32: *out = (int32_t)le(p, 4); return 1;
    case RAD_CKPT_U64:
        if (p[7] & 0x80)
            return 0;
        *out = (int64_t)le(p, 8);
        return 1;
    case RAD_CKPT_I64: *out = (int64_t)le(p, 8); return 1;
    default: return 0;
    }
}

int rad_ckpt_kv_f64(const struct rad_ckpt *ck, size_t i, uint64_t k, double *out)
{
    const uint8_t *p = element(ck, i, k);
    int64_t v;
    if (!p)
        return 0;
    if (ck->kv[i].pub.type == RAD_CKPT_F32) {
        *out = rad_f32_bits((uint32_t)le(p, 4));
        return 1;
    }
    if (ck->kv[i].pub.type == RAD_CKPT_F64) {
        memcpy(out, p, 8);
        return 1;
    }
    if (ck->kv[i].pub.type == RAD_CKPT_U64) {
        *out = (double)le(p, 8);
        return 1;
    }
    if (!rad_ckpt_kv_int(ck, i, k, &v))
        return 0;
    *out = (double)v;
    return 1;
}

const char *rad_ckpt_kv_str(const struct rad_ckpt *ck, size_t i, uint64_t k, size_t *len)
{
    const uint8_t *p = element(ck, i, k);
    if (!p || ck->kv[i].pub.type != RAD_CKPT_STR)
        return NULL;
    if (ck->kv[i].str_at)
        p = ck->kv[i].data + ck->kv[i].str_at[k];
    if (len)
        *len = (size_t)le(p, 8);
    return (const char *)p + 8;
}
