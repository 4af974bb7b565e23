// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/kernel_table.cuh"
#include "paths/launches.hpp"
#include "paths/menu.hpp"
#include "protocol/one_shot_flag.cuh"
#include "protocol/two_shot_flag.cuh"

namespace artune {
namespace {

template <Form F, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    one_shot_flag_kernel(const __grid_constant__ OneShotArguments arguments) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.control);
  if (!may_run(entry)) return leave_with_nan<F>(entry, arguments.bounds, arguments.rank, arguments.output, arguments.count, lane);
  EpochStep step;
  OneShotFlag<F>(arguments, lane, entry.epoch).template run<N>([&] {
    if (lane.thread == 0) step.start(arguments.control, lane.blocks, entry.epoch);
  });
  if (lane.thread == 0) step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <Form F, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    two_shot_flag_kernel(const __grid_constant__ TwoShotArguments arguments) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.control);
  if (!may_run(entry)) return leave_with_nan<F>(entry, arguments.bounds, arguments.rank, arguments.output, arguments.count, lane);
  two_shot_scatter<F>(arguments, lane, entry.epoch);
  EpochStep step;
  if (lane.thread == 0) step.start(arguments.control, lane.blocks, entry.epoch);
  bool alive = __syncthreads_and(two_shot_wait_scatter(arguments, lane, entry.epoch)) != 0;
  two_shot_reduce<F, N>(arguments, lane, entry.epoch, alive);
  alive = __syncthreads_and(alive && two_shot_wait_gather(arguments, lane, entry.epoch)) != 0;
  two_shot_gather<F>(arguments, lane, entry.epoch, alive);
  if (lane.thread == 0) step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

struct OneShotFlagKernels {
  template <Form F, int N>
  static constexpr auto kernel = one_shot_flag_kernel<F, N>;
};
struct TwoShotFlagKernels {
  template <Form F, int N>
  static constexpr auto kernel = two_shot_flag_kernel<F, N>;
};

}  // namespace

void launch_one_shot_flag(const OneShotArguments& arguments, Form form, int blocks, int threads, cudaStream_t stream) {
  launch_kernel(by_form_and_ranks<OneShotFlagKernels>(form, arguments.ranks), arguments, blocks, threads, stream);
}

void launch_two_shot_flag(const TwoShotArguments& arguments, Form form, int blocks, int threads, cudaStream_t stream) {
  launch_kernel(by_form_and_ranks<TwoShotFlagKernels>(form, arguments.ranks), arguments, blocks, threads, stream);
}

void load_flag_kernels() {
  load_family<OneShotFlagKernels>();
  load_family<TwoShotFlagKernels>();
}

}  // namespace artune
