// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cuda_check.hpp"
#include "machine/gpu_check.hpp"
#include "protocol/elements.cuh"

namespace artune {
namespace {

constexpr int kThreads = 256;

int blocks_for(std::size_t count) {
  // Few enough to run beside the waiting kernels of the other ranks on this GPU.
  const std::size_t wanted = (count + kThreads - 1) / kThreads;
  return static_cast<int>(wanted < 1 ? 1 : wanted > 128 ? 128 : wanted);
}

__device__ std::uint64_t hash(int rank, std::uint64_t index, std::uint32_t replay, std::uint32_t salt) {
  std::uint64_t x = index * 0x9e3779b97f4a7c15ULL + (std::uint64_t{replay} << 32 | static_cast<std::uint32_t>(rank) << 24 | salt);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

/// The element that rank `rank` contributes, as the dtype holds it.
template <DType D>
__device__ float value(GpuInput kind, int rank, std::uint64_t index, std::uint32_t replay, std::uint32_t salt) {
  const std::uint64_t bits = hash(rank, index, replay, salt);
  float real = static_cast<float>(static_cast<int>(bits & 15) - 8);
  if (kind == GpuInput::random_reals) {
    const float fraction = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F;  // [-1, 1)
    real = fraction * exp2f(static_cast<float>(static_cast<int>(bits >> 32 & 7) - 6));      // 2^-6 .. 2^1
  }
  if constexpr (D == DType::f32) return real;
  return half_to_float<D>(float_to_word<D>(real, 0) & 0xffffU);
}

template <DType D>
using Element = std::conditional_t<D == DType::f32, std::uint32_t, std::uint16_t>;

template <DType D>
__device__ Element<D> to_element(float real) {
  return static_cast<Element<D>>(float_to_word<D>(real, 0));
}

template <DType D>
__device__ float from_element(Element<D> bits) {
  if constexpr (D == DType::f32) return word_to_float(bits);
  return half_to_float<D>(bits);
}

template <DType D>
__global__ void fill_kernel(Element<D>* input, std::size_t count, GpuInput kind, int rank, const std::uint32_t* replay, std::uint32_t salt) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x) {
    input[i] = to_element<D>(value<D>(kind, rank, i, *replay, salt));
  }
}

__device__ float as_bf16(float real) { return half_to_float<DType::bf16>(float_to_word<DType::bf16>(real, 0) & 0xffffU); }

template <DType D, bool Bf16Wire>
__global__ void check_kernel(const Element<D>* output, std::size_t count, std::size_t guard_bytes, GpuInput kind, int ranks,
                             const std::uint32_t* replay, std::uint32_t salt, CheckReport* report) {
  const std::size_t first = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long digest = 0;
  for (std::size_t i = first; i < count; i += stride) {
    float sum = 0;
    float wire_sum = 0;  // of terms as a bf16 wire brings them
    float magnitude = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const float term = value<D>(kind, rank, i, *replay, salt);
      sum += term;
      if constexpr (Bf16Wire) wire_sum += as_bf16(term);
      magnitude += fabsf(term);
    }
    const Element<D> expected = to_element<D>(sum);
    const Element<D> got = output[i];
    std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15ULL ^ got * 0xc2b2ae3d27d4eb4fULL;
    digest += (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ULL;
    if constexpr (Bf16Wire) {
      if (got != to_element<D>(wire_sum)) atomicAdd(&report->wrong_in, 1U);
      if (got != to_element<D>(as_bf16(wire_sum))) atomicAdd(&report->wrong_in_out, 1U);
    }
    if (got == expected) continue;
    atomicAdd(&report->wrong_bits, 1U);
    // Any order of the sum, rounded to the dtype after every addition: ranks roundings of at most half a unit of the
    // last place of the magnitude, which is 2^-9 (bf16), 2^-12 (f16) or 2^-25 (f32) of it, twice that on the safe side.
    constexpr float kUnit = D == DType::bf16 ? 0x1p-8F : D == DType::f16 ? 0x1p-11F : 0x1p-24F;
    // A bf16 wire rounds every term and perhaps the sum, each time by at most 2^-9 of it; twice that here too.
    constexpr float kWireUnits = Bf16Wire ? 2 * 0x1p-8F : 0;
    const float bound = kind == GpuInput::small_integers ? 0 : (static_cast<float>(ranks) * kUnit + kWireUnits) * magnitude;
    const float difference = fabsf(from_element<D>(got) - from_element<D>(expected));
    if (difference <= bound) continue;  // false for NaN, as it must be
    if (atomicAdd(&report->wrong_class, 1U) == 0) {
      report->first = static_cast<std::uint32_t>(i);
      report->got = from_element<D>(got);
      report->expected = from_element<D>(expected);
    }
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) digest += __shfl_down_sync(0xffffffffU, digest, lanes);
  if (threadIdx.x % 32 == 0 && digest != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&report->digest), digest);
  const auto* bytes = reinterpret_cast<const unsigned char*>(output);
  for (std::size_t i = first; i < guard_bytes; i += stride) {
    if (*(bytes - 1 - i) != 0xff || *(bytes + count * sizeof(Element<D>) + i) != 0xff) atomicAdd(&report->guard, 1U);
  }
}

