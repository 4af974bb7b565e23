// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounded waiting. Every spin of every protocol goes through Patience, so none can outlive its bound.
//
// The first kFreePolls polls are a loop of their own in which nothing but the loads takes time: nearly every wait ends there.
// Then the thread polls freely for kPollsPerLook polls between looks around: at the clock and, from 100 µs on, at the sticky error of its own device; every kLooksPerAbortLook looks
// (about a millisecond on the GPU) one thread per warp looks at the group's abort word, in host memory. Whoever gives up
// first writes the report, sets the sticky error (the rest of this rank's grid and its later launches leave) and the
// group's abort word (all other ranks leave within a millisecond of their own looks). What would break this: a spin that
// doesn't call give_up(), or a failure that is not followed by NaN in the output: a caller could take a stale sum for a
// result.
#pragma once

#include <cstdint>

#include "protocol/arguments.hpp"
#include "protocol/memory.cuh"

namespace artune {

inline constexpr int kFreePolls = 64;
inline constexpr std::uint32_t kPollsPerLook = 64;
inline constexpr std::uint64_t kFirstLookNs = 100'000;
inline constexpr std::uint32_t kLooksPerAbortLook = 32;
inline constexpr std::uint64_t kGone = ~std::uint64_t{0};

struct Patience {
  std::uint32_t polls = 0;
  std::uint64_t started_ns = 0;   ///< 0 before the first look, kGone when the wait is over
};

/// First failure of this rank: who waited for whom, and what was there.
ARTUNE_BOTH_RARE void record_failure(const Bounds& bounds, FailureCause cause, int rank, int peer, std::uint32_t block, std::uint64_t expected,
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
  host::store(&report->present, 1U, host::release);
#endif
  store_word(bounds.group_abort, 1);
}

/// The end of a launch's claim to the epoch: how the next launch gets to see the next one.
///
/// start() comes after a barrier that every thread of the block reaches only once its own load of the epoch has returned
/// (it has branched on the error beside it): the last block's ticket says that all blocks have read. So the ticket needs no
/// fence: a load that has returned can't see a later store. The last block's stores aren't waited for, and the ticket's
/// answer is looked at as late as can be: it takes as long as a peer's packet. A grid of one block needs no answer at all.
///
/// A ticket is {the epoch's low 16 bits, blocks before}. Two launches of one rank and family that nobody ordered, at once,
/// draw from one counter: one of them finds an epoch or a place that can't be its own (grids of several blocks), or they leave
/// a ticket that doesn't belong to the epoch, which the next launch finds. By thread 0 of every block.
///
/// ARTUNE_UNGUARDED is for tests/gpu/kernel_floor.cpp alone: no bounds, no ticket, no overlap check.
struct EpochStep {
  std::uint32_t ticket = 0;

#if defined(ARTUNE_UNGUARDED)
  ARTUNE_BOTH void start(Control* control, std::uint32_t, std::uint64_t epoch) { store_epoch(own_control(control), epoch + 1); }
  ARTUNE_BOTH bool is_last_block(std::uint32_t) const { return true; }
  ARTUNE_BOTH void finish(Control*, std::uint32_t, std::uint64_t, const Bounds&, int) {}
#else
  ARTUNE_BOTH void start(Control* control, std::uint32_t blocks, std::uint64_t epoch) {
    if (blocks == 1) {
      pass_ticket(&control->ticket);
      store_epoch_word(control, epoch + 1);
    } else {
      ticket = draw_ticket(&control->ticket);
    }
  }
  ARTUNE_BOTH bool is_last_block(std::uint32_t blocks) const { return blocks == 1 || (ticket & kTicketPlaces) == blocks - 1; }
  ARTUNE_BOTH void finish(Control* control, std::uint32_t blocks, std::uint64_t epoch, const Bounds& bounds, int rank) {
    if (blocks == 1) return;
    if (is_last_block(blocks)) store_epoch(control, epoch + 1);
    if ((ticket & ~kTicketPlaces) == first_ticket(epoch) && (ticket & kTicketPlaces) < blocks) return;
    record_failure(bounds, kOverlap, rank, rank, 0, epoch, ticket);
  }
#endif
};

/// False: an earlier call failed, or two ran at once; then note_overlap() and leave with NaN.
ARTUNE_BOTH bool may_run(const Entry& entry) {
#if defined(ARTUNE_UNGUARDED)
  return entry.error == 0;
#else
  return (entry.error | ((entry.ticket ^ first_ticket(entry.epoch)) & ~kTicketPlaces)) == 0;
#endif
}

ARTUNE_BOTH void note_overlap(const Entry& entry, const Bounds& bounds, int rank, std::uint32_t block) {
  if (entry.error == 0) record_failure(bounds, kOverlap, rank, rank, block, entry.epoch, entry.ticket);
}

/// The slow part of give_up(): when the wait started, or kGone. By value, so that Patience stays in registers.
ARTUNE_BOTH_RARE std::uint64_t look_around(std::uint32_t polls, std::uint64_t started_ns, const Bounds& bounds, int rank, int peer,
                                           std::uint32_t block, std::uint64_t expected, std::uint64_t seen) {
#if !defined(__CUDA_ARCH__)
  host::yield();
#endif
  const std::uint64_t now = now_ns();
  if (started_ns == 0) return now;
  if (now - started_ns < kFirstLookNs) return started_ns;
  if (load_word(&bounds.control->error) != 0) return kGone;
  if (polls / kPollsPerLook % kLooksPerAbortLook == 0 && elected() && load_word(bounds.group_abort) != 0) {
    record_failure(bounds, kAborted, rank, peer, block, expected, seen);
    return kGone;
  }
  if (bounds.timeout_ns != 0 && now - started_ns > bounds.timeout_ns) {
    record_failure(bounds, kTimedOut, rank, peer, block, expected, seen);
    return kGone;
  }
  return started_ns;
}

/// Called after a poll that missed. True: leave, the call has failed.
ARTUNE_BOTH bool give_up(Patience& patience, const Bounds& bounds, int rank, int peer, std::uint32_t block, std::uint64_t expected,
                         std::uint64_t seen) {
#if defined(ARTUNE_UNGUARDED)
  return false;
#endif
  if (++patience.polls % kPollsPerLook != 0) return false;
  patience.started_ns = look_around(patience.polls, patience.started_ns, bounds, rank, peer, block, expected, seen);
  return patience.started_ns == kGone;
}

/// Polls a flag until it shows `expected`: exactly that, since in every protocol a flag takes its next value only after all
/// its readers have seen this one (each file says why). So no old value can pass, whatever its distance.
ARTUNE_BOTH bool wait_flag(const std::uint64_t* flag, std::uint64_t expected, const Bounds& bounds, int rank, int peer,
                           std::uint32_t block) {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (int poll = 0; poll < kFreePolls; ++poll) {
    if (load_acquire(flag) == expected) return true;
  }
  Patience patience;
  std::uint64_t seen = load_acquire(flag);
  while (seen != expected) {
    if (give_up(patience, bounds, rank, peer, block, expected, seen)) return false;
    seen = load_acquire(flag);
  }
  return true;
}

}  // namespace artune
