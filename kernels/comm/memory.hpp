// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Owners of device and pinned host memory. Both start cleared (or filled with one byte): the protocols count on it, a
// tag is never 0.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "comm/cuda_check.hpp"

namespace artune {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(int device, std::size_t bytes, int fill = 0) : device_(device) {
    const DeviceGuard guard(device);
    ARTUNE_CHECK_CUDA(cudaMalloc(&data_, bytes));
    ARTUNE_CHECK_CUDA(cudaMemset(data_, fill, bytes));
    ARTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  }
  DeviceMemory(DeviceMemory&& other) noexcept : device_(other.device_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) cudaFree(data_);
  }
  char* data() const { return static_cast<char*>(data_); }

 private:
  int device_ = 0;
  void* data_ = nullptr;
};

/// Mapped into every device's address space (unified addressing: the same pointer everywhere).
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::size_t bytes) {
    ARTUNE_CHECK_CUDA(cudaHostAlloc(&data_, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    auto* first = static_cast<char*>(data_);
    for (std::size_t i = 0; i < bytes; ++i) first[i] = 0;
  }
  PinnedMemory(PinnedMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~PinnedMemory() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace artune
