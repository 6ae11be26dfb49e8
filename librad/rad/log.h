/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines go to one callback per process; commands send them to stderr.
 * RAD_LOG=kv:debug,plan:info (or just a level) selects what is passed on. */
#ifndef RAD_LOG_H
#define RAD_LOG_H

#include <rad/status.h>

enum rad_log_level {
    RAD_LOG_ERROR = 0,
    RAD_LOG_WARN = 1,
    RAD_LOG_INFO = 2,
    RAD_LOG_DEBUG = 3,
    RAD_LOG_TRACE = 4
};

typedef void rad_log_fn(void *user, enum rad_log_level level, const char *area,
                        const char *text);

/* NULL restores silence. Not thread-safe; call before threads start. */
void rad_log_set(rad_log_fn *fn, void *user);

/* Parses "LEVEL" or "AREA:LEVEL,...", as in RAD_LOG; NULL reads RAD_LOG. */
rad_status rad_log_select(const char *spec, struct rad_err *err);

/* True if a line of this area and level would be passed on. */
int rad_log_on(enum rad_log_level level, const char *area);

void rad_log(enum rad_log_level level, const char *area, const char *fmt, ...)
    RAD_PRINTF(3, 4);

/* Unlinks the partial output files of this process and returns how many.
 * Async-signal-safe: for the handlers of a command that is about to end. */
int rad_cleanup_files(void);

#endif
