// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of measuring and verifying: inputs made on the device, results checked on the device, a start gate.
// All are asynchronous on `stream`, whose device must be current.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "base/words.hpp"

namespace artune {

enum class GpuInput : std::uint32_t {
  small_integers,   ///< -8 .. 7: sums of up to 16 ranks are exact in every dtype and order
  random_reals,     ///< (-2, 2) with a random exponent: rounding shows the order of the sum
};

/// In device memory, one per rank: what check_output() found over all calls since it was cleared.
struct CheckReport {
  std::uint32_t wrong_class;      ///< elements outside the bound that any order of an fp32 sum obeys, over this wire
  std::uint32_t wrong_bits;       ///< elements that differ from the rank-order reference
  std::uint32_t wrong_in, wrong_in_out;  ///< lossy wire: elements that differ from the wire-bf16-in and -in-out references
  std::uint32_t guard;            ///< guard bytes that were overwritten
  std::uint32_t first;            ///< index of the first element outside the bound
  float got, expected;            ///< of that element
  std::uint64_t digest;           ///< order-independent digest of all bits: equal on all ranks when the outputs are
};

/// input[i] = f(hash(rank, i, replay)). `replay` is read on the device, so that a captured graph makes fresh data.
void fill_input(void* input, std::size_t count, DType dtype, GpuInput kind, int rank, const std::uint32_t* replay, std::uint32_t salt,
                cudaStream_t stream);
/// Every byte 0xff (a NaN in every dtype) over the output and `guard_bytes` on both sides.
void fill_poison(void* output, std::size_t bytes, std::size_t guard_bytes, cudaStream_t stream);
/// Compares with the sum of what fill_input() gave all ranks, recomputed here; both sides' guards are checked too.
/// `bf16_wire`: elements are f32 and may have gone over the links as bf16.
void check_output(const void* output, std::size_t count, std::size_t guard_bytes, DType dtype, bool bf16_wire, GpuInput kind, int ranks,
                  const std::uint32_t* replay, std::uint32_t salt, CheckReport* report, cudaStream_t stream);
/// ++*replay
void next_replay(std::uint32_t* replay, cudaStream_t stream);

/// Holds the stream until *gate (pinned memory) equals `ticket`, 10 s at most. All ranks' streams leave it together.
void wait_gate(const std::uint32_t* gate, std::uint32_t ticket, cudaStream_t stream);

/// For compute-sanitizer and the tests' crash switch: a store to an address that nobody owns.
void crash_device(cudaStream_t stream);

}  // namespace artune
