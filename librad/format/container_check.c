/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a container whose records refer to each other: the vocab section
 * (container §12 rule 7), expert groups (§11), shapes. Everything read here
 * comes from a file and is hostile. */
#include "format/container.h"
#include "banned.h"

bool radi_shape_matrix(const int64_t *shape, int rank, uint64_t *rows, uint64_t *cols)
{
    uint64_t r = 1;

    if (rank < 1 || rank > RAD_MAX_RANK)
        return false;
    for (int i = 0; i < RAD_MAX_RANK; i++)
        if (i < rank ? shape[i] <= 0 : shape[i] != 0)
            return false;
    for (int i = 0; i + 1 < rank; i++)
        if (!radi_mul_u64(r, (uint64_t)shape[i], &r))
            return false;
    *rows = r;
    *cols = (uint64_t)shape[rank - 1];
    return true;
}

/* ---- vocab */

struct vocab_array {
    const char *name;
    uint64_t offset, count, item, align;
    bool needed;               /* a count that is not 0 asks for the array */
};

static rad_status check_array(const struct rad_model *m, const struct vocab_array *a,
                              struct rad_err *err)
{
    const struct radi_rad_header *h = &m->head;
    uint64_t bytes;

    if (!a->offset)
        return a->needed && a->count
            ? rad_fail(err, RAD_E_FORMAT, "vocab: %s: %llu records, but the array is absent",
                       a->name, (unsigned long long)a->count) : RAD_OK;
    if (a->offset % a->align)
        return rad_fail(err, RAD_E_FORMAT, "vocab: %s: offset %llu, want a multiple of %llu",
                        a->name, (unsigned long long)a->offset, (unsigned long long)a->align);
    if (a->offset < h->vocab_off || !radi_mul_u64(a->count, a->item, &bytes)
        || !radi_span_ok(a->offset - h->vocab_off, bytes, h->vocab_bytes))
        return rad_fail(err, RAD_E_FORMAT, "vocab: %s: %llu records at %llu lie outside the"
                        " section", a->name, (unsigned long long)a->count,
                        (unsigned long long)a->offset);
    return RAD_OK;
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

rad_status radi_check_vocab(const struct rad_model *m, struct rad_err *err)
{
    const struct radi_rad_header *h = &m->head;
    const uint8_t *base = m->data + h->vocab_off;
    struct radi_rad_vocab v;

    if (!h->vocab_bytes)
        return RAD_OK;
    if (h->vocab_off % 8)
        return rad_fail(err, RAD_E_FORMAT, "vocab_off: %llu, want a multiple of 8",
                        (unsigned long long)h->vocab_off);
    if (h->vocab_bytes < RADI_VOCAB_HEAD)
        return rad_fail(err, RAD_E_FORMAT, "vocab_bytes: %llu, want at least %d",
                        (unsigned long long)h->vocab_bytes, RADI_VOCAB_HEAD);
    memcpy(&v, base, sizeof v);
    if (v.kind < 1 || v.kind > 4)
        return rad_fail(err, RAD_E_FORMAT, "vocab: kind: %u, want 1 to 4", v.kind);

    const struct vocab_array array[] = {
        { "tok_text", v.text, v.n_tokens, 8, 8, true },
        { "tok_score", v.score, v.n_tokens, 4, 4, false },
        { "tok_type", v.type, v.n_tokens, 1, 1, false },
        { "merge", v.merge, v.n_merges, 8, 4, true },
        { "step", v.step, v.n_steps, 32, 8, true },
    };
    for (size_t i = 0; i < RADI_COUNT(array); i++)
        RAD_TRY(check_array(m, &array[i], err));

    const uint8_t *p = m->data + v.text;
    for (uint32_t i = 0; v.text && i < v.n_tokens; i++, p += 8)
        if (get_u64(p) >= h->str_bytes)
            return rad_fail(err, RAD_E_FORMAT, "vocab: tok_text %u: string offset %llu outside"
                            " the strings", i, (unsigned long long)get_u64(p));
    p = m->data + v.merge;
    for (uint32_t i = 0; v.merge && i < v.n_merges; i++, p += 8) {
        uint32_t pair[2];

        memcpy(pair, p, sizeof pair);
        if (pair[0] >= v.n_tokens || pair[1] >= v.n_tokens)
            return rad_fail(err, RAD_E_FORMAT, "vocab: merge %u: tokens %u and %u, want less"
                            " than %u", i, pair[0], pair[1], v.n_tokens);
    }
    p = m->data + v.step;
    for (uint32_t i = 0; v.step && i < v.n_steps; i++, p += 32) {
        struct radi_rad_step s;

        memcpy(&s, p, sizeof s);
        if (s.arg0 >= h->str_bytes || s.arg1 >= h->str_bytes)
            return rad_fail(err, RAD_E_FORMAT, "vocab: step %u: string offset outside the"
                            " strings", i);
    }
    if (v.template >= h->str_bytes)
        return rad_fail(err, RAD_E_FORMAT, "vocab: chat template: string offset %llu outside"
                        " the strings", (unsigned long long)v.template);
    return RAD_OK;
}

/* ---- expert groups */

/* Slots of the first expert, in order from 0. */
static rad_status count_slots(const struct rad_weight *w, size_t n_weights, size_t i,
                              uint32_t *n_slots, struct rad_err *err)
{
    uint32_t n = 0;

    while (i + n < n_weights && w[i + n].expert == 0 && w[i + n].layer == w[i].layer
           && w[i + n].slot == (int32_t)n)
        n++;
    if (!n)
        return rad_fail(err, RAD_E_FORMAT, "weight '%s': expert %d, slot %d begins the experts"
                        " of layer %d, want expert 0, slot 0", w[i].name, w[i].expert,
                        w[i].slot, w[i].layer);
    if (n > RADI_RAD_MAX_SLOTS)
        return rad_fail(err, RAD_E_FORMAT, "weight '%s': layer %d has %u slots an expert, want"
                        " 1 to %d", w[i].name, w[i].layer, n, RADI_RAD_MAX_SLOTS);
    *n_slots = n;
    return RAD_OK;
}

rad_status radi_group_at(const struct rad_weight *w, size_t n_weights, size_t i,
                         struct rad_expert_group *g, size_t *n, struct rad_err *err)
{
    const struct rad_weight *first = &w[i];
    uint32_t slots = 1;
    uint64_t unit = 0;

