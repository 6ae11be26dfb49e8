/* SPDX-License-Identifier: Apache-2.0 */
/* From token events to OpenAI's JSON. Runs on the engine's thread: appends to
 * the request under its lock, never waits for a client. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "server.h"

static const char *const finish_name[] = { "stop", "stop", "length", "abort", "error" };

/* The token's own bytes; may be part of a character. */
static void piece(const struct rad_tokenizer *t, int32_t id, struct rad_tok_text *out)
{
    out->len = 0;
    if (rad_tokenizer_piece(t, id, out, NULL))
        out->len = 0;
}

static void json_bytes(struct buf *b, const struct rad_tok_text *t)
{
    buf_adds(b, "[");
    for (size_t i = 0; i < t->len; i++)
        buf_addf(b, "%s%u", i ? "," : "", (unsigned char)t->s[i]);
    buf_adds(b, "]");
}

static void chat_logprob(struct choice *c, const struct rad_token_event *ev)
{
    const struct rad_tokenizer *tok = c->r->s->r->tok;
    struct rad_tok_text t = { 0 };
    struct buf *b = &c->logprobs;
    piece(tok, ev->id, &t);
    buf_adds(b, b->len ? ",{\"token\":" : "{\"token\":");
    buf_json(b, t.s ? t.s : "", t.len);
    buf_addf(b, ",\"logprob\":%.9g,\"bytes\":", (double)ev->logprob);
    json_bytes(b, &t);
    buf_adds(b, ",\"top_logprobs\":[");
    for (int i = 0; i < ev->n_top; i++) {
        piece(tok, ev->top[i].id, &t);
        buf_adds(b, i ? ",{\"token\":" : "{\"token\":");
        buf_json(b, t.s ? t.s : "", t.len);
        buf_addf(b, ",\"logprob\":%.9g,\"bytes\":", (double)ev->top[i].logprob);
        json_bytes(b, &t);
        buf_adds(b, "}");
    }
    buf_adds(b, "]}");
    rad_tok_text_release(&t);
}

static void completion_logprob(struct choice *c, const struct rad_token_event *ev)
{
    const struct rad_tokenizer *tok = c->r->s->r->tok;
    struct rad_tok_text t = { 0 };
    const char *comma = c->tokens.len ? "," : "";
    piece(tok, ev->id, &t);
    buf_adds(&c->tokens, comma);
    buf_json(&c->tokens, t.s ? t.s : "", t.len);
    buf_addf(&c->token_lp, "%s%.9g", comma, (double)ev->logprob);
    buf_addf(&c->offsets, "%s%zu", comma, c->text_len);
    for (size_t i = 0; i < t.len; i++)     /* characters, as Python counts */
        c->text_len += (t.s[i] & 0xc0) != 0x80;
    buf_addf(&c->tops, "%s{", comma);
    for (int i = 0; i < ev->n_top; i++) {
        piece(tok, ev->top[i].id, &t);
        buf_adds(&c->tops, i ? "," : "");
        buf_json(&c->tops, t.s ? t.s : "", t.len);
        buf_addf(&c->tops, ":%.9g", (double)ev->top[i].logprob);
    }
    buf_adds(&c->tops, "}");
    rad_tok_text_release(&t);
}

/* The logprobs gathered since the last time, as a member's value. */
static void take_logprobs(struct choice *c, struct buf *out)
{
    if (!c->r->logprobs) {
        buf_adds(out, "null");
    } else if (c->r->api == API_CHAT) {
        buf_adds(out, "{\"content\":[");
        buf_add(out, c->logprobs.s ? c->logprobs.s : "", c->logprobs.len);
        buf_adds(out, "],\"refusal\":null}");
        c->logprobs.len = 0;
    } else {
        const struct { const char *name; struct buf *b; } list[] = {
            { "tokens", &c->tokens }, { "token_logprobs", &c->token_lp },
            { "top_logprobs", &c->tops }, { "text_offset", &c->offsets },
        };
        for (int i = 0; i < 4; i++) {
            buf_addf(out, "%s\"%s\":[", i ? "," : "{", list[i].name);
            buf_add(out, list[i].b->s ? list[i].b->s : "", list[i].b->len);
            buf_adds(out, "]");
            list[i].b->len = 0;
        }
        buf_adds(out, "}");
    }
}

static void chunk_head(struct request *r, struct buf *out)
{
    buf_addf(out, "data: {\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", r->id,
             r->api == API_CHAT ? "chat.completion.chunk" : "text_completion",
             (long long)r->created);
    buf_json(out, r->model, strlen(r->model));
}

/* One streamed event of a choice. role: the first of a chat. */
static void chunk(struct choice *c, bool role, const char *text, size_t n, const char *finish)
{
    struct request *r = c->r;
    struct buf *out = &r->out;
    chunk_head(r, out);
    buf_addf(out, ",\"choices\":[{\"index\":%d,", c->index);
    if (r->api == API_CHAT) {
        buf_adds(out, "\"delta\":{");
        if (role)
            buf_adds(out, "\"role\":\"assistant\",\"content\":\"\"");
        else if (n || !finish) {
            buf_adds(out, "\"content\":");
            buf_json(out, text, n);
        }
        buf_adds(out, "}");
    } else {
        buf_adds(out, "\"text\":");
        buf_json(out, text, n);
    }
    buf_adds(out, ",\"logprobs\":");
    if (role)
        buf_adds(out, "null");
    else
        take_logprobs(c, out);
    buf_adds(out, ",\"finish_reason\":");
    if (finish)
        buf_addf(out, "\"%s\"", finish);
    else
        buf_adds(out, "null");
    buf_adds(out, "}]}\n\n");
}

