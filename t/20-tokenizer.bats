# SPDX-License-Identifier: Apache-2.0
# Tokenizers against what their references say, as files; the insides are in
# t/check/tok-check.c.
load lib/common

CHECK=$BUILD/t/check/tok-check

all='qwen3 llama3_1 mistral_v1 gemma3 deepseek_v3 gptoss gpt4o'

each_tokenizer() {
    need_fixtures fixtures/tokenizers
    T=$FIXTURES/fixtures/tokenizers
}

@test "tokenizer: every trusted vector of seven tokenizers, both ways and streamed" {
    each_tokenizer
    for d in $all; do
        run_ok rad-tokcheck --vectors "$T/$d/vectors.jsonl" \
            --decode-vectors "$T/$d/decode.jsonl" "$T/$d"
        has "$output" " 0 differences"
        [ "${output%% *}" -ge 250 ] || { echo "$d: only $output"; false; }
    done
}

@test "tokenizer: llama.cpp's vectors for vocabularies that are here" {
    each_tokenizer
    V=$T/llama.cpp-vocab/ggml-vocab-
    run_ok "$CHECK" llamacpp "$T/qwen3" "${V}qwen2.gguf.inp" "${V}qwen2.gguf.out"
    run_ok "$CHECK" llamacpp "$T/llama3_1" "${V}llama-bpe.gguf.inp" "${V}llama-bpe.gguf.out"
    run_ok "$CHECK" llamacpp "$T/gemma3" "${V}gemma-4.gguf.inp" "${V}gemma-4.gguf.out"
}

@test "tokenizer: golden cases, chats and prefixes" {
    need_fixtures golden/unpack.sh
    g='tok-bpe tok-bpe3 tok-spm tok-spmg tok-unigram tok-wordpiece'
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" $g >/dev/null
    for d in $g; do
        run_ok "$CHECK" golden "$TMP/g/$d"
    done
}

@test "tokenizer: the vocab section gives the same tokenizer and the same bytes" {
    each_tokenizer
    for d in $all; do
        run_ok "$CHECK" container "$T/$d" "$TMP/m.rad"
    done
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" tok-unigram tok-wordpiece tok-spm >/dev/null
    for d in tok-unigram tok-wordpiece tok-spm; do
        run_ok "$CHECK" container "$TMP/g/$d" "$TMP/m.rad"
    done
}

@test "tokenizer: a damaged vocab section is refused or harmless" {
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" tok-unigram tok-spm >/dev/null
    for d in tok-unigram tok-spm; do
        run_ok "$CHECK" container "$TMP/g/$d" "$TMP/m.rad"
        run_ok "$CHECK" flip "$TMP/m.rad"
    done
}

@test "tokenizer: GGUF metadata of the same vocabulary encodes alike" {
    each_tokenizer
    run_ok "$CHECK" gguf "$T/llama3_1" llama-bpe
    run_ok "$CHECK" gguf "$T/gpt4o" gpt-4o
    run_ok "$CHECK" gguf "$T/mistral_v1" llama
    run_fail 3 "$CHECK" gguf "$T/llama3_1" no-such-name
    has "$stderr" "'tokenizer.ggml.pre' 'no-such-name'"
}

@test "tokenizer: streamed parts are whole characters and add up" {
    each_tokenizer
    for d in qwen3 mistral_v1 gemma3; do
        run_ok "$CHECK" stream "$T/$d"
    done
}

@test "tokenizer: 200,000 characters without a space are not quadratic" {
    each_tokenizer
    for d in qwen3 gptoss deepseek_v3 mistral_v1; do
        run_ok "$CHECK" long "$T/$d"
    done
}

@test "tokenizer: each damaged tokenizer.json is refused, with a reason" {
    need_fixtures fixtures/mkbad.py
    need_tool python3
    python3 "$FIXTURES/fixtures/mkbad.py" "$TMP/mk" >/dev/null
    n=0
    for f in mk/bad/tok-*.json; do
        run_ok "$CHECK" bad "$f"
        has "$stderr" "'$f': "
        n=$((n + 1))
    done
    [ "$n" -ge 20 ]
    run_ok "$CHECK" bad mk/bad/tok-regex-does-not-compile.tokenizer.json
    has "$stderr" "pattern '(['"
}

@test "rad-tokcheck: lines on stdin, one line of ids each" {
    each_tokenizer
    run_ok rad-tokcheck "$T/qwen3" <<<$'Hello\n\nA'
    [ "$output" = $'9707\n\n32' ] || { show_run; false; }
    run_ok rad-tokcheck --json "$T/qwen3" <<<'A<|im_end|>'
    [ "$output" = '{"ids":[32,151645],"decoded":"A<|im_end|>"}' ]
    run_ok rad-tokcheck --user --json "$T/qwen3" <<<'<|im_end|>'
    lacks "$output" 151645
}

@test "rad-tokcheck: a wrong vector is a difference, exit 1" {
    each_tokenizer
    echo '{"text":"A","ids":[33]}' >v.jsonl
    run_fail 1 rad-tokcheck --vectors v.jsonl "$T/qwen3"
    has "$output" "1 checked, 1 differences"
    printf 'A' >c
    printf '\x20\0\0\0' >c.ids
    run_ok rad-tokcheck --hf-dir . "$T/qwen3" c
    printf '\x21\0\0\0' >c.ids
    run_fail 1 rad-tokcheck --hf-dir . "$T/qwen3" c
    has "$output" "1 corpora, 1 differences"
}

@test "tokenizer: every pre-tokeniser name of GGUF compiles" {
    each_tokenizer
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" tok-bpe3 >/dev/null
    for name in default llama3 dbrx gpt-2 roberta-bpe qwen2 qwen35 starcoder falcon deepseek-v3 \
        deepseek-llm deepseek-coder gpt-4o tekken kimi-k2 minicpm5 bailingmoe seed-coder bloom \
        viking smollm command-r; do
        run_split "$CHECK" gguf "$TMP/g/tok-bpe3" "$name"
        [ "$status" -le 1 ] || { show_run "$name"; false; }
    done
}

@test "tokenizer: the usual ones need no step of our own in the vocab section" {
    each_tokenizer
    for d in qwen3 mistral_v1 gpt4o; do
        run_ok "$CHECK" container "$T/$d" "$TMP/m.rad"
        has "$output" "own steps: 0" || { echo "$d"; false; }
    done
}

@test "rad-tokcheck: a container's certificate holds, and tells when it does not" {
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" tok-spm >/dev/null
    run_ok "$CHECK" container "$TMP/g/tok-spm" m.rad
    run_ok rad-tokcheck --certificate m.rad
    has "$output" "vectors, "
    has "$output" "holds"
    run_ok rad-tokcheck m.rad <<<'Hello'
    want=$output
    run_ok rad-tokcheck "$TMP/g/tok-spm" <<<'Hello'
    [ "$output" = "$want" ]
    at=$(grep -abo 'RADTOK1' m.rad | head -1 | cut -d: -f1)
    printf '\xff' | dd of=m.rad bs=1 seek=$((at + 26)) conv=notrunc status=none
    run_fail 1 rad-tokcheck --certificate m.rad
    has "$stderr" "certificate: "
}
