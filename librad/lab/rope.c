/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the functions that compute constants from parameters: one row a
 * function. Rotary frequencies are computed as the models' reference code does,
 * in f32 step by step, because a model was trained with exactly these. */
#include "config.h"

#include <math.h>

#include "lab/lab.h"

#include "banned.h"

struct call {
    const struct lab_fn_arg *arg;
    int n;
    struct radi_arena *arena;
    struct rad_err *err;
};

static rad_status num(const struct call *c, const char *name, double *out)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->arg[i].name, name)) {
            if (c->arg[i].v.t == LAB_BOOL)
                *out = c->arg[i].v.b;
            else if (!lab_val_num(&c->arg[i].v, out))
                return rad_fail(c->err, RAD_E_FORMAT, "'%s' is no number", name);
            return RAD_OK;
        }
    return rad_fail(c->err, RAD_E_FORMAT, "argument '%s' is missing", name);
}

static const char *str(const struct call *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->arg[i].name, name) && c->arg[i].v.t == LAB_STR)
            return c->arg[i].v.s;
    return "";
}

static const double PI = 3.14159265358979323846;

/* Wave lengths above orig/low are stretched by the factor, those below
 * orig/high stay, those between blend. */
static rad_status scale_banded(const struct call *c, float *f, int n)
{
    double factor, low, high, orig;

    RAD_TRY(num(c, "factor", &factor));
    RAD_TRY(num(c, "low_freq", &low));
    RAD_TRY(num(c, "high_freq", &high));
    RAD_TRY(num(c, "orig_ctx", &orig));
    for (int i = 0; i < n; i++) {
        float wave = (float)(2 * PI) / f[i];
        if (wave > (float)(orig / low))
            f[i] = f[i] / (float)factor;
        else if (!(wave < (float)(orig / high))) {
            float s = ((float)orig / wave - (float)low) / (float)(high - low);
            f[i] = (1.0f - s) * f[i] / (float)factor + s * f[i];
        }
    }
    return RAD_OK;
}

/* theta^(2i/dim), the wave length in units of 2 pi */
static float power(double theta, int i, double dim)
{
    return (float)pow(theta, (double)((float)(2 * i) / (float)dim));
}

/* Pair index at which the rotation makes `turns` turns over the context. */
static double yarn_pair(double turns, double dim, double theta, double orig)
{
    return dim * log(orig / (turns * 2 * PI)) / (2 * log(theta));
}

static rad_status scale_yarn(const struct call *c, float *f, int n, double dim, double theta)
{
    double factor, fast, slow, orig, truncate;

    RAD_TRY(num(c, "factor", &factor));
    RAD_TRY(num(c, "orig_ctx", &orig));
    RAD_TRY(num(c, "beta_fast", &fast));
    RAD_TRY(num(c, "beta_slow", &slow));
    RAD_TRY(num(c, "truncate", &truncate));
    double lo = yarn_pair(fast, dim, theta, orig), hi = yarn_pair(slow, dim, theta, orig);
    if (truncate != 0) {
        lo = floor(lo);
        hi = ceil(hi);
    }
    lo = fmax(lo, 0);
    hi = fmin(hi, dim - 1);
    if (lo == hi)
        hi += 0.001;
    for (int i = 0; i < n; i++) {
        float ramp = ((float)i - (float)lo) / (float)(hi - lo);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        float keep = 1.0f - ramp;
        float stretched = 1.0f / ((float)factor * power(theta, i, dim));
        f[i] = stretched * (1.0f - keep) + f[i] * keep;
    }
    return RAD_OK;
}

/* One divisor a frequency. */
static rad_status scale_each(const struct call *c, float *f, int n)
{
    for (int i = 0; i < c->n; i++) {
        const struct lab_val *v = &c->arg[i].v;
        if (strcmp(c->arg[i].name, "divisors"))
            continue;
        if (v->t != LAB_LIST || v->l.n != (size_t)n)
            return rad_fail(c->err, RAD_E_FORMAT, "want %d divisors, one a frequency", n);
        for (int k = 0; k < n; k++) {
            double d;
            if (!lab_val_num(&v->l.v[k], &d) || !(d > 0))
                return rad_fail(c->err, RAD_E_FORMAT, "divisor %d is no number above 0", k);
            f[k] = 1.0f / ((float)d * (1.0f / f[k]));
        }
        return RAD_OK;
    }
    return rad_fail(c->err, RAD_E_FORMAT, "argument 'divisors' is missing");
}

