// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/rig_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "machine/model/cost.hpp"
#include "paths/menu.hpp"
#include "rig_test_boxes.hpp"

namespace artune {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

World world_of(std::vector<int> devices) {
  World world;
  world.devices = std::move(devices);
  return world;
}

Shape shape_of(int ranks, std::size_t bytes, DType dtype = DType::bf16) {
  Shape shape;
  shape.dtype = shape.wire = dtype;
  shape.ranks = ranks;
  shape.bytes = bytes;
  return shape;
}

Rig faulty(RigFaultKind kind) {
  Rig rig = test::switch_box(1, 3, 50);
  rig.faults = {{"test fault", kind, "gpu0", "gpu2", "test"}};
  return rig;
}

const Candidate kLl{"p2p/one-shot/ll", {.blocks = 2, .threads = 256}};

std::string unavailable_reason(RigMachine& machine, const Shape& shape, std::string_view name) {
  for (const Offer& offer : machine.candidates(shape)) {
    if (offer.candidate.name == name) return offer.unavailable;
  }
  return "not offered";
}

TEST(RigMachine, DescribesItselfAsSimulated) {
  const auto machine = make_rig_machine("4x-rtx-pro-6000-switch", {}, 1);
  ASSERT_TRUE(machine) << machine.error().message;
  const Result<DocumentHeader> header = (*machine)->describe();
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->simulated);
  EXPECT_FALSE(header->shared_gpu);
  ASSERT_EQ(header->machine.gpus.size(), 4U);
  std::set<std::string> uuids;
  for (const GpuFacts& gpu : header->machine.gpus) {
    uuids.insert(gpu.uuid_sha256);
    EXPECT_EQ(gpu.uuid_sha256.size(), 16U);
    EXPECT_EQ(gpu.link_max, (LinkState{5, 16}));
    EXPECT_EQ(gpu.numa_node, 0);
    EXPECT_EQ(gpu.multiprocessors, 188);
  }
  EXPECT_EQ(uuids.size(), 4U);
  EXPECT_EQ(header->machine.numa_nodes, 2);
  EXPECT_EQ(header->world->devices, (std::vector<int>{0, 1, 2, 3}));

  DocumentHeader written = *header;
  written.kind = "ar-tune/sweep";
  const Json json = header_to_json(written);
  EXPECT_NO_THROW(header_from_json(JsonReader(json, "header"), "ar-tune/sweep", 1));
}

TEST(RigMachine, RefusesWorldsItCantBe) {
  const auto error_of = [](World world) {
    const auto machine = make_rig_machine("rtx4070-rtx3060-x4", std::move(world), 1);
    EXPECT_FALSE(machine);
    EXPECT_EQ(machine.error().reason, Reason::usage);
    return machine.error().message;
  };
  EXPECT_THAT(error_of(world_of({0, 2})), HasSubstr("has no device 2"));
  EXPECT_THAT(error_of(world_of({1, 1})), HasSubstr("named twice"));
  EXPECT_THAT(error_of(world_of({1})), HasSubstr("needs two GPUs"));
  World shared = world_of({0, 1});
  shared.ranks_per_gpu = 2;
  EXPECT_THAT(error_of(shared), HasSubstr("leave out --ranks-per-gpu"));
  EXPECT_EQ(make_rig_machine("nowhere", {}, 1).error().reason, Reason::usage);
}

TEST(RigMachine, OffersTheWholeMenu) {
  RigMachine machine(test::switch_box(1, 4, 50), world_of({0, 1, 2, 3}), 1);
  std::set<std::string> names;
  for (const Offer& offer : machine.candidates(shape_of(4, 64 << 10))) {
    EXPECT_EQ(offer.unavailable, "") << offer.candidate.label();
    names.insert(offer.candidate.name);
  }
  EXPECT_EQ(names.size(), menu().size());
}

