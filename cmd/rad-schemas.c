/* SPDX-License-Identifier: Apache-2.0 */
/* rad-schemas: the op vocabulary of kernel plugins, and where two disagree.
 * Each file is loaded on its own: librad would refuse the second of two that
 * disagree, and here the disagreement is the answer. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rad/plan.h>

#include "cmd.h"
#include "json.h"

static const struct cmd_opt opt[] = {
    { 'l', "list", NULL, "list the ops of several files too, not only where they differ" },
    CMD_JSON,
    CMD_COMMON,
    { 0 },
};

static const struct cmd cmd = {
    .name = "rad-schemas",
    .about = "print or compare the op schemas of kernel plugins",
    .usage = "[-lqv] [--json] PLUGIN...",
    .opt = opt,
};

struct lib {
    struct rad_plugins *set;
    struct rad_plugin_desc desc;
};

static const char *kind_of(int kind)
{
    static const char *const names[] = { "?", "int", "str", "range", "real" };
    return names[kind >= RAD_PK_INT && kind <= RAD_PK_REAL ? kind : 0];
}
static const char *need_of(int need)
{
    return need == RAD_PARAM_REQUIRED ? "required" : need == RAD_PARAM_DERIVED ? "derived"
        : "optional";
}
static const char *role_of(int role)
{
    static const char *const names[] = { "in", "out", "inout", "weight", "table" };
    return role >= RAD_OPD_IN && role <= RAD_OPD_TABLE ? names[role] : "?";
}

static void load(const char *path, struct lib *l)
{
    struct rad_err err = { 0 };
    char *own = NULL;
    if (!strchr(path, '/')) {                  /* a file here, not one of the system's */
        own = malloc(strlen(path) + 3);
        if (!own)
            cmd_die("out of memory");
        memcpy(own, "./", 2);
        memcpy(own + 2, path, strlen(path) + 1);
    }
    /* a search path of nothing: only the file that is named */
    if (rad_plugins_open(":", "", &l->set, &err)
        || rad_plugins_add_file(l->set, own ? own : path, &err))
        cmd_die_err(&err);
    free(own);
    if (rad_plugins_count(l->set) != 1)
        cmd_die("'%s': the plugin declines this machine", path);
    rad_plugins_at(l->set, 0, &l->desc);
}

static const RadOpSchema *schema(const struct lib *l, int i)
{
    return rad_plugins_schema(l->set, 0, i);
}
static const RadOpSchema *find(const struct lib *l, const char *op)
{
    for (int i = 0; i < l->desc.n_schemas; i++)
        if (!strcmp(schema(l, i)->op, op))
            return schema(l, i);
    return NULL;
}

/* ---- printing one */

static void print_row(const RadKernelRow *r)
{
    printf("  row %s %s rank %d", r->name, r->domain == RAD_DOMAIN_HOST ? "host" : "device",
           r->rank);
    for (int i = 0; i < r->n_constraints; i++) {
        static const char *const ops[] = { "=", "<=", ">=", "%", " in " };
        const RadConstraint *c = &r->constraints[i];
        if (c->sval)
            printf(", %s%s'%s'", c->key, ops[c->op], c->sval);
        else
            printf(", %s%s%lld", c->key, ops[c->op], (long long)c->ival);
    }
    for (int i = 0; i < r->n_derived; i++)
        printf(", gives %s=%lld", r->derived[i].key, (long long)r->derived[i].value);
    for (int i = 0; i < r->n_axes; i++)
        printf(", tunes %s", r->axes[i].key);
    putchar('\n');
}

