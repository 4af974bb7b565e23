// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a launch is told. Plain data, passed by value as the kernel parameter (constant memory: no load on the way).
#pragma once

#include <cstddef>
#include <cstdint>

namespace artune {

struct Control;  // protocol/memory.cuh

/// Ranks of one communicator; a process can map at most 8 peers, hierarchical groups go beyond.
inline constexpr int kMaxRanks = 16;

/// Flags of different writers never share a line that a third one polls.
inline constexpr std::size_t kFlagStrideBytes = 128;

/// Thread blocks of one launch on one rank: what the flag areas have room for.
inline constexpr int kMostBlocks = 128;

/// Chunks of one launch of host/copy-engine: what its boards have room for.
inline constexpr int kMostChunks = 64;

/// Written by the first thread that gives up, read by the host. In mapped host memory, one per rank.
struct FailureReport {
  std::uint32_t present;   ///< 0, then 1 after the rest is written
  std::uint32_t cause;     ///< FailureCause
  std::int32_t rank, peer;
  std::uint32_t block;
  std::uint64_t expected, seen;
};

enum FailureCause : std::uint32_t { kTimedOut = 1, kAborted = 2 };  // kAborted: another rank failed first, or the host gave up

/// What every waiting body needs to stay bounded.
struct Bounds {
  Control* control;              ///< of this rank and family: epoch, sticky error, ticket
  FailureReport* report;         ///< of this rank, mapped host memory
  std::uint32_t* group_abort;    ///< one word of the group, mapped host memory: any rank's failure or the host sets it
  std::uint64_t timeout_ns;      ///< 0 = wait for ever (the abort word still ends it)
};

/// Where one-shot data goes and comes from, per index. `send[s]` and `receive[p]` lie side by side: with two ranks all
/// addresses of a launch fit one line of the constant cache, which every launch loads anew.
struct OneShotArea {
  char* send;
  const char* receive;
};

/// One launch of a one-shot protocol on one rank. What a small message needs stands first.
///
/// area[s].send, s < sends, is the base of an area this rank writes; area[p].receive the base of the area in which rank
/// p's contribution arrives ([rank] unused). An area holds `kSlots` slots of `slot_bytes`. Pushing to peers, there are
/// ranks-1 send areas (in the peers' memory) and all receive areas are local. Through host memory there is one send area
/// that the peers read.
struct OneShotArguments {
  const void* input;
  void* output;
  std::uint64_t count;           ///< elements; > 0
  Bounds bounds;
  std::uint64_t slot_bytes;
  std::uint64_t flags_offset;    ///< of the flags inside a slot (flag protocol)
  std::int32_t rank, ranks;
  std::int32_t sends;
  OneShotArea area[kMaxRanks];
};

inline constexpr std::uint32_t kSlots = 2;

}  // namespace artune
