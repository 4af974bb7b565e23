// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/wiring.hpp"

namespace artune {
namespace {

/// Areas in a slab are counted without the slab's owner.
std::size_t nth_peer(int owner, int writer) { return static_cast<std::size_t>(writer < owner ? writer : writer - 1); }

/// The area in which `writer`'s data shows to `reader`, and its flags for that reader.
struct Places {
  const Slabs& slabs;

  char* area(int reader, int writer) const {
    switch (info_of(slabs.id).staging) {
      case Staging::receiver: return slabs.device(reader) + slabs.layout.area_bytes * nth_peer(reader, writer);
      case Staging::sender: return slabs.device(writer);
      case Staging::host: return slabs.host + slabs.layout.area_bytes * static_cast<std::size_t>(writer);
      case Staging::none: break;
    }
    return nullptr;
  }
  char* flags(int reader, int writer) const {
    switch (info_of(slabs.id).staging) {
      case Staging::sender: return slabs.device(reader) + slabs.layout.data_bytes + slabs.layout.flags_bytes * nth_peer(reader, writer);
      case Staging::none: return slabs.device(reader) + slabs.layout.flags_bytes * nth_peer(reader, writer);
      default: return area(reader, writer) + slabs.layout.data_bytes;
    }
  }
  /// Whether a writer writes once for all its readers.
  bool once() const { return info_of(slabs.id).staging == Staging::sender || info_of(slabs.id).staging == Staging::host; }
};

template <typename Arguments>
Arguments start(const Slabs& slabs, int rank) {
  Arguments arguments{};
  arguments.rank = static_cast<std::int16_t>(rank);
  arguments.ranks = static_cast<std::int16_t>(slabs.ranks);
  arguments.bounds = slabs.bounds(rank);
  arguments.control = arguments.bounds.control;
  return arguments;
}

}  // namespace

OneShotArguments wire_one_shot(const Slabs& slabs, int rank) {
  const Places places{slabs};
  auto arguments = start<OneShotArguments>(slabs, rank);
  arguments.slot_bytes = slabs.layout.slot_bytes;
  const bool flags = slabs.layout.flags_bytes > 0;
  const bool flags_once = info_of(slabs.id).staging == Staging::host;
  arguments.most_pieces = info_of(slabs.id).staging == Staging::host ? kMostPieces : 1;
  // Peers in an order that starts after the rank itself: not all ranks write to rank 0 first.
  for (int step = 1; step < slabs.ranks; ++step) {
    const int peer = (rank + step) % slabs.ranks;
    arguments.data[peer].receive = places.area(rank, peer);
    if (!places.once()) arguments.data[arguments.sends++].send = places.area(peer, rank);
    if (!flags) continue;
    arguments.flags[peer].receive = places.flags(rank, peer);
    if (!flags_once) arguments.flags[arguments.flag_sends++].send = places.flags(peer, rank);
  }
  if (places.once()) arguments.data[arguments.sends++].send = places.area(rank, rank);
  if (flags && flags_once) arguments.flags[arguments.flag_sends++].send = places.flags(rank, rank);
  return arguments;
}

TwoShotArguments wire_two_shot(const Slabs& slabs, int rank) {
  const Places places{slabs};
  auto arguments = start<TwoShotArguments>(slabs, rank);
  arguments.slot_bytes = slabs.layout.slot_bytes;
  const std::size_t shard = slabs.layout.shard_bytes;
  arguments.shard_capacity_bytes = shard;
  const auto nth = [&](int owner) { return shard * static_cast<std::size_t>(owner); };
  // In a slot: pushed {the reader's shard, the writer's result}, else {every shard, the writer's result}.
  const std::size_t result = places.once() ? nth(slabs.ranks) : shard;
  for (int step = 1; step < slabs.ranks; ++step) {
    const int peer = (rank + step) % slabs.ranks;
    arguments.scatter[peer].send = places.area(peer, rank) + (places.once() ? nth(peer) : 0);
    arguments.scatter[peer].receive = places.area(rank, peer) + (places.once() ? nth(rank) : 0);
    arguments.gather[peer].receive = places.area(rank, peer) + result;
    if (!places.once()) arguments.gather[arguments.sends++].send = places.area(peer, rank) + result;
    if (slabs.layout.flags_bytes == 0) continue;
    arguments.scatter_flags[peer] = {places.flags(peer, rank), places.flags(rank, peer)};
    arguments.gather_flags[peer] = {places.flags(peer, rank) + kSlots * kFlagsBytes, places.flags(rank, peer) + kSlots * kFlagsBytes};
  }
  if (places.once()) arguments.gather[arguments.sends++].send = places.area(rank, rank) + result;
  return arguments;
}

DirectArguments wire_direct(const Slabs& slabs, int rank) {
  const Places places{slabs};
  auto arguments = start<DirectArguments>(slabs, rank);
  for (int peer = 0; peer < slabs.ranks; ++peer) {
    if (peer == rank) continue;
    arguments.start[peer] = {places.flags(peer, rank), places.flags(rank, peer)};
    arguments.end[peer] = {places.flags(peer, rank) + kFlagsBytes, places.flags(rank, peer) + kFlagsBytes};
  }
  return arguments;
}

HierarchicalArguments wire_hierarchical(const Slabs& slabs, int rank) {
  auto arguments = start<HierarchicalArguments>(slabs, rank);
  const SlabLayout& layout = slabs.layout;
  const int size = island_size_of(slabs.ranks), islands = slabs.ranks / size, island = rank / size, member = rank % size;
  arguments.island_size = static_cast<std::int16_t>(size);
  arguments.slot_bytes = layout.slot_bytes;
  arguments.across_slot_bytes = layout.across_slot_bytes;
  // A slab: areas of the island's other members {slots, flags}, then of every island {slots}, then of every island {flags}.
  const auto inside = [&](int reader, int writer) { return slabs.device(island * size + reader) + layout.area_bytes * nth_peer(reader, writer); };
  const std::size_t across_at = layout.area_bytes * static_cast<std::size_t>(size - 1);
  const std::size_t across_bytes = kSlots * layout.across_slot_bytes;
  const auto across = [&](int reader, int writer) {
    return slabs.device(reader * size + member) + across_at + across_bytes * static_cast<std::size_t>(writer);
  };
  const auto across_flags = [&](int reader, int writer) {
    return slabs.device(reader * size + member) + across_at + across_bytes * static_cast<std::size_t>(islands) +
           kSlots * kFlagsBytes * static_cast<std::size_t>(writer);
  };
  for (int m = 0; m < size; ++m) {
    if (m == member) continue;
    arguments.scatter[m] = {inside(m, member), inside(member, m)};
    arguments.gather[m] = {inside(m, member) + layout.shard_bytes, inside(member, m) + layout.shard_bytes};
    arguments.scatter_flags[m] = {inside(m, member) + layout.data_bytes, inside(member, m) + layout.data_bytes};
    arguments.gather_flags[m] = {inside(m, member) + layout.data_bytes + kSlots * kFlagsBytes,
                                 inside(member, m) + layout.data_bytes + kSlots * kFlagsBytes};
  }
  for (int g = 0; g < islands; ++g) {
    arguments.across[g] = {across(g, island), across(island, g)};
    arguments.across_flags[g] = {across_flags(g, island), across_flags(island, g)};
  }
  return arguments;
}

CopyWiring wire_copies(const Slabs& slabs, int rank) {
  CopyWiring wiring;
  ExchangeArguments& signals = wiring.signals;
  signals.rank = rank;
  signals.ranks = slabs.ranks;
  signals.bounds = slabs.bounds(rank);
  const SlabLayout& layout = slabs.layout;
  if (info_of(slabs.id).algorithm == Algorithm::ring) {
    const int next = (rank + 1) % slabs.ranks, before = (rank + slabs.ranks - 1) % slabs.ranks;
    // A slab: landing places, the partial sum, then flags: arrived of every step (written by the rank before), and free
    // (written by the next rank).
    const auto steps = static_cast<std::size_t>(2 * (slabs.ranks - 1));
    wiring.ring_here = slabs.device(rank);
    wiring.ring_next = slabs.device(next);
    wiring.own = slabs.device(rank) + steps * layout.shard_bytes;
    signals.arrived_out[next] = slabs.device(next) + layout.data_bytes;
    signals.arrived_in[before] = slabs.device(rank) + layout.data_bytes;
    signals.free_out[before] = slabs.device(before) + layout.data_bytes + steps * kFlagStrideBytes;
    signals.free_in[next] = slabs.device(rank) + layout.data_bytes + steps * kFlagStrideBytes;
    return wiring;
  }
  const Places places{slabs};
  const bool host = info_of(slabs.id).staging == Staging::host;
  if (host) wiring.own = places.area(rank, rank);
  for (int peer = 0; peer < slabs.ranks; ++peer) {
    if (peer == rank) continue;
    wiring.landing[peer] = places.area(rank, peer);
    wiring.target[peer] = places.area(peer, rank);
    // Host: one board a writer, {free, arrived of every chunk}, read by all. Pushed: {arrived, free} beside the landing.
    char* const out = places.area(peer, rank) + layout.data_bytes;
    const char* const in = places.area(rank, peer) + layout.data_bytes;
    signals.free_out[peer] = host ? out : out + kFlagStrideBytes;
    signals.free_in[peer] = host ? in : in + kFlagStrideBytes;
    signals.arrived_out[peer] = host ? out + kFlagStrideBytes : out;
    signals.arrived_in[peer] = host ? in + kFlagStrideBytes : in;
  }
  return wiring;
}

}  // namespace artune
