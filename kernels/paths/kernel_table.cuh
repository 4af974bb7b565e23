// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel files share: picking an instantiation at run time, and how a launch begins and ends.
#pragma once

#include "comm/cuda_check.hpp"
#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/wait.cuh"

namespace artune {

/// `Family` has a variable template kernel<F, N>; N = 0 takes the number of ranks from the arguments, 2, 4 and 8 are
/// unrolled. A lossy wire is asked for where links are slow: one instantiation does.
template <typename Family, Form F>
const void* by_ranks(int ranks) {
  switch (ranks) {
    case 2: return reinterpret_cast<const void*>(Family::template kernel<F, 2>);
    case 4: return reinterpret_cast<const void*>(Family::template kernel<F, 4>);
    case 8: return reinterpret_cast<const void*>(Family::template kernel<F, 8>);
    default: return reinterpret_cast<const void*>(Family::template kernel<F, 0>);
  }
}

template <typename Family, bool Lossy = true>
const void* by_form_and_ranks(Form form, int ranks) {
  switch (form) {
    case Form::f32: return by_ranks<Family, Form::f32>(ranks);
    case Form::f16: return by_ranks<Family, Form::f16>(ranks);
    case Form::bf16: return by_ranks<Family, Form::bf16>(ranks);
    case Form::f32_over_bf16: break;
  }
  if constexpr (Lossy) return reinterpret_cast<const void*>(Family::template kernel<Form::f32_over_bf16, 0>);
  return nullptr;
}

inline void load_kernel(const void* kernel) {
  cudaFuncAttributes attributes;
  if (kernel != nullptr) ARTUNE_CHECK_CUDA(cudaFuncGetAttributes(&attributes, kernel));
}

template <typename Family, bool Lossy = true>
void load_family() {
  for (const Form form : {Form::f32, Form::f16, Form::bf16, Form::f32_over_bf16}) {
    for (const int ranks : {2, 3, 4, 8}) load_kernel(by_form_and_ranks<Family, Lossy>(form, ranks));
  }
}

template <typename Arguments>
void launch_kernel(const void* kernel, const Arguments& arguments, int blocks, int threads, cudaStream_t stream) {
  void* parameters[] = {const_cast<Arguments*>(&arguments)};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), parameters, 0, stream));
}

/// The rank's grid when may_run() says no: no spinning, and nothing that looks like a sum.
template <Form F>
__device__ __noinline__ void leave_with_nan(const Entry& entry, const Bounds& bounds, int rank, void* output, std::uint64_t count, Lane lane) {
  note_overlap(entry, bounds, rank, lane.block);
  fill_with_nan<F>(output, count, lane);
}

/// What the next call of a family has to know of this one. By the last block's thread 0.
template <typename Wire>
__device__ __forceinline__ void leave_for_next(const Lane& lane, const EpochStep& step, Control* control, const typename Wire::Call& call,
                                               std::uint64_t units) {
  if constexpr (Wire::kClears) {
    if (lane.thread == 0 && step.is_last_block(lane.blocks)) store_before(control, Wire::after(call, units));
  }
}

void load_packet_kernels();
void load_flag_kernels();
void load_direct_kernels();
void load_hierarchical_kernels();
void load_exchange_kernels();

}  // namespace artune
