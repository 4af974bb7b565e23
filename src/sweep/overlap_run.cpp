// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/overlap_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/failure.hpp"
#include "sweep/gather.hpp"
#include "sweep/statistics.hpp"

namespace artune {
namespace {

constexpr int kRounds = 5;   // docs/overlap.md says so too
constexpr std::array kOrders{LaunchOrder::compute_first, LaunchOrder::reduction_first};

struct Contestant {
  Candidate candidate;
  bool out = false;
  Verification verification{};
  int batch = 0;
  std::array<std::vector<OverlapSample>, kOrders.size()> samples{};
};

bool plausible(const OverlapSample& sample) {
  const auto above_zero = [](double us) { return std::isfinite(us) && us > 0; };
  return above_zero(sample.compute_idle_us) && above_zero(sample.compute_beside_us) && above_zero(sample.reduction_idle_us) &&
         above_zero(sample.reduction_beside_us);
}

std::vector<double> values(const std::vector<OverlapSample>& samples, double OverlapSample::*field) {
  std::vector<double> result;
  for (const OverlapSample& sample : samples) result.push_back(sample.*field);
  return result;
}

OverlapFigures figures_of(LaunchOrder order, const std::vector<OverlapSample>& samples) {
  std::vector<double> completed;
  for (const OverlapSample& sample : samples) completed.push_back(sample.completed);
  return {.order = order,
          .compute_idle_us = median(values(samples, &OverlapSample::compute_idle_us)),
          .compute_beside_us = median(values(samples, &OverlapSample::compute_beside_us)),
          .reduction_idle_us = median(values(samples, &OverlapSample::reduction_idle_us)),
          .reduction_beside_us = median(values(samples, &OverlapSample::reduction_beside_us)),
          .completed = static_cast<int>(median(completed))};
}

class OverlapRun {
 public:
  OverlapRun(ShapeContext& context, const Shape& shape, std::size_t index, double until_s)
      : context_(context), shape_(shape), until_s_(until_s) {
    result_.index = index;
  }

  ShapeResult run() {
    if (!stop()) {
      for (Candidate& candidate : gather_candidates(context_, shape_, result_.left_out)) contestants_.push_back({.candidate = std::move(candidate)});
    }
    verify_all("verified before timing");
    for (int round = 0; round < kRounds && !result_.stopped; ++round) {
      if (round > 0 && context_.clock.now_s() > until_s_) break;
      play_round();
    }
    if (!result_.stopped) verify_all("verified after timing");
    write_rows();
    return std::move(result_);
  }

 private:
  bool stop() {
    if (!result_.stopped && (context_.interrupted() || context_.budget.exhausted())) {
      result_.stopped = true;
      stop_reason_ = context_.budget.exhausted() ? "the budget was spent" : "interrupted";
    }
    return result_.stopped;
  }

  void tell(const char* doing, const Contestant& contestant) {
    context_.working_on(describe(shape_) + ": " + doing + " " + contestant.candidate.label());
  }

  /// As ShapeRun: a wrong sum, hang or crash takes all geometries of the candidate with it.
  void fail(Contestant& failed, const Outcome& outcome, const char* when) {
    const std::string reason(reason_word(outcome.kind));
    failed.out = true;
    result_.left_out.push_back({failed.candidate, shape_, reason, std::string(when) + (outcome.detail.empty() ? "" : ": " + outcome.detail)});
    if (outcome.kind == OutcomeKind::unavailable || outcome.kind == OutcomeKind::error) return;
    for (Contestant& other : contestants_) {
      if (other.out || other.candidate.name != failed.candidate.name) continue;
      other.out = true;
      result_.left_out.push_back({other.candidate, shape_, reason, "not tried again after " + failed.candidate.label()});
    }
  }

  /// Time that a hang or crash took is no measuring time.
  void account(const Outcome& outcome, double start_s) {
    if (outcome.kind != OutcomeKind::hang && outcome.kind != OutcomeKind::crash) return;
    const double lost_s = context_.clock.now_s() - start_s;
    context_.budget.extend(lost_s);
    until_s_ += lost_s;
  }

