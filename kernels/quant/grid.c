/* SPDX-License-Identifier: Apache-2.0 */
/* The grid options: their table, their rules, and the encoding they mean.
 * Rounding to a grid is in round.c. */
#define _GNU_SOURCE           /* qsort_r */
#include <errno.h>
#include <stdlib.h>

#include "quant.h"

const RadQuantOption grid_options[GRID_N_OPTIONS] = {
    { "codes", RAD_QOPT_STR, NULL, "i2..i8 i16 i32, u1..u8 u16 with zero=, fp8_e4m3 fp8_e5m2"
                                   " fp6_e2m3 fp6_e3m2 fp4_e2m1" },
    { "table", RAD_QOPT_STR, NULL, "nf4 iq4nl w4nl w5nl binary ternary, or numbers with ';'" },
    { "group", RAD_QOPT_STR, NULL, "columns of a scale block, '*' = the row" },
    { "block", RAD_QOPT_STR, "1x*", "rows x columns of a scale block, '*' = all" },
    { "scale", RAD_QOPT_STR, "bf16", "bf16 f32 f16 fp8_e4m3 e8m0; integers with scale2=" },
    { "scale2", RAD_QOPT_STR, NULL, "f32 bf16 f16 fp8_e4m3 e8m0: a second level" },
    { "group2", RAD_QOPT_STR, NULL, "columns of a second-level block, '*' = the row" },
    { "block2", RAD_QOPT_STR, "*x*", "rows x columns of a second-level block" },
    { "scale2_value", RAD_QOPT_REAL, NULL, "fixes the second level" },
    { "zero", RAD_QOPT_STR, NULL, "unsigned integer type of a zero point" },
    { "transform", RAD_QOPT_STR, NULL, "fwhtN: rotate blocks of N columns" },
    { "rule", RAD_QOPT_STR, NULL, "absmax mx fixed search (absmax; mx when scale=e8m0)" },
    { "scale_value", RAD_QOPT_REAL, NULL, "the scale, for rule=fixed" },
    { "clamp", RAD_QOPT_STR, "full", "full, or sym: without the most negative code" },
};

static const float nf4[] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
    0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f };
static const float iq4nl[] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static const float w4nl[] = {
    1.125f, 3.25f, 5.5f, 8, 11, 14, 18, 22, -1.125f, -3.25f, -5.5f, -8, -11, -14, -18, -22 };
static const float w5nl[] = {
    0.8125f, 2.5f, 4, 5.5f, 7.5f, 9, 11, 12, 14, 16, 18, 20, 22, 24, 26, 30,
    -0.8125f, -2.5f, -4, -5.5f, -7.5f, -9, -11, -12, -14, -16, -18, -20, -22, -24, -26, -30 };
static const float binary[] = { -1, 1 };
static const float ternary[] = { -1, 0, 1 };

#define BOOK(t) { #t, t, (int)(sizeof t / sizeof t[0]) }
static const struct { const char *name; const float *v; int n; } books[] = {
    BOOK(nf4), BOOK(iq4nl), BOOK(w4nl), BOOK(w5nl), BOOK(binary), BOOK(ternary),
};

const char *quant_arg(const RadQuantArg *arg, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(arg[i].key, key))
            return arg[i].value;
    return NULL;
}

int quant_dtype(const char *name)
{
#define X(n, id, bits, kind) if (!strcmp(name, #n)) return id;
    RAD_DTYPES(X)
#undef X
    return 0;
}

static rad_status bad(struct rad_err *err, const char *key, const char *value, const char *want)
{
    return rad_fail(err, RAD_E_ARG, "option '%s': '%s', want %s", key, value, want);
}

/* A positive whole number, or '*' for 0; *end is what follows. */
static int extent(const char *s, int64_t *out, const char **end)
{
    if (*s == '*') {
        *out = 0;
        *end = s + 1;
        return 1;
    }
    if (*s < '1' || *s > '9')
        return 0;
    char *e;
    errno = 0;
    long long v = strtoll(s, &e, 10);
    *out = v;
    *end = e;
    return !errno && v <= INT32_MAX;
}

