/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/quant: exact choices on hand-made blocks, error bounds through
 * librad's decoder, and the same bytes however the rows are cut. */
#include "../../kernels/quant/quant.h"
#include "tap.h"

enum { MAX_ARGS = 10 };

/* One quantised weight. */
struct made {
    RadEncoding enc;
    RadPlaneGeom geom[RAD_MAX_PLANES];
    uint8_t *plane[RAD_MAX_PLANES];
    rad_status st;
    struct rad_err err;
};

static uint64_t state = 1;

static float uniform(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return ((float)(state >> 40) - 8388607.5f) / 8388608.0f;
}

/* "k=v k=v" as arguments; the text is cut in place. */
static int split(char *text, RadQuantArg *arg)
{
    int n = 0;
    for (char *p = text; *p;) {
        char *key = p, *eq = strchr(p, '='), *end = strchr(p, ' ');
        if (!end)
            end = p + strlen(p);
        p = *end ? end + 1 : end;
        *end = *eq = 0;
        arg[n++] = (RadQuantArg){ key, eq + 1 };
    }
    return n;
}

static const RadQuantizer *find(const char *name)
{
    for (int i = 0; i < rad_quant_count(); i++)
        if (!strcmp(rad_quant_at(i)->name, name))
            return rad_quant_at(i);
    return NULL;
}

static RadQuantWeight weight_of(int64_t rows, int64_t cols)
{
    return (RadQuantWeight){ .struct_size = sizeof(RadQuantWeight), .name = "w", .rank = 2,
                             .shape = { rows, cols }, .rows = rows, .cols = cols, .layer = -1,
                             .expert = -1 };
}

/* In calls of `step` row blocks; 0 = all rows at once. */
static struct made make_of(const char *name, const char *options, const RadQuantWeight *w,
                           const float *x, int64_t step)
{
    struct made m = { .st = RAD_OK };
    char *text = strdup(options);
    RadQuantArg arg[MAX_ARGS];
    int n = split(text, arg);
    const RadQuantizer *q = find(name);
    m.st = q->encoding(arg, n, w, &m.enc, &m.err);
    if (!m.st) {
        int64_t block = q->row_block(arg, n, w);
        int64_t each = step && block ? step * block : w->rows;
        for (int p = 0; p < m.enc.n_planes; p++) {
            CHECK(!rad_plane_geom(&m.enc, p, (uint64_t)w->rows, (uint64_t)w->cols, &m.geom[p],
                                  NULL));
            m.plane[p] = calloc(1, m.geom[p].bytes);
        }
        for (int64_t r = 0; r < w->rows && !m.st; r += each) {
            int64_t rows = w->rows - r < each ? w->rows - r : each;
            size_t bytes = (size_t)(rows * w->cols) * sizeof(float);
            float *copy = malloc(bytes);
            void *at[RAD_MAX_PLANES];
            memcpy(copy, x + r * w->cols, bytes);
            for (int p = 0; p < m.enc.n_planes; p++) {
                const RadPlaneDesc *d = &m.enc.plane[p];
                int64_t row = d->kind == RAD_PLANE_TABLE || !d->block[0] ? 0 : r / d->block[0];
                at[p] = m.plane[p] + (uint64_t)row * m.geom[p].row_bytes;
            }
            m.st = q->quantize(arg, n, w, &m.enc, r, rows, copy, at, &m.err);
            free(copy);
        }
    }
    free(text);
    return m;
}
static struct made make(const char *options, int64_t rows, int64_t cols, const float *x)
{
    RadQuantWeight w = weight_of(rows, cols);
    return make_of("rtn", options, &w, x, 0);
}
static void drop(struct made *m)
{
    for (int p = 0; p < RAD_MAX_PLANES; p++)
        free(m->plane[p]);
}
static float *decoded(const struct made *m, int64_t rows, int64_t cols)
{
    float *y = malloc((size_t)(rows * cols) * sizeof *y);
    struct rad_err err = { 0 };
    const void *plane[RAD_MAX_PLANES];
    for (int p = 0; p < RAD_MAX_PLANES; p++)
        plane[p] = m->plane[p];
    CHECK_MSG(!rad_decode_rows(&m->enc, plane, (uint64_t)rows, (uint64_t)cols, 0, (uint64_t)rows, y,
                               (size_t)cols, &err), "%s", err.text);
    return y;
}
static float value(const struct made *m, const char *role, size_t row, size_t i)
{
    int p = rad_encoding_find(&m->enc, role);
    return rad_get_f32(m->plane[p] + row * m->geom[p].row_bytes, (int)m->enc.plane[p].dtype, i);
}
static void codes_are(const struct made *m, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_MSG(value(m, "codes", 0, (size_t)i) == want[i], "code %d is %g, want %g", i,
                  (double)value(m, "codes", 0, (size_t)i), (double)want[i]);
}

