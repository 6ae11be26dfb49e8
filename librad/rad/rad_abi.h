/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin ABI's version, and what every plugin header shares.
 *
 * A plugin reports RAD_ABI_VERSION as it was when it was compiled; any other
 * number than the core's is refused, with both printed. The number moves on
 * every change of a struct's shape or a function's meaning, not on a new
 * optional export. Structs that may grow start with `uint32_t struct_size`.
 *
 * These headers keep the spelling of the seed documents (RadXxx, typedef'd);
 * it is the one exception to the naming rule of the house style. */
#ifndef RAD_ABI_H
#define RAD_ABI_H

#include <stddef.h>
#include <stdint.h>

#include <rad/status.h>

#define RAD_ABI_VERSION 1

#define RAD_MAX_RANK 6      /* dimensions of a tensor */
#define RAD_MAX_PLANES 8    /* planes of an encoding */
#define RAD_MAX_OPERANDS 24 /* operands of an op */

#endif
