/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops, softmax and scale_rows. A part owns a run of elements, so
 * one long row is shared too; every chunk is read before it is written, so y
 * may be an operand. */
#include "ref.h"

enum { CHUNK = 256 };

int ref_elem_parse(const RadParam *p, int n, void *out)
{
    struct ref_elem *e = out;
    e->M = rad_param_int(p, n, "M", 0);
    e->n = rad_param_int(p, n, "n", 0);
    return e->n > 0 ? RAD_OK : RAD_E_ARG;
}

int ref_scale_rows_parse(const RadParam *p, int n, void *out)
{
    struct ref_elem *e = out;
    const char *act = rad_param_str(p, n, "act", "none");
    e->sigmoid = !strcmp(act, "sigmoid");
    if (!e->sigmoid && strcmp(act, "none"))
        return RAD_E_UNSUPPORTED;
    return ref_elem_parse(p, n, out);
}

int ref_move_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    (void)params;
    out->bytes = out->ops = 0;
    for (int i = 0; i < n_opd; i++)
        out->bytes += ref_bytes(&opd[i]);
    return RAD_OK;
}

/* One operation an element of the output, the last operand. */
int ref_elem_cost(const void *params, const RadTensor *opd, int n_opd, RadCost *out)
{
    ref_move_cost(params, opd, n_opd, out);
    out->ops = (uint64_t)rad_numel(&opd[n_opd - 1]);
    return RAD_OK;
}

/* Walks this part's elements of y as chunks that do not cross a row. */
struct walk {
    int64_t n, at, end;     /* elements */
    int64_t row, col, len;  /* the chunk */
};
static struct walk walk_of(const RadLaunch *a, const struct ref_view *y)
{
    struct walk w = { .n = y->n };
    ref_share(a, y->rows * y->n, &w.at, &w.end);
    return w;
}
static int step(struct walk *w)
{
    if (w->at >= w->end)
        return 0;
    w->row = w->at / w->n;
    w->col = w->at % w->n;
    w->len = w->n - w->col;
    if (w->len > w->end - w->at)
        w->len = w->end - w->at;
    if (w->len > CHUNK)
        w->len = CHUNK;
    w->at += w->len;
    return 1;
}

static int unary(const RadLaunch *a, double (*f)(double))
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 2)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[1], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    float b[CHUNK];
    for (struct walk w = walk_of(a, &y); step(&w);) {
        ref_load(ref_row(&x, w.row), x.dt, w.col, w.len, b);
        for (int64_t i = 0; i < w.len; i++)
            b[i] = (float)f((double)b[i]);
        ref_store(ref_row(&y, w.row), y.dt, w.col, w.len, b);
    }
    return RAD_OK;
}

int ref_silu_op(const RadLaunch *a)
{
    return unary(a, ref_silu);
}
int ref_sigmoid_op(const RadLaunch *a)
{
    return unary(a, ref_sigmoid);
}
int ref_gelu_op(const RadLaunch *a)
{
    return unary(a, ref_gelu);
}
int ref_gelu_tanh_op(const RadLaunch *a)
{
    return unary(a, ref_gelu_tanh);
}

int ref_relu2_op(const RadLaunch *a)
{
    return unary(a, ref_relu2);
}

static int binary(const RadLaunch *a, int is_mul)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, z, y;
    if (a->n_opd < 3)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[1], e->n, &z));
    RAD_TRY(ref_act(&a->opd[2], e->n, &y));
    if (x.rows != y.rows || (z.rows != y.rows && z.rows != 1))
        return RAD_E_SHAPE;
    float b[CHUNK], c[CHUNK];
    for (struct walk w = walk_of(a, &y); step(&w);) {
        ref_load(ref_row(&x, w.row), x.dt, w.col, w.len, b);
        ref_load(ref_row(&z, z.rows == 1 ? 0 : w.row), z.dt, w.col, w.len, c);
        if (is_mul)
            for (int64_t i = 0; i < w.len; i++)
                b[i] *= c[i];
        else
            for (int64_t i = 0; i < w.len; i++)
                b[i] += c[i];
        ref_store(ref_row(&y, w.row), y.dt, w.col, w.len, b);
    }
    return RAD_OK;
}

