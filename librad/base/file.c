/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading a whole file into view and writing one safely.
 *
 * Readers map regular files and read everything else (pipes, stdin, /proc)
 * into memory. Zstandard is known by its magic; a frame's own claim about its
 * size is not believed: the buffer grows by what really comes out, up to the
 * caller's limit. A mapped file that somebody truncates meanwhile raises
 * SIGBUS: that is the price of not copying models.
 *
 * Writers fill `<path>.tmp.<pid>` and rename at commit. The names of partial
 * files stand in a fixed table that a signal handler may walk. Devices and
 * pipes are written in place: renaming over them would replace them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/base.h"

#include "banned.h"

enum { READ_CHUNK = 1 << 18 };

/* ---- reading */
struct sink {                   /* bytes so far; one more is kept for a NUL */
    uint8_t *p;
    size_t n, cap;
    uint64_t limit;             /* 0: none */
};

/* Room for at least one byte more, refused when the limit is reached. */
static rad_status sink_room(struct sink *s, struct rad_err *err)
{
    void *p = s->p;
    size_t want;

    if (s->n + 1 < s->cap)
        return RAD_OK;
    if (!radi_add_size(s->n, READ_CHUNK, &want))
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    rad_status st = radi_grow(&p, &s->cap, want, 1, err);
    s->p = p;
    return st;
}

static rad_status sink_check(const struct sink *s, struct rad_err *err)
{
    if (s->limit && s->n > s->limit)
        return rad_fail(err, RAD_E_FORMAT, "more than %llu bytes, the limit "
                        "here", (unsigned long long)s->limit);
    return RAD_OK;
}

static ssize_t read_some(int fd, void *p, size_t n)
{
    ssize_t r;
    do
        r = read(fd, p, n);
    while (r < 0 && errno == EINTR);
    return r;
}

static bool is_zstd(const uint8_t *p, size_t n)
{
    if (n < 4)
        return false;
    uint32_t magic = (uint32_t)p[0] | (uint32_t)p[1] << 8 |
                     (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

/* Decompresses p[0..n) and then what fd still holds. */
static rad_status unzstd(int fd, const uint8_t *head, size_t n, struct sink *s,
                         struct rad_err *err)
{
    rad_status st = RAD_OK;
    uint8_t *buf = radi_malloc(READ_CHUNK);
    ZSTD_DStream *z = ZSTD_createDStream();
    size_t need = 1;

    if (!buf || !z) {
        st = rad_fail(err, RAD_E_NOMEM, "out of memory to decompress");
        goto out;
    }
    memcpy(buf, head, n);
    for (;;) {
        ZSTD_inBuffer in = { buf, n, 0 };
        bool full = false;          /* the decoder may hold more output */
        while (in.pos < in.size || full) {
            if ((st = sink_room(s, err)) != RAD_OK)
                goto out;
            ZSTD_outBuffer o = { s->p + s->n, s->cap - s->n - 1, 0 };
            need = ZSTD_decompressStream(z, &o, &in);
            if (ZSTD_isError(need)) {
                st = rad_fail(err, RAD_E_FORMAT, "zstd stream: %s at output "
                              "byte %zu", ZSTD_getErrorName(need), s->n + o.pos);
                goto out;
            }
            s->n += o.pos;
            full = o.pos == o.size && need != 0;
            if ((st = sink_check(s, err)) != RAD_OK)
                goto out;
        }
        ssize_t r = read_some(fd, buf, READ_CHUNK);
        if (r < 0) {
            st = rad_fail_errno(err, "read");
            goto out;
        }
        if (r == 0)
            break;
        n = (size_t)r;
    }
    if (need != 0)
        st = rad_fail(err, RAD_E_FORMAT, "zstd stream ends inside a frame, "
                      "after %zu bytes of output", s->n);
out:
    ZSTD_freeDStream(z);
    radi_free(buf);
    return st;
}

/* Reads fd to its end; the first n bytes were read already. */
static rad_status slurp(int fd, const uint8_t *head, size_t n, struct sink *s,
                        struct rad_err *err)
{
    RAD_TRY(sink_room(s, err));
    memcpy(s->p, head, n);
    s->n = n;
    for (;;) {
        RAD_TRY(sink_room(s, err));
        ssize_t r = read_some(fd, s->p + s->n, s->cap - s->n - 1);
        if (r < 0)
            return rad_fail_errno(err, "read");
        if (r == 0)
            return RAD_OK;
        s->n += (size_t)r;
        RAD_TRY(sink_check(s, err));
    }
}

/* A stream is held whole, and a compressed one may grow without end: without
 * the caller's limit it may take half of the machine's memory. */
static uint64_t stream_limit(uint64_t limit)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    if (limit || pages <= 0 || size <= 0)
        return limit;
    return (uint64_t)pages * (uint64_t)size / 2;
}

static rad_status read_stream(int fd, uint64_t limit, struct radi_filemap *out,
                              struct rad_err *err)
{
    struct sink s = { .limit = stream_limit(limit) };
    uint8_t head[4];
    size_t n = 0;
    rad_status st = RAD_OK;

    while (n < sizeof(head)) {
        ssize_t r = read_some(fd, head + n, sizeof(head) - n);
        if (r < 0)
            return rad_fail_errno(err, "read");
        if (r == 0)
            break;
        n += (size_t)r;
    }
    st = is_zstd(head, n) ? unzstd(fd, head, n, &s, err) :
                            slurp(fd, head, n, &s, err);
    if (st == RAD_OK)
        st = sink_room(&s, err);    /* for the NUL, also of an empty stream */
    if (st) {
        radi_free(s.p);
        return st;
    }
    s.p[s.n] = 0;
    uint8_t *fit = radi_realloc(s.p, s.n + 1);
    *out = (struct radi_filemap){
        .data = fit ? fit : s.p, .size = s.n, .fd = -1, .owned = true,
    };
    return RAD_OK;
}

static rad_status map_fd(int fd, uint64_t limit, struct radi_filemap *out,
                         struct rad_err *err)
{
    struct stat sb;
    uint8_t head[4];

    if (fstat(fd, &sb))
        return rad_fail_errno(err, "stat");
    if (S_ISDIR(sb.st_mode))
        return rad_fail(err, RAD_E_IO, "is a directory, want a file");
    /* /proc says 0 bytes; a half-read stdin starts where it stands */
    if (!S_ISREG(sb.st_mode) || sb.st_size <= 0 ||
        lseek(fd, 0, SEEK_CUR) != 0)
        return read_stream(fd, limit, out, err);
    ssize_t r = pread(fd, head, sizeof(head), 0);
    if (r > 0 && is_zstd(head, (size_t)r))
        return read_stream(fd, limit, out, err);
    if (limit && (uint64_t)sb.st_size > limit)
        return rad_fail(err, RAD_E_FORMAT, "%lld bytes, want at most %llu",
                        (long long)sb.st_size, (unsigned long long)limit);
    int keep = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (keep < 0)
        return rad_fail_errno(err, "duplicate the descriptor");
    void *p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, keep, 0);
    if (p == MAP_FAILED) {
        rad_fail_errno(err, "map %lld bytes", (long long)sb.st_size);
        close(keep);
        return err ? err->code : RAD_E_IO;
    }
    *out = (struct radi_filemap){
        .data = p, .size = (uint64_t)sb.st_size, .fd = keep,
    };
    return RAD_OK;
}

