/* SPDX-License-Identifier: Apache-2.0 */
/* kv_store and attn_paged over pages [n_blocks, Hkv, block, 2C]: of a line, K
 * is the first C elements and V the rest.
 *
 * attn_paged, for one query and head: s_j = sum over c of q_c * k_jc in double;
 * times k_descale, times scale, then softcap; m = max over visible j (and the
 * sink); e_j = exp(s_j - m); out_c = (sum over j of e_j * v_jc) / (sum of e_j,
 * plus the sink's) * v_descale, keys ascending. Nothing in it depends on which
 * other queries the call has, nor on where the blocks lie. */
#include "ref.h"

static int dtype_of(const char *s)
{
    return !strcmp(s, "f32") ? RAD_F32 : !strcmp(s, "bf16") ? RAD_BF16
        : !strcmp(s, "f16") ? RAD_F16 : !strcmp(s, "fp8_e4m3") ? RAD_FP8_E4M3 : RAD_DT_NONE;
}

int ref_kv_parse(const RadParam *p, int n, void *out)
{
    struct ref_kv *k = out;
    k->M = rad_param_int(p, n, "M", 0);
    k->C = rad_param_int(p, n, "head_dim", 0);
    k->Hkv = rad_param_int(p, n, "n_head_kv", 0);
    k->block = rad_param_int(p, n, "block_size", 0);
    k->dt = dtype_of(rad_param_str(p, n, "kv_dtype", ""));
    k->k_scale = (float)rad_param_real(p, n, "k_scale", 1);
    k->v_scale = (float)rad_param_real(p, n, "v_scale", 1);
    if (!k->dt)
        return RAD_E_UNSUPPORTED;
    if (k->C <= 0 || k->Hkv <= 0 || k->block <= 0 || !(k->k_scale > 0) || !(k->v_scale > 0))
        return RAD_E_ARG;
    /* only a type too narrow for the range has scales */
    if (k->dt != RAD_FP8_E4M3 && (k->k_scale != 1 || k->v_scale != 1))
        return RAD_E_UNSUPPORTED;
    return RAD_OK;
}

int ref_kv_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    const struct ref_kv *k = params;
    if (n_opd < 4)
        return RAD_E_ARG;
    uint64_t rows = (uint64_t)rad_numel(&opd[2]);
    uint64_t line = (uint64_t)k->Hkv * 2 * (uint64_t)k->C * (uint64_t)rad_dtype_bits(k->dt) / 8;
    out->bytes = ref_bytes(&opd[0]) + ref_bytes(&opd[1]) + ref_bytes(&opd[2]) + rows * line;
    out->ops = 0;
    return RAD_OK;
}

/* The pages of a layer. */
struct pages {
    uint8_t *base;
    int dt;
    size_t esz;
    int64_t n_blocks, Hkv, block, C;
    int64_t s_block, s_head, s_line;
};

static int pages_of(const RadTensor *t, int64_t C, int dt, struct pages *p)
{
    if (!t->data)
        return RAD_E_ARG;
    if (t->dtype != dt)
        return RAD_E_DTYPE;
    if (t->rank != 4 || t->shape[3] != 2 * C)
        return RAD_E_SHAPE;
    if (t->stride[3] != 1)
        return RAD_E_STRIDE;
    *p = (struct pages){ .base = t->data, .dt = dt, .esz = (size_t)rad_dtype_bits(dt) / 8,
                         .n_blocks = t->shape[0], .Hkv = t->shape[1], .block = t->shape[2],
                         .C = C, .s_block = t->stride[0], .s_head = t->stride[1],
                         .s_line = t->stride[2] };
    return p->block > 0 && p->Hkv > 0 ? RAD_OK : RAD_E_SHAPE;
}

static void *line_of(const struct pages *p, int64_t block, int64_t head, int64_t line)
{
    return p->base + (size_t)(block * p->s_block + head * p->s_head + line * p->s_line) * p->esz;
}

