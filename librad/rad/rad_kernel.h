/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel ABI: op schemas and rows.
 *
 * An op is a name plus a schema: an ordered list of operands and an unordered
 * list of parameters. A row implements one op under constraints. Parameters
 * are read once, at resolve, into the row's own struct; a launch gets that
 * struct, its operands by position, and nothing by name. */
#ifndef RAD_KERNEL_H
#define RAD_KERNEL_H

#include <rad/rad_encoding.h>
#include <rad/rad_plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameters */
typedef enum RadParamKind {
    RAD_PK_INT = 1,
    RAD_PK_STR = 2,
    RAD_PK_RANGE = 3,     /* [ival, ihi]; at most one an op */
    RAD_PK_REAL = 4       /* never constrained */
} RadParamKind;

typedef struct RadParam {
    const char *key;
    int32_t kind;
    int64_t ival, ihi;
    const char *sval;
    double dval;
} RadParam;

/* Getters for a row's parse hook. An absent key gives the default; a range
 * read as an integer gives its upper bound (the band's). */
static inline const RadParam *rad_param(const RadParam *p, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(p[i].key, key))
            return &p[i];
    return NULL;
}
static inline int64_t rad_param_int(const RadParam *p, int n, const char *key, int64_t def)
{
    const RadParam *q = rad_param(p, n, key);
    return !q ? def : q->kind == RAD_PK_RANGE ? q->ihi : q->ival;
}
static inline double rad_param_real(const RadParam *p, int n, const char *key, double def)
{
    const RadParam *q = rad_param(p, n, key);
    return !q ? def : q->kind == RAD_PK_REAL ? q->dval : (double)q->ival;
}
static inline const char *rad_param_str(const RadParam *p, int n, const char *key, const char *def)
{
    const RadParam *q = rad_param(p, n, key);
    return q && q->sval ? q->sval : def;
}

/* ---- schemas */
enum { RAD_PARAM_OPTIONAL = 0, RAD_PARAM_REQUIRED = 1, RAD_PARAM_DERIVED = 2 };
/* RAD_PROLE: what the core itself reads of a parameter. */
enum { RAD_PROLE_NONE = 0, RAD_PROLE_SEQ_CHUNK = 1, RAD_PROLE_CAPACITY = 2 };
enum { RAD_OPD_IN = 0, RAD_OPD_OUT = 1, RAD_OPD_INOUT = 2, RAD_OPD_WEIGHT = 3, RAD_OPD_TABLE = 4 };

typedef struct RadParamSpec {
    const char *key;
    int32_t kind;         /* RadParamKind */
    int32_t need;         /* RAD_PARAM_* */
    int32_t role;         /* RAD_PROLE_* */
} RadParamSpec;

typedef struct RadOperandSpec {
    const char *name;
    int32_t role;         /* RAD_OPD_* */
    int32_t optional;
} RadOperandSpec;

typedef struct RadOpSchema {
    uint32_t struct_size;
    const char *op;
    const RadParamSpec *params;
    int32_t n_params;
    const RadOperandSpec *operands;
    int32_t n_operands;
    double tolerance;     /* relative L2 error against the reference library */
    const char *doc;      /* the op's meaning in one line, with shapes */
} RadOpSchema;

/* ---- rows */
enum { RAD_DOMAIN_HOST = 0, RAD_DOMAIN_DEVICE = 1 };
enum { RAD_C_EQ = 0, RAD_C_LE = 1, RAD_C_GE = 2, RAD_C_DIV = 3, RAD_C_IN = 4 };

typedef struct RadConstraint {   /* a key the op does not carry does not hold */
    const char *key;
    int32_t op;
    int64_t ival;
    const char *sval;            /* IN: space-separated set; EQ on a string */
} RadConstraint;

typedef struct RadDerived {      /* a derived parameter's value in this row */
    const char *key;
    int64_t value;
} RadDerived;

typedef struct RadAxis {         /* a tunable: values arrive as INT parameters */
    const char *key;
    const int64_t *values;
    int32_t n_values;
    int64_t def;
    const char *doc;
} RadAxis;

