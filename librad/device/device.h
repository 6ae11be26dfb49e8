/* SPDX-License-Identifier: Apache-2.0 */
/* The device ABI: memory kinds, streams, events, asynchronous copies, launches.
 * A back end fills a struct radi_device_ops; callers use the inline wrappers.
 *
 * The rules are a GPU's: device pointers are opaque (arithmetic is legal,
 * reading is not), work on a stream runs in order and later, host memory of an
 * asynchronous copy must be pinned and stay untouched until an event behind
 * the copy is done. A failed launch may show at the wait. */
#ifndef RADI_DEVICE_H
#define RADI_DEVICE_H

#include <rad/rad_kernel.h>

#include "base/base.h"

enum radi_mem {
    RADI_MEM_DEVICE,             /* the device's; never read by the host */
    RADI_MEM_PINNED,             /* the host's, readable by device copies */
    RADI_MEM_HOST                /* plain */
};

struct radi_device;
struct radi_stream;
struct radi_event;

struct radi_device_opts {
    int kind;                    /* RAD_DEVICE_* */
    struct radi_pool *pool;      /* host: runs the kernels */
    int parts;                   /* of a launch; what scratch was sized for */
    uint64_t records;            /* launches and copies in flight (test device) */
    size_t params_bytes;         /* largest parameter struct of a row */
};

/* rc of the calls below: rad_status. Only alloc, stream_new and event_new
 * allocate. */
struct radi_device_ops {
    const char *name;
    bool host_visible;           /* device memory is the host's, work is done on return */
    void (*close)(struct radi_device *d);
    rad_status (*alloc)(struct radi_device *d, enum radi_mem kind, size_t bytes, void **out);
    void (*free)(struct radi_device *d, enum radi_mem kind, void *p);
    rad_status (*stream_new)(struct radi_device *d, struct radi_stream **out);
    void (*stream_free)(struct radi_device *d, struct radi_stream *s);
    rad_status (*event_new)(struct radi_device *d, struct radi_event **out);
    void (*event_free)(struct radi_device *d, struct radi_event *e);
    rad_status (*event_record)(struct radi_device *d, struct radi_event *e, struct radi_stream *s);
    rad_status (*stream_wait)(struct radi_device *d, struct radi_stream *s, struct radi_event *e);
    int (*event_query)(struct radi_device *d, struct radi_event *e);   /* 1 done, 0 not, < 0 */
    rad_status (*event_sync)(struct radi_device *d, struct radi_event *e);
    rad_status (*upload)(struct radi_device *d, struct radi_stream *s, void *dst,
                         const void *src, size_t bytes);
    rad_status (*download)(struct radi_device *d, struct radi_stream *s, void *dst,
                           const void *src, size_t bytes);
    rad_status (*memset)(struct radi_device *d, struct radi_stream *s, void *dst, int byte,
                         size_t bytes);
    /* The record is copied: operands, parameters and all. part, parts and
     * stream are the device's to fill. */
    rad_status (*launch)(struct radi_device *d, struct radi_stream *s, const RadKernelRow *row,
                         const RadLaunch *a);
};

struct radi_device {
    const struct radi_device_ops *ops;
};

rad_status radi_device_open(const struct radi_device_opts *o, struct radi_device **out,
                            struct rad_err *err) RAD_MUSTCHECK;
static inline void radi_device_close(struct radi_device *d)
{
    if (d)
        d->ops->close(d);
}

/* back ends */
rad_status radi_device_host(const struct radi_device_opts *o, struct radi_device **out,
                            struct rad_err *err) RAD_MUSTCHECK;
rad_status radi_device_test(const struct radi_device_opts *o, struct radi_device **out,
                            struct rad_err *err) RAD_MUSTCHECK;

#endif
