// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Fields that profile and sweep share: a candidate with its geometry, a table key, words from a fixed list.
// All readers throw JsonError with the path of the offending value.
//
//   const Candidate use = read_candidate(row.at("use"), geometry_from_json(row.at("geometry")));
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/candidate.hpp"
#include "base/json.hpp"
#include "profile/profile.hpp"

namespace artune {

/// What a pair was found to be (PairVerdict, VerdictRow).
inline constexpr std::string_view kVerdictWords[] = {"usable", "wrong-data", "hangs", "unavailable", "untested"};

/// Why a sweep has no row for a candidate at a shape.
inline constexpr std::string_view kLeftOutWords[] = {"unavailable", "pruned", "wrong-sum",  "hang",
                                                     "crash",       "error",  "not-reached"};

/// Why a profile doesn't use a candidate: those, and what only the decision knows.
///   slower      measured, and slower wherever it was measured
///   margin      faster somewhere, but by less than margin and noise ask for
///   numerics    not the class that it claims, or not the uniform class that was asked for
///   unverified  timed without a checked sum
inline constexpr std::string_view kRejectedWords[] = {"slower",    "margin", "numerics", "unverified", "unavailable", "pruned",
                                                      "wrong-sum", "hang",   "crash",    "error",      "not-reached"};

std::string read_one_of(const JsonReader& value, std::span<const std::string_view> words);

/// A name from the menu with the geometry fields that the menu gives it, no more and no less
/// (`max_ctas` may be missing: NCCL's own choice).
Candidate read_candidate(const JsonReader& name, const Geometry& geometry);

/// As above, without asking for geometry: for rows about candidates that were never launched.
std::string read_candidate_name(const JsonReader& name);

/// op, dtype, wire, ranks, mode, launch, load: appended to / read from a flat object.
void append_key(Json& object, const TableKey& key);
TableKey read_key(const JsonReader& object);

/// The group is what documents of measurements are matched by: it must be there, name GPUs that the machine has, and
/// own up to sharing them.
void expect_group(const JsonReader& document, const DocumentHeader& header);

inline constexpr int kMostRanks = 1024;

}  // namespace artune