static void print_lib(const struct lib *l)
{
    printf("%s %s, %d ops, %d rows%s\n", l->desc.info->name, l->desc.info->version,
           l->desc.n_schemas, l->desc.n_rows, l->desc.is_reference ? ", reference" : "");
    for (int i = 0; i < l->desc.n_schemas; i++) {
        const RadOpSchema *s = schema(l, i);
        printf("\n%s\n  %s\n  params  ", s->op, s->doc ? s->doc : "");
        for (int k = 0; k < s->n_params; k++) {
            const RadParamSpec *p = &s->params[k];
            printf(" %s:%s%s", p->key, kind_of(p->kind), p->need == RAD_PARAM_OPTIONAL ? "?"
                   : p->need == RAD_PARAM_DERIVED ? "(derived)" : "");
        }
        printf("\n  operands");
        for (int k = 0; k < s->n_operands; k++)
            printf(" %s:%s%s", s->operands[k].name, role_of(s->operands[k].role),
                   s->operands[k].optional ? "?" : "");
        putchar('\n');
        for (int k = 0; cmd_verbosity() > 0 && k < l->desc.n_rows; k++)
            if (!strcmp(rad_plugins_row(l->set, 0, k)->op, s->op))
                print_row(rad_plugins_row(l->set, 0, k));
    }
}

static void json_lib(struct cmd_json *j, const struct lib *l)
{
    cmd_json_object(j, NULL);
    cmd_json_str(j, "name", l->desc.info->name);
    cmd_json_str(j, "version", l->desc.info->version);
    cmd_json_str(j, "path", l->desc.path);
    cmd_json_bool(j, "reference", l->desc.is_reference);
    cmd_json_array(j, "ops");
    for (int i = 0; i < l->desc.n_schemas; i++) {
        const RadOpSchema *s = schema(l, i);
        cmd_json_object(j, NULL);
        cmd_json_str(j, "op", s->op);
        cmd_json_str(j, "doc", s->doc);
        cmd_json_f64(j, "tolerance", s->tolerance);
        cmd_json_array(j, "params");
        for (int k = 0; k < s->n_params; k++) {
            cmd_json_object(j, NULL);
            cmd_json_str(j, "name", s->params[k].key);
            cmd_json_str(j, "type", kind_of(s->params[k].kind));
            cmd_json_str(j, "need", need_of(s->params[k].need));
            cmd_json_end_object(j);
        }
        cmd_json_end_array(j);
        cmd_json_array(j, "operands");
        for (int k = 0; k < s->n_operands; k++) {
            cmd_json_object(j, NULL);
            cmd_json_str(j, "name", s->operands[k].name);
            cmd_json_str(j, "role", role_of(s->operands[k].role));
            cmd_json_bool(j, "optional", s->operands[k].optional != 0);
            cmd_json_end_object(j);
        }
        cmd_json_end_array(j);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
    cmd_json_array(j, "rows");
    for (int i = 0; i < l->desc.n_rows; i++) {
        const RadKernelRow *r = rad_plugins_row(l->set, 0, i);
        cmd_json_object(j, NULL);
        cmd_json_str(j, "name", r->name);
        cmd_json_str(j, "op", r->op);
        cmd_json_str(j, "domain", r->domain == RAD_DOMAIN_HOST ? "host" : "device");
        cmd_json_int(j, "rank", r->rank);
        cmd_json_end_object(j);
    }
    cmd_json_end_array(j);
    cmd_json_end_object(j);
}

/* ---- comparing two */

struct report {
    struct cmd_json *json;           /* NULL: text */
    const struct lib *a, *b;
    const char *op;
    int n;                           /* differences of this pair of schemas */
};

static void differ(struct report *r, const char *what, const char *name, const char *a,
                   const char *b)
{
    r->n++;
    if (!r->json) {
        printf("%s: %s '%s': %s has %s, %s has %s\n", r->op, what, name, r->a->desc.info->name, a,
               r->b->desc.info->name, b);
        return;
    }
    cmd_json_object(r->json, NULL);
    cmd_json_str(r->json, "op", r->op);
    cmd_json_str(r->json, "what", what);
    cmd_json_str(r->json, "name", name);
    cmd_json_str(r->json, r->a->desc.info->name, a);
    cmd_json_str(r->json, r->b->desc.info->name, b);
    cmd_json_end_object(r->json);
}

static const RadParamSpec *param(const RadOpSchema *s, const char *key)
{
    for (int i = 0; i < s->n_params; i++)
        if (!strcmp(s->params[i].key, key))
            return &s->params[i];
    return NULL;
}

static void param_text(const RadParamSpec *p, char *buf, size_t n)
{
    snprintf(buf, n, p ? "%s %s%s" : "none", p ? need_of(p->need) : "", p ? kind_of(p->kind) : "",
             !p ? "" : p->role == RAD_PROLE_SEQ_CHUNK ? ", chunk"
             : p->role == RAD_PROLE_CAPACITY ? ", capacity" : "");
}
static void operand_text(const RadOpSchema *s, int i, char *buf, size_t n)
{
    const RadOperandSpec *o = i < s->n_operands ? &s->operands[i] : NULL;
    snprintf(buf, n, o ? "'%s' %s%s" : "none", o ? o->name : "", o ? role_of(o->role) : "",
             o && o->optional ? ", optional" : "");
}

/* Parameters by name, operands by place. */
static int compare(struct report *r, const RadOpSchema *a, const RadOpSchema *b)
{
    char x[128], y[128];
    r->n = 0;
    for (int i = 0; i < a->n_params + b->n_params; i++) {
        const char *key = i < a->n_params ? a->params[i].key : b->params[i - a->n_params].key;
        if (i >= a->n_params && param(a, key))
            continue;
        param_text(param(a, key), x, sizeof x);
        param_text(param(b, key), y, sizeof y);
        if (strcmp(x, y))
            differ(r, "parameter", key, x, y);
    }
    for (int i = 0; i < a->n_operands || i < b->n_operands; i++) {
        char place[16];
        snprintf(place, sizeof place, "%d", i);
        operand_text(a, i, x, sizeof x);
        operand_text(b, i, y, sizeof y);
        if (strcmp(x, y))
            differ(r, "operand", place, x, y);
    }
    return r->n != 0;
}

/* Every op against the first file that declares it, as a load would. */
static void compare_all(struct cmd_json *j, const struct lib *l, int n, int *shared,
                        int *conflicts)
{
    *shared = *conflicts = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < l[k].desc.n_schemas; i++) {
            const RadOpSchema *s = schema(&l[k], i);
            int first = 0, counted = 0, bad = 0;
            while (first < k && !find(&l[first], s->op))
                first++;
            if (first < k)
                continue;                       /* dealt with at its first file */
            for (int m = k + 1; m < n; m++) {
                const RadOpSchema *t = find(&l[m], s->op);
                if (!t)
                    continue;
                counted = 1;
                struct report r = { .json = j, .a = &l[k], .b = &l[m], .op = s->op };
                bad |= compare(&r, s, t);
            }
            *shared += counted;
            *conflicts += bad;
        }
}

