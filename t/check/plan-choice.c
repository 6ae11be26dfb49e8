/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel choice and buffer plan, with libraries of rows made here: bands, the
 * hierarchy, vetoes, schemas, claims of architectures, liveness. */
#include "config.h"

#include "plan-check.h"
#include "tap.h"

/* ---- kernel libraries of this test: op probe(M range, n, mode?) x, w? -> y */
static int p_parse(const RadParam *p, int n, void *out)
{
    int64_t v = rad_param_int(p, n, "n", 0);
    if (v == 13)
        return RAD_E_SHAPE;                      /* an unlucky geometry */
    memcpy(out, &v, sizeof v);
    return RAD_OK;
}
static int p_launch(const RadLaunch *a) { (void)a; return RAD_OK; }
static int veto_layout(const void *params, int operand, const RadEncoding *e, int64_t rows,
                       int64_t cols, RadLayoutDesc *out)
{
    (void)params; (void)operand;
    if (!rad_encoding_is_plain(e, RAD_F32))
        return RAD_E_DTYPE;
    *out = (RadLayoutDesc){ .tag = 7, .dtype = RAD_F32, .rank = 2, .shape = { cols, rows },
                            .align = 64, .bytes = (uint64_t)(rows * cols) * 4 };
    return RAD_OK;
}
static int veto_relayout(const void *params, int operand, const RadEncoding *e,
                         const void *const plane[], int64_t rows, int64_t cols, void *dst,
                         int part, int parts)
{
    (void)params; (void)operand; (void)e;
    const float *s = plane[0];
    float *d = dst;
    for (int64_t r = part; r < rows; r += parts)
        for (int64_t c = 0; c < cols; c++)
            d[c * rows + r] = s[r * cols + c];
    return RAD_OK;
}
static const RadCodec veto_codec = { .layout = veto_layout, .relayout = veto_relayout };

/* ---- a library whose gemm_nt reads transposed f32 weights; M <= 4 only, so
 * that larger steps go to the reference library and its planes */
static int pack_parse(const RadParam *p, int n, void *out)
{
    int64_t *nk = out;
    nk[0] = rad_param_int(p, n, "N", 0);
    nk[1] = rad_param_int(p, n, "K", 0);
    return RAD_OK;
}
int pack_launches, pack_inits;
static int pack_init(const void *params, int rank, int world, void **instance)
{
    (void)params; (void)rank; (void)world;
    pack_inits++;
    *instance = &pack_inits;
    return RAD_OK;
}
static void pack_fini(void *instance)
{
    (*(int *)instance)--;
}
static size_t pack_scratch(const void *params, int parts)
{
    (void)params;
    return (size_t)parts * 4096;
}
static int pack_launch(const RadLaunch *a)
{
    const int64_t *nk = a->params, N = nk[0], K = nk[1], T = a->opd[0].shape[0];
    const float *x = a->opd[0].data, *w = a->opd[1].data;
    float *y = a->opd[2].data;
    if (a->opd[1].enc || a->opd[1].shape[0] != K || a->opd[1].shape[1] != N
        || a->instance != &pack_inits)
        return RAD_E_SHAPE;
    double *sum = (double *)((char *)a->scratch + 4096 * (size_t)a->part);
    if (a->scratch_bytes < 4096 * (size_t)a->parts || N > 512)
        return RAD_E_SCRATCH;
    for (int64_t t = a->part; t < T; t += a->parts) {
        memset(sum, 0, (size_t)N * sizeof *sum);
        for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < N; n++)
                sum[n] += (double)x[t * a->opd[0].stride[0] + k] * (double)w[k * N + n];
        for (int64_t n = 0; n < N; n++)
            y[t * a->opd[2].stride[0] + n] = (float)sum[n];
    }
    if (a->part == 0)
        pack_launches++;
    return RAD_OK;
}
static const RadParamSpec gemm_params[] = {
    { "M", RAD_PK_RANGE, RAD_PARAM_REQUIRED, 0 }, { "N", RAD_PK_INT, RAD_PARAM_REQUIRED, 0 },
    { "K", RAD_PK_INT, RAD_PARAM_REQUIRED, 0 }, { "dtype", RAD_PK_STR, RAD_PARAM_REQUIRED, 0 },
};
static const RadOperandSpec gemm_opd[] = {
    { "a", RAD_OPD_IN, 0 }, { "b", RAD_OPD_WEIGHT, 0 }, { "y", RAD_OPD_OUT, 0 },
};
static const RadOpSchema gemm_schema = { sizeof gemm_schema, "gemm_nt", gemm_params, 4, gemm_opd,
                                         3, 1e-5, "y = a b'" };
