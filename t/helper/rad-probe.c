/* SPDX-License-Identifier: Apache-2.0 */
/* Small verbs for what no command shows.
 *
 *   rad-probe golden MODEL.rad DIR    runs the reference prompt of a golden
 *       folder: whole, chunked at 1, 7 and 64, beside seven other requests,
 *       and on the test device; prints one row
 *       NAME  max logit error  greedy ids that agree  PASS or FAIL: why
 *       Exit 0 PASS, 1 FAIL, 3 could not run.
 *   rad-probe same A.rad B.rad [TOLERANCE]    logits of both at one fixed text;
 *       without a tolerance they are the same bytes. Exit as above.
 *   rad-probe homes A.rad HOME    an engine under RADIANCE_HOME and one under
 *       HOME at once: the second changes nothing for the first. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include <rad/ckpt.h>
#include <rad/engine.h>
#include <rad/model.h>

static int die(const char *what, const struct rad_err *err)
{
    fprintf(stderr, "rad-probe: %s: %s\n", what, err ? err->text : "");
    return 3;
}

/* ---- the reference */
struct golden {
    const char *name;
    int64_t n_prompt, vocab, n_greedy, n_steps;
    int32_t *ids, *greedy, *steps;
    float *logits, *step_logits;       /* [n_prompt, vocab], [n_steps, vocab] */
    double tolerance;
};

static void *tensor(struct rad_ckpt *ck, const char *name, int rank, int64_t *d0, int64_t *d1)
{
    int64_t i = rad_ckpt_find(ck, name);
    if (i < 0)
        return NULL;
    const struct rad_ckpt_tensor *t = rad_ckpt_tensor(ck, (size_t)i);
    if (t->rank != rank)
        return NULL;
    *d0 = t->shape[0];
    if (d1)
        *d1 = rank > 1 ? t->shape[1] : 1;
    void *p = malloc((size_t)t->bytes + 1);
    if (p)
        memcpy(p, t->data, (size_t)t->bytes);
    return p;
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *s = malloc(1 << 20);
    size_t n = s ? fread(s, 1, (1 << 20) - 1, f) : 0;
    fclose(f);
    if (s)
        s[n] = 0;
    return s;
}

static int load(const char *dir, struct golden *g)
{
    char path[4096];
    struct rad_err err = { 0 };
    struct rad_ckpt *ck = NULL;
    snprintf(path, sizeof path, "%s/expected.json", dir);
    char *text = slurp(path);
    cJSON *j = text ? cJSON_Parse(text) : NULL;
    if (!j)
        return die(path, NULL);
    const cJSON *tol = cJSON_GetObjectItem(cJSON_GetObjectItem(j, "tolerance"),
                                           "f32_engine_logits_max_abs");
    g->tolerance = cJSON_IsNumber(tol) ? tol->valuedouble : 1e-3;
    free(text);
    cJSON_Delete(j);
    snprintf(path, sizeof path, "%s/expected.safetensors", dir);
    if (rad_ckpt_open(path, &ck, &err))
        return die(path, &err);
    int64_t n;
    g->ids = tensor(ck, "input_ids", 1, &g->n_prompt, NULL);
    g->logits = tensor(ck, "logits", 2, &n, &g->vocab);
    g->greedy = tensor(ck, "greedy_ids", 1, &g->n_greedy, NULL);
    g->steps = tensor(ck, "greedy_steps", 1, &g->n_steps, NULL);
    g->step_logits = tensor(ck, "greedy_logits", 2, &n, &g->vocab);
    rad_ckpt_close(ck);
    if (!g->ids || !g->logits || !g->greedy)
        return die(path, &(struct rad_err){ .text = "not a text decoder's reference" });
    return 0;
}

/* ---- one run */
struct run {
    pthread_mutex_t m;
    pthread_cond_t c;
    int64_t n_rows, cap, vocab;
    float *rows;                        /* by position */
    int32_t out[4096];
    int64_t n_out;
    int done;
    char error[RAD_ERR_TEXT];
};

static void on_logits(void *user, int64_t pos, const float *l, int64_t vocab)
{
    struct run *r = user;
    if (pos < r->cap && vocab == r->vocab)
        memcpy(r->rows + pos * vocab, l, (size_t)vocab * sizeof *l);
    r->n_rows++;
}
static int on_token(void *user, const struct rad_token_event *ev)
{
    struct run *r = user;
    pthread_mutex_lock(&r->m);
    if (ev->done) {
        r->done = 1;
        if (ev->error)
            snprintf(r->error, sizeof r->error, "%s", ev->error);
        pthread_cond_signal(&r->c);
    } else if (r->n_out < 4096) {
        r->out[r->n_out++] = ev->id;
    }
    pthread_mutex_unlock(&r->m);
    return 0;
}

