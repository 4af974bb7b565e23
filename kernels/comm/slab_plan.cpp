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

SlabLayout slab_layout(CandidateId id, std::size_t max_bytes, int ranks_) {
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
      const int island_size = island_size_of(ranks_);
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
  const auto needs = [&](const CandidateInfo& info) {
    return slab_layout(info.id, planned[static_cast<std::size_t>(info.id)], request.ranks).device_bytes;
  };
  for (const CandidateInfo& info : menu()) {
    const std::size_t largest = request.largest_message[static_cast<std::size_t>(info.id)];
    if (info.path == Path::nccl || largest == 0) continue;
    // Direct: nothing is staged, so any message is one launch.
    planned[static_cast<std::size_t>(info.id)] =
        info.staging == Staging::none ? std::bit_floor(~std::size_t{0}) : std::bit_ceil(std::clamp(largest, kSmallest, largest_of_family(info)));
  }
  // The greediest family gives way, by half, until all fit: those for small messages keep what they need. Families in host
  // memory take none of the device's; what they pin is bounded by largest_of_family().
  const std::size_t budget = request.max_memory_bytes / static_cast<std::size_t>(request.ranks_per_gpu);
  while (true) {
    std::size_t total = 0;
    const CandidateInfo* greediest = nullptr;
    for (const CandidateInfo& info : menu()) {
      const std::size_t taken = needs(info);
      total += taken;
      if (taken > 0 && (greediest == nullptr || taken > needs(*greediest))) greediest = &info;
    }
    if (total <= budget || greediest == nullptr) return planned;
    std::size_t& bytes = planned[static_cast<std::size_t>(greediest->id)];
    bytes = bytes > kSmallest && greediest->staging != Staging::none ? bytes / 2 : 0;
  }
}

}  // namespace artune
