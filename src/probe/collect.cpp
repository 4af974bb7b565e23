// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/collect.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/sha256.hpp"
#include "probe/pci_names.hpp"
#include "probe/peer_risk.hpp"
#include "probe/usable_gpu.hpp"
#include "seams/host_facts.hpp"

namespace artune {
namespace {

constexpr std::size_t kUuidDigits = 16;  // of the SHA-256: tells same from other, identifies nobody

std::string version_text(int version) { return version <= 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// One GPU from both sides; either may be missing (hidden from CUDA, or no NVML).
struct Sighting {
  std::optional<NvmlDevice> nvml;
  const CudaDevice* cuda = nullptr;
  int nvml_index = -1;

  const std::string& pci_address() const { return nvml ? nvml->pci_address : cuda->pci_address; }
  const std::string& uuid() const { return nvml ? nvml->uuid : cuda->uuid; }
};

/// In nvidia-smi's order, so that the position is the index. CUDA's ordinals differ from it (CUDA_VISIBLE_DEVICES,
/// CUDA_DEVICE_ORDER): the two are matched by UUID, and by PCI address where MIG or a vGPU has a UUID of its own.
std::vector<Sighting> match_gpus(const CudaFacts& cuda, Nvml& nvml) {
  std::vector<Sighting> seen;
  const Result<int> count = nvml.device_count();
  for (int index = 0; count && index < *count; ++index) {
    const Result<NvmlDevice> device = nvml.device(index);
    if (!device) continue;  // fallen off the bus or blocked by a container: CUDA doesn't list it either
    seen.push_back({*device, nullptr, index});
  }
  std::vector<const CudaDevice*> unmatched;
  for (const auto& device : cuda.devices) {
    const auto is_same = [&](const Sighting& one) {
      return one.cuda == nullptr && (one.nvml->uuid == device.uuid || one.nvml->pci_address == device.pci_address);
    };
    const auto it = std::find_if(seen.begin(), seen.end(), is_same);
    if (it != seen.end()) {
      it->cuda = &device;
    } else {
      unmatched.push_back(&device);
    }
  }
  std::sort(unmatched.begin(), unmatched.end(), [](const auto* a, const auto* b) { return a->pci_address < b->pci_address; });
  for (const CudaDevice* device : unmatched) seen.push_back({std::nullopt, device, -1});
  return seen;
}

/// Where one GPU was blocked, NVML's index is larger than the position; what follows the NVML devices goes on counting.
int index_of(const std::vector<Sighting>& seen, std::size_t position) {
  int index = -1;
  for (std::size_t i = 0; i <= position; ++i) index = seen[i].nvml ? seen[i].nvml_index : index + 1;
  return index;
}

int numa_node_of(const SystemFiles& files, const PciTree& tree, const std::string& address) {
  const int node = read_numa_node(files, address);
  if (node >= 0) return node;
  const PciFunction* function = tree.find(address);
  return function == nullptr ? -1 : function->numa_node;
}

GpuFacts describe_gpu(const Sighting& one, int index, const SystemFiles& files, const PciTree& tree) {
  GpuFacts gpu;
  gpu.index = index;
  gpu.pci_address = one.pci_address();
  gpu.uuid_sha256 = sha256_hex(one.uuid()).substr(0, kUuidDigits);
  gpu.numa_node = numa_node_of(files, tree, gpu.pci_address);
  if (one.cuda != nullptr) {
    gpu.name = one.cuda->name;
    gpu.memory_bytes = one.cuda->memory_bytes;
    gpu.l2_bytes = one.cuda->l2_bytes;
    gpu.compute_capability = fmt::format("{}.{}", one.cuda->major, one.cuda->minor);
    gpu.multiprocessors = one.cuda->multiprocessors;
  }
  if (one.nvml) {
    gpu.name = one.nvml->name;
    gpu.memory_bytes = one.nvml->memory_bytes.value_or(gpu.memory_bytes);
    gpu.bar1_bytes = one.nvml->bar1_bytes.value_or(0);
    gpu.link_now = one.nvml->link_now;
    gpu.link_max = one.nvml->link_max;
    gpu.vbios = one.nvml->vbios.value_or("");
    gpu.power_limit_w = one.nvml->power_limit_w.value_or(0);
  }
  if (gpu.link_now == LinkState{}) gpu.link_now = read_link(files, gpu.pci_address, "current");
  if (gpu.link_max == LinkState{}) gpu.link_max = read_link(files, gpu.pci_address, "max");
  return gpu;
}

/// Without those of this process and of the supervisor that started it.
std::vector<OtherProcess> other_processes(const Sighting& one, Nvml& nvml) {
  std::vector<OtherProcess> others;
  if (!one.nvml) return others;
  const auto processes = nvml.compute_processes(one.nvml_index);
  if (!processes) return others;
  for (const auto& process : *processes) {
    if (process.pid == static_cast<unsigned>(::getpid()) || process.pid == static_cast<unsigned>(::getppid())) continue;
    others.push_back({process.pid, process.name, process.memory_bytes});
  }
  return others;
}

/// The function itself and all bridges above it.
std::vector<const PciFunction*> path_upwards(const PciTree& tree, const std::string& address) {
  std::vector<const PciFunction*> path;
  for (const PciFunction* function = tree.find(address); function != nullptr; function = tree.find(function->parent))
    path.push_back(function);
  return path;
}

/// Root ports hang on the host bridge; below them, every switch is an upstream port with downstream ports under it.
LinkKind kind_of(std::size_t position, std::size_t path_length) {
  if (position == 0) return LinkKind::gpu;
  const std::size_t from_top = path_length - 1 - position;
  if (from_top == 0) return LinkKind::root_port;
  return from_top % 2 == 1 ? LinkKind::upstream_port : LinkKind::downstream_port;
}

Link describe_link(const SystemFiles& files, const std::string& address, LinkKind kind) {
  Link link;
  link.address = address;
  link.kind = kind;
  link.now = read_link(files, address, "current");
  link.max = read_link(files, address, "max");
  link.acs_redirect = read_acs_redirect(files, address);
  return link;
}

/// Every function between GPUs and root complex once, deepest first, so that parents follow their children.
std::vector<Link> collect_links(const std::vector<GpuFacts>& gpus, const SystemFiles& files, const PciTree& tree) {
  struct Placed {
    std::size_t depth;
    Link link;
  };
  std::vector<Placed> placed;
  for (const auto& gpu : gpus) {
    const auto path = path_upwards(tree, gpu.pci_address);
    if (path.empty()) {  // hwloc doesn't see the bus (some containers): the GPU's own end of its link is all there is
      Link link = describe_link(files, gpu.pci_address, LinkKind::gpu);
      link.name = gpu.name;
      link.gpus = {gpu.index};
      if (link.now == LinkState{}) link.now = gpu.link_now;
      if (link.max == LinkState{}) link.max = gpu.link_max;
      placed.push_back({0, std::move(link)});
      continue;
    }
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto same =
          std::find_if(placed.begin(), placed.end(), [&](const Placed& one) { return one.link.address == path[i]->address; });
      if (same != placed.end()) {
        same->link.gpus.push_back(gpu.index);
        continue;
      }
      Link link = describe_link(files, path[i]->address, kind_of(i, path.size()));
      link.parent = path[i]->parent;
      link.vendor_device = fmt::format("{:04x}:{:04x}", path[i]->vendor, path[i]->device);
      link.name = i == 0 ? gpu.name : std::string(known_switch_name(path[i]->vendor, path[i]->device));
      link.gpus = {gpu.index};
      placed.push_back({path.size() - i, std::move(link)});
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.depth > b.depth; });
  std::vector<Link> links;
  for (auto& one : placed) links.push_back(std::move(one.link));
  return links;
}

/// Ports that peer traffic between the two passes and that send it upwards instead of across.
std::vector<std::string> redirecting_ports(const Topology& topology, int from, int to) {
  std::vector<std::string> ports;
  for (const auto& link : topology.links) {
    const bool carries_from = std::find(link.gpus.begin(), link.gpus.end(), from) != link.gpus.end();
    const bool carries_to = std::find(link.gpus.begin(), link.gpus.end(), to) != link.gpus.end();
    if (carries_from == carries_to) continue;  // above the point where the two meet, or elsewhere
    const bool is_port = link.kind == LinkKind::downstream_port || link.kind == LinkKind::root_port;
    if (is_port && link.acs_redirect == AcsRedirect::set) ports.push_back(link.address);
  }
  return ports;
}

/// What nvidia-smi would say, from the tree: only where NVML doesn't answer.
PeerLevel level_by_tree(const PciTree& tree, const GpuFacts& a, const GpuFacts& b) {
  const auto path_a = path_upwards(tree, a.pci_address), path_b = path_upwards(tree, b.pci_address);
  if (path_a.empty() || path_b.empty()) return PeerLevel::unknown;
  std::set<const PciFunction*> above_a(path_a.begin() + 1, path_a.end());
  const auto meet =
      std::find_if(path_b.begin() + 1, path_b.end(), [&](const PciFunction* hop) { return above_a.count(hop) > 0; });
  if (meet != path_b.end()) {
    const auto bridges_b = meet - path_b.begin() - 1;
    const auto bridges_a = std::find(path_a.begin(), path_a.end(), *meet) - path_a.begin() - 1;
    return bridges_a <= 1 && bridges_b <= 1 ? PeerLevel::pix : PeerLevel::pxb;
  }
  if (path_a.front()->root_bus == path_b.front()->root_bus) return PeerLevel::phb;
  if (a.numa_node < 0 || b.numa_node < 0) return PeerLevel::unknown;
  return a.numa_node == b.numa_node ? PeerLevel::node : PeerLevel::sys;
}

Pair describe_pair(const Sighting& a, const Sighting& b, int from, int to, const CudaFacts& cuda, Nvml& nvml) {
  Pair pair;
  pair.from = from;
  pair.to = to;
  if (a.cuda != nullptr && b.cuda != nullptr) {
    for (const auto& peer : cuda.peers) {
      if (peer.from != a.cuda->ordinal || peer.to != b.cuda->ordinal) continue;
      pair.access = peer.access;
      pair.performance_rank = peer.performance_rank;
      pair.native_atomics = peer.native_atomics;
    }
  }
  if (!a.nvml || !b.nvml) return pair;
  if (const auto told = nvml.pair(a.nvml_index, b.nvml_index)) {
    pair.level = told->level;
    pair.nvml_read = told->read;
    pair.nvml_write = told->write;
    pair.nvml_nvlink = told->nvlink;
    pair.nvml_atomics = told->atomics;
  }
  return pair;
}

std::vector<NumaNode> collect_numa(const PciTree& tree, const std::vector<GpuFacts>& gpus) {
  std::vector<NumaNode> nodes;
  for (const auto& [number, cpus] : tree.cpus_of_node) {
    NumaNode node{number, cpus, {}};
    for (const auto& gpu : gpus) {
      if (gpu.numa_node == number) node.gpus.push_back(gpu.index);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Result<Topology> collect_topology(const CudaFacts& cuda, Nvml& nvml, const SystemFiles& files, const PciTree& tree,
                                  const NcclLibrary* nccl) {
  if (auto error = why_no_usable_gpu(cuda, nvml, files)) return *error;

  Topology topology;
  topology.header.kind = kProbeKind;
  topology.header.version = kProbeVersion;
  topology.header.tool = tool_name();
  topology.header.created = now_rfc3339();
  MachineFacts& machine = topology.header.machine;
  const std::vector<Sighting> seen = match_gpus(cuda, nvml);
  std::vector<std::string> iommu_types;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    machine.gpus.push_back(describe_gpu(seen[i], index_of(seen, i), files, tree));
    const GpuFacts& facts = machine.gpus.back();
    ProbedGpu gpu{facts.index,
                  facts.pci_address,
                  facts.name,
                  std::nullopt,
                  std::nullopt,
                  read_iommu_group_type(files, facts.pci_address),
                  other_processes(seen[i], nvml),
                  seen[i].uuid()};
    if (seen[i].cuda != nullptr) gpu.cuda_ordinal = seen[i].cuda->ordinal;
    if (seen[i].nvml) gpu.display_active = seen[i].nvml->display_active;
    iommu_types.push_back(gpu.iommu_group_type);
    topology.gpus.push_back(std::move(gpu));
  }

  read_host_facts(files, machine);
  machine.iommu_mode = combined_iommu_mode(iommu_types);
  machine.cuda_runtime = version_text(cuda.runtime_version);
  machine.cuda_driver = version_text(cuda.driver_version);
  if (const auto system = nvml.system()) {
    machine.driver = system->driver_version;
    if (system->cuda_driver_version) machine.cuda_driver = version_text(*system->cuda_driver_version);
  }
  if (nccl != nullptr) {
    machine.nccl_version = nccl->version_text();
    machine.nccl_file = nccl->file();
  }
  machine.numa_nodes = tree.numa_nodes;

  topology.links = collect_links(machine.gpus, files, tree);
  topology.packages = tree.packages;
  topology.numa = collect_numa(tree, machine.gpus);
  topology.host_bridge = read_host_bridge(files);
  topology.intel_client = machine.vm == "none" && is_intel_client(files, topology.host_bridge);

  for (std::size_t a = 0; a < seen.size(); ++a) {
    for (std::size_t b = 0; b < seen.size(); ++b) {
      if (a == b) continue;
      Pair pair = describe_pair(seen[a], seen[b], machine.gpus[a].index, machine.gpus[b].index, cuda, nvml);
      if (pair.level == PeerLevel::unknown) pair.level = level_by_tree(tree, machine.gpus[a], machine.gpus[b]);
      pair.risks = peer_test_risks({.level = pair.level,
                                    .nvlink = pair.nvml_nvlink == P2pStatus::ok,
                                    .iommu_types = {topology.gpus[a].iommu_group_type, topology.gpus[b].iommu_group_type},
                                    .redirecting_ports = redirecting_ports(topology, pair.from, pair.to),
                                    .registry_dwords = machine.registry_dwords,
                                    .intel_client = topology.intel_client});
      topology.pairs.push_back(std::move(pair));
    }
  }
  return topology;
}

}  // namespace artune
