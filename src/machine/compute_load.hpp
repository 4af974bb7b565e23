// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The compute load that reductions are timed beside: a grid of many blocks that each do the same arithmetic for some tens
// of microseconds, as the tiles of a GEMM do. Two blocks fill a multiprocessor: their registers leave no room for a third,
// nor for another kernel's block of more than a few warps until one of them ends. No memory is read or written but the
// two words of the window.
// All are asynchronous on `stream`, whose device must be current.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace artune {

/// In device memory. From the first block's start to the last block's end, ns of the GPU's own timer.
struct LoadWindow {
  std::uint64_t first, last;
};
inline constexpr std::uint64_t kNotStarted = ~std::uint64_t{0};

/// Blocks that are resident at once on the current device.
int compute_load_wave();
/// `window` must hold {kNotStarted, 0}.
void launch_compute_load(LoadWindow* window, int blocks, cudaStream_t stream);

/// *slot = the GPU's timer. A kernel of one thread: it finds room beside anything.
void launch_stamp(std::uint64_t* slot, cudaStream_t stream);
/// Holds the stream until *word isn't `unset` any more (10 s at most; nullptr = doesn't wait), then as launch_stamp()
/// unless `slot` is nullptr.
void launch_await_word(const std::uint64_t* word, std::uint64_t unset, std::uint64_t* slot, cudaStream_t stream);

/// No lazy loading beside a kernel that waits.
void load_compute_kernels();

}  // namespace artune
