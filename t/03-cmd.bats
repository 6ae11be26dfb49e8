# SPDX-License-Identifier: Apache-2.0
# What all commands share (cmd/cmd.h), shown on t/helper/cmd-probe.
load lib/common

@test "cmd: --help goes to stdout and lists every row of the table" {
    run_ok cmd-probe --help
    [ -z "$stderr" ]
    [ "${lines[0]}" = "usage: cmd-probe [-qv] [-p FILE] ARG..." ]
    [ "${lines[1]}" = "       cmd-probe [-qv] -o FILE hang|flood" ]
    [ "${lines[2]}" = "show how commands behave" ]
    has "$output" "  -p, --plugin=FILE      list the kernels of a plugin"
    has "$output" "  -n N                   a number from 1 to 9"
    has "$output" "      --top[=N]          the first N"
    has "$output" "  -h, --help             show this help"
    lacks "$output" dump-options
    run_ok cmd-probe --version
    [[ $output =~ ^cmd-probe\ \(radiance\)\ [0-9]+\.[0-9]+ ]]
}

@test "cmd: options reach the command, '-' and '--' are arguments" {
    run_ok cmd-probe -p a --plugin=b --top --top=4 -n7 --rate .5 --json -q - -- -x
    [ "$output" = "option 112 a
option 112 b
option 257 -
option 257 4
n 7
rate 0.5
option 900 -
arg -
arg -x" ]
    [ -z "$stderr" ]
}

bad() { # WANT ARG...
    local want=$1
    shift
    run_fail 2 cmd-probe "$@"
    [ "$stderr" = "cmd-probe: $want
try 'cmd-probe --help'" ] || { show_run "$@"; return 1; }
    [ -z "$output" ]
}

@test "cmd: a bad option is exit 2 and one line that names it" {
    bad "unknown option '--plugon'" --plugon=3 x
    bad "unknown option '-x'" -qx x
    bad "option '-p' wants an argument" -p
    bad "option '--plugin' wants an argument" --plugin
    bad "option '--json' takes no argument" --json=3 x
    bad "-n '0': want a whole number from 1 to 9" -n 0 x
    bad "-n '3x': want a whole number from 1 to 9" -n 3x x
    bad "--rate 'nan': want a number from 0 to 1" --rate=nan x
    bad "an argument is missing"
    bad "unexpected argument 'd'" a b c d
}

@test "cmd: exit 1 when the check says no" {
    run_fail 1 cmd-probe no
}

@test "cmd: a full disk is exit 3, not silence" {
    [ -w /dev/full ] || skip "no /dev/full"
    full() { cmd-probe "$@" > /dev/full; }
    run_fail 3 full x
    [ "${stderr_lines[-1]}" = "cmd-probe: stdout: No space left on device" ]
    run_fail 3 full --help
    run_fail 3 full --version
}

@test "cmd: -q, -v and RAD_LOG select what is said" {
    run_ok cmd-probe x
    [ "$stderr" = "cmd-probe: warning: probe: a warning" ]
    run_ok cmd-probe -q x
    [ -z "$stderr" ]
    run_ok cmd-probe -v x
    has "$stderr" "cmd-probe: probe: an info line?[31m"
    lacks "$stderr" "a debug line"
    run_ok cmd-probe -vv x
    has "$stderr" "cmd-probe: debug: probe: a debug line"
    RAD_LOG=probe:debug run_ok cmd-probe x
    has "$stderr" "a debug line"
    RAD_LOG=other:debug run_ok cmd-probe x
    lacks "$stderr" "a debug line"
    RAD_LOG=loud run_fail 2 cmd-probe x
    has "$stderr" "RAD_LOG: log level 'loud'"
}

# signalled SIGNAL TEXT: a command that writes a file is stopped half-way.
signalled() {
    local i pid rc=0
    cmd-probe -q -o out hang > said 2> err 3>&- &
    pid=$!
    for ((i = 0; i < 200; i++)); do
        [ -s said ] && break
        sleep 0.05
    done
    [ -n "$(ls out.tmp.* 2>/dev/null)" ]
    pid=$(ls out.tmp.* | sed 's/.*\.//')     # below a libtool wrapper
    kill -"$1" "$pid"
    wait $! || rc=$?
    [ "$rc" -eq $((128 + $(kill -l "$1"))) ] || { echo "exit $rc"; return 1; }
    [ "$(cat err)" = "cmd-probe: $2, partial file removed" ] || { cat err; return 1; }
    [ "$(echo *)" = "err said" ]
}

@test "cmd: SIGTERM removes the partial file and says so" {
    signalled TERM terminated
}

@test "cmd: SIGHUP removes the partial file and says so" {
    signalled HUP "hung up"
}

@test "cmd: Ctrl-C removes the partial file and says so" {
    # a background job ignores SIGINT, so let timeout send it
    run_split timeout -s INT --preserve-status 2 cmd-probe -q -o out hang
    [ "$status" -eq 130 ]
    [ "$stderr" = "cmd-probe: interrupted, partial file removed" ]
    [ -z "$(ls)" ]
}

@test "cmd: a closed pipe stops the writer, which says so" {
    closed() { set -o pipefail; cmd-probe -q -o - flood | head -c 10 > /dev/null; }
    run_fail 141 closed
    [ "$stderr" = "cmd-probe: the reader of stdout went away" ]
}

@test "cmd: a target that fills up leaves no partial file" {
    small() { ulimit -f 64; trap '' XFSZ; cmd-probe -q -o out flood; }
    run_fail 3 small
    [[ $stderr == "cmd-probe: 'out': write at byte "*": File too large" ]]
    [ -z "$(ls)" ]
}

@test "cmd: no progress line when stderr is not a terminal" {
    small() { ulimit -f 4096; trap '' XFSZ; cmd-probe -o out flood; }
    run_fail 3 small
    lacks "$stderr" "MiB"
}

@test "cmd: completions offer each option and complete words and files" {
    cmd-probe --dump-options > opts
    "$SRC/scripts/mkcomplete" bash < opts > comp.bash
    touch file.gguf
    cat > drive <<'END'
source ./comp.bash
complete -p cmd-probe
try() { COMP_WORDS=(cmd-probe "$@"); COMP_CWORD=$#; COMPREPLY=(); _cmd_probe; echo "$*: ${COMPREPLY[*]}"; }
try --pl
try --mode fa
try --mode = e
try --plugin fil
try --seed fil
try -
try fi
END
    run_ok bash --norc drive
    has "$output" "--pl: --plugin="
    has "$output" "--mode fa: fast"
    has "$output" "--mode = e: exact"
    has "$output" "--plugin fil: file.gguf"
    has "$output" "--seed fil: "
    lacks "$output" "--seed fil: file"
    has "$output" " -n "
    has "$output" "fi: file.gguf"
    "$SRC/scripts/mkcomplete" zsh < opts > _cmd-probe
    [ "$(head -1 _cmd-probe)" = "#compdef cmd-probe" ]
    grep -qF "'(-p --plugin)'{-p+,--plugin=}'[list the kernels of a plugin]:FILE:_files'" _cmd-probe
    grep -qF "'--mode=[how\\: it'\\''s \\[either\\] way]:fast|exact:(fast exact)'" _cmd-probe
    grep -qF "'*'{-v,--verbose}" _cmd-probe
    if command -v zsh > /dev/null; then zsh -n _cmd-probe; fi
}
