/* SPDX-License-Identifier: Apache-2.0 */
/* The recording builder of lab-fake.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab-fake.h"

static int is(const char *a, const char *b)
{
    return a && !strcmp(a, b);
}

const char *fake_param_str(const struct fake_op *o, const char *key)
{
    const RadParam *p = rad_param(o->param, o->n_params, key);
    return p ? o->sval[p - o->param] : "";
}

int64_t fake_param_int(const struct fake_op *o, const char *key)
{
    return rad_param_int(o->param, o->n_params, key, -1);
}

int rad_decl_name_map(RadBuilder *b, const RadNameMap *m)
{
    (void)m;
    b->n_maps++;
    return 0;
}

rad_weight rad_decl_weight(RadBuilder *b, const char *name, const RadWeightDecl *d)
{
    if (is(b->absent, name) || (d->optional && !is(b->absent, "+") &&
                                !(b->absent && b->absent[0] == '+' && is(b->absent + 1, name))))
        return RAD_NULL_HANDLE;
    snprintf(b->weight[b->n_weights], sizeof(b->weight[0]), "%s", name);
    return b->n_weights++;
}

rad_weight rad_decl_constant(RadBuilder *b, const char *name, int32_t dtype, int32_t rank,
                             const int64_t *shape, const void *data)
{
    (void)dtype, (void)rank, (void)shape, (void)data;
    snprintf(b->weight[b->n_weights], sizeof(b->weight[0]), "%s", name);
    return b->n_weights++;
}

rad_buf rad_decl_buffer(RadBuilder *b, const char *name, const RadBufferDecl *d)
{
    (void)name;
    b->buffer[b->n_buffers] = *d;
    return b->n_buffers++;
}

rad_kv rad_decl_kv_group(RadBuilder *b, const char *name, const RadKvGroupDecl *d)
{
    (void)name;
    b->kv[b->n_kv] = *d;
    return b->n_kv++;
}

int rad_bind_layer_kv(RadBuilder *b, int32_t layer, rad_kv g)
{
    (void)layer, (void)g;
    b->n_layers++;
    return 0;
}

int64_t rad_kv_block_size(RadBuilder *b, rad_kv g)
{
    return b->block[g];
}

rad_op rad_decl_op(RadBuilder *b, const char *op, const RadParam *p, int n_p,
                   const rad_weight *w, int n_w)
{
    struct fake_op *o = &b->op[b->n_ops];
    snprintf(o->name, sizeof(o->name), "%s", op);
    o->n_params = n_p;
    for (int i = 0; i < n_p; i++) {
        o->param[i] = p[i];
        snprintf(o->sval[i], sizeof(o->sval[i]), "%s", p[i].sval ? p[i].sval : "");
    }
    o->n_w = n_w;
    for (int i = 0; i < n_w; i++)
        o->w[i] = w[i];
    return b->n_ops++;
}

void rad_op_reads(RadBuilder *b, rad_op op, const rad_buf *bufs, int n)
{
    (void)b, (void)op, (void)bufs, (void)n;
}

void rad_op_writes(RadBuilder *b, rad_op op, const rad_buf *bufs, int n)
{
    (void)b, (void)op, (void)bufs, (void)n;
}

void rad_op_kv(RadBuilder *b, rad_op op, rad_kv g)
{
    if (is(b->op[op].name, "attn_paged"))
        b->block[g] = 16;
}

int rad_op_resolved(RadBuilder *b, rad_op op)
{
    b->op[op].asked = 1;
    return !is(b->unresolved, b->op[op].name);
}

int rad_op_declared(RadBuilder *b, const char *op)
{
    return !is(b->undeclared, op);
}

void rad_declare_logits(RadBuilder *b, rad_buf buf)
{
    b->logits = buf;
}

void rad_note(RadBuilder *b, const char *fmt, ...)
{
    (void)b, (void)fmt;
}

int rad_declare_fail(RadBuilder *b, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->message, sizeof(b->message), fmt, ap);
    va_end(ap);
    b->failed = status;
    return status;
}

void rad_set_state(RadBuilder *b, void *state, void (*fini)(void *))
{
    b->state = state;
    b->fini = fini;
}

int rad_issue(RadCtx *c, rad_op op, const RadOperand *opd, int n_opd, int64_t n)
{
    struct fake_issue *i = &c->issue[c->n_issues];
    if (c->n_issues == c->fail_at)
        return RAD_E_SHAPE;
    c->n_issues++;
    i->op = op;
    i->n = n;
    i->n_opd = n_opd;
    memcpy(i->opd, opd, (size_t)n_opd * sizeof(*opd));
    return 0;
}

void *rad_state(RadCtx *c)
{
    return c->b->state;
}
