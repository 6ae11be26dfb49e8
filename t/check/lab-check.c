/* SPDX-License-Identifier: Apache-2.0 */
/* The LAB without files of its own: expressions, what the maps make of configs
 * and of bad ones, broken data files, rotary frequencies. Reads the data files
 * of the source tree. The lowering: lab-check-lower.c. */
#include "config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "lab-check.h"

struct rad_lab *lab;
struct lab_text file[64];
int n_files;
static char home[1024];

/* ---- expressions */
static rad_status env_get(void *user, bool key, const char *name, struct lab_val *out,
                          struct rad_err *err)
{
    (void)user;
    *out = (struct lab_val){ .t = LAB_NULL };
    if (key && !strcmp(name, "a.b"))
        *out = (struct lab_val){ .t = LAB_INT, .i = 7 };
    else if (key && !strcmp(name, "gone"))
        out->absent = true;
    else if (!key && !strcmp(name, "x"))
        *out = (struct lab_val){ .t = LAB_INT, .i = 12 };
    else if (!key || strcmp(name, "nil"))
        return rad_fail(err, RAD_E_NOTFOUND, "no '%s'", name);
    return RAD_OK;
}

static void expressions(void)
{
    static const struct {
        const char *text, *want;         /* "!..." : part of the error */
    } t[] = {
        { "1 + 2 * 3", "7" }, { "(1 + 2) * 3", "9" }, { "7 - 2 - 1", "4" }, { "-3 + 1", "-2" },
        { "8 / 2", "4" }, { "7 / 2", "!7 is not a multiple of 2" }, { "7.0 / 2", "3.5" },
        { "div(7, 2)", "3" }, { "div(-7, 2)", "-4" }, { "-7 % 3", "2" }, { "1 / 0",
          "!divided by 0" },
        { "x % 5", "2" }, { "1e3", "1000.0" }, { "0.1", "0.1" },
        { "1 < 2 and not (2 < 1)", "true" }, { "false and y", "false" }, { "true or y", "true" },
        { "x == 12 ? 'a' : 'b'", "\"a\"" }, { "$nil ?? 3", "3" }, { "$gone ?? $nil ?? 'z'",
          "\"z\"" },
        { "has($nil)", "true" }, { "has($gone)", "false" }, { "$nil == null", "true" },
        { "$a.b + 1", "8" }, { "[1, 2, 3][1]", "2" }, { "[1][1]", "!element 1 of a list of 1" },
        { "2 in [1, 2]", "true" }, { "2 not in [1, 2]", "false" }, { "'a' in ['b']", "false" },
        { "len([1, 2])", "2" }, { "max(1, 2.5)", "2.5" }, { "min(3, 2)", "2" },
        { "highest([3, 9, 2])", "9" }, { "highest($nil)", "-1" }, { "index(['a', 'b'], 'b')", "1" },
        { "cat('n', 3)", "\"n3\"" }, { "'MX*'[2]", "\"*\"" }, { "starts('abc', 'ab')", "true" },
        { "sqrt(16)", "4.0" }, { "ln(1)", "0.0" }, { "ceil(1.2)", "2" }, { "floor(-1.2)", "-2" },
        { "int(2.9)", "2" }, { "real(2)", "2.0" }, { "true ? 1 : false ? 2 : 3", "1" },
        { "9223372036854775807 + 1", "!does not fit 64 bits" }, { "1e308 * 10", "!not finite" },
        { "ln(0)", "!not finite" }, { "1 +", "!it ends, want a value" }, { "1 2",
          "!want an operator" },
        { "x ? 1 : 2", "!int where true or false" }, { "'a' + 1", "!str where a number" },
        { "'a", "!quote that closes" }, { "foo(1)", "!a function that there is" },
        { "max(1)", "!of 1 arguments, want 2" }, { "has(x)", "!wants a $key" }, { "", "!it ends" },
        { "a b", "!want an operator" }, { "nope", "!no 'nope'" }, { "1 < 'a'",
          "!str where a number" },
        { "99999999999999999999", "!integer of 64 bits" }, { "[1, 2", "!',' or ']'" },
        { "((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))"
          "))))))))))))", "!less nesting" },
    };
    struct radi_arena a;
    struct lab_env env = { env_get, NULL, &a };

    radi_arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct rad_err err = { 0 };
        struct radi_str s = { 0 };
        struct lab_ex *e;
        struct lab_val v;
        rad_status st = lab_ex_parse(&a, t[i].text, &e, &err);
        if (!st)
            st = lab_ex_eval(e, &env, &v, &err);
        if (st)
            radi_str_addf(&s, "!%s", err.text);
        else
            lab_val_text(&s, &v);
        CHECK_MSG(t[i].want[0] == '!' ? st && strstr(s.s, t[i].want + 1) != NULL
                                      : !strcmp(s.s, t[i].want),
                  "'%s': %s, want %s", t[i].text, s.s, t[i].want);
        radi_str_release(&s);
    }
    radi_arena_release(&a);
}

/* ---- configs: a base for each map, with one value changed */
static const char *const base_common =
    "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":4,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":336,"
    "\"max_position_embeddings\":512,\"rms_norm_eps\":0.01,\"hidden_act\":\"silu\"";
static const char *const gguf_common =
    "\"general.file_type\":0,\"%A.block_count\":2,\"%A.context_length\":512,"
    "\"%A.embedding_length\":64,\"%A.feed_forward_length\":96,\"%A.attention.head_count\":4,"
    "\"%A.attention.head_count_kv\":2,\"%A.attention.layer_norm_rms_epsilon\":1e-5,"
    "\"%A.rope.freq_base\":10000.0,\"tokenizer.ggml.tokens.length\":336";