/* inv_freq[i] = theta^(-2i/dim), scaled */
static rad_status rope_inv_freq(const struct call *c, struct rad_lab_const *out)
{
    const char *kind = str(c, "kind");
    double dim, theta, factor;
    rad_status st = RAD_OK;

    RAD_TRY(num(c, "dim", &dim));
    RAD_TRY(num(c, "theta", &theta));
    RAD_TRY(num(c, "factor", &factor));
    if (!(dim >= 2 && dim <= 65536) || fmod(dim, 2) != 0)
        return rad_fail(c->err, RAD_E_FORMAT, "rotary width %g, want an even number", dim);
    if (!(theta > 0) || !isfinite((float)theta) || !(factor > 0))
        return rad_fail(c->err, RAD_E_FORMAT, "theta %g, factor %g: want numbers above 0", theta,
                        factor);
    if (!strcmp(kind, "yarn") && theta <= 1)
        return rad_fail(c->err, RAD_E_FORMAT, "theta %g, yarn wants more than 1", theta);
    int n = (int)dim / 2;
    float *f = radi_arena_array(c->arena, (size_t)n, sizeof(*f));
    if (!f)
        return rad_fail(c->err, RAD_E_NOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        f[i] = 1.0f / power(theta, i, dim);
    if (!strcmp(kind, "linear"))
        for (int i = 0; i < n; i++)
            f[i] = f[i] / (float)factor;
    else if (!strcmp(kind, "banded"))
        st = scale_banded(c, f, n);
    else if (!strcmp(kind, "yarn"))
        st = scale_yarn(c, f, n, dim, theta);
    else if (!strcmp(kind, "each"))
        st = scale_each(c, f, n);
    else if (strcmp(kind, "default"))
        st = rad_fail(c->err, RAD_E_UNSUPPORTED, "scaling '%s' of rotary positions", kind);
    double reverse;
    RAD_TRY(num(c, "reverse", &reverse));
    for (int i = 0; !st && i < n; i++) {
        if (reverse != 0)
            f[i] = -f[i];
        if (!isfinite(f[i]))
            st = rad_fail(c->err, RAD_E_FORMAT, "rotary frequency %d is not finite", i);
    }
    *out = (struct rad_lab_const){ .rank = 1, .shape = { n }, .data = f };
    return st;
}

static const struct {
    const char *name;
    rad_status (*fn)(const struct call *c, struct rad_lab_const *out);
    const char *args;
} table[] = {
    { "rope_inv_freq", rope_inv_freq,
      " kind dim theta factor low_freq high_freq orig_ctx beta_fast beta_slow truncate "
      "divisors reverse " },
};

static int find(const char *fn)
{
    for (int i = 0; i < (int)RADI_COUNT(table); i++)
        if (!strcmp(table[i].name, fn))
            return i;
    return -1;
}

bool lab_fn_known(const char *fn)
{
    return find(fn) >= 0;
}

bool lab_fn_arg_known(const char *fn, const char *arg)
{
    int i = find(fn);
    size_t n = strlen(arg);
    const char *s = i < 0 ? "" : table[i].args;
    while ((s = strstr(s, arg))) {
        if (s[-1] == ' ' && s[n] == ' ')
            return true;
        s++;
    }
    return false;
}

rad_status lab_fn_call(const char *fn, const struct lab_fn_arg *arg, int n, struct radi_arena *a,
                       struct rad_lab_const *out, struct rad_err *err)
{
    struct call c = { arg, n, a, err };
    int i = find(fn);
    RADI_BUG_IF(i < 0);
    rad_status st = table[i].fn(&c, out);
    return st ? rad_fail_in(err, st, "%s()", fn) : RAD_OK;
}
