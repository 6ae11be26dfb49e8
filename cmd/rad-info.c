/* SPDX-License-Identifier: Apache-2.0 */
/* rad-info: what a container holds, for people; rad-info-json.c is the same for
 * programs. Everything printed comes from a file, so bytes that a terminal
 * could take for a command are shown, not sent. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rad/plan.h>

#include "cmd.h"
#include "json.h"
#include "rad-info.h"

enum { OPT_META = 256, OPT_VOCAB, OPT_PROFILE, OPT_RECIPE, OPT_VERIFY, OPT_KEY,
       OPT_PLAN, OPT_MAX_CTX, OPT_PLUGINS, OPT_HOME };

static const struct cmd_opt opt[] = {
    { OPT_META, "meta", NULL, "print all metadata rows" },
    { OPT_VOCAB, "vocab", NULL, "print the tokenizer: types, special tokens, steps" },
    { OPT_PROFILE, "profile", "[N]", "print the N most used experts (20; 0 is all)" },
    { OPT_RECIPE, "recipe", NULL, "print the recipe that made the weights" },
    { OPT_VERIFY, "verify", NULL, "compare all digests; exit 1 when one differs" },
    { OPT_KEY, "key", "PEM", "with --verify: want a signature by this key" },
    { OPT_PLAN, "plan", NULL, "print the memory that serving the model would take, as JSON" },
    { OPT_MAX_CTX, "max-model-len", "N", "with --plan: the context limit" },
    { OPT_PLUGINS, "plugins", NULL, "list the plugins that are found, in order" },
    { OPT_HOME, "home", "DIRS", "plugin search path, instead of RADIANCE_HOME" },
    CMD_JSON,
    CMD_COMMON,
    { 0 },
};
static const struct cmd cmd = {
    .name = "rad-info",
    .about = "show what a model container holds",
    .usage = "[-qv] [--json] FILE\n"
             "[-qv] [--meta] [--vocab] [--profile[=N]] [--recipe] FILE\n"
             "[-qv] [--json] --verify [--key=PEM] FILE\n"
             "[-qv] [--home DIRS] [--max-model-len N] --plan FILE\n"
             "[-qv] [--home DIRS] [--json] --plugins",
    .opt = opt,
};

/* ---- shared with the JSON printer */

void info_sections(const struct rad_model_info *h, struct info_section out[INFO_SECTIONS])
{
    const struct info_section s[INFO_SECTIONS] = {
        { "strings", &h->strings }, { "metadata", &h->meta },       { "directory", &h->dir },
        { "planes", &h->planes },   { "encodings", &h->encodings }, { "vocab", &h->vocab },
        { "profile", &h->profile }, { "certificate", &h->certificate },
        { "data", &h->data },       { "integrity", &h->integrity },
    };

    memcpy(out, s, sizeof s);
}

uint64_t info_plane_bytes(const struct rad_weight *w)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < w->n_planes; i++)
        n += w->plane[i].bytes;
    return n;
}

