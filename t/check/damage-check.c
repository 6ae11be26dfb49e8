/* SPDX-License-Identifier: Apache-2.0 */
/* A converted model, damaged, driven as a command would drive it: open, every
 * accessor, rows of every weight, tokenizer, digests, parameter point and
 * graph, plan; and where the plan is built, the engine and one request. What
 * is held: no crash (the sanitizers watch), a refusal has a message.
 *
 *   damage-check [--all] MODEL.rad       plugins come from RADIANCE_HOME
 *
 * Damage: the file cut at every 97th byte, every 101st byte flipped, and each
 * field of the tables set to numbers that nobody expects. Where the file is
 * padding, or weights only, few of the cuts and flips are taken without --all,
 * and fewer numbers. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rad/engine.h>
#include <rad/lab.h>
#include <rad/model.h>
#include <rad/tokenizer.h>

#include "tap.h"

static const uint8_t *file;
static size_t file_len;
static bool all;
static struct rad_lab *lab;
static struct rad_plugins *plugins;
static struct { long tried, opened, tokenizers, points, plans, answers; } count;
static volatile size_t sink;

/* Offsets of the header's words that the damage aims at (rad(5)). */
enum { H_BYTES = 8, H_STR = 56, H_META = 72, H_DIR = 88, H_PLANES = 104, H_ENC = 120,
       H_VOCAB = 136, H_DATA = 168, H_END = 248 };
static uint64_t word(const uint8_t *p, size_t at)
{
    uint64_t v;
    memcpy(&v, p + at, 8);
    return v;
}

static char what[128];           /* the damage, for messages */

static void said(rad_status st, const struct rad_err *err, const char *who)
{
    CHECK_MSG(!st || err->text[0], "%s: %s: %d without a message", what, who, (int)st);
    CHECK_MSG(st != RAD_E_NOMEM || strstr(err->text, "memory") || strstr(err->text, "bytes"),
              "%s: %s: %s", what, who, err->text);
}

static void read_weights(const struct rad_model *m)
{
    struct rad_err err = { 0 };
    static float row[1 << 16];

    for (size_t i = 0; i < rad_model_weight_count(m); i++) {
        const struct rad_weight *w = rad_model_weight_at(m, i);
        char text[64];

        sink += strlen(w->name) + strlen(w->options) + rad_encoding_text(w->enc, text, sizeof text);
        sink += rad_model_weight(m, w->name) != NULL;
        if (w->cols > sizeof row / 4)
            continue;
        err.text[0] = 0;
        said(rad_weight_decode(w, 0, 1, row, w->cols, &err), &err, "decode");
        err.text[0] = 0;
        said(rad_weight_decode(w, w->rows - 1, 1, row, w->cols, &err), &err, "decode");
    }
    for (size_t i = 0; i < rad_model_group_count(m); i++)
        sink += rad_model_group_at(m, i)->n_experts;
}

static void read_tables(const struct rad_model *m)
{
    const void *bytes;
    size_t n;
    struct rad_vocab_info v = { .size = sizeof v };
    const struct rad_model_info *info = rad_model_info(m);

    sink += strlen(info->arch) + strlen(info->name) + strlen(info->recipe);
    for (size_t i = 0; i < rad_model_meta_count(m); i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);
        sink += strlen(r->key) + (r->type == RAD_META_STR ? strlen(r->v.s) : 0);
    }
    if (rad_model_vocab_info(m, &v)) {
        struct rad_vocab_token t = { .size = sizeof t };
        struct rad_vocab_step s = { .size = sizeof s };
        for (uint32_t i = 0; i < v.n_tokens && rad_model_vocab_token(m, i, &t); i++)
            sink += strlen(t.text);
        for (uint32_t i = 0; i < v.n_steps && rad_model_vocab_step(m, i, &s); i++)
            sink += strlen(s.arg0) + strlen(s.arg1) + strlen(s.name);
    }
    rad_model_certificate(m, &bytes, &n);
    rad_model_profile(m, &n);
}

static void use_tokenizer(const struct rad_model *m)
{
    static const char text[] = "Hello  w\xc3\xb6rld <s> 12345!\n\xf0\x9f\x99\x82";
    struct rad_err err = { 0 };
    struct rad_tokenizer *t;
    struct rad_ids ids = { 0 };
    struct rad_tok_text out = { 0 };
    const void *cert;
    size_t n;
    rad_status st = rad_tokenizer_from_model(m, &t, &err);

    said(st, &err, "tokenizer");
    if (st)
        return;
    count.tokenizers++;
    st = rad_tokenizer_encode(t, text, sizeof text - 1,
                              RAD_TOK_ADD_SPECIAL | RAD_TOK_PARSE_SPECIAL, &ids, &err);
    said(st, &err, "encode");
    CHECK(rad_tokenizer_decode(t, ids.id, ids.n, 0, &out, &err) == RAD_OK);
    rad_model_certificate(m, &cert, &n);
    err.text[0] = 0;
    if (cert)
        said(rad_tokenizer_certificate_check(t, cert, n, NULL, &err), &err, "certificate");
    rad_ids_release(&ids);
    rad_tok_text_release(&out);
    rad_tokenizer_free(t);
}

