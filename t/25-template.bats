# SPDX-License-Identifier: Apache-2.0
# Chat templates against what Python's Jinja renders, as files; limits and API
# are in t/check/template-check.c.
load lib/common

CHECK=$BUILD/t/check/template-check

need_templates() {
    need_fixtures fixtures/templates
    T=$FIXTURES/fixtures/templates
}

@test "template: every vector that two engines agree on, errors and their words too" {
    need_templates
    run_ok "$CHECK" vectors "$T/files" "$T/conversations.json" "$T/vectors.jsonl"
    [ "$output" = "814 passed, 0 failed" ]
}

@test "template: upstream's expected texts" {
    need_templates
    run_ok "$CHECK" upstream "$T/files" "$T/upstream.jsonl"
    [ "${output%% *}" -ge 23 ]
}

@test "template: where engines differ, what Python says" {
    need_templates
    run_ok "$CHECK" disputed "$T/files" "$T/conversations.json" "$T/disputed.jsonl"
    [ "$output" = "86 passed, 0 failed" ]
}

@test "template: cases of our own, one a feature" {
    run_ok "$CHECK" snippets "$SRC/t/golden/template-cases.jsonl"
    [ "${output%% *}" -ge 240 ]
}

@test "template: golden chats" {
    need_fixtures golden/unpack.sh
    g='tok-bpe tok-bpe3 tok-spm tok-spmg'
    sh "$FIXTURES/golden/unpack.sh" "$TMP/g" chat-templates $g >/dev/null
    run_ok "$CHECK" golden "$TMP/g/chat-templates/expected.json"
    [ "$output" = "76 passed, 0 failed" ]
    for d in $g; do
        run_ok "$CHECK" tok "$TMP/g/$d/tokenizer_config.json" "$TMP/g/$d/expected.json"
        [ "${output%% *}" -ge 8 ]
    done
}

@test "template: a case that differs fails" {
    printf '%s\n' '{"template":"{{ 1 }}","rendered":"2"}' > bad.jsonl
    run "$CHECK" snippets bad.jsonl
    [ "$status" -eq 1 ]
    has "$output" "0 passed, 1 failed"
}