static const RadConstraint pack_when[] = { { "M", RAD_C_LE, 4, NULL },
                                           { "dtype", RAD_C_EQ, 0, "f32" } };
static const RadKernelRow rows_pack[] = { {
    .struct_size = sizeof(RadKernelRow), .name = "gemm_nt_f32_f32_f32_t_test", .op = "gemm_nt",
    .constraints = pack_when, .n_constraints = 2, .params_size = 16, .parse = pack_parse,
    .init = pack_init, .fini = pack_fini, .launch = pack_launch, .scratch = pack_scratch,
    .codec = &veto_codec,
} };

static const RadParamSpec probe_params[] = {
    { "M", RAD_PK_RANGE, RAD_PARAM_REQUIRED, 0 }, { "n", RAD_PK_INT, RAD_PARAM_REQUIRED, 0 },
    { "mode", RAD_PK_STR, RAD_PARAM_OPTIONAL, 0 }, { "page", RAD_PK_INT, RAD_PARAM_DERIVED, 0 },
};
static const RadOperandSpec probe_opd[] = {
    { "x", RAD_OPD_IN, 0 }, { "w", RAD_OPD_WEIGHT, 1 }, { "y", RAD_OPD_OUT, 0 },
};
static const RadOpSchema probe_schema = { sizeof probe_schema, "probe", probe_params, 4, probe_opd,
                                          3, 1e-5, "y = probe(x)" };
static const RadOpSchema other_schema = { sizeof other_schema, "probe", probe_params, 3, probe_opd,
                                          3, 1e-5, "y = probe(x)" };
#define ROW(nm, rk, ...) { .struct_size = sizeof(RadKernelRow), .name = nm, .op = "probe", \
    .rank = rk, .params_size = 8, .parse = p_parse, .launch = p_launch, __VA_ARGS__ }
#define WHEN(...) .constraints = (const RadConstraint[]){ __VA_ARGS__ }, \
    .n_constraints = (int)(sizeof((const RadConstraint[]){ __VA_ARGS__ }) / sizeof(RadConstraint))
static const RadDerived page16[] = { { "page", 16 } }, page32[] = { { "page", 32 } };
static const int64_t axis_values[] = { 1, 2 };
static const RadAxis axis[] = { { "wide", axis_values, 2, 2, "" } };

/* The decode rows of the worked example: 5, 8, 10, 16, and one without bound. */
static const RadKernelRow rows_a[] = {
    ROW("a_5", 70, WHEN({ "M", RAD_C_LE, 5, NULL }, { "mode", RAD_C_EQ, 0, "odd" })),
    ROW("a_8", 70, WHEN({ "M", RAD_C_LE, 8, NULL }, { "n", RAD_C_DIV, 6, NULL })),
    ROW("a_10", 60, WHEN({ "M", RAD_C_LE, 10, NULL }, { "n", RAD_C_EQ, 12, NULL })),
    ROW("a_16", 60, WHEN({ "M", RAD_C_LE, 16, NULL }, { "n", RAD_C_GE, 100, NULL })),
    ROW("a_any", 50, WHEN({ "n", RAD_C_IN, 0, "6 12 13 48" }, { "page", RAD_C_EQ, 16, NULL }),
        .derived = page16, .n_derived = 1, .axes = axis, .n_axes = 1),
    ROW("a_any_later", 50, WHEN({ "n", RAD_C_IN, 0, "6 12 13 48" })),
};
static const RadKernelRow rows_b[] = {
    ROW("b_best", 99, WHEN({ "n", RAD_C_GE, 1, NULL })),
    ROW("b_device", 100, .domain = RAD_DOMAIN_DEVICE),
};
static const RadKernelRow rows_v[] = {
    ROW("v_packed", 60, .codec = &veto_codec),
    ROW("v_planes", 10, .derived = page32, .n_derived = 1),
};