/* ---- by hand */

static void integers_round_half_away(void)
{
    float x[8] = { 7, -7, 2.5f, -2.5f, 0.4f, -0.5f, 1.5f, 0 };
    struct made m = make("codes=i4 group=8 scale=f32", 1, 8, x);
    float want[8] = { 7, -7, 3, -3, 0, -1, 2, 0 };
    char text[80];
    CHECK(!m.st && value(&m, "scale", 0, 0) == 1);
    codes_are(&m, want, 8);
    rad_encoding_text(&m.enc, text, sizeof text);
    CHECK_MSG(!strcmp(text, "i4*f32[1x8]"), "%s", text);
    drop(&m);
    /* the scale is stored first: 1.01 becomes bf16 1.0078125 */
    float z[2] = { 127 * 1.01f, 63.5f * 1.0078125f };
    m = make("codes=i8", 1, 2, z);
    CHECK(!m.st && value(&m, "scale", 0, 0) == 1.0078125f);
    float want2[2] = { 127, 64 };
    codes_are(&m, want2, 2);
    drop(&m);
}

static void clamp_drops_the_most_negative(void)
{
    /* fixed leaves room below: -8 with full, -7 with sym */
    float x[2] = { -9, 9 }, full[2] = { -8, 7 }, sym[2] = { -7, 7 };
    struct made m = make("codes=i4 rule=fixed scale_value=1", 1, 2, x);
    codes_are(&m, full, 2);
    drop(&m);
    m = make("codes=i4 rule=fixed scale_value=1 clamp=sym", 1, 2, x);
    codes_are(&m, sym, 2);
    drop(&m);
}

static void zero_point_by_hand(void)
{
    float x[4] = { -1, 0, 1, 2 }, want[4] = { 0, 1, 2, 3 };
    struct made m = make("codes=u2 zero=u8 scale=f32", 1, 4, x);
    CHECK(!m.st && value(&m, "scale", 0, 0) == 1 && value(&m, "zero", 0, 0) == 1);
    codes_are(&m, want, 4);
    drop(&m);
    float up[2] = { 10, 15 }, want2[2] = { 10, 15 };     /* widened to include zero */
    m = make("codes=u4 zero=u4 scale=f32", 1, 2, up);
    CHECK(value(&m, "scale", 0, 0) == 1 && value(&m, "zero", 0, 0) == 0);
    codes_are(&m, want2, 2);
    drop(&m);
}

static void mx_by_hand(void)
{
    float x[4] = { 10, -3, 0.5f, 1 };       /* floor(log2 10) - 2 = 1: scale 2 */
    float want[4] = { 4, -1.5f, 0, 0.5f };  /* 5 ties to the even code, 4; 0.25 to 0 */
    struct made m = make("codes=fp4_e2m1 group=4 scale=e8m0", 1, 4, x);
    CHECK(!m.st && value(&m, "scale", 0, 0) == 2);
    codes_are(&m, want, 4);
    drop(&m);
    float z[2] = { 15, -15 }, most[2] = { 6, -6 };       /* 7.5 saturates */
    m = make("codes=fp4_e2m1 scale=e8m0", 1, 2, z);
    CHECK(value(&m, "scale", 0, 0) == 2);
    codes_are(&m, most, 2);
    drop(&m);
}