int main(int argc, char **argv)
{
    int c, list = 0, json = 0, n = 0, shared = 0, conflicts = 0;
    cmd_begin(&cmd, argc, argv);
    while ((c = cmd_getopt()) != -1) {
        list |= c == 'l';
        json |= c == CMD_LETTER_JSON;
    }
    char **file = cmd_args(1, -1);
    while (file[n])
        n++;
    struct lib *l = calloc((size_t)n, sizeof *l);
    if (!l)
        cmd_die("out of memory");
    for (int i = 0; i < n; i++)
        load(file[i], &l[i]);

    if (json) {
        struct cmd_json j = { 0 };
        cmd_json_object(&j, NULL);
        cmd_json_array(&j, "plugins");
        for (int i = 0; i < n; i++)
            json_lib(&j, &l[i]);
        cmd_json_end_array(&j);
        cmd_json_array(&j, "differences");
        compare_all(&j, l, n, &shared, &conflicts);
        cmd_json_end_array(&j);
        cmd_json_int(&j, "shared_ops", shared);
        cmd_json_int(&j, "conflicts", conflicts);
        cmd_json_end_object(&j);
    } else {
        for (int i = 0; i < n && (n == 1 || list); i++) {
            if (i)
                putchar('\n');
            print_lib(&l[i]);
        }
        if (n > 1) {
            if (list)
                putchar('\n');
            compare_all(NULL, l, n, &shared, &conflicts);
            printf("%d ops in more than one plugin, %d disagree\n", shared, conflicts);
        }
    }
    for (int i = 0; i < n; i++)
        rad_plugins_close(l[i].set);
    free(l);
    return cmd_finish(conflicts ? CMD_NO : CMD_OK);
}