static void put(void *line, int dt, int64_t at, const struct ref_view *v, int64_t m, int64_t c0,
                int64_t C, float scale)
{
    enum { CHUNK = 256 };
    for (int64_t c = 0; c < C; c += CHUNK) {
        float b[CHUNK];
        int64_t len = C - c < CHUNK ? C - c : CHUNK;
        ref_load(ref_row(v, m), v->dt, c0 + c, len, b);
        if (scale != 1)
            for (int64_t i = 0; i < len; i++)
                b[i] /= scale;
        ref_store(line, dt, at + c, len, b);
    }
}

/* k, v, slot_mapping, kv_cache!. Slots of one call are distinct. */
int ref_kv_store(const RadLaunch *a)
{
    const struct ref_kv *p = a->params;
    struct ref_view k, v;
    struct pages kv;
    const int32_t *slot;
    if (a->n_opd < 4)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], p->Hkv * p->C, &k));
    RAD_TRY(ref_act(&a->opd[1], p->Hkv * p->C, &v));
    RAD_TRY(ref_i32(&a->opd[2], k.rows, &slot));
    RAD_TRY(pages_of(&a->opd[3], p->C, p->dt, &kv));
    if (k.rows != v.rows || kv.Hkv != p->Hkv || kv.block != p->block)
        return RAD_E_SHAPE;
    int64_t u0, u1;
    ref_share(a, k.rows * p->Hkv, &u0, &u1);
    for (int64_t u = u0; u < u1; u++) {
        int64_t m = u / p->Hkv, h = u % p->Hkv, s = slot[m];
        if (s < 0 || s / kv.block >= kv.n_blocks)
            continue;
        void *line = line_of(&kv, s / kv.block, h, s % kv.block);
        put(line, kv.dt, 0, &k, m, h * p->C, p->C, p->k_scale);
        put(line, kv.dt, p->C, &v, m, h * p->C, p->C, p->v_scale);
    }
    return RAD_OK;
}

enum { KEYS = 8, CAP = 4096 };   /* keys side by side; scores kept a head */

int ref_attn_parse(const RadParam *p, int n, void *out)
{
    struct ref_attn *t = out;
    t->q_len = rad_param_int(p, n, "q_len", 0);
    t->C = rad_param_int(p, n, "head_dim", 0);
    t->gqa = rad_param_int(p, n, "gqa", 0);
    t->block = rad_param_int(p, n, "block_size", 0);
    t->causal = rad_param_int(p, n, "causal", 1) != 0;
    t->window = rad_param_int(p, n, "window", 0);
    t->kv_dt = dtype_of(rad_param_str(p, n, "kv_dtype", ""));
    if (!t->kv_dt)
        return RAD_E_UNSUPPORTED;
    if (t->C <= 0 || t->gqa <= 0 || t->window < 0 || t->block < 0)
        return RAD_E_ARG;
    t->scale = rad_param_real(p, n, "scale", 1.0 / sqrt((double)t->C));
    t->softcap = rad_param_real(p, n, "softcap", 0);
    if (t->softcap < 0)
        return RAD_E_ARG;
    int64_t ctx = rad_param_int(p, n, "max_ctx", 0);
    t->cap = ctx > 0 && ctx < CAP ? ctx : CAP;
    return RAD_OK;
}

/* One part's work space, in doubles: every field is 16-byte aligned. */
struct space {
    double *q;            /* [gqa][C] */
    double *kt;           /* [C][KEYS] */
    double *v;            /* [KEYS][C] */
    double *acc;          /* [gqa][C] */
    double *score;        /* [gqa][cap] */
    double *s;            /* [gqa][KEYS]: of one run of keys */
    double *max, *den;    /* [gqa] */
    float *sink;          /* [gqa] */
    float *f;             /* [C] */
};

static size_t space_of(const struct ref_attn *p, char *base, struct space *s)
{
    size_t at = 0, g = (size_t)p->gqa, C = (size_t)p->C;
#define TAKE(field, type, count)                                  \
    do {                                                          \
        if (s)                                                    \
            s->field = (type *)(void *)(base + at);               \
        at += ((count) * sizeof(type) + 15) & ~(size_t)15;        \
    } while (0)
    TAKE(q, double, g * C);
    TAKE(kt, double, C * KEYS);
    TAKE(v, double, C * KEYS);
    TAKE(acc, double, g * C);
    TAKE(score, double, g * (size_t)p->cap);
    TAKE(s, double, g * KEYS);
    TAKE(max, double, g);
    TAKE(den, double, g);
    TAKE(sink, float, g);
    TAKE(f, float, C);
#undef TAKE
    return at;
}

