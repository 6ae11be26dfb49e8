/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the thread pool: parts-1 pinned workers and the caller as part 0.
 *
 * A run is published by adding one to `gen`; each worker runs its part once a
 * generation and takes one off `pending`. Both sides spin for a short time and
 * then sleep on a futex. Who is about to sleep says so first (`sleepers`,
 * `waiting`) and then looks again; who changes the word looks for sleepers
 * afterwards. All four accesses are sequentially consistent, so at least one
 * side sees the other and no wake-up is lost.
 *
 * The caller is not pinned: its mask would be inherited by every thread that
 * the program starts later. The workers leave one CPU free for it. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "base/base.h"

#include "banned.h"

enum {
    MAX_PARTS = 1024,
    MAX_CPUS = 4096,
    SPIN_NS = 20000,        /* longer than the gap between two ops of a step */
    SPIN_LOOPS = 32,        /* pauses between looks at the clock */
};

struct worker {
    struct radi_pool *pool;
    pthread_t thread;
    int part, cpu;          /* cpu < 0: not pinned */
};

struct radi_pool {
    _Alignas(64) atomic_uint gen;
    atomic_int sleepers;
    _Alignas(64) atomic_uint pending;
    atomic_int waiting;
    /* written by the caller before gen moves, read by workers after */
    _Alignas(64) radi_part_fn *fn;
    void *arg;
    bool stop;
    uint64_t spin_ns;       /* 0 when parts outnumber CPUs: yield at once */
    int parts;
    struct worker *worker;  /* parts - 1 */
};

uint64_t radi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen)
{
    /* a signal, or a word that has moved on, only makes the caller look again */
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Waits a bounded time until *word differs from (or, when `equal`, equals) v. */
static bool spin(atomic_uint *word, unsigned v, bool equal, uint64_t ns)
{
    uint64_t end = 0;
    for (;;) {
        for (int i = 0; i < SPIN_LOOPS; i++) {
            unsigned now = atomic_load_explicit(word, memory_order_acquire);
            if ((now == v) == equal)
                return true;
            if (ns)
                cpu_pause();
        }
        if (!ns)
            return false;
        uint64_t t = radi_now_ns();
        if (!end)
            end = t + ns;
        else if (t >= end)
            return false;
    }
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct radi_pool *p = w->pool;
    unsigned seen = 0;

    for (;;) {
        if (!spin(&p->gen, seen, false, p->spin_ns)) {
            atomic_fetch_add(&p->sleepers, 1);
            while (atomic_load(&p->gen) == seen)
                futex_wait(&p->gen, seen);
            atomic_fetch_sub(&p->sleepers, 1);
        }
        seen++;             /* the caller waits for all, so gen moved by one */
        if (p->stop)
            return NULL;
        p->fn(p->arg, w->part, p->parts);
        if (atomic_fetch_sub(&p->pending, 1) == 1 && atomic_load(&p->waiting))
            futex_wake(&p->pending, 1);
    }
}

static void publish(struct radi_pool *p)
{
    atomic_fetch_add(&p->gen, 1);
    if (atomic_load(&p->sleepers) > 0)
        futex_wake(&p->gen, INT_MAX);
}

void radi_pool_run(struct radi_pool *p, radi_part_fn *fn, void *arg)
{
    unsigned left;

    if (p->parts == 1) {
        fn(arg, 0, 1);
        return;
    }
    RADI_BUG_IF(atomic_load_explicit(&p->pending, memory_order_relaxed));
    p->fn = fn;
    p->arg = arg;
    atomic_store_explicit(&p->pending, (unsigned)p->parts - 1,
                          memory_order_relaxed);
    publish(p);
    fn(arg, 0, p->parts);
    if (spin(&p->pending, 0, true, p->spin_ns))
        return;
    atomic_store(&p->waiting, 1);
    while ((left = atomic_load(&p->pending)) != 0)
        futex_wait(&p->pending, left);
    atomic_store(&p->waiting, 0);
}

int radi_pool_parts(const struct radi_pool *p)
{
    return p->parts;
}

/* ---- CPUs. Lists the CPUs this process may use, in the order in which they
 * are to be filled; returns how many, at most max. */
static int allowed_cpus(int *cpu, int max)
{
    int n = 0;
    for (int size = 1024; size <= MAX_CPUS; size *= 2) {
        cpu_set_t *set = CPU_ALLOC(size);
        if (!set)
            break;
        size_t bytes = CPU_ALLOC_SIZE(size);
        if (sched_getaffinity(0, bytes, set) == 0) {
            for (int i = 0; i < size && n < max; i++)
                if (CPU_ISSET_S(i, bytes, set))
                    cpu[n++] = i;
            CPU_FREE(set);
            break;
        }
        CPU_FREE(set);
    }
    return n;
}

#ifdef HAVE_HWLOC
/* Reorders: one hardware thread of each core first, then the second ones, so
 * that fewer threads than CPUs do not share cores. */
static void order_by_core(int *cpu, int n)
{
    hwloc_topology_t topo;
    int out = 0, cores;

    if (hwloc_topology_init(&topo))
        return;
    if (hwloc_topology_load(topo))
        goto done;
    cores = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_CORE);
    int *sorted = radi_calloc((size_t)n, sizeof(*sorted));
    bool *used = radi_calloc((size_t)n, sizeof(*used));
    for (int round = 0; sorted && used && cores > 0 && out < n; round++) {
        int before = out;
        for (int c = 0; c < cores && out < n; c++) {
            hwloc_obj_t core = hwloc_get_obj_by_type(topo, HWLOC_OBJ_CORE,
                                                     (unsigned)c);
            for (int i = 0; core && i < n; i++)
                if (!used[i] && hwloc_bitmap_isset(core->cpuset,
                                                   (unsigned)cpu[i])) {
                    used[i] = true;
                    sorted[out++] = cpu[i];
                    break;
                }
        }
        if (out == before)
            break;
    }
    for (int i = 0; sorted && used && i < n && out < n; i++)
        if (!used[i])
            sorted[out++] = cpu[i];
    if (sorted && out == n)
        memcpy(cpu, sorted, (size_t)n * sizeof(*cpu));
    radi_free(sorted);
    radi_free(used);
done:
    hwloc_topology_destroy(topo);
}
#else
static void order_by_core(int *cpu, int n)
{
    (void)cpu, (void)n;
}
#endif

