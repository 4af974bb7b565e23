// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One-shot all-reduce with flags: plain vector stores, then one flag per block and reader. By its addresses one text is
// p2p/one-shot/flag (push), p2p/one-shot/pull (stage in the own slab, announce, read the peers' slabs) and
// host/one-shot/flag (stage once in host memory that all read).
//
// Protocol. Call number `epoch` uses slot epoch % 2. Block b owns the 16-byte units u with (u / threads) % blocks == b;
// launches of one call have the same grid on all ranks. The block stores its units where `data` says, all its threads meet
// at a barrier, and one thread per reader stores flag[b] = epoch + 1 with release at system scope: barrier and release
// together order all of the block's stores before the flag. The receiving block polls flag[b] of every peer with acquire,
// meets at a barrier and reads the payload. The flag's writer is the payload's writer and placed it after the payload, so
// no evidence is passed on by a third rank. Pushed, flag and payload lie in one allocation; pulled, the flag goes to the
// reader (who would otherwise poll across the link) and the payload stays with its writer, where the release has put it
// before the flag could leave.
//
// Slot reuse. Call k + 2 overwrites what was read in call k; a rank's call k + 1 ended only after block 0 saw every peer's
// flag of call k + 1 (all blocks raise flags, with or without units), and a peer stores that after its call k has ended,
// reads included. In one slot a flag steps from epoch - 1 to epoch + 1: never further, and never back; the flag of a block
// that a smaller grid left out is older still, and so is not taken for either.
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

/// Stores this lane's units and, after the barrier, the block's flags.
template <Form F>
ARTUNE_BOTH void flag_send(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const UserBuffer<F, kVectorWords> input(arguments.input, arguments.count);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    std::uint32_t words[kVectorWords];
    input.load(unit, words);
    for (int s = 0; s < arguments.sends; ++s) store_plain(arguments.data[s].send + slot + unit * kVectorBytes, words);
  }
  block_barrier();
  for (std::uint32_t s = lane.thread; s < static_cast<std::uint32_t>(arguments.flag_sends); s += lane.threads) {
    store_release(flag_in(arguments.flags[s].send, block_flag_at(epoch, lane)), epoch + 1);
  }
}

/// Lane p waits for rank p. False: failed.
ARTUNE_BOTH bool flag_wait(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  return wait_flags(arguments.flags, block_flag_at(epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane, arguments.bounds);
}

/// Sums in rank order and stores; `alive` is the verdict of the whole block. Not alive: NaN.
template <Form F, int N>
ARTUNE_BOTH void flag_reduce(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const int ranks = N > 0 ? N : arguments.ranks;
  const UserBuffer<F, kVectorWords> input(arguments.input, arguments.count);
  const UserBuffer<F, kVectorWords> output(arguments.output, arguments.count);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#endif
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
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

}  // namespace artune
