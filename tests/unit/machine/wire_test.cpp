// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/wire.hpp"

#include <gtest/gtest.h>

#include "machine/options.hpp"

namespace artune {
namespace {

/// Through text, as between two processes.
Json over_the_wire(const Json& value) { return Json::parse(wire::to_line(value)); }

TEST(Wire, ShapeSurvives) {
  Shape shape{Op::all_reduce, DType::f16, DType::bf16, 7, 123456, Mode::eager, Launch::thread_per_rank, Load::overlap, Regime::cold};
  const Json json = over_the_wire(wire::to_json(shape));
  EXPECT_EQ(wire::shape_from_json(JsonReader(json, "x")), shape);
}

TEST(Wire, TimingSurvivesToTheLastBit) {
  Timing timing;
  timing.outcome = {OutcomeKind::hang, "rank 0"};
  timing.batch = 17;
  timing.samples_us = {{0.1, 1.0 / 3}, {1e-9, 12345.678}};
  timing.isolated_us = {2.5};
  timing.host_us = 0.7;
  const Json json = over_the_wire(wire::to_json(timing));
  const Timing back = wire::timing_from_json(JsonReader(json, "x"));
  EXPECT_EQ(back.outcome.kind, OutcomeKind::hang);
  EXPECT_EQ(back.outcome.detail, "rank 0");
  EXPECT_EQ(back.batch, 17);
  EXPECT_EQ(back.samples_us, timing.samples_us);
  EXPECT_EQ(back.isolated_us, timing.isolated_us);
  EXPECT_EQ(back.host_us, timing.host_us);
}

TEST(Wire, OverlapSurvives) {
  const Json asked = over_the_wire(wire::to_json(OverlapRequest{.samples = 3, .compute_us = 2500, .order = LaunchOrder::reduction_first}));
  const OverlapRequest request = wire::overlap_request_from_json(JsonReader(asked, "x"));
  EXPECT_EQ(request.samples, 3);
  EXPECT_EQ(request.compute_us, 2500);
  EXPECT_EQ(request.order, LaunchOrder::reduction_first);

  OverlapTiming timing;
  timing.outcome = {OutcomeKind::hang, "rank 1"};
  timing.batch = 40;
  timing.samples = {{5000, 5100.5, 1.0 / 3, 70.25, 17}};
  const Json answered = over_the_wire(wire::to_json(timing));
  const OverlapTiming back = wire::overlap_timing_from_json(JsonReader(answered, "x"));
  EXPECT_EQ(back.outcome.kind, OutcomeKind::hang);
  EXPECT_EQ(back.outcome.detail, "rank 1");
  EXPECT_EQ(back.batch, 40);
  ASSERT_EQ(back.samples.size(), 1U);
  EXPECT_EQ(back.samples[0].compute_idle_us, 5000);
  EXPECT_EQ(back.samples[0].compute_beside_us, 5100.5);
  EXPECT_EQ(back.samples[0].reduction_idle_us, 1.0 / 3);
  EXPECT_EQ(back.samples[0].reduction_beside_us, 70.25);
  EXPECT_EQ(back.samples[0].completed, 17);
}

TEST(Wire, TimeThatIsNoNumberIsRefused) {
  Timing timing;
  timing.samples_us = {{std::numeric_limits<double>::quiet_NaN()}};
  const Json json = over_the_wire(wire::to_json(timing));
  EXPECT_THROW(wire::timing_from_json(JsonReader(json, "x")), JsonError);
}

TEST(Wire, OptionsSurvive) {
  MachineOptions options;
  options.rig = "two-cards";
  options.devices = {3, 1};
  options.ranks_per_gpu = 2;
  options.ranks = {2, 4};
  options.nccl_file = "/opt/libnccl.so.2";
  options.max_memory_bytes = 12345;
  options.timeout_s = 2.5;
  options.seed = ~std::uint64_t{0};
  options.risky = true;
  options.profile = "p.json";
  const Json without = over_the_wire(options_to_json(options));
  EXPECT_EQ(options_from_json(JsonReader(without, "x")), options);
  options.known_verdicts = {{0, 1, Path::ce, "hangs", "why", 0.25}};
  const Json with = over_the_wire(options_to_json(options));
  EXPECT_EQ(options_from_json(JsonReader(with, "x")), options);
}

TEST(Wire, ErrorSurvivesWithEveryReason) {
  for (int i = 0; i <= static_cast<int>(Reason::internal); ++i) {
    const Json json = over_the_wire(wire::to_json(Error{static_cast<Reason>(i), "m"}));
    EXPECT_EQ(wire::error_from_json(JsonReader(json, "x")).reason, static_cast<Reason>(i));
  }
  const Json beyond = {{"reason", static_cast<int>(Reason::internal) + 1}, {"message", "m"}};
  EXPECT_THROW(wire::error_from_json(JsonReader(beyond, "x")), JsonError);
}

TEST(Wire, OneMessageIsOneLine) {
  const std::string line = wire::to_line({{"detail", "two\nlines"}});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace
}  // namespace artune
