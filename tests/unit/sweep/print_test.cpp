// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The text that people see, word by word: golden/*.txt. To take over an intended change:
// ARTUNE_UPDATE_GOLDEN=1 unit_sweep_print, then read the diff.
#include "sweep/print.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "fake_machine.hpp"
#include "sweep/engine.hpp"
#include "sweep/view.hpp"

namespace artune {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(ARTUNE_SOURCE_DIR) + "/tests/unit/sweep/golden/" + name + ".txt";
  if (std::getenv("ARTUNE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, expected.str()) << "golden file " << path;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // Code points, not bytes: continuation bytes of µ take no column.
    widest = std::max(widest, static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; })));
  }
  return widest;
}

SweepRow row(const std::string& name, std::size_t bytes, double us, int n = 15) {
  SweepRow result;
  result.candidate.name = name;
  result.shape.bytes = bytes;
  result.batch = 50;
  result.verified = true;
  result.n = n;
  result.median_us = us;
  result.ci_low_us = us * 0.99;
  result.ci_high_us = us * 1.01;
  return result;
}

/// Figures of the right order, made from lines: no measurement.
Sweep made_sweep() {
  Sweep sweep;
  sweep.header = FakeMachine::default_header();
  sweep.noise_floor_percent = 0.84;
  for (const std::size_t bytes : {std::size_t{256}, std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{16} << 20}) {
    for (const CandidateInfo& info : menu()) {
      if (!FakeMachine::has(info)) continue;
      if (info.worth_up_to_bytes > 0 && bytes > info.worth_up_to_bytes) {
        Shape shape;
        shape.bytes = bytes;
        sweep.left_out.push_back({{std::string(info.name), {}}, shape, "unavailable", "not worth trying above its limit"});
        continue;
      }
      if (info.name == "host/copy-engine") continue;
      Shape shape;
      shape.bytes = bytes;
      sweep.rows.push_back(row(std::string(info.name), bytes, FakeMachine::default_us({std::string(info.name), {}}, shape)));
    }
  }
  Shape everywhere;
  sweep.left_out.push_back({{"host/copy-engine", {}}, everywhere, "crash", "not tried again after the crash at 256 bf16, 2 ranks, graph"});
  return sweep;
}

TEST(SweepTable, ReadsAsAgreed) {
  const std::string text = sweep_table(made_sweep());
  expect_golden("table", text);
  EXPECT_LE(widest_line(text), 120u);
}

TEST(SweepTable, SaysPlainlyWhatTheFiguresAre) {
  Sweep sweep = made_sweep();
  sweep.header.simulated = true;
  EXPECT_NE(sweep_table(sweep).find("\nSIMULATED: every figure below comes from a model"), std::string::npos);
  sweep.header.simulated = false;
  sweep.header.shared_gpu = true;
  sweep.header.world = World{.devices = {0}, .ranks_per_gpu = 2, .launch = Launch::one_thread};
  sweep.complete = false;
  for (SweepRow& each : sweep.rows) each.verified = each.candidate.name != "nccl";
  expect_golden("table_shared_gpu_incomplete", sweep_table(sweep));
}

TEST(SweepTable, MarksTheWinnerWithAndWithoutColour) {
  const Sweep sweep = made_sweep();
  const std::string plain = sweep_table(sweep);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(plain.find("1.70*"), std::string::npos);
  const std::string coloured = sweep_table(sweep, {.colour = true});
  EXPECT_NE(coloured.find("\x1b[1;32m1.70*\x1b[0m"), std::string::npos);
}

TEST(SweepTable, EightLongNamesWithLimitsFit) {
  Sweep sweep;
  sweep.header = FakeMachine::default_header();
  for (const char* name : {"nccl", "p2p/one-shot/ll", "p2p/one-shot/flag", "p2p/two-shot/flag", "host/one-shot/ll", "host/one-shot/flag",
                           "host/copy-engine", "ce/push"}) {
    // NCCL is the slowest here: it must be shown all the same.
    sweep.rows.push_back(row(name, std::size_t{1} << 30, std::string(name) == "nccl" ? 999999.0 : 123456.0));
    sweep.rows.back().limit_us = 1000.0;
  }
  EXPECT_LE(widest_line(sweep_table(sweep)), 120u);
  EXPECT_EQ(sweep_table(sweep).find("A p2p"), std::string::npos);
  // A narrow terminal gets fewer columns, NCCL always, and the names of the others.
  const std::string narrow = sweep_table(sweep, {.colour = false, .columns = 80});
  EXPECT_LE(widest_line(narrow), 80u);
  EXPECT_NE(narrow.find(" 999999 "), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("no room for"), std::string::npos);
  EXPECT_NE(narrow.find("    ce/push, at best 1.00 times the fastest\n"), std::string::npos);
}

