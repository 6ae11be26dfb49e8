/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers: text to token ids and back, streaming included.
 *
 * A tokenizer is immutable once built and shared: every function that takes a
 * `const struct rad_tokenizer *` may run in any number of threads at once.
 * Text is UTF-8; bytes that are not become U+FFFD before anything else. */
#ifndef RAD_TOKENIZER_H
#define RAD_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include <rad/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_tokenizer;
struct rad_model;
struct rad_ckpt;

enum rad_tok_kind {             /* the container's numbers */
    RAD_TOK_BPE = 1,
    RAD_TOK_UNIGRAM = 2,
    RAD_TOK_WORDPIECE = 3
};

enum rad_tok_type {             /* the container's numbers */
    RAD_TOK_NORMAL = 1,
    RAD_TOK_UNKNOWN = 2,
    RAD_TOK_CONTROL = 3,        /* a special token: never user text */
    RAD_TOK_USER = 4,           /* added, but plain text */
    RAD_TOK_UNUSED = 5,         /* an id without a token */
    RAD_TOK_BYTE = 6
};

enum {
    RAD_TOK_ADD_SPECIAL = 1,    /* encode: put the template's ids around */
    RAD_TOK_PARSE_SPECIAL = 2,  /* encode: recognise special tokens in the text */
    RAD_TOK_SKIP_SPECIAL = 4,   /* decode: leave special tokens out */
    RAD_TOK_REFERENCE = 8       /* encode: by the slow and simple ways, for checks */
};

/* Growing arrays. Zero-initialise; calls append; the caller releases. `s` is
 * NUL-terminated once it is not NULL. */
struct rad_ids {
    int32_t *id;
    size_t n, cap;
};
struct rad_tok_text {
    char *s;
    size_t len, cap;
};
void rad_ids_release(struct rad_ids *ids);
void rad_tok_text_release(struct rad_tok_text *t);

/* Texts of the files beside a checkpoint. Only `tokenizer` is required; the
 * others may be NULL. `chat_template` (chat_template.jinja) wins over the
 * config's. Not kept: the caller may free them after the call. */
struct rad_tok_files {
    uint32_t size;              /* sizeof(struct rad_tok_files) */
    const char *tokenizer;      /* tokenizer.json */
    size_t tokenizer_len;
    const char *config;         /* tokenizer_config.json */
    size_t config_len;
    const char *generation;     /* generation_config.json */
    size_t generation_len;
    const char *chat_template;  /* chat_template.jinja */
    size_t chat_template_len;
};

/* RAD_E_FORMAT or RAD_E_UNSUPPORTED name the field and what it held. */
rad_status rad_tokenizer_from_json(const struct rad_tok_files *f, struct rad_tokenizer **out,
                                   struct rad_err *err) RAD_MUSTCHECK;
/* `path` is a directory that holds the files, or a tokenizer.json with the
 * others beside it; a file may be compressed (.zst). */
rad_status rad_tokenizer_open(const char *path, struct rad_tokenizer **out,
                              struct rad_err *err) RAD_MUSTCHECK;
/* The one that a container or a checkpoint carries; RAD_E_NOTFOUND when there is
 * none. Nothing of the source is kept. */
