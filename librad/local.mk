# SPDX-License-Identifier: Apache-2.0
# All of librad is one convenience library, so that tests and fuzz targets can
# reach what the shared library hides; librad.so exports rad_* only.
noinst_LTLIBRARIES += librad/libradi.la
lib_LTLIBRARIES += librad/librad.la

librad_libradi_la_SOURCES = librad/banned.h
librad_libradi_la_CPPFLAGS = $(AM_CPPFLAGS) $(ZSTD_CFLAGS) $(CRYPTO_CFLAGS) $(CJSON_CFLAGS) \
	$(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS) $(HWLOC_CFLAGS)
librad_libradi_la_LIBADD = $(ZSTD_LIBS) $(CRYPTO_LIBS) $(CJSON_LIBS) \
	$(PCRE2_LIBS) $(UTF8PROC_LIBS) $(HWLOC_LIBS)

librad_librad_la_SOURCES =
librad_librad_la_LIBADD = librad/libradi.la
librad_librad_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -export-symbols-regex '^rad_'

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = librad/radiance.pc
EXTRA_DIST += librad/radiance.pc.in
radincludedir = $(includedir)/rad
radinclude_HEADERS = \
	librad/rad/status.h librad/rad/log.h \
	librad/rad/rad_abi.h librad/rad/rad_types.h librad/rad/rad_encoding.h \
	librad/rad/rad_plugin.h librad/rad/rad_kernel.h librad/rad/rad_sample.h \
	librad/rad/rad_quant.h librad/rad/rad_builder.h librad/rad/rad_runtime.h \
	librad/rad/plan.h librad/rad/ckpt.h

include librad/convert/local.mk
include librad/base/local.mk
include librad/format/local.mk
include librad/text/local.mk
include librad/lab/local.mk
include librad/plan/local.mk
include librad/plugin/local.mk
include librad/device/local.mk
include librad/run/local.mk
include librad/engine/local.mk