rad_status radi_filemap_open(const char *path, uint64_t limit,
                             struct radi_filemap *out, struct rad_err *err)
{
    bool in = !strcmp(path, "-");
    rad_status st;

    *out = (struct radi_filemap){ .fd = -1 };
    int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rad_fail_errno(err, "'%s'", path);
    st = map_fd(fd, limit, out, err);
    if (!in)
        close(fd);
    return st ? rad_fail_in(err, st, "'%s'", in ? "stdin" : path) : RAD_OK;
}

void radi_filemap_close(struct radi_filemap *m)
{
    if (m->owned)
        radi_free((void *)(uintptr_t)m->data);
    else if (m->data)
        munmap((void *)(uintptr_t)m->data, (size_t)m->size);
    if (m->fd >= 0)
        close(m->fd);
    *m = (struct radi_filemap){ .fd = -1 };
}

void radi_filemap_drop(const struct radi_filemap *m, const void *p, size_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t a = (uintptr_t)p & ~page, b = ((uintptr_t)p + n) & ~page;

    if (m->data && !m->owned && b > a)
        madvise((void *)a, b - a, MADV_DONTNEED);
}

rad_status radi_read_text(const char *path, size_t limit, char **out,
                          size_t *len, struct rad_err *err)
{
    struct radi_filemap m;

    *out = NULL;
    RAD_TRY(radi_filemap_open(path, limit, &m, err));
    if (len)
        *len = (size_t)m.size;
    if (m.owned) {                  /* ends in a NUL already */
        *out = (char *)(uintptr_t)m.data;
        return RAD_OK;
    }
    char *p = radi_malloc((size_t)m.size + 1);
    if (p) {
        memcpy(p, m.data, (size_t)m.size);
        p[m.size] = 0;
    }
    size_t size = (size_t)m.size;
    radi_filemap_close(&m);
    if (!p)
        return rad_fail(err, RAD_E_NOMEM, "'%s': out of memory for %zu bytes",
                        path, size);
    *out = p;
    return RAD_OK;
}

/* ---- writing. A slot is FREE, CLAIMED while its path is written, or LIVE. */
enum { SLOT_FREE, SLOT_CLAIMED, SLOT_LIVE, SLOTS = 16 };

static struct {
    atomic_int state;
    pid_t pid;                      /* a forked child leaves them alone */
    char path[PATH_MAX];
} partial[SLOTS];

int rad_cleanup_files(void)
{
    int n = 0;
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load(&partial[i].state) == SLOT_LIVE &&
            partial[i].pid == getpid() && unlink(partial[i].path) == 0)
            n++;
    return n;
}

