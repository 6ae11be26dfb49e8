/* SPDX-License-Identifier: Apache-2.0 */
/* Checks librad/base: arithmetic, memory, strings, maps, numbers, errors, the
 * log, files, digests and the pool. Files go to a folder of its own,
 * which is removed at the end. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "base/base.h"
#include "tap.h"

static char dir[PATH_MAX];

static void arith(void)
{
    size_t z = 7;
    uint64_t u = 7;
    CHECK(radi_mul_size(3, 5, &z) && z == 15);
    CHECK(!radi_mul_size(SIZE_MAX / 2 + 1, 2, &z) && z == 15);
    CHECK(!radi_add_size(SIZE_MAX, 1, &z) && z == 15);
    CHECK(radi_add_u64(UINT64_MAX - 1, 1, &u) && u == UINT64_MAX);
    CHECK(!radi_mul_u64(UINT64_MAX, UINT64_MAX, &u));
    CHECK(radi_span_ok(10, 0, 10) && radi_span_ok(0, 10, 10));
    CHECK(!radi_span_ok(11, 0, 10) && !radi_span_ok(5, 6, 10));
    CHECK(!radi_span_ok(5, UINT64_MAX, 10) && !radi_span_ok(UINT64_MAX, 5, 10));
    CHECK(radi_align_u64(65, 64, &u) && u == 128);
    CHECK(radi_align_u64(0, 64, &u) && u == 0);
    CHECK(!radi_align_u64(UINT64_MAX - 3, 64, &u));
}

static void arena(void)
{
    struct radi_arena a;
    radi_arena_init(&a, 1 << 20);
    unsigned char *big = radi_arena_alloc(&a, 100000);
    CHECK(big && big[0] == 0 && big[99999] == 0);
    for (size_t n = 0; n < 600; n++) {
        unsigned char *p = radi_arena_alloc(&a, n);
        CHECK(p && (uintptr_t)p % 16 == 0 && (n == 0 || p[n - 1] == 0));
        if (p && n)
            memset(p, 0xff, n);
    }
    CHECK(!radi_arena_array(&a, SIZE_MAX / 2, 4));
    CHECK(!radi_arena_alloc(&a, SIZE_MAX));
    CHECK(!radi_arena_alloc(&a, 1 << 20));             /* over the limit */
    const char *s = radi_arena_printf(&a, "%s-%d", "x", 7);
    CHECK(s && !strcmp(s, "x-7"));
    s = radi_arena_strndup(&a, "hello", 3);
    CHECK(s && !strcmp(s, "hel"));
    CHECK(a.used <= a.limit);
    radi_arena_release(&a);
    CHECK(a.head == NULL && a.used == 0 && a.limit == 1 << 20);
}

static void strings(void)
{
    struct radi_str b = { 0 };
    for (int i = 0; i < 1000; i++)
        radi_str_addf(&b, "%d,", i);
    CHECK(b.len == 3890 && !strncmp(b.s, "0,1,2,", 6));
    radi_str_clear(&b);
    radi_str_add_json(&b, "a\"\\\n\x01\xff\xc3\xa9", 8);
    CHECK_MSG(!strcmp(b.s, "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa9\""),
              "%s", b.s);
    radi_str_clear(&b);
    radi_str_add_utf8(&b, 0x24);
    radi_str_add_utf8(&b, 0xe9);
    radi_str_add_utf8(&b, 0x20ac);
    radi_str_add_utf8(&b, 0x1f600);
    radi_str_add_utf8(&b, 0xd800);
    CHECK(!strcmp(b.s, "$\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd"));
    char *t = radi_str_take(&b);
    CHECK(t && !b.s && !b.len);
    radi_free(t);
    t = radi_str_take(&b);
    CHECK(t && !*t);
    radi_free(t);
    radi_alloc_fail_at(1);
    radi_str_adds(&b, "x");
    radi_str_adds(&b, "y");
    CHECK(b.failed && b.len == 0 && radi_str_take(&b) == NULL);
    radi_alloc_fail_at(0);
}

