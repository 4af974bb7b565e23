// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/kernel_table.cuh"
#include "paths/launches.hpp"
#include "paths/menu.hpp"
#include "protocol/direct.cuh"

namespace artune {
namespace {

template <bool TwoShot, Form F, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    direct_kernel(const __grid_constant__ DirectArguments arguments) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.control);
  if (!may_run(entry)) {
    return leave_with_nan<F>(entry, arguments.bounds, arguments.rank, arguments.outputs[arguments.rank], arguments.count, lane);
  }
  bool alive = __syncthreads_and(direct_meet(arguments, arguments.start, lane, entry.epoch)) != 0;
  EpochStep step;
  if (lane.thread == 0) step.start(arguments.control, lane.blocks, entry.epoch);
  if constexpr (TwoShot) {
    direct_two_shot<F, N>(arguments, lane, alive);
  } else {
    direct_one_shot<F, N>(arguments, lane, alive);
  }
  __syncthreads();
  if (alive) {
    alive = __syncthreads_and(direct_meet(arguments, arguments.end, lane, entry.epoch)) != 0;
    if (!alive) direct_spoil<F>(arguments, lane);
  }
  if (lane.thread == 0) step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

struct OneShotDirect {
  template <Form F, int N>
  static constexpr auto kernel = direct_kernel<false, F, N>;
};
struct TwoShotDirect {
  template <Form F, int N>
  static constexpr auto kernel = direct_kernel<true, F, N>;
};

}  // namespace

void launch_direct(const DirectArguments& arguments, bool two_shot, DType dtype, int blocks, int threads, cudaStream_t stream) {
  const void* kernel = two_shot ? by_form_and_ranks<TwoShotDirect, false>(form_of(dtype), arguments.ranks)
                                : by_form_and_ranks<OneShotDirect, false>(form_of(dtype), arguments.ranks);
  launch_kernel(kernel, arguments, blocks, threads, stream);
}

void load_direct_kernels() {
  load_family<OneShotDirect, false>();
  load_family<TwoShotDirect, false>();
}

}  // namespace artune
