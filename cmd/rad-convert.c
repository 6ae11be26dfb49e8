/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a checkpoint into one container. What is written and how is librad's
 * (rad/convert.h); here are the options, the plan's listing, the progress
 * line and the error report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rad/convert.h>

#include "cmd.h"

enum { O_RECIPE = 256, O_QUANT, O_LIST, O_ARCH, O_HOME, O_KERNELS, O_TOKENIZER, O_SET, O_MAX_TOK,
       O_MAX_CTX, O_PLAN, O_REPORT };

static const struct cmd_opt opt[] = {
    CMD_OUTPUT,
    CMD_THREADS,
    { O_RECIPE, "recipe", "FILE", "quantise by the rules of FILE; repeatable" },
    { O_QUANT, "quant", "RULE", "one rule: PATTERN=QUANTISER[:k=v,k=v]; repeatable, before files" },
    { O_LIST, "list-quantizers", NULL, "list quantisers and their options" },
    { O_ARCH, "arch", "ID", "the architecture id, instead of the checkpoint's" },
    { O_HOME, "home", "DIRS", "plugin search path, instead of RADIANCE_HOME" },
    { O_KERNELS, "kernels", "A:B", "order of the kernel libraries" },
    { O_TOKENIZER, "tokenizer", "FILE", "the tokenizer.json to take" },
    { O_SET, "set", "KEY=VALUE", "add or override a configuration key; repeatable" },
    { O_MAX_TOK, "max-tok", "N", "tokens a step at which the model is declared" },
    { O_MAX_CTX, "max-ctx", "N", "context at which the model is declared" },
    { O_PLAN, "plan-only", NULL, "print what would be written, and stop" },
    { O_REPORT, "report", "N", "worst quantised weights to list (default 20)" },
    CMD_JSON,
    CMD_COMMON,
    { 0 },
};
static const struct cmd cmd = {
    .name = "rad-convert", .about = "turn a model checkpoint into one .rad file", .opt = opt,
    .usage = "[-qv] [-j THREADS] [--recipe FILE] [--quant RULE] -o FILE INPUT\n"
             "[-qv] [--recipe FILE] [--quant RULE] [--json] --plan-only INPUT\n"
             "--list-quantizers",
};

static void list_quantizers(const char *home, const char *kernels)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = NULL;
    if (rad_plugins_open(home, kernels, &p, &err))
        cmd_die_err(&err);
    for (int i = 0; i < rad_plugins_quant_count(p); i++) {
        const RadQuantizer *q = rad_plugins_quant_at(p, i);
        printf("%s  %s\n", q->name, q->doc);
        for (int k = 0; k < q->n_options; k++)
            printf("    %-14s %-10s %s\n", q->options[k].key,
                   q->options[k].def ? q->options[k].def : "-", q->options[k].doc);
    }
    rad_plugins_close(p);
}

static void shape_text(char *buf, size_t n, const struct rad_convert_weight *w)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < w->rank && at + 24 < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? "x" : "", (long long)w->shape[i]);
}

/* Container names and encodings hold no character that JSON escapes. */
static void print_plan(const struct rad_convert *c, bool json)
{
    char enc[256], shape[160], size[32];
    if (json)
        printf("{\"model\":\"%s\",\"file_bytes\":%llu,\"weights\":[", rad_convert_name(c),
               (unsigned long long)rad_convert_file_bytes(c));
    for (size_t i = 0; i < rad_convert_count(c); i++) {
        struct rad_convert_weight w;
        rad_convert_at(c, i, &w);
        rad_encoding_text(w.enc, enc, sizeof enc);
        shape_text(shape, sizeof shape, &w);
        if (json)
            printf("%s{\"name\":\"%s\",\"source\":\"%s\",\"encoding\":\"%s\",\"shape\":\"%s\","
                   "\"bytes\":%llu,\"quantizer\":\"%s\",\"options\":\"%s\"}", i ? "," : "", w.name,
                   w.source, enc, shape, (unsigned long long)w.bytes, w.quantizer, w.options);
        else
            printf("%-36s %-28s %-16s %12llu  %s%s%s\n", w.name, enc, shape,
                   (unsigned long long)w.bytes, w.quantizer[0] ? w.quantizer : "checkpoint",
                   w.options[0] ? " " : "", w.options);
    }
    if (json)
        printf("]}\n");
    else
        printf("%zu weights, file of %s\n", rad_convert_count(c),
               cmd_bytes(rad_convert_file_bytes(c), size));
}

static int by_error(const void *a, const void *b)
{
    const struct rad_convert_weight *x = a, *y = b;
    return x->error < y->error ? 1 : x->error > y->error ? -1 : strcmp(x->name, y->name);
}

