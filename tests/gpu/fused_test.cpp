// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// All-reduce, residual add and RMSNorm on real GPUs: fused and unfused give the bits of the reference on every rank, on
// random and hostile rows, eager and replayed, in any order of both kinds of calls. Under compute-sanitizer:
// `compute-sanitizer --tool memcheck gpu_fused`, `--tool racecheck` for the rows' board in shared memory.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "comm/group.hpp"
#include "fused/fused_menu.hpp"
#include "fused/norm_arguments.hpp"
#include "machine/reference.hpp"
#include "protocol/fused/reference.hpp"

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

std::unique_ptr<Group> make_group(int ranks, double timeout_s, std::size_t largest, std::uint64_t first_epoch = 0) {
  GroupOptions options;
  options.devices = devices_for(ranks);
  options.timeout_s = timeout_s;
  options.use_nccl = false;
  options.max_memory_bytes = std::size_t{512} << 20;
  options.largest_message.fill(largest);
  options.first_epoch = first_epoch;
  return Group::create(options);
}

std::vector<CandidateId> fused_candidates(const Group& group, std::uint32_t hidden) {
  std::vector<CandidateId> ids;
  for (const CandidateInfo& info : menu()) {
    if (!fused_served(info)) continue;
    EXPECT_EQ(group.fused_unavailable(info.id, hidden), "");
    ids.push_back(info.id);
  }
  return ids;
}

Halves rows_of(DType dtype, const NormShape& shape, std::uint64_t call, int rank) {
  Halves rows(shape.rows * shape.hidden);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto kind = static_cast<Hostile>((i / shape.hidden + call) % static_cast<std::size_t>(Hostile::kinds));
    rows[i] = element_of(dtype, kind, input_hash(call, rank, i), i % shape.hidden, shape.hidden);
  }
  return rows;
}

/// Device tensors of all ranks for one shape, and what must come of them.
class Tensors {
 public:
  static constexpr std::size_t kGuard = 64;  // elements

  Tensors(const Group& group, DType dtype, const NormShape& shape, std::uint64_t number, bool in_place)
      : dtype_(dtype), shape_(shape), in_place_(in_place) {
    const Halves& residual = residual_ = rows_of(dtype, shape, number, 100);
    weight_ = rows_of(dtype, {1, shape.hidden}, 0, 101);
    std::vector<const void*> terms;
    for (int rank = 0; rank < group.ranks(); ++rank) {
      originals_.push_back(rows_of(dtype, shape, number, rank));
      inputs_.push_back(on_device(group.device(rank), originals_.back()));
      residuals_.push_back(on_device(group.device(rank), residual));
      weights_.push_back(on_device(group.device(rank), weight_));
      outputs_.push_back(on_device(group.device(rank), Halves(residual.size(), 0xffff)));
      residual_outs_.push_back(on_device(group.device(rank), Halves(residual.size(), 0xffff)));
    }
    for (const Halves& original : originals_) terms.push_back(original.data());
    sum_.resize(residual.size());
    rank_order_sum(dtype, terms, sum_.data(), sum_.size());
    expected_ = normed(dtype, shape, sum_, residual, weight_);
  }

  const void* input(int rank) const { return inputs_[rank].data() + 2 * kGuard; }
  void* output(int rank) const { return const_cast<char*>((in_place_ ? inputs_[rank] : outputs_[rank]).data()) + 2 * kGuard; }
  NormBuffers norm(int rank) const {
    return {residuals_[rank].data() + 2 * kGuard, weights_[rank].data() + 2 * kGuard, output(rank),
            const_cast<char*>((in_place_ ? residuals_[rank] : residual_outs_[rank]).data()) + 2 * kGuard};
  }
  NormCall shape() const {
    return {static_cast<std::uint32_t>(shape_.rows), static_cast<std::uint32_t>(shape_.hidden), shape_.epsilon, shape_.one_plus};
  }
  std::size_t count() const { return sum_.size(); }

  void expect_right() const {
    for (std::size_t rank = 0; rank < inputs_.size(); ++rank) {
      const Halves residual = from_device(in_place_ ? residuals_[rank] : residual_outs_[rank]);
      const Halves output = from_device(in_place_ ? inputs_[rank] : outputs_[rank]);
      ASSERT_EQ(difference(dtype_, expected_.residual, residual).value_or(""), "") << "residual of rank " << rank;
      ASSERT_EQ(difference(dtype_, expected_.output, output).value_or(""), "") << "rank " << rank;
      ASSERT_EQ(out_of_bound(dtype_, shape_, residual, weight_, output).value_or(""), "") << "rank " << rank;
      ASSERT_EQ(residual_out_of_bound(dtype_, originals_, residual_, residual).value_or(""), "") << "rank " << rank;
    }
  }
  bool all_nan(std::size_t rank) const {
    for (const std::uint16_t bits : from_device(in_place_ ? inputs_[rank] : outputs_[rank])) {
      if (!std::isnan(value_of(dtype_, bits))) return false;
    }
    return true;
  }

