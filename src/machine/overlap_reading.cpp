// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/overlap_reading.hpp"

#include <cstddef>

namespace artune {

RankReading read_rank(const std::vector<std::uint64_t>& stamps, std::uint64_t first, std::uint64_t last) {
  // Whole reductions only: from the last boundary before the load (or the release, where the load came first) to the last
  // boundary in it.
  std::size_t from = 0;
  while (from + 1 < stamps.size() && stamps[from + 1] <= first) ++from;
  std::size_t to = from;
  while (to + 1 < stamps.size() && stamps[to + 1] <= last) ++to;
  RankReading reading;
  reading.outlasted = to + 1 < stamps.size();
  reading.completed = static_cast<int>(to - from);
  if (to == from && reading.outlasted) ++to;
  if (to > from) reading.beside_us = static_cast<double>(stamps[to] - stamps[from]) / 1000.0 / static_cast<double>(to - from);
  return reading;
}

double per_reduction_us(const std::vector<std::uint64_t>& stamps) {
  return static_cast<double>(stamps.back() - stamps.front()) / 1000.0 / static_cast<double>(stamps.size() - 1);
}

}  // namespace artune
