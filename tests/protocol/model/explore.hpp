// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs sequences of all-reduce calls on the model and looks for an order that goes wrong.
//
//   FamilySubject ll(CandidateId::p2p_one_shot_ll, 3);
//   Exploration done = explore_random(ll, {}, 0, 2000);
//   EXPECT_FALSE(done.failure) << done.failure->text;      // names the seed: explore_random(ll, {}, seed, 1) repeats it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/choices.hpp"
#include "model/machine.hpp"
#include "protocol/host_family.hpp"

namespace artune::model {

/// What the model is to run: a protocol with its memory.
class Subject {
 public:
  Subject(std::string name, int ranks, std::size_t max_bytes)
      : name_(std::move(name)), ranks_(ranks), max_bytes_(max_bytes), reports_(static_cast<std::size_t>(ranks)) {}
  virtual ~Subject() = default;

  virtual void run(const HostCall& call, int rank, int block) = 0;
  /// Everything that ranks share, or blocks of a rank.
  virtual void share_with(Machine& machine) = 0;

  const std::string& name() const { return name_; }
  int ranks() const { return ranks_; }
  std::size_t max_bytes() const { return max_bytes_; }
  Bounds bounds(int rank) { return {nullptr, &reports_[rank], &abort_, 1'000'000'000}; }
  std::vector<FailureReport>& reports() { return reports_; }
  void forget_failures() {
    reports_.assign(reports_.size(), FailureReport{});
    abort_ = 0;
  }

  int most_blocks = kMostModelBlocks;
  bool whole_units = false;          ///< counts are multiples of 16 bytes: ragged ends are read past the model
  bool shares_user_buffers = false;  ///< peers touch inputs and outputs
  bool may_be_in_place = true;

 private:
  std::string name_;
  int ranks_;
  std::size_t max_bytes_;
  std::vector<FailureReport> reports_;
  std::uint32_t abort_ = 0;
};

/// A candidate of the menu, as HostFamily runs it.
class FamilySubject final : public Subject {
 public:
  FamilySubject(CandidateId id, int ranks, std::uint64_t start_epoch = 0);
  void run(const HostCall& call, int rank, int block) override { family_.run(call, rank, block); }
  void share_with(Machine& machine) override;

 private:
  HostFamily family_;
};

/// One call: `count` f32 elements.
struct CallShape {
  std::size_t count = 1;
  int blocks = 1;
  bool in_place = false;
  std::size_t chunk_bytes = 16;
};
using Scenario = std::vector<CallShape>;

std::string to_string(const Scenario& scenario);

/// Three to six calls; one element, fewer units than ranks, several units a block; grids that change.
Scenario random_scenario(const Subject& subject, RandomChoices& choices);

struct Exploration {
  std::uint64_t runs = 0, steps = 0;
  bool complete = false;           ///< explore_all(): nothing within the bound was left out
  std::optional<Failure> failure;  ///< the first; its text says how to repeat it
  std::vector<int> prefix;         ///< explore_all(): of the failure
};

/// Seeds first .. first + count - 1. An empty scenario: a random one for every seed.
/// With Options::impatience an output may also be NaN, in every element that isn't right, once some rank has reported a
/// failure; in every third seed one rank stays away from some call on.
Exploration explore_random(Subject& subject, const Scenario& scenario, std::uint64_t first, std::uint64_t count,
                           Machine::Options options = {});

/// Every order with at most `deviations` preemptions and old values, up to `most_runs` of them.
Exploration explore_all(Subject& subject, const Scenario& scenario, int deviations, std::uint64_t most_runs,
                        Machine::Options options = {});

/// The one order of a prefix that explore_all() printed.
Exploration explore_prefix(Subject& subject, const Scenario& scenario, std::vector<int> prefix, Machine::Options options = {});

}  // namespace artune::model
