// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/worker_tuned.hpp"

#include "base/tuned_name.hpp"
#include "paths/menu.hpp"

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
    if (const Table* table = table_for(shape)) {
      const Range& range = table->lookup(shape.bytes);
      return machine_->verify(range.use, as_sent(shape, range));
    }
    return {.outcome = {OutcomeKind::unavailable, kNoTable}, .checked = false};
  }

  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override {
    if (candidate.name != kTunedName) return machine_->time(candidate, shape, request);
    if (const Table* table = table_for(shape)) {
      const Range& range = table->lookup(shape.bytes);
      return machine_->time(range.use, as_sent(shape, range), request);
    }
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

  /// As libartune looks: who allows a lossy wire gets the exact table where there is none for it.
  const Table* table_for(const Shape& shape) const {
    TableKey key{shape.op, shape.dtype, shape.wire, shape.ranks, shape.mode, shape.launch, shape.load};
    if (const Table* table = profile_.find(key)) return table;
    key.wire = key.dtype;
    return profile_.find(key);
  }

  /// A table for a lossy wire has exact ranges too.
  static Shape as_sent(Shape shape, const Range& range) {
    if (!is_lossy(range.numerics)) shape.wire = shape.dtype;
    return shape;
  }

  std::unique_ptr<Machine> machine_;
  Profile profile_;
};

}  // namespace

std::unique_ptr<Machine> with_tuned(std::unique_ptr<Machine> machine, Profile profile) {
  return std::make_unique<TunedMachine>(std::move(machine), std::move(profile));
}

}  // namespace artune
