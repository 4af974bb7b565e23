// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace artune {

/// What people call a PCIe switch ("Broadcom PEX 89000 series"), empty if it is none that we know.
/// Names say which family; how well a switch carries peer traffic only measuring tells.
std::string_view known_switch_name(std::uint16_t vendor, std::uint16_t device);

}  // namespace artune
