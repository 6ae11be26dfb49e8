/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails, for all n, in what the commands are made of:
 * reading the data files, a tokenizer, a conversion to its last byte, plugins
 * and a plan, an engine and one request. Held: no crash and no leak (the
 * sanitizers watch), RAD_E_NOMEM with a message and nothing else, no output,
 * and no file left behind.
 *
 *   fault-check [--all] DIR     DIR: a small checkpoint with its tokenizer.json;
 *                               plugins come from RADIANCE_HOME
 *
 * Without --all: every n up to 300, then about 200 of the rest. */
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rad/ckpt.h>
#include <rad/convert.h>
#include <rad/engine.h>
#include <rad/lab.h>
#include <rad/model.h>
#include <rad/rad_runtime.h>
#include <rad/tokenizer.h>

#include "base/base.h"
#include "tap.h"

/* Called by plugins only, so the linker would leave their objects out. */
extern const void *const fault_check_keep[];
const void *const fault_check_keep[] = { (const void *)rad_decl_op, (const void *)rad_issue,
                                         (const void *)rad_state,
                                         (const void *)rad_lab_graph_new };

static bool all;
static const char *checkpoint;
static char dir[] = "/tmp/fault-check.XXXXXX", target[64];
static struct rad_model *model;
static struct rad_tokenizer *tokenizer;
static char *json;
static size_t json_len;

/* One try of the thing; on failure what it was to make is not there. */
typedef rad_status try_fn(struct rad_err *err);

static rad_status try_lab(struct rad_err *err)
{
    struct rad_lab *lab = (void *)err;
    rad_status st = rad_lab_open(NULL, &lab, err);
    CHECK((st == RAD_OK) == (lab != NULL));
    rad_lab_free(lab);
    return st;
}

static rad_status try_tokenizer(struct rad_err *err)
{
    struct rad_tok_files f = { .size = sizeof f, .tokenizer = json, .tokenizer_len = json_len };
    struct rad_tokenizer *t = (void *)err;
    rad_status st = rad_tokenizer_from_json(&f, &t, err);
    CHECK((st == RAD_OK) == (t != NULL));
    rad_tokenizer_free(t);
    return st;
}

static rad_status intern(void *user, const char *s, size_t n, uint64_t *off, struct rad_err *err)
{
    (void)user, (void)s, (void)err;
    *off = n;
    return RAD_OK;
}

/* What a conversion takes of it. */
static rad_status try_vocab(struct rad_err *err)
{
    struct rad_tok_text vocab = { 0 }, cert = { 0 };
    rad_status st = rad_tokenizer_write_vocab(tokenizer, intern, NULL, &vocab, err);
    if (!st)
        st = rad_tokenizer_certificate_make(tokenizer, &cert, err);
    rad_tok_text_release(&vocab);
    rad_tok_text_release(&cert);
    return st;
}

