// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of all candidates as plain functions: protocol bodies with a grid around them. Asynchronous; the current
// device must be the stream's. Throws Failure when a launch is refused.
#pragma once

#include <cuda_runtime_api.h>

#include "base/words.hpp"
#include "paths/menu.hpp"
#include "protocol/arguments.hpp"
#include "protocol/exchange.cuh"

namespace artune {

/// Loads every kernel on the current device: lazy loading beside a spinning kernel can deadlock.
void load_all_kernels();

/// `protocol` is ll or sentinel.
void launch_one_shot_packets(const OneShotArguments& arguments, Protocol protocol, Form form, int blocks, int threads, cudaStream_t stream);
void launch_two_shot_packets(const TwoShotArguments& arguments, Protocol protocol, Form form, int blocks, int threads, cudaStream_t stream);
void launch_one_shot_flag(const OneShotArguments& arguments, Form form, int blocks, int threads, cudaStream_t stream);
void launch_two_shot_flag(const TwoShotArguments& arguments, Form form, int blocks, int threads, cudaStream_t stream);
void launch_direct(const DirectArguments& arguments, bool two_shot, DType dtype, int blocks, int threads, cudaStream_t stream);
void launch_hierarchical(const HierarchicalArguments& arguments, DType dtype, int blocks, int threads, cudaStream_t stream);

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

/// ce/ring: waits for the neighbour's piece `step`, adds it to this rank's elements, rounds; the result goes to `piece.sum`
/// and, where set, to `piece.output`.
void launch_ring_add(const ExchangeArguments& arguments, const RingPiece& piece, DType dtype, int step, int blocks, int threads,
                     cudaStream_t stream);
/// ce/ring: waits for piece `step` and copies it into the output. `last`: then frees the neighbour and advances the epoch.
void launch_ring_take(const ExchangeArguments& arguments, const RingPiece& piece, DType dtype, int step, bool last, int blocks, int threads,
                      cudaStream_t stream);

/// A copy inside one GPU by a few blocks: what stands for a copy engine where ranks share a GPU (see Group::copy).
void launch_local_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

}  // namespace artune
