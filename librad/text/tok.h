/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers, inside librad: the specification that importers fill and the
 * container stores, and the parts that a built tokenizer is made of.
 *
 * One path: an importer (tokenizer.json, GGUF metadata, vocab section) fills a
 * struct radi_tok_spec; radi_tok_build compiles it. What is not in the spec
 * does not exist, so the round trip through a container loses nothing. */
#ifndef RADI_TOK_H
#define RADI_TOK_H

#include <base/base.h>
#include <rad/tokenizer.h>

/* ---- steps. Numbers 1..95 are the container's (reference: container, 9.2).
 * From 128 on: ours, for what that table cannot say. */
enum radi_step_kind {
    RADI_STEP_NFC = 1,
    RADI_STEP_NFKC = 2,
    RADI_STEP_NFD = 3,
    RADI_STEP_NFKD = 4,
    RADI_STEP_LOWER = 5,
    RADI_STEP_STRIP = 6,         /* flags: 1 left, 2 right */
    RADI_STEP_REPLACE = 7,       /* arg0 pattern, arg1 content; flag 1: regex */
    RADI_STEP_PREPEND = 8,       /* arg0 */
    RADI_STEP_BYTELEVEL = 32,    /* flags: 1 add prefix space, 2 GPT-2 regex */
    RADI_STEP_SPLIT = 33,        /* arg0 regex; flag 1 invert; iarg behaviour */
    RADI_STEP_METASPACE = 34,    /* arg0 replacement; iarg 0 never 1 first 2 always; flag 1 split */
    RADI_STEP_WHITESPACE = 35,   /* iarg (ours): 0 words and runs, 1 WhitespaceSplit, 2 BERT */
    RADI_STEP_PUNCTUATION = 36,  /* iarg behaviour */
    RADI_STEP_DIGITS = 37,       /* flag 1: each digit alone */
    RADI_STEP_BYTEFALLBACK = 38, /* the model falls back to byte tokens */
    RADI_STEP_D_BYTELEVEL = 64,
    RADI_STEP_D_METASPACE = 65,  /* arg0, iarg as METASPACE */
    RADI_STEP_D_REPLACE = 66,    /* arg0 -> arg1 */
    RADI_STEP_D_STRIP = 67,      /* arg0 one character, iarg = stop << 32 | start */
    RADI_STEP_D_FUSE = 68,
    RADI_STEP_D_BYTEFALLBACK = 69,
    /* ---- ours. Normalisers 128..143, decoders 144..159, the rest 160.. */
    RADI_STEP_STRIP_ACCENTS = 128,
    RADI_STEP_BERT = 129,        /* flags: 1 clean, 2 CJK, 4 strip accents, 8 lowercase */
    RADI_STEP_PRECOMPILED = 130, /* arg0: the charsmap in base64 */
    RADI_STEP_NMT = 131,
    RADI_STEP_D_WORDPIECE = 144, /* arg0 prefix; flag 1 clean up */
    RADI_STEP_D_BPE = 145,       /* arg0 suffix */
    RADI_STEP_X_MODEL = 160,     /* arg0 continuing prefix, arg1 end suffix, flags RADI_TOKM_*,
                                  * iarg: WordPiece's longest word */
    RADI_STEP_X_ADDED = 161,     /* arg0 id list; iarg: the RADI_ADDED_* flags of these tokens */
    RADI_STEP_X_AROUND = 162,    /* arg0 prefix ids, arg1 suffix ids of ADD_SPECIAL */
    RADI_STEP_X_EOG = 163,       /* arg0 id list */
    RADI_STEP_X_TEXT = 164       /* iarg id; arg0: the token's text in hex (it holds NUL) */
};

enum { RADI_SPLIT_REMOVED, RADI_SPLIT_ISOLATED, RADI_SPLIT_PREVIOUS, RADI_SPLIT_NEXT,
       RADI_SPLIT_CONTIGUOUS };
enum { RADI_TOKM_FUSE_UNK = 1, RADI_TOKM_IGNORE_MERGES = 2,
       RADI_TOKM_SCORE_RANKS = 4,   /* merges rank by the result's score, not by place */
       RADI_TOKM_NO_DECODER = 8 };  /* tokens are joined by a space */
