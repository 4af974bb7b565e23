// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fake_machine.hpp"
#include "sweep/view.hpp"

namespace artune {
namespace {

using ::testing::HasSubstr;
using Step = FakeMachine::Step;

Plan plan_of(const std::vector<std::string>& sizes, std::vector<std::string> modes = {"graph"}, std::vector<std::string> paths = {}) {
  PlanWords words;
  words.sizes = sizes;
  words.modes = std::move(modes);
  words.paths = std::move(paths);
  words.candidates = {"*"};  // named: tried at every size, whatever the menu thinks of it
  auto plan = make_plan(words, {});
  EXPECT_TRUE(plan);
  return *plan;
}

struct Bench {
  FakeClock clock;
  FakeMachine machine{clock};
  SweepHooks hooks;

  Sweep run(const Plan& plan) { return run(plan, hooks); }
  Sweep run(const Plan& plan, SweepHooks& with) {
    auto sweep = run_sweep(machine, plan, with, {.journal_file = "", .resume = false, .clock = &clock});
    EXPECT_TRUE(sweep);
    return *sweep;
  }
};

const LeftOut* left_out(const Sweep& sweep, const std::string& name, const std::string& reason, std::size_t bytes) {
  for (const LeftOut& entry : sweep.left_out) {
    if (entry.candidate.name == name && entry.reason == reason && entry.shape.bytes == bytes) return &entry;
  }
  return nullptr;
}

bool has_row(const Sweep& sweep, const std::string& name, std::size_t bytes) {
  return std::any_of(sweep.rows.begin(), sweep.rows.end(),
                     [&](const SweepRow& row) { return row.candidate.name == name && row.shape.bytes == bytes; });
}

TEST(Sweep, FindsTheKnownWinnerAtEverySize) {
  Bench bench;
  bench.machine.noise = 0.01;
  const Plan plan = plan_of({"1K", "64K", "512K", "4M"});
  const Sweep sweep = bench.run(plan);
  EXPECT_TRUE(sweep.complete);
  const std::vector<Block> blocks = blocks_of(sweep);
  ASSERT_EQ(blocks.size(), 1u);
  for (const Shape& shape : plan.shapes) {
    double least = 1e9;
    for (const Offer& offer : bench.machine.candidates(shape)) {
      if (offer.unavailable.empty()) least = std::min(least, FakeMachine::default_us(offer.candidate, shape));
    }
    const SweepRow* winner = blocks[0].winner(shape.bytes);
    ASSERT_NE(winner, nullptr);
    EXPECT_LE(FakeMachine::default_us(winner->candidate, shape), least * 1.02) << winner->candidate.label();
    EXPECT_NEAR(winner->median_us, least, least * 0.03);
    EXPECT_LE(winner->ci_low_us, winner->median_us);
    EXPECT_GE(winner->ci_high_us, winner->median_us);
    EXPECT_GE(winner->n, 9);
  }
  // Four shapes of at most 16 geometries; twenty full rounds of everything would be some 1300.
  EXPECT_LE(bench.machine.count(Step::time), 500);
}

TEST(Sweep, VerifiesBeforeTimingAndOnceMoreAfter) {
  Bench bench;
  bench.run(plan_of({"64K"}));
  std::set<Candidate> verified, timed, verified_after;
  for (const auto& request : bench.machine.log) {
    if (request.step == Step::time) {
      EXPECT_TRUE(verified.contains(request.candidate)) << request.candidate.label();
      EXPECT_TRUE(verified_after.empty());
      timed.insert(request.candidate);
    } else if (!timed.empty()) {
      verified_after.insert(request.candidate);
    } else {
      verified.insert(request.candidate);
    }
  }
  std::set<std::string> names;
  for (const auto& candidate : verified_after) names.insert(candidate.name);
  // The best geometry of every candidate.
  EXPECT_EQ(names.size(), static_cast<std::size_t>(std::count_if(menu().begin(), menu().end(), [](const CandidateInfo& info) {
              return FakeMachine::has(info);
            })));
}

TEST(Sweep, EveryCandidateKeepsOneGeometryAndLosersAreNamed) {
  Bench bench;
  const Sweep sweep = bench.run(plan_of({"64K"}));
  for (const CandidateInfo& info : menu()) {
    if (!FakeMachine::has(info)) continue;
    int full = 0;
    for (const SweepRow& row : sweep.rows) full += row.candidate.name == info.name && row.n >= 9;
    EXPECT_GE(full, 1) << info.name;
  }
  const LeftOut* slow = left_out(sweep, "nccl", "pruned", 64 << 10);
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->candidate.geometry.max_ctas, 32);
  EXPECT_THAT(slow->detail, HasSubstr("times "));
  EXPECT_THAT(slow->detail, HasSubstr("went on as nccl ctas=8"));
  // A pruned geometry was measured all the same: its few samples are a row.
  const auto row = std::find_if(sweep.rows.begin(), sweep.rows.end(), [](const SweepRow& r) { return r.candidate.geometry.max_ctas == 32; });
  ASSERT_NE(row, sweep.rows.end());
  EXPECT_EQ(row->n, 3);
}

TEST(Sweep, RowsAddUp) {
  Bench bench;
  bench.machine.noise = 0;
  const Sweep sweep = bench.run(plan_of({"1M"}, {"graph"}, {"nccl"}));
  ASSERT_FALSE(sweep.rows.empty());
  const SweepRow& row = sweep.rows[0];
  EXPECT_TRUE(row.verified);
  EXPECT_EQ(row.numerics, Numerics::nccl);
  EXPECT_EQ(row.n, static_cast<int>(row.samples_us.size()));
  EXPECT_DOUBLE_EQ(row.median_us, 11.0);   // 5 + 6 µs per MiB: the slowest rank's, not the 10 % faster ones'
  EXPECT_NEAR(row.algbw_gb_per_s, 1048576.0 / 11.0 / 1000.0, 1e-9);
  EXPECT_DOUBLE_EQ(row.busbw_gb_per_s, row.algbw_gb_per_s);  // 2 (n-1)/n = 1 for two ranks
  ASSERT_TRUE(row.isolated_us && row.host_us);
  EXPECT_DOUBLE_EQ(*row.isolated_us, 17.0);
  EXPECT_DOUBLE_EQ(*row.host_us, 1.5);
  EXPECT_FALSE(row.limit_us);
  EXPECT_EQ(sweep.header.kind, "ar-tune/sweep");
  EXPECT_EQ(sweep.verdicts.size(), 2u);
}

/// The labels of each round of one shape: time requests after screening, cut where a label comes the third time.
std::vector<std::vector<std::string>> rounds_of(const std::vector<FakeMachine::Request>& log, std::size_t screened) {
  std::vector<std::string> timed;
  for (const auto& request : log) {
    if (request.step == Step::time) timed.push_back(request.candidate.label());
  }
  timed.erase(timed.begin(), timed.begin() + static_cast<std::ptrdiff_t>(screened));
  std::vector<std::vector<std::string>> rounds(1);
  for (const auto& label : timed) {
    const auto allowed = label.starts_with("nccl") ? 2 : 1;  // the incumbent plays under two names
    if (std::count(rounds.back().begin(), rounds.back().end(), label) == allowed) rounds.emplace_back();
    rounds.back().push_back(label);
  }
  return rounds;
}

TEST(Sweep, RoundsAreShuffledAndTheIncumbentPlaysTwice) {
  Bench bench;
  bench.machine.noise = 0.05;
  const Sweep sweep = bench.run(plan_of({"4K"}));
  const std::size_t screened = sweep.rows.size();
  const auto rounds = rounds_of(bench.machine.log, screened);
  ASSERT_GE(rounds.size(), 4u);
  std::set<std::vector<std::string>> orders(rounds.begin(), rounds.begin() + 3);
  EXPECT_EQ(orders.size(), 3u) << "three rounds in one order aren't shuffled";
  for (int round = 0; round < 3; ++round) {
    const auto& labels = rounds[static_cast<std::size_t>(round)];
    EXPECT_EQ(std::count_if(labels.begin(), labels.end(), [](const auto& label) { return label.starts_with("nccl"); }), 2);
  }
  // The same seed gives the same order, another seed another one.
  Bench again, other;
  again.machine.noise = other.machine.noise = 0.05;
  again.run(plan_of({"4K"}));
  Plan plan = plan_of({"4K"});
  plan.seed = 2;
  other.run(plan);
  EXPECT_EQ(rounds_of(again.machine.log, screened), rounds);
  EXPECT_NE(rounds_of(other.machine.log, screened), rounds);
}

TEST(Sweep, DriftDoesNotFavourWhoIsTimedFirst) {
  Bench bench;
  bench.machine.noise = 0.003;
  bench.machine.drift_per_s = 0.2;  // everything gets 20 % slower per second: block-wise timing would misjudge 2 %
  bench.machine.us = [](const Candidate& candidate, const Shape&) {
    return candidate.name == "ce/push" ? 10.0 : candidate.name == "p2p/one-shot/flag" ? 10.3 : 40.0;
  };
  const Sweep sweep = bench.run(plan_of({"1M"}, {"graph"}, {"p2p", "ce"}));
  EXPECT_EQ(blocks_of(sweep)[0].winner(1 << 20)->candidate.name, "ce/push");
}

TEST(Sweep, NoiseFloorIsHowFarTheIncumbentLiesFromItself) {
  Bench quiet, loud;
  quiet.machine.noise = 0;
  loud.machine.noise = 0.2;
  EXPECT_DOUBLE_EQ(quiet.run(plan_of({"1K", "64K"})).noise_floor_percent, 0);
  const double floor = loud.run(plan_of({"1K", "64K"})).noise_floor_percent;
  EXPECT_GT(floor, 0.1);
  EXPECT_LT(floor, 20);
}

TEST(Sweep, WithoutNcclTheBestIsTheIncumbent) {
  Bench bench;
  bench.machine.noise = 0.05;
  bench.machine.unavailable["nccl"] = "no libnccl.so.2 found";
  const Sweep sweep = bench.run(plan_of({"1K", "4K"}));
  EXPECT_GT(sweep.noise_floor_percent, 0);
  const LeftOut* entry = left_out(sweep, "nccl", "unavailable", 0);  // once, not once a size
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->detail, "no libnccl.so.2 found");
  EXPECT_EQ(std::count_if(sweep.left_out.begin(), sweep.left_out.end(), [](const LeftOut& e) { return e.candidate.name == "nccl"; }), 1);
}

