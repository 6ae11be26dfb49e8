# SPDX-License-Identifier: Apache-2.0
librad_libradi_la_SOURCES += librad/device/device.h \
	librad/device/host.c librad/device/test.c
