# SPDX-License-Identifier: Apache-2.0
# The goldens once more, through GGUF files that contrib/mk-gguf.py writes of
# them: logits are those of the safetensors, and of a quantised file those of
# the numbers that gguf reads out of it, to the bit.
load lib/common

setup_file() {
    fixtures=${RAD_FIXTURES:-$BATS_TEST_DIRNAME/../../shared}
    if [ -f "$fixtures/golden/unpack.sh" ]; then
        sh "$fixtures/golden/unpack.sh" "$BATS_FILE_TMPDIR" \
            llama llama-rope3 llama-tied llama-yarn qwen2 qwen3
    fi
}

need_gguf() {
    need_fixtures golden/unpack.sh
    py=${RAD_PYTHON:-python3}
    "$py" -c 'import gguf, numpy' 2>/dev/null || skip "no gguf and numpy packages: set RAD_PYTHON"
}

gguf() {
    need_gguf
    run_ok "$py" "$SRC/contrib/mk-gguf.py" "$BATS_FILE_TMPDIR/$1" m.gguf
    run_ok rad-convert -q m.gguf -o m.rad
    run_split rad-probe golden m.rad "$BATS_FILE_TMPDIR/$1"
    [ "$status" -eq 0 ] || { show_run rad-probe; return 1; }
    has "$output" PASS
}

@test "gguf: llama" { gguf llama; }
@test "gguf: llama with frequency factors" { gguf llama-rope3; }
@test "gguf: llama with tied embeddings" {
    gguf llama-tied
    run_ok rad-info m.rad
    lacks "$output" " output.weight"
}
@test "gguf: llama with YaRN" { gguf llama-yarn; }
@test "gguf: qwen2" { gguf qwen2; }
@test "gguf: qwen3" { gguf qwen3; }

@test "gguf: blocks are the numbers that gguf reads out of them" {
    need_gguf
    run_ok "$py" "$SRC/contrib/mk-gguf.py" "$BATS_FILE_TMPDIR/llama" plain.gguf
    run_ok rad-convert -q plain.gguf -o plain.rad
    for kind in q8_0 q4_0 q4_1 q5_0 q5_1; do
        run_ok "$py" "$SRC/contrib/mk-gguf.py" "$BATS_FILE_TMPDIR/llama" q.gguf $kind f.gguf
        run_ok rad-convert -q q.gguf -o q.rad
        run_ok rad-convert -q f.gguf -o f.rad
        run_ok rad-probe same q.rad f.rad
        run_fail 1 rad-probe same q.rad plain.rad
        [ "$(stat -c %s q.gguf)" -lt "$(stat -c %s f.gguf)" ]
    done
}
