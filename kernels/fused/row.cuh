// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Which thread has what of which row, and how the threads of a row come to its statistics.
//
// A row belongs to a cluster of 1 to 8 blocks (its members), row r to cluster r % clusters. Its groups of 32 vectors go round
// the warps of all members; a thread has vector `lane` of each of its warp's groups. On the CPU a block is one thread that
// plays all lanes of one warp.
//
// A board is where the warps of a row leave their groups' sums: two sides, taken in turn from row to row. A warp leaves its
// sums on the side of the row, all members' threads meet at the row barrier, then every warp reads the whole side and folds
// it for itself. One barrier a row is enough: a side is written again two rows later, by a thread that has passed the
// barrier of the row between, where all who read the side before had arrived.
//
// What would break this: no barrier, or one before the sums are left; one side; a block that leaves the kernel while its
// cluster still stores into its shared memory (hence a failed lane goes through all rows, with NaN, and leaves none out).
#pragma once

#include "fused/rms_norm.cuh"
#include "protocol/lane.cuh"

namespace artune {

/// Lanes of a warp that one thread plays.
#if defined(__CUDA_ARCH__)
inline constexpr int kLanesHere = 1;
#else
inline constexpr int kLanesHere = kRowLanes;
#endif

struct RowLane {
  std::uint32_t cluster, clusters, member, members;
  std::uint32_t warp, warps;  ///< of the row
  std::uint32_t lane;         ///< of the warp; 0 where one thread plays them all

  static ARTUNE_BOTH RowLane of(const Lane& lane, std::uint32_t members) {
    const std::uint32_t threads_a_warp = kRowLanes / kLanesHere;
    const std::uint32_t member = lane.block % members, warps = lane.threads / threads_a_warp;
    return {lane.block / members, lane.blocks / members,       member, members, member * warps + lane.thread / threads_a_warp,
            members * warps,      lane.thread % threads_a_warp};
  }
};

#if defined(__CUDACC__)
/// All lanes of a warp get the fold; in halves, as fold_in_halves().
__device__ __forceinline__ float fold_warp(float value) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) value = add(value, __shfl_xor_sync(0xffffffffU, value, half));
  return value;
}

/// In the shared memory of every member: float[2 * kMostGroups]. The blocks of a cluster must have met before the first row.
struct BlockBoard {
  float* sums;
  std::uint32_t lane, members;

  __device__ __forceinline__ void leave(std::uint32_t turn, std::uint32_t group, float sum) const {
    float* place = sums + turn % 2 * kMostGroups + group;
    if (members > 1) {
      if (lane < members) store_in_cluster(place, lane, sum);
    } else if (lane == 0) {
      *place = sum;
    }
  }
  __device__ __forceinline__ void meet(std::uint32_t) const {
    if (members > 1) {
      cluster_arrive();
      cluster_wait();
    } else {
      block_barrier();
    }
  }
  __device__ __forceinline__ float total(std::uint32_t turn, std::uint32_t groups) const {
    const float* side = sums + turn % 2 * kMostGroups;
    const float low = lane < groups ? side[lane] : 0.0F;
    const float high = lane + 32 < groups ? side[lane + 32] : 0.0F;
    return fold_warp(add(low, high));
  }
};
#endif

/// The part of every row that one thread has, at most K vectors of it, from the sum to what is stored.
template <DType D, int K>
struct RowNorm {
  const NormArguments& norm;
  RowLane at;
  std::uint32_t vectors, groups;
  std::uint32_t weight[K][kLanesHere][kRowWords];
  std::uint32_t residual[K][kLanesHere][kRowWords];  ///< of the row at hand; then the updated one

  ARTUNE_BOTH RowNorm(const NormArguments& norm_, const RowLane& at_)
      : norm(norm_), at(at_), vectors(norm_.hidden / kVectorElements), groups((vectors + kRowLanes - 1) / kRowLanes) {}

  /// Once: the weights are the same for all rows.
  ARTUNE_BOTH void load_weight() {
    for_each([&](int k, int i, std::uint32_t vector) { load(norm.weight, vector, weight[k][i]); });
  }

  ARTUNE_BOTH std::uint32_t group_of(int k) const { return at.warp + static_cast<std::uint32_t>(k) * at.warps; }
  ARTUNE_BOTH std::uint32_t vector_of(int k, int i) const {
    return group_of(k) * kRowLanes + at.lane + static_cast<std::uint32_t>(i);
  }
  ARTUNE_BOTH std::uint64_t unit_of(std::uint32_t row, std::uint32_t vector) const {
    return std::uint64_t{row} * vectors + vector;
  }

  static ARTUNE_BOTH void load(const void* tensor, std::uint64_t unit, std::uint32_t (&words)[kRowWords]) {
    load_plain(static_cast<const char*>(tensor) + unit * kRowVectorBytes, words);
  }
  static ARTUNE_BOTH void store(void* tensor, std::uint64_t unit, const std::uint32_t (&words)[kRowWords]) {
    store_plain(static_cast<char*>(tensor) + unit * kRowVectorBytes, words);
  }

  /// body(k, i, vector) for every vector of a row that the thread has.
  template <typename Body>
  ARTUNE_BOTH void for_each(const Body& body) const {
    ARTUNE_UNROLL
    for (int k = 0; k < K; ++k) {
      for (int i = 0; i < kLanesHere; ++i) {
        if (vector_of(k, i) < vectors) body(k, i, vector_of(k, i));
      }
    }
  }

  ARTUNE_BOTH void load_residual(std::uint32_t row) {
    for_each([&](int k, int i, std::uint32_t vector) { load(norm.residual, unit_of(row, vector), residual[k][i]); });
  }

  /// Row `row`, the thread's `turn`-th of this call, its residual loaded; sum(k, i, unit, words) gives the rounded sum of a
  /// vector (and may wait for it). All threads of all members call it for the same rows.
  template <typename Board, typename Sum>
  ARTUNE_BOTH void run(std::uint32_t row, std::uint32_t turn, const Board& board, const Sum& sum) {
    ARTUNE_UNROLL
    for (int k = 0; k < K; ++k) {
      if (group_of(k) >= groups) break;
      float squares[kLanesHere] = {};
      for (int i = 0; i < kLanesHere; ++i) {
        const std::uint32_t vector = vector_of(k, i);
        if (vector >= vectors) continue;
        std::uint32_t words[kRowWords];
        sum(k, i, unit_of(row, vector), words);
        squares[i] = add_residual<D>(words, residual[k][i]);
        store(norm.residual_out, unit_of(row, vector), residual[k][i]);
      }
#if defined(__CUDA_ARCH__)
      board.leave(turn, group_of(k), fold_warp(squares[0]));
#else
      board.leave(turn, group_of(k), fold_in_halves(squares));
#endif
    }
    board.meet(turn);
    const float scale = row_scale(board.total(turn, groups), norm);
    for_each([&](int k, int i, std::uint32_t vector) {
      std::uint32_t y[kRowWords];
      normalise<D>(residual[k][i], weight[k][i], scale, norm.one_plus != 0, y);
      store(norm.output, unit_of(row, vector), y);
    });
  }
};

}  // namespace artune
