// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The PCI tree and the NUMA layout, by hwloc.
//
//   const PciTree tree = read_pci_tree();                     // this machine, or the file that HWLOC_XMLFILE names
//   for (const PciFunction* hop = tree.find("0000:01:00.0"); hop != nullptr; hop = tree.find(hop->parent)) print(hop->address);
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace artune {

struct PciFunction {
  std::string address;   ///< "0000:01:00.0"
  std::string parent;    ///< bridge above it; empty directly below a host bridge (a root port)
  std::string root_bus;  ///< "0000:00": functions with one root bus share a host bridge
  std::uint16_t vendor = 0, device = 0;
  int numa_node = -1;  ///< nearest node, -1 when hwloc doesn't say or there are several
  int package = -1;
};

struct PciTree {
  std::map<std::string, PciFunction> functions;  ///< by address
  int packages = 0;
  int numa_nodes = 0;
  std::map<int, int> cpus_of_node;  ///< logical CPUs by NUMA node

  /// nullptr for an unknown address and for the empty one.
  const PciFunction* find(const std::string& address) const;
};

/// Where hwloc sees nothing (some containers), the tree is empty: the facts that hang on it are then "not readable".
PciTree read_pci_tree();

}  // namespace artune
