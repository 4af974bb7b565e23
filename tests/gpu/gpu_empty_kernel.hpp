// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel that does nothing: what a launch alone costs.
#pragma once

#include <cuda_runtime_api.h>

namespace artune {

void launch_empty_kernel(cudaStream_t stream);

}  // namespace artune
