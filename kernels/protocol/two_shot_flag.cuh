// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Two-shot all-reduce with flags: reduce-scatter, then all-gather, plain vector stores ordered by a flag per block and
// reader in each step. By its addresses one text is p2p/two-shot/flag (push), p2p/two-shot/pull and host/two-shot/flag;
// see one_shot_flag.cuh for what push and pull mean and why a flag may be trusted.
//
// Protocol. Rank p owns shard p (Shards). Block b owns units u of every shard with (u / threads) % blocks == b; all ranks
// have the same grid. Scatter: the block stores its units of every peer's shard and raises a scatter flag at each peer.
// Reduce: it waits for the scatter flags of its peers' blocks b, sums its units of the own shard in rank order, rounds
// once, stores them in the output and where the peers get them, and raises a gather flag at each peer. Gather: it waits for
// the gather flags and copies its units of the peers' shards into the output.
//
// Slot reuse. As in one_shot_flag.cuh. Every block raises and awaits both flags of every peer whether or not it has units,
// so a call ends only after every peer has entered it, empty shards included.
//
// (Skipping the flags of empty shards would be no fault: the owner of shard 0 waits for all, and all wait for it. They are
// raised all the same, so that the argument is one line.)
//
// What would break this: returning early with an empty shard; one flag area for both steps; gathering before reducing.
#pragma once

#include "protocol/one_shot_flag.cuh"

namespace artune {

/// Lane p raises this block's flag at rank p.
ARTUNE_BOTH void raise_flags(const Area (&flags)[kMaxRanks], std::uint64_t at, std::uint64_t value, int rank, int ranks, const Lane& lane) {
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(ranks); p += lane.threads) {
    if (static_cast<int>(p) != rank) store_release(flag_in(flags[p].send, at), value);
  }
}

/// Stores contributions to the peers' shards and, after the barrier, the scatter flags.
template <Form F>
ARTUNE_BOTH void two_shot_scatter(const TwoShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const UserBuffer<F, kVectorWords> input(arguments.input, arguments.count);
  const Shards shards(input.units(), arguments.ranks);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  for (int step = 1; step < arguments.ranks; ++step) {
    const int p = (arguments.rank + step) % arguments.ranks;
    const std::uint64_t begin = shards.begin(p), size = shards.size(p);
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
    for (std::uint64_t unit = lane.first(); unit < size; unit += lane.stride()) {
      std::uint32_t words[kVectorWords];
      input.load(begin + unit, words);
      store_plain(arguments.scatter[p].send + slot + unit * kVectorBytes, words);
    }
  }
  block_barrier();
  raise_flags(arguments.scatter_flags, block_flag_at(epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane);
}

ARTUNE_BOTH bool two_shot_wait_scatter(const TwoShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  return wait_flags(arguments.scatter_flags, block_flag_at(epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane, arguments.bounds);
}

/// Sums the own shard and hands it out. `alive` is the verdict of the whole block; not alive: no sum and no gather flag,
/// so that no peer takes what lies there for one (two_shot_gather() leaves the NaN).
template <Form F, int N>
ARTUNE_BOTH void two_shot_reduce(const TwoShotArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const int ranks = N > 0 ? N : arguments.ranks;
  const UserBuffer<F, kVectorWords> input(arguments.input, arguments.count);
  const UserBuffer<F, kVectorWords> output(arguments.output, arguments.count);
  const Shards shards(input.units(), arguments.ranks);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  const std::uint64_t begin = shards.begin(arguments.rank), size = shards.size(arguments.rank);
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#endif
  for (std::uint64_t unit = lane.first(); alive && unit < size; unit += lane.stride()) {
    Sum<F, kVectorWords> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int p = 0; p < (N > 0 ? N : kMaxRanks); ++p) {
      if (p >= ranks) continue;
      std::uint32_t words[kVectorWords];
      if (p == arguments.rank) {
        input.load(begin + unit, words);
      } else {
        load_plain(arguments.scatter[p].receive + slot + unit * kVectorBytes, words);
      }
      sum.add(words);
    }
    std::uint32_t words[kVectorWords];
    sum.round_to(words);
    for (int s = 0; s < arguments.sends; ++s) store_plain(arguments.gather[s].send + slot + unit * kVectorBytes, words);
    output.store(begin + unit, words);
  }
  block_barrier();
  if (alive) raise_flags(arguments.gather_flags, block_flag_at(epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane);
}

ARTUNE_BOTH bool two_shot_wait_gather(const TwoShotArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  return wait_flags(arguments.gather_flags, block_flag_at(epoch, lane), epoch + 1, arguments.rank, arguments.ranks, lane, arguments.bounds);
}

/// Copies the peers' shards. Not alive: NaN.
template <Form F>
ARTUNE_BOTH void two_shot_gather(const TwoShotArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const UserBuffer<F, kVectorWords> output(arguments.output, arguments.count);
  const Shards shards(output.units(), arguments.ranks);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  if (!alive) return fill_with_nan<F>(arguments.output, arguments.count, lane);
  for (int step = 1; step < arguments.ranks; ++step) {
    const int p = (arguments.rank + step) % arguments.ranks;
    const std::uint64_t begin = shards.begin(p), size = shards.size(p);
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
    for (std::uint64_t unit = lane.first(); unit < size; unit += lane.stride()) {
      std::uint32_t words[kVectorWords];
      load_plain(arguments.gather[p].receive + slot + unit * kVectorBytes, words);
      output.store(begin + unit, words);
    }
  }
}

}  // namespace artune
