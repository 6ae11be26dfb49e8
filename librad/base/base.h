/* SPDX-License-Identifier: Apache-2.0 */
/* The words that every module of librad speaks: checked sizes, arenas,
 * strings, byte buffers, files, hashes, JSON access. Private to librad; tests
 * and fuzz targets link the convenience library and may include it. */
#ifndef RADI_BASE_H
#define RADI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rad/log.h>
#include <rad/status.h>

#define RADI_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RADI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RADI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Our own mistakes, never input: prints the place and aborts. */
#define RADI_BUG_IF(cond) \
    do { if (cond) radi_bug(__FILE__, __LINE__, #cond); } while (0)
_Noreturn void radi_bug(const char *file, int line, const char *cond);

/* ---- checked arithmetic: false on overflow, *out untouched */
static inline bool radi_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline bool radi_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline bool radi_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
static inline bool radi_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
/* [off, off+len) lies inside [0, size) */
static inline bool radi_span_ok(uint64_t off, uint64_t len, uint64_t size)
{
    return off <= size && len <= size - off;
}
/* Rounds up to a power of two `a`; false on overflow. */
static inline bool radi_align_u64(uint64_t x, uint64_t a, uint64_t *out)
{
    uint64_t r;
    if (__builtin_add_overflow(x, a - 1, &r))
        return false;
    *out = r & ~(a - 1);
    return true;
}

/* ---- memory. All return NULL on failure; the caller reports RAD_E_NOMEM.
 * radi_alloc_fail_at(n) makes the n-th allocation from now fail once (0: none),
 * for the fault tests. Every librad allocation goes through these. */
void *radi_malloc(size_t bytes);
void *radi_calloc(size_t n, size_t size);
void *radi_realloc(void *p, size_t bytes);
void *radi_aligned(size_t align, size_t bytes);   /* free with radi_free */
char *radi_strdup(const char *s);
char *radi_strndup(const char *s, size_t n);
void  radi_free(void *p);
void  radi_alloc_fail_at(uint64_t n);
uint64_t radi_alloc_count(void);   /* allocations so far, all threads */

/* Grows an array so that it holds at least `want` items; doubles.
 * `*p` and `*cap` change only on success. */
rad_status radi_grow(void **p, size_t *cap, size_t want, size_t item,
                     struct rad_err *err) RAD_MUSTCHECK;

/* Frees items all at once. One owner thread at a time. */
struct radi_arena {
    struct radi_arena_block *head;
    size_t used, limit;        /* bytes handed out; limit 0 = none */
};
void  radi_arena_init(struct radi_arena *a, size_t limit);
void  radi_arena_release(struct radi_arena *a);
void *radi_arena_alloc(struct radi_arena *a, size_t bytes);          /* 16-aligned, zeroed */
void *radi_arena_array(struct radi_arena *a, size_t n, size_t item); /* overflow-checked */
char *radi_arena_strndup(struct radi_arena *a, const char *s, size_t n);
char *radi_arena_printf(struct radi_arena *a, const char *fmt, ...) RAD_PRINTF(2, 3);

/* ---- growing byte string. `s` is always NUL-terminated once non-NULL.
 * A failed append sets `failed` and later appends do nothing, so a caller may
 * check once at the end. */
struct radi_str {
    char *s;
    size_t len, cap;
    bool failed;
};
void radi_str_release(struct radi_str *b);
void radi_str_clear(struct radi_str *b);            /* keeps the memory */
void radi_str_add(struct radi_str *b, const char *s, size_t n);
void radi_str_adds(struct radi_str *b, const char *s);
void radi_str_addc(struct radi_str *b, char c);
void radi_str_addf(struct radi_str *b, const char *fmt, ...) RAD_PRINTF(2, 3);
void radi_str_addv(struct radi_str *b, const char *fmt, va_list ap) RAD_PRINTF(2, 0);
void radi_str_add_utf8(struct radi_str *b, uint32_t cp);
char *radi_str_take(struct radi_str *b);            /* caller frees; NULL if failed */
/* JSON string with quotes; bytes that are not UTF-8 become U+FFFD. */
void radi_str_add_json(struct radi_str *b, const char *s, size_t n);

/* ---- UTF-8. Length of the valid sequence at s (1..4), 0 if none; *cp set. */
size_t radi_utf8_next(const char *s, size_t n, uint32_t *cp);
bool   radi_utf8_valid(const char *s, size_t n);

/* ---- numbers from text: whole string must parse. */
bool radi_parse_i64(const char *s, int64_t *out);
bool radi_parse_f64(const char *s, double *out);

/* ---- string hash map: bytes -> uint64. Keys are copied unless borrowed. */
struct radi_map;
struct radi_map *radi_map_new(size_t expect);
void radi_map_free(struct radi_map *m);
/* False when out of memory. An existing key keeps its first value. */
bool radi_map_put(struct radi_map *m, const char *key, size_t n, uint64_t value, bool *existed);
bool radi_map_get(const struct radi_map *m, const char *key, size_t n, uint64_t *value);
size_t radi_map_count(const struct radi_map *m);
uint64_t radi_hash(const void *p, size_t n, uint64_t seed);

/* ---- files */
struct radi_filemap {            /* read-only view of a whole file */
    const uint8_t *data;
    uint64_t size;
    int fd;                      /* -1 when the bytes are in memory */
    bool owned;                  /* data was allocated, not mapped */
};
/* Maps a regular file; reads a pipe or "-" (stdin) whole, up to `limit` bytes
 * (0: half of the memory). A .zst stream (by its magic) is decompressed. */
rad_status radi_filemap_open(const char *path, uint64_t limit, struct radi_filemap *out,
                             struct rad_err *err) RAD_MUSTCHECK;
void radi_filemap_close(struct radi_filemap *m);
/* Bytes [p, p+n) of the view will not be needed soon: if mapped, their pages go
 * back to the kernel (and come again when touched). */
void radi_filemap_drop(const struct radi_filemap *m, const void *p, size_t n);
/* Whole text file into a NUL-terminated heap string; refuses above `limit`. */
rad_status radi_read_text(const char *path, size_t limit, char **out, size_t *len,
                          struct rad_err *err) RAD_MUSTCHECK;

/* Writes beside the target and renames at commit; "-" is stdout. */
struct radi_outfile {
    int fd;
    char *path, *tmp;            /* tmp NULL for stdout */
    uint64_t written;
};
rad_status radi_outfile_open(struct radi_outfile *f, const char *path, struct rad_err *err)
    RAD_MUSTCHECK;
rad_status radi_outfile_write(struct radi_outfile *f, const void *p, size_t n, struct rad_err *err)
    RAD_MUSTCHECK;
rad_status radi_outfile_commit(struct radi_outfile *f, struct rad_err *err)
    RAD_MUSTCHECK; /* fsync, rename, close */
void radi_outfile_abort(struct radi_outfile *f);   /* unlinks the partial file; fine after commit */
/* Registered temporary files are unlinked by rad_cleanup_files (signal-safe). */

/* ---- SHA-256 (libcrypto) */
struct radi_sha256 { void *ctx; };
rad_status radi_sha256_begin(struct radi_sha256 *h, struct rad_err *err) RAD_MUSTCHECK;
void radi_sha256_add(struct radi_sha256 *h, const void *p, size_t n);
void radi_sha256_end(struct radi_sha256 *h, uint8_t out[32]);   /* also frees */
rad_status radi_sha256_of(const void *p, size_t n, uint8_t out[32], struct rad_err *err)
    RAD_MUSTCHECK;

/* ---- JSON (cJSON with caps checked before parsing) */
struct cJSON;
/* Depth <= 128 and bytes <= limit are checked before cJSON sees the text; the
 * text must be one UTF-8 value with nothing but white space behind it. NaN and
 * Infinity literals are refused unless `lenient`, which reads bare NaN,
 * Infinity and -Infinity as the strings of that spelling (checkpoint configs).
 * Duplicate keys of one object are refused. Errors carry line and column.
 * radi_json_parse_c also strips // and C comments first (our own data files). */
enum { RADI_JSON_LENIENT = 1, RADI_JSON_COMMENTS = 2, RADI_JSON_DUPOK = 4 };
rad_status radi_json_parse(const char *text, size_t n, size_t limit, unsigned flags,
                           struct cJSON **out, struct rad_err *err) RAD_MUSTCHECK;
void radi_json_free(struct cJSON *j);
/* Typed members of an object; *present tells absent from null (null -> RAD_E_FORMAT
 * unless the caller asks for it by radi_json_get). Errors name the key, what
 * was found and what was wanted. Absent: returns RAD_OK, *present false. */
const struct cJSON *radi_json_get(const struct cJSON *obj, const char *key);  /* NULL if absent */
rad_status radi_json_str(const struct cJSON *obj, const char *key, const char **out,
                         bool *present, struct rad_err *err)
    RAD_MUSTCHECK;
rad_status radi_json_i64(const struct cJSON *obj, const char *key, int64_t *out,
                         bool *present, struct rad_err *err)
    RAD_MUSTCHECK;
rad_status radi_json_f64(const struct cJSON *obj, const char *key, double *out,
                         bool *present, struct rad_err *err)
    RAD_MUSTCHECK;
rad_status radi_json_bool(const struct cJSON *obj, const char *key, bool *out,
                          bool *present, struct rad_err *err)
    RAD_MUSTCHECK;
/* "object", "array", "string \"x\"", "number 3", "true", "null": for messages. */
const char *radi_json_what(const struct cJSON *j, char buf[64]);

/* ---- thread pool (pinned, spin then futex). One pool per command. */
typedef void radi_part_fn(void *arg, int part, int parts);
struct radi_pool;
/* threads <= 0: one per allowed CPU. The calling thread is part 0. */
rad_status radi_pool_new(int threads, struct radi_pool **out, struct rad_err *err) RAD_MUSTCHECK;
void radi_pool_free(struct radi_pool *p);
int  radi_pool_parts(const struct radi_pool *p);
/* Runs fn on every part and returns when all are done. Not reentrant. */
void radi_pool_run(struct radi_pool *p, radi_part_fn *fn, void *arg);

uint64_t radi_now_ns(void);      /* monotonic */

#endif
