/* SPDX-License-Identifier: Apache-2.0 */
/* Declare, issue and steps on the host and on the test device, with the
 * reference library and a tiny model (plan-tiny.c). Kernel choice has cases of
 * its own (plan-choice.c). */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan-check.h"
#include "tap.h"

/* ---- the tiny model with libref */
static struct rad_plugins *with_ref(const struct radi_exports *more)
{
    struct rad_plugins *p;
    struct rad_err err = { 0 };
    char path[512];
    const char *dir = getenv("RAD_BUILDDIR");
    snprintf(path, sizeof path, "%s/kernels/.libs/libref.so", dir ? dir : ".");
    rad_status st = radi_plugins_new("test", "", &p, &err);
    if (!st)
        st = rad_plugins_add_file(p, path, &err);
    if (!st)
        st = radi_plugins_add(p, "tiny.so", &tiny_exports, NULL, &err);
    if (!st && more)
        st = radi_plugins_add(p, "more.so", more, NULL, &err);
    if (!st)
        st = radi_plugins_settle(p, &err);
    if (st) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return p;
}
static struct rad_plugins *ref;
static struct rad_model *model;
static struct radi_pool *pool;
static const struct rad_deployment small = { .size = sizeof small, .max_tok = MAX_TOK,
    .max_seqs = MAX_SEQS, .max_ctx = MAX_CTX, .max_out = MAX_TOK, .parts = 2 };

static rad_status build(enum bend how, const struct rad_deployment *d, struct rad_plan **plan,
                        struct rad_err *err)
{
    bend = how;
    rad_status st = rad_plan_build_model(ref, model, d, plan, err);
    bend = BEND_NONE;
    return st;
}

static void declare_faults(void)
{
    static const struct { enum bend how; rad_status st; const char *text; } t[] = {
        { BEND_PARAM_TYPO, RAD_E_SCHEMA, "unknown parameter 'dtyp'; did you mean 'dtype'?" },
        { BEND_OP_TYPO, RAD_E_NOSCHEMA, "defines op 'gem_nt'; did you mean 'gemm_nt'?" },
        { BEND_PARAM_MISSING, RAD_E_SCHEMA, "op 'silu': parameter 'n' is missing" },
        { BEND_PARAM_TWICE, RAD_E_SCHEMA, "parameter 'n' stands twice" },
        { BEND_PARAM_KIND, RAD_E_SCHEMA, "parameter 'n' is a string, want an integer" },
        { BEND_SHAPE, RAD_E_SHAPE, "'token_embd.weight': stored as [48,32], want [48,33]" },
        { BEND_NO_WEIGHT, RAD_E_NOTFOUND, "weight 'absent.weight' is missing" },
        { BEND_NO_OUTPUT, RAD_E_STATE, "no output" },
        { BEND_CONCURRENT, RAD_E_UNSUPPORTED, "rad_buf_concurrent" },
        { BEND_ENCODER, RAD_E_UNSUPPORTED, "encoders are not served" },
        { BEND_FAIL, RAD_E_FORMAT, "plugin 'tiny': tiny.key is odd" },
        { BEND_MANY, RAD_E_NOKERNEL, "silu(M=1..24, n=32, dtype=i32): "
          "libref/silu_any_any_u1_ref: dtype=i32, want one of f32 bf16 f16 (3 times); "
          "no kernel for mul(M=1..24, n=32, dtype=u8)" },
    };
    for (size_t i = 0; i < RADI_COUNT(t); i++) {
        struct rad_err err = { 0 };
        struct rad_plan *plan;
        rad_status st = build(t[i].how, &small, &plan, &err);
        CHECK_MSG(st == t[i].st && !plan, "status %d, want %d: %s", st, t[i].st, err.text);
        HAS(err.text, t[i].text);
    }
    struct rad_err err = { 0 };
    struct rad_plan *plan;
    CHECK_MSG(!build(BEND_ASKED, &small, &plan, &err), "%s", err.text);
    char *text = NULL;
    if (plan && !rad_plan_graph_text(plan, &text, &err))
        HAS(text, "note the fused form is absent\n");
    free(text);
    rad_plan_free(plan);
}

