// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// GpuOverlap: reductions timed beside a compute load, and both by themselves. docs/overlap.md says what is measured.
//
//   GpuOverlap overlap(ranks, group);
//   OverlapTiming timing = overlap.time(candidate, {.issue = …, .mode = Mode::graph, .kernels = 4, .deadline = …}, request);
//
// One load a GPU, on a stream of its own with default priority; the ranks' streams have the highest. Runs are enqueued
// whole behind the ranks' gate, so that neither the host's pace nor its launches are in any figure.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/candidate.hpp"
#include "machine/compute_load.hpp"
#include "machine/gpu_graphs.hpp"
#include "machine/gpu_ranks.hpp"
#include "machine/machine.hpp"

namespace artune {

/// What waits in all launch queues together stays below this: they take about a thousand, see Group::kernels_per_call.
inline constexpr int kMostQueuedKernels = 800;

struct OverlapWork {
  std::function<void()> issue;              ///< enqueues one all-reduce of every rank on the ranks' streams
  Mode mode = Mode::graph;
  int kernels = 1;                          ///< of one all-reduce, all ranks together
  std::chrono::duration<double> deadline{15};
};

class GpuOverlap {
 public:
  /// Throws Failure when CUDA fails; calibrates the load on every GPU.
  GpuOverlap(GpuRanks& ranks, const Group& group, std::chrono::duration<double> deadline);
  ~GpuOverlap();
  GpuOverlap(const GpuOverlap&) = delete;
  GpuOverlap& operator=(const GpuOverlap&) = delete;

  /// All requests for one candidate use the same number of reductions and length of load, until forget().
  OverlapTiming time(const Candidate& candidate, const OverlapWork& work, const OverlapRequest& request);
  /// Before buffers move or the shape changes: captured graphs hold both.
  void forget() { plans_.clear(); }

 private:
  struct Load;
  struct Plan {
    int calls = 0;
    double compute_us = 0;
    RankGraphs graphs;
  };
  /// stamps[rank]: release, then the end of every reduction. windows[load].
  struct Readings {
    std::vector<std::vector<std::uint64_t>> stamps;
    std::vector<LoadWindow> windows;
  };

  void calibrate(std::chrono::duration<double> deadline);
  Plan make_plan(const OverlapWork& work, double compute_us);
  Readings run(const OverlapWork& work, const Plan* reductions, double compute_us, LaunchOrder order);
  void enqueue_reductions(const OverlapWork& work, const Plan& plan, bool after_load);
  void issue_stamped(const OverlapWork& work, int calls);
  void enqueue_loads(double compute_us, bool after_reductions);
  void wait(std::chrono::duration<double> deadline);
  std::uint64_t* stamp(int rank, int index) const;
  double slowest_load_us(const Readings& readings) const;
  double slowest_reduction_us(const Readings& readings) const;
  /// false: the reductions were over before the load.
  bool read_beside(const Readings& readings, OverlapSample& sample) const;

  GpuRanks& ranks_;
  const Group& group_;
  std::vector<std::unique_ptr<Load>> loads_;   ///< one a GPU
  std::vector<std::size_t> load_of_;           ///< by rank
  std::vector<DeviceMemory> stamps_;           ///< by rank
  std::map<Candidate, Plan> plans_;
};

}  // namespace artune