static rad_status blocks(const RadQuantArg *arg, int n, const char *group, const char *block,
                         int64_t *r, int64_t *c, struct rad_err *err)
{
    const char *gs = quant_arg(arg, n, group), *bs = quant_arg(arg, n, block), *e;
    if (gs && bs)
        return rad_fail(err, RAD_E_ARG, "options '%s' and '%s' exclude each other", group, block);
    if (gs) {
        *r = 1;
        if (!extent(gs, c, &e) || *e)
            return bad(err, group, gs, "a number of columns or '*'");
    } else if (bs) {
        if (!extent(bs, r, &e) || *e != 'x' || !extent(e + 1, c, &e) || *e)
            return bad(err, block, bs, "ROWSxCOLUMNS, each a number or '*'");
    }
    return RAD_OK;
}

static rad_status positive(const RadQuantArg *arg, int n, const char *key, double *out,
                           struct rad_err *err)
{
    const char *s = quant_arg(arg, n, key);
    char *e;
    *out = 0;
    if (!s)
        return RAD_OK;
    *out = strtod(s, &e);
    if (e == s || *e || !(*out > 0) || !isfinite((float)*out))
        return bad(err, key, s, "a positive number");
    return RAD_OK;
}

static int compare(const void *a, const void *b, void *table)
{
    uint16_t i = *(const uint16_t *)a, j = *(const uint16_t *)b;
    float x = ((float *)table)[i], y = ((float *)table)[j];
    return x < y ? -1 : x > y ? 1 : i < j ? -1 : i > j;
}

static rad_status parse_table(const char *s, struct grid *g, struct rad_err *err)
{
    for (size_t i = 0; i < sizeof books / sizeof books[0]; i++)
        if (!strcmp(s, books[i].name)) {
            memcpy(g->table, books[i].v, (size_t)books[i].n * sizeof g->table[0]);
            g->n_table = books[i].n;
        }
    for (const char *p = s; !g->n_table || p != s;) {
        char *e;
        float v = strtof(p, &e);
        if (e == p || (*e && *e != ';') || !isfinite(v) || g->n_table == QUANT_MAX_TABLE)
            return bad(err, "table", s, "a known table or 2 to 4096 numbers with ';' between");
        g->table[g->n_table++] = v;
        if (!*e)
            break;
        p = e + 1;
    }
    if (g->n_table < 2)
        return bad(err, "table", s, "at least two entries");
    g->table_dt = RAD_I8;
    for (int i = 0; i < g->n_table; i++) {
        float v = g->table[i];
        if (v != rintf(v) || v < -128 || v > 127)
            g->table_dt = RAD_F32;
        if (fabsf(v) > fabsf(g->extreme))
            g->extreme = v;
        g->order[i] = (uint16_t)i;
    }
    if (g->extreme == 0)
        return bad(err, "table", s, "an entry that is not zero");
    qsort_r(g->order, (size_t)g->n_table, sizeof g->order[0], compare, g->table);
    g->signed_scale = g->table[g->order[0]] != -g->table[g->order[g->n_table - 1]];
    static const int narrow[] = {
        RAD_DT_u1, RAD_DT_u2, RAD_DT_u3, RAD_DT_u4, RAD_DT_u5, RAD_DT_u6, RAD_DT_u7, RAD_DT_u8,
        RAD_DT_u9, RAD_DT_u10, RAD_DT_u11, RAD_DT_u12 };
    int bits = 1;
    while (1 << bits < g->n_table)
        bits++;
    g->code_dt = narrow[bits - 1];
    return RAD_OK;
}

