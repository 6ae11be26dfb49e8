/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: one reader for safetensors directories and GGUF files.
 *
 * Opening reads headers only; tensor data stays in the file, mapped. An open
 * checkpoint is immutable and may be shared by threads. Every returned pointer
 * lives until rad_ckpt_close. */
#ifndef RAD_CKPT_H
#define RAD_CKPT_H

#include <rad/rad_encoding.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rad_ckpt;

enum rad_ckpt_kind { RAD_CKPT_SAFETENSORS = 1, RAD_CKPT_GGUF = 2 };

/* A directory (config.json with model.safetensors, or an *.index.json and its
 * shards; else the one GGUF in it), a .safetensors file or an index with
 * config.json beside it, or a .gguf file (of a split model: its first file).
 * RAD_E_FORMAT names file, tensor or key, what was found and what was wanted. */
rad_status rad_ckpt_open(const char *path, struct rad_ckpt **out,
                         struct rad_err *err) RAD_MUSTCHECK;

/* One GGUF or safetensors file that is already in memory; borrowed until
 * close. `name` is for messages; `config` is config.json's text, may be NULL. */
rad_status rad_ckpt_open_memory(const void *data, size_t n, const char *name, const char *config,
                                struct rad_ckpt **out, struct rad_err *err) RAD_MUSTCHECK;
void rad_ckpt_close(struct rad_ckpt *ck);   /* NULL is fine */

enum rad_ckpt_kind rad_ckpt_kind(const struct rad_ckpt *ck);
const char *rad_ckpt_path(const struct rad_ckpt *ck);
/* model_type without underscores, or general.architecture; "" when unstated. */
const char *rad_ckpt_arch(const struct rad_ckpt *ck);
/* Quantisation of the source: "" for none, "fp8_e4m3", "gguf_ftype_15", ... */
const char *rad_ckpt_quant(const struct rad_ckpt *ck);

/* Safetensors: the text of config.json ("{}" from memory without one). GGUF: a
 * flat JSON object of the metadata ("llama.block_count": 30) without arrays of
 * more than 1024 elements and without the arrays under "tokenizer."; of an array
 * left out the element count stands ("tokenizer.ggml.tokens.length": 49152). */
const char *rad_ckpt_config_json(const struct rad_ckpt *ck);

/* Texts that lie beside a safetensors checkpoint; NULL when absent. Of a GGUF
 * only the chat template can be there (tokenizer.chat_template). */
enum rad_ckpt_file {
    RAD_CKPT_GENERATION_CONFIG,     /* generation_config.json */
    RAD_CKPT_TOKENIZER,             /* tokenizer.json */
    RAD_CKPT_TOKENIZER_CONFIG,      /* tokenizer_config.json */
    RAD_CKPT_CHAT_TEMPLATE,         /* chat_template.jinja */
    RAD_CKPT_PREPROCESSOR,          /* preprocessor_config.json */
    RAD_CKPT_VIDEO_PREPROCESSOR,    /* video_preprocessor_config.json */
    RAD_CKPT_PROCESSOR,             /* processor_config.json */
    RAD_CKPT_N_FILES
};
const char *rad_ckpt_text(const struct rad_ckpt *ck, enum rad_ckpt_file which, size_t *len);
const char *rad_ckpt_file_name(enum rad_ckpt_file which);   /* "tokenizer.json" */

/* ---- tensors */
struct rad_ckpt_tensor {
    const char *name;
    const char *type;               /* as its format spells it: "BF16", "Q4_K" */
    int32_t ggml_type;              /* block layout id; -1 in safetensors */
    int32_t rank;                   /* 0 (a scalar) to RAD_MAX_RANK */
    int64_t shape[RAD_MAX_RANK];    /* outermost first */
    uint64_t rows, cols;            /* as a matrix: last dimension, the others */
    const RadEncoding *enc;         /* what read_planes makes; NULL: no such encoding */
    const void *data;               /* as stored; a joined FP8 tensor: its codes */
    uint64_t bytes;
    uint64_t row_step;              /* read_planes: row0 is a multiple of this */
    int64_t scale;                  /* FP8 joined with its scale: that tensor; else -1 */
    int32_t is_scale;               /* 1: read through the FP8 tensor it belongs to */
};
size_t rad_ckpt_count(const struct rad_ckpt *ck);
const struct rad_ckpt_tensor *rad_ckpt_tensor(const struct rad_ckpt *ck, size_t i);
int64_t rad_ckpt_find(const struct rad_ckpt *ck, const char *name);   /* -1: none */

/* Rows [row0, row0+n) as canonical planes of `enc`, bit for bit what the file
 * means. dst[p] takes rad_plane_geom(enc, p, n, cols).bytes bytes: the block's
 * share of a tiled plane, the whole of a table or whole-extent plane. row0 is a
 * multiple of row_step, and so is n unless the block ends the tensor.
 * Thread-safe. RAD_E_UNSUPPORTED when enc is NULL, naming tensor and type. */
rad_status rad_ckpt_read_planes(const struct rad_ckpt *ck, size_t i, uint64_t row0, uint64_t n,
                                void *const dst[], struct rad_err *err) RAD_MUSTCHECK;
/* The same rows decoded, [n, cols]; any row0. */
rad_status rad_ckpt_read_f32(const struct rad_ckpt *ck, size_t i, uint64_t row0, uint64_t n,
                             float *out, struct rad_err *err) RAD_MUSTCHECK;

/* ---- GGUF metadata (safetensors has none: count 0) */
enum rad_ckpt_kv_type {             /* the numbers of the format */
    RAD_CKPT_U8 = 0, RAD_CKPT_I8 = 1, RAD_CKPT_U16 = 2, RAD_CKPT_I16 = 3, RAD_CKPT_U32 = 4,
    RAD_CKPT_I32 = 5, RAD_CKPT_F32 = 6, RAD_CKPT_BOOL = 7, RAD_CKPT_STR = 8,
    RAD_CKPT_U64 = 10, RAD_CKPT_I64 = 11, RAD_CKPT_F64 = 12
};
struct rad_ckpt_kv {
    const char *key;
    int type;                       /* enum rad_ckpt_kv_type, of the elements */
    int is_array;
    uint64_t n;                     /* elements; 1 for a scalar */
};
size_t rad_ckpt_kv_count(const struct rad_ckpt *ck);
const struct rad_ckpt_kv *rad_ckpt_kv(const struct rad_ckpt *ck, size_t i);
int64_t rad_ckpt_kv_find(const struct rad_ckpt *ck, const char *key);  /* -1: none */
/* Element k (0 of a scalar); constant time. The result is 1, or 0 when the type
 * is another or the value does not fit. int takes integers and bool; f64 takes
 * these and floats. str: not NUL-terminated, may hold any byte; NULL for 0. */
int rad_ckpt_kv_int(const struct rad_ckpt *ck, size_t i, uint64_t k, int64_t *out);
int rad_ckpt_kv_f64(const struct rad_ckpt *ck, size_t i, uint64_t k, double *out);
const char *rad_ckpt_kv_str(const struct rad_ckpt *ck, size_t i, uint64_t k, size_t *len);

#ifdef __cplusplus
}
#endif
#endif
