// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The fused bodies on the model of a weak memory: fused and plain calls of one family in any sequence, rows in one block and
// in clusters. And the negative controls: one thing wrong must be caught, the twin without the fault must pass the same runs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>

#include "fused/fused_flag.cuh"
#include "fused/fused_menu.hpp"
#include "fused/row_subject.hpp"

namespace artune::model {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kRuns = 20;  // a step takes ten times as long
#else
constexpr std::uint64_t kRuns = 400;
#endif

/// ARTUNE_MODEL_SEEDS says how many (of each start), ARTUNE_MODEL_SEED which one alone.
struct Seeds {
  std::uint64_t first = 0, count = kRuns;
  Seeds() {
    if (const char* many = std::getenv("ARTUNE_MODEL_SEEDS")) count = std::strtoull(many, nullptr, 10);
    if (const char* one = std::getenv("ARTUNE_MODEL_SEED")) first = std::strtoull(one, nullptr, 10), count = 1;
  }
};

/// Two calls before: 2^64; the LL tag's wrap.
constexpr std::uint64_t kStarts[] = {0, ~0ULL - 1, kTagPeriod - 2};

std::vector<CandidateId> fused_candidates() {
  std::vector<CandidateId> ids;
  for (const CandidateInfo& info : menu()) {
    if (fused_served(info)) ids.push_back(info.id);
  }
  return ids;
}

std::string name_of(const testing::TestParamInfo<std::tuple<CandidateId, int>>& of) {
  std::string name(info_of(std::get<0>(of.param)).name);
  for (char& c : name) c = c == '/' || c == '-' ? '_' : c;
  return name + "_" + std::to_string(std::get<1>(of.param));
}

class FusedModel : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

TEST_P(FusedModel, NoRandomOrderOfFusedAndPlainCallsGoesWrong) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const auto [id, ranks] = GetParam();
  const Seeds seeds;
  for (const std::uint64_t start : kStarts) {
    RowSubject subject(id, ranks, start);
    const RowExploration done = subject.explore({}, seeds.first, seeds.count);
    ASSERT_FALSE(done.failure) << "started at epoch " << start << "\n" << done.failure->text;
    EXPECT_EQ(done.runs, seeds.count);
  }
}

// Waits run out of time at any moment, ranks stay away: right or NaN, never an old sum, and no block left at the row barrier.
TEST_P(FusedModel, FailuresLeaveNaN) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const auto [id, ranks] = GetParam();
  const Seeds seeds;
  RowSubject subject(id, ranks, 0);
  const RowExploration done = subject.explore({}, seeds.first, seeds.count, {.impatience = true});
  ASSERT_FALSE(done.failure) << done.failure->text;
}

INSTANTIATE_TEST_SUITE_P(Menu, FusedModel, testing::Combine(testing::ValuesIn(fused_candidates()), testing::Values(2, 3)),
                         name_of);

// --- Bodies with a board, a format and a number of ranks of choice

/// The sums are read without having met.
struct NeverMeets : HostBoard {
  void meet(std::uint32_t) const {}
};
/// Met before the sums are left.
struct MeetsFirst : HostBoard {
  void leave(std::uint32_t turn, std::uint32_t group, float sum) const {
    if (group == member) HostBoard::meet(turn);
    HostBoard::leave(turn, group, sum);
  }
  void meet(std::uint32_t) const {}
};
/// One side for all rows.
struct OneSide : HostBoard {
  void leave(std::uint32_t, std::uint32_t group, float sum) const { HostBoard::leave(0, group, sum); }
  float total(std::uint32_t, std::uint32_t groups) const { return HostBoard::total(0, groups); }
};

/// The statistics are made of whatever is there.
template <Form F>
struct LlNeverWaits : Ll<F> {
  static bool arrived(const Packet&, const LlCall&) { return true; }
};
template <Form F>
struct LlLooksAtOneWord : Ll<F> {
  static bool arrived(const Packet& raw, const LlCall& call) { return static_cast<std::uint32_t>(raw.low >> 32) == call.tag; }
};
template <Form F>
struct SentinelNeverWaits : Sentinel<F> {
  static bool arrived(const Quad&, const SentinelCall&) { return true; }
};
/// What the next call has to clear is counted in rows.
template <Form F>
struct SentinelCountsRows : Sentinel<F> {
  static Before after(const SentinelCall& call, std::uint64_t units) { return Sentinel<F>::after(call, units / 8); }
};

template <template <Form> class Format, typename Board = HostBoard, int N = 0>
void packets(const RowPlace& place) {
  using Wire = Format<Form::f16>;
  const FusedArguments& arguments = place.arguments;
  FusedPackets<Format, Form::f16, N, kMostGroups> body(arguments, place.lane);
  const auto call = Wire::call(arguments.sum.control, place.entry.epoch);
  body.send(call);
  clear_receive_areas<Wire, N>(arguments.sum, place.lane, call);
  EpochStep step;
  step.start(arguments.sum.control, place.lane.blocks, place.entry.epoch);
  body.receive(call, true, Board{place.board});
  if constexpr (Wire::kClears) {
    if (step.is_last_block(place.lane.blocks)) store_before(arguments.sum.control, Wire::after(call, body.packets()));
  }
  step.finish(arguments.sum.control, place.lane.blocks, place.entry.epoch, arguments.sum.bounds, arguments.sum.rank);
}

