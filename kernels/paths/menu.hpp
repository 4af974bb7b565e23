// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The menu: one descriptor per candidate, pure data and pure rules (no CUDA header, no state).
// To add a candidate: an enumerator, a row in menu.cpp, and its launch in kernels/paths/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <span>
#include <string_view>
#include <vector>

#include "base/candidate.hpp"
#include "base/words.hpp"

namespace artune {

enum class CandidateId : std::uint8_t {
  nccl,
  p2p_one_shot_ll,
  p2p_one_shot_sentinel,
  p2p_one_shot_flag,
  p2p_one_shot_pull,
  p2p_one_shot_direct,
  p2p_two_shot_ll,
  p2p_two_shot_sentinel,
  p2p_two_shot_flag,
  p2p_two_shot_pull,
  p2p_two_shot_direct,
  p2p_hierarchical,
  host_one_shot_ll,
  host_one_shot_flag,
  host_two_shot_flag,
  host_copy_engine,
  ce_push,
  ce_ring,
};
inline constexpr std::size_t kMenuSize = 18;

/// How the bytes go round.
enum class Algorithm : std::uint8_t {
  library,       ///< NCCL's affair
  one_shot,      ///< everybody gets everything and sums it all
  two_shot,      ///< reduce-scatter, then all-gather
  hierarchical,  ///< inside islands, across, inside
  copies,        ///< moved by copy engines, summed by a kernel
  ring,          ///< as copies, from neighbour to neighbour
};

/// How a receiver knows that data is there.
enum class Protocol : std::uint8_t { none, ll, sentinel, flag };

/// Where a contribution waits for its reader.
enum class Staging : std::uint8_t {
  receiver,  ///< pushed into the reader's memory
  sender,    ///< in the writer's memory, pulled
  host,      ///< in host memory, written once, read by all
  none,      ///< in the user's own buffer
};

/// Ranks of one of the two islands that CandidateId::p2p_hierarchical divides a group into, ranks in group order: machines
/// with two sockets or two switches have them. 0 where that can't be.
constexpr int island_size_of(int ranks) { return ranks >= 4 && ranks % 2 == 0 ? ranks / 2 : 0; }

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
  Algorithm algorithm;
  Protocol protocol;
  Staging staging;
  Numerics numerics;             ///< the class it claims; verify() grants it
  int min_ranks, max_ranks;
  std::size_t worth_from_bytes;  ///< below this no sweep tries it (a step more than others, for bytes that are few)
  std::size_t worth_up_to_bytes; ///< above this no sweep tries it (two-fold bytes, PCIe polling); 0 = no limit
  /// Geometries worth timing at these facts, best guess first; never empty, every entry fits beside its co-resident ranks.
  std::vector<Geometry> (*geometries)(const AdmitFacts&);

  /// What stands in where the users' buffers of all ranks aren't known: the same geometry and class, staged. Itself for
  /// all that stage.
  CandidateId fallback() const {
    if (staging != Staging::none || algorithm == Algorithm::library) return id;
    return algorithm == Algorithm::one_shot ? CandidateId::p2p_one_shot_pull : CandidateId::p2p_two_shot_pull;
  }
  bool needs_peer_access() const { return path == Path::p2p || path == Path::ce; }
  /// A call is one kernel, whose blocks wait; else copies with small kernels between them.
  bool one_kernel() const { return algorithm != Algorithm::library && algorithm != Algorithm::copies && algorithm != Algorithm::ring; }
  /// Peers whose memory one rank must map.
  int peers_needed(const AdmitFacts& facts) const;
  bool worth_trying(std::size_t bytes) const {
    return bytes >= worth_from_bytes && (worth_up_to_bytes == 0 || bytes <= worth_up_to_bytes);
  }
};

/// Every waiting kernel is compiled so that this many blocks of this many threads fit on a multiprocessor.
inline constexpr int kMostThreads = 512;
inline constexpr int kBlocksPerMultiprocessor = 2;

/// Where ranks share a GPU their waiting blocks leave this many multiprocessors alone, one block to each of the others.
inline constexpr int kMultiprocessorsLeft = 4;

/// Blocks that one rank may have so that the blocks of all ranks on its GPU are resident at once. A waiting block never
/// leaves, so one that can't start beside it would never be waited out: this bound is about hanging, not about speed.
/// Where ranks share a GPU that isn't enough: what stands before a late rank's call in its stream (the user's kernel that
/// makes the input) must find room too, and a kernel with large blocks finds none where every multiprocessor holds some
/// waiting block. Soaks on an H200 hung that way with 4 and 8 ranks when only the first bound was kept.
int most_resident_blocks(const AdmitFacts& facts, int threads);

/// All rows, in the order of documents and tables.
std::span<const CandidateInfo> menu();
const CandidateInfo& info_of(CandidateId id);
/// nullptr when the name isn't on the menu.
const CandidateInfo* find_candidate(std::string_view name);

/// The class of its sums over this wire: what `info.numerics` becomes where the wire is lossy.
Numerics numerics_of(const CandidateInfo& info, DType dtype, DType wire);

/// Whether the candidate has the lossy wire: f32 elements that go over the link as bf16.
bool lossy_wire_served(const CandidateInfo& info);

/// The pairs of element type and wire that exist: every type as it is, f32 as bf16.
constexpr bool is_wire_of(DType dtype, DType wire) { return dtype == wire || (dtype == DType::f32 && wire == DType::bf16); }

/// Whether sums of this class went over a lossy wire.
constexpr bool is_lossy(Numerics numerics) { return numerics == Numerics::wire_bf16_in || numerics == Numerics::wire_bf16_in_out; }

/// Empty when `info` can send `dtype` as `wire`; else why not, one line.
std::string wire_refusal(const CandidateInfo& info, DType dtype, DType wire);

/// Empty when `info` may run under `facts`; else the reason, one line.
std::string refusal(const CandidateInfo& info, const AdmitFacts& facts);

}  // namespace artune
