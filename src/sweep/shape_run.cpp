// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/shape_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/failure.hpp"
#include "base/tuned_name.hpp"
#include "sweep/gather.hpp"
#include "sweep/statistics.hpp"

namespace artune {
namespace {

// docs/measuring.md explains these to users; change both.
constexpr int kScreenSamples = 3;
constexpr int kRoundSamples = 3;
constexpr int kFewestRounds = 3;         // nine samples: the first count whose interval leaves out both extremes
constexpr int kMostRounds = 20;
constexpr double kEnough = 0.01;         // half-width of the interval over the median
constexpr double kClearly = 1.02;        // a loser's interval starts this much above the end of the leader's

struct Contestant {
  Candidate candidate;
  bool first_of_name = false;            // the machine's best guess among the geometries
  bool verified = false;                 // passed; `checked` says whether there was anything to check
  bool checked = false;
  bool out = false;                      // failed, or not reached: has no row
  bool finalist = false;
  Numerics numerics = Numerics::nccl;
  int batch = 0;
  std::vector<double> screening{}, rounds{}, isolated{}, host{};
  double time_s = 0;                     // cost of the latest timing request

  const std::vector<double>& figures() const { return rounds.empty() ? screening : rounds; }
  bool measured() const { return !out && !figures().empty(); }
};

bool clearly_above(const Summary& loser, const Summary& leader) { return loser.ci_low > leader.ci_high * kClearly; }

class ShapeRun {
 public:
  ShapeRun(ShapeContext& context, const Shape& shape, std::size_t index) : context_(context), shape_(shape) { result_.index = index; }

  ShapeResult run() {
    hurried_ = context_.budget.hurried(result_.index);
    gather();
    verify_all();
    screen();
    choose_finalists();
    play_rounds();
    verify_again();
    write_rows();
    hurried_ || result_.stopped ? context_.budget.skip(result_.index) : context_.budget.finish(result_.index, costs_s_);
    return std::move(result_);
  }

 private:
  void leave_out(const Candidate& candidate, std::string_view reason, const std::string& detail) {
    result_.left_out.push_back({candidate, shape_, std::string(reason), detail});
  }

  /// The one place that asks for interrupts and the end of the budget: before every request.
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

  void gather() {
    if (stop()) return;
    for (const Candidate& candidate : gather_candidates(context_, shape_, result_.left_out)) {
      const bool first = std::none_of(contestants_.begin(), contestants_.end(),
                                      [&](const Contestant& other) { return other.candidate.name == candidate.name; });
      contestants_.push_back({.candidate = candidate, .first_of_name = first});
    }
    if (hurried_) keep_first_geometries();
  }

  void keep_first_geometries() {
    std::vector<std::string> told;
    for (const Contestant& contestant : contestants_) {
      const std::string& name = contestant.candidate.name;
      if (contestant.first_of_name || std::find(told.begin(), told.end(), name) != told.end()) continue;
      leave_out({name, {}}, "not-reached", "further geometries: the budget was nearly spent");
      told.push_back(name);
    }
    std::erase_if(contestants_, [](const Contestant& contestant) { return !contestant.first_of_name; });
  }

  /// Takes a contestant out. A wrong sum, hang or crash takes all geometries of the candidate with it.
  void fail(Contestant& failed, const Outcome& outcome, const char* when) {
    const std::string_view reason = reason_word(outcome.kind);
    failed.out = true;
    leave_out(failed.candidate, reason, std::string(when) + (outcome.detail.empty() ? "" : ": " + outcome.detail));
    if (outcome.kind == OutcomeKind::unavailable || outcome.kind == OutcomeKind::error) return;
    for (Contestant& other : contestants_) {
      if (other.out || other.candidate.name != failed.candidate.name) continue;
      other.out = true;
      leave_out(other.candidate, reason, "not tried again after " + failed.candidate.label());
    }
  }

  /// Keeps the budget whole where a candidate hung or crashed.
  void account(const Outcome& outcome, double took_s) {
    if (outcome.kind == OutcomeKind::hang || outcome.kind == OutcomeKind::crash) context_.budget.extend(took_s);
  }