int ref_add(const RadLaunch *a)
{
    return binary(a, 0);
}
int ref_mul(const RadLaunch *a)
{
    return binary(a, 1);
}

/* gate_up -> y = f(gate) * up */
static int gated(const RadLaunch *a, double (*f)(double))
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 2)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], 2 * e->n, &x));
    RAD_TRY(ref_act(&a->opd[1], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    float g[CHUNK], u[CHUNK];
    for (struct walk w = walk_of(a, &y); step(&w);) {
        const void *row = ref_row(&x, w.row);
        ref_load(row, x.dt, w.col, w.len, g);
        ref_load(row, x.dt, e->n + w.col, w.len, u);
        for (int64_t i = 0; i < w.len; i++)
            g[i] = (float)(f((double)g[i]) * (double)u[i]);
        ref_store(ref_row(&y, w.row), y.dt, w.col, w.len, g);
    }
    return RAD_OK;
}

int ref_silu_mul_op(const RadLaunch *a)
{
    return gated(a, ref_silu);
}
int ref_gelu_mul_op(const RadLaunch *a)
{
    return gated(a, ref_gelu);
}
int ref_gelu_tanh_mul_op(const RadLaunch *a)
{
    return gated(a, ref_gelu_tanh);
}
int ref_relu2_mul_op(const RadLaunch *a)
{
    return gated(a, ref_relu2);
}

/* x, s, add? -> y. With add the product is narrowed before the sum. */
int ref_scale_rows(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, s, z, y;
    if (a->n_opd < 4)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[1], 1, &s));
    RAD_TRY(ref_act(&a->opd[3], e->n, &y));
    int has_add = !rad_absent(&a->opd[2]);
    if (has_add)
        RAD_TRY(ref_act(&a->opd[2], e->n, &z));
    if (x.rows != y.rows || s.rows != y.rows || (has_add && z.rows != y.rows))
        return RAD_E_SHAPE;
    float b[CHUNK], c[CHUNK];
    for (struct walk w = walk_of(a, &y); step(&w);) {
        float sf;
        ref_load(ref_row(&s, w.row), s.dt, 0, 1, &sf);
        double f = e->sigmoid ? ref_sigmoid((double)sf) : (double)sf;
        ref_load(ref_row(&x, w.row), x.dt, w.col, w.len, b);
        for (int64_t i = 0; i < w.len; i++)
            b[i] = (float)((double)b[i] * f);
        if (has_add) {
            ref_load(ref_row(&z, w.row), z.dt, w.col, w.len, c);
            for (int64_t i = 0; i < w.len; i++)
                b[i] = ref_narrow(y.dt, b[i]) + c[i];
        }
        ref_store(ref_row(&y, w.row), y.dt, w.col, w.len, b);
    }
    return RAD_OK;
}

int ref_softmax(const RadLaunch *a)
{
    const struct ref_elem *e = a->params;
    struct ref_view x, y;
    if (a->n_opd < 2)
        return RAD_E_ARG;
    RAD_TRY(ref_act(&a->opd[0], e->n, &x));
    RAD_TRY(ref_act(&a->opd[1], e->n, &y));
    if (x.rows != y.rows)
        return RAD_E_SHAPE;
    int64_t r0, r1;
    ref_share(a, y.rows, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        float b[CHUNK];
        double max = -INFINITY, sum = 0;
        for (int pass = 0; pass < 3; pass++)
            for (int64_t c = 0; c < e->n; c += CHUNK) {
                int64_t len = e->n - c < CHUNK ? e->n - c : CHUNK;
                ref_load(ref_row(&x, r), x.dt, c, len, b);
                for (int64_t i = 0; i < len; i++) {
                    if (pass == 0)
                        max = (double)b[i] > max ? (double)b[i] : max;
                    else if (pass == 1)
                        sum += exp((double)b[i] - max);
                    else
                        b[i] = (float)(exp((double)b[i] - max) / sum);
                }
                if (pass == 2)
                    ref_store(ref_row(&y, r), y.dt, c, len, b);
            }
    }
    return RAD_OK;
}
