// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A sweep for people: one table a block, the winner of each size marked, every empty cell explained, and at most six
// plain lines at the end.
//
//   std::cout << sweep_table(sweep, {.colour = true}) << closing_lines(sweep, "ar-tune tune --ranks-per-gpu 2");
#pragma once

#include <cstddef>
#include <string>

#include "sweep/sweep.hpp"

namespace artune {

struct PrintOptions {
  bool colour = false;         ///< the winner in bold green beside its `*`
  std::size_t columns = 120;   ///< where the names of candidates are too long for it, letters stand for them
};

/// Says first what the figures are (simulated, ranks sharing a GPU, incomplete), then one table a block.
std::string sweep_table(const Sweep& sweep, const PrintOptions& options = {});

/// What works, what wins for small and for large messages and by how much, what must not be trusted, how sure it is,
/// and `next_command` (left out when empty).
std::string closing_lines(const Sweep& sweep, const std::string& next_command = {});

}  // namespace artune
