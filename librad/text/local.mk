# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/tokenizer.h
radinclude_HEADERS += librad/rad/chat.h
