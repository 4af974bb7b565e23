// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What people see of shapes with Load::overlap: a table per block, and one of the closing lines.
#pragma once

#include <string>
#include <vector>

#include "sweep/print.hpp"
#include "sweep/view.hpp"

namespace artune {

/// Of a block with Load::overlap: a line per candidate (its cheapest geometry) and launch order, the cheapest first.
std::string overlap_table(const Block& block, const PrintOptions& options);

/// Which candidate costs least in total at each size; empty without such rows.
std::string overlap_line(const Sweep& sweep, const std::vector<Block>& blocks);

}  // namespace artune
