# SPDX-License-Identifier: Apache-2.0
# radiance without a server: -p, --score, --plan, --debug-graph.
load lib/common

setup_file() {
    fixtures=${RAD_FIXTURES:-$BATS_TEST_DIRNAME/../../shared}
    [ -f "$fixtures/golden/unpack.sh" ] || return 0
    sh "$fixtures/golden/unpack.sh" "$BATS_FILE_TMPDIR" llama
    builddir=${RAD_BUILDDIR:-$PWD}
    RADIANCE_HOME=$builddir/home "$builddir/cmd/rad-convert" -q "$BATS_FILE_TMPDIR/llama" \
        -o "$BATS_FILE_TMPDIR/m.rad"
}
setup() {
    common_setup
    need_fixtures golden/unpack.sh
    M=$BATS_FILE_TMPDIR/m.rad
}

@test "generate: --json has text, ids and log-probabilities" {
    need_tool jq
    run_ok radiance -m "$M" -p 'Hello' -n 6 --temp 0 --json --logprobs 2
    echo "$output" >j
    jq -e '(.ids | length) >= 1 and (.logprobs | length) == (.ids | length)' j
    jq -e '.logprobs[0].top | length == 2 and .[0].logprob >= .[1].logprob' j
    jq -e '.logprobs[0].id == .logprobs[0].top[0].id' j       # greedy
    jq -e '.usage.prompt_tokens == (.prompt_ids | length)' j
}

@test "generate: the same seed, the same text; threads and chunks do not matter" {
    run_ok radiance -m "$M" -p 'The sea' -n 24 --seed 5 --temp 1 --json -j 1
    a=$output
    run_ok radiance -m "$M" -p 'The sea' -n 24 --seed 5 --temp 1 --json -j 3 --prefill-chunk 1
    [ "$a" = "$output" ]
    run_ok radiance -m "$M" -p 'The sea' -n 24 --seed 6 --temp 1 --json
    [ "$a" != "$output" ]
}

@test "generate: a prompt from stdin is the prompt" {
    run_ok radiance -m "$M" -p 'abc def' -n 8 --temp 0
    a=$output
    run_ok bash -c "printf 'abc def' | radiance -m '$M' -p - -n 8 --temp 0"
    [ "$a" = "$output" ]
}

@test "generate: a stop string ends the text before it" {
    need_tool jq
    run_ok radiance -m "$M" -p 'abc' -n 32 --temp 0 --json --ignore-eos
    text=$(echo "$output" | jq -r .text)
    [ ${#text} -gt 4 ]
    run_ok radiance -m "$M" -p 'abc' -n 32 --temp 0 --json --ignore-eos --stop "${text:2:2}"
    cut=$(echo "$output" | jq -r .text)
    lacks "$cut" "${text:2:2}"
    [ "$(echo "$output" | jq -r .finish_reason)" = stop ]
}

@test "generate: a NUL is a character like others" {
    need_tool jq
    printf 'abc\0def' >in
    run_ok bash -c "radiance -m '$M' --chat -p - -n 1 --json --temp 0 <in"
    a=$(echo "$output" | jq '.prompt_ids | length')
    printf 'abc' >in
    run_ok bash -c "radiance -m '$M' --chat -p - -n 1 --json --temp 0 <in"
    [ "$a" -eq $(($(echo "$output" | jq '.prompt_ids | length') + 4)) ]
    # The tiny model writes one when nothing else may be.
    for seed in $(seq 40); do
        run_ok radiance -m "$M" -p a -n 200 --seed $seed --temp 50 --json --ignore-eos
        echo "$output" | jq -e '.ids | index(188)' >/dev/null || continue
        echo "$output" | jq -e '.text | length > 60 and contains("\u0000")'
        return 0
    done
    return 1
}

@test "radiance: closed standard files are not taken by others" {
    echo 'some text here' >text
    for job in "--score text" "-p abc -n 3" "--plan"; do
        rc=0; radiance -m "$M" $job >&- 2>err || rc=$?
        [ $rc -eq 3 ] || { echo "exit $rc for $job"; false; }
        has "$(<err)" stdout
    done
    rc=0; radiance -m "$M" -p - -n 1 <&- 2>err || rc=$?
    [ $rc -eq 3 ]
}

@test "radiance: an option of another job is refused" {
    for o in "--stop x" --ignore-eos --chat "--logprobs 2 --json" --json "--seed 4" \
        "--score-tokens 5" "--api-key="; do
        run_fail 2 timeout 20 radiance -m "$M" --port 0 $o
    done
    run_fail 2 radiance -m "$M" -p a -n 1 --logprobs 2
}

@test "score: perplexity of a text, windows as told" {
    need_tool jq
    need_fixtures golden/unpack.sh fixtures/text/wikitext-2-test.txt
    run_ok radiance -m "$M" --score "$FIXTURES/fixtures/text/wikitext-2-test.txt" --score-tokens 300 \
        --score-window 100 --json
    echo "$output" | jq -e '.tokens == 300 and .windows == 3 and .scored == 297 and .perplexity > 1'
    run_fail 2 radiance -m "$M" --score x --score-window 100000
}

@test "plan: the memory plan is exact JSON, and no weight is read" {
    need_tool jq
    run_ok radiance -m "$M" --plan
    echo "$output" | jq -e .
    run_ok radiance -m "$M" --debug-graph
    has "$output" "attn_paged"
}

@test "radiance: the test device gives the host's bytes" {
    run_ok radiance -m "$M" -p 'abc' -n 12 --temp 0 --json
    a=$output
    run_ok radiance -m "$M" -p 'abc' -n 12 --temp 0 --json --device test
    [ "$a" = "$output" ]
}

@test "radiance: what cannot be honoured is refused by name" {
    run_fail 2 radiance -m "$M" -p x --temp nonsense
    run_fail 2 radiance -p x
    run_fail 3 radiance -m "$M" -p x --max-model-len 8 -n 4 --kv-tokens 2
    run_fail 3 radiance -m "$M" -p x --max-model-len 100000
    has "$stderr" "--max-model-len"
    run_fail 3 radiance -m nosuch.rad -p x
    has "$stderr" nosuch.rad
    run_fail 3 radiance -m "$M" -p "$(head -c 4000 /dev/zero | tr '\0' a)"
    has "$stderr" "context"
}

@test "rad-info: --plan is what a server would take, --plugins what it would load" {
    need_tool jq
    run_ok rad-info --plan "$M"
    echo "$output" | jq -e '.total_bytes > .arena_bytes and .kv_bytes > 0 and (.graph | length) > 10'
    run_ok rad-info --plugins
    has "$output" "(reference)"
    run_ok rad-info --plugins --json
    echo "$output" | jq -e 'map(.kind) | contains(["kernel", "architecture", "quantiser"])'
    run_fail 3 rad-info --plan --home "$TMP" "$M"
}

@test "radiance: a tokenizer that does not encode as certified is refused" {
    need_tool jq
    cp "$M" bad.rad
    off=$(rad-info --json bad.rad | jq .sections.certificate.offset)
    len=$(rad-info --json bad.rad | jq .sections.certificate.bytes)
    [ "$len" -gt 100 ]
    at=$((off + len - 1))
    byte=$(od -An -tu1 -j$at -N1 bad.rad)
    printf "\\$(printf %o $((byte ^ 1)))" | dd of=bad.rad bs=1 seek=$at conv=notrunc status=none
    run_fail 3 radiance -m bad.rad -p x -n 1
    has "$stderr" "certificate"
}