static rad_status parse_codes(const RadQuantArg *arg, int n, struct grid *g, struct rad_err *err)
{
    const char *codes = quant_arg(arg, n, "codes"), *table = quant_arg(arg, n, "table");
    const char *zero = quant_arg(arg, n, "zero"), *clamp = quant_arg(arg, n, "clamp");
    int sym = clamp && !strcmp(clamp, "sym");
    if (clamp && !sym && strcmp(clamp, "full"))
        return bad(err, "clamp", clamp, "full or sym");
    if (!codes == !table)
        return rad_fail(err, RAD_E_ARG, table ? "options 'codes' and 'table' exclude each other"
                                              : "option 'codes' (or 'table') is missing");
    if (table) {
        if (zero)
            return rad_fail(err, RAD_E_ARG, "option 'zero': a table has no zero point");
        return parse_table(table, g, err);
    }
    g->code_dt = quant_dtype(codes);
    int bits = rad_dtype_bits(g->code_dt);
    char kind = rad_dtype_kind(g->code_dt);
    int is_float = kind == 'f' && bits <= 8 && g->code_dt != RAD_DT_e8m0;
    if (!(kind == 'i' && bits <= 32) && !(kind == 'u' && (bits <= 8 || bits == 16)) && !is_float)
        return bad(err, "codes", codes, grid_options[0].doc);
    if (kind == 'u' && !zero)
        return rad_fail(err, RAD_E_ARG, "option 'codes': '%s' is unsigned and wants 'zero'", codes);
    if (zero) {
        g->zero_dt = quant_dtype(zero);
        if (rad_dtype_kind(g->zero_dt) != 'u' || rad_dtype_bits(g->zero_dt) > 16)
            return bad(err, "zero", zero, "an unsigned integer type");
        if (kind != 'u')
            return rad_fail(err, RAD_E_ARG, "option 'zero': '%s' codes have no zero point", codes);
    }
    switch (g->code_dt) {
    case RAD_FP8_E4M3: g->hi = 448; break;
    case RAD_FP8_E5M2: g->hi = 57344; break;
    case RAD_DT_fp6_e2m3: g->hi = 7.5; break;
    case RAD_DT_fp6_e3m2: g->hi = 28; break;
    case RAD_DT_fp4_e2m1: g->hi = 6; break;
    default:
        g->hi = ldexp(1, bits - (kind == 'i')) - 1;
        g->lo = kind == 'i' ? -g->hi - !sym : 0;
    }
    return RAD_OK;
}

static int level_type(int dt)
{
    return dt == RAD_BF16 || dt == RAD_F32 || dt == RAD_F16 || dt == RAD_FP8_E4M3
        || dt == RAD_DT_e8m0;
}

static rad_status parse_scales(const RadQuantArg *arg, int n, struct grid *g, struct rad_err *err)
{
    const char *s = quant_arg(arg, n, "scale"), *s2 = quant_arg(arg, n, "scale2");
    const char *rule = quant_arg(arg, n, "rule");
    g->scale_dt = s ? quant_dtype(s) : RAD_BF16;
    char kind = rad_dtype_kind(g->scale_dt);
    int narrow = (kind == 'i' || kind == 'u') && rad_dtype_bits(g->scale_dt) <= 8;
    if (!level_type(g->scale_dt) && !(narrow && s2))
        return bad(err, "scale", s ? s : "", grid_options[4].doc);
    if (s2) {
        g->scale2_dt = quant_dtype(s2);
        if (!level_type(g->scale2_dt))
            return bad(err, "scale2", s2, grid_options[5].doc);
    } else if (quant_arg(arg, n, "group2") || quant_arg(arg, n, "block2")
               || quant_arg(arg, n, "scale2_value")) {
        return rad_fail(err, RAD_E_ARG, "option 'scale2' is missing beside its own options");
    }
    g->br = 1;
    RAD_TRY(blocks(arg, n, "group", "block", &g->br, &g->bc, err));
    RAD_TRY(blocks(arg, n, "group2", "block2", &g->b2r, &g->b2c, err));
    if (s2 && ((g->b2r && (!g->br || g->b2r % g->br)) || (g->b2c && (!g->bc || g->b2c % g->bc))))
        return rad_fail(err, RAD_E_ARG, "second-level block %lldx%lld is no multiple of %lldx%lld",
                        (long long)g->b2r, (long long)g->b2c, (long long)g->br, (long long)g->bc);
    RAD_TRY(positive(arg, n, "scale2_value", &g->scale2_value, err));
    RAD_TRY(positive(arg, n, "scale_value", &g->scale_value, err));
    if (g->scale2_value > 0) {
        float v = (float)g->scale2_value, back = v;
        if (g->scale2_dt == RAD_BF16)
            back = rad_bf16_to_f32(rad_f32_to_bf16(v));
        if (g->scale2_dt == RAD_F16)
            back = rad_f16_to_f32(rad_f32_to_f16(v));
        if (g->scale2_dt == RAD_FP8_E4M3)
            back = rad_e4m3_to_f32(rad_f32_to_e4m3(v));
        if (g->scale2_dt == RAD_DT_e8m0 || (double)back != g->scale2_value)
            return rad_fail(err, RAD_E_ARG, "option 'scale2_value': %g is not exact in %s",
                            g->scale2_value, rad_dtype_name(g->scale2_dt));
    }

    int e8m0 = g->scale_dt == RAD_DT_e8m0;
    g->rule = e8m0 ? RULE_MX : RULE_ABSMAX;
    if (rule) {
        static const char *const names[] = { "absmax", "mx", "fixed", "search" };
        for (g->rule = 0; g->rule < 4 && strcmp(rule, names[g->rule]); g->rule++)
            ;
        if (g->rule == 4)
            return bad(err, "rule", rule, "absmax, mx, fixed or search");
    }
    if ((g->rule == RULE_MX) != e8m0)
        return rad_fail(err, RAD_E_ARG, "rule mx and scale e8m0 go together");
    if (e8m0 && (rad_dtype_kind(g->code_dt) != 'f' || g->n_table || s2))
        return rad_fail(err, RAD_E_ARG, "scale e8m0 wants float codes and one level");
    if ((g->rule == RULE_FIXED) != (g->scale_value > 0))
        return rad_fail(err, RAD_E_ARG, "rule fixed and option 'scale_value' go together");
    if (g->rule == RULE_FIXED && (g->zero_dt || s2))
        return rad_fail(err, RAD_E_ARG, "rule fixed has no zero point and no second level");
    if (g->signed_scale && kind == 'u')
        return rad_fail(err, RAD_E_ARG, "option 'scale': '%s' is unsigned, and this table's"
                        " scale has a sign", s);
    return RAD_OK;
}

