// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "base/failure.hpp"

namespace artune {

inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  int device = -1;
  cudaGetDevice(&device);
  cudaGetLastError();  // a sticky error stays sticky; an ordinary one must not surface in the next, innocent call
  throw Failure(call, cudaGetErrorString(status), static_cast<int>(status), device);
}

/// Throws Failure with the call's text.
#define ARTUNE_CHECK_CUDA(call) ::artune::check_cuda((call), #call)

/// Makes `device` current and restores the caller's device at the end of the scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    ARTUNE_CHECK_CUDA(cudaGetDevice(&before_));
    if (device != before_) ARTUNE_CHECK_CUDA(cudaSetDevice(device));
    changed_ = device != before_;
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (changed_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace artune
