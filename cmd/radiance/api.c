/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies: every field is honoured, inert, or refused by name. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cmd.h"
#include "server.h"

enum { MAX_DEPTH = 128, MAX_N = 64, MAX_STOP = 64, MAX_STOP_BYTES = 4096, MAX_NAME_BYTES = 256 };

/* The loop's thread reads bodies while streams wait for it: what cannot fit the
 * context anyway is refused before the work. */
enum { MIN_TEXT_BYTES = 1 << 20, MAX_TOKEN_BYTES = 256, MIN_VALUES = 1 << 16 };

/* What becomes of a field. */
enum { HONOURED = 1, INERT = 2, REFUSED = 3 };
enum { FOR_CHAT = API_CHAT, FOR_COMPLETION = API_COMPLETION, FOR_BOTH = 3 };
static const struct field { const char *name; int apis, fate; const char *why; } field[] = {
    { "model", FOR_BOTH, HONOURED, 0 }, { "stream", FOR_BOTH, HONOURED, 0 },
    { "stream_options", FOR_BOTH, HONOURED, 0 }, { "n", FOR_BOTH, HONOURED, 0 },
    { "seed", FOR_BOTH, HONOURED, 0 }, { "stop", FOR_BOTH, HONOURED, 0 },
    { "max_tokens", FOR_BOTH, HONOURED, 0 }, { "temperature", FOR_BOTH, HONOURED, 0 },
    { "top_p", FOR_BOTH, HONOURED, 0 }, { "top_k", FOR_BOTH, HONOURED, 0 },
    { "min_p", FOR_BOTH, HONOURED, 0 }, { "presence_penalty", FOR_BOTH, HONOURED, 0 },
    { "frequency_penalty", FOR_BOTH, HONOURED, 0 },
    { "repetition_penalty", FOR_BOTH, HONOURED, 0 },
    { "repeat_last_n", FOR_BOTH, HONOURED, 0 }, { "priority", FOR_BOTH, HONOURED, 0 },
    { "logprobs", FOR_BOTH, HONOURED, 0 }, { "ignore_eos", FOR_BOTH, HONOURED, 0 },
    { "messages", FOR_CHAT, HONOURED, 0 }, { "top_logprobs", FOR_CHAT, HONOURED, 0 },
    { "max_completion_tokens", FOR_CHAT, HONOURED, 0 },
    { "add_generation_prompt", FOR_CHAT, HONOURED, 0 },
    { "chat_template_kwargs", FOR_CHAT, HONOURED, 0 },
    { "prompt", FOR_COMPLETION, HONOURED, 0 }, { "echo", FOR_COMPLETION, HONOURED, 0 },
    { "user", FOR_BOTH, INERT, 0 }, { "metadata", FOR_BOTH, INERT, 0 },
    { "store", FOR_BOTH, INERT, 0 }, { "service_tier", FOR_BOTH, INERT, 0 },
    { "safety_identifier", FOR_BOTH, INERT, 0 }, { "prompt_cache_key", FOR_BOTH, INERT, 0 },
    { "tools", FOR_CHAT, REFUSED, "tool calls are not served" },
    { "tool_choice", FOR_CHAT, REFUSED, "tool calls are not served" },
    { "parallel_tool_calls", FOR_CHAT, REFUSED, "tool calls are not served" },
    { "response_format", FOR_CHAT, REFUSED, "only {\"type\": \"text\"} is served" },
    { "logit_bias", FOR_BOTH, REFUSED, "it is not served" },
    { "suffix", FOR_COMPLETION, REFUSED, "it is not served" },
    { "best_of", FOR_COMPLETION, REFUSED, "it is not served" },
    { "grammar", FOR_BOTH, REFUSED, "it is not served" },
};

static enum MHD_Result bad(struct request *r, const char *param, const char *code,
                           const char *fmt, ...) RAD_PRINTF(4, 5);
