/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's template on a small fixed conversation: compiles and renders, or
 * says why not. The same template renders to the same text twice, and text is
 * UTF-8. Small limits keep each run short. */
#include <stdlib.h>

#include <rad/chat.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char vars[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be \\u00e9 <b>.\"},{\"role\":\"user\","
    "\"content\":[{\"type\":\"text\",\"text\":\"hi\\n\"}],\"n\":1},{\"role\":\"assistant\","
    "\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1.5,"
    "\"b\":[true,-3]}}}],\"n\":2}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
    "\"parameters\":{}}}],"
    "\"s\":\"  A b,\\u00df\\ud83d\\ude00 'q'\\t\",\"l\":[3,1,2],\"d\":{\"b\":2,"
    "\"a\":\"x\"},\"i\":7,\"f\":2.5,\"add_generation_prompt\":true,\"bos_token\":\"<s>\"}";

static const struct rad_template_clock now = { 2026, 1, 15, 12, 30, 0, 0 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_template_limits lim = RAD_TEMPLATE_LIMITS_INIT;
    struct rad_err err = { 0 };
    struct rad_template *t = NULL;
    struct rad_chat_text a = { 0 }, b = { 0 };

    lim.steps = 20000;
    lim.memory_bytes = 1 << 20;
    lim.output_bytes = 1 << 16;
    rad_status st = rad_template_compile((const char *)data, size, &t, &err);
    if ((st == RAD_OK) != (t != NULL) || st == RAD_E_NOMEM || (st && !err.text[0]))
        abort();
    if (st)
        return 0;
    st = rad_template_render(t, vars, sizeof vars - 1, &lim, &now, &a, &err);
    if ((st == RAD_OK) != (a.s != NULL) || st == RAD_E_NOMEM)
        abort();
    if (st && st != RAD_E_ARG && !err.text[0])
        abort();
    if (!st && (a.s[a.len] || !radi_utf8_valid(a.s, a.len)))
        abort();
    if (rad_template_render(t, vars, sizeof vars - 1, &lim, &now, &b, &err) != st ||
        a.len != b.len || (a.len && memcmp(a.s, b.s, a.len)))
        abort();
    rad_chat_text_release(&a);
    rad_chat_text_release(&b);
    rad_template_free(t);
    return 0;
}
