/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the log callback and the levels by area: the one process-wide state
 * that STYLE allows here. Set up before threads start, only read afterwards.
 * A line is at most LINE bytes; formatting allocates nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#include "banned.h"

enum { AREAS = 32, AREA_NAME = 24, LINE = 1024 };

static struct {
    rad_log_fn *fn;
    void *user;
    enum rad_log_level level;           /* of areas that are not named */
    size_t n;
    struct {
        char name[AREA_NAME];
        enum rad_log_level level;
    } area[AREAS];
} logs = { .level = RAD_LOG_WARN };

static const char *const level_names[] = {
    "error", "warn", "info", "debug", "trace",
};

void rad_log_set(rad_log_fn *fn, void *user)
{
    logs.fn = fn;
    logs.user = user;
}

static bool parse_level(const char *s, size_t n, enum rad_log_level *out)
{
    for (size_t i = 0; i < RADI_COUNT(level_names); i++)
        if (strlen(level_names[i]) == n && !memcmp(level_names[i], s, n)) {
            *out = (enum rad_log_level)i;
            return true;
        }
    return false;
}

static rad_status select_one(const char *s, size_t n, struct rad_err *err)
{
    const char *colon = memchr(s, ':', n);
    const char *level = colon ? colon + 1 : s;
    size_t name = colon ? (size_t)(colon - s) : 0, i;
    enum rad_log_level v;

    if (!parse_level(level, n - (size_t)(level - s), &v))
        return rad_fail(err, RAD_E_ARG, "log level '%.*s', want error, warn, "
                        "info, debug or trace",
                        (int)RADI_MIN(n - (size_t)(level - s), (size_t)40),
                        level);
    if (!colon) {
        logs.level = v;
        return RAD_OK;
    }
    if (name == 0 || name >= AREA_NAME)
        return rad_fail(err, RAD_E_ARG, "log area of %zu bytes, want 1 to %d",
                        name, AREA_NAME - 1);
    for (i = 0; i < logs.n; i++)
        if (strlen(logs.area[i].name) == name &&
            !memcmp(logs.area[i].name, s, name))
            break;
    if (i == AREAS)
        return rad_fail(err, RAD_E_ARG, "more than %d log areas", AREAS);
    if (i == logs.n)
        logs.n++;
    memcpy(logs.area[i].name, s, name);
    logs.area[i].name[name] = 0;
    logs.area[i].level = v;
    return RAD_OK;
}

rad_status rad_log_select(const char *spec, struct rad_err *err)
{
    if (!spec)
        spec = getenv("RAD_LOG");
    while (spec && *spec) {
        size_t n = strcspn(spec, ",");
        if (n)
            RAD_TRY(select_one(spec, n, err));
        spec += n + (spec[n] == ',');
    }
    return RAD_OK;
}

int rad_log_on(enum rad_log_level level, const char *area)
{
    if (!logs.fn)
        return 0;
    for (size_t i = 0; area && i < logs.n; i++)
        if (!strcmp(logs.area[i].name, area))
            return level <= logs.area[i].level;
    return level <= logs.level;
}

void rad_log(enum rad_log_level level, const char *area, const char *fmt, ...)
{
    char text[LINE] = "";
    va_list ap;

    if (!rad_log_on(level, area))
        return;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if (n >= LINE)
        memcpy(text + LINE - 4, "...", 4);
    logs.fn(logs.user, level, area ? area : "", text);
}
