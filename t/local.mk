# SPDX-License-Identifier: Apache-2.0
# Every test speaks TAP through automake's driver, so each case is counted. A
# new bats file is one line in `bats_tests`; a C check program is one line in
# `check_PROGRAMS` and one for its sources (t/lib/tap.h has the harness).
bats_tests = \
	t/00-smoke.bats \
	t/01-docs.bats \
	t/02-source.bats \
	t/03-cmd.bats \
	t/04-install.bats \
	t/10-container.bats \
	t/50-plan.bats t/12-ckpt.bats t/13-damage.bats t/80-faults.bats \
	t/20-tokenizer.bats \
	t/25-template.bats \
	t/40-ref.bats \
	t/52-lab.bats \
	t/60-golden.bats \
	t/61-convert.bats \
	t/62-generate.bats \
	t/63-gguf.bats \
	t/65-smollm.bats \
	t/70-http.bats \
	t/cmd-rad-schemas.bats

check_PROGRAMS += t/check/base-check t/check/json-check
t_check_base_check_SOURCES = t/check/base-check.c
t_check_base_check_CPPFLAGS = $(check_cppflags) $(ZSTD_CFLAGS)
t_check_base_check_LDADD = librad/libradi.la
t_check_json_check_SOURCES = t/check/json-check.c
t_check_json_check_CPPFLAGS = $(check_cppflags) $(CJSON_CFLAGS)
t_check_json_check_LDADD = librad/libradi.la
TESTS += t/check/base-check t/check/json-check
check_PROGRAMS += t/check/template-check
t_check_template_check_SOURCES = t/check/template-check.c
t_check_template_check_CPPFLAGS = $(check_cppflags) $(CJSON_CFLAGS)
t_check_template_check_LDADD = librad/libradi.la $(CJSON_LIBS)
TESTS += t/check/template-check
EXTRA_DIST += t/golden/template-cases.jsonl
check_PROGRAMS += t/check/encoding-check t/check/container-check
t_check_encoding_check_SOURCES = t/check/encoding-check.c
t_check_encoding_check_CPPFLAGS = $(check_cppflags)
t_check_encoding_check_LDADD = librad/libradi.la
t_check_container_check_SOURCES = t/check/container-check.c
t_check_container_check_CPPFLAGS = $(check_cppflags) $(CRYPTO_CFLAGS)
t_check_container_check_LDADD = librad/libradi.la
TESTS += t/check/encoding-check t/check/container-check
check_PROGRAMS += t/check/engine-check
t_check_engine_check_SOURCES = t/check/engine-check.c
t_check_engine_check_CPPFLAGS = $(check_cppflags)
t_check_engine_check_LDADD = librad/libradi.la
TESTS += t/check/engine-check

check_PROGRAMS += t/helper/rad-probe
t_helper_rad_probe_SOURCES = t/helper/rad-probe.c
t_helper_rad_probe_CPPFLAGS = $(check_cppflags) $(CJSON_CFLAGS)
t_helper_rad_probe_LDADD = librad/librad.la $(CJSON_LIBS)

check_PROGRAMS += t/helper/cmd-probe
t_helper_cmd_probe_SOURCES = t/helper/cmd-probe.c
t_helper_cmd_probe_CPPFLAGS = $(check_cppflags) -I$(top_srcdir)/cmd
t_helper_cmd_probe_LDADD = cmd/libcmd.la librad/libradi.la
check_PROGRAMS += t/check/ckpt-check
t_check_ckpt_check_SOURCES = t/check/ckpt-check.c
t_check_ckpt_check_CPPFLAGS = $(check_cppflags)
t_check_ckpt_check_LDADD = librad/libradi.la
TESTS += t/check/ckpt-check
EXTRA_DIST += t/golden/lab t/plans
check_PROGRAMS += t/check/plan-check
t_check_plan_check_SOURCES = t/check/plan-check.c t/check/plan-choice.c \
	t/check/plan-tiny.c t/check/plan-check.h
