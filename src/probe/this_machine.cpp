// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/this_machine.hpp"

#include "probe/collect.hpp"
#include "seams/environment.hpp"

namespace artune {

Result<Topology> probe_this_machine(const std::string& nccl_file) {
  const Environment environment = Environment::of_process();
  CudaFacts cuda = read_cuda_facts();
  cuda.visible_devices = environment.cuda_visible_devices;
  const auto nvml = load_nvml();
  const Result<NcclLibrary> nccl = NcclLibrary::open(nccl_file, environment.nccl_lib);
  if (!nccl && !nccl_file.empty()) return nccl.error();
  return collect_topology(cuda, *nvml, SystemFiles(), read_pci_tree(), nccl ? &*nccl : nullptr);
}

}  // namespace artune
