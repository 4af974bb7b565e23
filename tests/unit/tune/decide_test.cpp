// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/decide.hpp"

#include <gmock/gmock.h>

#include "sweep_builder.hpp"

namespace artune {
namespace {

using test::SweepBuilder;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kKi = 1024;

std::vector<std::string> uses(const Profile& profile, std::size_t table = 0) {
  std::vector<std::string> names;
  for (const Range& range : profile.tables.at(table).ranges) names.push_back(range.use.name);
  return names;
}

const Rejected* rejection(const Profile& profile, const std::string& name, const std::string& reason) {
  for (const Rejected& row : profile.rejected) {
    if (row.candidate.name == name && row.reason == reason) return &row;
  }
  return nullptr;
}

/// The published times of seed 2: one-shot wins up to 512 K, NCCL from 1 M.
SweepBuilder published() {
  const std::vector<std::tuple<std::size_t, double, double>> times = {
      {1, 6.1, 13.5},   {4, 6.5, 13.2},    {8, 6.4, 13.9},    {16, 7.7, 14.7},   {32, 9.2, 15.6},
      {64, 11.8, 71.2}, {128, 17.6, 24.7}, {256, 28.7, 40.9}, {512, 51.0, 71.7}, {1024, 95.6, 85.2}};
  SweepBuilder builder;
  for (const auto& [size, one_shot, nccl] : times)
    builder.row("p2p/one-shot/flag", size * kKi, one_shot).row("nccl", size * kKi, nccl);
  return builder;
}

TEST(Decide, PublishedCrossover) {
  const Profile profile = decide(published().build(), {});
  ASSERT_THAT(profile.tables, SizeIs(1));
  const std::vector<Range>& ranges = profile.tables[0].ranges;
  ASSERT_THAT(uses(profile), ElementsAre("p2p/one-shot/flag", "nccl"));
  EXPECT_EQ(ranges[0].min_bytes, 1U);
  // The geometric mean of 512 Ki and 1 Mi, rounded up.
  EXPECT_EQ(ranges[0].max_bytes, 741456U);
  EXPECT_EQ(ranges[1].min_bytes, 741456U);
  EXPECT_EQ(ranges[1].max_bytes, std::nullopt);
  EXPECT_FALSE(ranges[0].extrapolated);
  EXPECT_TRUE(ranges[1].extrapolated);
  EXPECT_EQ(ranges[0].numerics, Numerics::rank_order_fp32);
  EXPECT_EQ(ranges[1].numerics, Numerics::nccl);
  // The evidence is that of 16 K: the middle of 1 K and 512 K on a log axis is 22.6 K; 16 K and 32 K are equally near,
  // the smaller counts.
  EXPECT_EQ(ranges[0].median_us, 7.7);
  EXPECT_EQ(ranges[0].nccl_us, 14.7);
  EXPECT_DOUBLE_EQ(*ranges[0].gain, 1.9091);
  EXPECT_EQ(ranges[1].gain, 1.0);
}

TEST(Decide, HeaderSaysWhatItIs) {
  Sweep sweep = published().build();
  sweep.header.simulated = true;
  sweep.verdicts.push_back({0, 1, Path::p2p, "usable", "", 0.8});
  const Profile profile = decide(sweep, {});
  EXPECT_EQ(profile.header.kind, "ar-tune/profile");
  EXPECT_TRUE(profile.header.simulated);
  EXPECT_EQ(profile.header.created, sweep.header.created);
  EXPECT_EQ(profile.fingerprint, "2x-test");
  ASSERT_THAT(profile.verdicts, SizeIs(1));
  EXPECT_EQ(profile.verdicts[0].verdict, "usable");
  TuneOptions options;
  options.created = "2027-01-01T00:00:00Z";
  EXPECT_EQ(decide(sweep, options).header.created, options.created);
}

TEST(Decide, WhatItWritesCanBeRead) {
  const Profile profile =
      decide(published().row("host/one-shot/ll", kKi, 12).left_out("ce/push", kKi, "hang", "rank 0 waits").build(), {});
  const std::string text = profile_to_text(profile);
  const Result<Json> json = parse_json(text, "p");
  const Result<Profile> read = profile_from_json(*json, "p");
  ASSERT_TRUE(static_cast<bool>(read)) << read.error().message;
  EXPECT_EQ(profile_to_text(*read), text);
}

TEST(Decide, ChallengerMustWinByTheMargin) {
  const auto winner = [](double challenger_us, double noise_percent, double margin) {
    TuneOptions options;
    options.margin = margin;
    return uses(
               decide(SweepBuilder().noise(noise_percent).row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, challenger_us).build(),
                      options))
        .at(0);
  };
  EXPECT_EQ(winner(9.85, 0, 0.02), "nccl");
  EXPECT_EQ(winner(9.75, 0, 0.02), "p2p/one-shot/ll");
  EXPECT_EQ(winner(9.75, 3, 0.02), "nccl");  // the noise floor is above the margin
  EXPECT_EQ(winner(9.6, 3, 0.02), "p2p/one-shot/ll");
  EXPECT_EQ(winner(9.75, 0, 0.03), "nccl");
  EXPECT_EQ(winner(10, 0, 0), "nccl");
}

TEST(Decide, WithoutNcclTheFastestWins) {
  EXPECT_THAT(uses(decide(SweepBuilder().row("host/one-shot/ll", kKi, 10).row("host/one-shot/flag", kKi, 9.99).build(), {})),
              ElementsAre("host/one-shot/flag"));
}

TEST(Decide, ExistingProfileIsTheIncumbent) {
  const Sweep before = SweepBuilder().row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 8).build();
  const Profile incumbent = decide(before, {});
  const Sweep now = SweepBuilder().row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 10.1).build();
  EXPECT_THAT(uses(decide(now, {})), ElementsAre("nccl"));
  EXPECT_THAT(uses(decide(now, {}, &incumbent)), ElementsAre("p2p/one-shot/ll"));
  const Sweep worse = SweepBuilder().row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 10.4).build();
  EXPECT_THAT(uses(decide(worse, {}, &incumbent)), ElementsAre("nccl"));
  Profile foreign = incumbent;
  foreign.fingerprint = "other";
  EXPECT_THAT(uses(decide(now, {}, &foreign)), ElementsAre("nccl"));
  Profile old = incumbent;
  old.table_abi = kTableAbi + 1;
  EXPECT_THAT(uses(decide(now, {}, &old)), ElementsAre("nccl"));
}