rad_status grid_parse(const RadQuantArg *arg, int n, const RadQuantWeight *w,
                      const char *const *extra, struct grid *g, struct rad_err *err)
{
    memset(g, 0, sizeof *g);
    for (int i = 0; i < n; i++) {
        int known = 0;
        for (int k = 0; k < GRID_N_OPTIONS; k++)
            known |= !strcmp(arg[i].key, grid_options[k].key);
        for (const char *const *e = extra; e && *e; e++)
            known |= !strcmp(arg[i].key, *e);
        if (!known)
            return rad_fail(err, RAD_E_ARG, "no option '%s'", arg[i].key);
    }
    RAD_TRY(parse_codes(arg, n, g, err));
    RAD_TRY(parse_scales(arg, n, g, err));
    const char *t = quant_arg(arg, n, "transform"), *e;
    if (t) {
        if (strncmp(t, "fwht", 4) || !extent(t + 4, &g->span, &e) || *e || g->span < 2
            || (g->span & (g->span - 1)))
            return bad(err, "transform", t, "fwhtN with N a power of two from 2 on");
        if (w->cols % g->span)
            return rad_fail(err, RAD_E_ARG, "option 'transform': %lld does not divide the %lld"
                            " columns of '%s'", (long long)g->span, (long long)w->cols, w->name);
    }
    return RAD_OK;
}

rad_status grid_encoding(const struct grid *g, RadEncoding *out, struct rad_err *err)
{
    rad_encoding_affine(out);
    RAD_TRY(rad_encoding_add(out, "codes", g->code_dt, RAD_PLANE_TILED, 1, 1));
    RAD_TRY(rad_encoding_add(out, "scale", g->scale_dt, RAD_PLANE_TILED, g->br, g->bc));
    if (g->zero_dt)
        RAD_TRY(rad_encoding_add(out, "zero", g->zero_dt, RAD_PLANE_TILED, g->br, g->bc));
    if (g->scale2_dt)
        RAD_TRY(rad_encoding_add(out, "scale.1", g->scale2_dt, RAD_PLANE_TILED, g->b2r, g->b2c));
    if (g->n_table)
        RAD_TRY(rad_encoding_add(out, "table", g->table_dt, RAD_PLANE_TABLE, 1, g->n_table));
    if (g->span) {
        char *at = out->transform + 4;
        char digits[24];
        int k = 0;
        memcpy(out->transform, "fwht", 4);
        for (int64_t v = g->span; v; v /= 10)
            digits[k++] = (char)('0' + v % 10);
        while (k)
            *at++ = digits[--k];
    }
    return rad_encoding_validate(out, err);
}

/* A second level that is derived needs all the numbers under it; one that is
 * given still must not be cut inside a block of its plane. */
int64_t grid_row_block(const struct grid *g)
{
    if (!g->scale2_dt || (g->scale2_value > 0 && !g->b2r))
        return g->br;
    return g->b2r;
}
