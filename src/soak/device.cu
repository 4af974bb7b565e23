// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cuda_check.hpp"
#include "protocol/arguments.hpp"
#include "soak/device.hpp"

#include <algorithm>
#include <type_traits>

namespace artune::soak {
namespace {

constexpr int kThreads = 256;
constexpr int kElementsPerThread = 4;
static_assert(kThreads >= static_cast<int>(kGuardBytes), "one byte of a guard for each thread of the first block");

// Not functions: a constexpr function of the host can't be called here, its value can be had.
template <Form F>
inline constexpr DType kUser = user_dtype(F);
template <Form F>
inline constexpr DType kWire = wire_dtype(F);

__device__ std::uint32_t mix(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bU;
  x = (x ^ x >> 13) * 0xc2b2ae35U;
  return x ^ x >> 16;
}

/// The two low bits tell what the rank adds to every fourth element: 1 a large value, 2 the same negative, 0 nothing special.
__device__ std::uint32_t key_of(std::uint32_t salt, std::uint32_t replay, int rank) {
  const std::uint32_t key = mix(salt ^ mix(replay * 0x9e3779b1U + static_cast<std::uint32_t>(rank) * 0x7feb352dU + 1));
  return (key & ~3U) | (rank == 0 ? 1U : rank == 2 ? 2U : 0U);
}

/// An element as the user's buffer holds it. Any sign and fraction, magnitudes from 2^-15 (an f16 subnormal) to 2: 16 of
/// them overflow nowhere, and an fp32 sum's order shows in its rounding. 16-bit elements are too coarse for that; so in every
/// fourth element rank 0 adds a large value that rank 2 takes away: what came between has lost its low bits.
template <Form F>
__device__ std::uint32_t element_of(std::uint32_t key, std::uint32_t index) {
  const std::uint32_t bits = mix(index * 0x9e3779b9U ^ key);
  std::uint32_t real = (bits & 0x807fffffU) | (112U + (bits >> 23 & 15U)) << 23;
  if ((index & 3U) == 3U && (key & 3U) != 0) real = (key & 2U) << 30 | 0x47000000U | (index >> 2 & 7U) << 20;  // +-2^15 .. 61440
  if constexpr (kUser<F> == DType::f32) return real;
  return float_to_word<kUser<F>>(word_to_float(real), 0) & 0xffffU;
}

template <DType D>
__device__ std::uint32_t rounded(float value) {
  return float_to_word<D>(value, 0) & (D == DType::f32 ? 0xffffffffU : 0xffffU);
}
template <DType D>
__device__ float widened(std::uint32_t bits) {
  if constexpr (D == DType::f32) return word_to_float(bits);
  return half_to_float<D>(bits);
}

/// As a contribution is added: after the wire.
template <Form F>
__device__ float term_of(std::uint32_t key, std::uint32_t index) {
  const float value = widened<kUser<F>>(element_of<F>(key, index));
  if constexpr (kWire<F> != kUser<F>) return widened<kWire<F>>(rounded<kWire<F>>(value));
  return value;
}

/// Pieces as Shards counts them: the owner's is summed from the rank after it round to it.
template <Form F>
__device__ std::uint32_t ring_sum(const Step& step, const std::uint32_t* keys, std::uint32_t index) {
  constexpr std::uint32_t kPerUnit = 16 / kUserBytes<F>;
  const std::uint32_t first = index / step.check.piece * step.check.piece;
  const std::uint32_t count = min(step.check.piece, step.check.count - first);
  const Shards shards((count + kPerUnit - 1) / kPerUnit, step.ranks);
  std::uint32_t rank = (index - first) / kPerUnit / static_cast<std::uint32_t>(shards.each);
  std::uint32_t bits = 0;
  for (int turn = 0; turn < step.ranks; ++turn) {
    rank = rank + 1 == static_cast<std::uint32_t>(step.ranks) ? 0 : rank + 1;
    const float term = term_of<F>(keys[rank], index);
    bits = rounded<kUser<F>>(turn == 0 ? term : 0.0F + widened<kUser<F>>(bits) + term);
  }
  return bits;
}

template <Form F, SumOrder O>
__device__ std::uint32_t sum_of(const Step& step, const std::uint32_t* keys, std::uint32_t index) {
  if constexpr (O == SumOrder::ring) return ring_sum<F>(step, keys, index);
  float sum = 0;
  if constexpr (O == SumOrder::islands) {
    for (int first = 0; first < step.ranks; first += step.island_size) {
      float island = 0;
      for (int member = 0; member < step.island_size; ++member) island += term_of<F>(keys[first + member], index);
      sum += island;
    }
  } else {
#pragma unroll 4
    for (int rank = 0; rank < step.ranks; ++rank) sum += term_of<F>(keys[rank], index);
  }
  if constexpr (O == SumOrder::ranks_out) sum = widened<kWire<F>>(rounded<kWire<F>>(sum));
  return rounded<kUser<F>>(sum);
}

template <Form F>
using Element = std::conditional_t<kUser<F> == DType::f32, std::uint32_t, std::uint16_t>;

__device__ __noinline__ void record_wrong(const Step& step, WrongRecord::What what, std::uint64_t index, std::uint32_t got,
                                          std::uint32_t expected) {
  if (atomicAdd(&step.record->count, 1U) != 0) return;
  step.record->call = step.check.call;
  step.record->replay = *step.replay;
  step.record->what = what;
  step.record->index = index;
  step.record->got = got;
  step.record->expected = expected;
}

template <Form F, SumOrder O>
__device__ void check_elements(const Step& step, const std::uint32_t* keys) {
  const auto* output = static_cast<const Element<F>*>(step.check.output);
  const std::uint32_t stride = gridDim.x * blockDim.x;
#pragma unroll 2
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < step.check.count; i += stride) {
    const std::uint32_t got = output[i], expected = sum_of<F, O>(step, keys, i);
    if (got != expected) record_wrong(step, WrongRecord::element, i, got, expected);
  }
  if (blockIdx.x != 0 || threadIdx.x >= kGuardBytes) return;
  const auto* bytes = static_cast<const unsigned char*>(step.check.output);
  const unsigned char before = *(bytes - 1 - threadIdx.x), after = bytes[step.check.count * sizeof(Element<F>) + threadIdx.x];
  if (before != 0xff) record_wrong(step, WrongRecord::guard_before, threadIdx.x + 1, before, 0xff);
  if (after != 0xff) record_wrong(step, WrongRecord::guard_after, threadIdx.x, after, 0xff);
}

template <Form F>
__device__ void check(const Step& step, const std::uint32_t* keys) {
  switch (step.check.order) {
    case SumOrder::ranks:
      return check_elements<F, SumOrder::ranks>(step, keys);
    case SumOrder::ranks_out:
      if constexpr (F == Form::f32_over_bf16) check_elements<F, SumOrder::ranks_out>(step, keys);
      return;
    case SumOrder::islands:
      if constexpr (F != Form::f32_over_bf16) check_elements<F, SumOrder::islands>(step, keys);
      return;
    case SumOrder::ring:
      if constexpr (F != Form::f32_over_bf16) check_elements<F, SumOrder::ring>(step, keys);
      return;
  }
}

template <Form F>
__device__ void fill(const Step& step, std::uint32_t key) {
  auto* input = static_cast<Element<F>*>(step.fill.input);
  auto* output = static_cast<Element<F>*>(step.fill.output);
  const bool poisoned = input != output;
  const std::uint32_t stride = gridDim.x * blockDim.x;
#pragma unroll 2
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < step.fill.count; i += stride) {
    input[i] = static_cast<Element<F>>(element_of<F>(key, i));
    if (poisoned) output[i] = static_cast<Element<F>>(~0U);
  }
  if (blockIdx.x != 0 || threadIdx.x >= kGuardBytes) return;
  auto* bytes = reinterpret_cast<unsigned char*>(output);
  *(bytes - 1 - threadIdx.x) = 0xff;
  bytes[step.fill.count * sizeof(Element<F>) + threadIdx.x] = 0xff;
}