TEST(RigMachine, UnavailableCandidatesSayWhyOnce) {
  Rig rig = test::switch_box(1, 3, 50);
  rig.peer_access.push_back({"gpu0", "gpu2", false, "test"});
  rig.nccl.available = false;
  RigMachine machine(rig, world_of({0, 1, 2}), 1);
  const Shape three = shape_of(3, 64 << 10);
  EXPECT_THAT(unavailable_reason(machine, three, "p2p/one-shot/ll"), HasSubstr("no peer access from gpu0 to gpu2"));
  EXPECT_EQ(unavailable_reason(machine, three, "nccl"), "no usable NCCL");
  EXPECT_EQ(unavailable_reason(machine, three, "host/one-shot/ll"), "");
  EXPECT_EQ(unavailable_reason(machine, shape_of(2, 64 << 10), "p2p/one-shot/ll"), "");  // gpu0 and gpu1 only
  EXPECT_THAT(unavailable_reason(machine, shape_of(4, 64 << 10), "host/one-shot/ll"), HasSubstr("has 3 GPUs, not 4"));
  const auto offers = machine.candidates(three);
  EXPECT_EQ(std::count_if(offers.begin(), offers.end(), [](const Offer& o) { return o.candidate.name == "ce/push"; }), 1);
  EXPECT_EQ(machine.time_overlap(kLl, three, {}).outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(machine.time(kLl, three, {}).outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(machine.verify({"nccl", {}}, three).outcome.kind, OutcomeKind::unavailable);
}

TEST(RigMachine, ALossyWireIsServedByThoseWhoHaveItAndChecked) {
  const Rig rig = test::switch_box(1, 4, 50);
  RigMachine machine(rig, world_of({0, 1, 2, 3}), 1);
  Shape lossy = shape_of(4, 64 << 10, DType::f32);
  lossy.wire = DType::bf16;
  const Shape exact = shape_of(4, 64 << 10, DType::f32);
  for (const Offer& offer : machine.candidates(lossy)) {
    const CandidateInfo& info = *find_candidate(offer.candidate.name);
    if (!lossy_wire_served(info)) {
      EXPECT_EQ(offer.unavailable, "can't send f32 as bf16 on the wire") << info.name;
      EXPECT_EQ(machine.verify(offer.candidate, lossy).outcome.kind, OutcomeKind::unavailable);
      EXPECT_EQ(machine.time(offer.candidate, lossy, {}).outcome.kind, OutcomeKind::unavailable);
      continue;
    }
    EXPECT_EQ(offer.unavailable, "") << info.name;
    const Verification checked = machine.verify(offer.candidate, lossy);
    EXPECT_TRUE(checked.outcome.ok()) << info.name << ": " << checked.outcome.detail;
    EXPECT_EQ(checked.numerics, numerics_of(info, DType::f32, DType::bf16)) << info.name;
  }
  // Half the bytes on the link are what bf16 of the same count costs.
  const Candidate flag{"p2p/one-shot/flag", {.blocks = 32, .threads = 512}};
  const Shape large{.dtype = DType::f32, .wire = DType::bf16, .ranks = 4, .bytes = 32 << 20};
  const model::Tree tree(rig);
  const auto cost_us = [&](const Shape& shape) { return model::call_cost({rig, tree, {0, 1, 2, 3}}, flag, shape).call_us; };
  EXPECT_EQ(cost_us(large), cost_us(shape_of(4, 16 << 20)));
  EXPECT_LT(machine.limit_us(lossy), machine.limit_us(exact));
}

TEST(RigMachine, VerdictsFollowRulesAndFaults) {
  const auto verdict = [](RigFaultKind kind, int from, int to) {
    RigMachine machine(faulty(kind), world_of({0, 1, 2}), 1);
    for (const PairVerdict& pair : machine.verdicts()) {
      if (pair.from == from && pair.to == to && pair.path == Path::p2p) return pair;
    }
    return PairVerdict{};
  };
  EXPECT_EQ(verdict(RigFaultKind::wrong_data, 0, 2).verdict, "wrong-data");
  EXPECT_THAT(verdict(RigFaultKind::wrong_data, 0, 2).reason, HasSubstr("test fault"));
  EXPECT_EQ(verdict(RigFaultKind::wrong_data, 2, 0).verdict, "usable");
  EXPECT_EQ(verdict(RigFaultKind::hangs, 0, 2).verdict, "hangs");
  EXPECT_EQ(verdict(RigFaultKind::wrong_sum, 0, 2).verdict, "usable");  // the gate can't see it
  EXPECT_NEAR(verdict(RigFaultKind::wrong_data, 0, 1).one_way_us, 0.68, 1e-9);

  RigMachine machine(faulty(RigFaultKind::wrong_data), world_of({0, 1, 2}), 1);
  EXPECT_EQ(machine.verdicts().size(), 2U * 3 * 2);  // p2p and ce, ordered pairs
  EXPECT_THAT(unavailable_reason(machine, shape_of(3, 1024), "p2p/one-shot/ll"), HasSubstr("gpu0 to gpu2: wrong-data"));
}

class EveryCandidate : public ::testing::TestWithParam<std::tuple<int, DType>> {};

TEST_P(EveryCandidate, IsVerifiedWithRealSums) {
  const auto [ranks, dtype] = GetParam();
  std::vector<int> devices;
  for (int i = 0; i < ranks; ++i) devices.push_back(i);
  RigMachine machine(test::switch_box(1, ranks, 50), world_of(devices), 1);
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{1000}, std::size_t{1} << 20}) {
    const Shape shape = shape_of(ranks, bytes, dtype);
    for (const Offer& offer : machine.candidates(shape)) {
      const CandidateInfo& info = *find_candidate(offer.candidate.name);
      if (!offer.unavailable.empty()) {
        EXPECT_TRUE(ranks < info.min_ranks || info.algorithm == Algorithm::hierarchical) << offer.candidate.label() << ": " << offer.unavailable;
        continue;
      }
      const Verification got = machine.verify(offer.candidate, shape);
      EXPECT_TRUE(got.outcome.ok()) << offer.candidate.label() << " " << bytes << ": " << got.outcome.detail;
      const bool nccl = offer.candidate.name == "nccl";
      EXPECT_EQ(got.checked, !nccl);
      EXPECT_EQ(got.numerics, info.numerics);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, EveryCandidate,
                         ::testing::Combine(::testing::Values(2, 3, 4), ::testing::Values(DType::f32, DType::f16, DType::bf16)),
                         [](const auto& instance) {
                           return "n" + std::to_string(std::get<0>(instance.param)) + "_" +
                                  std::string(to_string(std::get<1>(instance.param)));
                         });

TEST(RigMachine, FaultsMakeWrongSums) {
  for (const RigFaultKind kind : {RigFaultKind::wrong_data, RigFaultKind::wrong_sum}) {
    RigMachine machine(faulty(kind), world_of({0, 1, 2}), 1);
    const Verification got = machine.verify(kLl, shape_of(3, 1000));
    EXPECT_EQ(got.outcome.kind, OutcomeKind::wrong_sum);
    EXPECT_THAT(got.outcome.detail, AllOf(HasSubstr("rank 2, element"), HasSubstr("expected")));
    EXPECT_TRUE(machine.verify({"host/one-shot/ll", kLl.geometry}, shape_of(3, 1000)).outcome.ok());
    EXPECT_TRUE(machine.verify(kLl, shape_of(2, 1000)).outcome.ok());  // gpu2 isn't in it
  }
}

TEST(RigMachine, AHangIsReportedNotWaitedFor) {
  RigMachine machine(faulty(RigFaultKind::hangs), world_of({0, 1, 2}), 1);
  const Verification got = machine.verify(kLl, shape_of(3, 1000));
  EXPECT_EQ(got.outcome.kind, OutcomeKind::hang);
  EXPECT_THAT(got.outcome.detail, HasSubstr("rank 2 waits for rank 0"));
}

TEST(RigMachine, UnknownCandidatesAreErrors) {
  RigMachine machine(test::switch_box(1, 2, 50), world_of({0, 1}), 1);
  EXPECT_EQ(machine.verify({"p2p/telepathy", {}}, shape_of(2, 64)).outcome.kind, OutcomeKind::error);
  EXPECT_EQ(machine.time({"p2p/telepathy", {}}, shape_of(2, 64), {}).outcome.kind, OutcomeKind::error);
}

Rig noisy_box() {
  Rig rig = test::switch_box(1, 2, 50);
  rig.noise = Sourced{0.01, "test"};
  return rig;
}

TEST(RigMachine, SameSeedSameTimes) {
  RigMachine a(noisy_box(), world_of({0, 1}), 7);
  RigMachine b(noisy_box(), world_of({0, 1}), 7);
  RigMachine c(noisy_box(), world_of({0, 1}), 8);
  const Shape shape = shape_of(2, 4096);
  b.time({"ce/push", {}}, shape, {});  // what else was asked for doesn't matter
  const Timing first = a.time(kLl, shape, {.samples = 6});
  EXPECT_EQ(first.samples_us, b.time(kLl, shape, {.samples = 6}).samples_us);
  EXPECT_NE(first.samples_us, c.time(kLl, shape, {.samples = 6}).samples_us);
  EXPECT_NE(first.samples_us, a.time(kLl, shape, {.samples = 6}).samples_us);  // an A/A pair shows the noise
}

TEST(RigMachine, TimesAreTheModelsPlusNoise) {
  const Rig rig = noisy_box();
  const model::Tree tree(rig);
  const Shape shape = shape_of(2, 4096);
  const model::Cost cost = model::call_cost({rig, tree, {0, 1}}, kLl, shape);
  RigMachine machine(rig, world_of({0, 1}), 7);
  const Timing timing = machine.time(kLl, shape, {.samples = 200, .batch = 20, .isolated = true});
  ASSERT_EQ(timing.samples_us.size(), 200U);
  EXPECT_EQ(timing.batch, 20);
  EXPECT_EQ(timing.isolated_us.size(), 200U);
  EXPECT_THAT(timing.isolated_us, Each(Ge(cost.call_us + cost.host_us)));
  EXPECT_NEAR(timing.host_us, 2.0 / 20, 1e-9);
  std::vector<double> of_rank_0;
  for (const std::vector<double>& sample : timing.samples_us) {
    ASSERT_EQ(sample.size(), 2U);
    EXPECT_THAT(sample, Each(AllOf(Ge(cost.call_us), Le(cost.call_us * 1.06))));
    of_rank_0.push_back(sample[0]);
  }
  std::sort(of_rank_0.begin(), of_rank_0.end());
  EXPECT_NEAR(of_rank_0[100] / cost.call_us, 1 + 0.01 * 0.674, 0.002);  // median of |z|

  RigMachine silent(test::switch_box(1, 2, 50), world_of({0, 1}), 7);
  EXPECT_THAT(silent.time(kLl, shape, {.samples = 3}).samples_us, Each(Each(cost.call_us)));
}

TEST(RigMachine, TheOrderOfTheGroupIsKept) {
  // Three GPUs, two behind one switch: the pair decides the latency.
  Rig rig = test::switch_box(2, 2, 50);
  RigMachine near_pair(rig, world_of({0, 1}), 1);
  RigMachine far_pair(rig, world_of({0, 2}), 1);
  const Shape shape = shape_of(2, 256);
  EXPECT_NEAR(far_pair.time(kLl, shape, {}).samples_us[0][0] - near_pair.time(kLl, shape, {}).samples_us[0][0], 0.39, 1e-6);
  EXPECT_LT(near_pair.limit_us(shape), far_pair.limit_us(shape));
  EXPECT_EQ(near_pair.limit_us(shape_of(3, 256)), 0);
}

}  // namespace
}  // namespace artune
