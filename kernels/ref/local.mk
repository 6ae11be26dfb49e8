# SPDX-License-Identifier: Apache-2.0
kernel_LTLIBRARIES += kernels/libref.la
ref_sources = kernels/ref/ref.h kernels/ref/ops.def kernels/ref/table.c kernels/ref/view.c \
	kernels/ref/dot.c kernels/ref/linear.c kernels/ref/norm.c kernels/ref/number.c kernels/ref/elem.c \
	kernels/ref/embed.c kernels/ref/rope.c kernels/ref/attn.c
kernels_libref_la_SOURCES = $(ref_sources)
kernels_libref_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
kernels_libref_la_LDFLAGS = $(PLUGIN_LDFLAGS)
