/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a container (.rad; format: rad(5)). A model is validated as a whole
 * when it opens and immutable afterwards: threads may share it, and every
 * pointer that comes out of it lives until its last unref.
 *
 * A regular file is mapped, so it may be larger than memory; "-" (stdin), a
 * pipe and a .zst file are read whole into memory. */
#ifndef RAD_MODEL_H
#define RAD_MODEL_H

#include <rad/rad_encoding.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_model;

rad_status rad_model_open(const char *path, struct rad_model **out,
                          struct rad_err *err) RAD_MUSTCHECK;
/* The same from memory; the bytes are copied. */
rad_status rad_model_open_memory(const void *bytes, size_t n, struct rad_model **out,
                                 struct rad_err *err) RAD_MUSTCHECK;
struct rad_model *rad_model_ref(struct rad_model *m);
void rad_model_unref(struct rad_model *m);          /* NULL is fine */

/* True when the name ends in .rad or the first bytes are a container's. */
bool rad_model_is_container(const char *path, const void *head, size_t n);

/* ---- header */
struct rad_section {
    uint64_t offset, bytes;      /* bytes 0: the file has none */
    uint64_t count;              /* records; 0 for the sections that are bytes */
};
struct rad_model_info {
    uint32_t size;               /* of this struct */
    uint32_t version;
    uint64_t file_bytes;
    const char *arch, *name, *quant, *recipe, *created_by;   /* never NULL */
    struct rad_section strings, meta, dir, planes, encodings, vocab, profile, data,
                       integrity, certificate;
};
const struct rad_model_info *rad_model_info(const struct rad_model *m);
const char *rad_model_path(const struct rad_model *m);   /* "" from memory */

/* ---- metadata, in file order. The first of two equal keys counts. */
enum { RAD_META_INT = 1, RAD_META_STR = 2, RAD_META_F64 = 100 };
struct rad_meta {
    uint32_t size;
    uint32_t type;
    const char *key;
    union {
        int64_t i;
        double f;
        const char *s;
    } v;
};
size_t rad_model_meta_count(const struct rad_model *m);
const struct rad_meta *rad_model_meta_at(const struct rad_model *m, size_t i);
/* NULL when absent. */
const struct rad_meta *rad_model_meta(const struct rad_model *m, const char *key);
/* RAD_E_NOTFOUND when absent, RAD_E_FORMAT when of another type (err says
 * which); *out keeps its value then. The double getter takes an integer row. */
rad_status rad_model_meta_int(const struct rad_model *m, const char *key, int64_t *out,
                              struct rad_err *err);
rad_status rad_model_meta_f64(const struct rad_model *m, const char *key, double *out,
                              struct rad_err *err);
rad_status rad_model_meta_str(const struct rad_model *m, const char *key,
                              const char **out, struct rad_err *err);

/* ---- weights, in directory order (movement units lie together) */
struct rad_plane {
    uint64_t offset, bytes;      /* in the file */
    const void *data;            /* into the mapping; NULL while writing */
};
struct rad_weight {
    uint32_t size;
    uint32_t index;              /* position in the directory */
    const char *name;
    const char *quantizer;       /* "": the checkpoint's own values */
    const char *options;         /* "k=v,k=v" */
    const RadEncoding *enc;
    uint32_t enc_index;
    int32_t rank;
    int64_t shape[RAD_MAX_RANK]; /* outermost first */
    uint64_t rows, cols;         /* as a matrix: cols is the last extent */
    int32_t layer, expert, slot; /* -1, -1, 0 when it has none */
    uint32_t n_planes;
    const struct rad_plane *plane;
    uint64_t offset, bytes;      /* of all planes, padding between them included */
};
size_t rad_model_weight_count(const struct rad_model *m);
const struct rad_weight *rad_model_weight_at(const struct rad_model *m, size_t i);
/* By name; the first of two equal names; NULL when absent. */
const struct rad_weight *rad_model_weight(const struct rad_model *m, const char *name);
/* Rows [r0, r0+n) as f32 into `out`, `pitch` floats apart. */
rad_status rad_weight_decode(const struct rad_weight *w, uint64_t r0, uint64_t n,
                             float *out, size_t pitch, struct rad_err *err);

size_t rad_model_encoding_count(const struct rad_model *m);
const RadEncoding *rad_model_encoding_at(const struct rad_model *m, size_t i);

