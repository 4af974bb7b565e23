// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// From the time stamps of one run to its figures. Every GPU has a timer of its own: a rank is looked at with its GPU's only.
//
//   const RankReading rank = read_rank(stamps, window);   // stamps[0] = released, stamps[i] = end of the i-th reduction
#pragma once

#include <cstdint>
#include <vector>

namespace artune {

struct RankReading {
  int completed = 0;        ///< reductions that ended while the load ran; with a start before it, the one under way counts
  double beside_us = 0;     ///< per reduction, over those; of the first that ended later where there was none
  bool outlasted = false;   ///< reductions were still there when the load ended: only then it had company all the time
};

/// `stamps`: at least two, ascending. `first`, `last`: the load's window. All in ns.
RankReading read_rank(const std::vector<std::uint64_t>& stamps, std::uint64_t first, std::uint64_t last);

/// µs per reduction over all of `stamps`.
double per_reduction_us(const std::vector<std::uint64_t>& stamps);

}  // namespace artune
