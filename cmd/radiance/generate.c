/* SPDX-License-Identifier: Apache-2.0 */
/* -p and --score: one request to stdout, without a server. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cmd.h"
#include "json.h"
#include "radiance.h"

/* What the engine's thread hands to main. */
struct output {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct rad_text *text;
    bool stream, done, failed;
    struct rad_tok_text all;
    cJSON *ids, *logprobs;
    enum rad_finish finish;
    int64_t n_prompt, n_output;
    char error[RAD_ERR_TEXT];
};

static int append(struct rad_tok_text *t, const char *s, size_t n)
{
    char *p = realloc(t->s, t->len + n + 1);
    if (!p)
        return 1;
    memcpy(p + t->len, s, n);
    t->s = p;
    t->len += n;
    p[t->len] = 0;
    return 0;
}

static int emit(struct output *o, const char *s, size_t n)
{
    if (!n)
        return 0;
    if (o->stream)
        return fwrite(s, 1, n, stdout) != n || fflush(stdout) != 0;
    return append(&o->all, s, n);
}

static void put_text(void *user, const char *s, size_t n)
{
    if (append(user, s, n))
        cmd_die("out of memory");
}

/* As JSON, quotes and all; cJSON's own strings end at a NUL. */
static struct rad_tok_text quoted(const char *s, size_t n)
{
    struct rad_tok_text t = { 0 };
    cmd_json_quote(put_text, &t, s, n);
    return t;
}

static void add_logprob(const struct output *o, const struct rad_token_event *ev)
{
    cJSON *e = cJSON_CreateObject(), *top = cJSON_CreateArray();
    cJSON_AddNumberToObject(e, "id", ev->id);
    cJSON_AddNumberToObject(e, "logprob", (double)ev->logprob);
    for (int i = 0; i < ev->n_top; i++) {
        cJSON *t = cJSON_CreateObject();
        cJSON_AddNumberToObject(t, "id", ev->top[i].id);
        cJSON_AddNumberToObject(t, "logprob", (double)ev->top[i].logprob);
        cJSON_AddItemToArray(top, t);
    }
    cJSON_AddItemToObject(e, "top", top);
    cJSON_AddItemToArray(o->logprobs, e);
}

static int on_token(void *user, const struct rad_token_event *ev)
{
    struct output *o = user;
    struct rad_err err = { 0 };
    const char *s;
    size_t n;
    int stopped = 0;
    if (ev->done) {
        if (!rad_text_finish(o->text, &s, &n, &err))
            o->failed |= emit(o, s, n);
        pthread_mutex_lock(&o->lock);
        o->finish = ev->finish;
        o->n_prompt = ev->n_prompt;
        o->n_output = ev->n_output;
        if (ev->error)
            snprintf(o->error, sizeof o->error, "%s", ev->error);
        o->done = true;
        pthread_cond_signal(&o->more);
        pthread_mutex_unlock(&o->lock);
        return 0;
    }
    cJSON_AddItemToArray(o->ids, cJSON_CreateNumber(ev->id));
    add_logprob(o, ev);
    if (rad_text_push(o->text, ev->id, &s, &n, &stopped, &err)) {
        snprintf(o->error, sizeof o->error, "%s", err.text);
        return 1;
    }
    o->failed |= emit(o, s, n);            /* a closed pipe ends the request */
    return stopped || o->failed;
}

static rad_status encode_prompt(const struct radiance *r, const struct radiance_prompt *p,
                                struct rad_ids *ids, struct rad_err *err)
{
    if (!p->chat)
        return rad_tokenizer_encode(r->tok, p->text, p->len, RAD_TOK_ADD_SPECIAL, ids, err);
    if (!r->chat)
        return rad_fail(err, RAD_E_UNSUPPORTED, "--chat: the model has no chat template");
    struct rad_tok_text content = quoted(p->text, p->len), messages = { 0 };
    static const char head[] = "[{\"role\":\"user\",\"content\":", tail[] = "}]";
    put_text(&messages, head, sizeof head - 1);
    put_text(&messages, content.s, content.len);
    put_text(&messages, tail, sizeof tail - 1);
    struct rad_chat_text text = { 0 };
    struct rad_chat in = { .size = sizeof in, .messages = messages.s, .add_generation_prompt = true,
                           .kwargs = r->template_kwargs, .bos_token = r->bos, .eos_token = r->eos };
    rad_status st = rad_chat_render(r->chat, &in, &text, err);
    /* The template writes its own special tokens. */
    if (!st)
        st = rad_tokenizer_encode(r->tok, text.s, text.len, RAD_TOK_PARSE_SPECIAL, ids, err);
    rad_chat_text_release(&text);
    free(content.s);
    free(messages.s);
    return st;
}

static const char *const finish_name[] = { "none", "stop", "length", "cancelled", "error" };

static void print_json(const struct radiance *r, struct output *o, const struct rad_ids *ids)
{
    cJSON *j = cJSON_CreateObject(), *prompt = cJSON_CreateArray(), *usage = cJSON_CreateObject();
    for (size_t i = 0; i < ids->n; i++)
        cJSON_AddItemToArray(prompt, cJSON_CreateNumber(ids->id[i]));
    cJSON_AddStringToObject(j, "model", r->name);
    cJSON_AddItemToObject(j, "prompt_ids", prompt);
    cJSON_AddItemToObject(j, "ids", o->ids);
    struct rad_tok_text text = quoted(o->all.s ? o->all.s : "", o->all.len);
    cJSON_AddRawToObject(j, "text", text.s);
    free(text.s);
    cJSON_AddItemToObject(j, "logprobs", o->logprobs);
    cJSON_AddStringToObject(j, "finish_reason", finish_name[o->finish]);
    cJSON_AddNumberToObject(usage, "prompt_tokens", (double)o->n_prompt);
    cJSON_AddNumberToObject(usage, "completion_tokens", (double)o->n_output);
    cJSON_AddItemToObject(j, "usage", usage);
    o->ids = o->logprobs = NULL;
    char *s = cJSON_PrintUnformatted(j);
    if (s)
        puts(s);
    cJSON_free(s);
    cJSON_Delete(j);
}

