/* SPDX-License-Identifier: Apache-2.0 */
/* What encoding.c and encoding_decode.c share. */
#ifndef RADI_ENCODING_PRIV_H
#define RADI_ENCODING_PRIV_H

#include <rad/rad_encoding.h>

/* True for "fwhtN" with N a power of two of at least 2. */
bool radi_transform_fwht(const RadEncoding *e, uint64_t *n);

#endif
