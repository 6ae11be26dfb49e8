# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/engine.h
librad_libradi_la_SOURCES += librad/engine/sched.h librad/engine/kv.h librad/engine/sampler.h \
	librad/engine/engine.c librad/engine/sched.c librad/engine/kv.c librad/engine/sampler.c librad/engine/text.c
