// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One-shot all-reduce with flags: plain vector stores, then one flag per block and reader. By its addresses one text is
// p2p/one-shot/flag (push), p2p/one-shot/pull (stage in the own slab, announce, read the peers' slabs) and
// host/one-shot/flag (stage once in host memory that all read).
//
// Protocol. Call number `epoch` uses slot epoch % 2. Block b owns the 16-byte units u with (u / threads) % blocks == b, in
// order, and cuts them into pieces (one, but through host memory); launches of one call have the same grid, and so the same
// pieces, on all ranks. The block stores a piece where `data` says, all its threads meet at a barrier, and one thread per
// reader stores the piece's flag = epoch + 1 with release at system scope: barrier and release together order all of the
// block's stores before the flag. The receiving block polls the piece's flag of every peer with acquire, meets at a barrier
// and reads the payload. The flag's writer is the payload's writer and placed it after the payload, so no evidence is passed
// on by a third rank. Pushed, flag and payload lie in one allocation; pulled, the flag goes to the reader (who would
// otherwise poll across the link) and the payload stays with its writer, where the release has put it before the flag could
// leave. Through host memory every byte crosses the link twice, up and down: half of the blocks are a piece ahead with
// sending, so that some send while the others read.
//
// Slot reuse. Call k + 2 overwrites what was read in call k; a rank's call k + 1 ended only after block 0 saw every peer's
// first flag of call k + 1 (all blocks raise the flags of all pieces, with or without units), and a peer stores that after
// its call k has ended, reads included. In one slot a flag steps from epoch - 1 to epoch + 1: never further, and never back;
// a flag that a call with fewer blocks or pieces left out is older still, and so is not taken for either.
//
// What would break this: relaxed flag stores; grids that differ between ranks; an epoch per block (blocks that sit out a
// call would fall behind).
#pragma once

#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/wait.cuh"

namespace artune {

inline constexpr std::uint64_t kVectorBytes = 16;
inline constexpr int kVectorWords = 4;

/// The flag of this block in the slot of call `epoch`.
ARTUNE_BOTH std::uint64_t block_flag_at(std::uint64_t epoch, const Lane& lane) {
  return epoch % kSlots * kFlagsBytes + lane.block * kFlagStrideBytes;
}

ARTUNE_BOTH std::uint64_t* flag_in(char* area, std::uint64_t at) { return reinterpret_cast<std::uint64_t*>(area + at); }
ARTUNE_BOTH const std::uint64_t* flag_in(const char* area, std::uint64_t at) { return reinterpret_cast<const std::uint64_t*>(area + at); }

/// Lane p waits for this block's flag of rank p. False: failed.
ARTUNE_BOTH bool wait_flags(const Area (&flags)[kMaxRanks], std::uint64_t at, std::uint64_t expected, int rank, int ranks, const Lane& lane,
                            const Bounds& bounds) {
  bool alive = true;
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(ranks); p += lane.threads) {
    if (static_cast<int>(p) == rank || !alive) continue;
    alive = wait_flag(flag_in(flags[p].receive, at), expected, bounds, rank, static_cast<int>(p), lane.block);
  }
  return alive;
}

/// How a block cuts its part of the message. `rounds` are the lane's units, lane.stride() apart.
struct Pieces {
  std::uint64_t rounds, rounds_each;
  std::uint32_t count;

  ARTUNE_BOTH Pieces(std::uint64_t units, const Lane& lane, std::uint32_t most)
      : rounds(most == 1 ? 1 : (units + lane.stride() - 1) / lane.stride()), rounds_each(rounds), count(1) {
    if (most == 1) return;
    const std::uint32_t flags = std::uint32_t{kMostBlocks} / lane.blocks;   // the flags that a block has
    const std::uint32_t limit = flags < 1 ? 1 : flags < most ? flags : most;
    rounds_each = (rounds + limit - 1) / limit;
    count = static_cast<std::uint32_t>((rounds + rounds_each - 1) / rounds_each);
  }

