// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The plain lines under a sweep. Each answers one question that a person has; none needs the table above it.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sweep/overlap_print.hpp"
#include "sweep/print.hpp"
#include "sweep/statistics.hpp"
#include "sweep/view.hpp"

namespace artune {
namespace {

constexpr std::size_t kSmallUpTo = std::size_t{64} << 10;   // a decode step of 1-8 tokens at usual hidden sizes
constexpr std::size_t kLargeFrom = std::size_t{4} << 20;    // a prefill chunk

/// The block people care about most: graphs, bf16, all ranks, nothing beside.
const Block* chief_block(const std::vector<Block>& blocks) {
  const auto worth = [](const Block& block) {
    return (block.rows.empty() || block.key.load != Load::idle ? 0 : 8) * 1024 + (block.key.mode == Mode::graph ? 4 : 0) * 1024 + (block.key.dtype == DType::bf16 ? 2 : 0) * 1024 +
           block.key.ranks;
  };
  const auto best = std::max_element(blocks.begin(), blocks.end(), [&](const Block& a, const Block& b) { return worth(a) < worth(b); });
  return best == blocks.end() || best->rows.empty() || best->key.load != Load::idle ? nullptr : &*best;
}

std::vector<std::size_t> measured_sizes(const Block& block, std::size_t from, std::size_t up_to) {
  std::vector<std::size_t> sizes;
  for (const std::size_t bytes : block.sizes) {
    if (bytes >= from && bytes <= up_to && block.winner(bytes) != nullptr) sizes.push_back(bytes);
  }
  return sizes;
}

/// Who wins how many of `sizes`, most first. Not one candidate for all: what wins a kilobyte may not even be tried at 64.
std::vector<std::pair<std::string, int>> winners_over(const Block& block, const std::vector<std::size_t>& sizes) {
  std::vector<std::pair<std::string, int>> winners;
  for (const std::size_t bytes : sizes) {
    const std::string& name = block.winner(bytes)->candidate.name;
    const auto known = std::find_if(winners.begin(), winners.end(), [&](const auto& entry) { return entry.first == name; });
    if (known == winners.end()) {
      winners.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::stable_sort(winners.begin(), winners.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  return winners;
}

/// "typically 3.5 µs (63 %) under NCCL's best": what the winners save at the typical size.
std::string against_nccl(const Block& block, const std::vector<std::size_t>& sizes, double noise_percent) {
  std::vector<double> saved_us, saved_percent;
  for (const std::size_t bytes : sizes) {
    const SweepRow* nccl = block.best("nccl", bytes);
    if (nccl == nullptr) continue;
    saved_us.push_back(nccl->median_us - block.winner(bytes)->median_us);
    saved_percent.push_back(saved_us.back() / nccl->median_us * 100);
  }
  if (saved_us.empty()) return "no NCCL to compare with";
  if (median(saved_percent) <= noise_percent) return "no more than the noise under NCCL's best";
  return fmt::format("typically {} µs ({:.0f} %) under NCCL's best", us_text(median(saved_us)), median(saved_percent));
}

std::string winner_line(const char* what, const Sweep& sweep, const Block& block, const std::vector<std::size_t>& sizes) {
  if (sizes.empty()) return {};
  const auto winners = winners_over(block, sizes);
  double low = block.winner(sizes.front())->median_us;
  double high = low;
  for (const std::size_t bytes : sizes) {
    low = std::min(low, block.winner(bytes)->median_us);
    high = std::max(high, block.winner(bytes)->median_us);
  }
  const std::string span = us_text(low) == us_text(high) ? us_text(low) : us_text(low) + " to " + us_text(high);
  std::string names;
  for (const auto& [name, wins] : winners) {
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", name, winners.size() == 1 ? "" : fmt::format(" at {}", wins));
  }
  const bool only_one = winners.size() == 1;
  const std::string where = !only_one          ? fmt::format("{} of {} sizes, {} µs", names, sizes.size(), span)
                            : sizes.size() > 1 ? fmt::format("{}, {} µs, fastest at all {} sizes", names, span, sizes.size())
                                               : fmt::format("{}, {} µs, fastest at the one size", names, span);
  return fmt::format("{}: {}{} ({}); {}.\n", what, sweep.header.simulated ? "by the model " : "", where, block_title(block),
                     only_one && winners.front().first == "nccl" ? "nothing beats it" : against_nccl(block, sizes, sweep.noise_floor_percent));
}

/// Where a lossy wire was measured beside the exact ones: whether it pays.
std::string wire_line(const std::vector<Block>& blocks, double noise_percent) {
  const Block* lossy = nullptr;
  const Block* exact = nullptr;
  for (const Block& block : blocks) {
    if (!block.key.lossy() || block.rows.empty() || (lossy != nullptr && block.key.ranks <= lossy->key.ranks)) continue;
    Shape key = block.key;
    key.wire = key.dtype;
    const auto beside = std::find_if(blocks.begin(), blocks.end(), [&](const Block& other) { return other.key == key; });
    if (beside == blocks.end()) continue;
    lossy = &block;
    exact = &*beside;
  }
  if (lossy == nullptr) return {};
  std::vector<double> saved_us, saved_percent;
  std::size_t compared = 0, from = 0;
  for (const std::size_t bytes : lossy->sizes) {
    const SweepRow *row = lossy->winner(bytes), *other = exact->winner(bytes);
    if (row == nullptr || other == nullptr) continue;
    ++compared;
    const double percent = (1 - row->median_us / other->median_us) * 100;
    if (percent <= noise_percent) continue;
    if (saved_us.empty()) from = bytes;
    saved_us.push_back(other->median_us - row->median_us);
    saved_percent.push_back(percent);
  }
  if (compared == 0) return {};
  const std::string what = fmt::format("{} as {} on the wire", to_string(lossy->key.dtype), to_string(lossy->key.wire));
  if (saved_us.empty()) return what + ": no faster than the best exact way at any size.\n";
  return fmt::format("{}: faster than the best exact way at {} of {} sizes, the first {}; typically {} µs ({:.0f} %) less.\n", what,
                     saved_us.size(), compared, format_size(from), us_text(median(saved_us)), median(saved_percent));
}

std::string join(const std::set<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string peer_text(const Sweep& sweep) {
  std::size_t usable = 0, tested = 0;
  const PairVerdict* first_bad = nullptr;
  for (const PairVerdict& verdict : sweep.verdicts) {
    if (verdict.path != Path::p2p || verdict.from == verdict.to) continue;
    ++tested;
    if (verdict.verdict == "usable") {
      ++usable;
    } else if (first_bad == nullptr) {
      first_bad = &verdict;
    }
  }
  if (tested == 0) return {};
  const char* by = sweep.header.simulated ? " By the rig P2P" : " P2P";
  if (first_bad == nullptr) return fmt::format("{} works between all pairs{}.", by, sweep.header.simulated ? "" : ", tested");
  return fmt::format("{} works for {} of {} one-way pairs, not for {} to {}: {}{}.", by, usable, tested, first_bad->from, first_bad->to,
                     first_bad->verdict, first_bad->reason.empty() ? "" : ", " + first_bad->reason);
}

std::string works_line(const Sweep& sweep) {
  std::set<std::string> measured, unchecked;
  for (const SweepRow& row : sweep.rows) {
    measured.insert(row.candidate.name);
    if (!row.verified) unchecked.insert(row.candidate.name);
  }
  std::string text = "Nothing could be measured.";
  if (!measured.empty()) {
    text = fmt::format("{} {}: {}.", measured.size() == 1 ? "1 candidate" : fmt::format("{} candidates", measured.size()),
                       sweep.header.simulated ? "modelled" : "measured",
                       unchecked.empty()                     ? "every sum checked and right"
                       : unchecked.size() == measured.size() ? "no sum checked"
                                                             : "sums checked and right, except unchecked " + join(unchecked));
  }
  return text + peer_text(sweep) + "\n";
}

std::string bad_line(const Sweep& sweep) {
  std::set<std::string> told;
  std::string text;
  for (const LeftOut& entry : sweep.left_out) {
    if (entry.reason != "wrong-sum" && entry.reason != "hang" && entry.reason != "crash") continue;
    if (!told.insert(entry.candidate.name).second) continue;
    text += (text.empty() ? "" : "; ") + entry.candidate.name + " (" + entry.reason + ", " + std::string(to_string(entry.shape.dtype)) +
            (entry.shape.bytes > 0 ? " " + format_size(entry.shape.bytes) : "") + ")";
  }
  return text.empty() ? "" : "Not to be used here: " + text + ".\n";
}

std::string noise_line(const Sweep& sweep) {
  if (sweep.header.simulated) return "A model is no measurement: tune on the machine itself before you believe it.\n";
  if (sweep.noise_floor_percent <= 0) return {};
  return fmt::format("Two runs of the same candidate lay up to {:.1f} % apart: smaller differences mean nothing.\n", sweep.noise_floor_percent);
}

}  // namespace

std::string closing_lines(const Sweep& sweep, const std::string& next_command) {
  std::string text = works_line(sweep);
  const std::vector<Block> blocks = blocks_of(sweep);
  if (const Block* block = chief_block(blocks)) {
    text += winner_line("Decode, up to 64K", sweep, *block, measured_sizes(*block, 0, kSmallUpTo));
    text += winner_line("Prefill, from 4M", sweep, *block, measured_sizes(*block, kLargeFrom, SIZE_MAX));
  }
  const std::string beside = overlap_line(sweep, blocks), bad = bad_line(sweep);
  text += beside + bad;
  // Six lines at most: what must not be used comes before what a lossy wire saves, which the table shows too, and that
  // before how sure the figures are.
  const auto room = [&] { return std::count(text.begin(), text.end(), '\n') < 5; };
  if (room()) text += wire_line(blocks, sweep.noise_floor_percent);
  if (room()) text += noise_line(sweep);
  if (!next_command.empty()) text += "Next: " + next_command + "\n";
  return text;
}

}  // namespace artune
