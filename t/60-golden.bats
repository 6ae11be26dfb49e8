# SPDX-License-Identifier: Apache-2.0
# Tiny checkpoints with logits that their reference implementation computed:
# converted, loaded, and run whole, chunked at 1, 7 and 64, in a batch of 8,
# and on the test device; bytes equal in all of these (t/helper/rad-probe).
load lib/common

setup_file() {
    fixtures=${RAD_FIXTURES:-$BATS_TEST_DIRNAME/../../shared}
    if [ -f "$fixtures/golden/unpack.sh" ]; then
        sh "$fixtures/golden/unpack.sh" "$BATS_FILE_TMPDIR" \
            llama llama-bias llama-rope3 llama-tied llama-yarn mistral qwen2 qwen3 gpt2 falcon
    fi
}

golden() {
    need_fixtures golden/unpack.sh
    run_ok rad-convert -q "$BATS_FILE_TMPDIR/$1" -o m.rad
    run_ok rad-info --verify m.rad
    run_split rad-probe golden m.rad "$BATS_FILE_TMPDIR/$1"
    [ "$status" -eq 0 ] || { show_run rad-probe; return 1; }
    has "$output" PASS
}

@test "golden: llama" { golden llama; }
@test "golden: llama with biases" { golden llama-bias; }
@test "golden: llama with llama3 RoPE scaling" { golden llama-rope3; }
@test "golden: llama with tied embeddings" { golden llama-tied; }
@test "golden: llama with YaRN" { golden llama-yarn; }
@test "golden: mistral" { golden mistral; }
@test "golden: qwen2" { golden qwen2; }
@test "golden: qwen3" { golden qwen3; }

@test "golden: a wrong weight is noticed" {
    need_fixtures golden/unpack.sh
    run_ok rad-convert -q --quant 'blk.0.attn_v.weight=rtn:codes=i4,group=32,scale=f16' \
        "$BATS_FILE_TMPDIR/llama" -o m.rad
    run_fail 1 rad-probe golden m.rad "$BATS_FILE_TMPDIR/llama"
    has "$output" "FAIL: logits differ"
}

@test "golden: what no map serves is refused with its name" {
    need_fixtures golden/unpack.sh
    for m in gpt2 falcon; do
        run_fail 3 rad-convert "$BATS_FILE_TMPDIR/$m" -o m.rad
        has "$stderr" "$m"
        [ ! -e m.rad ]
    done
}

@test "golden-report: a row each, then the count" {
    need_fixtures golden/unpack.sh
    run_ok env RAD_BUILDDIR="$BUILD" "$SRC/scripts/golden-report" "$BATS_FILE_TMPDIR/qwen3" \
        "$BATS_FILE_TMPDIR/gpt2"
    [ "${#lines[@]}" -eq 3 ]
    has "${lines[0]}" "PASS"
    has "${lines[1]}" "REFUSED: "
    [ "${lines[2]}" = "1 pass, 0 fail, 1 refused" ]
}
