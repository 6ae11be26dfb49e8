# SPDX-License-Identifier: Apache-2.0
# The container as commands see it. Its rules one by one: t/check/container-check.
load lib/common

setup() {
    common_setup
    CHECK=$BUILD/t/check/container-check
    [ -x "$CHECK" ] || skip "container-check is not built"
    "$CHECK" write m.rad
}

# flip FILE OFFSET: changes one bit.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 4)))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

@test "rad-info: header, sections, experts, totals" {
    run_ok rad-info m.rad
    has "$output" "architecture  llama"
    has "$output" "source        (none)"
    has "$output" "revision      commit 1234"
    has "$output" "strings                    248"
    has "$output" "3 experts x 2 slots, 2109440 + id * 8192, payload 864, padding 7328"
    has "$output" "7 weights             3744 bytes  90.70 %  i4*bf16[1x32]/fwht32"
    has "$output" "2 weights              384 bytes   9.30 %  checkpoint"
    has "$output" "vocab: bpe, 4 tokens, 2 merges, 14 bytes of template, 1 steps"
    lacks "$output" "blk.0.attn_q.weight"
}

@test "rad-info -v: weights and planes" {
    run_ok rad-info -v m.rad
    has "$output" "blk.0.attn_q.weight  i4*bf16[1x32]/fwht32  32x64  1152 bytes @2105344  rtn codes=i4,group=32"
    has "$output" "scale      bf16      128 bytes @2106368"
}

@test "rad-info: --meta --vocab --profile --recipe print their block only" {
    run_ok rad-info --meta m.rad
    [ "$output" = "n_layers = 1
rms_eps = 1.0000000000000001e-05
model_type = llama" ]
    run_ok rad-info --vocab m.rad
    has "$output" "normal                4 tokens"
    has "$output" "pre-tokenizer  byte-level"
    run_ok rad-info --profile=1 m.rad
    has "$output" "50.000"
    [ "${#lines[@]}" -eq 2 ]
    run_ok rad-info --recipe m.rad
    [ "$output" = "* rtn codes=i4" ]
}

@test "rad-info --json: one object that jq reads" {
    run_ok rad-info --json m.rad
    need_tool jq
    run_ok jq -r '.weights[2].name, .encodings[.weights[2].encoding].text,
        (.metadata.rms_eps == 1e-5), .vocab.tokens, .expert_groups[0].stride,
        .weights[2].planes[1].bytes' <<< "$output"
    [ "$output" = "blk.0.attn_q.weight
i4*bf16[1x32]/fwht32
true
4
8192
128" ]
}

@test "rad-info: stdin and zstd" {
    rad-info m.rad > want
    rad-info - < m.rad > got
    cmp want got
    "$CHECK" write - | rad-info - > got
    cmp want got
    need_tool zstd
    zstd -q m.rad
    rad-info m.rad.zst > got
    cmp want got
    zstd -qdc m.rad.zst | zstd -qc | rad-info --json - > json
    rad-info --json m.rad > json2
    cmp json json2
}

@test "container: equal calls give equal bytes, to a file and to a pipe" {
    "$CHECK" write again.rad
    cmp m.rad again.rad
    "$CHECK" write - | cmp - m.rad
}

@test "rad-info --verify: 0, and 1 after one flipped bit" {
    run_ok rad-info --verify m.rad
    has "$output" "verified: 9 tables, 16 planes"
    size=$(wc -c < m.rad)
    for at in 20 300 700 2000 2106368 1000000 2134080 $((size - 1)); do
        cp m.rad x.rad
        flip x.rad "$at"
        run_fail 1 rad-info --verify x.rad
        has "$stderr" "'x.rad': "
    done
    cp m.rad x.rad
    flip x.rad 2106368
    run_fail 1 rad-info --verify x.rad
    has "$stderr" "weight 'blk.0.attn_q.weight': plane 'scale': digest differs"
    run_fail 1 rad-info --verify --json x.rad
    has "$output" '"verified":false'
    run_ok rad-info x.rad
}

@test "rad-info --verify --key: signed by whom" {
    need_tool openssl
    openssl genpkey -algorithm ed25519 -out key.pem 2>/dev/null
    run_fail 1 rad-info --verify --key=key.pem m.rad
    has "$stderr" "not signed"
    run_fail 2 rad-info --key=key.pem m.rad
    run_fail 3 rad-info --verify --key=none.pem m.rad
}

@test "rad-info: a cut file and a file of another kind name file and field" {
    head -c 200 m.rad > x.rad
    run_fail 3 rad-info x.rad
    [ "$stderr" = "rad-info: 'x.rad': header: 200 bytes, want at least 248" ]
    head -c 3000 m.rad > x.rad
    run_fail 3 rad-info x.rad
    has "$stderr" "'x.rad': file_bytes: 2135008, but the file has 3000"
    run_fail 3 rad-info /etc/passwd
    has "$stderr" "'/etc/passwd': magic: "
    : > x.rad
    run_fail 3 rad-info x.rad
    has "$stderr" "'x.rad': header: 0 bytes"
    run_fail 3 rad-info - < x.rad
    run_fail 3 rad-info nothing.rad
    has "$stderr" "'nothing.rad': No such file"
    cp m.rad x.rad
    printf '\3' | dd of=x.rad bs=1 seek=4 conv=notrunc status=none
    run_fail 3 rad-info x.rad
    has "$stderr" "version: 3, want 2; convert the model again"
}

@test "rad-info: bytes for a terminal are shown, not sent" {
    cp m.rad x.rad
    at=$(grep -abo 'tiny' x.rad | head -n 1 | cut -d: -f1)
    printf '\33[2J' | dd of=x.rad bs=1 seek="$at" conv=notrunc status=none
    run_ok rad-info x.rad
    has "$output" 'model         \x1b[2J'
}

@test "rad-info: usage errors" {
    run_fail 2 rad-info
    run_fail 2 rad-info a b
    run_fail 2 rad-info --nothing m.rad
    run_fail 2 rad-info --json --meta m.rad
    run_fail 2 rad-info --profile=x m.rad
}
