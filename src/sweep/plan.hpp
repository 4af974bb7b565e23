// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Plan: what a sweep will measure, made from the words of the command line before any GPU is touched.
//
//   PlanWords words;
//   words.dtypes = {"bf16", "f32"};
//   Result<Plan> plan = make_plan(words, {.ranks = 2});    // 1K to 64M by 2, both modes
//   if (!plan) return plan.error();                        // "dtype 'fp8': is none of f32, f16, bf16"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "machine/machine.hpp"
#include "sweep/filter.hpp"

namespace artune {

/// What an element goes over the links as: itself, or f32 rounded to bf16.
enum class WireWord : std::uint8_t { native, bf16 };
template <>
struct WordTable<WireWord> {
  static constexpr std::array<Word<WireWord>, 2> entries{{{WireWord::native, "native"}, {WireWord::bf16, "bf16"}}};
};

/// Words as typed, lists already split at commas. Empty = the default that is named beside it.
struct PlanWords {
  std::optional<std::string> min, max, factor;  ///< 1K, 64M, 2
  std::vector<std::string> sizes;               ///< instead of min, max and factor
  std::optional<std::string> hidden;            ///< with `tokens`: hidden * tokens * element size
  std::vector<std::string> tokens;
  std::vector<std::string> ops;                 ///< all_reduce
  std::vector<std::string> dtypes;              ///< bf16
  std::vector<std::string> wires;               ///< native; what f32 may go over the links as
  bool decides = false;                         ///< tune: a lossy wire is judged against the exact one, which is measured too
  std::vector<std::string> modes;               ///< graph, eager
  std::vector<std::string> ranks;               ///< all ranks of the world
  std::vector<std::string> paths;               ///< all
  std::vector<std::string> candidates;          ///< globs; all
  std::optional<std::string> budget;            ///< 50s; 100s with `overlap`, half of it for that
  bool overlap = false;                         ///< also beside a compute load
  std::vector<std::string> overlap_sizes = {"1M", "16M"};  ///< for that, where no sizes are given
  std::optional<std::string> compute_us;        ///< with `overlap`: 5000
  std::uint64_t seed = 1;                       ///< of the order of rounds
};

/// What the plan has to fit.
struct PlanWorld {
  int ranks = 2;                                ///< devices x ranks per GPU
  Launch launch = Launch::one_thread;
};

struct Plan {
  std::vector<Shape> shapes;                    ///< by ranks, dtype, wire, bytes, mode; idle first; the order of the document
  std::vector<std::string> notes{};             ///< what the words mean that isn't plain, a line each
  CandidateFilter filter;
  double budget_s = 50;
  double compute_us = 5000;                     ///< of the load beside which shapes with Load::overlap are timed
  std::uint64_t seed = 1;
};

Result<Plan> make_plan(const PlanWords& words, const PlanWorld& world);

/// What two plans must agree on for one to go on where the other stopped: all but the budget.
Json plan_identity(const Plan& plan);

}  // namespace artune
