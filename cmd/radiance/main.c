/* SPDX-License-Identifier: Apache-2.0 */
/* The server command: options, start-up, and which of the three jobs it does:
 * generate (-p), score (--score), or serve. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "cmd.h"
#include "radiance.h"

enum { O_HOME = 256, O_KERNELS, O_MAX_CTX, O_MAX_SEQS, O_MAX_TOK, O_CHUNK, O_STEP_MS, O_KV_DTYPE, O_ACT_DTYPE,
       O_KV_TOKENS, O_DEVICE, O_CHAT, O_TEMP, O_TOP_K, O_TOP_P, O_MIN_P, O_REP, O_PRES, O_FREQ,
       O_LAST_N, O_STOP, O_IGNORE_EOS, O_LOGPROBS, O_SCORE, O_SCORE_TOK, O_WINDOW, O_HOST, O_PORT,
       O_API_KEY, O_NAME, O_QUEUE, O_BODY, O_CONN, O_NO_CORS, O_DRAIN, O_TEMPLATE, O_KWARGS,
       O_GRAPH, O_PLAN };

enum { MOST_TEXT = 16 << 20 };          /* bytes of a prompt or template */

static const struct cmd_opt opt[] = {
    { 'm', "model", "FILE", "the container to load" },
    CMD_THREADS,
    { 'p', "prompt", "TEXT", "generate from TEXT to stdout; '-' reads stdin" },
    { 'n', "max-tokens", "N", "most tokens to generate; of a request that names none" },
    { O_CHAT, "chat", NULL, "with -p: TEXT is a user's message, through the chat template" },
    { O_SCORE, "score", "FILE", "print the perplexity of FILE; '-' is stdin" },
    { O_SCORE_TOK, "score-tokens", "N", "with --score: only the first N tokens" },
    { O_WINDOW, "score-window", "N", "with --score: tokens a window (default: the context)" },
    { O_TEMP, "temp", "X", "temperature; 0 is greedy" },
    { O_TOP_K, "top-k", "N", "keep the N most likely tokens; 0 is off" },
    { O_TOP_P, "top-p", "X", "keep the shortest prefix of probability X" },
    { O_MIN_P, "min-p", "X", "keep tokens at least X times as likely as the first" },
    { O_REP, "repetition-penalty", "X", "divide the logits of seen tokens" },
    { O_PRES, "presence-penalty", "X", "subtract X once from seen tokens" },
    { O_FREQ, "frequency-penalty", "X", "subtract X per occurrence" },
    { O_LAST_N, "repeat-last-n", "N", "tokens that count as seen; -1 is all" },
    CMD_SEED,
    { O_STOP, "stop", "TEXT", "with -p: stop before TEXT; repeatable" },
    { O_IGNORE_EOS, "ignore-eos", NULL, "with -p: go on after an end token" },
    { O_LOGPROBS, "logprobs", "N", "with -p --json: the N likeliest of each place" },
    CMD_JSON,
    { O_HOST, "host", "ADDR", "address to listen at (default 127.0.0.1)" },
    { O_PORT, "port", "N", "port to listen at (default 8000)" },
    { O_API_KEY, "api-key", "KEY", "clients must send this key" },
    { O_NAME, "served-model-name", "NAME", "the model's name in the APIs" },
    { O_QUEUE, "max-queued-requests", "N", "waiting requests (default 8 a sequence)" },
    { O_BODY, "max-body-mib", "N", "largest request body (default 64)" },
    { O_CONN, "max-connections", "N", "open connections (default 1024)" },
    { O_NO_CORS, "no-cors", NULL, "send no CORS headers" },
    { O_DRAIN, "drain-seconds", "N", "at SIGTERM, wait this long for requests (default 30)" },
    { O_TEMPLATE, "override-chat-template", "FILE", "the chat template, instead of the model's" },
    { O_KWARGS, "chat-template-kwargs", "JSON", "variables for the chat template" },
    { O_MAX_CTX, "max-model-len", "N", "context limit (default: the model's, at most 8192)" },
    { O_MAX_SEQS, "max-num-seqs", "N", "running sequences (default 16)" },
    { O_MAX_TOK, "max-num-batched-tokens", "N", "tokens a step (default 512)" },
    { O_CHUNK, "prefill-chunk", "N", "prompt tokens of one sequence a step" },
    { O_STEP_MS, "step-ms", "N", "time that a step with prompts should take (default 300; 0: any)" },
    { O_KV_DTYPE, "kv-cache-dtype", "f32|bf16|f16", "element of the KV cache (default f32)" },
    { O_ACT_DTYPE, "act-dtype", "f32|bf16", "element of the activations (default f32)" },
    { O_KV_TOKENS, "kv-tokens", "N", "tokens the KV cache holds" },
    { O_DEVICE, "device", "host|test", "where the model runs (default host)" },
    { O_HOME, "home", "DIRS", "plugin search path, instead of RADIANCE_HOME" },
    { O_KERNELS, "kernels", "A,B", "order of the kernel libraries" },
    { O_GRAPH, "debug-graph", NULL, "print every op and its kernel, and stop" },
    { O_PLAN, "plan", NULL, "print the memory plan as JSON, and stop" },
    CMD_COMMON,
    { 0 },
};
static const struct cmd cmd = {
    .name = "radiance", .about = "run and serve language models", .opt = opt,
    .usage = "[-qv] [-j THREADS] [--host ADDR] [--port N] -m FILE\n"
             "[-qv] [-j THREADS] [-n N] [--chat] [--json] -p TEXT -m FILE\n"
             "[-qv] [-j THREADS] [--json] --score FILE -m FILE\n"
             "--plan -m FILE\n"
             "--debug-graph -m FILE",
};