static void growing(void)
{
    void *p = NULL;
    size_t cap = 0;
    struct rad_err err = { 0 };
    CHECK(radi_grow(&p, &cap, 100, 8, &err) == RAD_OK && cap >= 100);
    size_t old = cap;
    CHECK(radi_grow(&p, &cap, SIZE_MAX / 4, 8, &err) == RAD_E_NOMEM);
    CHECK(cap == old && p && err.text[0]);
    radi_alloc_fail_at(1);
    CHECK(radi_grow(&p, &cap, cap + 1, 8, &err) == RAD_E_NOMEM && cap == old);
    radi_alloc_fail_at(0);
    radi_free(p);
}

static void maps(void)
{
    enum { N = 50000 };
    struct radi_map *m = radi_map_new(0);
    char key[32];
    uint64_t v;
    bool had;
    for (int i = 0; i < N; i++) {
        int n = snprintf(key, sizeof(key), "k%d", i);
        CHECK(radi_map_put(m, key, (size_t)n, (uint64_t)i, &had) && !had);
    }
    CHECK(radi_map_count(m) == N);
    CHECK(radi_map_put(m, "k7", 2, 99, &had) && had);
    for (int i = 0; i < N; i++) {
        int n = snprintf(key, sizeof(key), "k%d", i);
        CHECK(radi_map_get(m, key, (size_t)n, &v) && v == (uint64_t)i);
    }
    CHECK(!radi_map_get(m, "k", 1, &v) && !radi_map_get(m, "", 0, &v));
    CHECK(radi_map_put(m, "", 0, 5, &had) && !had);
    CHECK(radi_map_get(m, "", 0, &v) && v == 5);
    CHECK(radi_map_put(m, "a\0b", 3, 6, NULL) && radi_map_put(m, "a", 1, 7, NULL));
    CHECK(radi_map_get(m, "a\0b", 3, &v) && v == 6);
    radi_map_free(m);
    radi_map_free(NULL);
    CHECK(radi_hash("abcdefgh", 8, 1) == radi_hash("abcdefgh", 8, 1));
    CHECK(radi_hash("abcdefgh", 8, 1) != radi_hash("abcdefgh", 8, 2));
    CHECK(radi_hash("a\0", 2, 1) != radi_hash("a", 1, 1));
    CHECK(!radi_map_new(SIZE_MAX));
}

/* Fails the n-th allocation for each n until a run passes; a map that could
 * not grow still answers for what it holds. */
static void maps_without_memory(void)
{
    for (uint64_t n = 1;; n++) {
        int put = 0;
        radi_alloc_fail_at(n);
        struct radi_map *m = radi_map_new(4);
        for (int i = 0; m && i < 300; i++) {
            char key[16];
            int len = snprintf(key, sizeof(key), "%d", i);
            if (!radi_map_put(m, key, (size_t)len, 1, NULL))
                break;
            put++;
        }
        radi_alloc_fail_at(0);
        if (m)
            CHECK(radi_map_count(m) == (size_t)put);
        radi_map_free(m);
        if (put == 300)
            break;
        CHECK(n < 10000);
    }
}

static void utf8(void)
{
    static const struct { const char *s; size_t n; bool ok; } t[] = {
        { "", 0, true }, { "abc", 3, true }, { "\xc3\xa9", 2, true },
        { "\xf4\x8f\xbf\xbf", 4, true }, { "\xf4\x90\x80\x80", 4, false },
        { "\xc0\x80", 2, false }, { "\xc1\xbf", 2, false },
        { "\xe0\x9f\xbf", 3, false }, { "\xe0\xa0\x80", 3, true },
        { "\xed\x9f\xbf", 3, true }, { "\xed\xa0\x80", 3, false },
        { "\xf0\x8f\xbf\xbf", 4, false }, { "\xf0\x90\x80\x80", 4, true },
        { "\xc3", 1, false }, { "\xe2\x82", 2, false }, { "\x80", 1, false },
        { "\xff", 1, false }, { "\xf5\x80\x80\x80", 4, false },
        { "a\0b", 3, true },
    };
    for (size_t i = 0; i < RADI_COUNT(t); i++)
        CHECK_MSG(radi_utf8_valid(t[i].s, t[i].n) == t[i].ok, "row %zu", i);
    uint32_t cp = 0;
    CHECK(radi_utf8_next("\xe2\x82\xac", 3, &cp) == 3 && cp == 0x20ac);
}

