# SPDX-License-Identifier: Apache-2.0
# Plugins as files: what is refused, and which of two homes counts. What a
# plan and a step do: t/check/plan-check.c.
load lib/common

CHECK=$BUILD/t/check/plan-check

# plugin FILE [DEFINES]: a kernel library without rows.
plugin() {
    local so=$1
    shift
    mkdir -p "$(dirname "$so")"
    "${RAD_CC:-cc}" -shared -fPIC -I"$SRC/librad" "$@" -o "$so" -x c - <<'C'
#include <rad/rad_builder.h>
#include <rad/rad_runtime.h>
#ifndef ABI
#define ABI RAD_ABI_VERSION
#endif
#ifndef KIND
#define KIND RAD_PLUGIN_KERNEL
#endif
#ifndef NAME
#define NAME "libx"
#endif
uint32_t rad_plugin_abi_version(void) { return ABI; }
const RadPluginInfo *rad_plugin_info(void)
{
    static const RadPluginInfo i = { sizeof i, KIND, NAME, "1", "", "" };
    return &i;
}
#ifdef OPEN
int rad_plugin_open(void) { return OPEN; }
#endif
#ifdef COUNT
#include <stdio.h>
int rad_plugin_open(void) { puts("opened"); return 0; }
void rad_plugin_close(void) { puts("closed"); }
#endif
#ifndef ARCH
int rad_kernel_schema_count(void) { return 0; }
const RadOpSchema *rad_kernel_schema_at(int i) { (void)i; return 0; }
int rad_kernel_count(void) { return 0; }
#ifndef SHORT
const RadKernelRow *rad_kernel_at(int i) { (void)i; return 0; }
#endif
#else
const char *rad_arch_id(void) { return "x"; }
int rad_arch_declare(RadBuilder *b, const RadModelMeta *m, const RadBuildCtx *c)
{
    (void)b; (void)m; (void)c;
    return 0;
}
void rad_arch_step(RadCtx *c, const RadBatch *b) { (void)c; (void)b; }
#ifdef EXTRA             /* another name of declare: its type is not the point */
__asm__(".globl " EXTRA "\n.set " EXTRA ", rad_arch_declare\n.type " EXTRA ", %function");
#endif
#ifdef IMPORTS
int rad_arch_serves_imports(void) { return IMPORTS; }
#endif
#endif
C
}

@test "plugin: another ABI version is refused, both numbers printed" {
    plugin h/kernels/x.so -DABI=99
    run_fail 3 "$CHECK" --home h
    has "$stderr" "'h/kernels/x.so': plugin ABI 99, want 1"
}

@test "plugin: what is no plugin is refused by name" {
    mkdir -p h/kernels
    echo text > h/kernels/x.so
    run_fail 3 "$CHECK" --home h
    has "$stderr" "'h/kernels/x.so': cannot be loaded"
    plugin h/kernels/x.so -DSHORT
    run_fail 3 "$CHECK" --home h
    has "$stderr" "plugin 'libx' does not export 'rad_kernel_at'"
    run_fail 3 "$CHECK" --home h:no/such
    has "$stderr" "plugin home 'no/such'"
}

@test "plugin: the kind must be that of its folder" {
    plugin h/quantizers/x.so
    run_fail 3 "$CHECK" --home h
    has "$stderr" "'h/quantizers/x.so': plugin of kind 1, want 3 in 'quantizers'"
}

@test "plugin: an export that nothing serves is refused by name" {
    local x
    for x in text_prepare video_positions video_pack encode_geom chat_format audio_format; do
        plugin h/architectures/x.so -DARCH -DKIND=RAD_PLUGIN_ARCH -DEXTRA="\"rad_arch_$x\""
        run_fail 3 "$CHECK" --home h
        has "$stderr" "plugin 'libx' exports 'rad_arch_$x', which is not served"
    done
    plugin h/architectures/x.so -DARCH -DKIND=RAD_PLUGIN_ARCH -DIMPORTS=1
    run_fail 3 "$CHECK" --home h
    has "$stderr" "plugin 'libx': rad_arch_serves_imports"
    plugin h/architectures/x.so -DARCH -DKIND=RAD_PLUGIN_ARCH -DIMPORTS=0
    run_ok "$CHECK" --home h
}

# A field that is added to the deployment is served or refused, and tested.
@test "plugin: t/check/abi-check.c sets every field of a deployment" {
    local f n=0
    local h=$SRC/librad/rad/rad_builder.h
    for f in $(awk '/^typedef struct RadBuildCtx/, /^} RadBuildCtx/' "$h" |
        sed -n 's,/\*.*,,; s/^    \(const \)*[A-Za-z0-9_]* \**\(.*\);.*/\2/p' | tr -d ','); do
        [ "$f" != struct_size ] || continue
        n=$((n + 1))
        grep -Eq "(FIELD|PERMIT|TYPE)\($f,|ctx\.$f = " "$SRC/t/check/abi-check.c" ||
            { echo "not set: $f"; return 1; }
    done
    [ "$n" -ge 25 ] || { echo "only $n fields were found"; false; }
}

@test "plugin: open declines without an error, or fails with one" {
    plugin h/kernels/x.so -DOPEN=RAD_E_UNSUPPORTED
    run_ok "$CHECK" --home h
    [ -z "$output" ]
    plugin h/kernels/x.so -DOPEN=RAD_E_DEVICE
    run_fail 3 "$CHECK" --home h
    has "$stderr" "plugin 'libx' does not open"
}

@test "plugin: the first home wins a file name, --kernels names the order" {
    plugin a/kernels/x.so -DNAME='"libx"'
    plugin b/kernels/x.so -DNAME='"libother"'
    plugin b/kernels/a.so -DNAME='"liba"'
    run_ok "$CHECK" --home a:b
    [ "$output" = "b/kernels/a.so 0
a/kernels/x.so 1" ] || { echo "$output"; false; }
    run_ok "$CHECK" --home a:b libx,liba
    [ "$output" = "b/kernels/a.so 1
a/kernels/x.so 0" ] || { echo "$output"; false; }
    run_fail 3 "$CHECK" --home a:b libz
    has "$stderr" "no kernel library 'libz'"
    plugin b/kernels/y.so
    run_fail 3 "$CHECK" --home a:b
    has "$stderr" "'b/kernels/y.so': plugin name 'libx' is taken by 'a/kernels/x.so'"
}

@test "plugin: two sets that hold one file open it once and close it last" {
    plugin h/kernels/x.so -DCOUNT
    run_ok "$CHECK" --twice h
    [ "$output" = "opened
both
one
closed" ] || { echo "$output"; false; }
}
