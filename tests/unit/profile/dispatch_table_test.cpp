// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/dispatch_table.hpp"

#include <gmock/gmock.h>

#include <random>

#include "profile/profile.hpp"

namespace artune {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMi = std::size_t{1} << 20;

Range range(std::size_t from, std::optional<std::size_t> to, const std::string& name, Geometry geometry) {
  Range range;
  range.min_bytes = from;
  range.max_bytes = to;
  range.use = {name, geometry};
  range.numerics = find_candidate(name)->numerics;
  range.extrapolated = !to;
  return range;
}

/// bf16 and f32 graph tables for two ranks; everything else is untuned.
Profile two_rank_profile() {
  Profile profile;
  GpuFacts gpu;
  gpu.multiprocessors = 132;
  profile.header.machine.gpus = {gpu};
  profile.header.world = World{.devices = {0}, .ranks_per_gpu = 2};
  Table bf16{{.dtype = DType::bf16, .wire = DType::bf16}, {}, {}};
  bf16.ranges = {range(1, 1000, "p2p/one-shot/ll", {.blocks = 2, .threads = 512}), range(1000, 5000, "nccl", {.max_ctas = 8}),
                 range(5000, kMi, "p2p/one-shot/flag", {.blocks = 16, .threads = 512}), range(kMi, 4 * kMi, "ce/push", {}),
                 range(4 * kMi, std::nullopt, "nccl", {.max_ctas = 32})};
  Table f32{{.dtype = DType::f32, .wire = DType::f32}, {}, {}};
  f32.ranges = {range(1, std::nullopt, "host/copy-engine", {.chunk_bytes = 524288})};
  profile.tables = {bf16, f32};
  return profile;
}

DispatchTable table_with(const DispatchSwitches& switches = {}, int ranks = 2) {
  return DispatchTable::from_profile(two_rank_profile(), ranks, Launch::one_thread, Load::idle, switches);
}

CandidateId chosen(const DispatchTable& table, std::size_t bytes, DType dtype = DType::bf16, Mode mode = Mode::graph) {
  return table.choose(dtype, mode, bytes).candidate;
}

TEST(Dispatch, FollowsTheRanges) {
  const DispatchTable table = table_with();
  EXPECT_EQ(table.choose(DType::bf16, Mode::graph, 0),
            (Choice{CandidateId::p2p_one_shot_ll, {.blocks = 2, .threads = 512}, Numerics::rank_order_fp32, true}));
  EXPECT_EQ(chosen(table, 999), CandidateId::p2p_one_shot_ll);
  EXPECT_EQ(table.choose(DType::bf16, Mode::graph, 1000), (Choice{CandidateId::nccl, {.max_ctas = 8}, Numerics::nccl, true}));
  EXPECT_EQ(chosen(table, 5000), CandidateId::p2p_one_shot_flag);
  EXPECT_EQ(chosen(table, kMi - 1), CandidateId::p2p_one_shot_flag);
  EXPECT_EQ(chosen(table, kMi), CandidateId::ce_push);
  EXPECT_EQ(chosen(table, std::size_t{1} << 60), CandidateId::nccl);
  EXPECT_EQ(chosen(table, 17, DType::f32), CandidateId::host_copy_engine);
  EXPECT_TRUE(static_cast<bool>(table.usable()));
}

TEST(Dispatch, AgreesWithTheDocumentEverywhere) {
  const Profile profile = two_rank_profile();
  const DispatchTable table = table_with();
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::size_t bytes = random() >> (random() % 64);
    const DType dtype = i % 2 == 0 ? DType::bf16 : DType::f32;
    const Range& range = profile.find({.dtype = dtype, .wire = dtype})->lookup(bytes == static_cast<std::size_t>(-1) ? 1 : bytes);
    if (bytes == static_cast<std::size_t>(-1)) continue;
    const Choice choice = table.choose(dtype, Mode::graph, bytes);
    ASSERT_EQ(info_of(choice.candidate).name, range.use.name) << bytes;
    ASSERT_EQ(choice.geometry, range.use.geometry) << bytes;
  }
}

TEST(Dispatch, UntunedKeysGoToNccl) {
  const DispatchTable table = table_with();
  const Choice own_choice{CandidateId::nccl, {}, Numerics::nccl, false};
  EXPECT_EQ(table.choose(DType::f16, Mode::graph, 4096), own_choice);
  EXPECT_EQ(table.choose(DType::bf16, Mode::eager, 4096), own_choice);
  EXPECT_EQ(table_with({}, 4).choose(DType::bf16, Mode::graph, 4096), own_choice);
  const Profile profile = two_rank_profile();
  EXPECT_EQ(DispatchTable::from_profile(profile, 2, Launch::thread_per_rank, Load::idle, {}).choose(DType::bf16, Mode::graph, 1),
            own_choice);
  EXPECT_EQ(DispatchTable::from_profile(profile, 2, Launch::one_thread, Load::overlap, {}).choose(DType::bf16, Mode::graph, 1),
            own_choice);
}