#define LIB(x, schema, nrows, linkage)                                              \
    static int x##_one(void) { return 1; }                                          \
    static const RadOpSchema *x##_schema(int i) { (void)i; return &schema; }        \
    static int x##_count(void) { return (int)RADI_COUNT(nrows); }                   \
    static const RadKernelRow *x##_row(int i) { return &nrows[i]; }                 \
    static const RadPluginInfo x##_info_ = { sizeof(RadPluginInfo), RAD_PLUGIN_KERNEL, #x, "1", \
                                             "", "" };                              \
    static const RadPluginInfo *x##_info(void) { return &x##_info_; }               \
    linkage const struct radi_exports x##_exports = { .info = x##_info,              \
        .schema_count = x##_one, .schema_at = x##_schema, .row_count = x##_count,   \
        .row_at = x##_row };
LIB(liba, probe_schema, rows_a, static)
LIB(libb, probe_schema, rows_b, static)
LIB(libv, probe_schema, rows_v, static)
LIB(libodd, other_schema, rows_b, static)
LIB(libref2, probe_schema, rows_b, static)
LIB(libpack, gemm_schema, rows_pack, )

static const RadPluginInfo twin_info_ = { sizeof twin_info_, RAD_PLUGIN_ARCH, "twin", "1", "", "" };
static const RadPluginInfo *twin_info(void) { return &twin_info_; }

static struct rad_plugins *set_of(const char *order, int n, const struct radi_exports *const *x,
                                  rad_status want)
{
    struct rad_plugins *p;
    struct rad_err err = { 0 };
    CHECK(!radi_plugins_new("test", order, &p, &err));
    rad_status st = RAD_OK;
    for (int i = 0; i < n && !st; i++) {
        char path[32];
        snprintf(path, sizeof path, "test/%s.so", x[i]->info()->name);
        st = radi_plugins_add(p, path, x[i], NULL, &err);
    }
    if (!st)
        st = radi_plugins_settle(p, &err);
    CHECK_MSG(st == want, "%s", err.text);
    if (!st)
        return p;
    rad_plugins_close(p);
    return NULL;
}

/* ---- a builder without an architecture */
static const RadEncoding *enc_of(void *user, const char *name, const RadWeightDecl *d,
                                 const RadNameMap *const *map, int n_map)
{
    static RadEncoding e[2];
    (void)user; (void)d; (void)map; (void)n_map;
    rad_encoding_plain(&e[0], RAD_F32);
    rad_encoding_plain(&e[1], RAD_BF16);
    return !strcmp(name, "none") ? NULL : &e[!strcmp(name, "bf16")];
}
static const RadModelMeta probe_meta = { .struct_size = sizeof probe_meta, .arch_id = "script",
    .name = "script", .quant = "", .n_ctx_train = 64 };
static void (*script)(RadBuilder *b);
static int script_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx)
{
    (void)meta; (void)ctx;
    rad_buf y = rad_decl_buffer(b, "out", &(RadBufferDecl){ .dtype = RAD_F32, .rank = 2,
                                                            .shape = { 1, 4 } });
    script(b);
    rad_declare_logits(b, y);
    return RAD_OK;
}
static const RadPluginInfo script_info_ = { sizeof script_info_, RAD_PLUGIN_ARCH, "script", "1",
                                            "", "" };
