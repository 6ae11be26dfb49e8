/* SPDX-License-Identifier: Apache-2.0 */
/* Operands, weights and launches of ref-check. */
#include "ref-check.h"

static uint64_t state = 0x9e3779b97f4a7c15ull;

static uint32_t draw(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}
float uniform(void)
{
    return ((float)(draw() & 0xffffff) - 8388607.5f) / 8388608.0f;
}
float narrowed(int dtype, float f)
{
    return dtype == RAD_BF16 ? rad_bf16_to_f32(rad_f32_to_bf16(f)) : f;
}
int same(float a, float b)
{
    return rad_bits_f32(a) == rad_bits_f32(b) || (a != a && b != b);
}
int near(float a, float b, int ulps, int dtype)
{
    double eps = dtype == RAD_BF16 ? 0x1p-8 : 0x1p-23;
    return same(a, b) || fabs((double)a - (double)b) <= ulps * eps * fabs((double)b) + 1e-30;
}

static size_t size_of(int dtype)
{
    return (size_t)rad_dtype_bits(dtype) / 8;
}

struct buf act(int dtype, int64_t rows, int64_t cols, int64_t pitch)
{
    struct buf b = { .pitch = pitch };
    size_t bytes = (size_t)(rows * pitch + 8) * size_of(dtype);
    b.mem = malloc(bytes);
    memset(b.mem, 0x5a, bytes);
    b.t = (RadTensor){ .data = b.mem, .dtype = dtype, .rank = 2, .shape = { rows, cols },
                       .stride = { pitch, 1 } };
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            set(&b, r, c, uniform() * 3);
    return b;
}
struct buf ints(const int32_t *v, int64_t n)
{
    struct buf b = { .pitch = 0 };
    b.mem = malloc((size_t)n * sizeof *v);
    memcpy(b.mem, v, (size_t)n * sizeof *v);
    b.t = (RadTensor){ .data = b.mem, .dtype = RAD_I32, .rank = 1, .shape = { n },
                       .stride = { 1 } };
    return b;
}
RadTensor flat(void *data, int dtype, int64_t rows, int64_t cols)
{
    return (RadTensor){ .data = data, .dtype = dtype, .rank = 2, .shape = { rows, cols },
                        .stride = { cols, 1 } };
}
void drop(struct buf *b)
{
    if (b->pitch) {
        const uint8_t *p = b->mem;
        size_t esz = size_of(b->t.dtype), row = (size_t)b->pitch * esz;
        size_t used = (size_t)b->t.shape[1] * esz, rows = (size_t)b->t.shape[0];
        for (size_t r = 0; r < rows; r++)
            for (size_t i = used; i < row; i++)
                CHECK_MSG(p[r * row + i] == 0x5a, "row %zu: written past its end", r);
        for (size_t i = 0; i < 8 * esz; i++)
            CHECK_MSG(p[rows * row + i] == 0x5a, "written past the buffer");
    }
    free(b->mem);
    b->mem = NULL;
}
float get(const struct buf *b, int64_t r, int64_t c)
{
    return rad_get_f32(b->mem, b->t.dtype, (size_t)(r * b->pitch + c));
}
void set(struct buf *b, int64_t r, int64_t c, float v)
{
    ref_store(b->mem, b->t.dtype, r * b->pitch + c, 1, &v);
}

/* ---- weights */

enum { NONE = 0, T = RAD_PLANE_TILED, B = RAD_PLANE_TABLE };

