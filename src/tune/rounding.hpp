// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Figures in profiles have five significant digits: more would be noise, and short numbers keep diffs readable.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace artune {

inline double round_significant(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::strtod(text, nullptr);
}

}  // namespace artune
