/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that serves every mapped architecture. It claims exactly the pairs
 * that the maps list; a model is its parameter point laid out as a graph. */
#include <stdlib.h>

#include <rad/log.h>

#include <arch/graph.h>
#include <arch/rad_arch.h>

/* The data files and their claims: read when the core asks what is claimed,
 * before any thread starts, and not changed until close. */
static struct {
    struct rad_lab *lab;
    RadArchPair *pair;
    int n_pairs;
} circuit;

static void forget(void)
{
    rad_lab_free(circuit.lab);
    free(circuit.pair);
    circuit.lab = NULL;
    circuit.pair = NULL;
    circuit.n_pairs = 0;
}

void rad_plugin_close(void)
{
    forget();
}

int rad_arch_pair_count(const char *home)
{
    struct rad_err err = { 0 };
    rad_status st;

    forget();
    st = rad_lab_open(home, &circuit.lab, &err);
    if (!st) {
        circuit.n_pairs = rad_lab_pair_count(circuit.lab);
        circuit.pair = calloc((size_t)circuit.n_pairs + 1, sizeof(*circuit.pair));
        if (!circuit.pair)
            st = rad_fail(&err, RAD_E_NOMEM, "out of memory");
    }
    if (st) {
        forget();
        rad_log(RAD_LOG_ERROR, "arch", "%s", err.text);
        return st;
    }
    for (int i = 0; i < circuit.n_pairs; i++)
        rad_lab_pair_at(circuit.lab, i, &circuit.pair[i].arch_id, &circuit.pair[i].quant);
    return circuit.n_pairs;
}

const RadArchPair *rad_arch_pair_at(int i)
{
    return i >= 0 && i < circuit.n_pairs ? &circuit.pair[i] : NULL;
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
    int st;

    if (!circuit.lab)
        return rad_declare_fail(b, RAD_E_STATE, "the data files were not read");
    st = rad_lab_point_from_meta(circuit.lab, meta, &p, &err);
    if (!st)
        st = rad_lab_graph_new(circuit.lab, p, &g, &err);
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
