# SPDX-License-Identifier: Apache-2.0
# The server over HTTP, with curl.
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
    need_tool curl jq
    M=$BATS_FILE_TMPDIR/m.rad
}
teardown() {
    [ -z "${pid:-}" ] || { kill -KILL "$pid" 2>/dev/null; wait "$pid" 2>/dev/null || true; }
}

# serve OPTION...: starts a server on a free port; sets $pid and $U.
serve() {
    : >log
    radiance -m "$M" --port 0 --served-model-name tiny "$@" 2>log 3>&- & pid=$!
    for _ in $(seq 300); do
        U=$(sed -n "s/^radiance: 'tiny' at //p" log)
        [ -n "$U" ] && curl -fsS "$U/health" >/dev/null 2>&1 && return 0
        kill -0 $pid 2>/dev/null || { cat log; return 1; }
        sleep 0.1
    done
    cat log
    return 1
}
post() { curl -sS -o body -w '%{http_code}' "$U$1" -H 'Content-Type: application/json' -d "$2"; }

@test "http: health, models, metrics, 404, 405" {
    serve
    [ "$(curl -sS "$U/health" | jq -r .status)" = ok ]
    [ "$(curl -sS "$U/v1/models" | jq -r '.data[0].id')" = tiny ]
    [ "$(curl -sS "$U/v1/models/tiny" | jq -r .id)" = tiny ]
    [ "$(curl -sS -o body -w '%{http_code}' "$U/v1/models/other")" = 404 ]
    [ "$(curl -sS -o body -w '%{http_code}' "$U/nothing")" = 404 ]
    [ "$(jq -r .error.type body)" = not_found_error ]
    [ "$(curl -sS -o body -w '%{http_code}' "$U/v1/chat/completions")" = 405 ]
    curl -sS "$U/metrics" >m
    grep -q '^vllm:num_requests_running{model_name="tiny",engine="0"} 0$' m
    grep -q '^# TYPE vllm:time_to_first_token_seconds histogram$' m
}

