// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/fused_launches.hpp"
#include "fused/fused_packets.cuh"
#include "fused/row_launch.cuh"

namespace artune {
namespace {

template <template <Form> class Format, Form F, int N, int K>
__global__ void __launch_bounds__(kMostThreads, 1) fused_packets_kernel(const __grid_constant__ FusedArguments arguments) {
  using Wire = Format<F>;
  __shared__ float sums[2 * kMostGroups];
  const Lane lane = Lane::current();
  const std::uint32_t members = arguments.norm.members;
  if (members > 1) cluster_arrive();
  const Entry entry = load_entry(arguments.sum.control);
  FusedPackets<Format, F, N, K> body(arguments, lane);
  const auto call = Wire::call(arguments.sum.control, entry.epoch);
  const bool alive = may_run(entry);
  if (alive) {
    body.send(call);
    clear_receive_areas<Wire, N>(arguments.sum, lane, call);
  } else {
    note_overlap(entry, arguments.sum.bounds, arguments.sum.rank, lane.block);
  }
  __syncthreads();
  EpochStep step;
  if (alive && lane.thread == 0) step.start(arguments.sum.control, lane.blocks, entry.epoch);
  if (members > 1) cluster_wait();
  body.receive(call, alive, BlockBoard{sums, body.rows.at.lane, members});
  if (!alive) return;
  leave_for_next<Wire>(lane, step, arguments.sum.control, call, body.packets());
  if (lane.thread == 0) step.finish(arguments.sum.control, lane.blocks, entry.epoch, arguments.sum.bounds, arguments.sum.rank);
}

template <template <Form> class Format>
struct Packets {
  template <Form F, int N, int K>
  static constexpr auto kernel = fused_packets_kernel<Format, F, N, K>;
};

}  // namespace

void launch_fused_packets(const FusedArguments& arguments, Protocol protocol, DType dtype, const RowGrid& grid,
                          cudaStream_t stream) {
  const void* kernel = protocol == Protocol::ll ? row_kernel<Packets<Ll>>(dtype, arguments.sum.ranks, grid.vectors_each)
                                                : row_kernel<Packets<Sentinel>>(dtype, arguments.sum.ranks, grid.vectors_each);
  void* parameters[] = {const_cast<FusedArguments*>(&arguments)};
  launch_rows(kernel, parameters, grid, stream);
}

std::array<int, 3> clusters_here() {
  int device = 0, served = 0;
  ARTUNE_CHECK_CUDA(cudaGetDevice(&device));
  ARTUNE_CHECK_CUDA(cudaDeviceGetAttribute(&served, cudaDevAttrClusterLaunch, device));
  const void* largest = row_kernel<Packets<Ll>>(DType::bf16, 8, kMostVectorsEach);  // no kernel here takes more registers
  cudaFuncAttributes attributes;
  ARTUNE_CHECK_CUDA(cudaFuncGetAttributes(&attributes, largest));
  std::array<int, 3> clusters{};
  // Code of an older architecture runs on a newer GPU too, without what memory.cuh has for clusters.
  if (served == 0 || attributes.ptxVersion < 90) return clusters;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {2U << i, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kMostBlocks);
    config.blockDim = dim3(kMostThreads);
    config.attrs = &cluster;
    config.numAttrs = 1;
    ARTUNE_CHECK_CUDA(cudaOccupancyMaxActiveClusters(&clusters[i], largest, &config));
  }
  return clusters;
}

void load_fused_packet_kernels() {
  load_row_kernels<Packets<Ll>>();
  load_row_kernels<Packets<Sentinel>>();
}

}  // namespace artune
