# SPDX-License-Identifier: Apache-2.0
dist_man_MANS += man/rad-ops.7
