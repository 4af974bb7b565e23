// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_ranks.hpp"

#include <atomic>
#include <bit>
#include <thread>

namespace artune {

GpuRanks::GpuRanks(const std::vector<int>& devices) : gate_(128) {
  for (const int device : devices) {
    auto& rank = *ranks_.emplace_back(std::make_unique<Rank>());
    rank.device = device;
    const DeviceGuard guard(device);
    int least = 0, greatest = 0;
    ARTUNE_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    ARTUNE_CHECK_CUDA(cudaStreamCreateWithPriority(&rank.stream, cudaStreamNonBlocking, greatest));
    ARTUNE_CHECK_CUDA(cudaEventCreate(&rank.start));
    ARTUNE_CHECK_CUDA(cudaEventCreate(&rank.end));
    rank.state = DeviceMemory(device, 512);
  }
}

GpuRanks::~GpuRanks() {
  for (const auto& rank : ranks_) {
    cudaSetDevice(rank->device);
    cudaEventDestroy(rank->start);
    cudaEventDestroy(rank->end);
    cudaStreamDestroy(rank->stream);
  }
}

void GpuRanks::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  capacity_ = 0;
  const std::size_t wanted = std::bit_ceil(bytes);
  for (const auto& rank : ranks_) {
    rank->input = DeviceMemory();
    rank->output = DeviceMemory();
  }
  for (const auto& rank : ranks_) {
    rank->input = DeviceMemory(rank->device, wanted + 2 * kGuardBytes);
    rank->output = DeviceMemory(rank->device, wanted + 2 * kGuardBytes);
  }
  capacity_ = wanted;
}

void GpuRanks::close_gate() {
  ++ticket_;
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    wait_gate(reinterpret_cast<const std::uint32_t*>(gate_.data()), ticket_, stream(rank));
  }
}

void GpuRanks::hold(cudaStream_t stream) { wait_gate(reinterpret_cast<const std::uint32_t*>(gate_.data()), ticket_, stream); }

void GpuRanks::open_gate() {
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(gate_.data())).store(ticket_, std::memory_order_release);
}

void GpuRanks::record_start(int rank) { ARTUNE_CHECK_CUDA(cudaEventRecord(ranks_[rank]->start, stream(rank))); }
void GpuRanks::record_end(int rank) { ARTUNE_CHECK_CUDA(cudaEventRecord(ranks_[rank]->end, stream(rank))); }

double GpuRanks::elapsed_us(int rank) const {
  float milliseconds = 0;
  ARTUNE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, ranks_[rank]->start, ranks_[rank]->end));
  return double{milliseconds} * 1000.0;
}

std::optional<std::string> GpuRanks::wait(const Group& group, std::chrono::duration<double> deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  int polls = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    while (true) {
      const cudaError_t status = cudaStreamQuery(stream(rank));
      if (status == cudaSuccess) break;
      if (status != cudaErrorNotReady) check_cuda(status, "cudaStreamQuery");
      // Nothing asynchronous is told by a stream that just runs: look at the reports, at a pace that costs nothing.
      if (++polls % 1024 == 0) {
        if (auto failure = group.failure()) return failure;
        if (std::chrono::steady_clock::now() > end) return "no end after " + std::to_string(static_cast<int>(deadline.count())) + " s on rank " + std::to_string(rank);
      }
    }
  }
  return group.failure();
}

CheckReport GpuRanks::read_report(int rank) const {
  CheckReport report;
  ARTUNE_CHECK_CUDA(cudaMemcpy(&report, this->report(rank), sizeof report, cudaMemcpyDeviceToHost));
  return report;
}

void GpuRanks::clear_reports() {
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    ARTUNE_CHECK_CUDA(cudaMemsetAsync(report(rank), 0, sizeof(CheckReport), stream(rank)));
  }
}

}  // namespace artune