size_t ref_attn_scratch(const void *params, int parts)
{
    return ref_scratch_all(space_of(params, NULL, NULL), parts);
}

struct call {
    const struct ref_attn *p;
    const RadTensor *sinks;         /* or NULL */
    struct ref_view q, out;
    struct pages kv;
    const int32_t *table;           /* [S, max_blocks] */
    int64_t table_stride, max_blocks;
    const float *kd, *vd;           /* [S*Hkv] or NULL */
    struct space sp;
};

/* Visible keys of a query at pos: [lo, hi). */
static void visible(const struct ref_attn *p, int64_t pos, int64_t used, int64_t *lo, int64_t *hi)
{
    *lo = p->window && pos - p->window + 1 > 0 ? pos - p->window + 1 : 0;
    *hi = p->causal ? pos + 1 : p->window && pos + p->window < used ? pos + p->window : used;
    if (*hi < *lo)
        *hi = *lo;
}

/* The next run of at most KEYS keys of one block from *j on; 0 at the end. */
static int next_run(const struct call *c, const int32_t *row, int64_t hi, int64_t *j,
                    int64_t *block, int64_t *line)
{
    while (*j < hi) {
        int64_t b = *j / c->kv.block, l = *j % c->kv.block, left = c->kv.block - l;
        int64_t n = left < KEYS ? left : KEYS;
        if (row[b] < 0) {
            *j += left;
            continue;
        }
        *block = row[b];
        *line = l;
        return (int)(n < hi - *j ? n : hi - *j);
    }
    return 0;
}

/* sp.s[h][i] of one run of n keys. */
static void scores(const struct call *c, int64_t block, int64_t g, int64_t line, int n, float kd)
{
    const struct ref_attn *p = c->p;
    for (int i = 0; i < KEYS; i++) {
        if (i < n)
            ref_load(line_of(&c->kv, block, g, line + i), c->kv.dt, 0, p->C, c->sp.f);
        for (int64_t k = 0; k < p->C; k++)
            c->sp.kt[k * KEYS + i] = i < n ? (double)c->sp.f[k] : 0.0;
    }
    for (int64_t h = 0; h < p->gqa; h++) {
        double *s = c->sp.s + h * KEYS;
        memset(s, 0, KEYS * sizeof *s);
        ref_dot8(c->sp.q + h * p->C, c->sp.kt, p->C, s);
        for (int i = 0; i < n; i++) {
            double x = s[i] * (double)kd * p->scale;
            s[i] = p->softcap > 0 ? p->softcap * tanh(x / p->softcap) : x;
        }
    }
}

/* acc += e * V and den += e over one run, keys ascending. */
static void weigh(const struct call *c, int64_t block, int64_t g, int64_t line, int n,
                  const double *s, int64_t pitch)
{
    const struct ref_attn *p = c->p;
    for (int i = 0; i < n; i++) {
        ref_load(line_of(&c->kv, block, g, line + i), c->kv.dt, p->C, p->C, c->sp.f);
        for (int64_t k = 0; k < p->C; k++)
            c->sp.v[i * p->C + k] = (double)c->sp.f[k];
    }
    for (int64_t h = 0; h < p->gqa; h++) {
        double *acc = c->sp.acc + h * p->C;
        for (int i = 0; i < n; i++) {
            double e = exp(s[h * pitch + i] - c->sp.max[h]);
            const double *v = c->sp.v + i * p->C;
            c->sp.den[h] += e;
            for (int64_t k = 0; k < p->C; k++)
                acc[k] += e * v[k];
        }
    }
}

