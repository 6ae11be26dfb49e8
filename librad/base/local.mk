# SPDX-License-Identifier: Apache-2.0
librad_libradi_la_SOURCES += librad/base/base.h \
	librad/base/status.c librad/base/mem.c librad/base/str.c librad/base/map.c \
	librad/base/log.c librad/base/file.c librad/base/hash.c librad/base/json.c \
	librad/base/pool.c
