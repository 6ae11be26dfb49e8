/* SPDX-License-Identifier: Apache-2.0 */
/* rad-info --json: everything but the token texts and the planes' bytes, as one
 * object. Keys are only ever added. */
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "rad-info.h"

static void put_meta(struct cmd_json *j, const struct rad_model *m)
{
    cmd_json_object(j, "metadata");
    for (size_t i = 0; i < rad_model_meta_count(m); i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);

        if (rad_model_meta(m, r->key) != r)
            continue;            /* a key counts once: the first */
        if (r->type == RAD_META_INT)
            cmd_json_int(j, r->key, r->v.i);
        else if (r->type == RAD_META_F64)
            cmd_json_f64(j, r->key, r->v.f);
        else
            cmd_json_str(j, r->key, r->v.s);
    }
    cmd_json_end_object(j);
}

static void put_encoding(struct cmd_json *j, const RadEncoding *e)
{
    char text[512];

    (void)rad_encoding_text(e, text, sizeof text);
    cmd_json_object(j, NULL);
    cmd_json_str(j, "text", text);
    cmd_json_str(j, "scheme", e->scheme);
    cmd_json_str(j, "transform", e->transform);
    cmd_json_array(j, "planes");
    for (int i = 0; i < e->n_planes; i++) {
        const RadPlaneDesc *d = &e->plane[i];
        const int64_t *v = d->kind == RAD_PLANE_TABLE ? d->extent : d->block;

        cmd_json_object(j, NULL);
        cmd_json_str(j, "role", d->role);
        cmd_json_str(j, "dtype", rad_dtype_name((int)d->dtype));
        cmd_json_array(j, d->kind == RAD_PLANE_TABLE ? "extent" : "block");
        cmd_json_int(j, NULL, v[0]);
        cmd_json_int(j, NULL, v[1]);
        cmd_json_end_array(j);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
    cmd_json_end_object(j);
}

static void put_weight(struct cmd_json *j, const struct rad_weight *w)
{
    cmd_json_object(j, NULL);
    cmd_json_str(j, "name", w->name);
    cmd_json_uint(j, "encoding", w->enc_index);
    cmd_json_array(j, "shape");
    for (int i = 0; i < w->rank; i++)
        cmd_json_int(j, NULL, w->shape[i]);
    cmd_json_end_array(j);
    cmd_json_int(j, "layer", w->layer);
    cmd_json_int(j, "expert", w->expert);
    cmd_json_int(j, "slot", w->slot);
    cmd_json_str(j, "quantizer", w->quantizer);
    cmd_json_str(j, "options", w->options);
    cmd_json_uint(j, "offset", w->offset);
    cmd_json_uint(j, "bytes", w->bytes);
    cmd_json_array(j, "planes");
    for (uint32_t i = 0; i < w->n_planes; i++) {
        cmd_json_object(j, NULL);
        cmd_json_str(j, "role", w->enc->plane[i].role);
        cmd_json_uint(j, "offset", w->plane[i].offset);
        cmd_json_uint(j, "bytes", w->plane[i].bytes);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
    cmd_json_end_object(j);
}

static void put_groups(struct cmd_json *j, const struct rad_model *m)
{
    cmd_json_array(j, "expert_groups");
    for (size_t i = 0; i < rad_model_group_count(m); i++) {
        const struct rad_expert_group *g = rad_model_group_at(m, i);

        cmd_json_object(j, NULL);
        cmd_json_int(j, "layer", g->layer);
        cmd_json_uint(j, "experts", g->n_experts);
        cmd_json_uint(j, "slots", g->n_slots);
        cmd_json_uint(j, "first_weight", g->first);
        cmd_json_uint(j, "base", g->base);
        cmd_json_uint(j, "stride", g->stride);
        cmd_json_uint(j, "unit_bytes", g->unit_bytes);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
}

static void put_tally(struct cmd_json *j, const struct rad_model *m, bool by_encoding)
{
    size_t n;
    struct info_tally *t = info_tally(m, by_encoding, &n);
    char text[512];

    cmd_json_array(j, by_encoding ? "by_encoding" : "by_quantizer");
    for (size_t i = 0; i < n; i++) {
        cmd_json_object(j, NULL);
        if (by_encoding) {
            (void)rad_encoding_text(t[i].enc, text, sizeof text);
            cmd_json_str(j, "encoding", text);
        } else {
            cmd_json_str(j, "quantizer", t[i].name);
        }
        cmd_json_uint(j, "weights", t[i].weights);
        cmd_json_uint(j, "bytes", t[i].bytes);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
    free(t);
}

static void put_special(struct cmd_json *j, const struct rad_model *m, uint32_t type,
                        const char *key)
{
    struct rad_vocab_token t;

    cmd_json_array(j, key);
    for (uint32_t i = 0; rad_model_vocab_token(m, i, &t); i++) {
        if (t.type != type)
            continue;
        cmd_json_object(j, NULL);
        cmd_json_uint(j, "id", i);
        cmd_json_str(j, "text", t.text);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
}

static void put_vocab(struct cmd_json *j, const struct rad_model *m)
{
    struct rad_vocab_info v;
    struct rad_vocab_step s;
    struct rad_vocab_token t;
    uint64_t count[8] = { 0 };

    if (!rad_model_vocab_info(m, &v)) {
        cmd_json_str(j, "vocab", NULL);
        return;
    }
    for (uint32_t i = 0; rad_model_vocab_token(m, i, &t); i++)
        count[t.type < 7 ? t.type : 7]++;
    cmd_json_object(j, "vocab");
    cmd_json_str(j, "kind", v.kind_name);
    cmd_json_uint(j, "tokens", v.n_tokens);
    cmd_json_uint(j, "merges", v.n_merges);
    cmd_json_object(j, "types");
    for (uint32_t i = 0; i < 8; i++)
        if (count[i])
            cmd_json_uint(j, info_token_type(i), count[i]);
    cmd_json_end_object(j);
    cmd_json_int(j, "bos", v.bos);
    cmd_json_int(j, "eos", v.eos);
    cmd_json_int(j, "eot", v.eot);
    cmd_json_int(j, "pad", v.pad);
    cmd_json_int(j, "unk", v.unk);
    cmd_json_int(j, "sep", v.sep);
    cmd_json_bool(j, "add_bos", v.add_bos);
    cmd_json_bool(j, "add_eos", v.add_eos);
    cmd_json_str(j, "chat_template", v.chat_template);
    cmd_json_array(j, "steps");
    for (uint32_t i = 0; rad_model_vocab_step(m, i, &s); i++) {
        cmd_json_object(j, NULL);
        cmd_json_str(j, "stage", s.stage);
        cmd_json_str(j, "name", s.name);
        cmd_json_uint(j, "kind", s.kind);
        cmd_json_uint(j, "flags", s.flags);
        cmd_json_str(j, "arg0", s.arg0);
        cmd_json_str(j, "arg1", s.arg1);
        cmd_json_int(j, "iarg", s.iarg);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
    put_special(j, m, 3, "control_tokens");
    put_special(j, m, 4, "user_tokens");
    cmd_json_end_object(j);
}

static void put_profile(struct cmd_json *j, const struct rad_model *m)
{
    size_t n;
    const struct rad_profile_row *p = rad_model_profile(m, &n);

    cmd_json_array(j, "profile");
    for (size_t i = 0; i < n; i++) {
        cmd_json_object(j, NULL);
        cmd_json_int(j, "layer", p[i].layer);
        cmd_json_int(j, "expert", p[i].expert);
        cmd_json_f64(j, "share", (double)p[i].share);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
}

static void put_integrity(struct cmd_json *j, const struct rad_model *m)
{
    const struct rad_integrity *g = rad_model_integrity(m);
    char hex[65];

    if (!g) {
        cmd_json_str(j, "integrity", NULL);
        return;
    }
    cmd_json_object(j, "integrity");
    info_hex(g->root, hex);
    cmd_json_str(j, "root", hex);
    cmd_json_str(j, "source", g->source);
    cmd_json_bool(j, "signed", g->is_signed);
    if (g->is_signed) {
        info_hex(g->key, hex);
        cmd_json_str(j, "key", hex);
    }
    cmd_json_end_object(j);
}

void info_json(const struct rad_model *m)
{
    const struct rad_model_info *h = rad_model_info(m);
    struct info_section s[INFO_SECTIONS];
    struct cmd_json j = { 0 };

    cmd_json_object(&j, NULL);
    cmd_json_str(&j, "format", "RAD2");
    cmd_json_uint(&j, "version", h->version);
    cmd_json_uint(&j, "file_bytes", h->file_bytes);
    cmd_json_str(&j, "architecture", h->arch);
    cmd_json_str(&j, "name", h->name);
    cmd_json_str(&j, "source_quantization", h->quant);
    cmd_json_str(&j, "recipe", h->recipe);
    cmd_json_str(&j, "created_by", h->created_by);
    cmd_json_object(&j, "sections");
    info_sections(h, s);
    for (int i = 0; i < INFO_SECTIONS; i++) {
        cmd_json_object(&j, s[i].name);
        cmd_json_uint(&j, "offset", s[i].at->offset);
        cmd_json_uint(&j, "bytes", s[i].at->bytes);
        cmd_json_uint(&j, "count", s[i].at->count);
        cmd_json_end_object(&j);
    }
    cmd_json_end_object(&j);
    put_integrity(&j, m);
    put_meta(&j, m);
    cmd_json_array(&j, "encodings");
    for (size_t i = 0; i < rad_model_encoding_count(m); i++)
        put_encoding(&j, rad_model_encoding_at(m, i));
    cmd_json_end_array(&j);
    cmd_json_array(&j, "weights");
    for (size_t i = 0; i < rad_model_weight_count(m); i++)
        put_weight(&j, rad_model_weight_at(m, i));
    cmd_json_end_array(&j);
    put_groups(&j, m);
    put_tally(&j, m, true);
    put_tally(&j, m, false);
    put_vocab(&j, m);
    put_profile(&j, m);
    cmd_json_end_object(&j);
}
