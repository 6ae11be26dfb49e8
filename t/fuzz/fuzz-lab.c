/* SPDX-License-Identifier: Apache-2.0 */
/* The LAB from strangers. The first byte says what the rest is: a config for
 * the small lab below, or a text in place of one of its files. Whatever is
 * accepted must lay out (or say why not) and print. */
#include <stdlib.h>

#include "lab/lab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char block[] =
    "{\"schema\":1,\"description\":\"b\",\"params\":{\"n\":{\"type\":\"int\",\"min\":1},\""
    "w\":{\"type\":\"int\",\"default\":0},\"m\":{\"type\":\"str\",\"default\":\"yarn\"},\""
    "t\":{\"type\":\"real\",\"default\":10000.0}},\"streams\":[\"x\",\"y\"],\"edges\":{\"h"
    "\":[\"T\",\"n\"]},\"states\":{\"kv\":{\"kind\":\"w>0?'window':'full'\",\"window\":\"w"
    "\",\"heads\":\"1\",\"dim\":\"n\"}},\"constants\":{\"f\":{\"fn\":\"rope_inv_freq\",\"a"
    "rgs\":{\"kind\":\"m\",\"dim\":\"2*n\",\"theta\":\"t\",\"factor\":\"4\",\"orig_ctx\":\""
    "64\",\"beta_fast\":\"32\",\"beta_slow\":\"1\",\"truncate\":\"true\",\"low_freq\":\"1\""
    ",\"high_freq\":\"4\"}}},\"weights\":{\"a.weight\":{\"shape\":[\"n\",\"n\"]},\"a.bias\""
    ":{\"shape\":[\"n\"],\"when\":\"w>0\"}},\"nodes\":[{\"op\":\"embed\",\"args\":[\"@toke"
    "n_ids\",\">x\"]},{\"op\":\"linear\",\"args\":[\"x\",\"#a.weight\",\"?#a.bias\",\">h\""
    "]},{\"op\":\"rope\",\"args\":[\"~h\",\"%f\"]},{\"forms\":[[{\"op\":\"p\",\"args\":[\""
    "h\",\"&kv\",\"@kv.seqused\",\">y\"],\"params\":{\"k\":\"n\"}}],[{\"op\":\"q\",\"args\""
    ":[\"h\",\">y\"]}]]}]}";
static const char circuit[] =
    "{\"schema\":1,\"description\":\"c\",\"params\":{\"n_layers\":{\"type\":\"int\",\"min\""
    ":1,\"max\":9},\"n\":{\"type\":\"int\"},\"kind\":{\"type\":\"str\",\"default\":\"a\"}}"
    ",\"streams\":{\"x\":[\"T\",\"n\"],\"y\":[\"T\",\"n\"]},\"logits\":\"y\",\"layers\":{\""
    "count\":\"n_layers\",\"kind\":\"kind\",\"blocks\":{\"a\":[\"b\"],\"s\":[{\"block\":\""
    "b\",\"as\":\"s\",\"set\":{\"w\":\"3\"}}]}}}";
static const char map[] =
    "{\"schema\":1,\"description\":\"m\",\"source\":\"config\",\"match\":[\"m\"],\"quants\""
    ":[\"\",\"q{1..3}\"],\"circuit\":\"c\",\"nest\":\"text\",\"root\":{\"ignored\":{\"z*\""
    ":\"r\"}},\"keys\":{\"n\":{\"type\":\"dim\"},\"l\":{\"type\":\"layers\",\"default\":2}"
    ",\"k\":{\"type\":\"list\",\"of\":\"str\",\"len\":\"$l\",\"optional\":true,\"null\":tr"
    "ue},\"r\":{\"type\":\"object\",\"optional\":true,\"null\":true},\"r.m\":{\"type\":\"s"
    "tr\",\"optional\":true},\"r.t\":{\"type\":\"pos\",\"default\":5},\"e\":{\"type\":\"id"
    "s\",\"optional\":true}},\"refused\":{\"bad\":\"r\"},\"ignored\":{\"ok\":\"r\"},\"chec"
    "ks\":[{\"if\":\"highest($e)>=$n\",\"key\":\"e\",\"bad\":\"big\"}],\"let\":{\"quant\":"
    "\"$n==4?'q1':''\"},\"point\":{\"n_layers\":\"$l\",\"n\":\"$n\",\"kind\":\"$k==null?'a"
    "':$k[i]\",\"m\":\"$r.m??'yarn'\",\"t\":\"$r.t\"},\"tensors\":{\"a\":[{\"when\":\"n>4\""
    ",\"copy\":[\"p.{i}\",\"q\"]},{\"rows\":\"r\",\"first\":\"n\",\"count\":\"n*2\"}]}}";

/* Of a lab that took a strange file: any config that its maps might like. */
static const char config[] = "{\"model_type\":\"m\",\"n\":6,\"l\":3,\"k\":[\"a\",\"s\",\"a\"]}";

static void lay_out(const struct rad_lab *lab, const char *text, size_t n)
{
    struct rad_err err = { 0 };
    struct rad_lab_point *p = NULL;
    struct rad_lab_graph *g = NULL;
    RadModelMeta meta;
    char *s = NULL;
    rad_status st = rad_lab_point_new(lab, text, n, &p, &err);

    if (st == RAD_OK) {
        rad_lab_point_meta(p, &meta);
        if (rad_lab_point_json(p, &s, &err))
            abort();
        free(s);
        st = rad_lab_graph_new(lab, p, &g, &err);
    }
    if (st == RAD_OK) {
        if (rad_lab_graph_text(p, g, &s, &err))
            abort();
        free(s);
    } else if (!err.text[0] || st == RAD_E_NOTFOUND)
        abort();
    rad_lab_graph_free(g);
    rad_lab_point_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lab_text file[] = { { "blocks", "b", block, sizeof(block) - 1 },
                               { "circuits", "c", circuit, sizeof(circuit) - 1 },
                               { "maps", "m", map, sizeof(map) - 1 } };
    struct rad_err err = { 0 };
    struct rad_lab *lab = NULL;

    if (size == 0)
        return 0;
    unsigned which = data[0] & 3u;
    const char *text = (const char *)data + 1;
    if (which < 3) {
        file[which].text = text;
        file[which].n = size - 1;
    }
    rad_status st = lab_open_texts(file, 3, &lab, &err);
    if ((st == RAD_OK) != (lab != NULL) || (st && !err.text[0]) || (which == 3 && st))
        abort();
    if (lab && which == 3)
        lay_out(lab, text, size - 1);
    else if (lab)
        lay_out(lab, config, sizeof(config) - 1);
    rad_lab_free(lab);
    return 0;
}
