// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sweep/view.hpp"

namespace artune {
namespace {

constexpr std::size_t kCellWidth = 8;   // of "123456.*" and shorter
constexpr std::size_t kSizeWidth = 8;

/// "4x NVIDIA H200" or "NVIDIA A + NVIDIA B", of the group.
std::string group_name(const DocumentHeader& header) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const GpuFacts& gpu : header.machine.gpus) {
    const auto& devices = header.world ? header.world->devices : std::vector<int>{};
    if (!devices.empty() && std::find(devices.begin(), devices.end(), gpu.index) == devices.end()) continue;
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == gpu.name; });
    known == kinds.end() ? kinds.emplace_back(gpu.name, 1) : *known = {known->first, known->second + 1};
  }
  std::string text;
  for (const auto& [name, count] : kinds) {
    text += (text.empty() ? "" : " + ") + (count > 1 ? std::to_string(count) + "x " : std::string()) + name;
  }
  return text.empty() ? "a machine without GPUs" : text;
}

std::string preamble(const Sweep& sweep) {
  std::string text = group_name(sweep.header);
  if (sweep.header.world && sweep.header.world->ranks_per_gpu > 1) text += fmt::format(", {} ranks per GPU", sweep.header.world->ranks_per_gpu);
  if (!sweep.header.machine.nccl_version.empty()) text += ", NCCL " + sweep.header.machine.nccl_version;
  text += "\n";
  if (sweep.header.simulated) text += "SIMULATED: every figure below comes from a model of this machine, none was measured.\n";
  if (sweep.header.shared_gpu) {
    text += "SHARED GPU: ranks sharing one GPU, no interconnect. A rehearsal: take no choice from it to another machine.\n";
  }
  if (!sweep.complete) text += "INCOMPLETE: the sweep ended early; what is here is right, what is missing is named.\n";
  return text;
}

struct Column {
  std::string name, top, bottom;   // "p2p/one-shot/ll", "p2p", "1-shot/ll"
  std::size_t width = kCellWidth;
};

std::string shortened(std::string text) {
  for (const auto& [word, shorter] : {std::pair{"one-shot", "1-shot"}, {"two-shot", "2-shot"}}) {
    if (const auto at = text.find(word); at != std::string::npos) text.replace(at, std::string_view(word).size(), shorter);
  }
  return text;
}

Column make_column(const std::string& name) {
  const auto slash = name.find('/');
  Column column{.name = name, .top = name.substr(0, slash), .bottom = slash == std::string::npos ? "" : shortened(name.substr(slash + 1))};
  column.width = std::max({kCellWidth, column.top.size(), column.bottom.size()});
  return column;
}

/// Columns of the candidates that have at least one row, narrow enough for the terminal.
std::vector<Column> columns_of(const Block& block, std::size_t room, std::string& legend) {
  std::vector<Column> columns;
  std::size_t width = 0;
  for (const auto& name : block.names) {
    if (std::none_of(block.rows.begin(), block.rows.end(), [&](const SweepRow* row) { return row->candidate.name == name; })) continue;
    columns.push_back(make_column(name));
    width += columns.back().width + 2;  // a blank before, the mark behind
  }
  if (width <= room) return columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string letter(1, static_cast<char>('A' + i % 26));
    legend += "  " + letter + " " + columns[i].name + "\n";
    columns[i] = {.name = columns[i].name, .top = letter, .bottom = "", .width = kCellWidth};
  }
  return columns;
}

/// Reasons for empty cells: a letter each, in the order met.
class Footnotes {
 public:
  std::string mark(const LeftOut* entry, const std::string& name) {
    const std::string text = name + ": " + (entry == nullptr ? "not offered at this size" : reason_text(*entry));
    auto found = std::find(texts_.begin(), texts_.end(), text);
    if (found == texts_.end()) found = texts_.insert(texts_.end(), text);
    const auto number = static_cast<std::size_t>(found - texts_.begin());
    return number < 26 ? std::string("-") + static_cast<char>('a' + number) : fmt::format("-{}", number + 1);
  }

  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      all += fmt::format("  {} {}\n", i < 26 ? std::string(1, static_cast<char>('a' + i)) : std::to_string(i + 1), texts_[i]);
    }
    return all;
  }

  static std::string reason_text(const LeftOut& entry) { return entry.reason + (entry.detail.empty() ? "" : ", " + entry.detail); }

 private:
  std::vector<std::string> texts_;
};

