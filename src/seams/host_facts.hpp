// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the operating system says of the machine: the part of MachineFacts that needs no GPU library.
#pragma once

#include <string>
#include <vector>

#include "base/document.hpp"
#include "seams/system_files.hpp"

namespace artune {

/// Fills kernel, bios, registry_dwords, boot_switches, container and vm.
void read_host_facts(const SystemFiles& files, MachineFacts& machine);

/// Only the switches that matter to PCIe, the IOMMU and the NVIDIA driver: a command line may hold secrets.
std::string relevant_boot_switches(const std::string& command_line);
/// The machine's mode from the group types of its GPUs: the most dangerous one wins.
std::string combined_iommu_mode(const std::vector<std::string>& group_types);

std::string detect_container(const SystemFiles& files);  ///< "docker", "podman", "lxc", …, "none"
std::string detect_vm(const SystemFiles& files);         ///< "kvm", "vmware", …, "unknown hypervisor", "none"

}  // namespace artune
