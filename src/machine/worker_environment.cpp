// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/worker_environment.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace artune {
namespace {

struct Setting {
  std::string_view name;
  std::optional<std::string_view> value;   ///< nullopt = removed
};

std::vector<Setting> settings_for(const MachineOptions& options) {
  std::vector<Setting> settings{
      // Ranks that wait for each other need a hardware queue each; with the default of 8 one can block another's launch.
      {"CUDA_DEVICE_MAX_CONNECTIONS", "32"},
      // CUDA's ordinals in the order of nvidia-smi's indices.
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
      // NCCL reads these once and lets them override the limit that each communicator is made with.
      {"NCCL_MAX_CTAS", std::nullopt},
      {"NCCL_MIN_CTAS", std::nullopt},
  };
  if (options.ranks_per_gpu > 1) {
    settings.push_back({"NCCL_MULTI_RANK_GPU_ENABLE", "1"});  // from NCCL 2.30 on
    settings.push_back({"NCCL_NVLS_ENABLE", "0"});            // multicast objects can't have one GPU twice
  }
  return settings;
}

}  // namespace

std::vector<std::string> worker_environment(const MachineOptions& options, const char* const* inherited) {
  const std::vector<Setting> settings = settings_for(options);
  std::vector<std::string> environment;
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
    const std::string_view entry = *inherited;
    const std::string_view name = entry.substr(0, entry.find('='));
    bool replaced = false;
    for (const Setting& setting : settings) replaced = replaced || setting.name == name;
    if (!replaced) environment.emplace_back(entry);
  }
  for (const Setting& setting : settings) {
    if (setting.value) environment.push_back(std::string(setting.name) + "=" + std::string(*setting.value));
  }
  return environment;
}

}  // namespace artune