static void two_levels_by_hand(void)
{
    float x[8] = { 6, -3, 0, 1, 0, 0, 0, 0 };
    struct made m = make("codes=fp4_e2m1 group=4 scale=fp8_e4m3 scale2=f32", 1, 8, x);
    CHECK(!m.st && m.enc.n_planes == 3);
    CHECK(value(&m, "scale.1", 0, 0) == 1.0f / 448 && value(&m, "scale", 0, 0) == 448);
    CHECK(value(&m, "scale", 0, 1) == 0);                /* a block of zeros does not count */
    float want[4] = { 6, -3, 0, 1 };
    codes_are(&m, want, 4);
    drop(&m);
    float far[8] = { 6, 0, 0, 0, 1e-7f, 0, 0, 0 };       /* never 0 for a nonzero block */
    m = make("codes=fp4_e2m1 group=4 scale=fp8_e4m3 scale2=f32", 1, 8, far);
    CHECK(value(&m, "scale", 0, 1) == 0x1p-9f);
    drop(&m);
    m = make("codes=i4 group=4 scale=u6 scale2=f16", 1, 8, x);
    CHECK(!m.st && value(&m, "scale", 0, 0) == 63);
    drop(&m);
    m = make("codes=fp4_e2m1 group=4 scale=fp8_e4m3 scale2=f32 scale2_value=0.0078125", 1, 8, x);
    CHECK(value(&m, "scale.1", 0, 0) == 0x1p-7f && value(&m, "scale", 0, 0) == 128);
    drop(&m);
    m = make("codes=i8 group=4 scale=bf16 scale2=e8m0", 1, 8, x);     /* rounds up */
    CHECK(value(&m, "scale.1", 0, 0) == 0x1p-4f);        /* 6/127 = 0.047 */
    drop(&m);
}

static void tables_by_hand(void)
{
    float x[4] = { 127, -113, 1, 0 };
    struct made m = make("table=iq4nl scale=f32", 1, 4, x);
    CHECK(!m.st && value(&m, "scale", 0, 0) == -1);      /* its long end is negative */
    CHECK(value(&m, "codes", 0, 0) == 0 && value(&m, "codes", 0, 1) == 15);
    CHECK(m.enc.plane[2].dtype == RAD_I8 && value(&m, "table", 0, 0) == -127);
    drop(&m);
    float t[3] = { 2, -2, 0.9f }, want[3] = { 2, 0, 1 };
    m = make("table=ternary scale=f32", 1, 3, t);
    CHECK(m.enc.plane[0].dtype == RAD_DT_u2);
    codes_are(&m, want, 3);                              /* 0.45 is nearer to 0 */
    drop(&m);
    float b[3] = { 4, 0, 1.9f }, own[3] = { 3, 0, 2 };
    m = make("table=0;0.1;0.5;1 scale=f32", 1, 3, b);
    CHECK(!m.st && m.enc.plane[2].dtype == RAD_F32);
    codes_are(&m, own, 3);
    drop(&m);
    m = make("table=binary", 1, 3, t);
    CHECK(m.enc.plane[0].dtype == RAD_DT_u1 && m.enc.plane[2].dtype == RAD_I8);
    drop(&m);
    m = make("table=w5nl", 1, 3, t);
    CHECK(m.enc.plane[0].dtype == RAD_DT_u5 && m.enc.plane[2].dtype == RAD_F32);
    drop(&m);
}

static void zeros_stay_zeros(void)
{
    static const char *const all[] = {
        "codes=i4 group=4", "codes=i8 scale=f16", "codes=fp8_e4m3", "codes=fp4_e2m1 scale=e8m0",
        "codes=u4 zero=u4", "codes=fp4_e2m1 group=4 scale=fp8_e4m3 scale2=f32", "table=nf4",
        "codes=i4 rule=search", "codes=i8 transform=fwht4", "codes=u8 zero=u8 rule=search",
    };
    float x[16] = { 0 };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct made m = make(all[i], 2, 8, x);
        CHECK_MSG(!m.st, "%s: %s", all[i], m.err.text);
        float *y = decoded(&m, 2, 8);
        for (int k = 0; k < 16; k++)
            CHECK_MSG(y[k] == 0, "%s: %g", all[i], (double)y[k]);
        free(y);
        drop(&m);
    }
    struct made m = make("codes=fp8_e4m3 scale=f32", 1, 8, x);
    CHECK(value(&m, "scale", 0, 0) == 1);
    drop(&m);
    m = make("codes=i8 scale=f32", 1, 8, x);
    CHECK(value(&m, "scale", 0, 0) == 1e-12f);
    drop(&m);
}

/* ---- by measure */

