# SPDX-License-Identifier: Apache-2.0
dist_man_MANS += man/rad-ops.7
dist_man_MANS += man/rad-info.1 man/rad.5 man/rad-recipe.5
dist_man_MANS += man/rad-tokcheck.1
dist_man_MANS += man/rad-schemas.1
dist_man_MANS += man/rad-convert.1 man/radiance.1
