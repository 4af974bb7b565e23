// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a soak has done and what it found: counting, the table, the JSON document, the words for a wrong sum. No CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "soak/plan.hpp"

namespace artune::soak {

struct Calls {
  std::uint64_t graph = 0, eager = 0;
  std::uint64_t all() const { return graph + eager; }
  Calls& operator+=(const Calls& more) { return graph += more.graph, eager += more.eager, *this; }
};

/// Of all groups. Only calls that were checked are counted.
struct Tally {
  std::uint64_t seed = 1;
  std::vector<int> ranks;                                              ///< groups, in the order of the columns
  std::map<std::pair<CandidateId, Form>, std::map<int, Calls>> calls;  ///< cell -> ranks -> calls
  std::map<int, std::map<CandidateId, std::string>> unavailable;       ///< ranks -> candidate -> why
  std::map<int, double> seconds;                                       ///< ranks -> spent on them
  bool complete = false;                                               ///< all calls that were asked for were made

  Calls total(int ranks) const;
  Calls total() const;
};

/// In a run of 10^7 calls every cell is to have this many.
inline constexpr std::uint64_t kEnoughCalls = 10'000;
inline constexpr std::uint64_t kFullRun = 10'000'000;

/// The table, totals, and what fell short; `error` where the soak ended with one.
std::string tally_text(const Tally& tally, const std::optional<Error>& error);
Json tally_json(const Tally& tally, const std::optional<Error>& error);

/// One wrong element or guard byte.
struct Wrong {
  std::string candidate;
  Form form = Form::f32;
  int ranks = 0, rank = 0;
  DrawnCall call;
  bool graph = false;
  std::uint32_t replay = 0;
  std::uint64_t index = 0;
  enum class What { element, guard_before, guard_after } what = What::element;
  std::uint32_t got = 0, expected = 0;  ///< bits
  std::uint32_t count = 0;              ///< wrong elements and bytes in all
  std::uint64_t seed = 1;
};
std::string wrong_text(const Wrong& wrong);

}  // namespace artune::soak