TEST(Decide, NoSwitchForLessThanTheMargin) {
  SweepBuilder builder;
  // LL ahead at both ends, flag by 1.5 % in the middle.
  builder.row("p2p/one-shot/ll", 1 * kKi, 5).row("p2p/one-shot/flag", 1 * kKi, 6);
  builder.row("p2p/one-shot/ll", 2 * kKi, 5).row("p2p/one-shot/flag", 2 * kKi, 4.925);
  builder.row("p2p/one-shot/ll", 4 * kKi, 5).row("p2p/one-shot/flag", 4 * kKi, 6);
  const Profile profile = decide(builder.build(), {});
  EXPECT_THAT(uses(profile), ElementsAre("p2p/one-shot/ll"));
  const Rejected* row = rejection(profile, "p2p/one-shot/flag", "margin");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->detail,
            "at best 4.925 us against 5 us of p2p/one-shot/ll 8x512 at 2K: not enough for margin, noise and switching");
}

TEST(Decide, AnAnomalyMakesAnIsland) {
  SweepBuilder builder;
  for (const std::size_t size : {1, 2, 4, 8, 16})
    builder.row("p2p/one-shot/ll", size * kKi, 12).row("nccl", size * kKi, size == 4 ? 70 : 10);
  EXPECT_THAT(uses(decide(builder.build(), {})), ElementsAre("nccl", "p2p/one-shot/ll", "nccl"));
}

