# SPDX-License-Identifier: Apache-2.0
# rad-schemas: one plugin's vocabulary, and where two disagree.
load lib/common

setup() {
    common_setup
    REF=$RADIANCE_HOME/kernels/libref.so
}

# plugin FILE NAME SCHEMA: a kernel plugin of one op, the rest being C text.
plugin() {
    cat >p.c <<END
/* SPDX-License-Identifier: Apache-2.0 */
#include <rad/rad_kernel.h>
uint32_t rad_plugin_abi_version(void) { return ${ABI:-RAD_ABI_VERSION}; }
static const RadPluginInfo info = { sizeof info, RAD_PLUGIN_KERNEL, "$2", "1", "a test", "" };
const RadPluginInfo *rad_plugin_info(void) { return &info; }
$3
int rad_kernel_schema_count(void) { return 1; }
const RadOpSchema *rad_kernel_schema_at(int i) { return i ? 0 : &schema; }
int rad_kernel_count(void) { return 0; }
const RadKernelRow *rad_kernel_at(int i) { return (void)i, (const RadKernelRow *)0; }
END
    ${RAD_CC:-cc} -shared -fPIC -I"$SRC/librad" -o "$1" p.c
}

# silu PARAMS OPERANDS
silu() {
    echo "static const RadParamSpec p[] = { $1 };
static const RadOperandSpec o[] = { $2 };
static const RadOpSchema schema = { sizeof schema, \"silu\", p, sizeof p / sizeof p[0],
    o, sizeof o / sizeof o[0], 1e-5, \"y = silu(x)\" };"
}
PARAMS='{ "M", RAD_PK_RANGE, 1, 0 }, { "n", RAD_PK_INT, 1, 0 }, { "dtype", RAD_PK_STR, 1, 0 }'
OPERANDS='{ "x", RAD_OPD_IN, 0 }, { "y", RAD_OPD_OUT, 0 }'

@test "rad-schemas: prints every op of the reference library" {
    run_ok rad-schemas "$REF"
    has "$output" "libref 0.1.0, "
    has "$output" "
rmsnorm
  y[T,n] = x[T,n] * (w[n] + wadd) / sqrt(mean(x[t]^2) + eps)
  params   M:range n:int eps:real dtype:str wadd:real?
  operands x:in w:weight? y:out"
    has "$output" "block_size:int(derived)"
    for op in $(sed -n 's/^RAD_OP(\([a-z0-9_]*\),.*/\1/p' "$SRC/kernels/ref/ops.def"); do
        has "$output" "
$op
"
    done
    lacks "$output" "row "
    run_ok rad-schemas -v "$REF"
    has "$output" "row rope_any_any_u1_ref host"
    has "$output" "gives block_size=16"
}

@test "rad-schemas: --json holds the same" {
    need_tool jq
    rad-schemas --json "$REF" >s.json
    run_ok jq -r '.plugins[0].ops | map(.op) | join(" ")' s.json
    [ "$output" = "$(sed -n 's/^RAD_OP(\([a-z0-9_]*\),.*/\1/p' "$SRC/kernels/ref/ops.def" |
        paste -sd' ')" ]
    run_ok jq -c '.plugins[0].ops[] | select(.op == "attn_paged") | .params[] |
        select(.need == "derived")' s.json
    [ "$output" = '{"name":"block_size","type":"int","need":"derived"}' ]
    run_ok jq '.conflicts + (.differences | length)' s.json
    [ "$output" = 0 ]
}

@test "rad-schemas: files that agree are exit 0, whatever the order of parameters" {
    turned="${PARAMS#*, *, *, *, }, { \"M\", RAD_PK_RANGE, 1, 0 }"
    plugin same.so same "$(silu "$turned" "$OPERANDS")"
    run_ok rad-schemas "$REF" same.so
    [ "$output" = "1 ops in more than one plugin, 0 disagree" ]
}

@test "rad-schemas: a conflict is exit 1 and named" {
    plugin other.so other "$(silu "$PARAMS, { \"fast\", RAD_PK_INT, 0, 0 }" \
        '{ "x", RAD_OPD_IN, 0 }, { "s", RAD_OPD_IN, 1 }, { "y", RAD_OPD_OUT, 0 }')"
    run_fail 1 rad-schemas "$REF" other.so
    [ "$output" = "silu: parameter 'fast': libref has none, other has optional int
silu: operand '1': libref has 'y' out, other has 's' in, optional
silu: operand '2': libref has none, other has 'y' out
1 ops in more than one plugin, 1 disagree" ] || { show_run; false; }
    need_tool jq
    rad-schemas --json "$REF" other.so >s.json || [ $? -eq 1 ]
    run_ok jq -c '[.conflicts, (.differences | length), .differences[0].name]' s.json
    [ "$output" = '[1,3,"fast"]' ]
}

@test "rad-schemas: what is no kernel plugin is exit 3 and named" {
    run_fail 3 rad-schemas nothing.so
    has "$stderr" "nothing.so"
    echo no >text.so
    run_fail 3 rad-schemas text.so
    has "$stderr" "text.so"
    run_fail 3 rad-schemas "$RADIANCE_HOME/quantizers/libquant.so"
    has "$stderr" "libquant.so"
    ABI=99 plugin old.so old "$(silu "$PARAMS" "$OPERANDS")"
    run_fail 3 rad-schemas old.so
    has "$stderr" "99"
    run_fail 2 rad-schemas
}
