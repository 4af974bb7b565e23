// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Boxes for tests, made of nothing but a shape.
#pragma once

#include <string>

#include "machine/rig.hpp"

namespace artune::test {

/// `switches` PCIe switches on one socket, each with `gpus_each` GPUs and one uplink; every link has `gb_per_s`.
inline Rig switch_box(int switches, int gpus_each, double gb_per_s) {
  const auto sourced = [](double value) { return Sourced{value, "test"}; };
  Rig rig;
  rig.name = "test";
  rig.sources = {{"test", "made up"}};
  rig.sockets = {{"socket", 0, sourced(1000)}};
  for (int s = 0; s < switches; ++s) {
    const std::string number = std::to_string(s);
    rig.root_ports.push_back({"root" + number, "socket"});
    rig.switches.push_back({"switch" + number});
    rig.links.push_back({"switch" + number, "root" + number, 5, 16, sourced(gb_per_s), {}, sourced(0.195)});
    for (int g = 0; g < gpus_each; ++g) {
      RigGpu gpu;
      gpu.id = "gpu" + std::to_string(rig.gpus.size());
      gpu.name = "Test GPU";
      gpu.pci_address = "0000:0" + std::to_string(rig.gpus.size()) + ":00.0";
      gpu.multiprocessors = 100;
      gpu.compute_capability = "9.0";
      gpu.memory_gb_per_s = 1000;
      rig.links.push_back({gpu.id, "switch" + number, 5, 16, sourced(gb_per_s), {}, sourced(0.34)});
      rig.gpus.push_back(gpu);
    }
  }
  rig.peer_access = {{"*", "*", true, "test"}};
  rig.launch = {sourced(0.5), sourced(1), sourced(4)};
  rig.kernels = {sourced(3), sourced(1), sourced(0.8), sourced(0.8), sourced(10)};
  rig.copies = {sourced(20), sourced(10), sourced(0.5)};
  rig.nccl.ring_fraction = sourced(0.9);
  return rig;
}

}  // namespace artune::test