void info_hex(const uint8_t digest[32], char out[65])
{
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

const char *info_token_type(uint32_t type)
{
    static const char *const name[] = { "undefined", "normal", "unknown", "control", "user",
                                        "unused", "byte", "other" };

    return name[type < 7 ? type : 7];
}

static int by_bytes(const void *a, const void *b)
{
    const struct info_tally *x = a, *y = b;

    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

struct info_tally *info_tally(const struct rad_model *m, bool by_encoding, size_t *n)
{
    size_t n_weights = rad_model_weight_count(m), cap = 64;
    struct info_tally *t = calloc(cap, sizeof *t);

    *n = 0;
    for (size_t i = 0; t && i < n_weights; i++) {
        const struct rad_weight *w = rad_model_weight_at(m, i);
        size_t k = 0;

        while (k < *n && (by_encoding ? t[k].enc != w->enc
                                      : strcmp(t[k].name, w->quantizer) != 0))
            k++;
        if (k == *n) {
            if (k == cap) {
                struct info_tally *more = realloc(t, 2 * cap * sizeof *t);

                if (!more) {
                    free(t);
                    t = NULL;
                    break;
                }
                t = more;
                cap *= 2;
            }
            t[(*n)++] = (struct info_tally){ .enc = w->enc, .name = w->quantizer };
        }
        t[k].weights++;
        t[k].bytes += info_plane_bytes(w);
    }
    if (!t)
        cmd_die("out of memory");
    if (*n)
        qsort(t, *n, sizeof *t, by_bytes);
    return t;
}

/* ---- text */

/* Text from the file: control bytes as \xNN, so that it stays one line. */
static void show(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            printf("\\x%02x", (unsigned char)*s);
        else
            putchar(*s);
    }
}

/* The recipe keeps its lines; nothing else gets through. */
static void show_lines(const char *s)
{
    for (; *s; s++) {
        if (((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f)
            printf("\\x%02x", (unsigned char)*s);
        else
            putchar(*s);
    }
}

static void line(const char *what, const char *value)
{
    printf("%-14s", what);
    show(value);
    putchar('\n');
}

static void show_header(const struct rad_model *m)
{
    const struct rad_model_info *h = rad_model_info(m);
    const struct rad_integrity *g = rad_model_integrity(m);
    char size[32], hex[65];
    size_t lines = 0;

    for (const char *s = h->recipe; *s; s++)
        lines += *s == '\n' || !s[1];
    printf("%-14sRAD%u, %" PRIu64 " bytes (%s)\n", "format", h->version, h->file_bytes,
           cmd_bytes(h->file_bytes, size));
    line("architecture", h->arch);
    line("model", h->name);
    line("source", *h->quant ? h->quant : "(none)");
    if (*h->recipe)
        printf("%-14s%zu line%s\n", "recipe", lines, lines == 1 ? "" : "s");
    else
        line("recipe", "none: every weight is the checkpoint's own");
    line("created by", h->created_by);
    if (!g) {
        line("integrity", "no digests");
        return;
    }
    info_hex(g->root, hex);
    printf("%-14ssha256 %s%s\n", "integrity", hex, g->is_signed ? ", signed" : "");
    if (*g->source)
        line("revision", g->source);
}

static void show_sections(const struct rad_model *m)
{
    struct info_section s[INFO_SECTIONS];

    info_sections(rad_model_info(m), s);
    printf("\n%-14s%16s%16s%10s\n", "section", "offset", "bytes", "count");
    for (int i = 0; i < INFO_SECTIONS; i++)
        if (s[i].at->bytes)
            printf("%-14s%16" PRIu64 "%16" PRIu64 "%10" PRIu64 "\n", s[i].name,
                   s[i].at->offset, s[i].at->bytes, s[i].at->count);
}

static void show_weight(const struct rad_weight *w, bool planes)
{
    char text[512];

    (void)rad_encoding_text(w->enc, text, sizeof text);
    printf("  ");
    show(w->name);
    printf("  %s  ", text);
    for (int i = 0; i < w->rank; i++)
        printf("%s%" PRId64, i ? "x" : "", w->shape[i]);
    printf("  %" PRIu64 " bytes @%" PRIu64 "  ", w->bytes, w->offset);
    show(*w->quantizer ? w->quantizer : "checkpoint");
    if (*w->options) {
        putchar(' ');
        show(w->options);
    }
    putchar('\n');
    for (uint32_t i = 0; planes && i < w->n_planes; i++)
        printf("    %-10s %-9s %" PRIu64 " bytes @%" PRIu64 "\n", w->enc->plane[i].role,
               rad_dtype_name((int)w->enc->plane[i].dtype), w->plane[i].bytes,
               w->plane[i].offset);
}

static void show_group(const struct rad_model *m, const struct rad_expert_group *g)
{
    uint64_t payload = 0;

    for (uint32_t s = 0; s < g->n_slots; s++)
        payload += info_plane_bytes(rad_model_weight_at(m, g->first + s));
    printf("layer %-4d %u experts x %u slots, %" PRIu64 " + id * %" PRIu64 ", payload %" PRIu64
           ", padding %" PRIu64 "\n", g->layer, g->n_experts, g->n_slots, g->base, g->stride,
           payload, g->stride - payload);
    for (uint32_t s = 0; s < g->n_slots; s++) {
        printf("  slot %u", s);
        show_weight(rad_model_weight_at(m, g->first + s), false);
    }
}

static void show_directory(const struct rad_model *m, bool verbose)
{
    size_t n = rad_model_weight_count(m), group = 0;

    printf("\ndirectory: %zu weights\n", n);
    for (size_t i = 0; i < n;) {
        const struct rad_weight *w = rad_model_weight_at(m, i);
        uint64_t bytes = 0;
        size_t k = i;

        if (w->expert >= 0) {
            const struct rad_expert_group *g = rad_model_group_at(m, group++);

            show_group(m, g);
            for (k = 0; verbose && k < (size_t)g->n_experts * g->n_slots; k++)
                show_weight(rad_model_weight_at(m, i + k), true);
            i += (size_t)g->n_experts * g->n_slots;
            continue;
        }
        for (; k < n && rad_model_weight_at(m, k)->layer == w->layer
               && rad_model_weight_at(m, k)->expert < 0; k++)
            bytes += info_plane_bytes(rad_model_weight_at(m, k));
        if (w->layer < 0)
            printf("model      %zu weights, %" PRIu64 " bytes\n", k - i, bytes);
        else
            printf("layer %-4d %zu weights, %" PRIu64 " bytes\n", w->layer, k - i, bytes);
        for (; i < k; i++)
            if (verbose)
                show_weight(rad_model_weight_at(m, i), true);
    }
}

static void show_tally(const struct rad_model *m, bool by_encoding, uint64_t total)
{
    size_t n;
    struct info_tally *t = info_tally(m, by_encoding, &n);
    char text[512];

    printf("\nby %s\n", by_encoding ? "encoding" : "quantiser");
    for (size_t i = 0; i < n; i++) {
        if (by_encoding)
            (void)rad_encoding_text(t[i].enc, text, sizeof text);
        printf("%10" PRIu64 " weights %16" PRIu64 " bytes %6.2f %%  ", t[i].weights, t[i].bytes,
               total ? 100.0 * (double)t[i].bytes / (double)total : 0.0);
        show(by_encoding ? text : *t[i].name ? t[i].name : "checkpoint");
        putchar('\n');
    }
    free(t);
}

static uint32_t count_type(const struct rad_model *m, uint32_t type)
{
    struct rad_vocab_token t;
    uint32_t n = 0;

    for (uint32_t i = 0; rad_model_vocab_token(m, i, &t); i++)
        n += t.type == type;
    return n;
}

/* The first eight tokens of a type, with marks for the ends. */
static void show_tokens(const struct rad_model *m, const struct rad_vocab_info *v,
                        uint32_t type, uint32_t most)
{
    struct rad_vocab_token t;
    uint32_t n = 0;

    for (uint32_t i = 0; n < most && rad_model_vocab_token(m, i, &t); i++) {
        if (t.type != type)
            continue;
        n++;
        printf("  %-8s %8u  ", info_token_type(type), i);
        show(t.text);
        printf("%s%s\n", (int64_t)i == v->eos ? "  [end of sequence]" : "",
               (int64_t)i == v->eot ? "  [end of turn]" : "");
    }
    if (count_type(m, type) > n)
        printf("  %-8s %8s  and %u more\n", info_token_type(type), "...",
               count_type(m, type) - n);
}

static void show_vocab(const struct rad_model *m, bool detail)
{
    struct rad_vocab_info v;
    struct rad_vocab_step s;

    putchar('\n');
    if (!rad_model_vocab_info(m, &v)) {
        printf("vocab: none\n");
        return;
    }
    printf("vocab: %s, %u tokens, %u merges, %zu bytes of template, %u steps\n", v.kind_name,
           v.n_tokens, v.n_merges, strlen(v.chat_template), v.n_steps);
    printf("  bos %d, eos %d, eot %d, pad %d, unk %d, sep %d; add bos %s, add eos %s\n", v.bos,
           v.eos, v.eot, v.pad, v.unk, v.sep, v.add_bos ? "yes" : "no",
           v.add_eos ? "yes" : "no");
    if (detail)
        for (uint32_t type = 0; type < 7; type++)
            if (count_type(m, type))
                printf("  %-14s %8u tokens\n", info_token_type(type), count_type(m, type));
    show_tokens(m, &v, 3, detail ? UINT32_MAX : 8);
    show_tokens(m, &v, 4, detail ? UINT32_MAX : 8);
    for (uint32_t i = 0; detail && rad_model_vocab_step(m, i, &s); i++) {
        printf("  step %-2u %-14s %s", i, s.stage, s.name);
        if (s.flags || s.iarg)
            printf(" flags=%u iarg=%" PRId64, s.flags, s.iarg);
        if (*s.arg0 || *s.arg1) {
            printf(" '");
            show(s.arg0);
            printf("'");
        }
        if (*s.arg1) {
            printf(" '");
            show(s.arg1);
            printf("'");
        }
        putchar('\n');
    }
}

static int by_share(const void *a, const void *b)
{
    const struct rad_profile_row *x = *(const struct rad_profile_row *const *)a;
    const struct rad_profile_row *y = *(const struct rad_profile_row *const *)b;

    if (x->share != y->share)
        return x->share < y->share ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void show_profile(const struct rad_model *m, int64_t most)
{
    size_t n;
    const struct rad_profile_row *p = rad_model_profile(m, &n), **row;

    if (!n) {
        printf("profile: none\n");
        return;
    }
    row = calloc(n, sizeof *row);
    if (!row)
        cmd_die("out of memory");
    for (size_t i = 0; i < n; i++)
        row[i] = &p[i];
    qsort(row, n, sizeof *row, by_share);
    printf("%8s%8s%8s%10s\n", "rank", "layer", "expert", "share %");
    for (size_t i = 0; i < n && (!most || i < (size_t)most); i++)
        printf("%8zu%8d%8d%10.3f\n", i + 1, row[i]->layer, row[i]->expert,
               100.0 * (double)row[i]->share);
    free(row);
}

static void show_meta(const struct rad_model *m)
{
    for (size_t i = 0; i < rad_model_meta_count(m); i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);

        show(r->key);
        printf(" = ");
        if (r->type == RAD_META_INT)
            printf("%" PRId64 "\n", r->v.i);
        else if (r->type == RAD_META_F64)
            printf("%.17g\n", r->v.f);
        else {
            show(r->v.s);
            putchar('\n');
        }
    }
}

static void show_all(const struct rad_model *m)
{
    const struct rad_model_info *h = rad_model_info(m);
    uint64_t planes = 0;

    for (size_t i = 0; i < rad_model_weight_count(m); i++)
        planes += info_plane_bytes(rad_model_weight_at(m, i));
    show_header(m);
    show_sections(m);
    show_directory(m, cmd_verbosity() > 0);
    printf("\npool: %" PRIu64 " bytes of planes, %" PRIu64 " of padding, %" PRIu64
           " in the data blob\n", planes, h->data.bytes > planes ? h->data.bytes - planes : 0,
           h->data.bytes);
    show_tally(m, true, planes);
    show_tally(m, false, planes);
    show_vocab(m, false);
}

/* ---- verify */

static int verify(const struct rad_model *m, const char *key, bool json)
{
    struct rad_verify_report r;
    struct rad_err err = { 0 };
    rad_status st = rad_model_verify(m, &r, &err);
    struct cmd_json j = { 0 };
    char hex[65];

    if (!st && key) {
        char *pem = cmd_read_file(key, 65536, NULL);

        st = rad_model_verify_signature(m, pem, &err);
        free(pem);
    }
    if (st && st != RAD_E_MISMATCH)
        cmd_die("'%s': %s", rad_model_path(m), err.text);
    if (json) {
        cmd_json_object(&j, NULL);
        cmd_json_bool(&j, "verified", st == RAD_OK);
        if (st)
            cmd_json_str(&j, "reason", err.text);
        cmd_json_uint(&j, "tables", r.tables);
        cmd_json_uint(&j, "planes", r.planes);
        cmd_json_uint(&j, "bytes", r.bytes);
        cmd_json_bool(&j, "signed", r.signature == 1);
        cmd_json_end_object(&j);
    }
    if (st) {
        cmd_warn("'%s': %s", rad_model_path(m), err.text);
        return CMD_NO;
    }
    if (!json && !cmd_quiet()) {
        info_hex(rad_model_integrity(m)->root, hex);
        printf("verified: %" PRIu64 " tables, %" PRIu64 " planes, %" PRIu64 " bytes, root %s",
               r.tables, r.planes, r.bytes, hex);
        info_hex(rad_model_integrity(m)->key, hex);
        printf("%s%s\n", r.signature ? ", signed by " : "", r.signature ? hex : "");
    }
    return CMD_OK;
}

/* ---- what only the start-up of a server knows */

static void show_plan(struct rad_model *m, const char *home, int64_t max_ctx)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = NULL;
    struct rad_plan *plan = NULL;
    struct rad_deployment d = { .size = sizeof d, .max_ctx = max_ctx };
    char *text = NULL;

    if (rad_plugins_open(home, NULL, &p, &err) || rad_plan_build_model(p, m, &d, &plan, &err) ||
        rad_plan_memory_json(plan, &text, &err))
        cmd_die_err(&err);
    printf("%s%s", text, text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n");
    free(text);
    rad_plan_free(plan);
    rad_plugins_close(p);
}

static const char *plugin_kind(int kind)
{
    return kind == RAD_PLUGIN_KERNEL ? "kernel" : kind == RAD_PLUGIN_ARCH ? "architecture"
        : kind == RAD_PLUGIN_QUANT ? "quantiser" : "unknown";
}

static void show_plugins(const char *home, bool as_json)
{
    struct rad_err err = { 0 };
    struct rad_plugins *p = NULL;

    if (rad_plugins_open(home, NULL, &p, &err))
        cmd_die_err(&err);
    if (as_json)
        printf("[");
    for (int i = 0; i < rad_plugins_count(p); i++) {
        struct rad_plugin_desc d;
        rad_plugins_at(p, i, &d);
        if (as_json)
            printf("%s{\"name\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\",\"path\":\"%s\","
                   "\"ops\":%d,\"rows\":%d,\"reference\":%s}", i ? "," : "", d.info->name,
                   d.info->version, plugin_kind(d.info->kind), d.path, d.n_schemas, d.n_rows,
                   d.is_reference ? "true" : "false");
        else
            printf("%-12s %-8s %-13s %s%s\n", d.info->name, d.info->version,
                   plugin_kind(d.info->kind), d.path, d.is_reference ? "  (reference)" : "");
    }
    if (as_json)
        printf("]\n");
    rad_plugins_close(p);
}

int main(int argc, char **argv)
{
    bool plan = false, plugins = false;
    const char *home = NULL;
    int64_t max_ctx = 0;
    bool meta = false, vocab = false, recipe = false, json = false, check = false;
    const char *key = NULL;
    int64_t profile = -1;
    struct rad_model *m;
    struct rad_err err = { 0 };
    int c, code = CMD_OK;

    cmd_begin(&cmd, argc, argv);
    while ((c = cmd_getopt()) != -1)
        switch (c) {
        case OPT_META: meta = true; break;
        case OPT_VOCAB: vocab = true; break;
        case OPT_RECIPE: recipe = true; break;
        case OPT_VERIFY: check = true; break;
        case OPT_KEY: key = cmd_arg(); break;
        case OPT_PROFILE: profile = cmd_arg() ? cmd_arg_i64(0, INT32_MAX) : 20; break;
        case OPT_PLAN: plan = true; break;
        case OPT_MAX_CTX: max_ctx = cmd_arg_i64(2, INT32_MAX); break;
        case OPT_PLUGINS: plugins = true; break;
        case OPT_HOME: home = cmd_arg(); break;
        case CMD_LETTER_JSON: json = true; break;
        }
    if (plugins) {
        cmd_args(0, 0);
        show_plugins(home, json);
        return cmd_finish(CMD_OK);
    }
    const char *path = cmd_args(1, 1)[0];
    if (plan && (check || meta || vocab || recipe || profile >= 0))
        cmd_usage("--plan goes with no other block");
    if (key && !check)
        cmd_usage("--key without --verify");
    if ((json || check) && (meta || vocab || recipe || profile >= 0))
        cmd_usage("--%s prints everything it has; it goes with no other block",
                  json ? "json" : "verify");

    rad_status st = rad_model_open(path, &m, &err);
    if (st == RAD_E_FORMAT && check) {   /* damage that the rules see already */
        cmd_warn("%s", err.text);
        return cmd_finish(CMD_NO);
    }
    if (st)
        cmd_die_err(&err);
    if (plan)
        show_plan(m, home, max_ctx);
    else if (check)
        code = verify(m, key, json);
    else if (json)
        info_json(m);
    else if (!meta && !vocab && !recipe && profile < 0)
        show_all(m);
    if (meta)
        show_meta(m);
    if (vocab)
        show_vocab(m, true);
    if (profile >= 0)
        show_profile(m, profile);
    if (recipe)
        show_lines(rad_model_info(m)->recipe);
    rad_model_unref(m);
    return cmd_finish(code);
}