typedef struct RadLaunch {
    uint32_t struct_size;
    int32_t n_opd;
    const RadTensor *opd;        /* in schema order; absent optionals are empty */
    const void *params;          /* the row's own struct, filled by parse */
    void *scratch;               /* shared by all parts */
    size_t scratch_bytes;
    void *instance;              /* from init, or NULL */
    int64_t n;                   /* ranged value of this call */
    int32_t rank, world_size;
    int32_t part, parts;         /* host domain: this thread's share */
    void *stream;                /* device domain */
} RadLaunch;

/* Bytes a launch must move and operations it must do, at its operands' sizes.
 * ops counts multiplies and adds apart (one MAC is two). */
typedef struct RadCost {
    uint64_t bytes;
    uint64_t ops;
} RadCost;

/* What a kernel stores for a weight operand instead of canonical planes. */
typedef struct RadLayoutDesc {
    uint32_t tag;                /* equal tags of one plugin: same bytes */
    int32_t dtype, rank;
    int64_t shape[RAD_MAX_RANK];
    uint64_t align, bytes;
} RadLayoutDesc;

typedef struct RadCodec {
    /* RAD_OK: *out says what is stored. RAD_E_UNSUPPORTED: read the planes as
     * they are. RAD_E_DTYPE: this row cannot read that encoding and is no
     * candidate. RAD_E_SHAPE: not at this geometry. */
    int (*layout)(const void *params, int operand, const RadEncoding *enc,
                  int64_t rows, int64_t cols, RadLayoutDesc *out);
    int (*relayout)(const void *params, int operand, const RadEncoding *enc,
                    const void *const plane[], int64_t rows, int64_t cols,
                    void *dst, int part, int parts);
    int (*unrelayout)(const void *params, int operand, const RadEncoding *enc,
                      int64_t rows, int64_t cols, const void *src, void *plane[]);
} RadCodec;

/* One step of the chain of ordinary ops that a fused row equals byte for byte.
 * opd[i]: operand index of the fused op, -2-t for temporary t, -1 absent. */
typedef struct RadFusionStep {
    const char *op;
    RadParam param[12];
    int32_t n_param;
    int32_t opd[16];
    int32_t n_opd;
} RadFusionStep;

typedef struct RadKernelRow {
    uint32_t struct_size;
    const char *name;            /* STYLE §8: op_x_w_y_tile_isa */
    const char *op;
    int32_t domain;
    int32_t rank;                /* priority inside a library; higher wins */
    const RadConstraint *constraints;
    int32_t n_constraints;
    const RadDerived *derived;
    int32_t n_derived;
    const RadAxis *axes;
    int32_t n_axes;
    int (*tune_valid)(const RadParam *p, int n);
    /* Parameters -> the row's struct of params_size bytes (zeroed before).
     * A negative return refuses this geometry: the row is no candidate. */
    size_t params_size;
    int (*parse)(const RadParam *p, int n, void *out);
    int (*init)(const void *params, int rank, int world_size, void **instance);
    void (*fini)(void *instance);
    /* Host: called once a part, concurrently; writes only its share of the
     * outputs; bits must not depend on parts. No allocation, no waiting. */
    int (*launch)(const RadLaunch *a);
    /* Bytes for the band's upper bound; sees no operands. */
    size_t (*scratch)(const void *params, int parts);
    int (*cost)(const void *params, const RadTensor *opd, int n_opd, RadCost *out);
    const RadCodec *codec;       /* NULL: reads canonical planes of any
                                    encoding that librad decodes */
    int (*replaces)(const void *params, uint64_t present, int step, RadFusionStep *out);
} RadKernelRow;

/* ---- exports of a kernel plugin */
int rad_kernel_schema_count(void);
const RadOpSchema *rad_kernel_schema_at(int i);
int rad_kernel_count(void);
const RadKernelRow *rad_kernel_at(int i);
int rad_kernel_concurrent(int i);     /* row i touches only operands and scratch */
int rad_plugin_reference(void);       /* 1: an oracle library, last in the order */

#ifdef __cplusplus
}
#endif
#endif
