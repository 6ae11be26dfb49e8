/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes: which quantiser writes which weight (language: rad-recipe(5)).
 * Text files and inline rules become one ordered list; the first rule whose
 * pattern matches decides. */
#ifndef RAD_RECIPE_H
#define RAD_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <rad/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_recipe;

struct rad_recipe_option {
    const char *key, *value;     /* value with variables expanded */
};
struct rad_recipe_rule {
    uint32_t size;
    const char *pattern;         /* glob over the whole name: * and ? */
    const char *quantizer;
    const struct rad_recipe_option *option;   /* in the order written */
    size_t n_options;
    const char *options;         /* "k=v,k=v" sorted by key, as the directory stores it */
    const char *where;           /* "file:line" or "--quant 'text'", for messages */
};

rad_status rad_recipe_new(struct rad_recipe **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_recipe_free(struct rad_recipe *r);

/* `name` stands in messages ("name:line: ..."). Environment variables are
 * looked up with `getenv_fn`; NULL: the process's environment. */
typedef const char *rad_recipe_env_fn(void *user, const char *name);
void rad_recipe_set_env(struct rad_recipe *r, rad_recipe_env_fn *fn, void *user);
rad_status rad_recipe_add_text(struct rad_recipe *r, const char *name, const char *text,
                               struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_recipe_add_file(struct rad_recipe *r, const char *path,
                               struct rad_err *err) RAD_MUSTCHECK;
/* PATTERN=QUANTISER[:k=v,k=v]. Inline rules stand before every file's, in the
 * order of these calls, whenever they are added. */
rad_status rad_recipe_add_inline(struct rad_recipe *r, const char *text,
                                 struct rad_err *err) RAD_MUSTCHECK;

size_t rad_recipe_count(const struct rad_recipe *r);
const struct rad_recipe_rule *rad_recipe_at(const struct rad_recipe *r, size_t i);
/* Index of the first rule that matches, or -1. */
long rad_recipe_match(const struct rad_recipe *r, const char *weight_name);
const char *rad_recipe_option(const struct rad_recipe_rule *rule, const char *key);

/* The text that the container stores: one rule a line, variables expanded.
 * "" for an empty recipe. Lives until the next call that adds, or the free. */
rad_status rad_recipe_text(struct rad_recipe *r, const char **out, struct rad_err *err)
    RAD_MUSTCHECK;

bool rad_glob_match(const char *pattern, const char *text);

#ifdef __cplusplus
}
#endif
#endif
