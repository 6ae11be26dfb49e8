/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is not there, with a GPU's manners, so that the engine can be
 * held to them without one. Device pointers carry a tag in their high bits and
 * fault when the host reads them. Copies and launches are queued and run late,
 * after small delays, on the device's own thread, where host kernels get the
 * pointers without the tag. Copies take pinned host memory only; operands that
 * are not the device's are refused.
 *
 * The lock guards everything in struct test_device but `ops`. One queue serves
 * all streams in the order of submission, which is one of the orders that
 * streams allow. */
#include "config.h"

#include <pthread.h>
#include <time.h>

#include "device/device.h"

#include "banned.h"

/* Not canonical on x86-64, outside of a 48-bit address space elsewhere; the
 * top byte is zero because some machines ignore it. */
#define TAG ((uintptr_t)0x00ad << 48)
#define TAG_MASK ((uintptr_t)0xffff << 48)

enum what { COPY, FILL, LAUNCH, RECORD };

struct record {
    enum what what;
    void *dst;
    const void *src;
    size_t bytes;
    int byte;
    struct radi_event *event;
    const RadKernelRow *row;
    RadLaunch a;
    RadTensor opd[RAD_MAX_OPERANDS];
    unsigned char *params;       /* params_bytes of the ring's own */
};

struct radi_stream { int unused; };
struct radi_event {
    uint64_t recorded, done;     /* generations */
};
struct block {                   /* an allocation: whose pointers are legal */
    uintptr_t at;
    size_t bytes;
    enum radi_mem kind;
};

struct test_device {
    struct radi_device base;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;        /* head, tail, an event or stop changed */
    bool started, stop;
    uint64_t head, tail, cap;    /* records [tail, head) wait */
    struct record *ring;
    unsigned char *params;
    size_t params_bytes;
    int parts;
    struct block *block;
    size_t n_blocks, cap_blocks;
    rad_status fail;             /* the first failed launch; shows at the wait */
};

static struct test_device *test_of(struct radi_device *d)
{
    return (struct test_device *)d;
}

static bool tagged(const void *p)
{
    return ((uintptr_t)p & TAG_MASK) == TAG;
}

static void *untag(const void *p)
{
    return p ? (void *)((uintptr_t)p ^ TAG) : NULL;
}

/* ---- the device's thread */
static void untag_operand(RadTensor *t)
{
    t->data = t->data ? untag(t->data) : NULL;
    for (int i = 0; t->enc && i < RAD_MAX_PLANES; i++)
        t->plane[i] = untag(t->plane[i]);
}

static int run_launch(struct test_device *t, struct record *r)
{
    r->a.opd = r->opd;
    r->a.params = r->params;
    r->a.scratch = untag(r->a.scratch);
    for (int i = 0; i < r->a.n_opd; i++)
        untag_operand(&r->opd[i]);
    r->a.parts = t->parts;
    for (r->a.part = 0; r->a.part < t->parts; r->a.part++) {
        int rc = r->row->launch(&r->a);
        if (rc < 0)
            return rc;
    }
    return RAD_OK;
}

/* Some records are late, always the same ones. */
static void dawdle(uint64_t n)
{
    uint64_t h = radi_hash(&n, sizeof n, 7);
    if (h % 8 == 0) {
        struct timespec t = { .tv_nsec = (long)(h >> 8 & 0xffff) };
        nanosleep(&t, NULL);
    }
}

static void *device_main(void *arg)
{
    struct test_device *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->tail == t->head && !t->stop)
            pthread_cond_wait(&t->moved, &t->lock);
        if (t->tail == t->head)
            break;
        struct record *r = &t->ring[t->tail % t->cap];
        uint64_t n = t->tail;
        bool dead = t->fail != RAD_OK;
        pthread_mutex_unlock(&t->lock);
        int rc = RAD_OK;
        dawdle(n);
        if (r->what == COPY)
            memcpy(r->dst, r->src, r->bytes);
        else if (r->what == FILL)
            memset(r->dst, r->byte, r->bytes);
        else if (r->what == LAUNCH && !dead)
            rc = run_launch(t, r);
        pthread_mutex_lock(&t->lock);
        if (rc < 0 && !t->fail)
            t->fail = (rad_status)rc;
        if (r->what == RECORD)
            r->event->done++;
        t->tail++;
        pthread_cond_broadcast(&t->moved);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* The next free record, with the lock held; waits while the ring is full. */
static struct record *push(struct test_device *t, enum what what)
{
    pthread_mutex_lock(&t->lock);
    while (t->head - t->tail == t->cap)
        pthread_cond_wait(&t->moved, &t->lock);
    struct record *r = &t->ring[t->head % t->cap];
    r->what = what;
    return r;
}

static rad_status pushed(struct test_device *t)
{
    t->head++;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
    return RAD_OK;
}