static void numbers(void)
{
    int64_t i = 5;
    double d = 5;
    CHECK(radi_parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
    CHECK(radi_parse_i64("9223372036854775807", &i) && i == INT64_MAX);
    static const char *const bad_i[] = {
        "", "-", "+1", " 1", "1 ", "0x10", "1.0", "9223372036854775808",
        "-9223372036854775809",
    };
    for (size_t k = 0; k < RADI_COUNT(bad_i); k++)
        CHECK_MSG(!radi_parse_i64(bad_i[k], &i), "'%s'", bad_i[k]);
    CHECK(i == INT64_MAX);
    CHECK(radi_parse_f64("-1.5e3", &d) && d == -1500);
    static const char *const bad_f[] = {
        "", ".", "e5", "1e", "inf", "nan", "0x1p3", " 1", "1 ", "1e999",
        "1,5", "--1",
    };
    for (size_t k = 0; k < RADI_COUNT(bad_f); k++)
        CHECK_MSG(!radi_parse_f64(bad_f[k], &d), "'%s'", bad_f[k]);
    CHECK(d == -1500);
}

static void errors(void)
{
    struct rad_err e = { 0 };
    char big[4096];
    CHECK(rad_fail(NULL, RAD_E_IO, "x") == RAD_E_IO);
    CHECK(rad_fail(&e, RAD_E_FORMAT, "row %d", 3) == RAD_E_FORMAT);
    CHECK(rad_fail_in(&e, e.code, "'%s'", "m.rad") == RAD_E_FORMAT);
    CHECK(!strcmp(e.text, "'m.rad': row 3") && e.code == RAD_E_FORMAT);
    rad_fail(&e, RAD_E_ARG, "was: %s", e.text);
    CHECK(!strcmp(e.text, "was: 'm.rad': row 3"));
    rad_fail(&e, RAD_E_ARG, "esc \x1b[31m\x07 line\nnext");
    CHECK(!strcmp(e.text, "esc ?[31m? line next"));
    e.text[0] = 0;
    rad_fail_in(&e, RAD_E_NOMEM, "here");
    CHECK(!strcmp(e.text, "here: out of memory"));
    for (size_t i = 0; i + 2 < sizeof(big); i += 2)
        memcpy(big + i, "\xc3\xa9", 2);
    big[sizeof(big) - 2] = 0;
    rad_fail(&e, RAD_E_ARG, "%s", big);
    CHECK(radi_utf8_valid(e.text, strlen(e.text)));
    CHECK(strlen(e.text) < RAD_ERR_TEXT && strstr(e.text, "..."));
    errno = ENOENT;
    CHECK(rad_fail_errno(&e, "'%s'", "f") == RAD_E_NOTFOUND);
    CHECK(!strcmp(e.text, "'f': No such file or directory"));
    for (int s = 0; s >= -21; s--)
        CHECK(strcmp(rad_strstatus((rad_status)s), "unknown status"));
    CHECK(!strcmp(rad_strstatus((rad_status)-99), "unknown status"));
}

static char log_seen[256];
static void log_line(void *user, enum rad_log_level level, const char *area,
                     const char *text)
{
    (void)user;
    snprintf(log_seen, sizeof(log_seen), "%d %s %s", (int)level, area, text);
}

static void logging(void)
{
    struct rad_err e = { 0 };
    rad_log(RAD_LOG_ERROR, "kv", "nobody listens");
    rad_log_set(log_line, NULL);
    CHECK(rad_log_select("kv:debug,error", &e) == RAD_OK);
    rad_log(RAD_LOG_DEBUG, "kv", "n %d", 5);
    CHECK(!strcmp(log_seen, "3 kv n 5"));
    rad_log(RAD_LOG_TRACE, "kv", "too deep");
    rad_log(RAD_LOG_WARN, "plan", "too quiet");
    CHECK(!strcmp(log_seen, "3 kv n 5"));
    CHECK(rad_log_on(RAD_LOG_ERROR, "plan") && !rad_log_on(RAD_LOG_INFO, NULL));
    CHECK(rad_log_select("kv:loud", &e) == RAD_E_ARG && strstr(e.text, "'loud'"));
    CHECK(rad_log_select(":info", &e) == RAD_E_ARG);
    CHECK(rad_log_select("warn", &e) == RAD_OK);
    rad_log_set(NULL, NULL);
}

static void digest(void)
{
    static const uint8_t want[4] = { 0xba, 0x78, 0x16, 0xbf };
    uint8_t out[32] = { 0 }, two[32];
    struct radi_sha256 h;
    CHECK(radi_sha256_of("abc", 3, out, NULL) == RAD_OK);
    CHECK(!memcmp(out, want, 4) && out[31] == 0xad);
    CHECK(radi_sha256_begin(&h, NULL) == RAD_OK);
    radi_sha256_add(&h, "a", 1);
    radi_sha256_add(&h, "bc", 2);
    radi_sha256_end(&h, two);
    CHECK(!memcmp(out, two, 32));
}

/* ---- files */
static const char *in_dir(const char *name)
{
    static char buf[4][PATH_MAX + 64];
    static int k;
    char *p = buf[k++ & 3];
    snprintf(p, sizeof(buf[0]), "%s/%s", dir, name);
    return p;
}

static void put_file(const char *name, const void *p, size_t n)
{
    FILE *f = fopen(in_dir(name), "w");
    CHECK(f && fwrite(p, 1, n, f) == n);
    if (f)
        fclose(f);
}

static bool file_is(const char *name, const char *text)
{
    char *s;
    size_t n;
    if (radi_read_text(in_dir(name), 1 << 20, &s, &n, NULL))
        return false;
    bool same = n == strlen(text) && !memcmp(s, text, n);
    radi_free(s);
    return same;
}

static void filemaps(void)
{
    struct radi_filemap m;
    struct rad_err e = { 0 };
    char *s;
    size_t n;

    put_file("a", "hello", 5);
    put_file("empty", "", 0);
    CHECK(radi_filemap_open(in_dir("a"), 5, &m, &e) == RAD_OK);
    CHECK(m.size == 5 && !memcmp(m.data, "hello", 5) && !m.owned);
    radi_filemap_close(&m);
    radi_filemap_close(&m);
    CHECK(radi_filemap_open(in_dir("a"), 4, &m, &e) == RAD_E_FORMAT);
    CHECK(strstr(e.text, "5 bytes, want at most 4"));
    CHECK(radi_filemap_open(in_dir("empty"), 0, &m, &e) == RAD_OK && m.size == 0);
    radi_filemap_close(&m);
    CHECK(radi_filemap_open(in_dir("none"), 0, &m, &e) == RAD_E_NOTFOUND);
    CHECK(strstr(e.text, "none': No such file"));
    CHECK(radi_filemap_open(dir, 0, &m, &e) == RAD_E_IO);
    CHECK(strstr(e.text, "is a directory"));
    CHECK(radi_read_text(in_dir("a"), 10, &s, &n, &e) == RAD_OK);
    CHECK(n == 5 && !strcmp(s, "hello"));
    radi_free(s);
    CHECK(radi_read_text(in_dir("empty"), 10, &s, &n, &e) == RAD_OK && !*s);
    radi_free(s);
    CHECK(radi_read_text("/proc/self/status", 1 << 20, &s, &n, &e) == RAD_OK);
    CHECK(n > 20);
    radi_free(s);
}

/* Writes p[0..n) in small pieces into a pipe and opens its other end. */
static rad_status open_pipe(const void *p, size_t n, uint64_t limit,
                            struct radi_filemap *m, struct rad_err *e)
{
    int fd[2];
    char path[32];
    if (pipe(fd))
        return RAD_E_IO;
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        for (size_t i = 0; i < n;) {
            size_t k = RADI_MIN(n - i, i < 8 ? (size_t)1 : (size_t)999);
            ssize_t w = write(fd[1], (const char *)p + i, k);
            if (w <= 0)
                break;
            i += (size_t)w;
        }
        _exit(0);
    }
    close(fd[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", fd[0]);
    rad_status st = radi_filemap_open(path, limit, m, e);
    close(fd[0]);
    waitpid(pid, NULL, 0);
    return st;
}

static void pipes(void)
{
    struct radi_filemap m;
    struct rad_err e = { 0 };
    size_t n = 700000;
    char *p = malloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i * i / 7 + 1);
    CHECK(open_pipe(p, n, 0, &m, &e) == RAD_OK);
    CHECK(m.size == n && m.owned && m.fd == -1 && !memcmp(m.data, p, n));
    radi_filemap_close(&m);
    CHECK(open_pipe(p, n, n, &m, &e) == RAD_OK);
    radi_filemap_close(&m);
    CHECK(open_pipe(p, n, n - 1, &m, &e) == RAD_E_FORMAT);
    CHECK_MSG(strstr(e.text, "699999"), "%s", e.text);
    CHECK(open_pipe("ab", 2, 0, &m, &e) == RAD_OK && m.size == 2);
    radi_filemap_close(&m);
    CHECK(open_pipe("", 0, 0, &m, &e) == RAD_OK && m.size == 0);
    radi_filemap_close(&m);
    free(p);
}

static void zstd_streams(void)
{
    struct radi_filemap m;
    struct rad_err e = { 0 };
    size_t n = 1000000, cap = ZSTD_compressBound(n) * 2 + 64, a, b, k;
    char *p = malloc(n);
    unsigned char *z = malloc(cap);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i % 1000 + i / 5000);
    a = ZSTD_compress(z, cap, p, n, 3);
    b = ZSTD_compress(z + a, cap - a, "tail", 4, 3);
    memcpy(z + a + b, "\x51\x2a\x4d\x18\x03\0\0\0abc", 11);  /* skippable */
    put_file("two.zst", z, a + b + 11);
    CHECK(radi_filemap_open(in_dir("two.zst"), 0, &m, &e) == RAD_OK);
    CHECK(m.size == n + 4 && !memcmp(m.data, p, n) &&
          !memcmp(m.data + n, "tail", 4));
    radi_filemap_close(&m);
    CHECK(open_pipe(z, a + b, n + 4, &m, &e) == RAD_OK && m.size == n + 4);
    radi_filemap_close(&m);
    CHECK(open_pipe(z, a, n - 1, &m, &e) == RAD_E_FORMAT);  /* a bomb */
    CHECK_MSG(strstr(e.text, "999999"), "%s", e.text);
    for (k = 4; k < a; k += 97) {                   /* cut */
        put_file("cut.zst", z, k);
        CHECK(radi_filemap_open(in_dir("cut.zst"), 0, &m, &e) == RAD_E_FORMAT);
    }
    put_file("junk.zst", z, a);
    FILE *f = fopen(in_dir("junk.zst"), "a");
    fputs("junk", f);
    fclose(f);
    CHECK(radi_filemap_open(in_dir("junk.zst"), 0, &m, &e) == RAD_E_FORMAT);
    /* the frame claims 2^60 bytes: an error, not an allocation */
    unsigned char lie[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0,
                            0x10, 0x21, 0, 0, 'a', 'b', 'c', 'd' };
    put_file("lie.zst", lie, sizeof(lie));
    CHECK(radi_filemap_open(in_dir("lie.zst"), 1 << 20, &m, &e) == RAD_E_FORMAT);
    CHECK_MSG(strstr(e.text, "zstd"), "%s", e.text);
    free(p);
    free(z);
}