rad_status rad_tokenizer_from_model(const struct rad_model *m, struct rad_tokenizer **out,
                                    struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_tokenizer_from_ckpt(const struct rad_ckpt *ck, struct rad_tokenizer **out,
                                   struct rad_err *err) RAD_MUSTCHECK;
void rad_tokenizer_free(struct rad_tokenizer *t);

/* The container's vocab section (appended to *out), array offsets relative to
 * it, strings placed by `intern`: rad_model_writer_intern and the writer. */
rad_status rad_tokenizer_write_vocab(const struct rad_tokenizer *t,
                                     rad_status (*intern)(void *user, const char *s, size_t n,
                                                          uint64_t *offset, struct rad_err *err),
                                     void *user, struct rad_tok_text *out,
                                     struct rad_err *err) RAD_MUSTCHECK;

/* Appends the ids of text[0..len). RAD_E_NOMEM, or RAD_E_UNSUPPORTED when a
 * pattern ran into its match limit. On failure *out holds what it held. */
rad_status rad_tokenizer_encode(const struct rad_tokenizer *t, const char *text, size_t len,
                                unsigned flags, struct rad_ids *out,
                                struct rad_err *err) RAD_MUSTCHECK;
/* Appends the text of the ids; an id outside the vocabulary is RAD_E_ARG. */
rad_status rad_tokenizer_decode(const struct rad_tokenizer *t, const int32_t *id, size_t n,
                                unsigned flags, struct rad_tok_text *out,
                                struct rad_err *err) RAD_MUSTCHECK;

enum rad_tok_kind rad_tokenizer_kind(const struct rad_tokenizer *t);
size_t rad_tokenizer_count(const struct rad_tokenizer *t);     /* highest id + 1 */
size_t rad_tokenizer_merge_count(const struct rad_tokenizer *t);
/* The token as its vocabulary spells it (byte-level tokens in their printable
 * alphabet); NULL outside the vocabulary. NUL-terminated; *len may be NULL. */
const char *rad_tokenizer_text(const struct rad_tokenizer *t, int32_t id, size_t *len);
enum rad_tok_type rad_tokenizer_type(const struct rad_tokenizer *t, int32_t id);
float rad_tokenizer_score(const struct rad_tokenizer *t, int32_t id);  /* 0 if none */
/* The id that the vocabulary spells so, or -1. */
int32_t rad_tokenizer_find(const struct rad_tokenizer *t, const char *text, size_t len);
/* The bytes that the token stands for in the middle of a text, special tokens
 * included; may be part of a character. Appends. */
rad_status rad_tokenizer_piece(const struct rad_tokenizer *t, int32_t id,
                               struct rad_tok_text *out, struct rad_err *err) RAD_MUSTCHECK;

/* -1 when the tokenizer has none. */
int32_t rad_tokenizer_bos(const struct rad_tokenizer *t);
int32_t rad_tokenizer_eos(const struct rad_tokenizer *t);
int32_t rad_tokenizer_eot(const struct rad_tokenizer *t);      /* of a turn; else eos */
int32_t rad_tokenizer_pad(const struct rad_tokenizer *t);
int32_t rad_tokenizer_unk(const struct rad_tokenizer *t);
int32_t rad_tokenizer_sep(const struct rad_tokenizer *t);
bool rad_tokenizer_add_bos(const struct rad_tokenizer *t);     /* ADD_SPECIAL begins with bos */
bool rad_tokenizer_add_eos(const struct rad_tokenizer *t);
/* Ids that end a generation (eos, eot, the generation config's), ascending. */
const int32_t *rad_tokenizer_eog(const struct rad_tokenizer *t, size_t *n);
bool rad_tokenizer_is_eog(const struct rad_tokenizer *t, int32_t id);
/* What ADD_SPECIAL puts before and after the text. */
const int32_t *rad_tokenizer_prefix(const struct rad_tokenizer *t, size_t *n);
const int32_t *rad_tokenizer_suffix(const struct rad_tokenizer *t, size_t *n);
const char *rad_tokenizer_chat_template(const struct rad_tokenizer *t);  /* NULL if none */
/* Pipeline steps, as words for people: "nfc", "split /.../", ...; NULL past the end. */
const char *rad_tokenizer_step(const struct rad_tokenizer *t, size_t i, char *buf, size_t n);

/* ---- streaming detokeniser; one thread at a time.
 * Each push appends the text that has become final: never half a character,
 * never text that a later token could still change. The concatenation of all
 * that was appended, finish included, is rad_tokenizer_decode of all the ids. */
struct rad_detok;
rad_status rad_detok_new(const struct rad_tokenizer *t, unsigned flags, struct rad_detok **out,
                         struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_detok_push(struct rad_detok *d, int32_t id, struct rad_tok_text *out,
                          struct rad_err *err) RAD_MUSTCHECK;
/* Appends what is held back; afterwards the object is as new. */
rad_status rad_detok_finish(struct rad_detok *d, struct rad_tok_text *out,
                            struct rad_err *err) RAD_MUSTCHECK;
void rad_detok_free(struct rad_detok *d);

/* ---- certificate: a few thousand text -> ids vectors, drawn deterministically
 * from a built-in seed text and the vocabulary itself. */
rad_status rad_tokenizer_certificate_make(const struct rad_tokenizer *t, struct rad_tok_text *out,
                                          struct rad_err *err) RAD_MUSTCHECK;
/* RAD_E_MISMATCH names the first text that encodes differently; RAD_E_FORMAT
 * for bytes that are no certificate. *vectors (may be NULL): how many it holds. */
rad_status rad_tokenizer_certificate_check(const struct rad_tokenizer *t, const void *cert,
                                           size_t len, size_t *vectors,
                                           struct rad_err *err) RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
