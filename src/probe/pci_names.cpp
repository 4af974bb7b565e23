// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/pci_names.hpp"

namespace artune {
namespace {

struct SwitchFamily {
  std::uint16_t vendor;
  std::uint16_t first, last;  ///< device identifiers, both included
  std::string_view name;
};

// Identifiers from the public PCI ID repository (pci.ids). Vendor 1000 also makes storage controllers, hence its narrow ranges.
constexpr SwitchFamily kFamilies[] = {
    {0x1000, 0xc010, 0xc012, "Broadcom PEX 88000 series"},  // Gen4
    {0x1000, 0xc030, 0xc034, "Broadcom PEX 89000 series"},  // Gen5
    {0x10b5, 0x8700, 0x87ff, "PLX PEX 8700 series"},        // Gen3
    {0x10b5, 0x9700, 0x97ff, "PLX PEX 9700 series"},        // Gen3
    {0x10b5, 0x8600, 0x86ff, "PLX PEX 8600 series"},        // Gen2
    {0x11f8, 0x8500, 0x85ff, "Microchip Switchtec Gen3"},
    {0x11f8, 0x4000, 0x42ff, "Microchip Switchtec Gen4"},
    {0x11f8, 0x5000, 0x52ff, "Microchip Switchtec Gen5"},
    {0x12d8, 0x0000, 0xffff, "Pericom/Diodes switch"},
    {0x1b21, 0x2806, 0x2824, "ASMedia switch"},
    {0x1022, 0x43f4, 0x43f5, "AMD chipset (600 series)"},
    {0x1022, 0x57ad, 0x57ad, "AMD chipset (X570) switch"},
    {0x15b3, 0x1976, 0x1979, "NVIDIA ConnectX/BlueField switch"},
};

}  // namespace

std::string_view known_switch_name(std::uint16_t vendor, std::uint16_t device) {
  for (const auto& family : kFamilies) {
    if (vendor == family.vendor && device >= family.first && device <= family.last) return family.name;
  }
  return "";
}

}  // namespace artune
