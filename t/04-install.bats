# SPDX-License-Identifier: Apache-2.0
# The installed tree: make install into an empty folder, and everything in it
# works from there. Slow, so only with RAD_SLOW=1, as scripts/check sets it.
load lib/common

setup_file() {
    [ "${RAD_SLOW:-}" = 1 ] || return 0
    build=${RAD_BUILDDIR:-$PWD}
    export ROOT=$BATS_FILE_TMPDIR/root
    # the flags of the make that runs these tests are not for this one
    env -u MAKEFLAGS -u MFLAGS make -s -C "$build" install DESTDIR="$ROOT" \
        >"$BATS_FILE_TMPDIR/install.log" 2>&1 || {
        tail -20 "$BATS_FILE_TMPDIR/install.log" >&2
        return 1
    }
}

# var NAME: a directory as the build was configured, below DESTDIR.
var() {
    local v
    v=$(printf 'include %s/Makefile\nshow-%s:\n\t@echo $(%s)\n' "$BUILD" "$1" "$1" |
        env -u MAKEFLAGS -u MFLAGS make -s -C "$BUILD" -f - "show-$1" 2>/dev/null | tail -n 1)
    [ -n "$v" ] && echo "$ROOT$v"
}

setup() {
    common_setup
    [ "${RAD_SLOW:-}" = 1 ] || skip "slow: set RAD_SLOW=1"
    [ "$(sanitizers)" = no ] || skip "sanitizers: the build is not for installing"
    bindir=$(var bindir) libdir=$(var libdir) data=$(var pkgdatadir)
    PATH=$bindir:${PATH#*:*:*:}          # not the build tree's programs
    export LD_LIBRARY_PATH=$libdir
    # DESTDIR is no place to run from, so tell where the plugins are
    export RADIANCE_HOME=$data
}

@test "install: programs, plugins, data, pages, completions are there" {
    bad=0
    for p in ${RAD_COMMANDS:-$(make -s -C "$BUILD" list-commands | tail -n 1)}; do
        c=$(basename "$p")
        for f in "$bindir/$c" "$(var mandir)/man1/$c.1" \
            "$(var datadir)/bash-completion/completions/$c" "$(var datadir)/zsh/site-functions/_$c"; do
            [ -s "$f" ] || { echo "not installed: $f"; bad=1; }
        done
        run_ok "$bindir/$c" --version
        [ "$(command -v "$c")" = "$bindir/$c" ] || { echo "$c is found elsewhere"; bad=1; }
    done
    for f in "$BUILD"/home/*/*; do
        [ -s "$data${f#"$BUILD/home"}" ] || { echo "not installed: ${f#"$BUILD/"}"; bad=1; }
    done
    for f in "$SRC"/man/*.[1-8]; do
        [ -s "$(var mandir)/man${f##*.}/$(basename "$f")" ] || { echo "not installed: $f"; bad=1; }
    done
    for f in "$SRC"/librad/rad/*.h; do
        [ -s "$(var includedir)/rad/$(basename "$f")" ] || { echo "not installed: $f"; bad=1; }
    done
    [ $bad -eq 0 ]
}

@test "install: the library is found with pkg-config and links" {
    need_tool pkg-config cc
    cat >five.c <<'END'
#include <stdio.h>
#include <rad/status.h>
int main(void) { puts(rad_strstatus(RAD_OK)); return 0; }
END
    export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ROOT
    run_ok pkg-config --modversion radiance
    cc -Wall -Werror five.c $(pkg-config --cflags --libs radiance) -o five
    run_ok ./five
    [ -n "$output" ]
}

@test "install: a plugin compiles against the installed headers alone" {
    need_tool cc
    cat >p.c <<'END'
#include <rad/rad_plugin.h>
#include <rad/rad_kernel.h>
#include <rad/rad_builder.h>
int rad_unused;
END
    cc -std=gnu17 -Wall -Werror -shared -fPIC -I"$(var includedir)" p.c -o p.so
}

@test "install: installed programs convert, verify and generate" {
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" . llama >/dev/null
    run_ok rad-convert -q llama -o m.rad
    run_ok rad-info --verify m.rad
    run_ok radiance -q -m m.rad -p abc -n 4 --temp 0
    [ -n "$output" ]
}

# An architecture from outside: built with the installed headers alone, put in
# a home of its own beside the installed rest. It converts the checkpoint with
# its own name map, and its text is that of the plugin that was shipped.
@test "install: a hand-written architecture plugin builds, converts and runs" {
    need_tool cc
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" . llama >/dev/null
    mkdir -p out/architectures
    cc -std=gnu17 -Wall -Wextra -Werror -shared -fPIC -I"$(var includedir)" \
        "$SRC/t/check/seed-arch.c" -o out/architectures/seed.so
    for d in kernels quantizers maps circuits blocks; do
        ln -s "$data/$d" "out/$d"
    done
    run_ok rad-convert -q llama -o want.rad
    run_ok radiance -q -m want.rad -p abc -n 8 --temp 0
    want=$output
    [ -n "$want" ]
    RADIANCE_HOME=$PWD/out
    run_ok rad-convert -q llama -o own.rad
    run_ok rad-info own.rad
    has "$(rad-info --json own.rad)" "attn_qkv.weight"
    run_ok radiance -q -m own.rad -p abc -n 8 --temp 0
    [ "$output" = "$want" ] || { echo "'$output', want '$want'"; false; }
}

@test "install: uninstall leaves no file" {
    run_ok env -u MAKEFLAGS -u MFLAGS make -s -C "$BUILD" uninstall DESTDIR="$ROOT"
    run_ok find "$ROOT" ! -type d
    [ -z "$output" ] || { echo "$output"; false; }
}
