/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF from memory: metadata by every accessor, then every tensor's first
 * and last rows as planes and as floats. */
#include "fuzz-ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct rad_ckpt *ck;

    if (rad_ckpt_open_memory(data, size, "fuzz", NULL, &ck, &err) != RAD_OK)
        return 0;
    walk_metadata(ck);
    walk_tensors(ck);
    rad_ckpt_close(ck);
    return 0;
}