@test "http: tokenize and detokenize are inverse" {
    serve
    [ "$(post /tokenize '{"prompt":"Hello, world!"}')" = 200 ]
    tokens=$(jq -c .tokens body)
    [ "$(jq .count body)" = "$(echo "$tokens" | jq length)" ]
    [ "$(post /tokenize '{"prompt":"Hello, world!","add_special_tokens":false}')" = 200 ]
    tokens=$(jq -c .tokens body)
    [ "$(post /detokenize "{\"tokens\":$tokens}")" = 200 ]
    [ "$(jq -r .prompt body)" = 'Hello, world!' ]
    [ "$(post /tokenize '{"messages":[{"role":"user","content":"hi"}],"return_token_strs":true}')" = 200 ]
    [ "$(jq '.token_strs | length' body)" = "$(jq .count body)" ]
    [ "$(post /detokenize '{"tokens":[1,"a"]}')" = 400 ]
    [ "$(post /detokenize '{"tokens":[99999999]}')" = 400 ]
}

@test "http: bodies that are not requests are refused, and the server lives" {
    serve --max-body-mib 1
    C=/v1/chat/completions
    for b in '' '{' '[]' 'null' '{"messages":3}' '{"messages":[]}' '{"messages":[{}]}' \
        '{"messages":[{"role":"king","content":"x"}]}' '{"messages":[{"role":"user"}]}' \
        '{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}' \
        '{"messages":[{"role":"user","content":"a\u0000b"}]}' \
        '{"messages":[{"role":"user","content":"x"}],"max_tokens":-1}' \
        '{"messages":[{"role":"user","content":"x"}],"n":1000}' \
        '{"messages":[{"role":"user","content":"x"}],"stop":[""]}' \
        '{"messages":[{"role":"user","content":"x"}],"stream_options":{}}' \
        '{"messages":[{"role":"user","content":"x"}]} trailing'; do
        code=$(post $C "$b")
        [ "$code" = 400 ] || { echo "$code for $b"; cat body; return 1; }
        jq -e .error.message body
    done
    printf '%0.s[' $(seq 5000) >deep
    [ "$(curl -sS -o body -w '%{http_code}' "$U$C" --data-binary @deep)" = 400 ]
    head -c 2000000 /dev/zero | tr '\0' ' ' >big
    [ "$(curl -sS -o body -w '%{http_code}' "$U$C" --data-binary @big)" = 413 ]
    printf '{"messages":[{"role":"user","content":"\xff\xfe\xc3("}],"max_tokens":2}' >raw
    code=$(curl -sS -o body -w '%{http_code}' "$U$C" --data-binary @raw)
    [ "$code" = 200 ] || [ "$code" = 400 ]
    [ "$(post $C '{"messages":[{"role":"user","content":"x"}],"max_tokens":2}')" = 200 ]
}

@test "http: a key is wanted when one is set, and health needs none" {
    serve --api-key secret
    [ "$(post /v1/completions '{"prompt":"a","max_tokens":1}')" = 401 ]
    [ "$(curl -sS -o body -w '%{http_code}' -H 'Authorization: Bearer secret' "$U/v1/models")" = 200 ]
    [ "$(curl -sS -o body -w '%{http_code}' -H 'Authorization: Bearer secreT' "$U/v1/models")" = 401 ]
    [ "$(curl -sS -o body -w '%{http_code}' "$U/health")" = 200 ]
}

@test "http: events of a stream are OpenAI's, and end in [DONE]" {
    serve
    curl -sSN "$U/v1/chat/completions" -d '{"messages":[{"role":"user","content":"x"}],"stream":true,"max_tokens":5,"temperature":0,"ignore_eos":true,"stream_options":{"include_usage":true}}' >s
    [ "$(tail -2 s | head -1)" = 'data: [DONE]' ]
    sed -n 's/^data: {/{/p' s | jq -es . >/dev/null
    sed -n 's/^data: {/{/p' s | jq -s '.[0].choices[0].delta.role' | grep -q assistant
    [ "$(sed -n 's/^data: {/{/p' s | jq -s '[.[].choices[]?.finish_reason | select(. != null)] | length')" = 1 ]
    [ "$(sed -n 's/^data: {/{/p' s | jq -s '.[-1].usage.completion_tokens')" = 5 ]
}

@test "http: a client that goes away frees its sequence within a second" {
    serve --max-model-len 512
    curl -sSN -m 0.5 "$U/v1/completions" -d '{"prompt":"abc","stream":true,"max_tokens":480,"ignore_eos":true,"n":8}' >/dev/null 2>&1 || true
    curl -sS -m 0.3 "$U/v1/completions" -d '{"prompt":"abc","max_tokens":480,"ignore_eos":true,"n":8}' >/dev/null 2>&1 || true
    sleep 1
    [ "$(curl -sS "$U/health" | jq .in_flight)" = 0 ]
}

# raw TEXT: opens a connection, sends TEXT as printf makes it, closes.
raw() { (printf "$@" >"/dev/tcp/127.0.0.1/${U##*:}") 2>/dev/null || true; }
n_fds() { ls "/proc/$pid/fd" | wc -l; }

@test "http: clients that leave in headers or a body give their places back" {
    serve --max-model-len 512
    before=$(n_fds)
    for _ in 1 2 3 4 5; do
        raw 'GET /hea'
        raw 'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n{"prompt'
    done
    for _ in $(seq 20); do
        [ "$(n_fds)" -le "$before" ] && break
        sleep 0.1
    done
    [ "$(n_fds)" -le "$before" ]
    # A request that came whole before the end is answered.
    exec 4<>"/dev/tcp/127.0.0.1/${U##*:}"
    printf 'GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&4
    cat <&4 | grep -q '"status":"ok"'
    exec 4>&-
}

@test "http: SIGTERM does not wait for a request that never comes whole" {
    serve
    exec 4<>"/dev/tcp/127.0.0.1/${U##*:}"
    printf 'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n{"prompt' >&4
    sleep 0.2
    kill -TERM $pid
    for _ in $(seq 50); do kill -0 $pid 2>/dev/null || break; sleep 0.1; done
    ! kill -0 $pid 2>/dev/null
    rc=0; wait $pid || rc=$?
    exec 4>&-
    pid=
    [ $rc -eq 0 ]
}

@test "http: what a request means is honoured or refused, never dropped" {
    serve --max-model-len 512 --max-num-seqs 1 --max-queued-requests 1
    P=/v1/completions C=/v1/chat/completions
    # A NUL in a string would end it, and with it the request.
    printf '{"prompt":"a\0b","max_tokens":1}' >nul
    [ "$(curl -sS -o body -w '%{http_code}' "$U$P" --data-binary @nul)" = 400 ]
    has "$(jq -r .error.message body)" NUL
    # No tokens are no tokens.
    [ "$(post $P '{"prompt":"abc","max_tokens":0}')" = 200 ]
    [ "$(jq -c '[.choices[0].text,.choices[0].finish_reason,.usage.completion_tokens]' body)" = '["","length",0]' ]
    curl -sS "$U/metrics" | grep -q '^vllm:e2e_request_latency_seconds_count{.*} 1$'
    [ "$(post $P '{"prompt":"abc","max_tokens":2,"temperature":1e-40}')" = 200 ]
    [ "$(post $P '{"prompt":"abc","max_tokens":2,"echo":true,"logprobs":1}')" = 400 ]
    [ "$(jq -r .error.param body)" = logprobs ]
    [ "$(post $P '{"prompt":"abc","max_tokens":2,"stream":true,"stream_options":{"frob":1}}')" = 400 ]
    M='"messages":[{"role":"user","content":"x"}],"max_tokens":1'
    for v in messages bos_token add_generation_prompt; do
        [ "$(post $C "{$M,\"chat_template_kwargs\":{\"$v\":\"\"}}")" = 400 ]
        [ "$(jq -r .error.param body)" = chat_template_kwargs ]
    done
    [ "$(post $C "{$M,\"chat_template_kwargs\":{\"other\":1}}")" = 200 ]
    # The name comes back in each event.
    [ "$(post $P "{\"prompt\":\"a\",\"max_tokens\":1,\"model\":\"$(printf 'm%.0s' $(seq 300))\"}")" = 400 ]
    # Offsets count characters, as the text's reader does.
    [ "$(post $P '{"prompt":"abc","max_tokens":40,"temperature":0,"logprobs":0,"ignore_eos":true}')" = 200 ]
    jq -e '.choices[0] | (.text | length) >= (.logprobs.text_offset | max)' body
    # More than the queue holds is refused, which is no client that went away.
    [ "$(post $P '{"prompt":"a","max_tokens":9,"n":9}')" = 429 ]
    curl -sS "$U/metrics" | grep -q '^radiance:client_disconnect_total{.*} 0$'
}

@test "http: a prompt far beyond the context is refused before it is read" {
    serve --max-model-len 512
    { printf '{"prompt":"'; head -c 3000000 /dev/zero | tr '\0' a; printf '"}'; } >big
    [ "$(curl -sS -o body -w '%{http_code}' "$U/v1/completions" --data-binary @big)" = 400 ]
    has "$(jq -r .error.message body)" "3000000 bytes"
    { printf '{"prompt":[1'; head -c 300000 /dev/zero | sed 's/./,1/g'; printf ']}'; } >big
    [ "$(curl -sS -o body -w '%{http_code}' "$U/v1/completions" --data-binary @big)" = 400 ]
    has "$(jq -r .error.message body)" "more values"
}

@test "http: a full queue answers 429 with Retry-After" {
    serve --max-num-seqs 1 --max-queued-requests 1 --max-model-len 512
    curl -sS "$U/v1/completions" -d '{"prompt":"a","max_tokens":500,"ignore_eos":true,"n":2}' >/dev/null 2>&1 & c=$!
    sleep 0.3
    curl -sS -D head -o body "$U/v1/completions" -d '{"prompt":"a","max_tokens":1,"n":4}'
    kill $c 2>/dev/null || true
    grep -q ' 429 ' head
    grep -qi '^retry-after:' head
}

@test "http: SIGTERM lets running requests finish and exits 0" {
    serve
    curl -sSN "$U/v1/completions" -d '{"prompt":"abc","stream":true,"max_tokens":60,"ignore_eos":true}' >s & c=$!
    sleep 0.2
    kill -TERM $pid
    rc=0; wait $pid || rc=$?
    wait $c
    [ $rc -eq 0 ]
    pid=
    grep -q '^data: \[DONE\]' s
}

@test "http: the server runs on the test device" {
    serve
    post /v1/completions '{"prompt":"abc","max_tokens":12,"temperature":0}'
    a=$(jq -r '.choices[0].text' body)
    kill -TERM $pid; wait $pid
    serve --device test
    post /v1/completions '{"prompt":"abc","max_tokens":12,"temperature":0}'
    [ "$(jq -r '.choices[0].text' body)" = "$a" ]
}

@test "http: the openai package, unchanged" {
    py=${RAD_PYTHON:-python3}
    "$py" -c 'import openai' 2>/dev/null || skip "no openai package: set RAD_PYTHON"
    serve --max-model-len 512
    run_split "$py" "$SRC/t/http/openai_client.py" "$U" tiny
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(echo "$output" | grep -c '^ok')" -ge 11 ]
}

@test "http: a port in use and a missing file are refused with exit 3" {
    serve
    run_fail 3 radiance -m "$M" --port "${U##*:}"
    has "$stderr" "cannot listen"
    run_fail 3 radiance -m "$M" --host no.such.host.invalid --port 0
}