static void add_usage(const struct request *r, struct buf *out)
{
    int64_t n = 0;
    for (int i = 0; i < r->n_choice; i++)
        n += r->choice[i].n_output;
    buf_addf(out, "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
             "\"total_tokens\":%lld,\"prompt_tokens_details\":{\"cached_tokens\":0}}",
             (long long)r->n_prompt, (long long)n, (long long)(r->n_prompt + n));
}

static void stream_start(struct choice *c)
{
    if (c->started)
        return;
    c->started = true;
    if (c->r->api == API_CHAT)
        chunk(c, true, "", 0, NULL);
    else if (c->r->echo)
        chunk(c, false, c->r->prompt_text, strlen(c->r->prompt_text), NULL);
}

static void stream_end(struct request *r)
{
    if (r->failed) {
        buf_adds(&r->out, "data: {\"error\":{\"message\":");
        buf_json(&r->out, r->error, strlen(r->error));
        buf_adds(&r->out, ",\"type\":\"internal_server_error\",\"param\":null,\"code\":null}}\n\n");
    } else if (r->include_usage) {
        chunk_head(r, &r->out);
        buf_adds(&r->out, ",\"choices\":[],");
        add_usage(r, &r->out);
        buf_adds(&r->out, "}\n\n");
    }
    buf_adds(&r->out, "data: [DONE]\n\n");
}

static void observe(struct choice *c)
{
    struct metrics *m = &c->r->s->metrics;
    /* An answer without a visible token took its time all the same. */
    if (c->finish == RAD_FINISH_STOP || c->finish == RAD_FINISH_LENGTH)
        metrics_observe(m, HIST_E2E, (double)(cmd_now_ns() - c->r->start_ns) * 1e-9);
    if (!c->first_ns)
        return;
    metrics_observe(m, HIST_TTFT, (double)(c->first_ns - c->r->start_ns) * 1e-9);
    if (c->n_output > 1)
        metrics_observe(m, HIST_PER_TOKEN,
                        (double)(c->last_ns - c->first_ns) * 1e-9 / (double)(c->n_output - 1));
}

static void done(struct choice *c, const struct rad_token_event *ev)
{
    struct request *r = c->r;
    const char *s;
    size_t n;
    struct rad_err err = { 0 };
    c->n_output = ev->n_output;
    c->finish = c->stopped ? RAD_FINISH_STOP : ev->finish;
    if (ev->finish == RAD_FINISH_ERROR && !r->failed) {
        r->failed = true;
        rad_fail(&err, RAD_E_STATE, "%s", ev->error ? ev->error : "the request failed");
        memcpy(r->error, err.text, sizeof r->error);
    }
    if (rad_text_finish(c->text, &s, &n, &err))
        n = 0;
    if (r->streaming) {
        stream_start(c);
        if (n)
            chunk(c, false, s, n, NULL);
        if (!r->failed)
            chunk(c, false, "", 0, finish_name[c->finish]);
    } else {
        buf_add(&c->content, s, n);
    }
    c->done = true;
    observe(c);
    if (--r->left == 0 && r->streaming)
        stream_end(r);
}

int output_token(void *user, const struct rad_token_event *ev)
{
    struct choice *c = user;
    struct request *r = c->r;
    struct rad_err err = { 0 };
    const char *s = "";
    size_t n = 0;
    int stopped = 0;
    pthread_mutex_lock(&r->lock);
    if (ev->done) {
        done(c, ev);
        server_ready(r);
        pthread_mutex_unlock(&r->lock);
        request_unref(r);
        return 0;
    }
    c->last_ns = cmd_now_ns();
    if (!c->first_ns)
        c->first_ns = c->last_ns;
    if (r->logprobs && r->api == API_CHAT)
        chat_logprob(c, ev);
    else if (r->logprobs)
        completion_logprob(c, ev);
    if (rad_text_push(c->text, ev->id, &s, &n, &stopped, &err)) {
        r->failed = true;
        memcpy(r->error, err.text, sizeof r->error);
        stopped = 1;
    }
    c->stopped = stopped;
    if (r->streaming) {
        bool first = !c->started;
        stream_start(c);
        if (n)
            chunk(c, false, s, n, NULL);
        if (n || first)
            server_ready(r);
    } else {
        buf_add(&c->content, s, n);
    }
    pthread_mutex_unlock(&r->lock);
    return stopped;
}

void output_whole(struct request *r, struct buf *out)
{
    buf_addf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", r->id,
             r->api == API_CHAT ? "chat.completion" : "text_completion", (long long)r->created);
    buf_json(out, r->model, strlen(r->model));
    buf_adds(out, ",\"choices\":[");
    for (int i = 0; i < r->n_choice; i++) {
        struct choice *c = &r->choice[i];
        buf_addf(out, "%s{\"index\":%d,", i ? "," : "", c->index);
        buf_adds(out, r->api == API_CHAT
                 ? "\"message\":{\"role\":\"assistant\",\"refusal\":null,\"content\":"
                 : "\"text\":");
        if (r->api == API_COMPLETION && r->echo) {
            struct buf all = { 0 };
            buf_adds(&all, r->prompt_text);
            buf_add(&all, c->content.s, c->content.len);
            buf_json(out, all.s ? all.s : "", all.len);
            out->failed |= all.failed;
            buf_release(&all);
        } else {
            buf_json(out, c->content.s ? c->content.s : "", c->content.len);
        }
        buf_adds(out, r->api == API_CHAT ? "},\"logprobs\":" : ",\"logprobs\":");
        take_logprobs(c, out);
        buf_addf(out, ",\"finish_reason\":\"%s\"}", finish_name[c->finish]);
        out->failed |= c->content.failed;
    }
    buf_adds(out, "],");
    add_usage(r, out);
    buf_adds(out, "}");
}
