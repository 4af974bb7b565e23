// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One-shot all-reduce, LL protocol: data and its arrival in one word.
//
// Protocol. A packet is 16 bytes, two 64-bit words, each {32 bits of payload, 32-bit tag}. Call number `epoch` (64-bit,
// counted on the device) uses slot epoch % 2 and tag 1 + epoch mod (2^32 - 1). Each rank stores the packets of its input
// into every peer's receive area (or, through host memory, once into its own area that the peers read); each thread then
// polls the packets of the same index from every peer until both words show the tag. The tag travels in the same atomic
// word as its payload, so no fence, no flag and no barrier is needed. Packet i holds bytes [8i, 8i + 8) of the message
// whatever the geometry.
//
// Slot reuse. Slot epoch % 2 is overwritten by call k while its last readers were in call k - 2. A rank enters call k
// after its call k - 1 has ended (stream order); that call ended only after packet 0 of every peer's call k - 1 arrived
// (count > 0, so packet 0 exists and its thread waits for all peers); a peer sends in call k - 1 only after its own call
// k - 2 has ended, reads included. Hence two slots suffice.
//
// Wrap. Memory starts cleared and a tag is never 0. The period 2^32 - 1 is odd, so one slot sees a tag again after two
// periods. A packet position that no call since then has written could still show it. So in the two calls after a wrap
// (one per slot) the sender clears what the call itself doesn't write, in the slot it writes: no peer reads there any
// more (see slot reuse), and stores of one rank to one address keep their order.
//
// What would break this: one slot; a tag that can be 0; a vector access that is not atomic per 64-bit word; a 32-bit
// epoch; programmatic dependent launch (call k could start before call k - 1 has ended); reading the epoch after the
// ticket that lets the next launch's value be stored.
#pragma once

#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/wait.cuh"

namespace artune {

inline constexpr std::uint64_t kTagPeriod = 0xffffffffULL;
inline constexpr std::uint64_t kPacketBytes = 16;

ARTUNE_BOTH std::uint32_t ll_tag(std::uint64_t epoch) { return static_cast<std::uint32_t>(1 + epoch % kTagPeriod); }

ARTUNE_BOTH Packet make_packet(const std::uint32_t (&words)[2], std::uint32_t tag) {
  return {words[0] | std::uint64_t{tag} << 32, words[1] | std::uint64_t{tag} << 32};
}

ARTUNE_BOTH bool has_tag(const Packet& packet, std::uint32_t tag) {
  return static_cast<std::uint32_t>(packet.low >> 32) == tag && static_cast<std::uint32_t>(packet.high >> 32) == tag;
}

/// See "Wrap" above: clears the packets from `units` to the end of the slot, in every area this rank writes.
ARTUNE_BOTH void ll_clear_rest(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch, std::uint64_t units) {
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  const std::uint64_t capacity = arguments.slot_bytes / kPacketBytes;
  for (std::uint64_t unit = units + lane.first(); unit < capacity; unit += lane.stride()) {
    for (int s = 0; s < arguments.sends; ++s) store_packet(arguments.area[s].send + slot + unit * kPacketBytes, {0, 0});
  }
}

/// A lane's first unit of the input, loaded before anything that has to be waited for. In place of a second read: the
/// lane needs it for sending and for summing.
template <DType D>
struct LlFirst {
  std::uint32_t words[2] = {};

  ARTUNE_BOTH LlFirst(const OneShotArguments& arguments, const Lane& lane) {
    const UserBuffer<D, 2> input(arguments.input, arguments.count);
    if (lane.first() < input.units()) input.load(lane.first(), words);
  }
};

/// Sends the packets of this lane.
template <DType D>
ARTUNE_BOTH void ll_send(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch, const LlFirst<D>& first) {
  const UserBuffer<D, 2> input(arguments.input, arguments.count);
  const std::uint32_t tag = ll_tag(epoch);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  std::uint32_t words[2] = {first.words[0], first.words[1]};
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    if (unit != lane.first()) input.load(unit, words);
    const Packet packet = make_packet(words, tag);
    for (int s = 0; s < arguments.sends; ++s) store_packet(arguments.area[s].send + slot + unit * kPacketBytes, packet);
  }
  if (epoch >= kTagPeriod && epoch % kTagPeriod < kSlots) ll_clear_rest(arguments, lane, epoch, input.units());
}

/// Polls packet `from` until it shows `tag`. False: failed.
ARTUNE_BOTH bool ll_wait(const char* from, std::uint32_t tag, Packet& packet, const OneShotArguments& arguments, int peer, const Lane& lane) {
  Patience patience;
  for (packet = load_packet(from); !has_tag(packet, tag); packet = load_packet(from)) {
    if (give_up(patience, arguments.bounds, arguments.rank, peer, lane.block, tag, packet.low >> 32)) return false;
  }
  return true;
}

/// Receives, sums in rank order and stores. N is the number of ranks, or 0 to take it from the arguments. False: failed,
/// and the lane's output is NaN.
template <DType D, int N>
ARTUNE_BOTH bool ll_receive(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch, const LlFirst<D>& first) {
  const int ranks = N > 0 ? N : arguments.ranks;
  const UserBuffer<D, 2> input(arguments.input, arguments.count);
  const UserBuffer<D, 2> output(arguments.output, arguments.count);
  const std::uint32_t tag = ll_tag(epoch);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  bool alive = true;
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    const std::uint64_t at = slot + unit * kPacketBytes;
    std::uint32_t own[2] = {first.words[0], first.words[1]};
    if (unit != lane.first()) input.load(unit, own);
    // A first poll of all peers before waiting for any: their round trips overlap.
    Packet packets[N > 0 ? N : 1] = {};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int p = 0; p < N; ++p) {
      if (p != arguments.rank) packets[p] = load_packet(arguments.area[p].receive + at);
    }
    Sum<D, 2> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int p = 0; p < ranks; ++p) {
      std::uint32_t words[2] = {own[0], own[1]};
      if (p != arguments.rank) {
        Packet& packet = packets[N > 0 ? p : 0];
        if (alive && (N == 0 || !has_tag(packet, tag))) alive = ll_wait(arguments.area[p].receive + at, tag, packet, arguments, p, lane);
        words[0] = static_cast<std::uint32_t>(packet.low);
        words[1] = static_cast<std::uint32_t>(packet.high);
      }
      sum.add(words);
    }
    if (alive) {
      std::uint32_t words[2];
      sum.round_to(words);
      output.store(unit, words);
    } else {
      output.store_nan(unit);
    }
  }
  return alive;
}

}  // namespace artune