/* The other fields: abi-check.c. */
static void refused_fields(void)
{
    struct rad_deployment d = small;
    struct rad_err err = { 0 };
    struct rad_plan *plan;
    d.kv_dtype = RAD_I8;
    CHECK(build(BEND_NONE, &d, &plan, &err) == RAD_E_UNSUPPORTED);
    HAS(err.text, "'kv_dtype': type i8");
    d = small;
    d.kv_tokens = MAX_CTX - 16;
    CHECK(build(BEND_NONE, &d, &plan, &err) == RAD_E_ARG);
    HAS(err.text, "kv group 'kv': the budget holds 48 tokens, one sequence of 64 must fit");
}

static void kv_budget(void)
{
    struct rad_deployment d = small;
    struct rad_err err = { 0 };
    struct rad_plan *plan;
    const uint64_t page = (uint64_t)L * HKV * 16 * 2 * C * 4;
    d.kv_tokens = 100;                           /* 7 pages, and page 0 */
    CHECK(!build(BEND_NONE, &d, &plan, &err));
    CHECK(plan && plan->kv[0].n_blocks == 8 && plan->kv[0].page_bytes == page);
    CHECK(plan && plan->size.kv == 8 * page);
    rad_plan_free(plan);
    d.kv_tokens = 0;
    d.kv_bytes = page * 7 + page / 2;            /* rounds down to 7, page 0 included */
    CHECK(!build(BEND_NONE, &d, &plan, &err));
    CHECK_MSG(plan && plan->kv[0].n_blocks == 7 && plan->size.kv <= d.kv_bytes, "%lld pages",
              plan ? (long long)plan->kv[0].n_blocks : 0);
    rad_plan_free(plan);
    d.kv_bytes = 0;
    CHECK(!build(BEND_NONE, &d, &plan, &err));   /* all sequences, for so little */
    CHECK(plan && plan->kv[0].n_blocks == 1 + MAX_SEQS * MAX_CTX / 16);
    CHECK(plan && rad_plan_weight_count(plan) == 3 + 6 * L);
    struct rad_plan_weight w;
    rad_plan_weight_at(plan, 0, &w);
    IS(w.name, "token_embd.weight");
    CHECK(w.n_map == 1 && !strcmp(w.map[0]->src[0], "token_embd.weight"));
    char *a = NULL, *b = NULL;
    CHECK(!rad_plan_memory_json(plan, &a, &err));
    HAS(a ? a : "", "\"copied_bytes\":768,");    /* three bf16 gains read as f32 */
    free(a);
    a = NULL;
    CHECK(!rad_plan_graph_text(plan, &a, &err));
    rad_plan_free(plan);
    CHECK(!build(BEND_NONE, &d, &plan, &err) && !rad_plan_graph_text(plan, &b, &err));
    CHECK(a && b && !strcmp(a, b));
    if (a)
        HAS(a, "op 0 embed_lookup(M=1..24, n_embd=32, n_vocab=48, dtype=f32) "
            "wte='token_embd.weight' <early >x\n"
            "  1..24 libref/embed_lookup_any_any_u1_ref rank 0\n");
    free(a);
    free(b);
    rad_plan_free(plan);
}

