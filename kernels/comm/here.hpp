// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the runtime knows of the machine it runs on, for matching a profile: NVML and a few files, no PCI scan.
#pragma once

#include <vector>

#include "base/document.hpp"
#include "base/result.hpp"
#include "profile/fingerprint.hpp"

namespace artune {

struct Here {
  GroupFacts group;
  MachineFacts machine;      ///< GPUs of the group only
};

/// `devices`: CUDA ordinal of each rank. Reason::unavailable when NVML can't tell.
Result<Here> look_here(const std::vector<int>& devices, int ranks_per_gpu, const std::string& nccl_version);

}  // namespace artune
