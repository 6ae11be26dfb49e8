/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the error object's text and the names of the status codes.
 *
 * Text is built in a local buffer first, so that arguments may point into the
 * very error that is being filled. Control characters become '?': names come
 * out of hostile files and end up on a terminal. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#include "banned.h"

static const struct {
    rad_status code;
    const char *text;
} status_names[] = {
    { RAD_OK,            "success" },
    { RAD_E_SHAPE,       "wrong shape" },
    { RAD_E_DTYPE,       "wrong data type" },
    { RAD_E_ALIGN,       "wrong alignment" },
    { RAD_E_STRIDE,      "wrong stride" },
    { RAD_E_SCRATCH,     "scratch too small" },
    { RAD_E_NOMEM,       "out of memory" },
    { RAD_E_NOKERNEL,    "no such kernel" },
    { RAD_E_NOSCHEMA,    "no such op schema" },
    { RAD_E_SCHEMA,      "op schema mismatch" },
    { RAD_E_ABI,         "ABI version mismatch" },
    { RAD_E_DUPLICATE,   "duplicate" },
    { RAD_E_ARG,         "invalid argument" },
    { RAD_E_IO,          "input or output error" },
    { RAD_E_FORMAT,      "malformed input" },
    { RAD_E_DEVICE,      "device error" },
    { RAD_E_STATE,       "wrong state" },
    { RAD_E_NOTFOUND,    "not found" },
    { RAD_E_UNSUPPORTED, "unsupported" },
    { RAD_E_FULL,        "full" },
    { RAD_E_CANCELLED,   "cancelled" },
    { RAD_E_MISMATCH,    "mismatch" },
};

const char *rad_strstatus(rad_status st)
{
    for (size_t i = 0; i < RADI_COUNT(status_names); i++)
        if (status_names[i].code == st)
            return status_names[i].text;
    return "unknown status";
}

/* Cleans s[0..len), which may have been cut at a size limit. */
static void tidy(char *s, size_t len, bool cut)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            s[i] = s[i] == '\n' ? ' ' : '?';
    if (!cut || len < 4)
        return;
    size_t end = len - 3;
    while (end > 0 && ((unsigned char)s[end] & 0xc0) == 0x80)
        end--;                      /* do not leave half a character */
    memcpy(s + end, "...", 4);
}

static void set_text(struct rad_err *err, const char *text, int want)
{
    size_t len = strnlen(text, RAD_ERR_TEXT - 1);
    memcpy(err->text, text, len);
    err->text[len] = 0;
    tidy(err->text, len, want >= RAD_ERR_TEXT);
}

rad_status rad_fail(struct rad_err *err, rad_status st, const char *fmt, ...)
{
    char text[RAD_ERR_TEXT] = "";
    va_list ap;

    if (!err)
        return st;
    va_start(ap, fmt);
    int want = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    set_text(err, text, want);
    err->code = st;
    return st;
}

rad_status rad_fail_in(struct rad_err *err, rad_status st, const char *fmt, ...)
{
    char place[RAD_ERR_TEXT] = "", text[RAD_ERR_TEXT];
    va_list ap;

    if (!err)
        return st;
    va_start(ap, fmt);
    int n = vsnprintf(place, sizeof(place), fmt, ap);
    va_end(ap);
    if (n < 0)
        place[0] = 0;
    int want = snprintf(text, sizeof(text), "%s: %s", place,
                        err->text[0] ? err->text : rad_strstatus(st));
    set_text(err, text, want);
    err->code = st;
    return st;
}

rad_status rad_fail_errno(struct rad_err *err, const char *fmt, ...)
{
    int e = errno;
    rad_status st = e == ENOMEM ? RAD_E_NOMEM :
                    e == ENOENT ? RAD_E_NOTFOUND : RAD_E_IO;
    char place[RAD_ERR_TEXT] = "", text[RAD_ERR_TEXT], why[128];
    va_list ap;

    if (!err)
        return st;
    va_start(ap, fmt);
    int n = vsnprintf(place, sizeof(place), fmt, ap);
    va_end(ap);
    if (n < 0)
        place[0] = 0;
    int want = snprintf(text, sizeof(text), "%s: %s", place,
                        strerror_r(e, why, sizeof(why)));
    set_text(err, text, want);
    err->code = st;
    return st;
}

_Noreturn void radi_bug(const char *file, int line, const char *cond)
{
    fprintf(stderr, "radiance: bug: %s:%d: %s\n", file, line, cond);
    abort();
}
