# SPDX-License-Identifier: Apache-2.0
# rad-convert end to end: pipes, refusals, determinism, quantisers, and that a
# failed run leaves nothing behind.
load lib/common

setup_file() {
    fixtures=${RAD_FIXTURES:-$BATS_TEST_DIRNAME/../../shared}
    if [ -f "$fixtures/golden/unpack.sh" ]; then
        sh "$fixtures/golden/unpack.sh" "$BATS_FILE_TMPDIR" llama qwen3
    fi
    if [ -f "$fixtures/fixtures/mkbad.py" ] && command -v python3 >/dev/null; then
        python3 "$fixtures/fixtures/mkbad.py" "$BATS_FILE_TMPDIR/mkbad" >/dev/null
    fi
}
D() { echo "$BATS_FILE_TMPDIR/$1"; }

@test "convert: a folder into a pipe is the file" {
    need_fixtures golden/unpack.sh
    export SOURCE_DATE_EPOCH=1700000000
    run_ok rad-convert -q "$(D llama)" -o m.rad
    rad-convert -q "$(D llama)" -o - >p.rad
    cmp m.rad p.rad
    rad-convert -q -j 1 "$(D llama)" -o j1.rad
    cmp m.rad j1.rad
    rad-convert -q "$(D llama)" -o - | rad-info - >info
    grep -q llama info
}

@test "convert: a gguf through zstd and jq" {
    need_fixtures fixtures/mkbad.py
    need_tool zstd jq
    rad-convert -q "$(D mkbad)/ok/model.gguf" -o - | zstd -q | rad-info --json - | jq -e . >j
    [ "$(jq -r .architecture j)" = llama ]
}

@test "convert: one flipped bit is a no from rad-info --verify" {
    need_fixtures golden/unpack.sh
    rad-convert -q "$(D llama)" -o m.rad
    run_ok rad-info --verify m.rad
    size=$(stat -c %s m.rad)
    # inside the data: the last plane is far behind the 2 MiB of tables
    at=$((size - 3000))
    byte=$(od -An -tu1 -j$at -N1 m.rad)
    printf "\\$(printf %o $((byte ^ 16)))" | dd of=m.rad bs=1 seek=$at conv=notrunc status=none
    run_fail 1 rad-info --verify m.rad
}

@test "convert: the sound models of mkbad are accepted" {
    need_fixtures fixtures/mkbad.py
    run_ok rad-convert -q "$(D mkbad)/ok/model.gguf" -o g.rad
    run_ok rad-convert -q "$(D mkbad)/ok" -o d.rad
}

@test "convert: every damaged model is refused with exit 3, file and reason" {
    need_fixtures fixtures/mkbad.py
    bad=0 n=0
    while IFS="$(printf '\t')" read -r file kind level what; do
        n=$((n + 1))
        case $kind in
        gguf) in=$(D mkbad)/bad/$file ;;
        *)
            rm -rf dir; mkdir dir
            cp "$(D mkbad)"/ok/config.json "$(D mkbad)"/ok/model.safetensors \
                "$(D mkbad)"/ok/tokenizer.json dir
            case $kind in
            safetensors) cp "$(D mkbad)/bad/$file" dir/model.safetensors ;;
            config) cp "$(D mkbad)/bad/$file" dir/config.json ;;
            tokenizer) cp "$(D mkbad)/bad/$file" dir/tokenizer.json ;;
            esac
            in=dir ;;
        esac
        rc=0
        timeout 60 rad-convert "$in" -o out.rad 2>err >out || rc=$?
        text=$(cat err)
        if [ $rc -ne 3 ] || [ -e out.rad ] || [ "$(wc -l <err)" -gt 3 ] || ! grep -q "^rad-convert: '" err; then
            echo "$file ($what): exit $rc: $text"
            bad=$((bad + 1))
        fi
        rm -f out.rad
    done <"$(D mkbad)/MANIFEST.tsv"
    echo "$n files, $bad wrong"
    [ $n -ge 130 ] && [ $bad -eq 0 ]
}

@test "convert: a full disk, a closed pipe and SIGINT leave no file and say so" {
    need_fixtures golden/unpack.sh
    run_fail 3 rad-convert -q "$(D llama)" -o /dev/full
    has "$stderr" "No space left"
    run_fail 141 bash -c "set -o pipefail; rad-convert -q '$(D llama)' -o - | true"
    has "$stderr" "the reader of stdout went away"
    mkdir d
    mkfifo hold
    # a signal while it writes: stop it on a pipe that nobody reads. A job in
    # the background would ignore SIGINT, so let timeout send it.
    exec 9<>hold
    run_split timeout -k 20 -s INT --preserve-status 1 \
        bash -c "exec rad-convert -q '$(D llama)' -o - >hold"
    exec 9<&-
    [ "$status" -eq 130 ] || { show_run; return 1; }
    has "$stderr" "interrupted"
    [ -z "$(ls d)" ]
}

@test "convert: recipes: rules, the first counts, errors name file and line" {
    need_fixtures golden/unpack.sh
    cat >r <<'R'
# feed-forward in 8 bits
blk.*.ffn_*.weight  rtn codes=i8 group=32 scale=bf16
*                   cast dtype=f32
R
    run_ok rad-convert --recipe r --plan-only "$(D qwen3)"
    has "$output" "i8*bf16[1x32]"
    has "$output" "f32"
    run_ok rad-convert --recipe r "$(D qwen3)" -o q.rad
    has "$stderr" "mean relative error"
    run_ok rad-info --recipe q.rad
    has "$output" "group=32"
    echo 'oops' >r2
    run_fail 2 rad-convert --recipe r2 "$(D qwen3)" -o q2.rad
    has "$stderr" "r2:1"
    run_fail 2 rad-convert --quant '*=nosuch' "$(D qwen3)" -o q2.rad
    has "$stderr" "nosuch"
    run_fail 2 rad-convert --quant '*=rtn:cods=i4' "$(D qwen3)" -o q2.rad
    has "$stderr" "cods"
    [ ! -e q2.rad ]
}

@test "convert: a quantised model still speaks" {
    need_fixtures golden/unpack.sh
    rad-convert -q --quant 'blk.*=rtn:codes=i8,group=32,scale=f16' "$(D llama)" -o q.rad
    run_ok radiance -q -m q.rad -p 'abc' -n 8 --temp 0 --json
    has "$output" '"finish_reason"'
}

@test "rad-convert: a refusal names the file, once, and what is there instead" {
    need_fixtures golden/unpack.sh
    sh "$FIXTURES/golden/unpack.sh" g qwen3-embed hy_v4
    run_fail 3 rad-convert -q g/hy_v4 -o m.rad
    has "$stderr" "'g/hy_v4': 'config.json': key 'model_type' (string \"hy_v4\")"
    run_fail 3 rad-convert -q g/qwen3-embed -o m.rad
    has "$stderr" "there is 'embed_tokens.weight', as in a model stored without"
}
