# SPDX-License-Identifier: Apache-2.0
# The manual: SYNOPSIS is what --help says, options are those of the command,
# EXAMPLES run, cross references lead somewhere, mandoc has no complaint.
# (Op rows and rad-ops(7): t/40-ref.bats.)
load lib/common

commands() {
    local p
    for p in ${RAD_COMMANDS:-$(make -s -C "$BUILD" list-commands | tail -n 1)}; do
        basename "$p"
    done
}

# each FUNCTION: runs it for every command; all failures are shown.
each() {
    local c bad=0 n=0
    for c in $(commands); do
        n=$((n + 1))
        [ -f "$SRC/man/$c.1" ] || { echo "$c has no manual page"; bad=1; continue; }
        "$1" "$c" || bad=1
    done
    [ "$n" -gt 0 ] || { echo "no commands"; return 1; }
    return $bad
}

# rendered NAME PAGE: one section as text, long lines whole. Text is indented
# by 5, what .Dl displays by 11.
rendered() {
    mandoc -Tascii -Owidth=900 "$2" | sed "s,.$(printf '\b'),,g" |
        awk -v want="$1" '/^[A-Z]/ { on = $0 == want; next } on && NF'
}

# section NAME PAGE: the mdoc source of one section.
section() {
    awk -v want="$1" '/^\.Sh / { on = substr($0, 5) == want; next } on' "$2"
}

same_synopsis() {
    rendered SYNOPSIS "$SRC/man/$1.1" | awk '{ $1 = $1; print }' >man
    "$1" --help | awk '
        NF == 0 { exit }
        { sub(/^usage: */, ""); $1 = $1; print }' >help
    diff -u man help || { echo "$1: SYNOPSIS (-) is not what --help says (+)"; return 1; }
}

@test "docs: SYNOPSIS equals --help" {
    need_tool mandoc
    each same_synopsis
}

# Rows "-x --name ARG" of the items in a page's DESCRIPTION; `Fl -name` and
# `Fl Fl name` are the same. Options of other things, if ever, go elsewhere.
described() {
    section DESCRIPTION "$1" | awk '
        /^\.It Fl / {
            letter = name = "-"
            arg = ""
            for (i = 2; i <= NF; i++) {
                if ($i == "Fl") {
                    w = $(++i)
                    if (w == "Fl") w = "-" $(++i)
                    if (w ~ /^-/) name = substr(w, 2)
                    else letter = w
                } else if ($i == "Ar")
                    while (++i <= NF && $i != ",")
                        arg = arg (arg == "" ? "" : " ") $i
            }
            print letter, name, arg == "" ? "-" : arg
        }' | sort
}

same_options() {
    described "$SRC/man/$1.1" >man
    "$1" --dump-options | awk -F '\t' '$1 == "option" { gsub(/[][]/, "", $4); print $2, $3, $4 }' |
        sort >table
    [ -s table ] || { echo "$1: no options"; return 1; }
    diff -u man table || { echo "$1: the options described (-) are not those that are (+)"; return 1; }
    # and each with some words of its own
    section DESCRIPTION "$SRC/man/$1.1" | awk -v page="$1.1" '
        want && /^\.(It|El)/ { print page ": no text for " want; bad = 1 }
        { want = "" }
        /^\.It Fl / { want = $0 }
        END { exit bad }'
}

@test "docs: the options described are those of the command" {
    each same_options
}

@test "docs: mandoc warns about no page" {
    need_tool mandoc
    bad=0
    for p in "$SRC"/man/*.[1-8]; do
        # STYLE is not asked: it wants our other pages to be installed
        mandoc -Tlint -Wwarning "$p" || bad=1
    done
    [ $bad -eq 0 ]
}

@test "docs: a page is installed, and what it refers to of ours exists" {
    bad=0
    for p in "$SRC"/man/*.[1-8]; do
        grep -qw "man/$(basename "$p")" "$SRC/man/local.mk" ||
            { echo "man/local.mk lacks $(basename "$p")"; bad=1; }
        while read -r name sec; do
            [ -f "$SRC/man/$name.$sec" ] || { echo "$p: no $name($sec)"; bad=1; }
        done < <(sed -n 's/^\.Xr \(rad[a-z0-9-]*\) \([1-8]\).*/\1 \2/p' "$p")
    done
    [ $bad -eq 0 ]
}

