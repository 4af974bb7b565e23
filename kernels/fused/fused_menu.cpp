// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/fused_menu.hpp"

#include <algorithm>

#include "fused/norm_arguments.hpp"
#include "protocol/arguments.hpp"

namespace artune {
namespace {

constexpr std::string_view kPrefix = "fused/";

}  // namespace

bool fused_served(const CandidateInfo& info) { return info.algorithm == Algorithm::one_shot && info.staging != Staging::none; }

std::string name_of(NormCandidate candidate) {
  const std::string_view name = info_of(candidate.candidate).name;
  return candidate.fused ? std::string(kPrefix) + std::string(name) : std::string(name);
}

std::optional<NormCandidate> find_norm_candidate(std::string_view name) {
  const bool fused = name.starts_with(kPrefix);
  const CandidateInfo* info = find_candidate(fused ? name.substr(kPrefix.size()) : name);
  if (info == nullptr || (fused && !fused_served(*info))) return std::nullopt;
  return NormCandidate{info->id, fused};
}

RowLimits fused_limits(const AdmitFacts& facts, const std::array<int, 3>& clusters_of_gpu) {
  const bool shared = facts.ranks_per_gpu > 1;
  RowLimits limits =
      single_blocks(shared ? most_resident_blocks(facts, kMostThreads) : std::clamp(facts.multiprocessors - 1, 1, kMostBlocks));
  for (std::size_t i = 0; i < clusters_of_gpu.size(); ++i) {
    const int members = 2 << i;
    // As many multiprocessors are left alone as without clusters.
    const int left = shared ? (kMultiprocessorsLeft + members - 1) / members : 1;
    limits.clusters[i + 1] = std::clamp((clusters_of_gpu[i] - left) / facts.ranks_per_gpu, 0, limits.blocks / members);
  }
  return limits;
}

std::vector<Geometry> fused_geometries(const RowLimits& limits, std::uint32_t rows, std::uint32_t hidden) {
  const int vectors = static_cast<int>(hidden) / kVectorElements;
  std::vector<Geometry> geometries;
  // A row in one block, then in clusters: what they save in the time per block they pay in the time to meet.
  for (int each = 1; each <= limits.most_members(); each *= 2) {
    const int blocks = static_cast<int>(rows) * each;
    if (each > 1 && blocks > limits.blocks) break;
    const int threads = std::clamp((vectors / each + 31) / 32 * 32, 32, kMostThreads);
    const Geometry geometry{.blocks = std::min(blocks, limits.blocks), .threads = threads};
    if (std::find(geometries.begin(), geometries.end(), geometry) == geometries.end()) geometries.push_back(geometry);
  }
  return geometries;
}

Geometry norm_geometry(std::uint32_t rows, std::uint32_t hidden, int members) {
  // A vector a thread where that can be; few rows in clusters, since a block's share is then sooner loaded.
  const int vectors = static_cast<int>(hidden) / kVectorElements;
  const int each = rows <= 16 ? std::min(members, (vectors + kMostThreads - 1) / kMostThreads) : 1;
  return {.blocks = static_cast<int>(rows) * each, .threads = kMostThreads};
}

}  // namespace artune
