// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts the facts together. Pure in its arguments: tests give fakes for all of them, this_machine.hpp the real ones.
//
//   Result<Topology> topology = collect_topology(read_cuda_facts(), *load_nvml(), SystemFiles(), read_pci_tree(), nccl);
#pragma once

#include "base/result.hpp"
#include "probe/cuda_facts.hpp"
#include "probe/pci_tree.hpp"
#include "probe/topology.hpp"
#include "seams/nccl_library.hpp"
#include "seams/nvml.hpp"
#include "seams/system_files.hpp"

namespace artune {

/// `nccl`: nullptr where there is none. Reason::no_usable_gpu, with the cause, when CUDA has no device to use.
/// Without NVML the GPUs are those that CUDA shows, in the order of their PCI addresses, as nvidia-smi counts.
Result<Topology> collect_topology(const CudaFacts& cuda, Nvml& nvml, const SystemFiles& files, const PciTree& tree,
                                  const NcclLibrary* nccl);

}  // namespace artune