template <typename Body>
__device__ void by_form(Form form, const Body& body) {
  switch (form) {
    case Form::f32:
      return body.template operator()<Form::f32>();
    case Form::f16:
      return body.template operator()<Form::f16>();
    case Form::bf16:
      return body.template operator()<Form::bf16>();
    case Form::f32_over_bf16:
      return body.template operator()<Form::f32_over_bf16>();
  }
}

// At most 64 registers: fits where a block of a waiting kernel would. It waits for nobody, so it may stand in line.
__global__ void __launch_bounds__(kThreads, 4) step_kernel(const __grid_constant__ Step step) {
  __shared__ std::uint32_t keys[kMaxRanks];
  const std::uint32_t replay = *step.replay;
  if (threadIdx.x < static_cast<unsigned>(step.ranks))
    keys[threadIdx.x] = key_of(step.check.salt, replay, static_cast<int>(threadIdx.x));
  __syncthreads();
  if (step.check.output != nullptr) by_form(step.check.form, [&]<Form F>() { check<F>(step, keys); });
  if (step.fill.input != nullptr)
    by_form(step.fill.form, [&]<Form F>() { fill<F>(step, key_of(step.fill.salt, replay, step.rank)); });
  if (step.progress != nullptr && blockIdx.x == 0 && threadIdx.x == 0) store_word(step.progress, step.fill.salt + replay);
}

__global__ void next_replay_kernel(std::uint32_t* replay) { ++*replay; }
__global__ void show_kernel(const WrongRecord* record, WrongRecord* shown) { *shown = *record; }

}  // namespace

void launch_step(const Step& step, int most_blocks, cudaStream_t stream) {
  const std::uint32_t count = step.check.count > step.fill.count ? step.check.count : step.fill.count;
  const int wanted = static_cast<int>((count + kThreads * kElementsPerThread - 1) / (kThreads * kElementsPerThread));
  const int blocks = std::clamp(wanted, 1, most_blocks);
  step_kernel<<<blocks, kThreads, 0, stream>>>(step);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void launch_next_replay(std::uint32_t* replay, cudaStream_t stream) {
  next_replay_kernel<<<1, 1, 0, stream>>>(replay);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

void launch_show(const WrongRecord* record, WrongRecord* shown, cudaStream_t stream) {
  show_kernel<<<1, 1, 0, stream>>>(record, shown);
  ARTUNE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace artune::soak
