// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/fused_flag.cuh"
#include "fused/row_launch.cuh"

namespace artune {
namespace {

template <Form F, int N, int K>
__global__ void __launch_bounds__(kMostThreads, 1) fused_flag_kernel(const __grid_constant__ FusedArguments arguments) {
  __shared__ float sums[2 * kMostGroups];
  const Lane lane = Lane::current();
  const std::uint32_t members = arguments.norm.members;
  if (members > 1) cluster_arrive();
  const Entry entry = load_entry(arguments.sum.control);
  FusedFlag<F, N, K> body(arguments, lane);
  const bool runs = may_run(entry);
  if (runs) {
    body.send(entry.epoch);
  } else {
    note_overlap(entry, arguments.sum.bounds, arguments.sum.rank, lane.block);
  }
  // The threads of a block read the error at different times, the barriers need them all, and a flag speaks for them all.
  const bool sent = __syncthreads_and(runs) != 0;
  EpochStep step;
  bool alive = sent;
  if (sent) {
    body.raise(entry.epoch);
    if (lane.thread == 0) step.start(arguments.sum.control, lane.blocks, entry.epoch);
    alive = body.wait(entry.epoch);
  }
  alive = __syncthreads_and(alive) != 0;
  if (members > 1) cluster_wait();
  body.receive(entry.epoch, alive, BlockBoard{sums, body.rows.at.lane, members});
  if (sent && lane.thread == 0)
    step.finish(arguments.sum.control, lane.blocks, entry.epoch, arguments.sum.bounds, arguments.sum.rank);
}

struct Flag {
  template <Form F, int N, int K>
  static constexpr auto kernel = fused_flag_kernel<F, N, K>;
};

}  // namespace

void launch_fused_flag(const FusedArguments& arguments, DType dtype, const RowGrid& grid, cudaStream_t stream) {
  void* parameters[] = {const_cast<FusedArguments*>(&arguments)};
  launch_rows(row_kernel<Flag>(dtype, arguments.sum.ranks, grid.vectors_each), parameters, grid, stream);
}

void load_fused_flag_kernels() { load_row_kernels<Flag>(); }

}  // namespace artune