 private:
  static DeviceMemory on_device(int device, const Halves& halves) {
    DeviceMemory memory(device, 2 * (halves.size() + 2 * kGuard), 0x5a);
    ARTUNE_CHECK_CUDA(cudaMemcpy(memory.data() + 2 * kGuard, halves.data(), 2 * halves.size(), cudaMemcpyHostToDevice));
    return memory;
  }
  /// The tensor, its guards checked.
  Halves from_device(const DeviceMemory& memory) const {
    Halves whole(sum_.size() + 2 * kGuard);
    ARTUNE_CHECK_CUDA(cudaMemcpy(whole.data(), memory.data(), 2 * whole.size(), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(whole[i], 0x5a5a);
      EXPECT_EQ(whole[whole.size() - 1 - i], 0x5a5a);
    }
    return {whole.begin() + kGuard, whole.end() - kGuard};
  }

  DType dtype_;
  NormShape shape_;
  bool in_place_;
  std::vector<Halves> originals_;
  Halves residual_, weight_, sum_;
  Normed expected_;
  std::vector<DeviceMemory> inputs_, residuals_, weights_, outputs_, residual_outs_;
};

class Streams {
 public:
  explicit Streams(const Group& group) {
    for (int rank = 0; rank < group.ranks(); ++rank) {
      const DeviceGuard guard(group.device(rank));
      ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&streams_.emplace_back(), cudaStreamNonBlocking));
    }
  }
  Streams(const Streams&) = delete;
  ~Streams() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  cudaStream_t operator[](int rank) const { return streams_[static_cast<std::size_t>(rank)]; }
  void synchronize() const {
    for (cudaStream_t stream : streams_) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(stream));
  }

 private:
  std::vector<cudaStream_t> streams_;
};

void fused(Group& group, const Call& call, const Tensors& tensors, DType dtype, const Streams& streams, int left_out = -1) {
  for (int rank = 0; rank < group.ranks(); ++rank) {
    if (rank != left_out)
      group.enqueue_fused(rank, call, tensors.input(rank), tensors.norm(rank), tensors.shape(), dtype, streams[rank]);
  }
}

void unfused(Group& group, const Call& call, const Tensors& tensors, DType dtype, const Streams& streams) {
  std::vector<RankBuffers> layer;
  for (int rank = 0; rank < group.ranks(); ++rank) layer.push_back({tensors.input(rank), tensors.output(rank)});
  group.begin_layer(call, layer);
  for (int rank = 0; rank < group.ranks(); ++rank) {
    group.enqueue(rank, call, layer[rank].input, layer[rank].output, tensors.count(), dtype, streams[rank]);
  }
  group.end_layer(call);
  for (int rank = 0; rank < group.ranks(); ++rank) {
    group.enqueue_norm(rank, tensors.output(rank), tensors.norm(rank), tensors.shape(), dtype, streams[rank]);
  }
}

class FusedOnGpu : public testing::TestWithParam<int> {};

