/* SPDX-License-Identifier: Apache-2.0 */
/* The lowering: a graph of blocks declared on the builder, and its step. One
 * declare and one step walk whatever graph they are given; no architecture has
 * code here. */
#ifndef ARCH_GRAPH_H
#define ARCH_GRAPH_H

#include <rad/lab.h>
#include <rad/rad_runtime.h>

struct arch_graph;       /* a declared graph: handles; immutable afterwards */

/* Declares every weight, constant, buffer, KV group and op of `g`, which it
 * takes whatever it returns. What does not resolve is the builder's to report;
 * a negative return is one that was reported with rad_declare_fail. On success
 * *out is to be given to rad_set_state with arch_graph_free. */
int arch_graph_declare(RadBuilder *b, const RadBuildCtx *ctx, struct rad_lab_graph *g,
                       struct arch_graph **out);
void arch_graph_free(void *graph);
void arch_graph_step(RadCtx *c, const RadBatch *batch, const struct arch_graph *m);

#endif