static struct cJSON *base_of(const char *type)
{
    char text[2048], *p = text;
    struct cJSON *j = NULL;
    if (!strncmp(type, "gguf:", 5)) {
        p += snprintf(p, 200, "{\"general.architecture\":\"%s\",", type + 5);
        for (const char *s = gguf_common; *s; s++)
            if (s[0] == '%' && s[1] == 'A') {
                p += snprintf(p, 32, "%s", type + 5);
                s++;
            } else
                *p++ = *s;
        *p++ = '}';
        *p = 0;
    } else
        snprintf(text, sizeof(text), "{\"model_type\":\"%s\",%s}", type, base_common);
    if (radi_json_parse(text, strlen(text), 0, 0, &j, NULL))
        abort();
    return j;
}

/* "a.b" = json text; "-": the key goes away. A GGUF's keys are not nested. */
static void put(struct cJSON *j, const char *type, const char *path, const char *val)
{
    char part[128];
    const char *dot;
    while (strncmp(type, "gguf:", 5) && (dot = strchr(path, '.'))) {
        snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
        struct cJSON *o = cJSON_GetObjectItemCaseSensitive(j, part);
        if (!cJSON_IsObject(o)) {
            cJSON_DeleteItemFromObjectCaseSensitive(j, part);
            o = cJSON_AddObjectToObject(j, part);
        }
        j = o;
        path = dot + 1;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(j, path);
    if (strcmp(val, "-"))
        cJSON_AddItemToObject(j, path, cJSON_Parse(val));
}

/* `edits`: "path=json;path=json" */
rad_status point(const char *type, const char *edits, struct rad_lab_point **p,
                        struct rad_err *err)
{
    struct cJSON *j = base_of(type);
    char buf[1024];
    snprintf(buf, sizeof(buf), "%s", edits);
    for (char *s = buf; *s;) {
        char *end = strchr(s, ';'), *eq = strchr(s, '=');
        char *next = end ? end + 1 : s + strlen(s);
        if (end)
            *end = 0;
        *eq = 0;
        put(j, type, s, eq + 1);
        s = next;
    }
    char *text = cJSON_PrintUnformatted(j);
    rad_status st = rad_lab_point_new(lab, text, strlen(text), p, err);
    cJSON_free(text);
    radi_json_free(j);
    return st;
}

static void accepted(void)
{
    static const struct {
        const char *type, *edits, *param, *want;
    } t[] = {
        { "llama", "", "head_dim", "16" },
        { "llama", "head_dim=32", "head_dim", "32" },
        { "llama", "head_dim=null", "head_dim", "16" },
        { "llama", "num_key_value_heads=-", "n_head_kv", "4" },
        { "mistral", "num_key_value_heads=-;num_attention_heads=16", "n_head_kv", "8" },
        { "mistral", "num_key_value_heads=null", "n_head_kv", "4" },
        { "qwen3", "num_key_value_heads=-;num_attention_heads=32", "n_head_kv", "32" },
        { "llama", "max_position_embeddings=-", "n_ctx_train", "2048" },
        { "qwen2", "use_sliding_window=true;sliding_window=null;max_window_layers=0", "window",
          "[0, 0, 0, 0]" },
        { "llama", "rope_theta=10000.0;rope_scaling.type=\"linear\";rope_scaling.factor=2;"
                   "rope_parameters.rope_type=\"linear\";rope_parameters.factor=2;"
                   "rope_parameters.rope_theta=10000.0", "rope_factor", "2.0" },
        { "llama", "rms_norm_eps=-", "rms_eps", "1e-06" },
        { "llama", "attention_bias=true", "o_bias", "true" },
        { "llama", "attention_bias=true", "ffn_bias", "false" },
        { "llama", "mlp_bias=true", "ffn_bias", "true" },
        { "llama", "hidden_act=\"swish\"", "n_ff", "96" },
        { "llama", "", "rope_theta", "10000.0" },
        { "llama", "rope_theta=500000", "rope_theta", "500000.0" },
        { "llama", "rope_parameters.rope_theta=1e6;rope_parameters.rope_type=\"default\"",
          "rope_theta", "1000000.0" },
        { "llama", "rope_scaling.type=\"linear\";rope_scaling.factor=4", "rope", "\"linear\"" },
        { "llama", "rope_scaling.rope_type=\"linear\";rope_scaling.factor=4", "rope_factor",
          "4.0" },
        { "llama", "rope_scaling=null;rope_theta=null", "rope", "\"default\"" },
        { "llama", "rope_scaling.type=\"yarn\";rope_scaling.factor=4", "rope_orig_ctx", "512" },
        { "llama", "rope_scaling.type=\"yarn\";"
                   "rope_scaling.original_max_position_embeddings=128", "rope_factor", "4.0" },
        { "llama", "rope_scaling.type=\"yarn\";rope_scaling.factor=1", "rope_mscale", "1.0" },
        { "llama", "rope_scaling.type=\"yarn\";rope_scaling.factor=4;"
                   "rope_scaling.attention_factor=0.5", "rope_mscale", "0.5" },
        { "llama", "rope_scaling.type=\"yarn\";rope_scaling.factor=4;rope_scaling.mscale=1;"
                   "rope_scaling.mscale_all_dim=1", "rope_mscale", "1.0" },
        { "llama", "rope_scaling.type=\"yarn\";rope_scaling.factor=4;rope_scaling.truncate=false",
          "rope_truncate", "false" },
        { "llama", "eos_token_id=[1, 2]", "n_vocab", "336" },
        { "llama", "architectures=[\"LlamaForCausalLM\"]", "n_vocab", "336" },
        /* absent is the class's default, null is none */
        { "mistral", "", "window", "4096" },
        { "mistral", "sliding_window=null", "window", "0" },
        { "mistral", "sliding_window=12", "window", "12" },
        { "qwen2", "", "q_bias", "true" },
        { "qwen2", "", "window", "[0, 0, 0, 0]" },
        { "qwen2", "use_sliding_window=false;sliding_window=8", "window", "[0, 0, 0, 0]" },
        { "qwen2", "use_sliding_window=true;sliding_window=8;max_window_layers=2", "window",
          "[0, 0, 8, 8]" },
        { "qwen2", "use_sliding_window=true;max_window_layers=0", "window",
          "[4096, 4096, 4096, 4096]" },
        { "qwen3", "use_sliding_window=true;sliding_window=8;layer_types=[\"sliding_attention\","
                   "\"full_attention\",\"full_attention\",\"sliding_attention\"]", "window",
          "[8, 0, 0, 8]" },
        { "qwen3", "", "head_dim", "128" },
        { "qwen3", "head_dim=32", "qk_norm", "\"head\"" },
        { "gguf:llama", "", "rope_mode", "\"gptj\"" },
        { "gguf:llama", "llama.vocab_size=400", "n_vocab", "400" },
        { "gguf:llama", "llama.rope.dimension_count=8", "rotary_dim", "8" },
        { "gguf:llama", "llama.rope.scaling.type=\"linear\";llama.rope.scaling.factor=2", "rope",
          "\"linear\"" },
        { "gguf:qwen2", "general.quantization_version=2;tokenizer.ggml.model=\"gpt2\"", "q_bias",
          "true" },
        { "gguf:qwen3", "qwen3.attention.key_length=32;qwen3.attention.value_length=32", "head_dim",
          "32" },
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct rad_err err = { 0 };
        struct rad_lab_point *p = NULL;
        struct rad_lab_graph *g = NULL;
        struct radi_str s = { 0 };
        struct lab_val v;
        rad_status st = point(t[i].type, t[i].edits, &p, &err);
        if (!st)
            st = rad_lab_graph_new(lab, p, &g, &err);
        CHECK_MSG(!st, "%s %s: %s", t[i].type, t[i].edits, err.text);
        if (!st && lab_point_get(p, t[i].param, -1, &v))
            lab_val_text(&s, &v);
        CHECK_MSG(st || (s.s && !strcmp(s.s, t[i].want)), "%s %s: %s is %s, want %s", t[i].type,
                  t[i].edits, t[i].param, s.s ? s.s : "not given", t[i].want);
        radi_str_release(&s);
        rad_lab_graph_free(g);
        rad_lab_point_free(p);
    }
}

static void refused(void)
{
    static const struct {
        const char *type, *edits;
        rad_status st;
        const char *text;
    } t[] = {
        { "gpt5", "", RAD_E_UNSUPPORTED, "key 'model_type' (string \"gpt5\"): no map" },
        { "llama", "model_type=-", RAD_E_FORMAT, "key 'model_type': is missing" },
        { "llama", "model_type=3", RAD_E_FORMAT, "key 'model_type' (number 3)" },
        { "llama", "new_thing=3", RAD_E_UNSUPPORTED, "key 'new_thing' (number 3): map 'llama'" },
        { "llama", "rope_scaling.type=\"linear\";rope_scaling.odd=1", RAD_E_UNSUPPORTED,
          "key 'rope_scaling.odd' (number 1)" },
        { "llama", "sliding_window=12", RAD_E_UNSUPPORTED, "key 'sliding_window' (number 12)" },
        { "qwen2", "mlp_bias=true", RAD_E_UNSUPPORTED, "key 'mlp_bias' (true)" },
        { "llama", "dflash_config={}", RAD_E_UNSUPPORTED, "key 'dflash_config' (object)" },
        { "llama", "hidden_size=0", RAD_E_FORMAT, "key 'hidden_size' (number 0): want an integer" },
        { "llama", "hidden_size=-32", RAD_E_FORMAT, "key 'hidden_size' (number -32)" },
        { "llama", "hidden_size=2147483648", RAD_E_FORMAT,
          "key 'hidden_size' (number 2147483648)" },
        { "llama", "hidden_size=\"32\"", RAD_E_FORMAT, "key 'hidden_size' (string \"32\")" },
        { "llama", "hidden_size=64.5", RAD_E_FORMAT, "key 'hidden_size' (number 64.5)" },
        { "llama", "hidden_size=null", RAD_E_FORMAT, "key 'hidden_size' (null)" },
        { "llama", "hidden_size=-", RAD_E_FORMAT, "key 'hidden_size': is missing" },
        { "llama", "hidden_size=65", RAD_E_FORMAT,
          "key 'num_attention_heads' (number 4): does not" },
        { "llama", "num_hidden_layers=2147483647", RAD_E_FORMAT, "key 'num_hidden_layers'" },
        { "llama", "num_hidden_layers=0", RAD_E_FORMAT, "key 'num_hidden_layers' (number 0)" },
        { "llama", "num_attention_heads=0", RAD_E_FORMAT, "key 'num_attention_heads' (number 0)" },
        { "llama", "num_key_value_heads=3", RAD_E_FORMAT, "key 'num_key_value_heads' (number 3)" },
        { "llama", "num_key_value_heads=0", RAD_E_FORMAT, "key 'num_key_value_heads' (number 0)" },
        { "llama", "head_dim=7", RAD_E_FORMAT, "key 'head_dim' (number 7): rotation" },
        { "llama", "rms_norm_eps=-1", RAD_E_FORMAT, "key 'rms_norm_eps' (number -1)" },
        { "llama", "rms_norm_eps=0", RAD_E_FORMAT, "key 'rms_norm_eps' (number 0)" },
        { "llama", "rms_norm_eps=\"NaN\"", RAD_E_FORMAT, "key 'rms_norm_eps' (string \"NaN\")" },
        { "llama", "rope_theta=0", RAD_E_FORMAT, "key 'rope_theta' (number 0)" },
        { "llama", "rope_parameters.rope_theta=-1", RAD_E_FORMAT,
          "key 'rope_parameters.rope_theta'" },
        { "llama", "rope_scaling.type=\"linear\";rope_scaling.factor=0", RAD_E_FORMAT,
          "key 'rope_scaling.factor' (number 0)" },
        { "llama", "rope_scaling.type=\"linear\"", RAD_E_FORMAT,
          "'rope_parameters.factor': is missing" },
        { "llama", "rope_scaling.type=\"dynamic\";rope_scaling.factor=2", RAD_E_UNSUPPORTED,
          "key 'rope_scaling.type' (string \"dynamic\"): this scaling" },
        { "llama", "rope_parameters.rope_type=\"longrope\"", RAD_E_UNSUPPORTED,
          "key 'rope_parameters.rope_type' (string \"longrope\"): this scaling" },
        { "llama",
          "rope_scaling.type=\"llama3\";rope_scaling.factor=8;rope_scaling.low_freq_factor=1",
          RAD_E_FORMAT, "high_freq_factor': is missing" },
        { "llama",
          "rope_scaling.type=\"llama3\";rope_scaling.factor=8;rope_scaling.low_freq_factor=4;"
                   "rope_scaling.high_freq_factor=4", RAD_E_FORMAT,
                   "'rope_high_freq' (4.0): is not" },
        { "llama", "rope_scaling={};rope_parameters.rope_type=\"linear\";rope_parameters.factor=2", RAD_E_UNSUPPORTED, "says something else" },
        { "llama", "rope_scaling=3", RAD_E_FORMAT,
          "key 'rope_scaling' (number 3): want an object" },
        { "llama", "hidden_act=\"gelu\"", RAD_E_UNSUPPORTED,
          "key 'hidden_act' (string \"gelu\"): want \"silu\": the gated" },
        { "llama", "tie_word_embeddings=1", RAD_E_FORMAT, "key 'tie_word_embeddings' (number 1)" },
        { "llama", "eos_token_id=336", RAD_E_FORMAT, "key 'eos_token_id' (number 336)" },
        { "llama", "eos_token_id=[1, 400]", RAD_E_FORMAT, "key 'eos_token_id' (array)" },
        { "llama", "architectures=[\"LlamaForSequenceClassification\"]", RAD_E_UNSUPPORTED,
          "key 'architectures[0]' (string \"LlamaForSequenceClassification\")" },
        { "llama", "quantization_config.quant_method=\"awq\"", RAD_E_UNSUPPORTED,
          "key 'quantization_config.quant_method' (string \"awq\")" },
        { "llama", "quantization_config.bits=4", RAD_E_UNSUPPORTED,
          "key 'quantization_config.bits'" },
        { "llama", "quantization_config={}", RAD_E_UNSUPPORTED, "names no quant_method" },
        { "qwen2", "layer_types=[\"full_attention\"]", RAD_E_FORMAT,
          "key 'layer_types' (array): 1 elements, want 4" },
        { "qwen2", "layer_types=[\"full_attention\",\"full_attention\",\"x\",\"full_attention\"]",
          RAD_E_UNSUPPORTED, "key 'layer_types[2]' (string \"x\")" },
        { "qwen2", "layer_types=[\"full_attention\",\"full_attention\",\"sliding_attention\","
                   "\"full_attention\"]", RAD_E_UNSUPPORTED, "names windows although" },
        { "qwen2", "use_sliding_window=true;sliding_window=null;layer_types=[\"full_attention\","
                   "\"full_attention\",\"sliding_attention\",\"full_attention\"]", RAD_E_FORMAT,
          "'sliding_window' (null)" },
        { "gguf:llama", "llama.attention.head_count=0", RAD_E_FORMAT,
          "'llama.attention.head_count'" },
        { "gguf:llama", "llama.attention.head_count_kv=3", RAD_E_FORMAT,
          "head_count_kv' (number 3)" },
        { "gguf:llama", "llama.block_count=4294967295", RAD_E_FORMAT, "key 'llama.block_count'" },
        { "gguf:llama", "llama.block_count=-1", RAD_E_FORMAT,
          "key 'llama.block_count' (number -1)" },
        { "gguf:llama", "llama.rope.dimension_count=7", RAD_E_FORMAT,
          "rope.dimension_count' (number 7)" },
        { "gguf:llama", "llama.rope.dimension_count=32", RAD_E_FORMAT,
          "exceeds the size of a head" },
        { "gguf:llama", "llama.attention.layer_norm_rms_epsilon=\"NaN\"", RAD_E_FORMAT,
          "rms_epsilon'" },
        { "gguf:llama", "llama.expert_count=8", RAD_E_UNSUPPORTED,
          "key 'llama.expert_count' (number 8)" },
        { "gguf:llama", "llama.rope.scaling.type=\"longrope\"", RAD_E_UNSUPPORTED,
          "rope.scaling.type'" },
        { "gguf:llama", "llama.whatever=1", RAD_E_UNSUPPORTED, "key 'llama.whatever' (number 1)" },
        { "gguf:llama", "general.file_type=99", RAD_E_FORMAT,
          "key 'general.file_type' (number 99)" },
        { "gguf:llama", "tokenizer.ggml.tokens.length=-", RAD_E_FORMAT, "no tokens to count" },
        { "gguf:mamba", "", RAD_E_UNSUPPORTED, "key 'general.architecture' (string \"mamba\")" },
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct rad_err err = { 0 };
        struct rad_lab_point *p = NULL;
        struct rad_lab_graph *g = NULL;
        rad_status st = point(t[i].type, t[i].edits, &p, &err);
        CHECK(!st == (p != NULL));
        if (!st)
            st = rad_lab_graph_new(lab, p, &g, &err);
        CHECK_MSG(st == t[i].st && strstr(err.text, t[i].text), "%s %s: %d '%s', want %d '%s'",
                  t[i].type, t[i].edits, st, err.text, t[i].st, t[i].text);
        rad_lab_graph_free(g);
        rad_lab_point_free(p);
    }
}

static void quants_and_pairs(void)
{
    struct rad_lab_point_info info;
    struct rad_lab_point *p = NULL;
    struct rad_err err = { 0 };
    const char *a, *q;
    int llama = 0, fp8 = 0, q15 = 0;

    CHECK(!point("llama", "quantization_config.quant_method=\"fp8\"", &p, &err));
    rad_lab_point_info(p, &info);
    CHECK(!strcmp(info.quant, "fp8_e4m3") && !strcmp(info.arch, "llama"));
    rad_lab_point_free(p);
    CHECK(!point("gguf:qwen2", "general.file_type=15", &p, &err));
    rad_lab_point_info(p, &info);
    CHECK(!strcmp(info.quant, "gguf_ftype_15") && !strcmp(info.arch, "qwen2"));
    rad_lab_point_free(p);
    CHECK(!point("gguf:qwen2", "general.file_type=32", &p, &err));
    rad_lab_point_info(p, &info);
    CHECK(!strcmp(info.quant, ""));
    rad_lab_point_free(p);
    for (int i = 0; i < rad_lab_pair_count(lab); i++) {
        rad_lab_pair_at(lab, i, &a, &q);
        llama += !strcmp(a, "llama") && !*q;
        fp8 += !strcmp(a, "llama") && !strcmp(q, "fp8_e4m3");
        q15 += !strcmp(a, "qwen3") && !strcmp(q, "gguf_ftype_15");
    }
    CHECK(llama == 1 && fp8 == 1 && q15 == 1);
}

static void typed_metadata(void)
{
    RadModelMeta m;
    struct rad_lab_point *p = NULL;
    struct rad_err err = { 0 };

    CHECK(!point("qwen3", "head_dim=32;rope_theta=1e6", &p, &err));
    rad_lab_point_meta(p, &m);
    CHECK(m.n_layers == 4 && m.n_embd == 64 && m.n_head == 4 && m.n_head_kv == 2);
    CHECK(m.head_dim == 32 && m.n_ff == 96 && m.n_vocab == 336 && m.n_ctx_train == 512);
    CHECK(m.rms_eps == 0.01 && m.rope_theta == 1e6 && m.rope_scale == 1);
    CHECK(!strcmp(m.arch_id, "qwen3") && !strcmp(m.quant, ""));
    rad_lab_point_free(p);
}

/* A container without the config text: strings, nested keys joined by points. */
static void flattened(void)
{
    static const char *const key[] = { "model_type", "hidden_size", "intermediate_size",
        "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings",
        "rms_norm_eps", "rope_parameters.rope_theta", "rope_parameters.rope_type",
        "use_sliding_window", "layer_types", "eos_token_id", "generation.temperature", "n_layers",
        "architectures", "num_key_value_heads" };
    static const char *val[] = { "qwen2", "64", "96", "2", "4", "336", "512",
        "0.01", "1000000", "default", "0", "full_attention full_attention", "3 4", "0.6", "2",
        "Qwen2ForCausalLM", "4" };
    RadModelMeta m = { .struct_size = sizeof(m), .n_kv = sizeof(key) / sizeof(*key),
                       .kv_key = key, .kv_val = val }, got;
    struct rad_lab_point *p = NULL;
    struct rad_err err = { 0 };

    CHECK_MSG(!rad_lab_point_from_meta(lab, &m, &p, &err), "%s", err.text);
    if (p) {
        rad_lab_point_meta(p, &got);
        CHECK(got.n_embd == 64 && got.rope_theta == 1e6 && got.rms_eps == 0.01);
    }
    rad_lab_point_free(p);
    val[1] = "sixty-four";
    CHECK(rad_lab_point_from_meta(lab, &m, &p, &err) == RAD_E_FORMAT);
    CHECK(strstr(err.text, "key 'hidden_size'"));
    static const char *const one_key[] = { "radiance.config" };
    static const char *one_val[] = { "{\"model_type\": \"nope\"}" };
    m.n_kv = 1;
    m.kv_key = one_key;
    m.kv_val = one_val;
    CHECK(rad_lab_point_from_meta(lab, &m, &p, &err) == RAD_E_UNSUPPORTED);
    CHECK(strstr(err.text, "\"nope\""));
}

/* ---- rotary frequencies against the formulas, in double */
static double formula(const char *kind, int i, int dim, double theta)
{
    const double pi = 3.14159265358979323846, factor = 8, orig = 64;
    double f = pow(theta, -2.0 * i / dim), wave = 2 * pi / f;

    if (!strcmp(kind, "linear"))
        return f / factor;
    if (!strcmp(kind, "llama3")) {
        double low = 1, high = 4, s = (orig / wave - low) / (high - low);
        return wave > orig / low ? f / factor : wave < orig / high ? f
               : (1 - s) * f / factor + s * f;
    }
    if (!strcmp(kind, "yarn") || !strcmp(kind, "yarn-exact")) {
        double lo = dim * log(orig / (32 * 2 * pi)) / (2 * log(theta));
        double hi = dim * log(orig / (1 * 2 * pi)) / (2 * log(theta));
        if (!strcmp(kind, "yarn")) {
            lo = floor(lo);
            hi = ceil(hi);
        }
        lo = lo < 0 ? 0 : lo;
        hi = hi > dim - 1 ? dim - 1 : hi;
        double r = (i - lo) / (hi - lo);
        r = r < 0 ? 0 : r > 1 ? 1 : r;
        return f / factor * r + f * (1 - r);
    }
    return f;
}

static void rotary(void)
{
    static const char *const kind[] = { "default", "linear", "llama3", "yarn", "yarn-exact" };
    for (size_t k = 0; k < sizeof(kind) / sizeof(*kind); k++) {
        struct rad_err err = { 0 };
        struct rad_lab_point *p = NULL;
        struct rad_lab_graph *g = NULL;
        char edits[512];
        snprintf(edits, sizeof(edits), "head_dim=64;rope_theta=50000;rope_scaling.rope_type=\"%.4s%s\";"
                 "rope_scaling.factor=8;rope_scaling.original_max_position_embeddings=64;"
                 "rope_scaling.low_freq_factor=1;rope_scaling.high_freq_factor=4;"
                 "rope_scaling.truncate=%s", kind[k], strchr(kind[k], '-') ? "" : kind[k] + 4,
                 strchr(kind[k], '-') ? "false" : "true");
        CHECK_MSG(!point("llama", edits, &p, &err), "%s", err.text);
        CHECK_MSG(p && !rad_lab_graph_new(lab, p, &g, &err), "%s", err.text);
        CHECK(g && g->n_consts == 1 && g->constant[0].shape[0] == 32);
        for (int i = 0; g && i < 32; i++) {
            double want = formula(kind[k], i, 64, 50000), got = (double)g->constant[0].data[i];
            CHECK_MSG(fabs(got - want) <= 3e-6 * want, "%s[%d]: %.9g, want %.9g", kind[k], i, got,
                      want);
        }
        rad_lab_graph_free(g);
        rad_lab_point_free(p);
    }
    /* 0.1 ln(4) + 1 */
    struct rad_lab_point *p = NULL;
    struct lab_val v = { 0 };
    CHECK(!point("llama", "rope_scaling.type=\"yarn\";rope_scaling.factor=4", &p, NULL));
    CHECK(lab_point_get(p, "rope_mscale", -1, &v) && fabs(v.d - 1.1386294361119891) < 1e-15);
    rad_lab_point_free(p);
}

/* ---- states: one group for each window and geometry */
static void windows(void)
{
    struct rad_lab_point *p = NULL;
    struct rad_lab_graph *g = NULL;
    CHECK(!point("qwen2",
      "use_sliding_window=true;sliding_window=8;max_window_layers=2", &p, NULL));
    CHECK(p && !rad_lab_graph_new(lab, p, &g, NULL));
    if (g) {
        CHECK(g->n_states == 2);
        CHECK(g->state[0].decl.kind == RAD_KV_FULL && g->state[0].n_layers == 2);
        CHECK(g->state[1].decl.kind == RAD_KV_WINDOW && g->state[1].decl.window == 8);
        CHECK(g->state[1].n_layers == 2 && g->state[1].layer[0] == 2 && g->state[1].layer[1] == 3);
    }
    rad_lab_graph_free(g);
    rad_lab_point_free(p);
}

/* ---- broken data files: one edit of the tree's own */
static void load(const char *folder, const char *name)
{
    char path[1200];
    char *text;
    size_t n;
    snprintf(path, sizeof(path), "%s/%s/%s.json", home, folder, name);
    if (radi_read_text(path, 1 << 20, &text, &n, NULL)) {
        printf("Bail out! cannot read %s\n", path);
        exit(1);
    }
    file[n_files++] = (struct lab_text){ folder, name, text, n };
}

static void broken(void)
{
    static const struct {
        const char *name, *from, *to, *want;
    } t[] = {
        { "llama", "\"schema\": 1,", "\"schema\": 2,", "'llama': /schema: schema 2, want 1" },
        { "llama", "\"schema\": 1,", "\"schema\": 1, \"extra\": 1,",
          "'llama': /extra: unknown key" },
        { "llama", "\"description\": \"Llama and its derivatives\",", "",
          "'llama': /: key 'description'" },
        { "llama", "\"source\": \"config\"", "\"source\": \"yaml\"", "'llama': /source: 'yaml'" },
        { "llama", "\"match\": [\"llama\"]", "\"match\": []", "'llama': /match: empty" },
        { "llama", "\"match\": [\"llama\"]", "\"match\": [\"qwen2\"]",
          "/match: 'qwen2' is served by" },
        { "llama", "\"circuit\": \"decoder\"", "\"circuit\": \"x\"",
          "'llama': /circuit: no circuit 'x'" },
        { "llama", "\"hf_quant\"]", "\"hf_quant\", \"nope\"]", "/include/4: no fragment 'nope'" },
        { "llama", "\"hf_quant\"]", "\"gguf_decoder\"]", "fragment 'gguf_decoder' is for source" },
        { "llama", "\"o_bias\"", "\"o_bais\"", "'llama': /point/o_bais: no parameter of circuit" },
        { "llama", "\"o_bias\": \"$attention_bias\"", "\"o_bias\": \"$attention_bais\"",
          "'llama': /point/o_bias: '$attention_bais': the map has no typed key" },
        { "llama", "\"o_bias\": \"$attention_bias\"", "\"o_bias\": \"attention_bias\"",
          "'llama': /point/o_bias: 'attention_bias': no entry" },
        { "llama", "\"o_bias\": \"$attention_bias\"", "\"o_bias\": \"$attention_bias +\"",
          "'llama': /point/o_bias: expression '$attention_bias +': it ends" },
        { "llama", "\"mlp_bias\": { \"type\": \"bool\", \"default\": false }",
          "\"mlp_bias\": { \"type\": \"boolean\", \"default\": false }",
          "/keys/mlp_bias/type: type 'boolean'" },
        { "llama", "\"mlp_bias\": { \"type\": \"bool\", \"default\": false }",
          "\"mlp_bias\": { \"type\": \"bool\", \"default\": 0 }",
          "/keys/mlp_bias/default: is int, want bool" },
        { "llama", "\"mlp_bias\": { \"type\": \"bool\", \"default\": false }",
          "\"mlp_bias\": { \"type\": \"bool\", \"defualt\": false }",
          "/keys/mlp_bias/defualt: unknown key" },
        { "llama", "\"ffn_bias\": \"$mlp_bias\"", "\"ffn_bias\": \"false\"",
          "/keys/mlp_bias: nothing reads it" },
        { "llama", "\"why\": \"the circuit ends in a language model head\"", "\"doc\": \"x\"",
          "/keys/architectures: 'oneof' wants values, and 'why'" },
        { "llama", "\"fp8_e4m3\"]", "\"q_{3..1}\"]", "'llama': /quants: 'q_{3..1}'" },
        { "hf_decoder", "\"n_ff\": \"$intermediate_size\",", "",
          "'llama': /point: parameter 'n_ff' of" },
        { "hf_decoder", "\"ffn_down\": \"model.layers.{i}.mlp.down_proj\",", "",
          "'llama': /tensors: weight 'ffn_down.weight' of 'ffn' is not bound" },
        { "hf_decoder", "\"attn_norm\": \"model.layers.{i}.input_layernorm\"",
          "\"attn_norm\": null",
          "weight 'attn_norm.weight' of 'attn' is not optional" },
        { "hf_decoder", "{ \"copy\": \"lm_head.weight\", \"optional\": true }",
          "{ \"when\": \"tie\", \"copy\": \"lm_head.weight\" }",
          "'hf_decoder': /tensors/output.weight: the last alternative may have no 'when'" },
        { "hf_decoder", "{ \"copy\": \"lm_head.weight\", \"optional\": true }", "{ \"cpoy\": \"lm_head.weight\" }",
          "/tensors/output.weight/2/cpoy" },
        { "hf_decoder", "\"ffn_down\": \"model.layers.{i}.mlp.down_proj\"",
          "\"ffn_down\": { \"copy\": \"model.layers.{i}.mlp.down_proj\", \"optional\": true }",
          "weight 'ffn_down.weight' of 'ffn' is not optional" },
        { "head", "\"fallback\": \"token_embd.weight\"", "\"fallback\": \"output.weight\"",
          "'head': /weights/output.weight/fallback: no weight 'output.weight' stands before" },
        { "hf_decoder", "\"key\": \"head_dim\", \"bad\"", "\"key\": \"haed_dim\", \"bad\"",
          "'hf_decoder': /checks/2: the map has no key 'haed_dim'" },
        { "hf_rope", "\"rope_m\":", "\"rope_x\": \"1\", \"rope_m\":",
          "'hf_rope': /let/rope_x: nothing reads it" },
        { "hf_rope", "\"fragment\": true,", "\"fragment\": true, \"match\": [\"x\"],",
          "'hf_rope': /match: unknown" },
        { "hf_quant", "\"keys\": {", "\"keys\": { \"rope_theta\": { \"type\": \"pos\" },",
          "'hf_quant': /keys/rope_theta: is defined in 'hf_rope' too" },
        { "decoder", "[\"attn\", \"ffn\"]", "[\"attn\", \"fnn\"]",
          "'decoder': /layers/blocks/attention/1: no block 'fnn'" },
        { "decoder", "\"logits\": \"logits\"", "\"logits\": \"x1\"",
          "'decoder': /logits: no stream 'x1'" },
        { "decoder", "\"count\": \"n_layers\"", "\"count\": \"n_layer\"",
          "'decoder': /layers: 'n_layer': no param" },
        { "decoder", "\"x\": [\"T\", \"n_embd\"]", "\"z\": [\"T\", \"n_embd\"]",
          "/prologue/0: block 'embed' wants" },
        { "decoder", "\"prologue\": [\"embed\"]", "\"prologue\": \"embed\"",
          "'decoder': /prologue: string" },
        { "decoder", "\"x\": [\"T\", \"n_embd\"]", "\"x\": [\"T\"]",
          "'decoder': /streams/x: want rows and" },
        { "ffn", "\"#ffn_gate.weight\"", "\"#ffn_gat.weight\"",
          "'ffn': /nodes/2/args/1: '#ffn_gat.weight': no such" },
        { "ffn", "\">act\"", "\">atc\"", "'ffn': /nodes/5/args/1: 'atc': no such edge" },
        { "ffn", "\"act\": [\"T\", \"n_ff\"]", "\"act\": [\"T\", \"n_fff\"]",
          "'ffn': /edges/act: 'n_fff': no param" },
        { "ffn", "\"down\": [\"T\", \"n_embd\"]",
          "\"down\": [\"T\", \"n_embd\"], \"z\": [\"T\", \"1\"]",
          "'ffn': /edges/z: nothing uses it" },
        { "ffn", "\"gate_up[0:n_ff]\"", "\"gate_up[0]\"", NULL },
        { "ffn", "\">gate_up[0:n_ff]\"", "\">gate_up[0]\"",
          "'ffn': /nodes/2/args/3: 'gate_up[0]': want edge" },
        { "ffn", "\"shard\": \"col\"", "\"shard\": \"column\"",
          "/weights/ffn_down.weight/shard: 'column'" },
        { "ffn", "\"ffn_bias\": { \"type\": \"bool\", \"default\": false }",
          "\"ffn_bias\": { \"type\": \"bool\", \"default\": false }, \"u\": { \"type\": \"int\" }",
          "'ffn': /params/u: nothing uses it" },
        { "attn", "\"fn\": \"rope_inv_freq\"", "\"fn\": \"rope_freq\"",
          "/constants/rope_freq: no function" },
        { "attn", "\"theta\": \"rope_theta\", \"factor\"", "\"thета\": \"rope_theta\", \"factor\"",
          "'attn': /constants/rope_freq/args/th" },
        { "attn", "\"@kv.seqused\"", "\"@kv.seq_used\"",
          "'@kv.seq_used': no such field of the batch" },
        { "attn", "\"@positions\"", "\"@kv.positions\"", "'@kv.positions': no such field" },
        { "attn", "\"h|x\"", "\"x|h\"", "'attn': /nodes/2/args/0: 'x|h': want an edge before" },
        { "attn", "\"h|x\"", "\"h|w\"", "'attn': /nodes/2/args/0: 'w': no such edge" },
        { "hf_decoder", "\"attn_q\": \"model.layers.{i}.self_attn.q_proj\"",
          "\"attn_q\": { \"copy\": \"x\", \"every\": \"2\" }",
          "'hf_decoder': /tensors/attn_q: 'every' without 'rows'" },
        { "attn", "\"~q\"", "\"?q\"", "'?' wants a weight or a constant" },
        { "attn", "\"if\": \"n_head % n_head_kv != 0\"", "\"if\": \"$n_head == 0\"",
          "which only a map does" },
        { "attn", "\"bad\": \"does not divide n_head\"", "\"worse\": \"x\"",
          "'attn': /checks/0/worse: unknown" },
        { "attn", "\"causal\": { \"type\": \"bool\"", "\"causal\": { \"type\": \"flag\"",
          "/params/causal: type 'flag'" },
        { "attn", "\"kind\": \"window > 0 ? 'window' : 'full'\", ", "",
          "'attn': /states/kv: key 'kind' is missing" },
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct lab_text copy[64];
        struct rad_lab *l = NULL;
        struct rad_err err = { 0 };
        char *made = NULL;
        memcpy(copy, file, sizeof(copy));
        for (int k = 0; k < n_files; k++) {
            const char *at = strcmp(file[k].name, t[i].name) ? NULL : strstr(file[k].text, t[i].from);
            if (!at)
                continue;
            made = malloc(file[k].n + strlen(t[i].to) + 1);
            size_t pre = (size_t)(at - file[k].text);
            memcpy(made, file[k].text, pre);
            copy[k].n = pre + (size_t)sprintf(made + pre, "%s%s", t[i].to, at + strlen(t[i].from));
            copy[k].text = made;
        }
        if (!t[i].want) {               /* the text must be there no more */
            CHECK_MSG(!made, "%s: '%s' is there", t[i].name, t[i].from);
            free(made);
            continue;
        }
        CHECK_MSG(made != NULL, "%s: no '%s' to edit", t[i].name, t[i].from);
        rad_status st = lab_open_texts(copy, n_files, &l, &err);
        CHECK_MSG(st == RAD_E_FORMAT && strstr(err.text, t[i].want), "%s, '%s': %d '%s', want '%s'",
                  t[i].name, t[i].to, st, err.text, t[i].want);
        rad_lab_free(l);
        free(made);
    }
}

/* ---- the n-th allocation fails: a message, no crash, nothing leaks */
static void memory_runs_out(void)
{
    static const char config[] = "{\"model_type\":\"qwen2\",\"hidden_size\":64,\"eos_token_id\":[1],"
        "\"intermediate_size\":96,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
        "\"vocab_size\":336,\"max_position_embeddings\":512,\"num_key_value_heads\":4}";
    uint64_t n = 1;

    for (bool done = false; !done; n += 1 + n / 16) {
        struct rad_err err = { 0 };
        struct rad_lab *l = NULL;
        struct rad_lab_point *p = NULL;
        struct rad_lab_graph *g = NULL;
        char *text = NULL;
        uint64_t before = radi_alloc_count();

        radi_alloc_fail_at(n);
        rad_status st = lab_open_texts(file, n_files, &l, &err);
        if (!st)
            st = rad_lab_point_new(l, config, sizeof(config) - 1, &p, &err);
        if (!st)
            st = rad_lab_graph_new(l, p, &g, &err);
        if (!st)
            st = rad_lab_graph_text(p, g, &text, &err);
        radi_alloc_fail_at(0);
        CHECK_MSG(!st || (st == RAD_E_NOMEM && err.text[0]), "allocation %llu: %d '%s'",
                  (unsigned long long)n, st, err.text);
        done = st != RAD_E_NOMEM && radi_alloc_count() - before < n;
        CHECK(!st == (text != NULL));
        free(text);
        rad_lab_graph_free(g);
        rad_lab_point_free(p);
        rad_lab_free(l);
    }
    CHECK(n > 100);
}

int main(void)
{
    const char *src = getenv("RAD_SRCDIR");
    struct rad_err err = { 0 };
    static const char *const map[] = { "hf_decoder", "hf_rope", "hf_quant", "hf_window",
        "hf_whole", "llama", "mistral", "qwen2", "qwen3", "gguf_decoder", "gguf_llama", "gguf_qwen2", "gguf_qwen3" };
    static const char *const block[] = { "embed", "attn", "ffn", "head" };

    snprintf(home, sizeof(home), "%s/arch", src ? src : ".");
    if (rad_lab_open(home, &lab, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof(block) / sizeof(*block); i++)
        load("blocks", block[i]);
    load("circuits", "decoder");
    for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++)
        load("maps", map[i]);
    TAP_RUN(expressions);
    TAP_RUN(accepted);
    TAP_RUN(refused);
    TAP_RUN(quants_and_pairs);
    TAP_RUN(typed_metadata);
    TAP_RUN(flattened);
    TAP_RUN(rotary);
    TAP_RUN(windows);
    TAP_RUN(broken);
    TAP_RUN(memory_runs_out);
    TAP_RUN(lowering_declare);
    TAP_RUN(lowering_step);
    TAP_RUN(lowering_refuses);
    TAP_RUN(lowering_forms);
    rad_lab_free(lab);
    for (int i = 0; i < n_files; i++)
        radi_free((void *)(uintptr_t)file[i].text);
    return tap_done();
}
