/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the tokenizer.json importer. */
#ifndef RADI_TOK_JSON_H
#define RADI_TOK_JSON_H

#include "text/tok.h"

struct cJSON;
/* Reads normalizer, pre_tokenizer, decoder and post_processor of the root; the
 * model must have been read. */
rad_status radi_tok_json_pipeline(struct radi_tok_spec *s, const struct cJSON *root,
                                  struct rad_err *err) RAD_MUSTCHECK;
/* The end-of-turn token by its usual names, or -1. */
int32_t radi_tok_guess_eot(const struct radi_tok_spec *s, const struct radi_vmap *m);

#endif
