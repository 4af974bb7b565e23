// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/menu.hpp"

#include <algorithm>
#include <array>

#include "protocol/arguments.hpp"

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

constexpr std::size_t kKi = std::size_t{1} << 10;
constexpr std::size_t kMi = std::size_t{1} << 20;
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

/// As one of `ranks` shards: what one rank works on in the protocols with two steps.
AdmitFacts shard_of(AdmitFacts facts) {
  facts.bytes = (facts.bytes + static_cast<std::size_t>(facts.ranks) - 1) / static_cast<std::size_t>(facts.ranks);
  return facts;
}

std::vector<Geometry> sentinel_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 512, kVectorBytes, 1, 128), spread(facts, 128, kVectorBytes, 1, 128)});
}

std::vector<Geometry> pull_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 512, kVectorBytes, 1, 128), spread(facts, 256, kVectorBytes, 4, 64)});
}

std::vector<Geometry> two_shot_ll_geometries(const AdmitFacts& facts) {
  const AdmitFacts shard = shard_of(facts);
  return distinct({spread(shard, 512, kLlPayloadBytes, 1, 128), spread(shard, 128, kLlPayloadBytes, 1, 128)});
}

std::vector<Geometry> two_shot_sentinel_geometries(const AdmitFacts& facts) {
  const AdmitFacts shard = shard_of(facts);
  return distinct({spread(shard, 512, kVectorBytes, 1, 128), spread(shard, 128, kVectorBytes, 1, 128)});
}

std::vector<Geometry> two_shot_flag_geometries(const AdmitFacts& facts) {
  const AdmitFacts shard = shard_of(facts);
  return distinct({spread(shard, 512, kVectorBytes, 1, 128), spread(shard, 256, kVectorBytes, 4, 64)});
}

// Across PCIe the link is the limit, not the multiprocessors: few blocks suffice and poll less.
std::vector<Geometry> host_ll_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 256, kLlPayloadBytes, 1, 32), spread(facts, 512, kLlPayloadBytes, 2, 16)});
}

std::vector<Geometry> host_flag_geometries(const AdmitFacts& facts) {
  return distinct({spread(facts, 256, kVectorBytes, 1, 32), spread(facts, 512, kVectorBytes, 2, 32), spread(facts, 512, kVectorBytes, 4, 16)});
}

std::vector<Geometry> host_two_shot_geometries(const AdmitFacts& facts) {
  const AdmitFacts shard = shard_of(facts);
  return distinct({spread(shard, 256, kVectorBytes, 1, 32), spread(shard, 512, kVectorBytes, 2, 16)});
}

