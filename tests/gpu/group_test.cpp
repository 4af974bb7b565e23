// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Every candidate on real GPUs: right to the last bit at any count, offset and type, beside nothing else being touched;
// bounded when a rank is missing; ended by abort. Under compute-sanitizer: `compute-sanitizer --tool memcheck gpu_group`.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "base/float_bits.hpp"
#include "comm/group.hpp"
#include "comm/self_test.hpp"
#include "machine/reference.hpp"

namespace artune {
namespace {

std::vector<int> devices_for(int ranks) {
  int visible = 0;
  ARTUNE_CHECK_CUDA(cudaGetDeviceCount(&visible));
  std::vector<int> devices;
  const int per_gpu = (ranks + visible - 1) / visible;
  for (int rank = 0; rank < ranks; ++rank) devices.push_back(rank / per_gpu);
  return devices;
}

std::unique_ptr<Group> make_group(int ranks, double timeout_s, std::size_t largest) {
  GroupOptions options;
  options.devices = devices_for(ranks);
  options.timeout_s = timeout_s;
  options.use_nccl = false;
  options.largest_message.fill(largest);
  return Group::create(options);
}

/// Every candidate but NCCL that this group can have.
std::vector<CandidateId> ours(const Group& group) {
  std::vector<CandidateId> ids;
  for (const CandidateInfo& info : menu()) {
    if (info.path == Path::nccl || !refusal(info, group.facts(1)).empty()) continue;
    EXPECT_EQ(group.unavailable(info.id), "") << info.name;
    ids.push_back(info.id);
  }
  return ids;
}

/// hierarchical-fp32: members of an island in order, then islands in order, rounded once.
void island_sum(DType dtype, const std::vector<const void*>& inputs, int island_size, void* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::size_t first = 0; first < inputs.size(); first += static_cast<std::size_t>(island_size)) {
      float island = 0;
      for (int m = 0; m < island_size; ++m) island += load_element(dtype, inputs[first + static_cast<std::size_t>(m)], i);
      sum += island;
    }
    store_element(dtype, output, i, sum);
  }
}

/// ring: the piece of rank r is summed from rank r + 1 round to rank r, rounded at every step.
void ring_sum(DType dtype, const std::vector<const void*>& inputs, void* output, std::size_t count) {
  const std::size_t ranks = inputs.size(), per_unit = 16 / element_bytes(dtype);
  const std::size_t units = (count + per_unit - 1) / per_unit, each = (units + ranks - 1) / ranks;
  std::vector<char> partial(4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t owner = i / per_unit / each;
    float sum = load_element(dtype, inputs[(owner + 1) % ranks], i);
    for (std::size_t step = 2; step <= ranks; ++step) {
      store_element(dtype, partial.data(), 0, 0.0F + sum + load_element(dtype, inputs[(owner + step) % ranks], i));
      sum = load_element(dtype, partial.data(), 0);
    }
    store_element(dtype, output, i, sum);
  }
}

/// wire-bf16-in and wire-bf16-in-out.
void lossy_sum(const std::vector<const void*>& inputs, bool out, void* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (const void* input : inputs) sum += bf16_to_float(float_to_bf16(load_element(DType::f32, input, i)));
    store_element(DType::f32, output, i, out ? bf16_to_float(float_to_bf16(sum)) : sum);
  }
}

/// One call of all ranks on buffers at an odd place, compared with the reference on the host.
class Bench {
 public:
  static constexpr std::size_t kGuard = 256;

