/* SPDX-License-Identifier: Apache-2.0 */
/* Owns finding and reading the data files: blocks first, then circuits, then
 * maps, so that each finds what it names. */
#include "config.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "lab/lab.h"

#include "banned.h"

enum { MAX_FILE = 1 << 20, MAX_FILES = 4096 };

struct name {
    char *path;                      /* in the arena */
    const char *stem;
};

static int by_stem(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->stem, ((const struct name *)b)->stem);
}

/* Names of a folder's *.json files that no folder before it had. */
static rad_status list(struct rad_lab *lab, const char *home, size_t home_len, const char *kind,
                       struct name *out, int *n, struct rad_err *err)
{
    char *dir = radi_arena_printf(&lab->arena, "%.*s/%s", (int)home_len, home, kind);
    DIR *d;
    struct dirent *e;
    rad_status st = RAD_OK;

    if (!dir)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    d = opendir(dir);
    if (!d)
        return errno == ENOENT || errno == ENOTDIR ? RAD_OK : rad_fail_errno(err, "'%s'", dir);
    while (!st && (e = readdir(d))) {
        size_t len = strlen(e->d_name);
        bool known = false;
        if (len < 6 || strcmp(e->d_name + len - 5, ".json") || *e->d_name == '.')
            continue;
        for (int i = 0; i < *n; i++)
            known = known || (strlen(out[i].stem) == len - 5 &&
                              !strncmp(out[i].stem, e->d_name, len - 5));
        if (known)
            continue;
        if (*n == MAX_FILES) {
            st = rad_fail(err, RAD_E_FORMAT, "'%s': more than %d files", dir, MAX_FILES);
            break;
        }
        out[*n].path = radi_arena_printf(&lab->arena, "%s/%s", dir, e->d_name);
        out[*n].stem = radi_arena_strndup(&lab->arena, e->d_name, len - 5);
        if (!out[*n].path || !out[*n].stem)
            st = rad_fail(err, RAD_E_NOMEM, "out of memory");
        ++*n;
    }
    closedir(d);
    return st;
}

static rad_status doc_of(struct rad_lab *lab, const char *path, const char *stem, const char *text,
                         size_t n, struct lab_doc **out, struct rad_err *err)
{
    struct lab_doc *d = radi_arena_alloc(&lab->arena, sizeof(*d));

    if (!d)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    rad_status st = radi_json_parse(text, n, MAX_FILE, RADI_JSON_COMMENTS, &d->json, err);
    if (st)
        return rad_fail_in(err, st, "'%s'", path);
    d->path = path;
    d->name = stem;
    *out = d;
    return RAD_OK;
}

/* Documents of one kind in the order they are parsed. */
struct queue {
    struct lab_doc *first, **tail;
};

/* Fragments of maps are kept apart: all are known before the first map. */
static void queue_add(struct rad_lab *lab, struct queue *q, struct lab_doc *d)
{
    if (cJSON_IsTrue(radi_json_get(d->json, "fragment"))) {
        d->next = lab->fragments;
        lab->fragments = d;
        return;
    }
    *q->tail = d;
    q->tail = &d->next;
}

typedef rad_status parse_fn(struct rad_lab *, struct lab_doc *, struct rad_err *);

/* The lab owns every document from here, whatever becomes of it. */
static rad_status queue_parse(struct rad_lab *lab, struct queue *q, rad_status st,
                              parse_fn *parse, struct rad_err *err)
{
    while (q->first) {
        struct lab_doc *d = q->first;
        q->first = d->next;
        d->next = lab->docs;
        lab->docs = d;
        if (!st)
            st = parse(lab, d, err);
    }
    return st;
}

/* All files of one kind, in the order of their names. */
static rad_status read_kind(struct rad_lab *lab, const char *home, const char *kind,
                            parse_fn *parse, struct rad_err *err)
{
    struct name *f = radi_calloc(MAX_FILES, sizeof(*f));
    struct queue q = { NULL, &q.first };
    rad_status st = f ? RAD_OK : rad_fail(err, RAD_E_NOMEM, "out of memory");
    int n = 0;

    for (const char *h = home; !st && *h;) {
        size_t len = strcspn(h, ":");
        if (len)
            st = list(lab, h, len, kind, f, &n, err);
        h += len + (h[len] == ':');
    }
    if (!st && n)
        qsort(f, (size_t)n, sizeof(*f), by_stem);
    for (int i = 0; !st && i < n; i++) {
        struct lab_doc *d = NULL;
        char *text = NULL;
        size_t len;
        st = radi_read_text(f[i].path, MAX_FILE, &text, &len, err);
        if (!st)
            st = doc_of(lab, f[i].path, f[i].stem, text, len, &d, err);
        radi_free(text);
        if (!st)
            queue_add(lab, &q, d);
    }
    radi_free(f);
    return queue_parse(lab, &q, st, parse, err);
}

