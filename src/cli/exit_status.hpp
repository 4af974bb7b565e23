// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The one map from reasons to exit statuses and reason words (docs/exit-status.md is its page).
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace artune {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRegression = 1;      ///< confirmed regression, failed check, findings at --fail-on
inline constexpr int kExitUsage = 2;           ///< usage, or input that can't be read
inline constexpr int kExitCantTell = 3;        ///< no usable GPU, busy GPU, foreign profile, nothing available
inline constexpr int kExitWrongOrHang = 4;     ///< wrong sum or hang in what the verb was asked to certify
inline constexpr int kExitInternal = 5;
inline constexpr int kExitInterrupted = 130;

struct ReasonRow {
  Reason reason;
  std::string_view word;       ///< stable: scripts match it
  int exit_status;
};

inline constexpr ReasonRow kReasons[] = {
    {Reason::usage, "usage", kExitUsage},
    {Reason::unreadable_input, "unreadable-input", kExitUsage},
    {Reason::unwritable_output, "unwritable-output", kExitUsage},
    {Reason::no_usable_gpu, "no-usable-gpu", kExitCantTell},
    {Reason::busy_gpu, "busy-gpu", kExitCantTell},
    {Reason::foreign_profile, "foreign-profile", kExitCantTell},
    {Reason::simulated_profile, "simulated-profile", kExitCantTell},
    {Reason::no_candidate, "no-candidate", kExitCantTell},
    {Reason::unavailable, "unavailable", kExitCantTell},
    {Reason::wrong_sum, "wrong-sum", kExitWrongOrHang},
    {Reason::hang, "hang", kExitWrongOrHang},
    {Reason::crash, "crash", kExitWrongOrHang},
    {Reason::interrupted, "interrupted", kExitInterrupted},
    {Reason::internal, "internal", kExitInternal},
};

constexpr const ReasonRow& row_of(Reason reason) {
  for (const auto& row : kReasons) {
    if (row.reason == reason) return row;
  }
  return kReasons[sizeof kReasons / sizeof kReasons[0] - 1];
}

}  // namespace artune
