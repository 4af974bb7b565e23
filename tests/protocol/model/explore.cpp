// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "model/explore.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "protocol/failure_text.hpp"

namespace artune::model {
namespace {

constexpr std::size_t kMaxBytes = 192;  // 12 units of 16 bytes: several a block, and as many granules as a run can afford
constexpr std::uint32_t kNobodyWrote = 0x7654321U;

/// Of rank, call and element alone, and so spaced that no mix of older contributions has the right sum. Sums are exact.
float element(int ranks, int rank, int call, std::size_t index) {
  return static_cast<float>((static_cast<std::size_t>(call * ranks + rank) << 10) + index + 1);
}

std::string in_braces(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "{" + text + "}";
}

/// A scenario's calls over one subject.
class Calls final : public Program {
 public:
  Calls(Subject& subject, Machine& machine, bool may_fail) : subject_(subject), machine_(machine), may_fail_(may_fail) {
    for (int i = 0; i < 2 * subject.ranks(); ++i) buffers_.emplace_back(subject.max_bytes(), 0);
    if (!subject.shares_user_buffers) return;
    for (int rank = 0; rank < subject.ranks(); ++rank) {
      machine.share("input of rank " + std::to_string(rank), input(rank), subject.max_bytes());
      machine.share("output of rank " + std::to_string(rank), output(rank, false), subject.max_bytes());
    }
  }

  /// Rank `missing` makes only `calls_of_missing` calls.
  void set(const Scenario& scenario, int missing, int calls_of_missing) {
    missing_ = missing;
    calls_of_missing_ = calls_of_missing;
    scenario_ = scenario;
    calls_.clear();
    for (const CallShape& shape : scenario) {
      HostCall call{.form = Form::f32,
                    .blocks = shape.blocks,
                    .chunk_bytes = shape.chunk_bytes,
                    .inputs = {},
                    .outputs = {},
                    .count = shape.count};
      for (int rank = 0; rank < subject_.ranks(); ++rank) {
        call.inputs.push_back(input(rank));
        call.outputs.push_back(output(rank, shape.in_place));
      }
      calls_.push_back(std::move(call));
    }
    subject_.forget_failures();
  }

  int ranks() const override { return subject_.ranks(); }
  int calls(int rank) const override {
    // Peers that are late may still be at the buffers of a rank that has given up: it leaves them alone from then on.
    if (subject_.shares_user_buffers && subject_.reports()[rank].present != 0) return 0;
    return rank == missing_ ? calls_of_missing_ : static_cast<int>(calls_.size());
  }
  int blocks(int call) const override { return calls_[call].blocks; }
  void block(int rank, int call, int block) override { subject_.run(calls_[call], rank, block); }

  void before(int rank, int call) override {
    for (std::size_t i = 0; i < calls_[call].count; ++i) {
      machine_.stream_store(rank, input(rank) + 4 * i, std::bit_cast<std::uint32_t>(element(ranks(), rank, call, i)));
      if (!scenario_[call].in_place) machine_.stream_store(rank, output(rank, false) + 4 * i, kNobodyWrote);
    }
  }

  std::optional<Failure> after(int rank, int call) override {
    bool failed = false;
    for (const FailureReport& report : subject_.reports()) {
      if (report.present == 0) continue;
      if (!may_fail_ || report.cause == kOverlap) return Failure{Found::reported, describe_failure(report)};
      failed = true;
    }
    for (std::size_t i = 0; i < calls_[call].count; ++i) {
      float expected = 0;
      for (int r = 0; r < ranks(); ++r) expected += element(ranks(), r, call, i);
      const auto got = std::bit_cast<float>(machine_.stream_load(rank, output(rank, scenario_[call].in_place) + 4 * i));
      if (got == expected || (failed && std::isnan(got))) continue;
      return Failure{Found::wrong_sum, "rank " + std::to_string(rank) + ", call " + std::to_string(call) + ", element " +
                                           std::to_string(i) + ": got " + std::to_string(got) + ", expected " +
                                           std::to_string(expected)};
    }
    return {};
  }

  std::string reports() override {
    std::string text;
    for (const FailureReport& report : subject_.reports()) {
      if (report.present != 0) text += "\n  report: " + describe_failure(report);
    }
    return text;
  }

 private:
  char* input(int rank) { return buffers_[2 * rank].data(); }
  char* output(int rank, bool in_place) { return in_place ? input(rank) : buffers_[2 * rank + 1].data(); }

  Subject& subject_;
  Machine& machine_;
  bool may_fail_;
  int missing_ = -1, calls_of_missing_ = 0;
  Scenario scenario_;
  std::vector<HostCall> calls_;
  std::vector<HostMemory> buffers_;
};

struct Bench {
  Machine machine;
  Calls calls;
  Exploration result;

  Bench(Subject& subject, Machine::Options options) : machine(options), calls(subject, machine, options.impatience) {
    subject.share_with(machine);
  }

