// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The grid of a norm or a fused launch. Pure, and the same on all ranks: it depends on the call and on facts of the group.
#pragma once

#include <array>
#include <cstdint>

#include "base/candidate.hpp"

namespace artune {

/// Vectors of a row that one thread can hold.
inline constexpr int kMostVectorsEach = 4;

struct RowGrid {
  int blocks, threads;
  int members;       ///< blocks of a row: a cluster of that many; `blocks` is a multiple
  int vectors_each;  ///< of a thread and row, at most kMostVectorsEach
};

/// What a rank's grid may have.
struct RowLimits {
  int blocks = 1;                 ///< in all
  std::array<int, 4> clusters{};  ///< of 1, 2, 4 and 8 blocks at once; 0 = none of that size
  int most_members() const;
};

/// `blocks` single blocks, no clusters.
RowLimits single_blocks(int blocks);

/// `geometry`: blocks in all and threads of a block. A row gets as many blocks as there are blocks for it, a power of two,
/// within the limits; threads grow where a row has too many vectors for them, and are as few as have something to do.
RowGrid row_grid(std::uint32_t rows, std::uint32_t hidden, const Geometry& geometry, const RowLimits& limits);

}  // namespace artune
