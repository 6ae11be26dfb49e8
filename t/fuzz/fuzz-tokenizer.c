/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's tokenizer.json: loads or is refused with a reason. One that loads
 * must encode any text, decode what it made, and stream the same text. The text
 * to encode is the end of the input. */
#include <stdlib.h>

#include "text/tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What encoding may say no to: an unknown character, a match limit. */
static void encode(const struct rad_tokenizer *t, const char *s, size_t n, unsigned flags)
{
    struct rad_err err = { 0 };
    struct rad_ids a = { 0 }, b = { 0 };
    struct rad_tok_text whole = { 0 }, parts = { 0 };
    struct rad_detok *d = NULL;
    rad_status st = rad_tokenizer_encode(t, s, n, flags, &a, &err);

    if (st != RAD_OK && st != RAD_E_UNSUPPORTED)
        abort();
    if (st != RAD_OK && !err.text[0])
        abort();
    if (!st && !rad_tokenizer_encode(t, s, n, flags, &b, &err) &&
        (a.n != b.n || (a.n && memcmp(a.id, b.id, a.n * sizeof *a.id))))
        abort();
    if (rad_tokenizer_decode(t, a.id, a.n, 0, &whole, &err) || rad_detok_new(t, 0, &d, &err))
        abort();
    for (size_t i = 0; i < a.n; i++) {
        size_t had = parts.len;
        if (rad_detok_push(d, a.id[i], &parts, &err) ||
            !radi_utf8_valid(parts.s ? parts.s + had : "", parts.len - had))
            abort();
    }
    if (rad_detok_finish(d, &parts, &err) || whole.len != parts.len ||
        (whole.len && memcmp(whole.s, parts.s, whole.len)))
        abort();
    rad_detok_free(d);
    rad_tok_text_release(&whole);
    rad_tok_text_release(&parts);
    rad_ids_release(&a);
    rad_ids_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct rad_tokenizer *t = NULL;
    size_t n = size / 4 < 200 ? size / 4 : 200;
    struct rad_tok_files f = { .size = sizeof f, .tokenizer = (const char *)data,
                               .tokenizer_len = size };
    rad_status st = rad_tokenizer_from_json(&f, &t, &err);

    if ((st == RAD_OK) != (t != NULL) || st == RAD_E_NOMEM || (st && !err.text[0]))
        abort();
    if (!t)
        return 0;
    encode(t, (const char *)data + size - n, n, RAD_TOK_PARSE_SPECIAL | RAD_TOK_ADD_SPECIAL);
    encode(t, "Hello  w\xc3\xb6rld 12345!\n", 22, 0);
    rad_tokenizer_free(t);
    return 0;
}
