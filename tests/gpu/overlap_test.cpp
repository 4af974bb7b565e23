// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The compute load, and reductions beside it: the load fills the GPU and takes as long as asked for, reductions come
// through in both launch orders, and a rank that is missing is a result, not the end.
#include <gtest/gtest.h>

#include <cstdio>

#include "comm/group.hpp"
#include "machine/compute_load.hpp"
#include "machine/gpu_overlap.hpp"

namespace artune {
namespace {

using std::chrono::duration;

/// Two ranks on GPU 0.
struct Bench {
  explicit Bench(double timeout_s) {
    GroupOptions options;
    options.devices = {0, 0};
    options.timeout_s = timeout_s;
    options.use_nccl = false;
    options.largest_message.fill(kBytes);
    group = Group::create(options);
    ranks = std::make_unique<GpuRanks>(options.devices);
    ranks->reserve(kBytes);
    overlap = std::make_unique<GpuOverlap>(*ranks, *group, duration<double>(timeout_s + 5));
  }

  OverlapTiming time(CandidateId candidate, Geometry geometry, Mode mode, LaunchOrder order, int ranks_that_come = 2) {
    const Call call{candidate, geometry};
    const OverlapWork work{.issue =
                               [&, ranks_that_come] {
                                 group->begin_layer(call, {});
                                 for (int rank = 0; rank < ranks_that_come; ++rank) {
                                   group->enqueue(rank, call, ranks->input(rank), ranks->output(rank), kBytes / 2, DType::bf16, ranks->stream(rank));
                                 }
                                 group->end_layer(call);
                               },
                           .mode = mode,
                           .kernels = 2 * group->kernels_per_call(call, kBytes),
                           .deadline = duration<double>(10)};
    return overlap->time({std::string(info_of(candidate).name), geometry}, work, {.samples = 3, .compute_us = 5000, .order = order});
  }

  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  std::unique_ptr<Group> group;
  std::unique_ptr<GpuRanks> ranks;
  std::unique_ptr<GpuOverlap> overlap;
};

TEST(ComputeLoad, TwoBlocksFillAMultiprocessor) {
  int multiprocessors = 0;
  ARTUNE_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_EQ(compute_load_wave(), 2 * multiprocessors) << "the registers of a block are not what compute_load.cu is made for";
}

TEST(GpuOverlap, ReductionsComeThroughInBothOrdersAndModes) {
  struct Case {
    CandidateId id;
    Geometry geometry;
  };
  for (const Case& one : {Case{CandidateId::host_copy_engine, {.chunk_bytes = std::size_t{512} << 10}},
                          Case{CandidateId::p2p_one_shot_flag, {.blocks = 32, .threads = 512}}}) {
    for (const Mode mode : {Mode::graph, Mode::eager}) {
      Bench bench(10);  // its plans are of one mode
      for (const LaunchOrder order : {LaunchOrder::compute_first, LaunchOrder::reduction_first}) {
        const OverlapTiming timing = bench.time(one.id, one.geometry, mode, order);
        ASSERT_TRUE(timing.outcome.ok()) << timing.outcome.detail;
        ASSERT_EQ(timing.samples.size(), 3U);
        for (const OverlapSample& sample : timing.samples) {
          std::printf("%s %s %s: compute %.0f -> %.0f us, reduction %.2f -> %.2f us, %d of %d\n", std::string(info_of(one.id).name).c_str(),
                      std::string(to_string(mode)).c_str(), std::string(to_string(order)).c_str(), sample.compute_idle_us, sample.compute_beside_us,
                      sample.reduction_idle_us, sample.reduction_beside_us, sample.completed, timing.batch);
          EXPECT_LE(sample.compute_idle_us, 5000 * 1.2);
          EXPECT_GT(sample.compute_idle_us, 100);
          EXPECT_GT(sample.compute_beside_us, sample.compute_idle_us * 0.8);
          EXPECT_GT(sample.completed, 0);
        }
      }
    }
  }
}

TEST(GpuOverlap, AMissingRankIsAHang) {
  Bench bench(2);
  const OverlapTiming timing = bench.time(CandidateId::p2p_one_shot_flag, {.blocks = 8, .threads = 512}, Mode::eager, LaunchOrder::compute_first, 1);
  EXPECT_EQ(timing.outcome.kind, OutcomeKind::hang);
  EXPECT_NE(timing.outcome.detail.find("beside compute"), std::string::npos);
}

}  // namespace
}  // namespace artune

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);  // as the tool's worker does, before there is a context
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no GPU: skipped");
    return 77;
  }
  return RUN_ALL_TESTS();
}
