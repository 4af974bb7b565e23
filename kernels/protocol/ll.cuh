// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// LL: data and its arrival in one word. One of the two formats that the packet protocols (one_shot_packets.cuh,
// two_shot_packets.cuh) are written over; sentinel.cuh is the other.
//
// A packet is 16 bytes, two 64-bit words, each {32 bits of payload, 32-bit tag}. Call number `epoch` (64-bit, counted on
// the device) uses slot epoch % 2 and tag 1 + epoch mod (2^32 - 1). A receiver polls a packet until both words show the
// tag. The tag travels in the same atomic word as its payload, so no fence, no flag and no barrier is needed.
//
// Wrap. Memory starts cleared and a tag is never 0. The period 2^32 - 1 is odd, so one slot sees a tag again after two
// periods. A packet position that no call since then has written could still show it. So in the first two calls of every
// period (one per slot) the sender clears what the call itself doesn't write, in the slot it writes: no peer reads there
// any more (see the slot reuse of the protocol), and stores of one rank to one address keep their order. Nobody reads
// a clearing store, so it is the end of the grid that must bring it home before the grids that follow in the stream: kernel
// boundaries do that (their stores are performed for all observers before the next kernel of the stream starts), plain
// program order of one thread would not. Epochs 2^64 - 1
// and 0 are both first calls of a period (2^64 mod (2^32 - 1) is 1), so the wrap of the epoch needs nothing of its own.
//
// What would break this: one slot; a tag that can be 0; a vector access that is not atomic per 64-bit word; a 32-bit epoch.
#pragma once

#include "protocol/elements.cuh"
#include "protocol/wait.cuh"

namespace artune {

inline constexpr std::uint64_t kTagPeriod = 0xffffffffULL;

/// What a call needs to know of its place in the sequence of calls.
struct LlCall {
  std::uint32_t tag;    ///< 1 + the call's index in its period
  std::uint32_t slot;
};

/// epoch mod kTagPeriod, by adding the digits of base 2^32: a division would cost as much as a poll.
ARTUNE_BOTH std::uint32_t ll_index(std::uint64_t epoch) {
  const std::uint64_t sum = (epoch & 0xffffffffU) + (epoch >> 32);
  const std::uint32_t folded = static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(sum >> 32);
  return folded == kTagPeriod ? 0 : folded;
}

template <Form F>
struct Ll {
  static constexpr int kWords = 2;                    ///< payload of a packet
  static constexpr std::uint64_t kPacketBytes = 16;
  static constexpr std::uint32_t kSlotCount = kSlots;
  static constexpr bool kClears = false;              ///< see Sentinel
  using Call = LlCall;
  using Raw = Packet;

  static ARTUNE_BOTH Call call(const Control*, std::uint64_t epoch) {
    return {ll_index(epoch) + 1, static_cast<std::uint32_t>(epoch % kSlots)};
  }
  static ARTUNE_BOTH void send(char* to, const std::uint32_t (&words)[kWords], const Call& call) {
    store_packet(to, {words[0] | std::uint64_t{call.tag} << 32, words[1] | std::uint64_t{call.tag} << 32});
  }
  static ARTUNE_BOTH Raw load(const char* from) { return load_packet(from); }
  static ARTUNE_BOTH bool arrived(const Raw& raw, const Call& call) {
    return static_cast<std::uint32_t>(raw.low >> 32) == call.tag && static_cast<std::uint32_t>(raw.high >> 32) == call.tag;
  }
  static ARTUNE_BOTH void unpack(const Raw& raw, std::uint32_t (&words)[kWords]) {
    words[0] = static_cast<std::uint32_t>(raw.low);
    words[1] = static_cast<std::uint32_t>(raw.high);
  }
  /// For the failure report.
  static ARTUNE_BOTH std::uint64_t expected(const Call& call) { return call.tag; }
  static ARTUNE_BOTH std::uint64_t seen(const Raw& raw) { return raw.low >> 32; }

  /// See "Wrap" above.
  static ARTUNE_BOTH bool clears_rest(const Call& call) { return call.tag <= kSlots; }
  static ARTUNE_BOTH void clear(char* at) { store_packet(at, {0, 0}); }
};

}  // namespace artune