TEST(Sweep, AReasonOfSomeSizesDoesNotHideTheRowsOfOthers) {
  Bench bench;
  Plan plan = plan_of({"64K", "512K", "1M"});
  plan.filter.globs.clear();
  const Sweep sweep = bench.run(plan);
  EXPECT_TRUE(has_row(sweep, "host/one-shot/ll", 64 << 10));
  const Block block = blocks_of(sweep)[0];
  EXPECT_EQ(block.why_not("host/one-shot/ll", 1 << 20)->detail, "can win up to 256K only; name it with --candidate to have it timed");
}

TEST(Sweep, AHangIsARowWithItsReasonAndIsNotRiskedAgain) {
  Bench bench;
  bench.machine.faults = {{"p2p/one-shot/ll", 4096, Step::verify, OutcomeKind::hang, 1}};
  const Sweep sweep = bench.run(plan_of({"1K", "4K", "16K", "64K"}, {"graph", "eager"}));
  EXPECT_TRUE(sweep.complete);
  EXPECT_TRUE(has_row(sweep, "p2p/one-shot/ll", 1024));
  EXPECT_FALSE(has_row(sweep, "p2p/one-shot/ll", 4096));
  EXPECT_FALSE(has_row(sweep, "p2p/one-shot/ll", 16384));
  EXPECT_TRUE(has_row(sweep, "ce/push", 65536));
  const LeftOut* hang = left_out(sweep, "p2p/one-shot/ll", "hang", 4096);
  ASSERT_NE(hang, nullptr);
  EXPECT_EQ(hang->detail, "verified before timing: put there by the test");
  const LeftOut* later = left_out(sweep, "p2p/one-shot/ll", "hang", 0);
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->detail, "not tried again after the hang at 4K bf16, 2 ranks, graph");
  int requests = 0;
  for (const auto& request : bench.machine.log) requests += request.candidate.name == "p2p/one-shot/ll" && request.shape.bytes >= 4096;
  EXPECT_EQ(requests, 1);
}

