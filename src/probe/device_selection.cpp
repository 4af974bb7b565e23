// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/device_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/sha256.hpp"
#include "probe/pci_address.hpp"

namespace artune {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string what_exists(const Topology& topology) {
  std::string list;
  for (const auto& gpu : topology.gpus)
    list += fmt::format("{}{} = {} {}", list.empty() ? "" : ", ", gpu.index, gpu.pci_address, gpu.name);
  return list;
}

Error unknown(const std::string& word, const std::string& why, const Topology& topology) {
  return {Reason::usage, fmt::format("--devices: '{}' {}; there are {}", word, why, what_exists(topology))};
}

/// A UUID in full is known even from a document, by its hash; the beginning of one only from the machine itself.
bool has_uuid(const ProbedGpu& gpu, const GpuFacts& facts, const std::string& word) {
  if (!gpu.uuid.empty()) return lower(gpu.uuid).compare(0, word.size(), word) == 0;
  return sha256_hex("GPU-" + word.substr(4)).compare(0, facts.uuid_sha256.size(), facts.uuid_sha256) == 0;
}

Result<int> resolve(const std::string& word, const Topology& topology) {
  if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos) {
    for (const auto& gpu : topology.gpus) {
      if (std::to_string(gpu.index) == word) return gpu.index;
    }
    return unknown(word, "is the index of no GPU", topology);
  }
  if (const std::string uuid = lower(word); uuid.compare(0, 4, "gpu-") == 0) {
    std::vector<int> found;
    for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
      if (has_uuid(topology.gpus[i], topology.header.machine.gpus[i], uuid)) found.push_back(topology.gpus[i].index);
    }
    if (found.size() == 1) return found.front();
    return unknown(word, found.empty() ? "begins no GPU's UUID (nvidia-smi -L shows them)" : "begins the UUID of several GPUs",
                   topology);
  }
  if (const auto address = normalize_pci_address(word)) {
    for (const auto& gpu : topology.gpus) {
      if (gpu.pci_address == *address) return gpu.index;
    }
    return unknown(word, "is the PCI address of no GPU", topology);
  }
  return unknown(word, "is no index, PCI address or UUID", topology);
}

}  // namespace

Result<std::vector<int>> select_devices(const std::vector<std::string>& items, const Topology& topology) {
  std::vector<int> selected;
  if (items.empty()) {
    for (const auto& gpu : topology.gpus) {
      if (gpu.cuda_ordinal) selected.push_back(gpu.index);
    }
    return selected;
  }
  for (const auto& item : items) {
    for (std::size_t begin = 0; begin <= item.size();) {
      const std::size_t comma = std::min(item.find(',', begin), item.size());
      const std::string word = item.substr(begin, comma - begin);
      begin = comma + 1;
      const Result<int> index = resolve(word, topology);
      if (!index) return index.error();
      if (std::find(selected.begin(), selected.end(), *index) != selected.end()) {
        return Error{
            Reason::usage,
            fmt::format("--devices: '{}' names GPU {} a second time; several ranks share a GPU only with --ranks-per-gpu K", word,
                        *index)};
      }
      if (!topology.find_gpu(*index)->cuda_ordinal) {
        return Error{
            Reason::no_usable_gpu,
            fmt::format("--devices: '{}' names GPU {}, which CUDA doesn't show: CUDA_VISIBLE_DEVICES hides it", word, *index)};
      }
      selected.push_back(*index);
    }
  }
  return selected;
}

}  // namespace artune