static int n_files(void)
{
    DIR *d = opendir(dir);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

static rad_status try_convert(struct rad_err *err)
{
    struct rad_convert_opts o = { .size = sizeof o, .threads = 1 };
    struct rad_convert *c = (void *)err;
    unlink(target);
    rad_status st = rad_convert_open(checkpoint, &o, &c, err);
    CHECK((st == RAD_OK) == (c != NULL));
    if (!st)
        st = rad_convert_write(c, target, NULL, NULL, err);
    rad_convert_close(c);
    CHECK_MSG(n_files() == !st, "%d files after %d: %s", n_files(), (int)st, err->text);
    return st;
}

static rad_status try_plan(struct rad_err *err)
{
    struct rad_deployment d = { .size = sizeof d, .max_seqs = 2, .max_tok = 16, .max_ctx = 32 };
    struct rad_plugins *p = (void *)err;
    struct rad_plan *plan = NULL;
    char *memory = NULL, *graph = NULL;
    rad_status st = rad_plugins_open(NULL, NULL, &p, err);
    CHECK((st == RAD_OK) == (p != NULL));
    if (!st)
        st = rad_plan_build_model(p, model, &d, &plan, err);
    if (!st)
        st = rad_plan_memory_json(plan, &memory, err);
    if (!st)
        st = rad_plan_graph_text(plan, &graph, err);
    free(memory);
    free(graph);
    rad_plan_free(plan);
    rad_plugins_close(p);
    return st;
}

/* The engine's own thread calls this, and is joined before `end` is read. */
struct end { int n_done, finish; int64_t n_out; };
static int event(void *user, const struct rad_token_event *ev)
{
    struct end *e = user;
    if (ev->done) {
        e->n_done++;
        e->finish = (int)ev->finish;
        CHECK(ev->finish != RAD_FINISH_ERROR || (ev->error && ev->error[0]));
    } else
        e->n_out++;
    return 0;
}

static rad_status try_engine(struct rad_err *err)
{
    const int32_t ids[] = { 1, 2, 3 };
    struct rad_engine_opts o = { .size = sizeof o, .threads = 1, .dep = { .size = sizeof o.dep,
                                 .max_seqs = 2, .max_tok = 16, .max_ctx = 32 } };
    struct end end = { 0 };
    struct rad_request_opts r = { .size = sizeof r, .ids = ids, .n_ids = 3, .max_tokens = 3,
                                  .ignore_eos = 1, .sink = event, .user = &end };
    struct rad_engine *e = (void *)err;
    uint64_t id;
    rad_status st = rad_engine_open(model, &o, &e, err);
    CHECK((st == RAD_OK) == (e != NULL));
    if (st)
        return st;
    rad_sampling_default(&r.sampling);
    st = rad_engine_submit(e, &r, &id, err);
    bool sent = !st;
    if (sent)
        CHECK(rad_engine_drain(e, 20000, NULL) == RAD_OK);
    rad_engine_close(e);
    if (sent) {
        CHECK_MSG(end.n_done == 1, "%d last events", end.n_done);
        if (end.finish == RAD_FINISH_ERROR)
            st = rad_fail(err, RAD_E_NOMEM, "the request failed");
        else
            CHECK_MSG(end.finish == RAD_FINISH_LENGTH && end.n_out == 3, "%d after %d tokens",
                      end.finish, (int)end.n_out);
    }
    return st;
}

static void each(const char *name, try_fn *fn)
{
    struct rad_err err = { 0 };
    uint64_t before = radi_alloc_count();
    tap_begin(name);
    rad_status st = fn(&err);
    CHECK_MSG(!st, "without a fault: %s", err.text);
    before = radi_alloc_count();
    st = fn(&err);                /* what is made once is made by now */
    uint64_t total = radi_alloc_count() - before, failed = 0, step = 1;
    for (uint64_t n = 1; !tap_bad && n <= total; n += step) {
        if (!all && n >= 300)
            step = 1 + total / 200;
        err = (struct rad_err){ 0 };
        radi_alloc_fail_at(n);
        st = fn(&err);
        radi_alloc_fail_at(0);
        CHECK_MSG(!st || (st == RAD_E_NOMEM && err.text[0]), "allocation %llu of %llu: %d: '%s'",
                  (unsigned long long)n, (unsigned long long)total, (int)st, err.text);
        failed += st != RAD_OK;
    }
    CHECK_MSG(failed > 0, "nothing failed");
    printf("# %s: %llu allocations, %llu of the tries failed\n", name, (unsigned long long)total,
           (unsigned long long)failed);
    tap_end();
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = malloc(1 << 20);
    *n = f && p ? fread(p, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    return p;
}

int main(int argc, char **argv)
{
    struct rad_err err = { 0 };
    char path[4096];

    all = argc > 2 && !strcmp(argv[1], "--all");
    checkpoint = argv[argc - 1];
    snprintf(path, sizeof path, "%s/tokenizer.json", checkpoint);
    json = slurp(path, &json_len);
    if (argc < 2 || !json_len || !mkdtemp(dir)) {
        fprintf(stderr, "usage: fault-check DIR\n");
        return 3;
    }
    snprintf(target, sizeof target, "%s/m.rad", dir);
    each("lab", try_lab);
    each("tokenizer", try_tokenizer);
    if (rad_tokenizer_open(path, &tokenizer, &err)) {
        fprintf(stderr, "fault-check: %s\n", err.text);
        return 3;
    }
    each("vocab", try_vocab);
    each("convert", try_convert);
    if (try_convert(&err) || rad_model_open(target, &model, &err)) {
        fprintf(stderr, "fault-check: %s\n", err.text);
        return 3;
    }
    each("plan", try_plan);
    each("engine", try_engine);
    rad_model_unref(model);
    rad_tokenizer_free(tokenizer);
    unlink(target);
    rmdir(dir);
    free(json);
    return tap_done();
}
