# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/convert.h
librad_libradi_la_SOURCES += librad/convert/convert.h librad/convert/convert.c \
	librad/convert/convert_meta.c librad/convert/convert_plan.c librad/convert/convert_data.c