TEST(Sweep, ACrashWhileTimedTakesAllGeometriesOfTheCandidate) {
  Bench bench;
  bench.machine.faults = {{"p2p/one-shot/ll", 65536, Step::time, OutcomeKind::crash, 3}};
  const Sweep sweep = bench.run(plan_of({"64K", "128K"}));
  EXPECT_FALSE(has_row(sweep, "p2p/one-shot/ll", 65536));
  EXPECT_FALSE(has_row(sweep, "p2p/one-shot/ll", 131072));
  const LeftOut* crash = left_out(sweep, "p2p/one-shot/ll", "crash", 65536);
  ASSERT_NE(crash, nullptr);
  EXPECT_EQ(crash->detail, "while timed: put there by the test");
  EXPECT_TRUE(has_row(sweep, "nccl", 131072));
}

TEST(Sweep, AWrongSumAfterTimingTakesTheRowBack) {
  Bench bench;
  bench.machine.faults = {{"ce/push", 4096, Step::verify, OutcomeKind::wrong_sum, 2}};
  PlanWords words;
  words.sizes = {"4K", "8K"};
  words.modes = {"graph"};
  words.dtypes = {"bf16", "f32"};
  words.candidates = {"*"};
  const Sweep sweep = bench.run(*make_plan(words, {}));
  const LeftOut* wrong = left_out(sweep, "ce/push", "wrong-sum", 4096);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->detail, "verified after timing: put there by the test");
  // Done for bf16; f32 is another kernel, has its own verification (and fails it here too, at the same size).
  const auto f32_tried = std::count_if(bench.machine.log.begin(), bench.machine.log.end(), [](const auto& request) {
    return request.candidate.name == "ce/push" && request.shape.dtype == DType::f32;
  });
  EXPECT_GT(f32_tried, 0);
  EXPECT_FALSE(has_row(sweep, "ce/push", 4096));
  EXPECT_FALSE(has_row(sweep, "ce/push", 8192));
}

