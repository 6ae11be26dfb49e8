/* SPDX-License-Identifier: Apache-2.0 */
/* A safetensors file from memory; what stands behind the last NUL byte of the
 * input, if anything, is its config.json. The header's length is set to fit, so
 * that the fuzzer need not guess it; now and then it is left alone. */
#include "fuzz-ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct rad_ckpt *ck;
    size_t n = size;
    uint8_t *file;

    while (n && data[n - 1])
        n--;
    /* no NUL, or no place for one: all of it is the file */
    bool config = n > 9 && n < size;
    n = config ? n - 1 : size;
    if (!(file = malloc(n ? n : 1)))
        return 0;
    memcpy(file, data, n);
    char *text = config ? strndup((const char *)data + n + 1, size - n - 1) : NULL;
    if (n >= 8 && data[7] == 0x7f) {
        uint64_t len = n - 8;
        const uint8_t *end = memchr(file + 8, 0, n - 8);
        if (end)
            len = (uint64_t)(end - file - 8);
        for (int i = 0; i < 8; i++)
            file[i] = (uint8_t)(len >> (8 * i));
    }
    if (rad_ckpt_open_memory(file, n, "fuzz", text, &ck, &err) == RAD_OK) {
        walk_metadata(ck);
        walk_tensors(ck);
        rad_ckpt_close(ck);
    }
    free(text);
    free(file);
    return 0;
}
