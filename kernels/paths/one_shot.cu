// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cuda_check.hpp"
#include "paths/kernel_table.cuh"
#include "paths/launches.hpp"
#include "paths/menu.hpp"
#include "protocol/one_shot_flag.cuh"
#include "protocol/one_shot_ll.cuh"

namespace artune {
namespace {

/// The rank's grid after an earlier failure: no spinning, and nothing that looks like a sum.
template <DType D>
__device__ void leave_with_nan(const OneShotArguments& arguments, const Lane& lane) {
  const UserBuffer<D, 4> output(arguments.output, arguments.count);
  for (std::uint64_t unit = lane.first(); unit < output.units(); unit += lane.stride()) output.store_nan(unit);
}

/// Lets the next launch see the next epoch. After a barrier that every thread reaches only once its own load of the epoch
/// has returned (it has branched on the error beside it): the last block's ticket says that all blocks have read. So the
/// store needs no place at the end of the kernel, where it would be waited for, and the ticket needs no fence: a load
/// that has returned can't see a later store.
__device__ void advance_epoch(Control* control, const Lane& lane, std::uint64_t epoch) {
  if (lane.thread == 0 && last_of_unordered(&control->ticket, lane.blocks)) store_epoch(control, epoch + 1);
}

template <DType D, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    one_shot_ll_kernel(const __grid_constant__ OneShotArguments arguments) {
  const Lane lane = Lane::current();
  const EpochAndError entry = load_entry(arguments.bounds.control);
  const LlFirst<D> first(arguments, lane);
  if (entry.error != 0) return leave_with_nan<D>(arguments, lane);
  ll_send<D>(arguments, lane, entry.epoch, first);
  __syncthreads();
  advance_epoch(arguments.bounds.control, lane, entry.epoch);
  ll_receive<D, N>(arguments, lane, entry.epoch, first);
}

template <DType D, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    one_shot_flag_kernel(const __grid_constant__ OneShotArguments arguments) {
  const Lane lane = Lane::current();
  const EpochAndError entry = load_entry(arguments.bounds.control);
  if (entry.error != 0) return leave_with_nan<D>(arguments, lane);
  flag_send<D>(arguments, lane, entry.epoch);
  const bool alive = __syncthreads_and(flag_wait(arguments, lane, entry.epoch)) != 0;
  advance_epoch(arguments.bounds.control, lane, entry.epoch);
  flag_reduce<D, N>(arguments, lane, entry.epoch, alive);
}

struct Ll {
  template <DType D, int N>
  static constexpr auto kernel = one_shot_ll_kernel<D, N>;
};
struct Flag {
  template <DType D, int N>
  static constexpr auto kernel = one_shot_flag_kernel<D, N>;
};

void launch(const void* kernel, const OneShotArguments& arguments, int blocks, int threads, cudaStream_t stream) {
  void* parameters[] = {const_cast<OneShotArguments*>(&arguments)};
  ARTUNE_CHECK_CUDA(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), parameters, 0, stream));
}

}  // namespace

void launch_one_shot_ll(const OneShotArguments& arguments, DType dtype, int blocks, int threads, cudaStream_t stream) {
  launch(by_dtype_and_ranks<Ll>(dtype, arguments.ranks), arguments, blocks, threads, stream);
}

void launch_one_shot_flag(const OneShotArguments& arguments, DType dtype, int blocks, int threads, cudaStream_t stream) {
  launch(by_dtype_and_ranks<Flag>(dtype, arguments.ranks), arguments, blocks, threads, stream);
}

void load_one_shot_kernels() {
  for (const Word<DType>& dtype : WordTable<DType>::entries) {
    for (const int ranks : {2, 3, 4, 8}) {
      load_kernel(by_dtype_and_ranks<Ll>(dtype.value, ranks));
      load_kernel(by_dtype_and_ranks<Flag>(dtype.value, ranks));
    }
  }
}

}  // namespace artune
