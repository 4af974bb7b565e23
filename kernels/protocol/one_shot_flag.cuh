// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One-shot all-reduce, flag protocol: plain vector stores, then one flag per block and writer.
//
// Protocol. Call number `epoch` uses slot epoch % 2. Block b owns the 16-byte units u with (u / threads) % blocks == b;
// launches of one call have the same grid on all ranks. The block stores its units into every peer's receive area (or
// once into its own area that the peers read), all its threads meet at a barrier, and one thread per destination stores
// flag[b] = epoch + 1 with release at system scope: barrier and release together order all of the block's stores before
// the flag. The receiving block polls flag[b] of every peer with acquire, meets at a barrier and reads the payload. A
// flag is consumed only together with data that its own writer stored before it into the same memory, so no evidence
// ever crosses two links.
//
// Slot reuse. As in one_shot_ll.cuh: call k overwrites what was read in call k - 2; a rank's call k - 1 ended only after
// block 0 (which always has a unit) saw every peer's flag of call k - 1, and a peer stores that after its call k - 2 has
// ended. In one slot a flag therefore steps from epoch - 1 to epoch + 1: never further, and never back.
//
// What would break this: relaxed flag stores; a flag in another allocation than its payload; grids that differ between
// ranks; an epoch per block (blocks that sit out a call would fall behind).
#pragma once

#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/wait.cuh"

namespace artune {

inline constexpr std::uint64_t kVectorBytes = 16;

/// Stores this lane's units and, after the barrier, the block's flags.
template <DType D>
ARTUNE_BOTH void flag_send(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const UserBuffer<D, 4> input(arguments.input, arguments.count);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    std::uint32_t words[4];
    input.load(unit, words);
    for (int s = 0; s < arguments.sends; ++s) input.store_unit(arguments.area[s].send + slot + unit * kVectorBytes, words);
  }
  block_barrier();
  for (std::uint32_t s = lane.thread; s < static_cast<std::uint32_t>(arguments.sends); s += lane.threads) {
    char* flag = arguments.area[s].send + slot + arguments.flags_offset + lane.block * kFlagStrideBytes;
    store_release(reinterpret_cast<std::uint64_t*>(flag), epoch + 1);
  }
}

/// Polls the flags that this lane is responsible for (lane p waits for rank p). False: failed.
ARTUNE_BOTH bool flag_wait(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  bool alive = true;
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(arguments.ranks); p += lane.threads) {
    if (static_cast<int>(p) == arguments.rank || !alive) continue;
    const char* flag = arguments.area[p].receive + slot + arguments.flags_offset + lane.block * kFlagStrideBytes;
    alive = wait_flag(reinterpret_cast<const std::uint64_t*>(flag), epoch + 1, arguments.bounds, arguments.rank, static_cast<int>(p),
                      lane.block);
  }
  return alive;
}

/// Sums in rank order and stores; `alive` is the verdict of the whole block. Not alive: NaN.
template <DType D, int N>
ARTUNE_BOTH void flag_reduce(const OneShotArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const int ranks = N > 0 ? N : arguments.ranks;
  const UserBuffer<D, 4> input(arguments.input, arguments.count);
  const UserBuffer<D, 4> output(arguments.output, arguments.count);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#endif
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    if (!alive) {
      output.store_nan(unit);
      continue;
    }
    Sum<D, 4> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int p = 0; p < (N > 0 ? N : kMaxRanks); ++p) {
      if (p >= ranks) continue;
      std::uint32_t words[4];
      if (p == arguments.rank) {
        input.load(unit, words);
      } else {
        input.load_unit(arguments.area[p].receive + slot + unit * kVectorBytes, words);
      }
      sum.add(words);
    }
    std::uint32_t words[4];
    sum.round_to(words);
    output.store(unit, words);
  }
}

}  // namespace artune
