// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Hierarchical all-reduce for islands of GPUs (behind one switch or on one socket each): everything but one shard per rank
// stays inside an island. Plain vector stores ordered by a flag per block and reader, as in two_shot_flag.cuh.
//
// Protocol. Ranks g * I .. g * I + I - 1 form island g. Member m of every island owns shard m of I shards.
//   inside    contributions to each member's shard are pushed to it; it sums them in member order in fp32
//   across    the fp32 partial sum is pushed to member m of every other island; each sums the partials in island order
//             and rounds once: all islands get the same bits
//   inside    the result is pushed to the island's members
// A rank maps I - 1 + N / I - 1 peers instead of N - 1: 16 ranks in two islands of 8 need 8.
//
// Numerics class hierarchical-fp32: (+0 + island 0's sum + island 1's sum + …), each (+0 + member 0 + member 1 + …).
//
// Slot reuse. As in two_shot_flag.cuh, every block raises and awaits all flags of its three steps, empty shards included.
// A rank's call ends after the last step's flags of its island's members; a member raises those after the flags across from
// all islands; those are raised after the first step's flags of all members there. So a call ends only after every rank has
// entered it.
//
// What would break this: rounding the partial sums (islands would differ); one flag area for two steps.
#pragma once

#include "protocol/two_shot_flag.cuh"

namespace artune {

/// Vectors of partial sums that one unit makes.
template <Form F>
inline constexpr int kPartialVectors = kElementsPerWord<F>;

struct IslandPlace {
  int island, member, islands;