static void outfiles(void)
{
    struct radi_outfile f, g;
    struct rad_err e = { 0 };
    char tmp[PATH_MAX];

    put_file("out", "old", 3);
    CHECK(radi_outfile_open(&f, in_dir("out"), &e) == RAD_OK);
    snprintf(tmp, sizeof(tmp), "%s", f.tmp);
    CHECK(radi_outfile_open(&g, in_dir("out"), &e) == RAD_E_STATE);
    CHECK(radi_outfile_write(&f, "newer", 5, &e) == RAD_OK && f.written == 5);
    CHECK(file_is("out", "old") && access(tmp, F_OK) == 0);
    radi_outfile_abort(&f);
    CHECK(file_is("out", "old") && access(tmp, F_OK) != 0);
    radi_outfile_abort(&f);
    CHECK(radi_outfile_open(&f, in_dir("out"), &e) == RAD_OK);
    CHECK(radi_outfile_write(&f, "new", 3, &e) == RAD_OK);
    CHECK(radi_outfile_commit(&f, &e) == RAD_OK);
    CHECK(file_is("out", "new") && access(tmp, F_OK) != 0);
    radi_outfile_abort(&f);
    CHECK(file_is("out", "new"));

    put_file("stale", "", 0);
    CHECK(rename(in_dir("stale"), tmp) == 0);   /* of a killed namesake */
    CHECK(radi_outfile_open(&f, in_dir("out"), &e) == RAD_OK);
    CHECK(rad_cleanup_files() == 1 && access(tmp, F_OK) != 0);
    CHECK(radi_outfile_commit(&f, &e) != RAD_OK && file_is("out", "new"));
    CHECK(rad_cleanup_files() == 0);

    CHECK(radi_outfile_open(&f, "/dev/full", &e) == RAD_OK && !f.tmp);
    CHECK(radi_outfile_write(&f, "x", 1, &e) == RAD_E_IO);
    CHECK_MSG(strstr(e.text, "'/dev/full': write at byte 0: No space"), "%s",
              e.text);
    radi_outfile_abort(&f);
    CHECK(radi_outfile_open(&f, "/dev/null", &e) == RAD_OK);
    CHECK(radi_outfile_write(&f, "x", 1, &e) == RAD_OK);
    CHECK(radi_outfile_commit(&f, &e) == RAD_OK);
    struct stat sb;
    CHECK(stat("/dev/null", &sb) == 0 && S_ISCHR(sb.st_mode));
    CHECK(radi_outfile_open(&f, dir, &e) == RAD_E_IO);
    CHECK(radi_outfile_open(&f, in_dir("no/such/x"), &e) == RAD_E_NOTFOUND);
    struct radi_outfile many[17];
    for (int i = 0; i < 17; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many%d", i);
        CHECK(radi_outfile_open(&many[i], in_dir(name), &e) ==
              (i < 16 ? RAD_OK : RAD_E_FULL));
    }
    for (int i = 0; i < 17; i++)
        radi_outfile_abort(&many[i]);
}