TEST(Sweep, AnErrorAtOneSizeLeavesTheOthersAlone) {
  Bench bench;
  bench.machine.faults = {{"ce/push", 4096, Step::time, OutcomeKind::error, 1}};
  const Sweep sweep = bench.run(plan_of({"4K", "8K"}));
  EXPECT_FALSE(has_row(sweep, "ce/push", 4096));
  EXPECT_TRUE(has_row(sweep, "ce/push", 8192));
  EXPECT_NE(left_out(sweep, "ce/push", "error", 4096), nullptr);
}

TEST(Sweep, EverythingUnavailableIsAnErrorWithReasons) {
  Bench bench;
  for (const CandidateInfo& info : menu()) bench.machine.unavailable[std::string(info.name)] = "no such luck";
  const Sweep sweep = bench.run(plan_of({"4K"}));
  const Status any = anything_measured(sweep);
  ASSERT_FALSE(any);
  EXPECT_EQ(any.error().reason, Reason::no_candidate);
  EXPECT_THAT(any.error().message, HasSubstr("nccl: unavailable, no such luck"));
}

struct InterruptAfter final : SweepHooks {
  explicit InterruptAfter(int polls) : left(polls) {}
  bool interrupted() override { return --left < 0; }
  void progress(const Progress& progress) override { seen.push_back(progress); }
  int left;
  std::vector<Progress> seen;
};

TEST(Sweep, AnInterruptKeepsWhatWasMeasured) {
  // Anywhere: in the first verification, in screening, in rounds, in a later shape.
  for (const int polls : {0, 1, 5, 20, 40, 60, 100, 150}) {
    Bench bench;
    InterruptAfter hooks(polls);
    const Plan plan = plan_of({"1K", "4K", "16K"});
    const Sweep sweep = bench.run(plan, hooks);
    EXPECT_FALSE(sweep.complete) << polls;
    EXPECT_LE(static_cast<int>(bench.machine.log.size()), polls);
    // Every candidate is accounted for at every size, by a row or by a reason.
    const std::vector<Block> blocks = blocks_of(sweep);
    ASSERT_EQ(blocks.size(), 1u);
    for (const CandidateInfo& info : menu()) {
      if (!FakeMachine::has(info)) continue;
      for (const Shape& shape : plan.shapes) {
        EXPECT_TRUE(blocks[0].best(info.name, shape.bytes) != nullptr || blocks[0].why_not(info.name, shape.bytes) != nullptr)
            << polls << " " << info.name << " " << shape.bytes;
      }
    }
    EXPECT_TRUE(anything_measured(sweep));
  }
  Bench bench;
  InterruptAfter hooks(200);
  EXPECT_GT(bench.run(plan_of({"1K", "4K", "16K"}), hooks).rows.size(), 14u);
}

