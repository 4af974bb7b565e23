// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of all candidates as plain functions: protocol bodies with a grid around them. Asynchronous; the current
// device must be the stream's. Throws Failure when a launch is refused.
#pragma once

#include <cuda_runtime_api.h>

#include "base/words.hpp"
#include "protocol/arguments.hpp"
#include "protocol/exchange.cuh"

namespace artune {

/// Loads every kernel on the current device: lazy loading beside a spinning kernel can deadlock.
void load_all_kernels();

void launch_one_shot_ll(const OneShotArguments& arguments, DType dtype, int blocks, int threads, cudaStream_t stream);
void launch_one_shot_flag(const OneShotArguments& arguments, DType dtype, int blocks, int threads, cudaStream_t stream);

/// Waits until all peers may be overwritten; on failure poisons this rank's arrived flags 0..chunks-1.
void launch_exchange_begin(const ExchangeArguments& arguments, int chunks, cudaStream_t stream);
/// Tells all peers that chunk `chunk` has arrived.
void launch_exchange_publish(const ExchangeArguments& arguments, int chunk, cudaStream_t stream);
/// Waits for chunk `chunk` of all peers.
void launch_exchange_await(const ExchangeArguments& arguments, int chunk, cudaStream_t stream);

enum class ExchangeStep {
  reduce,                 ///< sum only; the chunk is known to be here
  reduce_and_finish,      ///< the last chunk: then free the peers' contributions and advance the epoch
  publish_reduce_finish,  ///< a one-chunk exchange: tell arrived, wait for the peers, sum, free, advance
};
void launch_exchange_reduce(const ExchangeArguments& arguments, const ChunkArguments& chunk, DType dtype, ExchangeStep step, int blocks,
                            int threads, cudaStream_t stream);

}  // namespace artune
