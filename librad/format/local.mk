# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/model.h librad/rad/model_write.h librad/rad/recipe.h
librad_libradi_la_SOURCES += \
	librad/format/encoding_priv.h librad/format/container.h \
	librad/format/encoding.c librad/format/encoding_decode.c \
	librad/format/container_read.c librad/format/container_check.c \
	librad/format/container_write.c librad/format/integrity.c \
	librad/format/model.c librad/format/model_vocab.c librad/format/recipe.c
librad_libradi_la_SOURCES += \
	librad/format/ckpt.h librad/format/ckpt.c librad/format/ckpt_safetensors.c \
	librad/format/ckpt_gguf.c librad/format/ggml_blocks.h librad/format/ggml_blocks.c \
	librad/format/ggml_grids.c
