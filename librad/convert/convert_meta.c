/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint's configuration as container metadata: the typed keys from
 * the parameter point, every key of the config flattened to text (container
 * format, "Metadata keys"), and the config itself, which loses nothing. */
#include "config.h"

#include <math.h>

#include <cjson/cJSON.h>

#include <rad/lab.h>

#include "convert/convert.h"

#include "banned.h"

#define CONFIG_LIMIT (16u << 20)

static rad_status add_kv(struct rad_convert *c, const char *key, const char *val,
                         struct rad_err *err)
{
    RAD_TRY(radi_grow((void **)&c->kv_key, &c->cap_key, c->n_kv + 1, sizeof *c->kv_key, err));
    RAD_TRY(radi_grow((void **)&c->kv_val, &c->cap_val, c->n_kv + 1, sizeof *c->kv_val, err));
    c->kv_key[c->n_kv] = radi_arena_strndup(&c->arena, key, strlen(key));
    c->kv_val[c->n_kv] = radi_arena_strndup(&c->arena, val, strlen(val));
    if (!c->kv_key[c->n_kv] || !c->kv_val[c->n_kv])
        return rad_fail(err, RAD_E_NOMEM, "metadata: out of memory");
    c->n_kv++;
    return RAD_OK;
}

/* Text of a scalar; false for objects, arrays and null. */
static bool scalar_text(const cJSON *j, struct radi_str *out)
{
    if (cJSON_IsBool(j))
        radi_str_adds(out, cJSON_IsTrue(j) ? "1" : "0");
    else if (cJSON_IsNumber(j) && fabs(j->valuedouble) < 0x1p53 &&
             floor(j->valuedouble) == j->valuedouble)
        radi_str_addf(out, "%lld", (long long)j->valuedouble);
    else if (cJSON_IsNumber(j))
        radi_str_addf(out, "%.17g", j->valuedouble);
    else if (cJSON_IsString(j))
        radi_str_adds(out, j->valuestring);
    else
        return false;
    return true;
}

static rad_status flatten(struct rad_convert *c, const char *prefix, const cJSON *obj, int depth,
                          struct rad_err *err)
{
    for (const cJSON *j = obj->child; j; j = j->next) {
        struct radi_str key = { 0 }, val = { 0 };
        rad_status st = RAD_OK;
        radi_str_addf(&key, "%s%s", prefix, j->string);
        bool take = scalar_text(j, &val);
        if (cJSON_IsArray(j)) {
            take = true;
            for (const cJSON *k = j->child; k && take; k = k->next) {
                if (k != j->child)
                    radi_str_addc(&val, ' ');
                take = scalar_text(k, &val);
            }
        }
        if (key.failed || val.failed) {
            st = rad_fail(err, RAD_E_NOMEM, "metadata: out of memory");
        } else if (cJSON_IsObject(j) && depth < 16) {
            radi_str_addc(&key, '.');
            st = flatten(c, key.s, j, depth + 1, err);
        } else if (take) {
            st = add_kv(c, key.s, val.s ? val.s : "", err);
        }
        radi_str_release(&key);
        radi_str_release(&val);
        RAD_TRY(st);
    }
    return RAD_OK;
}

/* text_config.X is published as X too where no X exists. */
static rad_status publish_text_config(struct rad_convert *c, struct rad_err *err)
{
    static const char prefix[] = "text_config.";
    size_t n = c->n_kv;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(c->kv_key[i], prefix, sizeof prefix - 1))
            continue;
        const char *bare = c->kv_key[i] + sizeof prefix - 1;
        bool there = false;
        for (size_t k = 0; k < n && !there; k++)
            there = !strcmp(c->kv_key[k], bare);
        if (!there)
            RAD_TRY(add_kv(c, bare, c->kv_val[i], err));
    }
    return RAD_OK;
}

static rad_status apply_set(struct rad_convert *c, const struct rad_convert_opts *o,
                            struct rad_err *err)
{
    for (int i = 0; i < o->n_set; i++) {
        const char *eq = strchr(o->set[i], '=');
        if (!eq || eq == o->set[i])
            return rad_fail(err, RAD_E_ARG, "--set '%s': want KEY=VALUE", o->set[i]);
        char *key = radi_strndup(o->set[i], (size_t)(eq - o->set[i]));
        if (!key)
            return rad_fail(err, RAD_E_NOMEM, "--set: out of memory");
        /* A number, true, false or null stays one for the map; else a string. */
        cJSON *v = NULL;
        if (radi_json_parse(eq + 1, strlen(eq + 1), 4096, 0, &v, NULL) || cJSON_IsObject(v)) {
            radi_json_free(v);
            v = cJSON_CreateString(eq + 1);
        }
        cJSON_DeleteItemFromObjectCaseSensitive(c->config, key);
        bool ok = v && cJSON_AddItemToObject(c->config, key, v);
        if (!ok)
            cJSON_Delete(v);
        radi_free(key);
        if (!ok)
            return rad_fail(err, RAD_E_NOMEM, "--set: out of memory");
    }
    return RAD_OK;
}

