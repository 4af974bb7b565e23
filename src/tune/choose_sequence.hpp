// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One option for every measured size, chosen for the whole sequence at once: the shortest path through the sizes,
// where a step costs the log of its time, a challenger pays the threshold and a switch pays the margin.
// Rules 2 to 4 of decide.hpp. Private to src/tune.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/measured.hpp"

namespace artune {

struct SequenceRules {
  double margin = 0.02;
  double noise = 0;  ///< A/A noise floor, fraction
  /// incumbents[size]: options that stay unless beaten by more than max(margin, noise); may be empty.
  std::vector<std::vector<std::size_t>> incumbents;
};

/// `measured` has a usable option at every size.
std::vector<std::size_t> choose_sequence(const Measured& measured, const SequenceRules& rules);

}  // namespace artune