/* ---- pool */
struct count {
    int parts, nap;
    atomic_int runs[64];
    long plain[64];             /* not atomic: TSan sees a missing barrier */
};

static void part(void *arg, int p, int parts)
{
    struct count *c = arg;
    CHECK(parts == c->parts && p >= 0 && p < parts);
    atomic_fetch_add(&c->runs[p], 1);
    c->plain[p] += p + 1;
    if (c->nap && p == c->nap % parts)
        usleep(200);
}

static void pool_runs(int threads, int rounds, bool nap)
{
    struct radi_pool *pool = NULL;
    struct rad_err e = { 0 };
    struct count c = { .parts = threads };
    CHECK_MSG(radi_pool_new(threads, &pool, &e) == RAD_OK, "%s", e.text);
    if (!pool)
        return;
    CHECK(radi_pool_parts(pool) == threads);
    long total = 0;
    for (int r = 0; r < rounds; r++) {
        c.nap = nap ? r + 1 : 0;
        radi_pool_run(pool, part, &c);
        if (nap && r % 16 == 0)
            usleep(300);        /* workers go to sleep */
        total = 0;
        for (int p = 0; p < threads; p++)
            total += c.plain[p];
        CHECK(total == (r + 1) * (long)threads * (threads + 1) / 2);
    }
    for (int p = 0; p < threads; p++)
        CHECK(atomic_load(&c.runs[p]) == rounds);
    radi_pool_free(pool);
}

