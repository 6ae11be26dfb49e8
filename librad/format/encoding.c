/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings as data: builders, the rules an encoding must keep, its spelling,
 * the geometry of its planes, and slices of it. Turning planes into numbers is
 * encoding_decode.c's.
 *
 * An encoding's identity is its bytes, so every builder leaves unused bytes
 * zero and validation refuses one that does not. */
#include <stdio.h>

#include "base/base.h"
#include "format/encoding_priv.h"
#include "banned.h"

void rad_encoding_plain(RadEncoding *e, int dtype)
{
    memset(e, 0, sizeof *e);
    memcpy(e->scheme, "plain", 5);
    (void)rad_encoding_add(e, "codes", dtype, RAD_PLANE_TILED, 1, 1);
}

void rad_encoding_affine(RadEncoding *e)
{
    memset(e, 0, sizeof *e);
    memcpy(e->scheme, "affine", 6);
}

rad_status rad_encoding_add(RadEncoding *e, const char *role, int dtype, int kind,
                            int64_t r, int64_t c)
{
    size_t n = strlen(role);

    if (e->n_planes < 0 || e->n_planes >= RAD_MAX_PLANES)
        return RAD_E_FULL;
    if (!n || n >= sizeof e->plane[0].role)
        return RAD_E_ARG;

    RadPlaneDesc *d = &e->plane[e->n_planes++];
    memset(d, 0, sizeof *d);
    memcpy(d->role, role, n);
    d->dtype = (uint32_t)dtype;
    d->kind = (uint32_t)kind;
    if (kind == RAD_PLANE_TABLE) {
        d->extent[0] = r;
        d->extent[1] = c;
    } else {
        d->block[0] = r;
        d->block[1] = c;
    }
    return RAD_OK;
}