  void verify(Contestant& contestant, const char* when) {
    tell("verify", contestant);
    const double start_s = context_.clock.now_s();
    Verification verification;
    try {
      verification = context_.machine.verify(contestant.candidate, shape_);
    } catch (const Failure& failure) {
      verification.outcome = {OutcomeKind::error, failure.what()};
    }
    costs_s_.push_back(context_.clock.now_s() - start_s);
    verify_costs_s_.push_back(costs_s_.back());
    account(verification.outcome, costs_s_.back());
    if (!verification.outcome.ok()) return fail(contestant, verification.outcome, when);
    contestant.verified = true;
    contestant.checked = verification.checked;
    contestant.numerics = verification.numerics;
  }

  /// Samples of the slowest rank; empty when the contestant is out.
  std::vector<double> time(Contestant& contestant, int samples, bool isolated) {
    tell("time", contestant);
    const double start_s = context_.clock.now_s();
    Timing timing;
    try {
      timing = context_.machine.time(contestant.candidate, shape_, {.samples = samples, .batch = contestant.batch, .isolated = isolated});
    } catch (const Failure& failure) {
      timing.outcome = {OutcomeKind::error, failure.what()};
    }
    contestant.time_s = context_.clock.now_s() - start_s;
    account(timing.outcome, contestant.time_s);
    std::vector<double> calls = max_over_ranks(timing.samples_us);
    const bool plausible = !calls.empty() && std::all_of(calls.begin(), calls.end(), [](double us) { return std::isfinite(us) && us > 0; });
    if (timing.outcome.ok() && !plausible) timing.outcome = {OutcomeKind::error, "the machine gave no samples above 0 µs"};
    if (!timing.outcome.ok()) {
      fail(contestant, timing.outcome, "while timed");
      return {};
    }
    // One batch length per row: later requests ask for the one that the machine chose first.
    if (contestant.batch == 0) contestant.batch = std::max(1, timing.batch);
    if (timing.host_us > 0) contestant.host.push_back(timing.host_us);
    contestant.isolated.insert(contestant.isolated.end(), timing.isolated_us.begin(), timing.isolated_us.end());
    return calls;
  }

  void verify_all() {
    for (Contestant& contestant : contestants_) {
      if (contestant.out) continue;
      if (stop()) return;
      verify(contestant, "verified before timing");
    }
  }

  void screen() {
    std::vector<Contestant*> order;
    for (Contestant& contestant : contestants_) {
      if (contestant.verified) order.push_back(&contestant);
    }
    context_.shuffler.shuffle(order);
    for (Contestant* contestant : order) {
      if (contestant->out) continue;
      if (stop()) return;
      contestant->screening = time(*contestant, hurried_ ? 1 : kScreenSamples, false);
      costs_s_.push_back(contestant->time_s);
    }
  }

  Contestant* fastest(const std::function<bool(const Contestant&)>& eligible) {
    Contestant* best = nullptr;
    for (Contestant& contestant : contestants_) {
      if (!contestant.measured() || !eligible(contestant)) continue;
      if (best == nullptr || median(contestant.figures()) < median(best->figures())) best = &contestant;
    }
    return best;
  }

  /// The best geometry of every candidate, and whatever isn't clearly slower than the leader.
  void choose_finalists() {
    Contestant* leader = fastest([](const Contestant&) { return true; });
    if (leader == nullptr || result_.stopped || hurried_) return;
    const Summary best = summarize(leader->screening);
    for (Contestant& contestant : contestants_) {
      if (!contestant.measured()) continue;
      const Summary figure = summarize(contestant.screening);
      const Contestant* own_best =
          fastest([&](const Contestant& other) { return other.candidate.name == contestant.candidate.name; });
      contestant.finalist = own_best == &contestant || !clearly_above(figure, best);
      if (contestant.finalist) continue;
      leave_out(contestant.candidate, "pruned",
                fmt::format("{:.3g} µs after {} samples, {:.3g} times {}; this candidate went on as {}", figure.median, figure.n,
                            figure.median / best.median, leader->candidate.label(), own_best->candidate.label()));
    }
  }