static void pool_every_part_once(void)
{
    pool_runs(1, 1000, false);
    pool_runs(2, 5000, false);
    pool_runs(3, 1000, false);
    pool_runs(8, 500, false);
    pool_runs(64, 20, false);
}

static void pool_sleeps_and_wakes(void)
{
    pool_runs(2, 300, true);
    pool_runs(5, 200, true);
}

static void pool_comes_and_goes(void)
{
    struct rad_err e = { 0 };
    struct radi_pool *p;
    for (int i = 0; i < 50; i++) {
        CHECK(radi_pool_new(1 + i % 5, &p, &e) == RAD_OK);
        radi_pool_free(p);
    }
    CHECK(radi_pool_new(0, &p, &e) == RAD_OK && radi_pool_parts(p) >= 1);
    radi_pool_free(p);
    CHECK(radi_pool_new(1000000, &p, &e) == RAD_E_ARG && !p);
    radi_pool_free(NULL);
    for (uint64_t n = 1; n <= 6; n++) {
        radi_alloc_fail_at(n);
        rad_status st = radi_pool_new(2, &p, &e);
        radi_alloc_fail_at(0);
        CHECK(st == RAD_OK || (st == RAD_E_NOMEM && !p));
        radi_pool_free(p);
    }
}

/* A sum cut by parts: the same number of parts gives the same bits. */
struct sum {
    float x[4096], part[64], total;
};
static void sum_part(void *arg, int p, int parts)
{
    struct sum *s = arg;
    float t = 0;
    for (int i = 4096 * p / parts; i < 4096 * (p + 1) / parts; i++)
        t += s->x[i];
    s->part[p] = t;
}

