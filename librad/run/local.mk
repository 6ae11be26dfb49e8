# SPDX-License-Identifier: Apache-2.0
librad_libradi_la_SOURCES += librad/run/run.h
