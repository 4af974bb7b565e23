// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/slab_plan.hpp"

#include <algorithm>
#include <bit>

#include "protocol/arguments.hpp"

namespace artune {
namespace {

constexpr std::size_t kSmallest = std::size_t{4} << 10;
// Past this, one launch is so long that splitting it costs nothing that a clock could show.
constexpr std::size_t kLargestDevice = std::size_t{32} << 20;
constexpr std::size_t kLargestHost = std::size_t{16} << 20;

/// Of the memory cap. Packets move small messages only; the others are bound by their bytes.
int weight(const CandidateInfo& info) {
  if (info.id == CandidateId::p2p_one_shot_flag || info.id == CandidateId::p2p_one_shot_pull || info.id == CandidateId::p2p_two_shot_flag ||
      info.id == CandidateId::host_copy_engine) {
    return 2;
  }
  return info.path == Path::nccl || info.staging == Staging::none || (info.staging == Staging::host && info.algorithm != Algorithm::copies) ? 0 : 1;
}

std::size_t largest_of_family(const CandidateInfo& info) {
  const std::size_t bound = info.path == Path::host ? kLargestHost : kLargestDevice;
  return info.worth_up_to_bytes == 0 ? bound : std::min(bound, info.worth_up_to_bytes);
}

constexpr std::size_t up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Bytes on the link of `bytes` of message in packets or vectors of 16 bytes.
std::size_t on_link(Protocol protocol, std::size_t bytes) { return protocol == Protocol::ll ? 2 * up(bytes, 8) : up(bytes, 16); }

/// As Shards in protocol/elements.cuh counts: whole units, the last shard the smallest.
std::size_t shard_of(Protocol protocol, std::size_t bytes, int owners) {
  const std::size_t unit = protocol == Protocol::ll ? 8 : 16;
  const std::size_t units = (bytes + unit - 1) / unit;
  return (units + static_cast<std::size_t>(owners) - 1) / static_cast<std::size_t>(owners) * 16;
}

}  // namespace

SlabLayout slab_layout(CandidateId id, std::size_t max_bytes, int ranks_, int island_size) {
  SlabLayout layout;
  if (max_bytes == 0) return layout;
  const CandidateInfo& info = info_of(id);
  const auto ranks = static_cast<std::size_t>(ranks_), peers = ranks - 1;
  const std::size_t slots = info.protocol == Protocol::sentinel ? 3 : kSlots;
  const bool flags = info.protocol == Protocol::flag;
  switch (info.algorithm) {
    case Algorithm::library: return layout;
    case Algorithm::one_shot:
      layout.slot_bytes = up(on_link(info.protocol, max_bytes), 128);
      layout.flags_bytes = flags ? kSlots * kFlagsBytes : 0;
      break;
    case Algorithm::two_shot:
      layout.shard_bytes = up(shard_of(info.protocol, max_bytes, ranks_), 128);
      // Pushed: one shard to scatter and one to gather. Else all shards to scatter, and the result.
      layout.slot_bytes = layout.shard_bytes * (info.staging == Staging::receiver ? 2 : ranks + 1);
      layout.flags_bytes = flags ? 2 * kSlots * kFlagsBytes : 0;
      break;
    case Algorithm::hierarchical: {
      if (island_size == 0) return layout;
      const auto members = static_cast<std::size_t>(island_size), islands = ranks / members;
      layout.shard_bytes = up(shard_of(info.protocol, max_bytes, island_size), 128);
      layout.slot_bytes = 2 * layout.shard_bytes;
      layout.across_slot_bytes = 2 * layout.shard_bytes;  // fp32 of 16-bit elements
      layout.data_bytes = kSlots * layout.slot_bytes;
      layout.flags_bytes = 2 * kSlots * kFlagsBytes;
      layout.area_bytes = layout.data_bytes + layout.flags_bytes;
      layout.device_bytes = (members - 1) * layout.area_bytes + islands * kSlots * (layout.across_slot_bytes + kFlagsBytes);
      return layout;
    }
    case Algorithm::copies:
      layout.data_bytes = up(max_bytes, 128);
      if (info.path == Path::host) {
        layout.area_bytes = layout.data_bytes + (1 + kMostChunks) * kFlagStrideBytes;  // free, then arrived of every chunk
        layout.host_bytes = ranks * layout.area_bytes;
        layout.device_bytes = peers * layout.data_bytes;
      } else {
        layout.area_bytes = layout.data_bytes + 2 * kFlagStrideBytes;  // arrived, free
        layout.device_bytes = peers * layout.area_bytes;
      }
      return layout;
    case Algorithm::ring:
      layout.shard_bytes = up(shard_of(info.protocol, max_bytes, ranks_), 128);
      layout.data_bytes = (2 * peers + 1) * layout.shard_bytes;             // every step's landing place, and the partial sum
      layout.area_bytes = layout.data_bytes + (2 * peers + 1) * kFlagStrideBytes;  // arrived of every step, free
      layout.device_bytes = layout.area_bytes;
      return layout;
  }
  layout.data_bytes = slots * layout.slot_bytes;
  layout.area_bytes = layout.data_bytes + layout.flags_bytes;
  switch (info.staging) {
    case Staging::receiver: layout.device_bytes = peers * layout.area_bytes; break;
    case Staging::sender: layout.device_bytes = layout.data_bytes + peers * layout.flags_bytes; break;
    case Staging::host: layout.host_bytes = ranks * layout.area_bytes; break;
    case Staging::none:
      layout.data_bytes = 0;
      layout.flags_bytes = 2 * kFlagsBytes;  // start, end; one slot
      layout.device_bytes = peers * layout.flags_bytes;
      break;
  }
  return layout;
}

BytesPerCandidate plan_slabs(const SlabRequest& request) {
  BytesPerCandidate planned{};
  const auto asked = [&](const CandidateInfo& info) { return info.path != Path::nccl && request.largest_message[static_cast<std::size_t>(info.id)] > 0; };
  int weights = 0;
  for (const CandidateInfo& info : menu()) weights += asked(info) ? weight(info) : 0;
  auto budget = static_cast<double>(request.max_memory_bytes) / request.ranks_per_gpu;
  // The flags of the direct families come first: they don't shrink with the messages.
  for (const CandidateInfo& info : menu()) {
    if (asked(info) && info.staging == Staging::none) {
      budget -= static_cast<double>(slab_layout(info.id, kSmallest, request.ranks, request.island_size).device_bytes);
    }
  }
  for (const CandidateInfo& info : menu()) {
    if (!asked(info)) continue;
    const auto index = static_cast<std::size_t>(info.id);
    const auto needs = [&](std::size_t bytes) { return slab_layout(info.id, bytes, request.ranks, request.island_size).device_bytes; };
    if (budget < 0 && needs(kSmallest) > 0) continue;
    std::size_t bytes = std::bit_ceil(std::clamp(request.largest_message[index], kSmallest, largest_of_family(info)));
    if (info.staging == Staging::none) bytes = std::bit_floor(~std::size_t{0});  // nothing is staged: any message is one launch
    // Host-only and direct families take no device memory to speak of; what the first pin is bounded above.
    if (weight(info) > 0) {
      const auto allowed = static_cast<std::size_t>(budget * weight(info) / weights);
      while (bytes > kSmallest && needs(bytes) > allowed) bytes /= 2;
      if (needs(bytes) > allowed) continue;
    }
    planned[index] = bytes;
  }
  return planned;
}

}  // namespace artune
