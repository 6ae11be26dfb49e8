/* SPDX-License-Identifier: Apache-2.0 */
/* The host back end: device memory is ordinary memory, a launch runs on the
 * pool before it returns, so streams and events have nothing to do. Also the
 * choice of the back end. */
#include "config.h"

#include <stdatomic.h>

#include "device/device.h"

#include <rad/plan.h>

#include "banned.h"

struct host_device {
    struct radi_device base;
    struct radi_pool *pool;
    int parts;
};

struct radi_stream { int unused; };
struct radi_event { int unused; };

/* Work below this many elements is not worth waking the pool for. */
enum { SMALL = 4096 };

static struct host_device *host_of(struct radi_device *d)
{
    return (struct host_device *)d;
}

static void host_close(struct radi_device *d)
{
    radi_free(d);
}

static rad_status host_alloc(struct radi_device *d, enum radi_mem kind, size_t bytes, void **out)
{
    (void)d;
    (void)kind;
    *out = radi_aligned(4096, bytes ? bytes : 1);
    return *out ? RAD_OK : RAD_E_NOMEM;
}

static void host_free(struct radi_device *d, enum radi_mem kind, void *p)
{
    (void)d;
    (void)kind;
    radi_free(p);
}

static rad_status host_stream_new(struct radi_device *d, struct radi_stream **out)
{
    (void)d;
    *out = radi_calloc(1, sizeof **out);
    return *out ? RAD_OK : RAD_E_NOMEM;
}

static void host_stream_free(struct radi_device *d, struct radi_stream *s)
{
    (void)d;
    radi_free(s);
}

static rad_status host_event_new(struct radi_device *d, struct radi_event **out)
{
    (void)d;
    *out = radi_calloc(1, sizeof **out);
    return *out ? RAD_OK : RAD_E_NOMEM;
}

static void host_event_free(struct radi_device *d, struct radi_event *e)
{
    (void)d;
    radi_free(e);
}

static rad_status host_event_record(struct radi_device *d, struct radi_event *e,
                                    struct radi_stream *s)
{
    (void)d;
    (void)e;
    (void)s;
    return RAD_OK;
}

static rad_status host_stream_wait(struct radi_device *d, struct radi_stream *s,
                                   struct radi_event *e)
{
    (void)d;
    (void)s;
    (void)e;
    return RAD_OK;
}

static int host_event_query(struct radi_device *d, struct radi_event *e)
{
    (void)d;
    (void)e;
    return 1;
}

static rad_status host_event_sync(struct radi_device *d, struct radi_event *e)
{
    (void)d;
    (void)e;
    return RAD_OK;
}

static rad_status host_copy(struct radi_device *d, struct radi_stream *s, void *dst,
                            const void *src, size_t bytes)
{
    (void)d;
    (void)s;
    memcpy(dst, src, bytes);
    return RAD_OK;
}

static rad_status host_memset(struct radi_device *d, struct radi_stream *s, void *dst, int byte,
                              size_t bytes)
{
    (void)d;
    (void)s;
    memset(dst, byte, bytes);
    return RAD_OK;
}

struct run {
    const RadKernelRow *row;
    const RadLaunch *a;
    atomic_int rc;
};

static void run_part(void *arg, int part, int parts)
{
    struct run *r = arg;
    RadLaunch a = *r->a;
    a.part = part;
    a.parts = parts;
    int rc = r->row->launch(&a), ok = 0;
    if (rc < 0)
        atomic_compare_exchange_strong(&r->rc, &ok, rc);
}

static bool small(const RadLaunch *a)
{
    int64_t n = 0;
    for (int i = 0; i < a->n_opd && n < SMALL; i++)
        if (!rad_absent(&a->opd[i]))
            n += rad_numel(&a->opd[i]);
    return n < SMALL;
}

static rad_status host_launch(struct radi_device *d, struct radi_stream *s, const RadKernelRow *row,
                              const RadLaunch *a)
{
    (void)s;
    struct host_device *h = host_of(d);
    struct run r = { .row = row, .a = a };
    /* A kernel's bits do not depend on the parts, so the caller may do it all. */
    if (!h->pool || small(a))
        run_part(&r, 0, 1);
    else
        radi_pool_run(h->pool, run_part, &r);
    return (rad_status)atomic_load(&r.rc);
}

static const struct radi_device_ops host_ops = {
    .name = "host", .host_visible = true, .close = host_close,
    .alloc = host_alloc, .free = host_free,
    .stream_new = host_stream_new, .stream_free = host_stream_free,
    .event_new = host_event_new, .event_free = host_event_free,
    .event_record = host_event_record, .stream_wait = host_stream_wait,
    .event_query = host_event_query, .event_sync = host_event_sync,
    .upload = host_copy, .download = host_copy, .memset = host_memset, .launch = host_launch,
};

rad_status radi_device_host(const struct radi_device_opts *o, struct radi_device **out,
                            struct rad_err *err)
{
    struct host_device *h = radi_calloc(1, sizeof *h);
    *out = NULL;
    if (!h)
        return rad_fail(err, RAD_E_NOMEM, "host device: out of memory");
    if (o->pool && o->parts < radi_pool_parts(o->pool)) {
        radi_free(h);
        return rad_fail(err, RAD_E_SCRATCH, "the plan is for %d threads, the pool has %d",
                        o->parts, radi_pool_parts(o->pool));
    }
    h->base.ops = &host_ops;
    h->pool = o->pool;
    h->parts = o->parts;
    *out = &h->base;
    return RAD_OK;
}

rad_status radi_device_open(const struct radi_device_opts *o, struct radi_device **out,
                            struct rad_err *err)
{
    switch (o->kind) {
    case RAD_DEVICE_HOST: return radi_device_host(o, out, err);
    case RAD_DEVICE_TEST: return radi_device_test(o, out, err);
    default:
        *out = NULL;
        return rad_fail(err, RAD_E_UNSUPPORTED, "device %d is not served", o->kind);
    }
}
