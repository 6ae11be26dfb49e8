/* SPDX-License-Identifier: Apache-2.0 */
/* One sampled row's parameters (96 bytes, uploaded as they are), and the
 * random stream, which depends on seed and position only. */
#ifndef RAD_SAMPLE_H
#define RAD_SAMPLE_H

#include <rad/rad_abi.h>

enum {
    RAD_SAMPLE_GREEDY = 1, RAD_SAMPLE_PENALTY = 2, RAD_SAMPLE_MASK = 4,
    RAD_SAMPLE_XTC = 8, RAD_SAMPLE_DRY = 16
};
#define RAD_STREAM_PICK 0x00000000u
#define RAD_STREAM_XTC 0x58544311u
#define RAD_STREAM_ACCEPT 0x41435054u
#define RAD_STREAM_RESIDUAL 0x52534944u

typedef struct RadSampleParams {
    uint64_t seed, pos;
    float temp, top_p, min_p, typical_p;
    float rep_penalty, freq_penalty, pres_penalty;
    float xtc_probability, xtc_threshold;
    float dry_multiplier, dry_base;
    int32_t top_k, penalty_last_n, dry_allowed_length, dry_penalty_last_n;
    int32_t hist_off, hist_len, mask_row, flags, dry_rep_limit;
} RadSampleParams;
_Static_assert(sizeof(RadSampleParams) == 96, "sampler record");

/* Uniform in [0, 1): top 24 bits of splitmix64((seed ^ stream) * phi + pos). */
static inline float rad_sample_uniform(uint64_t seed, uint32_t stream, uint64_t pos)
{
    uint64_t z = (seed ^ stream) * 0x9E3779B97F4A7C15ull + pos;
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return (float)(z >> 40) * 0x1p-24f;
}

#endif
