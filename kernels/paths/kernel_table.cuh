// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Picks an instantiation at run time. `Family` has a variable template kernel<D, N>; N = 0 takes the number of ranks from
// the arguments, 2, 4 and 8 are unrolled.
#pragma once

#include "base/words.hpp"
#include "comm/cuda_check.hpp"

namespace artune {

template <typename Family, DType D>
const void* by_ranks(int ranks) {
  switch (ranks) {
    case 2: return reinterpret_cast<const void*>(Family::template kernel<D, 2>);
    case 4: return reinterpret_cast<const void*>(Family::template kernel<D, 4>);
    case 8: return reinterpret_cast<const void*>(Family::template kernel<D, 8>);
    default: return reinterpret_cast<const void*>(Family::template kernel<D, 0>);
  }
}

template <typename Family>
const void* by_dtype_and_ranks(DType dtype, int ranks) {
  switch (dtype) {
    case DType::f32: return by_ranks<Family, DType::f32>(ranks);
    case DType::f16: return by_ranks<Family, DType::f16>(ranks);
    case DType::bf16: break;
  }
  return by_ranks<Family, DType::bf16>(ranks);
}

inline void load_kernel(const void* kernel) {
  cudaFuncAttributes attributes;
  ARTUNE_CHECK_CUDA(cudaFuncGetAttributes(&attributes, kernel));
}

void load_one_shot_kernels();
void load_exchange_kernels();

}  // namespace artune
