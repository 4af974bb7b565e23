// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/row_grid.hpp"

#include <algorithm>

#include "fused/norm_arguments.hpp"
#include "paths/menu.hpp"

namespace artune {

int RowLimits::most_members() const {
  int members = 1;
  for (std::size_t i = 1; i < clusters.size(); ++i) {
    if (clusters[i] > 0) members = 1 << i;
  }
  return members;
}

RowLimits single_blocks(int blocks) { return {.blocks = blocks, .clusters = {blocks, 0, 0, 0}}; }

RowGrid row_grid(std::uint32_t rows_, std::uint32_t hidden, const Geometry& geometry, const RowLimits& limits) {
  const auto whole_warps = [](int threads) { return (threads + 31) / 32 * 32; };
  const int vectors = static_cast<int>(hidden) / kVectorElements, rows = static_cast<int>(std::max(rows_, 1U));
  const int blocks = std::clamp(geometry.blocks, 1, limits.blocks);
  const int groups = (vectors + 31) / 32;
  RowGrid grid{};
  // A member without a group of its own would only be waited for.
  std::size_t size = limits.clusters.size() - 1;
  while (size > 0 && ((1 << size) > std::min(blocks / rows, groups) || limits.clusters[size] == 0)) --size;
  grid.members = 1 << size;
  const int each = (vectors + grid.members - 1) / grid.members;
  const int least = whole_warps((each + kMostVectorsEach - 1) / kMostVectorsEach);
  grid.threads = std::clamp(whole_warps(geometry.threads), least, std::max(least, std::min(whole_warps(each), kMostThreads)));
  const int warps = grid.members * grid.threads / 32;
  grid.vectors_each = (groups + warps - 1) / warps;
  grid.blocks = std::clamp(blocks / grid.members, 1, std::min(rows, std::max(limits.clusters[size], 1))) * grid.members;
  return grid;
}

}  // namespace artune
