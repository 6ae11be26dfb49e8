/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the free lists of every KV group. Page 0 is never handed out, so that
 * a stray zero in a block table cannot name somebody's page. A WINDOW group
 * frees the pages that no later query can see. */
#include "config.h"

#include "engine/kv.h"

#include "banned.h"

static bool paged(const struct radi_kv_group *g)
{
    return g->info.kind == RAD_KV_FULL || g->info.kind == RAD_KV_WINDOW;
}

rad_status radi_kv_init(struct radi_kv *kv, const struct radi_rt *rt, int64_t max_ctx,
                        struct rad_err *err)
{
    memset(kv, 0, sizeof *kv);
    kv->n_groups = radi_rt_n_kv(rt);
    if (kv->n_groups > RADI_KV_GROUPS)
        return rad_fail(err, RAD_E_UNSUPPORTED, "%d kv groups, at most %d are served",
                        kv->n_groups, RADI_KV_GROUPS);
    for (int i = 0; i < kv->n_groups; i++) {
        struct radi_kv_group *g = &kv->g[i];
        radi_rt_kv_info(rt, i, &g->info);
        int64_t first = paged(g) ? 1 : 0;
        int64_t n = paged(g) ? g->info.n_blocks : g->info.n_slots;
        if (paged(g)) {
            if (g->info.block_size <= 0)
                return rad_fail(err, RAD_E_STATE, "kv group %d has no block size", i);
            g->max_blocks = (max_ctx + g->info.block_size - 1) / g->info.block_size;
        }
        g->free_list = radi_calloc((size_t)(n > 0 ? n : 1), sizeof *g->free_list);
        if (!g->free_list)
            return rad_fail(err, RAD_E_NOMEM, "kv group %d: out of memory", i);
        for (int64_t k = n - 1; k >= first; k--)     /* lowest number on top */
            g->free_list[g->n_free++] = (int32_t)k;
    }
    return RAD_OK;
}

void radi_kv_release(struct radi_kv *kv)
{
    for (int i = 0; i < kv->n_groups && i < RADI_KV_GROUPS; i++)
        radi_free(kv->g[i].free_list);
    memset(kv, 0, sizeof *kv);
}

rad_status radi_kv_seq_init(const struct radi_kv *kv, struct radi_kv_seq *s, struct rad_err *err)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < kv->n_groups; i++) {
        const struct radi_kv_group *g = &kv->g[i];
        s->slot[i] = -1;
        if (!paged(g))
            continue;
        s->table[i] = radi_malloc((size_t)g->max_blocks * sizeof **s->table);
        if (!s->table[i]) {
            radi_kv_seq_release(s);
            return rad_fail(err, RAD_E_NOMEM, "block table: out of memory");
        }
        for (int64_t k = 0; k < g->max_blocks; k++)
            s->table[i][k] = -1;
    }
    return RAD_OK;
}

void radi_kv_seq_release(struct radi_kv_seq *s)
{
    for (int i = 0; i < RADI_KV_GROUPS; i++)
        radi_free(s->table[i]);
    memset(s, 0, sizeof *s);
}

bool radi_kv_ensure(struct radi_kv *kv, struct radi_kv_seq *s, int64_t n_tok)
{
    for (int i = 0; i < kv->n_groups; i++) {
        struct radi_kv_group *g = &kv->g[i];
        if (!paged(g)) {
            if (s->slot[i] < 0) {
                if (!g->n_free)
                    return false;
                s->slot[i] = g->free_list[--g->n_free];
            }
            continue;
        }
        int64_t want = (n_tok + g->info.block_size - 1) / g->info.block_size;
        RADI_BUG_IF(want > g->max_blocks);
        while (s->n_blocks[i] < want) {
            if (!g->n_free)
                return false;
            s->table[i][s->n_blocks[i]++] = g->free_list[--g->n_free];
        }
    }
    return true;
}

void radi_kv_trim_window(struct radi_kv *kv, struct radi_kv_seq *s, int64_t pos)
{
    for (int i = 0; i < kv->n_groups; i++) {
        struct radi_kv_group *g = &kv->g[i];
        if (g->info.kind != RAD_KV_WINDOW || g->info.window <= 0)
            continue;
        /* The query at pos sees keys above pos - window; later ones see less. */
        int64_t low = pos - g->info.window + 1;
        int64_t keep = low > 0 ? low / g->info.block_size : 0;
        for (; s->first[i] < keep && s->first[i] < s->n_blocks[i]; s->first[i]++) {
            g->free_list[g->n_free++] = s->table[i][s->first[i]];
            s->table[i][s->first[i]] = -1;
        }
    }
}

void radi_kv_drop(struct radi_kv *kv, struct radi_kv_seq *s)
{
    for (int i = 0; i < kv->n_groups; i++) {
        struct radi_kv_group *g = &kv->g[i];
        if (!paged(g)) {
            if (s->slot[i] >= 0)
                g->free_list[g->n_free++] = s->slot[i];
            s->slot[i] = -1;
            continue;
        }
        for (int64_t k = s->first[i]; k < s->n_blocks[i]; k++) {
            g->free_list[g->n_free++] = s->table[i][k];
            s->table[i][k] = -1;
        }
        s->n_blocks[i] = s->first[i] = 0;
    }
}

int64_t radi_kv_total(const struct radi_kv *kv)
{
    int64_t n = 0;
    for (int i = 0; i < kv->n_groups; i++)
        if (paged(&kv->g[i]))
            n += kv->g[i].info.n_blocks - 1;
    return n;
}

int64_t radi_kv_used(const struct radi_kv *kv)
{
    int64_t n = 0;
    for (int i = 0; i < kv->n_groups; i++)
        if (paged(&kv->g[i]))
            n += kv->g[i].info.n_blocks - 1 - kv->g[i].n_free;
    return n;
}

bool radi_kv_fits(const struct radi_kv *kv, int64_t n_tok)
{
    for (int i = 0; i < kv->n_groups; i++) {
        const struct radi_kv_group *g = &kv->g[i];
        if (!paged(g))
            continue;
        /* A window is trimmed only between steps, so a whole prompt may be
         * held for a moment; count it whole. */
        int64_t want = (n_tok + g->info.block_size - 1) / g->info.block_size;
        if (want > g->info.n_blocks - 1)
            return false;
    }
    return true;
}