static rad_status remember(const char *tmp, struct rad_err *err)
{
    size_t n = strlen(tmp);
    if (n >= PATH_MAX)
        return rad_fail(err, RAD_E_ARG, "path of %zu bytes, want at most %d",
                        n, PATH_MAX - 1);
    for (int i = 0; i < SLOTS; i++) {
        int want = SLOT_FREE;
        if (!atomic_compare_exchange_strong(&partial[i].state, &want,
                                            SLOT_CLAIMED))
            continue;
        memcpy(partial[i].path, tmp, n + 1);
        partial[i].pid = getpid();
        atomic_store(&partial[i].state, SLOT_LIVE);
        return RAD_OK;
    }
    return rad_fail(err, RAD_E_FULL, "more than %d output files at once",
                    SLOTS);
}

static bool is_remembered(const char *tmp)
{
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load(&partial[i].state) == SLOT_LIVE &&
            !strcmp(partial[i].path, tmp))
            return true;
    return false;
}

static void forget(const char *tmp)
{
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load(&partial[i].state) == SLOT_LIVE &&
            !strcmp(partial[i].path, tmp)) {
            atomic_store(&partial[i].state, SLOT_FREE);
            return;
        }
}

static void drop(struct radi_outfile *f)
{
    radi_free(f->path);
    radi_free(f->tmp);
    *f = (struct radi_outfile){ .fd = -1 };
}

/* Opens the partial file of f->path, whose name becomes known to the handler
 * before the file exists. */
static rad_status open_tmp(struct radi_outfile *f, struct rad_err *err)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    struct radi_str name = { 0 };

    radi_str_addf(&name, "%s.tmp.%ld", f->path, (long)getpid());
    char *tmp = radi_str_take(&name);
    if (!tmp)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    rad_status st = RAD_OK;
    if (is_remembered(tmp))
        st = rad_fail(err, RAD_E_STATE, "is being written already");
    else
        st = remember(tmp, err);
    if (st) {
        radi_free(tmp);
        return st;
    }
    f->tmp = tmp;
    f->fd = open(tmp, flags, 0666);
    /* left by a process that had our number and was killed */
    if (f->fd < 0 && errno == EEXIST && unlink(tmp) == 0)
        f->fd = open(tmp, flags, 0666);
    if (f->fd < 0) {
        st = rad_fail_errno(err, "create");
        forget(tmp);
        return st;
    }
    return RAD_OK;
}

rad_status radi_outfile_open(struct radi_outfile *f, const char *path,
                             struct rad_err *err)
{
    struct stat sb;
    bool to_stdout = !strcmp(path, "-");
    rad_status st = RAD_OK;

    *f = (struct radi_outfile){ .fd = -1 };
    f->path = radi_strdup(to_stdout ? "stdout" : path);
    if (!f->path)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    if (to_stdout)
        f->fd = STDOUT_FILENO;
    else if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode)) {
        if (S_ISDIR(sb.st_mode))
            st = rad_fail(err, RAD_E_IO, "is a directory, want a file name");
        else if ((f->fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
            st = rad_fail_errno(err, "open");
    } else
        st = open_tmp(f, err);
    if (st) {
        drop(f);
        return rad_fail_in(err, st, "'%s'", path);
    }
    return RAD_OK;
}

rad_status radi_outfile_write(struct radi_outfile *f, const void *p, size_t n,
                              struct rad_err *err)
{
    const uint8_t *s = p;

    while (n) {
        ssize_t w = write(f->fd, s, RADI_MIN(n, (size_t)1 << 30));
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return rad_fail_errno(err, "'%s': write at byte %llu", f->path,
                                  (unsigned long long)f->written);
        s += w;
        n -= (size_t)w;
        f->written += (uint64_t)w;
    }
    return RAD_OK;
}

/* Makes the new name durable; some file systems cannot, and that is no loss
 * of what was asked. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? radi_strndup(path, (size_t)(slash - path) + 1) : NULL;
    int fd = open(dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    radi_free(dir);
}

rad_status radi_outfile_commit(struct radi_outfile *f, struct rad_err *err)
{
    rad_status st = RAD_OK;

    RADI_BUG_IF(f->fd < 0);
    /* EINVAL, EROFS: pipes and devices have nothing to sync */
    if (fsync(f->fd) && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        st = rad_fail_errno(err, "'%s': sync", f->path);
    if (!st && f->fd != STDOUT_FILENO) {
        int fd = f->fd;
        f->fd = -1;
        if (close(fd))
            st = rad_fail_errno(err, "'%s': close", f->path);
    }
    if (!st && f->tmp && rename(f->tmp, f->path))
        st = rad_fail_errno(err, "'%s': rename from '%s'", f->path, f->tmp);
    if (st) {
        radi_outfile_abort(f);
        return st;
    }
    if (f->tmp) {
        forget(f->tmp);
        sync_folder(f->path);
    }
    drop(f);
    return RAD_OK;
}

void radi_outfile_abort(struct radi_outfile *f)
{
    if (!f->path)                   /* never opened, committed, or aborted */
        return;
    if (f->fd >= 0 && f->fd != STDOUT_FILENO)
        close(f->fd);
    if (f->tmp) {
        unlink(f->tmp);
        forget(f->tmp);
    }
    drop(f);
}
