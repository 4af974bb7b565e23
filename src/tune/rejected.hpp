// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What lost and why, one row per candidate, key and reason instead of one per size and geometry. Private to src/tune.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "profile/profile.hpp"
#include "sweep/sweep.hpp"

namespace artune {

struct Measured;

/// Gathers single refusals; rows of one candidate, key and reason become one, with the first geometry and detail.
class RejectionList {
 public:
  void add(Rejected rejected);
  /// In order of key, menu, reason. One size: `bytes` is that size; several: 0, and the detail says how many.
  void append_to(std::vector<Rejected>& list) const;

 private:
  struct Group {
    Rejected first;
    std::set<std::size_t> sizes;
  };
  std::map<std::tuple<TableKey, int, std::string>, Group> groups_;
};

/// The sweep's own list: unavailable, pruned, wrong sums, …
void reject_left_out(const Sweep& sweep, std::vector<Rejected>& rejected);

/// Candidates that were measured and right, and that `sequence` (an option per size) never uses.
void reject_losers(const Measured& measured, const std::vector<std::size_t>& sequence, std::vector<Rejected>& rejected);

}  // namespace artune
