// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// RankGraphs: one CUDA graph per rank, as serving stacks replay them.
//
//   const RankGraphs graphs = RankGraphs::capture(ranks, [&] { issue(call); });
//   for (int rank = 0; rank < ranks.ranks(); ++rank) graphs.launch(ranks, rank);
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <utility>
#include <vector>

#include "machine/gpu_ranks.hpp"

namespace artune {

class RankGraphs {
 public:
  RankGraphs() = default;
  RankGraphs(RankGraphs&& other) noexcept : executables_(std::exchange(other.executables_, {})) {}
  RankGraphs& operator=(RankGraphs&& other) noexcept {
    std::swap(executables_, other.executables_);
    return *this;
  }
  ~RankGraphs();

  /// `issue` enqueues work on all ranks' streams, which are being captured meanwhile. Throws Failure.
  static RankGraphs capture(const GpuRanks& ranks, const std::function<void()>& issue);
  void launch(const GpuRanks& ranks, int rank) const;

 private:
  std::vector<cudaGraphExec_t> executables_;
};

}  // namespace artune
