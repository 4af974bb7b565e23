// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Two-shot all-reduce over packets that carry their own arrival (ll.cuh, sentinel.cuh): reduce-scatter, then all-gather.
//
// Protocol. Rank p owns shard p (Shards). Each rank stores its contribution to shard p into rank p's scatter area; the
// owner polls the contributions to its shard, sums in rank order, rounds once, keeps the result and stores it into every
// peer's gather area; everybody polls the results. Both steps belong to one call: one slot, one tag, one epoch. Packet i
// of a shard holds unit i of it whatever the geometry.
//
// Slot reuse. As in one_shot_packets.cuh, but that a rank's call k + 1 ends only after every peer has entered it needs an
// argument: shards may be empty. Shard 0 never is (count > 0). Its owner's call k + 1 ends after unit 0's contributions
// of all ranks have arrived. Any other rank's call k + 1 ends after the result of unit 0 has arrived, which its owner sent
// after it had all contributions. So each rank's call k + 1 ends after every rank has sent, hence entered it. (A rank
// that waited for nothing but its own shard, empty ones included, would break it.)
//
// Sentinel clearing. The same argument: a peer stores into a receive area of call k only in its call k + 3, and what this
// rank clears in call k + 1 is finished before this rank sends anything of call k + 2.
//
// What would break this: returning early with an empty shard; gather areas shared with scatter areas.
#pragma once

#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/ll.cuh"
#include "protocol/packet_wait.cuh"
#include "protocol/sentinel.cuh"

namespace artune {

template <template <Form> class Format, Form F, int N>
struct TwoShotPackets {
  using Wire = Format<F>;
  using Call = typename Wire::Call;
  using Raw = typename Wire::Raw;
  static constexpr int kWords = Wire::kWords;
  using Wait = PacketWait<Wire>;
  static constexpr int kPeers = N > 0 ? N - 1 : 1;

  const TwoShotArguments& arguments;
  const Lane& lane;
  UserBuffer<F, kWords> input, output;
  Shards shards;

  ARTUNE_BOTH TwoShotPackets(const TwoShotArguments& arguments_, const Lane& lane_)
      : arguments(arguments_), lane(lane_), input(arguments_.input, arguments_.count), output(arguments_.output, arguments_.count),
        shards(input.units(), arguments_.ranks) {}

  ARTUNE_BOTH int ranks() const { return N > 0 ? N : arguments.ranks; }
  /// Peers are counted without this rank.
  ARTUNE_BOTH int peer_at(int i) const { return i < arguments.rank ? i : i + 1; }

