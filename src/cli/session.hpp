// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// From the flags of the command line to a machine that may be measured: which GPUs in which order, nobody else on
// them, locked against a second ar-tune, behind a supervisor.
//
//   Result<MachineChoice> choice = choose_machine(context);            // touches no GPU memory
//   … make the plan for choice->ranks() …
//   Result<Session> session = open_session(context, *choice, profile_for_tuned);
//   run_sweep(*session->machine, …);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.hpp"
#include "cli/gpu_lock.hpp"
#include "machine/supervised_machine.hpp"
#include "profile/fingerprint.hpp"

namespace artune {

/// The machine and the group on it, before anything is measured.
struct MachineChoice {
  MachineOptions options;            ///< devices and ranks_per_gpu decided
  MachineFacts facts;
  GroupFacts group;
  Json other_processes = Json::array();  ///< on the group's GPUs; empty without --busy-ok, for the document's `info`

  int ranks() const { return static_cast<int>(options.devices.size()) * options.ranks_per_gpu; }
  bool simulated() const { return !options.rig.empty(); }
};

/// The flags that are wrong whatever the machine is (Reason::usage).
Result<MachineOptions> read_machine_flags(const MachineFlags& flags);

/// Asks what is there. Reason::usage for devices that aren't and for a group of one rank, Reason::no_usable_gpu with
/// the cause, Reason::busy_gpu naming the process.
Result<MachineChoice> choose_machine(CliContext& context);

struct Session {
  std::optional<GpuLock> lock;       ///< none for a rig
  std::unique_ptr<SupervisedMachine> machine;
};

/// `ranks`: world sizes that will be measured. `profile`: what `tuned` dispatches by, empty = none.
Result<Session> open_session(CliContext& context, const MachineChoice& choice, std::vector<int> ranks, const std::string& profile);

}  // namespace artune
