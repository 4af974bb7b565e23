// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/tuned_name.hpp"
#include "paths/menu.hpp"

namespace artune {
namespace {

Shape without_size(Shape shape) {
  shape.bytes = 0;
  return shape;
}

std::size_t place_on_menu(const std::string& name) {
  const auto rows = menu();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const CandidateInfo& info) { return info.name == name; });
  return static_cast<std::size_t>(found - rows.begin());
}

Block& block_with(std::vector<Block>& blocks, const Shape& shape) {
  const Shape key = without_size(shape);
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const Block& block) { return block.key == key; });
  if (found != blocks.end()) return *found;
  blocks.push_back({.key = key});
  return blocks.back();
}

void fill_names_and_sizes(Block& block) {
  std::set<std::pair<std::size_t, std::string>> names;
  std::set<std::size_t> sizes;
  for (const SweepRow* row : block.rows) {
    names.insert({place_on_menu(row->candidate.name), row->candidate.name});
    sizes.insert(row->shape.bytes);
  }
  for (const LeftOut* entry : block.left_out) {
    names.insert({place_on_menu(entry->candidate.name), entry->candidate.name});
    if (entry->shape.bytes != 0) sizes.insert(entry->shape.bytes);
  }
  for (const auto& [place, name] : names) block.names.push_back(name);
  block.sizes.assign(sizes.begin(), sizes.end());
}

/// A pruned geometry has a few samples from before the rounds; by luck one of those may look better than the many
/// samples of the geometry that won the screening.
void drop_pruned_rows(Block& block) {
  std::set<std::pair<Candidate, std::size_t>> pruned;
  for (const LeftOut* entry : block.left_out) {
    if (entry->reason == "pruned") pruned.insert({entry->candidate, entry->shape.bytes});
  }
  std::set<std::pair<std::string, std::size_t>> kept;
  for (const SweepRow* row : block.rows) {
    if (!pruned.contains({row->candidate, row->shape.bytes})) kept.insert({row->candidate.name, row->shape.bytes});
  }
  std::erase_if(block.rows, [&](const SweepRow* row) {
    return pruned.contains({row->candidate, row->shape.bytes}) && kept.contains({row->candidate.name, row->shape.bytes});
  });
}

}  // namespace

const SweepRow* Block::best(std::string_view name, std::size_t bytes) const {
  const SweepRow* best = nullptr;
  for (const SweepRow* row : rows) {
    if (row->candidate.name != name || row->shape.bytes != bytes) continue;
    if (best == nullptr || row->median_us < best->median_us) best = row;
  }
  return best;
}

const SweepRow* Block::winner(std::size_t bytes) const {
  const SweepRow* winner = nullptr;
  for (const SweepRow* row : rows) {
    if (row->shape.bytes != bytes || row->candidate.name == kTunedName) continue;
    if (winner == nullptr || row->median_us < winner->median_us) winner = row;
  }
  return winner;
}

const LeftOut* Block::why_not(std::string_view name, std::size_t bytes) const {
  const LeftOut* anywhere = nullptr;
  for (const LeftOut* entry : left_out) {
    // A pruned geometry says nothing of the candidate; one that can't win at this size has no geometry.
    if (entry->candidate.name != name || (entry->reason == "pruned" && entry->candidate.geometry != Geometry{})) continue;
    if (entry->shape.bytes == bytes) return entry;
    if (entry->shape.bytes == 0 && anywhere == nullptr) anywhere = entry;
  }
  return anywhere;
}

std::vector<Block> blocks_of(const Sweep& sweep) {
  std::vector<Block> blocks;
  for (const SweepRow& row : sweep.rows) block_with(blocks, row.shape).rows.push_back(&row);
  for (const LeftOut& entry : sweep.left_out) block_with(blocks, entry.shape).left_out.push_back(&entry);
  for (Block& block : blocks) {
    fill_names_and_sizes(block);
    drop_pruned_rows(block);
  }
  return blocks;
}

std::string block_title(const Block& block) {
  const std::string wire = block.key.lossy() ? fmt::format(" as {} on the wire", to_string(block.key.wire)) : std::string();
  std::string title = fmt::format("{}{}, {} ranks, {}", to_string(block.key.dtype), wire, block.key.ranks, to_string(block.key.mode));
  if (block.key.op != Op::all_reduce) title += fmt::format(", {}", to_string(block.key.op));
  if (block.key.load != Load::idle) title += fmt::format(", {}", to_string(block.key.load));
  if (block.key.regime != Regime::warm) title += fmt::format(", {}", to_string(block.key.regime));
  return title;
}

std::string us_text(double us) {
  if (us < 9.995) return fmt::format("{:.2f}", us);
  if (us < 99.95) return fmt::format("{:.1f}", us);
  return fmt::format("{:.0f}", us);
}

}  // namespace artune