/* Pinning is a matter of speed: a failure to pin is not one of the pool. */
static void pin_attr(pthread_attr_t *attr, int cpu)
{
    cpu_set_t *set = CPU_ALLOC(cpu + 1);
    if (!set)
        return;
    CPU_ZERO_S(CPU_ALLOC_SIZE(cpu + 1), set);
    CPU_SET_S(cpu, CPU_ALLOC_SIZE(cpu + 1), set);
    (void)pthread_attr_setaffinity_np(attr, CPU_ALLOC_SIZE(cpu + 1), set);
    CPU_FREE(set);
}

static int start_worker(struct worker *w)
{
    pthread_attr_t attr;
    char name[16];

    int rc = pthread_attr_init(&attr);
    if (rc)
        return rc;
    if (w->cpu >= 0)
        pin_attr(&attr, w->cpu);
    rc = pthread_create(&w->thread, &attr, worker_main, w);
    pthread_attr_destroy(&attr);
    if (rc == EINVAL && w->cpu >= 0)    /* the CPU was taken away from us */
        rc = pthread_create(&w->thread, NULL, worker_main, w);
    if (rc)
        return rc;
    snprintf(name, sizeof(name), "rad-pool-%d", w->part);
    (void)pthread_setname_np(w->thread, name);
    return 0;
}

static void stop_workers(struct radi_pool *p, int started)
{
    if (!started)
        return;
    p->stop = true;
    publish(p);
    for (int i = 0; i < started; i++)
        pthread_join(p->worker[i].thread, NULL);
}

rad_status radi_pool_new(int threads, struct radi_pool **out,
                         struct rad_err *err)
{
    struct radi_pool *p = NULL;
    rad_status st = RAD_OK;
    sigset_t all, old;
    int ncpu, started = 0, rc = 0;

    *out = NULL;
    int *cpu = radi_calloc(MAX_CPUS, sizeof(*cpu));
    if (!cpu)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a thread pool");
    ncpu = allowed_cpus(cpu, MAX_CPUS);
    if (threads <= 0)
        threads = RADI_MIN(RADI_MAX(ncpu, 1), (int)MAX_PARTS);
    if (threads > MAX_PARTS) {
        st = rad_fail(err, RAD_E_ARG, "%d threads, want at most %d", threads,
                      MAX_PARTS);
        goto out;
    }
    p = radi_aligned(64, sizeof(*p));
    if (p)
        memset(p, 0, sizeof(*p));
    if (!p || !(p->worker = radi_calloc((size_t)threads, sizeof(*p->worker)))) {
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for a thread pool");
        goto out;
    }
    p->parts = threads;
    if (threads <= ncpu) {
        p->spin_ns = SPIN_NS;
        if (threads > 1)
            order_by_core(cpu, ncpu);
    }
    /* signals are the business of the threads that the program itself starts */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; started < threads - 1; started++) {
        p->worker[started] = (struct worker){
            .pool = p, .part = started + 1,
            .cpu = threads <= ncpu ? cpu[started + 1] : -1,
        };
        if ((rc = start_worker(&p->worker[started])) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        errno = rc;
        st = rad_fail_errno(err, "start thread %d of %d", started + 2, threads);
        stop_workers(p, started);
    }
out:
    if (st && p) {
        radi_free(p->worker);
        radi_free(p);
    } else
        *out = p;
    radi_free(cpu);
    return st;
}

void radi_pool_free(struct radi_pool *p)
{
    if (!p)
        return;
    stop_workers(p, p->parts - 1);
    radi_free(p->worker);
    radi_free(p);
}
