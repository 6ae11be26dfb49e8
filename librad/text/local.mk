# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/tokenizer.h
radinclude_HEADERS += librad/rad/chat.h
librad_libradi_la_SOURCES += librad/text/tok.h \
	librad/text/tok.c librad/text/vmap.c librad/text/unicode.c \
	librad/text/tok_bpe.c librad/text/tok_unigram.c librad/text/tok_wordpiece.c \
	librad/text/pretok.c librad/text/split_known.c librad/text/regex.c \
	librad/text/norm.c librad/text/detok.c \
	librad/text/vocab_section.c librad/text/tok_gguf.c librad/text/tok_cert.c \
	librad/text/tok_json.h librad/text/tok_json.c librad/text/tok_json_pipe.c
librad_libradi_la_SOURCES += librad/text/template.h \
	librad/text/template.c librad/text/template_lex.c librad/text/template_parse.c \
	librad/text/template_expr.c librad/text/template_eval.c librad/text/template_exec.c \
	librad/text/template_value.c librad/text/template_repr.c librad/text/template_json.c \
	librad/text/template_ops.c librad/text/template_call.c librad/text/template_methods.c \
	librad/text/template_filters.c librad/text/template_filters_seq.c \
	librad/text/template_tests.c librad/text/template_format.c librad/text/template_time.c \
	librad/text/template_unicode.c
