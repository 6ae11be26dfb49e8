# SPDX-License-Identifier: Apache-2.0
# Every command: help, version, a bad option, a full disk, completions.
load lib/common

# each FUNCTION: runs it for each installed command of this build.
each() {
    local p n=0
    for p in ${RAD_COMMANDS:-$(make -s -C "$BUILD" list-commands)}; do
        "$1" "$(basename "$p")"
        n=$((n + 1))
    done
    [ "$n" -gt 0 ] || skip "no commands yet"
}

helps() {
    run_ok "$1" --help
    [ -z "$stderr" ]
    [[ ${lines[0]} == "usage: $1"* ]] || { show_run "$1" --help; return 1; }
    has "$output" "-h, --help"
    run_ok "$1" --version
    [[ $output =~ ^$1\ .*[0-9]+\.[0-9]+ ]]
}
@test "smoke: --help and --version go to stdout, exit 0" {
    each helps
}

refuses() {
    run_fail 2 "$1" --no-such-option
    [ "$stderr" = "$1: unknown option '--no-such-option'
try '$1 --help'" ] || { show_run "$1"; return 1; }
    [ -z "$output" ]
}
@test "smoke: a bad option is exit 2 and named" {
    each refuses
}

fills() {
    full() { "$@" > /dev/full; }
    run_fail 3 full "$1" --help
    has "$stderr" "$1: stdout: No space left on device"
}
@test "smoke: a full disk is exit 3 and said" {
    [ -w /dev/full ] || skip "no /dev/full"
    each fills
}

completes() {
    for f in bash/"$1" zsh/_"$1"; do
        [ -s "$BUILD/contrib/completion/$f" ] || { echo "no completion $f"; return 1; }
    done
    bash -n "$BUILD/contrib/completion/bash/$1"
}
@test "smoke: bash and zsh completions are made" {
    each completes
}