TEST_P(FusedOnGpu, FusedAndUnfusedGiveTheReferenceBitForBit) {
  // Slabs of 256 KiB: the longest calls here are several launches.
  auto group = make_group(GetParam(), 5, std::size_t{256} << 10);
  const Streams streams(*group);
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::uint64_t number = 0;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::uint32_t hidden : {64U, 72U, 4096U, 7168U, 16384U}) {
      for (const std::uint32_t rows : {1U, 2U, 3U, 8U, 33U}) {
        for (const CandidateId id : fused_candidates(*group, hidden)) {
          ++number;
          const NormShape shape{rows, hidden, number % 2 == 0 ? 1e-6F : 1e-5F, number % 3 == 0};
          const bool in_place = number % 4 == 1;
          auto geometries = fused_geometries(group->row_limits(), rows, hidden);
          geometries.push_back(
              {.blocks = static_cast<int>(1 + random() % (4 * rows)), .threads = static_cast<int>(32 * (1 + random() % 16))});
          const Call call{id, geometries[random() % geometries.size()]};
          SCOPED_TRACE(testing::Message() << info_of(id).name << " " << call.geometry.blocks << "x" << call.geometry.threads
                                          << ", " << to_string(dtype) << ", " << rows << " rows of " << hidden << ", in place "
                                          << in_place);
          const Tensors tensors(*group, dtype, shape, number, in_place);
          fused(*group, call, tensors, dtype, streams);
          streams.synchronize();
          tensors.expect_right();
          if (HasFatalFailure()) return;
          const Tensors again(*group, dtype, shape, number, in_place);
          unfused(*group, {id, info_of(id).geometries(group->facts(again.count() * 2)).front()}, again, dtype, streams);
          streams.synchronize();
          again.expect_right();
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_FALSE(group->failure());
}

TEST_P(FusedOnGpu, GraphsAndEagerCallsOfBothKindsInterleave) {
  for (const std::uint64_t epoch : {std::uint64_t{0}, ~std::uint64_t{0} - 4, std::uint64_t{0xffffffff} - 4}) {
    auto group = make_group(GetParam(), 5, std::size_t{256} << 10, epoch);
    const Streams streams(*group);
    const DType dtype = DType::bf16;
    for (const CandidateId id : fused_candidates(*group, 7168)) {
      SCOPED_TRACE(testing::Message() << info_of(id).name << " from " << epoch);
      const NormShape shape{5, 7168};
      const Tensors replayed(*group, dtype, shape, 1, false), pair(*group, dtype, shape, 2, false),
          eager(*group, dtype, {3, 72}, 3, false);
      const Call call{id, {.blocks = 10, .threads = 256}};
      std::vector<cudaGraphExec_t> graphs;
      for (int rank = 0; rank < group->ranks(); ++rank) {
        const DeviceGuard guard(group->device(rank));
        ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(streams[rank], cudaStreamCaptureModeRelaxed));
        group->enqueue_fused(rank, call, replayed.input(rank), replayed.norm(rank), replayed.shape(), dtype, streams[rank]);
        group->enqueue(rank, call, pair.input(rank), pair.output(rank), pair.count(), dtype, streams[rank]);
        group->enqueue_norm(rank, pair.output(rank), pair.norm(rank), pair.shape(), dtype, streams[rank]);
        cudaGraph_t graph;
        ARTUNE_CHECK_CUDA(cudaStreamEndCapture(streams[rank], &graph));
        ARTUNE_CHECK_CUDA(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
        cudaGraphDestroy(graph);
        ARTUNE_CHECK_CUDA(cudaGraphUpload(graphs[rank], streams[rank]));
      }
      streams.synchronize();
      for (int step = 0; step < 7; ++step) {
        if (step % 3 == 1) {
          fused(*group, {id, {.blocks = 1 + step, .threads = 64}}, eager, dtype, streams);
          continue;
        }
        for (int rank = 0; rank < group->ranks(); ++rank) {
          const DeviceGuard guard(group->device(rank));
          ARTUNE_CHECK_CUDA(cudaGraphLaunch(graphs[rank], streams[rank]));
        }
      }
      streams.synchronize();
      for (const Tensors* tensors : {&replayed, &pair, &eager}) {
        tensors->expect_right();
        if (HasFatalFailure()) return;
      }
      for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
    }
    EXPECT_FALSE(group->failure());
  }
}

// Back to back without a pause: every call of another shape, geometry and kind, checked at the end.
TEST_P(FusedOnGpu, ManyCallsInFlight) {
  auto group = make_group(GetParam(), 10, std::size_t{256} << 10);
  const Streams streams(*group);
  std::mt19937 random(static_cast<unsigned>(GetParam()) + 77);
  for (int round = 0; round < 6; ++round) {
    std::vector<std::unique_ptr<Tensors>> tensors;
    std::vector<Call> calls;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto hidden = static_cast<std::uint32_t>(kLeastHidden + kVectorElements * (random() % 300));
      const NormShape shape{1 + random() % 9, hidden, 1e-6F, i % 2 == 0};
      const auto ids = fused_candidates(*group, hidden);
      tensors.push_back(
          std::make_unique<Tensors>(*group, DType::bf16, shape, 1000 * static_cast<std::uint64_t>(round) + i, i % 3 == 0));
      calls.push_back({ids[random() % ids.size()],
                       {.blocks = static_cast<int>(1 + random() % 24), .threads = static_cast<int>(32 * (1 + random() % 16))}});
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i % 4 == 3) {
        unfused(*group, calls[i], *tensors[i], DType::bf16, streams);
      } else {
        fused(*group, calls[i], *tensors[i], DType::bf16, streams);
      }
    }
    streams.synchronize();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", call " << i << ", " << info_of(calls[i].candidate).name);
      tensors[i]->expect_right();
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_FALSE(group->failure());
}

INSTANTIATE_TEST_SUITE_P(Ranks, FusedOnGpu, testing::Values(2, 3, 4, 8));

TEST(FusedMissing, RankIsNamedAndOutputsAreNaN) {
  for (const CandidateInfo& info : menu()) {
    if (!fused_served(info)) continue;
    SCOPED_TRACE(info.name);
    for (const int blocks : {1, 6, 24}) {
      auto group = make_group(3, 0.2, std::size_t{64} << 10);
      const Streams streams(*group);
      const Tensors tensors(*group, DType::bf16, {3, 4096}, 0, false);
      for (int call = 0; call < 2; ++call) {  // the second finds the error of the first
        fused(*group, {info.id, {.blocks = blocks, .threads = 128}}, tensors, DType::bf16, streams, /*left_out=*/2);
        streams.synchronize();
        EXPECT_TRUE(tensors.all_nan(0));
        EXPECT_TRUE(tensors.all_nan(1));
      }
      const auto failure = group->failure();
      ASSERT_TRUE(failure);
      EXPECT_THAT(*failure, testing::HasSubstr("waited for rank 2 and gave up"));
    }
  }
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
