# SPDX-License-Identifier: Apache-2.0
dist_map_DATA += \
	arch/maps/hf_decoder.json arch/maps/hf_rope.json arch/maps/hf_quant.json arch/maps/hf_window.json arch/maps/hf_whole.json \
	arch/maps/llama.json arch/maps/mistral.json arch/maps/qwen2.json arch/maps/qwen3.json \
	arch/maps/starcoder2.json \
	arch/maps/olmo.json \
	arch/maps/olmo2.json \
	arch/maps/hf_layers.json \
	arch/maps/hf_rope_kinds.json \
	arch/maps/olmo3.json \
	arch/maps/gemma.json \
	arch/maps/gemma2.json \
	arch/maps/gemma3_text.json \
	arch/maps/granite.json \
	arch/maps/granite_swa.json \
	arch/maps/cohere.json \
	arch/maps/cohere2.json \
	arch/maps/hf_partial.json \
	arch/maps/glm.json \
	arch/maps/glm4.json \
	arch/maps/phi.json \
	arch/maps/phi3.json \
	arch/maps/stablelm.json \
	arch/maps/helium.json \
	arch/maps/nemotron.json \
	arch/maps/exaone4.json \
	arch/maps/apertus.json \
	arch/maps/hunyuan_v1_dense.json \
	arch/maps/ernie4_5.json \
	arch/maps/ministral3.json \
	arch/maps/falcon.json \
	arch/maps/bitnet.json \
	arch/maps/nanochat.json \
	arch/maps/seed_oss.json \
	arch/maps/arcee.json \
	arch/maps/smollm3.json \
	arch/maps/gpt_neox.json \
	arch/maps/gpt2.json \
	arch/maps/gguf_decoder.json \
	arch/maps/gguf_llama.json arch/maps/gguf_qwen2.json arch/maps/gguf_qwen3.json
dist_circuit_DATA += arch/circuits/decoder.json
dist_block_DATA += \
	arch/blocks/embed.json arch/blocks/attn.json arch/blocks/ffn.json arch/blocks/head.json
EXTRA_DIST += arch/README.md \
	arch/schemas/map.schema.json arch/schemas/circuit.schema.json arch/schemas/block.schema.json

# ---- C: the lowering that architecture plugins share, and the one plugin that
# serves every mapped architecture
archincludedir = $(includedir)/arch
archinclude_HEADERS = arch/common/arch/rad_arch.h arch/common/arch/graph.h
ARCH_CPPFLAGS = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/arch/common

noinst_LTLIBRARIES += arch/common/libarch.la
arch_common_libarch_la_SOURCES = arch/common/graph.c
arch_common_libarch_la_CPPFLAGS = $(ARCH_CPPFLAGS)

archplug_LTLIBRARIES += arch/circuit/circuit.la
arch_circuit_circuit_la_SOURCES = arch/circuit/circuit.c
arch_circuit_circuit_la_CPPFLAGS = $(ARCH_CPPFLAGS)
arch_circuit_circuit_la_LIBADD = arch/common/libarch.la
arch_circuit_circuit_la_LDFLAGS = $(PLUGIN_LDFLAGS)
