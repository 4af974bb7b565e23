// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/overlap_print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/tuned_name.hpp"
#include "base/units.hpp"
#include "sweep/overlap_cost.hpp"

namespace artune {
namespace {

constexpr std::size_t kMostShown = 8;  // of one size, two lines each; NCCL beside them in any case

struct Priced {
  const SweepRow* row;
  double cost;
};

/// The cheapest geometry of every candidate at one size, the cheapest candidate first. All costs count on `fastest`.
std::vector<Priced> priced(const Block& block, std::size_t bytes, double& fastest) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow* row : block.rows) {
    if (row->shape.bytes == bytes && !row->overlap.empty()) rows.push_back(row);
  }
  fastest = fastest_alone_us(rows);
  std::vector<Priced> all;
  for (const SweepRow* row : rows) all.push_back({row, overlap_cost(*row, fastest)});
  std::stable_sort(all.begin(), all.end(), [](const Priced& a, const Priced& b) { return a.cost < b.cost; });
  std::vector<Priced> cheapest;
  std::set<std::string> seen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cheapest), [&](const Priced& one) { return seen.insert(one.row->candidate.name).second; });
  return cheapest;
}

/// Of those that compete: the dispatch itself (`tuned`) doesn't. nullptr when there is none.
const Priced* winner_of(const std::vector<Priced>& cheapest) {
  const auto found = std::find_if(cheapest.begin(), cheapest.end(), [](const Priced& one) { return one.row->candidate.name != kTunedName; });
  return found == cheapest.end() ? nullptr : &*found;
}

double lost_percent(const OverlapFigures& figures) { return (figures.compute_beside_us / figures.compute_idle_us - 1) * 100; }
double kept_percent(const OverlapFigures& figures) { return figures.reduction_idle_us / figures.reduction_beside_us * 100; }
std::string signed_percent(double share) { return fmt::format("{:+.1f} %", share * 100); }

std::string size_lines(const Block& block, std::size_t bytes, std::size_t name_width, bool colour) {
  double fastest = 0;
  const std::vector<Priced> cheapest = priced(block, bytes, fastest);
  const Priced* winner = winner_of(cheapest);
  std::string text, further;
  for (const Priced& one : cheapest) {
    if (static_cast<std::size_t>(&one - cheapest.data()) >= kMostShown && one.row->candidate.name != "nccl") {
      further += fmt::format("{} {} {}", further.empty() ? "" : ",", one.row->candidate.name, signed_percent(one.cost));
      continue;
    }
    for (const OverlapFigures& figures : one.row->overlap) {
      const bool first_line = &figures == &one.row->overlap.front();
      const bool won = &one == winner;
      const std::string cost = fmt::format("{:>10}", signed_percent(overlap_cost(figures, fastest))) + (won ? "*" : "");
      text += fmt::format("{:>8}  {:<{}}  {:<15}  {:>9}  {:>8}  {:>9}  {}{}{}\n", first_line && &one == &cheapest.front() ? format_size(bytes) : "",
                          first_line ? one.row->candidate.label() : "", name_width, to_string(figures.order),
                          fmt::format("{:.1f} %", lost_percent(figures)), fmt::format("{:.0f} %", kept_percent(figures)), figures.completed,
                          colour && won ? "\x1b[1;32m" : "", cost, colour && won ? "\x1b[0m" : "");
    }
  }
  return text + (further.empty() ? "" : fmt::format("{:>8}  and, in total:{}\n", "", further));
}

/// Candidates without a row in the block, and those with a row somewhere that are missing at a size.
std::string missing(const Block& block) {
  std::vector<std::string> told;
  for (const LeftOut* entry : block.left_out) {
    if (entry->reason == "pruned") continue;
    std::string line = fmt::format("    {}{}: {}{}\n", entry->candidate.label(), entry->shape.bytes > 0 ? " at " + format_size(entry->shape.bytes) : "",
                                   entry->reason, entry->detail.empty() ? "" : ", " + entry->detail);
    if (std::find(told.begin(), told.end(), line) == told.end()) told.push_back(std::move(line));
  }
  std::string text;
  for (const auto& line : told) text += line;
  return text.empty() ? "" : "  no figures of\n" + text;
}

}  // namespace

std::string overlap_table(const Block& block, const PrintOptions& options) {
  std::size_t name_width = 9;
  double shortest = 0, longest = 0;
  for (const SweepRow* row : block.rows) {
    name_width = std::max(name_width, row->candidate.label().size());
    for (const OverlapFigures& figures : row->overlap) {
      shortest = shortest == 0 ? figures.compute_idle_us : std::min(shortest, figures.compute_idle_us);
      longest = std::max(longest, figures.compute_idle_us);
    }
  }
  std::string text = "\n" + block_title(block) + ": reductions beside a compute load";
  if (longest > 0) {
    const std::string low = fmt::format("{:.0f}", shortest), high = fmt::format("{:.0f}", longest);
    text += " of " + (low == high ? high : low + " to " + high) + " µs";
    text += " (medians; * least in total)\n";
    text += fmt::format("{:>8}  {:<{}}  {:<15}  {:>9}  {:>8}  {:>9}  {:>10}\n", "", "", name_width, "", "compute", "reduction", "reductions", "in");
    text += fmt::format("{:>8}  {:<{}}  {:<15}  {:>9}  {:>8}  {:>9}  {:>10}\n", "size", "candidate", name_width, "first on GPU", "loses", "keeps", "meanwhile", "total");
    for (const std::size_t bytes : block.sizes) text += size_lines(block, bytes, name_width, options.colour);
  } else {
    text += "\n";
  }
  return text + missing(block);
}

std::string overlap_line(const Sweep& sweep, const std::vector<Block>& blocks) {
  const auto block = std::find_if(blocks.begin(), blocks.end(), [](const Block& one) { return one.key.load == Load::overlap && !one.rows.empty(); });
  if (block == blocks.end()) return {};
  std::string text;
  for (const std::size_t bytes : block->sizes) {
    double fastest = 0;
    const std::vector<Priced> cheapest = priced(*block, bytes, fastest);
    const Priced* winner = winner_of(cheapest);
    if (winner == nullptr) continue;
    const auto nccl = std::find_if(cheapest.begin(), cheapest.end(), [](const Priced& one) { return one.row->candidate.name == "nccl"; });
    text += fmt::format("{} {} at {} ({}{})", text.empty() ? "" : ",", winner->row->candidate.name, format_size(bytes), signed_percent(winner->cost),
                        nccl == cheapest.end() || &*nccl == winner ? "" : ", nccl " + signed_percent(nccl->cost));
  }
  return text.empty() ? "" : fmt::format("Beside compute the least in total{}:{}; {}.\n", sweep.header.simulated ? " by the model" : "", text, block_title(*block));
}

}  // namespace artune
