/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe language: text to an ordered list of rules. What a quantiser makes
 * of its options is the quantiser's; here they are strings.
 *
 * The stored text must read back as the same rules, so a value may hold
 * neither white space nor '#', wherever it came from. */
#include <stdio.h>
#include <stdlib.h>

#include <rad/recipe.h>

#include "base/base.h"
#include "banned.h"

enum { RECIPE_MAX_BYTES = 4 << 20 };

struct rules {
    struct rad_recipe_rule *rule;
    size_t n, cap;
};
struct rad_recipe {
    struct radi_arena arena;             /* every string and option */
    struct rules inl, file;
    struct radi_str text;
    rad_recipe_env_fn *env;
    void *env_user;
};

static const char *process_env(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

rad_status rad_recipe_new(struct rad_recipe **out, struct rad_err *err)
{
    struct rad_recipe *r = radi_calloc(1, sizeof *r);

    *out = NULL;
    if (!r)
        return rad_fail(err, RAD_E_NOMEM, "recipe");
    radi_arena_init(&r->arena, 0);
    r->env = process_env;
    *out = r;
    return RAD_OK;
}

void rad_recipe_free(struct rad_recipe *r)
{
    if (!r)
        return;
    radi_free(r->inl.rule);
    radi_free(r->file.rule);
    radi_str_release(&r->text);
    radi_arena_release(&r->arena);
    radi_free(r);
}

void rad_recipe_set_env(struct rad_recipe *r, rad_recipe_env_fn *fn, void *user)
{
    r->env = fn ? fn : process_env;
    r->env_user = user;
}

/* ---- matching */

/* Bytes of one character; a broken sequence counts by the byte. */
static size_t char_len(const char *s)
{
    uint32_t cp;
    size_t n = radi_utf8_next(s, strnlen(s, 4), &cp);

    return n ? n : 1;
}

bool rad_glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern == '?') {
            pattern++;
            text += char_len(text);
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {               /* the star takes one byte more */
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* ---- reading */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\n';
}

static bool is_name(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'
        || (!first && c >= '0' && c <= '9');
}

static rad_status no_memory(struct rad_err *err)
{
    return rad_fail(err, RAD_E_NOMEM, "recipe: out of memory");
}

/* One variable at s[*i], which is '$'; *i moves behind it. */
static rad_status expand_one(struct rad_recipe *r, const char *s, size_t n, size_t *i,
                             struct radi_str *out, struct rad_err *err)
{
    bool braces = *i + 1 < n && s[*i + 1] == '{';
    size_t at = *i + (braces ? 2 : 1), len = 0;
    char name[128];

    while (at + len < n && is_name(s[at + len], !len))
        len++;
    if (braces && !memchr(s + at, '}', n - at))
        return rad_fail(err, RAD_E_FORMAT, "'%.*s': '${' without '}'", (int)n, s);
    if (!len || (braces && s[at + len] != '}'))
        return rad_fail(err, RAD_E_FORMAT, "'%.*s': '$' without a variable's name", (int)n, s);
    if (len >= sizeof name)
        return rad_fail(err, RAD_E_FORMAT, "variable's name has %zu bytes, want at most %zu",
                        len, sizeof name - 1);
    memcpy(name, s + at, len);
    name[len] = 0;

    const char *v = r->env(r->env_user, name);
    if (!v)
        return rad_fail(err, RAD_E_FORMAT, "variable '%s' is not set", name);
    for (const char *c = v; *c; c++)
        if (is_space(*c) || *c == '#')
            return rad_fail(err, RAD_E_FORMAT, "variable '%s' holds white space or '#'", name);
    radi_str_adds(out, v);
    *i = at + len + braces;
    return RAD_OK;
}

static rad_status expand(struct rad_recipe *r, const char *s, size_t n, const char **out,
                         struct rad_err *err)
{
    struct radi_str b = { 0 };
    rad_status st = RAD_OK;

    for (size_t i = 0; i < n && !st;) {
        if (s[i] == '$')
            st = expand_one(r, s, n, &i, &b, err);
        else
            radi_str_addc(&b, s[i++]);
    }
    if (!st && b.failed)
        st = no_memory(err);
    if (!st) {
        *out = radi_arena_strndup(&r->arena, b.s ? b.s : "", b.len);
        st = *out ? RAD_OK : no_memory(err);
    }
    radi_str_release(&b);
    return st;
}

struct word {
    const char *s;
    size_t n;
};

/* One option word into o[*n]. */
static rad_status add_option(struct rad_recipe *r, struct word w, struct rad_recipe_option *o,
                             size_t *n, struct rad_err *err)
{
    const char *eq = memchr(w.s, '=', w.n);

    if (!eq || eq == w.s)
        return rad_fail(err, RAD_E_FORMAT, "'%.*s', want KEY=VALUE", (int)RADI_MIN(w.n, 200u),
                        w.s);
    o[*n].key = radi_arena_strndup(&r->arena, w.s, (size_t)(eq - w.s));
    if (!o[*n].key)
        return no_memory(err);
    for (size_t i = 0; i < *n; i++)
        if (strcmp(o[i].key, o[*n].key) == 0)
            return rad_fail(err, RAD_E_FORMAT, "option '%s' is there twice", o[i].key);
    RAD_TRY(expand(r, eq + 1, w.n - (size_t)(eq + 1 - w.s), &o[*n].value, err));
    ++*n;
    return RAD_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct rad_recipe_option *)a)->key,
                  ((const struct rad_recipe_option *)b)->key);
}

