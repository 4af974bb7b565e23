// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/host_facts.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace artune {
namespace {

std::string join_present(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : " ") + part;
  }
  return text;
}

std::string read_bios(const SystemFiles& files) {
  const auto dmi = [&](const char* name) { return files.text("/sys/class/dmi/id/" + std::string(name)).value_or(""); };
  const std::string date = dmi("bios_date");
  const std::string board = join_present({dmi("board_vendor"), dmi("board_name")});
  return join_present(
      {dmi("bios_vendor"), dmi("bios_version"), date.empty() ? "" : "(" + date + ")", board.empty() ? "" : "on " + board});
}

/// /proc/driver/nvidia/params has lines like `RegistryDwords: "ForceP2P=0x11"`; the module parameter in sysfs reads empty.
std::string read_registry_dwords(const SystemFiles& files) {
  std::istringstream lines(files.text("/proc/driver/nvidia/params").value_or(""));
  constexpr std::string_view kKey = "RegistryDwords:";
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, kKey.size(), kKey) != 0) continue;
    line.erase(0, kKey.size());
    line.erase(std::remove(line.begin(), line.end(), '"'), line.end());
    const std::size_t first = line.find_first_not_of(' ');
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

std::string relevant_boot_switches(const std::string& command_line) {
  constexpr std::string_view kPrefixes[] = {"iommu", "intel_iommu", "amd_iommu",   "pci",       "nvidia",
                                            "vfio",  "acs",         "disable_acs", "config_acs"};
  std::istringstream words(command_line);
  std::vector<std::string> kept;
  for (std::string word; words >> word;) {
    const auto starts = [&](std::string_view prefix) { return word.compare(0, prefix.size(), prefix) == 0; };
    if (std::any_of(std::begin(kPrefixes), std::end(kPrefixes), starts)) kept.push_back(word);
  }
  return join_present(kept);
}

std::string combined_iommu_mode(const std::vector<std::string>& group_types) {
  for (const std::string_view type : {"DMA-FQ", "DMA", "not readable", "identity", "off"}) {
    if (std::find(group_types.begin(), group_types.end(), type) != group_types.end()) return std::string(type);
  }
  return group_types.empty() ? "not readable" : group_types.front();
}

std::string detect_container(const SystemFiles& files) {
  // systemd and podman tell by themselves; Docker leaves a marker; the rest shows in the control groups' names.
  if (const auto told = files.text("/run/systemd/container"); told && !told->empty()) return *told;
  if (files.exists("/run/.containerenv")) return "podman";
  const std::string groups = files.text("/proc/1/cgroup").value_or("");
  if (files.exists("/var/run/secrets/kubernetes.io") || contains(groups, "kubepods")) return "kubernetes";
  if (files.exists("/.dockerenv") || contains(groups, "docker")) return "docker";
  if (contains(groups, "lxc")) return "lxc";
  if (contains(groups, "containerd")) return "containerd";
  // gVisor answers for the kernel with this one fixed build line, whatever runs below it.
  if (contains(files.text("/proc/version").value_or(""), "Sun Jan 10 15:06:54 PST 2016")) return "gvisor";
  return "none";
}

std::string detect_vm(const SystemFiles& files) {
  struct Maker {
    std::string_view text, name;
  };
  constexpr Maker kMakers[] = {{"QEMU", "kvm"},
                               {"KVM", "kvm"},
                               {"Amazon EC2", "kvm"},
                               {"Google Compute Engine", "kvm"},
                               {"OpenStack", "kvm"},
                               {"VMware", "vmware"},
                               {"VirtualBox", "virtualbox"},
                               {"Virtual Machine", "hyperv"},
                               {"Xen", "xen"},
                               {"Parallels", "parallels"},
                               {"BHYVE", "bhyve"}};
  const bool hypervisor = contains(files.text("/proc/cpuinfo").value_or(""), " hypervisor");
  // Cloud makers sell bare metal under the same DMI names, so the processor's own bit decides whether there is a hypervisor at
  // all.
  if (!hypervisor) return "none";
  const std::string product =
      files.text("/sys/class/dmi/id/sys_vendor").value_or("") + " " + files.text("/sys/class/dmi/id/product_name").value_or("");
  for (const auto& maker : kMakers) {
    if (contains(product, maker.text)) return std::string(maker.name);
  }
  return "unknown hypervisor";
}

void read_host_facts(const SystemFiles& files, MachineFacts& machine) {
  machine.kernel = files.text("/proc/sys/kernel/osrelease").value_or("");
  machine.bios = read_bios(files);
  machine.registry_dwords = read_registry_dwords(files);
  machine.boot_switches = relevant_boot_switches(files.text("/proc/cmdline").value_or(""));
  machine.container = detect_container(files);
  machine.vm = detect_vm(files);
}

}  // namespace artune