template <typename Board = HostBoard>
void flags(const RowPlace& place, bool raises_first = false, bool waits = true) {
  const FusedArguments& arguments = place.arguments;
  FusedFlag<Form::f16, 0, kMostGroups> body(arguments, place.lane);
  if (raises_first) body.raise(place.entry.epoch);
  body.send(place.entry.epoch);
  if (!raises_first) body.raise(place.entry.epoch);
  EpochStep step;
  step.start(arguments.sum.control, place.lane.blocks, place.entry.epoch);
  const bool alive = !waits || body.wait(place.entry.epoch);
  body.receive(place.entry.epoch, alive, Board{place.board});
  step.finish(arguments.sum.control, place.lane.blocks, place.entry.epoch, arguments.sum.bounds, arguments.sum.rank);
}

void plain_flags(const RowPlace& place) { flags(place); }

struct Control {
  const char* name;
  CandidateId like;
  RowBody broken, twin;
  RowCalls calls{};  ///< empty: random ones
};

const RowCalls kClusters{{true, 3, 64, 2, 2}, {true, 3, 64, 3, 3}, {true, 2, 32, 2, 2}};

std::vector<Control> controls() {
  using enum CandidateId;
  return {
      {"NoRowBarrier", p2p_one_shot_ll, packets<Ll, NeverMeets>, packets<Ll>, kClusters},
      {"NoRowBarrierSentinel", p2p_one_shot_sentinel, packets<Sentinel, NeverMeets>, packets<Sentinel>, kClusters},
      {"NoRowBarrierFlag", p2p_one_shot_flag, [](const RowPlace& place) { flags<NeverMeets>(place); }, plain_flags, kClusters},
      {"RowBarrierTooEarly", p2p_one_shot_ll, packets<Ll, MeetsFirst>, packets<Ll>, kClusters},
      {"OneSideOfTheBoard", p2p_one_shot_ll, packets<Ll, OneSide>, packets<Ll>, kClusters},
      {"StatisticsBeforeArrival", p2p_one_shot_ll, packets<LlNeverWaits>, packets<Ll>},
      {"StatisticsBeforeArrivalSentinel", p2p_one_shot_sentinel, packets<SentinelNeverWaits>, packets<Sentinel>},
      {"StatisticsBeforeArrivalFlag", p2p_one_shot_flag, [](const RowPlace& place) { flags(place, false, false); }, plain_flags},
      {"LooksAtOneWord", p2p_one_shot_ll, packets<LlLooksAtOneWord>, packets<Ll>},
      {"SentinelCountsRows", p2p_one_shot_sentinel, packets<SentinelCountsRows>, packets<Sentinel>},
      {"FlagBeforeVectors", p2p_one_shot_flag, [](const RowPlace& place) { flags(place, true); }, plain_flags},
  };
}

class FusedBroken : public testing::TestWithParam<Control> {};

TEST_P(FusedBroken, IsCaughtAndItsTwinIsNot) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const Control& control = GetParam();
  const std::uint64_t runs = 2 * kRuns;
  for (const bool races : {true, false}) {
    RowSubject broken(control.like, 2, 0, control.broken), twin(control.like, 2, 0, control.twin);
    const RowExploration caught = broken.explore(control.calls, 0, runs, {.races = races});
    ASSERT_TRUE(caught.failure) << "not caught in " << caught.runs << " runs" << (races ? "" : " by its effect alone");
    RecordProperty(races ? "caught_as" : "effect", to_string(caught.failure->found));
    RecordProperty(races ? "caught_in_runs" : "effect_in_runs", std::to_string(caught.runs));
    const RowExploration passed = twin.explore(control.calls, 0, runs, {.races = races});
    EXPECT_FALSE(passed.failure) << passed.failure->text;
    EXPECT_EQ(passed.runs, runs);
  }
}

INSTANTIATE_TEST_SUITE_P(Controls, FusedBroken, testing::ValuesIn(controls()), [](const auto& of) { return of.param.name; });

// HostFused polls one peer after the other; GPUs, for the numbers of ranks that they have kernels of their own for, all
// together.
TEST(FusedUnrolled, NoRandomOrderGoesWrong) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const Seeds seeds;
  const std::tuple<CandidateId, int, RowBody> bodies[] = {
      {CandidateId::p2p_one_shot_ll, 2, packets<Ll, HostBoard, 2>},
      {CandidateId::p2p_one_shot_ll, 3, packets<Ll, HostBoard, 3>},
      {CandidateId::p2p_one_shot_sentinel, 2, packets<Sentinel, HostBoard, 2>},
      {CandidateId::p2p_one_shot_sentinel, 3, packets<Sentinel, HostBoard, 3>}};
  for (const auto& [id, ranks, body] : bodies) {
    RowSubject subject(id, ranks, 0, body);
    const RowExploration done = subject.explore({}, seeds.first, seeds.count);
    ASSERT_FALSE(done.failure) << info_of(id).name << "\n" << done.failure->text;
  }
}

}  // namespace
}  // namespace artune::model
