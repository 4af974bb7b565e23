// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/rejected.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/units.hpp"
#include "paths/menu.hpp"
#include "tune/measured.hpp"

namespace artune {

void RejectionList::add(Rejected rejected) {
  const int place = static_cast<int>(find_candidate(rejected.candidate.name)->id);
  const std::size_t bytes = rejected.bytes;
  Group& group = groups_[{rejected.key, place, rejected.reason}];
  if (group.sizes.empty()) group.first = std::move(rejected);
  group.sizes.insert(bytes);
}

void RejectionList::append_to(std::vector<Rejected>& list) const {
  for (const auto& [unused, group] : groups_) {
    Rejected row = group.first;
    if (group.sizes.size() > 1) {
      row.detail += fmt::format("{}{} sizes, {} to {}", row.detail.empty() ? "" : "; ", group.sizes.size(),
                                format_size(*group.sizes.begin()), format_size(*group.sizes.rbegin()));
      row.bytes = 0;
    }
    list.push_back(std::move(row));
  }
}

void reject_left_out(const Sweep& sweep, std::vector<Rejected>& rejected) {
  RejectionList list;
  for (const LeftOut& row : sweep.left_out) list.add({row.candidate, key_of(row.shape), row.shape.bytes, row.reason, row.detail});
  list.append_to(rejected);
}

namespace {

/// What of the candidate lost: in the table of a lossy wire it may have been there twice, exact and lossy.
std::string loser_text(const Measured& measured, bool lossy) {
  if (!measured.lossy()) return {};
  return fmt::format("as {} on the wire ", to_string(lossy ? measured.key.wire : measured.key.dtype));
}

void reject_loser(const Measured& measured, const CandidateInfo& info, bool lossy, const std::vector<std::size_t>& sequence,
                  std::vector<Rejected>& rejected) {
  const auto is_this = [&](std::size_t option) {
    return measured.options[option].info == &info && is_lossy(measured.options[option].numerics) == lossy;
  };
  if (std::any_of(sequence.begin(), sequence.end(), is_this)) return;
  // Where it came closest says most.
  struct Closest {
    std::size_t size, option;
    double ratio;
  };
  std::optional<Closest> closest;
  for (std::size_t size = 0; size < measured.sizes.size(); ++size) {
    for (std::size_t option = 0; option < measured.options.size(); ++option) {
      const auto& figure = measured.figures[size][option];
      if (!is_this(option) || !figure) continue;
      const double ratio = figure->median_us / measured.figures[size][sequence[size]]->median_us;
      if (!closest || ratio < closest->ratio) closest = Closest{size, option, ratio};
    }
  }
  if (!closest) return;
  const Option& loser = measured.options[closest->option];
  const double loser_us = measured.figures[closest->size][closest->option]->median_us;
  const double winner_us = measured.figures[closest->size][sequence[closest->size]]->median_us;
  const std::string comparison =
      fmt::format("{:.4g} us against {:.4g} us of {} at {}", loser_us, winner_us,
                  measured.options[sequence[closest->size]].candidate.label(), format_size(measured.sizes[closest->size]));
  Rejected row{loser.candidate, measured.key, 0, "slower", loser_text(measured, lossy) + "at best " + comparison};
  if (!loser.admitted) {
    row.reason = "numerics";
    row.detail = fmt::format("its class {} isn't the uniform one; {}", to_string(loser.numerics), row.detail);
  } else if (closest->ratio < 1) {
    row.reason = "margin";
    row.detail += ": not enough for margin, noise and switching";
  }
  rejected.push_back(std::move(row));
}

}  // namespace

void reject_losers(const Measured& measured, const std::vector<std::size_t>& sequence, std::vector<Rejected>& rejected) {
  for (const CandidateInfo& info : menu()) {
    for (const bool lossy : {false, true}) reject_loser(measured, info, lossy, sequence, rejected);
  }
}

}  // namespace artune