/* What the command line says; NaN and INT64_MIN: not given. */
struct given {
    double temp, top_p, min_p, rep, pres, freq;
    int64_t top_k, last_n, seed;
};

static double meta_f64(const struct rad_model *m, const char *key, double def)
{
    const char *s;
    char *end;
    if (rad_model_meta_str(m, key, &s, NULL))
        return def;
    double v = strtod(s, &end);
    return *s && !*end ? v : def;
}

/* Built-in values, then the container's generation.*, then the flags. A value
 * of the container's that makes no sense is dropped with a warning. */
static void sampling_defaults(struct radiance *r, const struct given *g)
{
    struct rad_sampling *s = &r->sampling;
    rad_sampling_default(s);
    const struct { const char *key; double *to, lo, hi, flag; } real[] = {
        { "temperature", &s->temperature, 0, 100, g->temp },
        { "top_p", &s->top_p, 1e-9, 1, g->top_p },
        { "min_p", &s->min_p, 0, 1, g->min_p },
        { "repetition_penalty", &s->repetition_penalty, 1e-6, 100, g->rep },
        { "presence_penalty", &s->presence_penalty, -100, 100, g->pres },
        { "frequency_penalty", &s->frequency_penalty, -100, 100, g->freq },
    };
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        char key[64];
        snprintf(key, sizeof key, "generation.%s", real[i].key);
        double v = meta_f64(r->model, key, *real[i].to);
        if (v >= real[i].lo && v <= real[i].hi)
            *real[i].to = v;
        else
            rad_log(RAD_LOG_WARN, "radiance", "'%s' of the model is %g: ignored", key, v);
        if (real[i].flag == real[i].flag)
            *real[i].to = real[i].flag;
    }
    double k = meta_f64(r->model, "generation.top_k", 0);
    s->top_k = k >= 0 && k <= 1024 ? (int64_t)k : 0;
    if (g->top_k != INT64_MIN)
        s->top_k = g->top_k;
    if (g->last_n != INT64_MIN)
        s->repeat_last_n = g->last_n;
    s->seed = g->seed == INT64_MIN ? (uint64_t)time(NULL) : (uint64_t)g->seed;
}

/* A tokenizer that no longer encodes as it did when the file was made would
 * serve fluent nonsense; the file's own vectors tell. */
