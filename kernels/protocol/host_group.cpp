// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/host_group.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "protocol/failure_text.hpp"
#include "protocol/host_family.hpp"

namespace artune {
namespace {

// A block is a whole thread here: more of them than this only wait for a core.
constexpr int kMostHostBlocks = 8;

/// Runs body(rank, block) on a thread each and waits for all: ranks are as concurrent as GPUs, blocks as blocks.
template <typename Body>
void on_threads(int ranks, int left_out, int blocks, const Body& body) {
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(ranks * blocks));
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == left_out) continue;
    for (int block = 0; block < blocks; ++block) threads.emplace_back([&body, rank, block] { body(rank, block); });
  }
}

}  // namespace

struct HostGroup::State {
  int ranks;
  std::size_t max_bytes;
  std::uint64_t timeout_ns;
  std::uint64_t first_epoch = 0;
  std::array<std::unique_ptr<HostFamily>, kMenuSize> families;
  std::vector<FailureReport> reports;
  std::uint32_t group_abort = 0;
  int left_out = -1;

  /// Made when it is first used: most callers try one or two of many.
  HostFamily& family(CandidateId id) {
    auto& family = families[static_cast<std::size_t>(id)];
    if (family == nullptr) {
      const auto bounds = [&](int rank) { return Bounds{nullptr, &reports[rank], &group_abort, timeout_ns}; };
      family = std::make_unique<HostFamily>(id, ranks, max_bytes, bounds);
      family->start_at(first_epoch);
    }
    return *family;
  }
};

HostGroup::HostGroup(int ranks, std::size_t max_bytes, std::chrono::milliseconds timeout) : state_(std::make_unique<State>()) {
  state_->ranks = ranks;
  state_->max_bytes = max_bytes;
  state_->timeout_ns = static_cast<std::uint64_t>(timeout / std::chrono::nanoseconds(1));
  state_->reports.resize(static_cast<std::size_t>(ranks));
}
HostGroup::~HostGroup() = default;

void HostGroup::start_at_epoch(std::uint64_t epoch) { state_->first_epoch = epoch; }

void HostGroup::leave_out(int rank) { state_->left_out = rank; }

Status HostGroup::all_reduce(CandidateId candidate, const Geometry& geometry, DType dtype, const std::vector<const void*>& inputs,
                             const std::vector<void*>& outputs, std::size_t count, bool lossy_wire) {
  const CandidateInfo& info = info_of(candidate);
  if (info.path == Path::nccl) return Error{Reason::unavailable, "nccl has no protocol of ours to run on CPU threads"};
  const AdmitFacts facts{.ranks = state_->ranks, .peer_access = true};
  if (std::string why = refusal(info, facts); !why.empty()) return Error{Reason::unavailable, std::string(info.name) + " " + why};
  CandidateId actual = candidate;
  const bool in_place = std::equal(inputs.begin(), inputs.end(), outputs.begin(), [](const void* in, void* out) { return in == out; });
  if (candidate == CandidateId::p2p_one_shot_direct && in_place) actual = CandidateId::p2p_two_shot_direct;
  HostFamily& family = state_->family(actual);
  const std::size_t most = info.staging == Staging::none ? count : family.max_bytes() / element_bytes(dtype);
  HostCall call{.form = lossy_wire ? Form::f32_over_bf16 : form_of(dtype),
                .blocks = std::clamp(geometry.blocks, 1, std::min(kMostHostBlocks, family.most_blocks())),
                .chunk_bytes = geometry.chunk_bytes,
                .inputs = std::vector<const void*>(inputs.size()),
                .outputs = std::vector<void*>(outputs.size())};
  for (std::size_t first = 0; first < count; first += most) {
    call.count = std::min(most, count - first);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      call.inputs[rank] = static_cast<const char*>(inputs[rank]) + first * element_bytes(dtype);
      call.outputs[rank] = static_cast<char*>(outputs[rank]) + first * element_bytes(dtype);
    }
    on_threads(state_->ranks, state_->left_out, call.blocks, [&](int rank, int block) { family.run(call, rank, block); });
    const FailureReport* failure = first_cause(
        state_->ranks, [&](int rank) { return &state_->reports[rank]; }, [](const FailureReport& report) { return report.present != 0; });
    if (failure != nullptr) return Error{Reason::hang, describe_failure(*failure)};
  }
  return Ok{};
}

}  // namespace artune
