// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The protocols with flags, each with one thing wrong. Payload is moved by the real functions.
#pragma once

#include "broken/own_subject.hpp"
#include "protocol/direct.cuh"
#include "protocol/exchange.cuh"
#include "protocol/hierarchical.cuh"
#include "protocol/two_shot_flag.cuh"

namespace artune::model {

enum class FlagFault {
  none,
  relaxed_store,  ///< a flag can overtake the payload
  relaxed_load,   ///< the payload can be read before the flag
  flag_first,     ///< raised before the payload is stored
  half_range,     ///< every flag less than 2^63 ahead passes for a new one
  one_slot,
  one_flag_for_all_pieces,  ///< the first piece's flag is raised again for the others
  epoch_per_block,     ///< every block counts its own calls
  one_flag_area,       ///< two-shot: both steps raise the same flags
  skips_empty_shards,  ///< two-shot: nobody raises or awaits flags for a shard without units. See README.md: not a fault
  gather_first,        ///< two-shot: the owner announces its result before it has the contributions
};

inline void raise(char* area, std::uint64_t at, std::uint64_t value, FlagFault fault) {
  host::store(flag_in(area, at), value, fault == FlagFault::relaxed_store ? host::relaxed : host::release);
}

inline bool await(const char* area, std::uint64_t at, std::uint64_t expected, FlagFault fault, const Bounds& bounds, int rank,
                  int peer, const Lane& lane) {
  Patience patience;
  while (true) {
    const std::uint64_t seen = host::load(flag_in(area, at), fault == FlagFault::relaxed_load ? host::relaxed : host::acquire);
    if (seen == expected || (fault == FlagFault::half_range && static_cast<std::int64_t>(seen - expected) >= 0)) return true;
    if (give_up(patience, bounds, rank, peer, lane.block, expected, seen)) return false;
  }
}

inline void one_shot_flag(const Place& place, FlagFault fault) {
  const OneShotArguments arguments = place.one_shot();
  const Lane& lane = place.lane;
  const std::uint64_t calls =
      fault == FlagFault::epoch_per_block ? host::load(place.own_word(), host::relaxed) : place.entry.epoch;
  // What the slot is taken from: an even number names slot 0 for ever.
  const std::uint64_t turn = fault == FlagFault::one_slot ? 0 : calls;
  const OneShotFlag<Form::f32> body(arguments, lane, turn);
  bool alive = true;
  EpochStep step;
  for (std::uint32_t piece = 0; piece < body.pieces.count; ++piece) {
    const std::uint64_t at = body.pieces.flag_at(fault == FlagFault::one_flag_for_all_pieces ? 0 : piece, turn, lane);
    const auto raise_all = [&] {
      for (int s = 0; s < arguments.flag_sends; ++s) raise(arguments.flags[s].send, at, calls + 1, fault);
    };
    if (fault == FlagFault::flag_first) raise_all();
    body.store(piece);
    if (fault != FlagFault::flag_first) raise_all();
    if (piece == 0) step.start(arguments.control, lane.blocks, place.entry.epoch);
    for (int p = 0; p < arguments.ranks; ++p) {
      if (p == arguments.rank || !alive) continue;
      alive = await(arguments.flags[p].receive, at, calls + 1, fault, arguments.bounds, arguments.rank, p, lane);
    }
    body.reduce<0>(piece, alive);
  }
  step.finish(arguments.control, lane.blocks, place.entry.epoch, arguments.bounds, arguments.rank);
  if (fault == FlagFault::epoch_per_block) host::store(place.own_word(), calls + 1, host::relaxed);
}

inline void two_shot_flag(const Place& place, FlagFault fault) {
  TwoShotArguments arguments = place.two_shot();
  if (fault == FlagFault::one_flag_area) {
    for (int p = 0; p < arguments.ranks; ++p) arguments.gather_flags[p] = arguments.scatter_flags[p];
  }
  const Lane& lane = place.lane;
  const int rank = arguments.rank;
  const std::uint64_t epoch = place.entry.epoch, at = block_flag_at(epoch, lane), slot = epoch % kSlots * arguments.slot_bytes;
  const UserBuffer<Form::f32, kVectorWords> input(arguments.input, arguments.count), output(arguments.output, arguments.count);
  const Shards shards(input.units(), arguments.ranks);
  const auto has_flags = [&](int owner) { return fault != FlagFault::skips_empty_shards || shards.size(owner) > 0; };
  const auto each_peer = [&](const auto& act) {
    for (int p = 0; p < arguments.ranks; ++p) {
      if (p != rank) act(p);
    }
  };
  const auto announce = [&] { each_peer([&](int p) { raise(arguments.gather_flags[p].send, at, epoch + 1, fault); }); };
  bool alive = true;
  each_peer([&](int p) {
    for (std::uint64_t unit = lane.first(); unit < shards.size(p); unit += lane.stride()) {
      std::uint32_t words[kVectorWords];
      input.load(shards.begin(p) + unit, words);
      store_plain(arguments.scatter[p].send + slot + unit * kVectorBytes, words);
    }
    if (has_flags(p)) raise(arguments.scatter_flags[p].send, at, epoch + 1, fault);
  });
  EpochStep step;
  step.start(arguments.control, lane.blocks, epoch);
  if (fault == FlagFault::gather_first) announce();
  each_peer([&](int p) {
    if (has_flags(rank))
      alive = alive && await(arguments.scatter_flags[p].receive, at, epoch + 1, fault, arguments.bounds, rank, p, lane);
  });
  for (std::uint64_t unit = lane.first(); alive && unit < shards.size(rank); unit += lane.stride()) {
    Sum<Form::f32, kVectorWords> sum;
    std::uint32_t words[kVectorWords];
    for (int p = 0; p < arguments.ranks; ++p) {
      if (p == rank) {
        input.load(shards.begin(rank) + unit, words);
      } else {
        load_plain(arguments.scatter[p].receive + slot + unit * kVectorBytes, words);
      }
      sum.add(words);
    }
    sum.round_to(words);
    for (int s = 0; s < arguments.sends; ++s) store_plain(arguments.gather[s].send + slot + unit * kVectorBytes, words);
    output.store(shards.begin(rank) + unit, words);
  }
  if (fault != FlagFault::gather_first && has_flags(rank)) announce();
  each_peer([&](int p) {
    if (has_flags(p))
      alive = alive && await(arguments.gather_flags[p].receive, at, epoch + 1, fault, arguments.bounds, rank, p, lane);
  });
  two_shot_gather<Form::f32>(arguments, lane, epoch, alive);
  step.finish(arguments.control, lane.blocks, epoch, arguments.bounds, rank);
}

enum class DirectFault {
  none,
  no_start,  ///< nobody waits until the peers' inputs are made
  no_end,    ///< nobody waits until the peers have read
};

inline void direct(const Place& place, bool two_shot, DirectFault fault) {
  const DirectArguments arguments = place.direct();
  const Lane& lane = place.lane;
  const bool alive = fault == DirectFault::no_start || direct_meet(arguments, arguments.start, lane, place.entry.epoch);
  EpochStep step;
  step.start(arguments.control, lane.blocks, place.entry.epoch);
  if (two_shot) {
    direct_two_shot<Form::f32, 0>(arguments, lane, alive);
  } else {
    direct_one_shot<Form::f32, 0>(arguments, lane, alive);
  }
  if (fault != DirectFault::no_end && alive && !direct_meet(arguments, arguments.end, lane, place.entry.epoch)) {
    direct_spoil<Form::f32>(arguments, lane);
  }
  step.finish(arguments.control, lane.blocks, place.entry.epoch, arguments.bounds, arguments.rank);
}

enum class IslandFault {
  none,
  one_flag_area,  ///< results are announced by the flags of the contributions
  never_awaits_across,
};

inline void islands(const Place& place, IslandFault fault) {
  HierarchicalArguments arguments = place.hierarchical();
  if (fault == IslandFault::one_flag_area) {
    for (int m = 0; m < arguments.island_size; ++m) arguments.gather_flags[m] = arguments.scatter_flags[m];
  }
  const Lane& lane = place.lane;
  const std::uint64_t epoch = place.entry.epoch;
  island_scatter<Form::f32>(arguments, lane, epoch);
  EpochStep step;
  step.start(arguments.control, lane.blocks, epoch);
  bool alive = island_wait_scatter(arguments, lane, epoch);
  island_reduce<Form::f32>(arguments, lane, epoch, alive);
  alive = alive && (fault == IslandFault::never_awaits_across || island_wait_across(arguments, lane, epoch));
  island_finish<Form::f32>(arguments, lane, epoch, alive);
  alive = alive && island_wait_gather(arguments, lane, epoch);
  island_gather<Form::f32>(arguments, lane, epoch, alive);
  step.finish(arguments.control, lane.blocks, epoch, arguments.bounds, arguments.rank);
}

enum class CopyFault {
  none,
  never_awaits_free,  ///< a copy may land on what the peer still reads
  arrived_before_copy,
  free_before_reading,
};

/// ce/push.
inline void push(const Place& place, CopyFault fault) {
  const CopyWiring& wiring = place.copies();
  const ExchangeArguments& signals = wiring.signals;
  const Lane lane{0, 1, 0, 1};
  const std::uint64_t epoch = place.entry.epoch;
  const int rank = signals.rank;
  ChunkArguments chunk{place.call.inputs[rank], place.call.outputs[rank], place.call.count, 0, {}};
  bool alive = fault == CopyFault::never_awaits_free || wait_free(signals, lane, epoch);
  if (fault == CopyFault::arrived_before_copy) tell_arrived(signals, lane, epoch, 0);
  for (int p = 0; p < signals.ranks; ++p) {
    if (p == rank) continue;
    host::copy_to(wiring.target[p], place.call.inputs[rank], place.call.count * sizeof(float));
    chunk.contribution[p] = wiring.landing[p];
  }
  if (fault != CopyFault::arrived_before_copy) tell_arrived(signals, lane, epoch, 0);
  alive = alive && wait_arrived(signals, lane, epoch, 0);
  if (fault == CopyFault::free_before_reading) tell_free(signals, lane, epoch);
  reduce_chunk<Form::f32>(signals, chunk, lane, alive);
  if (fault != CopyFault::free_before_reading) tell_free(signals, lane, epoch);
  step_epoch(signals.bounds.control, epoch);
}

}  // namespace artune::model
