// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The sweep document: every candidate at every shape, measured or with the reason why not.
// JSON kind "ar-tune/sweep", schema in profiles/schema/sweep.schema.json.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "base/document.hpp"
#include "base/result.hpp"
#include "machine/machine.hpp"

namespace artune {

/// Beside a compute load, in one launch order: medians over runs, each run with both sides by themselves just before.
struct OverlapFigures {
  LaunchOrder order = LaunchOrder::compute_first;
  double compute_idle_us = 0, compute_beside_us = 0;      ///< the load's own time
  double reduction_idle_us = 0, reduction_beside_us = 0;  ///< per reduction, max over ranks
  int completed = 0;                ///< reductions that ended while the load ran; 0 = starved until it was over
};

/// One timed candidate at one shape. Times in µs per call, max over ranks, median over samples.
struct SweepRow {
  Candidate candidate;
  Shape shape;
  int batch = 0;
  bool verified = false;
  int n = 0;                        ///< samples
  double median_us = 0, ci_low_us = 0, ci_high_us = 0, p5_us = 0, p95_us = 0;  ///< 95 % interval of the median
  std::optional<double> isolated_us;
  std::optional<double> host_us;
  double algbw_gb_per_s = 0, busbw_gb_per_s = 0;
  std::optional<double> limit_us;
  Numerics numerics = Numerics::nccl;
  std::vector<double> samples_us;
  /// Load::overlap only: each launch order once. median_us and its company are then reduction_beside_us, in the order in
  /// which that is larger.
  std::vector<OverlapFigures> overlap{};
};

/// Why a candidate has no row at a shape. Nothing is silently left out.
struct LeftOut {
  Candidate candidate;
  Shape shape;
  std::string reason;               ///< "unavailable", "pruned", "wrong-sum", "hang", "crash", "error", "not-reached"
  std::string detail;
};

/// Fewer ranks than the whole group's are a group of their own: the fingerprint that a communicator over them has.
struct SmallerGroup {
  int ranks = 0;
  std::string fingerprint;
};

struct Sweep {
  DocumentHeader header;
  std::string fingerprint;
  std::vector<SmallerGroup> smaller_groups;  ///< that were measured, by ranks
  bool complete = true;             ///< false after Ctrl-C or a spent budget: what is here is still right
  double noise_floor_percent = 0;   ///< A/A: how far two runs of the incumbent lay apart
  std::vector<SweepRow> rows;
  std::vector<LeftOut> left_out;
  std::vector<PairVerdict> verdicts;
};

Json sweep_to_json(const Sweep& sweep);
Result<Sweep> sweep_from_json(const Json& document, const std::string& name);
Result<Sweep> read_sweep(const std::string& path);
/// One row per line, so that diffs read well.
std::string sweep_to_text(const Sweep& sweep);

}  // namespace artune
