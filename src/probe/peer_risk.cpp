// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/peer_risk.hpp"

#include <algorithm>
#include <cctype>

namespace artune {
namespace {

// Host bridges (device 0 of the root bus) of Intel server and workstation root complexes. The first group is the
// Intel part of pci_p2pdma_whitelist[] in the Linux kernel (drivers/pci/p2pdma.c): root complexes known to route
// peer traffic. The second group are server parts that the kernel doesn't list: not proven good, but no client parts.
constexpr const char* kIntelServerBridges[] = {
    "8086:3c00", "8086:3c01",                                         // Xeon E5
    "8086:2f00", "8086:2f01",                                         // Xeon E5 v3, E7 v3
    "8086:2020", "8086:2030", "8086:2031", "8086:2032", "8086:2033",  // Skylake-E and its successors on that socket
    "8086:09a2",                                                      // Ice Lake-SP, Sapphire Rapids and later
    "8086:0e00", "8086:0e01", "8086:6f00", "8086:6f01",               // Xeon E5 v2, v4
    "8086:3400", "8086:3403", "8086:3405", "8086:3406",               // 5500 and 5520 hubs
};
// What a hypervisor shows instead: the real root complex can't be seen from inside.
constexpr const char* kVirtualBridges[] = {"8086:1237", "8086:29c0", "8086:7190", "8086:0d57"};

template <std::size_t N>
bool listed(const char* const (&list)[N], const std::string& word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool translates(const std::string& iommu_type) { return iommu_type.compare(0, 3, "DMA") == 0; }  // DMA and DMA-FQ

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string registry_value(const std::string& registry_dwords, const std::string& key) {
  const std::string text = lower(registry_dwords), wanted = lower(key);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("; ,", begin), text.size());
    const std::size_t equals = text.find('=', begin);
    if (equals < end && text.compare(begin, equals - begin, wanted) == 0) return text.substr(equals + 1, end - equals - 1);
    begin = end + 1;
  }
  return "";
}

std::vector<std::string> peer_test_risks(const PeerRiskFacts& facts) {
  std::vector<std::string> risks;
  const std::string forced = registry_value(facts.registry_dwords, "ForceP2P");
  const std::string type = registry_value(facts.registry_dwords, "RMForceP2PType");
  const bool forced_to_pcie = type == "1" || type == "0x1" || type == "0x01";
  // ForceP2P=0 only forbids. Anything else makes the driver promise peer access without looking at the machine.
  if (!forced.empty() && forced.find_first_not_of("0x") != std::string::npos) {
    risks.push_back("ForceP2P=" + forced + " in the driver's RegistryDwords: its answers about P2P are forced, not checked");
  }
  if (facts.nvlink && !forced_to_pcie) return risks;  // the bytes never reach PCIe

  const auto translating = std::find_if(facts.iommu_types.begin(), facts.iommu_types.end(), translates);
  if (translating != facts.iommu_types.end()) {
    risks.push_back("the IOMMU translates (group type " + *translating +
                    "): peer writes may land elsewhere; boot with iommu=pt or switch the IOMMU off");
  }
  if (!facts.redirecting_ports.empty()) {
    risks.push_back("ACS redirects peer traffic at " + join(facts.redirecting_ports) +
                    ": the first transfer may hang the GPUs until a reset; clear ReqRedir and CmpltRedir there");
  }
  // Behind a common switch the root complex isn't involved.
  const bool through_root_complex =
      facts.level != PeerLevel::same && facts.level != PeerLevel::pix && facts.level != PeerLevel::pxb;
  if (facts.intel_client && through_root_complex) {
    risks.push_back(
        "an Intel client root complex lies between the two: such parts drop peer traffic; use a PCIe switch or the host paths");
  }
  return risks;
}

std::string read_host_bridge(const SystemFiles& files) {
  const std::string device = "/sys/bus/pci/devices/0000:00:00.0/";
  const auto vendor = files.text(device + "vendor"), id = files.text(device + "device");
  if (!vendor || !id || vendor->size() < 6 || id->size() < 6) return "";
  return lower(vendor->substr(2) + ":" + id->substr(2));
}

// Client parts fail (intel/compute-runtime#935, tinygrad/open-gpu-kernel-modules#26 and #33). They have no mark of
// their own; they are told by what they are not: an Intel host bridge at 0000:00:00.0 that is neither a server's nor
// a hypervisor's. A new server part that is missing above is asked for --risky once too often, which harms nobody.
bool is_intel_client(const SystemFiles& files, const std::string& host_bridge) {
  if (host_bridge.compare(0, 5, "8086:") != 0 || listed(kIntelServerBridges, host_bridge) || listed(kVirtualBridges, host_bridge))
    return false;
  return files.text("/proc/cpuinfo").value_or("").find("GenuineIntel") != std::string::npos;
}

}  // namespace artune
