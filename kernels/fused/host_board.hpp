// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The board of a row (row.cuh) on CPU threads: what shared memory and the barrier of a cluster are on the GPU.
#pragma once

#include <cstdint>

#include "fused/row.cuh"

namespace artune {

/// Of one rank and cluster.
struct HostBoardMemory {
  float sums[2][kMostGroups];
  std::uint64_t arrived[kMostMembers];  ///< at which meeting each member is
};

struct HostBoard {
  HostBoardMemory* memory;
  std::uint32_t member, members;
  std::uint64_t call;  ///< its number: meetings are counted on from call to call, failed ones too

  void leave(std::uint32_t turn, std::uint32_t group, float sum) const {
    host::copy_to(&memory->sums[turn % 2][group], &sum, sizeof sum);
  }
  /// A member is at most one meeting ahead of another.
  void meet(std::uint32_t turn) const {
    const std::uint64_t meeting = (call << 16) + turn + 1;
    host::store(&memory->arrived[member], meeting, host::release);
    for (std::uint32_t m = 0; m < members; ++m) {
      while (m != member && host::load(&memory->arrived[m], host::acquire) - meeting > 1) host::stand_by();
    }
  }
  float total(std::uint32_t turn, std::uint32_t groups) const {
    float values[kMostGroups] = {};
    for (std::uint32_t group = 0; group < groups; ++group)
      host::copy_from(&values[group], &memory->sums[turn % 2][group], sizeof(float));
    return fold_in_halves(values);
  }
};

}  // namespace artune
