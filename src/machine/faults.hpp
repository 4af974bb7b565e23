// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Test switches in the worker: ARTUNE_TEST_FAULT makes candidates crash, hang or lie, so that tests see what the
// supervisor and the sweep make of it. Compiled only with the CMake option ARTUNE_TEST_FAULTS, never in a release.
//
//   ARTUNE_TEST_FAULT="crash:p2p/one-shot/ll@4096,hang:host/*,wrong:ce/push"
//
// crash       the worker gets a SIGSEGV                 exit   the worker leaves silently with status 7
// hang        the call never returns                    wrong  sums come out wrong (really, on a GPU)
// slow-start  the machine never gets ready (no candidate: "slow-start:*")
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/words.hpp"
#include "machine/machine.hpp"

namespace artune {

enum class FaultKind : std::uint8_t { crash, hang, wrong, slow_start, exit };

template <>
struct WordTable<FaultKind> {
  static constexpr std::array<Word<FaultKind>, 5> entries{{{FaultKind::crash, "crash"},
                                                           {FaultKind::hang, "hang"},
                                                           {FaultKind::wrong, "wrong"},
                                                           {FaultKind::slow_start, "slow-start"},
                                                           {FaultKind::exit, "exit"}}};
};

struct Fault {
  FaultKind kind = FaultKind::crash;
  std::string candidate_glob;             ///< matches Candidate::name
  std::optional<std::size_t> bytes;       ///< only messages of this size; nullopt = any
};

/// "kind:glob[@bytes],…"; Reason::usage names the word that can't be read.
Result<std::vector<Fault>> parse_faults(std::string_view text);

/// What ARTUNE_TEST_FAULT wants of this candidate at this size; nullopt when unset. Throws Failure when it can't be read.
std::optional<FaultKind> fault_for(const Candidate& candidate, std::size_t bytes);

/// Sleeps for ever if ARTUNE_TEST_FAULT asks for a slow start.
void obey_slow_start();

/// Obeys crash and exit before the machine is asked. `lies`: also hangs, and turns a right sum into a wrong one, for
/// machines that don't leave out a rank and corrupt data themselves by fault_for().
std::unique_ptr<Machine> with_faults(std::unique_ptr<Machine> machine, bool lies);

}  // namespace artune