t_check_plan_check_CPPFLAGS = $(check_cppflags)
# the plugins it loads call back into the program
t_check_plan_check_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
t_check_plan_check_LDADD = librad/libradi.la
TESTS += t/check/plan-check
check_PROGRAMS += t/check/abi-check
t_check_abi_check_SOURCES = t/check/abi-check.c t/check/seed-arch.c
t_check_abi_check_CPPFLAGS = $(check_cppflags) -I$(top_srcdir)/arch/common
t_check_abi_check_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
t_check_abi_check_LDADD = librad/libradi.la
TESTS += t/check/abi-check
EXTRA_DIST += t/golden/enc t/http/openai_client.py

# Tests that scripts/check runs under TSan too.
threaded_tests = t/check/base-check t/check/tok-check t/check/engine-check t/check/plan-check \
	t/62-generate.bats t/70-http.bats

check_PROGRAMS += t/check/ref-check
t_check_ref_check_SOURCES = t/check/ref-check.c t/check/ref-check-lib.c t/check/ref-check-elem.c \
	t/check/ref-check-attn.c t/check/ref-check-number.c t/check/ref-check.h $(ref_sources)
t_check_ref_check_CPPFLAGS = $(check_cppflags)
t_check_ref_check_LDADD = librad/libradi.la
TESTS += t/check/ref-check

check_PROGRAMS += t/check/tok-check
t_check_tok_check_SOURCES = t/check/tok-check.c
t_check_tok_check_CPPFLAGS = $(check_cppflags) $(CJSON_CFLAGS) $(PCRE2_CFLAGS)
t_check_tok_check_LDADD = librad/libradi.la
TESTS += t/check/tok-check
check_PROGRAMS += t/check/quant-check
t_check_quant_check_SOURCES = t/check/quant-check.c $(quant_sources)
t_check_quant_check_CPPFLAGS = $(check_cppflags)
t_check_quant_check_LDADD = librad/libradi.la
TESTS += t/check/quant-check
check_PROGRAMS += t/check/lab-check t/helper/lab-probe
t_check_lab_check_SOURCES = t/check/lab-check.c t/check/lab-check-lower.c t/check/lab-check.h \
	t/check/lab-fake.c t/check/lab-fake.h arch/common/graph.c
t_check_lab_check_CPPFLAGS = $(check_cppflags) $(CJSON_CFLAGS) -I$(top_srcdir)/arch/common
t_check_lab_check_LDADD = librad/libradi.la
t_helper_lab_probe_SOURCES = t/helper/lab-probe.c
t_helper_lab_probe_CPPFLAGS = $(check_cppflags)
t_helper_lab_probe_LDADD = librad/libradi.la
TESTS += t/check/lab-check

check_PROGRAMS += t/check/damage-check
t_check_damage_check_SOURCES = t/check/damage-check.c
t_check_damage_check_CPPFLAGS = $(check_cppflags)
t_check_damage_check_LDADD = librad/librad.la
check_PROGRAMS += t/check/fault-check
t_check_fault_check_SOURCES = t/check/fault-check.c
t_check_fault_check_CPPFLAGS = $(check_cppflags)
# the plugins it loads call back into the program
t_check_fault_check_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
t_check_fault_check_LDADD = librad/libradi.la
check_PROGRAMS += t/check/types-check
t_check_types_check_SOURCES = t/check/types-check.c
t_check_types_check_CPPFLAGS = $(check_cppflags)
TESTS += t/check/types-check

# ---- the machinery
check_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/t/lib
TESTS += $(bats_tests)
TEST_EXTENSIONS = .bats
tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(tap_driver)
BATS_LOG_DRIVER = $(tap_driver)
AM_BATS_LOG_DRIVER_FLAGS = --ignore-exit
BATS_LOG_COMPILER = $(top_srcdir)/t/run-bats
AM_TESTS_ENVIRONMENT = \
	RAD_TAP=1; export RAD_TAP; \
	RAD_SRCDIR='$(abs_top_srcdir)'; export RAD_SRCDIR; \
	RAD_BUILDDIR='$(abs_top_builddir)'; export RAD_BUILDDIR; \
	RAD_CC='$(CC)'; export RAD_CC; \
	RAD_COMMANDS='$(bin_PROGRAMS)'; export RAD_COMMANDS; \
	BATS='$(BATS)'; export BATS;

