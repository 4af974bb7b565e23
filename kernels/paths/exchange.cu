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
  const Entry entry = load_entry(arguments.bounds.control);
  const bool alive = entry.error == 0 && wait_free(arguments, lane, entry.epoch);
  if (__all_sync(0xffffffffU, alive)) return;
  for (int chunk = 0; chunk < chunks; ++chunk) tell_arrived(arguments, lane, kPoison - 1, static_cast<std::uint32_t>(chunk));
}

__global__ void publish_kernel(const __grid_constant__ ExchangeArguments arguments, std::uint32_t chunk) {
  const Entry entry = load_entry(arguments.bounds.control);
  if (entry.error == 0) tell_arrived(arguments, Lane::current(), entry.epoch, chunk);
}

__global__ void await_kernel(const __grid_constant__ ExchangeArguments arguments, std::uint32_t chunk) {
  const Entry entry = load_entry(arguments.bounds.control);
  if (entry.error == 0) wait_arrived(arguments, Lane::current(), entry.epoch, chunk);
}

/// By one thread, when all of this call has been read and told.
__device__ void advance(const ExchangeArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  if (lane.thread != 0) return;
  const std::uint64_t stood = step_epoch(arguments.bounds.control, epoch);
  if (stood != epoch) record_failure(arguments.bounds, kOverlap, arguments.rank, arguments.rank, lane.block, epoch, stood);
}

template <Form F>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    reduce_kernel(const __grid_constant__ ExchangeArguments arguments, const __grid_constant__ ChunkArguments chunk, ExchangeStep step) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.bounds.control);
  bool alive = entry.error == 0;
  if (alive && step == ExchangeStep::publish_reduce_finish) {
    if (lane.block == 0) tell_arrived(arguments, lane, entry.epoch, chunk.chunk);
    alive = wait_arrived(arguments, lane, entry.epoch, chunk.chunk);
  }
  alive = __syncthreads_and(alive) != 0;
  reduce_chunk<F>(arguments, chunk, lane, alive);
  if (step == ExchangeStep::reduce) return;
  // The last block to have read frees the peers; before that no thread of any block may still be reading.
  __shared__ bool last;
  __syncthreads();
  if (lane.thread == 0) last = is_last(take_ticket(&arguments.bounds.control->ticket, lane.blocks), lane.blocks);
  __syncthreads();
  if (!last || !alive) return;
  tell_free(arguments, lane, entry.epoch);
  advance(arguments, lane, entry.epoch);
}

template <Form F>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    ring_add_kernel(const __grid_constant__ ExchangeArguments arguments, const __grid_constant__ RingPiece piece, int step) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.bounds.control);
  bool alive = entry.error == 0;
  if (alive) alive = wait_arrived(arguments, lane, entry.epoch, static_cast<std::uint32_t>(step));
  ring_add<F>(piece, lane, __syncthreads_and(alive) != 0);
}

template <Form F>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    ring_take_kernel(const __grid_constant__ ExchangeArguments arguments, const __grid_constant__ RingPiece piece, int step, bool is_end) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.bounds.control);
  bool alive = entry.error == 0;
  if (alive) alive = wait_arrived(arguments, lane, entry.epoch, static_cast<std::uint32_t>(step));
  alive = __syncthreads_and(alive) != 0;
  ring_take<F>(piece, lane, alive);
  if (!is_end) return;
  __shared__ bool last;
  __syncthreads();
  if (lane.thread == 0) last = is_last(take_ticket(&arguments.bounds.control->ticket, lane.blocks), lane.blocks);
  __syncthreads();
  if (!last || !alive) return;
  tell_free(arguments, lane, entry.epoch);
  advance(arguments, lane, entry.epoch);
}

__global__ void local_copy_kernel(char* to, const char* from, std::size_t bytes) {
  const std::size_t first = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x, stride = std::size_t{gridDim.x} * blockDim.x;
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 == 0) {
    for (std::size_t i = first; i < bytes / 16; i += stride) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    for (std::size_t i = bytes / 16 * 16 + first; i < bytes; i += stride) to[i] = from[i];
  } else {
    for (std::size_t i = first; i < bytes; i += stride) to[i] = from[i];
  }
}

template <typename Kernel>
const void* by_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32: return reinterpret_cast<const void*>(Kernel::template of<Form::f32>);
    case DType::f16: return reinterpret_cast<const void*>(Kernel::template of<Form::f16>);
    case DType::bf16: break;
  }
  return reinterpret_cast<const void*>(Kernel::template of<Form::bf16>);
}

struct Reduce {
  template <Form F>
  static constexpr auto of = reduce_kernel<F>;
};
struct RingAdd {
  template <Form F>
  static constexpr auto of = ring_add_kernel<F>;
};
struct RingTake {
  template <Form F>
  static constexpr auto of = ring_take_kernel<F>;
};

// Few enough to start beside the waiting grids of all ranks on the GPU, enough to move some hundred GB/s.
constexpr int kCopyBlocks = 8;
constexpr int kCopyThreads = 256;

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
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(by_dtype<Reduce>(dtype), dim3(blocks), dim3(threads), parameters, 0, stream));
}

void launch_ring_add(const ExchangeArguments& arguments, const RingPiece& piece, DType dtype, int step, int blocks, int threads,
                     cudaStream_t stream) {
  void* parameters[] = {const_cast<ExchangeArguments*>(&arguments), const_cast<RingPiece*>(&piece), &step};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(by_dtype<RingAdd>(dtype), dim3(blocks), dim3(threads), parameters, 0, stream));
}

void launch_ring_take(const ExchangeArguments& arguments, const RingPiece& piece, DType dtype, int step, bool last, int blocks, int threads,
                      cudaStream_t stream) {
  void* parameters[] = {const_cast<ExchangeArguments*>(&arguments), const_cast<RingPiece*>(&piece), &step, &last};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(by_dtype<RingTake>(dtype), dim3(blocks), dim3(threads), parameters, 0, stream));
}

void launch_local_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  void* parameters[] = {&to, &from, &bytes};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(local_copy_kernel), dim3(kCopyBlocks), dim3(kCopyThreads), parameters, 0, stream));
}

void load_exchange_kernels() {
  load_kernel(reinterpret_cast<const void*>(begin_kernel));
  load_kernel(reinterpret_cast<const void*>(publish_kernel));
  load_kernel(reinterpret_cast<const void*>(await_kernel));
  load_kernel(reinterpret_cast<const void*>(local_copy_kernel));
  for (const Word<DType>& dtype : WordTable<DType>::entries) {
    load_kernel(by_dtype<Reduce>(dtype.value));
    load_kernel(by_dtype<RingAdd>(dtype.value));
    load_kernel(by_dtype<RingTake>(dtype.value));
  }
}

void load_all_kernels() {
  load_packet_kernels();
  load_flag_kernels();
  load_direct_kernels();
  load_hierarchical_kernels();
  load_exchange_kernels();
}

}  // namespace artune
