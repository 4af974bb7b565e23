// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Direct all-reduce: peers read the users' own buffers, nothing is staged. Only where one call knows all ranks' pointers
// (a group of one process).
//
// p2p/one-shot/direct   every rank reads every input, sums in rank order, writes its output. Out of place only: a rank
//                       that wrote over its input while a peer still reads it would spoil the peer's sum.
// p2p/two-shot/direct   rank r reads shard r of every input, sums, and writes it into every output. In place works: shard
//                       r of any buffer is read by rank r alone, before rank r alone writes it.
//
// Protocol. Blocks with the same number work on the same units on all ranks (same grid). Start: block b raises a start
// flag at every peer with release (what the stream did before, the making of the input, is ordered before it) and waits
// for theirs: now the peers' inputs are made and, since their kernels run, nothing earlier in their streams uses their
// outputs. End: after its last access to a peer's buffer the block raises an end flag with release and waits for theirs:
// now its rank's input may be overwritten, and its output is complete. Kernel end joins the blocks.
//
// Flags. One slot suffices, flag = epoch + 1: a peer raises start of call k + 1 only after it saw this block's end of call
// k, which this block raises after it has passed start of call k; so a flag that is waited for is never more than one ahead.
//
// After a failure the users' buffers are touched by nobody's promise: a rank that gave up at the end flags lets its stream
// go on, and a late peer may read what that stream writes next. The communicator is in error on all ranks by then, and
// what a call left that was under way when it failed is not to be used (artune.h), whatever its elements are.
//
// What would break this: no end barrier (the next kernel of a stream overwrites an input that a slower peer still reads:
// a public kernel had this race); one-shot in place; end flags before the last read; grids that differ between ranks.
#pragma once

#include "protocol/two_shot_flag.cuh"

namespace artune {

ARTUNE_BOTH bool direct_meet(const DirectArguments& arguments, const Area (&flags)[kMaxRanks], const Lane& lane, std::uint64_t epoch) {
  const std::uint64_t at = lane.block * kFlagStrideBytes;
  raise_flags(flags, at, epoch + 1, arguments.rank, arguments.ranks, lane);
  return wait_flags(flags, at, epoch + 1, arguments.rank, arguments.ranks, lane, arguments.bounds);
}

/// The sum of unit `unit` over all ranks' inputs.
template <Form F, int N>
ARTUNE_BOTH void direct_sum(const DirectArguments& arguments, std::uint64_t unit, Sum<F, kVectorWords>& sum) {
  const int ranks = N > 0 ? N : arguments.ranks;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int p = 0; p < (N > 0 ? N : kMaxRanks); ++p) {
    if (p >= ranks) continue;
    std::uint32_t words[kVectorWords];
    UserBuffer<F, kVectorWords>(arguments.inputs[p], arguments.count).load(unit, words);
    sum.add(words);
  }
}

/// `alive` is the verdict of the whole block on the start flags. Not alive: NaN in the own output.
template <Form F, int N>
ARTUNE_BOTH void direct_one_shot(const DirectArguments& arguments, const Lane& lane, bool alive) {
  const UserBuffer<F, kVectorWords> output(arguments.outputs[arguments.rank], arguments.count);
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#endif
  for (std::uint64_t unit = lane.first(); unit < output.units(); unit += lane.stride()) {
    if (!alive) {
      output.store_nan(unit);
      continue;
    }
    Sum<F, kVectorWords> sum;
    direct_sum<F, N>(arguments, unit, sum);
    output.store(unit, sum);
  }
}

template <Form F, int N>
ARTUNE_BOTH void direct_two_shot(const DirectArguments& arguments, const Lane& lane, bool alive) {
  const UserBuffer<F, kVectorWords> mine(arguments.outputs[arguments.rank], arguments.count);
  const Shards shards(mine.units(), arguments.ranks);
  const std::uint64_t begin = shards.begin(arguments.rank), size = shards.size(arguments.rank);
  if (!alive) return fill_with_nan<F>(arguments.outputs[arguments.rank], arguments.count, lane);
#if defined(__CUDA_ARCH__)
#pragma unroll 2
#endif
  for (std::uint64_t unit = lane.first(); unit < size; unit += lane.stride()) {
    Sum<F, kVectorWords> sum;
    direct_sum<F, N>(arguments, begin + unit, sum);
    for (int p = 0; p < (N > 0 ? N : arguments.ranks); ++p) {
      UserBuffer<F, kVectorWords>(arguments.outputs[p], arguments.count).store(begin + unit, sum);
    }
  }
}

/// What failed after the start leaves the whole output NaN: part of it may be sums, part stale.
template <Form F>
ARTUNE_BOTH void direct_spoil(const DirectArguments& arguments, const Lane& lane) {
  fill_with_nan<F>(arguments.outputs[arguments.rank], arguments.count, lane);
}

}  // namespace artune
