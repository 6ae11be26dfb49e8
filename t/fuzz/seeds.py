#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files for the corpora of scripts/fuzz: seeds.py OUTDIR writes
OUTDIR/{gguf,safetensors}/*. Each is sound and says much in few bytes; what the
GGUF ones lack is tensor data, which the target puts behind them. OUTDIR/model
is a folder to convert with any small tokenizer."""
import json, os, struct, sys

U32, I32, F32, BOOL, STR, ARR, U64 = 4, 5, 6, 7, 8, 9, 10
FORM = {U32: 'I', I32: 'i', F32: 'f', BOOL: 'B', U64: 'Q'}
# ggml type: elements and bytes of a block
BLOCK = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24),
         8: (32, 34), 9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176),
         14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50),
         20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
         26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
         35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18)}


def text(s):
    b = s.encode()
    return struct.pack('<Q', len(b)) + b


def value(t, v):
    if t == STR:
        return text(v)
    if t == ARR:
        return struct.pack('<IQ', v[0], len(v[1])) + b''.join(value(v[0], x) for x in v[1])
    return struct.pack('<' + FORM[t], v)


def gguf(kvs, tensors, version=3):
    out = b'GGUF' + struct.pack('<IQQ', version, len(tensors), len(kvs))
    for k, t, v in kvs:
        out += text(k) + struct.pack('<I', t) + value(t, v)
    at = 0
    for name, kind, dims in tensors:
        out += text(name) + struct.pack('<I', len(dims)) + struct.pack('<%dQ' % len(dims), *dims)
        out += struct.pack('<IQ', kind, at)
        n = 1
        for d in dims:
            n *= d
        at += (n // BLOCK[kind][0] * BLOCK[kind][1] + 31) // 32 * 32
    return out + bytes(-len(out) % 32)


def tokens(model, toks, types, more):
    t = 'tokenizer.ggml.'
    return [('general.architecture', STR, 'llama'), (t + 'model', STR, model),
            (t + 'tokens', ARR, (STR, toks)), (t + 'token_type', ARR, (I32, types)),
            (t + 'bos_token_id', U32, 1), (t + 'eos_token_id', U32, 2),
            (t + 'add_bos_token', BOOL, 1),
            ('tokenizer.chat_template', STR, '{{ bos_token }}{{ messages[0].content }}')] + more


def bytes_to_unicode():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return {b: chr(b) if b in keep else chr(256 + sum(c not in keep for c in range(b)))
            for b in range(256)}


def ggufs():
    yield 'types', gguf([('general.architecture', STR, 'llama')],
                        [('t%d' % k, k, (max(b[0], 4), 2)) for k, b in BLOCK.items()])
    for k, b in BLOCK.items():
        yield 'type%d' % k, gguf([('general.alignment', U32, 32)], [('w', k, (b[0] * 2, 3))],
                                 2 + k % 2)
    b2u = list(bytes_to_unicode().values())
    bpe = ['<unk>', '<s>', '</s>'] + b2u + ['He', 'll', 'Hell', 'Hello', '\u0120w']
    for pre in ('gpt-2', 'qwen2', 'llama-bpe', 'smollm', 'default'):
        yield 'bpe-' + pre, gguf(tokens('gpt2', bpe, [2, 3, 3] + [1] * (len(bpe) - 3), [
            ('tokenizer.ggml.pre', STR, pre),
            ('tokenizer.ggml.merges', ARR, (STR, ['H e', 'l l', 'He ll', 'Hell o', '\u0120 w']))]),
            [('w', 0, (4, 4))])
    spm = ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % i for i in range(256)] + \
        ['\u2581', 'H', 'e', 'l', 'o', 'w', 'He', 'll', '\u2581w', 'Hello', '\u2581Hello']
    kinds = [2, 3, 3] + [6] * 256 + [1] * 11
    scores = [0.0] * 259 + [-float(i) for i in range(11, 0, -1)]
    for model in ('llama', 't5'):
        yield model, gguf(tokens(model, spm, kinds, [
            ('tokenizer.ggml.scores', ARR, (F32, scores)),
            ('tokenizer.ggml.add_space_prefix', BOOL, 1),
            ('tokenizer.ggml.unknown_token_id', U32, 0)]), [('w', 0, (4, 4))])
    wp = ['[PAD]', '[CLS]', '[SEP]', '[UNK]', '\u2581hello', 'w', '\u2581w', 'or', 'ld', '\u2581!',
          '\u25811', '2', '3', '4', '5']
    yield 'bert', gguf(tokens('bert', wp, [3, 3, 3, 2] + [1] * 11, [
        ('tokenizer.ggml.seperator_token_id', U32, 2), ('tokenizer.ggml.unknown_token_id', U32, 3),
        ('tokenizer.ggml.padding_token_id', U32, 0)]),
        [('w', 0, (4, 4))])


BYTES = {'F64': 8, 'F32': 4, 'F16': 2, 'BF16': 2, 'I64': 8, 'I32': 4, 'I16': 2, 'I8': 1, 'U8': 1,
         'U16': 2, 'U32': 4, 'U64': 8, 'BOOL': 1, 'F8_E4M3': 1, 'F8_E5M2': 1, 'F8_E8M0': 1}


def safetensors(tensors, config=None):
    head, at = {'__metadata__': {'format': 'pt'}}, 0
    for name, kind, shape in tensors:
        n = BYTES[kind]
        for d in shape:
            n *= d
        head[name] = {'dtype': kind, 'shape': shape, 'data_offsets': [at, at + n]}
        at += n
    h = json.dumps(head, separators=(',', ':')).encode()
    out = struct.pack('<Q', len(h)) + h + bytes((i * 37 + 11) % 63 + 1 for i in range(at))
    return out if config is None else out + b'\0' + json.dumps(config).encode()


def safetensorss():
    yield 'types', safetensors([(k, k, [2, 3]) for k in BYTES] + [('s', 'F32', []),
                                                                   ('e', 'F16', [0, 4])])
    for i, (shape, scale, block) in enumerate([
            ([4, 6], [2, 3], [2, 2]), ([4, 6], [1], None), ([4, 6], [4, 1], [1, 6]),
            ([4, 6], [], None), ([2, 4, 6], [4, 3], [2, 2]), ([5, 7], [3, 4], [2, 2]),
            ([4, 6], [4], None)]):
        for k, s in (('F8_E4M3', 'F32'), ('F8_E5M2', 'BF16'), ('F8_E4M3', 'F8_E8M0')):
            q = {'quant_method': 'fp8', 'fmt': 'e4m3', 'activation_scheme': 'dynamic'}
            if block:
                q['weight_block_size'] = block
            yield 'fp8-%d-%s-%s' % (i, k, s), safetensors(
                [('w', k, shape), ('w_scale_inv', s, scale), ('n', 'BF16', [3])],
                {'model_type': 'llama', 'quantization_config': q})
    yield 'config', safetensors([('a', 'F32', [1])], {
        'model_type': 'qwen3_moe', 'text_config': {'quantization_config': {
            'quant_method': 'compressed-tensors', 'format': 'int-quantized'}}})


def model():
    e, ff, h, kv, hd, v = 8, 8, 2, 1, 4, 400
    b = 'model.layers.0.'
    t = [('model.embed_tokens', [v, e]), ('model.norm', [e]), ('lm_head', [v, e]),
         (b + 'input_layernorm', [e]), (b + 'post_attention_layernorm', [e]),
         (b + 'self_attn.q_proj', [h * hd, e]), (b + 'self_attn.k_proj', [kv * hd, e]),
         (b + 'self_attn.v_proj', [kv * hd, e]), (b + 'self_attn.o_proj', [e, h * hd]),
         (b + 'mlp.gate_proj', [ff, e]), (b + 'mlp.up_proj', [ff, e]),
         (b + 'mlp.down_proj', [e, ff])]
    c = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': e,
         'intermediate_size': ff, 'num_hidden_layers': 1, 'num_attention_heads': h,
         'num_key_value_heads': kv, 'head_dim': hd, 'vocab_size': v, 'rms_norm_eps': 1e-5,
         'rope_theta': 10000.0, 'max_position_embeddings': 128, 'hidden_act': 'silu',
         'tie_word_embeddings': False, 'torch_dtype': 'bfloat16'}
    yield 'config.json', json.dumps(c).encode()
    yield 'model.safetensors', safetensors([(n + '.weight', 'BF16', s) for n, s in t])


for name, make in (('model', model), ('gguf', ggufs), ('safetensors', safetensorss)):
    os.makedirs(os.path.join(sys.argv[1], name), exist_ok=True)
    for n, b in make():
        with open(os.path.join(sys.argv[1], name, n), 'wb') as f:
            f.write(b)
