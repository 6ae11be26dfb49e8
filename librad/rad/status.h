/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and the error object that every call of librad takes last.
 *
 * The code tells a program what to do; the text tells a person. The numbers
 * are the plugin ABI's (reference: plugin ABI, "Error codes") and are never
 * reused. */
#ifndef RAD_STATUS_H
#define RAD_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rad_status {
    RAD_OK            = 0,
    RAD_E_SHAPE       = -1,
    RAD_E_DTYPE       = -2,
    RAD_E_ALIGN       = -3,
    RAD_E_STRIDE      = -4,
    RAD_E_SCRATCH     = -5,
    RAD_E_NOMEM       = -6,
    RAD_E_NOKERNEL    = -7,
    RAD_E_NOSCHEMA    = -8,
    RAD_E_SCHEMA      = -9,
    RAD_E_ABI         = -10,
    RAD_E_DUPLICATE   = -11,
    RAD_E_ARG         = -12,   /* also RAD_E_INVAL */
    RAD_E_INVAL       = -12,
    RAD_E_IO          = -13,
    RAD_E_FORMAT      = -14,
    RAD_E_DEVICE      = -15,
    RAD_E_STATE       = -16,
    RAD_E_NOTFOUND    = -17,
    RAD_E_UNSUPPORTED = -18,
    RAD_E_FULL        = -19,
    RAD_E_CANCELLED   = -20,
    RAD_E_MISMATCH    = -21    /* a check said no: digest, certificate, vectors */
} rad_status;

#define RAD_MUSTCHECK __attribute__((warn_unused_result))
#define RAD_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define RAD_ERR_TEXT 768

/* The caller owns it; no allocation. Zero-initialise before first use. */
struct rad_err {
    rad_status code;
    char text[RAD_ERR_TEXT];
};

/* The fixed text of a code, e.g. "no such kernel". Never NULL. */
const char *rad_strstatus(rad_status st);

/* Writes code and text into *err (which may be NULL) and returns the code. */
rad_status rad_fail(struct rad_err *err, rad_status st, const char *fmt, ...)
    RAD_PRINTF(3, 4);

/* Puts a place in front of the text that *err holds: "'file': <text>". */
rad_status rad_fail_in(struct rad_err *err, rad_status st, const char *fmt, ...)
    RAD_PRINTF(3, 4);

/* As rad_fail, with the text of errno behind it: "<text>: No such file". */
rad_status rad_fail_errno(struct rad_err *err, const char *fmt, ...)
    RAD_PRINTF(2, 3);

/* Passes a failure up as it is. */
#define RAD_TRY(call)                         \
    do {                                      \
        rad_status rad_try_st_ = (call);      \
        if (rad_try_st_ != RAD_OK)            \
            return rad_try_st_;               \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
