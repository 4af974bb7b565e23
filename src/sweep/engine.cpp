// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/engine.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/failure.hpp"
#include "base/tuned_name.hpp"
#include "sweep/journal.hpp"
#include "sweep/left_out.hpp"
#include "sweep/overlap_run.hpp"
#include "sweep/shape_run.hpp"
#include "sweep/statistics.hpp"

namespace artune {
namespace {

constexpr double kNoisePercentile = 95;  // of the A/A differences of all shapes
constexpr double kOverlapShare = 0.5;    // of the budget, where a plan has shapes beside compute; they come last

std::size_t overlap_shapes(const Plan& plan) {
  return static_cast<std::size_t>(std::count_if(plan.shapes.begin(), plan.shapes.end(), [](const Shape& shape) { return shape.load == Load::overlap; }));
}

double overlap_budget_s(const Plan& plan) { return overlap_shapes(plan) > 0 ? plan.budget_s * kOverlapShare : 0; }

std::vector<std::size_t> bytes_of(const Plan& plan) {
  std::vector<std::size_t> bytes;
  for (const Shape& shape : plan.shapes) bytes.push_back(shape.bytes);
  return bytes;
}

class SweepRun {
 public:
  SweepRun(Machine& machine, const Plan& plan, SweepHooks& hooks, const Clock& clock)
      : machine_(machine), plan_(plan), hooks_(hooks), clock_(clock), start_s_(clock.now_s()), budget_(clock, plan.budget_s - overlap_budget_s(plan), bytes_of(plan)),
        results_(plan.shapes.size()) {
    for (std::size_t index = 0; index < plan.shapes.size(); ++index) {
      if (plan.shapes[index].load == Load::overlap) budget_.skip(index);  // they take no part in the shares of the others
    }
  }

  Result<Sweep> run(const SweepOptions& options) {
    auto header = machine_.describe();
    if (!header) return header.error();
    header_ = std::move(*header);
    header_.kind = "ar-tune/sweep";
    if (!options.journal_file.empty()) {
      auto journal = options.resume ? Journal::resume(options.journal_file, plan_, header_) : Journal::create(options.journal_file, plan_, header_);
      if (!journal) return journal.error();
      for (ShapeResult& result : journal->take_finished()) take(std::move(result));
      journal_.emplace(std::move(*journal));
      resumed_ = finished();
    }
    const std::vector<PairVerdict> verdicts = machine_.verdicts();
    measure();
    return document(verdicts);
  }

 private:
  std::size_t finished() const {
    return static_cast<std::size_t>(std::count_if(results_.begin(), results_.end(), [](const auto& result) { return result.has_value(); }));
  }

  void take(ShapeResult result) {
    bars_.learn(result.left_out);
    budget_.skip(result.index);
    const std::size_t index = result.index;
    results_[index] = std::move(result);
  }

  double left_s() const {
    const std::size_t measured = finished() - resumed_;
    const double budget_left_s = std::max(0.0, budget_.left_s());
    if (measured == 0) return budget_left_s;
    const double each_s = (clock_.now_s() - start_s_) / static_cast<double>(measured);
    return std::min(budget_left_s, each_s * static_cast<double>(plan_.shapes.size() - finished()));
  }

  void measure() {
    Shuffler shuffler(plan_.seed);
    ShapeContext context{.machine = machine_,
                         .filter = plan_.filter,
                         .bars = bars_,
                         .clock = clock_,
                         .shuffler = shuffler,
                         .budget = budget_,
                         .compute_us = plan_.compute_us,
                         .interrupted = [this] { return hooks_.interrupted(); },
                         .working_on = [this](const std::string& text) {
                           hooks_.progress({finished(), plan_.shapes.size(), left_s(), text});
                         }};
    for (std::size_t index = 0; index < plan_.shapes.size(); ++index) {
      if (results_[index]) continue;
      const bool overlap = plan_.shapes[index].load == Load::overlap;
      if (overlap) give_overlap_its_budget();
      if (hooks_.interrupted() || budget_.exhausted()) {
        if (overlap || hooks_.interrupted() || overlap_shapes(plan_) == 0) break;
        continue;  // those beside compute have their own share
      }
      ShapeResult result = overlap ? run_overlap_shape(context, plan_.shapes[index], index, overlap_until_s(index))
                                   : run_shape(context, plan_.shapes[index], index);
      tell_bad_verdicts(result);
      const bool stopped = result.stopped;
      if (!stopped) append_to_journal(result);
      take(std::move(result));
      if (stopped && (overlap || hooks_.interrupted())) break;
    }
    list_unreached();
  }

