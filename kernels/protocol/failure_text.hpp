// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "protocol/arguments.hpp"

namespace artune {

/// "rank 1 waited for rank 0 and gave up (block 3: expected 17, saw 15)"
inline std::string describe_failure(const FailureReport& report) {
  const char* how = report.cause == kTimedOut ? " and gave up" : " when the group was aborted";
  return "rank " + std::to_string(report.rank) + " waited for rank " + std::to_string(report.peer) + how + " (block " +
         std::to_string(report.block) + ": expected " + std::to_string(report.expected) + ", saw " + std::to_string(report.seen) + ")";
}

}  // namespace artune
