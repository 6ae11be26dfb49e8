# SPDX-License-Identifier: Apache-2.0
# What commands share. A command is cmd/rad-NAME.c and:
#   bin_PROGRAMS += cmd/rad-NAME
#   cmd_rad_NAME_SOURCES = cmd/rad-NAME.c
#   cmd_rad_NAME_LDADD = $(cmd_ldadd)
noinst_LTLIBRARIES += cmd/libcmd.la
cmd_libcmd_la_SOURCES = cmd/cmd.h cmd/cmd.c cmd/json.h cmd/json.c
cmd_ldadd = cmd/libcmd.la librad/librad.la
bin_PROGRAMS += cmd/rad-info
cmd_rad_info_SOURCES = cmd/rad-info.c cmd/rad-info.h cmd/rad-info-json.c
cmd_rad_info_LDADD = $(cmd_ldadd)

bin_PROGRAMS += cmd/rad-tokcheck
cmd_rad_tokcheck_SOURCES = cmd/rad-tokcheck.c
cmd_rad_tokcheck_CPPFLAGS = $(AM_CPPFLAGS) $(CJSON_CFLAGS)
cmd_rad_tokcheck_LDADD = $(cmd_ldadd) $(CJSON_LIBS)

bin_PROGRAMS += cmd/rad-schemas
cmd_rad_schemas_SOURCES = cmd/rad-schemas.c
cmd_rad_schemas_LDADD = $(cmd_ldadd)

bin_PROGRAMS += cmd/rad-convert
cmd_rad_convert_SOURCES = cmd/rad-convert.c
cmd_rad_convert_LDADD = $(cmd_ldadd)

bin_PROGRAMS += cmd/radiance/radiance
cmd_radiance_radiance_SOURCES = cmd/radiance/radiance.h cmd/radiance/server.h \
	cmd/radiance/main.c cmd/radiance/generate.c cmd/radiance/buf.c cmd/radiance/http.c \
	cmd/radiance/api.c cmd/radiance/output.c cmd/radiance/metrics.c
cmd_radiance_radiance_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/cmd $(MHD_CFLAGS) $(CJSON_CFLAGS) $(CRYPTO_CFLAGS)
cmd_radiance_radiance_LDADD = $(cmd_ldadd) $(MHD_LIBS) $(CJSON_LIBS) $(CRYPTO_LIBS)
