// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Which machines a profile holds for. A fingerprint names a *kind* of group, not a box: the same GPU models in the
// same order, with the same kind of way between each pair, give the same fingerprint on every machine, inside a
// container or not.
//
//   GroupFacts here = ...;                                // the tool: group_facts_from(); libartune: from NVML
//   Match match = match_profile(profile, here, machine);
//   if (!match.usable()) return match.refusal();          // "profile is for 2x NVIDIA A, this group is 2x NVIDIA B; ..."
//   if (!match.boot_state_changed.empty()) rest({Path::p2p, Path::ce});
//
// Isomorphic groups share a fingerprint where the isomorphism keeps the ranks in place: groups {0,1} and {2,3} of a
// box with two GPUs under each switch are one kind, and so are {0,1,2,3} of one box and {4,5,6,7} of another. An order
// that interleaves the switches ({0,2,1,3}) is another kind, since rings and hierarchies follow the order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.hpp"
#include "base/result.hpp"
#include "profile/profile.hpp"

namespace artune {

struct GroupGpu {
  std::string name;                ///< as NVML says it: "NVIDIA H200"
  std::string compute_capability;  ///< "9.0"
  LinkState link;                  ///< generation possible, width now; 0 = not readable. A soft fact, not in the fingerprint
};

/// The hard facts of a group: what a fingerprint is made of.
struct GroupFacts {
  std::vector<GroupGpu> gpus;             ///< ordered as the ranks are
  std::vector<std::string> pair_classes;  ///< pair_class() of (0,1), (0,2), …, (1,2), …: n(n-1)/2 words
  int ranks_per_gpu = 1;
  bool simulated = false;
  int table_abi = kTableAbi;

  bool shared_gpu() const { return ranks_per_gpu > 1; }
};

/// The word for the way between two GPUs: "nvlink", or what nvidia-smi calls the level ("PIX"), lower case.
std::string pair_class(std::string_view level, bool nvlink);

/// From what a document says. `pair_class_of(from, to)` is asked for GPU indices of the group, in group order.
/// Throws Failure when the world names a GPU that the machine doesn't have.
GroupFacts group_facts_from(const MachineFacts& machine, const World& world, bool simulated,
                            const std::function<std::string(int from, int to)>& pair_class_of);

/// The smaller group that the first `ranks` ranks of a group are: its first GPUs, and fewer ranks on one GPU where they
/// all fit on it. A communicator over those ranks alone has this fingerprint. `ranks`: 2 .. all of the group.
World first_ranks(const World& whole, int ranks);
GroupFacts first_ranks(const GroupFacts& whole, int ranks);

/// "2x-nvidia-h200-nvlink-8c1f0e5d9a3b7246": readable, usable as a file name, at most 120 characters. The digits are
/// the first 64 bits of a SHA-256 over all hard facts.
std::string fingerprint(const GroupFacts& facts);

/// One fact that differs: "driver: 580.159.03 in the profile, 590.44 here".
struct Difference {
  std::string key, in_profile, here;
  std::string text() const;
};

struct Match {
  /// Hard keys: the profile isn't for this group, none of it may be used.
  std::vector<Difference> refused;
  Reason reason = Reason::foreign_profile;  ///< simulated_profile where that is what refuses
  /// Boot state (IOMMU, kernel switches, RegistryDwords, BIOS, kernel): p2p and ce ranges rest until `check` passes.
  std::vector<Difference> boot_state_changed;
  /// Driver, CUDA, NCCL, links: used, and worth a warning.
  std::vector<Difference> soft;

  bool usable() const { return refused.empty(); }
  /// One line with the way out; empty when usable.
  std::string refusal() const;
  /// One line each: what was demoted and why, what changed. Empty when all is as it was.
  std::vector<std::string> warnings() const;
};

/// Facts that either side couldn't read (empty, 0, "not readable") are no difference.
Match match_profile(const Profile& profile, const GroupFacts& here, const MachineFacts& machine);

}  // namespace artune
