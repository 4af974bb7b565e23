// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of row kernels share: the launch in clusters, and the instantiations by dtype, ranks and vectors.
#pragma once

#include "fused/fused_packets.cuh"
#include "fused/row_grid.hpp"
#include "paths/kernel_table.cuh"
#include "paths/menu.hpp"

namespace artune {

inline void launch_rows(const void* kernel, void** parameters, const RowGrid& grid, cudaStream_t stream) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(grid.members), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = grid.members > 1 ? 1 : 0;
  ARTUNE_CHECK_CUDA(cudaLaunchKernelExC(&config, kernel, parameters));
}

/// `Kernels` has a variable template kernel<F, N, K>; N as by_ranks(), K = 1 or kMostVectorsEach.
template <typename Kernels, Form F, int N>
const void* by_vectors(int vectors_each) {
  return vectors_each == 1 ? reinterpret_cast<const void*>(Kernels::template kernel<F, N, 1>)
                           : reinterpret_cast<const void*>(Kernels::template kernel<F, N, kMostVectorsEach>);
}

template <typename Kernels, Form F>
const void* by_ranks_and_vectors(int ranks, int vectors_each) {
  switch (ranks) {
    case 2:
      return by_vectors<Kernels, F, 2>(vectors_each);
    case 4:
      return by_vectors<Kernels, F, 4>(vectors_each);
    case 8:
      return by_vectors<Kernels, F, 8>(vectors_each);
    default:
      return by_vectors<Kernels, F, 0>(vectors_each);
  }
}

template <typename Kernels>
const void* row_kernel(DType dtype, int ranks, int vectors_each) {
  return dtype == DType::f16 ? by_ranks_and_vectors<Kernels, Form::f16>(ranks, vectors_each)
                             : by_ranks_and_vectors<Kernels, Form::bf16>(ranks, vectors_each);
}

template <typename Kernels>
void load_row_kernels() {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const int ranks : {2, 3, 4, 8}) {
      for (const int vectors : {1, kMostVectorsEach}) load_kernel(row_kernel<Kernels>(dtype, ranks, vectors));
    }
  }
}

void load_fused_packet_kernels();
void load_fused_flag_kernels();
void launch_fused_packets(const FusedArguments& arguments, Protocol protocol, DType dtype, const RowGrid& grid,
                          cudaStream_t stream);
void launch_fused_flag(const FusedArguments& arguments, DType dtype, const RowGrid& grid, cudaStream_t stream);

}  // namespace artune
