/* SPDX-License-Identifier: Apache-2.0 */
/* What rad-info's two printers share. */
#ifndef RAD_INFO_H
#define RAD_INFO_H

#include <rad/model.h>

struct info_section {
    const char *name;
    const struct rad_section *at;
};
/* The sections in the order of the format; returns their number. */
enum { INFO_SECTIONS = 10 };
void info_sections(const struct rad_model_info *h, struct info_section out[INFO_SECTIONS]);

/* Planes of a weight without the padding between them. */
uint64_t info_plane_bytes(const struct rad_weight *w);
/* 64 hexadecimal digits. */
void info_hex(const uint8_t digest[32], char out[65]);
const char *info_token_type(uint32_t type);      /* "control", ... */

/* Weights counted by one of their properties. */
struct info_tally {
    const char *name;            /* quantiser; NULL when counted by encoding */
    const RadEncoding *enc;
    uint64_t weights, bytes;
};
/* Largest first. By encoding, or by quantiser. Caller frees. */
struct info_tally *info_tally(const struct rad_model *m, bool by_encoding, size_t *n);

void info_json(const struct rad_model *m);

#endif
