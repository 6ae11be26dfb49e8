# SPDX-License-Identifier: Apache-2.0
# Damaged files through the whole chain: t/check/damage-check does it in one
# process, and here the commands meet a few hundred of them.
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
    CHECK=$BUILD/t/check/damage-check
    [ -x "$CHECK" ] || skip "damage-check is not built"
    need_tool python3
    python3 "$SRC/t/fuzz/seeds.py" seeds
}

# holds MODEL: every damage of it is refused or harmless.
holds() {
    run_ok "$CHECK" "$1"
    lacks "$output" "not ok"
    has "$output" " answers"
    lacks "$output" " 0 answers"
}

@test "damage: a converted model, cut, flipped and rewritten" {
    rad-convert -q seeds/model --tokenizer "$GOLDEN/tok-bpe" -o m.rad
    holds m.rad
}

@test "damage: a quantised model of a golden checkpoint" {
    rad-convert -q "$GOLDEN/llama" --quant '*_proj.weight=rtn:codes=i4,group=32' -o m.rad
    holds m.rad
}

# Each metadata row, then each word of the first weight's entry, overwritten.
@test "radiance: never dies of a damaged file, and says what is wrong" {
    rad-convert -q seeds/model --tokenizer "$GOLDEN/tok-bpe" -o m.rad
    cat >damage.py <<'EOF'
import struct, sys
b = open('m.rad', 'rb').read()
at = lambda o: struct.unpack_from('<Q', b, o)[0]
places = [at(72) + 24 * i + k for i in range(at(80)) for k in (0, 8, 16)]
places += [at(88) + k for k in range(0, 136, 8)] + list(range(8, 248, 8))
print(len(places))
for n, p in enumerate(places):
    v = (0, 2**63 - 1, 2**64 - 1)[n % 3]
    open('bad%d.rad' % n, 'wb').write(b[:p] + struct.pack('<Q', v) + b[p + 8:])
EOF
    n=$(python3 damage.py)
    bad=0 refused=0
    for ((i = 0; i < n; i++)); do
        rc=0
        radiance -q -j 1 -m bad$i.rad -n 1 -p x >out 2>err || rc=$?
        case $rc in
        0) ;;
        3) refused=$((refused + 1))
           grep -q '^radiance: ' err || { echo "bad$i: no message"; bad=1; } ;;
        *) echo "bad$i: exit $rc: $(head -3 err)"; bad=1 ;;
        esac
        rm bad$i.rad
    done
    [ $bad -eq 0 ]
    [ $refused -gt $((n / 4)) ]
}
