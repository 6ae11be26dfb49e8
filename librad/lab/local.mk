# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/lab.h
librad_libradi_la_SOURCES += \
	librad/lab/lab.h librad/lab/lab.c librad/lab/doc.c librad/lab/expr.h librad/lab/expr.c librad/lab/eval.c librad/lab/block.c \
	librad/lab/circuit.c librad/lab/map.c librad/lab/link.c librad/lab/point.c \
	librad/lab/refusal.c librad/lab/graph.c librad/lab/dump.c librad/lab/rope.c
