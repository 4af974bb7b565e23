// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds dispatch tables: a profile's ranges, with the default wherever the profile says nothing that can be used here.
#include <algorithm>
#include <bit>

#include "dispatch/dispatch_table.hpp"
#include "profile/profile.hpp"

namespace artune {

namespace {

// Where the default passes from one host candidate to the next: H200 (PCIe 5 x16), 2 ranks on one GPU, bf16, 2026-12,
// time per all-reduce in one graph of 50. LL was ahead of flag up to 64 KiB (12 against 30 µs) and level at 256 KiB;
// with 4 ranks flag was ahead from 16 KiB (13.5 against 16 µs). The copy engines take over where the kernels leave the
// link idle (90 µs for 1 MiB, where the link allows 38).
constexpr std::size_t kHostLlUpTo = std::size_t{64} << 10;
constexpr std::size_t kHostLlUpToManyRanks = std::size_t{8} << 10;
constexpr std::size_t kHostFlagUpTo = std::size_t{1} << 20;
// The same table for p2p: LL ahead up to 256 KiB (3.66 against 3.85 µs), behind at 1 MiB.
constexpr std::size_t kP2pLlUpTo = std::size_t{256} << 10;

CandidateId default_of(Path path, int ranks, std::size_t bytes) {
  switch (path) {
    case Path::nccl:
      return CandidateId::nccl;
    case Path::host:
      if (bytes <= (ranks > 2 ? kHostLlUpToManyRanks : kHostLlUpTo)) return CandidateId::host_one_shot_ll;
      return bytes <= kHostFlagUpTo ? CandidateId::host_one_shot_flag : CandidateId::host_copy_engine;
    case Path::p2p:
      return bytes <= kP2pLlUpTo ? CandidateId::p2p_one_shot_ll : CandidateId::p2p_one_shot_flag;
    case Path::ce:
      return CandidateId::ce_push;
  }
  return CandidateId::nccl;
}

// What anyone may fall back to, best first: NCCL is correct everywhere, host memory needs no peer access.
constexpr Path kFallbackOrder[] = {Path::nccl, Path::host, Path::p2p, Path::ce};

// Above this, default geometries no longer grow: every rule of the menu has met its limit of blocks.
constexpr int kLargestBucket = 30;  // 1 GiB

struct Entry {
  std::size_t end;
  Choice choice;
};

/// Adds a range behind `entries`, merging it with the last one when it answers the same.
void append(std::vector<Entry>& entries, std::size_t end, const Choice& choice) {
  if (!entries.empty() && entries.back().choice == choice) {
    entries.back().end = end;
  } else {
    entries.push_back({end, choice});
  }
}

}  // namespace

class TableBuilder {
 public:
  TableBuilder(AdmitFacts facts, const DispatchSwitches& switches) : facts_(facts), switches_(switches) {
    facts_.peer_access = switches.allows(Path::p2p) || switches.allows(Path::ce);
    facts_.nccl = switches.allows(Path::nccl);
    make_default();
  }

  void add(DType dtype, Mode mode, const Table* tuned) {
    const std::vector<Entry> entries = tuned == nullptr || switches_.disabled ? default_ : usable_part(*tuned);
    table_.slices_[DispatchTable::slot(dtype, mode)] = {static_cast<std::uint32_t>(table_.ends_.size()),
                                                        static_cast<std::uint32_t>(entries.size())};
    for (const Entry& entry : entries) {
      table_.ends_.push_back(entry.end);
      table_.choices_.push_back(entry.choice);
    }
  }

  DispatchTable take() { return std::move(table_); }

 private:
  /// The first path of the fallback order that may be used and serves this many ranks.
  std::optional<Path> default_path() const {
    for (const Path path : kFallbackOrder) {
      if (switches_.allows(path) && refusal(info_of(default_of(path, facts_.ranks, 1)), facts_).empty()) return path;
    }
    return std::nullopt;
  }

  void make_default() {
    const auto path = default_path();
    if (!path) {
      table_.gap_ = "no path is left for " + std::to_string(facts_.ranks) + " ranks: allowed are " + allowed_list() +
                    "; load an NCCL (ARTUNE_NCCL_LIB), or allow more in ARTUNE_PATHS";
    }
    // One bucket a power of two, its geometry the one that the menu thinks best for the bucket's largest message.
    for (int power = 0; power <= kLargestBucket; ++power) {
      const std::size_t end = power == kLargestBucket ? DispatchTable::kUnbounded : std::size_t{2} << power;
      const std::size_t largest = (std::size_t{2} << power) - 1;
      const CandidateInfo& info = info_of(default_of(path.value_or(Path::host), facts_.ranks, largest));
      AdmitFacts facts = facts_;
      facts.bytes = largest;
      // NCCL without a profile is NCCL as it comes: none of the menu's limits.
      const Geometry geometry = info.id == CandidateId::nccl ? Geometry{} : info.geometries(facts).front();
      append(default_, end, {info.id, geometry, info.numerics, false});
    }
  }

