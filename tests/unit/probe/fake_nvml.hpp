// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include "seams/nvml.hpp"

namespace artune {

/// An Nvml whose answers a test writes down.
class FakeNvml : public Nvml {
 public:
  NvmlSystem system_answer{"580.159.03", 13000};
  std::vector<NvmlDevice> devices;
  std::map<std::pair<int, int>, NvmlPair> pairs;
  std::map<int, std::vector<NvmlProcess>> processes;
  int blocked = -1;  ///< index of a device that can't be asked

  Result<NvmlSystem> system() override { return system_answer; }
  Result<int> device_count() override { return static_cast<int>(devices.size()); }
  Result<NvmlDevice> device(int index) override {
    if (index == blocked || index >= static_cast<int>(devices.size())) return Error{Reason::unavailable, "blocked"};
    return devices[static_cast<std::size_t>(index)];
  }
  Result<NvmlPair> pair(int from, int to) override {
    const auto it = pairs.find({from, to});
    if (it == pairs.end()) return Error{Reason::unavailable, "no answer"};
    return it->second;
  }
  Result<std::vector<NvmlProcess>> compute_processes(int index) override { return processes[index]; }
};

}  // namespace artune