static const struct { const char *options; double rms; } configs[] = {
    { "codes=i8", 0.006 }, { "codes=i8 group=32 scale=f16", 0.005 },
    { "codes=i8 block=4x16 scale=f32", 0.007 }, { "codes=i4 group=32", 0.09 },
    { "codes=i4 group=32 rule=search", 0.08 }, { "codes=i3 group=16", 0.2 },
    { "codes=i6 group=16 scale=i8 scale2=f16", 0.025 }, { "codes=i16 scale=f32", 3e-5 },
    { "codes=u4 zero=u4 group=32", 0.08 }, { "codes=u2 zero=u8 group=16 rule=search", 0.35 },
    { "codes=u16 zero=u16 scale=f32", 2e-5 }, { "codes=fp8_e4m3 block=16x16", 0.03 },
    { "codes=fp8_e5m2", 0.07 }, { "codes=fp8_e4m3 block=*x*", 0.03 },
    { "codes=fp6_e2m3 group=32 scale=e8m0", 0.05 }, { "codes=fp6_e3m2 group=32 scale=e8m0", 0.065 },
    { "codes=fp4_e2m1 group=32 scale=e8m0", 0.2 },
    { "codes=fp4_e2m1 group=16 scale=fp8_e4m3 scale2=f32", 0.13 },
    { "codes=fp4_e2m1 group=16 scale=fp8_e4m3 scale2=f32 block2=8x*", 0.13 },
    { "codes=i4 group=16 scale=fp8_e4m3 scale2=e8m0 rule=search", 0.1 },
    { "table=nf4 group=32", 0.1 }, { "table=iq4nl group=32 scale=f16", 0.1 },
    { "table=w4nl group=16 scale=fp8_e4m3 scale2=f32 scale2_value=0.0001220703125", 0.1 },
    { "table=w5nl group=32 rule=search", 0.05 },
    { "codes=i4 group=32 transform=fwht32", 0.12 },
    { "codes=i8 group=64 transform=fwht64 scale=f32", 0.008 },
    { "codes=fp4_e2m1 group=32 scale=e8m0 transform=fwht16", 0.2 },
    { "table=w4nl group=16 scale=fp8_e4m3 scale2=f32 transform=fwht64", 0.12 },
};

static double rms_of(const float *x, const float *y, int64_t n)
{
    double num = 0, den = 0;
    for (int64_t i = 0; i < n; i++) {
        num += pow((double)x[i] - (double)y[i], 2);
        den += (double)x[i] * (double)x[i];
    }
    return sqrt(num / den);
}

static void errors_are_bounded(void)
{
    enum { R = 24, C = 64 };
    float x[R * C];
    for (int i = 0; i < R * C; i++)
        x[i] = uniform() * ldexpf(1, -(i / C) % 4);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct made m = make(configs[i].options, R, C, x);
        CHECK_MSG(!m.st, "%s: %s", configs[i].options, m.err.text);
        if (m.st)
            continue;
        float *y = decoded(&m, R, C);
        double e = rms_of(x, y, R * C);
        CHECK_MSG(e > 0 && e <= configs[i].rms, "%s: error %g, want at most %g", configs[i].options,
                  e, configs[i].rms);
        free(y);
        drop(&m);
    }
}

static void half_a_step_is_the_most(void)
{
    enum { R = 7, C = 45 };                  /* a short last group */
    float x[R * C];
    for (int i = 0; i < R * C; i++)
        x[i] = uniform();
    struct made m = make("codes=i5 group=16 scale=f32", R, C, x);
    float *y = decoded(&m, R, C);
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < C; c++) {
            double s = (double)value(&m, "scale", r, c / 16);
            CHECK(fabs((double)x[r * C + c] - (double)y[r * C + c]) <= s * 0.500001);
        }
    free(y);
    drop(&m);
}