/* One sequence, tokens [from, from+n) of a fixed text, into pages of slot. */
static void fill(struct radi_rt *rt, int n_seq, const int *from, const int *n, bool all_out)
{
    struct radi_step *s = radi_rt_step(rt);
    s->n_tok = s->n_out = s->n_seq_decode = 0;
    s->n_seq = n_seq;
    s->cu_seqlens[0] = 0;
    for (int i = 0; i < n_seq; i++) {
        struct radi_step_kv *k = &s->kv[0];
        s->n_seq_decode += i == s->n_seq_decode && n[i] == 1;
        for (int64_t j = 0; j < k->max_blocks; j++)
            k->block_table[i * k->max_blocks + j] = (int32_t)(1 + i * k->max_blocks + j);
        for (int t = 0; t < n[i]; t++) {
            int pos = from[i] + t;
            int64_t at = s->n_tok++;
            s->token_ids[at] = (pos * 7 + 3 * i) % V;
            s->positions[at] = pos;
            s->seq_ids[at] = i;
            k->slot_mapping[at] = k->block_table[i * k->max_blocks + pos / 16] * 16 + pos % 16;
            if (all_out || t == n[i] - 1)
                s->out_ids[s->n_out++] = (int32_t)at;
        }
        k->seqused[i] = from[i] + n[i];
        s->q_lens[i] = n[i];
        s->ctx_lens[i] = from[i];
        s->cu_seqlens[i + 1] = (int32_t)s->n_tok;
    }
}

static const float *run(struct radi_rt *rt)
{
    struct rad_err err = { 0 };
    const float *logits = NULL;
    rad_status st = radi_rt_submit(rt, &err);
    if (!st)
        st = radi_rt_wait(rt, &logits, &err);
    CHECK_MSG(!st, "%s", err.text);
    return logits;
}

static struct radi_rt *open_rt(int device, struct rad_plan **plan)
{
    struct rad_deployment d = small;
    struct rad_err err = { 0 };
    struct radi_rt *rt = NULL;
    d.device = device;
    rad_status st = build(BEND_NONE, &d, plan, &err);
    if (!st)
        st = radi_rt_open(*plan, model, pool, &rt, &err);
    CHECK_MSG(!st, "%s", err.text);
    return rt;
}

static void close_rt(struct radi_rt *rt, struct rad_plan *plan)
{
    radi_rt_close(rt);
    rad_plan_free(plan);
}

/* Whole, in chunks, in company: the same bytes. */
static void chunks_and_batches(void)
{
    struct rad_plan *plan;
    struct radi_rt *rt = open_rt(RAD_DEVICE_HOST, &plan);
    static float want[20][V];
    if (!rt)
        return;
    fill(rt, 1, (int[]){ 0 }, (int[]){ 20 }, true);
    memcpy(want, run(rt), sizeof want);
    CHECK(seen_batch->phase == RAD_PHASE_PREFILL && seen_batch->max_q_len == 20);
    for (int chunk = 1; chunk <= 7; chunk += 3)
        for (int at = 0; at < 20; at += chunk) {
            int n = RADI_MIN(chunk, 20 - at);
            fill(rt, 1, &at, &n, true);
            CHECK(!memcmp(run(rt), want[at], (size_t)n * sizeof *want));
        }
    for (int at = 0; at < 19; at += 2) {
        fill(rt, 3, (int[]){ at, at, 0 }, (int[]){ 1, 2, 9 }, true);
        const float *l = run(rt);
        CHECK(seen_batch->phase == RAD_PHASE_MIXED && seen_batch->n_seq_decode == 1);
        CHECK(seen_batch->n_tok_decode == 1 && seen_batch->max_q_len_prefill == 9);
        CHECK(!memcmp(l, want[at], sizeof *want));
        at -= at == 18;
        fill(rt, 1, (int[]){ at + 1 }, (int[]){ 1 }, true);
        CHECK(!memcmp(run(rt), want[at + 1], sizeof *want));
        CHECK(seen_batch->phase == RAD_PHASE_DECODE);
    }
    fill(rt, 1, (int[]){ 0 }, (int[]){ 5 }, false);
    radi_rt_step(rt)->n_out = 0;                 /* a chunk that wants no logits */
    CHECK(!run(rt));
    CHECK(radi_rt_vocab(rt) == V && radi_rt_max_out(rt) == MAX_TOK && radi_rt_n_kv(rt) == 1);
    close_rt(rt, plan);
}