static enum MHD_Result bad(struct request *r, const char *param, const char *code,
                           const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return reply_error(r, 400, "invalid_request_error", code, param, "%s", text);
}

/* Depth, number of values and what cJSON cannot hold, before it sees the text. */
static const char *scan(const char *s, size_t n, int64_t max_values)
{
    int depth = 0;
    int64_t values = 0;
    bool str = false;
    for (size_t i = 0; i < n; i++) {
        if (!s[i])
            return "the body holds a NUL byte";
        if (str) {
            if (s[i] == '\\') {
                if (n - i > 5 && !memcmp(s + i, "\\u0000", 6))
                    return "the body holds \\u0000";
                i++;
            } else if (s[i] == '"') {
                str = false;
            }
        } else if (s[i] == '"') {
            str = true;
        } else if (s[i] == '{' || s[i] == '[') {
            if (++depth > MAX_DEPTH)
                return "the body is nested too deep";
        } else if (s[i] == '}' || s[i] == ']') {
            depth--;
        } else if (s[i] == ',' && ++values > max_values) {
            return "the body holds more values than any prompt of this context has tokens";
        }
    }
    return NULL;
}

static cJSON *parse_body(struct request *r, enum MHD_Result *res)
{
    int64_t max_values = MIN_VALUES + 2 * rad_engine_max_ctx(r->s->r->engine);
    const char *why = r->body.len ? scan(r->body.s, r->body.len, max_values) : "the body is empty";
    cJSON *j = NULL;
    if (!why) {
        const char *end = NULL;
        j = cJSON_ParseWithLengthOpts(r->body.s, r->body.len, &end, 0);
        while (j && *end && strchr(" \t\r\n", *end))
            end++;
        if (!j || *end)
            why = "the body is not JSON";
        else if (!cJSON_IsObject(j))
            why = "the body is not a JSON object";
    }
    if (why) {
        cJSON_Delete(j);
        *res = bad(r, NULL, NULL, "%s", why);
        return NULL;
    }
    return j;
}

/* Readers of one member; null counts as absent. False: *why names the fault. */
struct reader {
    const cJSON *obj;
    const char *param;
    char why[256];
};
static const cJSON *get(const struct reader *rd, const char *name)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(rd->obj, name);
    return j && !cJSON_IsNull(j) ? j : NULL;
}
static bool fault(struct reader *rd, const char *name, const char *want)
{
    rd->param = name;
    snprintf(rd->why, sizeof rd->why, "'%s': want %s", name, want);
    return false;
}
static bool real(struct reader *rd, const char *name, double lo, double hi, double *out)
{
    const cJSON *j = get(rd, name);
    char want[96];
    if (!j)
        return true;
    if (!cJSON_IsNumber(j) || !(j->valuedouble >= lo && j->valuedouble <= hi)) {
        snprintf(want, sizeof want, "a number from %g to %g", lo, hi);
        return fault(rd, name, want);
    }
    *out = j->valuedouble;
    return true;
}
static bool whole(struct reader *rd, const char *name, double lo, double hi, int64_t *out)
{
    const cJSON *j = get(rd, name);
    char want[96];
    if (!j)
        return true;
    if (!cJSON_IsNumber(j) || floor(j->valuedouble) != j->valuedouble ||
        !(j->valuedouble >= lo && j->valuedouble <= hi)) {
        snprintf(want, sizeof want, "a whole number from %.0f to %.0f", lo, hi);
        return fault(rd, name, want);
    }
    *out = (int64_t)j->valuedouble;
    return true;
}
static bool boolean(struct reader *rd, const char *name, bool *out)
{
    const cJSON *j = get(rd, name);
    if (!j)
        return true;
    if (!cJSON_IsBool(j))
        return fault(rd, name, "true or false");
    *out = cJSON_IsTrue(j);
    return true;
}

