// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What protocol/memory.cuh does on CPU threads. Acquire and release operations only, no fences: ThreadSanitizer doesn't
// model fences. tests/protocol/model/ has another one with the same names: a weak memory under a scheduler.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

namespace artune::host {

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;

template <typename Word>
Word load(const Word* from, std::memory_order order) {
  return std::atomic_ref(*const_cast<Word*>(from)).load(order);
}

template <typename Word>
void store(Word* to, Word value, std::memory_order order) {
  std::atomic_ref(*to).store(value, order);
}

/// Acquire and release.
template <typename Word>
Word fetch_add(Word* word, Word amount) {
  return std::atomic_ref(*word).fetch_add(amount, std::memory_order_acq_rel);
}

/// Puts `wanted` where `expected` stood; returns what stood there.
template <typename Word>
Word compare_exchange(Word* word, Word expected, Word wanted) {
  std::atomic_ref(*word).compare_exchange_strong(expected, wanted, std::memory_order_relaxed);
  return expected;
}

inline void copy_from(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
inline void copy_to(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

/// More ranks than cores: the one waited for may need this one.
inline void yield() { std::this_thread::yield(); }

/// In a wait that never runs out of time, since those waited for are sure to come: a barrier of one rank's blocks.
inline void stand_by() { std::this_thread::yield(); }

}  // namespace artune::host
