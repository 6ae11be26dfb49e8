# SPDX-License-Identifier: Apache-2.0
# What commands share. A command is cmd/rad-NAME.c and:
#   bin_PROGRAMS += cmd/rad-NAME
#   cmd_rad_NAME_SOURCES = cmd/rad-NAME.c
#   cmd_rad_NAME_LDADD = $(cmd_ldadd)
noinst_LTLIBRARIES += cmd/libcmd.la
cmd_libcmd_la_SOURCES = cmd/cmd.h cmd/cmd.c
cmd_ldadd = cmd/libcmd.la librad/librad.la
