// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/faults.hpp"

#include <fnmatch.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/failure.hpp"
#include "base/units.hpp"

namespace artune {
namespace {

const std::vector<Fault>& faults_of_environment() {
  static const std::vector<Fault> faults = [] {
    const char* text = std::getenv("ARTUNE_TEST_FAULT");
    Result<std::vector<Fault>> parsed = parse_faults(text == nullptr ? "" : text);
    if (!parsed) throw Failure("ARTUNE_TEST_FAULT", parsed.error().message, 0);
    return *parsed;
  }();
  return faults;
}

[[noreturn]] void sleep_for_ever() {
  while (true) ::pause();
}

/// `stands_in`: the machine runs nothing that could hang by itself.
void obey(std::optional<FaultKind> fault, bool stands_in) {
  if (fault == FaultKind::crash) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGSEGV, SIG_DFL);  // also where a sanitizer has put a handler
    std::raise(SIGSEGV);
  }
  if (fault == FaultKind::exit) ::_exit(7);
  if (fault == FaultKind::hang && stands_in) sleep_for_ever();
}

class FaultyMachine final : public Machine {
 public:
  FaultyMachine(std::unique_ptr<Machine> machine, bool lies) : machine_(std::move(machine)), lies_(lies) {}

  Result<DocumentHeader> describe() override { return machine_->describe(); }
  std::vector<PairVerdict> verdicts() override { return machine_->verdicts(); }
  std::vector<Offer> candidates(const Shape& shape) override { return machine_->candidates(shape); }
  double limit_us(const Shape& shape) override { return machine_->limit_us(shape); }

  Verification verify(const Candidate& candidate, const Shape& shape) override {
    const std::optional<FaultKind> fault = fault_for(candidate, shape.bytes);
    obey(fault, lies_);
    Verification verification = machine_->verify(candidate, shape);
    if (lies_ && fault == FaultKind::wrong && verification.outcome.ok()) {
      verification.outcome = {OutcomeKind::wrong_sum, "rank 0, element 0: corrupted by ARTUNE_TEST_FAULT"};
    }
    return verification;
  }

  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override {
    obey(fault_for(candidate, shape.bytes), lies_);
    return machine_->time(candidate, shape, request);
  }

  OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) override {
    obey(fault_for(candidate, shape.bytes), lies_);
    return machine_->time_overlap(candidate, shape, request);
  }

 private:
  std::unique_ptr<Machine> machine_;
  bool lies_;
};

}  // namespace

Result<std::vector<Fault>> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t colon = entry.find(':');
    const std::size_t at = entry.find('@');
    const auto kind = parse_word<FaultKind>(entry.substr(0, colon));
    if (!kind || colon == std::string_view::npos) {
      return Error{Reason::usage, "fault '" + std::string(entry) + "': expected kind:candidate[@bytes], kind one of " + word_list<FaultKind>()};
    }
    Fault fault{*kind, std::string(entry.substr(colon + 1, at == std::string_view::npos ? at : at - colon - 1)), std::nullopt};
    if (at != std::string_view::npos) {
      const Result<std::size_t> bytes = parse_size(entry.substr(at + 1));
      if (!bytes) return bytes.error();
      fault.bytes = *bytes;
    }
    faults.push_back(std::move(fault));
  }
  return faults;
}

std::optional<FaultKind> fault_for(const Candidate& candidate, std::size_t bytes) {
  for (const Fault& fault : faults_of_environment()) {
    const bool matches = ::fnmatch(fault.candidate_glob.c_str(), candidate.name.c_str(), 0) == 0;
    if (matches && (!fault.bytes || *fault.bytes == bytes)) return fault.kind;
  }
  return std::nullopt;
}

void obey_slow_start() {
  for (const Fault& fault : faults_of_environment()) {
    if (fault.kind == FaultKind::slow_start) sleep_for_ever();
  }
}

std::unique_ptr<Machine> with_faults(std::unique_ptr<Machine> machine, bool lies) {
  return std::make_unique<FaultyMachine>(std::move(machine), lies);
}

}  // namespace artune
