#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same GGUF in llama.cpp and in radiance: perplexity and greedy tokens.

    compare-llama-cpp.py MODEL.gguf MODEL.rad TEXT [--tokens N] [--window N] [--exact]

Needs the PyPI packages llama-cpp-python and numpy, and `radiance` on PATH.
llama.cpp rounds activations to 8 bits when it multiplies quantised weights;
--exact (with the package gguf) decodes the weights into a float32 GGUF first
and keeps a float32 cache, so that both compute with the same numbers. Exit 1 when the perplexities differ
by more than 0.5 %, or when greedy tokens part where the two best logits of
either side differ by 0.05 or more."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from llama_cpp import Llama

PROMPTS = ["The capital of France is", "Once upon a time, there was a little girl who",
           "Water boils at a temperature of"]


def decoded(path, out):
    """Writes the model with every tensor as float32."""
    import gguf
    src = gguf.GGUFReader(path)
    arch = src.fields["general.architecture"].contents()
    dst = gguf.GGUFWriter(out, arch)
    for key, field in src.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = 0 if key == "general.file_type" else field.contents()
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        dst.add_key_value(key, value, kind, sub_type=sub)
    for t in src.tensors:
        dst.add_tensor(t.name, gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32))
    dst.write_header_to_file()
    dst.write_kv_data_to_file()
    dst.write_tensors_to_file()
    dst.close()


def load(path, n_ctx, exact):
    """As llama.cpp comes, with a float16 cache; exact: a float32 one."""
    cache = {"type_k": 0, "type_v": 0} if exact else {}
    return Llama(path, n_ctx=n_ctx, n_batch=min(n_ctx, 512), logits_all=True, verbose=False,
                 n_threads=os.cpu_count(), **cache)


def peer_perplexity(model, ids, window):
    nll = []
    for at in range(0, len(ids), window):
        part = ids[at:at + window]
        model.reset()
        model.eval(part)
        rows = model.scores[:len(part)].astype(np.float64)
        top = rows.max(1)
        lse = top + np.log(np.exp(rows - top[:, None]).sum(1))
        nll += [lse[i] - rows[i, part[i + 1]] for i in range(len(part) - 1)]
    return float(np.exp(np.mean(nll)))


def radiance(*args):
    return json.loads(subprocess.run(["radiance", "-q", *args, "--json"], check=True,
                                     capture_output=True, text=True).stdout)


def greedy(model, rad, prompt, n):
    """Tokens that agree, and the gaps of the two best logits where they part."""
    ids = model.tokenize(prompt.encode(), add_bos=False)
    ours = radiance("-m", rad, "-p", prompt, "-n", str(n), "--temp", "0", "--ignore-eos",
                    "--logprobs", "2")
    if ours["prompt_ids"] != ids:
        return 0, float("inf"), float("inf")
    model.reset()
    model.eval(ids)
    for k in range(n):
        row = model.scores[model.n_tokens - 1]
        best = np.argsort(-row)[:2]
        if int(best[0]) != ours["ids"][k]:
            top = ours["logprobs"][k]["top"]
            return k, float(row[best[0]] - row[best[1]]), top[0]["logprob"] - top[1]["logprob"]
        model.eval([int(best[0])])
    return n, 0.0, 0.0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("gguf")
    ap.add_argument("rad")
    ap.add_argument("text")
    ap.add_argument("--tokens", type=int, default=8192)
    ap.add_argument("--window", type=int, default=512)
    ap.add_argument("--greedy", type=int, default=64)
    ap.add_argument("--exact", action="store_true")
    a = ap.parse_args()
    path = a.gguf
    with tempfile.TemporaryDirectory() as tmp:
        if a.exact:
            path = os.path.join(tmp, "f32.gguf")
            decoded(a.gguf, path)
        model = load(path, a.window, a.exact)
        with open(a.text, "rb") as f:
            ids = model.tokenize(f.read(), add_bos=False, special=False)[:a.tokens]
        peer = peer_perplexity(model, ids, a.window)
        ours = radiance("-m", a.rad, "--score", a.text, "--score-tokens", str(a.tokens),
                        "--score-window", str(a.window))["perplexity"]
        off = abs(ours / peer - 1)
        print("perplexity: llama.cpp %.4f, radiance %.4f, %.3f %% apart" % (peer, ours, 100 * off))
        bad = off > 0.005
        for p in PROMPTS:
            k, theirs, mine = greedy(model, a.rad, p, a.greedy)
            print("greedy: %d of %d%s  %r" % (k, a.greedy, "" if k == a.greedy else
                  ", gap %.3f and %.3f" % (theirs, mine), p))
            bad |= k < a.greedy and min(theirs, mine) >= 0.05
    return 1 if bad else 0


sys.exit(main())
