// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "machine/options.hpp"

namespace artune {

/// The worker's environment: `inherited` ("NAME=value", NULL-terminated, as ::environ) with what must be set before
/// the CUDA driver and NCCL read it, which is at load time and once.
std::vector<std::string> worker_environment(const MachineOptions& options, const char* const* inherited);

}  // namespace artune
