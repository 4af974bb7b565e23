// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/model/cost.hpp"

#include <gtest/gtest.h>

#include "base/failure.hpp"
#include "machine/model/nccl.hpp"
#include "paths/menu.hpp"
#include "rig_test_boxes.hpp"

namespace artune::model {
namespace {

constexpr std::size_t kKi = 1024;
constexpr std::size_t kMi = 1024 * kKi;

/// A rig with a tree and all of its GPUs as the group.
struct Box {
  explicit Box(Rig described) : rig(std::move(described)), tree(rig) {}
  Group group(std::size_t ranks = 0) const {
    Group group{rig, tree, {}};
    for (std::size_t i = 0; i < (ranks == 0 ? rig.gpus.size() : ranks); ++i) group.gpus.push_back(i);
    return group;
  }
  double us(const std::string& name, std::size_t bytes, Geometry geometry = {.blocks = 64, .threads = 512},
            Mode mode = Mode::graph, Launch launch = Launch::one_thread) const {
    Shape shape;
    shape.ranks = static_cast<int>(rig.gpus.size());
    shape.bytes = bytes;
    shape.mode = mode;
    shape.launch = launch;
    return call_cost(group(), {name, geometry}, shape).call_us;
  }

  Rig rig;
  Tree tree;
};

/// Best figure of a candidate over the menu's geometries.
double best_us(const Box& box, const std::string& name, std::size_t bytes) {
  AdmitFacts facts{.ranks = static_cast<int>(box.rig.gpus.size()), .multiprocessors = 100, .bytes = bytes};
  double best = 0;
  for (const Geometry& geometry : find_candidate(name)->geometries(facts)) {
    const double us = box.us(name, bytes, geometry);
    if (best == 0 || us < best) best = us;
  }
  return best;
}

Box shipped(const std::string& name) {
  Result<Rig> rig = load_rig(name);
  EXPECT_TRUE(rig);
  return Box(*rig);
}

TEST(Cost, FlagByHand) {
  // Two GPUs behind one switch of 50 GB/s: 0.5 launch + 3 fixed + 1 flag + 0.68 way + (1 MiB + 64 flags of 32) at 40 GB/s.
  const Box box(test::switch_box(1, 2, 50));
  EXPECT_NEAR(box.us("p2p/one-shot/flag", kMi), 0.5 + 3 + 1 + 0.68 + (kMi + 64 * 32) / 40e3, 1e-6);
  EXPECT_NEAR(box.us("p2p/one-shot/ll", kMi), 0.5 + 3 + 0.68 + 2 * kMi / 40e3, 1e-6);
}

TEST(Cost, CopyEnginesByHand) {
  const Box box(test::switch_box(1, 2, 50));
  EXPECT_NEAR(box.us("ce/push", kMi, {}), 0.5 + 20 + kMi / 50e3 + 3 * kMi / 1000e3, 1e-6);
  // Through the host two GPUs share the uplink: both write at 25 GB/s, both read at 25, the first chunk alone at first.
  const double chunk = 512 * kKi / 25e3;
  EXPECT_NEAR(box.us("host/copy-engine", kMi, {.chunk_bytes = 512 * kKi}),
              0.5 + 20 + 10 + chunk + 2 * chunk + 0.5 + 3 * kMi / 1000e3, 1e-6);
}

TEST(Cost, LlPaysTwiceTheBytesAndSavesTheFlag) {
  const Box box(test::switch_box(2, 2, 50));
  EXPECT_LT(box.us("p2p/one-shot/ll", 256), box.us("p2p/one-shot/flag", 256));
  EXPECT_GT(box.us("p2p/one-shot/ll", 256 * kKi), box.us("p2p/one-shot/flag", 256 * kKi));
}

TEST(Cost, TooFewBlocksCantFillTheLink) {
  const Box box(test::switch_box(1, 2, 50));
  const auto with = [&](int blocks, int threads) {
    return box.us("p2p/one-shot/flag", kMi, {.blocks = blocks, .threads = threads});
  };
  EXPECT_GT(with(1, 512), 2 * with(8, 512));
  EXPECT_GT(with(1, 256), with(1, 512));
  EXPECT_LT(with(8, 512), with(64, 512));  // once the link is full, more blocks are only more flags
  EXPECT_LT(with(64, 512), 1.01 * with(8, 512));
  // What every thread can have in flight at once isn't held up by the rate of few blocks.
  EXPECT_NEAR(box.us("p2p/one-shot/ll", 256, {.blocks = 1, .threads = 128}),
              box.us("p2p/one-shot/ll", 256, {.blocks = 4, .threads = 512}), 1e-9);
}

TEST(Cost, EagerCallsOfOneThreadAreHostBound) {
  const Box box(test::switch_box(2, 4, 50));
  const Geometry one{.blocks = 1, .threads = 512};
  const double graph = box.us("p2p/one-shot/ll", 256, one);
  EXPECT_NEAR(box.us("p2p/one-shot/ll", 256, one, Mode::eager), 8, 1e-9);  // eight calls of 1 µs
  EXPECT_NEAR(box.us("p2p/one-shot/ll", 256, one, Mode::eager, Launch::thread_per_rank), graph, 1e-9);
}

TEST(Cost, MoreRanksCostMore) {
  for (const CandidateInfo& info : menu()) {
    const std::string name(info.name);
    double before = 0;
    // With two steps a rank's part shrinks as ranks are added; what is said here holds where everybody gets everything.
    if (info.algorithm == Algorithm::two_shot || info.algorithm == Algorithm::hierarchical || info.algorithm == Algorithm::ring) continue;
    for (const int ranks : {2, 3, 4}) {
      const Box box(test::switch_box(1, ranks, 50));
      const Geometry geometry =
          info.path == Path::nccl
              ? Geometry{.max_ctas = 8}
              : (info.path == Path::ce ? Geometry{} : Geometry{.blocks = 8, .threads = 512, .chunk_bytes = 512 * kKi});
      const double us = box.us(name, kMi, geometry);
      EXPECT_GT(us, before) << name << " at " << ranks;
      before = us;
    }
  }
}

TEST(Cost, NamesOffTheMenuAreRefused) {
  const Box box(test::switch_box(1, 2, 50));
  EXPECT_THROW(box.us("p2p/telepathy", kMi), Failure);
}

TEST(Nccl, PublishedFloors) {
  // Measured: 8.25-8.6 (two 4090 through host memory), 13.5 (four RTX PRO 6000), 17-25 (eight), 36.1 (sixteen).
  EXPECT_NEAR(nccl_floor_us(2, NcclProtocol::ll, kPublishedNccl), 8.6, 1e-9);
  EXPECT_NEAR(nccl_floor_us(4, NcclProtocol::ll, kPublishedNccl), 12.6, 1e-9);
  EXPECT_NEAR(nccl_floor_us(8, NcclProtocol::ll, kPublishedNccl), 20.6, 1e-9);
  EXPECT_NEAR(nccl_floor_us(16, NcclProtocol::ll, kPublishedNccl), 36.6, 1e-9);
  EXPECT_NEAR(nccl_floor_us(4, NcclProtocol::simple, kPublishedNccl), 42.6, 1e-9);
}

TEST(Nccl, ChoosesByItsOwnBeliefAndPaysWhatIsReal) {
  Box box(test::switch_box(1, 4, 50));
  box.rig.nccl.ring_fraction.value = 1;
  const Group group = box.group();
  // By NCCL's table LL ends where its lost half of the bandwidth costs the 30 µs that Simple's latency is higher:
  // 1.5 S / 50 GB/s = 30 µs, S = 1 MB.
  EXPECT_EQ(nccl_cost(group, 0.99e6, 0).protocol, NcclProtocol::ll);
  EXPECT_EQ(nccl_cost(group, 1.01e6, 0).protocol, NcclProtocol::simple);
  EXPECT_NEAR(nccl_cost(group, 0.5e6, 0).us, 12.6 + 30, 1e-6);
  NcclConstants slow = kPublishedNccl;
  slow.ll_bandwidth_ratio = 0.25;
  EXPECT_EQ(nccl_cost(group, 0.99e6, 0, slow).protocol, NcclProtocol::ll);
  EXPECT_NEAR(nccl_cost(group, 0.5e6, 0, slow).us, 12.6 + 60, 1e-6);
}

TEST(Nccl, FewCtasLimitTheRing) {
  const Box box(test::switch_box(1, 4, 50));
  EXPECT_NEAR(nccl_ring_gb_per_s(box.group(), 2), 20, 1e-9);
  EXPECT_NEAR(nccl_ring_gb_per_s(box.group(), 8), 45, 1e-9);
  EXPECT_NEAR(nccl_ring_gb_per_s(box.group(), 32), 45, 1e-9);
}

TEST(Nccl, RigsMayOverrideItsConstants) {
  Rig rig = test::switch_box(1, 2, 50);
  EXPECT_EQ(nccl_constants(rig).hop_simple_us, kPublishedNccl.hop_simple_us);
  rig.nccl.hop_simple_us = Sourced{9, "test"};
  EXPECT_EQ(nccl_constants(rig).hop_simple_us, 9);
  EXPECT_EQ(nccl_constants(rig).hop_ll_us, kPublishedNccl.hop_ll_us);
}

TEST(Limit, IsBelowEveryCandidateAndGrows) {
  for (const char* name : {"4x-rtx-pro-6000-switch", "rtx4070-rtx3060-x4"}) {
    const Box box = shipped(name);
    double before = 0;
    for (std::size_t bytes = 256; bytes <= 64 * kMi; bytes *= 2) {
      const double limit = limit_us(box.group(), static_cast<double>(bytes));
      EXPECT_GT(limit, before);
      before = limit;
      for (const CandidateInfo& info : menu()) {
        EXPECT_LE(limit, best_us(box, std::string(info.name), bytes)) << name << " " << info.name << " " << bytes;
      }
    }
  }
}

TEST(Limit, TheNarrowestLinkBetweenMembersCounts) {
  Box narrow(test::switch_box(2, 2, 50));
  narrow.rig.links[0].gb_per_s.value = 5;  // the uplink of switch 0
  const Box box(narrow.rig);
  EXPECT_NEAR(limit_us(box.group(), 1e6), 0.5 + 1.07 + 1e6 / 5e3, 1e-6);
  EXPECT_NEAR(limit_us(box.group(2), 1e6), 0.5 + 0.68 + 1e6 / 50e3, 1e-6);  // GPUs 0 and 1 stay inside their switch
}

/// Which of two candidates is faster, each with its best geometry.
bool faster(const Box& box, const std::string& a, const std::string& b, std::size_t bytes) {
  return best_us(box, a, bytes) < best_us(box, b, bytes);
}

TEST(Crossovers, RtxPro6000AsPublished) {
  // Published: one-shot ahead of NCCL up to 512 KiB, behind at 1 MiB.
  const Box box = shipped("4x-rtx-pro-6000-switch");
  for (std::size_t bytes = 1 * kKi; bytes <= 512 * kKi; bytes *= 2)
    EXPECT_TRUE(faster(box, "p2p/one-shot/flag", "nccl", bytes)) << bytes;
  for (std::size_t bytes = 1 * kMi; bytes <= 64 * kMi; bytes *= 2)
    EXPECT_TRUE(faster(box, "nccl", "p2p/one-shot/flag", bytes)) << bytes;
}

TEST(Crossovers, X4AsPublished) {
  // Published: kernel below 512 KiB, copy engines above; p2p before host before NCCL for a token's reduction.
  const Box box = shipped("rtx4070-rtx3060-x4");
  EXPECT_TRUE(faster(box, "p2p/one-shot/flag", "ce/push", 256 * kKi));
  EXPECT_TRUE(faster(box, "ce/push", "p2p/one-shot/flag", 512 * kKi));
  EXPECT_TRUE(faster(box, "p2p/one-shot/flag", "host/one-shot/flag", 10 * kKi));
  EXPECT_TRUE(faster(box, "host/one-shot/flag", "nccl", 10 * kKi));
  EXPECT_TRUE(faster(box, "host/copy-engine", "nccl", 16 * kMi));
}

}  // namespace
}  // namespace artune::model
