// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/here.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "comm/cuda_check.hpp"
#include "seams/host_facts.hpp"
#include "seams/nvml.hpp"
#include "seams/system_files.hpp"

namespace artune {
namespace {

std::string pci_address_of(int device) {
  char text[32] = {};
  ARTUNE_CHECK_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, device));
  std::string address(text);
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  return address;
}

std::string cuda_version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

}  // namespace

Result<Here> look_here(const std::vector<int>& devices, int ranks_per_gpu, const std::string& nccl_version) {
  const std::unique_ptr<Nvml> nvml = load_nvml();
  const auto count = nvml->device_count();
  if (!count) return count.error();
  std::vector<int> group;     // CUDA ordinals, each GPU once, in rank order
  for (const int device : devices) {
    if (std::find(group.begin(), group.end(), device) == group.end()) group.push_back(device);
  }
  Here here;
  World world{.devices = {}, .ranks_per_gpu = ranks_per_gpu, .launch = Launch::one_thread};
  for (const int device : group) {
    const std::string address = pci_address_of(device);
    std::optional<GpuFacts> found;
    for (int index = 0; index < *count && !found; ++index) {
      const auto gpu = nvml->device(index);
      if (!gpu || gpu->pci_address != address) continue;
      cudaDeviceProp properties;
      ARTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
      found.emplace();
      found->index = index;
      found->name = gpu->name;
      found->pci_address = gpu->pci_address;
      found->compute_capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
      found->link_now = gpu->link_now;
      found->link_max = gpu->link_max;
    }
    if (!found) return Error{Reason::unavailable, "NVML doesn't show the GPU at " + address};
    world.devices.push_back(found->index);
    here.machine.gpus.push_back(*found);
  }
  if (const auto system = nvml->system()) {
    here.machine.driver = system->driver_version;
    if (system->cuda_driver_version) here.machine.cuda_driver = cuda_version_text(*system->cuda_driver_version);
  }
  here.machine.nccl_version = nccl_version;
  read_host_facts(SystemFiles(), here.machine);
  here.group = group_facts_from(here.machine, world, /*simulated=*/false, [&](int from, int to) {
    const auto pair = nvml->pair(from, to);
    return pair ? pair_class(to_string(pair->level), pair->nvlink == P2pStatus::ok) : pair_class(to_string(PeerLevel::unknown), false);
  });
  return here;
}

}  // namespace artune
