// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake_machine.hpp"
#include "sweep/engine.hpp"
#include "sweep/overlap_cost.hpp"
#include "sweep/print.hpp"
#include "sweep/view.hpp"

namespace artune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Step = FakeMachine::Step;

constexpr std::size_t k16M = std::size_t{16} << 20;

Plan plan_of(std::optional<std::string> budget = std::nullopt) {
  PlanWords words;
  words.sizes = {"16M"};
  words.modes = {"graph"};
  words.overlap = true;
  words.budget = std::move(budget);
  auto plan = make_plan(words, {});
  EXPECT_TRUE(plan);
  return *plan;
}

struct Bench {
  FakeClock clock;
  FakeMachine machine{clock};

  Sweep run(const Plan& plan) {
    SweepHooks hooks;
    auto sweep = run_sweep(machine, plan, hooks, {.journal_file = "", .resume = false, .clock = &clock});
    EXPECT_TRUE(sweep);
    return *sweep;
  }
};

std::vector<const SweepRow*> rows_beside(const Sweep& sweep, const std::string& name) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : sweep.rows) {
    if (row.shape.load == Load::overlap && row.candidate.name == name) rows.push_back(&row);
  }
  return rows;
}

OverlapFigures figures(double compute_beside, double alone, double beside) {
  return {.order = LaunchOrder::compute_first, .compute_idle_us = 1000, .compute_beside_us = compute_beside, .reduction_idle_us = alone,
          .reduction_beside_us = beside, .completed = static_cast<int>(compute_beside / beside)};
}

TEST(OverlapCost, OfKnownCases) {
  EXPECT_DOUBLE_EQ(overlap_cost(figures(1000, 100, 100), 100), 0) << "free";
  EXPECT_NEAR(overlap_cost(figures(1000, 100, 1e9), 100), 1, 1e-5) << "starved: all ten come after the load";
  EXPECT_NEAR(overlap_cost(figures(1000, 200, 1e9), 100), 2, 1e-5) << "and at its own speed";
  EXPECT_DOUBLE_EQ(overlap_cost(figures(1000, 200, 200), 100), 1) << "half as fast: five of ten come after";
  // 12.5 reductions ended where ten were wanted: a load that has its ten loses four fifths of what this one lost.
  EXPECT_DOUBLE_EQ(overlap_cost(figures(1250, 100, 100), 100), 0.25 * 0.8);
  EXPECT_DOUBLE_EQ(overlap_cost(figures(1050, 100, 150), 100), 0.05 + (10 - 7) * 0.1);
}

TEST(OverlapCost, TakesTheWorseOrder) {
  SweepRow row;
  row.overlap = {figures(1000, 100, 100), figures(1100, 100, 110)};
  EXPECT_DOUBLE_EQ(overlap_cost(row, 100), 0.1);
  EXPECT_DOUBLE_EQ(fastest_alone_us({&row}), 100);
}

TEST(Overlap, RowsStandBesideTheIdleOnesWithBothOrders) {
  Bench bench;
  const Sweep sweep = bench.run(plan_of());
  EXPECT_TRUE(sweep.complete);
  const auto idle = std::count_if(sweep.rows.begin(), sweep.rows.end(), [](const SweepRow& row) { return row.shape.load == Load::idle; });
  EXPECT_GT(idle, 0);
  for (const SweepRow& row : sweep.rows) {
    EXPECT_EQ(row.overlap.size(), row.shape.load == Load::overlap ? 2U : 0U) << row.candidate.label();
  }
  const auto nccl = rows_beside(sweep, "nccl");
  ASSERT_EQ(nccl.size(), 2U) << "every geometry: how many blocks wait is what compute pays for";
  EXPECT_EQ(nccl[0]->n, 5);
  EXPECT_GT(nccl[0]->median_us, 5000) << "the slower order's, in which it is starved";
  EXPECT_EQ(nccl[0]->overlap[0].completed, 0);
  EXPECT_GT(nccl[0]->overlap[1].completed, 0);
}

TEST(Overlap, NoCandidateIsTimedUnverified) {
  Bench bench;
  bench.run(plan_of());
  std::set<Candidate> verified;
  for (const auto& request : bench.machine.log) {
    if (request.shape.load != Load::overlap) continue;
    if (request.step == Step::verify) verified.insert(request.candidate);
    if (request.step == Step::overlap) { EXPECT_TRUE(verified.contains(request.candidate)) << request.candidate.label(); }
  }
  EXPECT_FALSE(verified.empty());
}

TEST(Overlap, ACandidateThatIsStarvedForEverIsLeftOutWithTheReason) {
  Bench bench;
  bench.machine.faults.push_back({"nccl", k16M, Step::overlap, OutcomeKind::hang});
  const Sweep sweep = bench.run(plan_of());
  EXPECT_TRUE(rows_beside(sweep, "nccl").empty());
  EXPECT_FALSE(rows_beside(sweep, "host/copy-engine").empty()) << "the others go on";
  const auto found = std::find_if(sweep.left_out.begin(), sweep.left_out.end(), [](const LeftOut& entry) { return entry.reason == "hang"; });
  ASSERT_NE(found, sweep.left_out.end());
  EXPECT_EQ(found->shape.load, Load::overlap);
  EXPECT_THAT(found->detail, HasSubstr("beside compute"));
}

TEST(Overlap, HalfTheBudgetIsKeptForIt) {
  Bench bench;
  const Sweep sweep = bench.run(plan_of("4s"));
  EXPECT_FALSE(rows_beside(sweep, "host/copy-engine").empty());
  EXPECT_LT(bench.clock.now_s() - 1000, 4 * 1.2);
}

TEST(Overlap, SurvivesTheDocument) {
  Bench bench;
  Sweep sweep = bench.run(plan_of());
  sweep.fingerprint = "2x-test";
  const auto back = sweep_from_json(sweep_to_json(sweep), "x");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(sweep_to_text(*back), sweep_to_text(sweep));
}

TEST(Overlap, TableAndClosingLineNameTheCheapestInTotal) {
  Bench bench;
  const Sweep sweep = bench.run(plan_of());
  const std::string table = sweep_table(sweep);
  EXPECT_THAT(table, HasSubstr("bf16, 2 ranks, graph, overlap: reductions beside a compute load of 5000 µs"));
  EXPECT_THAT(table, HasSubstr("nccl")) << "beside the cheapest in any case";
  EXPECT_THAT(table, HasSubstr("compute-first"));
  EXPECT_THAT(table, HasSubstr("reduction-first"));
  const std::string closing = closing_lines(sweep, "ar-tune tune");
  EXPECT_THAT(closing, HasSubstr("Beside compute the least in total: ce/push at 16M (+"));
  EXPECT_THAT(closing, HasSubstr(", nccl +"));
  EXPECT_LE(std::count(closing.begin(), closing.end(), '\n'), 6);
  EXPECT_THAT(closing_lines(Sweep{}, ""), Not(HasSubstr("Beside")));
}

}  // namespace
}  // namespace artune
