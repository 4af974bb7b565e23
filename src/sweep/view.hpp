// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// SweepView: a sweep as people look at it: blocks of one dtype, number of ranks and mode; sizes down, candidates across,
// the best geometry of each in the cell.
//
//   for (const Block& block : blocks_of(sweep)) {
//     for (const std::size_t bytes : block.sizes) print(block.winner(bytes)->median_us);
//   }
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/sweep.hpp"

namespace artune {

/// All shapes of a sweep that differ in size only. Points into the sweep, which must live on.
struct Block {
  Shape key;                                 ///< bytes = 0
  std::vector<std::string> names{};          ///< candidates with a row or an omission here; the menu's order, others after it
  std::vector<std::size_t> sizes{};          ///< ascending
  std::vector<const SweepRow*> rows{};       ///< without those whose geometry was pruned, unless nothing else is there
  std::vector<const LeftOut*> left_out{};    ///< bytes = 0: at every size that has no row

  /// The best geometry of `name`; nullptr when there is no row.
  const SweepRow* best(std::string_view name, std::size_t bytes) const;
  /// The fastest candidate; the dispatch itself (`tuned`) doesn't compete. nullptr when there is no row.
  const SweepRow* winner(std::size_t bytes) const;
  /// Why there is no row; nullptr when the sweep doesn't say.
  const LeftOut* why_not(std::string_view name, std::size_t bytes) const;
};

/// In the order of the document.
std::vector<Block> blocks_of(const Sweep& sweep);

/// "bf16, 2 ranks, graph"
std::string block_title(const Block& block);
/// Three significant digits where they mean something: "1.71", "12.3", "331".
std::string us_text(double us);

}  // namespace artune
