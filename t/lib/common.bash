# SPDX-License-Identifier: Apache-2.0
# What every t/*.bats loads: where things are, run_ok and run_fail, fixtures.
#
# `make check` says where the trees are; by hand, run bats in a build tree:
#     cd BUILD && bats SRC/t/02-source.bats
# Each test starts in its own empty folder, $TMP, and finds the programs of the
# build tree first on PATH and its plugins and data through RADIANCE_HOME.
bats_require_minimum_version 1.5.0

SRC=${RAD_SRCDIR:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}
if [ -z "${BUILD:=${RAD_BUILDDIR:-}}" ]; then
    if [ -f config.status ]; then
        BUILD=$PWD
    elif [ -f "$SRC/config.status" ]; then
        BUILD=$SRC
    else
        echo "run bats in a build tree, or set RAD_BUILDDIR" >&2
        exit 1
    fi
fi
PATH=$BUILD/cmd:$BUILD/cmd/radiance:$BUILD/t/helper:$PATH
RADIANCE_HOME=$BUILD/home
BAD=$SRC/t/bad
export SRC BUILD PATH RADIANCE_HOME BAD
export LC_ALL=C TZ=UTC
unset RAD_LOG

setup() {
    common_setup
}

# For files with a setup of their own.
common_setup() {
    TMP=$BATS_TEST_TMPDIR/work        # bats keeps a file in the folder above
    export TMP
    mkdir -p "$TMP"
    cd "$TMP"
}

# run_split COMMAND...: $status, $output (stdout) and $stderr, whole.
run_split() {
    run --separate-stderr "$@"
}

# What a failed expectation shows.
show_run() {
    printf 'command: %s\nexit: %s\nstdout: %s\nstderr: %s\n' \
        "$*" "$status" "$output" "${stderr:-}"
}

# run_ok COMMAND...: exit 0, or the test fails.
run_ok() {
    run_split "$@"
    [ "$status" -eq 0 ] || { show_run "$@"; return 1; }
}

# run_fail CODE COMMAND...: exits with exactly CODE, and says something on
# stderr unless CODE is 1 (a check that says no may be silent).
run_fail() {
    local want=$1
    shift
    run_split "$@"
    [ "$status" -eq "$want" ] || {
        echo "want exit $want"
        show_run "$@"
        return 1
    }
    [ "$want" -eq 1 ] || [ -n "$stderr" ] || {
        echo "failed without a message"
        show_run "$@"
        return 1
    }
}

# has TEXT PART, lacks TEXT PART: substrings, shown when they fail.
has() {
    [[ $1 == *"$2"* ]] || { printf 'want "%s" in:\n%s\n' "$2" "$1"; return 1; }
}
lacks() {
    [[ $1 != *"$2"* ]] || { printf 'want no "%s" in:\n%s\n' "$2" "$1"; return 1; }
}

# need_fixtures [PATH...]: sets $FIXTURES to the folder of shared test data, or
# skips when it, or a path in it, is not there.
need_fixtures() {
    local p
    FIXTURES=${RAD_FIXTURES:-$SRC/../shared}
    [ -d "$FIXTURES" ] || skip "no test data: set RAD_FIXTURES"
    FIXTURES=$(cd "$FIXTURES" && pwd)
    for p; do
        [ -e "$FIXTURES/$p" ] || skip "no '$p' in RAD_FIXTURES"
    done
}

# need_tool NAME...: skips when a program is not installed (or not built).
need_tool() {
    local t
    for t; do
        command -v "$t" >/dev/null || skip "no program '$t'"
    done
}

# Sanitizers of this build, or "no".
sanitizers() {
    sed -n 's/^SANITIZERS = //p' "$BUILD/Makefile"
}