static void test_device(void)
{
    struct rad_plan *ph, *pd;
    struct radi_rt *h = open_rt(RAD_DEVICE_HOST, &ph), *d = open_rt(RAD_DEVICE_TEST, &pd);
    if (!h || !d)
        return;
    uint64_t syncs = radi_rt_syncs(d), allocs = 0;
    for (int i = 0; i < 12; i++) {
        int from[] = { i, 2 * i, 0 }, n[] = { 1, 2, 7 + i % 3 };
        fill(h, 3, from, n, i % 2);
        fill(d, 3, from, n, i % 2);
        size_t bytes = (size_t)radi_rt_step(h)->n_out * V * sizeof(float);
        const float *a = run(h), *b;
        if (i == 1)
            allocs = radi_alloc_count();
        struct rad_err err = { 0 };
        CHECK(!radi_rt_submit(d, &err));
        /* the step may be refilled at once: staging is a copy */
        memset(radi_rt_step(d)->token_ids, 0x55, MAX_TOK * sizeof(int32_t));
        CHECK(radi_rt_submit(d, &err) == RAD_E_STATE);
        CHECK(!radi_rt_wait(d, &b, &err));
        CHECK_MSG(a && b && !memcmp(a, b, bytes), "step %d differs", i);
    }
    CHECK(radi_rt_syncs(d) == syncs + 12);
    CHECK_MSG(radi_alloc_count() == allocs, "%llu allocations",
              (unsigned long long)(radi_alloc_count() - allocs));
    CHECK(((uintptr_t)d->arena >> 48) == 0xad);
    close_rt(h, ph);
    close_rt(d, pd);
}

/* A library with a layout of its own, for few rows and f32 weights only. */
static void packed_weights(void)
{
    struct rad_plugins *both = with_ref(&libpack_exports), *only = ref;
    static float want[4][V];
    for (int dev = 0; dev < 2; dev++) {
        struct rad_plan *plan;
        ref = only;
        struct radi_rt *rt = open_rt(dev, &plan);
        if (!rt)
            break;
        fill(rt, 1, (int[]){ 0 }, (int[]){ 4 }, true);
        memcpy(want, run(rt), sizeof want);
        close_rt(rt, plan);
        ref = both;
        rt = open_rt(dev, &plan);
        if (!rt)
            break;
        /* gate_up is f32: laid out for small steps, planes for large ones; a
         * bf16 weight is read as it is */
        CHECK(plan->n_layouts == L && plan->size.weights_layout == (uint64_t)L * 12288);
        CHECK(pack_inits == L);
        pack_launches = 0;
        fill(rt, 1, (int[]){ 0 }, (int[]){ 4 }, true);
        const float *got = run(rt);
        CHECK(pack_launches == L);
        double err = 0;
        for (int i = 0; i < 4 * V; i++)
            err = RADI_MAX(err, fabs((double)got[i] - (double)want[i / V][i % V]));
        CHECK_MSG(err < 1e-5, "differs by %g", err);
        fill(rt, 1, (int[]){ 0 }, (int[]){ 9 }, true);
        got = run(rt);
        CHECK(pack_launches == L && !memcmp(got, want, 4 * sizeof *want));
        close_rt(rt, plan);
        CHECK(pack_inits == 0);
    }
    ref = only;
    rad_plugins_close(both);
}

static void (*child)(struct radi_rt *rt);
static int signal_of(struct radi_rt *rt, void (*fn)(struct radi_rt *))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        child = fn;
        child(rt);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
static void touch_arena(struct radi_rt *rt) { *(volatile uint8_t *)rt->arena = 1; }
static void touch_batch(struct radi_rt *rt)
{
    struct rad_err err = { 0 };
    peek = 1;                                    /* the architecture's step reads token_ids */
    step_rc = radi_rt_submit(rt, &err);
}
static void nothing(struct radi_rt *rt) { (void)rt; }

