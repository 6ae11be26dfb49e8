# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += scripts/lint scripts/mkcomplete
EXTRA_DIST += scripts/bench-tokenizer
EXTRA_DIST += scripts/lib.sh scripts/check scripts/quickstart scripts/fuzz scripts/golden-report .ci/run
EXTRA_DIST += scripts/golden
