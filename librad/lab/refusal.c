/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the wording of a refusal: the key's path, its value, the reason. What is
 * refused is a map's business. */
#include "config.h"

#include <cjson/cJSON.h>
#include <stdarg.h>

#include "lab/lab.h"

#include "banned.h"

rad_status lab_refuse(struct rad_err *err, rad_status st, const char *path, const struct cJSON *j,
                      const char *fmt, ...)
{
    struct radi_str s = { 0 };
    char buf[64];
    va_list ap;

    radi_str_addf(&s, "key '%.200s'", path);
    if (j)
        radi_str_addf(&s, " (%s)", radi_json_what(j, buf));
    radi_str_adds(&s, ": ");
    va_start(ap, fmt);
    radi_str_addv(&s, fmt, ap);
    va_end(ap);
    rad_fail(err, st, "%s", s.s ? s.s : path);
    radi_str_release(&s);
    return st;
}