/* A refused field may be there when it asks for nothing. */
static bool asks_nothing(const cJSON *j)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(j, "type");
    if (!strcmp(j->string, "tool_choice"))
        return cJSON_IsString(j)
            && (!strcmp(j->valuestring, "none") || !strcmp(j->valuestring, "auto"));
    if (!strcmp(j->string, "response_format"))
        return cJSON_IsString(type) && !strcmp(type->valuestring, "text");
    if (!strcmp(j->string, "best_of"))
        return cJSON_IsNumber(j) && j->valuedouble == 1;
    return cJSON_IsBool(j) ? !strcmp(j->string, "parallel_tool_calls")
        : cJSON_IsArray(j) || cJSON_IsObject(j) ? !j->child
        : cJSON_IsString(j) && !j->valuestring[0];
}

static bool check_fields(struct reader *rd, enum api api, const char **code)
{
    for (const cJSON *j = rd->obj->child; j; j = j->next) {
        const struct field *f = NULL;
        for (size_t i = 0; i < sizeof field / sizeof *field; i++)
            if (!strcmp(field[i].name, j->string) && field[i].apis & (int)api)
                f = &field[i];
        if (cJSON_IsNull(j) || (f && f->fate != REFUSED) || (f && asks_nothing(j)))
            continue;
        *code = "unsupported_parameter";
        rd->param = j->string;
        snprintf(rd->why, sizeof rd->why, "'%.100s': %s", j->string,
                 f ? f->why : "this field is not known");
        return false;
    }
    return true;
}

static bool read_stop(struct reader *rd, const char **stop, int *n)
{
    const cJSON *j = get(rd, "stop");
    size_t bytes = 0;
    *n = 0;
    if (!j)
        return true;
    if (!cJSON_IsString(j) && !cJSON_IsArray(j))
        return fault(rd, "stop", "a string or a list of strings");
    for (const cJSON *k = cJSON_IsArray(j) ? j->child : j; k;
         k = cJSON_IsArray(j) ? k->next : NULL) {
        if (!cJSON_IsString(k) || !k->valuestring[0])
            return fault(rd, "stop", "strings that are not empty");
        bytes += strlen(k->valuestring);
        if (*n == MAX_STOP || bytes > MAX_STOP_BYTES)
            return fault(rd, "stop", "at most 64 strings of 4096 bytes together");
        stop[(*n)++] = k->valuestring;
    }
    return true;
}

static bool read_sampling(struct reader *rd, struct rad_sampling *s)
{
    int64_t seed = -1;
    if (!real(rd, "temperature", 0, 2, &s->temperature) ||
        !real(rd, "top_p", 1e-9, 1, &s->top_p) || !real(rd, "min_p", 0, 1, &s->min_p) ||
        !real(rd, "presence_penalty", -2, 2, &s->presence_penalty) ||
        !real(rd, "frequency_penalty", -2, 2, &s->frequency_penalty) ||
        !real(rd, "repetition_penalty", 1e-6, 100, &s->repetition_penalty) ||
        !whole(rd, "top_k", 0, 1024, &s->top_k) ||
        !whole(rd, "repeat_last_n", -1, INT32_MAX, &s->repeat_last_n) ||
        !whole(rd, "seed", -0x1p53, 0x1p53, &seed))
        return false;
    if (get(rd, "seed"))
        s->seed = (uint64_t)seed;
    else if (getrandom(&s->seed, sizeof s->seed, 0) != (ssize_t)sizeof s->seed)
        s->seed ^= (uint64_t)time(NULL);
    return true;
}

static rad_status encode(const struct server *s, const char *text, size_t n, unsigned flags,
                         struct rad_ids *ids, struct rad_err *err)
{
    int64_t ctx = rad_engine_max_ctx(s->r->engine), most = ctx * MAX_TOKEN_BYTES;
    if ((int64_t)n > (most > MIN_TEXT_BYTES ? most : MIN_TEXT_BYTES))
        return rad_fail(err, RAD_E_ARG, "the prompt has %zu bytes; the context holds %lld tokens", n,
                        (long long)ctx);
    return rad_tokenizer_encode(s->r->tok, text, n, flags, ids, err);
}

