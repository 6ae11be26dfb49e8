# SPDX-License-Identifier: Apache-2.0
librad_libradi_la_SOURCES += librad/plugin/plugin.h \
	librad/plugin/loader.c librad/plugin/registry.c librad/plugin/schema.c
