/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers out of containers and checkpoints: joins the importers of this
 * folder to the readers of librad/format. */
#include "config.h"

#include <rad/ckpt.h>
#include <rad/model.h>
#include <rad/tokenizer.h>

#include "text/tok.h"

#include "banned.h"

rad_status rad_tokenizer_from_model(const struct rad_model *m, struct rad_tokenizer **out,
                                    struct rad_err *err)
{
    *out = NULL;
    const struct rad_model_info *info = rad_model_info(m);
    const void *bytes;
    size_t n;
    rad_model_vocab(m, &bytes, &n);
    if (!n)
        return rad_fail(err, RAD_E_NOTFOUND, "'%s': the file holds no tokenizer", rad_model_path(m));
    const char *strings = rad_model_string(m, 0);
    rad_status st = radi_vocab_read(bytes, n, info->vocab.offset, strings,
                                    (size_t)info->strings.bytes, out, err);
    return st ? rad_fail_in(err, st, "'%s': vocab", rad_model_path(m)) : RAD_OK;
}

/* ---- a GGUF's metadata as the importer wants it */
static const struct rad_ckpt_kv *find(void *ctx, const char *key, size_t *i)
{
    int64_t at = rad_ckpt_kv_find(ctx, key);
    if (at < 0)
        return NULL;
    *i = (size_t)at;
    return rad_ckpt_kv(ctx, *i);
}

static bool kv_str(void *ctx, const char *key, const char **s, size_t *n)
{
    size_t i;
    const struct rad_ckpt_kv *kv = find(ctx, key, &i);
    return kv && !kv->is_array && (*s = rad_ckpt_kv_str(ctx, i, 0, n)) != NULL;
}

static bool kv_i64(void *ctx, const char *key, int64_t *v)
{
    size_t i;
    const struct rad_ckpt_kv *kv = find(ctx, key, &i);
    return kv && !kv->is_array && rad_ckpt_kv_int(ctx, i, 0, v);
}

static bool kv_arr(void *ctx, const char *key, char *type, size_t *n)
{
    size_t i;
    const struct rad_ckpt_kv *kv = find(ctx, key, &i);
    if (!kv || !kv->is_array)
        return false;
    *n = (size_t)kv->n;
    *type = kv->type == RAD_CKPT_STR ? 's'
        : kv->type == RAD_CKPT_F32 || kv->type == RAD_CKPT_F64 ? 'f' : 'i';
    return true;
}

static bool kv_arr_str(void *ctx, const char *key, size_t k, const char **s, size_t *n)
{
    size_t i;
    const struct rad_ckpt_kv *kv = find(ctx, key, &i);
    return kv && kv->is_array && (*s = rad_ckpt_kv_str(ctx, i, k, n)) != NULL;
}

static bool kv_arr_i64(void *ctx, const char *key, size_t k, int64_t *v)
{
    size_t i;
    const struct rad_ckpt_kv *kv = find(ctx, key, &i);
    return kv && kv->is_array && rad_ckpt_kv_int(ctx, i, k, v);
}

static bool kv_arr_f64(void *ctx, const char *key, size_t k, double *v)
{
    size_t i;
    const struct rad_ckpt_kv *kv = find(ctx, key, &i);
    return kv && kv->is_array && rad_ckpt_kv_f64(ctx, i, k, v);
}

rad_status rad_tokenizer_from_ckpt(const struct rad_ckpt *ck, struct rad_tokenizer **out,
                                   struct rad_err *err)
{
    *out = NULL;
    if (rad_ckpt_kind(ck) == RAD_CKPT_GGUF) {
        if (rad_ckpt_kv_find(ck, "tokenizer.ggml.model") < 0)
            return rad_fail(err, RAD_E_NOTFOUND, "no key 'tokenizer.ggml.model'");
        struct radi_kv kv = { (void *)(uintptr_t)ck, kv_str, kv_i64, kv_arr, kv_arr_str,
                              kv_arr_i64, kv_arr_f64 };
        return radi_tok_from_kv(&kv, out, err);
    }
    struct rad_tok_files f = { .size = sizeof f };
    f.tokenizer = rad_ckpt_text(ck, RAD_CKPT_TOKENIZER, &f.tokenizer_len);
    f.config = rad_ckpt_text(ck, RAD_CKPT_TOKENIZER_CONFIG, &f.config_len);
    f.generation = rad_ckpt_text(ck, RAD_CKPT_GENERATION_CONFIG, &f.generation_len);
    f.chat_template = rad_ckpt_text(ck, RAD_CKPT_CHAT_TEMPLATE, &f.chat_template_len);
    if (!f.tokenizer)
        return rad_fail(err, RAD_E_NOTFOUND, "no tokenizer.json beside the checkpoint");
    rad_status st = rad_tokenizer_from_json(&f, out, err);
    return st ? rad_fail_in(err, st, "'tokenizer.json'") : RAD_OK;
}
