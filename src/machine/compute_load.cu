// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/compute_load.hpp"

#include "paths/kernel_table.cuh"
#include "protocol/memory.cuh"

namespace artune {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerMultiprocessorHere = 2;
// Enough live values that 2 * 512 threads take nearly all 65536 registers; tests/gpu/overlap_test.cpp looks at occupancy.
constexpr int kSums = 48;
// 512 threads * 48 * 96 multiply-adds, two blocks over the 128 lanes of a multiprocessor: 37 000 clocks, 20 µs at 1.8 GHz.
constexpr int kRounds = 96;
constexpr std::uint64_t kAwaitNs = 10'000'000'000ULL;

/// `factor` and `step` come as arguments so that the compiler can't know the result; `never` is not written with finite ones.
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessorHere)
    compute_kernel(LoadWindow* window, float factor, float step, float* never) {
  if (threadIdx.x == 0) atomicMin(reinterpret_cast<unsigned long long*>(&window->first), static_cast<unsigned long long>(now_ns()));
  float sums[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(threadIdx.x + static_cast<unsigned>(i));
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = fmaf(sums[i], factor, step);
  }
  float total = 0;
#pragma unroll
  for (int i = 0; i < kSums; ++i) total += sums[i];
  if (isnan(total)) *never = total;
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned long long*>(&window->last), static_cast<unsigned long long>(now_ns()));
}

__global__ void stamp_kernel(std::uint64_t* slot) { *slot = now_ns(); }

__global__ void await_word_kernel(const std::uint64_t* word, std::uint64_t unset, std::uint64_t* slot) {
  const std::uint64_t started = now_ns();
  while (word != nullptr && *reinterpret_cast<const volatile std::uint64_t*>(word) == unset && now_ns() - started < kAwaitNs) {
  }
  if (slot != nullptr) *slot = now_ns();
}

}  // namespace

int compute_load_wave() {
  int device = 0, multiprocessors = 0, blocks = 0;
  ARTUNE_CHECK_CUDA(cudaGetDevice(&device));
  ARTUNE_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  ARTUNE_CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<const void*>(compute_kernel), kThreads, 0));
  return multiprocessors * blocks;
}

void launch_compute_load(LoadWindow* window, int blocks, cudaStream_t stream) {
  compute_kernel<<<blocks, kThreads, 0, stream>>>(window, 0.999F, 0.001F, nullptr);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void launch_stamp(std::uint64_t* slot, cudaStream_t stream) {
  stamp_kernel<<<1, 1, 0, stream>>>(slot);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void launch_await_word(const std::uint64_t* word, std::uint64_t unset, std::uint64_t* slot, cudaStream_t stream) {
  await_word_kernel<<<1, 1, 0, stream>>>(word, unset, slot);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void load_compute_kernels() {
  load_kernel(reinterpret_cast<const void*>(compute_kernel));
  load_kernel(reinterpret_cast<const void*>(stamp_kernel));
  load_kernel(reinterpret_cast<const void*>(await_word_kernel));
}

}  // namespace artune
