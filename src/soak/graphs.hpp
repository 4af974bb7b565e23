// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "comm/cuda_check.hpp"
#include "soak/lane.hpp"

namespace artune::soak {

/// A graph of every rank, uploaded.
class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  ~Graphs() {
    for (const cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
  }

  template <typename Issue>
  void capture(const std::vector<std::unique_ptr<Lane>>& lanes, const Issue& issue) {
    std::size_t begun = 0;
    try {
      for (; begun < lanes.size(); ++begun)
        ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(lanes[begun]->stream(0), cudaStreamCaptureModeRelaxed));
      issue();
    } catch (...) {
      for (std::size_t rank = 0; rank < begun; ++rank) {  // a capture left open would poison what comes after
        cudaGraph_t graph = nullptr;
        cudaStreamEndCapture(lanes[rank]->stream(0), &graph);
        if (graph != nullptr) cudaGraphDestroy(graph);
      }
      cudaGetLastError();
      throw;
    }
    std::vector<cudaGraph_t> captured(lanes.size(), nullptr);
    cudaError_t status = cudaSuccess;
    for (std::size_t rank = 0; rank < lanes.size(); ++rank) {  // all of them, even after one has failed
      const cudaError_t ended = cudaStreamEndCapture(lanes[rank]->stream(0), &captured[rank]);
      if (status == cudaSuccess) status = ended;
    }
    for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
      const DeviceGuard guard(lanes[rank]->device());
      if (status == cudaSuccess) status = cudaGraphInstantiate(&graphs_.emplace_back(), captured[rank], 0);
      if (captured[rank] != nullptr) cudaGraphDestroy(captured[rank]);
    }
    check_cuda(status, "capture of a graph of random calls");
    // An upload that still has to be done behind a graph that waits for its peers would never be.
    for (std::size_t rank = 0; rank < lanes.size(); ++rank)
      ARTUNE_CHECK_CUDA(cudaGraphUpload(graphs_[rank], lanes[rank]->stream(0)));
    for (const auto& lane : lanes) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(lane->stream(0)));
  }

  void launch(const std::vector<std::unique_ptr<Lane>>& lanes) const {
    for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
      const DeviceGuard guard(lanes[rank]->device());
      ARTUNE_CHECK_CUDA(cudaGraphLaunch(graphs_[rank], lanes[rank]->stream(0)));
    }
  }

 private:
  std::vector<cudaGraphExec_t> graphs_;
};

}  // namespace artune::soak
