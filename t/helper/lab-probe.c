/* SPDX-License-Identifier: Apache-2.0 */
/* What no command shows of the LAB:
 *   lab-probe open                  reads the data files of RADIANCE_HOME
 *   lab-probe pairs                 what they claim
 *   lab-probe point CONFIG...       the parameter point as JSON
 *   lab-probe plan CONFIG           point and graph as text
 *   lab-probe serves CONFIG...      one line a file: ok, or why not
 * CONFIG: a config.json, or anything that opens as a checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rad/ckpt.h>
#include <rad/lab.h>

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *s = NULL;
    if (!f)
        return NULL;
    *n = 0;
    for (size_t cap = 0, got = 1; got; *n += got) {
        if (*n == cap) {
            char *more = realloc(s, cap = cap ? cap * 2 : 65536);
            if (!more)
                break;
            s = more;
        }
        got = fread(s + *n, 1, cap - *n, f);
    }
    fclose(f);
    return s;
}

/* Text of a .json file, or the config of a checkpoint. */
static rad_status config_of(const char *path, char **out, size_t *n, struct rad_err *err)
{
    size_t len = strlen(path);
    struct rad_ckpt *ck;

    if (len > 5 && !strcmp(path + len - 5, ".json")) {
        *out = slurp(path, n);
        return *out ? RAD_OK : rad_fail(err, RAD_E_IO, "cannot read");
    }
    RAD_TRY(rad_ckpt_open(path, &ck, err));
    *out = strdup(rad_ckpt_config_json(ck));
    *n = *out ? strlen(*out) : 0;
    rad_ckpt_close(ck);
    return *out ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
}

static int one(const struct rad_lab *lab, const char *verb, const char *path)
{
    struct rad_err err = { 0 };
    struct rad_lab_point *p = NULL;
    struct rad_lab_graph *g = NULL;
    char *text = NULL;
    size_t n = 0;
    char *config = NULL;
    rad_status st = config_of(path, &config, &n, &err);

    if (!st)
        st = rad_lab_point_new(lab, config, n, &p, &err);
    free(config);
    if (!st)
        st = rad_lab_graph_new(lab, p, &g, &err);
    if (!st && !strcmp(verb, "plan"))
        st = rad_lab_graph_text(p, g, &text, &err);
    else if (!st && !strcmp(verb, "point"))
        st = rad_lab_point_json(p, &text, &err);
    if (!strcmp(verb, "serves")) {
        struct rad_lab_point_info i = { 0 };
        if (!st)
            rad_lab_point_info(p, &i);
        if (st)
            printf("%s: %s: %s\n", path, rad_strstatus(st), err.text);
        else
            printf("%s: ok: map '%s', quant '%s'\n", path, i.map, i.quant);
    } else if (st)
        fprintf(stderr, "lab-probe: '%s': %s\n", path, err.text);
    else
        fputs(text, stdout);
    free(text);
    rad_lab_graph_free(g);
    rad_lab_point_free(p);
    return st ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct rad_err err = { 0 };
    struct rad_lab *lab;
    const char *arch, *quant;
    int bad = 0;

    if (argc < 2)
        return 2;
    if (rad_lab_open(NULL, &lab, &err)) {
        fprintf(stderr, "lab-probe: %s\n", err.text);
        return 3;
    }
    for (int i = 0; !strcmp(argv[1], "pairs") && i < rad_lab_pair_count(lab); i++) {
        rad_lab_pair_at(lab, i, &arch, &quant);
        printf("%s %s\n", arch, *quant ? quant : "-");
    }
    for (int i = 2; i < argc; i++) {
        int st = one(lab, argv[1], argv[i]);
        bad = st > bad ? st : bad;
    }
    rad_lab_free(lab);
    return bad;
}
