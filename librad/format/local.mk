# SPDX-License-Identifier: Apache-2.0
radinclude_HEADERS += librad/rad/model.h librad/rad/model_write.h librad/rad/recipe.h
