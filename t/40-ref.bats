# SPDX-License-Identifier: Apache-2.0
# The reference kernels: their vocabulary is documented, and they compute it.
load lib/common

@test "ref: every op of ops.def is a section of rad-ops(7), and no other is" {
    sed -n 's/^RAD_OP(\([a-z0-9_]*\),.*/\1/p' "$SRC/kernels/ref/ops.def" | sort >ops
    sed -n 's/^\.Ss \([a-z0-9_]*\)$/\1/p' "$SRC/man/rad-ops.7" | sort >documented
    [ "$(wc -l <ops)" -ge 20 ]
    diff ops documented
}

@test "ref: rad-ops(7) names every parameter and operand of an op in its section" {
    awk '
        FNR == NR && /^\.Ss / { op = $2; next }
        FNR == NR { gsub(/[^A-Za-z0-9_]/, " "); text[op] = text[op] " " $0 " "; next }
        /^RAD_OP\(/ { op = $0; sub(/^RAD_OP\(/, "", op); sub(/,.*/, "", op) }
        op != "" {
            line = $0
            while (match(line, /[PO]_[A-Z_]+\([A-Za-z0-9_]+\)/)) {
                w = substr(line, RSTART, RLENGTH)
                sub(/^[^(]*\(/, "", w); sub(/\)$/, "", w)
                if (index(text[op], " " w " ") == 0) { print op ": " w; bad = 1 }
                n++
                line = substr(line, RSTART + RLENGTH)
            }
        }
        END { if (n < 80) { print "only " n " words found"; bad = 1 } exit bad }
    ' "$SRC/man/rad-ops.7" "$SRC/kernels/ref/ops.def"
}