enum { RADI_ADDED_SPECIAL = 1, RADI_ADDED_NORMALIZED = 2, RADI_ADDED_LSTRIP = 4,
       RADI_ADDED_RSTRIP = 8, RADI_ADDED_SINGLE_WORD = 16,
       RADI_ADDED_OUTSIDE = 32,     /* not in the model's own vocabulary */
       RADI_ADDED_IS = 128 };       /* in rad_tokenizer.added_flags: is an added token */

#define RADI_TOK_MAX_STEPS 64        /* pipeline steps; bounds work per byte */
#define RADI_TOK_MAX_TOKENS (1u << 24)

struct radi_tstr {                   /* bytes, NUL behind; not owned */
    const char *s;
    size_t n;
};
struct radi_tok_step {
    uint32_t kind, flags;
    struct radi_tstr arg0, arg1;
    int64_t iarg;
};
struct radi_tok_added {
    int32_t id;
    uint32_t flags;                  /* RADI_ADDED_* */
};
struct radi_idlist {
    int32_t *id;
    size_t n, cap;
};

/* Owns all its memory (strings in `mem`, arrays on the heap). */
struct radi_tok_spec {
    struct radi_arena mem;
    int kind;                        /* enum rad_tok_kind */
    struct radi_tstr *text;          /* [n_tokens]; s NULL: no such token */
    uint8_t *type;                   /* [n_tokens] */
    float *score;                    /* [n_tokens] or NULL */
    size_t n_tokens, cap_text, cap_type, cap_score;
    uint32_t (*merge)[2];
    size_t n_merges, cap_merges;
    struct radi_tok_step *step;
    size_t n_steps, cap_steps;
    struct radi_tok_added *added;
    size_t n_added, cap_added;
    struct radi_idlist prefix, suffix, eog;
    int32_t bos, eos, eot, pad, unk, sep;
    bool byte_fallback;
    unsigned model;                  /* RADI_TOKM_* */
    struct radi_tstr sub_prefix, end_suffix;
    int64_t max_word;                /* WordPiece */
    const char *chat_template;       /* or NULL */
};

void radi_tok_spec_init(struct radi_tok_spec *s);
void radi_tok_spec_release(struct radi_tok_spec *s);
/* Makes ids 0..n-1 exist (text NULL, type UNUSED). */
rad_status radi_tok_spec_reserve(struct radi_tok_spec *s, size_t n, struct rad_err *err);
rad_status radi_tok_spec_text(struct radi_tok_spec *s, struct radi_tstr *out, const char *p,
                              size_t n, struct rad_err *err);
rad_status radi_tok_spec_step(struct radi_tok_spec *s, struct radi_tok_step st,
                              struct rad_err *err);
rad_status radi_idlist_add(struct radi_idlist *l, int32_t id, struct rad_err *err);

/* Takes the spec: it is empty afterwards, also on failure. */
rad_status radi_tok_build(struct radi_tok_spec *spec, struct rad_tokenizer **out,
                          struct rad_err *err) RAD_MUSTCHECK;
const struct radi_tok_spec *radi_tok_spec_of(const struct rad_tokenizer *t);

/* ---- the container's vocab section: rad_tokenizer_write_vocab for callers that
 * hold a radi_str. `intern` gives a string's offset in the file's blob. */
struct radi_vocab_sink {
    void *ctx;
    rad_status (*intern)(void *ctx, const char *s, size_t n, uint64_t *off, struct rad_err *err);
};
rad_status radi_vocab_write(const struct rad_tokenizer *t, const struct radi_vocab_sink *sink,
                            struct radi_str *out, struct rad_err *err) RAD_MUSTCHECK;

/* ---- vocabulary index: bytes -> id, open addressing, keys in the spec */
struct radi_vmap {
    uint64_t *slot;                  /* upper hash half << 32 | id + 1; 0 empty */
    size_t mask;
};
rad_status radi_vmap_init(struct radi_vmap *m, size_t n, struct rad_err *err);
void radi_vmap_release(struct radi_vmap *m);
/* The id that holds these bytes already, or -1 after adding; n is the count that
 * init was told. */
int32_t radi_vmap_put(struct radi_vmap *m, const struct radi_tstr *key, int32_t id);
int32_t radi_vmap_get(const struct radi_vmap *m, const struct radi_tstr *key, const char *s,
                      size_t n);