TEST(SweepTable, APrunedGeometryIsNeverInTheCell) {
  Sweep sweep;
  sweep.header = FakeMachine::default_header();
  sweep.rows = {row("nccl", 1024, 5.0), row("nccl", 1024, 4.0, 3)};
  sweep.rows[0].candidate.geometry.max_ctas = 8;
  sweep.rows[1].candidate.geometry.max_ctas = 32;  // looks better on three samples
  sweep.left_out = {{sweep.rows[1].candidate, sweep.rows[1].shape, "pruned", "slow"}};
  EXPECT_EQ(blocks_of(sweep)[0].best("nccl", 1024)->candidate.geometry.max_ctas, 8);
}

TEST(SweepTable, TunedIsShownAndDoesNotCompete) {
  Sweep sweep = made_sweep();
  sweep.rows.push_back(row("tuned", 256, 0.5));
  const Block block = blocks_of(sweep)[0];
  EXPECT_EQ(block.winner(256)->candidate.name, "p2p/one-shot/ll");
  EXPECT_NE(sweep_table(sweep).find(" 0.50\n"), std::string::npos);
}

TEST(UsText, ThreeDigitsWhereTheyMeanSomething) {
  EXPECT_EQ(us_text(1.714), "1.71");
  EXPECT_EQ(us_text(9.996), "10.0");
  EXPECT_EQ(us_text(12.34), "12.3");
  EXPECT_EQ(us_text(99.96), "100");
  EXPECT_EQ(us_text(1926.2), "1926");
}

TEST(ClosingLines, SayWhatWorksAndWhatWins) {
  Sweep sweep = made_sweep();
  FakeClock clock;
  FakeMachine machine(clock);
  sweep.verdicts = machine.verdicts();
  const std::string text = closing_lines(sweep, "ar-tune tune");
  expect_golden("closing", text);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
}

TEST(ClosingLines, OfARig) {
  Sweep sweep = made_sweep();
  sweep.header.simulated = true;
  for (SweepRow& each : sweep.rows) each.verified = each.candidate.name != "nccl";
  sweep.verdicts = {{.from = 0, .to = 1, .path = Path::p2p, .verdict = "unavailable", .reason = "no BAR1 for it", .one_way_us = 0}};
  expect_golden("closing_rig", closing_lines(sweep, "ar-tune export --rig x"));
}

TEST(ClosingLines, NameEveryWinnerThoughNoneWasTriedAtAllSizes) {
  Sweep sweep;
  sweep.header = FakeMachine::default_header();
  for (const std::size_t bytes : {std::size_t{256}, std::size_t{16} << 10, std::size_t{64} << 10}) sweep.rows.push_back(row("nccl", bytes, 8.0));
  sweep.rows.push_back(row("p2p/one-shot/ll", 256, 2.0));
  sweep.rows.push_back(row("p2p/one-shot/sentinel", 16 << 10, 3.0));
  sweep.rows.push_back(row("p2p/one-shot/sentinel", 64 << 10, 4.0));
  EXPECT_NE(closing_lines(sweep).find("Decode, up to 64K: p2p/one-shot/sentinel at 2, p2p/one-shot/ll at 1 of 3 sizes, 2.00 to 4.00 µs "
                                      "(bf16, 2 ranks, graph); typically 5.00 µs (62 %) under NCCL's best."),
            std::string::npos)
      << closing_lines(sweep);
}

TEST(ClosingLines, WithoutNcclOrWithNothingOrWithNcclOnTop) {
  Sweep sweep = made_sweep();
  std::erase_if(sweep.rows, [](const SweepRow& each) { return each.candidate.name == "nccl"; });
  EXPECT_NE(closing_lines(sweep).find("no NCCL to compare with"), std::string::npos);
  sweep.rows.clear();
  EXPECT_EQ(closing_lines(sweep).find("Nothing could be measured."), 0u);
  Sweep only;
  only.header = FakeMachine::default_header();
  only.rows = {row("nccl", 1024, 5.0), row("ce/push", 1024, 6.0)};
  EXPECT_NE(closing_lines(only).find("nccl, 5.00 µs, fastest at the one size (bf16, 2 ranks, graph); nothing beats it."), std::string::npos);
}

}  // namespace
}  // namespace artune
