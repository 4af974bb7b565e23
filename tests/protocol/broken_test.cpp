// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Negative controls: protocols with one thing wrong must be caught by the exploration that the real ones pass
// (model_test.cpp), and their twins without the fault must pass the very same runs. A control that isn't caught means that
// the model is too strong to prove anything of that kind.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broken/flags.hpp"
#include "broken/own_subject.hpp"
#include "broken/packets.hpp"
#include "model/explore.hpp"

namespace artune::model {
namespace {

using Body = OwnSubject::Body;

struct Control {
  std::string name;
  CandidateId like;
  Body broken, twin;
  int ranks = 2;
  Scenario scenario{};  ///< empty: a random one for every seed
  std::uint64_t start = 0;
  std::function<void(OwnSubject&)> prepare{};
  /// The twin needs the end of a call to be a fence: see README.md.
  bool boundary_fences = false;
};

template <template <Form> class Format>
Body one_shot(PacketFault fault = PacketFault::none) {
  return [fault](const Place& place) { one_shot_packets<Format>(place, fault); };
}
template <template <Form> class Format>
Body two_shot(PacketFault fault = PacketFault::none) {
  return [fault](const Place& place) { two_shot_packets<Format>(place, fault); };
}
Body flag(FlagFault fault = FlagFault::none) {
  return [fault](const Place& place) { one_shot_flag(place, fault); };
}
Body two_shot_flags(FlagFault fault = FlagFault::none) {
  return [fault](const Place& place) { two_shot_flag(place, fault); };
}
Body direct_body(bool two_shot, DirectFault fault = DirectFault::none) {
  return [=](const Place& place) { direct(place, two_shot, fault); };
}
Body islands_body(IslandFault fault = IslandFault::none) {
  return [fault](const Place& place) { islands(place, fault); };
}
/// Rank 0 makes do with one block, whatever the others have.
Body on_other_grid(const Body& body) {
  return [body](const Place& place) {
    if (place.rank > 0) return body(place);
    if (place.lane.block > 0) return;
    Place alone = place;
    alone.lane.blocks = 1;
    body(alone);
  };
}
Body push_body(CopyFault fault = CopyFault::none) {
  return [fault](const Place& place) { push(place, fault); };
}

/// What a long call left in slot 1, two periods before the third call from `kBeforeWrap` on.
constexpr std::uint64_t kBeforeWrap = 3 * kTagPeriod - 2;
void leave_packets_of_two_periods_ago(OwnSubject& subject) {
  const std::uint64_t packet = std::uint64_t{ll_index(kBeforeWrap + 4) + 1} << 32 | 7;
  for (int rank = 0; rank < subject.ranks(); ++rank) {
    for (int peer = 0; peer < subject.ranks() - 1; ++peer) {
      char* const slot = subject.slab(rank) + subject.layout().area_bytes * peer + subject.layout().slot_bytes;
      for (std::size_t at = 0; at < subject.layout().slot_bytes; at += sizeof packet)
        std::memcpy(slot + at, &packet, sizeof packet);
    }
  }
}

const Scenario kSame{{8, 1}, {8, 1}, {8, 1}, {8, 1}};
const Scenario kGrids{{24, 1}, {24, 2}, {24, 1}, {24, 3}, {24, 2}};

std::vector<Control> controls() {
  using enum CandidateId;
  const Body ll = one_shot<Ll>(), sentinel = one_shot<Sentinel>();
  return {
      {.name = "LlOneSlot", .like = p2p_one_shot_ll, .broken = one_shot<LlOneSlot>(), .twin = ll, .scenario = kSame},
      {.name = "LlTagZero", .like = p2p_one_shot_ll, .broken = one_shot<LlTagZero>(), .twin = ll},
      {.name = "LlLooksAtOneWord", .like = p2p_one_shot_ll, .broken = one_shot<LlOneWord>(), .twin = ll},
      {.name = "LlNeverClears",
       .like = p2p_one_shot_ll,
       .broken = one_shot<LlNeverClears>(),
       .twin = ll,
       .scenario = {{2, 1}, {2, 1}, {2, 1}, {2, 1}, {16, 1}},
       .start = kBeforeWrap,
       .prepare = leave_packets_of_two_periods_ago,
       .boundary_fences = true},
      {.name = "LlEpochPerBlock",
       .like = p2p_one_shot_ll,
       .broken = one_shot<Ll>(PacketFault::epoch_per_block),
       .twin = ll,
       .scenario = kGrids},
      {.name = "LlStepsWithoutTicket",
       .like = p2p_one_shot_ll,
       .broken = one_shot<Ll>(PacketFault::steps_without_ticket),
       .twin = ll,
       .scenario = kGrids},
      {.name = "SentinelLooksAtOneWord", .like = p2p_one_shot_sentinel, .broken = one_shot<SentinelOneWord>(), .twin = sentinel},
      {.name = "SentinelClearsAhead",
       .like = p2p_one_shot_sentinel,
       .broken = one_shot<SentinelClearsAhead>(),
       .twin = sentinel,
       .scenario = kSame},
      {.name = "SentinelClearsCurrentCount",
       .like = p2p_one_shot_sentinel,
       .broken = one_shot<Sentinel>(PacketFault::clears_current_count),
       .twin = sentinel,
       .scenario = {{24, 1}, {1, 1}, {1, 1}, {24, 1}}},
      {.name = "SentinelTwoSlots",
       .like = p2p_one_shot_sentinel,
       .broken = one_shot<SentinelTwoSlots>(),
       .twin = sentinel,
       .scenario = kSame},
      {.name = "SentinelThirtyTwoBits",
       .like = p2p_one_shot_sentinel,
       .broken = one_shot<SentinelThirtyTwoBits>(),
       .twin = sentinel,
       .scenario = kSame,
       .start = 0x100000000ULL - 2},
      {.name = "TwoShotSharedAreas",
       .like = p2p_two_shot_ll,
       .broken = two_shot<Ll>(PacketFault::shared_areas),
       .twin = two_shot<Ll>(),
       .ranks = 3},
      {.name = "TwoShotEmptyReturnsEarly",
       .like = p2p_two_shot_ll,
       .broken = two_shot<Ll>(PacketFault::empty_returns_early),
       .twin = two_shot<Ll>(),
       .ranks = 3,
       .scenario = {{24, 1}, {1, 1}, {24, 1}}},
      {.name = "FlagRelaxedStore", .like = p2p_one_shot_flag, .broken = flag(FlagFault::relaxed_store), .twin = flag()},
      {.name = "FlagRelaxedLoad", .like = p2p_one_shot_flag, .broken = flag(FlagFault::relaxed_load), .twin = flag()},
      {.name = "FlagBeforePayload", .like = p2p_one_shot_flag, .broken = flag(FlagFault::flag_first), .twin = flag()},
      {.name = "FlagHalfRange",
       .like = p2p_one_shot_flag,
       .broken = flag(FlagFault::half_range),
       .twin = flag(),
       .start = (1ULL << 63) + 5},
      {.name = "FlagOneSlot", .like = p2p_one_shot_flag, .broken = flag(FlagFault::one_slot), .twin = flag(), .scenario = kSame},
      {.name = "FlagEpochPerBlock",
       .like = p2p_one_shot_flag,
       .broken = flag(FlagFault::epoch_per_block),
       .twin = flag(),
       .scenario = kGrids},
      {.name = "FlagOtherGrid", .like = p2p_one_shot_flag, .broken = on_other_grid(flag()), .twin = flag(), .scenario = kGrids},
      {.name = "HostOneFlagForAllPieces",
       .like = host_one_shot_flag,
       .broken = flag(FlagFault::one_flag_for_all_pieces),
       .twin = flag(),
       .scenario = {{64, 1}, {64, 2}, {64, 1}}},
      {.name = "HostFlagRelaxedStore",
       .like = host_one_shot_flag,
       .broken = flag(FlagFault::relaxed_store),
       .twin = flag(),
       .scenario = {{64, 1}, {64, 2}, {64, 1}}},
      {.name = "PullOneSlot", .like = p2p_one_shot_pull, .broken = flag(FlagFault::one_slot), .twin = flag(), .scenario = kSame},
      {.name = "PullRelaxedStore", .like = p2p_one_shot_pull, .broken = flag(FlagFault::relaxed_store), .twin = flag()},
      {.name = "TwoShotRelaxedStore",
       .like = p2p_two_shot_flag,
       .broken = two_shot_flags(FlagFault::relaxed_store),
       .twin = two_shot_flags()},
      {.name = "TwoShotRelaxedLoad",
       .like = p2p_two_shot_flag,
       .broken = two_shot_flags(FlagFault::relaxed_load),
       .twin = two_shot_flags()},
      {.name = "TwoShotOneFlagArea",
       .like = p2p_two_shot_flag,
       .broken = two_shot_flags(FlagFault::one_flag_area),
       .twin = two_shot_flags()},
      {.name = "TwoShotGatherFirst",
       .like = p2p_two_shot_flag,
       .broken = two_shot_flags(FlagFault::gather_first),
       .twin = two_shot_flags()},
      {.name = "IslandsOneFlagArea",
       .like = p2p_hierarchical,
       .broken = islands_body(IslandFault::one_flag_area),
       .twin = islands_body(),
       .ranks = 4},
      {.name = "IslandsNeverAwaitAcross",
       .like = p2p_hierarchical,
       .broken = islands_body(IslandFault::never_awaits_across),
       .twin = islands_body(),
       .ranks = 4},
      {.name = "DirectOneShotNoStart",
       .like = p2p_one_shot_direct,
       .broken = direct_body(false, DirectFault::no_start),
       .twin = direct_body(false)},
      {.name = "DirectOneShotNoEnd",
       .like = p2p_one_shot_direct,
       .broken = direct_body(false, DirectFault::no_end),
       .twin = direct_body(false)},
      {.name = "DirectTwoShotNoStart",
       .like = p2p_two_shot_direct,
       .broken = direct_body(true, DirectFault::no_start),
       .twin = direct_body(true)},
      {.name = "DirectTwoShotNoEnd",
       .like = p2p_two_shot_direct,
       .broken = direct_body(true, DirectFault::no_end),
       .twin = direct_body(true)},
      {.name = "DirectOneShotInPlace",
       .like = p2p_one_shot_direct,
       .broken = direct_body(false),
       .twin = direct_body(true),
       .scenario = {{8, 1, true}, {8, 1, true}}},
      {.name = "PushNeverAwaitsFree", .like = ce_push, .broken = push_body(CopyFault::never_awaits_free), .twin = push_body()},
      {.name = "PushArrivedBeforeCopy",
       .like = ce_push,
       .broken = push_body(CopyFault::arrived_before_copy),
       .twin = push_body()},
      {.name = "PushFreeBeforeReading",
       .like = ce_push,
       .broken = push_body(CopyFault::free_before_reading),
       .twin = push_body()},
  };
}

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSeeds = 100;  // a step takes ten times as long
#else
constexpr std::uint64_t kSeeds = 1000;
#endif

Exploration explore(const Control& control, bool broken, bool races) {
  OwnSubject subject(control.name + (broken ? "" : "'s twin"), control.like, control.ranks, control.start,
                     broken ? control.broken : control.twin);
  if (control.prepare) control.prepare(subject);
  return explore_random(subject, control.scenario, 0, kSeeds, {.races = races, .boundary_fences = control.boundary_fences});
}

class Broken : public testing::TestWithParam<Control> {};

TEST_P(Broken, IsCaughtAndItsTwinIsNot) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const Control& control = GetParam();
  const Exploration caught = explore(control, true, true);
  ASSERT_TRUE(caught.failure) << "not caught in " << caught.runs << " runs";
  RecordProperty("caught_as", to_string(caught.failure->found));
  RecordProperty("caught_in_runs", std::to_string(caught.runs));
  // The same by its effect alone: the verdict doesn't hang on the race detector.
  const Exploration wrong = explore(control, true, false);
  ASSERT_TRUE(wrong.failure) << "no wrong sum and no deadlock in " << wrong.runs << " runs";
  RecordProperty("effect", to_string(wrong.failure->found));
  RecordProperty("effect_in_runs", std::to_string(wrong.runs));
  for (const bool races : {true, false}) {
    const Exploration twin = explore(control, false, races);
    EXPECT_FALSE(twin.failure) << twin.failure->text;
    EXPECT_EQ(twin.runs, kSeeds);
  }
}

INSTANTIATE_TEST_SUITE_P(Controls, Broken, testing::ValuesIn(controls()), [](const auto& of) { return of.param.name; });

/// What looks like a fault and is none. README.md says why.
struct Suspect {
  std::string name;
  CandidateId like;
  Body body;
  int ranks;
};

class NotBroken : public testing::TestWithParam<Suspect> {};

TEST_P(NotBroken, IsNotCaught) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const Suspect& suspect = GetParam();
  OwnSubject subject(suspect.name, suspect.like, suspect.ranks, 0, suspect.body);
  const Exploration done = explore_random(subject, {}, 0, 2 * kSeeds);
  EXPECT_FALSE(done.failure) << done.failure->text;
}

