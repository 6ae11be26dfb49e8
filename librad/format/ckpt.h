/* SPDX-License-Identifier: Apache-2.0 */
/* What the two checkpoint readers share: the open checkpoint, and the calls
 * with which a reader fills it. Private to librad/format. */
#ifndef RADI_CKPT_H
#define RADI_CKPT_H

#include <rad/ckpt.h>

#include "base/base.h"
#include "format/ggml_blocks.h"

/* How a stored element becomes the encoding's. */
enum radi_ckpt_conv { RADI_CONV_COPY, RADI_CONV_F64, RADI_CONV_U64, RADI_CONV_BLOCKS };

struct radi_ckpt_tensor {
    struct rad_ckpt_tensor pub;
    uint32_t file;
    enum radi_ckpt_conv conv;
    const struct radi_ggml_type *ggml;
    uint64_t row_bytes;             /* as stored */
};

struct radi_ckpt_file {
    struct radi_filemap map;        /* fd -1 and not owned: the caller's memory */
    const char *name;               /* for messages */
    bool mapped;                    /* pages may be given back after reading */
};

struct radi_ckpt_kv {
    struct rad_ckpt_kv pub;
    const uint8_t *data;            /* first element, in the file */
    uint64_t *str_at;               /* arrays of strings: offsets from data */
};

/* Arrays grow while opening; nothing changes afterwards. */
struct rad_ckpt {
    enum rad_ckpt_kind kind;
    struct radi_arena arena;        /* names, keys, encodings, string offsets */
    const char *path;
    struct radi_ckpt_file *file;
    size_t files, file_cap;
    struct radi_ckpt_tensor *tensor;
    size_t tensors, tensor_cap;
    struct radi_map *names;
    RadEncoding **enc;              /* each distinct one once */
    size_t encs, enc_cap;
    struct radi_ckpt_kv *kv;
    size_t kvs, kv_cap;
    struct radi_map *keys;
    char *config;
    size_t config_len;
    char *text[RAD_CKPT_N_FILES];
    size_t text_len[RAD_CKPT_N_FILES];
    char *arch, *quant;
    int64_t fp8_block[2];           /* of weights that a scale tensor belongs to */
};

/* Maps `path`; the file's name in messages is the path. */
rad_status radi_ckpt_add_file(struct rad_ckpt *ck, const char *path, uint32_t *file,
                              struct rad_err *err) RAD_MUSTCHECK;
/* Adds a tensor: pub.name (n bytes, copied), type, rank, shape, data and bytes
 * are the reader's; rows, cols and row_bytes follow here. A name that is there
 * already is refused. `enc` NULL: no encoding. */
rad_status radi_ckpt_add_tensor(struct rad_ckpt *ck, const struct radi_ckpt_tensor *t, size_t n,
                                const RadEncoding *enc, struct rad_err *err) RAD_MUSTCHECK;
/* The one copy of an encoding. */
rad_status radi_ckpt_intern(struct rad_ckpt *ck, const RadEncoding *e, const RadEncoding **out,
                            struct rad_err *err) RAD_MUSTCHECK;
/* Ranges [begin, end) of one file's tensors, sorted in place by begin. */
struct radi_ckpt_range {
    uint64_t begin, end;
    const char *name;               /* tensor name, NUL-terminated */
};
void radi_ckpt_sort(struct radi_ckpt_range *r, size_t n);

/* One file into an open checkpoint. */
rad_status radi_st_file(struct rad_ckpt *ck, uint32_t file, struct rad_err *err) RAD_MUSTCHECK;
rad_status radi_gguf_file(struct rad_ckpt *ck, uint32_t file, struct rad_err *err) RAD_MUSTCHECK;
/* An index file and the shards it names. */
rad_status radi_st_index(struct rad_ckpt *ck, const char *path, struct rad_err *err) RAD_MUSTCHECK;
/* What follows from config.json: arch, quant; FP8 tensors with their scales. */
rad_status radi_st_finish(struct rad_ckpt *ck, struct rad_err *err) RAD_MUSTCHECK;
/* The other files of a split model; then arch, quant, config. */
rad_status radi_gguf_split(struct rad_ckpt *ck, const char *path,
                           struct rad_err *err) RAD_MUSTCHECK;
rad_status radi_gguf_finish(struct rad_ckpt *ck, struct rad_err *err) RAD_MUSTCHECK;

#endif