std::string header_lines(const std::vector<Column>& columns, bool limits) {
  std::string top(kSizeWidth, ' ');
  std::string bottom = fmt::format("{:>{}}", "size", kSizeWidth);
  for (const Column& column : columns) {
    top += fmt::format(" {:>{}} ", column.top, column.width);
    bottom += fmt::format(" {:>{}} ", column.bottom, column.width);
  }
  if (limits) {
    top += fmt::format(" {:>{}}", "", kCellWidth);
    bottom += fmt::format(" {:>{}}", "limit", kCellWidth);
  }
  return top.substr(0, top.find_last_not_of(' ') + 1) + "\n" + bottom.substr(0, bottom.find_last_not_of(' ') + 1) + "\n";
}

std::string cell(const std::string& text, char mark, std::size_t width, bool bright) {
  const std::string padding(width > text.size() ? width - text.size() : 0, ' ');
  return " " + padding + (bright ? "\x1b[1;32m" : "") + text + mark + (bright ? "\x1b[0m" : "");
}

std::string size_line(const Block& block, std::size_t bytes, const std::vector<Column>& columns, bool limits, bool colour,
                      Footnotes& footnotes) {
  std::string line = fmt::format("{:>{}}", format_size(bytes), kSizeWidth);
  const SweepRow* winner = block.winner(bytes);
  for (const Column& column : columns) {
    const SweepRow* row = block.best(column.name, bytes);
    if (row == nullptr) {
      line += cell(footnotes.mark(block.why_not(column.name, bytes), column.name), ' ', column.width, false);
    } else {
      line += cell(us_text(row->median_us), row == winner ? '*' : ' ', column.width, colour && row == winner);
    }
  }
  if (limits) line += fmt::format(" {:>{}}", winner != nullptr && winner->limit_us ? us_text(*winner->limit_us) : "", kCellWidth);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string unverified_line(const Block& block) {
  std::set<std::string> names;
  for (const SweepRow* row : block.rows) {
    if (!row->verified) names.insert(row->candidate.name);
  }
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "" : "  sums not checked: " + list + "\n";
}

std::string missing_columns(const Block& block, const std::vector<Column>& columns) {
  std::string text;
  for (const auto& name : block.names) {
    if (std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; })) continue;
    std::vector<std::string> reasons;
    for (const LeftOut* entry : block.left_out) {
      if (entry->candidate.name != name) continue;
      const std::string reason = Footnotes::reason_text(*entry);
      if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
    }
    for (const auto& reason : reasons) text += "  " + name + ": " + reason + "\n";
  }
  return text.empty() ? "" : "  no figures of\n" + text;
}

std::string block_table(const Block& block, const PrintOptions& options) {
  std::string text = "\n" + block_title(block) + ": µs per all-reduce (median, slowest rank; * fastest)\n";
  const bool limits = std::any_of(block.rows.begin(), block.rows.end(), [](const SweepRow* row) { return row->limit_us.has_value(); });
  const std::size_t taken = kSizeWidth + (limits ? kCellWidth + 1 : 0);
  std::string legend;
  const std::vector<Column> columns = columns_of(block, options.columns > taken ? options.columns - taken : 0, legend);
  Footnotes footnotes;
  if (!columns.empty()) {
    text += header_lines(columns, limits);
    for (const std::size_t bytes : block.sizes) text += size_line(block, bytes, columns, limits, options.colour, footnotes);
  }
  return text + legend + footnotes.text() + unverified_line(block) + missing_columns(block, columns);
}

}  // namespace

std::string sweep_table(const Sweep& sweep, const PrintOptions& options) {
  std::string text = preamble(sweep);
  for (const Block& block : blocks_of(sweep)) text += block_table(block, options);
  return text;
}

}  // namespace artune
