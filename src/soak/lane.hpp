// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <array>

#include "comm/group.hpp"
#include "soak/device.hpp"
#include "soak/plan.hpp"

namespace artune::soak {

inline constexpr int kStreams = 2;             ///< of a rank
inline constexpr int kSets = 2 * kStreams;     ///< of buffers: two that alternate on each stream
inline constexpr std::size_t kPadBytes = 256;  ///< before a message and after it: room for offsets and guards
inline constexpr std::size_t kLineBytes = 128;
static_assert(kPadBytes >= kGuardBytes + kMostOffset * 4);
static_assert(sizeof(WrongRecord) <= kLineBytes);

/// What one rank owns beside the group.
class Lane {
 public:
  Lane(int device, std::size_t max_bytes) : device_(device), state_(device, 2 * kLineBytes) {
    const DeviceGuard guard(device);
    for (int i = 0; i < kStreams; ++i) {
      ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking));
      ARTUNE_CHECK_CUDA(cudaEventCreateWithFlags(&events_[i], cudaEventDisableTiming));
    }
    for (auto& set : inputs_) set = DeviceMemory(device, max_bytes + 2 * kPadBytes);
    for (auto& set : outputs_) set = DeviceMemory(device, max_bytes + 2 * kPadBytes);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
    cudaSetDevice(device_);
    for (int i = 0; i < kStreams; ++i) {
      cudaEventDestroy(events_[i]);
      cudaStreamDestroy(streams_[i]);
    }
  }

  int device() const { return device_; }
  cudaStream_t stream(int i) const { return streams_[i]; }
  RankBuffers buffers(const DrawnCall& call, Form form, int rank, int set) const {
    const std::size_t size = element_bytes(user_dtype(form));
    char* output = outputs_[set].data() + kPadBytes + call.output_offset[rank] * size;
    return {call.in_place ? output : inputs_[set].data() + kPadBytes + call.input_offset[rank] * size, output};
  }
  std::uint32_t* replay() const { return reinterpret_cast<std::uint32_t*>(state_.data()); }
  WrongRecord* record() const { return reinterpret_cast<WrongRecord*>(state_.data() + kLineBytes); }

  /// What comes on stream `later` comes after what is on `earlier` now.
  void order(int later, int earlier) const {
    const DeviceGuard guard(device_);
    ARTUNE_CHECK_CUDA(cudaEventRecord(events_[earlier], streams_[earlier]));
    ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(streams_[later], events_[earlier], 0));
  }

 private:
  int device_;
  std::array<cudaStream_t, kStreams> streams_{};
  std::array<cudaEvent_t, kStreams> events_{};
  std::array<DeviceMemory, kSets> inputs_, outputs_;
  DeviceMemory state_;
};

}  // namespace artune::soak
