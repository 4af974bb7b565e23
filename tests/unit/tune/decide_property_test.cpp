// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What must hold for any sweep, tried on random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sweep_builder.hpp"
#include "tune/decide.hpp"
#include "tune/thresholds.hpp"

namespace artune {
namespace {

struct Trial {
  Sweep sweep;
  TuneOptions options;
};

/// Every candidate with a random latency and bandwidth, one to three geometries, rows missing here and there, an
/// anomaly now and then: curves that cross, stay close, and aren't monotone.
Trial random_trial(unsigned seed) {
  std::mt19937 random(seed);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  const auto chance = [&](double probability) { return uniform(0, 1) < probability; };
  test::SweepBuilder builder;
  builder.noise(chance(0.5) ? uniform(0, 5) : uniform(0, 0.5));
  const bool close = chance(0.3);
  const int sizes = 1 + static_cast<int>(uniform(0, 18));
  for (const CandidateInfo& info : menu()) {
    if (info.min_ranks > 2 || chance(0.2)) continue;
    const std::string name(info.name);
    const double latency = close ? uniform(9.8, 10.2) : uniform(1, 15);
    const double per_byte = close ? uniform(1e-5, 1.05e-5) : std::pow(10.0, uniform(-6, -3));
    const int geometries = info.path == Path::ce ? 1 : 1 + static_cast<int>(uniform(0, 3));
    for (int g = 0; g < geometries; ++g) {
      Geometry geometry = test::usual_geometry(name);
      if (geometry.blocks > 0) geometry.blocks <<= g;
      if (geometry.max_ctas > 0) geometry.max_ctas <<= g;
      if (geometry.chunk_bytes > 0) geometry.chunk_bytes <<= g;
      const double factor = uniform(0.97, 1.03);
      for (int i = 0; i < sizes; ++i) {
        if (chance(0.1)) continue;
        const std::size_t bytes = std::size_t{256} << i;
        const double noise = chance(0.05) ? uniform(1, 5) : uniform(0.97, 1.03);
        builder.spread(uniform(0, 0.04))
            .row(name, geometry, bytes, (latency + per_byte * static_cast<double>(bytes)) * factor * noise);
      }
    }
  }
  Trial trial{builder.build(), {}};
  trial.options.margin = chance(0.5) ? 0.02 : uniform(0, 0.03);
  return trial;
}

class AnySweep : public testing::TestWithParam<unsigned> {};

TEST_P(AnySweep, KeepsThePromises) {
  const Trial trial = random_trial(GetParam());
  const Profile profile = decide(trial.sweep, trial.options);
  if (trial.sweep.rows.empty()) {
    EXPECT_TRUE(profile.tables.empty());
    return;
  }
  ASSERT_EQ(profile.tables.size(), 1U);

  // What was decided can be written and read: total, sorted, known names, right geometry and classes.
  const std::string text = profile_to_text(profile);
  const Result<Profile> read = profile_from_json(*parse_json(text, "p"), "p");
  ASSERT_TRUE(static_cast<bool>(read)) << read.error().message;
  EXPECT_EQ(profile_to_text(*read), text);
  EXPECT_EQ(profile_to_text(decide(trial.sweep, trial.options)), text) << "the same sweep must give the same profile";

  const double threshold = std::max(trial.options.margin, trial.sweep.noise_floor_percent / 100);
  std::vector<std::size_t> sizes;
  for (const SweepRow& row : trial.sweep.rows) sizes.push_back(row.shape.bytes);
  for (const std::size_t bytes : sizes) {
    const Range& range = profile.tables[0].lookup(bytes);
    const SweepRow* chosen = nullptr;
    const SweepRow* best = nullptr;
    const SweepRow* nccl = nullptr;
    for (const SweepRow& row : trial.sweep.rows) {
      if (row.shape.bytes != bytes) continue;
      if (row.candidate == range.use) chosen = &row;
      if (best == nullptr || row.median_us < best->median_us) best = &row;
      if (row.candidate.name == "nccl" && (nccl == nullptr || row.median_us < nccl->median_us)) nccl = &row;
    }
    ASSERT_NE(chosen, nullptr) << bytes << ": chosen without evidence";
    EXPECT_LE(chosen->ci_low_us, best->ci_high_us * 1.05) << bytes << ": beyond 5 % of " << best->candidate.label();
    if (nccl != nullptr) {
      EXPECT_LE(chosen->median_us, nccl->median_us * (1 + threshold) * (1 + 1e-9)) << bytes << ": slower than NCCL";
    }
  }

  // Boundaries lie between neighbouring measured sizes, and each changes the answer.
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const std::vector<Range>& ranges = profile.tables[0].ranges;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    EXPECT_NE(ranges[i].use, ranges[i + 1].use);
    const auto above = std::lower_bound(sizes.begin(), sizes.end(), *ranges[i].max_bytes);
    ASSERT_TRUE(above != sizes.begin() && above != sizes.end());
    EXPECT_EQ(*ranges[i].max_bytes, boundary_between(*(above - 1), *above));
  }
}

INSTANTIATE_TEST_SUITE_P(Random, AnySweep, testing::Range(1U, 1001U));

}  // namespace
}  // namespace artune