  Bench(Group& group, std::size_t most_bytes) : group_(group) {
    for (int rank = 0; rank < group.ranks(); ++rank) {
      const DeviceGuard guard(group.device(rank));
      inputs_.emplace_back(group.device(rank), most_bytes + 2 * kGuard);
      outputs_.emplace_back(group.device(rank), most_bytes + 2 * kGuard);
      ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&streams_.emplace_back(), cudaStreamNonBlocking));
    }
  }
  ~Bench() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }

  void run(const Call& call, DType dtype, std::size_t count, std::size_t in_offset, std::size_t out_offset, bool in_place, int left_out = -1) {
    const std::size_t size = element_bytes(dtype);
    std::vector<std::vector<char>> host(static_cast<std::size_t>(group_.ranks()), std::vector<char>(count * size));
    std::vector<const void*> terms;
    ++call_;
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      fill_inputs(InputKind::random_reals, dtype, rank, call_, host[rank].data(), count);
      terms.push_back(host[rank].data());
      const DeviceGuard guard(group_.device(rank));
      ARTUNE_CHECK_CUDA(cudaMemsetAsync(outputs_[rank].data(), 0xff, count * size + 2 * kGuard, streams_[rank]));
      ARTUNE_CHECK_CUDA(cudaMemcpyAsync(input(rank, in_place, in_offset, out_offset, size), host[rank].data(), count * size,
                                        cudaMemcpyHostToDevice, streams_[rank]));
    }
    for (int rank = 0; rank < group_.ranks(); ++rank) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(streams_[rank]));
    std::vector<RankBuffers> buffers;
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      buffers.push_back({input(rank, in_place, in_offset, out_offset, size), output(rank, out_offset, size)});
    }
    group_.begin_layer(call, buffers);
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      if (rank != left_out) group_.enqueue(rank, call, buffers[rank].input, buffers[rank].output, count, dtype, streams_[rank]);
    }
    group_.end_layer(call);
    for (int rank = 0; rank < group_.ranks(); ++rank) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(streams_[rank]));
    expected_.resize(count * size);
    const CandidateInfo& info = info_of(call.candidate);
    if (call.lossy_wire) {
      lossy_sum(terms, info.algorithm == Algorithm::two_shot, expected_.data(), count);
    } else if (info.numerics == Numerics::hierarchical_fp32) {
      island_sum(dtype, terms, island_size_of(group_.ranks()), expected_.data(), count);
    } else if (info.numerics == Numerics::ring && count * size <= group_.max_bytes(call.candidate)) {
      ring_sum(dtype, terms, expected_.data(), count);
    } else if (info.numerics == Numerics::ring) {
      const std::size_t most = group_.max_bytes(call.candidate) / size;  // launch by launch
      for (std::size_t first = 0; first < count; first += most) {
        std::vector<const void*> parts;
        for (const void* term : terms) parts.push_back(static_cast<const char*>(term) + first * size);
        ring_sum(dtype, parts, expected_.data() + first * size, std::min(most, count - first));
      }
    } else {
      rank_order_sum(dtype, terms, expected_.data(), count);
    }
  }

  void expect_right(DType dtype, std::size_t count, std::size_t out_offset) {
    const std::size_t size = element_bytes(dtype);
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      const std::vector<char> got = whole(rank, count * size);
      const char* begin = got.data() + kGuard + out_offset * size;
      const auto wrong = first_difference(dtype, expected_.data(), begin, count);
      ASSERT_FALSE(wrong) << "rank " << rank << ", " << describe(*wrong);
      for (const char* at = got.data(); at < got.data() + got.size(); ++at) {
        if (at < begin || at >= begin + count * size) {
          ASSERT_EQ(*at, '\xff') << "rank " << rank << ", byte " << at - begin;
        }
      }
    }
  }

  bool all_nan(int rank, DType dtype, std::size_t count) {
    const std::vector<char> got = whole(rank, count * element_bytes(dtype));
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isnan(load_element(dtype, got.data() + kGuard, i))) return false;
    }
    return true;
  }

 private:
  char* output(int rank, std::size_t offset, std::size_t size) { return outputs_[rank].data() + kGuard + offset * size; }
  char* input(int rank, bool in_place, std::size_t in_offset, std::size_t out_offset, std::size_t size) {
    return in_place ? output(rank, out_offset, size) : inputs_[rank].data() + kGuard + in_offset * size;
  }
  std::vector<char> whole(int rank, std::size_t bytes) {
    std::vector<char> got(bytes + 2 * kGuard);
    ARTUNE_CHECK_CUDA(cudaMemcpy(got.data(), outputs_[rank].data(), got.size(), cudaMemcpyDeviceToHost));
    return got;
  }

  Group& group_;
  std::vector<DeviceMemory> inputs_, outputs_;
  std::vector<cudaStream_t> streams_;
  std::vector<char> expected_;
  std::uint64_t call_ = 0;
};

class OnGpu : public testing::TestWithParam<int> {};

TEST_P(OnGpu, EveryCandidateGivesTheRankOrderSumAtAnyCountAndOffset) {
  const int ranks = GetParam();
  // Slabs of 64 KiB: the longest messages here are several launches.
  auto group = make_group(ranks, 5, std::size_t{64} << 10);
  Bench bench(*group, std::size_t{1} << 20);
  std::mt19937 random(static_cast<unsigned>(ranks));
  for (const CandidateId id : ours(*group)) {
    SCOPED_TRACE(info_of(id).name);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const std::size_t count : {1, 2, 3, 7, 64, 1021, 4096, 16411, 70001}) {
        const auto geometries = info_of(id).geometries(group->facts(count * element_bytes(dtype)));
        const std::size_t in_offset = random() % 9, out_offset = random() % 9;
        const bool in_place = random() % 2 == 0;
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " count " << count << " offsets " << in_offset << ", " << out_offset
                                        << " in place " << in_place);
        Call call{id, geometries[random() % geometries.size()]};
        bench.run(call, dtype, count, in_offset, out_offset, in_place);
        bench.expect_right(dtype, count, out_offset);
        if (HasFatalFailure()) return;
        if (dtype != DType::f32 || !lossy_wire_served(info_of(id))) continue;
        call.lossy_wire = true;
        bench.run(call, dtype, count, in_offset, out_offset, in_place);
        bench.expect_right(dtype, count, out_offset);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_FALSE(group->failure());
}