  std::string allowed_list() const {
    std::string list;
    for (const auto& entry : WordTable<Path>::entries) {
      if (switches_.allows(entry.value)) list += (list.empty() ? "" : ", ") + std::string(entry.spelling);
    }
    return list.empty() ? "none" : list;
  }

  std::vector<Entry> usable_part(const Table& tuned) const {
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < tuned.ranges.size(); ++i) {
      const Range& range = tuned.ranges[i];
      const CandidateInfo& info = *find_candidate(range.use.name);
      const std::size_t end = range.max_bytes.value_or(DispatchTable::kUnbounded);
      if (switches_.allows(info.path)) {
        append(entries, end, {info.id, range.use.geometry, range.numerics, true});
        continue;
      }
      const Geometry nccl_geometry = nearest_nccl(tuned, i);
      for (const Entry& fallback : default_) {
        if (fallback.end <= range.min_bytes) continue;
        Choice choice = fallback.choice;
        if (choice.candidate == CandidateId::nccl) choice.geometry = nccl_geometry;
        append(entries, std::min(fallback.end, end), choice);
        if (fallback.end >= end) break;
      }
    }
    return entries;
  }

  /// The setting of NCCL that this table found best, nearest to range `at`: better than NCCL's own where NCCL was tuned.
  static Geometry nearest_nccl(const Table& tuned, std::size_t at) {
    const auto is_nccl = [&](std::size_t i) { return find_candidate(tuned.ranges[i].use.name)->id == CandidateId::nccl; };
    for (std::size_t distance = 1; distance < tuned.ranges.size(); ++distance) {
      if (at + distance < tuned.ranges.size() && is_nccl(at + distance)) return tuned.ranges[at + distance].use.geometry;
      if (distance <= at && is_nccl(at - distance)) return tuned.ranges[at - distance].use.geometry;
    }
    return {};
  }

  AdmitFacts facts_;
  DispatchSwitches switches_;
  std::vector<Entry> default_;
  DispatchTable table_;
};

namespace {

/// What the default's geometries need to know; the profile was matched, so its GPUs are like those here.
AdmitFacts facts_of(const Profile& profile, int ranks) {
  AdmitFacts facts{.ranks = ranks};
  if (!profile.header.world) return facts;
  facts.ranks_per_gpu = profile.header.world->ranks_per_gpu;
  for (const int index : profile.header.world->devices) {
    for (const GpuFacts& gpu : profile.header.machine.gpus) {
      if (gpu.index != index) continue;
      facts.multiprocessors =
          facts.multiprocessors == 0 ? gpu.multiprocessors : std::min(facts.multiprocessors, gpu.multiprocessors);
    }
  }
  return facts;
}

}  // namespace

DispatchTable DispatchTable::from_profile(const Profile& profile, int ranks, Launch launch, Load load,
                                          const DispatchSwitches& switches) {
  const auto table_of = [&](DType dtype, DType wire, Mode mode) {
    return profile.find({Op::all_reduce, dtype, wire, ranks, mode, launch, load});
  };
  TableBuilder builder(facts_of(profile, ranks), switches);
  for (const auto& dtype : WordTable<DType>::entries) {
    for (const auto& mode : WordTable<Mode>::entries) {
      const bool lossy = switches.bf16_wire && is_wire_of(dtype.value, DType::bf16);
      const Table* table = lossy ? table_of(dtype.value, DType::bf16, mode.value) : nullptr;
      builder.add(dtype.value, mode.value, table != nullptr ? table : table_of(dtype.value, dtype.value, mode.value));
    }
  }
  return builder.take();
}

DispatchTable DispatchTable::untuned(const AdmitFacts& facts, const DispatchSwitches& switches) {
  TableBuilder builder(facts, switches);
  for (const auto& dtype : WordTable<DType>::entries) {
    for (const auto& mode : WordTable<Mode>::entries) builder.add(dtype.value, mode.value, nullptr);
  }
  return builder.take();
}

}  // namespace artune
