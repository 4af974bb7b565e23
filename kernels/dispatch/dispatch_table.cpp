// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/dispatch_table.hpp"

#include <algorithm>

#include "base/sha256.hpp"

namespace artune {

DispatchSwitches make_switches(bool disable, const std::optional<std::vector<Path>>& paths) {
  DispatchSwitches switches;
  switches.disabled = disable;
  if (paths) {
    switches.allowed.fill(false);
    for (const Path path : *paths) switches.allowed[static_cast<std::size_t>(path)] = true;
  }
  return switches;
}

Status DispatchTable::usable() const {
  if (!gap_.empty()) return Error{Reason::unavailable, gap_};
  return Ok{};
}

std::vector<Use> DispatchTable::uses() const {
  std::vector<Use> uses;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    const std::size_t max_bytes = ends_[i] == kUnbounded ? kUnbounded : ends_[i] - 1;
    const auto same = [&](const Use& use) { return use.candidate == choice.candidate && use.geometry == choice.geometry; };
    const auto known = std::find_if(uses.begin(), uses.end(), same);
    if (known == uses.end()) {
      uses.push_back({choice.candidate, choice.geometry, max_bytes});
    } else {
      known->max_bytes = std::max(known->max_bytes, max_bytes);
    }
  }
  std::sort(uses.begin(), uses.end());
  return uses;
}

std::size_t DispatchTable::max_bytes_for(CandidateId candidate) const {
  std::size_t most = 0;
  for (const Use& use : uses()) {
    if (use.candidate == candidate) most = std::max(most, use.max_bytes);
  }
  return most;
}

std::string DispatchTable::digest() const {
  std::string text = "artune-dispatch 1\n";
  for (const Slice slice : slices_) {
    text += "key\n";
    for (std::size_t i = slice.begin; i < slice.begin + slice.length; ++i) {
      const Choice& choice = choices_[i];
      const Geometry& geometry = choice.geometry;
      text += std::to_string(ends_[i]) + " " + std::string(info_of(choice.candidate).name) + " " +
              std::to_string(geometry.blocks) + " " + std::to_string(geometry.threads) + " " + std::to_string(geometry.max_ctas) +
              " " + std::to_string(geometry.chunk_bytes) + " " + std::string(to_string(choice.numerics)) +
              (choice.tuned ? " tuned\n" : " default\n");
    }
  }
  return sha256_hex(text);
}

}  // namespace artune
