// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a launch is told. Plain data, passed by value as the kernel parameter (constant memory: no load on the way).
// In every struct the fields that a small message needs stand first, in two lines of the constant cache, which every
// launch loads anew; what only a wait that misses needs (Bounds) stands last.
#pragma once

#include <cstddef>
#include <cstdint>

namespace artune {

struct Control;  // protocol/memory.cuh

/// Ranks of one communicator; a process can map at most kMostPeers of them, hierarchical groups go beyond.
inline constexpr int kMaxRanks = 16;
inline constexpr int kMostPeers = 8;

/// Flags of different writers never share a line that a third one polls.
inline constexpr std::size_t kFlagStrideBytes = 128;

/// Thread blocks of one launch on one rank: what the flag areas have room for.
inline constexpr int kMostBlocks = 128;
inline constexpr std::size_t kFlagsBytes = kMostBlocks * kFlagStrideBytes;

/// Pieces in which a block of host/one-shot/flag sends: while it reads one, the link takes the next the other way.
inline constexpr std::uint32_t kMostPieces = 8;

/// Chunks of one launch of host/copy-engine: what its boards have room for.
inline constexpr int kMostChunks = 64;

/// Slots of the families that alternate (LL, flag); protocol/sentinel.cuh has three.
inline constexpr std::uint32_t kSlots = 2;

/// Written by the first thread that gives up, read by the host. In mapped host memory, one per rank.
struct FailureReport {
  std::uint32_t present;   ///< 0, then 1 after the rest is written
  std::uint32_t cause;     ///< FailureCause
  std::int32_t rank, peer;
  std::uint32_t block;
  std::uint64_t expected, seen;
};

enum FailureCause : std::uint32_t {
  kTimedOut = 1,
  kAborted = 2,   ///< another rank failed first, or the host gave up
  kOverlap = 3,   ///< two calls of one rank and family ran at once: nobody ordered them
  kDisagree = 4,  ///< ARTUNE_CHECK: a peer calls with another candidate, count or type
};

/// What every waiting body needs to stay bounded.
struct Bounds {
  Control* control;              ///< of this rank and family: epoch, sticky error, ticket
  FailureReport* report;         ///< of this rank, mapped host memory
  std::uint32_t* group_abort;    ///< one word of the group, mapped host memory: any rank's failure or the host sets it
  std::uint64_t timeout_ns;      ///< 0 = wait for ever (the abort word still ends it)
};

/// Where data goes and comes from, per index. `send` and `receive` lie side by side: see the top.
struct Area {
  char* send;
  const char* receive;
};

/// One launch of a one-shot protocol on one rank.
///
/// data[s].send, s < sends, is the base of an area this rank writes; data[p].receive the base of the area in which rank
/// p's contribution shows ([rank] unused). An area holds slots of `slot_bytes`.
///   push   sends = ranks - 1 areas in the peers' memory; all receive areas are local
///   pull   one send area, this rank's own; the receive areas are the peers'
///   host   as pull, everything in host memory
/// Flag protocol besides: flags[s].send, s < flag_sends, and flags[p].receive, slots of kFlagsBytes each. A flag always
/// lies in memory of its readers (host: of all), so that nobody polls across a link. A block hands over its part of the
/// message in up to most_pieces pieces.
struct OneShotArguments {
  const void* input;
  void* output;
  std::uint64_t count;           ///< elements; > 0
  Control* control;              ///< as in bounds
  std::uint64_t slot_bytes;
  std::int16_t rank, ranks, sends, flag_sends;
  Area data[kMaxRanks];
  Area flags[kMaxRanks];
  std::uint32_t most_pieces;
  Bounds bounds;
};

/// One launch of a two-shot protocol: reduce-scatter, then all-gather. Rank p owns shard p of the message.
///
/// scatter[p].send is where this rank puts its contribution to shard p, scatter[p].receive where rank p's contribution to
/// this rank's shard shows ([rank] unused in both). gather[s].send, s < sends, is where this rank's reduced shard goes,
/// gather[p].receive where rank p's reduced shard shows. All of them are slots of `slot_bytes`. push and pull as above.
/// Flag protocol besides: flags go to all peers, scatter_flags and gather_flags[p] {send, receive}, slots of kFlagsBytes.
struct TwoShotArguments {
  const void* input;
  void* output;
  std::uint64_t count;
  Control* control;
  std::uint64_t slot_bytes;
  std::int16_t rank, ranks, sends, unused;
  Area scatter[kMaxRanks];
  Area gather[kMaxRanks];
  Area scatter_flags[kMaxRanks];
  Area gather_flags[kMaxRanks];
  std::uint64_t shard_capacity_bytes;  ///< of one shard in a slot, on the wire
  Bounds bounds;
};

/// One launch of the direct protocols: peers read (and, two-shot, write) the users' own buffers. Flags as above, one
/// slot: `start` says "my input is ready and my output may be written", `end` "I have read, and written, what I do".
struct DirectArguments {
  const void* inputs[kMaxRanks];
  void* outputs[kMaxRanks];
  std::uint64_t count;
  Control* control;
  std::int16_t rank, ranks, unused[2];
  Area start[kMaxRanks];
  Area end[kMaxRanks];
  Bounds bounds;
};

/// One launch of the hierarchical protocol: reduce inside islands of `island_size` ranks, exchange one shard between
/// islands, gather inside. Shard i belongs to the i-th rank of every island. Indices below are island-local for `inside`
/// (member j) and island numbers for `across` (the same member of island g).
struct HierarchicalArguments {
  const void* input;
  void* output;
  std::uint64_t count;
  Control* control;
  std::uint64_t slot_bytes, across_slot_bytes;
  std::int16_t rank, ranks, island_size, unused;
  Area scatter[kMaxRanks];         ///< inside: contribution to member j's shard
  Area across[kMaxRanks];          ///< partial sums of this rank's shard, fp32, to and from island g
  Area gather[kMaxRanks];          ///< inside: reduced shards
  Area scatter_flags[kMaxRanks], across_flags[kMaxRanks], gather_flags[kMaxRanks];
  Bounds bounds;
};

}  // namespace artune
