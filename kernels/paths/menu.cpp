// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/menu.hpp"

#include <algorithm>
#include <array>

namespace artune {
namespace {

/// The geometry that gives every thread `units_each` units of `unit_bytes`, within [1, most] blocks.
Geometry spread(const AdmitFacts& facts, int threads, std::size_t unit_bytes, int units_each, int most) {
  // A block of idle warps takes longer to start and to meet at a barrier.
  const std::size_t units = std::max<std::size_t>((facts.bytes + unit_bytes - 1) / unit_bytes, 1);
  threads = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), (units + 31) / 32 * 32));
  const std::size_t per_block = unit_bytes * static_cast<std::size_t>(threads) * static_cast<std::size_t>(units_each);
  const std::size_t wanted = (facts.bytes + per_block - 1) / per_block;
  const auto limit = static_cast<std::size_t>(std::min(most, most_resident_blocks(facts, threads)));
  return {.blocks = static_cast<int>(std::clamp<std::size_t>(wanted, 1, limit)), .threads = threads};
}

/// Keeps the order, drops repeats: small messages give the same geometry from several rules.
std::vector<Geometry> distinct(std::vector<Geometry> geometries) {
  std::vector<Geometry> kept;
  for (const Geometry& geometry : geometries) {
    if (std::find(kept.begin(), kept.end(), geometry) == kept.end()) kept.push_back(geometry);
  }
  return kept;
}

constexpr std::size_t kLlPayloadBytes = 8;    // of one 16-byte packet
constexpr std::size_t kVectorBytes = 16;

std::vector<Geometry> ll_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 512, kLlPayloadBytes, 1, 128), spread(facts, 256, kLlPayloadBytes, 1, 128),
                   spread(facts, 128, kLlPayloadBytes, 1, 128)});
}

std::vector<Geometry> flag_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 512, kVectorBytes, 1, 64), spread(facts, 256, kVectorBytes, 2, 64),
                   spread(facts, 512, kVectorBytes, 4, 128)});
}

// Across PCIe the link is the limit, not the multiprocessors: few blocks suffice and poll less.
std::vector<Geometry> host_ll_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 256, kLlPayloadBytes, 1, 32), spread(facts, 512, kLlPayloadBytes, 2, 16)});
}

std::vector<Geometry> host_flag_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 256, kVectorBytes, 1, 32), spread(facts, 512, kVectorBytes, 4, 16)});
}

std::vector<Geometry> copy_chunks(const AdmitFacts& facts) {
  std::vector<Geometry> geometries;
  for (const std::size_t chunk : {std::size_t{512} << 10, std::size_t{2} << 20}) {
    geometries.push_back({.chunk_bytes = chunk});
    if (facts.bytes <= chunk) break;  // larger chunks would be the same single one
  }
  return geometries;
}

std::vector<Geometry> whole_copy(const AdmitFacts&) { return {Geometry{}}; }

/// NCCL waits with all its blocks too: those of all ranks on a GPU must fit, one a multiprocessor.
std::vector<Geometry> nccl_limits(const AdmitFacts& facts) {
  std::vector<Geometry> limits{{.max_ctas = 8}};
  if (32 * facts.ranks_per_gpu <= facts.multiprocessors) limits.push_back({.max_ctas = 32});
  return limits;
}

constexpr std::size_t kMi = std::size_t{1} << 20;
constexpr int kMaxRanks = 8;

constexpr std::array kMenu = {
    CandidateInfo{CandidateId::nccl, "nccl", Path::nccl, Numerics::nccl, 2, 1024, false, 0, nccl_limits},
    CandidateInfo{CandidateId::p2p_one_shot_ll, "p2p/one-shot/ll", Path::p2p, Numerics::rank_order_fp32, 2, kMaxRanks, true, 1 * kMi,
                  ll_geometries},
    CandidateInfo{CandidateId::p2p_one_shot_flag, "p2p/one-shot/flag", Path::p2p, Numerics::rank_order_fp32, 2, kMaxRanks, true, 0,
                  flag_geometries},
    CandidateInfo{CandidateId::host_one_shot_ll, "host/one-shot/ll", Path::host, Numerics::rank_order_fp32, 2, kMaxRanks, false,
                  kMi / 4, host_ll_geometries},
    CandidateInfo{CandidateId::host_one_shot_flag, "host/one-shot/flag", Path::host, Numerics::rank_order_fp32, 2, kMaxRanks, false,
                  4 * kMi, host_flag_geometries},
    CandidateInfo{CandidateId::host_copy_engine, "host/copy-engine", Path::host, Numerics::rank_order_fp32, 2, kMaxRanks, false, 0,
                  copy_chunks},
    CandidateInfo{CandidateId::ce_push, "ce/push", Path::ce, Numerics::rank_order_fp32, 2, kMaxRanks, true, 0, whole_copy},
};

}  // namespace

int most_resident_blocks(const AdmitFacts& facts, int threads) {
  const int per_multiprocessor = std::max(1, kMostThreads * kBlocksPerMultiprocessor / threads);
  return std::clamp(facts.multiprocessors * per_multiprocessor / facts.ranks_per_gpu - 1, 1, 128);
}

std::span<const CandidateInfo> menu() { return kMenu; }

const CandidateInfo& info_of(CandidateId id) { return kMenu[static_cast<std::size_t>(id)]; }

const CandidateInfo* find_candidate(std::string_view name) {
  const auto found = std::find_if(kMenu.begin(), kMenu.end(), [&](const CandidateInfo& info) { return info.name == name; });
  return found == kMenu.end() ? nullptr : &*found;
}

std::string refusal(const CandidateInfo& info, const AdmitFacts& facts) {
  if (facts.ranks < info.min_ranks || facts.ranks > info.max_ranks) {
    return "serves " + std::to_string(info.min_ranks) + " to " + std::to_string(info.max_ranks) + " ranks, not " +
           std::to_string(facts.ranks);
  }
  if (info.path == Path::nccl && !facts.nccl) return "no usable NCCL";
  if (info.needs_peer_access && !facts.peer_access) return "no peer access between all GPUs of the group";
  return {};
}

}  // namespace artune
