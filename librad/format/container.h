/* SPDX-License-Identifier: Apache-2.0 */
/* The container's records as they lie in the file (rad(5)), and the inside of
 * an open model. container_read.c fills it, model.c hands it out,
 * container_write.c writes the records, integrity.c owns the digests.
 *
 * Tables are copied out of the mapping when the file opens, so what was
 * validated is what is used; strings, vocab, certificate and planes are not. */
#ifndef RADI_CONTAINER_H
#define RADI_CONTAINER_H

#include <stdatomic.h>

#include <rad/model.h>

#include "base/base.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the container is little-endian and is read in place");

enum {
    RADI_RAD_MAGIC = 0x31444152,         /* "RAD1" */
    RADI_RAD_VERSION = 2,
    RADI_RAD_POOL = 2 << 20,             /* alignment of the data blob */
    RADI_RAD_UNIT = 4096,                /* of a directory entry's bytes */
    RADI_RAD_PLANE = 256,                /* of a plane */
    RADI_RAD_TABLE = 8,                  /* of a table */
    RADI_RAD_MAX_SLOTS = 8,
    RADI_VOCAB_HEAD = 128
};

struct radi_rad_header {
    uint32_t magic, version;
    uint64_t file_bytes;
    uint64_t arch, name, quant, recipe, created_by;   /* string offsets */
    uint64_t str_off, str_bytes;
    uint64_t meta_off, meta_count;
    uint64_t dir_off, dir_count;
    uint64_t plane_off, plane_count;
    uint64_t enc_off, enc_count;
    uint64_t vocab_off, vocab_bytes;
    uint64_t prof_off, prof_count;
    uint64_t data_off, data_bytes;
    uint64_t integrity_off, integrity_bytes;          /* reserved[0..1] upstream */
    uint64_t cert_off, cert_bytes;                    /* reserved[2..3] upstream */
    uint64_t reserved[4];
};
struct radi_rad_meta {
    uint64_t key;
    uint32_t type, pad;
    union {
        int64_t i;
        uint64_t s;
        double f;
    } v;
};
struct radi_rad_entry {
    uint64_t name, quantizer, options;
    uint32_t enc, rank;
    int64_t shape[6];
    int32_t layer, expert, slot;
    uint32_t n_planes;
    uint64_t plane_first, offset, bytes;
    uint64_t reserved[2];
};
struct radi_rad_plane {
    uint64_t offset, bytes;
};
_Static_assert(sizeof(struct radi_rad_header) == 248, "header");
_Static_assert(sizeof(struct radi_rad_meta) == 24, "metadata row");
_Static_assert(sizeof(struct radi_rad_entry) == 136, "directory entry");
_Static_assert(sizeof(struct radi_rad_plane) == 16, "plane row");
_Static_assert(sizeof(struct rad_profile_row) == 16, "profile row");

/* The vocab section's header; offsets are absolute in a file. */
struct radi_rad_vocab {
    uint32_t kind, n_tokens, n_merges, n_steps;
    uint64_t text, score, type, merge, step;          /* arrays; 0 = absent */
    int32_t id[6];
    uint32_t add[2];
    uint64_t template;
    uint64_t reserved[4];
};
struct radi_rad_step {
    uint32_t kind, flags;
    uint64_t arg0, arg1;
    int64_t iarg;
};
_Static_assert(sizeof(struct radi_rad_vocab) == RADI_VOCAB_HEAD, "vocab header");
_Static_assert(sizeof(struct radi_rad_step) == 32, "step record");

/* ---- integrity section: this head, the table digests, the plane digests */
#define RADI_DIGEST 32
enum {
    RADI_INT_VERSION = 1,
    RADI_INT_SHA256 = 1,
    RADI_INT_ED25519 = 1,
    RADI_INT_ROOTED = 48         /* bytes of the head that the root covers */
};
#define RADI_INT_MAGIC "RADINTEG"
struct radi_rad_integrity {
    char magic[8];
    uint32_t version, algorithm;
    uint64_t n_tables, n_planes;
    uint64_t source;             /* string offset */
    uint64_t reserved0;
    uint32_t signature_kind;     /* 0 none, 1 Ed25519; not covered by the root */
    uint32_t reserved1;
    uint64_t reserved2;
    uint8_t root[32];
    uint8_t key[32];
    uint8_t signature[64];
};
_Static_assert(sizeof(struct radi_rad_integrity) == 192, "integrity head");
_Static_assert(offsetof(struct radi_rad_integrity, signature_kind) == RADI_INT_ROOTED,
               "integrity root");

/* The tables in the order of their digests. */
enum radi_table {
    RADI_T_HEADER, RADI_T_STRINGS, RADI_T_META, RADI_T_DIR, RADI_T_PLANES,
    RADI_T_ENCODINGS, RADI_T_VOCAB, RADI_T_PROFILE, RADI_T_CERT, RADI_T_COUNT
};
extern const char *const radi_table_name[RADI_T_COUNT];
void radi_table_spans(const struct radi_rad_header *h, struct rad_section out[RADI_T_COUNT]);

/* Fills root (and key, signature, signature_kind when `pem` is not NULL). The
 * digests follow the head in memory. */
rad_status radi_integrity_seal(struct radi_rad_integrity *head, const uint8_t *digests,
                               size_t n_digests, const char *pem, struct rad_err *err);
rad_status radi_integrity_check_key(const char *pem, struct rad_err *err);

struct rad_model {
    atomic_int refs;
    char *path;
    struct radi_filemap map;     /* data NULL when opened from memory */
    void *copy;                  /* the bytes when opened from memory */
    const uint8_t *data;
    uint64_t real_size;          /* of the file; info.file_bytes may be less */
    struct radi_rad_header head;
    struct rad_model_info info;
    const char *strings;
    struct rad_meta *meta;
    struct radi_map *meta_index; /* key -> row */
    RadEncoding *enc;
    struct rad_plane *plane;
    struct rad_weight *weight;
    struct radi_map *weight_index;
    struct rad_expert_group *group;
    size_t n_groups, cap_groups;
    struct rad_profile_row *profile;
    bool has_integrity;
    struct rad_integrity integrity;
    _Atomic(void *) build_meta;  /* plan/meta.c: one block, made when first asked */
};

/* container_check.c: the rules about records that refer to each other. */
rad_status radi_check_vocab(const struct rad_model *m, struct rad_err *err);
rad_status radi_find_groups(struct rad_model *m, struct rad_err *err);
/* One group beginning at weight `i`; *n entries belong to it. Also the
 * writer's check of its own plan. */
rad_status radi_group_at(const struct rad_weight *w, size_t n_weights, size_t i,
                         struct rad_expert_group *g, size_t *n, struct rad_err *err);
/* Matrix extents of a shape; false when it is not one of the format. */
bool radi_shape_matrix(const int64_t *shape, int rank, uint64_t *rows, uint64_t *cols);

#endif
