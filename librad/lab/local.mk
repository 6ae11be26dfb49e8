# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/lab.h