static const struct {
    const char *name, *scheme, *transform;
    struct { const char *role; int dtype, kind; int64_t r, c; } plane[5];
} list[] = {
    { "f32", "plain", "", { { "codes", RAD_DT_f32, T, 1, 1 } } },
    { "bf16", "plain", "", { { "codes", RAD_DT_bf16, T, 1, 1 } } },
    { "f16", "plain", "", { { "codes", RAD_DT_f16, T, 1, 1 } } },
    { "fp8_e4m3", "plain", "", { { "codes", RAD_DT_fp8_e4m3, T, 1, 1 } } },
    { "fp8_e5m2", "plain", "", { { "codes", RAD_DT_fp8_e5m2, T, 1, 1 } } },
    { "i8", "plain", "", { { "codes", RAD_DT_i8, T, 1, 1 } } },
    { "block fp8", "affine", "", { { "codes", RAD_DT_fp8_e4m3, T, 1, 1 },
                                   { "scale", RAD_DT_bf16, T, 16, 16 } } },
    { "per-tensor fp8", "affine", "", { { "codes", RAD_DT_fp8_e4m3, T, 1, 1 },
                                        { "scale", RAD_DT_bf16, T, 0, 0 } } },
    { "q4_1", "affine", "", { { "codes", RAD_DT_u4, T, 1, 1 }, { "scale", RAD_DT_f16, T, 1, 32 },
                              { "min", RAD_DT_f16, T, 1, 32 } } },
    { "q8_0", "affine", "", { { "codes", RAD_DT_i8, T, 1, 1 },
                              { "scale", RAD_DT_f16, T, 1, 32 } } },
    { "zero", "affine", "", { { "codes", RAD_DT_u2, T, 1, 1 }, { "scale", RAD_DT_f16, T, 1, 16 },
                              { "zero", RAD_DT_u8, T, 1, 16 } } },
    { "i3", "affine", "", { { "codes", RAD_DT_i3, T, 1, 1 }, { "scale", RAD_DT_bf16, T, 1, 8 } } },
    { "u5", "affine", "", { { "codes", RAD_DT_u5, T, 1, 1 }, { "scale", RAD_DT_f32, T, 1, 0 } } },
    { "i6", "affine", "", { { "codes", RAD_DT_i6, T, 1, 1 }, { "scale", RAD_DT_i8, T, 1, 16 },
                            { "scale.1", RAD_DT_f16, T, 1, 64 } } },
    { "mxfp4", "affine", "", { { "codes", RAD_DT_fp4_e2m1, T, 1, 1 },
                               { "scale", RAD_DT_e8m0, T, 1, 32 } } },
    { "nvfp4", "affine", "", { { "codes", RAD_DT_fp4_e2m1, T, 1, 1 },
                               { "scale", RAD_DT_fp8_e4m3, T, 1, 16 },
                               { "scale.1", RAD_DT_f32, T, 0, 0 } } },
    { "fp6", "affine", "", { { "codes", RAD_DT_fp6_e3m2, T, 1, 1 },
                             { "scale", RAD_DT_e8m0, T, 1, 32 } } },
    { "table", "affine", "", { { "codes", RAD_DT_u4, T, 1, 1 }, { "scale", RAD_DT_bf16, T, 1, 32 },
                               { "table", RAD_DT_f32, B, 1, 16 } } },
    { "grid", "affine", "", { { "codes", RAD_DT_u8, T, 1, 8 }, { "scale", RAD_DT_f16, T, 1, 32 },
                              { "grid", RAD_DT_i8, B, 256, 8 }, { "signs", RAD_DT_u1, T, 1, 1 } } },
    { "channel scale", "affine", "", { { "codes", RAD_DT_i4, T, 1, 1 },
                                       { "scale", RAD_DT_bf16, T, 1, 32 },
                                       { "scale.1", RAD_DT_bf16, T, 0, 1 } } },
    { "rotated", "affine", "fwht32", { { "codes", RAD_DT_i4, T, 1, 1 },
                                       { "scale", RAD_DT_bf16, T, 1, 32 } } },
};

