// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Progressive filling by itself, and against published bandwidths of PCIe switch boxes: the sharing of uplinks alone
// explains them (rtx6kpro wiki, p2pmark on eight RTX PRO 6000).
#include "machine/model/fair_share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "machine/model/tree.hpp"
#include "rig_test_boxes.hpp"

namespace artune::model {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

auto near(double value) { return DoubleNear(value, 1e-6); }

TEST(FairShare, OneFlowGetsItsNarrowestLink) {
  EXPECT_THAT(fair_rates({50, 10}, {{.links = {0, 1}, .bytes = 1}}), ElementsAre(near(10)));
}

TEST(FairShare, WhatOneFlowLeavesGoesToTheOther) {
  EXPECT_THAT(fair_rates({50, 10}, {{.links = {0}}, {.links = {0, 1}}}), ElementsAre(near(40), near(10)));
}

TEST(FairShare, EqualFlowsShareEqually) {
  EXPECT_THAT(fair_rates({30}, {{.links = {0}}, {.links = {0}}, {.links = {0}}}), ElementsAre(near(10), near(10), near(10)));
}

TEST(FairShare, ThreeLevelsOfFilling) {
  // Link 0 (12) carries a, b, c; link 1 (2) carries a; link 2 (3) carries b and d.
  EXPECT_THAT(fair_rates({12, 2, 3}, {{.links = {0, 1}}, {.links = {0, 2}}, {.links = {0}}, {.links = {2}}}),
              ElementsAre(near(2), near(1.5), near(8.5), near(1.5)));
}

TEST(FairShare, NothingInTheWayIsInfinite) {
  EXPECT_TRUE(std::isinf(fair_rates({}, {{.links = {}, .bytes = 1}}).at(0)));
  EXPECT_EQ(last_completion_us({}, {{.links = {}, .bytes = 1}}), 0);
}

TEST(FairShare, RatesAreSharedAnewWhenAFlowEnds) {
  // Both at 5 GB/s until the short one is done after 1 µs (5000 bytes), then the long one has 10 GB/s for its last 5000.
  EXPECT_THAT(completion_us({10}, {{.links = {0}, .bytes = 5000}, {.links = {0}, .bytes = 10000}}),
              ElementsAre(near(1), near(1.5)));
  EXPECT_THAT(completion_us({10}, {{.links = {0}, .bytes = 0}, {.links = {0}, .bytes = 10000}}), ElementsAre(near(0), near(1)));
}

/// Every GPU sends as much to each other; total payload over the time of the last.
double all_to_all_gb_per_s(const Rig& rig) {
  const Tree tree(rig);
  constexpr double kBytes = 1e6;
  std::vector<Flow> flows;
  for (std::size_t from = 0; from < rig.gpus.size(); ++from) {
    for (std::size_t to = 0; to < rig.gpus.size(); ++to) {
      if (from != to) flows.push_back(tree.between(from, to, kBytes));
    }
  }
  return static_cast<double>(flows.size()) * kBytes / (last_completion_us(tree.capacities(1), flows) * 1e3);
}

TEST(FairShare, AllToAllOverTwoFlatSwitches) {
  // Published: 189 (three-switch rig), 159-190 others. Sixteen shares on each uplink: 3.5 U.
  EXPECT_NEAR(all_to_all_gb_per_s(test::switch_box(2, 4, 52)), 182, 0.1);
  EXPECT_NEAR(all_to_all_gb_per_s(test::switch_box(2, 4, 55)), 192.5, 0.1);
}

TEST(FairShare, AllToAllOverFourVirtualSwitches) {
  // Published: 254 (each switch in its own quadrant of the CPU). Twelve shares on each uplink: 4.67 U.
  EXPECT_NEAR(all_to_all_gb_per_s(test::switch_box(4, 2, 52)), 242.7, 0.1);
  EXPECT_NEAR(all_to_all_gb_per_s(test::switch_box(4, 2, 55)), 256.7, 0.1);
}

TEST(FairShare, StaggeredNeighbours) {
  // Published, mean per GPU, GPU i to i+k: 50.13 38.15 25.67 12.75 25.57 37.96 50.04. The uplink alone makes that curve.
  const std::vector<double> published = {50.13, 38.15, 25.67, 12.75, 25.57, 37.96, 50.04};
  const Rig rig = test::switch_box(2, 4, 52);
  const Tree tree(rig);
  for (std::size_t shift = 1; shift <= published.size(); ++shift) {
    std::vector<Flow> flows;
    for (std::size_t i = 0; i < 8; ++i) flows.push_back(tree.between(i, (i + shift) % 8, 1));
    const std::vector<double> rates = fair_rates(tree.capacities(1), flows);
    const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / 8;
    EXPECT_NEAR(mean, published[shift - 1], 0.05 * published[shift - 1]) << "+" << shift;
  }
}

TEST(Tree, LatenciesAddUpAlongTheWay) {
  const Rig rig = test::switch_box(2, 4, 52);
  const Tree tree(rig);
  EXPECT_NEAR(tree.latency_us(0, 1), 0.68, 1e-9);
  EXPECT_NEAR(tree.latency_us(0, 4), 1.07, 1e-9);
  EXPECT_NEAR(tree.host_latency_us(0, 0), 0.535, 1e-9);
  EXPECT_EQ(tree.latency_us(2, 2), 0);
}

TEST(Tree, DirectionsOfALinkAreTwoResources) {
  const Rig rig = test::switch_box(1, 2, 50);
  const Tree tree(rig);
  EXPECT_THAT(fair_rates(tree.capacities(1), {tree.between(0, 1, 1), tree.between(1, 0, 1)}), ElementsAre(near(50), near(50)));
  EXPECT_THAT(fair_rates(tree.capacities(0.5), {tree.between(0, 1, 1)}), ElementsAre(near(25)));
}

TEST(Tree, HostMemoryIsSharedByBothDirections) {
  Rig rig = test::switch_box(2, 1, 50);
  rig.sockets[0].memory_gb_per_s.value = 40;
  const Tree tree(rig);
  EXPECT_THAT(fair_rates(tree.capacities(1), {tree.to_host(0, 0, 1), tree.from_host(1, 0, 1)}), ElementsAre(near(20), near(20)));
}

}  // namespace
}  // namespace artune::model
