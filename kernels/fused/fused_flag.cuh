// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// As fused_packets.cuh, with flags: a call of one_shot_flag.cuh with rows x hidden elements, of which block b has the
// vectors that row.cuh gives it. Push, pull and host by the addresses, as there.
//
// A flag tells of its own block's vectors only, and the same block of each peer reads just those: grids and members are the
// same on all ranks. All blocks raise their flags and wait for all peers, rows or none, so slots are reused as there; and
// since a flag's value is the family's epoch, calls of both kinds may follow each other.
#pragma once

#include "fused/fused_packets.cuh"
#include "protocol/one_shot_flag.cuh"

namespace artune {

template <Form F, int N, int K>
struct FusedFlag {
  static constexpr DType kUser = user_dtype(F);

  const OneShotArguments& arguments;
  const Lane& lane;
  RowNorm<kUser, K> rows;
  std::uint32_t own[K][kLanesHere][kRowWords];  ///< this rank's part of the row at hand

  ARTUNE_BOTH FusedFlag(const FusedArguments& fused, const Lane& lane_)
      : arguments(fused.sum), lane(lane_), rows(fused.norm, RowLane::of(lane_, fused.norm.members)) {
    load(rows.at.cluster);
    rows.load_weight();
  }

  ARTUNE_BOTH void load(std::uint32_t row) {
    if (row >= rows.norm.rows) return;
    rows.for_each([&](int k, int i, std::uint32_t vector) { rows.load(arguments.input, rows.unit_of(row, vector), own[k][i]); });
    rows.load_residual(row);
  }

  /// This lane's vectors, to all that read them.
  ARTUNE_BOTH void send(std::uint64_t epoch) const {
    const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
    const auto send_vector = [&](std::uint64_t unit, const std::uint32_t(&words)[kRowWords]) {
      for (int s = 0; s < arguments.sends; ++s) store_plain(arguments.data[s].send + slot + unit * kRowVectorBytes, words);
    };
    std::uint32_t row = rows.at.cluster;
    if (row < rows.norm.rows)
      rows.for_each([&](int k, int i, std::uint32_t vector) { send_vector(rows.unit_of(row, vector), own[k][i]); });
    for (row += rows.at.clusters; row < rows.norm.rows; row += rows.at.clusters) {
      rows.for_each([&](int, int, std::uint32_t vector) {
        std::uint32_t words[kRowWords];
        rows.load(arguments.input, rows.unit_of(row, vector), words);
        send_vector(rows.unit_of(row, vector), words);
      });
    }
  }

  /// After a barrier of the block, and only if all its lanes have sent.
  ARTUNE_BOTH void raise(std::uint64_t epoch) const {
    for (std::uint32_t s = lane.thread; s < static_cast<std::uint32_t>(arguments.flag_sends); s += lane.threads) {
      store_release(flag_in(arguments.flags[s].send, block_flag_at(epoch, lane)), epoch + 1);
    }
  }

  /// Lane p waits for rank p. False: failed.
  ARTUNE_BOTH bool wait(std::uint64_t epoch) const {
    return wait_flags(arguments.flags, block_flag_at(epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane,
                      arguments.bounds);
  }

  /// The rounded sum of a vector of which `mine` is this rank's part, or NaN.
  ARTUNE_BOTH void reduce(std::uint64_t epoch, std::uint64_t unit, const std::uint32_t (&mine)[kRowWords], bool alive,
                          std::uint32_t (&words)[kRowWords]) const {
    const std::uint64_t at = epoch % kSlots * arguments.slot_bytes + unit * kRowVectorBytes;
    Sum<F, kRowWords> sum;
    ARTUNE_UNROLL
    for (int p = 0; p < (N > 0 ? N : kMaxRanks); ++p) {
      if (p >= arguments.ranks || !alive) break;
      std::uint32_t theirs[kRowWords];
      if (p == arguments.rank) {
        for (int w = 0; w < kRowWords; ++w) theirs[w] = mine[w];
      } else {
        load_plain(arguments.data[p].receive + at, theirs);
      }
      sum.add(theirs);
    }
    sum.round_to(words);
    for (int w = 0; w < kRowWords; ++w) words[w] = alive ? words[w] : kNanWord<kUser>;
  }

  /// `alive` is the verdict of the whole block.
  template <typename Board>
  ARTUNE_BOTH void receive(std::uint64_t epoch, bool alive, const Board& board) {
    std::uint32_t turn = 0;
    for (std::uint32_t row = rows.at.cluster; row < rows.norm.rows; row += rows.at.clusters, ++turn) {
      if (turn > 0) load(row);
      rows.run(row, turn, board, [&](int k, int i, std::uint64_t unit, std::uint32_t(&words)[kRowWords]) {
        reduce(epoch, unit, own[k][i], alive, words);
      });
    }
  }
};

}  // namespace artune