/* ---- memory */
static rad_status test_alloc(struct radi_device *d, enum radi_mem kind, size_t bytes, void **out)
{
    struct test_device *t = test_of(d);
    void *p = radi_aligned(4096, bytes ? bytes : 1);
    *out = NULL;
    if (!p)
        return RAD_E_NOMEM;
    if ((uintptr_t)p & TAG_MASK) {               /* an address the tag would not mark */
        radi_free(p);
        return RAD_E_DEVICE;
    }
    pthread_mutex_lock(&t->lock);
    rad_status st = radi_grow((void **)&t->block, &t->cap_blocks, t->n_blocks + 1,
                              sizeof *t->block, NULL);
    if (!st)
        t->block[t->n_blocks++] = (struct block){ (uintptr_t)p, bytes, kind };
    pthread_mutex_unlock(&t->lock);
    if (st) {
        radi_free(p);
        return st;
    }
    *out = kind == RADI_MEM_DEVICE ? (void *)((uintptr_t)p | TAG) : p;
    return RAD_OK;
}

static void test_free(struct radi_device *d, enum radi_mem kind, void *p)
{
    struct test_device *t = test_of(d);
    if (!p)
        return;
    void *real = kind == RADI_MEM_DEVICE ? untag(p) : p;
    pthread_mutex_lock(&t->lock);
    while (t->tail != t->head)                   /* work in flight may use it */
        pthread_cond_wait(&t->moved, &t->lock);
    for (size_t i = 0; i < t->n_blocks; i++)
        if (t->block[i].at == (uintptr_t)real) {
            t->block[i] = t->block[--t->n_blocks];
            break;
        }
    pthread_mutex_unlock(&t->lock);
    radi_free(real);
}

/* [p, p+n) lies in one allocation of the kind. */
static bool inside(struct test_device *t, const void *p, size_t n, enum radi_mem kind)
{
    uintptr_t at = (uintptr_t)p;
    bool ok = false;
    if (kind == RADI_MEM_DEVICE) {
        if (!tagged(p))
            return false;
        at ^= TAG;
    }
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_blocks && !ok; i++)
        ok = t->block[i].kind == kind && at >= t->block[i].at
            && radi_span_ok(at - t->block[i].at, n, t->block[i].bytes);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

static rad_status copy(struct test_device *t, void *dst, const void *src, size_t bytes)
{
    struct record *r = push(t, COPY);
    r->dst = dst;
    r->src = src;
    r->bytes = bytes;
    return pushed(t);
}

static rad_status test_upload(struct radi_device *d, struct radi_stream *s, void *dst,
                              const void *src, size_t bytes)
{
    (void)s;
    struct test_device *t = test_of(d);
    if (!inside(t, dst, bytes, RADI_MEM_DEVICE) || !inside(t, src, bytes, RADI_MEM_PINNED))
        return RAD_E_DEVICE;
    return copy(t, untag(dst), src, bytes);
}

static rad_status test_download(struct radi_device *d, struct radi_stream *s, void *dst,
                                const void *src, size_t bytes)
{
    (void)s;
    struct test_device *t = test_of(d);
    if (!inside(t, dst, bytes, RADI_MEM_PINNED) || !inside(t, src, bytes, RADI_MEM_DEVICE))
        return RAD_E_DEVICE;
    return copy(t, dst, untag(src), bytes);
}

static rad_status test_memset(struct radi_device *d, struct radi_stream *s, void *dst, int byte,
                              size_t bytes)
{
    (void)s;
    struct test_device *t = test_of(d);
    if (!inside(t, dst, bytes, RADI_MEM_DEVICE))
        return RAD_E_DEVICE;
    struct record *r = push(t, FILL);
    r->dst = untag(dst);
    r->byte = byte;
    r->bytes = bytes;
    return pushed(t);
}

/* ---- streams and events */
static rad_status test_stream_new(struct radi_device *d, struct radi_stream **out)
{
    (void)d;
    *out = radi_calloc(1, sizeof **out);
    return *out ? RAD_OK : RAD_E_NOMEM;
}

static void test_stream_free(struct radi_device *d, struct radi_stream *s)
{
    (void)d;
    radi_free(s);
}

static rad_status test_event_new(struct radi_device *d, struct radi_event **out)
{
    (void)d;
    *out = radi_calloc(1, sizeof **out);
    return *out ? RAD_OK : RAD_E_NOMEM;
}

static void test_event_free(struct radi_device *d, struct radi_event *e)
{
    struct test_device *t = test_of(d);
    if (!e)
        return;
    pthread_mutex_lock(&t->lock);
    while (e->done < e->recorded)
        pthread_cond_wait(&t->moved, &t->lock);
    pthread_mutex_unlock(&t->lock);
    radi_free(e);
}

