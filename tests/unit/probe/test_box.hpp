// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Two sockets, a switch on each, two GPUs on each switch: the machine of fixtures/four_gpus_two_switches.hwloc.xml as
// CUDA, NVML and sysfs would show it.
#pragma once

#include "fake_nvml.hpp"
#include "probe/collect.hpp"
#include "temporary_tree.hpp"

namespace artune {

struct TestBox {
  TemporaryTree tree;
  FakeNvml nvml;
  CudaFacts cuda;

  TestBox();
  /// Reads the fixture through hwloc.
  static PciTree pci_tree();
  Result<Topology> collect() { return collect_topology(cuda, nvml, tree.files(), pci_tree(), nullptr); }
  /// Configuration space with an ACS capability whose control word is `control`.
  void write_acs(const std::string& address, unsigned control) const;
};

inline const std::vector<std::string> kBoxGpus{"0000:03:00.0", "0000:04:00.0", "0000:83:00.0", "0000:84:00.0"};

std::string uuid_of_box_gpu(int index);

}  // namespace artune
