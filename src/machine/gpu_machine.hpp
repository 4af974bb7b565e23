// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The machine that runs CUDA. Only worker processes make one: a wedged kernel takes the process with it.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "machine/machine.hpp"
#include "machine/options.hpp"

namespace artune {

/// Reason::no_usable_gpu, Reason::usage (a device that isn't there, more ranks than the devices carry). Throws Failure.
Result<std::unique_ptr<Machine>> make_gpu_machine(const MachineOptions& options);

}  // namespace artune
