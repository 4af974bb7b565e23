// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/groups.hpp"

#include <gmock/gmock.h>

#include "profile/fingerprint.hpp"
#include "sweep_builder.hpp"
#include "tune/decide.hpp"

namespace artune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Four GPUs, two under each switch.
GroupFacts facts_of(const World& world) {
  MachineFacts machine;
  for (int i = 0; i < 4; ++i) {
    machine.gpus.emplace_back();
    machine.gpus.back().index = i;
    machine.gpus.back().name = "NVIDIA Test";
  }
  return group_facts_from(machine, world, false, [](int from, int to) { return from / 2 == to / 2 ? "pix" : "node"; });
}

Sweep sweep_of(const World& world, const std::vector<int>& ranks) {
  const GroupFacts facts = facts_of(world);
  test::SweepBuilder builder;
  for (const int n : ranks)
    builder.ranks(n).row("nccl", 4096, 20).row("p2p/one-shot/ll", 4096, 6).left_out("ce/push", 4096, "unavailable", "no");
  Sweep sweep = builder.build();
  sweep.header.machine.gpus.clear();
  for (int i = 0; i < 4; ++i) {
    sweep.header.machine.gpus.emplace_back();
    sweep.header.machine.gpus.back().index = i;
    sweep.header.machine.gpus.back().name = "NVIDIA Test";
  }
  sweep.header.world = world;
  sweep.header.shared_gpu = world.ranks_per_gpu > 1;
  sweep.fingerprint = fingerprint(facts);
  for (const int n : ranks) {
    if (const std::string print = fingerprint(first_ranks(facts, n)); print != sweep.fingerprint)
      sweep.smaller_groups.push_back({n, print});
  }
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) sweep.verdicts.push_back({from, to, Path::p2p, "usable", "", 1});
    }
  }
  return sweep;
}

TEST(Groups, EachIsFoundWhereItsOwnCommunicatorLooks) {
  const World world{.devices = {0, 1, 2, 3}};
  const Sweep sweep = sweep_of(world, {2, 4});
  const Profile whole = decide(sweep, {});
  ASSERT_THAT(whole.tables, SizeIs(2));
  const std::vector<MeasuredGroup> groups = measured_groups(sweep);
  ASSERT_THAT(groups, SizeIs(2));

  const Profile two = part_for(groups[0], whole);
  EXPECT_THAT(groups[0].ranks, ElementsAre(2));
  ASSERT_THAT(two.tables, SizeIs(1));
  EXPECT_EQ(two.tables[0].key.ranks, 2);
  for (const Rejected& row : two.rejected) EXPECT_EQ(row.key.ranks, 2);
  EXPECT_THAT(two.header.world->devices, ElementsAre(0, 1));
  EXPECT_THAT(two.verdicts, SizeIs(2)) << "those between GPUs 0 and 1";
  const GroupFacts first_two = facts_of({.devices = {0, 1}});
  EXPECT_EQ(two.fingerprint, fingerprint(first_two));
  EXPECT_EQ(match_profile(two, first_two, sweep.header.machine).refusal(), "");
  EXPECT_EQ(match_profile(two, facts_of({.devices = {2, 3}}), sweep.header.machine).refusal(), "") << "the same kind of group";
  EXPECT_FALSE(match_profile(two, facts_of(world), sweep.header.machine).usable());
  const Result<Profile> read = profile_from_json(profile_to_json(two), "two");
  EXPECT_TRUE(static_cast<bool>(read)) << read.error().message;

  const Profile four = part_for(groups[1], whole);
  EXPECT_THAT(groups[1].ranks, ElementsAre(4));
  ASSERT_THAT(four.tables, SizeIs(1));
  EXPECT_EQ(four.tables[0].key.ranks, 4);
  EXPECT_EQ(match_profile(four, facts_of(world), sweep.header.machine).refusal(), "");
}

TEST(Groups, TheWholeGroupAloneStaysAsItIs) {
  const Sweep sweep = sweep_of({.devices = {0, 1, 2, 3}}, {4});
  const Profile whole = decide(sweep, {});
  const std::vector<MeasuredGroup> groups = measured_groups(sweep);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(profile_to_text(part_for(groups[0], whole)), profile_to_text(whole));
}

TEST(Groups, WithoutTheWholeThereIsNoProfileForIt) {
  const Sweep sweep = sweep_of({.devices = {0, 1, 2, 3}}, {2});
  const std::vector<MeasuredGroup> groups = measured_groups(sweep);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_NE(groups[0].fingerprint, sweep.fingerprint) << "one of 2 ranks must not replace what 4 are tuned for";
}

TEST(Groups, RanksThatShareGpus) {
  // Three ranks with two on a GPU need the same two GPUs as four do; two of them share the first.
  const Sweep sweep = sweep_of({.devices = {0, 1}, .ranks_per_gpu = 2}, {2, 3, 4});
  const Profile whole = decide(sweep, {});
  const std::vector<MeasuredGroup> groups = measured_groups(sweep);
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].fingerprint, fingerprint(facts_of({.devices = {0}, .ranks_per_gpu = 2})));
  EXPECT_THAT(part_for(groups[0], whole).verdicts, IsEmpty());
  EXPECT_THAT(groups[1].ranks, ElementsAre(3, 4));
  EXPECT_EQ(groups[1].fingerprint, sweep.fingerprint);
  EXPECT_THAT(part_for(groups[1], whole).tables, SizeIs(2));

  const Sweep crowded = sweep_of({.devices = {0}, .ranks_per_gpu = 4}, {2, 4});
  EXPECT_EQ(measured_groups(crowded)[0].fingerprint, fingerprint(facts_of({.devices = {0}, .ranks_per_gpu = 2})));
}

TEST(Groups, DocumentsThatNameNoSmallerGroupBelongToTheWhole) {
  Sweep sweep = sweep_of({.devices = {0, 1, 2, 3}}, {2, 4});
  sweep.smaller_groups.clear();
  const std::vector<MeasuredGroup> groups = measured_groups(sweep);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].ranks, ElementsAre(2, 4));
  EXPECT_EQ(groups[0].fingerprint, sweep.fingerprint);
}

}  // namespace
}  // namespace artune
