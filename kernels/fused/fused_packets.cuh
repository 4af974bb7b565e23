// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One-shot all-reduce, residual add and RMSNorm in one launch, over packets that carry their own arrival (ll.cuh,
// sentinel.cuh).
//
// Protocol. To its peers a call is a call of one_shot_packets.cuh with rows x hidden elements: packet i holds unit i of the
// message, in the same slot, under the same epoch. Only who sends and who reads a packet differs: the thread that has the
// vector (row.cuh), so that a row's statistics stay inside its cluster. Hence calls of both kinds share a family and may
// follow each other in any order; in one call all ranks do the same.
//
// Slot reuse as there: packet 0 is in vector 0 of row 0, which every call has, and its thread waits for all peers. What
// sentinels clear, and what LL clears at its wrap, is counted in packets, so by whom they were read doesn't matter.
//
// A thread whose wait fails goes on with NaN for its sums: the row's statistics are NaN, and so is all of the row's output.
#pragma once

#include "fused/row.cuh"
#include "protocol/one_shot_packets.cuh"

namespace artune {

/// One launch on one rank. `sum.count` = rows * hidden; `sum.output` isn't used. The norm stands first, beside the head of
/// the sum: see the top of protocol/arguments.hpp.
struct FusedArguments {
  NormArguments norm;
  OneShotArguments sum;
};

template <template <Form> class Format, Form F, int N, int K>
struct FusedPackets {
  using Wire = Format<F>;
  using Call = typename Wire::Call;
  using Raw = typename Wire::Raw;
  static constexpr DType kUser = user_dtype(F);
  static constexpr int kWords = Wire::kWords;
  static constexpr int kPackets = kRowWords / kWords;  ///< of a vector
  static constexpr int kPeers = N > 0 ? N - 1 : 1;     ///< N is the number of ranks, or 0 to take it from the arguments
  static constexpr std::uint64_t kBytes = kPackets * Wire::kPacketBytes;

  const OneShotArguments& arguments;
  const Lane& lane;
  RowNorm<kUser, K> rows;
  std::uint32_t own[K][kLanesHere][kRowWords];  ///< this rank's part of the first row
  /// Where the packets of the thread's first vector go and come from in slot 0, as in one_shot_packets.cuh.
  std::uint64_t first_unit, slot_bytes;
  int sends, rank;
  char* to[kPeers] = {};
  const char* from[kPeers] = {};

  /// Loads all that the first row needs, before the epoch is known and before any peer is waited for; first what peers wait
  /// for.
  ARTUNE_BOTH FusedPackets(const FusedArguments& fused, const Lane& lane_)
      : arguments(fused.sum),
        lane(lane_),
        rows(fused.norm, RowLane::of(lane_, fused.norm.members)),
        first_unit(rows.unit_of(rows.at.cluster, rows.vector_of(0, 0))),
        slot_bytes(fused.sum.slot_bytes),
        sends(fused.sum.sends),
        rank(fused.sum.rank) {
    if (rows.at.cluster < rows.norm.rows) {
      load_own(rows.at.cluster);
      rows.load_residual(rows.at.cluster);
      rows.load_weight();
    }
    if constexpr (N > 0) {
      const std::uint64_t at = first_unit * kBytes;
      ARTUNE_UNROLL
      for (int i = 0; i < kPeers; ++i) {
        to[i] = arguments.data[i].send + at;
        from[i] = arguments.data[peer_at(i)].receive + at;
        keep(to[i]);
        keep(from[i]);
      }
      keep(slot_bytes);
      keep(sends);
      keep(rank);
    }
  }

  ARTUNE_BOTH void load_own(std::uint32_t row) {
    rows.for_each([&](int k, int i, std::uint32_t vector) { rows.load(arguments.input, rows.unit_of(row, vector), own[k][i]); });
  }

  ARTUNE_BOTH std::uint64_t packets() const { return std::uint64_t{rows.norm.rows} * rows.vectors * kPackets; }

  ARTUNE_BOTH void send_vector(std::uint64_t unit, const std::uint32_t (&vector)[kRowWords], const Call& call) const {
    const std::uint64_t at = call.slot * slot_bytes + (unit - first_unit) * kBytes;
    ARTUNE_UNROLL
    for (int s = 0; s < (N > 0 ? kPeers : kMaxRanks); ++s) {
      if (s >= sends) break;
      char* const place = (N > 0 ? to[N > 0 ? s : 0] : arguments.data[s].send + first_unit * kBytes) + at;
      ARTUNE_UNROLL
      for (int q = 0; q < kPackets; ++q) {
        std::uint32_t words[kWords];
        for (int w = 0; w < kWords; ++w) words[w] = vector[q * kWords + w];
        Wire::send(place + q * Wire::kPacketBytes, words, call);
      }
    }
  }

