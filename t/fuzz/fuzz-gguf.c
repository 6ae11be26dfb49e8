/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF from memory: metadata by every accessor, its tokenizer, then every
 * tensor's first and last rows as planes and as floats. An input whose tensors
 * lie behind its end is read once more with bytes behind it, so that a corpus
 * of small files reaches every block type. */
#include "fuzz-ckpt.h"

static bool walk(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct rad_ckpt *ck;

    if (rad_ckpt_open_memory(data, size, "fuzz", NULL, &ck, &err) != RAD_OK)
        return false;
    walk_metadata(ck);
    walk_tensors(ck);
    walk_tokenizer(ck);
    rad_ckpt_close(ck);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MORE = 1 << 16 };
    uint8_t *big;

    if (walk(data, size) || size < 24 || memcmp(data, "GGUF", 4) || !(big = malloc(size + MORE)))
        return 0;
    memcpy(big, data, size);
    for (size_t at = size; at < size + MORE; at += size)
        memcpy(big + at, data, size < size + MORE - at ? size : size + MORE - at);
    walk(big, size + MORE);
    free(big);
    return 0;
}
