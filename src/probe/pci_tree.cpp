// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/pci_tree.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <memory>

namespace artune {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<hwloc_topology, DestroyTopology>;

TopologyHandle load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  TopologyHandle topology(raw);
  // hwloc's device plug-ins would make CUDA and OpenCL contexts; we only want what the kernel says.
  for (const char* plugin : {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"}) {
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
  }
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

bool is_host_bridge(hwloc_obj_t object) {
  return object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
}

/// A PCI device and a PCI-to-PCI bridge keep their attributes in different places.
const hwloc_obj_attr_u::hwloc_pcidev_attr_s* pci_of(hwloc_obj_t object) {
  if (object->type == HWLOC_OBJ_PCI_DEVICE) return &object->attr->pcidev;
  if (object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
    return &object->attr->bridge.upstream.pci;
  return nullptr;
}

std::string address_of(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", static_cast<unsigned>(pci.domain), static_cast<unsigned>(pci.bus),
                     static_cast<unsigned>(pci.dev), static_cast<unsigned>(pci.func));
}

PciFunction function_of(hwloc_topology_t topology, hwloc_obj_t object, const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  PciFunction function;
  function.address = address_of(pci);
  function.vendor = pci.vendor_id;
  function.device = pci.device_id;
  if (object->parent != nullptr) {
    if (const auto* above = pci_of(object->parent)) function.parent = address_of(*above);
  }
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (!is_host_bridge(above)) continue;
    const auto& downstream = above->attr->bridge.downstream.pci;
    function.root_bus =
        fmt::format("{:04x}:{:02x}", static_cast<unsigned>(downstream.domain), static_cast<unsigned>(downstream.secondary_bus));
  }
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, object);
  if (near != nullptr && near->nodeset != nullptr && hwloc_bitmap_weight(near->nodeset) == 1) {
    function.numa_node = hwloc_bitmap_first(near->nodeset);
  }
  if (near != nullptr) {
    const hwloc_obj_t package =
        near->type == HWLOC_OBJ_PACKAGE ? near : hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, near);
    if (package != nullptr) function.package = static_cast<int>(package->os_index);
  }
  return function;
}

}  // namespace

const PciFunction* PciTree::find(const std::string& address) const {
  const auto it = functions.find(address);
  return it == functions.end() ? nullptr : &it->second;
}

PciTree read_pci_tree() {
  PciTree tree;
  const TopologyHandle topology = load();
  if (!topology) return tree;
  hwloc_topology_t raw = topology.get();
  tree.packages = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE);
  tree.numa_nodes = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_NUMANODE);
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    tree.cpus_of_node[static_cast<int>(node->os_index)] = hwloc_bitmap_weight(node->cpuset);
  }
  const auto add = [&](hwloc_obj_t object) {
    if (const auto* pci = pci_of(object)) {
      PciFunction function = function_of(raw, object, *pci);
      tree.functions.emplace(function.address, std::move(function));
    }
  };
  for (hwloc_obj_t bridge = nullptr; (bridge = hwloc_get_next_bridge(raw, bridge)) != nullptr;) add(bridge);
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(raw, device)) != nullptr;) add(device);
  return tree;
}

}  // namespace artune
