/* SPDX-License-Identifier: Apache-2.0 */
/* cast: the weight as it is, in another plain type. Takes any rank. */
#include "quant.h"

static const RadQuantOption options[] = {
    { "dtype", RAD_QOPT_STR, NULL, "f32, bf16, f16, fp8_e4m3 or fp8_e5m2" },
};

static rad_status dtype_of(const RadQuantArg *arg, int n, int *dt, struct rad_err *err)
{
    for (int i = 0; i < n; i++)
        if (strcmp(arg[i].key, "dtype"))
            return rad_fail(err, RAD_E_ARG, "cast: no option '%s'", arg[i].key);
    const char *s = quant_arg(arg, n, "dtype");
    if (!s)
        return rad_fail(err, RAD_E_ARG, "cast: option 'dtype' is missing");
    *dt = quant_dtype(s);
    switch (*dt) {
    case RAD_F32: case RAD_BF16: case RAD_F16: case RAD_FP8_E4M3: case RAD_FP8_E5M2:
        return RAD_OK;
    default:
        return rad_fail(err, RAD_E_ARG, "cast: option 'dtype': '%s', want %s", s, options[0].doc);
    }
}

static rad_status encoding(const RadQuantArg *arg, int n, const RadQuantWeight *w,
                           RadEncoding *out, struct rad_err *err)
{
    int dt;
    (void)w;
    RAD_TRY(dtype_of(arg, n, &dt, err));
    rad_encoding_plain(out, dt);
    return RAD_OK;
}

static int64_t row_block(const RadQuantArg *arg, int n, const RadQuantWeight *w)
{
    (void)arg, (void)n, (void)w;
    return 1;
}

static rad_status quantize(const RadQuantArg *arg, int n_arg, const RadQuantWeight *w,
                           const RadEncoding *enc, int64_t r0, int64_t n, float *x,
                           void *const plane[], struct rad_err *err)
{
    int dt;
    (void)enc, (void)r0;
    RAD_TRY(dtype_of(arg, n_arg, &dt, err));
    size_t row_bytes = rad_row_bytes(dt, (size_t)w->cols);
    for (int64_t r = 0; r < n; r++) {
        uint8_t *to = (uint8_t *)plane[0] + (size_t)r * row_bytes;
        const float *from = x + r * w->cols;
        for (int64_t c = 0; c < w->cols; c++) {
            uint16_t h;
            switch (dt) {
            case RAD_F32: memcpy(to + 4 * c, from + c, 4); break;
            case RAD_BF16: h = rad_f32_to_bf16(from[c]); memcpy(to + 2 * c, &h, 2); break;
            case RAD_F16: h = rad_f32_to_f16(from[c]); memcpy(to + 2 * c, &h, 2); break;
            case RAD_FP8_E4M3: to[c] = rad_f32_to_e4m3(from[c]); break;
            default: to[c] = rad_f32_to_e5m2(from[c]); break;
            }
        }
    }
    return RAD_OK;
}

const RadQuantizer quant_cast = {
    .struct_size = sizeof(RadQuantizer), .name = "cast", .doc = "the same values in a plain type",
    .options = options, .n_options = 1, .encoding = encoding, .row_block = row_block,
    .quantize = quantize,
};