static void search_is_never_worse(void)
{
    enum { R = 6, C = 64 };
    float x[R * C], imp[C];
    for (int i = 0; i < R * C; i++)
        x[i] = powf(uniform(), 5);
    for (int c = 0; c < C; c++)
        imp[c] = c % 8 == 0 ? 100.0f : 0.01f;
    static const char *const pairs[][2] = {
        { "codes=i3 group=16 scale=f32", "codes=i3 group=16 scale=f32 rule=search" },
        { "codes=u3 zero=u3 group=16 scale=f32",
          "codes=u3 zero=u3 group=16 scale=f32 rule=search" },
        { "table=nf4 group=16 scale=f32", "table=nf4 group=16 scale=f32 rule=search" },
    };
    for (size_t i = 0; i < 3; i++) {
        struct made a = make(pairs[i][0], R, C, x), b = make(pairs[i][1], R, C, x);
        RadQuantWeight w = weight_of(R, C);
        w.importance = imp;
        struct made d = make_of("rtn", pairs[i][1], &w, x, 0);
        float *ya = decoded(&a, R, C), *yb = decoded(&b, R, C), *yd = decoded(&d, R, C);
        CHECK(rms_of(x, yb, R * C) < rms_of(x, ya, R * C));
        double eb = 0, ed = 0;
        for (int k = 0; k < R * C; k++) {
            eb += (double)imp[k % C] * pow((double)(x[k] - yb[k]), 2);
            ed += (double)imp[k % C] * pow((double)(x[k] - yd[k]), 2);
        }
        CHECK_MSG(ed < eb, "%s: importances do not count", pairs[i][1]);
        free(ya), free(yb), free(yd);
        drop(&a), drop(&b), drop(&d);
    }
}

static void bytes_do_not_depend_on_the_cut(void)
{
    enum { R = 50, C = 64 };
    float *x = malloc(R * C * sizeof *x);
    for (int i = 0; i < R * C; i++)
        x[i] = uniform();
    RadQuantWeight w = weight_of(R, C);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        for (int64_t step = 1; step <= 3; step++) {
            struct made a = make_of("rtn", configs[i].options, &w, x, 0);
            struct made b = make_of("rtn", configs[i].options, &w, x, step);
            CHECK(!a.st && !b.st);
            for (int p = 0; p < a.enc.n_planes; p++)
                CHECK_MSG(!memcmp(a.plane[p], b.plane[p], a.geom[p].bytes), "%s: plane %s",
                          configs[i].options, a.enc.plane[p].role);
            drop(&a), drop(&b);
        }
    free(x);
}

static void a_rotation_comes_back(void)
{
    enum { R = 3, C = 32 };
    float x[R * C];
    for (int i = 0; i < R * C; i++)
        x[i] = i == 5 ? 100 : uniform();      /* an outlier is spread out */
    struct made m = make("codes=i16 scale=f32 transform=fwht32", R, C, x);
    char text[80];
    rad_encoding_text(&m.enc, text, sizeof text);
    CHECK_MSG(!strcmp(text, "i16*f32[1x*]/fwht32"), "%s", text);
    float *y = decoded(&m, R, C);
    CHECK(rms_of(x, y, R * C) < 1e-4);
    /* the scale in the file is the quantiser's over N */
    float one[2] = { 3, 1 };                  /* times H: 4, 2 */
    struct made n = make("codes=i8 scale=f32 transform=fwht2", 1, 2, one);
    CHECK(value(&n, "scale", 0, 0) == 4.0f / 127 / 2);
    CHECK(value(&n, "codes", 0, 0) == 127 && value(&n, "codes", 0, 1) == 64);
    free(y);
    drop(&m), drop(&n);
}

/* ---- refusals and cast */