static void check_certificate(const struct radiance *r)
{
    struct rad_err err = { 0 };
    const void *cert;
    size_t n, vectors = 0;
    rad_model_certificate(r->model, &cert, &n);
    if (n && rad_tokenizer_certificate_check(r->tok, cert, n, &vectors, &err)) {
        rad_fail_in(&err, err.code, "'%s': tokenizer certificate", r->path);
        cmd_die_err(&err);
    }
    rad_log(RAD_LOG_DEBUG, "radiance", "tokenizer: %zu certified vectors agree", vectors);
}

static void load_template(struct radiance *r, const char *file)
{
    struct rad_err err = { 0 };
    char *own = file ? cmd_read_file(file, MOST_TEXT, NULL) : NULL;
    const char *text = own ? own : rad_tokenizer_chat_template(r->tok);
    if (text && rad_template_compile(text, strlen(text), &r->chat, &err)) {
        rad_fail_in(&err, err.code, "chat template");
        cmd_die_err(&err);
    }
    free(own);
    int32_t bos = rad_tokenizer_bos(r->tok), eos = rad_tokenizer_eos(r->tok);
    r->bos = bos >= 0 ? rad_tokenizer_text(r->tok, bos, NULL) : "";
    r->eos = eos >= 0 ? rad_tokenizer_text(r->tok, eos, NULL) : "";
}

bool radiance_own_variable(const char *name)
{
    static const char *const own[] = { "messages", "tools", "bos_token", "eos_token",
                                       "add_generation_prompt" };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(name, own[i]))
            return true;
    return false;
}

static void check_kwargs(const char *json)
{
    cJSON *j = json ? cJSON_Parse(json) : NULL;
    if (json && !cJSON_IsObject(j))
        cmd_usage("--chat-template-kwargs '%s': want a JSON object", json);
    for (const cJSON *k = j ? j->child : NULL; k; k = k->next)
        if (radiance_own_variable(k->string))
            cmd_usage("--chat-template-kwargs: '%s' is the server's", k->string);
    cJSON_Delete(j);
}

static int dtype_of(const char *option, const char *name)
{
    if (!strcmp(name, "f32"))
        return RAD_F32;
    if (!strcmp(name, "bf16"))
        return RAD_BF16;
    if (!strcmp(name, "f16"))
        return RAD_F16;
    cmd_usage("--%s '%s': want f32, bf16 or f16", option, name);
}

/* --plan and --debug-graph: declare only. */
static int print_plan(const struct radiance *r, const struct rad_engine_opts *o, bool graph)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = NULL;
    struct rad_plan *plan = NULL;
    char *text = NULL;
    if (rad_plugins_open(o->home, o->kernels, &p, &err) ||
        rad_plan_build_model(p, r->model, &o->dep, &plan, &err) ||
        (graph ? rad_plan_graph_text(plan, &text, &err)
               : rad_plan_memory_json(plan, &text, &err)))
        cmd_die_err(&err);
    fputs(text, stdout);
    if (text[0] && text[strlen(text) - 1] != '\n')
        putchar('\n');
    free(text);
    rad_plan_free(plan);
    rad_plugins_close(p);
    return CMD_OK;
}

