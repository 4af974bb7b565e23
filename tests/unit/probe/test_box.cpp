// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "test_box.hpp"

#include <cstdlib>

namespace artune {

std::string uuid_of_box_gpu(int index) {
  return "GPU-" + std::string(8, static_cast<char>('a' + index)) + "-0000-1111-2222-333344445555";
}

PciTree TestBox::pci_tree() {
  ::setenv("HWLOC_XMLFILE", ARTUNE_SOURCE_DIR "/tests/unit/probe/fixtures/four_gpus_two_switches.hwloc.xml", 1);
  PciTree tree = read_pci_tree();
  ::unsetenv("HWLOC_XMLFILE");
  return tree;
}

TestBox::TestBox() {
  cuda.built_with_cuda = true;
  cuda.driver_version = 13000;
  cuda.runtime_version = 12080;
  for (int i = 0; i < 4; ++i) {
    const std::string& address = kBoxGpus[static_cast<std::size_t>(i)];
    NvmlDevice device;
    device.name = "NVIDIA RTX PRO 6000";
    device.uuid = uuid_of_box_gpu(i);
    device.pci_address = address;
    device.memory_bytes = std::size_t{96} << 30;
    device.bar1_bytes = std::size_t{128} << 30;
    device.link_now = {1, 16};
    device.link_max = {5, 16};
    device.power_limit_w = 600;
    device.display_active = false;
    nvml.devices.push_back(device);
    cuda.devices.push_back({i, device.name, device.uuid, address, 12, 0, 188, std::size_t{95} << 30, std::size_t{128} << 20});

    const std::string folder = "/sys/bus/pci/devices/" + address;
    tree.pci_device(address, "0x10de", "0x2bb1", "0x030200");
    tree.write(folder + "/numa_node", i < 2 ? "0\n" : "1\n");
    tree.write(folder + "/iommu_group/type", "identity\n");
    for (int j = 0; j < 4; ++j) {
      if (i == j) continue;
      const bool same_switch = i / 2 == j / 2;
      cuda.peers.push_back({i, j, true, same_switch ? 0 : 1, false});
      NvmlPair pair;
      pair.level = same_switch ? PeerLevel::pix : PeerLevel::sys;
      pair.read = pair.write = P2pStatus::ok;
      pair.nvlink = pair.atomics = P2pStatus::not_supported;
      nvml.pairs[{i, j}] = pair;
    }
  }
  for (const std::string bus : {"00", "80"}) {
    const std::string port = "0000:" + bus + ":01.1";
    tree.pci_device(port, "0x1022", "0x14ab", "0x060400");
    tree.write("/sys/bus/pci/devices/" + port + "/current_link_speed", "32.0 GT/s PCIe\n");
    tree.write("/sys/bus/pci/devices/" + port + "/current_link_width", bus == "00" ? "16\n" : "8\n");
    tree.write("/sys/bus/pci/devices/" + port + "/max_link_speed", "32.0 GT/s PCIe\n");
    tree.write("/sys/bus/pci/devices/" + port + "/max_link_width", "16\n");
  }
  tree.pci_device("0000:00:00.0", "0x1022", "0x14a4", "0x060000");
  tree.write("/proc/cpuinfo", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu vme\n");
  tree.write("/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
  tree.write("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRegistryDwords: \"\"\n");
}

void TestBox::write_acs(const std::string& address, unsigned control) const {
  std::string config(4096, '\0');
  config[0x100] = 0x0d;  // ACS, the only extended capability
  config[0x102] = 0x01;
  config[0x106] = static_cast<char>(control);
  tree.write("/sys/bus/pci/devices/" + address + "/config", config);
}

}  // namespace artune
