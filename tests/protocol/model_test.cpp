// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Every candidate of the menu but nccl on the model of a weak memory: no order that the exploration tries gives a wrong
// sum, a race or a deadlock. What that proves, and what not: README.md. That the exploration would have found something:
// broken_test.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

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
         refusal(info, {.ranks = ranks, .peer_access = true, .island_size = island_size_of(ranks)}).empty();
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

void report(const Exploration& done) {
  testing::Test::RecordProperty("runs", std::to_string(done.runs));
  testing::Test::RecordProperty("steps", std::to_string(done.steps));
}

class Model : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

TEST_P(Model, NoRandomOrderGoesWrong) {
  const auto [id, ranks] = GetParam();
  constexpr std::uint64_t kSeeds = 500;  // for each start
  for (const std::uint64_t start : kStarts) {
    FamilySubject subject(id, ranks, start);
    const Exploration done = explore_random(subject, {}, 0, kSeeds);
    report(done);
    ASSERT_FALSE(done.failure) << "started at epoch " << start << "\n" << done.failure->text;
    EXPECT_EQ(done.runs, kSeeds);
  }
}

INSTANTIATE_TEST_SUITE_P(Menu, Model, testing::ValuesIn(groups({2, 3, 4})), name_of);

class ModelOfTwo : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

// Two ranks (four where islands need them), one block, one to four packets, two or three calls: every order with up to so
// many preemptions or old values, none left out.
TEST_P(ModelOfTwo, NoOrderWithFewDeviationsGoesWrong) {
  const auto [id, ranks] = GetParam();
  const CandidateInfo& info = info_of(id);
  // As many as end within seconds.
  const int deviations = info.algorithm == Algorithm::hierarchical ? 2 : info.protocol == Protocol::sentinel ? 3 : 4;
  // Past the first two calls of an LL period, which clear whole slots: hundreds of steps that the random orders cover.
  FamilySubject subject(id, ranks, info.protocol == Protocol::ll ? 5 : 0);
  const std::size_t one = subject.whole_units ? 4 : 2;
  const Scenario scenario = ranks == 2 ? Scenario{{one, 1}, {2 * one, 1}, {one, 1}} : Scenario{{1, 1}, {5, 1}};
  const Exploration done = explore_all(subject, scenario, deviations, 3'000'000);
  report(done);
  ASSERT_FALSE(done.failure) << done.failure->text;
  EXPECT_TRUE(done.complete) << done.runs << " runs weren't all";
}

INSTANTIATE_TEST_SUITE_P(Menu, ModelOfTwo, testing::ValuesIn(smallest_groups()), name_of);

}  // namespace
}  // namespace artune::model
