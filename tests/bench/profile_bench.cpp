// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What libartune pays for the profile: once per communicator (parse, build) and on every call (choose: at most 50 ns).
#include <benchmark/benchmark.h>

#include <random>
#include <stdexcept>
#include <vector>

#include "base/file.hpp"
#include "dispatch/dispatch_table.hpp"
#include "profile/profile.hpp"

namespace artune {
namespace {

const std::string kExample = std::string(ARTUNE_SOURCE_DIR) + "/profiles/examples/four-gpus.json";

/// As large as profiles get: a range for every size of a sweep from 256 B to 256 MiB.
Profile long_profile() {
  Profile profile = *read_profile(kExample);
  Table& table = profile.tables.at(0);
  Range range = table.ranges.at(0);
  table.ranges.clear();
  for (int power = 8; power <= 28; ++power) {
    range.min_bytes = table.ranges.empty() ? 1 : *table.ranges.back().max_bytes;
    range.max_bytes = std::size_t{1} << power;
    range.use.geometry.blocks = power;
    table.ranges.push_back(range);
  }
  range.min_bytes = *range.max_bytes;
  range.max_bytes = std::nullopt;
  range.extrapolated = true;
  table.ranges.push_back(range);
  return profile;
}

/// Sizes in an order that a branch predictor can't learn.
std::vector<std::size_t> shuffled_sizes() {
  std::mt19937_64 random(1);
  std::vector<std::size_t> sizes(4096);
  for (std::size_t& size : sizes) size = (random() >> 36) >> (random() % 28);
  return sizes;
}

void choose(benchmark::State& state) {
  const DispatchTable table = DispatchTable::from_profile(long_profile(), 4, Launch::one_thread, Load::idle, {});
  const std::vector<std::size_t> sizes = shuffled_sizes();
  std::size_t next = 0;
  for (auto unused : state) {
    benchmark::DoNotOptimize(table.choose(DType::bf16, Mode::graph, sizes[next++ % sizes.size()]));
  }
}
BENCHMARK(choose);

void choose_default(benchmark::State& state) {
  const DispatchTable table = DispatchTable::untuned({.ranks = 4, .multiprocessors = 132}, {});
  const std::vector<std::size_t> sizes = shuffled_sizes();
  std::size_t next = 0;
  for (auto unused : state) {
    benchmark::DoNotOptimize(table.choose(DType::bf16, Mode::eager, sizes[next++ % sizes.size()]));
  }
}
BENCHMARK(choose_default);

void build_table(benchmark::State& state) {
  const Profile profile = long_profile();
  for (auto unused : state) benchmark::DoNotOptimize(DispatchTable::from_profile(profile, 4, Launch::one_thread, Load::idle, {}));
}
BENCHMARK(build_table);

void digest(benchmark::State& state) {
  const DispatchTable table = DispatchTable::from_profile(long_profile(), 4, Launch::one_thread, Load::idle, {});
  for (auto unused : state) benchmark::DoNotOptimize(table.digest());
}
BENCHMARK(digest);

void parse_profile(benchmark::State& state) {
  const std::string text = profile_to_text(long_profile());
  for (auto unused : state) {
    const Result<Json> json = parse_json(text, kExample);
    const Result<Profile> profile = profile_from_json(*json, kExample);
    if (!profile) throw std::runtime_error(profile.error().message);
    benchmark::DoNotOptimize(profile);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse_profile);

void write_profile(benchmark::State& state) {
  const Profile profile = long_profile();
  for (auto unused : state) benchmark::DoNotOptimize(profile_to_text(profile));
}
BENCHMARK(write_profile);

}  // namespace
}  // namespace artune