TEST(Decide, GeometriesMergeWhenItCostsLittle) {
  const Geometry few{.blocks = 8, .threads = 512}, many{.blocks = 16, .threads = 512};
  SweepBuilder close;
  close.row("p2p/one-shot/ll", few, kKi, 5).row("p2p/one-shot/ll", many, kKi, 5.02);
  close.row("p2p/one-shot/ll", few, 2 * kKi, 5.02).row("p2p/one-shot/ll", many, 2 * kKi, 5);
  EXPECT_THAT(decide(close.build(), {}).tables.at(0).ranges, SizeIs(1));
  SweepBuilder apart;
  apart.row("p2p/one-shot/ll", few, kKi, 5).row("p2p/one-shot/ll", many, kKi, 5.5);
  apart.row("p2p/one-shot/ll", few, 2 * kKi, 5.5).row("p2p/one-shot/ll", many, 2 * kKi, 5);
  const Profile profile = decide(apart.build(), {});
  ASSERT_THAT(profile.tables.at(0).ranges, SizeIs(2));
  EXPECT_EQ(profile.tables[0].ranges[0].use.geometry, few);
  EXPECT_EQ(profile.tables[0].ranges[1].use.geometry, many);
}

// Geometries follow the size (more blocks for more bytes): that alone must not favour candidates that have only one.
TEST(Decide, GeometriesThatMustChangeCostNothing) {
  SweepBuilder builder;
  for (int i = 0; i < 6; ++i)
    builder.row("p2p/one-shot/ll", {.blocks = 1 << i, .threads = 512}, kKi << i, 9.7).row("nccl", kKi << i, 10);
  EXPECT_THAT(decide(builder.build(), {}).tables.at(0).ranges, SizeIs(6));
}

constexpr TableKey kExact{.dtype = DType::f32, .wire = DType::f32};
constexpr TableKey kLossy{.dtype = DType::f32, .wire = DType::bf16};

TEST(Decide, ALossyWireIsInItsOwnTableOnlyAndOnlyWhereItPays) {
  SweepBuilder builder;
  builder.shape(DType::f32, Mode::graph);
  for (const std::size_t size : {4, 64, 1024}) builder.row("nccl", size * kKi, 20).row("p2p/one-shot/flag", size * kKi, 10);
  // No faster, faster by less than the margin, faster.
  builder.bf16_wire(Mode::graph)
      .row("p2p/one-shot/flag", 4 * kKi, 10)
      .row("p2p/one-shot/flag", 64 * kKi, 9.9)
      .row("p2p/one-shot/flag", 1024 * kKi, 6)
      .left_out("nccl", 0, "unavailable", "can't send f32 as bf16 on the wire");
  const Profile profile = decide(builder.build(), {});
  ASSERT_THAT(profile.tables, SizeIs(2));
  const Table *exact = profile.find(kExact), *lossy = profile.find(kLossy);
  ASSERT_TRUE(exact != nullptr && lossy != nullptr);
  ASSERT_THAT(exact->ranges, SizeIs(1));
  EXPECT_EQ(exact->ranges[0].numerics, Numerics::rank_order_fp32);
  ASSERT_THAT(lossy->ranges, SizeIs(2));
  EXPECT_EQ(lossy->ranges[0].numerics, Numerics::rank_order_fp32);
  EXPECT_EQ(lossy->ranges[1].numerics, Numerics::wire_bf16_in);
  EXPECT_EQ(lossy->ranges[1].use.name, "p2p/one-shot/flag");
  EXPECT_EQ(lossy->ranges[1].nccl_us, 20);
  EXPECT_EQ(rejection(profile, "nccl", "unavailable")->key, kLossy);
  // What it says is what its reader takes.
  const Result<Profile> again = profile_from_json(profile_to_json(profile), "p");
  EXPECT_TRUE(again) << again.error().message;
}

