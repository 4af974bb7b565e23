// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Sentinel: a place that still shows all-ones is empty. The other format of the packet protocols, with as many bytes on
// the link as there are bytes of data.
//
// All-ones is a NaN in every dtype; a sender rewrites such an element to another NaN. A packet is 16 bytes of elements and
// has arrived when none of its elements is all-ones: every element is checked, since a link may split a vector store.
// Memory starts as all-ones. Call `epoch` uses slot `turn` (epoch modulo 3, counted beside the epoch).
//
// Clearing. Call k restores the receive areas of call k - 1, over the units that call k - 1 moved (kept in device memory:
// the count may differ from call to call). Nobody writes there in the meantime: a peer writes that slot again in its call
// k + 2, which it enters only after its call k + 1 has ended, which waits for this rank's data of call k + 1, which this
// rank sends after its call k, the clearing included, has ended.
// Three slots, because call k clears what call k - 1 read while peers may already write for call k + 1.
//
// What would break this: clearing one slot ahead (the peer's next store may be there already); clearing over the count of
// the call at hand; looking at one word of a packet for all; epoch % 3 on a counter that wraps.
#pragma once

#include "protocol/elements.cuh"
#include "protocol/wait.cuh"

namespace artune {

inline constexpr std::uint32_t kSentinelSlots = 3;
inline constexpr std::uint32_t kSentinelWord = 0xffffffffU;

struct SentinelCall {
  std::uint32_t slot;
  std::uint32_t slot_before;
  std::uint64_t units_before;   ///< 0 in the first call
};

template <Form F>
struct Sentinel {
  static constexpr int kWords = 4;
  static constexpr std::uint64_t kPacketBytes = 16;
  static constexpr std::uint32_t kSlotCount = kSentinelSlots;
  static constexpr bool kClears = true;
  static constexpr bool kHalves = element_bytes(wire_dtype(F)) == 2;
  using Call = SentinelCall;
  using Raw = Quad;

  static ARTUNE_BOTH Call call(const Control* control, std::uint64_t) {
    const Before before = load_before(control);
    return {before.turn, before.turn == 0 ? kSentinelSlots - 1 : before.turn - 1, before.units};
  }
  /// What the next call finds.
  static ARTUNE_BOTH Before after(const Call& call, std::uint64_t units) {
    return {units, call.slot + 1 == kSentinelSlots ? 0 : call.slot + 1};
  }

  static ARTUNE_BOTH void send(char* to, const std::uint32_t (&words)[kWords], const Call&) {
    std::uint32_t escaped[kWords];
    for (int w = 0; w < kWords; ++w) escaped[w] = escape(words[w]);
    store_quad(to, escaped);
  }
  static ARTUNE_BOTH Raw load(const char* from) { return load_quad(from); }
  static ARTUNE_BOTH bool arrived(const Raw& raw, const Call&) {
    return !(empty(raw.word[0]) || empty(raw.word[1]) || empty(raw.word[2]) || empty(raw.word[3]));
  }
  static ARTUNE_BOTH void unpack(const Raw& raw, std::uint32_t (&words)[kWords]) {
    for (int w = 0; w < kWords; ++w) words[w] = raw.word[w];
  }
  static ARTUNE_BOTH std::uint64_t expected(const Call&) { return 0; }
  static ARTUNE_BOTH std::uint64_t seen(const Raw& raw) { return raw.word[0] | std::uint64_t{raw.word[1]} << 32; }

  static ARTUNE_BOTH bool clears_rest(const Call&) { return false; }
  static ARTUNE_BOTH void clear(char* at) { store_quad(at, {kSentinelWord, kSentinelWord, kSentinelWord, kSentinelWord}); }

 private:
  static ARTUNE_BOTH bool empty(std::uint32_t word) {
    if constexpr (kHalves) {
#if defined(__CUDA_ARCH__)
      return __vcmpeq2(word, kSentinelWord) != 0;
#else
      return (word & 0xffffU) == 0xffffU || word >> 16 == 0xffffU;
#endif
    }
    return word == kSentinelWord;
  }
  static ARTUNE_BOTH std::uint32_t escape(std::uint32_t word) {
    if constexpr (kHalves) {
#if defined(__CUDA_ARCH__)
      return word & ~(__vcmpeq2(word, kSentinelWord) & 0x80008000U);
#else
      if ((word & 0xffffU) == 0xffffU) word &= ~0x8000U;
      if (word >> 16 == 0xffffU) word &= ~0x80000000U;
      return word;
#endif
    }
    return word == kSentinelWord ? 0x7fffffffU : word;
  }
};

}  // namespace artune