  ARTUNE_BOTH explicit IslandPlace(const HierarchicalArguments& arguments)
      : island(arguments.rank / arguments.island_size), member(arguments.rank % arguments.island_size),
        islands(arguments.ranks / arguments.island_size) {}
  ARTUNE_BOTH int rank_inside(const HierarchicalArguments& arguments, int other) const { return island * arguments.island_size + other; }
  ARTUNE_BOTH int rank_across(const HierarchicalArguments& arguments, int other) const { return other * arguments.island_size + member; }
};

/// Lane i waits for this block's flag of the i-th of `others`, this rank being `self` among them.
template <typename RankOf>
ARTUNE_BOTH bool island_wait(const HierarchicalArguments& arguments, const Area (&flags)[kMaxRanks], int self, int others, std::uint64_t epoch,
                             const Lane& lane, const RankOf& rank_of) {
  bool alive = true;
  for (std::uint32_t i = lane.thread; i < static_cast<std::uint32_t>(others); i += lane.threads) {
    if (static_cast<int>(i) == self || !alive) continue;
    alive = wait_flag(flag_in(flags[i].receive, block_flag_at(epoch, lane)), epoch + 1, arguments.bounds, arguments.rank,
                      rank_of(static_cast<int>(i)), lane.block);
  }
  return alive;
}

template <Form F>
ARTUNE_BOTH void island_scatter(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const UserBuffer<F, kVectorWords> input(arguments.input, arguments.count);
  const Shards shards(input.units(), arguments.island_size);
  const IslandPlace place(arguments);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  for (int step = 1; step < arguments.island_size; ++step) {
    const int m = (place.member + step) % arguments.island_size;
    for (std::uint64_t unit = lane.first(); unit < shards.size(m); unit += lane.stride()) {
      std::uint32_t words[kVectorWords];
      input.load(shards.begin(m) + unit, words);
      store_plain(arguments.scatter[m].send + slot + unit * kVectorBytes, words);
    }
  }
  block_barrier();
  raise_flags(arguments.scatter_flags, block_flag_at(epoch, lane), epoch + 1, place.member, arguments.island_size, lane);
}

ARTUNE_BOTH bool island_wait_scatter(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const IslandPlace place(arguments);
  return island_wait(arguments, arguments.scatter_flags, place.member, arguments.island_size, epoch, lane,
                     [&](int m) { return place.rank_inside(arguments, m); });
}

/// Sums the island's contributions to the own shard and hands the partial sum across, to itself as well.
template <Form F>
ARTUNE_BOTH void island_reduce(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const UserBuffer<F, kVectorWords> input(arguments.input, arguments.count);
  const Shards shards(input.units(), arguments.island_size);
  const IslandPlace place(arguments);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  const std::uint64_t across_slot = epoch % kSlots * arguments.across_slot_bytes;
  const std::uint64_t begin = shards.begin(place.member);
  for (std::uint64_t unit = lane.first(); alive && unit < shards.size(place.member); unit += lane.stride()) {
    Sum<F, kVectorWords> sum;
    for (int m = 0; m < arguments.island_size; ++m) {
      std::uint32_t words[kVectorWords];
      if (m == place.member) {
        input.load(begin + unit, words);
      } else {
        load_plain(arguments.scatter[m].receive + slot + unit * kVectorBytes, words);
      }
      sum.add(words);
    }
    for (int v = 0; v < kPartialVectors<F>; ++v) {
      std::uint32_t words[kVectorWords];
      for (int w = 0; w < kVectorWords; ++w) words[w] = float_to_word<DType::f32>(sum.lane[v * kVectorWords + w], 0);
      for (int g = 0; g < place.islands; ++g) {
        store_plain(arguments.across[g].send + across_slot + (unit * kPartialVectors<F> + v) * kVectorBytes, words);
      }
    }
  }
  block_barrier();
  if (alive) raise_flags(arguments.across_flags, block_flag_at(epoch, lane), epoch + 1, place.island, place.islands, lane);
}

ARTUNE_BOTH bool island_wait_across(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const IslandPlace place(arguments);
  return island_wait(arguments, arguments.across_flags, place.island, place.islands, epoch, lane,
                     [&](int g) { return place.rank_across(arguments, g); });
}

/// Sums the islands' partial sums of the own shard, rounds once, keeps the result and hands it out inside the island.
template <Form F>
ARTUNE_BOTH void island_finish(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const UserBuffer<F, kVectorWords> output(arguments.output, arguments.count);
  const Shards shards(output.units(), arguments.island_size);
  const IslandPlace place(arguments);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  const std::uint64_t across_slot = epoch % kSlots * arguments.across_slot_bytes;
  const std::uint64_t begin = shards.begin(place.member);
  for (std::uint64_t unit = lane.first(); alive && unit < shards.size(place.member); unit += lane.stride()) {
    Sum<F, kVectorWords> sum;
    for (int g = 0; g < place.islands; ++g) {
      for (int v = 0; v < kPartialVectors<F>; ++v) {
        std::uint32_t words[kVectorWords];
        load_plain(arguments.across[g].receive + across_slot + (unit * kPartialVectors<F> + v) * kVectorBytes, words);
        for (int w = 0; w < kVectorWords; ++w) sum.lane[v * kVectorWords + w] += word_to_float(words[w]);
      }
    }
    std::uint32_t words[kVectorWords];
    sum.round_to(words);
    for (int m = 0; m < arguments.island_size; ++m) {
      if (m != place.member) store_plain(arguments.gather[m].send + slot + unit * kVectorBytes, words);
    }
    output.store(begin + unit, words);
  }
  block_barrier();
  if (alive) raise_flags(arguments.gather_flags, block_flag_at(epoch, lane), epoch + 1, place.member, arguments.island_size, lane);
}

ARTUNE_BOTH bool island_wait_gather(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  const IslandPlace place(arguments);
  return island_wait(arguments, arguments.gather_flags, place.member, arguments.island_size, epoch, lane,
                     [&](int m) { return place.rank_inside(arguments, m); });
}

/// Copies the members' shards. Not alive: NaN everywhere.
template <Form F>
ARTUNE_BOTH void island_gather(const HierarchicalArguments& arguments, const Lane& lane, std::uint64_t epoch, bool alive) {
  const UserBuffer<F, kVectorWords> output(arguments.output, arguments.count);
  const Shards shards(output.units(), arguments.island_size);
  const IslandPlace place(arguments);
  const std::uint64_t slot = epoch % kSlots * arguments.slot_bytes;
  if (!alive) fill_with_nan<F>(arguments.output, arguments.count, lane);
  for (int m = 0; m < arguments.island_size && alive; ++m) {
    if (m == place.member) continue;
    for (std::uint64_t unit = lane.first(); unit < shards.size(m); unit += lane.stride()) {
      std::uint32_t words[kVectorWords];
      load_plain(arguments.gather[m].receive + slot + unit * kVectorBytes, words);
      output.store(shards.begin(m) + unit, words);
    }
  }
}

}  // namespace artune
