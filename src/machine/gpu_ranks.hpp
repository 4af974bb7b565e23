// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a measurement own on their GPUs: a stream, buffers with guards, events, and the gate they start at.
// The streams have the highest priority, as serving stacks give the streams of their collectives: alone on a GPU that
// changes nothing, beside compute it decides who gets the room that a block leaves.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "machine/gpu_check.hpp"

namespace artune {

inline constexpr std::size_t kGuardBytes = 4096;

class GpuRanks {
 public:
  explicit GpuRanks(const std::vector<int>& devices);
  ~GpuRanks();
  GpuRanks(const GpuRanks&) = delete;
  GpuRanks& operator=(const GpuRanks&) = delete;

  int ranks() const { return static_cast<int>(ranks_.size()); }
  int device(int rank) const { return ranks_[rank]->device; }
  cudaStream_t stream(int rank) const { return ranks_[rank]->stream; }
  void* input(int rank) const { return ranks_[rank]->input.data() + kGuardBytes; }
  void* output(int rank) const { return ranks_[rank]->output.data() + kGuardBytes; }
  std::uint32_t* replay(int rank) const { return reinterpret_cast<std::uint32_t*>(ranks_[rank]->state.data()); }
  CheckReport* report(int rank) const { return reinterpret_cast<CheckReport*>(ranks_[rank]->state.data() + 256); }

  /// Makes room for messages of `bytes`. Throws Failure when the GPUs haven't got it.
  void reserve(std::size_t bytes);

  /// Holds every stream until open_gate(). Everything enqueued between the two starts together on all ranks.
  void close_gate();
  void open_gate();
  /// Another stream of the current device waits for the same gate: between close_gate() and open_gate().
  void hold(cudaStream_t stream);
  void record_start(int rank);
  void record_end(int rank);
  /// Between the two records, µs. After wait().
  double elapsed_us(int rank) const;

  /// Waits for all streams; a failure of the group or the deadline ends the waiting. nullopt = all done; else what happened.
  std::optional<std::string> wait(const Group& group, std::chrono::duration<double> deadline);

  CheckReport read_report(int rank) const;
  void clear_reports();

 private:
  struct Rank {
    int device = 0;
    cudaStream_t stream = nullptr;
    cudaEvent_t start = nullptr, end = nullptr;
    DeviceMemory input, output, state;
  };
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::size_t capacity_ = 0;
  PinnedMemory gate_;
  std::uint32_t ticket_ = 0;
};

}  // namespace artune
