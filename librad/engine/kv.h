/* SPDX-License-Identifier: Apache-2.0 */
/* The KV manager: which sequence holds which pages and state slots. It knows
 * page numbers, never bytes. One owner thread (the scheduler's). */
#ifndef RADI_KV_H
#define RADI_KV_H

#include "run/run.h"

#define RADI_KV_GROUPS 8

struct radi_kv_group {
    struct radi_kv_info info;
    int32_t *free_list;          /* stack of free pages or slots */
    int64_t n_free;
    int64_t max_blocks;          /* table length a sequence */
};

struct radi_kv {
    int n_groups;
    struct radi_kv_group g[RADI_KV_GROUPS];
};

/* Pages and slots of one sequence. */
struct radi_kv_seq {
    int32_t *table[RADI_KV_GROUPS];    /* [max_blocks]; -1 = none (or dropped) */
    int64_t n_blocks[RADI_KV_GROUPS];  /* blocks that exist or existed */
    int64_t first[RADI_KV_GROUPS];     /* WINDOW: blocks before it were freed */
    int32_t slot[RADI_KV_GROUPS];      /* LINEAR, CONV; -1 none */
};

rad_status radi_kv_init(struct radi_kv *kv, const struct radi_rt *rt, int64_t max_ctx,
                        struct rad_err *err) RAD_MUSTCHECK;
void radi_kv_release(struct radi_kv *kv);
rad_status radi_kv_seq_init(const struct radi_kv *kv, struct radi_kv_seq *s,
                            struct rad_err *err) RAD_MUSTCHECK;
void radi_kv_seq_release(struct radi_kv_seq *s);

/* Room for tokens [0, n_tok): takes pages as needed. False: the pool is full
 * (what was taken stays with the sequence). Allocates no memory. */
bool radi_kv_ensure(struct radi_kv *kv, struct radi_kv_seq *s, int64_t n_tok);
/* Pages that lie wholly before the window of position `pos` go back. */
void radi_kv_trim_window(struct radi_kv *kv, struct radi_kv_seq *s, int64_t pos);
/* Everything goes back. */
void radi_kv_drop(struct radi_kv *kv, struct radi_kv_seq *s);

int64_t radi_kv_used(const struct radi_kv *kv);    /* pages in use, all groups */
int64_t radi_kv_total(const struct radi_kv *kv);
/* True if one sequence of n_tok tokens fits an empty pool. */
bool radi_kv_fits(const struct radi_kv *kv, int64_t n_tok);

#endif
