// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One ar-tune per GPU: two that measure at once would measure each other.
//
//   Result<GpuLock> lock = GpuLock::take(gpus, lock_directory());
//   if (!lock) return lock.error();       // "GPU 0 (0000:01:00.0, NVIDIA H200) is being measured by process 4711; …"
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/document.hpp"
#include "base/result.hpp"

namespace artune {

class GpuLock {
 public:
  /// Locks all of `gpus` or none. Reason::busy_gpu names the process that holds one.
  static Result<GpuLock> take(const std::vector<GpuFacts>& gpus, const std::string& directory);

  GpuLock(GpuLock&& other) noexcept : descriptors_(std::exchange(other.descriptors_, {})) {}
  GpuLock& operator=(GpuLock&&) = delete;
  ~GpuLock();

 private:
  GpuLock() = default;
  std::vector<int> descriptors_;   ///< an open file each; the kernel unlocks them when this process ends, however it ends
};

/// $XDG_RUNTIME_DIR, else /tmp.
std::string lock_directory();
/// "DIRECTORY/ar-tune-gpu-<hash of its UUID>.lock"
std::string lock_file(const std::string& directory, const GpuFacts& gpu);
/// "GPU 0 (0000:01:00.0, NVIDIA H200)"
std::string full_name(const GpuFacts& gpu);

}  // namespace artune