int radiance_generate(const struct radiance *r, const struct radiance_prompt *p)
{
    struct rad_err err = { 0 };
    struct rad_ids ids = { 0 };
    struct output o = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER,
                        .stream = !p->json, .ids = cJSON_CreateArray(),
                        .logprobs = cJSON_CreateArray() };
    if (encode_prompt(r, p, &ids, &err) ||
        rad_text_new(r->tok, p->stop, p->n_stop, 1, &o.text, &err))
        cmd_die_err(&err);
    struct rad_request_opts q = {
        .size = sizeof q, .ids = ids.id, .n_ids = (int64_t)ids.n,
        .max_tokens = p->max_tokens ? p->max_tokens : r->default_max_tokens,
        .sampling = r->sampling, .logprobs = p->json, .top_logprobs = p->logprobs,
        .ignore_eos = p->ignore_eos, .sink = on_token, .user = &o,
    };
    if (rad_engine_submit(r->engine, &q, NULL, &err))
        cmd_die_err(&err);
    pthread_mutex_lock(&o.lock);
    while (!o.done)
        pthread_cond_wait(&o.more, &o.lock);
    pthread_mutex_unlock(&o.lock);
    if (o.finish == RAD_FINISH_ERROR || o.error[0])
        cmd_die("%s", o.error);
    if (p->json)
        print_json(r, &o, &ids);
    else if (!o.failed)
        putchar('\n');
    cJSON_Delete(o.ids);
    cJSON_Delete(o.logprobs);
    rad_text_free(o.text);
    rad_ids_release(&ids);
    free(o.all.s);
    return CMD_OK;
}

/* ---- perplexity */
struct score {
    pthread_mutex_t lock;
    pthread_cond_t more;
    const int32_t *ids;                /* of this window */
    int64_t n;
    double nll;
    int64_t scored;
    bool done;
    char error[RAD_ERR_TEXT];
};

static void on_logits(void *user, int64_t pos, const float *l, int64_t vocab)
{
    struct score *s = user;
    if (pos + 1 >= s->n)
        return;
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < vocab; i++)
        max = (double)l[i] > max ? (double)l[i] : max;
    for (int64_t i = 0; i < vocab; i++)
        sum += exp((double)l[i] - max);
    s->nll += max + log(sum) - (double)l[s->ids[pos + 1]];
    s->scored++;
}

static int on_scored(void *user, const struct rad_token_event *ev)
{
    struct score *s = user;
    pthread_mutex_lock(&s->lock);
    if (ev->done) {
        if (ev->error)
            snprintf(s->error, sizeof s->error, "%s", ev->error);
        s->done = true;
        pthread_cond_signal(&s->more);
    }
    pthread_mutex_unlock(&s->lock);
    return 0;
}

int radiance_score(const struct radiance *r, const char *file, int64_t max_tokens,
                   int64_t window, bool json)
{
    struct rad_err err = { 0 };
    struct rad_ids ids = { 0 };
    size_t len = 0;
    char *text = cmd_read_file(file, SIZE_MAX / 2, &len);
    if (rad_tokenizer_encode(r->tok, text, len, RAD_TOK_ADD_SPECIAL, &ids, &err))
        cmd_die_err(&err);
    free(text);
    int64_t n = (int64_t)ids.n;
    if (max_tokens && n > max_tokens)
        n = max_tokens;
    if (n < 2)
        cmd_die("'%s': %lld tokens, want at least 2", file, (long long)n);
    struct score s = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };
    struct cmd_progress bar;
    cmd_progress_begin(&bar, "scoring", (uint64_t)n);
    int64_t windows = 0;
    for (int64_t at = 0; at + 1 < n; at += window) {
        s.ids = ids.id + at;
        s.n = n - at < window ? n - at : window;
        s.done = false;
        struct rad_request_opts q = { .size = sizeof q, .ids = s.ids, .n_ids = s.n,
            .max_tokens = -1, .sink = on_scored, .logits = on_logits, .user = &s };
        rad_sampling_default(&q.sampling);
        if (rad_engine_submit(r->engine, &q, NULL, &err))
            cmd_die_err(&err);
        pthread_mutex_lock(&s.lock);
        while (!s.done)
            pthread_cond_wait(&s.more, &s.lock);
        pthread_mutex_unlock(&s.lock);
        if (s.error[0])
            cmd_die("%s", s.error);
        cmd_progress_at(&bar, (uint64_t)(at + s.n));
        windows++;
    }
    cmd_progress_end(&bar);
    double ppl = exp(s.nll / (double)s.scored);
    if (json)
        printf("{\"perplexity\":%.17g,\"nll\":%.17g,\"tokens\":%lld,\"scored\":%lld,"
               "\"windows\":%lld,\"window\":%lld}\n", ppl, s.nll, (long long)n,
               (long long)s.scored, (long long)windows, (long long)window);
    else
        printf("perplexity %.4f over %lld tokens, %lld windows of %lld\n", ppl,
               (long long)s.scored, (long long)windows, (long long)window);
    rad_ids_release(&ids);
    return CMD_OK;
}
