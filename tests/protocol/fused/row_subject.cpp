// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/row_subject.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fused/reference.hpp"
#include "protocol/failure_text.hpp"

namespace artune::model {
namespace {

constexpr std::uint32_t kMostRows = 3, kMostModelHidden = 64;
constexpr std::size_t kMostBytes = kMostRows * kMostModelHidden * 2;
constexpr std::uint16_t kNobodyWrote = 0x1234;
constexpr int kResidual = 20, kWeight = 21;

/// Small integers, so that sums are exact; of call, tensor and index alone.
std::uint16_t element(int call, int tensor, std::size_t index) {
  std::uint64_t hash = (static_cast<std::uint64_t>(call) << 40) ^ (static_cast<std::uint64_t>(tensor) << 32) ^ index;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
  return float_to_f16(static_cast<float>(static_cast<int>(hash >> 58) - 31));
}

std::string to_string(const RowCalls& calls) {
  std::string text;
  for (const RowCall& call : calls) {
    text += (text.empty() ? "{" : ", {") + std::string(call.fused ? "true" : "false") + ", " + std::to_string(call.rows) + ", " +
            std::to_string(call.hidden) + ", " + std::to_string(call.blocks) + ", " + std::to_string(call.members) +
            (call.in_place ? ", true}" : ", false}");
  }
  return text;
}

RowCalls random_calls(RandomChoices& choices) {
  RowCalls calls(static_cast<std::size_t>(2 + choices.below(4)));
  for (RowCall& call : calls) {
    call.fused = choices.below(4) > 0;
    call.rows = static_cast<std::uint32_t>(1 + choices.below(kMostRows));
    call.hidden = static_cast<std::uint32_t>(8 * (1 + choices.below(kMostModelHidden / 8)));
    call.blocks = 1 + choices.below(kMostModelBlocks);
    call.members = call.blocks > 1 && choices.below(3) > 0 ? call.blocks : 1;
    call.in_place = choices.below(3) == 0;
  }
  return calls;
}

}  // namespace

class RowSubject::Calls final : public Program {
 public:
  Calls(RowSubject& subject, Machine& machine, bool may_fail) : subject_(subject), machine_(machine), may_fail_(may_fail) {
    for (int i = 0; i < 5 * subject.ranks_; ++i) buffers_.emplace_back(kMostBytes, 0);
  }

  void set(const RowCalls& calls, int missing, int calls_of_missing) {
    calls_ = calls;
    missing_ = missing;
    calls_of_missing_ = calls_of_missing;
    subject_.reports_.assign(subject_.reports_.size(), FailureReport{});
    subject_.abort_ = 0;
  }

  int ranks() const override { return subject_.ranks_; }
  int calls(int rank) const override { return rank == missing_ ? calls_of_missing_ : static_cast<int>(calls_.size()); }
  int blocks(int call) const override { return calls_[call].blocks; }

  void block(int rank, int number, int block) override {
    const RowCall& call = calls_[number];
    HostNormCall norm{.dtype = DType::f16,
                      .blocks = call.blocks,
                      .members = call.members,
                      .rows = call.rows,
                      .hidden = call.hidden,
                      .number = static_cast<std::uint64_t>(number),
                      .inputs = {},
                      .residuals = {},
                      .weights = {},
                      .outputs = {},
                      .residual_outs = {}};
    HostCall plain{.form = Form::f16, .blocks = call.blocks, .inputs = {}, .outputs = {}, .count = count(call)};
    for (int r = 0; r < ranks(); ++r) {
      norm.inputs.push_back(tensor(r, 0));
      norm.residuals.push_back(tensor(r, 1));
      norm.weights.push_back(tensor(r, 2));
      norm.outputs.push_back(output(call, r));
      norm.residual_outs.push_back(residual_out(call, r));
    }
    plain.inputs = norm.inputs;
    plain.outputs = norm.outputs;
    if (!call.fused) return subject_.family_.run(plain, rank, block);
    if (!subject_.body_) return subject_.fused_.run(norm, rank, block);
    FusedArguments arguments{norm_arguments(norm, rank), subject_.family_.one_shot(rank)};
    arguments.sum.input = norm.inputs[rank];
    arguments.sum.count = count(call);
    const Lane lane{0, 1, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(call.blocks)};
    const RowLane at = RowLane::of(lane, arguments.norm.members);
    const Entry entry = load_entry(arguments.sum.control);
    auto* boards = reinterpret_cast<HostBoardMemory*>(subject_.fused_.boards()[rank].data());
    subject_.body_({arguments, lane, entry, {boards + at.cluster, at.member, at.members, norm.number}});
  }

  void before(int rank, int number) override {
    const RowCall& call = calls_[number];
    const auto fill = [&](void* to, int tensor) {
      for (std::size_t i = 0; i < count(call); i += 2) {
        const std::uint32_t low = tensor < 0 ? kNobodyWrote : element(number, tensor, i),
                            high = tensor < 0 ? kNobodyWrote : element(number, tensor, i + 1);
        machine_.stream_store(rank, static_cast<char*>(to) + 2 * i, low | high << 16);
      }
    };
    fill(output(call, rank), -1);
    fill(residual_out(call, rank), -1);
    fill(tensor(rank, 0), rank);
    fill(tensor(rank, 1), kResidual);
    fill(tensor(rank, 2), kWeight);
  }

