// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Machine: the seam between asking and measuring. GpuMachine runs CUDA, RigMachine a model, and
// SupervisedMachine puts either into a worker process with deadlines. Nothing after this seam knows which.
//
//   for (const Offer& offer : machine.candidates(shape)) {
//     if (!offer.unavailable.empty()) continue;                       // says why, once
//     if (machine.verify(offer.candidate, shape).outcome.ok())        // verify first, only then time
//       auto timing = machine.time(offer.candidate, shape, {.samples = 5});
//   }
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "base/document.hpp"
#include "base/result.hpp"
#include "base/words.hpp"

namespace artune {

/// What one all-reduce looks like: everything that may change the winner.
struct Shape {
  Op op = Op::all_reduce;
  DType dtype = DType::bf16;
  DType wire = DType::bf16;   ///< dtype on the link; equal to dtype unless a lossy wire was asked for
  int ranks = 2;
  std::size_t bytes = 0;      ///< of one rank's tensor, whole elements
  Mode mode = Mode::graph;
  Launch launch = Launch::one_thread;
  Load load = Load::idle;
  Regime regime = Regime::warm;

  auto operator<=>(const Shape&) const = default;
  std::size_t count() const { return bytes / element_bytes(dtype); }
  bool lossy() const { return wire != dtype; }
  std::size_t wire_bytes() const { return count() * element_bytes(wire); }  ///< of one rank's tensor, as links carry it
};

enum class OutcomeKind { ok, wrong_sum, hang, crash, unavailable, error };

template <>
struct WordTable<OutcomeKind> {
  static constexpr std::array<Word<OutcomeKind>, 6> entries{{{OutcomeKind::ok, "ok"},
                                                             {OutcomeKind::wrong_sum, "wrong-sum"},
                                                             {OutcomeKind::hang, "hang"},
                                                             {OutcomeKind::crash, "crash"},
                                                             {OutcomeKind::unavailable, "unavailable"},
                                                             {OutcomeKind::error, "error"}}};
};

/// What became of a request. `detail` is one line for people: "rank 1, element 517: got 3, expected 4".
struct Outcome {
  OutcomeKind kind = OutcomeKind::ok;
  std::string detail;
  bool ok() const { return kind == OutcomeKind::ok; }
};

struct Offer {
  Candidate candidate;
  std::string unavailable;    ///< empty = can be had; else why not
};

struct Verification {
  Outcome outcome;
  bool checked = true;                 ///< false where there is nothing to run: NCCL on a rig
  Numerics numerics = Numerics::nccl;  ///< granted by comparing bits over ranks and with the rank-order reference
};

struct TimeRequest {
  int samples = 5;            ///< each one batch of back-to-back calls
  int batch = 0;              ///< calls per batch; 0 = the machine chooses (and says so in Timing)
  bool isolated = false;      ///< also measure single calls between synchronizations
};

struct Timing {
  Outcome outcome;
  int batch = 0;
  /// samples_us[i][r]: duration of one call on rank r in sample i = batch time / batch.
  std::vector<std::vector<double>> samples_us;
  std::vector<double> isolated_us;      ///< max over ranks per isolated call; empty unless asked for
  double host_us = 0;                   ///< host time to issue one call on all ranks (eager) or one replay / batch (graph)
};

/// Which of the two is on the GPU first when reductions run beside a compute load: what stands in the queue of blocks
/// decides who waits.
enum class LaunchOrder { compute_first, reduction_first };

template <>
struct WordTable<LaunchOrder> {
  static constexpr std::array<Word<LaunchOrder>, 2> entries{
      {{LaunchOrder::compute_first, "compute-first"}, {LaunchOrder::reduction_first, "reduction-first"}}};
};

struct OverlapRequest {
  int samples = 1;
  double compute_us = 5000;   ///< what the load shall take by itself
  LaunchOrder order = LaunchOrder::compute_first;
};

/// One run of the load with back-to-back reductions beside it, and each of the two by itself just before.
struct OverlapSample {
  double compute_idle_us = 0, compute_beside_us = 0;      ///< slowest GPU
  double reduction_idle_us = 0, reduction_beside_us = 0;  ///< per call, slowest rank; beside: while the load ran
  int completed = 0;   ///< reductions that ended on every rank while the load ran; 0 = starved until it was over
};

struct OverlapTiming {
  Outcome outcome;
  int batch = 0;              ///< reductions in the queue of one run: they must outlast the load
  std::vector<OverlapSample> samples;
};

/// A pair-wise functional check: may `path` be used from rank GPU `from` to `to`?
struct PairVerdict {
  int from = 0, to = 0;       ///< nvidia-smi indices
  Path path = Path::p2p;
  std::string verdict;        ///< "usable", "wrong-data", "hangs", "unavailable", "untested"
  std::string reason;         ///< empty when usable
  double one_way_us = 0;      ///< flag latency, 0 = not measured

  bool operator==(const PairVerdict&) const = default;
};

class Machine {
 public:
  virtual ~Machine() = default;

  /// Facts for document headers; `simulated` and `shared_gpu` are set here and nowhere else.
  virtual Result<DocumentHeader> describe() = 0;
  /// The gate: runs once, before the first candidates() of a p2p or ce path.
  virtual std::vector<PairVerdict> verdicts() = 0;
  /// Every menu entry with the geometries worth trying at this shape, available or not.
  virtual std::vector<Offer> candidates(const Shape& shape) = 0;
  virtual Verification verify(const Candidate& candidate, const Shape& shape) = 0;
  virtual Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) = 0;
  /// Beside a compute load of many short blocks that fills every GPU of the group, one load a GPU.
  virtual OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) = 0;
  /// Least time that this machine's own links and launch cost allow, µs; 0 = not known.
  virtual double limit_us(const Shape&) { return 0; }
};

}  // namespace artune