/* The query heads of token t that read KV head g; sequence s. */
static int attend(const struct call *c, int64_t t, int64_t g, int64_t s, int64_t pos, int64_t used)
{
    const struct ref_attn *p = c->p;
    const struct space *sp = &c->sp;
    const int32_t *row = c->table + s * c->table_stride;
    float kd = c->kd ? c->kd[s * c->kv.Hkv + g] : 1, vd = c->vd ? c->vd[s * c->kv.Hkv + g] : 1;
    int64_t lo, hi, block, line, seen = 0;
    int n;

    for (int64_t h = 0; h < p->gqa; h++) {
        ref_load(ref_row(&c->q, t), c->q.dt, (g * p->gqa + h) * p->C, p->C, sp->f);
        for (int64_t k = 0; k < p->C; k++) {
            sp->q[h * p->C + k] = (double)sp->f[k];
            sp->acc[h * p->C + k] = 0;
        }
        sp->den[h] = 0;
        sp->max[h] = -INFINITY;
    }
    if (c->sinks) {
        RAD_TRY(ref_weight_span(c->sinks, g * p->gqa, p->gqa, sp->sink));
        for (int64_t h = 0; h < p->gqa; h++)
            sp->max[h] = (double)sp->sink[h];
    }

    visible(p, pos, used, &lo, &hi);
    for (int64_t j = lo; (n = next_run(c, row, hi, &j, &block, &line)); j += n, seen += n) {
        if (block >= c->kv.n_blocks)
            return RAD_E_ARG;
        scores(c, block, g, line, n, kd);
        for (int64_t h = 0; h < p->gqa; h++)
            for (int i = 0; i < n; i++) {
                double x = sp->s[h * KEYS + i];
                if (x > sp->max[h])
                    sp->max[h] = x;
                if (seen + n <= p->cap)
                    sp->score[h * p->cap + seen + i] = x;
            }
    }
    int64_t total = seen;
    seen = 0;
    for (int64_t j = lo; (n = next_run(c, row, hi, &j, &block, &line)); j += n, seen += n) {
        if (seen + n <= p->cap) {
            weigh(c, block, g, line, n, sp->score + seen, p->cap);
        } else {                          /* past what is kept: the same sums again */
            scores(c, block, g, line, n, kd);
            weigh(c, block, g, line, n, sp->s, KEYS);
        }
    }
    for (int64_t h = 0; h < p->gqa; h++) {
        double den = sp->den[h] + (c->sinks ? exp((double)sp->sink[h] - sp->max[h]) : 0);
        for (int64_t k = 0; k < p->C; k++)
            sp->f[k] = total ? (float)(sp->acc[h * p->C + k] / den * (double)vd) : 0;
        ref_store(ref_row(&c->out, t), c->out.dt, (g * p->gqa + h) * p->C, p->C, sp->f);
    }
    return RAD_OK;
}

static int descale_of(const RadTensor *t, int64_t n, const float **out)
{
    struct ref_view v;
    *out = NULL;
    if (rad_absent(t))
        return RAD_OK;
    RAD_TRY(ref_view(t, n, &v));
    if (v.dt != RAD_F32)
        return RAD_E_DTYPE;
    *out = t->data;
    return rad_numel(t) == n ? RAD_OK : RAD_E_SHAPE;
}

/* q, kv_cache, block_table, seqused, k_descale?, v_descale?, cu_seqlens?,
 * sinks? -> out */
