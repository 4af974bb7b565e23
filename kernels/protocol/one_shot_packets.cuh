// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One-shot all-reduce over packets that carry their own arrival (ll.cuh, sentinel.cuh).
//
// Protocol. Each rank stores the packets of its input into every peer's receive area (or, through host memory, once into
// its own area that the peers read); each thread then polls the packets of the same index from every peer and sums in rank
// order. Packet i holds unit i of the message whatever the geometry.
//
// Slot reuse. A slot is written again by call k + S, S >= 2 slots. Its readers of call k are done by then: a rank enters
// call k + 2 after its call k + 1 has ended (stream order); that call ended only after packet 0 of every peer's call k + 1
// arrived (count > 0, so packet 0 exists and its thread waits for all peers); a peer sends in call k + 1 only after its
// own call k has ended, reads included.
//
// What would break this: one slot; programmatic dependent launch (call k could start before call k - 1 has ended);
// reading the epoch after the ticket that lets the next launch's value be stored.
#pragma once

#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/ll.cuh"
#include "protocol/packet_wait.cuh"
#include "protocol/sentinel.cuh"

namespace artune {

/// What this call doesn't write of the slots that this rank writes; see "Wrap" in ll.cuh.
template <typename Wire>
ARTUNE_BOTH_RARE void clear_rest(const OneShotArguments& arguments, Lane lane, typename Wire::Call call, std::uint64_t units) {
  const std::uint64_t capacity = arguments.slot_bytes / Wire::kPacketBytes;
  for (std::uint64_t unit = units + lane.first(); unit < capacity; unit += lane.stride()) {
    for (int s = 0; s < arguments.sends; ++s) {
      Wire::clear(arguments.data[s].send + call.slot * arguments.slot_bytes + unit * Wire::kPacketBytes);
    }
  }
}

/// Sentinel: makes the receive areas of the call before empty again.
template <typename Wire, int N>
ARTUNE_BOTH void clear_receive_areas(const OneShotArguments& arguments, const Lane& lane, const typename Wire::Call& call) {
  if constexpr (Wire::kClears) {
    const std::uint64_t slot = call.slot_before * arguments.slot_bytes;
    for (std::uint64_t unit = lane.first(); unit < call.units_before; unit += lane.stride()) {
      for (int p = 0; p < (N > 0 ? N : arguments.ranks); ++p) {
        if (p == arguments.rank) continue;
        Wire::clear(const_cast<char*>(arguments.data[p].receive) + slot + unit * Wire::kPacketBytes);
      }
    }
  }
}

template <template <Form> class Format, Form F, int N>
struct OneShotPackets {
  using Wire = Format<F>;
  using Call = typename Wire::Call;
  using Raw = typename Wire::Raw;
  static constexpr int kWords = Wire::kWords;
  using Wait = PacketWait<Wire>;
  static constexpr int kPeers = N > 0 ? N - 1 : 1;   ///< N is the number of ranks, or 0 to take it from the arguments

  const OneShotArguments& arguments;
  const Lane& lane;
  UserBuffer<F, kWords> input, output;
  /// All that the lane's first unit needs, ready before the epoch is: the unit, and where its packets go and come from in
  /// slot 0. A small message is one unit a lane, and the time from epoch to first store and first poll is what it waits for.
  std::uint32_t first[kWords] = {};
  std::uint32_t has_first, first_is_whole;   ///< bool, in registers that can be kept
  std::uint64_t slot_bytes;
  int sends, rank;
  char* to[kPeers] = {};
  const char* from[kPeers] = {};

  ARTUNE_BOTH OneShotPackets(const OneShotArguments& arguments_, const Lane& lane_)
      : arguments(arguments_), lane(lane_), input(arguments_.input, arguments_.count), output(arguments_.output, arguments_.count),
        has_first(lane_.first() < input.units() ? 1 : 0), first_is_whole(output.whole(lane_.first()) ? 1 : 0),
        slot_bytes(arguments_.slot_bytes), sends(arguments_.sends), rank(arguments_.rank) {
    if (has_first != 0) input.load(lane.first(), first);
    if constexpr (N > 0) {
      const std::uint64_t at = lane.first() * Wire::kPacketBytes;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int i = 0; i < kPeers; ++i) {
        to[i] = arguments.data[i].send + at;
        from[i] = arguments.data[peer_at(i)].receive + at;
        keep(to[i]);
        keep(from[i]);
      }
      keep(has_first);
      keep(first_is_whole);
      keep(slot_bytes);
      keep(sends);
      keep(rank);
    }
  }

