/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that serves every mapped architecture. It claims exactly the pairs
 * that the maps list; a model is its parameter point laid out as a graph. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rad/log.h>

#include <arch/graph.h>
#include <arch/rad_arch.h>

/* The data files of one search path and their claims. Read once, when the core
 * first asks what is claimed under that path, and not changed until close:
 * plugin sets of several paths may be open at once, each keeps its own. */
struct home {
    struct home *next;
    char *path;
    struct rad_lab *lab;
    RadArchPair *pair;
    int n_pairs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct home *homes;                   /* guarded by lock; entries are immutable */

static void home_free(struct home *h)
{
    if (!h)
        return;
    rad_lab_free(h->lab);
    free(h->pair);
    free(h->path);
    free(h);
}

/* Called with the lock held. */
static struct home *find(const char *path)
{
    struct home *h = homes;
    while (h && strcmp(h->path, path))
        h = h->next;
    return h;
}

void rad_plugin_close(void)
{
    pthread_mutex_lock(&lock);
    while (homes) {
        struct home *h = homes;
        homes = h->next;
        home_free(h);
    }
    pthread_mutex_unlock(&lock);
}

static rad_status home_new(const char *path, struct home **out, struct rad_err *err)
{
    struct home *h = calloc(1, sizeof(*h));
    rad_status st;

    *out = NULL;
    if (!h)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    h->path = strdup(path);
    st = h->path ? rad_lab_open(path, &h->lab, err) : rad_fail(err, RAD_E_NOMEM, "out of memory");
    if (!st) {
        h->n_pairs = rad_lab_pair_count(h->lab);
        h->pair = calloc((size_t)h->n_pairs + 1, sizeof(*h->pair));
        if (!h->pair)
            st = rad_fail(err, RAD_E_NOMEM, "out of memory");
    }
    if (st) {
        home_free(h);
        return st;
    }
    for (int i = 0; i < h->n_pairs; i++)
        rad_lab_pair_at(h->lab, i, &h->pair[i].arch_id, &h->pair[i].quant);
    *out = h;
    return RAD_OK;
}

int rad_arch_pair_count(const char *home)
{
    struct rad_err err = { 0 };
    struct home *h;
    rad_status st = RAD_OK;

    pthread_mutex_lock(&lock);
    h = find(home);
    if (!h) {
        st = home_new(home, &h, &err);
        if (!st) {
            h->next = homes;
            homes = h;
        }
    }
    pthread_mutex_unlock(&lock);
    if (st) {
        rad_log(RAD_LOG_ERROR, "arch", "%s", err.text);
        return st;
    }
    return h->n_pairs;
}

const RadArchPair *rad_arch_pair_at(const char *home, int i)
{
    pthread_mutex_lock(&lock);
    const struct home *h = find(home);
    pthread_mutex_unlock(&lock);
    return h && i >= 0 && i < h->n_pairs ? &h->pair[i] : NULL;
}

static int circuit_probe(const RadModelMeta *meta, RadArchProbe *out)
{
    uint32_t size = out->struct_size;
    (void)meta;
    *out = (RadArchProbe){ .struct_size = size, .shape_probe_ok = 1 };
    return 0;
}

static int circuit_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx)
{
    struct rad_err err = { 0 };
    struct rad_lab_point *p = NULL;
    struct rad_lab_point_info info;
    struct rad_lab_graph *g = NULL;
    struct arch_graph *m;
    const struct home *h;
    int st;

    pthread_mutex_lock(&lock);
    h = find(rad_build_home(b));
    pthread_mutex_unlock(&lock);
    if (!h)
        return rad_declare_fail(b, RAD_E_STATE, "the data files were not read");
    st = rad_lab_point_from_meta(h->lab, meta, &p, &err);
    if (!st)
        st = rad_lab_graph_new(h->lab, p, &g, &err);
    if (st) {
        rad_lab_point_free(p);
        return rad_declare_fail(b, st, "%s", err.text);
    }
    rad_lab_point_info(p, &info);
    rad_note(b, "map '%s', circuit '%s': %d layers, %d nodes", info.map, info.circuit,
             g->n_layers, g->n_nodes);
    rad_lab_point_free(p);
    st = arch_graph_declare(b, ctx, g, &m);
    if (!st)
        rad_set_state(b, m, arch_graph_free);
    return st;
}

static void circuit_step(RadCtx *c, const RadBatch *batch)
{
    arch_graph_step(c, batch, rad_state(c));
}

RAD_ARCH_PLUGIN_INFO(circuit, "0.1.0", "every architecture that a map and a circuit describe")
