// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the fused soak: one makes a call's tensors, one checks what came of them. An element is f(call, replay,
// tensor, index), so the check makes all ranks' contributions anew; the norm is written out here once more, as
// fused/rms_norm.cuh says it in words.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/words.hpp"

namespace artune {

struct SoakTensors {
  void* input;
  void* residual;
  void* weight;
  const void* output;
  const void* residual_out;
};

/// Of one rank, in device memory, cleared before the first call.
struct SoakRecord {
  std::uint32_t wrong, call, replay, what;      ///< what: 1 output, 2 updated residual; of the first wrong element
  std::uint32_t index, got, expected, checked;  ///< checked: calls looked at
};

struct SoakCall {
  SoakTensors tensors;
  std::uint32_t rows, hidden, number;
  std::int32_t rank, ranks;
  float epsilon;
  bool one_plus;
  DType dtype;  ///< f16 or bf16
};

void launch_soak_fill(const SoakCall& call, const std::uint32_t* replay, cudaStream_t stream);
void launch_soak_check(const SoakCall& call, const std::uint32_t* replay, SoakRecord* record, cudaStream_t stream);
/// ++*replay
void launch_soak_next(std::uint32_t* replay, cudaStream_t stream);

}  // namespace artune