# ---- EXAMPLES. They run in a folder that has the files they name.
golden=llama
prepare_examples() {
    need_fixtures golden/unpack.sh
    need_tool rad-convert radiance curl jq zstd
    sh "$FIXTURES/golden/unpack.sh" golden "$golden" >/dev/null
    mkdir sandbox
    cd sandbox
    cp -r "../golden/$golden" checkpoint
    cp checkpoint/tokenizer.json .
    rad-convert -q checkpoint -o model.rad
    cp model.rad m.rad
    cp "$SRC/t/golden/enc/q4_0.gguf" .
    head -c 20000 "$SRC/man/rad.5" >corpus.txt
    head -c 2000 corpus.txt >text.txt
    cp text.txt prompt.txt
    printf 'blk.*.ffn_*.weight  rtn codes=i8 group=32 scale=bf16\n' >recipe
    cp -L "$RADIANCE_HOME/kernels/libref.so" .
    cp libref.so libmine.so
    # nothing leaves the machine: ssh HOST COMMAND runs it here
    mkdir bin
    printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >bin/ssh
    chmod +x bin/ssh
    PATH=$PWD/bin:$PATH
}

free_port() {
    local p
    for p in $(shuf -i 20000-32000 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo "$p"; return; }
    done
    return 1
}

# A `radiance` that neither generates nor only prints is a server: it runs until
# the page's examples have, and must then stop cleanly.
is_server() {
    [[ $1 == radiance\ * && ! $1 =~ (\|| -p | --prompt| --score| --plan| --debug-graph| --help| --version) ]]
}
start_server() {
    bash -c "exec $1" >server.out 2>server.err 3>&- &
    server=$!
    for _ in $(seq 300); do
        curl -fsS "http://127.0.0.1:$port/health" >/dev/null 2>&1 && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat server.err
    return 1
}
stop_server() {
    [ -n "${server:-}" ] || return 0
    kill -TERM "$server"
    wait "$server" || { echo "the server ended with $?"; cat server.err; return 1; }
    server=
}
teardown() {
    [ -z "${server:-}" ] || kill -KILL "$server" 2>/dev/null || true
}

# run_examples PAGE: each line of its EXAMPLES, in order; says which failed.
run_examples() {
    local line bad=0 n=0 port
    port=$(free_port)
    while IFS= read -r line; do
        n=$((n + 1))
        line=${line//8000/$port}
        if is_server "$line"; then
            stop_server && start_server "$line" || { echo "failed: $line"; bad=1; }
        elif ! timeout 60 bash -eo pipefail -c "$line" >out 2>err </dev/null; then
            echo "failed: $line"
            tail -n 5 err
            bad=1
        fi
    done < <(rendered EXAMPLES "$1" | sed -n 's/^           \([^ ]\)/\1/p')
    stop_server || bad=1
    [ "$n" -gt 0 ] || { echo "$1 has no examples"; bad=1; }
    return $bad
}

@test "docs: the examples of every command's page run" {
    prepare_examples
    bad=0
    for c in $(commands); do
        run_examples "$SRC/man/$c.1" || { echo "-- in $c.1"; bad=1; }
    done
    [ $bad -eq 0 ]
}

@test "docs: an example that fails is seen" {
    need_tool mandoc
    head='.Dd May 1, 2026\n.Dt X 1\n.Os\n.Sh EXAMPLES\n'
    printf "$head"'true:\n.Dl test \\(dqx y\\(dq = \\(dqx y\\(dq\n.Dl false | cat\n.Sh AUTHORS\n.Dl exit 1\n' >page
    run run_examples page
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "failed: false | cat" ]
    ! grep -q 'exit 1' <<<"$output"
    printf "$head"'none\n' >page
    run run_examples page
    [ "$status" -eq 1 ]
}

@test "docs: README names what is there" {
    bad=0
    for p in $(grep -oE '`(scripts|man|t|librad|cmd|kernels|arch|contrib)/[A-Za-z0-9_./-]*`' \
        "$SRC/README.md" | tr -d '`' | sort -u); do
        [ -e "$SRC/${p%/}" ] || { echo "README.md names '$p'"; bad=1; }
    done
    for t in $(sed -n 's/^Model types: *//p' "$SRC/README.md" | tr -d '`,.'); do
        [ -f "$SRC/arch/maps/$t.json" ] || { echo "README.md serves '$t'"; bad=1; }
    done
    for c in $(commands); do
        grep -qw -- "$c" "$SRC/README.md" || { echo "README.md lacks $c"; bad=1; }
    done
    [ $bad -eq 0 ]
}