/* ---- what is claimed */
static int by_pair(const void *a, const void *b)
{
    const struct lab_pair *x = a, *y = b;
    int r = strcmp(x->arch, y->arch);
    return r ? r : strcmp(x->quant, y->quant);
}

static rad_status pairs(struct rad_lab *lab, struct rad_err *err)
{
    size_t n = 0;
    int k = 0;

    for (const struct lab_cmap *m = lab->maps; m; m = m->next)
        n += (size_t)m->n_match * (size_t)m->n_quants;
    lab->pair = radi_arena_array(&lab->arena, n + 1, sizeof(*lab->pair));
    if (!lab->pair)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    for (const struct lab_cmap *m = lab->maps; m; m = m->next)
        for (int a = 0; a < m->n_match; a++) {
            char *arch = radi_arena_strndup(&lab->arena, m->match[a], strlen(m->match[a]));
            if (!arch)
                return rad_fail(err, RAD_E_NOMEM, "out of memory");
            if (!m->gguf) {
                char *to = arch;
                for (const char *s = m->match[a]; *s; s++)
                    if (*s != '_')
                        *to++ = *s;
                *to = 0;
            }
            for (int q = 0; q < m->n_quants; q++)
                lab->pair[k++] = (struct lab_pair){ arch, m->quant[q] };
        }
    if (k)
        qsort(lab->pair, (size_t)k, sizeof(*lab->pair), by_pair);
    for (int i = 0; i < k; i++)
        if (!i || by_pair(&lab->pair[i], &lab->pair[lab->n_pairs - 1]))
            lab->pair[lab->n_pairs++] = lab->pair[i];
    return RAD_OK;
}

static rad_status begin(struct rad_lab **out, struct rad_err *err)
{
    *out = radi_calloc(1, sizeof(**out));
    if (!*out)
        return rad_fail(err, RAD_E_NOMEM, "out of memory");
    radi_arena_init(&(*out)->arena, 256u << 20);
    return RAD_OK;
}

static rad_status finish(struct rad_lab *lab, rad_status st, struct rad_lab **out,
                         struct rad_err *err)
{
    *out = NULL;
    if (!st)
        st = pairs(lab, err);
    if (st)
        rad_lab_free(lab);
    else
        *out = lab;
    return st;
}

static const struct {
    const char *folder;
    parse_fn *parse;
} kind[] = { { "blocks", lab_block_parse }, { "circuits", lab_circuit_parse },
             { "maps", lab_map_parse } };

rad_status rad_lab_open(const char *home, struct rad_lab **out, struct rad_err *err)
{
    struct rad_lab *lab;
    rad_status st = begin(&lab, err);

    *out = NULL;
    RAD_TRY(st);
    if (!home)
        home = getenv("RADIANCE_HOME");
    if (!home || !*home)
        home = RAD_PKGDATADIR;
    for (size_t i = 0; !st && i < RADI_COUNT(kind); i++)
        st = read_kind(lab, home, kind[i].folder, kind[i].parse, err);
    return finish(lab, st, out, err);
}

rad_status lab_open_texts(const struct lab_text *t, int n, struct rad_lab **out,
                          struct rad_err *err)
{
    struct rad_lab *lab;
    rad_status st = begin(&lab, err);

    *out = NULL;
    RAD_TRY(st);
    for (size_t k = 0; k < RADI_COUNT(kind); k++) {
        struct queue q = { NULL, &q.first };
        for (int i = 0; !st && i < n; i++) {
            struct lab_doc *d = NULL;
            if (strcmp(t[i].folder, kind[k].folder))
                continue;
            st = doc_of(lab, t[i].name, t[i].name, t[i].text, t[i].n, &d, err);
            if (!st)
                queue_add(lab, &q, d);
        }
        st = queue_parse(lab, &q, st, kind[k].parse, err);
    }
    return finish(lab, st, out, err);
}

void rad_lab_free(struct rad_lab *lab)
{
    if (!lab)
        return;
    for (struct lab_doc *d = lab->docs; d; d = d->next)
        radi_json_free(d->json);
    for (struct lab_doc *d = lab->fragments; d; d = d->next)
        radi_json_free(d->json);
    radi_arena_release(&lab->arena);
    radi_free(lab);
}

int rad_lab_pair_count(const struct rad_lab *lab)
{
    return lab->n_pairs;
}

void rad_lab_pair_at(const struct rad_lab *lab, int i, const char **arch, const char **quant)
{
    *arch = lab->pair[i].arch;
    *quant = lab->pair[i].quant;
}
