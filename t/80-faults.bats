# SPDX-License-Identifier: Apache-2.0
# Faults from outside: no memory, short reads, files larger than memory.
load lib/common

setup_file() {
    local fixtures=${RAD_FIXTURES:-${RAD_SRCDIR:-$BATS_TEST_DIRNAME/..}/../shared}
    [ ! -f "$fixtures/golden/unpack.sh" ] ||
        sh "$fixtures/golden/unpack.sh" "$BATS_FILE_TMPDIR" llama tok-bpe
}

setup() {
    common_setup
    need_fixtures golden/unpack.sh
    GOLDEN=$BATS_FILE_TMPDIR
}

@test "faults: each allocation fails once: no memory, no file, no leak" {
    CHECK=$BUILD/t/check/fault-check
    [ -x "$CHECK" ] || skip "fault-check is not built"
    run_ok "$CHECK" "$GOLDEN/llama"
    lacks "$output" "not ok"
    has "$output" "ok 6 - engine"
}

# peak_kib COMMAND...: largest resident size.
peak_kib() {
    python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

@test "faults: converting and verifying hold a window of the file, not all" {
    need_tool python3
    [ "$(sanitizers)" = no ] || skip "a sanitizer's shadow counts as memory"
    python3 - <<'EOF'
import json, os, struct
e, ff, n = 1024, 4096, 16
t = [('model.embed_tokens', [336, e]), ('lm_head', [336, e]), ('model.norm', [e])]
for i in range(n):
    b = 'model.layers.%d.' % i
    t += [(b + 'input_layernorm', [e]), (b + 'post_attention_layernorm', [e])]
    t += [(b + 'self_attn.%s_proj' % p, [e, e]) for p in 'qkvo']
    t += [(b + 'mlp.gate_proj', [ff, e]), (b + 'mlp.up_proj', [ff, e]),
          (b + 'mlp.down_proj', [e, ff])]
head, at = {}, 0
for name, s in t:
    size = 2 * s[0] * (s[1] if len(s) > 1 else 1)
    head[name + '.weight'] = {'dtype': 'BF16', 'shape': s, 'data_offsets': [at, at + size]}
    at += size
h = json.dumps(head).encode()
os.mkdir('big')
with open('big/model.safetensors', 'wb') as f:
    f.write(struct.pack('<Q', len(h)) + h)
    f.truncate(8 + len(h) + at)
with open('big/config.json', 'w') as f:
    json.dump({'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': e,
               'intermediate_size': ff, 'num_hidden_layers': n, 'num_attention_heads': 8,
               'num_key_value_heads': 8, 'head_dim': e // 8, 'vocab_size': 336,
               'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, 'max_position_embeddings': 128,
               'hidden_act': 'silu', 'tie_word_embeddings': False}, f)
EOF
    tok=$GOLDEN/tok-bpe
    for to in m.rad -; do
        peak=$(peak_kib rad-convert -q -j 2 big --tokenizer "$tok" -o $to)
        echo "rad-convert -o $to: $peak KiB"
        [ "$peak" -lt 160000 ]
    done
    [ "$(stat -c %s m.rad)" -gt 500000000 ]
    peak=$(peak_kib rad-info --verify m.rad)
    echo "rad-info --verify: $peak KiB"
    [ "$peak" -lt 100000 ]
}

@test "faults: a container that comes in small pieces is read whole" {
    need_tool python3 zstd
    rad-convert -q "$GOLDEN/llama" -o m.rad
    zstd -q m.rad
    # writes of 1 to 4093 bytes, so reads are short
    cat >drip.py <<'EOF'
import os, sys
b, at, n = open(sys.argv[1], 'rb').read(), 0, 1
while at < len(b):
    at += os.write(1, b[at:at + n])
    n = n * 7 % 4093 + 1
EOF
    rad-info m.rad | sed 1d >want
    for f in m.rad m.rad.zst; do
        python3 drip.py $f | rad-info --verify -
        python3 drip.py $f | rad-info - | sed 1d >got
        cmp want got
    done
    head -c 1000 m.rad.zst >cut.zst
    run_fail 3 rad-info cut.zst
    has "$stderr" cut.zst
}