  /// Peers are counted without this rank.
  ARTUNE_BOTH int peer_at(int i) const { return i < rank ? i : i + 1; }

  ARTUNE_BOTH int ranks() const { return N > 0 ? N : arguments.ranks; }

  ARTUNE_BOTH void send(const Call& call) const {
    const std::uint64_t slot = call.slot * slot_bytes;
    std::uint64_t unit = lane.first();
    if constexpr (N > 0) {
      if (has_first != 0) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int s = 0; s < kPeers; ++s) {
          if (s < sends) Wire::send(to[s] + slot, first, call);
        }
      }
      unit += lane.stride();
    }
    for (; unit < input.units(); unit += lane.stride()) {
      std::uint32_t words[kWords];
      input.load(unit, words);
      const std::uint64_t at = slot + unit * Wire::kPacketBytes;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int s = 0; s < (N > 0 ? N - 1 : kMaxRanks); ++s) {
        if (s < sends) Wire::send(arguments.data[s].send + at, words, call);
      }
    }
    if (Wire::clears_rest(call)) clear_rest<Wire>(arguments, lane, call, input.units());
  }

  ARTUNE_BOTH void clear_before(const Call& call) const { clear_receive_areas<Wire, N>(arguments, lane, call); }

  /// The sum of a unit of which `own` is this rank's part, and its store. False: failed, NaN stored.
  ARTUNE_BOTH bool reduce(std::uint64_t unit, const std::uint32_t (&own)[kWords], const Raw (&raws)[kPeers], bool alive, bool whole) const {
    if (!alive) {
      output.store_nan(unit);
      return false;
    }
    std::uint32_t theirs[kPeers][kWords];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int i = 0; i < kPeers; ++i) Wire::unpack(raws[i], theirs[i]);
    Sum<F, kWords> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int p = 0; p < N; ++p) {
      constexpr int kLast = kPeers - 1;
      const int after = p < kLast ? p : kLast, before = p > 0 ? p - 1 : 0;   // rank p's place if p comes before, after this rank
      std::uint32_t words[kWords];
      for (int w = 0; w < kWords; ++w) words[w] = p == rank ? own[w] : p < rank ? theirs[after][w] : theirs[before][w];
      sum.add(words);
    }
    output.store(unit, sum, whole);
    return true;
  }

  /// Receives, sums in rank order and stores. False: failed, and the lane's output is NaN from there on.
  ARTUNE_BOTH bool receive(const Call& call) const {
    const std::uint64_t slot = call.slot * slot_bytes;
    if constexpr (N == 0) return receive_any(call, slot);
    const auto peer = [&](int i) { return peer_at(i); };
    bool alive = true;
    if (has_first != 0) {
      const char* place[kPeers];
      for (int i = 0; i < kPeers; ++i) place[i] = from[i] + slot, keep(place[i]);
      Raw raws[kPeers];
      alive = Wait::poll_all(place, peer, rank, call, arguments.bounds, lane, raws);
      alive = reduce(lane.first(), first, raws, alive, first_is_whole != 0);
    }
    for (std::uint64_t unit = lane.first() + lane.stride(); unit < input.units(); unit += lane.stride()) {
      std::uint32_t own[kWords];
      input.load(unit, own);
      const char* place[kPeers];
      for (int i = 0; i < kPeers; ++i) place[i] = from[i] + slot + (unit - lane.first()) * Wire::kPacketBytes;
      Raw raws[kPeers];
      alive = alive && Wait::poll_all(place, peer, rank, call, arguments.bounds, lane, raws);
      alive = reduce(unit, own, raws, alive, output.whole(unit));
    }
    return alive;
  }

 private:
  /// Any number of ranks: one peer after the other.
  ARTUNE_BOTH bool receive_any(const Call& call, std::uint64_t slot) const {
    bool alive = true;
    for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
      Sum<F, kWords> sum;
      for (int p = 0; p < ranks(); ++p) {
        std::uint32_t words[kWords];
        if (p == rank) {
          input.load(unit, words);
        } else {
          Raw raw{};
          const char* packet = arguments.data[p].receive + slot + unit * Wire::kPacketBytes;
          alive = alive && Wait::poll(packet, call, arguments.bounds, lane, rank, p, raw);
          Wire::unpack(raw, words);
        }
        sum.add(words);
      }
      if (alive) {
        output.store(unit, sum);
      } else {
        output.store_nan(unit);
      }
    }
    return alive;
  }
};

}  // namespace artune