static rad_status sorted_options(struct rad_recipe *r, struct rad_recipe_rule *rule,
                                 struct rad_err *err)
{
    struct rad_recipe_option *o = radi_calloc(rule->n_options + 1, sizeof *o);
    struct radi_str b = { 0 };

    if (!o)
        return no_memory(err);
    if (rule->n_options)
        memcpy(o, rule->option, rule->n_options * sizeof *o);
    qsort(o, rule->n_options, sizeof *o, by_key);
    for (size_t i = 0; i < rule->n_options; i++)
        radi_str_addf(&b, "%s%s=%s", i ? "," : "", o[i].key, o[i].value);
    radi_free(o);
    rule->options = b.failed ? NULL : radi_arena_strndup(&r->arena, b.s ? b.s : "", b.len);
    radi_str_release(&b);
    return rule->options ? RAD_OK : no_memory(err);
}

/* word[0] pattern, word[1] quantiser, the rest options. */
static rad_status add_rule(struct rad_recipe *r, struct rules *list, const struct word *word,
                           size_t n_words, const char *where, struct rad_err *err)
{
    struct rad_recipe_option *o = radi_arena_array(&r->arena, n_words, sizeof *o);
    struct rad_recipe_rule rule = { .size = sizeof rule };

    if (!o)
        return no_memory(err);
    rule.pattern = radi_arena_strndup(&r->arena, word[0].s, word[0].n);
    rule.quantizer = radi_arena_strndup(&r->arena, word[1].s, word[1].n);
    rule.where = radi_arena_strndup(&r->arena, where, strlen(where));
    if (!rule.pattern || !rule.quantizer || !rule.where)
        return no_memory(err);
    for (size_t i = 2; i < n_words; i++)
        RAD_TRY(add_option(r, word[i], o, &rule.n_options, err));
    rule.option = o;
    RAD_TRY(sorted_options(r, &rule, err));
    RAD_TRY(radi_grow((void **)&list->rule, &list->cap, list->n + 1, sizeof rule, err));
    list->rule[list->n++] = rule;
    return RAD_OK;
}

/* Words of one line without its comment; grows *word. */
static rad_status split_line(const char *s, size_t n, struct word **word, size_t *cap,
                             size_t *count, struct rad_err *err)
{
    const char *hash = memchr(s, '#', n);

    if (hash)
        n = (size_t)(hash - s);
    *count = 0;
    for (size_t i = 0; i < n;) {
        size_t from;

        while (i < n && is_space(s[i]))
            i++;
        from = i;
        while (i < n && !is_space(s[i]))
            i++;
        if (i == from)
            break;
        RAD_TRY(radi_grow((void **)word, cap, *count + 1, sizeof **word, err));
        (*word)[(*count)++] = (struct word){ s + from, i - from };
    }
    return RAD_OK;
}

rad_status rad_recipe_add_text(struct rad_recipe *r, const char *name, const char *text,
                               struct rad_err *err)
{
    struct word *word = NULL;
    size_t cap = 0, count = 0, line = 0, before = r->file.n;
    rad_status st = RAD_OK;

    for (const char *s = text; *s && !st; ) {
        size_t n = strcspn(s, "\n");
        char *where = radi_arena_printf(&r->arena, "%s:%zu", name, ++line);

        st = where ? split_line(s, n, &word, &cap, &count, err) : no_memory(err);
        if (!st && count == 1)
            st = rad_fail(err, RAD_E_FORMAT, "'%.*s' alone, want PATTERN QUANTISER"
                          " [KEY=VALUE ...]", (int)RADI_MIN(word[0].n, 200u), word[0].s);
        if (!st && count)
            st = add_rule(r, &r->file, word, count, where, err);
        if (st && where)
            st = rad_fail_in(err, st, "%s", where);
        s += n + (s[n] == '\n');
    }
    radi_free(word);
    if (st)
        r->file.n = before;              /* all of a text or nothing */
    return st;
}

