/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the radiance command share: the loaded model and its
 * defaults. Immutable once main has filled it. */
#ifndef RADIANCE_H
#define RADIANCE_H

#include <rad/chat.h>
#include <rad/engine.h>
#include <rad/model.h>
#include <rad/tokenizer.h>

struct radiance {
    const char *path;                  /* of the container */
    const char *name;                  /* served model name */
    struct rad_model *model;
    struct rad_tokenizer *tok;         /* NULL only for --debug-graph, --plan */
    struct rad_template *chat;         /* NULL: the model has no chat template */
    struct rad_engine *engine;
    struct rad_sampling sampling;      /* defaults of a request */
    int64_t default_max_tokens;        /* of a request that names none; 0: the context */
    const char *template_kwargs;       /* JSON object text, or NULL */
    const char *bos, *eos;             /* token texts for templates; "" when none */
};

struct radiance_prompt {               /* -p */
    const char *text;
    size_t len;
    int64_t max_tokens;
    const char *const *stop;
    int n_stop, logprobs;
    bool json, chat, ignore_eos;
};
/* Each prints its result on stdout and returns the exit code. */
int radiance_generate(const struct radiance *r, const struct radiance_prompt *p);
int radiance_score(const struct radiance *r, const char *file, int64_t max_tokens,
                   int64_t window, bool json);

struct radiance_http {
    const char *host;
    int port;
    const char *api_key;               /* NULL: none wanted */
    int64_t max_body_bytes, drain_ms;
    int max_connections, cors;
};
/* Serves until SIGTERM or SIGINT, drains, returns the exit code. */
int radiance_serve(const struct radiance *r, const struct radiance_http *h);

/* A variable of chat templates that no kwargs may set. */
bool radiance_own_variable(const char *name);

#endif