static rad_status test_event_record(struct radi_device *d, struct radi_event *e,
                                    struct radi_stream *s)
{
    (void)s;
    struct test_device *t = test_of(d);
    struct record *r = push(t, RECORD);
    r->event = e;
    e->recorded++;
    return pushed(t);
}

/* One queue for all streams: what was recorded before runs before. */
static rad_status test_stream_wait(struct radi_device *d, struct radi_stream *s,
                                   struct radi_event *e)
{
    (void)d;
    (void)s;
    (void)e;
    return RAD_OK;
}

static int test_event_query(struct radi_device *d, struct radi_event *e)
{
    struct test_device *t = test_of(d);
    pthread_mutex_lock(&t->lock);
    int rc = t->fail ? (int)t->fail : e->done == e->recorded;
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static rad_status test_event_sync(struct radi_device *d, struct radi_event *e)
{
    struct test_device *t = test_of(d);
    pthread_mutex_lock(&t->lock);
    while (e->done < e->recorded)
        pthread_cond_wait(&t->moved, &t->lock);
    rad_status st = t->fail;
    t->fail = RAD_OK;                            /* reported; the next step is another */
    pthread_mutex_unlock(&t->lock);
    return st;
}

/* ---- launches */
static bool operand_ok(struct test_device *t, const RadTensor *o)
{
    if (o->enc) {
        for (int i = 0; i < o->enc->n_planes && i < RAD_MAX_PLANES; i++)
            if (!inside(t, o->plane[i], 1, RADI_MEM_DEVICE))
                return false;
        return !o->data || tagged(o->data);
    }
    return !o->data || inside(t, o->data, 1, RADI_MEM_DEVICE);
}

static rad_status test_launch(struct radi_device *d, struct radi_stream *s, const RadKernelRow *row,
                              const RadLaunch *a)
{
    (void)s;
    struct test_device *t = test_of(d);
    if (a->n_opd > RAD_MAX_OPERANDS || row->params_size > t->params_bytes)
        return RAD_E_DEVICE;
    for (int i = 0; i < a->n_opd; i++)
        if (!operand_ok(t, &a->opd[i]))
            return RAD_E_DEVICE;
    if (a->scratch && !tagged(a->scratch))
        return RAD_E_DEVICE;
    struct record *r = push(t, LAUNCH);
    r->row = row;
    r->a = *a;
    memcpy(r->opd, a->opd, (size_t)a->n_opd * sizeof *a->opd);
    memcpy(r->params, a->params, row->params_size);
    return pushed(t);
}

static void test_close(struct radi_device *d)
{
    struct test_device *t = test_of(d);
    if (t->started) {
        pthread_mutex_lock(&t->lock);
        t->stop = true;
        pthread_cond_broadcast(&t->moved);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->thread, NULL);
    }
    pthread_cond_destroy(&t->moved);
    pthread_mutex_destroy(&t->lock);
    radi_free(t->block);
    radi_free(t->ring);
    radi_free(t->params);
    radi_free(t);
}

static const struct radi_device_ops test_ops = {
    .name = "test", .close = test_close, .alloc = test_alloc, .free = test_free,
    .stream_new = test_stream_new, .stream_free = test_stream_free,
    .event_new = test_event_new, .event_free = test_event_free,
    .event_record = test_event_record, .stream_wait = test_stream_wait,
    .event_query = test_event_query, .event_sync = test_event_sync,
    .upload = test_upload, .download = test_download, .memset = test_memset,
    .launch = test_launch,
};

rad_status radi_device_test(const struct radi_device_opts *o, struct radi_device **out,
                            struct rad_err *err)
{
    *out = NULL;
    struct test_device *t = radi_calloc(1, sizeof *t);
    if (!t)
        return rad_fail(err, RAD_E_NOMEM, "test device: out of memory");
    t->base.ops = &test_ops;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->moved, NULL);
    t->cap = RADI_MAX(o->records, 16);
    t->parts = RADI_MAX(o->parts, 1);
    t->params_bytes = (o->params_bytes + 63) & ~(size_t)63;
    t->ring = radi_calloc(t->cap, sizeof *t->ring);
    t->params = radi_calloc(t->cap, RADI_MAX(t->params_bytes, 64));
    if (!t->ring || !t->params) {
        test_close(&t->base);
        return rad_fail(err, RAD_E_NOMEM, "test device: out of memory");
    }
    for (uint64_t i = 0; i < t->cap; i++)
        t->ring[i].params = t->params + i * t->params_bytes;
    int rc = pthread_create(&t->thread, NULL, device_main, t);
    t->started = rc == 0;
    if (rc) {
        test_close(&t->base);
        return rad_fail(err, RAD_E_DEVICE, "test device: thread: %s", strerror(rc));
    }
    *out = &t->base;
    return RAD_OK;
}