  /// Contributions to the peers' shards.
  ARTUNE_BOTH void scatter(const Call& call) const {
    const std::uint64_t slot = call.slot * arguments.slot_bytes;
    // Unit i of every shard, then unit i + stride: the first packets of all peers leave at once. After the own rank, so
    // that not all ranks write to the same one first.
    for (std::uint64_t unit = lane.first(); unit < shards.each; unit += lane.stride()) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int step = 1; step < ranks(); ++step) {
        const int p = arguments.rank + step < ranks() ? arguments.rank + step : arguments.rank + step - ranks();
        if (unit >= shards.size(p)) continue;
        std::uint32_t words[kWords];
        input.load(shards.begin(p) + unit, words);
        Wire::send(arguments.scatter[p].send + slot + unit * Wire::kPacketBytes, words, call);
      }
    }
    if (Wire::clears_rest(call)) {
      const std::uint64_t capacity = arguments.shard_capacity_bytes / Wire::kPacketBytes;
      for (int p = 0; p < ranks(); ++p) {
        if (p == arguments.rank) continue;
        for (std::uint64_t unit = shards.size(p) + lane.first(); unit < capacity; unit += lane.stride()) {
          Wire::clear(arguments.scatter[p].send + slot + unit * Wire::kPacketBytes);
        }
      }
      for (std::uint64_t unit = shards.size(arguments.rank) + lane.first(); unit < capacity; unit += lane.stride()) {
        for (int s = 0; s < arguments.sends; ++s) Wire::clear(arguments.gather[s].send + slot + unit * Wire::kPacketBytes);
      }
    }
  }

  /// Sentinel: makes the receive areas of the call before empty again.
  ARTUNE_BOTH void clear_before(const Call& call) const {
    if constexpr (Wire::kClears) {
      const std::uint64_t slot = call.slot_before * arguments.slot_bytes;
      const Shards before(call.units_before, ranks());
      for (int p = 0; p < ranks(); ++p) {
        if (p == arguments.rank) continue;
        for (std::uint64_t unit = lane.first(); unit < before.size(arguments.rank); unit += lane.stride()) {
          Wire::clear(const_cast<char*>(arguments.scatter[p].receive) + slot + unit * Wire::kPacketBytes);
        }
        for (std::uint64_t unit = lane.first(); unit < before.size(p); unit += lane.stride()) {
          Wire::clear(const_cast<char*>(arguments.gather[p].receive) + slot + unit * Wire::kPacketBytes);
        }
      }
    }
  }

  /// The own shard: receive, sum in rank order, round, keep and send. False: failed, output NaN and nothing sent.
  ARTUNE_BOTH bool reduce(const Call& call) const {
    const std::uint64_t slot = call.slot * arguments.slot_bytes;
    const std::uint64_t begin = shards.begin(arguments.rank);
    bool alive = true;
    for (std::uint64_t unit = lane.first(); unit < shards.size(arguments.rank); unit += lane.stride()) {
      const std::uint64_t at = slot + unit * Wire::kPacketBytes;
      Raw raws[kPeers] = {};
      if constexpr (N > 0) {
        const char* place[kPeers];
        for (int i = 0; i < kPeers; ++i) place[i] = arguments.scatter[peer_at(i)].receive + at, keep(place[i]);
        alive = alive && Wait::poll_all(place, [&](int i) { return peer_at(i); }, arguments.rank, call, arguments.bounds, lane, raws);
      }
      Sum<F, kWords> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int p = 0; p < ranks(); ++p) {
        std::uint32_t words[kWords];
        if (p == arguments.rank) {
          input.load(begin + unit, words);
        } else {
          if constexpr (N == 0) {
            alive = alive && Wait::poll(arguments.scatter[p].receive + at, call, arguments.bounds, lane, arguments.rank, p, raws[0]);
            Wire::unpack(raws[0], words);
          } else {
            constexpr int kLast = kPeers - 1;
            std::uint32_t other[kWords];
            Wire::unpack(raws[p < kLast ? p : kLast], words);
            Wire::unpack(raws[p > 0 ? p - 1 : 0], other);
            for (int w = 0; w < kWords; ++w) words[w] = p < arguments.rank ? words[w] : other[w];
          }
        }
        sum.add(words);
      }
      if (!alive) {
        output.store_nan(begin + unit);
        continue;
      }
      std::uint32_t words[kWords];
      sum.round_to(words);
      for (int s = 0; s < arguments.sends; ++s) Wire::send(arguments.gather[s].send + at, words, call);
      output.store(begin + unit, words);
    }
    return alive;
  }

  /// The peers' shards. False: failed, output NaN from there on.
  ARTUNE_BOTH bool gather(const Call& call, bool alive) const {
    const std::uint64_t slot = call.slot * arguments.slot_bytes;
    for (std::uint64_t unit = lane.first(); unit < shards.each; unit += lane.stride()) {
      const std::uint64_t at = slot + unit * Wire::kPacketBytes;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int p = 0; p < ranks(); ++p) {
        if (p == arguments.rank || unit >= shards.size(p)) continue;
        Raw raw{};
        alive = alive && Wait::poll(arguments.gather[p].receive + at, call, arguments.bounds, lane, arguments.rank, p, raw);
        if (alive) {
          std::uint32_t words[kWords];
          Wire::unpack(raw, words);
          output.store(shards.begin(p) + unit, words);
        } else {
          output.store_nan(shards.begin(p) + unit);
        }
      }
    }
    return alive;
  }
};

}  // namespace artune
