// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// --devices: which GPUs, in which order.
//
//   select_devices({"1,0"}, topology)                  -> {1, 0}           nvidia-smi indices
//   select_devices({"01:00.0", "GPU-8f3a"}, topology)  -> {0, 3}           PCI addresses, UUIDs or their beginnings
//   select_devices({}, topology)                       -> every GPU that CUDA shows
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "probe/topology.hpp"

namespace artune {

/// Each item may hold several words separated by commas. Reason::usage for a word that names no GPU, several, or one
/// twice; Reason::no_usable_gpu for a GPU that CUDA_VISIBLE_DEVICES hides. Messages name the word and list what exists.
Result<std::vector<int>> select_devices(const std::vector<std::string>& items, const Topology& topology);

}  // namespace artune