int weight_at(int i, int64_t rows, int64_t cols, struct weight *w)
{
    memset(w, 0, sizeof *w);
    if (i < 0 || (size_t)i >= sizeof list / sizeof list[0])
        return 0;
    w->name = list[i].name;
    rad_encoding_affine(&w->enc);
    for (int p = 0; p < 5 && list[i].plane[p].role; p++)
        CHECK(!rad_encoding_add(&w->enc, list[i].plane[p].role, list[i].plane[p].dtype,
                                list[i].plane[p].kind, list[i].plane[p].r, list[i].plane[p].c));
    if (!strcmp(list[i].scheme, "plain"))
        rad_encoding_plain(&w->enc, list[i].plane[0].dtype);
    memcpy(w->enc.transform, list[i].transform, strlen(list[i].transform));
    struct rad_err err = { 0 };
    CHECK_MSG(!rad_encoding_validate(&w->enc, &err), "%s: %s", w->name, err.text);
    w->t = (RadTensor){ .rank = 2, .shape = { rows, cols }, .enc = &w->enc };
    for (int p = 0; p < w->enc.n_planes; p++) {
        RadPlaneGeom g;
        int dt = (int)w->enc.plane[p].dtype;
        CHECK(!rad_plane_geom(&w->enc, p, (uint64_t)rows, (uint64_t)cols, &g, NULL));
        uint8_t *mem = malloc(g.bytes);
        for (uint64_t b = 0; b < g.bytes; b++)
            mem[b] = (uint8_t)draw();
        for (uint64_t r = 0; r < g.rows; r++)       /* finite floats, exponents near one */
            for (uint64_t c = 0; c < g.cols; c++) {
                float f = uniform();
                if (dt == RAD_DT_e8m0)
                    mem[r * g.row_bytes + c] = (uint8_t)(120 + draw() % 14);
                else if (rad_dtype_bits(dt) >= 8 && rad_dtype_kind(dt) == 'f')
                    ref_store(mem + r * g.row_bytes, dt, (int64_t)c, 1, &f);
            }
        w->t.plane[p] = mem;
    }
    return 1;
}
void weight_free(struct weight *w)
{
    for (int p = 0; p < w->enc.n_planes; p++)
        free((void *)(uintptr_t)w->t.plane[p]);
}

/* ---- launches */

static int launch(const char *op, const RadParam *p, int n, RadTensor *opd, int n_opd, int parts,
                  int only)
{
    for (int i = 0; i < rad_kernel_count(); i++) {
        const RadKernelRow *r = rad_kernel_at(i);
        if (strcmp(r->op, op))
            continue;
        void *params = calloc(1, r->params_size);
        int st = r->parse(p, n, params);
        size_t bytes = !st && r->scratch ? r->scratch(params, parts) : 0;
        void *scratch = bytes ? aligned_alloc(64, bytes) : NULL;
        if (scratch)
            memset(scratch, 0xff, bytes);
        RadLaunch l = { .struct_size = sizeof l, .n_opd = n_opd, .opd = opd, .params = params,
                        .scratch = scratch, .scratch_bytes = bytes, .world_size = 1,
                        .parts = parts };
        for (l.part = parts - 1; !st && l.part >= 0; l.part--)
            if (only < 0 || only == l.part)
                st = r->launch(&l);
        RadCost cost = { 0, 0 };
        if (!st)
            CHECK_MSG(!r->cost(params, opd, n_opd, &cost) && cost.bytes, "%s: no cost", op);
        free(scratch);
        free(params);
        return st;
    }
    return RAD_E_NOTFOUND;
}

int run_as(const char *op, const RadParam *p, int n, RadTensor *opd, int n_opd, int parts)
{
    return launch(op, p, n, opd, n_opd, parts, -1);
}

void run(const char *op, const RadParam *p, int n, RadTensor *opd, int n_opd, int out)
{
    static const int parts[] = { 1, 2, 3, 8 };
    RadTensor *o = &opd[out];
    size_t bytes = (size_t)(o->shape[0] * (o->rank > 1 ? o->stride[0] : 1)) * size_of(o->dtype);
    void *first = malloc(bytes), *before = malloc(bytes);
    memcpy(before, o->data, bytes);
    for (int i = 0; i < 4; i++) {
        memcpy(o->data, before, bytes);
        int st = run_as(op, p, n, opd, n_opd, parts[i]);
        CHECK_MSG(st == RAD_OK, "%s: status %d", op, st);
        if (i == 0)
            memcpy(first, o->data, bytes);
        else
            CHECK_MSG(!memcmp(first, o->data, bytes), "%s: %d parts give other bytes", op,
                      parts[i]);
    }
    /* no byte is written by two parts */
    uint8_t *owner = calloc(1, bytes), *now = o->data;
    for (int part = 0; part < 3; part++) {
        memcpy(now, before, bytes);
        launch(op, p, n, opd, n_opd, 3, part);
        for (size_t i = 0; i < bytes; i++)
            if (now[i] != ((uint8_t *)before)[i]) {
                CHECK_MSG(!owner[i], "%s: parts %d and %d write byte %zu", op, owner[i] - 1, part,
                          i);
                owner[i] = (uint8_t)(part + 1);
            }
    }
    free(owner);
    memcpy(o->data, first, bytes);
    free(first);
    free(before);
}