/* Text of a message list, or of a prompt, as token ids. */
static rad_status render(const struct server *s, const struct reader *rd, bool generation,
                         struct rad_ids *ids, struct rad_err *err)
{
    const cJSON *kw = get(rd, "chat_template_kwargs");
    cJSON *all = s->r->template_kwargs ? cJSON_Parse(s->r->template_kwargs) : NULL;
    for (const cJSON *k = kw ? kw->child : NULL; k; k = k->next) {
        if (!all)
            all = cJSON_CreateObject();
        cJSON_DeleteItemFromObjectCaseSensitive(all, k->string);
        cJSON_AddItemToObject(all, k->string, cJSON_Duplicate(k, 1));
    }
    char *kwargs = all ? cJSON_PrintUnformatted(all) : NULL;
    char *messages = cJSON_PrintUnformatted(get(rd, "messages"));
    cJSON_Delete(all);
    struct rad_chat_text text = { 0 };
    struct rad_chat chat = { .size = sizeof chat, .messages = messages, .kwargs = kwargs,
        .add_generation_prompt = generation, .bos_token = s->r->bos, .eos_token = s->r->eos };
    rad_status st = messages ? rad_chat_render(s->r->chat, &chat, &text, err)
                             : rad_fail(err, RAD_E_NOMEM, "out of memory");
    if (!st)
        st = encode(s, text.s, text.len, RAD_TOK_PARSE_SPECIAL, ids, err);
    rad_chat_text_release(&text);
    free(kwargs);
    free(messages);
    return st;
}

static bool check_messages(struct reader *rd)
{
    const cJSON *m = get(rd, "messages"), *kw = get(rd, "chat_template_kwargs");
    if (!cJSON_IsArray(m) || !m->child)
        return fault(rd, "messages", "a list of at least one message");
    for (const cJSON *k = m->child; k; k = k->next) {
        const cJSON *role = cJSON_GetObjectItemCaseSensitive(k, "role");
        cJSON *content = cJSON_GetObjectItemCaseSensitive(k, "content");
        if (!cJSON_IsObject(k) || !cJSON_IsString(role))
            return fault(rd, "messages", "objects with a role");
        static const char *const roles[] = { "system", "developer", "user", "assistant", "tool" };
        bool known = false;
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            known = known || !strcmp(role->valuestring, roles[i]);
        if (!known)
            return fault(rd, "messages", "a role of system, developer, user, assistant or tool");
        if (cJSON_IsArray(content)) {
            /* Text parts only: joined, which is what templates are written for. */
            struct buf all = { 0 };
            for (const cJSON *p = content->child; p; p = p->next) {
                const cJSON *t = cJSON_GetObjectItemCaseSensitive(p, "text");
                const cJSON *ty = cJSON_GetObjectItemCaseSensitive(p, "type");
                if (!cJSON_IsString(t) || !cJSON_IsString(ty) || strcmp(ty->valuestring, "text")) {
                    buf_release(&all);
                    return fault(rd, "messages", "content parts of type text");
                }
                buf_adds(&all, t->valuestring);
            }
            cJSON_ReplaceItemInObjectCaseSensitive((cJSON *)(uintptr_t)k, "content",
                                                   cJSON_CreateString(all.s ? all.s : ""));
            buf_release(&all);
        } else if (!cJSON_IsString(content)) {
            return fault(rd, "messages", "content that is a string or a list of text parts");
        }
    }
    if (kw && !cJSON_IsObject(kw))
        return fault(rd, "chat_template_kwargs", "an object");
    for (const cJSON *k = kw ? kw->child : NULL; k; k = k->next)
        if (radiance_own_variable(k->string))
            return fault(rd, "chat_template_kwargs", "no variable that the server sets itself");
    return true;
}

