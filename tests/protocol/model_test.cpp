// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Every candidate of the menu but nccl on the model of a weak memory: no order that the exploration tries gives a wrong
// sum, a race or a deadlock. What that proves, and what not: README.md. That the exploration would have found something:
// broken_test.cpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "broken/own_subject.hpp"
#include "broken/packets.hpp"
#include "model/explore.hpp"
#include "paths/menu.hpp"
#include "protocol/ll.cuh"

namespace artune::model {
namespace {

/// Two calls before: 2^64; the LL tag's wrap; 2^32.
constexpr std::uint64_t kStarts[] = {0, ~0ULL - 1, kTagPeriod - 2, 0x100000000ULL - 2};

std::string word(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = c == '/' || c == '-' ? '_' : c;
  return text;
}

bool may_run(const CandidateInfo& info, int ranks) {
  return info.path != Path::nccl &&
         refusal(info, {.ranks = ranks, .peer_access = true}).empty();
}

std::vector<std::tuple<CandidateId, int>> groups(std::vector<int> sizes) {
  std::vector<std::tuple<CandidateId, int>> all;
  for (const CandidateInfo& info : menu()) {
    for (const int ranks : sizes) {
      if (may_run(info, ranks)) all.emplace_back(info.id, ranks);
    }
  }
  return all;
}

std::vector<std::tuple<CandidateId, int>> smallest_groups() {
  std::vector<std::tuple<CandidateId, int>> all;
  for (const CandidateInfo& info : menu()) {
    // The menu asks more ranks of some, where two would gain nothing; the protocols don't.
    if (info.path != Path::nccl) all.emplace_back(info.id, info.algorithm == Algorithm::hierarchical ? 4 : 2);
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<std::tuple<CandidateId, int>>& of) {
  return word(info_of(std::get<0>(of.param)).name) + "_" + std::to_string(std::get<1>(of.param));
}

/// Sanitizers make a step ten times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

/// Which seeds: ARTUNE_MODEL_SEEDS says how many (of each start), ARTUNE_MODEL_SEED which one alone.
struct Seeds {
  std::uint64_t first = 0, count = kSlow ? 50 : 800;
  Seeds() {
    if (const char* many = std::getenv("ARTUNE_MODEL_SEEDS")) count = std::strtoull(many, nullptr, 10);
    if (const char* one = std::getenv("ARTUNE_MODEL_SEED")) first = std::strtoull(one, nullptr, 10), count = 1;
  }
};

void report(const Exploration& done) {
  testing::Test::RecordProperty("runs", std::to_string(done.runs));
  testing::Test::RecordProperty("steps", std::to_string(done.steps));
}

class Model : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

TEST_P(Model, NoRandomOrderGoesWrong) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const auto [id, ranks] = GetParam();
  const Seeds seeds;
  for (const std::uint64_t start : kStarts) {
    FamilySubject subject(id, ranks, start);
    const Exploration done = explore_random(subject, {}, seeds.first, seeds.count);
    report(done);
    ASSERT_FALSE(done.failure) << "started at epoch " << start << "\n" << done.failure->text;
    EXPECT_EQ(done.runs, seeds.count);
  }
}

INSTANTIATE_TEST_SUITE_P(Menu, Model, testing::ValuesIn(groups({2, 3, 4})), name_of);

class ModelOfTwo : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

// Two ranks (four where islands need them), one block or changing grids, one to four packets, two or three calls: every order
// with up to so many preemptions or old values, none left out.
TEST_P(ModelOfTwo, NoOrderWithFewDeviationsGoesWrong) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const auto [id, ranks] = GetParam();
  const CandidateInfo& info = info_of(id);
  // As many as end within seconds.
  const int deviations = kSlow ? 2 : info.algorithm == Algorithm::hierarchical ? 2 : info.protocol == Protocol::sentinel ? 3 : 4;
  // Past the first two calls of an LL period, which clear whole slots: hundreds of steps that the random orders cover.
  FamilySubject subject(id, ranks, info.protocol == Protocol::ll ? 5 : 0);
  const std::size_t one = subject.whole_units ? 4 : 2;
  std::vector<Scenario> scenarios{ranks == 2 ? Scenario{{one, 1}, {2 * one, 1}, {one, 1}} : Scenario{{1, 1}, {5, 1}}};
  // A grid that grows and shrinks.
  if (subject.most_blocks > 1 && ranks == 2) scenarios.push_back({{one, 2}, {one, 1}, {2 * one, 2}});
  for (const Scenario& scenario : scenarios) {
    const Exploration done = explore_all(subject, scenario, scenario.front().blocks == 1 ? deviations : 2, 3'000'000);
    report(done);
    ASSERT_FALSE(done.failure) << done.failure->text;
    EXPECT_TRUE(done.complete) << done.runs << " runs weren't all";
  }
}

INSTANTIATE_TEST_SUITE_P(Menu, ModelOfTwo, testing::ValuesIn(smallest_groups()), name_of);

class ModelOfFailures : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

// Waits run out of time at any moment, and ranks stay away: what is handed out then is right or NaN, element by element,
// never an old sum or a part of one.
TEST_P(ModelOfFailures, LeaveNaNAndNeverAnOldSum) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const auto [id, ranks] = GetParam();
  const Seeds seeds;
  FamilySubject subject(id, ranks);
  // Who gives up spoils an output that, with direct, a slower peer still writes: both are allowed there.
  const Exploration done =
      explore_random(subject, {}, seeds.first, seeds.count, {.races = !subject.shares_user_buffers, .impatience = true});
  report(done);
  ASSERT_FALSE(done.failure) << done.failure->text;
  EXPECT_EQ(done.runs, seeds.count);
}