rad_status rad_recipe_add_file(struct rad_recipe *r, const char *path, struct rad_err *err)
{
    char *text;
    size_t len;
    rad_status st;

    RAD_TRY(radi_read_text(path, RECIPE_MAX_BYTES, &text, &len, err));
    if (strlen(text) != len)
        st = rad_fail(err, RAD_E_FORMAT, "'%s': byte %zu is zero, want text", path,
                      strlen(text));
    else
        st = rad_recipe_add_text(r, path, text, err);
    radi_free(text);
    return st;
}

static rad_status add_inline(struct rad_recipe *r, const char *text, struct rad_err *err)
{
    const char *eq = strchr(text, '='), *colon, *s;
    struct word *word = NULL;
    size_t cap = 0, n = 2;
    rad_status st;
    char *where = radi_arena_printf(&r->arena, "--quant '%s'", text);

    if (!where)
        return no_memory(err);
    for (s = text; *s; s++)
        if (is_space(*s) || *s == '#')
            return rad_fail(err, RAD_E_FORMAT, "holds white space or '#'");
    if (!eq)
        return rad_fail(err, RAD_E_FORMAT, "no '=', want PATTERN=QUANTISER[:k=v,k=v]");
    colon = strchr(eq, ':');
    if (eq == text || !eq[1] || colon == eq + 1)
        return rad_fail(err, RAD_E_FORMAT, "no %s, want PATTERN=QUANTISER[:k=v,k=v]",
                        eq == text ? "pattern" : "quantiser");
    st = radi_grow((void **)&word, &cap, 2, sizeof *word, err);
    if (st)
        return st;
    word[0] = (struct word){ text, (size_t)(eq - text) };
    word[1] = (struct word){ eq + 1, colon ? (size_t)(colon - eq - 1) : strlen(eq + 1) };
    for (s = colon; s && !st;) {         /* s stands on ':' or ',' */
        size_t len = strcspn(s + 1, ",");

        st = radi_grow((void **)&word, &cap, n + 1, sizeof *word, err);
        if (!st)
            word[n++] = (struct word){ s + 1, len };
        s = s[1 + len] ? s + 1 + len : NULL;
    }
    if (!st)
        st = add_rule(r, &r->inl, word, n, where, err);
    radi_free(word);
    return st;
}

rad_status rad_recipe_add_inline(struct rad_recipe *r, const char *text, struct rad_err *err)
{
    rad_status st = add_inline(r, text, err);

    return st ? rad_fail_in(err, st, "--quant '%.200s'", text) : RAD_OK;
}

/* ---- reading out */

size_t rad_recipe_count(const struct rad_recipe *r)
{
    return r->inl.n + r->file.n;
}

const struct rad_recipe_rule *rad_recipe_at(const struct rad_recipe *r, size_t i)
{
    if (i < r->inl.n)
        return &r->inl.rule[i];
    i -= r->inl.n;
    return i < r->file.n ? &r->file.rule[i] : NULL;
}

long rad_recipe_match(const struct rad_recipe *r, const char *weight_name)
{
    size_t n = rad_recipe_count(r);

    for (size_t i = 0; i < n; i++)
        if (rad_glob_match(rad_recipe_at(r, i)->pattern, weight_name))
            return (long)i;
    return -1;
}

const char *rad_recipe_option(const struct rad_recipe_rule *rule, const char *key)
{
    for (size_t i = 0; i < rule->n_options; i++)
        if (strcmp(rule->option[i].key, key) == 0)
            return rule->option[i].value;
    return NULL;
}

rad_status rad_recipe_text(struct rad_recipe *r, const char **out, struct rad_err *err)
{
    size_t n = rad_recipe_count(r);

    *out = "";
    radi_str_release(&r->text);
    for (size_t i = 0; i < n; i++) {
        const struct rad_recipe_rule *rule = rad_recipe_at(r, i);

        radi_str_addf(&r->text, "%s %s", rule->pattern, rule->quantizer);
        for (size_t k = 0; k < rule->n_options; k++)
            radi_str_addf(&r->text, " %s=%s", rule->option[k].key, rule->option[k].value);
        radi_str_addc(&r->text, '\n');
    }
    if (r->text.failed)
        return no_memory(err);
    if (r->text.s)
        *out = r->text.s;
    return RAD_OK;
}
