/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that expr.c makes of an expression's text and eval.c walks. */
#ifndef RADI_LAB_EXPR_H
#define RADI_LAB_EXPR_H

#include "lab/lab.h"

enum op {
    X_LIT, X_NAME, X_KEY, X_LIST, X_COND, X_COALESCE, X_OR, X_AND, X_NOT,
    X_EQ, X_NE, X_LT, X_LE, X_GT, X_GE, X_IN, X_NOTIN,
    X_ADD, X_SUB, X_MUL, X_DIV, X_MOD, X_NEG, X_AT, X_CALL
};

struct lab_ex {
    enum op op;
    int fn, n;
    struct lab_ex **arg;
    struct lab_val lit;
    const char *text;           /* name; of the root: the source */
};

enum { FN_MIN, FN_MAX, FN_DIV, FN_SQRT, FN_LN, FN_POW, FN_FLOOR, FN_CEIL, FN_REAL, FN_INT,
       FN_LEN, FN_HAS, FN_CAT, FN_CHAR, FN_HIGHEST, FN_INDEX, FN_STARTS };

#endif