TEST_P(OnGpu, ReplaysAndEagerCallsInterleave) {
  auto group = make_group(GetParam(), 5, std::size_t{64} << 10);
  constexpr std::size_t kCount = 3000;
  for (const CandidateId id : ours(*group)) {
    SCOPED_TRACE(info_of(id).name);
    const Call call{id, info_of(id).geometries(group->facts(kCount * 4)).front()};
    std::vector<DeviceMemory> buffers;
    std::vector<RankBuffers> layer;
    for (int rank = 0; rank < group->ranks(); ++rank) {
      buffers.emplace_back(group->device(rank), kCount * 4);
      layer.push_back({buffers[rank].data(), buffers[rank].data()});
    }
    group->begin_layer(call, layer);
    std::vector<cudaStream_t> streams;
    std::vector<cudaGraphExec_t> graphs;
    for (int rank = 0; rank < group->ranks(); ++rank) {
      const DeviceGuard guard(group->device(rank));
      const std::vector<float> ones(kCount, 1.0F);
      ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&streams.emplace_back(), cudaStreamNonBlocking));
      ARTUNE_CHECK_CUDA(cudaMemcpyAsync(buffers[rank].data(), ones.data(), kCount * 4, cudaMemcpyHostToDevice, streams[rank]));
      ARTUNE_CHECK_CUDA(cudaStreamSynchronize(streams[rank]));
      ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(streams[rank], cudaStreamCaptureModeRelaxed));
      group->enqueue(rank, call, buffers[rank].data(), buffers[rank].data(), kCount, DType::f32, streams[rank]);
      cudaGraph_t graph;
      ARTUNE_CHECK_CUDA(cudaStreamEndCapture(streams[rank], &graph));
      ARTUNE_CHECK_CUDA(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
      cudaGraphDestroy(graph);
      ARTUNE_CHECK_CUDA(cudaGraphUpload(graphs[rank], streams[rank]));
    }
    for (int rank = 0; rank < group->ranks(); ++rank) ARTUNE_CHECK_CUDA(cudaDeviceSynchronize());
    float expected = 1;
    for (int step = 0; step < 8; ++step) {
      for (int rank = 0; rank < group->ranks(); ++rank) {
        const DeviceGuard guard(group->device(rank));
        if (step % 3 == 1) {
          group->enqueue(rank, call, buffers[rank].data(), buffers[rank].data(), kCount, DType::f32, streams[rank]);
        } else {
          ARTUNE_CHECK_CUDA(cudaGraphLaunch(graphs[rank], streams[rank]));
        }
      }
      expected *= static_cast<float>(group->ranks());
    }
    for (int rank = 0; rank < group->ranks(); ++rank) {
      ARTUNE_CHECK_CUDA(cudaStreamSynchronize(streams[rank]));
      std::vector<float> got(kCount);
      ARTUNE_CHECK_CUDA(cudaMemcpy(got.data(), buffers[rank].data(), kCount * 4, cudaMemcpyDeviceToHost));
      EXPECT_THAT(got, testing::Each(expected)) << "rank " << rank;
      cudaGraphExecDestroy(graphs[rank]);
      cudaStreamDestroy(streams[rank]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnGpu, testing::Values(2, 3, 4, 8));

TEST(Missing, RankIsNamedAndOutputsAreNaN) {
  for (const CandidateInfo& info : menu()) {
    if (info.path == Path::nccl || info.algorithm == Algorithm::hierarchical) continue;
    const CandidateId id = info.id;
    SCOPED_TRACE(info.name);
    auto group = make_group(3, 0.2, std::size_t{64} << 10);
    Bench bench(*group, 65536);
    bench.run({id, {.blocks = 2, .threads = 128}}, DType::bf16, 500, 0, 0, false, /*left_out=*/2);
    const auto failure = group->failure();
    ASSERT_TRUE(failure);
    EXPECT_THAT(*failure, testing::HasSubstr("and gave up"));
    // In a ring rank 0 waits for rank 2; the others all do.
    EXPECT_THAT(*failure, testing::HasSubstr(id == CandidateId::ce_ring ? "waited for rank" : "waited for rank 2"));
    EXPECT_TRUE(bench.all_nan(0, DType::bf16, 500));
    EXPECT_TRUE(bench.all_nan(1, DType::bf16, 500));
  }
}

TEST(Wraps, AreCrossed) {
  for (const std::uint64_t epoch : {~std::uint64_t{0} - 5, std::uint64_t{0xffffffff} - 5, 2 * std::uint64_t{0xffffffff} - 5}) {
    for (const int ranks : {2, 3, 4}) {
      GroupOptions options;
      options.devices = devices_for(ranks);
      options.timeout_s = 5;
      options.use_nccl = false;
      options.largest_message.fill(65536);
      options.first_epoch = epoch;
      auto group = Group::create(options);
      Bench bench(*group, 65536);
      std::mt19937 random(7);
      for (const CandidateId id : ours(*group)) {
        SCOPED_TRACE(testing::Message() << info_of(id).name << " from " << epoch);
        for (int call = 0; call < 12; ++call) {
          const std::size_t count = 1 + random() % 3000;
          bench.run({id, {.blocks = 1 + static_cast<int>(random() % 4), .threads = 64}}, DType::bf16, count, 0, 0, false);
          bench.expect_right(DType::bf16, count, 0);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Overlap, OfTwoCallsOfOneRankIsNoticed) {
  // What the caller has to order: two graph replays of one rank on two streams. Here two groups of streams replay the
  // same captured call without an order between them; long enough messages make them overlap.
  auto group = make_group(2, 1, std::size_t{8} << 20);
  constexpr std::size_t kCount = std::size_t{1} << 20;
  const Call call{CandidateId::p2p_one_shot_flag, {.blocks = 16, .threads = 256}};
  std::vector<DeviceMemory> buffers;
  std::vector<cudaStream_t> streams;
  std::vector<cudaGraphExec_t> graphs;
  for (int i = 0; i < 4; ++i) {
    const int rank = i % 2;
    buffers.emplace_back(group->device(rank), kCount * 4);
    ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&streams.emplace_back(), cudaStreamNonBlocking));
    ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeRelaxed));
    for (int n = 0; n < 4; ++n) group->enqueue(rank, call, buffers[i].data(), buffers[i].data(), kCount, DType::f32, streams[i]);
    cudaGraph_t graph;
    ARTUNE_CHECK_CUDA(cudaStreamEndCapture(streams[i], &graph));
    ARTUNE_CHECK_CUDA(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
    cudaGraphDestroy(graph);
    ARTUNE_CHECK_CUDA(cudaGraphUpload(graphs[i], streams[i]));
  }
  ARTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  for (int round = 0; round < 50 && !group->failure(); ++round) {
    for (int i = 0; i < 4; ++i) ARTUNE_CHECK_CUDA(cudaGraphLaunch(graphs[i], streams[i]));
    for (int i = 0; i < 4; ++i) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(streams[i]));
  }
  const auto failure = group->failure();
  ASSERT_TRUE(failure) << "two replays at once went unnoticed";
  std::printf("  noticed as: %s\n", failure->c_str());
  for (int i = 0; i < 4; ++i) {
    cudaGraphExecDestroy(graphs[i]);
    cudaStreamDestroy(streams[i]);
  }
}

TEST(Abort, EndsAWaitFromAnotherThread) {
  auto group = make_group(2, 0, std::size_t{64} << 10);  // no timeout: only the abort can end it
  Bench bench(*group, 65536);
  std::jthread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    group->abort();
  });
  const auto started = std::chrono::steady_clock::now();
  bench.run({CandidateId::p2p_one_shot_ll, {.blocks = 1, .threads = 128}}, DType::f32, 100, 0, 0, false, /*left_out=*/1);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(2));
  EXPECT_TRUE(bench.all_nan(0, DType::f32, 100));
}

TEST(SelfTest, PassesOnEveryPairAndIsQuick) {
  const std::vector<int> devices = devices_for(2);
  test_pair(devices[0], devices[1], 1);  // loads the kernels
  const auto started = std::chrono::steady_clock::now();
  const PairTestResult result = test_pair(devices[0], devices[1], 2);
  EXPECT_EQ(result.store_fault, "");
  EXPECT_EQ(result.copy_fault, "");
  EXPECT_GT(result.one_way_us, 0.1);
  EXPECT_LT(result.one_way_us, 50);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::milliseconds(200));
}

}  // namespace
}  // namespace artune

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // before the first CUDA call: ranks share a GPU here
  int visible = 0;
  const cudaError_t status = cudaGetDeviceCount(&visible);
  if (status != cudaSuccess || visible == 0) {
    std::printf("skipped: no CUDA device (%s)\n", status == cudaSuccess ? "none visible" : cudaGetErrorString(status));
    return 77;
  }
  return RUN_ALL_TESTS();
}
