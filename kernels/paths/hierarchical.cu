// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/kernel_table.cuh"
#include "paths/launches.hpp"
#include "paths/menu.hpp"
#include "protocol/hierarchical.cuh"

namespace artune {
namespace {

template <Form F>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    hierarchical_kernel(const __grid_constant__ HierarchicalArguments arguments) {
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.control);
  if (!may_run(entry)) return leave_with_nan<F>(entry, arguments.bounds, arguments.rank, arguments.output, arguments.count, lane);
  island_scatter<F>(arguments, lane, entry.epoch);
  EpochStep step;
  if (lane.thread == 0) step.start(arguments.control, lane.blocks, entry.epoch);
  bool alive = __syncthreads_and(island_wait_scatter(arguments, lane, entry.epoch)) != 0;
  island_reduce<F>(arguments, lane, entry.epoch, alive);
  alive = __syncthreads_and(alive && island_wait_across(arguments, lane, entry.epoch)) != 0;
  island_finish<F>(arguments, lane, entry.epoch, alive);
  alive = __syncthreads_and(alive && island_wait_gather(arguments, lane, entry.epoch)) != 0;
  island_gather<F>(arguments, lane, entry.epoch, alive);
  if (lane.thread == 0) step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

const void* kernel_of(Form form) {
  switch (form) {
    case Form::f32: return reinterpret_cast<const void*>(hierarchical_kernel<Form::f32>);
    case Form::f16: return reinterpret_cast<const void*>(hierarchical_kernel<Form::f16>);
    default: return reinterpret_cast<const void*>(hierarchical_kernel<Form::bf16>);
  }
}

}  // namespace

void launch_hierarchical(const HierarchicalArguments& arguments, DType dtype, int blocks, int threads, cudaStream_t stream) {
  launch_kernel(kernel_of(form_of(dtype)), arguments, blocks, threads, stream);
}

void load_hierarchical_kernels() {
  for (const Form form : {Form::f32, Form::f16, Form::bf16}) load_kernel(kernel_of(form));
}

}  // namespace artune
