// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/thresholds.hpp"

#include <gmock/gmock.h>

#include "sweep_builder.hpp"
#include "tune/decide.hpp"

namespace artune {
namespace {

using test::SweepBuilder;

constexpr std::size_t kKi = 1024;

const Threshold& named(const Profile& profile, const std::string& name) {
  for (const Threshold& threshold : profile.tables.at(0).thresholds) {
    if (threshold.name == name) return threshold;
  }
  throw std::out_of_range(name);
}

TEST(Boundary, IsTheGeometricMeanAndSeparates) {
  EXPECT_EQ(boundary_between(64 * kKi, 128 * kKi), 92682U);
  EXPECT_EQ(boundary_between(1, 4), 2U);
  EXPECT_EQ(boundary_between(1, 2), 2U);
  EXPECT_EQ(boundary_between(1, 3), 2U);
  EXPECT_EQ(boundary_between(1000, 1001), 1001U);
  const std::size_t large = std::size_t{1} << 52;
  EXPECT_EQ(boundary_between(large, large + 1), large + 1);
}

TEST(Thresholds, MonotoneTablesAreToldExactly) {
  SweepBuilder builder;
  for (int i = 0; i < 3; ++i) builder.row("p2p/one-shot/ll", kKi << i, 5).row("ce/push", kKi << i, 9).row("nccl", kKi << i, 12);
  for (int i = 3; i < 5; ++i) builder.row("p2p/one-shot/ll", kKi << i, 30).row("ce/push", kKi << i, 20).row("nccl", kKi << i, 25);
  for (int i = 5; i < 7; ++i) builder.row("p2p/one-shot/ll", kKi << i, 90).row("ce/push", kKi << i, 50).row("nccl", kKi << i, 40);
  const Profile profile = decide(builder.build(), {});
  EXPECT_EQ(named(profile, "CE_MIN_BYTES").bytes, boundary_between(4 * kKi, 8 * kKi));
  EXPECT_EQ(named(profile, "CE_MIN_BYTES").regret_percent, 0);
  EXPECT_EQ(named(profile, "NCCL_MIN_BYTES").bytes, boundary_between(16 * kKi, 32 * kKi));
  EXPECT_EQ(named(profile, "NCCL_MIN_BYTES").regret_percent, 0);
  EXPECT_EQ(named(profile, "NCCL_MIN_BYTES").direction, "nccl when bytes >= this");
  // Kernels and NCCL only: at 8K and 16K 30 or 25 us instead of 20; NCCL is nearer.
  EXPECT_EQ(named(profile, "ONESHOT_MAX_BYTES").bytes, boundary_between(4 * kKi, 8 * kKi));
  EXPECT_NEAR(named(profile, "ONESHOT_MAX_BYTES").regret_percent, 2.0 / 7 * 25, 1e-3);
}

TEST(Thresholds, NonMonotoneTablesLoseLeast) {
  SweepBuilder builder;
  // NCCL wins at 2K by a little and at 8K by a lot; the kernel wins at 1K and 4K.
  builder.row("p2p/one-shot/ll", 1 * kKi, 5).row("nccl", 1 * kKi, 10);
  builder.row("p2p/one-shot/ll", 2 * kKi, 11).row("nccl", 2 * kKi, 10);
  builder.row("p2p/one-shot/ll", 4 * kKi, 5).row("nccl", 4 * kKi, 10);
  builder.row("p2p/one-shot/ll", 8 * kKi, 20).row("nccl", 8 * kKi, 10);
  const Profile profile = decide(builder.build(), {});
  ASSERT_EQ(profile.tables.at(0).ranges.size(), 4U);
  EXPECT_EQ(named(profile, "NCCL_MIN_BYTES").bytes, boundary_between(4 * kKi, 8 * kKi));
  EXPECT_NEAR(named(profile, "NCCL_MIN_BYTES").regret_percent, 10.0 / 4, 1e-3);

  // An application that sends nearly only 2K messages wants NCCL from there on.
  TuneOptions options;
  options.weights = {{1 * kKi, 1}, {2 * kKi, 97}, {4 * kKi, 1}, {8 * kKi, 1}};
  EXPECT_EQ(named(decide(builder.build(), options), "NCCL_MIN_BYTES").bytes, boundary_between(1 * kKi, 2 * kKi));
}

TEST(Thresholds, AlwaysAndNever) {
  SweepBuilder nccl;
  nccl.row("nccl", kKi, 5).row("p2p/one-shot/ll", kKi, 9).row("nccl", 2 * kKi, 5).row("p2p/one-shot/ll", 2 * kKi, 9);
  const Profile always = decide(nccl.build(), {});
  EXPECT_EQ(named(always, "NCCL_MIN_BYTES").bytes, 1U);
  EXPECT_EQ(named(always, "CE_MIN_BYTES").bytes, std::nullopt);
  EXPECT_EQ(named(always, "ONESHOT_MAX_BYTES").bytes, std::nullopt);

  SweepBuilder kernel;
  kernel.row("nccl", kKi, 9).row("p2p/one-shot/ll", kKi, 5).row("nccl", 2 * kKi, 9).row("p2p/one-shot/ll", 2 * kKi, 5);
  const Profile never = decide(kernel.build(), {});
  EXPECT_EQ(named(never, "NCCL_MIN_BYTES").bytes, std::nullopt);
  EXPECT_EQ(named(never, "ONESHOT_MAX_BYTES").bytes, 2 * kKi + 1) << "not beyond what was measured";
}

TEST(Thresholds, WithoutEvidenceNoSideIsTaken) {
  SweepBuilder builder;  // no NCCL at all; the kernel isn't measured above 2K
  builder.row("host/one-shot/ll", kKi, 5).row("host/copy-engine", kKi, 9);
  builder.row("host/one-shot/ll", 2 * kKi, 5).row("host/copy-engine", 2 * kKi, 9).row("host/copy-engine", 4 * kKi, 12);
  const Profile profile = decide(builder.build(), {});
  EXPECT_EQ(named(profile, "NCCL_MIN_BYTES").bytes, std::nullopt);
  EXPECT_EQ(named(profile, "CE_MIN_BYTES").bytes, boundary_between(2 * kKi, 4 * kKi));
  EXPECT_EQ(named(profile, "CE_MIN_BYTES").regret_percent, 0);
}

}  // namespace
}  // namespace artune
