// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cuda_check.hpp"
#include "fused/norm_arguments.hpp"
#include "fused_soak_device.hpp"
#include "protocol/elements.cuh"

namespace artune {
namespace {

constexpr int kThreads = 256;
constexpr std::uint32_t kResidual = 100, kWeight = 101;  // tensors beside the ranks' inputs

__device__ std::uint32_t mix(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bU;
  x = (x ^ x >> 13) * 0xc2b2ae35U;
  return x ^ x >> 16;
}

/// Mostly reals of any sign and fraction from 2^-15 to 2; some rows are zeros, hold one large element, or one NaN.
template <DType D>
__device__ std::uint32_t element(const SoakCall& call, std::uint32_t replay, std::uint32_t tensor, std::uint32_t index) {
  const std::uint32_t key = mix(call.number * 0x9e3779b1U ^ mix(replay * 0x7feb352dU + tensor));
  const std::uint32_t row = tensor == kWeight ? 1 : mix(call.number * 31U + index / call.hidden) % 16;
  if (row == 0) return 0;
  const std::uint32_t bits = mix(index * 0x9e3779b9U ^ key);
  std::uint32_t real = (bits & 0x807fffffU) | (112U + (bits >> 23 & 15U)) << 23;
  if (row == 2 && index % call.hidden == call.hidden / 2) real = 0x46c00000U;  // 24576: f16 sums of three overflow
  if (row == 3 && tensor == 0 && index % call.hidden == call.hidden / 3) real = 0x7fffffffU;
  return float_to_word<D>(word_to_float(real), 0) & 0xffffU;
}

template <DType D>
__device__ void fill(const SoakCall& call, std::uint32_t replay) {
  const std::uint32_t count = call.rows * call.hidden;
  const auto put = [](void* tensor, std::uint32_t i, std::uint32_t bits) {
    static_cast<std::uint16_t*>(tensor)[i] = static_cast<std::uint16_t>(bits);
  };
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    if (call.tensors.output != call.tensors.input) put(const_cast<void*>(call.tensors.output), i, 0xffff);
    if (call.tensors.residual_out != call.tensors.residual) put(const_cast<void*>(call.tensors.residual_out), i, 0xffff);
    put(call.tensors.input, i, element<D>(call, replay, static_cast<std::uint32_t>(call.rank), i));
    put(call.tensors.residual, i, element<D>(call, replay, kResidual, i));
    if (i < call.hidden) put(call.tensors.weight, i, element<D>(call, replay, kWeight, i));
  }
}

__global__ void __launch_bounds__(kThreads, 4) fill_kernel(const __grid_constant__ SoakCall call, const std::uint32_t* replay) {
  if (call.dtype == DType::f16) return fill<DType::f16>(call, *replay);
  fill<DType::bf16>(call, *replay);
}

template <DType D>
__device__ void compare(const SoakCall& call, std::uint32_t replay, SoakRecord* record, std::uint32_t what, std::uint32_t index,
                        std::uint32_t got, std::uint32_t expected) {
  const auto is_nan = [](std::uint32_t bits) { return isnan(half_to_float<D>(bits)); };
  if (got == expected || (is_nan(got) && is_nan(expected))) return;
  if (atomicAdd(&record->wrong, 1U) != 0) return;
  record->call = call.number;
  record->replay = replay;
  record->what = what;
  record->index = index;
  record->got = got;
  record->expected = expected;
}

/// The updated residual of element `index`, as bits.
template <DType D>
__device__ std::uint32_t updated(const SoakCall& call, std::uint32_t replay, std::uint32_t index) {
  float sum = 0;
  for (int rank = 0; rank < call.ranks; ++rank)
    sum += half_to_float<D>(element<D>(call, replay, static_cast<std::uint32_t>(rank), index));
  const float rounded = half_to_float<D>(float_to_word<D>(sum, 0) & 0xffffU);
  return float_to_word<D>(__fadd_rn(rounded, half_to_float<D>(element<D>(call, replay, kResidual, index))), 0) & 0xffffU;
}

/// A block a row; thread by thread where the kernels go warp by warp.
template <DType D>
__device__ void check(const SoakCall& call, std::uint32_t replay, SoakRecord* record, float* sums) {
  const auto* output = static_cast<const std::uint16_t*>(call.tensors.output);
  const auto* residual = static_cast<const std::uint16_t*>(call.tensors.residual_out);
  __shared__ float scale;
  constexpr std::uint32_t kVectors = kMostHidden / kVectorElements;
  for (std::uint32_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const std::uint32_t begin = row * call.hidden;
    for (std::uint32_t v = threadIdx.x; v < kVectors; v += blockDim.x) {
      float squares = 0;
      for (std::uint32_t e = 0; e < kVectorElements && v * kVectorElements < call.hidden; ++e) {
        const std::uint32_t index = begin + v * kVectorElements + e;
        const std::uint32_t bits = updated<D>(call, replay, index);
        compare<D>(call, replay, record, 2, index, residual[index], bits);
        squares = __fmaf_rn(half_to_float<D>(bits), half_to_float<D>(bits), squares);
      }
      sums[v] = squares;
    }
    __syncthreads();
    // Groups of 32 in halves, then their 64 sums in halves.
    for (std::uint32_t half = 16; half > 0; half /= 2) {
      for (std::uint32_t v = threadIdx.x; v < kVectors; v += blockDim.x) {
        if (v % 32 < half) sums[v] = __fadd_rn(sums[v], sums[v + half]);
      }
      __syncthreads();
    }
    for (std::uint32_t half = 32; half > 0; half /= 2) {
      if (threadIdx.x < half) sums[threadIdx.x * 32] = __fadd_rn(sums[threadIdx.x * 32], sums[(threadIdx.x + half) * 32]);
      __syncthreads();
    }
    if (threadIdx.x == 0)
      scale = __fdiv_rn(1.0F, __fsqrt_rn(__fmaf_rn(sums[0], __fdiv_rn(1.0F, static_cast<float>(call.hidden)), call.epsilon)));
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < call.hidden; i += blockDim.x) {
      const float weight = half_to_float<D>(element<D>(call, replay, kWeight, i));
      const float r = half_to_float<D>(updated<D>(call, replay, begin + i));
      const float y = __fmul_rn(__fmul_rn(r, scale), call.one_plus ? __fadd_rn(1.0F, weight) : weight);
      compare<D>(call, replay, record, 1, begin + i, output[begin + i], float_to_word<D>(y, 0) & 0xffffU);
    }
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) ++record->checked;
}

__global__ void __launch_bounds__(kThreads, 4)
    check_kernel(const __grid_constant__ SoakCall call, const std::uint32_t* replay, SoakRecord* record) {
  __shared__ float sums[kMostHidden / kVectorElements];
  if (call.dtype == DType::f16) return check<DType::f16>(call, *replay, record, sums);
  check<DType::bf16>(call, *replay, record, sums);
}

__global__ void next_kernel(std::uint32_t* replay) { ++*replay; }

}  // namespace

void launch_soak_fill(const SoakCall& call, const std::uint32_t* replay, cudaStream_t stream) {
  fill_kernel<<<8, kThreads, 0, stream>>>(call, replay);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void launch_soak_check(const SoakCall& call, const std::uint32_t* replay, SoakRecord* record, cudaStream_t stream) {
  const unsigned blocks = call.rows < 8 ? call.rows : 8;
  check_kernel<<<blocks, kThreads, 0, stream>>>(call, replay, record);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void launch_soak_next(std::uint32_t* replay, cudaStream_t stream) {
  next_kernel<<<1, 1, 0, stream>>>(replay);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace artune