static bool check_prompt(struct reader *rd)
{
    const cJSON *p = get(rd, "prompt");
    if (cJSON_IsArray(p)) {
        if (cJSON_GetArraySize(p) == 1 && cJSON_IsString(p->child))
            return true;
        for (const cJSON *k = p->child; k; k = k->next)
            if (!cJSON_IsNumber(k))
                return fault(rd, "prompt", "one string, or one list of token ids");
        return p->child || fault(rd, "prompt", "a list that is not empty");
    }
    return cJSON_IsString(p) || fault(rd, "prompt", "a string or a list of token ids");
}

static rad_status encode_prompt(struct request *r, const cJSON *p, struct rad_ids *ids,
                                struct rad_err *err)
{
    const struct rad_tokenizer *tok = r->s->r->tok;
    if (cJSON_IsArray(p) && !cJSON_IsString(p->child)) {
        ids->id = malloc((size_t)cJSON_GetArraySize(p) * sizeof *ids->id);
        if (!ids->id)
            return rad_fail(err, RAD_E_NOMEM, "out of memory");
        for (const cJSON *k = p->child; k; k = k->next) {
            if (floor(k->valuedouble) != k->valuedouble || fabs(k->valuedouble) > INT32_MAX)
                return rad_fail(err, RAD_E_ARG, "'prompt': %g is no token id", k->valuedouble);
            ids->id[ids->n++] = (int32_t)k->valuedouble;
        }
        struct rad_tok_text t = { 0 };
        rad_status st = rad_tokenizer_decode(tok, ids->id, ids->n, 0, &t, err);
        r->prompt_text = st ? NULL : strndup(t.s ? t.s : "", t.len);
        rad_tok_text_release(&t);
        return st;
    }
    const char *text = cJSON_IsArray(p) ? p->child->valuestring : p->valuestring;
    r->prompt_text = strdup(text);
    return encode(r->s, text, strlen(text), RAD_TOK_ADD_SPECIAL, ids, err);
}

static void make_id(struct request *r)
{
    unsigned char b[12] = { 0 };
    if (getrandom(b, sizeof b, 0) < 0)
        memcpy(b, &r->start_ns, sizeof r->start_ns);
    int at = snprintf(r->id, sizeof r->id, "%s-", r->api == API_CHAT ? "chatcmpl" : "cmpl");
    for (size_t i = 0; i < sizeof b; i++)
        at += snprintf(r->id + at, sizeof r->id - (size_t)at, "%02x", b[i]);
}

static enum MHD_Result submit_failed(struct request *r, rad_status st, const struct rad_err *err)
{
    if (st == RAD_E_FULL) {
        atomic_fetch_add(&r->s->metrics.admission_rejected, 1);
        return reply_error(r, 429, "rate_limit_error", "server_overloaded", NULL, "%s", err->text);
    }
    if (st == RAD_E_NOMEM)
        return reply_error(r, 500, "internal_server_error", NULL, NULL, "%s", err->text);
    return bad(r, NULL, NULL, "%s", err->text);
}

static rad_status start_choices(struct request *r, const struct rad_request_opts *q,
                                const char **stop, int n_stop, struct rad_err *err)
{
    rad_status st = RAD_OK;
    for (int i = 0; i < r->n_choice && !st; i++) {
        struct choice *c = &r->choice[i];
        c->r = r;
        c->index = i;
        st = rad_text_new(r->s->r->tok, stop, n_stop, 1, &c->text, err);
    }
    /* All texts exist before the first token can come. */
    pthread_mutex_lock(&r->lock);
    r->left = r->n_choice;
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->n_choice && !st; i++) {
        struct rad_request_opts o = *q;
        o.sampling.seed += (uint64_t)i;
        o.sink = output_token;
        o.user = &r->choice[i];
        request_ref(r);
        st = rad_engine_submit(r->s->r->engine, &o, &r->choice[i].id, err);
        if (st)
            request_unref(r);
        else
            r->submitted++;
    }
    return st;
}