    memset(g, 0, sizeof *g);
    RAD_TRY(count_slots(w, n_weights, i, &slots, err));
    for (*n = 0; i + *n < n_weights && w[i + *n].expert >= 0
         && w[i + *n].layer == first->layer; ++*n) {
        const struct rad_weight *e = &w[i + *n];
        size_t expert = *n / slots, slot = *n % slots;
        const struct rad_weight *unit0 = &first[expert * slots], *like = &first[slot];

        if (e->expert < 0 || (size_t)e->expert != expert || e->slot < 0
            || (size_t)e->slot != slot)
            return rad_fail(err, RAD_E_FORMAT, "weight '%s': expert %d, slot %d, want expert"
                            " %zu, slot %zu", e->name, e->expert, e->slot, expert, slot);
        if (e->offset < unit0->offset || e->bytes != like->bytes
            || e->offset - unit0->offset != like->offset - first->offset)
            return rad_fail(err, RAD_E_FORMAT, "weight '%s': %llu bytes at +%llu of its"
                            " expert, want %llu at +%llu as in expert 0", e->name,
                            (unsigned long long)e->bytes,
                            (unsigned long long)(e->offset - unit0->offset),
                            (unsigned long long)like->bytes,
                            (unsigned long long)(like->offset - first->offset));
        if (!expert)
            unit = RADI_MAX(unit, e->offset - first->offset + e->bytes);
    }
    if (*n % slots)
        return rad_fail(err, RAD_E_FORMAT, "weight '%s': the last expert of layer %d has %zu"
                        " slots, want %u", w[i + *n - 1].name, first->layer, *n % slots, slots);

    g->size = sizeof *g;
    g->layer = first->layer;
    g->n_slots = slots;
    g->n_experts = (uint32_t)(*n / slots);
    g->first = i;
    g->base = first->offset;
    g->unit_bytes = unit;
    if (*n > slots)
        g->stride = first[slots].offset - first->offset;
    else if (!radi_align_u64(unit, RADI_RAD_UNIT, &g->stride))
        return rad_fail(err, RAD_E_FORMAT, "weight '%s': size overflows", first->name);
    if (g->n_experts > 1 && (first[slots].offset < first->offset || g->stride < unit))
        return rad_fail(err, RAD_E_FORMAT, "weight '%s': expert 1 begins inside expert 0",
                        first[slots].name);
    for (size_t e = 2; e < g->n_experts; e++) {
        const struct rad_weight *u = &first[e * slots];
        uint64_t at;

        if (!radi_mul_u64(e, g->stride, &at) || !radi_add_u64(at, g->base, &at)
            || u->offset != at)
            return rad_fail(err, RAD_E_FORMAT, "weight '%s': offset %llu, want %llu + %zu *"
                            " %llu", u->name, (unsigned long long)u->offset,
                            (unsigned long long)g->base, e, (unsigned long long)g->stride);
    }
    return RAD_OK;
}

rad_status radi_find_groups(struct rad_model *m, struct rad_err *err)
{
    struct radi_map *layers = radi_map_new(64);
    size_t n_weights = (size_t)m->head.dir_count, n = 1;
    rad_status st = RAD_OK;

    if (!layers)
        return rad_fail(err, RAD_E_NOMEM, "expert groups");
    for (size_t i = 0; i < n_weights && !st; i += n) {
        const struct rad_weight *w = &m->weight[i];
        struct rad_expert_group g;
        bool existed;

        n = 1;
        if (w->expert < 0)
            continue;
        st = radi_group_at(m->weight, n_weights, i, &g, &n, err);
        if (st)
            break;
        if (!radi_map_put(layers, (const char *)&w->layer, sizeof w->layer, i, &existed))
            st = rad_fail(err, RAD_E_NOMEM, "expert groups");
        else if (existed)
            st = rad_fail(err, RAD_E_FORMAT, "weight '%s': the experts of layer %d do not lie"
                          " together", w->name, w->layer);
        else
            st = radi_grow((void **)&m->group, &m->cap_groups, m->n_groups + 1,
                           sizeof *m->group, err);
        if (!st)
            m->group[m->n_groups++] = g;
    }
    radi_map_free(layers);
    return st;
}
