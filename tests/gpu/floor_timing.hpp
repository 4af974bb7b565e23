// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// How the floor programs time a call of all ranks: many calls a graph, in the two forms that graphs of several ranks come in.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "comm/cuda_check.hpp"
#include "comm/memory.hpp"

namespace artune {

inline constexpr int kMostCalls = 50;
inline constexpr int kMostQueued = 800;  // see Group::kernels_per_call
inline constexpr int kReplays = 15;

struct Lanes {
  explicit Lanes(const std::vector<int>& devices_, std::size_t bytes) : devices(devices_) {
    for (const int device : devices) {
      const DeviceGuard guard(device);
      inputs.emplace_back(device, bytes);
      outputs.emplace_back(device, bytes);
      ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&streams.emplace_back(), cudaStreamNonBlocking));
      ARTUNE_CHECK_CUDA(cudaEventCreate(&starts.emplace_back()));
      ARTUNE_CHECK_CUDA(cudaEventCreate(&ends.emplace_back()));
      ARTUNE_CHECK_CUDA(cudaEventCreateWithFlags(&joins.emplace_back(), cudaEventDisableTiming));
    }
  }
  int ranks() const { return static_cast<int>(devices.size()); }

  std::vector<int> devices;
  std::vector<DeviceMemory> inputs, outputs;
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> starts, ends, joins;
};

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

inline cudaGraphExec_t instantiate(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ARTUNE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  ARTUNE_CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  ARTUNE_CHECK_CUDA(cudaGraphDestroy(graph));
  ARTUNE_CHECK_CUDA(cudaGraphUpload(executable, stream));
  return executable;
}

inline void synchronize(const Lanes& lanes) {
  for (const cudaStream_t stream : lanes.streams) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(stream));
}

inline float between(cudaEvent_t start, cudaEvent_t end) {
  float ms = 0;
  ARTUNE_CHECK_CUDA(cudaEventElapsedTime(&ms, start, end));
  return ms * 1000;
}

/// µs per call; `issue` enqueues one call of all ranks.
template <typename Issue>
double forked_us(Lanes& lanes, int calls, const Issue& issue) {
  ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(lanes.streams[0], cudaStreamCaptureModeRelaxed));
  ARTUNE_CHECK_CUDA(cudaEventRecord(lanes.joins[0], lanes.streams[0]));
  for (int rank = 1; rank < lanes.ranks(); ++rank) ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(lanes.streams[rank], lanes.joins[0], 0));
  for (int call = 0; call < calls; ++call) issue();
  for (int rank = 1; rank < lanes.ranks(); ++rank) {
    ARTUNE_CHECK_CUDA(cudaEventRecord(lanes.joins[rank], lanes.streams[rank]));
    ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(lanes.streams[0], lanes.joins[rank], 0));
  }
  const cudaGraphExec_t graph = instantiate(lanes.streams[0]);
  std::vector<double> times;
  for (int replay = -3; replay < kReplays; ++replay) {
    ARTUNE_CHECK_CUDA(cudaEventRecord(lanes.starts[0], lanes.streams[0]));
    ARTUNE_CHECK_CUDA(cudaGraphLaunch(graph, lanes.streams[0]));
    ARTUNE_CHECK_CUDA(cudaEventRecord(lanes.ends[0], lanes.streams[0]));
    synchronize(lanes);
    if (replay >= 0) times.push_back(double{between(lanes.starts[0], lanes.ends[0])} / calls);
  }
  ARTUNE_CHECK_CUDA(cudaGraphExecDestroy(graph));
  return median(times);
}

template <typename Issue>
double per_rank_us(Lanes& lanes, int calls, const Issue& issue) {
  for (const cudaStream_t stream : lanes.streams) ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (int call = 0; call < calls; ++call) issue();
  std::vector<cudaGraphExec_t> graphs;
  for (const cudaStream_t stream : lanes.streams) graphs.push_back(instantiate(stream));
  synchronize(lanes);  // an upload that still has to be done behind a graph that waits for its peers would never be
  std::vector<double> times;
  for (int replay = -3; replay < kReplays; ++replay) {
    for (int rank = 0; rank < lanes.ranks(); ++rank) {
      ARTUNE_CHECK_CUDA(cudaEventRecord(lanes.starts[rank], lanes.streams[rank]));
      ARTUNE_CHECK_CUDA(cudaGraphLaunch(graphs[rank], lanes.streams[rank]));
      ARTUNE_CHECK_CUDA(cudaEventRecord(lanes.ends[rank], lanes.streams[rank]));
    }
    synchronize(lanes);
    // From the last rank's start: how late the graphs of one process reach the GPU is the host's affair.
    double slowest = 0;
    for (int rank = 0; rank < lanes.ranks(); ++rank) slowest = std::max<double>(slowest, between(lanes.starts.back(), lanes.ends[rank]));
    if (replay >= 0) times.push_back(slowest / calls);
  }
  for (const cudaGraphExec_t graph : graphs) ARTUNE_CHECK_CUDA(cudaGraphExecDestroy(graph));
  return median(times);
}

}  // namespace artune