  void verify_all(const char* when) {
    for (Contestant& contestant : contestants_) {
      if (contestant.out) continue;
      if (stop()) return;
      tell("verify", contestant);
      const double start_s = context_.clock.now_s();
      Verification verification;
      try {
        verification = context_.machine.verify(contestant.candidate, shape_);
      } catch (const Failure& failure) {
        verification.outcome = {OutcomeKind::error, failure.what()};
      }
      account(verification.outcome, start_s);
      if (!verification.outcome.ok()) {
        fail(contestant, verification.outcome, when);
      } else {
        contestant.verification = std::move(verification);
      }
    }
  }

  void play_round() {
    std::vector<Contestant*> order;
    for (Contestant& contestant : contestants_) {
      if (!contestant.out) order.push_back(&contestant);
    }
    context_.shuffler.shuffle(order);
    for (Contestant* contestant : order) {
      for (std::size_t i = 0; i < kOrders.size() && !contestant->out; ++i) {
        if (stop()) return;
        time(*contestant, i);
      }
    }
  }

  void time(Contestant& contestant, std::size_t order) {
    tell("time beside compute", contestant);
    const double start_s = context_.clock.now_s();
    OverlapTiming timing;
    try {
      timing = context_.machine.time_overlap(contestant.candidate, shape_, {.samples = 1, .compute_us = context_.compute_us, .order = kOrders[order]});
    } catch (const Failure& failure) {
      timing.outcome = {OutcomeKind::error, failure.what()};
    }
    account(timing.outcome, start_s);
    if (timing.outcome.ok() && (timing.samples.empty() || !std::all_of(timing.samples.begin(), timing.samples.end(), plausible))) {
      timing.outcome = {OutcomeKind::error, "the machine gave no samples above 0 µs"};
    }
    if (!timing.outcome.ok()) return fail(contestant, timing.outcome, "while timed beside compute");
    contestant.batch = std::max(1, timing.batch);
    contestant.samples[order].insert(contestant.samples[order].end(), timing.samples.begin(), timing.samples.end());
  }

  void write_rows() {
    for (const Contestant& contestant : contestants_) {
      if (contestant.out) continue;
      SweepRow row;
      Summary slower;
      for (std::size_t i = 0; i < kOrders.size(); ++i) {
        const auto& samples = contestant.samples[i];
        if (samples.empty()) continue;
        row.overlap.push_back(figures_of(kOrders[i], samples));
        const std::vector<double> beside = values(samples, &OverlapSample::reduction_beside_us);
        const Summary figure = summarize(beside);
        if (figure.median <= slower.median) continue;
        slower = figure;
        row.samples_us = beside;
      }
      if (row.overlap.empty()) {
        result_.left_out.push_back({contestant.candidate, shape_, "not-reached", stop_reason_});
        continue;
      }
      row.candidate = contestant.candidate;
      row.shape = shape_;
      row.batch = contestant.batch;
      row.verified = contestant.verification.checked;
      row.n = slower.n;
      row.median_us = slower.median;
      row.ci_low_us = slower.ci_low;
      row.ci_high_us = slower.ci_high;
      row.p5_us = slower.p5;
      row.p95_us = slower.p95;
      row.algbw_gb_per_s = static_cast<double>(shape_.bytes) / slower.median / 1000.0;
      row.busbw_gb_per_s = row.algbw_gb_per_s * 2.0 * (shape_.ranks - 1) / shape_.ranks;
      row.numerics = contestant.verification.numerics;
      result_.rows.push_back(std::move(row));
    }
  }

  ShapeContext& context_;
  const Shape shape_;
  double until_s_;
  std::string stop_reason_ = "interrupted";
  std::vector<Contestant> contestants_;
  ShapeResult result_;
};

}  // namespace

ShapeResult run_overlap_shape(ShapeContext& context, const Shape& shape, std::size_t index, double until_s) {
  return OverlapRun(context, shape, index, until_s).run();
}

}  // namespace artune