TEST(Dispatch, ALossyWireOnlyForThoseWhoAllowIt) {
  Profile profile = two_rank_profile();
  Table lossy{{.dtype = DType::f32, .wire = DType::bf16}, {}, {}};
  lossy.ranges = {range(1, kMi, "p2p/one-shot/ll", {.blocks = 2, .threads = 512}),
                  range(kMi, std::nullopt, "p2p/two-shot/flag", {.blocks = 16, .threads = 512})};
  lossy.ranges[1].numerics = Numerics::wire_bf16_in_out;
  profile.tables.push_back(lossy);
  const auto table = [&](bool allowed, bool disabled = false) {
    DispatchSwitches switches = make_switches(disabled, std::nullopt);
    switches.bf16_wire = allowed;
    return DispatchTable::from_profile(profile, 2, Launch::one_thread, Load::idle, switches);
  };
  const DispatchTable exact = table(false), allowed = table(true);
  EXPECT_EQ(chosen(exact, kMi, DType::f32), CandidateId::host_copy_engine);
  EXPECT_EQ(allowed.choose(DType::f32, Mode::graph, kMi - 1).numerics, Numerics::rank_order_fp32) << "exact where the table is";
  const Choice large = allowed.choose(DType::f32, Mode::graph, kMi);
  EXPECT_EQ(large.candidate, CandidateId::p2p_two_shot_flag);
  EXPECT_TRUE(is_lossy(large.numerics));
  EXPECT_EQ(allowed.choose(DType::bf16, Mode::graph, kMi), exact.choose(DType::bf16, Mode::graph, kMi));
  EXPECT_FALSE(table(true, true).choose(DType::f32, Mode::graph, kMi).tuned) << "ARTUNE_DISABLE is above it";
  EXPECT_NE(allowed.digest(), exact.digest()) << "ranks that don't allow the same must notice";

  // The same bytes, candidate and geometry over another wire are another table.
  profile.tables.back().ranges[1].numerics = Numerics::rank_order_fp32;
  EXPECT_NE(table(true).digest(), allowed.digest());
  profile.tables.pop_back();
  EXPECT_EQ(table(true).digest(), exact.digest()) << "no table for the wire: the exact one serves";
}

TEST(Dispatch, DisabledMeansDefault) {
  const DispatchTable table = table_with(make_switches(true, std::nullopt));
  for (std::size_t bytes = 1; bytes < 64 * kMi; bytes *= 3) EXPECT_FALSE(table.choose(DType::bf16, Mode::graph, bytes).tuned);
  EXPECT_EQ(chosen(table, 10), CandidateId::nccl);
}

TEST(Dispatch, WithoutNcclHostBySize) {
  DispatchSwitches switches;
  switches.forbid(Path::nccl);
  const DispatchTable table = DispatchTable::untuned({.ranks = 2, .multiprocessors = 132}, switches);
  EXPECT_EQ(chosen(table, 1), CandidateId::host_one_shot_ll);
  EXPECT_EQ(chosen(table, 100 * 1024), CandidateId::host_one_shot_flag);
  EXPECT_EQ(chosen(table, 64 * kMi), CandidateId::host_copy_engine);
  EXPECT_GT(table.choose(DType::f32, Mode::eager, 4096).geometry.blocks, 0);
  EXPECT_TRUE(static_cast<bool>(table.usable()));
}

TEST(Dispatch, DemotedPathsFallBackOverTheirBytesOnly) {
  DispatchSwitches switches;
  switches.forbid(Path::p2p);
  const DispatchTable table = table_with(switches);
  // The setting of NCCL that was found best nearby, not tuned for these bytes.
  EXPECT_EQ(table.choose(DType::bf16, Mode::graph, 10), (Choice{CandidateId::nccl, {.max_ctas = 8}, Numerics::nccl, false}));
  EXPECT_EQ(table.choose(DType::bf16, Mode::graph, 2000), (Choice{CandidateId::nccl, {.max_ctas = 8}, Numerics::nccl, true}));
  EXPECT_EQ(table.choose(DType::bf16, Mode::graph, 6000).tuned, false);
  EXPECT_EQ(chosen(table, kMi), CandidateId::ce_push);

  switches.forbid(Path::nccl);
  const DispatchTable host = table_with(switches);
  EXPECT_EQ(chosen(host, 10), CandidateId::host_one_shot_ll);
  EXPECT_EQ(chosen(host, 2000), CandidateId::host_one_shot_ll);
  EXPECT_EQ(chosen(host, 900 * 1024), CandidateId::host_one_shot_flag);
  EXPECT_EQ(chosen(host, 2 * kMi), CandidateId::ce_push);
  EXPECT_EQ(chosen(host, 4 * kMi), CandidateId::host_copy_engine);
}

