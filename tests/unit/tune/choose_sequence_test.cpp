// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/choose_sequence.hpp"

#include <gmock/gmock.h>

#include "sweep_builder.hpp"

namespace artune {
namespace {

using testing::ElementsAre;

Measured measured(const test::SweepBuilder& builder) {
  std::vector<Rejected> rejected;
  return collect(builder.build(), {}, rejected).at(0);
}

SequenceRules rules(std::vector<std::vector<std::size_t>> incumbents, double noise = 0) {
  return {.margin = 0.02, .noise = noise, .incumbents = std::move(incumbents)};
}

// Options in menu order: nccl is 0, p2p/one-shot/ll is 1.

TEST(ChooseSequence, NeverSlowerThanNcclByMoreThanTheThreshold) {
  test::SweepBuilder builder;
  // Staying with LL in the middle would save two switches, but costs 3 % against NCCL.
  builder.row("p2p/one-shot/ll", 1024, 5).row("nccl", 1024, 10);
  builder.row("p2p/one-shot/ll", 2048, 10.3).row("nccl", 2048, 10);
  builder.row("p2p/one-shot/ll", 4096, 5).row("nccl", 4096, 10);
  EXPECT_THAT(choose_sequence(measured(builder), rules({{0}, {0}, {0}})), ElementsAre(1, 0, 1));
  // Even an incumbent goes then, unless the noise says that 3 % mean nothing.
  EXPECT_THAT(choose_sequence(measured(builder), rules({{1}, {1}, {1}})), ElementsAre(1, 0, 1));
  EXPECT_THAT(choose_sequence(measured(builder), rules({{1}, {1}, {1}}, 0.05)), ElementsAre(1, 1, 1));
}

TEST(ChooseSequence, AFewPercentAreTheMostThatHabitMayCost) {
  test::SweepBuilder builder;
  builder.row("nccl", 1024, 10).row("p2p/one-shot/ll", 1024, 9.5);
  EXPECT_THAT(choose_sequence(measured(builder), rules({{0}})), ElementsAre(1));
  // The noise floor keeps the incumbent, even beyond the 4 %.
  EXPECT_THAT(choose_sequence(measured(builder), rules({{0}}, 0.08)), ElementsAre(0));
}

TEST(ChooseSequence, OverlappingIntervalsLeaveTheIncumbent) {
  test::SweepBuilder builder;
  builder.spread(0.1).row("nccl", 1024, 10).row("p2p/one-shot/ll", 1024, 9.85);
  EXPECT_THAT(choose_sequence(measured(builder), rules({{0}})), ElementsAre(0));
}

}  // namespace
}  // namespace artune