static void pool_same_parts_same_bits(void)
{
    struct sum *s = calloc(1, sizeof(*s));
    struct radi_pool *p;
    float first = 0;
    CHECK(radi_pool_new(3, &p, NULL) == RAD_OK);
    for (int i = 0; i < 4096; i++)
        s->x[i] = 1.0f / (float)(i * 7 % 4099 + 1);
    for (int r = 0; r < 200; r++) {
        radi_pool_run(p, sum_part, s);
        float t = s->part[0] + s->part[1] + s->part[2];
        if (r == 0)
            first = t;
        CHECK(!memcmp(&t, &first, sizeof(t)));
    }
    radi_pool_free(p);
    free(s);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%s/base-check.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    TAP_RUN(arith);
    TAP_RUN(arena);
    TAP_RUN(strings);
    TAP_RUN(growing);
    TAP_RUN(maps);
    TAP_RUN(maps_without_memory);
    TAP_RUN(utf8);
    TAP_RUN(numbers);
    TAP_RUN(errors);
    TAP_RUN(logging);
    TAP_RUN(digest);
    TAP_RUN(filemaps);
    TAP_RUN(pipes);
    TAP_RUN(zstd_streams);
    TAP_RUN(outfiles);
    TAP_RUN(pool_every_part_once);
    TAP_RUN(pool_sleeps_and_wakes);
    TAP_RUN(pool_comes_and_goes);
    TAP_RUN(pool_same_parts_same_bits);
    char cmd[PATH_MAX + 32];
    snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
    if (system(cmd))
        return 1;
    return tap_done();
}
