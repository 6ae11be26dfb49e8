/* SPDX-License-Identifier: Apache-2.0 */
/* Owns finding a checkpoint's files, the tensor list, and reading tensors as
 * planes or floats. The formats themselves are in ckpt_safetensors.c and
 * ckpt_gguf.c, which promise: every tensor's bytes lie inside its file, and
 * rows * row_bytes is their number.
 *
 * Tensor data is mapped. Pages that were read are given back at once, so a
 * conversion's resident size does not grow with the checkpoint. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/ckpt.h"

#include "banned.h"

enum {
    MAX_CONFIG = 16 << 20,
    MAX_TEXT = 512 << 20,
    F32_CHUNK = 1 << 18             /* elements decoded through one buffer */
};

static const char *const file_names[RAD_CKPT_N_FILES] = {
    [RAD_CKPT_GENERATION_CONFIG] = "generation_config.json",
    [RAD_CKPT_TOKENIZER] = "tokenizer.json",
    [RAD_CKPT_TOKENIZER_CONFIG] = "tokenizer_config.json",
    [RAD_CKPT_CHAT_TEMPLATE] = "chat_template.jinja",
    [RAD_CKPT_PREPROCESSOR] = "preprocessor_config.json",
    [RAD_CKPT_VIDEO_PREPROCESSOR] = "video_preprocessor_config.json",
    [RAD_CKPT_PROCESSOR] = "processor_config.json",
};

const char *rad_ckpt_file_name(enum rad_ckpt_file which)
{
    return (unsigned)which < RAD_CKPT_N_FILES ? file_names[which] : NULL;
}

/* ---- filling */
static rad_status new_file(struct rad_ckpt *ck, struct radi_ckpt_file f, const char *name,
                           uint32_t *out, struct rad_err *err)
{
    void *p = ck->file;
    rad_status st = radi_grow(&p, &ck->file_cap, ck->files + 1, sizeof(*ck->file), err);
    ck->file = p;
    if (st == RAD_OK && !(f.name = radi_arena_strndup(&ck->arena, name, strlen(name))))
        st = rad_fail(err, RAD_E_NOMEM, "'%s': out of memory", name);
    if (st) {
        radi_filemap_close(&f.map);
        return st;
    }
    *out = (uint32_t)ck->files;
    ck->file[ck->files++] = f;
    return RAD_OK;
}

rad_status radi_ckpt_add_file(struct rad_ckpt *ck, const char *path, uint32_t *file,
                              struct rad_err *err)
{
    struct radi_ckpt_file f = { 0 };
    RAD_TRY(radi_filemap_open(path, 0, &f.map, err));
    f.mapped = !f.map.owned && f.map.size;
    if (f.mapped)
        madvise((void *)(uintptr_t)f.map.data, (size_t)f.map.size, MADV_SEQUENTIAL);
    return new_file(ck, f, path, file, err);
}

rad_status radi_ckpt_intern(struct rad_ckpt *ck, const RadEncoding *e, const RadEncoding **out,
                            struct rad_err *err)
{
    void *p = ck->enc;
    *out = NULL;
    for (size_t i = 0; i < ck->encs; i++)
        if (!memcmp(ck->enc[i], e, sizeof(*e))) {
            *out = ck->enc[i];
            return RAD_OK;
        }
    rad_status st = radi_grow(&p, &ck->enc_cap, ck->encs + 1, sizeof(*ck->enc), err);
    ck->enc = p;
    RAD_TRY(st);
    RadEncoding *copy = radi_arena_alloc(&ck->arena, sizeof(*e));
    if (!copy)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    *copy = *e;
    *out = ck->enc[ck->encs++] = copy;
    return RAD_OK;
}