int main(int argc, char **argv)
{
    struct rad_err err = { 0 };
    struct radiance r = { .default_max_tokens = 0 };
    struct radiance_http http = { .host = "127.0.0.1", .port = 8000, .cors = 1,
                                  .max_body_bytes = 64 << 20, .drain_ms = 30000,
                                  .max_connections = 1024 };
    struct rad_engine_opts o = { .size = sizeof o };
    struct given g = { __builtin_nan(""), __builtin_nan(""), __builtin_nan(""), __builtin_nan(""),
                       __builtin_nan(""), __builtin_nan(""), INT64_MIN, INT64_MIN, INT64_MIN };
    const char *stop[64], *score = NULL, *template = NULL, *prompt = NULL;
    struct radiance_prompt p = { .stop = stop };
    int64_t score_tok = 0, window = 0;
    bool graph = false, plan = false;
    int c;
    cmd_begin(&cmd, argc, argv);
    while ((c = cmd_getopt()) != -1) {
        switch (c) {
        case 'm': r.path = cmd_arg(); break;
        case 'j': o.threads = (int)cmd_arg_i64(1, 1024); break;
        case 'p': prompt = cmd_arg(); break;
        case 'n': p.max_tokens = r.default_max_tokens = cmd_arg_i64(1, INT32_MAX); break;
        case O_CHAT: p.chat = true; break;
        case O_SCORE: score = cmd_arg(); break;
        case O_SCORE_TOK: score_tok = cmd_arg_i64(2, INT32_MAX); break;
        case O_WINDOW: window = cmd_arg_i64(2, INT32_MAX); break;
        case O_TEMP: g.temp = cmd_arg_f64(0, 100); break;
        case O_TOP_K: g.top_k = cmd_arg_i64(0, 1024); break;
        case O_TOP_P: g.top_p = cmd_arg_f64(1e-9, 1); break;
        case O_MIN_P: g.min_p = cmd_arg_f64(0, 1); break;
        case O_REP: g.rep = cmd_arg_f64(1e-6, 100); break;
        case O_PRES: g.pres = cmd_arg_f64(-100, 100); break;
        case O_FREQ: g.freq = cmd_arg_f64(-100, 100); break;
        case O_LAST_N: g.last_n = cmd_arg_i64(-1, INT32_MAX); break;
        case CMD_LETTER_SEED: g.seed = cmd_arg_i64(0, INT64_MAX); break;
        case O_STOP:
            if (p.n_stop == 64)
                cmd_usage("more than 64 --stop options");
            if (!cmd_arg()[0])
                cmd_usage("--stop: the text is empty");
            stop[p.n_stop++] = cmd_arg();
            break;
        case O_IGNORE_EOS: p.ignore_eos = true; break;
        case O_LOGPROBS: p.logprobs = (int)cmd_arg_i64(0, 20); break;
        case CMD_LETTER_JSON: p.json = true; break;
        case O_HOST: http.host = cmd_arg(); break;
        case O_PORT: http.port = (int)cmd_arg_i64(0, 65535); break;
        case O_API_KEY: http.api_key = cmd_arg(); break;
        case O_NAME:
            if (!cmd_arg()[0])
                cmd_usage("--served-model-name: the name is empty");
            r.name = cmd_arg();
            break;
        case O_QUEUE: o.max_queue = cmd_arg_i64(1, 1 << 20); break;
        case O_BODY: http.max_body_bytes = cmd_arg_i64(1, 1 << 20) << 20; break;
        case O_CONN: http.max_connections = (int)cmd_arg_i64(1, 1 << 16); break;
        case O_NO_CORS: http.cors = 0; break;
        case O_DRAIN: http.drain_ms = cmd_arg_i64(0, 86400) * 1000; break;
        case O_TEMPLATE: template = cmd_arg(); break;
        case O_KWARGS: r.template_kwargs = cmd_arg(); break;
        case O_MAX_CTX: o.dep.max_ctx = cmd_arg_i64(2, INT32_MAX); break;
        case O_MAX_SEQS: o.dep.max_seqs = cmd_arg_i64(1, 4096); break;
        case O_MAX_TOK: o.dep.max_tok = cmd_arg_i64(1, 1 << 20); break;
        case O_CHUNK: o.chunk = cmd_arg_i64(1, 1 << 20); break;
        case O_STEP_MS:
            o.step_ms = cmd_arg_i64(0, 1 << 20);
            if (!o.step_ms)
                o.step_ms = -1;        /* the engine's word for any */
            break;
        case O_KV_DTYPE: o.dep.kv_dtype = dtype_of("kv-cache-dtype", cmd_arg()); break;
        case O_ACT_DTYPE: o.dep.act_dtype = dtype_of("act-dtype", cmd_arg()); break;
        case O_KV_TOKENS: o.dep.kv_tokens = cmd_arg_i64(1, INT32_MAX); break;
        case O_DEVICE:
            if (strcmp(cmd_arg(), "host") && strcmp(cmd_arg(), "test"))
                cmd_usage("--device '%s': want host or test", cmd_arg());
            o.dep.device = cmd_arg()[0] == 't' ? RAD_DEVICE_TEST : RAD_DEVICE_HOST;
            break;
        case O_HOME: o.home = cmd_arg(); break;
        case O_KERNELS: o.kernels = cmd_arg(); break;
        case O_GRAPH: graph = true; break;
        case O_PLAN: plan = true; break;
        }
    }
    cmd_args(0, 0);
    if (!r.path)
        cmd_usage("no model: give -m FILE");
    if ((prompt != NULL) + (score != NULL) + graph + plan > 1)
        cmd_usage("give one of -p, --score, --debug-graph and --plan");
    if (!prompt && (p.chat || p.ignore_eos || p.logprobs || p.n_stop || g.seed != INT64_MIN))
        cmd_usage("--chat, --ignore-eos, --logprobs, --stop and --seed go with -p");
    if (p.logprobs && !p.json)
        cmd_usage("--logprobs goes with --json");
    if (p.json && !prompt && !score && !plan)
        cmd_usage("--json goes with -p or --score");
    if (!score && (score_tok || window))
        cmd_usage("--score-tokens and --score-window go with --score");
    if (http.api_key && !http.api_key[0])
        cmd_usage("--api-key: the key is empty");
    check_kwargs(r.template_kwargs);
    if (rad_model_open(r.path, &r.model, &err))
        cmd_die_err(&err);
    if (!r.name)
        r.name = rad_model_info(r.model)->name[0] ? rad_model_info(r.model)->name : "model";
    int64_t n_ctx = 0;
    bool trained = !rad_model_meta_int(r.model, "n_ctx_train", &n_ctx, NULL) && n_ctx > 0;
    if (trained && o.dep.max_ctx > n_ctx)
        cmd_die("--max-model-len %lld: the model was made for %lld", (long long)o.dep.max_ctx,
                (long long)n_ctx);
    if (trained && !o.dep.max_ctx)
        o.dep.max_ctx = n_ctx < 8192 ? n_ctx : 8192;
    o.dep.size = sizeof o.dep;
    sampling_defaults(&r, &g);
    if (graph || plan) {
        int rc = print_plan(&r, &o, graph);
        rad_model_unref(r.model);
        return cmd_finish(rc);
    }
    if (score) {
        window = window ? window : o.dep.max_ctx;
        if (window > o.dep.max_ctx)
            cmd_usage("--score-window %lld: the context is %lld", (long long)window,
                      (long long)o.dep.max_ctx);
        o.dep.max_seqs = 1;
        o.dep.max_tok = o.dep.max_tok ? o.dep.max_tok : 256;
        o.dep.max_out = o.dep.max_tok;
        o.step_ms = -1;                /* nobody waits beside it */
    }
    if (prompt)
        o.dep.max_seqs = 1;
    if (rad_tokenizer_from_model(r.model, &r.tok, &err))
        cmd_die_err(&err);
    check_certificate(&r);
    load_template(&r, template);
    if (rad_engine_open(r.model, &o, &r.engine, &err))
        cmd_die_err(&err);
    size_t n_end;
    const int32_t *end = rad_tokenizer_eog(r.tok, &n_end);
    if (rad_engine_set_end_ids(r.engine, end, (int)n_end, &err))
        cmd_die_err(&err);
    int rc;
    char *text = NULL;
    if (score) {
        rc = radiance_score(&r, score, score_tok, window, p.json);
    } else if (prompt) {
        p.text = prompt;
        p.len = strlen(prompt);
        if (!strcmp(prompt, "-"))
            p.text = text = cmd_read_file("-", MOST_TEXT, &p.len);
        rc = radiance_generate(&r, &p);
    } else {
        rc = radiance_serve(&r, &http);
    }
    free(text);
    rad_engine_close(r.engine);
    rad_template_free(r.chat);
    rad_tokenizer_free(r.tok);
    rad_model_unref(r.model);
    return cmd_finish(rc);
}