static int sink_token(void *user, const struct rad_token_event *ev)
{
    (void)user;
    count.answers += ev->done && ev->finish != RAD_FINISH_ERROR;
    return 0;
}

static void use_engine(struct rad_model *m, const struct rad_deployment *d)
{
    struct rad_err err = { 0 };
    struct rad_engine_opts o = { .size = sizeof o, .dep = *d, .threads = 1 };
    struct rad_engine *e = NULL;
    const int32_t ids[] = { 1, 5, 0 };
    struct rad_request_opts r = { .size = sizeof r, .ids = ids, .n_ids = 3, .max_tokens = 2,
                                  .sink = sink_token };
    rad_status st = rad_engine_open(m, &o, &e, &err);

    said(st, &err, "engine");
    if (st)
        return;
    rad_sampling_default(&r.sampling);
    uint64_t id;
    st = rad_engine_submit(e, &r, &id, &err);
    said(st, &err, "submit");
    (void)rad_engine_drain(e, 10000, &err);
    rad_engine_close(e);
}

static void build(struct rad_model *m)
{
    struct rad_err err = { 0 };
    struct rad_lab_point *p = NULL;
    struct rad_lab_graph *g = NULL;
    struct rad_plan *plan = NULL;
    /* as the server command chooses; the context small, for time */
    struct rad_deployment d = { .size = sizeof d, .max_seqs = 1, .max_tok = 16 };
    int64_t ctx = 0;
    const RadModelMeta *meta = rad_model_build_meta(m);

    CHECK(meta != NULL);
    rad_status st = rad_lab_point_from_meta(lab, meta, &p, &err);
    said(st, &err, "point");
    if (!st) {
        count.points++;
        said(rad_lab_graph_new(lab, p, &g, &err), &err, "graph");
    }
    rad_lab_graph_free(g);
    rad_lab_point_free(p);
    if (!rad_model_meta_int(m, "n_ctx_train", &ctx, NULL))
        d.max_ctx = ctx < 64 ? ctx : 64;
    err.text[0] = 0;
    st = rad_plan_build_model(plugins, m, &d, &plan, &err);
    said(st, &err, "plan");
    CHECK((st == RAD_OK) == (plan != NULL));
    rad_plan_free(plan);
    if (st)
        return;
    count.plans++;
    use_engine(m, &d);
}

/* deep: damage that tokenizer, point and plan can see. */
static void drive(const uint8_t *bytes, size_t n, bool deep)
{
    struct rad_err err = { 0 };
    struct rad_model *m = NULL;
    rad_status st = rad_model_open_memory(bytes, n, &m, &err);

    count.tried++;
    said(st, &err, "open");
    CHECK((st == RAD_OK) == (m != NULL));
    if (st)
        return;
    count.opened++;
    read_tables(m);
    read_weights(m);
    err.text[0] = 0;
    said(rad_model_verify(m, NULL, &err), &err, "verify");
    if (deep) {
        use_tokenizer(m);
        build(m);
    }
    rad_model_unref(m);
}

/* ---- the damages */
static uint8_t *copy;

static bool in_tables(size_t at)
{
    return at < word(file, H_STR) + 65536 && at < word(file, H_DATA);
}
/* Is byte `at` worth it without --all? */
static bool taken(size_t at, size_t step)
{
    if (all || in_tables(at) || at > word(file, H_DATA) + word(file, H_DATA + 8))
        return true;
    return at / step % 256 == 0;
}

static void untouched(void)
{
    strcpy(what, "untouched");
    drive(file, file_len, true);
    CHECK(count.opened == 1 && count.tokenizers == 1 && count.points == 1 && count.plans == 1
          && count.answers == 1);
}

static void cuts(void)
{
    for (size_t at = 0; at < file_len; at += 97) {
        if (!taken(at, 97))
            continue;
        snprintf(what, sizeof what, "cut at %zu", at);
        drive(file, at, true);
        if (at < H_BYTES + 8)
            continue;
        /* once more with a header that says so, as a tool might have "repaired" */
        uint64_t len = at;
        memcpy(copy, file, at);
        memcpy(copy + H_BYTES, &len, 8);
        drive(copy, at, true);
    }
}

