// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The seeded order of rounds. std::shuffle gives another order with every standard library; a seed that people
// write down must not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace artune {

class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : engine_(seed) {}

  template <typename T>
  void shuffle(std::vector<T>& values) {
    // Fisher-Yates; the remainder's bias is below 2^-50 for lists this short.
    for (std::size_t left = values.size(); left > 1; --left) std::swap(values[left - 1], values[engine_() % left]);
  }

 private:
  std::mt19937_64 engine_;  // its sequence is fixed by the standard
};

}  // namespace artune
