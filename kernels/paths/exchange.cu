// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cuda_check.hpp"
#include "paths/kernel_table.cuh"
#include "paths/launches.hpp"
#include "paths/menu.hpp"
#include "protocol/exchange.cuh"

namespace artune {
namespace {

constexpr int kSignalThreads = 32;  // one lane per peer
static_assert(kSignalThreads >= kMaxRanks);

// Beyond any epoch: the reader of a poisoned flag waits on until it sees the abort word. Without it, a rank that gave up
// here would let its copies overwrite what a late peer has still to read, under a flag that says the old bytes are there.
constexpr std::uint64_t kPoison = std::uint64_t{1} << 63;

__global__ void begin_kernel(const __grid_constant__ ExchangeArguments arguments, int chunks) {
  const Lane lane = Lane::current();
  const EpochAndError entry = load_entry(arguments.bounds.control);
  const bool alive = entry.error == 0 && wait_free(arguments, lane, entry.epoch);
  if (__all_sync(0xffffffffU, alive)) return;
  for (int chunk = 0; chunk < chunks; ++chunk) tell_arrived(arguments, lane, kPoison - 1, static_cast<std::uint32_t>(chunk));
}

__global__ void publish_kernel(const __grid_constant__ ExchangeArguments arguments, std::uint32_t chunk) {
  const EpochAndError entry = load_entry(arguments.bounds.control);
  if (entry.error == 0) tell_arrived(arguments, Lane::current(), entry.epoch, chunk);
}

__global__ void await_kernel(const __grid_constant__ ExchangeArguments arguments, std::uint32_t chunk) {
  const EpochAndError entry = load_entry(arguments.bounds.control);
  if (entry.error == 0) wait_arrived(arguments, Lane::current(), entry.epoch, chunk);
}

template <DType D>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    reduce_kernel(const __grid_constant__ ExchangeArguments arguments, const __grid_constant__ ChunkArguments chunk, ExchangeStep step) {
  const Lane lane = Lane::current();
  const EpochAndError entry = load_entry(arguments.bounds.control);
  bool alive = entry.error == 0;
  if (alive && step == ExchangeStep::publish_reduce_finish) {
    if (lane.block == 0) tell_arrived(arguments, lane, entry.epoch, chunk.chunk);
    alive = wait_arrived(arguments, lane, entry.epoch, chunk.chunk);
  }
  alive = __syncthreads_and(alive) != 0;
  reduce_chunk<D>(arguments, chunk, lane, alive);
  if (step == ExchangeStep::reduce) return;
  // The last block to have read frees the peers; before that no thread of any block may still be reading.
  __shared__ bool last;
  __syncthreads();
  if (lane.thread == 0) last = last_of(&arguments.bounds.control->ticket, lane.blocks);
  __syncthreads();
  if (!last || !alive) return;
  tell_free(arguments, lane, entry.epoch);
  if (lane.thread == 0) store_epoch(arguments.bounds.control, entry.epoch + 1);
}

const void* reduce_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return reinterpret_cast<const void*>(reduce_kernel<DType::f32>);
    case DType::f16: return reinterpret_cast<const void*>(reduce_kernel<DType::f16>);
    case DType::bf16: break;
  }
  return reinterpret_cast<const void*>(reduce_kernel<DType::bf16>);
}

}  // namespace

void launch_exchange_begin(const ExchangeArguments& arguments, int chunks, cudaStream_t stream) {
  void* parameters[] = {const_cast<ExchangeArguments*>(&arguments), &chunks};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(begin_kernel), dim3(1), dim3(kSignalThreads), parameters, 0, stream));
}

void launch_exchange_publish(const ExchangeArguments& arguments, int chunk, cudaStream_t stream) {
  void* parameters[] = {const_cast<ExchangeArguments*>(&arguments), &chunk};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(publish_kernel), dim3(1), dim3(kSignalThreads), parameters, 0, stream));
}

void launch_exchange_await(const ExchangeArguments& arguments, int chunk, cudaStream_t stream) {
  void* parameters[] = {const_cast<ExchangeArguments*>(&arguments), &chunk};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(await_kernel), dim3(1), dim3(kSignalThreads), parameters, 0, stream));
}

void launch_exchange_reduce(const ExchangeArguments& arguments, const ChunkArguments& chunk, DType dtype, ExchangeStep step, int blocks,
                            int threads, cudaStream_t stream) {
  void* parameters[] = {const_cast<ExchangeArguments*>(&arguments), const_cast<ChunkArguments*>(&chunk), &step};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(reduce_of(dtype), dim3(blocks), dim3(threads), parameters, 0, stream));
}

void load_exchange_kernels() {
  load_kernel(reinterpret_cast<const void*>(begin_kernel));
  load_kernel(reinterpret_cast<const void*>(publish_kernel));
  load_kernel(reinterpret_cast<const void*>(await_kernel));
  for (const Word<DType>& dtype : WordTable<DType>::entries) load_kernel(reduce_of(dtype.value));
}

void load_all_kernels() {
  load_one_shot_kernels();
  load_exchange_kernels();
}

}  // namespace artune
