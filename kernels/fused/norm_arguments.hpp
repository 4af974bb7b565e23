// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a norm or fused launch is told beside the sum, and the limits of its rows. Plain data.
#pragma once

#include <cstdint>

namespace artune {

/// A vector is what one thread loads, adds and stores at once.
inline constexpr int kVectorElements = 8;  ///< of 16 bits
inline constexpr int kRowVectorBytes = 16;
inline constexpr std::uint32_t kLeastHidden = 64, kMostHidden = 16384;  ///< and any multiple of kVectorElements between

inline constexpr std::uint32_t kMostMembers = 8;  ///< blocks of a row: of a cluster, on every GPU that has clusters

/// What the norm is told beside the sum. Tensors are rows x hidden, contiguous, 16-byte aligned; `weight` has `hidden`.
struct NormArguments {
  const void* residual;
  const void* weight;
  void* output;
  void* residual_out;  ///< may be `residual`
  std::uint32_t rows, hidden;
  float inverse_hidden;  ///< 1 / hidden, rounded
  float epsilon;
  std::uint16_t one_plus;  ///< 1: Gemma's weights
  std::uint16_t members;   ///< blocks of a row, see RowLane
};

}  // namespace artune
