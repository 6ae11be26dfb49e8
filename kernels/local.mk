# SPDX-License-Identifier: Apache-2.0
include kernels/ref/local.mk
include kernels/quant/local.mk