TEST(Sweep, ProgressCountsShapesAndSaysWhatItDoes) {
  Bench bench;
  InterruptAfter hooks(1 << 30);
  bench.run(plan_of({"1K", "4K"}), hooks);
  ASSERT_FALSE(hooks.seen.empty());
  EXPECT_EQ(hooks.seen.front().text, "1K bf16, 2 ranks, graph: verify nccl ctas=8");
  EXPECT_EQ(hooks.seen.front().done, 0u);
  EXPECT_EQ(hooks.seen.back().done, 1u);
  EXPECT_EQ(hooks.seen.back().total, 2u);
  for (const Progress& progress : hooks.seen) EXPECT_GE(progress.left_s, 0);
}

// The main job: 17 sizes, 2 dtypes, 2 modes, seven candidates, requests of 4 to 15 ms, NCCL slow to start.
Plan main_job(const char* budget) {
  PlanWords words;
  words.min = "256";
  words.max = "16M";
  words.dtypes = {"bf16", "f32"};
  words.budget = budget;
  return *make_plan(words, {});
}

TEST(Budget, TheMainJobEndsInTimeWithRoundsEverywhere) {
  Bench bench;
  bench.machine.noise = 0.03;
  bench.machine.first_use_s = 0.8;
  const double start_s = bench.clock.now_s();
  const Sweep sweep = bench.run(main_job("50s"));
  EXPECT_LE(bench.clock.now_s() - start_s, 50 * 1.02);
  EXPECT_TRUE(sweep.complete);
  for (const Block& block : blocks_of(sweep)) {
    for (const std::size_t bytes : block.sizes) EXPECT_GE(block.winner(bytes)->n, 9) << block_title(block) << " " << bytes;
  }
}

TEST(Budget, ATightBudgetStillTriesEveryCandidateAtEverySize) {
  Bench bench;
  bench.machine.noise = 0.03;
  const double start_s = bench.clock.now_s();
  const Sweep sweep = bench.run(main_job("5s"));  // a full screening of all shapes alone takes longer
  EXPECT_LE(bench.clock.now_s() - start_s, 5 * 1.15);
  EXPECT_FALSE(sweep.complete);
  for (const Block& block : blocks_of(sweep)) {
    for (const std::size_t bytes : block.sizes) {
      EXPECT_NE(block.best("nccl", bytes), nullptr) << block_title(block) << " " << bytes;
      EXPECT_NE(block.best(bytes < 16384 ? "p2p/one-shot/ll" : "ce/push", bytes), nullptr) << block_title(block) << " " << bytes;
    }
  }
  EXPECT_TRUE(std::any_of(sweep.left_out.begin(), sweep.left_out.end(),
                          [](const LeftOut& entry) { return entry.reason == "not-reached" && entry.detail.starts_with("further geometries"); }));
}

TEST(Budget, WhatItDoesNotReachIsListed) {
  Bench bench;
  const double start_s = bench.clock.now_s();
  const Sweep sweep = bench.run(main_job("500ms"));
  EXPECT_LE(bench.clock.now_s() - start_s, 0.7);
  EXPECT_FALSE(sweep.complete);
  const LeftOut* entry = left_out(sweep, "ce/push", "not-reached", 0);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->detail, "the budget was spent");
}

TEST(Budget, AHangCostsItsDeadlineAndNotTheSweep) {
  Bench bench;
  bench.machine.faults = {{"host/one-shot/ll", 4096, Step::verify, OutcomeKind::hang, 1}};
  const double start_s = bench.clock.now_s();
  const Sweep sweep = bench.run(main_job("50s"));
  EXPECT_LE(bench.clock.now_s() - start_s, 50 * 1.02);
  for (const Block& block : blocks_of(sweep)) {
    for (const std::size_t bytes : block.sizes) EXPECT_GE(block.winner(bytes)->n, 9) << block_title(block) << " " << bytes;
  }
}

}  // namespace
}  // namespace artune
