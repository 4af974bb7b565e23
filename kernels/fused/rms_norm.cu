// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/fused_launches.hpp"
#include "fused/row_launch.cuh"

namespace artune {
namespace {

template <DType D, int K>
__global__ void __launch_bounds__(kMostThreads, 1)
    rms_norm_kernel(const __grid_constant__ NormArguments norm, const void* sums_) {
  __shared__ float sums[2 * kMostGroups];
  const Lane lane = Lane::current();
  if (norm.members > 1) cluster_arrive();
  RowNorm<D, K> rows(norm, RowLane::of(lane, norm.members));
  const BlockBoard board{sums, rows.at.lane, norm.members};
  rows.load_weight();
  std::uint32_t turn = 0;
  for (std::uint32_t row = rows.at.cluster; row < norm.rows; row += rows.at.clusters, ++turn) {
    std::uint32_t sum[K][1][kRowWords];
    rows.for_each([&](int k, int i, std::uint32_t vector) { rows.load(sums_, rows.unit_of(row, vector), sum[k][i]); });
    rows.load_residual(row);
    if (turn == 0 && norm.members > 1) cluster_wait();
    rows.run(row, turn, board, [&](int k, int i, std::uint64_t, std::uint32_t(&words)[kRowWords]) {
      for (int w = 0; w < kRowWords; ++w) words[w] = sum[k][i][w];
    });
  }
}

template <DType D>
const void* by_vectors_each(int vectors_each) {
  return reinterpret_cast<const void*>(vectors_each == 1 ? rms_norm_kernel<D, 1> : rms_norm_kernel<D, kMostVectorsEach>);
}

const void* norm_kernel(DType dtype, int vectors_each) {
  return dtype == DType::f16 ? by_vectors_each<DType::f16>(vectors_each) : by_vectors_each<DType::bf16>(vectors_each);
}

}  // namespace

void load_norm_kernels() {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const int vectors : {1, kMostVectorsEach}) load_kernel(norm_kernel(dtype, vectors));
  }
  load_fused_packet_kernels();
  load_fused_flag_kernels();
}

void launch_rms_norm(NormArguments norm, const void* sums, DType dtype, const RowGrid& grid, cudaStream_t stream) {
  norm.members = static_cast<std::uint16_t>(grid.members);
  void* parameters[] = {&norm, &sums};
  launch_rows(norm_kernel(dtype, grid.vectors_each), parameters, grid, stream);
}

void launch_fused(const OneShotArguments& sum, NormArguments norm, Protocol protocol, DType dtype, const RowGrid& grid,
                  cudaStream_t stream) {
  norm.members = static_cast<std::uint16_t>(grid.members);
  FusedArguments arguments{norm, sum};
  arguments.sum.count = std::uint64_t{norm.rows} * norm.hidden;
  if (protocol == Protocol::flag) return launch_fused_flag(arguments, dtype, grid, stream);
  launch_fused_packets(arguments, protocol, dtype, grid, stream);
}

}  // namespace artune
