// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The menu: one descriptor per candidate, pure data and pure rules (no CUDA header, no state).
// To add a candidate: an enumerator, a row in menu.cpp, and its launch in kernels/paths/.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/candidate.hpp"
#include "base/words.hpp"

namespace artune {

enum class CandidateId : std::uint8_t {
  nccl,
  p2p_one_shot_ll,
  p2p_one_shot_flag,
  host_one_shot_ll,
  host_one_shot_flag,
  host_copy_engine,
  ce_push,
};

/// What an admission or geometry rule may look at. Pure facts of the group and the message.
struct AdmitFacts {
  int ranks = 2;
  int ranks_per_gpu = 1;
  int multiprocessors = 0;       ///< of the smallest GPU of the group
  std::size_t bytes = 0;
  bool peer_access = false;      ///< between all GPUs of the group, and the gate passed (same GPU: true)
  bool nccl = false;             ///< a usable NCCL was loaded
};

struct CandidateInfo {
  CandidateId id;
  std::string_view name;         ///< path/algorithm/protocol
  Path path;
  Numerics numerics;             ///< the class it claims; verify() grants it
  int min_ranks, max_ranks;
  bool needs_peer_access;
  std::size_t worth_up_to_bytes; ///< above this no sweep tries it (two-fold bytes, PCIe polling); 0 = no limit
  /// Geometries worth timing at these facts, best guess first; never empty, every entry fits beside its co-resident ranks.
  std::vector<Geometry> (*geometries)(const AdmitFacts&);
};

/// Every waiting kernel is compiled so that this many blocks of this many threads fit on a multiprocessor.
inline constexpr int kMostThreads = 512;
inline constexpr int kBlocksPerMultiprocessor = 2;

/// Blocks that one rank may have so that the blocks of all ranks on its GPU are resident at once. A waiting block never
/// leaves, so one that can't start beside it would never be waited out: this bound is about hanging, not about speed.
int most_resident_blocks(const AdmitFacts& facts, int threads);

/// All rows, in the order of documents and tables.
std::span<const CandidateInfo> menu();
const CandidateInfo& info_of(CandidateId id);
/// nullptr when the name isn't on the menu.
const CandidateInfo* find_candidate(std::string_view name);

/// Empty when `info` may run under `facts`; else the reason, one line.
std::string refusal(const CandidateInfo& info, const AdmitFacts& facts);

}  // namespace artune