  /// Once, before the first shape of its kind; what the others left or overdrew is part of it.
  void give_overlap_its_budget() {
    if (!std::exchange(overlap_begun_, true)) budget_.extend(overlap_budget_s(plan_));
  }

  /// Equal shares for the shapes that are left: all after this one are of its kind.
  double overlap_until_s(std::size_t index) const {
    return clock_.now_s() + std::max(0.0, budget_.left_s()) / static_cast<double>(plan_.shapes.size() - index);
  }

  void tell_bad_verdicts(const ShapeResult& result) {
    for (const LeftOut& entry : result.left_out) {
      if (entry.candidate.geometry == Geometry{} && entry.reason != "error") continue;
      if (entry.reason == "pruned" || entry.reason == "not-reached") continue;
      hooks_.note(entry.candidate.label() + " at " + describe(entry.shape) + ": " + entry.reason + ", " + entry.detail);
    }
  }

  void append_to_journal(const ShapeResult& result) {
    if (!journal_) return;
    const Status appended = journal_->append(result);
    if (appended) return;
    hooks_.note(appended.error().message + "; going on without a journal");
    journal_.reset();
  }

  void list_unreached() {
    const std::string why = hooks_.interrupted() ? "interrupted" : "the budget was spent";
    const std::vector<std::string> names = offered_names();
    for (std::size_t index = 0; index < plan_.shapes.size(); ++index) {
      if (results_[index]) continue;
      ShapeResult result;
      result.index = index;
      result.stopped = true;
      for (const auto& name : names) result.left_out.push_back({{name, {}}, plan_.shapes[index], "not-reached", why});
      results_[index] = std::move(result);
    }
  }

  /// The candidates of shapes that the machine was never asked about: the menu's, and the dispatch if it was met.
  std::vector<std::string> offered_names() const {
    std::vector<std::string> names = admitted_names(plan_.filter);
    const bool tuned = std::any_of(results_.begin(), results_.end(), [](const auto& result) {
      return result && std::any_of(result->rows.begin(), result->rows.end(), [](const SweepRow& row) { return row.candidate.name == kTunedName; });
    });
    if (!tuned) std::erase(names, kTunedName);
    return names;
  }

  Sweep document(const std::vector<PairVerdict>& verdicts) {
    Sweep sweep;
    sweep.header = header_;
    sweep.verdicts = verdicts;
    std::vector<LeftOut> left_out;
    std::vector<double> differences;
    for (const auto& result : results_) {
      sweep.rows.insert(sweep.rows.end(), result->rows.begin(), result->rows.end());
      left_out.insert(left_out.end(), result->left_out.begin(), result->left_out.end());
      if (result->aa_percent) differences.push_back(*result->aa_percent);
      if (result->stopped) sweep.complete = false;
    }
    for (const LeftOut& entry : left_out) sweep.complete = sweep.complete && entry.reason != "not-reached";
    sweep.left_out = collapse(left_out);
    sweep.noise_floor_percent = percentile(differences, kNoisePercentile);
    return sweep;
  }

  Machine& machine_;
  const Plan& plan_;
  SweepHooks& hooks_;
  const Clock& clock_;
  const double start_s_;
  Budget budget_;
  Bars bars_;
  DocumentHeader header_;
  std::optional<Journal> journal_;
  std::size_t resumed_ = 0;
  bool overlap_begun_ = false;
  std::vector<std::optional<ShapeResult>> results_;  // by index in the plan
};

}  // namespace

Result<Sweep> run_sweep(Machine& machine, const Plan& plan, SweepHooks& hooks, const SweepOptions& options) {
  const SteadyClock steady;
  return SweepRun(machine, plan, hooks, options.clock != nullptr ? *options.clock : steady).run(options);
}

Status anything_measured(const Sweep& sweep) {
  if (!sweep.rows.empty()) return Ok{};
  std::string reasons;
  std::set<std::string> told;
  bool reached = false;
  for (const LeftOut& entry : sweep.left_out) {
    reached = reached || entry.reason != "not-reached";
    if (entry.reason == "not-reached" || !told.insert(entry.candidate.name).second) continue;
    reasons += (reasons.empty() ? "" : "; ") + entry.candidate.name + ": " + entry.reason + (entry.detail.empty() ? "" : ", " + entry.detail);
  }
  if (!reached && !sweep.left_out.empty()) return Ok{};
  return Error{Reason::no_candidate, "no candidate could be measured: " + (reasons.empty() ? "none was offered" : reasons)};
}

}  // namespace artune
