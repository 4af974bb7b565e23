// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/kernel_table.cuh"
#include "paths/launches.hpp"
#include "paths/menu.hpp"
#include "protocol/one_shot_packets.cuh"
#include "protocol/two_shot_packets.cuh"

namespace artune {
namespace {

template <template <Form> class Format, Form F, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    one_shot_packets_kernel(const __grid_constant__ OneShotArguments arguments) {
  using Wire = Format<F>;
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.control);
  OneShotPackets<Format, F, N> body(arguments, lane);
  const auto call = Wire::call(arguments.control, entry.epoch);
  if (!may_run(entry)) return leave_with_nan<F>(entry, arguments.bounds, arguments.rank, arguments.output, arguments.count, lane);
  body.send(call);
  body.clear_before(call);
  __syncthreads();
  EpochStep step;
  if (lane.thread == 0) step.start(arguments.control, lane.blocks, entry.epoch);
  body.receive(call);
  leave_for_next<Wire>(lane, step, arguments.control, call, body.input.units());
  if (lane.thread == 0) step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <template <Form> class Format, Form F, int N>
__global__ void __launch_bounds__(kMostThreads, kBlocksPerMultiprocessor)
    two_shot_packets_kernel(const __grid_constant__ TwoShotArguments arguments) {
  using Wire = Format<F>;
  const Lane lane = Lane::current();
  const Entry entry = load_entry(arguments.control);
  const auto call = Wire::call(arguments.control, entry.epoch);
  const TwoShotPackets<Format, F, N> body(arguments, lane);
  if (!may_run(entry)) return leave_with_nan<F>(entry, arguments.bounds, arguments.rank, arguments.output, arguments.count, lane);
  body.scatter(call);
  body.clear_before(call);
  __syncthreads();
  EpochStep step;
  if (lane.thread == 0) step.start(arguments.control, lane.blocks, entry.epoch);
  const bool alive = body.reduce(call);
  body.gather(call, alive);
  leave_for_next<Wire>(lane, step, arguments.control, call, body.input.units());
  if (lane.thread == 0) step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <template <Form> class Format>
struct OneShot {
  template <Form F, int N>
  static constexpr auto kernel = one_shot_packets_kernel<Format, F, N>;
};
template <template <Form> class Format>
struct TwoShot {
  template <Form F, int N>
  static constexpr auto kernel = two_shot_packets_kernel<Format, F, N>;
};

}  // namespace

void launch_one_shot_packets(const OneShotArguments& arguments, Protocol protocol, Form form, int blocks, int threads, cudaStream_t stream) {
  const void* kernel = protocol == Protocol::ll ? by_form_and_ranks<OneShot<Ll>>(form, arguments.ranks)
                                                : by_form_and_ranks<OneShot<Sentinel>>(form, arguments.ranks);
  launch_kernel(kernel, arguments, blocks, threads, stream);
}

void launch_two_shot_packets(const TwoShotArguments& arguments, Protocol protocol, Form form, int blocks, int threads, cudaStream_t stream) {
  const void* kernel = protocol == Protocol::ll ? by_form_and_ranks<TwoShot<Ll>>(form, arguments.ranks)
                                                : by_form_and_ranks<TwoShot<Sentinel>>(form, arguments.ranks);
  launch_kernel(kernel, arguments, blocks, threads, stream);
}

void load_packet_kernels() {
  load_family<OneShot<Ll>>();
  load_family<OneShot<Sentinel>>();
  load_family<TwoShot<Ll>>();
  load_family<TwoShot<Sentinel>>();
}

}  // namespace artune