  std::optional<Failure> after(int rank, int number) override {
    bool failed = false;
    for (const FailureReport& report : subject_.reports_) {
      if (report.present == 0) continue;
      if (!may_fail_ || report.cause == kOverlap) return Failure{Found::reported, describe_failure(report)};
      failed = true;
    }
    const RowCall& call = calls_[number];
    Halves sum, residual, weight;
    for (std::size_t i = 0; i < count(call); ++i) {
      float value = 0;
      for (int r = 0; r < ranks(); ++r) value += f16_to_float(element(number, r, i));
      sum.push_back(float_to_f16(value));
      residual.push_back(element(number, kResidual, i));
      if (i < call.hidden) weight.push_back(element(number, kWeight, i));
    }
    Normed expected{sum, {}};
    if (call.fused)
      expected = normed(DType::f16, {.rows = call.rows, .hidden = call.hidden, .group = kRowLanes}, sum, residual, weight);
    std::optional<Failure> wrong = compare(rank, number, "output", output(call, rank), expected.output, failed);
    if (!wrong && call.fused)
      wrong = compare(rank, number, "updated residual", residual_out(call, rank), expected.residual, failed);
    return wrong;
  }

  std::string reports() override {
    std::string text;
    for (const FailureReport& report : subject_.reports_) {
      if (report.present != 0) text += "\n  report: " + describe_failure(report);
    }
    return text;
  }

 private:
  static std::size_t count(const RowCall& call) { return std::size_t{call.rows} * call.hidden; }
  char* tensor(int rank, int which) { return buffers_[5 * rank + which].data(); }
  char* output(const RowCall& call, int rank) { return tensor(rank, call.in_place ? 0 : 3); }
  char* residual_out(const RowCall& call, int rank) { return tensor(rank, call.in_place ? 1 : 4); }

  std::optional<Failure> compare(int rank, int number, const char* what, const char* from, const Halves& expected, bool failed) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::uint32_t word = machine_.stream_load(rank, from + i / 2 * 4);
      const float got = f16_to_float(static_cast<std::uint16_t>(word >> (i % 2 * 16))), wanted = f16_to_float(expected[i]);
      if (got == wanted || (std::isnan(got) && (failed || std::isnan(wanted)))) continue;
      return Failure{Found::wrong_sum, "rank " + std::to_string(rank) + ", call " + std::to_string(number) + ", " + what + " " +
                                           std::to_string(i) + ": got " + std::to_string(got) + ", expected " +
                                           std::to_string(wanted)};
    }
    return {};
  }

  RowSubject& subject_;
  Machine& machine_;
  bool may_fail_;
  int missing_ = -1, calls_of_missing_ = 0;
  RowCalls calls_;
  std::vector<HostMemory> buffers_;
};

RowSubject::RowSubject(CandidateId id, int ranks, std::uint64_t start_epoch, RowBody body)
    : ranks_(ranks),
      reports_(static_cast<std::size_t>(ranks)),
      family_(id, ranks, kMostBytes,
              [this](int rank) {
                return Bounds{nullptr, &reports_[rank], &abort_, 1'000'000'000};
              }),
      fused_(family_, ranks),
      body_(std::move(body)) {
  family_.start_at(start_epoch);
}

RowExploration RowSubject::explore(const RowCalls& calls, std::uint64_t first, std::uint64_t count, Machine::Options options) {
  Machine machine(options);
  const std::vector<HostMemory*> memory = family_.shared_memory();
  machine.share("host", memory[0]->data(), memory[0]->bytes());
  for (int rank = 0; rank < ranks_; ++rank) {
    HostMemory& control = *memory[1 + rank];
    HostMemory& device = *memory[1 + ranks_ + rank];
    HostMemory& boards = fused_.boards()[rank];
    machine.share("control of rank " + std::to_string(rank), control.data(), control.bytes(), rank);
    machine.share("slab of rank " + std::to_string(rank), device.data(), device.bytes());
    machine.share("boards of rank " + std::to_string(rank), boards.data(), boards.bytes(), rank);
  }
  Calls program(*this, machine, options.impatience);
  RowExploration done;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RandomChoices choices(seed);
    const RowCalls these = calls.empty() ? random_calls(choices) : calls;
    const int missing = options.impatience && seed % 3 == 2 ? choices.below(ranks_) : -1;
    program.set(these, missing, choices.below(static_cast<int>(these.size())));
    done.failure = machine.run(program, choices);
    ++done.runs;
    if (!done.failure) continue;
    done.failure->text = "seed " + std::to_string(seed) + ", " + std::to_string(ranks_) + " ranks, calls " + to_string(these) +
                         "\n" + done.failure->text;
    return done;
  }
  return done;
}

}  // namespace artune::model
