// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a protocol body runs: a thread of a block of a grid on the GPU, a CPU thread that is a whole block on the host.
#pragma once

#include <cstdint>

#include "protocol/memory.cuh"

namespace artune {

struct Lane {
  std::uint32_t thread, threads, block, blocks;

  ARTUNE_BOTH std::uint64_t first() const { return std::uint64_t{block} * threads + thread; }
  ARTUNE_BOTH std::uint64_t stride() const { return std::uint64_t{blocks} * threads; }

#if defined(__CUDACC__)
  static __device__ __forceinline__ Lane current() { return {threadIdx.x, blockDim.x, blockIdx.x, gridDim.x}; }
#endif
};

}  // namespace artune
