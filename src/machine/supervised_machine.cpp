// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/supervised_machine.hpp"

#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/units.hpp"
#include "machine/worker_environment.hpp"
#include "machine/worker_process.hpp"
#include "paths/menu.hpp"

namespace artune {
namespace {

using std::chrono::milliseconds;

/// A start that fails twice in a row won't work the third time.
constexpr int kMostFailedStarts = 2;

std::string seconds_text(milliseconds duration) {
  const auto count = duration.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

std::string describe_work(const char* verb, const Candidate& candidate, const Shape& shape) {
  return std::string(verb) + " " + candidate.label() + " at " + format_size(shape.bytes) + " " + std::string(to_string(shape.dtype)) + " " +
         std::string(to_string(shape.mode));
}

}  // namespace

Deadlines deadlines_for(const MachineOptions& options) {
  constexpr milliseconds kMakeCommunicator{20'000};  // NCCL's bootstrap and connection set-up, eight ranks, cold caches
  Deadlines deadlines;
  deadlines.work = milliseconds(std::llround(3 * options.timeout_s * 1000)) + (options.rig.empty() ? kMakeCommunicator : milliseconds(0));
  return deadlines;
}

SupervisedMachine::SupervisedMachine(SupervisorSettings settings) : settings_(std::move(settings)) {}

SupervisedMachine::~SupervisedMachine() {
  if (worker_) worker_->leave(settings_.deadlines.quit);
}

Result<Json> SupervisedMachine::topology() {
  Answer answer = ask(RequestKind::topology, {{"options", options_to_json(settings_.options)}}, settings_.deadlines.topology, "probe");
  if (answer.error) return *answer.error;
  if (!answer.outcome.ok()) return Error{Reason::no_usable_gpu, "looking at this machine failed: " + answer.outcome.detail};
  return std::move(answer.value);
}

Result<DocumentHeader> SupervisedMachine::describe() {
  if (header_) return *header_;
  const Answer answer = ask(RequestKind::describe, Json::object(), settings_.deadlines.describe, "describe");
  if (answer.error) return *answer.error;
  if (!answer.outcome.ok()) {
    const bool rig = !settings_.options.rig.empty();
    return Error{rig ? Reason::internal : Reason::no_usable_gpu,
                 (rig ? "opening the rig failed: " : "opening the GPUs failed: ") + answer.outcome.detail};
  }
  try {
    const JsonReader reader(answer.value, "worker");
    header_ = header_from_json(reader, reader.at("kind").string(), std::numeric_limits<int>::max());
  } catch (const JsonError& error) {
    return Error{Reason::internal, error.what()};
  }
  return *header_;
}

std::vector<PairVerdict> SupervisedMachine::verdicts() {
  if (settings_.options.known_verdicts) return *settings_.options.known_verdicts;
  const Answer answer = ask(RequestKind::verdicts, Json::object(), settings_.deadlines.gate, "check of pairs");
  Outcome outcome = answer.outcome;
  if (outcome.ok()) {
    try {
      settings_.options.known_verdicts = wire::list_from_json(JsonReader(answer.value, "worker"), wire::pair_verdict_from_json);
      return *settings_.options.known_verdicts;
    } catch (const JsonError& error) {
      outcome = {OutcomeKind::error, error.what()};
    }
  }
  // Known from now on: a new worker must not run into the same wall.
  settings_.options.known_verdicts = verdicts_of_failed_gate(outcome);
  return *settings_.options.known_verdicts;
}

std::vector<PairVerdict> SupervisedMachine::verdicts_of_failed_gate(const Outcome& outcome) {
  std::vector<int> devices = settings_.options.devices;
  if (header_ && header_->world) devices = header_->world->devices;
  const bool shared = settings_.options.ranks_per_gpu > 1;
  const char* verdict = outcome.kind == OutcomeKind::hang ? "hangs" : "unavailable";
  std::vector<PairVerdict> verdicts;
  for (const Path path : {Path::p2p, Path::ce}) {
    for (const int from : devices) {
      for (const int to : devices) {
        if (from == to && !shared) continue;
        verdicts.push_back({from, to, path, verdict, "the functional check failed: " + outcome.detail, 0});
      }
    }
  }
  return verdicts;
}

std::vector<Offer> SupervisedMachine::candidates(const Shape& shape) {
  const Answer answer = ask(RequestKind::candidates, {{"shape", wire::to_json(shape)}}, settings_.deadlines.describe, "candidates");
  Outcome outcome = answer.outcome;
  if (outcome.ok()) {
    try {
      return wire::list_from_json(JsonReader(answer.value, "worker"), wire::offer_from_json);
    } catch (const JsonError& error) {
      outcome = {OutcomeKind::error, error.what()};
    }
  }
  std::vector<Offer> offers;
  for (const CandidateInfo& info : menu()) offers.push_back({{std::string(info.name), {}}, outcome.detail});
  return offers;
}

Verification SupervisedMachine::verify(const Candidate& candidate, const Shape& shape) {
  const std::string what = describe_work("verify", candidate, shape);
  const Answer answer = ask(RequestKind::verify, {{"candidate", wire::to_json(candidate)}, {"shape", wire::to_json(shape)}},
                            settings_.deadlines.work, what);
  Verification verification;
  verification.outcome = answer.outcome;
  if (answer.error) retire_after(RequestKind::verify, answer.outcome, what);
  if (!answer.outcome.ok()) return verification;
  try {
    verification = wire::verification_from_json(JsonReader(answer.value, "worker"));
  } catch (const JsonError& error) {
    verification.outcome = {OutcomeKind::error, error.what()};
  }
  retire_after(RequestKind::verify, verification.outcome, what);
  return verification;
}

Timing SupervisedMachine::time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) {
  const std::string what = describe_work("time", candidate, shape);
  const Answer answer = ask(RequestKind::time,
                            {{"candidate", wire::to_json(candidate)}, {"shape", wire::to_json(shape)}, {"time", wire::to_json(request)}},
                            settings_.deadlines.work, what);
  Timing timing;
  timing.outcome = answer.outcome;
  if (answer.error) retire_after(RequestKind::time, answer.outcome, what);
  if (!answer.outcome.ok()) return timing;
  try {
    timing = wire::timing_from_json(JsonReader(answer.value, "worker"));
  } catch (const JsonError& error) {
    timing.outcome = {OutcomeKind::error, error.what()};
  }
  retire_after(RequestKind::time, timing.outcome, what);
  return timing;
}

OverlapTiming SupervisedMachine::time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) {
  const std::string what = describe_work("time beside compute", candidate, shape);
  const Answer answer = ask(RequestKind::time_overlap,
                            {{"candidate", wire::to_json(candidate)}, {"shape", wire::to_json(shape)}, {"time", wire::to_json(request)}},
                            settings_.deadlines.work, what);
  OverlapTiming timing;
  timing.outcome = answer.outcome;
  if (answer.error) retire_after(RequestKind::time_overlap, answer.outcome, what);
  if (!answer.outcome.ok()) return timing;
  try {
    timing = wire::overlap_timing_from_json(JsonReader(answer.value, "worker"));
  } catch (const JsonError& error) {
    timing.outcome = {OutcomeKind::error, error.what()};
  }
  retire_after(RequestKind::time_overlap, timing.outcome, what);
  return timing;
}

double SupervisedMachine::limit_us(const Shape& shape) {
  const Answer answer = ask(RequestKind::limit, {{"shape", wire::to_json(shape)}}, settings_.deadlines.describe, "limit");
  return answer.outcome.ok() && answer.value.is_number() ? answer.value.get<double>() : 0;
}

SupervisedMachine::Answer SupervisedMachine::ask(RequestKind kind, Json request, milliseconds deadline, const std::string& what) {
  if (!given_up_.empty()) return {{}, {OutcomeKind::unavailable, given_up_}, start_refusal_};
  if (const std::optional<Outcome> failed = ensure_worker()) return {{}, *failed, std::nullopt};
  if (kind != RequestKind::topology && !started_) {
    Answer start = ask_running_worker(RequestKind::start, {{"options", options_to_json(settings_.options)}}, settings_.deadlines.start,
                                      "start");
    if (start.error) {
      start_refusal_ = start.error;
      given_up_ = start.error->message;
      return start;
    }
    if (!start.outcome.ok()) {
      if (++failed_starts_ == kMostFailedStarts && given_up_.empty()) given_up_ = "no worker starts any more: " + start.outcome.detail;
      return start;
    }
    started_ = true;
    failed_starts_ = 0;
  }
  return ask_running_worker(kind, std::move(request), deadline, what);
}

SupervisedMachine::Answer SupervisedMachine::ask_running_worker(RequestKind kind, Json request, milliseconds deadline,
                                                               const std::string& what) {
  const int id = next_id_++;
  Json message = {{"id", id}, {"request", to_string(kind)}};
  message.update(request);
  const Exchange exchange = worker_->ask(wire::to_line(message), deadline);
  if (exchange.state == Exchange::State::died) return {{}, lose_worker(kind, OutcomeKind::crash, what, "worker " + exchange.detail), std::nullopt};
  if (exchange.state == Exchange::State::timed_out) {
    return {{}, lose_worker(kind, OutcomeKind::hang, what, "no answer within " + seconds_text(deadline)), std::nullopt};
  }
  const Result<Json> reply = parse_json(exchange.line, "worker");
  if (!reply) return {{}, lose_worker(kind, OutcomeKind::crash, what, reply.error().message), std::nullopt};
  try {
    const JsonReader reader(*reply, "worker");
    if (reader.at("id").integer(0, std::numeric_limits<int>::max()) != id) reader.at("id").fail("is not that of the request");
    if (const auto error = reader.find("error")) {
      Error refusal = wire::error_from_json(*error);
      const OutcomeKind outcome = refusal.reason == Reason::internal ? OutcomeKind::error : OutcomeKind::unavailable;
      return {{}, {outcome, refusal.message}, refusal};
    }
    return {reader.at("value").raw(), {}, std::nullopt};
  } catch (const JsonError& error) {
    return {{}, lose_worker(kind, OutcomeKind::crash, what, error.what()), std::nullopt};
  }
}

std::optional<Outcome> SupervisedMachine::ensure_worker() {
  if (worker_) return std::nullopt;
  if (workers_started_ >= settings_.most_workers) {
    given_up_ = std::to_string(workers_started_) + " workers were lost, no more are started";
    return Outcome{OutcomeKind::unavailable, given_up_};
  }
  ++workers_started_;
  auto worker = WorkerProcess::spawn(settings_.executable, settings_.arguments, worker_environment(settings_.options, ::environ));
  if (!worker) {
    given_up_ = worker.error().message;
    return Outcome{OutcomeKind::unavailable, given_up_};
  }
  worker_ = std::move(*worker);
  started_ = false;
  return std::nullopt;
}

Outcome SupervisedMachine::lose_worker(RequestKind request, OutcomeKind kind, const std::string& what, const std::string& why) {
  retire_worker();
  if (settings_.on_event) {
    const bool told_elsewhere = request == RequestKind::verify || request == RequestKind::time || request == RequestKind::time_overlap;
    settings_.on_event(what + " took its worker down" + (told_elsewhere ? "" : " (" + why + ")") + "; " +
                       (given_up_.empty() ? "going on in a new one" : given_up_));
  }
  return {kind, why};
}

void SupervisedMachine::retire_worker() {
  if (!worker_) return;
  if (!worker_->kill()) {
    given_up_ = "worker " + std::to_string(worker_->pid()) +
                " can't be ended: it hangs inside the driver, and so may the next; reboot before asking this machine again";
  }
  worker_.reset();
  started_ = false;
}

void SupervisedMachine::retire_after(RequestKind request, const Outcome& outcome, const std::string& what) {
  if (outcome.kind == OutcomeKind::hang || outcome.kind == OutcomeKind::crash || outcome.kind == OutcomeKind::error) {
    lose_worker(request, outcome.kind, what, outcome.detail);
  }
}

}  // namespace artune