rad_status radi_ckpt_add_tensor(struct rad_ckpt *ck, const struct radi_ckpt_tensor *t, size_t n,
                                const RadEncoding *enc, struct rad_err *err)
{
    void *p = ck->tensor;
    bool existed;
    struct radi_ckpt_tensor *u;
    rad_status st = radi_grow(&p, &ck->tensor_cap, ck->tensors + 1, sizeof(*ck->tensor), err);

    ck->tensor = p;
    RAD_TRY(st);
    u = &ck->tensor[ck->tensors];
    *u = *t;
    u->pub.name = radi_arena_strndup(&ck->arena, t->pub.name, n);
    if (!u->pub.name || !radi_map_put(ck->names, u->pub.name, n, ck->tensors, &existed))
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    if (existed)
        return rad_fail(err, RAD_E_FORMAT, "tensor '%s': a second one of this name", u->pub.name);
    u->pub.rows = u->pub.cols = 1;
    for (int d = 0; d < t->pub.rank; d++)       /* the product was checked */
        *(d + 1 < t->pub.rank ? &u->pub.rows : &u->pub.cols) *= (uint64_t)t->pub.shape[d];
    u->row_bytes = u->pub.rows ? t->pub.bytes / u->pub.rows : 0;
    u->pub.row_step = 1;
    u->pub.scale = -1;
    if (enc)
        RAD_TRY(radi_ckpt_intern(ck, enc, &u->pub.enc, err));
    ck->tensors++;
    return RAD_OK;
}

