# SPDX-License-Identifier: Apache-2.0
# Tiny checkpoints with logits that their reference implementation computed:
# converted, loaded, and run whole, chunked at 1, 7 and 64, in a batch of 8,
# and on the test device; bytes equal in all of these (t/helper/rad-probe).
load lib/common

setup_file() {
    fixtures=${RAD_FIXTURES:-$BATS_TEST_DIRNAME/../../shared}
    if [ -f "$fixtures/golden/unpack.sh" ]; then
        sh "$fixtures/golden/unpack.sh" "$BATS_FILE_TMPDIR" \
            $(sed -n 's/^@test .* { golden \(.*\); }$/\1/p' "$BATS_TEST_FILENAME") deepseek_v4 hy_v4
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
@test "golden: starcoder2" { golden starcoder2; }
@test "golden: olmo" { golden olmo; }
@test "golden: olmo2" { golden olmo2; }
@test "golden: olmo3" { golden olmo3; }
@test "golden: gemma" { golden gemma; }
@test "golden: gemma2" { golden gemma2; }
@test "golden: gemma3_text" { golden gemma3_text; }
@test "golden: granite" { golden granite; }
@test "golden: granite_swa" { golden granite_swa; }
@test "golden: cohere" { golden cohere; }
@test "golden: cohere2" { golden cohere2; }
@test "golden: glm" { golden glm; }
@test "golden: glm4" { golden glm4; }
@test "golden: phi" { golden phi; }
@test "golden: phi3" { golden phi3; }
@test "golden: phi3-longrope" { golden phi3-longrope; }
@test "golden: stablelm" { golden stablelm; }
@test "golden: helium" { golden helium; }
@test "golden: nemotron" { golden nemotron; }
@test "golden: exaone4" { golden exaone4; }
@test "golden: apertus" { golden apertus; }
@test "golden: hunyuan_v1_dense" { golden hunyuan_v1_dense; }
@test "golden: ernie4_5" { golden ernie4_5; }
@test "golden: ministral3" { golden ministral3; }
@test "golden: falcon" { golden falcon; }
@test "golden: bitnet" { golden bitnet; }
@test "golden: nanochat" { golden nanochat; }
@test "golden: seed_oss" { golden seed_oss; }
@test "golden: arcee" { golden arcee; }
@test "golden: smollm3" { golden smollm3; }
@test "golden: gpt_neox" { golden gpt_neox; }
@test "golden: gpt2" { golden gpt2; }

# edit DIR SED [TENSOR FROM]: a copy, ./edited: its config edited, then a tensor
# added under a name from another, or taken away.
edit() {
    rm -rf edited
    cp -r "$1" edited
    sed -i "$2" edited/config.json
    [ $# -lt 3 ] || python3 - edited/model.safetensors "${@:3}" <<'EOF'
import json, struct, sys
path, name, *source = sys.argv[1:]
b = open(path, "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h, data = json.loads(b[8:8 + n]), b[8 + n:]
if source:                      # the same numbers backwards
    t = dict(h[source[0]])
    lo, hi = t["data_offsets"]
    t["data_offsets"] = [len(data), len(data) + hi - lo]
    w = data[lo:hi]
    data += b"".join(w[i:i + 2] for i in range(len(w) - 2, -2, -2))
    h[name] = t
else:                           # its bytes stay, under a name that nothing reads
    h["not." + name] = h.pop(name)
j = json.dumps(h).encode()
open(path, "wb").write(struct.pack("<Q", len(j)) + j + data)
EOF
}

@test "golden: a tied model stores its embedding once" {
    need_fixtures golden/unpack.sh
    run_ok rad-convert -q "$BATS_FILE_TMPDIR/llama-tied" -o m.rad
    run_ok rad-info m.rad
    lacks "$output" " output.weight"
    # said to be tied: so it is, even where the file has a head of its own
    edit "$BATS_FILE_TMPDIR/llama-tied" '' lm_head.weight model.embed_tokens.weight
    run_ok rad-convert -q edited -o m.rad
    run_ok rad-probe golden m.rad "$BATS_FILE_TMPDIR/llama-tied"
    # not said: what the file holds decides
    edit "$BATS_FILE_TMPDIR/llama-tied" /tie_word_embeddings/d
    run_ok rad-convert -q edited -o m.rad
    run_ok rad-probe golden m.rad "$BATS_FILE_TMPDIR/llama-tied"
    edit "$BATS_FILE_TMPDIR/qwen2" /tie_word_embeddings/d
    run_ok rad-convert -q edited -o m.rad
    run_ok rad-probe golden m.rad "$BATS_FILE_TMPDIR/qwen2"
    # said not to be: a head is missed
    edit "$BATS_FILE_TMPDIR/qwen2" '' lm_head.weight
    run_fail 3 rad-convert -q edited -o n.rad
    has "$stderr" "no tensor 'lm_head.weight' for weight 'output.weight'"
}

@test "engine: a second home in the process leaves the first its data" {
    need_fixtures golden/unpack.sh
    run_ok rad-convert -q "$BATS_FILE_TMPDIR/llama" -o m.rad
    cp -rL "$RADIANCE_HOME" other
    run_ok rad-probe homes m.rad "$PWD/other"
    has "$output" PASS
}

@test "golden: a wrong weight is noticed" {
    need_fixtures golden/unpack.sh
    run_ok rad-convert -q --quant 'blk.0.attn_v.weight=rtn:codes=i4,group=32,scale=f16' \
        "$BATS_FILE_TMPDIR/llama" -o m.rad
    run_fail 1 rad-probe golden m.rad "$BATS_FILE_TMPDIR/llama"
    has "$output" "FAIL: logits differ"
}

@test "golden: what no map serves is refused with its name" {
    need_fixtures golden/unpack.sh
    for m in deepseek_v4 hy_v4; do
        run_fail 3 rad-convert "$BATS_FILE_TMPDIR/$m" -o m.rad
        has "$stderr" "$m"
        [ ! -e m.rad ]
    done
}

@test "golden-report: a row each, then the count" {
    need_fixtures golden/unpack.sh
    run_ok env RAD_BUILDDIR="$BUILD" "$SRC/scripts/golden-report" "$BATS_FILE_TMPDIR/qwen3" \
        "$BATS_FILE_TMPDIR/deepseek_v4"
    [ "${#lines[@]}" -eq 3 ]
    has "${lines[0]}" "PASS"
    has "${lines[1]}" "REFUSED: "
    [ "${lines[2]}" = "1 pass, 0 fail, 1 refused" ]
}

@test "golden: what is turned has the shape it should, or is refused" {
    need_fixtures golden/unpack.sh
    edit "$BATS_FILE_TMPDIR/gpt2" 's/"n_inner": null/"n_inner": 128/'
    run_fail 3 rad-convert -q edited -o m.rad
    has "$stderr" "tensor 'transformer.h.0.mlp.c_fc.weight': shape 64x256, want 128x64"
    edit "$BATS_FILE_TMPDIR/gpt2" 's/"n_embd": 64/"n_embd": 128/'
    run_fail 3 rad-convert -q edited -o m.rad
    # a quantiser sees what is turned: 8 bits a number still choose the same ids
    run_ok rad-convert -q --quant 'blk.*.ffn_up.weight=rtn:codes=i8,group=32,scale=f16' \
        "$BATS_FILE_TMPDIR/gpt2" -o m.rad
    run_split rad-probe golden m.rad "$BATS_FILE_TMPDIR/gpt2"
    has "$output" " 32/32 "
}
