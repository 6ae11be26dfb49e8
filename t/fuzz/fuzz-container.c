/* SPDX-License-Identifier: Apache-2.0 */
/* A container from memory: open, walk everything, decode a row of each weight,
 * verify. The input is taken as the file's tables; the data blob, which has to
 * begin at 2 MiB, is made of zeros behind them when the header wants one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rad/model.h>

#include "format/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static float row[4096];

static volatile size_t sink;

static void walk(struct rad_model *m)
{
    struct rad_err err = { 0 };
    const void *bytes;
    size_t n;

    for (size_t i = 0; i < rad_model_meta_count(m); i++) {
        const struct rad_meta *r = rad_model_meta_at(m, i);

        sink += strlen(r->key) + (r->type == RAD_META_STR ? strlen(r->v.s) : 0);
        sink += rad_model_meta(m, r->key) != NULL;
    }
    for (size_t i = 0; i < rad_model_weight_count(m); i++) {
        const struct rad_weight *w = rad_model_weight_at(m, i);
        char text[64];

        sink += strlen(w->name) + strlen(w->quantizer) + strlen(w->options);
        sink += rad_encoding_text(w->enc, text, sizeof text);
        if (w->cols <= 4096 && i < 64)
            sink += (size_t)rad_weight_decode(w, w->rows - 1, 1, row, 4096, &err);
        if (w->rows > 1 && w->cols > 1 && w->cols <= 4096 && w->enc->n_planes > 0) {
            RadSlice s = { 0, w->rows / 2, 0, w->cols / 2 };
            sink += (size_t)rad_encoding_slice(w->enc, w->rows, w->cols, &s, &err);
        }
    }
    for (size_t i = 0; i < rad_model_group_count(m); i++)
        sink += rad_model_group_at(m, i)->n_experts;
    rad_model_vocab(m, &bytes, &n);
    sink += n;
    rad_model_certificate(m, &bytes, &n);
    sink += n + (size_t)rad_model_verify(m, NULL, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rad_err err = { 0 };
    struct rad_model *m;
    struct radi_rad_header h;

    if (rad_model_open_memory(data, size, &m, &err) == RAD_OK) {
        walk(m);
        rad_model_unref(m);
    }
    if (size < sizeof h)
        return 0;
    /* once more with a blob of 64 KiB at 2 MiB, and a header that agrees */
    static uint8_t big[(2 << 20) + 65536];
    memcpy(&h, data, sizeof h);
    h.magic = RADI_RAD_MAGIC;
    h.version = RADI_RAD_VERSION;
    h.file_bytes = sizeof big;
    h.data_off = 2 << 20;
    h.data_bytes = 65536;
    memset(h.reserved, 0, sizeof h.reserved);
    if (size > 2 << 20)
        size = 2 << 20;
    memset(big, 0, 65536);
    memcpy(big, data, size);
    memcpy(big, &h, sizeof h);
    if (rad_model_open_memory(big, sizeof big, &m, &err) == RAD_OK) {
        walk(m);
        rad_model_unref(m);
    }
    if (size > 65536)
        memset(big, 0, size);
    return 0;
}