__global__ void next_replay_kernel(std::uint32_t* replay) { ++*replay; }

__global__ void gate_kernel(const std::uint32_t* gate, std::uint32_t ticket) {
  const std::uint64_t started = now_ns();
  while (load_word(gate) != ticket && now_ns() - started < 10'000'000'000ULL) {
  }
}

__global__ void crash_kernel() { *reinterpret_cast<volatile int*>(0x10) = 1; }

template <typename Body>
void by_dtype(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32: body.template operator()<DType::f32>(); break;
    case DType::f16: body.template operator()<DType::f16>(); break;
    case DType::bf16: body.template operator()<DType::bf16>(); break;
  }
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace

void fill_input(void* input, std::size_t count, DType dtype, GpuInput kind, int rank, const std::uint32_t* replay, std::uint32_t salt,
                cudaStream_t stream) {
  by_dtype(dtype, [&]<DType D>() {
    fill_kernel<D><<<blocks_for(count), kThreads, 0, stream>>>(static_cast<Element<D>*>(input), count, kind, rank, replay, salt);
  });
}

void fill_poison(void* output, std::size_t bytes, std::size_t guard_bytes, cudaStream_t stream) {
  ARTUNE_CHECK_CUDA(cudaMemsetAsync(static_cast<char*>(output) - guard_bytes, 0xff, bytes + 2 * guard_bytes, stream));
}

void check_output(const void* output, std::size_t count, std::size_t guard_bytes, DType dtype, bool bf16_wire, GpuInput kind, int ranks,
                  const std::uint32_t* replay, std::uint32_t salt, CheckReport* report, cudaStream_t stream) {
  const auto launch = [&]<DType D, bool Bf16Wire>() {
    check_kernel<D, Bf16Wire><<<blocks_for(count), kThreads, 0, stream>>>(static_cast<const Element<D>*>(output), count, guard_bytes, kind,
                                                                         ranks, replay, salt, report);
  };
  by_dtype(dtype, [&]<DType D>() {
    if (D == DType::f32 && bf16_wire) {
      launch.template operator()<DType::f32, true>();
    } else {
      launch.template operator()<D, false>();
    }
  });
}

void next_replay(std::uint32_t* replay, cudaStream_t stream) {
  next_replay_kernel<<<1, 1, 0, stream>>>(replay);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void wait_gate(const std::uint32_t* gate, std::uint32_t ticket, cudaStream_t stream) {
  gate_kernel<<<1, 1, 0, stream>>>(gate, ticket);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void crash_device(cudaStream_t stream) {
  crash_kernel<<<1, 1, 0, stream>>>();
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace artune
