// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "protocol/arguments.hpp"

namespace artune {

/// "rank 1 waited for rank 0 and gave up (block 3: expected 17, saw 15)"
inline std::string describe_failure(const FailureReport& report) {
  if (report.cause == kOverlap) {
    return "two calls of rank " + std::to_string(report.rank) + " ran at once (call " + std::to_string(report.expected) +
           "): a graph replay beside an eager call or another replay; order them by an event";
  }
  if (report.cause == kDisagree) {
    return "rank " + std::to_string(report.rank) + " and rank " + std::to_string(report.peer) +
           " called with different counts, types or candidates (signatures " + std::to_string(report.expected) + " and " +
           std::to_string(report.seen) + ")";
  }
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
    if (found == nullptr || (found->cause == kAborted && report->cause != kAborted)) found = report;
  }
  return found;
}

}  // namespace artune
