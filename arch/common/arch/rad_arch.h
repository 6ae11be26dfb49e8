/* SPDX-License-Identifier: Apache-2.0 */
/* What an architecture plugin is written with, installed beside the ABI as
 * <arch/rad_arch.h>: its export block, and <arch/graph.h>'s lowering.
 *
 *   static int NS_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx);
 *   static void NS_step(RadCtx *c, const RadBatch *batch);
 *   static int NS_probe(const RadModelMeta *meta, RadArchProbe *out);
 *   RAD_ARCH_PLUGIN(NS, "llama", "fp8_e4m3", "1.0", "what it serves")
 */
#ifndef ARCH_RAD_ARCH_H
#define ARCH_RAD_ARCH_H

#include <rad/rad_plugin.h>
#include <rad/rad_runtime.h>

/* The exports that every plugin has. The plugin's name is NS. */
#define RAD_ARCH_PLUGIN_INFO(NS, VERSION, DESC)                                \
    uint32_t rad_plugin_abi_version(void)                                      \
    {                                                                          \
        return RAD_ABI_VERSION;                                                \
    }                                                                          \
    const RadPluginInfo *rad_plugin_info(void)                                 \
    {                                                                          \
        static const RadPluginInfo info = {                                    \
            .struct_size = sizeof(RadPluginInfo), .kind = RAD_PLUGIN_ARCH,     \
            .name = #NS, .version = VERSION, .description = DESC,              \
            .build_target = "",                                                \
        };                                                                     \
        return &info;                                                          \
    }                                                                          \
    int rad_arch_probe(const RadModelMeta *meta, RadArchProbe *out)            \
    {                                                                          \
        return NS##_probe(meta, out);                                          \
    }                                                                          \
    int rad_arch_declare(RadBuilder *b, const RadModelMeta *meta, const RadBuildCtx *ctx) \
    {                                                                          \
        return NS##_declare(b, meta, ctx);                                     \
    }                                                                          \
    void rad_arch_step(struct RadCtx *c, const struct RadBatch *batch)         \
    {                                                                          \
        NS##_step(c, batch);                                                   \
    }

/* A plugin that claims one pair. */
#define RAD_ARCH_PLUGIN(NS, ID, QUANT, VERSION, DESC)                          \
    RAD_ARCH_PLUGIN_INFO(NS, VERSION, DESC)                                    \
    const char *rad_arch_id(void)                                              \
    {                                                                          \
        return ID;                                                             \
    }                                                                          \
    const char *rad_arch_quant(void)                                           \
    {                                                                          \
        return QUANT;                                                          \
    }

#endif