/* Experts of one layer: expert e, slot s is weight first + e * n_slots + s and
 * its unit starts at base + e * stride. */
struct rad_expert_group {
    uint32_t size;
    int32_t layer;
    uint32_t n_experts, n_slots;
    size_t first;                /* weight index of expert 0, slot 0 */
    uint64_t base, stride;
    uint64_t unit_bytes;         /* from a unit's start to its last plane's end */
};
size_t rad_model_group_count(const struct rad_model *m);
const struct rad_expert_group *rad_model_group_at(const struct rad_model *m, size_t i);

/* ---- the other sections */
/* The vocab section as it lies in the file, checked for structure (container
 * §12 rule 7); *bytes NULL and *len 0 when there is none. Its array offsets are
 * absolute: subtract rad_model_info()->vocab.offset. 8-aligned. */
void rad_model_vocab(const struct rad_model *m, const void **bytes, size_t *len);
/* The string at an offset of the string blob; NULL when it lies outside. */
const char *rad_model_string(const struct rad_model *m, uint64_t offset);

/* The section's records, for tools that show them; a tokenizer is built by
 * rad/tokenizer.h. False when there is no section, or no such record. */
struct rad_vocab_info {
    uint32_t size;
    uint32_t kind;               /* 1 BPE, 2 unigram, 3 WordPiece, 4 RWKV */
    const char *kind_name;
    uint32_t n_tokens, n_merges, n_steps;
    int32_t bos, eos, eot, pad, unk, sep;    /* -1 = none */
    int add_bos, add_eos;
    const char *chat_template;   /* "" if none */
};
bool rad_model_vocab_info(const struct rad_model *m, struct rad_vocab_info *out);
struct rad_vocab_token {
    uint32_t size;
    uint32_t type;               /* 1 normal, 2 unknown, 3 control, 4 user, 6 byte */
    const char *text;
    float score;
};
bool rad_model_vocab_token(const struct rad_model *m, uint32_t i,
                           struct rad_vocab_token *out);
struct rad_vocab_step {
    uint32_t size;
    uint32_t kind, flags;
    const char *stage;           /* "normalizer", "pre-tokenizer", "decoder" */
    const char *name;            /* "nfc", "split", ...; "unknown" */
    const char *arg0, *arg1;
    int64_t iarg;
};
bool rad_model_vocab_step(const struct rad_model *m, uint32_t i, struct rad_vocab_step *out);

struct rad_profile_row {         /* 16 bytes, as in the file */
    int32_t layer, expert;
    float share;                 /* of the layer's routed tokens */
    float reserved;
};
const struct rad_profile_row *rad_model_profile(const struct rad_model *m, size_t *n);

/* The tokenizer certificate: bytes that the tokenizer code wrote. NULL if none. */
void rad_model_certificate(const struct rad_model *m, const void **bytes, size_t *len);

/* ---- integrity */
struct rad_integrity {
    uint32_t size;
    int is_signed;
    uint8_t root[32];            /* digest over all digests */
    uint8_t key[32];             /* Ed25519 public key of the signer, if signed */
    const char *source;          /* revision of the source, "" if not stated */
};
/* NULL when the file carries no digests (an upstream file). */
const struct rad_integrity *rad_model_integrity(const struct rad_model *m);

struct rad_verify_report {
    uint32_t size;
    int signature;               /* 0 none, 1 valid for the key in the file */
    uint64_t tables, planes;     /* checked and found equal */
    uint64_t bytes;              /* digested */
};
/* Digests of every table and plane, the root, the signature, and that all
 * padding is zero. RAD_E_MISMATCH names the weight and role, or the table;
 * RAD_E_NOTFOUND when there are no digests. `report` may be NULL. */
rad_status rad_model_verify(const struct rad_model *m, struct rad_verify_report *report,
                            struct rad_err *err) RAD_MUSTCHECK;
/* That the root is signed by this key (PEM text, public or private). Does not
 * look at the planes: call after rad_model_verify. */
rad_status rad_model_verify_signature(const struct rad_model *m, const char *pem,
                                      struct rad_err *err) RAD_MUSTCHECK;
/* Signs the root of a file in place with an Ed25519 private key (PEM text). */
rad_status rad_model_sign(const char *path, const char *pem, struct rad_err *err)
    RAD_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
