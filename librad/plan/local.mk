# SPDX-License-Identifier: Apache-2.0
librad_libradi_la_SOURCES += librad/plan/plan_priv.h \
	librad/plan/builder.c librad/plan/builder_op.c librad/plan/declare.c librad/plan/bands.c \
	librad/plan/select.c librad/plan/bufplan.c librad/plan/placement.c \
	librad/plan/graphdump.c librad/plan/meta.c