static int engine(struct rad_model *m, const struct golden *g, int64_t chunk, int device,
                  const char *home, struct rad_engine **e, char *why, size_t n_why)
{
    struct rad_err err = { 0 };
    struct rad_engine_opts o = { .size = sizeof o, .chunk = chunk, .threads = 2, .home = home };
    o.dep.max_tok = 256;
    o.dep.max_out = 256;
    o.dep.max_seqs = 8;
    o.dep.device = device;
    o.dep.max_ctx = g->n_prompt + g->n_greedy + 1;
    *e = NULL;
    if (!rad_engine_open(m, &o, e, &err))
        return 0;
    snprintf(why, n_why, "%s", err.text);
    return 3;
}

/* Runs the golden's prompt; `others` more requests beside it. */
static int drive(struct rad_engine *e, const struct golden *g, int others, struct run *r,
                 char *why, size_t n_why)
{
    struct rad_err err = { 0 };
    memset(r, 0, sizeof *r);
    pthread_mutex_init(&r->m, NULL);
    pthread_cond_init(&r->c, NULL);
    r->vocab = rad_engine_vocab(e);
    r->cap = g->n_prompt + g->n_greedy;
    r->rows = calloc((size_t)(r->cap * r->vocab), sizeof *r->rows);
    int rc = 0;
    for (int k = 0; k <= others && !rc; k++) {
        struct rad_request_opts q = { .size = sizeof q, .ids = g->ids, .n_ids = g->n_prompt,
                                      .max_tokens = g->n_greedy, .ignore_eos = 1 };
        rad_sampling_default(&q.sampling);
        q.sampling.temperature = 0;
        if (k == others / 2) {          /* ours stands among the others */
            q.sink = on_token;
            q.logits = on_logits;
            q.user = r;
        } else {                        /* other texts, other lengths */
            q.ids += 1 + k;
            q.n_ids -= 2 + 3 * k;
            q.sampling.temperature = 0.7;
            q.sampling.seed = (uint64_t)k;
        }
        if (rad_engine_submit(e, &q, NULL, &err)) {
            snprintf(why, n_why, "%s", err.text);
            rc = 3;
        }
    }
    pthread_mutex_lock(&r->m);
    while (!rc && !r->done)
        pthread_cond_wait(&r->c, &r->m);
    pthread_mutex_unlock(&r->m);
    if (!rc && r->error[0]) {
        snprintf(why, n_why, "%s", r->error);
        rc = 3;
    }
    return rc;
}

static int run_once(struct rad_model *m, const struct golden *g, int64_t chunk, int others,
                    int device, struct run *r, char *why, size_t n_why)
{
    struct rad_engine *e;
    memset(r, 0, sizeof *r);
    int rc = engine(m, g, chunk, device, NULL, &e, why, n_why);
    if (rc)
        return rc;
    rc = drive(e, g, others, r, why, n_why);
    rad_engine_close(e);
    return rc;
}

static double row_error(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= worst))              /* a NaN is the worst of all */
            worst = d;
    }
    return worst;
}

static int golden(const char *model, const char *dir)
{
    struct golden g = { 0 };
    struct rad_err err = { 0 };
    struct rad_model *m = NULL;
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    size_t at = len;
    while (at && dir[at - 1] != '/')
        at--;
    char name[256], why[1024] = "";
    snprintf(name, sizeof name, "%.*s", (int)(len - at), dir + at);
    int rc = load(dir, &g);
    if (rc)
        return rc;
    if (rad_model_open(model, &m, &err))
        return die(model, &err);
    struct run r0, r;
    rc = run_once(m, &g, 0, 0, RAD_DEVICE_HOST, &r0, why, sizeof why);
    if (rc) {
        printf("%-24s %10s %7s  FAIL: %s\n", name, "-", "-", why);
        return 1;
    }
    double worst = r0.vocab < g.vocab ? INFINITY : 0;
    for (int64_t p = 0; p < g.n_prompt && r0.vocab >= g.vocab; p++) {
        double d = row_error(r0.rows + p * r0.vocab, g.logits + p * g.vocab, g.vocab);
        worst = d > worst || d != d ? d : worst;
    }
    for (int64_t s = 0; g.steps && g.step_logits && s < g.n_steps && r0.vocab >= g.vocab; s++) {
        int64_t p = g.n_prompt - 1 + g.steps[s];
        double d = row_error(r0.rows + p * r0.vocab, g.step_logits + s * g.vocab, g.vocab);
        worst = d > worst || d != d ? d : worst;
    }
    int64_t same = 0;
    while (same < g.n_greedy && same < r0.n_out && r0.out[same] == g.greedy[same])
        same++;
    if (!(worst <= g.tolerance))
        snprintf(why, sizeof why, "logits differ by more than %g", g.tolerance);
    else if (same < g.n_greedy)
        snprintf(why, sizeof why, "greedy ids part at %lld", (long long)same);
    static const struct { const char *what; int64_t chunk; int others, device; } again[] = {
        { "chunked at 1", 1, 0, RAD_DEVICE_HOST }, { "chunked at 7", 7, 0, RAD_DEVICE_HOST },
        { "chunked at 64", 64, 0, RAD_DEVICE_HOST }, { "in a batch of 8", 0, 7, RAD_DEVICE_HOST },
        { "in a batch of 8 chunked at 7", 7, 7, RAD_DEVICE_HOST },
        { "on the test device", 0, 0, RAD_DEVICE_TEST },
    };
    for (size_t i = 0; !why[0] && i < sizeof again / sizeof again[0]; i++) {
        char text[RAD_ERR_TEXT] = "";
        rc = run_once(m, &g, again[i].chunk, again[i].others, again[i].device, &r, text, sizeof text);
        if (rc)
            snprintf(why, sizeof why, "%s: %s", again[i].what, text);
        else if (r.n_out != r0.n_out || memcmp(r.out, r0.out, (size_t)r.n_out * sizeof r.out[0]) ||
                 memcmp(r.rows, r0.rows, (size_t)((r.cap - 1) * r.vocab) * sizeof *r.rows))
            snprintf(why, sizeof why, "%s: other bytes than alone", again[i].what);
        free(r.rows);
    }
    printf("%-24s %10.2e %3lld/%lld  %s%s\n", name, worst, (long long)same, (long long)g.n_greedy,
           why[0] ? "FAIL: " : "PASS", why);
    rad_model_unref(m);
    free(r0.rows);
    free(g.ids);
    free(g.logits);
    free(g.greedy);
    free(g.steps);
    free(g.step_logits);
    return why[0] ? 1 : 0;
}