int ref_attn_paged(const RadLaunch *a)
{
    const struct ref_attn *p = a->params;
    struct call c = { .p = p };
    const int32_t *used, *cu = NULL;
    if (a->n_opd < 9)
        return RAD_E_ARG;
    const RadTensor *q = &a->opd[0], *bt = &a->opd[2];
    RAD_TRY(pages_of(&a->opd[1], p->C, p->kv_dt, &c.kv));
    if (p->block && p->block != c.kv.block)
        return RAD_E_SHAPE;
    int64_t width = p->gqa * c.kv.Hkv * p->C;
    RAD_TRY(ref_act(q, width, &c.q));
    RAD_TRY(ref_act(&a->opd[8], width, &c.out));
    if (c.q.rows != c.out.rows)
        return RAD_E_SHAPE;
    if (!bt->data || bt->dtype != RAD_I32)
        return bt->data ? RAD_E_DTYPE : RAD_E_ARG;
    if (bt->rank != 2 || (bt->shape[1] > 1 && bt->stride[1] != 1))
        return bt->rank != 2 ? RAD_E_SHAPE : RAD_E_STRIDE;
    c.table = bt->data;
    c.table_stride = bt->stride[0];
    c.max_blocks = bt->shape[1];
    RAD_TRY(ref_i32(&a->opd[3], 1, &used));
    int64_t S = rad_numel(&a->opd[3]), T = c.q.rows;
    if (bt->shape[0] < S)
        return RAD_E_SHAPE;
    RAD_TRY(descale_of(&a->opd[4], S * c.kv.Hkv, &c.kd));
    RAD_TRY(descale_of(&a->opd[5], S * c.kv.Hkv, &c.vd));
    if (!rad_absent(&a->opd[6]))
        RAD_TRY(ref_i32(&a->opd[6], S + 1, &cu));
    else if (T % S)
        return RAD_E_SHAPE;
    if (!rad_absent(&a->opd[7])) {
        RAD_TRY(ref_weight_check(&a->opd[7], 1, p->gqa * c.kv.Hkv));
        c.sinks = &a->opd[7];
    }
    char *work = ref_scratch(a, space_of(p, NULL, NULL));
    if (!work)
        return RAD_E_SCRATCH;
    space_of(p, work, &c.sp);

    /* Later tokens of a run see more keys: dealing them out one by one keeps
     * the parts even. */
    int64_t parts = a->parts > 0 ? a->parts : 1, Hkv = c.kv.Hkv;
    for (int64_t s = 0; s < S; s++) {
        int64_t t0 = cu ? cu[s] : s * (T / S), t1 = cu ? cu[s + 1] : t0 + T / S;
        if (t0 < 0 || t1 < t0 || t1 > T || used[s] < 0
            || used[s] > c.max_blocks * c.kv.block)
            return RAD_E_ARG;
        for (int64_t u = t0 * Hkv; u < t1 * Hkv; u++)
            if (u % parts == a->part)
                RAD_TRY(attend(&c, u / Hkv, u % Hkv, s, used[s] - t1 + u / Hkv, used[s]));
    }
    return RAD_OK;
}

/* Exact where the operands have data (this library's rows are host rows); a
 * plan has shapes only and gets the table's capacity. */
int ref_attn_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    const struct ref_attn *p = params;
    if (n_opd < 9 || opd[1].rank != 4 || opd[0].rank < 2)
        return RAD_E_ARG;
    int64_t Hkv = opd[1].shape[1], block = opd[1].shape[2], T = opd[0].shape[0];
    int64_t S = rad_numel(&opd[3]), keys = 0, pairs = 0;
    const int32_t *used = opd[3].data, *cu = opd[6].data;
    for (int64_t s = 0; s < S; s++) {
        int64_t n = cu ? cu[s + 1] - cu[s] : S ? T / S : 0, first = INT64_MAX, last = 0;
        int64_t len = used ? used[s] : opd[2].rank == 2 ? opd[2].shape[1] * block : 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t lo, hi;
            visible(p, len - n + i, len, &lo, &hi);
            pairs += hi - lo;
            first = lo < first ? lo : first;
            last = hi > last ? hi : last;
        }
        keys += last > first ? last - first : 0;
    }
    uint64_t line = 2 * (uint64_t)p->C * (uint64_t)rad_dtype_bits(p->kv_dt) / 8;
    out->bytes = (uint64_t)keys * (uint64_t)Hkv * line + ref_bytes(&opd[0]) + ref_bytes(&opd[8])
        + ref_bytes(&opd[2]) + ref_bytes(&opd[3]) + ref_bytes(&opd[6]) + ref_bytes(&opd[7]);
    out->ops = 4 * (uint64_t)pairs * (uint64_t)(Hkv * p->gqa) * (uint64_t)p->C;
    return RAD_OK;
}
