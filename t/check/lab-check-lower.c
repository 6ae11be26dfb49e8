/* SPDX-License-Identifier: Apache-2.0 */
/* The lowering against a recording builder: what is declared, in which order
 * it is issued, with which operands. */
#include "config.h"

#include <string.h>

#include <arch/graph.h>

#include "lab-check.h"
#include "lab-fake.h"

static struct RadBuilder fb;
static struct RadCtx fc;

static int declare(const char *type, const char *edits, struct arch_graph **m)
{
    RadBuildCtx ctx = { .struct_size = sizeof(ctx), .world_size = 1, .max_tok = 64,
                        .max_seqs = 4, .max_ctx = 256, .act_dtype = RAD_F32, .kv_dtype = RAD_F32 };
    struct rad_lab_point *p = NULL;
    struct rad_lab_graph *g = NULL;
    *m = NULL;
    CHECK(!point(type, edits, &p, NULL) && !rad_lab_graph_new(lab, p, &g, NULL));
    rad_lab_point_free(p);
    return arch_graph_declare(&fb, &ctx, g, m);
}

static int count_op(const char *name)
{
    int n = 0;
    for (int i = 0; i < fb.n_ops; i++)
        n += !strcmp(fb.op[i].name, name);
    return n;
}

void lowering_declare(void)
{
    struct arch_graph *m;

    memset(&fb, 0, sizeof(fb));
    CHECK(!declare("llama", "attention_bias=true", &m));
    CHECK(fb.n_kv == 1 && fb.n_layers == 4 && fb.kv[0].dtype == RAD_F32);
    /* 4 layers of q, k, v, o with a bias; gate, up, down without */
    CHECK(count_op("gemm_nt_bias") == 16 && count_op("gemm_nt") == 12 && count_op("linear") == 0);
    CHECK(fb.logits >= 0 && fb.buffer[fb.logits].shape[0] == 4);
    for (int i = 0; i < fb.n_ops; i++) {
        const struct fake_op *o = &fb.op[i];
        for (int k = 0; k < o->n_params; k++)
            CHECK_MSG(o->sval[k][0] != '$', "%s %s=%s", o->name, o->param[k].key, o->sval[k]);
        CHECK(o->param[0].kind == RAD_PK_RANGE);
        if (!strcmp(o->name, "kv_store")) {
            CHECK(fake_param_int(o, "block_size") == 16);
            CHECK(i > 0 && !strcmp(fb.op[i - 1].name, "attn_paged"));
        }
        if (!strcmp(o->name, "attn_paged")) {
            CHECK(!strcmp(o->param[0].key, "q_len") && o->param[0].ihi == 64);
            CHECK(fake_param_int(o, "gqa") == 2 && fake_param_int(o, "max_ctx") == 256);
            CHECK(o->n_w == 1 && o->w[0] == RAD_NULL_HANDLE);     /* sinks */
        }
        if (!strcmp(o->name, "logits_gemm"))
            CHECK(o->param[0].ihi == 4);
        if (!strcmp(o->name, "rope"))
            CHECK(!strcmp(fake_param_str(o, "mode"), "neox") &&
                  !strcmp(fb.weight[o->w[0]], "rope_freq"));
    }
    arch_graph_free(m);
    /* a bias that the file has not: the plain product */
    memset(&fb, 0, sizeof(fb));
    fb.absent = "blk.1.attn_q.bias";
    CHECK(!declare("llama", "attention_bias=true", &m));
    CHECK(count_op("gemm_nt_bias") == 15 && count_op("gemm_nt") == 13);
    arch_graph_free(m);
    /* an optional weight: absent, present */
    memset(&fb, 0, sizeof(fb));
    CHECK(!declare("gguf:llama", "", &m));
    for (int i = 0; i < fb.n_ops; i++)
        CHECK(strcmp(fb.op[i].name, "rope") ||
              (fb.op[i].n_w == 2 && fb.op[i].w[1] == RAD_NULL_HANDLE));
    arch_graph_free(m);
    memset(&fb, 0, sizeof(fb));
    fb.absent = "+rope_freqs.weight";
    CHECK(!declare("gguf:llama", "", &m));
    for (int i = 0; i < fb.n_ops; i++)
        CHECK(strcmp(fb.op[i].name, "rope") ||
              !strcmp(fb.weight[fb.op[i].w[1]], "rope_freqs.weight"));
    arch_graph_free(m);
    /* the head: its own weight where there is one, else the embedding's */
    static const struct { const char *type, *edits, *absent, *want; } head[] = {
        { "gguf:llama", "", NULL, "token_embd.weight" },
        { "gguf:llama", "", "+output.weight", "output.weight" },
        { "llama", "", NULL, "token_embd.weight" },
        { "llama", "", "+output.weight", "output.weight" },
        { "llama", "tie_word_embeddings=true", "+output.weight", "token_embd.weight" },
        { "llama", "tie_word_embeddings=false", NULL, "output.weight" },
    };
    for (size_t k = 0; k < sizeof(head) / sizeof(*head); k++) {
        memset(&fb, 0, sizeof(fb));
        fb.absent = head[k].absent;
        CHECK(!declare(head[k].type, head[k].edits, &m));
        const struct fake_op *o = &fb.op[fb.n_ops - 1];
        CHECK_MSG(!strcmp(o->name, "logits_gemm") && !strcmp(fb.weight[o->w[0]], head[k].want),
                  "head %zu", k);
        arch_graph_free(m);
    }
}

