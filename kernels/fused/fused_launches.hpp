// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The norm kernel and the fused kernels as plain functions. As paths/launches.hpp.
#pragma once

#include <cuda_runtime_api.h>

#include <array>

#include "base/words.hpp"
#include "fused/norm_arguments.hpp"
#include "fused/row_grid.hpp"
#include "paths/menu.hpp"
#include "protocol/arguments.hpp"

namespace artune {

/// Loads every kernel on the current device.
void load_norm_kernels();

/// Clusters of 2, 4 and 8 blocks of a fused kernel that fit the current device at once, whichever of the kernels; 0 where it
/// has no clusters, or these kernels weren't compiled for them.
std::array<int, 3> clusters_here();

/// Residual add and RMSNorm of `sums`, rows x hidden; `dtype` is f16 or bf16. norm.output may be `sums`.
/// norm.members is set by the grid.
void launch_rms_norm(NormArguments norm, const void* sums, DType dtype, const RowGrid& grid, cudaStream_t stream);

/// All-reduce of sum.input, rows x hidden elements, and the norm of the sums. `protocol` is of the family that `sum` was
/// wired for. All ranks launch the same grid.
void launch_fused(const OneShotArguments& sum, NormArguments norm, Protocol protocol, DType dtype, const RowGrid& grid,
                  cudaStream_t stream);

}  // namespace artune