  /// True: something is wrong.
  bool run(const Subject& subject, const Scenario& scenario, Choices& choices, const std::function<std::string()>& how,
           int missing = -1, int calls_of_missing = 0) {
    calls.set(scenario, missing, calls_of_missing);
    std::optional<Failure> failure = machine.run(calls, choices);
    ++result.runs;
    result.steps += machine.steps();
    if (!failure) return false;
    failure->text = subject.name() + ", " + std::to_string(subject.ranks()) + " ranks, " + how() + ", calls " +
                    to_string(scenario) + "\n" + failure->text;
    result.failure = std::move(failure);
    return true;
  }
};

}  // namespace

FamilySubject::FamilySubject(CandidateId id, int ranks, std::uint64_t start_epoch)
    : Subject(std::string(info_of(id).name), ranks, kMaxBytes),
      family_(id, ranks, kMaxBytes, [this](int rank) { return bounds(rank); }) {
  const CandidateInfo& info = info_of(id);
  family_.start_at(start_epoch);
  most_blocks = std::min(most_blocks, family_.most_blocks());
  shares_user_buffers = info.staging == Staging::none;
  whole_units = shares_user_buffers || info.algorithm == Algorithm::copies || info.algorithm == Algorithm::ring;
  may_be_in_place = id != CandidateId::p2p_one_shot_direct;
}

void FamilySubject::share_with(Machine& machine) {
  const std::vector<HostMemory*> memory = family_.shared_memory();
  machine.share("host", memory[0]->data(), memory[0]->bytes());
  for (int rank = 0; rank < ranks(); ++rank) {
    HostMemory& control = *memory[1 + rank];
    HostMemory& device = *memory[1 + ranks() + rank];
    machine.share("control of rank " + std::to_string(rank), control.data(), control.bytes(), rank);
    machine.share("slab of rank " + std::to_string(rank), device.data(), device.bytes());
  }
}

std::string to_string(const Scenario& scenario) {
  std::string text;
  for (const CallShape& call : scenario) {
    text += (text.empty() ? "{" : ", {") + std::to_string(call.count) + ", " + std::to_string(call.blocks) +
            (call.in_place ? ", true" : ", false") + ", " + std::to_string(call.chunk_bytes) + "}";
  }
  return text;
}

Scenario random_scenario(const Subject& subject, RandomChoices& choices) {
  const int most = static_cast<int>(subject.max_bytes() / 4);
  Scenario scenario(static_cast<std::size_t>(3 + choices.below(4)));
  const bool in_place = subject.may_be_in_place && choices.below(4) == 0;
  for (CallShape& call : scenario) {
    switch (choices.below(4)) {
      case 0:
        call.count = 1;
        break;
      case 1:
        call.count = static_cast<std::size_t>(1 + choices.below(4 * subject.ranks()));
        break;
      case 2:
        call.count = static_cast<std::size_t>(1 + choices.below(most));
        break;
      case 3:
        call.count = static_cast<std::size_t>(most);
        break;
    }
    if (subject.whole_units) call.count = std::min<std::size_t>((call.count + 3) / 4 * 4, most);
    call.blocks = 1 + choices.below(subject.most_blocks);
    call.in_place = in_place;
    call.chunk_bytes = static_cast<std::size_t>(16 * (1 + choices.below(8)));
  }
  return scenario;
}

Exploration explore_random(Subject& subject, const Scenario& scenario, std::uint64_t first, std::uint64_t count,
                           Machine::Options options) {
  Bench bench(subject, options);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RandomChoices choices(seed);
    const Scenario calls = scenario.empty() ? random_scenario(subject, choices) : scenario;
    const int missing = options.impatience && seed % 3 == 2 ? choices.below(subject.ranks()) : -1;
    const int calls_of_missing = choices.below(static_cast<int>(calls.size()));
    if (bench.run(
            subject, calls, choices, [&] { return "seed " + std::to_string(seed); }, missing, calls_of_missing))
      break;
  }
  return bench.result;
}

Exploration explore_all(Subject& subject, const Scenario& scenario, int deviations, std::uint64_t most_runs,
                        Machine::Options options) {
  Bench bench(subject, options);
  AllChoices choices(deviations);
  do {
    if (bench.run(subject, scenario, choices, [&] { return "prefix " + in_braces(choices.prefix()); })) {
      bench.result.prefix = choices.prefix();
      return bench.result;
    }
    bench.result.complete = !choices.advance();
  } while (!bench.result.complete && bench.result.runs < most_runs);
  return bench.result;
}

Exploration explore_prefix(Subject& subject, const Scenario& scenario, std::vector<int> prefix, Machine::Options options) {
  Bench bench(subject, options);
  AllChoices choices(std::move(prefix));
  bench.run(subject, scenario, choices, [&] { return "prefix " + in_braces(choices.prefix()); });
  return bench.result;
}

}  // namespace artune::model