  void play_rounds() {
    Contestant* incumbent = fastest([](const Contestant& contestant) { return contestant.finalist && contestant.candidate.name == "nccl"; });
    if (incumbent == nullptr) {
      incumbent = fastest([](const Contestant& contestant) { return contestant.finalist && contestant.candidate.name != kTunedName; });
    }
    if (incumbent == nullptr) return;
    // Verifying again comes out of the share; at most half of it, because first verifications may have loaded libraries.
    const auto finalists = std::count_if(contestants_.begin(), contestants_.end(), [](const Contestant& c) { return c.finalist; });
    const double share_s = context_.budget.rounds_share_s(result_.index);
    const double until_s = context_.clock.now_s() + share_s - std::min(share_s / 2, median(verify_costs_s_) * static_cast<double>(finalists));

    std::vector<double> twin;  // the incumbent under its second name
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<Contestant*> order = round_order(round, incumbent);
      if (order.empty()) break;
      double cost_s = 0;
      for (const Contestant* contestant : order) cost_s += contestant != nullptr ? contestant->time_s : incumbent->time_s;
      if (context_.clock.now_s() + cost_s > until_s) break;
      context_.shuffler.shuffle(order);
      for (Contestant* contestant : order) {
        if (contestant == nullptr ? incumbent->out : contestant->out) continue;
        if (stop()) return;
        Contestant& timed = contestant != nullptr ? *contestant : *incumbent;
        const std::vector<double> calls = time(timed, kRoundSamples, contestant != nullptr && round == 0);
        auto& figures = contestant != nullptr ? timed.rounds : twin;
        figures.insert(figures.end(), calls.begin(), calls.end());
      }
    }
    if (!twin.empty() && !incumbent->out) result_.aa_percent = difference_percent(incumbent->rounds, twin);
  }

  /// Who plays the next round; nullptr stands for the incumbent's second name. After the fewest rounds clear losers
  /// leave: slow paths mustn't eat the time that decides between the fast ones. Empty when all is known well enough.
  std::vector<Contestant*> round_order(int round, Contestant* incumbent) {
    std::vector<Contestant*> order;
    const Contestant* leader = fastest([](const Contestant& contestant) { return contestant.finalist; });
    if (leader == nullptr) return order;
    const Summary best = summarize(leader->figures());
    bool known = round >= kFewestRounds;
    for (Contestant& contestant : contestants_) {
      if (!contestant.finalist || contestant.out) continue;
      const Summary figure = summarize(contestant.figures());
      if (round >= kFewestRounds && &contestant != incumbent && clearly_above(figure, best)) continue;
      known = known && figure.relative_half_width() <= kEnough;
      order.push_back(&contestant);
    }
    if (known) return {};
    if (!incumbent->out) order.push_back(nullptr);
    return order;
  }

  void verify_again() {
    for (Contestant& contestant : contestants_) {
      if (!contestant.finalist || contestant.out || contestant.rounds.empty()) continue;
      if (stop()) return;
      verify(contestant, "verified after timing");
    }
  }

  void write_rows() {
    double limit_us = 0;
    try {
      if (!result_.stopped) limit_us = context_.machine.limit_us(shape_);
    } catch (const Failure&) {
      limit_us = 0;  // an estimate that can't be had is one column less, not a reason to lose the rows
    }
    for (const Contestant& contestant : contestants_) {
      if (contestant.out) continue;
      if (!contestant.measured()) {
        leave_out(contestant.candidate, "not-reached", stop_reason_);
        continue;
      }
      const Summary figure = summarize(contestant.figures());
      SweepRow row;
      row.candidate = contestant.candidate;
      row.shape = shape_;
      row.batch = contestant.batch;
      row.verified = contestant.checked;
      row.n = figure.n;
      row.median_us = figure.median;
      row.ci_low_us = figure.ci_low;
      row.ci_high_us = figure.ci_high;
      row.p5_us = figure.p5;
      row.p95_us = figure.p95;
      if (!contestant.isolated.empty()) row.isolated_us = median(contestant.isolated);
      if (!contestant.host.empty()) row.host_us = median(contestant.host);
      if (figure.median > 0) row.algbw_gb_per_s = static_cast<double>(shape_.bytes) / figure.median / 1000.0;
      row.busbw_gb_per_s = row.algbw_gb_per_s * 2.0 * (shape_.ranks - 1) / shape_.ranks;
      if (limit_us > 0) row.limit_us = limit_us;
      row.numerics = contestant.numerics;
      row.samples_us = contestant.figures();
      result_.rows.push_back(std::move(row));
    }
  }

  ShapeContext& context_;
  const Shape shape_;
  bool hurried_ = false;
  std::string stop_reason_ = "interrupted";
  std::vector<Contestant> contestants_;  // not changed in length after gather(): pointers into it are kept
  std::vector<double> costs_s_;          // of requests outside rounds
  std::vector<double> verify_costs_s_;   // of those, the verifications
  ShapeResult result_;
};

}  // namespace

ShapeResult run_shape(ShapeContext& context, const Shape& shape, std::size_t index) { return ShapeRun(context, shape, index).run(); }

}  // namespace artune