# A RADIANCE_HOME of the build tree, so that programs run before installation.
noinst_DATA = home/.stamp
home/.stamp: $(kernel_LTLIBRARIES) $(archplug_LTLIBRARIES) $(quant_LTLIBRARIES) \
		$(dist_map_DATA) $(dist_circuit_DATA) $(dist_block_DATA) t/stage-home
	$(AM_V_GEN)KERNELS='$(kernel_LTLIBRARIES)' ARCHITECTURES='$(archplug_LTLIBRARIES)' \
	QUANTIZERS='$(quant_LTLIBRARIES)' CIRCUITS='$(dist_circuit_DATA)' \
	MAPS='$(dist_map_DATA)' BLOCKS='$(dist_block_DATA)' \
	$(SHELL) $(srcdir)/t/stage-home $(srcdir) $(builddir) && touch $@

threaded-tests:
	@echo $(threaded_tests)
list-commands:
	@echo $(bin_PROGRAMS)
.PHONY: threaded-tests list-commands

clean-local: clean-home
clean-home:
	rm -rf home
.PHONY: clean-home

EXTRA_DIST += $(bats_tests) t/lib/common.bash t/lib/tap.h t/stage-home t/run-bats

# ---- fuzz targets: no file system, one source each
fuzz_sources = t/fuzz/fuzz-ckpt.h t/fuzz/fuzz-gguf.c t/fuzz/fuzz-safetensors.c \
	 t/fuzz/fuzz-template.c t/fuzz/fuzz-json.c t/fuzz/fuzz-lab.c t/fuzz/fuzz-tokenizer.c t/fuzz/fuzz-container.c
EXTRA_DIST += $(fuzz_sources) t/fuzz/seeds.py
if FUZZERS
noinst_PROGRAMS += t/fuzz/fuzz-template
t_fuzz_fuzz_template_SOURCES = t/fuzz/fuzz-template.c
t_fuzz_fuzz_template_CPPFLAGS = $(check_cppflags)
t_fuzz_fuzz_template_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_template_LDADD = librad/libradi.la
noinst_PROGRAMS += t/fuzz/fuzz-json
t_fuzz_fuzz_json_SOURCES = t/fuzz/fuzz-json.c
t_fuzz_fuzz_json_CPPFLAGS = $(check_cppflags) $(CJSON_CFLAGS)
t_fuzz_fuzz_json_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_json_LDADD = librad/libradi.la
noinst_PROGRAMS += t/fuzz/fuzz-lab
t_fuzz_fuzz_lab_SOURCES = t/fuzz/fuzz-lab.c
t_fuzz_fuzz_lab_CPPFLAGS = $(check_cppflags)
t_fuzz_fuzz_lab_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_lab_LDADD = librad/libradi.la
noinst_PROGRAMS += t/fuzz/fuzz-tokenizer
t_fuzz_fuzz_tokenizer_SOURCES = t/fuzz/fuzz-tokenizer.c
t_fuzz_fuzz_tokenizer_CPPFLAGS = $(check_cppflags)
t_fuzz_fuzz_tokenizer_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_tokenizer_LDADD = librad/libradi.la
noinst_PROGRAMS += t/fuzz/fuzz-container
t_fuzz_fuzz_container_SOURCES = t/fuzz/fuzz-container.c
t_fuzz_fuzz_container_CPPFLAGS = $(check_cppflags) $(CRYPTO_CFLAGS)
t_fuzz_fuzz_container_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_container_LDADD = librad/libradi.la $(CRYPTO_LIBS)
noinst_PROGRAMS += t/fuzz/fuzz-gguf
t_fuzz_fuzz_gguf_SOURCES = t/fuzz/fuzz-gguf.c t/fuzz/fuzz-ckpt.h
t_fuzz_fuzz_gguf_CPPFLAGS = $(check_cppflags)
t_fuzz_fuzz_gguf_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_gguf_LDADD = librad/libradi.la
noinst_PROGRAMS += t/fuzz/fuzz-safetensors
t_fuzz_fuzz_safetensors_SOURCES = t/fuzz/fuzz-safetensors.c t/fuzz/fuzz-ckpt.h
t_fuzz_fuzz_safetensors_CPPFLAGS = $(check_cppflags)
t_fuzz_fuzz_safetensors_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
t_fuzz_fuzz_safetensors_LDADD = librad/libradi.la
endif
