#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes t/golden/enc/TYPE.gguf: seeded random blocks of each ggml type, and
what the `gguf` Python package makes of them.

    mk-ggml-golden.py OUTDIR       (needs numpy and gguf)

Each file has a tensor "w" of one row a block and, as metadata, the SHA-256 of
its dequantised f32 bytes and its first values, so that a test compares every
bit of a file of a few kilobytes. Blocks that are not finite are drawn again:
NaN has many bit patterns. MXFP4 keeps its infinities, which have one.
"""
import hashlib
import os
import sys

import numpy as np
import gguf
from gguf import quants

TYPES = ("Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS IQ2_XXS IQ2_XS IQ2_S "
         "IQ3_XXS IQ3_S IQ1_S IQ1_M TQ1_0 TQ2_0 MXFP4 NVFP4").split()
# enough codes that every entry of the larger codebooks is drawn
BYTES = {"IQ1_S": 40960, "IQ1_M": 40960, "IQ2_S": 40960, "IQ2_XS": 24576}


def blocks(name, qtype, rng):
    """[n, block bytes] u8 and [n, block elements] f32, n a multiple of 4."""
    _, size = gguf.GGML_QUANT_SIZES[qtype]
    n = BYTES.get(name, 12288) // size & ~3
    raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
    while True:
        with np.errstate(all="ignore"):
            x = quants.dequantize(raw, qtype)
        bad = np.isnan(x).any(axis=1)
        if name != "MXFP4":
            bad |= ~np.isfinite(x).all(axis=1)
        if name == "NVFP4":             # 0xff is no unsigned e4m3 number
            bad |= (raw[:, :4] == 255).any(axis=1)
        if not bad.any():
            return raw, x
        raw[bad] = rng.integers(0, 256, (int(bad.sum()), size), dtype=np.uint8)


def main(argv):
    if len(argv) != 2:
        sys.stderr.write(__doc__)
        return 2
    os.makedirs(argv[1], exist_ok=True)
    for name in TYPES:
        qtype = gguf.GGMLQuantizationType[name]
        rng = np.random.default_rng(0x52414400 + int(qtype))
        raw, x = blocks(name, qtype, rng)
        w = gguf.GGUFWriter(os.path.join(argv[1], name.lower() + ".gguf"), "golden")
        w.add_string("golden.sha256", hashlib.sha256(x.astype("<f4").tobytes()).hexdigest())
        w.add_array("golden.head", [int(v) for v in x.ravel()[:256].view(np.int32)])
        # four blocks a row: planes then have to join blocks
        w.add_tensor("w", raw.reshape(-1, 4 * raw.shape[1]), raw_dtype=qtype)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
