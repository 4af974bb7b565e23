// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A table in the words of consumers that know no ranges, only one number each. Private to src/tune.
//   NCCL_MIN_BYTES     nccl when bytes >= this          } one split in three: kernels, then copy engines, then nccl;
//   CE_MIN_BYTES       copy engines when bytes >= this  } both numbers are chosen together and carry the same regret
//   ONESHOT_MAX_BYTES  p2p one-shot kernel when bytes < this, else nccl
// Where the ranges aren't in that order no number tells the table; then it is the one of least regret: the weighted
// mean over the measured sizes of the time lost against the table.
#pragma once

#include <cstddef>
#include <vector>

#include "profile/profile.hpp"
#include "tune/measured.hpp"

namespace artune {

/// The smallest number of bytes that belongs to `above` when a boundary lies between two neighbouring measured sizes:
/// their geometric mean, rounded up.
std::size_t boundary_between(std::size_t below, std::size_t above);

/// `sequence`: the chosen option per size; `weights`: one per size, sum 1.
std::vector<Threshold> thresholds_of(const Measured& measured, const std::vector<std::size_t>& sequence,
                                     const std::vector<double>& weights);

}  // namespace artune
