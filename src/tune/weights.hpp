// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// How much each measured size counts when losses are averaged. Private to src/tune.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/decide.hpp"

namespace artune {

/// One weight per size (ascending), sum 1. Without `weights` uniform over log(size): a size stands for the stretch
/// half-way to its neighbours. With `weights` each entry counts at the measured size nearest to it on a log axis.
std::vector<double> size_weights(const std::vector<std::size_t>& sizes, const std::vector<SizeWeight>& weights);

}  // namespace artune
