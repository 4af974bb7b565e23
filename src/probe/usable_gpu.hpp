// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Is there a GPU that CUDA can use, and if not, why not? An NVIDIA device that can't be used is never passed over in
// silence: the cause is named with its way out. A machine without one is told about --rig.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "probe/cuda_facts.hpp"
#include "seams/nvml.hpp"
#include "seams/system_files.hpp"

namespace artune {

/// PCI addresses of NVIDIA display and 3D controllers (vendor 10de, class 03xx), whatever driver they have.
std::vector<std::string> nvidia_devices_on_bus(const SystemFiles& files);
/// The above, or a device node of the driver where a container hides the PCI bus.
bool nvidia_device_on_bus(const SystemFiles& files);

/// Reason::no_usable_gpu with cause and way out, or nullopt when CUDA has at least one device.
std::optional<Error> why_no_usable_gpu(const CudaFacts& cuda, Nvml& nvml, const SystemFiles& files);

}  // namespace artune
