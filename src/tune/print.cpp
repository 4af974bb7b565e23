// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/print.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.hpp"
#include "tune/measured.hpp"

namespace artune {
namespace {

constexpr std::size_t kColumns = 8;
using Line = std::array<std::string, kColumns>;

// Numbers to the right, words to the left.
constexpr std::array<bool, kColumns> kRight = {true, true, false, false, false, true, true, true};

std::string figure(const std::optional<double>& value, const char* suffix = "") {
  return value ? fmt::format("{:.{}f}{}", *value, *value < 10 ? 2 : *value < 100 ? 1 : 0, suffix) : std::string("-");
}

std::string geometry_words(const Geometry& geometry) {
  std::string words = Candidate{"", geometry}.label();
  if (words.starts_with(' ')) words.erase(0, 1);
  return words.empty() ? "-" : words;
}

Line line_of(const Range& range) {
  return {format_size(range.min_bytes),
          range.max_bytes ? format_size(*range.max_bytes) : std::string("open"),
          range.use.name,
          geometry_words(range.use.geometry),
          std::string(to_string(range.numerics)),
          figure(range.median_us),
          figure(range.nccl_us),
          figure(range.gain, "x")};
}

/// Characters, not bytes: the heading has a µ.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string aligned(const std::vector<Line>& lines) {
  std::array<std::size_t, kColumns> widths{};
  for (const Line& line : lines) {
    for (std::size_t column = 0; column < kColumns; ++column) widths[column] = std::max(widths[column], width_of(line[column]));
  }
  std::string text;
  for (const Line& line : lines) {
    std::string row = " ";
    for (std::size_t column = 0; column < kColumns; ++column) {
      const std::string padding(widths[column] - width_of(line[column]), ' ');
      row += " " + (kRight[column] ? padding + line[column] : line[column] + padding) + " ";
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string threshold_line(const Threshold& threshold) {
  std::string text = fmt::format("  {}={}", threshold.name, threshold.bytes ? std::to_string(*threshold.bytes) : "never");
  if (threshold.bytes) text += fmt::format("  ({})", threshold.direction);
  if (threshold.regret_percent > 0) text += fmt::format("  loses {:.1f} % against the ranges", threshold.regret_percent);
  return text + "\n";
}

std::string heading(const Profile& profile) {
  std::string text = fmt::format("Profile for {}\n", profile.fingerprint);
  if (profile.header.simulated) text += "simulated: these figures come from a model of a machine, nothing was measured\n";
  if (profile.header.shared_gpu)
    text += "ranks sharing one GPU: a rehearsal without interconnect, not for machines with a GPU per rank\n";
  return text;
}

}  // namespace

std::string profile_table(const Profile& profile) {
  std::string text = heading(profile);
  for (const Table& table : profile.tables) {
    text += "\n" + key_text(table.key) + "\n";
    std::vector<Line> lines = {{"from", "below", "use", "geometry", "numerics", "µs", "NCCL µs", "gain"}};
    for (const Range& range : table.ranges) lines.push_back(line_of(range));
    text += aligned(lines);
    for (const Threshold& threshold : table.thresholds) text += threshold_line(threshold);
  }
  return text;
}

}  // namespace artune
