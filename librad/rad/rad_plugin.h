/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin exports. A plugin is one shared object of one kind; it exports
 * the symbols below of its kind and no other. It is not linked with librad:
 * the program that loads it provides every rad_* function it calls.
 *
 *   all     rad_plugin_abi_version, rad_plugin_info        (required)
 *           rad_plugin_open, rad_plugin_close              (optional)
 *   kernel  rad_kernel_schema_count/_at, rad_kernel_count/_at   (required)
 *           rad_kernel_concurrent, rad_plugin_reference    (optional)
 *   arch    rad_arch_declare, rad_arch_step, and rad_arch_id or
 *           rad_arch_pair_count/_at                        (required)
 *           the rest of rad_builder.h's exports            (optional)
 *   quant   rad_quant_count/_at                            (required)       */
#ifndef RAD_PLUGIN_H
#define RAD_PLUGIN_H

#include <rad/rad_abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RadPluginKind {
    RAD_PLUGIN_KERNEL = 1,
    RAD_PLUGIN_ARCH = 2,
    RAD_PLUGIN_QUANT = 3
} RadPluginKind;

typedef struct RadPluginInfo {
    uint32_t struct_size;
    int32_t kind;
    const char *name;           /* unique among plugins of the kind */
    const char *version;
    const char *description;
    const char *build_target;   /* e.g. "x86_64", "gfx1201"; "" = any */
} RadPluginInfo;

uint32_t rad_plugin_abi_version(void);   /* must return RAD_ABI_VERSION */
const RadPluginInfo *rad_plugin_info(void);
/* RAD_OK, or RAD_E_UNSUPPORTED to decline this machine without an error. */
int rad_plugin_open(void);
void rad_plugin_close(void);

#ifdef __cplusplus
}
#endif
#endif