static void flips(void)
{
    memcpy(copy, file, file_len);
    for (size_t at = 0; at < file_len; at += 101) {
        if (!taken(at, 101))
            continue;
        for (int bit = 0; bit < 8; bit += in_tables(at) ? 3 : 8) {
            snprintf(what, sizeof what, "byte %zu, bit %d", at, bit);
            copy[at] ^= (uint8_t)(1 << bit);
            drive(copy, file_len, in_tables(at));
            copy[at] = file[at];
        }
    }
}

/* Each word of `n` records, of at most `most` of them, spread over the table. */
static void words(const char *table, uint64_t off, uint64_t n, size_t record, uint64_t most)
{
    static const uint64_t bad[] = { 0, 0x7fffffff, 0xffffffffffffffff, 1, 2, 7, 0xffffffff,
                                    0x100000000, 0x7fffffffffffffff };
    uint64_t step = n > most ? n / most : 1;
    size_t n_bad = all ? sizeof bad / sizeof *bad : 3;

    memcpy(copy, file, file_len);
    for (uint64_t i = 0; i < n; i += step)
        for (size_t at = off + i * record; at + 4 <= off + (i + 1) * record; at += 4)
            for (size_t b = 0; b < n_bad; b++) {
                size_t len = at % 8 || at + 8 > off + (i + 1) * record ? 4 : 8;
                snprintf(what, sizeof what, "%s %llu: word %zu = 0x%llx", table,
                         (unsigned long long)i, (at - off - i * record) / 4,
                         (unsigned long long)bad[b]);
                memcpy(copy + at, &bad[b], len);
                drive(copy, file_len, true);
                memcpy(copy + at, file + at, len);
            }
}

static void tables(void)
{
    words("header", 0, 1, H_END, 1);
    words("metadata", word(file, H_META), word(file, H_META + 8), 24, all ? 1000 : 16);
    words("weight", word(file, H_DIR), word(file, H_DIR + 8), 136, all ? 4 : 1);
    words("plane", word(file, H_PLANES), word(file, H_PLANES + 8), 16, all ? 4 : 1);
    words("vocab", word(file, H_VOCAB), 1, 128, 1);
    if (word(file, H_ENC + 8))
        words("encoding", word(file, H_ENC),
              1, (size_t)((word(file, H_VOCAB) - word(file, H_ENC)) / word(file, H_ENC + 8)), 1);
}

/* Numbers in the strings (the config is there as JSON) become other numbers of
 * as many characters. */
static void numbers(void)
{
    static const char *const as[] = { "9", "0", "-1", "1e9", "1e-9", "nul", "{}", "\"" };
    size_t n_as = all ? sizeof as / sizeof *as : 3;
    size_t off = word(file, H_STR), end = off + word(file, H_STR + 8);

    memcpy(copy, file, file_len);
    for (size_t at = off; at < end; at++) {
        size_t n = 0;
        while (at + n < end && file[at + n] >= '0' && file[at + n] <= '9')
            n++;
        if (!n || file[at - 1] == '_')
            continue;
        for (size_t k = 0; k < n_as; k++) {
            snprintf(what, sizeof what, "string byte %zu: %zu x '%s'", at - off, n, as[k]);
            for (size_t i = 0, s = strlen(as[k]); i < n; i++)
                copy[at + i] = (uint8_t)as[k][i < s ? i : s - 1];
            drive(copy, file_len, true);
            memcpy(copy + at, file + at, n);
        }
        at += n;
    }
}

static uint8_t *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(64 << 20);

    *n = f && p ? fread(p, 1, 64 << 20, f) : 0;
    if (f)
        fclose(f);
    return *n > H_END ? p : NULL;
}

int main(int argc, char **argv)
{
    struct rad_err err = { 0 };

    all = argc > 2 && !strcmp(argv[1], "--all");
    file = argc > 1 ? slurp(argv[argc - 1], &file_len) : NULL;
    copy = file ? malloc(file_len) : NULL;
    if (!copy || rad_lab_open(NULL, &lab, &err) || rad_plugins_open(NULL, NULL, &plugins, &err)) {
        fprintf(stderr, "damage-check: %s\n", file ? err.text : "usage: damage-check MODEL.rad");
        return 3;
    }
    TAP_RUN(untouched);
    TAP_RUN(cuts);
    TAP_RUN(flips);
    TAP_RUN(tables);
    TAP_RUN(numbers);
    printf("# %ld damaged files: %ld opened, %ld tokenizers, %ld points, %ld plans, %ld answers\n",
           count.tried, count.opened, count.tokenizers, count.points, count.plans, count.answers);
    rad_plugins_close(plugins);
    rad_lab_free(lab);
    free(copy);
    free((void *)(uintptr_t)file);
    return tap_done();
}
