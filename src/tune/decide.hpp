// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The decision: a sweep goes in, a profile comes out. Pure; the same sweep and options give the same profile.
//
//   Profile profile = decide(sweep, {.margin = 0.02});
//   if (profile.tables.empty()) return Error{Reason::no_candidate, ...};   // nothing was measured and right
//   write_file_atomically(path, profile_to_text(profile));
//
// The rules, in the order in which they bind (docs/profile.md tells them at length):
//   1. Only checked sums count. A candidate that gave a wrong sum, hung or crashed anywhere in the sweep is used nowhere.
//   2. At every measured size the choice is no slower than NCCL's best by more than noise or margin, and no more than
//      4 % slower than the best candidate, unless the intervals (widened by the noise floor) overlap.
//   3. The incumbent (the existing profile's choice, else NCCL) stays unless the challenger wins by more than the noise
//      floor and the margin, whichever is larger.
//   4. A candidate or geometry isn't switched between neighbouring sizes for less than the margin.
//   5. A lossy wire is used in its own table only, and at each size only where it beats every exact candidate (they compete
//      there too) by more than noise and margin, or is the incumbent.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/words.hpp"
#include "profile/profile.hpp"
#include "sweep/sweep.hpp"

namespace artune {

/// How much a message size matters, e.g. from a trace of an application. Any positive scale.
struct SizeWeight {
  std::size_t bytes = 0;
  double weight = 0;
};

/// May the bits of a sum differ by message size (any), or is there one numerics class for the whole profile (uniform)?
enum class NumericsRule : std::uint8_t { any, uniform };
template <>
struct WordTable<NumericsRule> {
  static constexpr std::array<Word<NumericsRule>, 2> entries{{{NumericsRule::any, "any"}, {NumericsRule::uniform, "uniform"}}};
};

struct TuneOptions {
  double margin = 0.02;  ///< fraction of time by which a challenger must win, [0, 0.5]
  NumericsRule numerics = NumericsRule::any;
  Regime regime = Regime::warm;     ///< which rows decide where a key has both; the others are evidence only
  std::vector<SizeWeight> weights;  ///< empty: every octave of size counts the same
  std::string created;              ///< RFC 3339; empty: the sweep's own date, which is that of the evidence
};

/// `incumbent`: the profile in use, nullptr if none; one for another group or table ABI is no incumbent.
/// A key without a single usable row gets no table (the runtime then uses its default) and its reasons under `rejected`.
Profile decide(const Sweep& sweep, const TuneOptions& options, const Profile* incumbent = nullptr);

}  // namespace artune
