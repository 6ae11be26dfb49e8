/* SPDX-License-Identifier: Apache-2.0 */
/* The tiny model of plan-check: a container with seeded weights, an
 * architecture written straight against the builder, and its step. What it
 * declares and issues can be bent by the `bend` switches. */
#ifndef T_PLAN_CHECK_H
#define T_PLAN_CHECK_H

#include <rad/model.h>
#include <rad/model_write.h>
#include <rad/plan.h>

#include "plan/plan_priv.h"
#include "run/rt.h"

enum {
    V = 48, D = 32, H = 4, HKV = 2, C = 8, F = 40, L = 2,
    MAX_TOK = 24, MAX_SEQS = 4, MAX_CTX = 64
};

enum bend {
    BEND_NONE, BEND_PARAM_TYPO, BEND_OP_TYPO, BEND_PARAM_MISSING, BEND_PARAM_TWICE,
    BEND_PARAM_KIND, BEND_SHAPE, BEND_NO_WEIGHT, BEND_NO_OUTPUT, BEND_CONCURRENT, BEND_ENCODER,
    BEND_FAIL, BEND_MANY, BEND_ASKED,
    /* in the step */
    BEND_SPAN, BEND_COLS, BEND_ZERO, BEND_LIFE, BEND_COUNT, BEND_BAND, BEND_KV_LAYER,
    BEND_NO_TYPE, BEND_LANE, BEND_WEIGHT, BEND_GIVE_UP,
    BEND_ALIGN, BEND_KERNEL
};
extern enum bend bend;
extern int step_rc;              /* what the bent issue returned */
extern int step_rc2;             /* what the one after it returned */
extern const RadBatch *seen_batch;
extern int64_t peek;             /* BEND_NONE with peek: reads a device pointer */

extern const RadPluginInfo tiny_info;
int tiny_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx);
void tiny_step(RadCtx *c, const RadBatch *batch);
extern const struct radi_exports tiny_exports;
struct rad_model *tiny_model(void);

extern const struct radi_exports libpack_exports;
extern int pack_launches, pack_inits;
void choice_cases(void);         /* plan-choice.c */

#define IS(a, b) CHECK_MSG(!strcmp(a, b), "found '%s', want '%s'", a, b)
#define HAS(text, part) CHECK_MSG(strstr(text, part), "no '%s' in '%s'", part, text)

#endif