  ARTUNE_BOTH std::uint64_t first_unit(std::uint32_t piece, const Lane& lane) const { return lane.first() + piece * rounds_each * lane.stride(); }
  /// One past the piece's last unit.
  ARTUNE_BOTH std::uint64_t end_unit(std::uint32_t piece, const Lane& lane, std::uint64_t units) const {
    if (piece + 1 == count) return units;
    const std::uint64_t end = (piece + 1) * rounds_each * lane.stride();
    return end < units ? end : units;
  }
  ARTUNE_BOTH std::uint64_t flag_at(std::uint32_t piece, std::uint64_t epoch, const Lane& lane) const {
    return epoch % kSlots * kFlagsBytes + (lane.block * count + piece) * kFlagStrideBytes;
  }
};

template <Form F>
struct OneShotFlag {
  const OneShotArguments& arguments;
  const Lane& lane;
  std::uint64_t epoch;
  UserBuffer<F, kVectorWords> input, output;
  Pieces pieces;
  std::uint64_t slot;

  ARTUNE_BOTH OneShotFlag(const OneShotArguments& arguments_, const Lane& lane_, std::uint64_t epoch_)
      : arguments(arguments_), lane(lane_), epoch(epoch_), input(arguments_.input, arguments_.count), output(arguments_.output, arguments_.count),
        pieces(input.units(), lane_, arguments_.most_pieces), slot(epoch_ % kSlots * arguments_.slot_bytes) {}

  /// Stores this lane's units of a piece.
  ARTUNE_BOTH void store(std::uint32_t piece) const {
    const std::uint64_t end = pieces.end_unit(piece, lane, input.units());
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
    for (std::uint64_t unit = pieces.first_unit(piece, lane); unit < end; unit += lane.stride()) {
      std::uint32_t words[kVectorWords];
      input.load(unit, words);
      for (int s = 0; s < arguments.sends; ++s) store_plain(arguments.data[s].send + slot + unit * kVectorBytes, words);
    }
  }

  /// The piece's flags, once all the block's units of it are stored.
  ARTUNE_BOTH void announce(std::uint32_t piece) const {
    block_barrier();
    for (std::uint32_t s = lane.thread; s < static_cast<std::uint32_t>(arguments.flag_sends); s += lane.threads) {
      store_release(flag_in(arguments.flags[s].send, pieces.flag_at(piece, epoch, lane)), epoch + 1);
    }
  }

  /// Lane p waits for rank p. False: failed.
  ARTUNE_BOTH bool wait(std::uint32_t piece) const {
    return wait_flags(arguments.flags, pieces.flag_at(piece, epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane, arguments.bounds);
  }

  /// Sums a piece in rank order and stores; `alive` is the verdict of the whole block. Not alive: NaN. N as in
  /// kernel_table.cuh.
  template <int N>
  ARTUNE_BOTH void reduce(std::uint32_t piece, bool alive) const {
    const int ranks = N > 0 ? N : arguments.ranks;
    const std::uint64_t end = pieces.end_unit(piece, lane, input.units());
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#endif
    for (std::uint64_t unit = pieces.first_unit(piece, lane); unit < end; unit += lane.stride()) {
      if (!alive) {
        output.store_nan(unit);
        continue;
      }
      Sum<F, kVectorWords> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int p = 0; p < (N > 0 ? N : kMaxRanks); ++p) {
        if (p >= ranks) continue;
        std::uint32_t words[kVectorWords];
        if (p == arguments.rank) {
          input.load(unit, words);
        } else {
          load_plain(arguments.data[p].receive + slot + unit * kVectorBytes, words);
        }
        sum.add(words);
      }
      output.store(unit, sum);
    }
  }

  /// The whole call of a block, but for the epoch's step: `entered` is called once all its threads have read the epoch.
  template <int N, typename Entered>
  ARTUNE_BOTH void run(const Entered& entered) const {
    const std::uint32_t ahead = lane.block % 2;
    std::uint32_t sent = 0;
    bool alive = true;
    for (std::uint32_t piece = 0; piece < pieces.count; ++piece) {
      for (; sent <= piece + ahead && sent < pieces.count; ++sent) {
        store(sent);
        announce(sent);
        if (sent == 0) entered();
      }
      alive = block_agrees(alive && wait(piece));
      reduce<N>(piece, alive);
    }
  }
};

}  // namespace artune