// 1.7 % at 2K would save a switch, and a margin of 10 % leaves the exact one far behind the best: bits aren't given away
// for either.
TEST(Decide, ALossyWireMustPayAtEachSizeByItself) {
  SweepBuilder builder;
  builder.shape(DType::f32, Mode::graph);
  for (const std::size_t size : {1, 2, 4}) builder.row("nccl", size * kKi, 20).row("p2p/one-shot/ll", size * kKi, 10);
  builder.bf16_wire(Mode::graph)
      .row("p2p/one-shot/flag", kKi, 9)
      .row("p2p/one-shot/flag", 2 * kKi, 9.83)
      .row("p2p/one-shot/flag", 4 * kKi, 9);
  const Profile profile = decide(builder.build(), {});
  EXPECT_EQ(profile.find(kLossy)->lookup(kKi).numerics, Numerics::wire_bf16_in);
  EXPECT_EQ(profile.find(kLossy)->lookup(2 * kKi).numerics, Numerics::rank_order_fp32);
  EXPECT_EQ(profile.find(kLossy)->lookup(4 * kKi).numerics, Numerics::wire_bf16_in);
  TuneOptions wide;
  wide.margin = 0.15;
  for (const Range& range : decide(builder.build(), wide).find(kLossy)->ranges) EXPECT_EQ(range.use.name, "p2p/one-shot/ll");
}

TEST(Decide, ALossyWinnerStaysWhileItIsInUse) {
  SweepBuilder builder;
  builder.shape(DType::f32, Mode::graph).row("nccl", kKi, 20).row("p2p/one-shot/flag", kKi, 10);
  builder.bf16_wire(Mode::graph).row("p2p/two-shot/flag", kKi, 5);
  const Profile in_use = decide(builder.build(), {});
  ASSERT_EQ(in_use.find(kLossy)->ranges.at(0).numerics, Numerics::wire_bf16_in_out);
  SweepBuilder later;
  later.shape(DType::f32, Mode::graph).row("nccl", kKi, 20).row("p2p/two-shot/flag", kKi, 9.95);
  later.bf16_wire(Mode::graph).row("p2p/two-shot/flag", kKi, 10);
  EXPECT_EQ(decide(later.build(), {}, &in_use).find(kLossy)->ranges.at(0).numerics, Numerics::wire_bf16_in_out);
  EXPECT_EQ(decide(later.build(), {}).find(kLossy)->ranges.at(0).numerics, Numerics::rank_order_fp32);
}

TEST(Decide, UniformNumericsJudgesALossyWireByItself) {
  SweepBuilder builder;
  builder.shape(DType::f32, Mode::graph);
  for (const std::size_t size : {4, 64}) builder.row("nccl", size * kKi, 20).row("p2p/one-shot/flag", size * kKi, 10);
  builder.bf16_wire(Mode::graph).row("p2p/one-shot/flag", 4 * kKi, 6).row("p2p/two-shot/flag", 64 * kKi, 5);
  builder.row("p2p/one-shot/flag", 64 * kKi, 6);
  TuneOptions options;
  options.numerics = NumericsRule::uniform;
  const Profile profile = decide(builder.build(), options);
  for (const Range& range : profile.find(kExact)->ranges) EXPECT_EQ(range.numerics, Numerics::rank_order_fp32);
  for (const Range& range : profile.find(kLossy)->ranges) EXPECT_EQ(range.numerics, Numerics::wire_bf16_in);
}

TEST(Decide, LossySumsOfAnotherClassDontCount) {
  SweepBuilder builder;
  builder.bf16_wire(Mode::graph).row("p2p/one-shot/flag", kKi, 6).row("p2p/one-shot/ll", kKi, 8);
  builder.raw().rows[0].numerics = Numerics::rank_order_fp32;
  const Profile profile = decide(builder.build(), {});
  EXPECT_THAT(uses(profile), ElementsAre("p2p/one-shot/ll"));
  EXPECT_EQ(rejection(profile, "p2p/one-shot/flag", "numerics")->detail, "claims wire-bf16-in, its sums are other");
}

