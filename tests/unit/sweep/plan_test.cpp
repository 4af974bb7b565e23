// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace artune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::size_t> bytes_of(const Plan& plan) {
  std::vector<std::size_t> bytes;
  for (const Shape& shape : plan.shapes) bytes.push_back(shape.bytes);
  return bytes;
}

Plan planned(const PlanWords& words, const PlanWorld& world = {}) {
  auto plan = make_plan(words, world);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : Plan{};
}

std::string refusal(const PlanWords& words, const PlanWorld& world = {}) {
  const auto plan = make_plan(words, world);
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().reason, Reason::usage);
  return plan.error().message;
}

TEST(Plan, DefaultsAre1KTo64MByTwoInBf16AndBothModes) {
  const Plan plan = planned({}, {.ranks = 4});
  ASSERT_EQ(plan.shapes.size(), 17u * 2);
  EXPECT_EQ(plan.shapes.front().bytes, 1024u);
  EXPECT_EQ(plan.shapes.back().bytes, 64u << 20);
  EXPECT_EQ(plan.shapes[0].mode, Mode::graph);
  EXPECT_EQ(plan.shapes[1].mode, Mode::eager);
  EXPECT_EQ(plan.shapes[0].dtype, DType::bf16);
  EXPECT_EQ(plan.shapes[0].ranks, 4);
  EXPECT_DOUBLE_EQ(plan.budget_s, 50);
}

TEST(Plan, OverlapComesAfterIdleAtTheSizesGivenElseAtTwoLargeOnes) {
  PlanWords words;
  words.modes = {"graph"};
  words.overlap = true;
  Plan plan = planned(words, {.ranks = 2});
  ASSERT_EQ(plan.shapes.size(), 17u + 2);
  EXPECT_EQ(plan.shapes[16].load, Load::idle);
  EXPECT_EQ(plan.shapes[17], (Shape{.bytes = std::size_t{1} << 20, .mode = Mode::graph, .load = Load::overlap}));
  EXPECT_EQ(plan.shapes[18].bytes, std::size_t{16} << 20);
  EXPECT_DOUBLE_EQ(plan.budget_s, 100);
  EXPECT_DOUBLE_EQ(plan.compute_us, 5000);
  words.sizes = {"64K"};
  words.compute_us = "20000";
  words.budget = "7s";
  plan = planned(words, {.ranks = 2});
  ASSERT_EQ(plan.shapes.size(), 2u);
  EXPECT_EQ(plan.shapes[1].bytes, std::size_t{64} << 10);
  EXPECT_DOUBLE_EQ(plan.budget_s, 7);
  EXPECT_DOUBLE_EQ(plan.compute_us, 20000);
}

TEST(Plan, ComputeUsNeedsOverlapAndASensibleNumber) {
  PlanWords words;
  words.compute_us = "5000";
  EXPECT_THAT(refusal(words), HasSubstr("--overlap"));
  words.overlap = true;
  for (const char* bad : {"199", "1000001", "5ms", "-1", ""}) {
    words.compute_us = bad;
    EXPECT_THAT(refusal(words), HasSubstr("from 200 to 1000000")) << bad;
  }
}

TEST(Plan, GoesByRanksThenDtypeThenBytesThenMode) {
  PlanWords words;
  words.sizes = {"2K", "1K"};
  words.dtypes = {"f32", "bf16"};
  words.ranks = {"4", "2"};
  const Plan plan = planned(words, {.ranks = 4});
  ASSERT_EQ(plan.shapes.size(), 2u * 2 * 2 * 2);
  EXPECT_EQ(plan.shapes.front(), (Shape{.dtype = DType::f32, .wire = DType::f32, .ranks = 2, .bytes = 1024, .mode = Mode::graph}));
  EXPECT_EQ(plan.shapes.back(), (Shape{.dtype = DType::bf16, .wire = DType::bf16, .ranks = 4, .bytes = 2048, .mode = Mode::eager}));
}

std::vector<std::pair<DType, DType>> elements(const Plan& plan) {
  std::vector<std::pair<DType, DType>> all;
  for (const Shape& shape : plan.shapes) all.emplace_back(shape.dtype, shape.wire);
  return all;
}

