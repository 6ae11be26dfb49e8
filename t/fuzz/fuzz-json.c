/* SPDX-License-Identifier: Apache-2.0 */
/* JSON from strangers. The first byte picks the flags. Whatever our checker
 * accepts, cJSON must have built (an out-of-memory report is a finding), and
 * accepted text must be UTF-8 without a NUL. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct cJSON *j)
{
    char buf[64];
    for (; j; j = j->next) {
        if (!radi_utf8_valid(radi_json_what(j, buf), strlen(buf)))
            abort();
        if (cJSON_IsString(j) &&
            !radi_utf8_valid(j->valuestring, strlen(j->valuestring)))
            abort();
        if (j->string && !radi_utf8_valid(j->string, strlen(j->string)))
            abort();
        walk(j->child);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct cJSON *j = NULL;

    if (size == 0)
        return 0;
    rad_status st = radi_json_parse((const char *)data + 1, size - 1, 1 << 20,
                                    data[0] & 7u, &j, &err);
    if ((st == RAD_OK) != (j != NULL) || st == RAD_E_NOMEM)
        abort();
    if (st != RAD_OK && !err.text[0])
        abort();
    if (st == RAD_OK && !(data[0] & RADI_JSON_COMMENTS) &&
        !radi_utf8_valid((const char *)data + 1, size - 1))
        abort();
    walk(j);
    radi_json_free(j);
    return 0;
}
