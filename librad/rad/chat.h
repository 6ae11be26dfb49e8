/* SPDX-License-Identifier: Apache-2.0 */
/* Chat templates: Jinja as Hugging Face transformers sets it up, in a sandbox.
 *
 * A template is compiled once; it is immutable then and shared: any number of
 * threads may render it at once. Rendering does no I/O (the clock of
 * strftime_now is an argument), and steps, memory, nesting and output are
 * bounded. Values go in as JSON text; integers and floating point numbers are
 * told apart, and the order of keys is kept.
 *
 * Status of a failed render:
 *   RAD_E_ARG          the template said no: raise_exception, whose text is the
 *                      error's text, unchanged
 *   RAD_E_FORMAT       an error in the template, or in what it was given, in
 *                      Python's words: "line 3: 'x' is undefined"; JSON that
 *                      cannot be read: "variables: 1:17: ..."
 *   RAD_E_FULL         a limit was reached: "line 3: more than 10000000 steps"
 *   RAD_E_UNSUPPORTED  something of Jinja or Python that is not here */
#ifndef RAD_CHAT_H
#define RAD_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rad/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_template;

/* 0 means the default. Start from RAD_TEMPLATE_LIMITS_INIT. */
struct rad_template_limits {
    uint32_t size;              /* sizeof(struct rad_template_limits) */
    uint32_t depth;             /* macros, recursive loops: 100 */
    uint64_t steps;             /* node evaluations: 10 million */
    uint64_t memory_bytes;      /* besides the variables' own: 64 MiB */
    uint64_t output_bytes;      /* 16 MiB */
};
#define RAD_TEMPLATE_LIMITS_INIT { sizeof(struct rad_template_limits), 0, 0, 0, 0 }

/* What strftime_now reads: local civil time. */
struct rad_template_clock {
    int year;                   /* 2026 */
    int month, day;             /* from 1 */
    int hour, minute, second, microsecond;
};

/* Rendered text: zero-initialise, release. `s` is NUL-terminated, and may hold
 * NUL bytes besides. */
struct rad_chat_text {
    char *s;
    size_t len;
};
void rad_chat_text_release(struct rad_chat_text *t);

/* `text` need not be kept. RAD_E_FORMAT: "line 3: ...". */
rad_status rad_template_compile(const char *text, size_t len, struct rad_template **out,
                                struct rad_err *err) RAD_MUSTCHECK;
void rad_template_free(struct rad_template *t);

/* Does the template read a variable of this name (that is not one of Jinja's
 * own)? For a server that wants to know whether "tools" or "enable_thinking"
 * would have an effect. */
bool rad_template_reads(const struct rad_template *t, const char *name);

/* Renders with the members of one JSON object as variables. `limits` and
 * `clock` may be NULL: defaults, the system's local time. On failure *out is
 * empty. */
rad_status rad_template_render(const struct rad_template *t, const char *vars, size_t vars_len,
                               const struct rad_template_limits *limits,
                               const struct rad_template_clock *clock,
                               struct rad_chat_text *out, struct rad_err *err) RAD_MUSTCHECK;

/* What a chat is rendered from. JSON texts are NUL-terminated. */
struct rad_chat {
    uint32_t size;              /* sizeof(struct rad_chat) */
    bool add_generation_prompt;
    const char *messages;       /* JSON array, required */
    const char *tools;          /* JSON array, or NULL: the variable is none */
    const char *documents;      /* JSON array, or NULL: the variable is none */
    const char *kwargs;         /* JSON object of more variables, or NULL; wins over the rest */
    const char *bos_token;      /* text, or NULL: the variable is undefined */
    const char *eos_token;
    const char *pad_token;
    const char *unk_token;
    const struct rad_template_limits *limits;   /* may be NULL */
    const struct rad_template_clock *clock;     /* may be NULL */
};
/* As transformers' apply_chat_template: nothing is added to the messages,
 * merged or dropped; what a template cannot take, it refuses. */
rad_status rad_chat_render(const struct rad_template *t, const struct rad_chat *c,
                           struct rad_chat_text *out, struct rad_err *err) RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
