# SPDX-License-Identifier: Apache-2.0
librad_libradi_la_SOURCES += librad/run/run.h librad/run/rt.h \
	librad/run/rt.c librad/run/ctx.c librad/run/issue.c librad/run/arena.c \
	librad/run/relayout.c
