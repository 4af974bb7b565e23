// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace artune {

/// The kernel's spelling of a PCI address written in any usual way, or nullopt if `text` is none:
/// "0000:01:00.0" from "00000000:01:00.0" (nvidia-smi), "01:00.0" (lspci), "1:0" (function 0), in either case.
std::optional<std::string> normalize_pci_address(std::string_view text);

}  // namespace artune