int rad_encoding_equal(const RadEncoding *a, const RadEncoding *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

int rad_encoding_is_plain(const RadEncoding *e, int dtype)
{
    return strncmp(e->scheme, "plain", sizeof e->scheme) == 0 && e->n_planes == 1
        && (!dtype || e->plane[0].dtype == (uint32_t)dtype);
}

int rad_encoding_find(const RadEncoding *e, const char *role)
{
    for (int i = 0; i < e->n_planes && i < RAD_MAX_PLANES; i++)
        if (strncmp(e->plane[i].role, role, sizeof e->plane[i].role) == 0)
            return i;
    return -1;
}

/* ---- validation */

/* A 24-byte field: a string that ends inside it, zeros behind. */
static bool field_ok(const char f[24])
{
    size_t n = strnlen(f, 24);

    if (n == 24)
        return false;
    for (size_t i = n; i < 24; i++)
        if (f[i])
            return false;
    return true;
}

/* "BASE" is level 0, "BASE.n" level n (n without leading zeros); -1: neither. */
static int chain_level(const char *role, const char *base)
{
    size_t n = strlen(base);

    if (strncmp(role, base, n))
        return -1;
    if (!role[n])
        return 0;
    if (role[n] != '.' || role[n + 1] < '1' || role[n + 1] > '9' || role[n + 2])
        return -1;
    return role[n + 1] - '0';
}

static bool transform_span(const char *t, uint64_t *n)
{
    uint64_t v = 0;

    if (strncmp(t, "fwht", 4) || !t[4] || t[4] == '0')
        return false;
    for (t += 4; *t; t++) {
        if (*t < '0' || *t > '9' || v > UINT32_MAX)
            return false;
        v = v * 10 + (uint64_t)(*t - '0');
    }
    *n = v;
    return v >= 2 && (v & (v - 1)) == 0;
}

static bool tile_is(const RadPlaneDesc *d, int64_t r, int64_t c)
{
    return d->kind == RAD_PLANE_TILED && d->block[0] == r && d->block[1] == c;
}

static rad_status check_plane(const RadEncoding *e, int i, struct rad_err *err)
{
    const RadPlaneDesc *d = &e->plane[i];

    if (!field_ok(d->role))
        return rad_fail(err, RAD_E_FORMAT, "plane %d: role is not a zero-padded string", i);
    if (!d->role[0])
        return rad_fail(err, RAD_E_FORMAT, "plane %d: role is empty", i);
    if (d->dtype >= RAD_DT_PRIVATE || !rad_dtype_bits((int)d->dtype))
        return rad_fail(err, RAD_E_FORMAT, "plane '%s': dtype %u, want one of the format's",
                        d->role, d->dtype);
    if (d->kind > RAD_PLANE_TABLE)
        return rad_fail(err, RAD_E_FORMAT, "plane '%s': kind %u, want 0 or 1", d->role,
                        d->kind);
    if (d->kind == RAD_PLANE_TILED) {
        if (d->block[0] < 0 || d->block[1] < 0)
            return rad_fail(err, RAD_E_FORMAT, "plane '%s': block %lldx%lld is negative",
                            d->role, (long long)d->block[0], (long long)d->block[1]);
        if (d->extent[0] || d->extent[1])
            return rad_fail(err, RAD_E_FORMAT, "plane '%s': extent of a tiled plane is not 0",
                            d->role);
    } else if (d->extent[0] <= 0 || d->extent[1] <= 0) {
        return rad_fail(err, RAD_E_FORMAT, "plane '%s': extent %lldx%lld, want at least 1x1",
                        d->role, (long long)d->extent[0], (long long)d->extent[1]);
    }
    for (int k = 0; k < i; k++)
        if (strcmp(e->plane[k].role, d->role) == 0)
            return rad_fail(err, RAD_E_FORMAT, "plane %d: role '%s' is there twice", i,
                            d->role);
    if (strcmp(d->role, "codes") == 0
        && (i != 0 || d->kind != RAD_PLANE_TILED || d->block[0] != 1))
        return rad_fail(err, RAD_E_FORMAT,
                        "plane 'codes': want plane 0, tiled, one row high");
    return RAD_OK;
}

/* A table that a transform needs or may have. */
static rad_status check_data(const RadEncoding *e, const char *role, int dtype,
                             bool needed, struct rad_err *err)
{
    int p = rad_encoding_find(e, role);

    if (p < 0)
        return needed ? rad_fail(err, RAD_E_FORMAT, "transform '%s': no plane '%s'",
                                 e->transform, role) : RAD_OK;
    if (e->plane[p].kind != RAD_PLANE_TABLE || e->plane[p].dtype != (uint32_t)dtype)
        return rad_fail(err, RAD_E_FORMAT, "plane '%s': want a table of %s", role,
                        rad_dtype_name(dtype));
    return RAD_OK;
}

static rad_status check_transform(const RadEncoding *e, struct rad_err *err)
{
    uint64_t n;
    bool perm = strcmp(e->transform, "perm") == 0;
    bool givens = strcmp(e->transform, "givens") == 0;
    int pairs = rad_encoding_find(e, "t.pairs"), angle = rad_encoding_find(e, "t.angle");
    int scale = rad_encoding_find(e, "t.scale"), order = rad_encoding_find(e, "t.perm");

    if (e->transform[0] && !perm && !givens && !transform_span(e->transform, &n))
        return rad_fail(err, RAD_E_FORMAT,
                        "transform '%s': want fwhtN (N a power of two), perm or givens",
                        e->transform);
    if (order >= 0 && !perm)
        return rad_fail(err, RAD_E_FORMAT, "plane 't.perm' without the transform 'perm'");
    if ((pairs >= 0 || angle >= 0 || scale >= 0) && !givens)
        return rad_fail(err, RAD_E_FORMAT, "plane '%s' without the transform 'givens'",
                        pairs >= 0 ? "t.pairs" : angle >= 0 ? "t.angle" : "t.scale");
    if (perm) {
        RAD_TRY(check_data(e, "t.perm", RAD_DT_i32, true, err));
        if (e->plane[order].extent[0] != 1)
            return rad_fail(err, RAD_E_FORMAT, "plane 't.perm': want one row");
    }
    if (givens) {
        RAD_TRY(check_data(e, "t.pairs", RAD_DT_i32, true, err));
        RAD_TRY(check_data(e, "t.angle", RAD_DT_f32, true, err));
        RAD_TRY(check_data(e, "t.scale", RAD_DT_f32, false, err));
        if (e->plane[pairs].extent[0] != e->plane[angle].extent[0]
            || e->plane[pairs].extent[1] % 2
            || e->plane[pairs].extent[1] / 2 != e->plane[angle].extent[1])
            return rad_fail(err, RAD_E_FORMAT,
                            "plane 't.angle': want one angle for each of 't.pairs'");
        if (scale >= 0 && e->plane[scale].extent[0] != 1)
            return rad_fail(err, RAD_E_FORMAT, "plane 't.scale': want one row");
    }
    return RAD_OK;
}

static rad_status check_affine(const RadEncoding *e, struct rad_err *err)
{
    static const char *const role[] = { "codes", "grid", "table", "signs", "zero",
                                        "t.perm", "t.scale", "t.pairs", "t.angle" };
    static const char *const chain[] = { "scale", "min" };
    int grid = rad_encoding_find(e, "grid"), table = rad_encoding_find(e, "table");

    if (rad_encoding_find(e, "codes") != 0)
        return rad_fail(err, RAD_E_FORMAT, "affine: plane 0 is '%s', want 'codes'",
                        e->plane[0].role);
    for (int i = 0; i < e->n_planes; i++) {
        const RadPlaneDesc *d = &e->plane[i];
        bool known = false;

        for (size_t k = 0; k < RADI_COUNT(role); k++)
            known = known || strcmp(d->role, role[k]) == 0;
        for (size_t k = 0; k < RADI_COUNT(chain); k++) {
            int level = chain_level(d->role, chain[k]);
            char prev[24];

            if (level < 0)
                continue;
            known = true;
            if (d->kind != RAD_PLANE_TILED)
                return rad_fail(err, RAD_E_FORMAT, "plane '%s': want a tiled plane", d->role);
            if (!level)
                continue;
            (void)snprintf(prev, sizeof prev, level > 1 ? "%s.%d" : "%s", chain[k], level - 1);
            if (rad_encoding_find(e, prev) < 0)
                return rad_fail(err, RAD_E_FORMAT, "plane '%s': level '%s' is missing",
                                d->role, prev);
        }
        if (!known)
            return rad_fail(err, RAD_E_FORMAT, "affine: unknown role '%s'", d->role);
    }

    const RadPlaneDesc *codes = &e->plane[0];
    if (grid >= 0 && table >= 0)
        return rad_fail(err, RAD_E_FORMAT, "affine: both 'grid' and 'table'");
    if (codes->block[1] < 1 || (grid < 0 && codes->block[1] != 1))
        return rad_fail(err, RAD_E_FORMAT, "plane 'codes': block 1x%lld, want 1x1%s",
                        (long long)codes->block[1], grid < 0 ? " without a grid" : " or more");
    if (grid >= 0 && (e->plane[grid].kind != RAD_PLANE_TABLE
                      || e->plane[grid].extent[1] != codes->block[1]))
        return rad_fail(err, RAD_E_FORMAT, "plane 'grid': want a table of %lld columns",
                        (long long)codes->block[1]);
    if (table >= 0 && (e->plane[table].kind != RAD_PLANE_TABLE
                       || e->plane[table].extent[0] != 1))
        return rad_fail(err, RAD_E_FORMAT, "plane 'table': want a table of one row");
    if ((grid >= 0 || table >= 0) && rad_dtype_kind((int)codes->dtype) == 'f')
        return rad_fail(err, RAD_E_FORMAT, "plane 'codes': %s cannot index a codebook",
                        rad_dtype_name((int)codes->dtype));

    int signs = rad_encoding_find(e, "signs"), zero = rad_encoding_find(e, "zero");
    if (signs >= 0 && (!tile_is(&e->plane[signs], 1, 1)
                       || e->plane[signs].dtype != RAD_DT_u1))
        return rad_fail(err, RAD_E_FORMAT, "plane 'signs': want u1[1x1]");
    if (zero >= 0 && e->plane[zero].kind != RAD_PLANE_TILED)
        return rad_fail(err, RAD_E_FORMAT, "plane 'zero': want a tiled plane");
    if (e->n_planes == 1 && !e->transform[0])
        return rad_fail(err, RAD_E_FORMAT, "affine: nothing but codes (that is 'plain')");
    return check_transform(e, err);
}

rad_status rad_encoding_validate(const RadEncoding *e, struct rad_err *err)
{
    static const RadPlaneDesc unused;

    if (!field_ok(e->scheme) || !e->scheme[0])
        return rad_fail(err, RAD_E_FORMAT, "scheme is not a zero-padded name");
    if (!field_ok(e->transform))
        return rad_fail(err, RAD_E_FORMAT, "transform is not a zero-padded name");
    if (e->n_planes < 1 || e->n_planes > RAD_MAX_PLANES)
        return rad_fail(err, RAD_E_FORMAT, "%d planes, want 1 to %d", e->n_planes,
                        RAD_MAX_PLANES);
    if (e->reserved)
        return rad_fail(err, RAD_E_FORMAT, "reserved word is %d, want 0", e->reserved);
    for (int i = 0; i < e->n_planes; i++)
        RAD_TRY(check_plane(e, i, err));
    for (int i = e->n_planes; i < RAD_MAX_PLANES; i++)
        if (memcmp(&e->plane[i], &unused, sizeof unused))
            return rad_fail(err, RAD_E_FORMAT, "plane %d: unused, but not zero", i);

    if (strcmp(e->scheme, "affine") == 0)
        return check_affine(e, err);
    if (strcmp(e->scheme, "plain") == 0) {
        if (e->n_planes != 1)
            return rad_fail(err, RAD_E_FORMAT, "plain: %d planes, want 1", e->n_planes);
        if (e->transform[0])
            return rad_fail(err, RAD_E_FORMAT, "plain: transform '%s', want none",
                            e->transform);
        if (!tile_is(&e->plane[0], 1, 1))
            return rad_fail(err, RAD_E_FORMAT, "plain: want a tiled plane of blocks 1x1");
    }
    return RAD_OK;
}

/* ---- spelling */

struct speller {
    char *buf;
    size_t n, len;
};

static void spell(struct speller *s, const char *text)
{
    for (; *text; text++, s->len++)
        if (s->len + 1 < s->n)
            s->buf[s->len] = *text;
}

static void spell_extent(struct speller *s, int64_t v)
{
    char num[24];

    (void)snprintf(num, sizeof num, "%lld", (long long)v);
    spell(s, v ? num : "*");
}

static void spell_plane(struct speller *s, const RadPlaneDesc *d)
{
    bool table = d->kind == RAD_PLANE_TABLE;

    spell(s, rad_dtype_name((int)d->dtype));
    spell(s, table ? "{" : "[");
    spell_extent(s, table ? d->extent[0] : d->block[0]);
    spell(s, "x");
    spell_extent(s, table ? d->extent[1] : d->block[1]);
    spell(s, table ? "}" : "]");
}

size_t rad_encoding_text(const RadEncoding *e, char *buf, size_t n)
{
    struct speller s = { buf, n, 0 };
    int zero = rad_encoding_find(e, "zero"), levels = 0;

    while (levels < e->n_planes) {
        char role[24];

        (void)snprintf(role, sizeof role, levels ? "scale.%d" : "scale", levels);
        int p = rad_encoding_find(e, role);
        if (p < 0 || e->plane[p].kind != RAD_PLANE_TILED)
            break;
        levels++;
    }
    bool is_affine = strcmp(e->scheme, "affine") == 0;
    bool simple = is_affine && rad_encoding_find(e, "codes") == 0
        && tile_is(&e->plane[0], 1, 1) && e->n_planes == 1 + levels + (zero >= 0);

    if (rad_encoding_is_plain(e, 0)) {
        spell(&s, rad_dtype_name((int)e->plane[0].dtype));
    } else if (simple) {
        spell(&s, rad_dtype_name((int)e->plane[0].dtype));
        for (int i = 0; i < levels; i++) {
            char role[24];

            (void)snprintf(role, sizeof role, i ? "scale.%d" : "scale", i);
            spell(&s, "*");
            spell_plane(&s, &e->plane[rad_encoding_find(e, role)]);
        }
        if (zero >= 0) {
            spell(&s, "-");
            spell_plane(&s, &e->plane[zero]);
        }
    } else {
        spell(&s, e->scheme);
        for (int i = 0; i < e->n_planes && i < RAD_MAX_PLANES; i++) {
            spell(&s, i ? "," : ":");
            spell(&s, e->plane[i].role);
            spell(&s, "=");
            spell_plane(&s, &e->plane[i]);
        }
    }
    if (e->transform[0]) {
        spell(&s, "/");
        spell(&s, e->transform);
    }
    if (n)
        buf[RADI_MIN(s.len, n - 1)] = 0;
    return s.len;
}

/* ---- geometry */

static uint64_t blocks_of(uint64_t extent, int64_t block)
{
    if (!block)
        return 1;
    uint64_t b = (uint64_t)block;
    return extent / b + (extent % b != 0);
}

/* The transform's own demands on the number of columns. */
static rad_status transform_fits(const RadEncoding *e, uint64_t cols, struct rad_err *err)
{
    static const char *const data[] = { "t.perm", "t.pairs", "t.scale" };
    uint64_t n;

    if (strcmp(e->scheme, "affine") || !e->transform[0])
        return RAD_OK;
    if (transform_span(e->transform, &n)) {
        if (cols % n)
            return rad_fail(err, RAD_E_FORMAT, "transform '%s': %llu columns, want a multiple"
                            " of %llu", e->transform, (unsigned long long)cols,
                            (unsigned long long)n);
        return RAD_OK;
    }
    for (size_t i = 0; i < RADI_COUNT(data); i++) {
        int p = rad_encoding_find(e, data[i]);

        if (p >= 0 && (uint64_t)e->plane[p].extent[1] != cols)
            return rad_fail(err, RAD_E_FORMAT, "plane '%s': %lld columns, want %llu", data[i],
                            (long long)e->plane[p].extent[1], (unsigned long long)cols);
    }
    return RAD_OK;
}

rad_status rad_plane_geom(const RadEncoding *e, int p, uint64_t rows, uint64_t cols,
                          RadPlaneGeom *out, struct rad_err *err)
{
    RadPlaneGeom g = { 0 };

    memset(out, 0, sizeof *out);
    if (p < 0 || p >= e->n_planes || p >= RAD_MAX_PLANES)
        return rad_fail(err, RAD_E_ARG, "plane %d, want 0 to %d", p, e->n_planes - 1);
    RAD_TRY(transform_fits(e, cols, err));

    const RadPlaneDesc *d = &e->plane[p];
    uint64_t bits = (uint64_t)rad_dtype_bits((int)d->dtype), row_bits;

    if (!bits || d->block[0] < 0 || d->block[1] < 0 || d->extent[0] < 0 || d->extent[1] < 0)
        return rad_fail(err, RAD_E_FORMAT, "plane '%.24s': dtype or extent is invalid",
                        d->role);
    if (d->kind == RAD_PLANE_TABLE) {
        g.rows = (uint64_t)d->extent[0];
        g.cols = (uint64_t)d->extent[1];
    } else {
        g.rows = blocks_of(rows, d->block[0]);
        g.cols = blocks_of(cols, d->block[1]);
    }
    if (!radi_mul_u64(g.cols, bits, &row_bits) || row_bits > UINT64_MAX - 7
        || !radi_mul_u64(g.rows, (row_bits + 7) / 8, &g.bytes))
        return rad_fail(err, RAD_E_FORMAT, "plane '%.24s': %llu x %llu elements of %d bits"
                        " overflow", d->role, (unsigned long long)g.rows,
                        (unsigned long long)g.cols, (int)bits);
    g.row_bytes = (row_bits + 7) / 8;
    *out = g;
    return RAD_OK;
}

/* ---- slices */

static bool cut_ok(uint64_t at, uint64_t n, uint64_t extent, uint64_t block)
{
    return at % block == 0 && ((at + n) % block == 0 || at + n == extent);
}

rad_status rad_encoding_slice(const RadEncoding *e, uint64_t rows, uint64_t cols,
                              const RadSlice *s, struct rad_err *err)
{
    uint64_t span;

    if (!s->nr || !s->nc || !radi_span_ok(s->r0, s->nr, rows)
        || !radi_span_ok(s->c0, s->nc, cols))
        return rad_fail(err, RAD_E_SHAPE, "slice %llu+%llu x %llu+%llu of %llu x %llu",
                        (unsigned long long)s->r0, (unsigned long long)s->nr,
                        (unsigned long long)s->c0, (unsigned long long)s->nc,
                        (unsigned long long)rows, (unsigned long long)cols);
    for (int i = 0; i < e->n_planes && i < RAD_MAX_PLANES; i++) {
        const RadPlaneDesc *d = &e->plane[i];

        if (d->kind == RAD_PLANE_TABLE)
            continue;
        if (d->block[0] > 0 && !cut_ok(s->r0, s->nr, rows, (uint64_t)d->block[0]))
            return rad_fail(err, RAD_E_SHAPE, "plane '%s': rows %llu+%llu split a block of"
                            " %lld rows", d->role, (unsigned long long)s->r0,
                            (unsigned long long)s->nr, (long long)d->block[0]);
        if (d->block[1] > 0 && !cut_ok(s->c0, s->nc, cols, (uint64_t)d->block[1]))
            return rad_fail(err, RAD_E_SHAPE, "plane '%s': columns %llu+%llu split a block of"
                            " %lld columns", d->role, (unsigned long long)s->c0,
                            (unsigned long long)s->nc, (long long)d->block[1]);
    }
    if (!e->transform[0])
        return RAD_OK;
    if (!transform_span(e->transform, &span))
        span = cols;             /* perm, givens, a private one: the whole row */
    if (s->c0 % span || s->nc % span)
        return rad_fail(err, RAD_E_SHAPE, "transform '%s': columns %llu+%llu, want multiples"
                        " of %llu", e->transform, (unsigned long long)s->c0,
                        (unsigned long long)s->nc, (unsigned long long)span);
    return RAD_OK;
}

rad_status rad_plane_slice(const RadEncoding *e, int p, const void *plane, uint64_t rows,
                           uint64_t cols, const RadSlice *s, void *out, size_t out_bytes,
                           struct rad_err *err)
{
    RadPlaneGeom src, dst;

    RAD_TRY(rad_encoding_slice(e, rows, cols, s, err));
    RAD_TRY(rad_plane_geom(e, p, rows, cols, &src, err));
    RAD_TRY(rad_plane_geom(e, p, s->nr, s->nc, &dst, err));
    if (dst.bytes != out_bytes)
        return rad_fail(err, RAD_E_ARG, "plane '%s': slice has %llu bytes, buffer %zu",
                        e->plane[p].role, (unsigned long long)dst.bytes, out_bytes);

    const RadPlaneDesc *d = &e->plane[p];
    bool table = d->kind == RAD_PLANE_TABLE;
    uint64_t r0 = table || !d->block[0] ? 0 : s->r0 / (uint64_t)d->block[0];
    uint64_t c0 = table || !d->block[1] ? 0 : s->c0 / (uint64_t)d->block[1];
    int bits = rad_dtype_bits((int)d->dtype);
    uint64_t first = c0 * (uint64_t)bits, tail = dst.cols * (uint64_t)bits % 8;

    for (uint64_t r = 0; r < dst.rows; r++) {
        const uint8_t *from = (const uint8_t *)plane + (r0 + r) * src.row_bytes;
        uint8_t *to = (uint8_t *)out + r * dst.row_bytes;

        if (first % 8 == 0) {
            memcpy(to, from + first / 8, dst.row_bytes);
        } else {
            memset(to, 0, dst.row_bytes);
            for (uint64_t c = 0; c < dst.cols; c++)
                rad_bits_put(to, bits, c, rad_bits_get(from, bits, c0 + c));
        }
        if (tail)                /* the neighbour's bits do not come along */
            to[dst.row_bytes - 1] &= (uint8_t)((1u << tail) - 1);
    }
    return RAD_OK;
}

bool radi_transform_fwht(const RadEncoding *e, uint64_t *n)
{
    return transform_span(e->transform, n);
}