static rad_status flatten_file(struct rad_convert *c, enum rad_ckpt_file which, const char *prefix,
                               struct rad_err *err)
{
    size_t n;
    const char *text = rad_ckpt_text(c->ckpt, which, &n);
    if (!text)
        return RAD_OK;
    cJSON *j = NULL;
    rad_status st = radi_json_parse(text, n, CONFIG_LIMIT, RADI_JSON_LENIENT, &j, err);
    if (!st && !cJSON_IsObject(j))
        st = rad_fail(err, RAD_E_FORMAT, "not a JSON object");
    if (!st)
        st = flatten(c, prefix, j, 0, err);
    radi_json_free(j);
    return st ? rad_fail_in(err, st, "'%s'", rad_ckpt_file_name(which)) : RAD_OK;
}

rad_status radi_cv_meta(struct rad_convert *c, const struct rad_convert_opts *o,
                        struct rad_err *err)
{
    const char *text = rad_ckpt_config_json(c->ckpt);
    RAD_TRY(radi_json_parse(text, strlen(text), CONFIG_LIMIT, RADI_JSON_LENIENT, &c->config, err));
    if (!cJSON_IsObject(c->config))
        return rad_fail(err, RAD_E_FORMAT, "the config is not a JSON object");
    RAD_TRY(apply_set(c, o, err));
    char *printed = o->n_set ? cJSON_PrintUnformatted(c->config) : NULL;
    if (o->n_set && !printed)
        return rad_fail(err, RAD_E_NOMEM, "config: out of memory");
    c->config_text = radi_strdup(printed ? printed : text);
    cJSON_free(printed);
    if (!c->config_text)
        return rad_fail(err, RAD_E_NOMEM, "config: out of memory");

    struct rad_lab *lab = NULL;
    struct rad_lab_point *point = NULL;
    rad_status st = rad_lab_open(rad_plugins_home(c->plugins), &lab, err);
    if (!st) {
        st = rad_lab_point_new(lab, c->config_text, strlen(c->config_text), &point, err);
        if (st && rad_ckpt_kind(c->ckpt) == RAD_CKPT_SAFETENSORS)
            rad_fail_in(err, st, "'config.json'");
    }
    if (!st) {
        struct rad_lab_point_info info = { .size = sizeof info };
        rad_lab_point_info(point, &info);
        rad_lab_point_meta(point, &c->meta);
        c->meta.arch_id = radi_arena_printf(&c->arena, "%s", o->arch ? o->arch : info.arch);
        c->meta.quant = radi_arena_printf(&c->arena, "%s", info.quant);
        c->meta.name = c->name;
        if (!c->meta.arch_id || !c->meta.quant)
            st = rad_fail(err, RAD_E_NOMEM, "config: out of memory");
    }
    rad_lab_point_free(point);
    rad_lab_free(lab);
    RAD_TRY(st);
    RAD_TRY(add_kv(c, "radiance.config", c->config_text, err));
    RAD_TRY(flatten(c, "", c->config, 0, err));
    RAD_TRY(publish_text_config(c, err));
    RAD_TRY(flatten_file(c, RAD_CKPT_GENERATION_CONFIG, "generation.", err));
    RAD_TRY(flatten_file(c, RAD_CKPT_PREPROCESSOR, "preprocessor.", err));
    RAD_TRY(flatten_file(c, RAD_CKPT_VIDEO_PREPROCESSOR, "video_preprocessor.", err));
    c->meta.n_kv = (int64_t)c->n_kv;
    c->meta.kv_key = c->kv_key;
    c->meta.kv_val = c->kv_val;
    return RAD_OK;
}

rad_status radi_cv_write_meta(struct rad_convert *c, const struct rad_convert_opts *o,
                              struct rad_err *err)
{
    const RadModelMeta *m = &c->meta;
    const char *recipe = "";
    if (c->recipe && rad_recipe_count(c->recipe))
        RAD_TRY(rad_recipe_text((struct rad_recipe *)(uintptr_t)c->recipe, &recipe, err));
    RAD_TRY(rad_model_writer_header(c->writer, m->arch_id, m->name, m->quant, recipe,
                                    o->created_by, err));
    const struct { const char *key; int64_t v; } ints[] = {
        { "n_layers", m->n_layers }, { "n_embd", m->n_embd }, { "n_head", m->n_head },
        { "n_head_kv", m->n_head_kv }, { "head_dim", m->head_dim }, { "n_ff", m->n_ff },
        { "n_vocab", m->n_vocab }, { "n_ctx_train", m->n_ctx_train },
        { "n_expert", m->n_expert }, { "n_expert_used", m->n_expert_used },
        { "n_expert_shared", m->n_expert_shared },
    };
    for (size_t i = 0; i < RADI_COUNT(ints); i++)
        RAD_TRY(rad_model_writer_meta_int(c->writer, ints[i].key, ints[i].v, err));
    const struct { const char *key; double v; } reals[] = {
        { "rms_eps", m->rms_eps }, { "rope_theta", m->rope_theta }, { "rope_scale", m->rope_scale },
    };
    for (size_t i = 0; i < RADI_COUNT(reals); i++)
        RAD_TRY(rad_model_writer_meta_f64(c->writer, reals[i].key, reals[i].v, err));
    for (size_t i = 0; i < c->n_kv; i++) {
        bool typed = false;              /* a config key of that name loses */
        for (size_t k = 0; k < RADI_COUNT(ints); k++)
            typed = typed || !strcmp(c->kv_key[i], ints[k].key);
        for (size_t k = 0; k < RADI_COUNT(reals); k++)
            typed = typed || !strcmp(c->kv_key[i], reals[k].key);
        if (!typed)
            RAD_TRY(rad_model_writer_meta_str(c->writer, c->kv_key[i], c->kv_val[i], err));
    }
    return RAD_OK;
}
