// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounded waiting. Every spin of every protocol goes through Patience, so none can outlive its bound.
//
// A poll that succeeds at once costs nothing here. After a miss the thread polls freely for kPollsPerLook polls between
// looks at the clock; from 100 µs on, and then every millisecond, it looks at the sticky error of its own device, and
// one thread per warp at the group's abort word in host memory. Whoever gives up first writes the report, sets the
// sticky error (the rest of this rank's grid and its later launches leave) and the group's abort word (all other ranks
// leave within a millisecond of their own looks). What would break this: a spin that doesn't call give_up(), or a
// failure that is not followed by NaN in the output: a caller could take a stale sum for a result.
#pragma once

#include <cstdint>

#include "protocol/arguments.hpp"
#include "protocol/memory.cuh"

#if !defined(__CUDA_ARCH__)
#include <thread>
#endif

namespace artune {

inline constexpr std::uint32_t kPollsPerLook = 64;
inline constexpr std::uint64_t kFirstLookNs = 100'000;
inline constexpr std::uint64_t kLookEveryNs = 1'000'000;

struct Patience {
  std::uint32_t polls = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t next_look_ns = 0;
};

/// First failure of this rank: who waited for whom, and what was there.
ARTUNE_BOTH void record_failure(const Bounds& bounds, FailureCause cause, int rank, int peer, std::uint32_t block, std::uint64_t expected,
                                std::uint64_t seen) {
  if (!claim(&bounds.control->error)) return;
  FailureReport* report = bounds.report;
  report->cause = cause;
  report->rank = rank;
  report->peer = peer;
  report->block = block;
  report->expected = expected;
  report->seen = seen;
  order_report();
#if defined(__CUDA_ARCH__)
  store_word(&report->present, 1);
#else
  std::atomic_ref(report->present).store(1, std::memory_order_release);
#endif
  store_word(bounds.group_abort, 1);
}

/// Called after a poll that missed. True: leave, the call has failed.
ARTUNE_BOTH bool give_up(Patience& patience, const Bounds& bounds, int rank, int peer, std::uint32_t block, std::uint64_t expected,
                         std::uint64_t seen) {
  if (++patience.polls % kPollsPerLook != 0) return false;
#if !defined(__CUDA_ARCH__)
  std::this_thread::yield();  // more ranks than cores: the one waited for may need this one
#endif
  const std::uint64_t now = now_ns();
  if (patience.started_ns == 0) {
    patience.started_ns = now;
    patience.next_look_ns = now + kFirstLookNs;
    return false;
  }
  if (now < patience.next_look_ns) return false;
  patience.next_look_ns = now + kLookEveryNs;
  if (load_word(&bounds.control->error) != 0) return true;
  if (elected() && load_word(bounds.group_abort) != 0) {
    record_failure(bounds, kAborted, rank, peer, block, expected, seen);
    return true;
  }
  if (bounds.timeout_ns != 0 && now - patience.started_ns > bounds.timeout_ns) {
    record_failure(bounds, kTimedOut, rank, peer, block, expected, seen);
    return true;
  }
  return false;
}

/// Polls a flag until it shows `expected`. A flag of the future (expected + 1) can't be taken for the past: accepted
/// is only seen - expected <= 1 in 64-bit arithmetic, so neither a cleared flag nor one of 2^63 calls ago passes.
ARTUNE_BOTH bool wait_flag(const std::uint64_t* flag, std::uint64_t expected, const Bounds& bounds, int rank, int peer,
                           std::uint32_t block) {
  Patience patience;
  std::uint64_t seen = load_acquire(flag);
  while (seen - expected > 1) {
    if (give_up(patience, bounds, rank, peer, block, expected, seen)) return false;
    seen = load_acquire(flag);
  }
  return true;
}

}  // namespace artune