static const RadPluginInfo *script_info(void) { return &script_info_; }
static const char *script_id(void) { return "script"; }
static const struct radi_exports script_exports = { .info = script_info, .arch_id = script_id,
    .declare = script_declare, .step = tiny_step };

static struct rad_plan *run_script(struct rad_plugins *p, void (*fn)(RadBuilder *),
                                   const struct rad_deployment *d, struct rad_err *err)
{
    struct rad_plan_source src = { &probe_meta, enc_of, NULL };
    struct rad_plan *plan = NULL;
    script = fn;
    rad_status st = rad_plan_build(p, &src, d, &plan, err);
    CHECK(!st == !!plan);
    return plan;
}

static void probe(RadBuilder *b, int64_t n, const char *mode, rad_weight w)
{
    RadParam p[] = { RAD_RANGE("M", 1, 2048), RAD_INT("n", n), RAD_STR("mode", mode) };
    rad_decl_op(b, "probe", p, mode ? 3 : 2, &w, w >= 0 ? 1 : 0);
}

static const char *row_at(const struct rad_plan *p, int op, int band)
{
    const struct radi_band *b = &p->op[op].band[band];
    return b->row ? b->row->name : "none";
}

static void script_bands(RadBuilder *b)
{
    probe(b, 12, NULL, -1);
    probe(b, 48, "odd", -1);
}
static void bands(void)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = set_of("", 2, (const struct radi_exports *[]){ &liba_exports,
                                   &script_exports }, RAD_OK);
    struct rad_plan *plan = run_script(p, script_bands, NULL, &err);
    CHECK_MSG(plan, "%s", err.text);
    if (plan) {
        static const int64_t hi[] = { 5, 8, 10, 16, 2048 };
        static const char *const first[] = { "a_8", "a_8", "a_10", "a_any", "a_any" };
        static const char *const second[] = { "a_5", "a_8", "a_any", "a_any", "a_any" };
        for (int k = 0; k < 2; k++)
            CHECK(plan->op[k].n_bands == 5);
        for (int i = 0; i < 5; i++) {
            CHECK(plan->op[0].band[i].hi == hi[i]);
            CHECK(plan->op[0].band[i].lo == (i ? hi[i - 1] + 1 : 1));
            IS(row_at(plan, 0, i), first[i]);
            IS(row_at(plan, 1, i), second[i]);
        }
        /* the band is what parse saw; derived and tuned values stand behind it */
        const struct radi_band *b = &plan->op[0].band[4];
        CHECK(rad_param_int(b->full, b->n_full, "M", 0) == 2048);
        CHECK(rad_param_int(b->full, b->n_full, "page", 0) == 16);
        CHECK(rad_param_int(b->full, b->n_full, "wide", 0) == 2);
        HAS(plan->op[0].band[3].why, "liba/a_16: n=12, want >= 100");
    }
    rad_plan_free(plan);
    rad_plugins_close(p);
}

static void hierarchy(void)
{
    struct rad_err err = { 0 };
    const struct radi_exports *x[] = { &libb_exports, &liba_exports, &script_exports };
    /* by file name, liba first: its worse row wins over b_best */
    struct rad_plugins *p = set_of("", 3, x, RAD_OK);
    struct rad_plan *plan = run_script(p, script_bands, NULL, &err);
    if (plan)
        IS(row_at(plan, 0, 4), "a_any");
    rad_plan_free(plan);
    rad_plugins_close(p);
    p = set_of("libb", 3, x, RAD_OK);            /* named first */
    plan = run_script(p, script_bands, NULL, &err);
    if (plan) {
        IS(row_at(plan, 0, 0), "b_best");        /* the device row is no candidate */
        HAS(plan->op[0].band[0].why, "device domain");
    }
    rad_plan_free(plan);
    rad_plugins_close(p);
    CHECK(!set_of("libbb", 3, x, RAD_E_NOTFOUND));
    struct rad_plugins *q;
    CHECK(!radi_plugins_new("test", "lib", &q, &err));
    CHECK(!radi_plugins_add(q, "test/liba.so", &liba_exports, NULL, &err));
    CHECK(radi_plugins_settle(q, &err) == RAD_E_NOTFOUND);
    HAS(err.text, "no kernel library 'lib' in 'test'; did you mean 'liba'?");
    rad_plugins_close(q);
}