TEST(Dispatch, PathsSwitchIsObeyedAtEverySize) {
  for (const auto& allowed : WordTable<Path>::entries) {
    const DispatchTable table = table_with(make_switches(false, std::vector<Path>{allowed.value}));
    ASSERT_TRUE(static_cast<bool>(table.usable()));
    for (const auto& dtype : WordTable<DType>::entries) {
      for (std::size_t bytes = 1; bytes < std::size_t{1} << 34; bytes = bytes * 3 / 2 + 1) {
        EXPECT_EQ(info_of(chosen(table, bytes, dtype.value)).path, allowed.value) << bytes;
      }
    }
  }
}

TEST(Dispatch, SaysWhenNoPathIsLeft) {
  const DispatchTable none = table_with(make_switches(false, std::vector<Path>{}));
  ASSERT_FALSE(static_cast<bool>(none.usable()));
  EXPECT_EQ(none.usable().error().reason, Reason::unavailable);
  EXPECT_THAT(none.usable().error().message, HasSubstr("no path is left for 2 ranks: allowed are none"));

  // Only NCCL serves more than sixteen ranks.
  DispatchSwitches without_nccl;
  without_nccl.forbid(Path::nccl);
  EXPECT_FALSE(static_cast<bool>(DispatchTable::untuned({.ranks = 17, .multiprocessors = 132}, without_nccl).usable()));
  EXPECT_TRUE(static_cast<bool>(DispatchTable::untuned({.ranks = 17, .multiprocessors = 132}, {}).usable()));
}

TEST(Dispatch, TellsWhatToPrepare) {
  const DispatchTable table = table_with();
  EXPECT_EQ(table.max_bytes_for(CandidateId::p2p_one_shot_ll), 999U);
  EXPECT_EQ(table.max_bytes_for(CandidateId::p2p_one_shot_flag), kMi - 1);
  EXPECT_EQ(table.max_bytes_for(CandidateId::ce_push), 4 * kMi - 1);
  EXPECT_EQ(table.max_bytes_for(CandidateId::nccl), DispatchTable::kUnbounded);
  EXPECT_EQ(table.max_bytes_for(CandidateId::host_one_shot_ll), 0U);
  const std::vector<Use> uses = table.uses();
  EXPECT_THAT(uses, testing::Contains(Use{CandidateId::nccl, {}, DispatchTable::kUnbounded}));
  EXPECT_THAT(uses, testing::Contains(Use{CandidateId::nccl, {.max_ctas = 8}, 4999}));
  EXPECT_THAT(uses, testing::Contains(Use{CandidateId::nccl, {.max_ctas = 32}, DispatchTable::kUnbounded}));
  EXPECT_EQ(uses.size(), 7U);
}

TEST(Dispatch, DigestChangesWithEveryAnswer) {
  const Profile profile = two_rank_profile();
  const auto digest = [](const Profile& of) {
    return DispatchTable::from_profile(of, 2, Launch::one_thread, Load::idle, {}).digest();
  };
  EXPECT_EQ(digest(profile), digest(two_rank_profile()));
  EXPECT_EQ(digest(profile).size(), 64U);
  Profile boundary = profile;
  boundary.tables[0].ranges[0].max_bytes = boundary.tables[0].ranges[1].min_bytes = 1001;
  EXPECT_NE(digest(boundary), digest(profile));
  Profile geometry = profile;
  geometry.tables[0].ranges[0].use.geometry.blocks = 3;
  EXPECT_NE(digest(geometry), digest(profile));
  Profile evidence = profile;
  evidence.tables[0].ranges[0].median_us = 3.5;  // ranks may read copies with other notes
  EXPECT_EQ(digest(evidence), digest(profile));
  DispatchSwitches switches;
  switches.forbid(Path::ce);
  EXPECT_NE(table_with(switches).digest(), digest(profile));
}

}  // namespace
}  // namespace artune
