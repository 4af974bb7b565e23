// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/worker_tuned.hpp"

#include "base/tuned_name.hpp"

namespace artune {
namespace {

class TunedMachine final : public Machine {
 public:
  TunedMachine(std::unique_ptr<Machine> machine, Profile profile) : machine_(std::move(machine)), profile_(std::move(profile)) {}

  Result<DocumentHeader> describe() override { return machine_->describe(); }
  std::vector<PairVerdict> verdicts() override { return machine_->verdicts(); }
  double limit_us(const Shape& shape) override { return machine_->limit_us(shape); }

  std::vector<Offer> candidates(const Shape& shape) override {
    std::vector<Offer> offers = machine_->candidates(shape);
    Offer tuned{{std::string(kTunedName), {}}, {}};
    if (table_for(shape) == nullptr) tuned.unavailable = kNoTable;
    offers.push_back(std::move(tuned));
    return offers;
  }

  Verification verify(const Candidate& candidate, const Shape& shape) override {
    if (candidate.name != kTunedName) return machine_->verify(candidate, shape);
    const Table* table = table_for(shape);
    if (table != nullptr) return machine_->verify(table->lookup(shape.bytes).use, shape);
    return {.outcome = {OutcomeKind::unavailable, kNoTable}, .checked = false};
  }

  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override {
    if (candidate.name != kTunedName) return machine_->time(candidate, shape, request);
    const Table* table = table_for(shape);
    if (table != nullptr) return machine_->time(table->lookup(shape.bytes).use, shape, request);
    Timing timing;
    timing.outcome = {OutcomeKind::unavailable, kNoTable};
    return timing;
  }

  OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) override {
    if (candidate.name != kTunedName) return machine_->time_overlap(candidate, shape, request);
    const Table* table = table_for(shape);
    if (table != nullptr) return machine_->time_overlap(table->lookup(shape.bytes).use, shape, request);
    return {.outcome = {OutcomeKind::unavailable, kNoTable}, .batch = 0, .samples = {}};
  }

 private:
  static constexpr const char* kNoTable = "the profile has no table for this dtype, mode, load and number of ranks";

  const Table* table_for(const Shape& shape) const {
    return profile_.find({shape.op, shape.dtype, shape.wire, shape.ranks, shape.mode, shape.launch, shape.load});
  }

  std::unique_ptr<Machine> machine_;
  Profile profile_;
};

}  // namespace

std::unique_ptr<Machine> with_tuned(std::unique_ptr<Machine> machine, Profile profile) {
  return std::make_unique<TunedMachine>(std::move(machine), std::move(profile));
}

}  // namespace artune