static void host_reads_fault(void)
{
    struct rad_plan *plan;
    struct radi_rt *rt = open_rt(RAD_DEVICE_TEST, &plan);
    if (!rt)
        return;
    fill(rt, 1, (int[]){ 0 }, (int[]){ 3 }, true);
    CHECK(signal_of(rt, touch_arena) == SIGSEGV);
    CHECK(signal_of(rt, touch_batch) == SIGSEGV);
    CHECK(signal_of(rt, nothing) == 0);
    /* what is not the device's is refused */
    const struct radi_device_ops *o = rt->dev->ops;
    float x = 0;
    CHECK(o->upload(rt->dev, rt->stream, rt->arena, &x, 4) == RAD_E_DEVICE);
    CHECK(o->upload(rt->dev, rt->stream, rt->stage_host, rt->stage_host, 4) == RAD_E_DEVICE);
    CHECK(o->download(rt->dev, rt->stream, rt->logits, rt->arena, 1ull << 40) == RAD_E_DEVICE);
    RadTensor t = { .data = &x, .dtype = RAD_F32, .rank = 1, .shape = { 1 }, .stride = { 1 } };
    RadLaunch a = { .struct_size = sizeof a, .n_opd = 1, .opd = &t,
                    .params = rt->plan->op[0].band[0].params };
    CHECK(o->launch(rt->dev, rt->stream, rt->plan->op[0].band[0].row, &a) == RAD_E_DEVICE);
    close_rt(rt, plan);
}

static void issue_faults(void)
{
    static const struct { enum bend how; rad_status st; const char *text; } t[] = {
        { BEND_SPAN, RAD_E_SHAPE, "of buffer 'x' [24,32]" },
        { BEND_COLS, RAD_E_SHAPE, "slice 1 + [4,32] of buffer 'x'" },
        { BEND_ZERO, RAD_E_SHAPE, "op 'add' is issued over no rows" },
        { BEND_LIFE, RAD_E_STATE, "uses buffer 'early', which lives from op 0 to 0" },
        { BEND_COUNT, RAD_E_SCHEMA, "op 'add': 2 operands, want 3" },
        { BEND_BAND, RAD_E_NOKERNEL, "M=25 is outside of 1..24" },
        { BEND_KV_LAYER, RAD_E_ARG, "layer 2 is not bound to kv group 'kv'" },
        { BEND_NO_TYPE, RAD_E_ARG, "raw operand of type invalid" },
        { BEND_LANE, RAD_E_UNSUPPORTED, "rad_lane(1)" },
        { BEND_WEIGHT, RAD_E_STATE, "not declared with weight 'blk.1.attn_qkv.weight'" },
        { BEND_GIVE_UP, RAD_E_STATE, "no more" },
        { BEND_ALIGN, RAD_E_ALIGN, "'nibbles': element 1 of u4 begins inside a byte" },
    };
    for (int dev = 0; dev < 2; dev++) {
        struct rad_plan *plan;
        struct radi_rt *rt = open_rt(dev, &plan);
        if (!rt)
            return;
        for (size_t i = 0; i < RADI_COUNT(t); i++) {
            struct rad_err err = { 0 };
            fill(rt, 1, (int[]){ 0 }, (int[]){ 4 }, true);
            bend = t[i].how;
            rad_status st = radi_rt_submit(rt, &err);
            bend = BEND_NONE;
            CHECK_MSG(st == t[i].st && step_rc == (int)st, "case %zu: %d: %s", i, st, err.text);
            CHECK_MSG(step_rc2 == step_rc, "case %zu: not sticky: %d", i, step_rc2);
            HAS(err.text, t[i].text);
        }
        fill(rt, 1, (int[]){ 0 }, (int[]){ 4 }, true);
        CHECK(run(rt));                          /* the next step is another */
        struct rad_err err = { 0 };
        /* a kernel's own refusal: at once on the host, at the wait elsewhere */
        const float *l;
        bend = BEND_KERNEL;
        rad_status st = radi_rt_submit(rt, &err);
        bend = BEND_NONE;
        if (dev) {
            CHECK_MSG(!st, "%s", err.text);
            st = radi_rt_wait(rt, &l, &err);
            CHECK(!l);
        }
        CHECK_MSG(st == RAD_E_SHAPE, "%d: %s", st, err.text);
        fill(rt, 1, (int[]){ 0 }, (int[]){ 4 }, true);
        CHECK(run(rt));
        radi_rt_step(rt)->n_tok = MAX_TOK + 1;
        CHECK(radi_rt_submit(rt, &err) == RAD_E_ARG);
        fill(rt, 1, (int[]){ 0 }, (int[]){ 4 }, true);
        radi_rt_step(rt)->cu_seqlens[1] = 5;
        CHECK(radi_rt_submit(rt, &err) == RAD_E_ARG);
        close_rt(rt, plan);
    }
}