static void bad_options_are_named(void)
{
    static const struct { const char *options, *word; } all[] = {
        { "group=4", "'codes'" }, { "codes=i9", "i9" }, { "codes=f32", "f32" },
        { "codes=e8m0", "e8m0" }, { "codes=u4", "'zero'" }, { "codes=i4 zero=u4", "'zero'" },
        { "codes=u4 zero=i8", "i8" }, { "table=nf4 codes=i4", "'table'" },
        { "table=nf4 zero=u4", "'zero'" }, { "table=nf5", "nf5" }, { "table=1", "'table'" },
        { "table=0;0", "'table'" }, { "table=1;x", "'table'" }, { "codes=i4 group=0", "'group'" },
        { "codes=i4 group=-1", "'group'" }, { "codes=i4 group=8 block=1x8", "'block'" },
        { "codes=i4 block=8", "'block'" }, { "codes=i4 scale=u8", "'scale'" },
        { "codes=i4 scale=e8m0", "e8m0" }, { "codes=fp4_e2m1 rule=mx", "e8m0" },
        { "codes=fp4_e2m1 scale=e8m0 rule=absmax", "e8m0" }, { "codes=i4 group2=8", "'scale2'" },
        { "codes=i4 group=16 scale2=f32 group2=24", "multiple" },
        { "codes=i4 scale2=f32 scale2_value=-1", "'scale2_value'" },
        { "codes=i4 scale2=bf16 scale2_value=0.1", "'scale2_value'" },
        { "codes=i4 scale2=e8m0 scale2_value=1", "'scale2_value'" },
        { "codes=i4 rule=fixed", "'scale_value'" }, { "codes=i4 scale_value=1", "'scale_value'" },
        { "codes=u4 zero=u4 rule=fixed scale_value=1", "fixed" }, { "codes=i4 rule=best", "best" },
        { "codes=i4 transform=fwht3", "fwht3" }, { "codes=i4 transform=fwht128", "128" },
        { "codes=i4 transform=perm", "perm" }, { "codes=i4 clamp=no", "'clamp'" },
        { "codes=i4 colour=red", "'colour'" },
        { "table=iq4nl scale=u8 scale2=f32", "unsigned" },
    };
    float x[64] = { 1 };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct made m = make(all[i].options, 1, 64, x);
        CHECK_MSG(m.st == RAD_E_ARG && strstr(m.err.text, all[i].word), "%s: status %d, '%s'",
                  all[i].options, m.st, m.err.text);
        drop(&m);
    }
    RadQuantWeight w = weight_of(1, 64);
    w.rank = 1;
    struct made m = make_of("rtn", "codes=i4", &w, x, 0);
    CHECK(m.st == RAD_E_UNSUPPORTED && strstr(m.err.text, "'w'"));
    x[3] = INFINITY;
    m = make("codes=i4", 1, 64, x);
    CHECK(m.st == RAD_E_FORMAT && strstr(m.err.text, "row 0, column 3"));
    drop(&m);
}

static void cast_takes_any_rank(void)
{
    static const char *const types[] = { "f32", "bf16", "f16", "fp8_e4m3", "fp8_e5m2" };
    static const double eps[] = { 0, 0x1p-8, 0x1p-11, 0x1p-4, 0x1p-3 };
    float x[40];
    for (int i = 0; i < 40; i++)
        x[i] = uniform();
    for (int t = 0; t < 5; t++) {
        char opt[32] = "dtype=";
        strcat(opt, types[t]);
        RadQuantWeight w = weight_of(1, 40);
        w.rank = 1;
        struct made m = make_of("cast", opt, &w, x, 0);
        CHECK_MSG(!m.st && rad_encoding_is_plain(&m.enc, quant_dtype(types[t])), "%s", m.err.text);
        float *y = decoded(&m, 1, 40);
        for (int i = 0; i < 40; i++)
            CHECK(fabs((double)(x[i] - y[i])) <= eps[t] * fabs((double)x[i])
                                                  + (t > 2 ? 0x1p-10 : 0));
        free(y);
        drop(&m);
        w = weight_of(8, 5);
        struct made a = make_of("cast", opt, &w, x, 0), b = make_of("cast", opt, &w, x, 3);
        CHECK(!memcmp(a.plane[0], b.plane[0], a.geom[0].bytes));
        drop(&a), drop(&b);
    }
    RadQuantWeight w = weight_of(1, 40);
    struct made m = make_of("cast", "dtype=i8", &w, x, 0);
    CHECK(m.st == RAD_E_ARG && strstr(m.err.text, "i8"));
    m = make_of("cast", "", &w, x, 0);
    CHECK(m.st == RAD_E_ARG && strstr(m.err.text, "'dtype'"));
    m = make_of("cast", "dtype=f32 group=3", &w, x, 0);
    CHECK(m.st == RAD_E_ARG && strstr(m.err.text, "'group'"));
}

int main(void)
{
    TAP_RUN(integers_round_half_away);
    TAP_RUN(clamp_drops_the_most_negative);
    TAP_RUN(zero_point_by_hand);
    TAP_RUN(mx_by_hand);
    TAP_RUN(two_levels_by_hand);
    TAP_RUN(tables_by_hand);
    TAP_RUN(zeros_stay_zeros);
    TAP_RUN(errors_are_bounded);
    TAP_RUN(half_a_step_is_the_most);
    TAP_RUN(search_is_never_worse);
    TAP_RUN(bytes_do_not_depend_on_the_cut);
    TAP_RUN(a_rotation_comes_back);
    TAP_RUN(bad_options_are_named);
    TAP_RUN(cast_takes_any_rank);
    return tap_done();
}
