// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// From (dtype, mode, bytes) to the candidate that the profile chose: what every artuneAllReduce asks first.
//
//   DispatchSwitches switches = make_switches(env.disable, env.paths);
//   if (nccl_missing) switches.forbid(Path::nccl);
//   DispatchTable table = DispatchTable::from_profile(profile, ranks, Launch::one_thread, Load::idle, switches);
//   if (Status usable = table.usable(); !usable) return usable.error();
//   Choice choice = table.choose(DType::bf16, Mode::graph, bytes);     // no lock, no allocation, no logging
//
// A table never changes after it is built and may be asked from any number of threads.
// Every rank must have the same table: compare digest() over the ranks when a communicator is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "base/result.hpp"
#include "base/words.hpp"
#include "paths/menu.hpp"

namespace artune {

struct Profile;

/// Which paths may be used, whether f32 may lose bits on the way, and whether the profile is listened to at all.
struct DispatchSwitches {
  bool disabled = false;  ///< ARTUNE_DISABLE: everything goes to the default
  bool bf16_wire = false;  ///< artuneConfig_t::bf16Wire: for f32 the table of wire bf16 comes before the exact one
  std::array<bool, WordTable<Path>::entries.size()> allowed = {true, true, true, true};  ///< by Path

  bool allows(Path path) const { return allowed[static_cast<std::size_t>(path)]; }
  /// For what this process lacks (no NCCL, no peer access, a failed self-test, a boot state that changed). Never undone.
  void forbid(Path path) { allowed[static_cast<std::size_t>(path)] = false; }
};

/// ARTUNE_DISABLE and ARTUNE_PATHS as src/seams/environment.hpp reads them; nullopt = all paths.
DispatchSwitches make_switches(bool disable, const std::optional<std::vector<Path>>& paths);

struct Choice {
  CandidateId candidate = CandidateId::nccl;
  Geometry geometry;  ///< all zero for nccl = NCCL's own choice
  Numerics numerics = Numerics::nccl;  ///< says too whether the wire is lossy: is_lossy()
  bool tuned = false;  ///< false: the profile doesn't cover this, or its path can't be had here

  auto operator<=>(const Choice&) const = default;
};

/// Something that the table may answer, and the largest message for which it does.
struct Use {
  CandidateId candidate;
  Geometry geometry;
  std::size_t max_bytes;  ///< kUnbounded where the range is open

  auto operator<=>(const Use&) const = default;
};

class DispatchTable {
 public:
  static constexpr std::size_t kUnbounded = static_cast<std::size_t>(-1);

  /// The tables of `profile` for these ranks, launch and load. Keys that the profile lacks go to the default; ranges
  /// whose path isn't allowed go to the default over their bytes. The caller has matched the profile (fingerprint.hpp).
  static DispatchTable from_profile(const Profile& profile, int ranks, Launch launch, Load load,
                                    const DispatchSwitches& switches);

  /// Without a profile. The default is NCCL; without it `host`, by size; where both are forbidden p2p, then ce.
  /// Of `facts`, ranks, ranks_per_gpu and multiprocessors count: they bound the geometries.
  static DispatchTable untuned(const AdmitFacts& facts, const DispatchSwitches& switches);

  /// 0 bytes count as 1. Below 50 ns; the same answer on every rank, for equal digests.
  Choice choose(DType dtype, Mode mode, std::size_t bytes) const noexcept {
    const Slice slice = slices_[slot(dtype, mode)];
    const std::size_t* first = ends_.data() + slice.begin;
    std::size_t length = slice.length;
    // The last end is kUnbounded, so the first end above `bytes` exists. Branch-free: message sizes alternate in decode.
    while (length > 1) {
      const std::size_t half = length / 2;
      first += first[half - 1] <= bytes ? half : 0;
      length -= half;
    }
    return choices_[static_cast<std::size_t>(first - ends_.data())];
  }

  /// An Error (Reason::unavailable) when some message has no allowed path that serves this many ranks.
  Status usable() const;

  /// Everything that choose() may answer, each once: what has to be prepared when a communicator is made.
  std::vector<Use> uses() const;

  /// The largest message that choose() sends to `candidate`, for slab sizes; 0 = none, kUnbounded = no limit.
  std::size_t max_bytes_for(CandidateId candidate) const;

  /// SHA-256 (hexadecimal) of all answers: equal digests, equal answers.
  std::string digest() const;

  /// Number of ranges over all keys.
  std::size_t size() const { return choices_.size(); }

 private:
  friend class TableBuilder;
  static constexpr std::size_t kDTypes = WordTable<DType>::entries.size();
  static constexpr std::size_t kModes = WordTable<Mode>::entries.size();
  static constexpr std::size_t slot(DType dtype, Mode mode) {
    return static_cast<std::size_t>(dtype) * kModes + static_cast<std::size_t>(mode);
  }

  struct Slice {
    std::uint32_t begin = 0, length = 0;
  };

  DispatchTable() = default;

  std::array<Slice, kDTypes * kModes> slices_{};
  std::vector<std::size_t> ends_;  ///< max_bytes of each range, ascending within a slice
  std::vector<Choice> choices_;    ///< parallel to ends_
  std::string gap_;                ///< why some message can't be served; empty = all can
};

}  // namespace artune