INSTANTIATE_TEST_SUITE_P(
    Suspects, NotBroken,
    testing::Values(Suspect{"SkipsEmptyShards", CandidateId::p2p_two_shot_flag, two_shot_flags(FlagFault::skips_empty_shards), 3},
                    Suspect{"SkipsEmptyShardsPulled", CandidateId::p2p_two_shot_pull,
                            two_shot_flags(FlagFault::skips_empty_shards), 3},
                    Suspect{"LlOtherGrid", CandidateId::p2p_one_shot_ll, on_other_grid(one_shot<Ll>()), 3},
                    Suspect{"SentinelOtherGrid", CandidateId::p2p_one_shot_sentinel, on_other_grid(one_shot<Sentinel>()), 3}),
    [](const auto& of) { return of.param.name; });

// What a failure's text names is enough to see it again.
TEST(Failures, CanBeRepeatedBySeedAndByPrefix) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  OwnSubject subject("one slot", CandidateId::p2p_one_shot_ll, 2, 0, one_shot<LlOneSlot>());
  const Scenario scenario{{2, 1}, {4, 1}, {2, 1}};
  const Exploration random = explore_random(subject, scenario, 0, kSeeds);
  ASSERT_TRUE(random.failure);
  const Exploration again = explore_random(subject, scenario, random.runs - 1, 1);
  ASSERT_TRUE(again.failure);
  EXPECT_EQ(again.failure->text, random.failure->text);
  const Exploration all = explore_all(subject, scenario, 2, 100'000);
  ASSERT_TRUE(all.failure);
  const Exploration once = explore_prefix(subject, scenario, all.prefix);
  ASSERT_TRUE(once.failure);
  EXPECT_EQ(once.failure->text, all.failure->text);
}

// The one place where a protocol counts on the end of a call being a fence: what a sender has cleared at the LL tag's wrap
// must be seen two calls later, though no word of it was ever read. Without fences the model finds the old packet.
TEST(LlClearing, CountsOnTheEndOfACallBeingAFence) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  OwnSubject subject("LL over its wrap", CandidateId::p2p_one_shot_ll, 2, kBeforeWrap, one_shot<Ll>());
  leave_packets_of_two_periods_ago(subject);
  const Scenario scenario{{2, 1}, {2, 1}, {2, 1}, {2, 1}, {16, 1}};
  EXPECT_TRUE(explore_random(subject, scenario, 0, kSeeds, {.boundary_fences = false}).failure);
  EXPECT_FALSE(explore_random(subject, scenario, 0, kSeeds, {.boundary_fences = true}).failure);
}

}  // namespace
}  // namespace artune::model
