// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// RigMachine: a described machine behind the Machine seam. Times come from the model, sums from the real protocols on
// CPU threads; every document says `simulated`.
//
//   auto machine = make_rig_machine("4x-rtx-pro-6000-switch", {.devices = {0, 1}}, /*seed=*/1);   // no devices = all
//   if (machine) sweep(**machine);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "machine/model/group.hpp"
#include "machine/model/tree.hpp"
#include "machine/rig.hpp"
#include "machine/rig_verify.hpp"

namespace artune {

class RigMachine : public Machine {
 public:
  /// `world.devices`: rig indices, distinct and existing, at least two; one rank per GPU. make_rig_machine() checks that.
  RigMachine(Rig rig, World world, std::uint64_t seed);

  Result<DocumentHeader> describe() override;
  std::vector<PairVerdict> verdicts() override;
  std::vector<Offer> candidates(const Shape& shape) override;
  Verification verify(const Candidate& candidate, const Shape& shape) override;
  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override;
  OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) override;
  double limit_us(const Shape& shape) override;

 private:
  /// The first `shape.ranks` devices; empty when the world is smaller.
  std::vector<std::size_t> gpus_of(int ranks) const;
  PairVerdict verdict_of(std::size_t from, std::size_t to, Path path) const;
  /// Why the pair-wise paths are closed to these GPUs; empty when they are open.
  std::string peer_refusal(const std::vector<std::size_t>& gpus) const;
  std::string refusal_of(const CandidateInfo& info, const Shape& shape) const;
  Outcome admit(const Candidate& candidate, const Shape& shape) const;

  Rig rig_;
  World world_;
  std::uint64_t seed_;
  model::Tree tree_;
  std::map<int, RigVerifier> verifiers_;              ///< by ranks
  std::map<std::string, std::uint64_t> times_asked_;  ///< by candidate and shape: an A/A pair draws new noise
};

/// `world.devices` empty = every GPU of the rig. Errors (Reason::usage) name the rig, the device or the switch.
Result<std::unique_ptr<Machine>> make_rig_machine(const std::string& name_or_file, World world, std::uint64_t seed);

}  // namespace artune
