// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/left_out.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/units.hpp"

namespace artune {
namespace {

constexpr std::string_view kNotAgain = "not tried again after ";

bool is_bad_verdict(const LeftOut& entry) {
  const bool bad = entry.reason == "wrong-sum" || entry.reason == "hang" || entry.reason == "crash";
  return bad && !entry.detail.starts_with(kNotAgain);
}

/// The block that an entry belongs to, and the candidate: what a collapsed entry stands for.
std::pair<std::string, Shape> block_of(const LeftOut& entry) {
  Shape block = entry.shape;
  block.bytes = 0;
  return {entry.candidate.name, block};
}

}  // namespace

std::string_view reason_word(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::wrong_sum: return "wrong-sum";
    case OutcomeKind::hang: return "hang";
    case OutcomeKind::crash: return "crash";
    case OutcomeKind::unavailable: return "unavailable";
    case OutcomeKind::ok:
    case OutcomeKind::error: break;
  }
  return "error";
}

std::string describe(const Shape& shape) {
  const std::string wire = shape.lossy() ? " as " + std::string(to_string(shape.wire)) : "";
  return format_size(shape.bytes) + " " + std::string(to_string(shape.dtype)) + wire + ", " + std::to_string(shape.ranks) + " ranks, " +
         std::string(to_string(shape.mode)) + (shape.load == Load::overlap ? ", beside compute" : "");
}

void Bars::learn(const std::vector<LeftOut>& left_out) {
  std::copy_if(left_out.begin(), left_out.end(), std::back_inserter(bad_), is_bad_verdict);
}

std::optional<LeftOut> Bars::refuse(const std::string& name, const Shape& shape) const {
  for (const LeftOut& entry : bad_) {
    if (entry.candidate.name != name) continue;
    const bool everywhere = entry.reason != "wrong-sum";
    if (!everywhere && (entry.shape.dtype != shape.dtype || entry.shape.ranks != shape.ranks)) continue;
    return LeftOut{.candidate = {name, {}},
                   .shape = shape,
                   .reason = entry.reason,
                   .detail = std::string(kNotAgain) + "the " + (entry.reason == "wrong-sum" ? "wrong sum" : entry.reason) + " at " +
                             describe(entry.shape)};
  }
  return std::nullopt;
}

std::vector<LeftOut> collapse(const std::vector<LeftOut>& left_out) {
  const auto about_candidate = [](const LeftOut& entry) { return entry.candidate.geometry == Geometry{}; };
  std::map<std::pair<std::string, Shape>, std::set<std::pair<std::string, std::string>>> reasons;
  std::map<std::pair<std::string, Shape>, int> mentions;
  for (const LeftOut& entry : left_out) {
    if (!about_candidate(entry)) continue;
    reasons[block_of(entry)].insert({entry.reason, entry.detail});
    ++mentions[block_of(entry)];
  }
  std::vector<LeftOut> kept;
  std::set<std::pair<std::string, Shape>> collapsed;
  for (const LeftOut& entry : left_out) {
    const auto block = block_of(entry);
    if (!about_candidate(entry) || reasons[block].size() > 1 || mentions[block] < 2) {
      kept.push_back(entry);
    } else if (collapsed.insert(block).second) {
      kept.push_back(entry);
      kept.back().shape.bytes = 0;
    }
  }
  return kept;
}

}  // namespace artune
