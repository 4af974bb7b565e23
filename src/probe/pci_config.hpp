// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What PCI configuration space and sysfs say of one function on the way to a GPU.
#pragma once

#include <string>
#include <string_view>

#include "base/document.hpp"
#include "base/words.hpp"
#include "seams/system_files.hpp"

namespace artune {

/// Whether a port sends peer traffic up to the root complex or the IOMMU instead of straight across (ACS).
enum class AcsRedirect : unsigned char { absent, clear, set, unread };

template <>
struct WordTable<AcsRedirect> {
  static constexpr std::array<Word<AcsRedirect>, 4> entries{{{AcsRedirect::absent, "absent"},
                                                             {AcsRedirect::clear, "clear"},
                                                             {AcsRedirect::set, "set"},
                                                             {AcsRedirect::unread, "not readable"}}};
};

/// From the raw configuration space. Fewer than 4096 bytes (all that anybody but root gets) is `unread`.
AcsRedirect acs_redirect(std::string_view config);
AcsRedirect read_acs_redirect(const SystemFiles& files, const std::string& pci_address);

/// "16.0 GT/s PCIe" -> 4; 0 for anything else.
int pcie_generation(std::string_view link_speed);
/// From current_link_* or max_link_*; zeros where sysfs doesn't say.
LinkState read_link(const SystemFiles& files, const std::string& pci_address, std::string_view current_or_max);

/// "identity", "DMA", "DMA-FQ", … of the device's IOMMU group; "off" without an IOMMU; "not readable".
std::string read_iommu_group_type(const SystemFiles& files, const std::string& pci_address);
/// -1 = the system doesn't say.
int read_numa_node(const SystemFiles& files, const std::string& pci_address);

}  // namespace artune