static int by_begin(const void *a, const void *b)
{
    const struct radi_ckpt_range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

void radi_ckpt_sort(struct radi_ckpt_range *r, size_t n)
{
    if (n)
        qsort(r, n, sizeof(*r), by_begin);
}

/* ---- opening */
static struct rad_ckpt *ckpt_new(const char *path)
{
    struct rad_ckpt *ck = radi_calloc(1, sizeof(*ck));
    if (!ck)
        return NULL;
    radi_arena_init(&ck->arena, 0);
    ck->names = radi_map_new(256);
    ck->keys = radi_map_new(64);
    ck->path = radi_arena_strndup(&ck->arena, path, strlen(path));
    if (!ck->names || !ck->keys || !ck->path) {
        rad_ckpt_close(ck);
        return NULL;
    }
    return ck;
}

void rad_ckpt_close(struct rad_ckpt *ck)
{
    if (!ck)
        return;
    for (size_t i = 0; i < ck->files; i++)
        if (ck->file[i].mapped || ck->file[i].map.owned)
            radi_filemap_close(&ck->file[i].map);
    for (int i = 0; i < RAD_CKPT_N_FILES; i++)
        radi_free(ck->text[i]);
    radi_free(ck->file);
    radi_free(ck->tensor);
    radi_free(ck->enc);
    radi_free(ck->kv);
    radi_free(ck->config);
    radi_free(ck->arch);
    radi_free(ck->quant);
    radi_map_free(ck->names);
    radi_map_free(ck->keys);
    radi_arena_release(&ck->arena);
    radi_free(ck);
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

static bool is_gguf(const uint8_t *p, uint64_t n)
{
    return n >= 4 && !memcmp(p, "GGUF", 4);
}

/* The texts that lie in `dir`; config.json is wanted, the others may be absent. */
static rad_status read_texts(struct rad_ckpt *ck, const char *dir, struct rad_err *err)
{
    char *p = radi_arena_printf(&ck->arena, "%s/config.json", dir);
    if (!p)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    RAD_TRY(radi_read_text(p, MAX_CONFIG, &ck->config, &ck->config_len, err));
    for (int i = 0; i < RAD_CKPT_N_FILES; i++) {
        if (!(p = radi_arena_printf(&ck->arena, "%s/%s", dir, file_names[i])))
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
        if (access(p, F_OK) == 0)
            RAD_TRY(radi_read_text(p, MAX_TEXT, &ck->text[i], &ck->text_len[i], err));
    }
    return RAD_OK;
}

/* The one file of `dir` that ends so; NULL in *out when there is none. */
static rad_status only_file(struct rad_ckpt *ck, const char *dir, const char *tail, char **out,
                            struct rad_err *err)
{
    rad_status st = RAD_OK;
    *out = NULL;
    DIR *d = opendir(dir);
    if (!d)
        return rad_fail_errno(err, "'%s'", dir);
    for (struct dirent *e; st == RAD_OK && (e = readdir(d));) {
        /* of a split GGUF only the first file counts */
        const char *part = strstr(e->d_name, "-of-");
        if (e->d_name[0] == '.' || !ends_with(e->d_name, tail) ||
            (part && part - e->d_name >= 6 && !strcmp(tail, ".gguf") &&
             memcmp(part - 6, "-00001", 6)))
            continue;
        if (*out)
            st = rad_fail(err, RAD_E_ARG, "'%s': more than one *%s, want the name of one", dir,
                          tail);
        else if (!(*out = radi_arena_printf(&ck->arena, "%s/%s", dir, e->d_name)))
            st = rad_fail(err, RAD_E_NOMEM, "out of memory");
    }
    closedir(d);
    return st;
}

static rad_status find_in_dir(struct rad_ckpt *ck, const char *dir, char **out,
                              struct rad_err *err)
{
    static const char *const usual[] = { "model.safetensors", "model.safetensors.index.json" };
    static const char *const tail[] = { ".safetensors.index.json", ".safetensors", ".gguf" };

    for (size_t i = 0; i < RADI_COUNT(usual); i++) {
        if (!(*out = radi_arena_printf(&ck->arena, "%s/%s", dir, usual[i])))
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
        if (access(*out, F_OK) == 0)
            return RAD_OK;
    }
    for (size_t i = 0; i < RADI_COUNT(tail); i++) {
        RAD_TRY(only_file(ck, dir, tail[i], out, err));
        if (*out)
            return RAD_OK;
    }
    return rad_fail(err, RAD_E_NOTFOUND, "'%s': holds no *.safetensors, index or *.gguf", dir);
}

static rad_status check_tensors(const struct rad_ckpt *ck, const char *name, struct rad_err *err)
{
    if (!ck->tensors)
        return rad_fail(err, RAD_E_FORMAT, "'%s': no tensors", name);
    return RAD_OK;
}

static rad_status open_gguf(struct rad_ckpt *ck, const char *path, struct rad_err *err)
{
    ck->kind = RAD_CKPT_GGUF;
    RAD_TRY(radi_gguf_file(ck, 0, err));
    RAD_TRY(radi_gguf_split(ck, path, err));
    RAD_TRY(check_tensors(ck, ck->path, err));
    return radi_gguf_finish(ck, err);
}

static rad_status open_path(struct rad_ckpt *ck, const char *path, struct rad_err *err)
{
    struct stat sb;
    uint32_t f;
    char *p = radi_arena_strndup(&ck->arena, path, strlen(path));

    if (!p)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    if (stat(path, &sb))
        return rad_fail_errno(err, "'%s'", path);
    if (S_ISDIR(sb.st_mode))
        RAD_TRY(find_in_dir(ck, path, &p, err));
    ck->kind = RAD_CKPT_SAFETENSORS;
    if (ends_with(p, "index.json")) {
        RAD_TRY(radi_st_index(ck, p, err));
    } else {
        RAD_TRY(radi_ckpt_add_file(ck, p, &f, err));
        if (ends_with(p, ".gguf") || is_gguf(ck->file[f].map.data, ck->file[f].map.size))
            return open_gguf(ck, p, err);
        RAD_TRY(radi_st_file(ck, f, err));
    }
    RAD_TRY(check_tensors(ck, p, err));
    char *slash = strrchr(p, '/');
    if (slash)
        *slash = 0;
    RAD_TRY(read_texts(ck, slash ? p : ".", err));
    rad_status st = radi_st_finish(ck, err);
    return st ? rad_fail_in(err, st, "'%s/config.json'", slash ? p : ".") : RAD_OK;
}

rad_status rad_ckpt_open(const char *path, struct rad_ckpt **out, struct rad_err *err)
{
    *out = NULL;
    struct rad_ckpt *ck = ckpt_new(path);
    if (!ck)
        return rad_fail(err, RAD_E_NOMEM, "'%s': out of memory", path);
    rad_status st = open_path(ck, path, err);
    if (st) {
        rad_ckpt_close(ck);
        return st;
    }
    *out = ck;
    return RAD_OK;
}

static rad_status open_memory(struct rad_ckpt *ck, const void *data, size_t n, const char *config,
                              struct rad_err *err)
{
    struct radi_ckpt_file f = { .map = { .data = data, .size = n, .fd = -1 } };
    uint32_t at;

    RAD_TRY(new_file(ck, f, ck->path, &at, err));
    if (is_gguf(data, n))
        return open_gguf(ck, NULL, err);
    ck->kind = RAD_CKPT_SAFETENSORS;
    RAD_TRY(radi_st_file(ck, at, err));
    RAD_TRY(check_tensors(ck, ck->path, err));
    ck->config = radi_strdup(config ? config : "{}");
    if (!ck->config)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    ck->config_len = strlen(ck->config);
    return radi_st_finish(ck, err);
}

rad_status rad_ckpt_open_memory(const void *data, size_t n, const char *name, const char *config,
                                struct rad_ckpt **out, struct rad_err *err)
{
    *out = NULL;
    struct rad_ckpt *ck = ckpt_new(name);
    if (!ck)
        return rad_fail(err, RAD_E_NOMEM, "'%s': out of memory", name);
    rad_status st = open_memory(ck, data, n, config, err);
    if (st) {
        rad_ckpt_close(ck);
        return st;
    }
    *out = ck;
    return RAD_OK;
}

/* ---- looking */
enum rad_ckpt_kind rad_ckpt_kind(const struct rad_ckpt *ck)
{
    return ck->kind;
}

const char *rad_ckpt_path(const struct rad_ckpt *ck)
{
    return ck->path;
}

const char *rad_ckpt_arch(const struct rad_ckpt *ck)
{
    return ck->arch;
}

const char *rad_ckpt_quant(const struct rad_ckpt *ck)
{
    return ck->quant;
}

const char *rad_ckpt_config_json(const struct rad_ckpt *ck)
{
    return ck->config;
}

const char *rad_ckpt_text(const struct rad_ckpt *ck, enum rad_ckpt_file which, size_t *len)
{
    if ((unsigned)which >= RAD_CKPT_N_FILES)
        return NULL;
    if (len)
        *len = ck->text_len[which];
    return ck->text[which];
}

size_t rad_ckpt_count(const struct rad_ckpt *ck)
{
    return ck->tensors;
}

const struct rad_ckpt_tensor *rad_ckpt_tensor(const struct rad_ckpt *ck, size_t i)
{
    return i < ck->tensors ? &ck->tensor[i].pub : NULL;
}

int64_t rad_ckpt_find(const struct rad_ckpt *ck, const char *name)
{
    uint64_t i;
    return radi_map_get(ck->names, name, strlen(name), &i) ? (int64_t)i : -1;
}

/* ---- reading */
static rad_status check_rows(const struct rad_ckpt *ck, size_t i, uint64_t row0, uint64_t n,
                             struct rad_err *err)
{
    if (i >= ck->tensors)
        return rad_fail(err, RAD_E_ARG, "'%s': tensor %zu of %zu", ck->path, i, ck->tensors);
    const struct rad_ckpt_tensor *t = &ck->tensor[i].pub;
    if (!radi_span_ok(row0, n, t->rows))
        return rad_fail(err, RAD_E_ARG, "tensor '%s': rows %llu to %llu of %llu", t->name,
                        (unsigned long long)row0, (unsigned long long)(row0 + n),
                        (unsigned long long)t->rows);
    if (!t->enc)
        return rad_fail(err, RAD_E_UNSUPPORTED, "'%s': tensor '%s': no encoding holds type %s",
                        ck->file[ck->tensor[i].file].name, t->name, t->type);
    return RAD_OK;
}

/* Gives the pages of bytes that were read back to the kernel. The page in which
 * the next row begins is read again, from the page cache. */
static void drop_pages(const struct rad_ckpt *ck, const struct radi_ckpt_tensor *t, uint64_t row0,
                       uint64_t n)
{
    if (!ck->file[t->file].mapped)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t a = (uintptr_t)t->pub.data + row0 * t->row_bytes;
    uintptr_t b = (a + n * t->row_bytes) & ~page;
    a &= ~page;
    if (b > a)
        madvise((void *)a, b - a, MADV_DONTNEED);
}

static void f64_to_f32(const uint8_t *src, uint64_t n, uint8_t *dst)
{
    for (uint64_t i = 0; i < n; i++) {
        double d;
        memcpy(&d, src + 8 * i, 8);
        float f = (float)d;
        memcpy(dst + 4 * i, &f, 4);
    }
}

static rad_status u64_to_i64(const uint8_t *src, uint64_t n, uint8_t *dst, const char *name,
                             struct rad_err *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (src[8 * i + 7] & 0x80)
            return rad_fail(err, RAD_E_UNSUPPORTED, "tensor '%s': U64 value at or above 2^63",
                            name);
    memcpy(dst, src, (size_t)(8 * n));
    return RAD_OK;
}

/* The scales' part of an FP8 tensor; their plane has the stored shape. */
static rad_status copy_scales(const struct rad_ckpt *ck, const struct rad_ckpt_tensor *t,
                              uint64_t row0, uint64_t n, void *dst, struct rad_err *err)
{
    const struct rad_ckpt_tensor *s = &ck->tensor[t->scale].pub;
    RadPlaneGeom all, part;
    RAD_TRY(rad_plane_geom(t->enc, 1, t->rows, t->cols, &all, err));
    RAD_TRY(rad_plane_geom(t->enc, 1, n, t->cols, &part, err));
    int64_t br = t->enc->plane[1].block[0];
    uint64_t from = br ? row0 / (uint64_t)br * all.row_bytes : 0;
    if (all.bytes != s->bytes || !radi_span_ok(from, part.bytes, all.bytes))
        return rad_fail(err, RAD_E_FORMAT, "tensor '%s': %llu bytes, want %llu", s->name,
                        (unsigned long long)s->bytes, (unsigned long long)all.bytes);
    memcpy(dst, (const uint8_t *)s->data + from, (size_t)part.bytes);
    return RAD_OK;
}

static rad_status read_planes(const struct rad_ckpt *ck, const struct radi_ckpt_tensor *t,
                              uint64_t row0, uint64_t n, void *const dst[], struct rad_err *err)
{
    const uint8_t *src = (const uint8_t *)t->pub.data + row0 * t->row_bytes;
    switch (t->conv) {
    case RADI_CONV_BLOCKS:
        return radi_ggml_planes(t->ggml, src, n, t->pub.cols, dst, err);
    case RADI_CONV_F64:
        f64_to_f32(src, n * t->pub.cols, dst[0]);
        return RAD_OK;
    case RADI_CONV_U64:
        return u64_to_i64(src, n * t->pub.cols, dst[0], t->pub.name, err);
    case RADI_CONV_COPY:
        break;
    }
    if (n && t->row_bytes)
        memcpy(dst[0], src, (size_t)(n * t->row_bytes));
    return t->pub.scale >= 0 && n ? copy_scales(ck, &t->pub, row0, n, dst[1], err) : RAD_OK;
}

rad_status rad_ckpt_read_planes(const struct rad_ckpt *ck, size_t i, uint64_t row0, uint64_t n,
                                void *const dst[], struct rad_err *err)
{
    RAD_TRY(check_rows(ck, i, row0, n, err));
    const struct radi_ckpt_tensor *t = &ck->tensor[i];
    if (row0 % t->pub.row_step || (n % t->pub.row_step && row0 + n != t->pub.rows))
        return rad_fail(err, RAD_E_ARG, "tensor '%s': rows %llu to %llu, want whole blocks of %llu",
                        t->pub.name, (unsigned long long)row0, (unsigned long long)(row0 + n),
                        (unsigned long long)t->pub.row_step);
    rad_status st = read_planes(ck, t, row0, n, dst, err);
    if (st)
        return rad_fail_in(err, st, "'%s': tensor '%s'", ck->file[t->file].name, t->pub.name);
    drop_pages(ck, t, row0, n);
    return RAD_OK;
}

/* Stored bytes that are the planes already: decoded where they lie. */
static rad_status decode_in_place(const struct rad_ckpt *ck, const struct radi_ckpt_tensor *t,
                                  uint64_t row0, uint64_t n, float *out, struct rad_err *err)
{
    const struct rad_ckpt_tensor *p = &t->pub;
    const void *plane[RAD_MAX_PLANES] = { p->data };
    if (p->scale >= 0)
        plane[1] = ck->tensor[p->scale].pub.data;
    return rad_decode_rows(p->enc, plane, p->rows, p->cols, row0, n, out, (size_t)p->cols, err);
}

/* Through planes of as many rows as fit a small buffer. */
static rad_status decode_copied(const struct rad_ckpt *ck, const struct radi_ckpt_tensor *t,
                                uint64_t row0, uint64_t n, float *out, struct rad_err *err)
{
    const struct rad_ckpt_tensor *p = &t->pub;
    uint64_t step = RADI_MIN(n, RADI_MAX(1, F32_CHUNK / p->cols));
    size_t total = 0, at[RAD_MAX_PLANES];
    void *dst[RAD_MAX_PLANES] = { 0 };
    rad_status st = RAD_OK;

    for (int k = 0; k < p->enc->n_planes; k++) {
        RadPlaneGeom g;
        RAD_TRY(rad_plane_geom(p->enc, k, step, p->cols, &g, err));
        at[k] = total;
        if (g.bytes > SIZE_MAX - 64 ||
            !radi_add_size(total, ((size_t)g.bytes + 63) & ~(size_t)63, &total))
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
    }
    uint8_t *buf = radi_malloc(total);
    if (!buf)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    for (int k = 0; k < p->enc->n_planes; k++)
        dst[k] = buf + at[k];
    for (uint64_t r = 0; r < n && st == RAD_OK; r += step) {
        uint64_t m = RADI_MIN(step, n - r);
        st = read_planes(ck, t, row0 + r, m, dst, err);
        if (st == RAD_OK)
            st = rad_decode_rows(p->enc, (const void *const *)dst, m, p->cols, 0, m,
                                 out + r * p->cols, (size_t)p->cols, err);
    }
    radi_free(buf);
    return st;
}

rad_status rad_ckpt_read_f32(const struct rad_ckpt *ck, size_t i, uint64_t row0, uint64_t n,
                             float *out, struct rad_err *err)
{
    RAD_TRY(check_rows(ck, i, row0, n, err));
    const struct radi_ckpt_tensor *t = &ck->tensor[i];
    if (!n || !t->pub.cols)
        return RAD_OK;
    rad_status st = t->conv == RADI_CONV_COPY ? decode_in_place(ck, t, row0, n, out, err) :
                                                decode_copied(ck, t, row0, n, out, err);
    if (st)
        return rad_fail_in(err, st, "'%s': tensor '%s'", ck->file[t->file].name, t->pub.name);
    drop_pages(ck, t, row0, n);
    return RAD_OK;
}
