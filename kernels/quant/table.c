/* SPDX-License-Identifier: Apache-2.0 */
/* The quantiser plugin's exports: one row a quantiser. */
#include "quant.h"

static const RadQuantizer *const rows[] = { &quant_rtn, &quant_cast };
enum { N_ROWS = sizeof rows / sizeof rows[0] };

uint32_t rad_plugin_abi_version(void)
{
    return RAD_ABI_VERSION;
}
const RadPluginInfo *rad_plugin_info(void)
{
    static const RadPluginInfo info = {
        .struct_size = sizeof info, .kind = RAD_PLUGIN_QUANT, .name = "libquant",
        .version = "0.1.0", .description = "quantisers in plain C", .build_target = "",
    };
    return &info;
}
int rad_quant_count(void)
{
    return N_ROWS;
}
const RadQuantizer *rad_quant_at(int i)
{
    return i >= 0 && i < N_ROWS ? rows[i] : NULL;
}