TEST(Decide, WrongSumsHangsAndCrashesAreTrustedNowhere) {
  for (const char* fault : {"wrong-sum", "hang", "crash"}) {
    SweepBuilder builder;
    builder.row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 5).row("p2p/one-shot/flag", kKi, 6);
    builder.shape(DType::f32, Mode::eager)
        .row("nccl", kKi, 10)
        .row("p2p/one-shot/ll", kKi, 5)
        .left_out("p2p/one-shot/ll", 2 * kKi, fault, "rank 1, element 517");
    const Profile profile = decide(builder.build(), {});
    ASSERT_THAT(profile.tables, SizeIs(2));
    EXPECT_EQ(profile.find({.dtype = DType::bf16})->ranges.at(0).use.name, "p2p/one-shot/flag");
    EXPECT_EQ(profile.find({.dtype = DType::f32, .wire = DType::f32, .mode = Mode::eager})->ranges.at(0).use.name, "nccl");
    EXPECT_THAT(profile.rejected, Contains(AllOf(Field(&Rejected::reason, fault), Field(&Rejected::bytes, 2 * kKi),
                                                 Field(&Rejected::detail, "rank 1, element 517"))));
    EXPECT_THAT(profile.rejected, Contains(AllOf(Field(&Rejected::key, TableKey{}),
                                                 Field(&Rejected::detail, HasSubstr(std::string("not trusted after a ") + fault +
                                                                                    " at 2K in all_reduce f32")))));
  }
}

TEST(Decide, OneSettingOfNcclFailsAlone) {
  SweepBuilder builder;
  builder.row("nccl", {.max_ctas = 8}, kKi, 5).row("nccl", {.max_ctas = 32}, kKi, 6).left_out("nccl", 2 * kKi, "hang", "");
  const Profile profile = decide(builder.build(), {});
  EXPECT_EQ(profile.tables.at(0).ranges.at(0).use.geometry.max_ctas, 32);
}

TEST(Decide, UnverifiedRowsCountOnlyInSimulation) {
  Sweep sweep = SweepBuilder().row("nccl", kKi, 5).row("p2p/one-shot/ll", kKi, 9).build();
  sweep.rows[0].verified = false;
  const Profile real = decide(sweep, {});
  EXPECT_THAT(uses(real), ElementsAre("p2p/one-shot/ll"));
  EXPECT_EQ(real.tables[0].ranges[0].nccl_us, std::nullopt);
  EXPECT_NE(rejection(real, "nccl", "unverified"), nullptr);
  sweep.header.simulated = true;
  EXPECT_THAT(uses(decide(sweep, {})), ElementsAre("nccl"));
}

TEST(Decide, AClassThatWasNotGrantedIsNotUsed) {
  Sweep sweep = SweepBuilder().row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 5).build();
  sweep.rows[1].numerics = Numerics::nccl;
  const Profile profile = decide(sweep, {});
  EXPECT_THAT(uses(profile), ElementsAre("nccl"));
  EXPECT_NE(rejection(profile, "p2p/one-shot/ll", "numerics"), nullptr);
  // Two ranks make NCCL's sum the rank-order sum; the profile still doesn't promise that.
  sweep = SweepBuilder().row("nccl", kKi, 4).row("p2p/one-shot/ll", kKi, 5).build();
  sweep.rows[0].numerics = Numerics::rank_order_fp32;
  EXPECT_EQ(decide(sweep, {}).tables.at(0).ranges.at(0).numerics, Numerics::nccl);
}

TEST(Decide, UniformNumericsKeepOneClass) {
  TuneOptions options;
  options.numerics = NumericsRule::uniform;
  const Profile profile = decide(published().build(), options);
  EXPECT_THAT(uses(profile), ElementsAre("p2p/one-shot/flag"));
  EXPECT_EQ(profile.tables[0].ranges[0].nccl_us, 15.6) << "NCCL is still the yardstick";
  ASSERT_NE(rejection(profile, "nccl", "numerics"), nullptr);
  EXPECT_THAT(rejection(profile, "nccl", "numerics")->detail, HasSubstr("85.2 us against 95.6 us"));

  // One class over all keys, even where another key alone would choose otherwise.
  SweepBuilder two;
  two.row("nccl", kKi, 10)
      .row("p2p/one-shot/ll", kKi, 11)
      .shape(DType::f32, Mode::graph)
      .row("nccl", kKi, 10)
      .row("p2p/one-shot/ll", kKi, 5);
  const Profile both = decide(two.build(), options);
  EXPECT_THAT(uses(both, 0), ElementsAre("p2p/one-shot/ll"));
  EXPECT_THAT(uses(both, 1), ElementsAre("p2p/one-shot/ll"));
}

