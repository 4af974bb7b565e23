// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The candidate `tuned`: libartune's own dispatch by a profile, through the public interface, as a user's program calls it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artune/artune.hpp"
#include "base/words.hpp"
#include "machine/options.hpp"

namespace artune {

class TunedCalls {
 public:
  /// `devices`: CUDA ordinals, one a rank. `bf16_wire`: f32 may go over the links as bf16.
  TunedCalls(const std::vector<int>& devices, const MachineOptions& options, bool bf16_wire);

  /// Empty, or why libartune would not take the profile.
  const std::string& unavailable() const { return unavailable_; }
  void all_reduce(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, std::size_t count, DType dtype,
                  const std::vector<cudaStream_t>& streams) const;
  std::optional<std::string> failure() const;

 private:
  std::string unavailable_;
  std::optional<Communicators> communicators_;
};

}  // namespace artune