static int one_ref(void) { return 1; }
static void reference_last(void)
{
    struct radi_exports ref = libref2_exports;
    ref.reference = one_ref;
    struct rad_plugins *p = set_of("libref2,libv", 3, (const struct radi_exports *[]){ &ref,
                                   &liba_exports, &libv_exports }, RAD_OK);
    CHECK(p->n_order == 3);
    IS(p->lib[p->order[0]].info->name, "libv");
    IS(p->lib[p->order[1]].info->name, "liba");
    IS(p->lib[p->order[2]].info->name, "libref2");
    rad_plugins_close(p);
}

static void script_veto(RadBuilder *b)
{
    RadWeightDecl d = { .rank = 2, .shape = { 8, 4 }, .group = rad_group_model() };
    rad_weight f = rad_decl_weight(b, "f32", &d), h = rad_decl_weight(b, "bf16", &d);
    probe(b, 12, NULL, f);
    probe(b, 12, NULL, h);
    CHECK(!strcmp(rad_weight_encoding(b, f)->scheme, "plain"));
    CHECK(!rad_weight_encoding(b, RAD_NULL_HANDLE));
}
static void veto(void)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = set_of("", 2, (const struct radi_exports *[]){ &libv_exports,
                                   &script_exports }, RAD_OK);
    struct rad_plan *plan = run_script(p, script_veto, NULL, &err);
    CHECK_MSG(plan, "%s", err.text);
    if (plan) {
        IS(row_at(plan, 0, 0), "v_packed");
        IS(row_at(plan, 1, 0), "v_planes");
        HAS(plan->op[1].band[0].why, "cannot read 'bf16' as bf16 [8,4]");
        CHECK(plan->n_layouts == 1 && plan->layout[0].weight == 0);
        CHECK(!plan->weight[0].canonical && plan->weight[1].canonical);
        CHECK(plan->size.weights_layout == 4096);
        CHECK(plan->size.weights_mapped == 8 * 4 * 2);
    }
    rad_plan_free(plan);
    rad_plugins_close(p);
}

static void script_miss(RadBuilder *b)
{
    probe(b, 13, NULL, -1);                      /* parse refuses */
    probe(b, 7, NULL, -1);
    probe(b, 7, NULL, -1);
    RAD_OP(b, "prob", RAD_PARAMS(RAD_INT("n", 1)), RAD_NO_WEIGHTS);
}
static void misses(void)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = set_of("", 2, (const struct radi_exports *[]){ &liba_exports,
                                   &script_exports }, RAD_OK);
    CHECK(!run_script(p, script_miss, NULL, &err));
    CHECK(err.code == RAD_E_NOKERNEL);
    HAS(err.text, "3 faults");
    HAS(err.text, "no kernel for probe(M=1..2048, n=13)");
    rad_plugins_close(p);
}

static void schemas(void)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p;
    CHECK(!set_of("", 2, (const struct radi_exports *[]){ &liba_exports, &libodd_exports },
                  RAD_E_SCHEMA));
    CHECK(!radi_plugins_new("test", "", &p, &err));
    CHECK(!radi_plugins_add(p, "liba.so", &liba_exports, NULL, &err));
    CHECK(!radi_plugins_add(p, "libodd.so", &libodd_exports, NULL, &err));
    CHECK(radi_plugins_settle(p, &err) == RAD_E_SCHEMA);
    HAS(err.text, "'libodd'");
    HAS(err.text, "'liba'");
    CHECK(radi_plugins_add(p, "again.so", &liba_exports, NULL, &err) == RAD_E_DUPLICATE);
    rad_plugins_close(p);
}