/* Mixes the bytes; good enough for tables that are checked by compare. */
static inline uint64_t radi_tok_hash(const char *s, size_t n)
{
    uint64_t h = n * 0x9e3779b97f4a7c15u, w;
    while (n >= 8) {
        memcpy(&w, s, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
        s += 8;
        n -= 8;
    }
    w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)(uint8_t)s[i] << 8 * i;
    h = (h ^ w) * 0xff51afd7ed558ccdu;
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 32;
}
int32_t radi_vmap_get_hashed(const struct radi_vmap *m, const struct radi_tstr *key,
                             const char *s, size_t n, uint64_t h);

/* GPT-2's printable alphabet: code point of byte b; byte of code point, or -1. */
uint32_t radi_bytechar(uint8_t b);
int radi_bytechar_inv(uint32_t cp);
/* Bytes of a token spelt in that alphabet into buf (>= n bytes); false when a
 * character lies outside it. */
bool radi_bytechar_decode(const char *s, size_t n, char *buf, size_t *len);
/* "<0xAB>" -> 0xAB, else -1. */
int radi_byte_token(const char *s, size_t n);

/* ---- text buffers of one call */
struct radi_piece {
    size_t off, len;
    bool first;                      /* starts the whole text */
};

/* ---- patterns */
struct radi_regex;                   /* immutable once compiled */
rad_status radi_regex_new(const char *pat, size_t n, struct radi_regex **out,
                          struct rad_err *err) RAD_MUSTCHECK;
void radi_regex_free(struct radi_regex *re);
/* The PCRE2 code of a pattern, whether or not a splitter is known for it. */
rad_status radi_regex_compile(const char *pat, size_t n, void **out, struct rad_err *err)
    RAD_MUSTCHECK;
/* Per-call state of matching (PCRE2's); zero-initialise. `plain`: known patterns go
 * through PCRE2 too, compiled here. */
enum { RADI_RX_ALT = 8 };
struct radi_rxctx {
    void *md, *mc;
    bool plain;
    const struct radi_regex *alt_of[RADI_RX_ALT];
    void *alt[RADI_RX_ALT];
};
void radi_rxctx_release(struct radi_rxctx *c);
/* 1 found, 0 not, -1 failed (err set). Never an empty match. */
int radi_regex_find(const struct radi_regex *re, struct radi_rxctx *c, const char *s, size_t n,
                    size_t from, size_t *ms, size_t *me, struct rad_err *err);

/* End of the piece or gap that starts at pos < n; *matched tells which. Only
 * for patterns known by their exact text. */
typedef size_t radi_splitter(const char *s, size_t n, size_t pos, bool *matched);
struct radi_known_pattern { const char *name, *pattern; radi_splitter *fn; bool total; };
extern const struct radi_known_pattern radi_known_patterns[];   /* ends with NULL name */
const struct radi_known_pattern *radi_pattern_known(const char *pat, size_t n);
radi_splitter radi_split_bytelevel;

/* White_Space; \w; general category tests, on code points */
bool radi_cp_space(uint32_t cp);
bool radi_cp_word(uint32_t cp);
bool radi_cp_numeric(uint32_t cp);
bool radi_cp_punct(uint32_t cp);     /* ASCII punctuation or category P */

/* ---- normaliser chain */
struct radi_norm;
rad_status radi_norm_new(const struct radi_tok_spec *s, struct radi_norm **out,
                         struct rad_err *err) RAD_MUSTCHECK;
void radi_norm_free(struct radi_norm *n);
bool radi_norm_empty(const struct radi_norm *n);
/* Result in *s, *n: the input itself, or one of the two buffers. */
rad_status radi_norm_run(const struct radi_norm *nm, struct radi_rxctx *rx, const char **s,
                         size_t *n, struct radi_str buf[2], struct rad_err *err) RAD_MUSTCHECK;

/* ---- pre-tokeniser chain */
struct radi_pretok;
rad_status radi_pretok_new(const struct radi_tok_spec *s, struct radi_pretok **out,
                           struct rad_err *err) RAD_MUSTCHECK;
void radi_pretok_free(struct radi_pretok *p);
/* The model works on bytes (a byte-level step is in the chain). */
bool radi_pretok_bytes(const struct radi_pretok *p);
/* Non-NULL: the whole chain is this one splitter and every match or gap is a piece. */
radi_splitter *radi_pretok_simple(const struct radi_pretok *p);
struct radi_pieces {
    struct radi_str buf[2];          /* text, when a step rewrote it */
    struct radi_piece *p, *q;
    size_t n, cap, qcap;
    const char *text;                /* what p's offsets refer to */
};
void radi_pieces_release(struct radi_pieces *w);
rad_status radi_pretok_run(const struct radi_pretok *p, struct radi_rxctx *rx, const char *s,
                           size_t n, bool first, struct radi_pieces *w,
                           struct rad_err *err) RAD_MUSTCHECK;