  ARTUNE_BOTH void send(const Call& call) const {
    std::uint32_t row = rows.at.cluster;
    if (row < rows.norm.rows) {
      rows.for_each([&](int k, int i, std::uint32_t vector) { send_vector(rows.unit_of(row, vector), own[k][i], call); });
    }
    for (row += rows.at.clusters; row < rows.norm.rows; row += rows.at.clusters) {
      rows.for_each([&](int, int, std::uint32_t vector) {
        std::uint32_t words[kRowWords];
        rows.load(arguments.input, rows.unit_of(row, vector), words);
        send_vector(rows.unit_of(row, vector), words, call);
      });
    }
    if (Wire::clears_rest(call)) clear_rest<Wire>(arguments, lane, call, packets());
  }

  /// Peers are counted without this rank.
  ARTUNE_BOTH int peer_at(int i) const { return i < rank ? i : i + 1; }

  /// The rounded sum of a vector of which `mine` is this rank's part, or NaN.
  ARTUNE_BOTH void reduce(std::uint64_t unit, const std::uint32_t (&mine)[kRowWords], const Call& call, bool& alive,
                          std::uint32_t (&words)[kRowWords]) const {
    Sum<F, kRowWords> sum;
    if constexpr (N > 0) {
      const std::uint64_t at = call.slot * slot_bytes + (unit - first_unit) * kBytes;
      const char* place[kPeers * kPackets];
      ARTUNE_UNROLL
      for (int j = 0; j < kPeers * kPackets; ++j) {
        place[j] = from[j / kPackets] + at + j % kPackets * Wire::kPacketBytes;
      }
      Raw raws[kPeers * kPackets] = {};
      alive = alive && PacketWait<Wire>::poll_all(
                           place, [&](int j) { return peer_at(j / kPackets); }, rank, call, arguments.bounds, lane, raws);
      ARTUNE_UNROLL
      for (int p = 0; p < N; ++p) {
        constexpr int kLast = kPeers - 1;
        std::uint32_t theirs[kRowWords];
        ARTUNE_UNROLL
        for (int q = 0; q < kPackets; ++q) {
          std::uint32_t below[kWords], above[kWords];  // rank p's packet, where p is below this rank, and above it
          Wire::unpack(raws[(p < kLast ? p : kLast) * kPackets + q], below);
          Wire::unpack(raws[(p > 0 ? p - 1 : 0) * kPackets + q], above);
          for (int w = 0; w < kWords; ++w) {
            theirs[q * kWords + w] = p == rank ? mine[q * kWords + w] : p < rank ? below[w] : above[w];
          }
        }
        sum.add(theirs);
      }
    } else {
      const std::uint64_t at = call.slot * slot_bytes + unit * kBytes;
      for (int p = 0; p < arguments.ranks; ++p) {
        std::uint32_t theirs[kRowWords];
        for (int q = 0; q < kPackets; ++q) {
          std::uint32_t part[kWords];
          if (p != rank) {
            Raw raw{};
            alive = alive && PacketWait<Wire>::poll(arguments.data[p].receive + at + q * Wire::kPacketBytes, call,
                                                    arguments.bounds, lane, rank, p, raw);
            Wire::unpack(raw, part);
          }
          for (int w = 0; w < kWords; ++w) theirs[q * kWords + w] = p == rank ? mine[q * kWords + w] : part[w];
        }
        sum.add(theirs);
      }
    }
    sum.round_to(words);
    for (int w = 0; w < kRowWords; ++w) words[w] = alive ? words[w] : kNanWord<kUser>;
  }

  /// All rows of this thread. `alive` false: without waiting, NaN.
  template <typename Board>
  ARTUNE_BOTH void receive(const Call& call, bool alive, const Board& board) {
    std::uint32_t turn = 0;
    for (std::uint32_t row = rows.at.cluster; row < rows.norm.rows; row += rows.at.clusters, ++turn) {
      if (turn > 0) {
        load_own(row);
        rows.load_residual(row);
      }
      rows.run(row, turn, board, [&](int k, int i, std::uint64_t unit, std::uint32_t(&words)[kRowWords]) {
        reduce(unit, own[k][i], call, alive, words);
      });
    }
  }
};

}  // namespace artune