enum MHD_Result api_generate(struct request *r, enum api api)
{
    enum MHD_Result res = MHD_NO;
    struct server *s = r->s;
    struct rad_err err = { 0 };
    struct rad_ids ids = { 0 };
    const char *stop[MAX_STOP], *code = NULL;
    int n_stop = 0;
    if (s->stopping)
        return reply_error(r, 503, "server_error", "stopping", NULL, "the server is stopping");
    if (api == API_CHAT && !s->r->chat)
        return reply_error(r, 501, "not_implemented_error", NULL, NULL,
                           "the model has no chat template");
    cJSON *body = parse_body(r, &res);
    if (!body)
        return res;
    struct reader rd = { .obj = body };
    struct rad_request_opts q = { .size = sizeof q, .sampling = s->r->sampling };
    int64_t n = 1, max = -1, priority = 0, top = 0;
    bool stream = false, ignore_eos = false, generation = true;
    const cJSON *options, *model, *lp;
    r->api = api;
    bool ok = check_fields(&rd, api, &code) && read_sampling(&rd, &q.sampling) &&
        whole(&rd, "n", 1, MAX_N, &n) && whole(&rd, "max_tokens", 0, INT32_MAX, &max) &&
        whole(&rd, "max_completion_tokens", 0, INT32_MAX, &max) &&
        whole(&rd, "priority", -1000, 1000, &priority) && boolean(&rd, "stream", &stream) &&
        boolean(&rd, "ignore_eos", &ignore_eos) && read_stop(&rd, stop, &n_stop);
    model = get(&rd, "model");
    if (ok && model && (!cJSON_IsString(model) || strlen(model->valuestring) > MAX_NAME_BYTES))
        ok = fault(&rd, "model", "a string of at most 256 bytes");
    options = get(&rd, "stream_options");
    if (ok && options) {
        struct reader in = { .obj = options };
        ok = (cJSON_IsObject(options) && stream)
            || fault(&rd, "stream_options", "stream true, and an object");
        if (ok && !boolean(&in, "include_usage", &r->include_usage))
            ok = fault(&rd, "stream_options", "include_usage true or false");
        /* Obfuscation pads events; there is none here to turn off. */
        for (const cJSON *k = options->child; ok && k; k = k->next)
            if (strcmp(k->string, "include_usage") && strcmp(k->string, "include_obfuscation"))
                ok = fault(&rd, "stream_options", "no member but include_usage");
    }
    lp = get(&rd, "logprobs");
    if (ok && api == API_CHAT) {
        ok = check_messages(&rd) && boolean(&rd, "logprobs", &r->logprobs) &&
            whole(&rd, "top_logprobs", 0, 20, &top) &&
            boolean(&rd, "add_generation_prompt", &generation);
        if (ok && top && !r->logprobs)
            ok = fault(&rd, "top_logprobs", "logprobs true beside it");
    } else if (ok) {
        ok = check_prompt(&rd) && boolean(&rd, "echo", &r->echo) &&
            whole(&rd, "logprobs", 0, 5, &top);
        r->logprobs = lp != NULL;
        if (ok && r->logprobs && r->echo)
            ok = fault(&rd, "logprobs", "no echo beside it: a prompt's are not served");
    }
    if (!ok) {
        res = bad(r, rd.param, code, "%s", rd.why);
        cJSON_Delete(body);
        return res;
    }
    r->top_logprobs = (int)top;
    r->model = strdup(model ? model->valuestring : s->r->name);
    r->created = (int64_t)time(NULL);
    r->n_choice = (int)n;
    r->choice = calloc((size_t)n, sizeof *r->choice);
    make_id(r);
    rad_status st = r->model && r->choice
        ? api == API_CHAT ? render(s, &rd, generation, &ids, &err)
                          : encode_prompt(r, get(&rd, "prompt"), &ids, &err)
        : rad_fail(&err, RAD_E_NOMEM, "out of memory");
    int64_t ctx = rad_engine_max_ctx(s->r->engine);
    if (st) {
        res = st == RAD_E_NOMEM ? submit_failed(r, st, &err)
            : bad(r, api == API_CHAT ? "messages" : "prompt", NULL, "%s", err.text);
    } else if ((int64_t)ids.n >= ctx) {
        res = bad(r, api == API_CHAT ? "messages" : "prompt", "context_length_exceeded",
                  "the prompt has %zu tokens; the context holds %lld and must leave room for one: "
                  "%lld too many", ids.n, (long long)ctx, (long long)((int64_t)ids.n - ctx + 1));
    } else {
        r->n_prompt = (int64_t)ids.n;
        q.ids = ids.id;
        q.n_ids = (int64_t)ids.n;
        q.max_tokens = max >= 0 ? max : s->r->default_max_tokens;
        if (max == 0)
            q.max_tokens = -1;         /* the engine's 0 is "up to the context" */
        q.ignore_eos = ignore_eos;
        q.priority = (int)priority;
        q.logprobs = r->logprobs;
        q.top_logprobs = r->top_logprobs;
        r->streaming = stream;
        st = start_choices(r, &q, stop, n_stop, &err);
        if (st) {
            r->refused = true;
            for (int i = 0; i < r->submitted; i++)
                rad_engine_cancel(s->r->engine, r->choice[i].id);
            res = submit_failed(r, st, &err);
        } else if (stream) {
            res = reply_stream(r);
        } else {
            request_suspend(r);
            res = MHD_YES;
        }
    }
    rad_ids_release(&ids);
    cJSON_Delete(body);
    return res;
}

