# SPDX-License-Identifier: Apache-2.0
# The LAB on whole files: golden plans, what is served and what is not, bad
# configs, data files of several folders. Details: t/check/lab-check.c.
load lib/common

PROBE=$BUILD/t/helper/lab-probe

# Every config.json of the golden checkpoints, in $TMP/golden.
golden_configs() {
    need_fixtures golden/unpack.sh
    need_tool xz
    mkdir -p golden
    for t in "$FIXTURES"/golden/given-*.tar.xz; do
        xz -dc "$t" | tar -xf - -C golden --wildcards '*/config.json'
    done
}

@test "lab: the golden plans come out byte for byte" {
    n=0
    for c in "$SRC"/t/plans/*.config.json; do
        plan=${c%.config.json}.plan
        run_ok "$PROBE" plan "$c"
        printf '%s\n' "$output" >plan
        diff "$plan" plan
        n=$((n + 1))
    done
    [ "$n" -ge 9 ]
    # and each plan has a config
    for plan in "$SRC"/t/plans/*.plan; do
        [ -f "${plan%.plan}.config.json" ] || { echo "$plan: no config"; false; }
    done
}

@test "lab: the plans' configs are those of the golden checkpoints" {
    golden_configs
    for c in "$SRC"/t/plans/*.config.json; do
        name=$(basename "$c" .config.json)
        case $name in gguf-*) continue ;; esac
        cmp "$c" "golden/$name/config.json"
    done
}

@test "lab: each golden checkpoint is served, or refused with the pinned reason" {
    golden_configs
    cd golden
    run_split "$PROBE" serves $(printf '%s/config.json\n' * | LC_ALL=C sort)
    [ "$status" -eq 1 ]
    printf '%s\n' "$output" >../serves
    diff "$SRC/t/golden/lab/serves.txt" ../serves
    [ "$(wc -l <../serves)" -ge 120 ]
}

@test "lab: each bad config is refused, by key and value" {
    need_fixtures fixtures/mkbad.py
    need_tool python3
    python3 "$FIXTURES/fixtures/mkbad.py" mk >/dev/null
    n=0
    for c in mk/bad/*.config.json; do
        case $c in *vocab-larger*) continue ;; esac      # the converter sees the tensor
        run_fail 1 "$PROBE" plan "$c"
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
        case $c in
        *nested* | *truncated* | *1e400* | *not-object*) ;;
        *) has "$stderr" "key '" ;;
        esac
        n=$((n + 1))
    done
    [ "$n" -ge 20 ]
    run_ok "$PROBE" plan mk/ok/config.json
}

@test "lab: each bad GGUF model is refused, by key and value" {
    need_fixtures fixtures/mkbad.py
    need_tool python3
    python3 "$FIXTURES/fixtures/mkbad.py" mk >/dev/null
    run_ok "$PROBE" plan mk/ok/model.gguf
    while read -r file key; do
        run_fail 1 "$PROBE" plan "mk/bad/gguf-model-$file.gguf"
        has "$stderr" "$key"
    done <<'EOF'
head-count-0 key 'llama.attention.head_count' (number 0)
kv-heads-do-not-divide key 'llama.attention.head_count_kv' (number 3)
block-count-huge key 'llama.block_count' (number 4294967295)
block-count-negative key 'llama.block_count' (number -1)
rope-dim-odd key 'llama.rope.dimension_count' (number 7)
eps-nan llama.attention.layer_norm_rms_epsilon
EOF
}

@test "lab: a file of an earlier folder replaces one of the same name" {
    mkdir -p own/maps
    sed 's/"match": \["llama"\]/"match": ["llama", "my_llama"]/' "$SRC/arch/maps/llama.json" \
        >own/maps/llama.json
    RADIANCE_HOME=$TMP/own:$SRC/arch run_ok "$PROBE" pairs
    has "$output" "myllama fp8_e4m3"
    RADIANCE_HOME=$SRC/arch run_ok "$PROBE" pairs
    lacks "$output" "myllama"
}

@test "lab: a further model of a known shape is one small map" {
    mkdir -p own/maps
    cat >own/maps/seventh.json <<'EOF'
{
  "schema": 1,
  "description": "Llama's shape under another name, with biases on q, k and v",
  "source": "config",
  "match": ["seventh"],
  "quants": [""],
  "circuit": "decoder",
  "include": ["hf_decoder", "hf_rope"],
  "keys": {
    "head_dim": { "type": "dim", "optional": true },
    "max_position_embeddings": { "type": "dim" },
    "num_key_value_heads": { "type": "dim", "optional": true }
  },
  "refused": { "residual_dropout": "no block has it" },
  "point": { "q_bias": true, "k_bias": true, "v_bias": true }
}
EOF
    RADIANCE_HOME=$TMP/own:$SRC/arch
    sed 's/"model_type": "llama"/"model_type": "seventh"/; /attention_bias\|mlp_bias\|architectures\|LlamaFor/d; s/^ \],$//' \
        "$SRC/t/plans/llama.config.json" >config.json
    run_ok "$PROBE" plan config.json
    has "$output" "weight blk.2.attn_v.bias [64]"
    sed 's/"model_type"/"residual_dropout": 0.1, "model_type"/' config.json >bad.json
    run_fail 1 "$PROBE" plan bad.json
    has "$stderr" "key 'residual_dropout' (number 0.1"
    has "$stderr" "no block has it"
}

@test "lab: a broken file names itself and the place" {
    mkdir -p own/maps own/blocks
    echo '{ "schema": 1, }' >own/maps/x.json
    RADIANCE_HOME=$TMP/own:$SRC/arch run_fail 3 "$PROBE" open
    has "$stderr" "own/maps/x.json': 1:16: "
    rm own/maps/x.json
    sed 's/"n_ff"/"n_fff"/' "$SRC/arch/blocks/ffn.json" >own/blocks/ffn.json
    RADIANCE_HOME=$TMP/own:$SRC/arch run_fail 3 "$PROBE" open
    has "$stderr" "own/blocks/ffn.json': /"
    has "$stderr" "no parameter 'n_ff'"
}

@test "lab: a deep model is laid out in no time" {
    sed 's/"num_hidden_layers": 3/"num_hidden_layers": 200/' "$SRC/t/plans/llama.config.json" >c.json
    start=$(date +%s%N)
    run_ok "$PROBE" plan c.json
    has "$output" "layers=200 "
    [ $((($(date +%s%N) - start) / 1000000)) -lt 5000 ]
}

@test "lab: the schemas list the keys that the reader takes" {
    need_tool python3
    run_ok python3 - "$SRC" <<'EOF'
import json, re, sys
src = sys.argv[1]
def keys(o):
    """Every set of names that some object of the schema may have."""
    if isinstance(o, dict):
        if isinstance(o.get("properties"), dict) and "type" in o and o["type"] == "object":
            yield frozenset(o["properties"])
        for v in o.values():
            yield from keys(v)
    elif isinstance(o, list):
        for v in o:
            yield from keys(v)
want, have = set(), set()
for n in ("map", "circuit", "block"):
    have |= set(keys(json.load(open(f"{src}/arch/schemas/{n}.schema.json"))))
for f in ("doc", "block", "circuit", "map"):
    text = open(f"{src}/librad/lab/{f}.c").read()
    for m in re.finditer(r'lab_want_object\([^;]*?((?:"[^"]*"\s*)+)[^";]*\)', text):
        want.add(frozenset(" ".join(re.findall(r'"([^"]*)"', m.group(1))).split()))
    for m in re.finditer(r'map \? "([^"]*)" : "([^"]*)"', text):
        want |= {frozenset(m.group(1).split()), frozenset(m.group(2).split())}
# a fragment's keys are a part of a map's
fragment = {w for w in want if "fragment" in w}
union = frozenset().union(*[w for w in want if "match" in w], *fragment)
want = {w for w in want if "match" not in w and "fragment" not in w} | {union}
for w in want - have:
    print("only the reader:", sorted(w))
for h in have - want:
    print("only a schema:", sorted(h))
sys.exit(want != have or len(want) < 15)
EOF
}