static void no_memory(void)
{
    for (uint64_t n = 1; n < 4000; n += n < 60 ? 1 : 37) {
        struct rad_plan *plan = NULL;
        struct rad_err err = { 0 };
        struct radi_rt *rt = NULL;
        struct rad_deployment d = small;
        d.device = (int)(n % 2);
        radi_alloc_fail_at(n);
        rad_status st = build(BEND_NONE, &d, &plan, &err);
        if (!st)
            st = radi_rt_open(plan, model, pool, &rt, &err);
        radi_alloc_fail_at(0);
        CHECK_MSG(st == RAD_OK || st == RAD_E_NOMEM, "allocation %llu: %d %s",
                  (unsigned long long)n, st, err.text);
        close_rt(rt, plan);
    }
}

/* plan-check --home DIR [ORDER]: opens a search path, for the bats cases. */
static int open_home(const char *home, const char *order)
{
    struct rad_plugins *p;
    struct rad_err err = { 0 };
    if (rad_plugins_open(home, order, &p, &err)) {
        fprintf(stderr, "plan-check: %s\n", err.text);
        return 3;
    }
    for (int i = 0; i < rad_plugins_count(p); i++) {
        struct rad_plugin_desc d;
        rad_plugins_at(p, i, &d);
        printf("%s %d\n", d.path, d.order);
    }
    rad_plugins_close(p);
    return 0;
}

static int open_twice(const char *home)
{
    struct rad_plugins *p, *q;
    if (rad_plugins_open(home, "", &p, NULL) || rad_plugins_open(home, "", &q, NULL))
        return 3;
    puts("both");
    rad_plugins_close(p);
    puts("one");
    rad_plugins_close(q);
    return 0;
}

int main(int argc, char **argv)
{
    struct rad_err err = { 0 };
    if (argc >= 3 && !strcmp(argv[1], "--twice"))
        return open_twice(argv[2]);
    if (argc >= 3 && !strcmp(argv[1], "--home"))
        return open_home(argv[2], argc > 3 ? argv[3] : "");
    choice_cases();
    ref = with_ref(NULL);
    model = tiny_model();
    if (!model || radi_pool_new(2, &pool, &err)) {
        printf("Bail out! no model or pool\n");
        return 1;
    }
    TAP_RUN(declare_faults);
    TAP_RUN(refused_fields);
    TAP_RUN(kv_budget);
    TAP_RUN(chunks_and_batches);
    TAP_RUN(test_device);
    TAP_RUN(packed_weights);
    TAP_RUN(host_reads_fault);
    TAP_RUN(issue_faults);
    TAP_RUN(no_memory);
    radi_pool_free(pool);
    rad_model_unref(model);
    rad_plugins_close(ref);
    return tap_done();
}
