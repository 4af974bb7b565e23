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

/// The report to show of all ranks' reports: one that ran out of time names the cause, those aborted by it the effect.
/// `present(report)` tells (with acquire) whether a report was written. nullptr = no rank failed.
template <typename ReportAt, typename Present>
const FailureReport* first_cause(int ranks, const ReportAt& report_at, const Present& present) {
  const FailureReport* found = nullptr;
  for (int rank = 0; rank < ranks; ++rank) {
    const FailureReport* report = report_at(rank);
    if (!present(*report)) continue;
    if (found == nullptr || (found->cause != kTimedOut && report->cause == kTimedOut)) found = report;
  }
  return found;
}

}  // namespace artune