void lowering_step(void)
{
    static int32_t ids[64];
    struct arch_graph *m;
    RadKvBatch kv = { .slot_mapping = ids, .block_table = ids, .block_pitch = 8, .seqused = ids,
                      .block_size = 16 };
    RadBatch t = { .struct_size = sizeof(t), .n_tok = 5, .n_seq = 2, .token_ids = ids,
                   .positions = ids, .cu_seqlens = ids, .max_q_len = 4, .n_out = 2, .out_ids = ids,
                   .n_kv_groups = 1, .kv = &kv };
    int store = -1, attn = -1;

    memset(&fb, 0, sizeof(fb));
    CHECK(!declare("llama", "", &m));
    memset(&fc, 0, sizeof(fc));
    fc.b = &fb;
    fc.fail_at = -1;
    arch_graph_step(&fc, &t, m);
    CHECK(fc.n_issues == fb.n_ops);
    for (int i = 0; i < fc.n_issues; i++) {
        const struct fake_issue *s = &fc.issue[i];
        const char *name = fb.op[s->op].name;
        if (!strcmp(name, "kv_store") && store < 0)
            store = i;
        if (!strcmp(name, "attn_paged") && attn < 0) {
            attn = i;
            CHECK(s->n == 4 && s->n_opd == 9);
            CHECK(s->opd[1].kind == RAD_OPERAND_KV && s->opd[1].offset == 0);
            CHECK(s->opd[2].kind == RAD_OPERAND_RAW && s->opd[2].rows == 2 && s->opd[2].cols == 8);
            CHECK(s->opd[4].kind == RAD_OPERAND_NONE && s->opd[7].kind == RAD_OPERAND_NONE);
            CHECK(s->opd[6].kind == RAD_OPERAND_RAW && s->opd[6].rows == 3);
        }
        if (!strcmp(name, "gemm_nt"))
            CHECK(s->n_opd == 3 && s->n == 5 && s->opd[1].kind == RAD_OPERAND_WEIGHT);
        if (!strcmp(name, "gather_rows") || !strcmp(name, "logits_gemm"))
            CHECK(s->n == 2 && s->opd[2].rows == 2);
    }
    CHECK(store >= 0 && attn == store + 1);
    int all = fc.n_issues;
    t.n_out = 0;                        /* a chunk that ends no sequence: no head */
    fc.n_issues = 0;
    arch_graph_step(&fc, &t, m);
    CHECK(fc.n_issues == all - 3);
    fc.n_issues = 0;                    /* the first error ends the step */
    fc.fail_at = 4;
    arch_graph_step(&fc, &t, m);
    CHECK(fc.n_issues == 4);
    arch_graph_free(m);
    /* a bias and no residual behind it: five operands */
    memset(&fb, 0, sizeof(fb));
    CHECK(!declare("qwen2", "", &m));
    fc.n_issues = 0;
    fc.fail_at = -1;
    t.n_out = 1;
    arch_graph_step(&fc, &t, m);
    for (int i = 0; i < fc.n_issues; i++)
        if (!strcmp(fb.op[fc.issue[i].op].name, "gemm_nt_bias"))
            CHECK(fc.issue[i].n_opd == 5 && fc.issue[i].opd[3].kind == RAD_OPERAND_NONE);
    arch_graph_free(m);
}