TEST(Plan, ALossyWireOnlyWhereAskedForAndOnlyForF32) {
  PlanWords words;
  words.sizes = {"1K"};
  words.modes = {"graph"};
  words.dtypes = {"f32", "bf16"};
  const std::pair f32{DType::f32, DType::f32}, bf16{DType::bf16, DType::bf16}, lossy{DType::f32, DType::bf16};
  EXPECT_THAT(elements(planned(words)), ElementsAre(f32, bf16));
  words.wires = {"bf16", "native"};
  EXPECT_THAT(elements(planned(words)), ElementsAre(f32, lossy, bf16)) << "exact ones first, however it was typed";
  EXPECT_THAT(planned(words).notes, ElementsAre("--wire bf16 is for f32; bf16 goes over the links as it is"));
  words.wires = {"bf16"};
  EXPECT_THAT(elements(planned(words)), ElementsAre(lossy, bf16));
  words.dtypes = {"f32"};
  EXPECT_THAT(elements(planned(words)), ElementsAre(lossy));
  EXPECT_TRUE(planned(words).notes.empty());
  words.decides = true;
  EXPECT_THAT(elements(planned(words)), ElementsAre(f32, lossy)) << "nothing to decide against otherwise";
  EXPECT_THAT(planned(words).notes, ElementsAre(HasSubstr("--wire native is measured too")));
  const Json identity = plan_identity(planned(words));
  words.wires = {};
  EXPECT_NE(plan_identity(planned(words)), identity) << "no journal goes on with other wires";
}

TEST(Plan, RefusesALossyWireWithoutF32) {
  PlanWords words;
  words.wires = {"native", "bf16"};
  EXPECT_EQ(refusal(words), "wire 'bf16': is for f32 only, and dtype is bf16; add f32 to --dtype, or leave out --wire");
  words.dtypes = {"f16", "bf16"};
  EXPECT_THAT(refusal(words), HasSubstr("dtype is f16, bf16"));
  words.wires = {"fp8"};
  EXPECT_EQ(refusal(words), "wire 'fp8': is none of native, bf16");
}

TEST(Plan, RoundsDownToWholeElements) {
  PlanWords words;
  words.sizes = {"1027", "1026", "7"};
  words.modes = {"graph"};
  words.dtypes = {"f32"};
  EXPECT_THAT(bytes_of(planned(words)), ElementsAre(4, 1024));  // 1027 and 1026 are the same four-byte elements
  words.dtypes = {"bf16"};
  EXPECT_THAT(bytes_of(planned(words)), ElementsAre(6, 1026));
}

TEST(Plan, FactorMayBeAFraction) {
  PlanWords words;
  words.min = "16";
  words.max = "64";
  words.factor = "1.5";
  words.modes = {"eager"};
  EXPECT_THAT(bytes_of(planned(words)), ElementsAre(16, 24, 36, 54));
}

TEST(Plan, HiddenTimesTokensTimesElement) {
  PlanWords words;
  words.hidden = "5120";
  words.tokens = {"1", "8"};
  words.modes = {"graph"};
  words.dtypes = {"bf16", "f32"};
  EXPECT_THAT(bytes_of(planned(words)), ElementsAre(10240, 81920, 20480, 163840));
}

TEST(Plan, RefusesSizesThatAreNone) {
  PlanWords words;
  words.sizes = {"64Q"};
  EXPECT_THAT(refusal(words), HasSubstr("size '64Q'"));
  words.sizes = {"1"};
  EXPECT_THAT(refusal(words), HasSubstr("size '1': is no whole element of bf16"));
  words.sizes = {};
  words.min = "2M";
  words.max = "1M";
  EXPECT_THAT(refusal(words), HasSubstr("min '2M': is above max '1M'"));
  words.min = "0";
  EXPECT_THAT(refusal(words), HasSubstr("min '0'"));
  words.min = "1";
  EXPECT_THAT(refusal(words), HasSubstr("min '1': is no whole element of bf16"));
}

TEST(Plan, RefusesFactorsThatNeverArrive) {
  for (const char* word : {"1", "0.5", "0", "-2", "two", "", "2x", "inf", "nan", "1e3"}) {
    PlanWords words;
    words.factor = word;
    EXPECT_THAT(refusal(words), HasSubstr(std::string("factor '") + word + "'")) << word;
  }
  PlanWords words;
  words.min = "1M";
  words.factor = "1.000001";
  EXPECT_THAT(refusal(words), HasSubstr("gives more than 512 sizes"));
}

