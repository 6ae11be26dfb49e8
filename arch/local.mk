# SPDX-License-Identifier: Apache-2.0
dist_map_DATA += \
	arch/maps/hf_decoder.json arch/maps/hf_rope.json arch/maps/hf_quant.json arch/maps/hf_window.json \
	arch/maps/llama.json arch/maps/mistral.json arch/maps/qwen2.json arch/maps/qwen3.json \
	arch/maps/gguf_decoder.json \
	arch/maps/gguf_llama.json arch/maps/gguf_qwen2.json arch/maps/gguf_qwen3.json
dist_circuit_DATA += arch/circuits/decoder.json
dist_block_DATA += \
	arch/blocks/embed.json arch/blocks/attn.json arch/blocks/ffn.json arch/blocks/head.json