/* ---- one text, two models or two homes */
static int32_t some_ids[40];

static void some_text(struct golden *g)
{
    for (int i = 0; i < 40; i++)
        some_ids[i] = i * 7919 % 256;
    *g = (struct golden){ .ids = some_ids, .n_prompt = 40, .n_greedy = 8 };
}

/* The largest difference, and whether all bytes agree. */
static double compare(const struct run *a, const struct run *b, int *bytes)
{
    size_t n = (size_t)((a->cap - 1) * a->vocab);
    *bytes = a->vocab == b->vocab && a->n_out == b->n_out &&
             !memcmp(a->out, b->out, (size_t)a->n_out * sizeof *a->out) &&
             !memcmp(a->rows, b->rows, n * sizeof *a->rows);
    return a->vocab == b->vocab ? row_error(a->rows, b->rows, (int64_t)n) : INFINITY;
}

static int verdict(const char *name, double worst, int ok)
{
    printf("%-24s %10.2e  %s\n", name, worst, ok ? "PASS" : "FAIL");
    return !ok;
}

static int same(const char *a, const char *b, const char *tolerance)
{
    const char *path[2] = { a, b };
    struct rad_err err = { 0 };
    struct run r[2];
    struct golden g;
    char why[1024] = "";
    int bytes, rc = 0;
    for (int i = 0; i < 2 && !rc; i++) {
        struct rad_model *m = NULL;
        if (rad_model_open(path[i], &m, &err))
            return die(path[i], &err);
        some_text(&g);
        rc = run_once(m, &g, 0, 0, RAD_DEVICE_HOST, &r[i], why, sizeof why);
        rad_model_unref(m);
    }
    if (rc) {
        fprintf(stderr, "rad-probe: %s\n", why);
        return rc;
    }
    double worst = compare(&r[0], &r[1], &bytes);
    free(r[0].rows);
    free(r[1].rows);
    return verdict("same", worst, tolerance ? worst <= strtod(tolerance, NULL) : bytes);
}

static int homes(const char *model, const char *home)
{
    struct rad_err err = { 0 };
    struct rad_model *m = NULL;
    struct rad_engine *e[2] = { NULL };
    struct run r[3] = { 0 };
    struct golden g;
    char why[1024] = "";
    int b1 = 0, b2 = 0;
    if (rad_model_open(model, &m, &err))
        return die(model, &err);
    some_text(&g);
    int rc = engine(m, &g, 0, RAD_DEVICE_HOST, NULL, &e[0], why, sizeof why);
    rc = rc ? rc : drive(e[0], &g, 0, &r[0], why, sizeof why);
    rc = rc ? rc : engine(m, &g, 0, RAD_DEVICE_HOST, home, &e[1], why, sizeof why);
    rc = rc ? rc : drive(e[0], &g, 0, &r[1], why, sizeof why);
    rc = rc ? rc : drive(e[1], &g, 0, &r[2], why, sizeof why);
    rad_engine_close(e[1]);
    rad_engine_close(e[0]);
    rad_model_unref(m);
    if (rc) {
        fprintf(stderr, "rad-probe: %s\n", why);
    } else {
        double d1 = compare(&r[0], &r[1], &b1), d2 = compare(&r[0], &r[2], &b2);
        rc = verdict("homes", fmax(d1, d2), b1 && b2);
    }
    for (int i = 0; i < 3; i++)
        free(r[i].rows);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "golden"))
        return golden(argv[2], argv[3]);
    if ((argc == 4 || argc == 5) && !strcmp(argv[1], "same"))
        return same(argv[2], argv[3], argv[4]);
    if (argc == 4 && !strcmp(argv[1], "homes"))
        return homes(argv[2], argv[3]);
    fprintf(stderr, "usage: rad-probe golden MODEL.rad DIR\n"
                    "       rad-probe same A.rad B.rad [TOLERANCE]\n"
                    "       rad-probe homes A.rad HOME\n");
    return 2;
}
