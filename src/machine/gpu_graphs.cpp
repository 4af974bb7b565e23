// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_graphs.hpp"

#include <exception>

#include "base/failure.hpp"
#include "comm/cuda_check.hpp"

namespace artune {

RankGraphs::~RankGraphs() {
  for (const cudaGraphExec_t executable : executables_) cudaGraphExecDestroy(executable);
}

RankGraphs RankGraphs::capture(const GpuRanks& ranks, const std::function<void()>& issue) {
  RankGraphs graphs;
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const DeviceGuard guard(ranks.device(rank));
    ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(ranks.stream(rank), cudaStreamCaptureModeRelaxed));
  }
  std::exception_ptr thrown;
  try {
    issue();
  } catch (...) {
    thrown = std::current_exception();  // the captures must be ended before anything else can be done with the streams
  }
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const DeviceGuard guard(ranks.device(rank));
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(ranks.stream(rank), &graph);
    if (ended != cudaSuccess) {
      cudaGetLastError();
      if (!thrown) thrown = std::make_exception_ptr(Failure("cudaStreamEndCapture", cudaGetErrorString(ended), ended));
      continue;
    }
    cudaGraphExec_t executable = nullptr;
    const cudaError_t instantiated = thrown ? cudaSuccess : cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(instantiated, "cudaGraphInstantiate");
    if (executable == nullptr) continue;
    graphs.executables_.push_back(executable);
    // Uploaded before the first launch of any: a launch that had to upload behind a spinning kernel would wait for it.
    ARTUNE_CHECK_CUDA(cudaGraphUpload(executable, ranks.stream(rank)));
  }
  if (thrown) std::rethrow_exception(thrown);
  return graphs;
}

void RankGraphs::launch(const GpuRanks& ranks, int rank) const {
  const DeviceGuard guard(ranks.device(rank));
  ARTUNE_CHECK_CUDA(cudaGraphLaunch(executables_[rank], ranks.stream(rank)));
}

}  // namespace artune