static void report(const struct rad_convert *c, const struct rad_recipe *recipe, int64_t worst)
{
    size_t n = rad_convert_count(c), k = 0;
    struct rad_convert_weight *w = calloc(n ? n : 1, sizeof *w);
    if (!w)
        return;
    for (size_t i = 0; i < n; i++) {
        rad_convert_at(c, i, &w[k]);
        k += w[k].error >= 0;
    }
    qsort(w, k, sizeof *w, by_error);
    for (size_t r = 0; r < rad_recipe_count(recipe); r++) {
        double sum = 0;
        size_t m = 0;
        for (size_t i = 0; i < k; i++)
            if (w[i].rule == (int64_t)r) {
                sum += w[i].error;
                m++;
            }
        if (m)
            fprintf(stderr, "%s: %zu weights, mean relative error %.3e\n",
                    rad_recipe_at(recipe, r)->where, m, sum / (double)m);
    }
    for (size_t i = 0; i < k && (int64_t)i < worst; i++)
        fprintf(stderr, "  %.3e  %s  %s\n", w[i].error, w[i].name, w[i].quantizer);
    free(w);
}

/* "rad-convert DATE from <last two path components>"; SOURCE_DATE_EPOCH fixes
 * the date, so that equal inputs can make equal files. */
static void created_by(char *buf, size_t n, const char *input)
{
    const char *fixed = getenv("SOURCE_DATE_EPOCH");
    time_t t = fixed ? (time_t)strtoll(fixed, NULL, 10) : time(NULL);
    struct tm tm;
    char date[16] = "";
    if (gmtime_r(&t, &tm))
        strftime(date, sizeof date, "%Y-%m-%d", &tm);
    size_t len = strlen(input), at = len;
    for (int slashes = 0; at > 0; at--)
        if (input[at - 1] == '/' && at < len && ++slashes == 2)
            break;
    snprintf(buf, n, "rad-convert %s from %s", date, input + at);
}

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    struct cmd_progress *p = user;
    p->total = total;
    cmd_progress_at(p, done);
}

int main(int argc, char **argv)
{
    struct rad_err err = { 0 };
    struct rad_recipe *recipe = NULL;
    const char *output = NULL, *set[256];
    bool list = false, plan = false, json = false;
    int64_t worst = 20;
    int c;
    struct rad_convert_opts o = { .size = sizeof o, .set = set };
    cmd_begin(&cmd, argc, argv);
    if (rad_recipe_new(&recipe, &err))
        cmd_die_err(&err);
    while ((c = cmd_getopt()) != -1) {
        switch (c) {
        case 'o': output = cmd_arg(); break;
        case 'j': o.threads = (int)cmd_arg_i64(1, 1024); break;
        case O_RECIPE:
            if (rad_recipe_add_file(recipe, cmd_arg(), &err))
                cmd_usage("%s", err.text);
            break;
        case O_QUANT:
            if (rad_recipe_add_inline(recipe, cmd_arg(), &err))
                cmd_usage("%s", err.text);
            break;
        case O_LIST: list = true; break;
        case O_ARCH: o.arch = cmd_arg(); break;
        case O_HOME: o.home = cmd_arg(); break;
        case O_KERNELS: o.kernels = cmd_arg(); break;
        case O_TOKENIZER: o.tokenizer = cmd_arg(); break;
        case O_SET:
            if (!strchr(cmd_arg(), '=') || cmd_arg()[0] == '=')
                cmd_usage("--set '%s': want KEY=VALUE", cmd_arg());
            if (o.n_set == 256)
                cmd_usage("more than 256 --set options");
            set[o.n_set++] = cmd_arg();
            break;
        case O_MAX_TOK: o.max_tok = cmd_arg_i64(1, 1 << 20); break;
        case O_MAX_CTX: o.max_ctx = cmd_arg_i64(1, INT32_MAX); break;
        case O_PLAN: plan = true; break;
        case O_REPORT: worst = cmd_arg_i64(0, 1 << 20); break;
        case CMD_LETTER_JSON: json = true; break;
        }
    }
    if (list) {
        cmd_args(0, 0);
        list_quantizers(o.home, o.kernels);
        rad_recipe_free(recipe);
        return cmd_finish(CMD_OK);
    }
    char **input = cmd_args(1, 1);
    if (!output && !plan)
        cmd_usage("no output: give -o FILE, or --plan-only");
    char by[512];
    created_by(by, sizeof by, input[0]);
    o.created_by = by;
    o.recipe = recipe;
    struct rad_convert *cv = NULL;
    rad_status st = rad_convert_open(input[0], &o, &cv, &err);
    if (st == RAD_E_ARG)
        cmd_usage("%s", err.text);
    if (st)
        cmd_die_err(&err);
    if (plan) {
        print_plan(cv, json);
    } else {
        struct cmd_progress p;
        cmd_product(output);
        cmd_progress_begin(&p, "writing", rad_convert_file_bytes(cv));
        st = rad_convert_write(cv, output, on_progress, &p, &err);
        cmd_progress_end(&p);
        if (st)
            cmd_die_err(&err);
        cmd_product(NULL);
        if (!cmd_quiet())
            report(cv, recipe, worst);
        if (!cmd_quiet() && strcmp(output, "-")) {
            char size[32];
            fprintf(stderr, "%s: %zu weights, %s\n", output, rad_convert_count(cv),
                    cmd_bytes(rad_convert_file_bytes(cv), size));
        }
    }
    rad_convert_close(cv);
    rad_recipe_free(recipe);
    return cmd_finish(CMD_OK);
}
