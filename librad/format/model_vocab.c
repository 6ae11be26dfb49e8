/* SPDX-License-Identifier: Apache-2.0 */
/* The vocab section's records as they stand in the file. They were checked when
 * the model opened; what they mean to a tokenizer is librad/text's. */
#include "format/container.h"
#include "banned.h"

static const struct {
    uint32_t kind;
    const char *name;
} step_name[] = {
    { 1, "nfc" },           { 2, "nfkc" },          { 3, "nfd" },
    { 4, "nfkd" },          { 5, "lowercase" },     { 6, "strip" },
    { 7, "replace" },       { 8, "prepend" },       { 32, "byte-level" },
    { 33, "split" },        { 34, "metaspace" },    { 35, "whitespace" },
    { 36, "punctuation" },  { 37, "digits" },       { 38, "byte-fallback" },
    { 64, "byte-level" },   { 65, "metaspace" },    { 66, "replace" },
    { 67, "strip" },        { 68, "fuse" },         { 69, "byte-fallback" },
};

static bool section(const struct rad_model *m, struct radi_rad_vocab *v)
{
    if (!m->head.vocab_bytes)
        return false;
    memcpy(v, m->data + m->head.vocab_off, sizeof *v);
    return true;
}

bool rad_model_vocab_info(const struct rad_model *m, struct rad_vocab_info *out)
{
    static const char *const kind[] = { "bpe", "unigram", "wordpiece", "rwkv" };
    struct radi_rad_vocab v;

    memset(out, 0, sizeof *out);
    if (!section(m, &v))
        return false;
    *out = (struct rad_vocab_info){
        .size = sizeof *out, .kind = v.kind, .kind_name = kind[(v.kind - 1) & 3],
        .n_tokens = v.n_tokens, .n_merges = v.n_merges, .n_steps = v.n_steps,
        .bos = v.id[0], .eos = v.id[1], .eot = v.id[2], .pad = v.id[3], .unk = v.id[4],
        .sep = v.id[5], .add_bos = v.add[0] != 0, .add_eos = v.add[1] != 0,
        .chat_template = m->strings + v.template,
    };
    return true;
}

bool rad_model_vocab_token(const struct rad_model *m, uint32_t i, struct rad_vocab_token *out)
{
    struct radi_rad_vocab v;
    uint64_t text;

    memset(out, 0, sizeof *out);
    if (!section(m, &v) || i >= v.n_tokens || !v.text)
        return false;
    out->size = sizeof *out;
    memcpy(&text, m->data + v.text + 8 * (uint64_t)i, sizeof text);
    out->text = m->strings + text;
    out->type = v.type ? m->data[v.type + i] : 1;
    if (v.score)
        memcpy(&out->score, m->data + v.score + 4 * (uint64_t)i, sizeof out->score);
    return true;
}

bool rad_model_vocab_step(const struct rad_model *m, uint32_t i, struct rad_vocab_step *out)
{
    struct radi_rad_vocab v;
    struct radi_rad_step s;

    memset(out, 0, sizeof *out);
    if (!section(m, &v) || i >= v.n_steps || !v.step)
        return false;
    memcpy(&s, m->data + v.step + sizeof s * (uint64_t)i, sizeof s);
    *out = (struct rad_vocab_step){
        .size = sizeof *out, .kind = s.kind, .flags = s.flags, .name = "unknown",
        .stage = s.kind < 32 ? "normalizer" : s.kind < 64 ? "pre-tokenizer" : "decoder",
        .arg0 = m->strings + s.arg0, .arg1 = m->strings + s.arg1, .iarg = s.iarg,
    };
    for (size_t k = 0; k < RADI_COUNT(step_name); k++)
        if (step_name[k].kind == s.kind)
            out->name = step_name[k].name;
    return true;
}