/* ---- models. Scratch of one call. */
struct radi_mscratch {
    void *mem[4];
    size_t cap[4];
    bool plain;                      /* merge naively, look nothing up */
};
void radi_mscratch_release(struct radi_mscratch *m);
/* mem[i] with room for `bytes`; NULL when out of memory. Old content is lost. */
void *radi_mscratch_get(struct radi_mscratch *m, int i, size_t bytes);
rad_status radi_ids_add(struct rad_ids *o, int32_t id, struct rad_err *err);

struct radi_bpe;
rad_status radi_bpe_new(const struct rad_tokenizer *t, struct radi_bpe **out,
                        struct rad_err *err) RAD_MUSTCHECK;
void radi_bpe_free(struct radi_bpe *b);
rad_status radi_bpe_encode(const struct rad_tokenizer *t, struct radi_mscratch *m, const char *s,
                           size_t n, struct rad_ids *out, struct rad_err *err);

/* Gives the call a cache of pieces; without memory it goes without. */
void radi_bpe_want_cache(struct radi_mscratch *m);

struct radi_unigram;
rad_status radi_unigram_new(const struct rad_tokenizer *t, struct radi_unigram **out,
                            struct rad_err *err) RAD_MUSTCHECK;
void radi_unigram_free(struct radi_unigram *u);
rad_status radi_unigram_encode(const struct rad_tokenizer *t, struct radi_mscratch *m,
                               const char *s, size_t n, struct rad_ids *out,
                               struct rad_err *err);
rad_status radi_wordpiece_encode(const struct rad_tokenizer *t, struct radi_mscratch *m,
                                 const char *s, size_t n, struct rad_ids *out,
                                 struct rad_err *err);

/* Bytes that are not UTF-8 become U+FFFD, one for each broken character. */
void radi_utf8_repair(const char *s, size_t n, struct radi_str *o);

/* ---- decoder chain */
struct radi_decoder;
rad_status radi_decoder_new(const struct radi_tok_spec *s, struct radi_decoder **out,
                            struct rad_err *err) RAD_MUSTCHECK;
void radi_decoder_free(struct radi_decoder *d);

/* ---- added tokens: contents sorted, longest match by narrowing a range */
struct radi_trie {
    struct radi_added_text {
        struct radi_tstr text;
        int32_t id;
    } *item;
    size_t n;
    uint32_t start[257];             /* items by first byte */
};
rad_status radi_trie_new(const struct radi_added_text *item, size_t n, struct radi_trie **out,
                         struct rad_err *err) RAD_MUSTCHECK;
void radi_trie_free(struct radi_trie *t);
/* [lo, hi) all share their first d bytes: keeps those whose next byte is c. */
void radi_trie_narrow(const struct radi_trie *t, size_t *lo, size_t *hi, size_t d, uint8_t c);
/* Longest item that stands at s; ties to the lower id. -1: none. */
int32_t radi_trie_match(const struct radi_trie *t, const char *s, size_t n, size_t *len);

/* ---- the built object. Immutable but for `self`, a cache of facts that
 * every thread computes alike (relaxed atomics). */
struct rad_tokenizer {
    struct radi_tok_spec spec;
    struct radi_vmap by_text;        /* display text -> id */
    struct radi_tstr *key;           /* [n_tokens] what the model matches; s NULL: nothing */
    struct radi_vmap by_key;         /* model bytes -> id; == by_text when !bytes */
    bool bytes;
    char *key_mem;
    int32_t byte_id[256];            /* <0xAB> tokens, -1 if missing */
    bool all_bytes;                  /* byte fallback can always succeed */
    struct radi_trie *raw, *normal;  /* added tokens, or NULL */
    uint8_t *added_flags;            /* [n_tokens], RADI_ADDED_*; 0x80: is added */
    struct radi_norm *norm;
    struct radi_pretok *pre;
    struct radi_bpe *bpe;
    struct radi_unigram *uni;
    struct radi_decoder *dec;
};

#endif