static void arch_pairs(void)
{
    struct rad_err err = { 0 };
    struct radi_exports twin = tiny_exports;
    const struct radi_lib *l;
    twin.info = twin_info;
    struct rad_plugins *p = set_of("", 1, (const struct radi_exports *[]){ &tiny_exports }, RAD_OK);
    CHECK(!radi_plugins_arch(p, "tiny", "", &l, &err));
    CHECK(radi_plugins_arch(p, "tiny", "q4", &l, &err) == RAD_E_NOTFOUND);
    HAS(err.text, "claims 'tiny' with quant 'q4'; claimed are ''");
    CHECK(radi_plugins_arch(p, "tinny", "", &l, &err) == RAD_E_NOTFOUND);
    HAS(err.text, "did you mean 'tiny'?");
    CHECK(radi_plugins_add(p, "twin.so", &twin, NULL, &err) == RAD_E_DUPLICATE);
    HAS(err.text, "plugins 'tiny' and 'twin' both claim architecture 'tiny', quant ''");
    rad_plugins_close(p);
}

/* ---- buffer plan */
static void script_buffers(RadBuilder *b)
{
    uint32_t s = 12345;
    rad_op op[40];
    for (int i = 0; i < 40; i++)
        op[i] = RAD_OP(b, "probe", RAD_PARAMS(RAD_RANGE("M", 1, 8), RAD_INT("n", 12)),
                       RAD_NO_WEIGHTS);
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", i);
        s = s * 1664525u + 1013904223u;
        int32_t first = (int32_t)(s >> 16) % 40, last = first + (int32_t)(s >> 8 & 7);
        RadBufferDecl d = { .dtype = RAD_F32, .rank = 2, .shape = { 1 + (s >> 4) % 9, 100 } };
        if (i == 3)
            d.kind = RAD_BUF_PERSIST;
        rad_buf h = rad_decl_buffer(b, name, &d);
        if (i == 5)
            continue;                            /* never named: lives throughout */
        rad_op_writes(b, op[first], RAD_BUFS(h), 1);
        rad_op_reads(b, op[RADI_MIN(last, 39)], RAD_BUFS(h), 1);
    }
}
static void buffers(void)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = set_of("", 2, (const struct radi_exports *[]){ &liba_exports,
                                   &script_exports }, RAD_OK);
    struct rad_plan *plan = run_script(p, script_buffers, NULL, &err);
    CHECK_MSG(plan, "%s", err.text);
    uint64_t sum = 0;
    for (size_t i = 0; plan && i < plan->n_bufs; i++) {
        const struct radi_buf *a = &plan->buf[i];
        sum += a->bytes;
        CHECK(a->offset % 256 == 0 && a->offset + a->bytes <= plan->size.arena);
        for (size_t k = 0; k < i; k++) {
            const struct radi_buf *c = &plan->buf[k];
            bool time = a->first <= c->last && c->first <= a->last;
            bool place = a->offset < c->offset + c->bytes && c->offset < a->offset + a->bytes;
            CHECK_MSG(!time || !place, "'%s' and '%s' overlap", a->name, c->name);
        }
    }
    if (plan) {
        CHECK(plan->buf[4].offset == 0);         /* 'b3' is persistent */
        CHECK(plan->buf[6].first == 0 && plan->buf[6].last == INT32_MAX);
        CHECK_MSG(plan->size.arena < sum / 2, "arena %llu of %llu",
                  (unsigned long long)plan->size.arena, (unsigned long long)sum);
    }
    rad_plan_free(plan);
    rad_plugins_close(p);
}

void choice_cases(void)
{
    TAP_RUN(bands);
    TAP_RUN(hierarchy);
    TAP_RUN(reference_last);
    TAP_RUN(veto);
    TAP_RUN(misses);
    TAP_RUN(schemas);
    TAP_RUN(arch_pairs);
    TAP_RUN(buffers);
}