INSTANTIATE_TEST_SUITE_P(Menu, ModelOfFailures, testing::ValuesIn(groups({2, 3, 4})), name_of);

struct Unrolled {
  std::string name;
  CandidateId like;
  OwnSubject::Body body;
  int ranks;
};

template <template <Form> class Format, int N>
void add_unrolled(std::vector<Unrolled>& all, const std::string& format, CandidateId one_shot, CandidateId two_shot) {
  const auto one = [](const Place& place) { one_shot_packets<Format, N>(place, PacketFault::none); };
  const auto two = [](const Place& place) { two_shot_packets<Format, N>(place, PacketFault::none); };
  all.push_back({"OneShot" + format + std::to_string(N), one_shot, one, N});
  all.push_back({"TwoShot" + format + std::to_string(N), two_shot, two, N});
}

std::vector<Unrolled> unrolled() {
  using enum CandidateId;
  std::vector<Unrolled> all;
  add_unrolled<Ll, 2>(all, "Ll", p2p_one_shot_ll, p2p_two_shot_ll);
  add_unrolled<Ll, 3>(all, "Ll", p2p_one_shot_ll, p2p_two_shot_ll);
  add_unrolled<Ll, 4>(all, "Ll", p2p_one_shot_ll, p2p_two_shot_ll);
  add_unrolled<Sentinel, 2>(all, "Sentinel", p2p_one_shot_sentinel, p2p_two_shot_sentinel);
  add_unrolled<Sentinel, 3>(all, "Sentinel", p2p_one_shot_sentinel, p2p_two_shot_sentinel);
  add_unrolled<Sentinel, 4>(all, "Sentinel", p2p_one_shot_sentinel, p2p_two_shot_sentinel);
  return all;
}

class ModelUnrolled : public testing::TestWithParam<Unrolled> {};

// HostFamily polls one peer after the other; GPUs, for the numbers of ranks that they have kernels of their own for, all
// together.
TEST_P(ModelUnrolled, NoRandomOrderGoesWrong) {
  if (!kFibersWork) GTEST_SKIP() << "not under ThreadSanitizer";
  const Seeds seeds;
  OwnSubject subject(GetParam().name, GetParam().like, GetParam().ranks, 0, GetParam().body);
  const Exploration done = explore_random(subject, {}, seeds.first, seeds.count);
  report(done);
  ASSERT_FALSE(done.failure) << done.failure->text;
  EXPECT_EQ(done.runs, seeds.count);
}

INSTANTIATE_TEST_SUITE_P(Packets, ModelUnrolled, testing::ValuesIn(unrolled()), [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace artune::model