TEST(Decide, BesideComputeTheLeastInTotalWins) {
  // NCCL is the fastest alone and beside, and takes a quarter of compute; the copy engine is slower and takes nothing.
  // The third leaves compute alone because it never gets going.
  constexpr std::size_t k1M = 1 << 20;
  const Profile profile = decide(test::SweepBuilder()
                                     .row("nccl", k1M, 100).row("host/copy-engine", k1M, 110).row("p2p/one-shot/flag", k1M, 105)
                                     .beside("nccl", k1M, 1250, 100, 100).beside("host/copy-engine", k1M, 1010, 110, 115)
                                     .beside("p2p/one-shot/flag", k1M, 1000, 105, 5000)
                                     .build(), {});
  const TableKey idle{.ranks = 2, .load = Load::idle}, overlap{.ranks = 2, .load = Load::overlap};
  ASSERT_EQ(profile.tables.size(), 2U);
  EXPECT_EQ(profile.find(idle)->lookup(k1M).use.name, "nccl");
  const Range& range = profile.find(overlap)->lookup(k1M);
  EXPECT_EQ(range.use.name, "host/copy-engine");
  // Ten reductions in 1000 µs are wanted: NCCL adds 200 µs; the copy engine 10, and does 8.78 meanwhile, the rest after.
  EXPECT_NEAR(*range.nccl_us, 120, 0.1);
  EXPECT_NEAR(*range.median_us, 100 * (1 + 0.01 + (10 - 1010 / 115.0) * 0.11), 0.1);
}

TEST(Decide, WarmRowsDecideWhereThereAreBoth) {
  SweepBuilder builder;
  builder.row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 5);
  builder.regime(Regime::cold).row("nccl", kKi, 10).row("p2p/one-shot/ll", kKi, 15);
  EXPECT_THAT(uses(decide(builder.build(), {})), ElementsAre("p2p/one-shot/ll"));
  TuneOptions cold;
  cold.regime = Regime::cold;
  EXPECT_THAT(uses(decide(builder.build(), cold)), ElementsAre("nccl"));
  EXPECT_THAT(uses(decide(SweepBuilder().regime(Regime::cold).row("nccl", kKi, 10).build(), {})), ElementsAre("nccl"));
}

TEST(Decide, LosersSayWhy) {
  const Profile profile = decide(published().row("host/one-shot/ll", kKi, 12.1).row("host/one-shot/ll", 4 * kKi, 14).build(), {});
  const Rejected* row = rejection(profile, "host/one-shot/ll", "slower");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->detail, "at best 12.1 us against 6.1 us of p2p/one-shot/flag 8x512 at 1K");
  EXPECT_EQ(rejection(profile, "nccl", "slower"), nullptr) << "in use";
}

TEST(Decide, LeftOutRowsAreGathered) {
  SweepBuilder builder = published();
  for (const std::size_t size : {512, 1024, 2048}) builder.left_out("host/one-shot/ll", size * kKi, "pruned", "above 256K");
  builder.left_out("ce/push", kKi, "unavailable", "no peer access");
  const Profile profile = decide(builder.build(), {});
  EXPECT_EQ(rejection(profile, "host/one-shot/ll", "pruned")->detail, "above 256K; 3 sizes, 512K to 2M");
  EXPECT_EQ(rejection(profile, "host/one-shot/ll", "pruned")->bytes, 0U);
  EXPECT_EQ(rejection(profile, "ce/push", "unavailable")->bytes, kKi);
}

TEST(Decide, NothingUsableGivesNoTable) {
  const Profile profile = decide(SweepBuilder().left_out("nccl", kKi, "unavailable", "no usable NCCL").build(), {});
  EXPECT_THAT(profile.tables, IsEmpty());
  EXPECT_THAT(profile.rejected, SizeIs(1));
}

TEST(Decide, RepeatedRowsCountOnce) {
  const Profile profile =
      decide(SweepBuilder().row("nccl", kKi, 10).row("nccl", kKi, 7).row("p2p/one-shot/ll", kKi, 8).build(), {});
  EXPECT_THAT(uses(profile), ElementsAre("p2p/one-shot/ll"));
  EXPECT_EQ(profile.tables[0].ranges[0].nccl_us, 10);
}

}  // namespace
}  // namespace artune