/* The data files with one edit in place of `lab`, which it returns. */
static struct rad_lab *edited(const char *name, const char *from, const char *to, char **made)
{
    struct rad_lab *keep = lab;
    struct lab_text copy[64];
    struct rad_err err = { 0 };

    *made = NULL;
    memcpy(copy, file, sizeof(copy));
    for (int k = 0; k < n_files; k++) {
        const char *at = strcmp(file[k].name, name) ? NULL : strstr(file[k].text, from);
        if (!at)
            continue;
        *made = malloc(file[k].n + strlen(to) + 1);
        copy[k].n = (size_t)sprintf(*made, "%.*s%s%s", (int)(at - file[k].text), file[k].text, to,
                                    at + strlen(from));
        copy[k].text = *made;
    }
    CHECK(*made != NULL);
    CHECK_MSG(!lab_open_texts(copy, n_files, &lab, &err), "%s", err.text);
    if (!lab)
        lab = keep;
    return keep;
}

/* An optional weight whose presence a block refuses. */
void lowering_refuses(void)
{
    char *made;
    struct arch_graph *m;
    struct rad_lab *keep = edited("attn", "\"global\": true, \"optional\": true,",
                                  "\"global\": true, \"optional\": true, \"refuse\": \"why\",", &made);

    memset(&fb, 0, sizeof(fb));
    fb.absent = "+rope_freqs.weight";
    CHECK(declare("gguf:llama", "", &m) == RAD_E_UNSUPPORTED && !m);
    CHECK(!strcmp(fb.message, "weight 'rope_freqs.weight': why"));
    memset(&fb, 0, sizeof(fb));
    CHECK(!declare("gguf:llama", "", &m));
    arch_graph_free(m);
    if (lab != keep)
        rad_lab_free(lab);
    free(made);
    lab = keep;
}

/* forms: the fused op where it resolves, else its chain */
void lowering_forms(void)
{
    static const char from[] = "{ \"op\": \"silu_mul\", \"when\": "
                               "\"ffn_gated and ffn_act == 'silu'\", \"args\": [\"gate_up\", \">act\"],\n"
                               "      \"params\": { \"n\": \"n_ff\", \"dtype\": \"'$act'\" } }";
    static const char to[] =
        "{ \"forms\": [[{ \"op\": \"fused\", \"when\": \"ffn_act == 'silu'\", \"args\": [\"gate_up\", "
        "\">act\"] }], [{ \"op\": \"silu_mul\", \"args\": [\"gate_up\", \">act\"], \"params\": "
        "{ \"n\": \"n_ff\", \"dtype\": \"'$act'\" } }]] }";
    char *made;
    struct rad_lab *keep = edited("ffn", from, to, &made);
    struct arch_graph *m;
    static int32_t ids[64];
    RadBatch t = { .n_tok = 1, .n_seq = 1, .token_ids = ids, .positions = ids, .max_q_len = 1 };

    for (int how = 0; how < 3; how++) {     /* served, in no library, without a kernel */
        int fused = 0, chain = 0;
        memset(&fb, 0, sizeof(fb));
        fb.undeclared = how == 1 ? "fused" : NULL;
        fb.unresolved = how == 2 ? "fused" : NULL;
        CHECK(!declare("llama", "", &m));
        memset(&fc, 0, sizeof(fc));
        fc.b = &fb;
        fc.fail_at = -1;
        arch_graph_step(&fc, &t, m);
        for (int i = 0; i < fc.n_issues; i++) {
            fused += !strcmp(fb.op[fc.issue[i].op].name, "fused");
            chain += !strcmp(fb.op[fc.issue[i].op].name, "silu_mul");
        }
        CHECK_MSG(fused == (how ? 0 : 4) && chain == (how ? 4 : 0), "%d: %d fused, %d chains", how,
                  fused, chain);
        CHECK(count_op("fused") == (how == 1 ? 0 : 4));
        arch_graph_free(m);
    }
    if (lab != keep)
        rad_lab_free(lab);
    free(made);
    lab = keep;
}
