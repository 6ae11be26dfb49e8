# SPDX-License-Identifier: Apache-2.0
quant_LTLIBRARIES += kernels/libquant.la
quant_sources = kernels/quant/quant.h kernels/quant/table.c kernels/quant/grid.c \
	kernels/quant/round.c kernels/quant/rtn.c kernels/quant/cast.c
kernels_libquant_la_SOURCES = $(quant_sources)
kernels_libquant_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
kernels_libquant_la_LDFLAGS = $(PLUGIN_LDFLAGS)
