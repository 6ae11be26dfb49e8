#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a checkpoint folder of the goldens' layout as a GGUF, the way the
converters of the format do it: llama's queries and keys with their rows paired
for neighbouring rotation, llama3 scaling as a tensor of frequency factors.

    mk-gguf.py DIR OUT.gguf                 every tensor in f32
    mk-gguf.py DIR OUT.gguf q8_0 [F32.gguf] matrices in a block type; F32.gguf
                                            gets what gguf reads back out of it

Wants the Python packages gguf and numpy. The tokenizer is a stand-in (the
bytes and one merge): logits are what the file is for.
"""
import json
import math
import os
import struct
import sys

import gguf
import numpy as np


def tensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head, base = json.loads(f.read(n)), 8 + n
        for name, t in head.items():
            if name == "__metadata__":
                continue
            lo, hi = t["data_offsets"]
            f.seek(base + lo)
            raw = f.read(hi - lo)
            if t["dtype"] == "BF16":
                a = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
            else:
                a = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[t["dtype"]]).astype("<f4")
            yield name, a.reshape(t["shape"])


def paired(a, heads):
    """Rows i and i + half of each head become neighbours."""
    s = a.shape
    return a.reshape(heads, 2, s[0] // heads // 2, *s[1:]).swapaxes(1, 2).reshape(s).copy()


FILE_TYPE = {"f32": 0, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9}
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    base, kind = name.rsplit(".", 1)
    if base.startswith("model.layers."):
        layer, base = base[len("model.layers."):].split(".", 1)
        return f"blk.{layer}.{NAMES[base]}.{kind}"
    return f"{NAMES[base]}.{kind}"


def llama3_factors(rope, theta, dim):
    """What each frequency is divided by."""
    lo, hi = rope["low_freq_factor"], rope["high_freq_factor"]
    ctx, out = rope["original_max_position_embeddings"], []
    for i in range(0, dim, 2):
        wave = 2 * math.pi * theta ** (i / dim)
        if wave < ctx / hi:
            out.append(1.0)
        elif wave > ctx / lo:
            out.append(rope["factor"])
        else:
            smooth = (ctx / wave - lo) / (hi - lo)
            out.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(out, "<f4")


def write(path, cfg, dir_, kind):
    arch = cfg["model_type"]
    w = gguf.GGUFWriter(path, arch)
    heads = cfg["num_attention_heads"]
    kv = cfg.get("num_key_value_heads") or heads
    dim = cfg.get("head_dim") or cfg["hidden_size"] // heads
    rope = cfg.get("rope_parameters") or cfg.get("rope_scaling") or {}
    theta = rope.get("rope_theta", cfg.get("rope_theta", 10000.0))
    how = rope.get("rope_type", rope.get("type", "default"))
    w.add_block_count(cfg["num_hidden_layers"])
    w.add_context_length(cfg["max_position_embeddings"])
    w.add_embedding_length(cfg["hidden_size"])
    w.add_feed_forward_length(cfg["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    w.add_key_length(dim)
    w.add_value_length(dim)
    w.add_rope_dimension_count(dim)
    w.add_layer_norm_rms_eps(cfg["rms_norm_eps"])
    w.add_rope_freq_base(theta)
    w.add_vocab_size(cfg["vocab_size"])
    w.add_file_type(FILE_TYPE[kind])
    if how == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif how not in ("default", "llama3"):
        sys.exit(f"mk-gguf: no spelling for rope type '{how}'")
    n = cfg["vocab_size"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    word = {**bytes_as_text(), 256: "ab"}
    w.add_token_list([word.get(i, f"<unused{i}>") for i in range(n)])
    w.add_token_types([1 if i in word else 5 for i in range(n)])
    w.add_token_merges(["a b"])
    if how == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_factors(rope, theta, dim))
    back = {}
    files = sorted(f for f in os.listdir(dir_)
                   if f.startswith("model") and f.endswith(".safetensors"))
    for f in files:
        for name, a in tensors(os.path.join(dir_, f)):
            if arch == "llama" and ".q_proj." in name:
                a = paired(a, heads)
            if arch == "llama" and ".k_proj." in name:
                a = paired(a, kv)
            to = gguf_name(name)
            q = gguf.GGMLQuantizationType[kind.upper()]
            if kind == "f32" or a.ndim < 2 or a.shape[-1] % gguf.GGML_QUANT_SIZES[q][0]:
                w.add_tensor(to, np.ascontiguousarray(a, "<f4"))
                back[to] = a
            else:
                blocks = gguf.quants.quantize(a, q)
                w.add_tensor(to, blocks, raw_dtype=q)
                back[to] = gguf.quants.dequantize(blocks, q)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return back


def bytes_as_text():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    text, extra = {}, 0
    for b in range(256):
        text[b] = chr(b) if b in keep else chr(256 + extra)
        extra += b not in keep
    return text


def main():
    dir_, out = sys.argv[1:3]
    kind = sys.argv[3] if len(sys.argv) > 3 else "f32"
    cfg = json.load(open(os.path.join(dir_, "config.json")))
    back = write(out, cfg, dir_, kind)
    if len(sys.argv) > 4:                # the same, read back
        plain = gguf.GGUFReader(out)
        w = gguf.GGUFWriter(sys.argv[4], cfg["model_type"])
        for f in plain.fields.values():
            if f.name.startswith("GGUF.") or f.name == "general.architecture":
                continue
            value, kinds = f.contents(), f.types
            if f.name == "general.file_type":
                value = 0
            if kinds[0] == gguf.GGUFValueType.ARRAY:
                if value:
                    w.add_array(f.name, value)
            else:
                w.add_key_value(f.name, value, kinds[0])
        for name, a in back.items():
            w.add_tensor(name, np.ascontiguousarray(a, "<f4"))
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()


main()
