# SPDX-License-Identifier: Apache-2.0
# The source itself: layers, exported names, headers that stand alone.
load lib/common

@test "source: scripts/lint finds nothing" {
    run_ok "$SRC/scripts/lint" "$SRC"
}

@test "source: scripts/lint sees a broken layer, a missing licence, a path" {
    mkdir -p librad/base cmd kernels/x arch/maps man scripts t contrib
    touch Makefile.am
    echo 'int x;' > kernels/x/a.c
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "base/base.h"\n' > cmd/b.c
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* %s */\n' "/wo""rk/x" > cmd/c.h
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <stdio.h>\nint f(void)\n{\n}\n' > librad/base/d.c
    touch arch/maps/hf_rope.json arch/maps/hal9.json arch/maps/gguf_eliza.json
    printf '/* hal9 */\nint rope;\n#define X "hal9"\nint eliza_n; /* hal9 */\n' > librad/base/e.h
    run_fail 1 "$SRC/scripts/lint" "$TMP"
    has "$output" 'librad/base/e.h:3: names the model type "hal9"'
    has "$output" 'librad/base/e.h:4: names the model type "eliza"'
    [ "$(grep -c 'model type' <<<"$output")" -eq 2 ] || { echo "$output"; false; }
    has "$output" "kernels/x/a.c:1: no SPDX line"
    has "$output" "kernels/x/a.c:1: stands in no local.mk"
    has "$output" 'cmd/b.c:2: "base/base.h" is private to librad'
    has "$output" "cmd/c.h:2: path of a machine"
    has "$output" "librad/base/d.c:1: does not include banned.h last"
}

# Names that a shared object defines and that are not ours to export; what
# sanitizers add does not count.
foreign_names() {
    nm -D --defined-only "$1" | awk '
        $2 ~ /^[A-Z]$/ && $3 !~ /^(rad_|_init$|_fini$|__(asan|odr_asan|ubsan|tsan))/ { print $3 }'
}

@test "source: librad.so exports rad_ names only" {
    need_tool nm
    lib=$BUILD/librad/.libs/librad.so
    run_ok nm -D --defined-only "$lib"
    has "$output" " T rad_fail"
    run_ok foreign_names "$lib"
    [ -z "$output" ] || { echo "$output"; false; }
}

@test "source: plugins export rad_ names only" {
    need_tool nm
    for so in "$RADIANCE_HOME"/{kernels,architectures,quantizers}/*.so; do
        [ -e "$so" ] || continue
        run_ok foreign_names "$so"
        [ -z "$output" ] || { echo "$so: $output"; false; }
    done
}

headers_alone() {
    local h n=0
    for h in "$SRC"/librad/rad/*.h; do
        echo "#include <rad/$(basename "$h")>" |
            "$@" -std=gnu17 -Wall -Wextra -Wundef -Wstrict-prototypes \
                -Werror -fsyntax-only -I"$SRC/librad" -x c -
        n=$((n + 1))
    done
    [ "$n" -ge 5 ]
}

# The leak checker dies of variables of a thread in what dlopen brings.
@test "source: plugins keep nothing in thread-local storage" {
    need_tool readelf
    bad=0 n=0
    for f in "$RADIANCE_HOME"/*/*.so; do
        n=$((n + 1))
        if readelf -lW "$f" | grep -q '^ *TLS '; then
            echo "$f has thread-local variables"
            bad=1
        fi
    done
    [ $bad -eq 0 ] && [ $n -gt 0 ]
}

@test "source: every public header compiles alone with gcc" {
    need_tool gcc
    headers_alone gcc
}

@test "source: every public header compiles alone with clang" {
    for v in '' -14 -15 -16 -17 -18 -19; do
        clang=$(command -v "clang$v") && break
    done
    [ -n "$clang" ] || skip "no clang"
    headers_alone "$clang"
}

@test "source: every public header is installed" {
    for h in "$SRC"/librad/rad/*.h; do
        cat "$SRC"/librad/local.mk "$SRC"/librad/*/local.mk |
            grep -q "librad/rad/$(basename "$h")" || {
            echo "$(basename "$h") is not in radinclude_HEADERS"
            false
        }
    done
}

@test "source: every test, fuzz target and script is in a local.mk" {
    bad=0
    cd "$SRC"
    for f in t/*.bats t/fuzz/fuzz-*.c scripts/* man/*.[1-8]; do
        [ "$f" = scripts/local.mk ] || cat ./*/local.mk | grep -qF "$f" ||
            { echo "$f is in no local.mk"; bad=1; }
    done
    for f in t/fuzz/fuzz-*.c; do
        f=${f%.c}
        grep -qx "noinst_PROGRAMS += $f" t/local.mk || { echo "$f is not built"; bad=1; }
    done
    [ $bad -eq 0 ]
}