TEST(Plan, RefusesTwoWaysToSaySizes) {
  PlanWords words;
  words.sizes = {"1K"};
  words.max = "2K";
  EXPECT_THAT(refusal(words), HasSubstr("two ways"));
  words = {};
  words.hidden = "5120";
  EXPECT_THAT(refusal(words), HasSubstr("also needs --tokens"));
  words = {};
  words.tokens = {"1"};
  EXPECT_THAT(refusal(words), HasSubstr("also needs --hidden"));
  words.hidden = "5120";
  words.tokens = {"0"};
  EXPECT_THAT(refusal(words), HasSubstr("tokens '0'"));
  words.tokens = {"1"};
  words.hidden = "5k";
  EXPECT_THAT(refusal(words), HasSubstr("hidden '5k'"));
}

TEST(Plan, NamesTheWordAndListsWhatThereIs) {
  PlanWords words;
  words.dtypes = {"fp8"};
  EXPECT_EQ(refusal(words), "dtype 'fp8': is none of f32, f16, bf16");
  words = {};
  words.modes = {"lazy"};
  EXPECT_EQ(refusal(words), "mode 'lazy': is none of graph, eager");
  words = {};
  words.ops = {"all_gather"};
  EXPECT_EQ(refusal(words), "op 'all_gather': is none of all_reduce");
  words = {};
  words.paths = {"pcie"};
  EXPECT_EQ(refusal(words), "path 'pcie': is none of nccl, host, p2p, ce, tuned");
  words = {};
  words.candidates = {"p2p/three-*"};
  EXPECT_THAT(refusal(words), HasSubstr("candidate 'p2p/three-*': matches none of nccl, p2p/one-shot/ll"));
  words.candidates = {"host/*"};
  words.paths = {"p2p"};
  EXPECT_THAT(refusal(words), HasSubstr("candidate 'host/*': matches none of p2p/one-shot/ll"));
  words = {};
  words.budget = "50";
  EXPECT_THAT(refusal(words), HasSubstr("duration '50'"));
  words.budget = "0s";
  EXPECT_THAT(refusal(words), HasSubstr("budget '0s'"));
}

TEST(Plan, RanksFitTheWorld) {
  PlanWords words;
  words.ranks = {"8"};
  EXPECT_THAT(refusal(words, {.ranks = 4}), HasSubstr("ranks '8': there are 4 ranks"));
  words.ranks = {"1"};
  EXPECT_THAT(refusal(words, {.ranks = 4}), HasSubstr("ranks '1'"));
  words.ranks = {"x"};
  EXPECT_THAT(refusal(words, {.ranks = 4}), HasSubstr("ranks 'x'"));
  EXPECT_THAT(refusal({}, {.ranks = 1}), HasSubstr("--ranks-per-gpu 2"));
}

TEST(Filter, GlobsAndPathsNarrow) {
  const auto filter = make_filter({"p2p", "nccl"}, {"*/ll", "nccl"});
  ASSERT_TRUE(filter);
  EXPECT_TRUE(filter->admits("p2p/one-shot/ll"));
  EXPECT_TRUE(filter->admits("nccl"));
  EXPECT_FALSE(filter->admits("p2p/one-shot/flag"));
  EXPECT_FALSE(filter->admits("host/one-shot/ll"));
  EXPECT_FALSE(filter->admits("tuned"));
  const auto tuned = make_filter({"tuned"}, {});
  ASSERT_TRUE(tuned);
  EXPECT_TRUE(tuned->admits("tuned"));
  EXPECT_FALSE(tuned->admits("nccl"));
  const auto one = make_filter({}, {"ce/pus?"});
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->admits("ce/push"));
}

TEST(Plan, IdentityIgnoresTheBudgetOnly) {
  PlanWords words;
  const Json before = plan_identity(planned(words));
  words.budget = "10s";
  EXPECT_EQ(plan_identity(planned(words)), before);
  words.seed = 2;
  EXPECT_NE(plan_identity(planned(words)), before);
  words.seed = 1;
  words.max = "32M";
  EXPECT_NE(plan_identity(planned(words)), before);
}

}  // namespace
}  // namespace artune
