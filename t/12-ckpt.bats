# SPDX-License-Identifier: Apache-2.0
# Checkpoint readers on whole files: damaged ones are refused by name, sound
# ones are read to the last byte. The formats' details: t/check/ckpt-check.c.
load lib/common

CHECK=$BUILD/t/check/ckpt-check

# Faults that are not the file format's: a config map or the tokenizer finds
# them.
later='gguf-architecture-unknown|gguf-model-|gguf-vocab-|st-model-'

bad_files() {
    need_fixtures fixtures/mkbad.py
    need_tool python3
    python3 "$FIXTURES/fixtures/mkbad.py" "$TMP/mk" >/dev/null
}

@test "ckpt: each damaged file is refused, with its name" {
    bad_files
    n=0
    for f in mk/bad/*.gguf mk/bad/*.safetensors; do
        name=$(basename "$f")
        if [[ $name =~ ^($later) && $name != gguf-model-eps-nan.gguf ]]; then
            continue
        fi
        run_fail 3 "$CHECK" open "$f"
        has "$stderr" "'$f': " || { echo "$name"; false; }
        peak=${stderr##*peak }
        [ "${peak% KiB*}" -lt 131072 ] || { echo "$name: peak $peak"; false; }
        n=$((n + 1))
    done
    [ "$n" -ge 80 ] || { echo "only $n files"; false; }
}

@test "ckpt: the message names tensor or key, and what was found" {
    bad_files
    while read -r file want; do
        run_fail 3 "$CHECK" open "mk/bad/$file"
        has "$stderr" "$want"
    done <<'EOF'
gguf-tensor-type-removed.gguf tensor 'token_embd.weight': type 4, which the format does not have
gguf-alignment-12.gguf key 'general.alignment': 12, want a multiple of 8
gguf-key-duplicated.gguf key 'llama.block_count': given twice
gguf-tensor-offsets-overlap.gguf tensor 'output.weight': offset 0 overlaps tensor 'token_embd.weight'
gguf-model-eps-nan.gguf key 'llama.attention.layer_norm_rms_epsilon': value is NaN, want a finite number
st-dtype-unknown.safetensors tensor 'model.norm.weight': 'dtype' is "F33"
st-shape-negative.safetensors tensor 'model.norm.weight': 'shape' holds number -32
st-name-duplicated.safetensors key 'model.norm.weight' a second time
st-trailing-data.safetensors 4096 bytes behind the last tensor, want none
EOF
}

@test "ckpt: a config.json that is not an object of JSON is refused" {
    bad_files
    for name in truncated not-object nested-100000-deep number-1e400; do
        rm -rf m
        cp -r mk/ok m
        rm m/model.gguf
        cp "mk/bad/config-$name.config.json" m/config.json
        run_fail 3 "$CHECK" open m
        has "$stderr" "'m/config.json': "
    done
}

@test "ckpt: the sound files are read, alone and as a folder" {
    bad_files
    run_ok "$CHECK" open mk/ok/model.gguf
    has "$output" "arch 'llama' quant '' tensors 12 bytes 104064 refused 0"
    run_ok "$CHECK" open mk/ok/model.safetensors
    has "$output" "arch 'llama' quant '' tensors 12 bytes 104064 refused 0"
    one=${output#*sum } one=${one%% *}
    run_ok "$CHECK" open mk/ok
    has "$output" "sum $one "
    has "$output" "has tokenizer.json"
}

@test "ckpt: shards, FP8 scales, every golden folder" {
    need_fixtures golden/unpack.sh
    need_tool xz
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" llama quant-fp8-llama quant-mxfp4-gpt_oss
    run_ok "$CHECK" open g/llama
    has "$output" "tensors 30 bytes 344960 refused 0"
    run_ok "$CHECK" open g/llama/model.safetensors.index.json
    has "$output" "tensors 30 bytes 344960 refused 0"
    run_ok "$CHECK" open g/quant-fp8-llama
    has "$output" "quant 'fp8_e4m3' tensors 19"
    run_ok "$CHECK" open g/quant-mxfp4-gpt_oss
    has "$output" "arch 'gptoss' quant 'mxfp4'"
    sed 's/model-00002/model-00001/' g/llama/model.safetensors.index.json > g/llama/x.index.json
    run_fail 3 "$CHECK" open g/llama/x.index.json
    has "$stderr" "'g/llama/x.index.json': 'weight_map' places"
    rm g/llama/model-00003-of-00003.safetensors
    run_fail 4 "$CHECK" open g/llama
    has "$stderr" "'g/llama/model-00003-of-00003.safetensors': No such file"
    sed 's,model-00003,../model-00003,' g/llama/model.safetensors.index.json > g/llama/y.index.json
    run_fail 3 "$CHECK" open g/llama/y.index.json
    has "$stderr" "want a file beside the index"
}
