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

/// Of the memory cap. LL moves small messages only; the flag family needs two slots, the copy engines one.
double share(CandidateId id) {
  switch (id) {
    case CandidateId::p2p_one_shot_ll: return 1.0 / 8;
    case CandidateId::p2p_one_shot_flag: return 3.0 / 8;
    case CandidateId::ce_push: return 2.0 / 8;
    case CandidateId::host_copy_engine: return 2.0 / 8;
    default: return 0;
  }
}

std::size_t largest_of_family(CandidateId id) {
  const std::size_t worth = info_of(id).worth_up_to_bytes;
  const std::size_t bound = info_of(id).path == Path::host ? kLargestHost : kLargestDevice;
  return worth == 0 ? bound : std::min(bound, worth);
}

constexpr std::size_t kFlagsBytes = kMostBlocks * kFlagStrideBytes;

}  // namespace

std::size_t device_bytes(CandidateId id, std::size_t max_bytes, int ranks) {
  const auto peers = static_cast<std::size_t>(ranks - 1);
  if (max_bytes == 0) return 0;
  switch (id) {
    case CandidateId::p2p_one_shot_ll: return peers * kSlots * 2 * max_bytes;
    case CandidateId::p2p_one_shot_flag: return peers * kSlots * (max_bytes + kFlagsBytes);
    case CandidateId::ce_push: return peers * (max_bytes + 2 * kFlagStrideBytes);
    case CandidateId::host_copy_engine: return peers * max_bytes;
    default: return 0;
  }
}

std::size_t host_bytes(CandidateId id, std::size_t max_bytes, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  if (max_bytes == 0) return 0;
  switch (id) {
    case CandidateId::host_one_shot_ll: return all * kSlots * 2 * max_bytes;
    case CandidateId::host_one_shot_flag: return all * kSlots * (max_bytes + kFlagsBytes);
    case CandidateId::host_copy_engine: return all * (max_bytes + (1 + kMostChunks) * kFlagStrideBytes);
    default: return 0;
  }
}

BytesPerCandidate plan_slabs(const SlabRequest& request) {
  BytesPerCandidate planned{};
  const auto budget = static_cast<double>(request.max_memory_bytes) / request.ranks_per_gpu;
  for (const CandidateInfo& info : menu()) {
    const auto index = static_cast<std::size_t>(info.id);
    if (info.path == Path::nccl || request.largest_message[index] == 0) continue;
    std::size_t bytes = std::bit_ceil(std::clamp(request.largest_message[index], kSmallest, largest_of_family(info.id)));
    const auto allowed = static_cast<std::size_t>(budget * share(info.id));
    while (bytes > kSmallest && device_bytes(info.id, bytes, request.ranks) > allowed) bytes /= 2;
    // Host-only families take no device memory; what they pin is bounded by largest_of_family().
    if (device_bytes(info.id, bytes, request.ranks) > allowed) continue;
    planned[index] = bytes;
  }
  return planned;
}

}  // namespace artune
