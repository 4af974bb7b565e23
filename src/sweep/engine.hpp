// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The sweep stage: from a Machine and a Plan to a Sweep. docs/measuring.md says how a number is made.
//
//   SweepHooks hooks;
//   Result<Sweep> sweep = run_sweep(machine, plan, hooks, {.journal_file = "sweep.json.journal"});
//   if (!sweep) return sweep.error();                    // the machine can't be described, the journal is another's
//   if (const Status any = anything_measured(*sweep); !any) return any.error();
#pragma once

#include <string>

#include "base/result.hpp"
#include "machine/machine.hpp"
#include "sweep/clock.hpp"
#include "sweep/hooks.hpp"
#include "sweep/plan.hpp"
#include "sweep/sweep.hpp"

namespace artune {

struct SweepOptions {
  std::string journal_file;        ///< finished shapes are appended here; empty = no journal
  bool resume = false;             ///< take over what journal_file holds, if plan and machine are the same
  const Clock* clock = nullptr;    ///< what the budget is counted on; nullptr = a steady clock
};

/// Measures `plan` on `machine`. An interrupt or a spent budget gives a Sweep with complete = false.
/// A candidate that lies, hangs or crashes is an entry of left_out, never an error here.
Result<Sweep> run_sweep(Machine& machine, const Plan& plan, SweepHooks& hooks, const SweepOptions& options = {});

/// Reason::no_candidate with the reasons when the sweep has no row (interrupts aside: those keep Ok).
Status anything_measured(const Sweep& sweep);

}  // namespace artune