enum MHD_Result api_finish(struct request *r)
{
    struct buf out = { 0 };
    pthread_mutex_lock(&r->lock);
    bool failed = r->failed;
    if (!failed)
        output_whole(r, &out);
    pthread_mutex_unlock(&r->lock);
    if (failed)
        return reply_error(r, 500, "internal_server_error", NULL, NULL, "%s", r->error);
    return reply(r, 200, "application/json", &out);
}

static void model_entry(const struct server *s, struct buf *b)
{
    buf_adds(b, "{\"id\":");
    buf_json(b, s->r->name, strlen(s->r->name));
    buf_addf(b, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"radiance\","
             "\"max_model_len\":%lld}",
             (long long)rad_engine_max_ctx(s->r->engine));
}

enum MHD_Result api_models(struct request *r, const char *id)
{
    struct buf out = { 0 };
    if (id && strcmp(id, r->s->r->name))
        return reply_error(r, 404, "not_found_error", "model_not_found", "model",
                           "no model '%.200s'; there is '%s'", id, r->s->r->name);
    if (!id)
        buf_adds(&out, "{\"object\":\"list\",\"data\":[");
    model_entry(r->s, &out);
    if (!id)
        buf_adds(&out, "]}");
    return reply(r, 200, "application/json", &out);
}

