/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a container: plan everything, then write front to back.
 *
 *   new -> header, meta, weight, vocab, profile, ... -> plan -> open
 *       -> write every plane in file order -> finish -> free
 *
 * The layout is fixed by plan(), so a pipe is as good a target as a file. Equal
 * calls give equal bytes. One thread at a time. */
#ifndef RAD_MODEL_WRITE_H
#define RAD_MODEL_WRITE_H

#include <rad/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_model_writer;

/* Puts n bytes into the string blob once and says where. No NUL inside. The
 * tokenizer code takes this as a callback; pass rad_model_writer_intern. */
typedef rad_status rad_intern_fn(void *user, const char *s, size_t n, uint64_t *offset,
                                 struct rad_err *err);

rad_status rad_model_writer_new(struct rad_model_writer **out, struct rad_err *err)
    RAD_MUSTCHECK;
/* Also removes an unfinished file. */
void rad_model_writer_free(struct rad_model_writer *w);

/* ---- before plan(): all strings are copied; NULL counts as "" */
rad_status rad_model_writer_header(struct rad_model_writer *w, const char *arch,
                                   const char *name, const char *quant,
                                   const char *recipe, const char *created_by,
                                   struct rad_err *err) RAD_MUSTCHECK;
/* A key that is there already gets the new type and value in its old place. */
rad_status rad_model_writer_meta_int(struct rad_model_writer *w, const char *key,
                                     int64_t v, struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_model_writer_meta_f64(struct rad_model_writer *w, const char *key,
                                     double v, struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_model_writer_meta_str(struct rad_model_writer *w, const char *key,
                                     const char *v, struct rad_err *err) RAD_MUSTCHECK;

struct rad_weight_spec {
    uint32_t size;               /* sizeof(struct rad_weight_spec) */
    const char *name, *quantizer, *options;
    const RadEncoding *enc;
    int32_t rank;
    int64_t shape[RAD_MAX_RANK];
    int32_t layer, expert, slot; /* -1, -1, 0 when it has none */
};
/* Reserves a weight; *id is its number in the order of these calls. */
rad_status rad_model_writer_weight(struct rad_model_writer *w,
                                   const struct rad_weight_spec *spec, size_t *id,
                                   struct rad_err *err) RAD_MUSTCHECK;

rad_status rad_model_writer_intern(void *writer, const char *s, size_t n,
                                   uint64_t *offset, struct rad_err *err) RAD_MUSTCHECK;
/* The vocab section with section-relative array offsets (0: absent) and
 * string offsets from rad_model_writer_intern. Copied. */
rad_status rad_model_writer_vocab(struct rad_model_writer *w, const void *bytes, size_t n,
                                  struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_model_writer_profile(struct rad_model_writer *w,
                                    const struct rad_profile_row *rows, size_t n,
                                    struct rad_err *err) RAD_MUSTCHECK;
rad_status rad_model_writer_certificate(struct rad_model_writer *w, const void *bytes,
                                        size_t n, struct rad_err *err) RAD_MUSTCHECK;
/* What the weights were made from: a commit, a digest. Part of the digests. */
rad_status rad_model_writer_source(struct rad_model_writer *w, const char *revision,
                                   struct rad_err *err) RAD_MUSTCHECK;
/* Ed25519 private key (PEM text) that signs the root. */
rad_status rad_model_writer_key(struct rad_model_writer *w, const char *pem,
                                struct rad_err *err) RAD_MUSTCHECK;

/* ---- fixes the layout: sorts by (layer, expert, slot, name), checks the
 * expert groups, gives every plane its place. */
rad_status rad_model_writer_plan(struct rad_model_writer *w, struct rad_err *err)
    RAD_MUSTCHECK;
/* After plan(): weights in file order, with offsets (plane data is NULL), the
 * id that rad_model_writer_weight gave, and the size of the whole file. */
size_t rad_model_writer_count(const struct rad_model_writer *w);
const struct rad_weight *rad_model_writer_at(const struct rad_model_writer *w, size_t pos,
                                             size_t *id);
uint64_t rad_model_writer_file_bytes(const struct rad_model_writer *w);

/* Opens the target ("-": stdout) and writes all tables. A file is written
 * beside its target and renamed by finish(). */
rad_status rad_model_writer_open(struct rad_model_writer *w, const char *path,
                                 struct rad_err *err) RAD_MUSTCHECK;
/* Bytes of plane `plane` of the weight at `pos`; any number of calls a plane,
 * planes in file order. Too many bytes, or a plane that is begun before the
 * one in front of it is complete, is RAD_E_STATE and writes nothing. */
rad_status rad_model_writer_write(struct rad_model_writer *w, size_t pos, uint32_t plane,
                                  const void *bytes, size_t n, struct rad_err *err)
    RAD_MUSTCHECK;
/* Writes the digests, flushes, renames. RAD_E_STATE when planes are missing. */
rad_status rad_model_writer_finish(struct rad_model_writer *w, struct rad_err *err)
    RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