std::vector<Geometry> copy_chunks(const AdmitFacts& facts) {
  std::vector<Geometry> geometries;
  for (const std::size_t chunk : {512 * kKi, 2 * kMi, 4 * kMi}) {
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

constexpr auto kRankOrder = Numerics::rank_order_fp32;
constexpr int kAll = kMaxRanks;

using enum Algorithm;
using enum Protocol;

// The third line of a row: ranks from and to, worth trying from and up to.
constexpr std::array<CandidateInfo, kMenuSize> kMenu = {{
    {CandidateId::nccl, "nccl", Path::nccl, library, none, Staging::none, Numerics::nccl,
     2, 1024, 0, 0, nccl_limits},
    {CandidateId::p2p_one_shot_ll, "p2p/one-shot/ll", Path::p2p, one_shot, ll, Staging::receiver, kRankOrder,
     2, kAll, 0, 1 * kMi, ll_geometries},
    {CandidateId::p2p_one_shot_sentinel, "p2p/one-shot/sentinel", Path::p2p, one_shot, sentinel, Staging::receiver, kRankOrder,
     2, kAll, 2 * kKi, 4 * kMi, sentinel_geometries},
    {CandidateId::p2p_one_shot_flag, "p2p/one-shot/flag", Path::p2p, one_shot, flag, Staging::receiver, kRankOrder,
     2, kAll, 4 * kKi, 0, flag_geometries},
    {CandidateId::p2p_one_shot_pull, "p2p/one-shot/pull", Path::p2p, one_shot, flag, Staging::sender, kRankOrder,
     2, kAll, 4 * kKi, 0, pull_geometries},
    {CandidateId::p2p_one_shot_direct, "p2p/one-shot/direct", Path::p2p, one_shot, flag, Staging::none, kRankOrder,
     2, kAll, 4 * kKi, 0, pull_geometries},
    {CandidateId::p2p_two_shot_ll, "p2p/two-shot/ll", Path::p2p, two_shot, ll, Staging::receiver, kRankOrder,
     3, kAll, 8 * kKi, 4 * kMi, two_shot_ll_geometries},
    {CandidateId::p2p_two_shot_sentinel, "p2p/two-shot/sentinel", Path::p2p, two_shot, sentinel, Staging::receiver, kRankOrder,
     2, kAll, 32 * kKi, 16 * kMi, two_shot_sentinel_geometries},
    {CandidateId::p2p_two_shot_flag, "p2p/two-shot/flag", Path::p2p, two_shot, flag, Staging::receiver, kRankOrder,
     2, kAll, 128 * kKi, 0, two_shot_flag_geometries},
    {CandidateId::p2p_two_shot_pull, "p2p/two-shot/pull", Path::p2p, two_shot, flag, Staging::sender, kRankOrder,
     2, kAll, 128 * kKi, 0, two_shot_flag_geometries},
    {CandidateId::p2p_two_shot_direct, "p2p/two-shot/direct", Path::p2p, two_shot, flag, Staging::none, kRankOrder,
     2, kAll, 64 * kKi, 0, two_shot_flag_geometries},
    {CandidateId::p2p_hierarchical, "p2p/hierarchical", Path::p2p, hierarchical, flag, Staging::receiver, Numerics::hierarchical_fp32,
     4, kAll, 8 * kKi, 0, two_shot_flag_geometries},
    {CandidateId::host_one_shot_ll, "host/one-shot/ll", Path::host, one_shot, ll, Staging::host, kRankOrder,
     2, kAll, 0, kMi / 4, host_ll_geometries},
    {CandidateId::host_one_shot_flag, "host/one-shot/flag", Path::host, one_shot, flag, Staging::host, kRankOrder,
     2, kAll, 0, 0, host_flag_geometries},
    {CandidateId::host_two_shot_flag, "host/two-shot/flag", Path::host, two_shot, flag, Staging::host, kRankOrder,
     3, kAll, 16 * kKi, 16 * kMi, host_two_shot_geometries},
    {CandidateId::host_copy_engine, "host/copy-engine", Path::host, copies, flag, Staging::host, kRankOrder,
     2, kAll, 64 * kKi, 0, copy_chunks},
    {CandidateId::ce_push, "ce/push", Path::ce, copies, flag, Staging::receiver, kRankOrder,
     2, kAll, 16 * kKi, 0, whole_copy},
    {CandidateId::ce_ring, "ce/ring", Path::ce, ring, flag, Staging::receiver, Numerics::ring,
     2, kAll, 1 * kMi, 0, whole_copy},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kMenu.size(); ++i) {
    if (static_cast<std::size_t>(kMenu[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order(), "info_of() counts on it");

}  // namespace

int most_resident_blocks(const AdmitFacts& facts, int threads) {
  if (facts.ranks_per_gpu > 1) return std::clamp((facts.multiprocessors - kMultiprocessorsLeft) / facts.ranks_per_gpu, 1, kMostBlocks);
  const int per_multiprocessor = std::max(1, kMostThreads * kBlocksPerMultiprocessor / threads);
  return std::clamp(facts.multiprocessors * per_multiprocessor - 1, 1, kMostBlocks);
}

std::span<const CandidateInfo> menu() { return kMenu; }

const CandidateInfo& info_of(CandidateId id) { return kMenu[static_cast<std::size_t>(id)]; }

const CandidateInfo* find_candidate(std::string_view name) {
  const auto found = std::find_if(kMenu.begin(), kMenu.end(), [&](const CandidateInfo& info) { return info.name == name; });
  return found == kMenu.end() ? nullptr : &*found;
}

int CandidateInfo::peers_needed(const AdmitFacts& facts) const {
  if (!needs_peer_access()) return 0;
  // Ranks on the own GPU need no mapping.
  const int elsewhere = facts.ranks - facts.ranks_per_gpu;
  if (algorithm == ring) return std::min(2, elsewhere);
  const int island = island_size_of(facts.ranks);
  if (algorithm != hierarchical || island == 0) return elsewhere;
  return std::min(elsewhere, island - 1 + facts.ranks / island - 1);
}

Numerics numerics_of(const CandidateInfo& info, DType dtype, DType wire) {
  if (dtype == wire || info.numerics != kRankOrder) return info.numerics;
  return info.algorithm == two_shot ? Numerics::wire_bf16_in_out : Numerics::wire_bf16_in;
}

bool lossy_wire_served(const CandidateInfo& info) {
  return (info.algorithm == one_shot || info.algorithm == two_shot) && info.staging != Staging::none;
}

std::string wire_refusal(const CandidateInfo& info, DType dtype, DType wire) {
  const auto pair = [&] { return std::string(to_string(dtype)) + " as " + std::string(to_string(wire)) + " on the wire"; };
  if (!is_wire_of(dtype, wire)) return "there is no " + pair();
  if (dtype == wire || lossy_wire_served(info)) return {};
  return "can't send " + pair();
}

std::string refusal(const CandidateInfo& info, const AdmitFacts& facts) {
  if (facts.ranks < info.min_ranks || facts.ranks > info.max_ranks) {
    return "serves " + std::to_string(info.min_ranks) + " to " + std::to_string(info.max_ranks) + " ranks, not " +
           std::to_string(facts.ranks);
  }
  if (info.path == Path::nccl && !facts.nccl) return "no usable NCCL";
  if (info.needs_peer_access() && !facts.peer_access) return "no peer access between all GPUs of the group";
  if (info.algorithm == hierarchical && island_size_of(facts.ranks) == 0) {
    return "needs two islands of equal size, which " + std::to_string(facts.ranks) + " ranks aren't";
  }
  if (const int peers = info.peers_needed(facts); peers > kMostPeers) {
    return "needs the memory of " + std::to_string(peers) + " peers mapped, a GPU can map " + std::to_string(kMostPeers);
  }
  return {};
}

}  // namespace artune
