/* SPDX-License-Identifier: Apache-2.0 */
/* A builder and a context that only write down what they are asked, for tests
 * of the lowering: no kernels, no plan. */
#ifndef T_LAB_FAKE_H
#define T_LAB_FAKE_H

#include <rad/rad_runtime.h>

struct fake_op {
    char name[32];
    RadParam param[64];
    char sval[64][40];
    int n_params;
    rad_weight w[RAD_MAX_OPERANDS];
    int n_w;
    int asked;
};
struct fake_issue {
    rad_op op;
    RadOperand opd[RAD_MAX_OPERANDS];
    int n_opd;
    int64_t n;
};
struct RadBuilder {
    const char *absent;          /* weight that the file has not, or NULL */
    const char *unresolved;      /* op that no kernel serves, or NULL */
    const char *undeclared;      /* op that no library has, or NULL */
    struct fake_op op[4096];
    int n_ops;
    char weight[4096][64];
    int n_weights, n_maps, n_buffers, n_kv, n_layers;
    RadBufferDecl buffer[64];
    RadKvGroupDecl kv[16];
    int64_t block[16];
    rad_buf logits;
    int failed;
    char message[512];
    void *state;
    void (*fini)(void *);
};
struct RadCtx {
    struct RadBuilder *b;
    struct fake_issue issue[4096];
    int n_issues;
    int fail_at;                 /* issue that fails; -1: none */
};

const char *fake_param_str(const struct fake_op *o, const char *key);
int64_t fake_param_int(const struct fake_op *o, const char *key);

#endif