enum MHD_Result api_tokenize(struct request *r)
{
    enum MHD_Result res = MHD_NO;
    struct server *s = r->s;
    struct rad_err err = { 0 };
    struct rad_ids ids = { 0 };
    cJSON *body = parse_body(r, &res);
    if (!body)
        return res;
    struct reader rd = { .obj = body };
    static const char *const known[] = { "model", "prompt", "content", "messages",
        "add_special_tokens", "add_special", "add_generation_prompt", "chat_template_kwargs",
        "return_token_strs", "parse_special" };
    bool generation = true, special = true, strs = false, parse = true, ok = true;
    for (const cJSON *j = body->child; j && ok; j = j->next) {
        bool is = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is = is || !strcmp(j->string, known[i]);
        if (!is) {
            rd.param = j->string;
            snprintf(rd.why, sizeof rd.why, "'%.100s': this field is not known", j->string);
            ok = false;
        }
    }
    const cJSON *text = get(&rd, "prompt") ? get(&rd, "prompt") : get(&rd, "content");
    const cJSON *messages = get(&rd, "messages");
    ok = ok && boolean(&rd, "add_generation_prompt", &generation) &&
        boolean(&rd, "add_special_tokens", &special) && boolean(&rd, "add_special", &special) &&
        boolean(&rd, "parse_special", &parse) && boolean(&rd, "return_token_strs", &strs);
    if (ok && (text != NULL) == (messages != NULL))
        ok = fault(&rd, "prompt", "either prompt or messages");
    if (ok && text && !cJSON_IsString(text))
        ok = fault(&rd, "prompt", "a string");
    if (ok && messages)
        ok = check_messages(&rd);
    rad_status st = RAD_OK;
    if (ok && messages && !s->r->chat)
        st = rad_fail(&err, RAD_E_UNSUPPORTED, "the model has no chat template");
    else if (ok && messages)
        st = render(s, &rd, generation, &ids, &err);
    else if (ok)
        st = encode(s, text->valuestring, strlen(text->valuestring),
                    (special ? RAD_TOK_ADD_SPECIAL : 0u) | (parse ? RAD_TOK_PARSE_SPECIAL : 0u),
                    &ids, &err);
    struct buf out = { 0 };
    if (!ok || st) {
        res = bad(r, rd.param, NULL, "%s", ok ? err.text : rd.why);
    } else {
        buf_addf(&out, "{\"count\":%zu,\"max_model_len\":%lld,\"tokens\":[", ids.n,
                 (long long)rad_engine_max_ctx(s->r->engine));
        for (size_t i = 0; i < ids.n; i++)
            buf_addf(&out, "%s%d", i ? "," : "", ids.id[i]);
        buf_adds(&out, "],\"token_strs\":");
        buf_adds(&out, strs ? "[" : "null}");
        for (size_t i = 0; strs && i < ids.n; i++) {
            size_t len;
            const char *t = rad_tokenizer_text(s->r->tok, ids.id[i], &len);
            buf_adds(&out, i ? "," : "");
            buf_json(&out, t ? t : "", t ? len : 0);
        }
        buf_adds(&out, strs ? "]}" : "");
        res = reply(r, 200, "application/json", &out);
    }
    rad_ids_release(&ids);
    cJSON_Delete(body);
    return res;
}

enum MHD_Result api_detokenize(struct request *r)
{
    enum MHD_Result res = MHD_NO;
    struct rad_err err = { 0 };
    struct rad_tok_text text = { 0 };
    cJSON *body = parse_body(r, &res);
    if (!body)
        return res;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(body, "tokens");
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1, k = 0;
    int32_t *id = n >= 0 ? calloc((size_t)n + 1, sizeof *id) : NULL;
    bool ok = id != NULL;
    for (const cJSON *j = ok ? list->child : NULL; j && ok; j = j->next) {
        ok = cJSON_IsNumber(j) && floor(j->valuedouble) == j->valuedouble &&
            fabs(j->valuedouble) <= INT32_MAX;
        id[k++] = ok ? (int32_t)j->valuedouble : 0;
    }
    if (!ok)
        res = bad(r, "tokens", NULL, "'tokens': want a list of token ids");
    else if (rad_tokenizer_decode(r->s->r->tok, id, (size_t)n, 0, &text, &err))
        res = bad(r, "tokens", NULL, "'tokens': %s", err.text);
    else {
        struct buf out = { 0 };
        buf_adds(&out, "{\"prompt\":");
        buf_json(&out, text.s ? text.s : "", text.len);
        buf_adds(&out, ",\"content\":");
        buf_json(&out, text.s ? text.s : "", text.len);
        buf_adds(&out, "}");
        res = reply(r, 200, "application/json", &out);
    }
    rad_tok_text_release(&text);
    free(id);
    cJSON_Delete(body);
    return res;
}
