// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// SupervisedMachine: a Machine whose work happens in a worker process, so that an illegal address, a load that never
// completes or NCCL's own endless spin is one candidate's result and not the end of the sweep. This process makes no
// CUDA call.
//
//   SupervisedMachine machine({.options = options, .deadlines = deadlines_for(options), .on_event = print});
//   Verification v = machine.verify(candidate, shape);   // .outcome: ok, wrong_sum, hang, crash, unavailable, error
//
// What becomes of a worker: dead -> the request's outcome is `crash`; no answer in time -> killed, `hang`; its own
// report of a hang, crash or error -> replaced, since such errors may be sticky. The next request starts a new worker.
// After `most_workers`, or when a killed worker can't be reaped, everything is answered `unavailable` with the reason.
// Use it from one thread, which must outlive it: workers die with the thread that started them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "machine/options.hpp"
#include "machine/wire.hpp"

namespace artune {

class WorkerProcess;

struct Deadlines {
  std::chrono::milliseconds start{60'000};     ///< loads libraries, makes contexts, loads all kernels
  std::chrono::milliseconds topology{60'000};
  std::chrono::milliseconds describe{30'000};  ///< also candidates and limit
  std::chrono::milliseconds gate{120'000};     ///< all pairs
  std::chrono::milliseconds work{50'000};      ///< one verify or time
  std::chrono::milliseconds quit{5'000};
};

/// `work` gives the spins inside (bounded by timeout_s) the time to expire and report by themselves first, and on GPUs
/// the time to make a communicator.
Deadlines deadlines_for(const MachineOptions& options);

struct SupervisorSettings {
  MachineOptions options;
  Deadlines deadlines;
  std::string executable = "/proc/self/exe";   ///< ourselves, even when the file was replaced meanwhile
  std::vector<std::string> arguments{"ar-tune", "worker"};
  int most_workers = 20;
  /// One line for people whenever a worker was lost. What became of a verify or time stands in its Outcome, not here.
  std::function<void(const std::string&)> on_event;
};

class SupervisedMachine final : public Machine {
 public:
  explicit SupervisedMachine(SupervisorSettings settings);
  ~SupervisedMachine() override;

  /// The probe document, from a worker that makes no machine.
  Result<Json> topology();

  Result<DocumentHeader> describe() override;
  std::vector<PairVerdict> verdicts() override;
  std::vector<Offer> candidates(const Shape& shape) override;
  Verification verify(const Candidate& candidate, const Shape& shape) override;
  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override;
  OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) override;
  double limit_us(const Shape& shape) override;

  int workers_started() const { return workers_started_; }

 private:
  /// A value, or what became of the request instead.
  struct Answer {
    Json value;
    Outcome outcome;
    std::optional<Error> error;   ///< the worker's own refusal
  };

  Answer ask(RequestKind kind, Json request, std::chrono::milliseconds deadline, const std::string& what);
  Answer ask_running_worker(RequestKind kind, Json request, std::chrono::milliseconds deadline, const std::string& what);
  std::optional<Outcome> ensure_worker();
  /// `what` was asked when it was lost; `why` goes to the event only where no Outcome tells it to somebody else.
  Outcome lose_worker(RequestKind request, OutcomeKind kind, const std::string& what, const std::string& why);
  void retire_worker();
  void retire_after(RequestKind request, const Outcome& outcome, const std::string& what);
  std::vector<PairVerdict> verdicts_of_failed_gate(const Outcome& outcome);

  SupervisorSettings settings_;
  std::unique_ptr<WorkerProcess> worker_;
  bool started_ = false;                 ///< worker_ has made its machine
  int workers_started_ = 0;
  int failed_starts_ = 0;                ///< in a row
  int next_id_ = 1;
  std::string given_up_;                 ///< why nothing is asked any more; empty = goes on
  std::optional<Error> start_refusal_;   ///< the worker could not make its machine, and said why
  std::optional<DocumentHeader> header_;
};

}  // namespace artune
