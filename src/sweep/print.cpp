// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/tuned_name.hpp"
#include "base/units.hpp"
#include "sweep/overlap_print.hpp"
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

/// How near a candidate comes to the winner of a size, at its best size: 1 = it wins somewhere. nullopt = no row.
std::optional<double> nearest(const Block& block, const std::string& name) {
  std::optional<double> ratio;
  for (const std::size_t bytes : block.sizes) {
    const SweepRow* row = block.best(name, bytes);
    const SweepRow* winner = block.winner(bytes);
    if (row == nullptr || winner == nullptr || winner->median_us <= 0) continue;
    ratio = std::min(ratio.value_or(row->median_us / winner->median_us), row->median_us / winner->median_us);
  }
  return ratio;
}

/// Columns of the candidates that have at least one row, as many as the terminal has room for: NCCL and `tuned`, then
/// those that win or come nearest. The others are named in `hidden`.
std::vector<Column> columns_of(const Block& block, std::size_t room, std::string& hidden) {
  struct Contender {
    std::string name;
    double ratio;
  };
  std::vector<Contender> contenders;
  for (const auto& name : block.names) {
    const bool has_row = std::any_of(block.rows.begin(), block.rows.end(), [&](const SweepRow* row) { return row->candidate.name == name; });
    if (!has_row) continue;
    const bool always = name == "nccl" || name == kTunedName;
    contenders.push_back({name, always ? 0 : nearest(block, name).value_or(std::numeric_limits<double>::infinity())});
  }
  std::stable_sort(contenders.begin(), contenders.end(), [](const Contender& a, const Contender& b) { return a.ratio < b.ratio; });
  std::set<std::string> shown;
  std::size_t width = 0;
  for (const Contender& contender : contenders) {
    width += make_column(contender.name).width + 2;  // a blank before, the mark behind
    if (shown.empty() || width <= room) {
      shown.insert(contender.name);
    } else {
      hidden += fmt::format("    {}{}\n", contender.name,
                            std::isinf(contender.ratio) ? "" : fmt::format(", at best {:.2f} times the fastest", contender.ratio));
    }
  }
  std::vector<Column> columns;
  for (const auto& name : block.names) {
    if (shown.contains(name)) columns.push_back(make_column(name));
  }
  if (!hidden.empty()) hidden = "  no room for (the document has them)\n" + hidden;
  return columns;
}

/// Reasons for empty cells: a letter each, in the order met.
class Footnotes {
 public:
  std::string mark(const LeftOut* entry, const std::string& name) {
    // The menu itself says that it can't win at this size (or it wasn't offered): nothing to explain.
    if (entry == nullptr || entry->reason == "pruned") return "-";
    const std::string text = name + ": " + reason_text(*entry);
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

std::string missing_columns(const Block& block) {
  std::string text;
  for (const auto& name : block.names) {
    const auto has_row = [&](const SweepRow* row) { return row->candidate.name == name; };
    if (std::any_of(block.rows.begin(), block.rows.end(), has_row)) continue;
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
  std::string hidden;
  const std::vector<Column> columns = columns_of(block, options.columns > taken ? options.columns - taken : 0, hidden);
  Footnotes footnotes;
  if (!columns.empty()) {
    text += header_lines(columns, limits);
    for (const std::size_t bytes : block.sizes) text += size_line(block, bytes, columns, limits, options.colour, footnotes);
  }
  return text + hidden + footnotes.text() + unverified_line(block) + missing_columns(block);
}

}  // namespace

std::string sweep_table(const Sweep& sweep, const PrintOptions& options) {
  std::string text = preamble(sweep);
  for (const Block& block : blocks_of(sweep)) text += block.key.load == Load::overlap ? overlap_table(block, options) : block_table(block, options);
  return text;
}

}  // namespace artune
