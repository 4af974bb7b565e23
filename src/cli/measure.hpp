// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What `sweep` and `tune` share: from flags to a sweep, with everything checked before the first kernel runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/context.hpp"
#include "profile/profile.hpp"
#include "sweep/plan.hpp"
#include "sweep/sweep.hpp"

namespace artune {

struct MeasureFlags {
  PlanWords plan;
  bool strict = false;
  bool resume = false;
  std::string journal;               ///< file of finished shapes; empty = none
  std::optional<std::string> profile;  ///< `--profile`: what `tuned` dispatches by
};

struct MeasuredSweep {
  Sweep sweep;
  Json info = Json::object();        ///< additive fields for documents: processes beside us
  bool simulated = false;
  /// What the exit status must say although there is a document: an interrupt, with --strict a bad candidate, no row at all.
  std::optional<Error> verdict;
};

/// --op --min --max --factor --sizes --hidden --tokens --dtype --mode --ranks --path --candidate --budget --strict
void add_measure_options(CLI::App& app, MeasureFlags& flags);

/// --overlap --compute-us. `sizes`: beside compute, where none are given.
void add_overlap_options(CLI::App& app, MeasureFlags& flags, std::vector<std::string> sizes);

/// The caller has checked its output files before. Notes on what goes wrong go to `context` as they happen.
Result<MeasuredSweep> measure(CliContext& context, const MeasureFlags& flags);

/// The first bad candidate as an Error: wrong sums before hangs before crashes; nullopt when there is none.
std::optional<Error> worst_candidate(const Sweep& sweep);

/// The flags that choose the machine, spelled again for "next command" lines: " --rig NAME --devices 0,1".
std::string machine_flags_text(const MachineFlags& flags);

}  // namespace artune
