# SPDX-License-Identifier: Apache-2.0
# A real model: SmolLM2-135M-Instruct as a GGUF with Q4_1 blocks. scripts/check
# fetches it and names it by RAD_SMOLLM; without it these tests are skipped.
load lib/common

setup() {
    common_setup
    [ -n "${RAD_SMOLLM:-}" ] || skip "no model: set RAD_SMOLLM, as scripts/check does"
    [ -f "$RAD_SMOLLM" ] || skip "RAD_SMOLLM: no file '$RAD_SMOLLM'"
    need_tool rad-convert radiance rad-info jq
    M=$BATS_FILE_TMPDIR/smollm2.rad
}

# The reference kernels take seconds for a token when they are instrumented.
speaks() {
    [ "$(sanitizers)" = no ] || skip "too slow under sanitizers"
    [ -f "$M" ] || { echo "it was not converted"; return 1; }
}

@test "smollm: it converts, and every digest of the file holds" {
    run_ok rad-convert -q "$RAD_SMOLLM" -o "$M"
    run_ok rad-info --verify "$M"
    run_ok rad-info --json "$M"
    [ "$(jq -r '.architecture, .vocab.tokens' <<<"$output" | xargs)" = "llama 49152" ]
}

# peak COMMAND...: the largest resident set of a command in KiB; what it prints
# is thrown away. Without time(1) it is sampled, up to the last instant but one.
peak() {
    local pid k most=0
    if [ -x /usr/bin/time ]; then
        /usr/bin/time -f %M -o peak.kib "$@" >/dev/null && tail -n 1 peak.kib
        return
    fi
    "$@" >/dev/null 3>&- &
    pid=$!
    while k=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null) &&
        [ -n "$k" ]; do
        [ "$k" -le "$most" ] || most=$k
        sleep 0.01
    done
    wait "$pid" && echo "$most"
}

@test "smollm: converting takes less than 1 GiB and the largest tensor" {
    [ "$(sanitizers)" = no ] || skip "sanitizers take memory of their own"
    k=$(peak rad-convert -q "$RAD_SMOLLM" -o out.rad)
    echo "peak: $k KiB"
    [ "$k" -gt 1000 ]
    [ "$k" -lt $((1024 * 1024 + 49152 * 576 * 4 / 1024)) ]
}

@test "smollm: the capital of France is Paris" {
    speaks
    run_ok radiance -q -m "$M" --chat -p 'What is the capital of France?' -n 32 --temp 0
    has "$output" Paris
}

# Of this prompt no two top logits come closer than 0.1, so that it does not
# hang on the last bit of a libm.
@test "smollm: 64 greedy tokens are what they were" {
    speaks
    run_ok radiance -q -m "$M" -p 'The first ten prime numbers are' -n 64 --temp 0 \
        --ignore-eos --json
    [ "$(jq -c .prompt_ids <<<"$output")" = "[504,808,3772,9552,2966,359]" ]
    jq -c .ids <<<"$output" >ids
    cat ids
    [ "$(<ids)" = "[$(tr -d ' \n' <<'END'
216,34,28,216,35,28,216,37,28,216,39,28,216,33,33,28,216,33,35,28,216,33,
39,28,216,33,41,28,216,34,33,28,216,34,35,28,216,34,39,28,216,35,33,28,
216,35,39,28,216,36,33,28,216,36,35,28,216,36,39,28,216,37,33,28
END
    )]" ]
}
