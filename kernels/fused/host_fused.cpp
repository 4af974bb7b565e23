// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "fused/host_fused.hpp"

#include "fused/fused_flag.cuh"
#include "fused/fused_packets.cuh"
#include "fused/host_board.hpp"

namespace artune {
namespace {

/// As many vectors of a row as one thread may have here: all of a group's lanes times these.
constexpr int kGroupsEach = kMostGroups;

template <template <Form> class Format, Form F>
void fused_packets(const FusedArguments& arguments, const Lane& lane, const Entry& entry, const HostBoard& board) {
  using Wire = Format<F>;
  const bool alive = may_run(entry);
  FusedPackets<Format, F, 0, kGroupsEach> body(arguments, lane);
  const auto call = Wire::call(arguments.sum.control, entry.epoch);
  EpochStep step;
  if (alive) {
    body.send(call);
    clear_receive_areas<Wire, 0>(arguments.sum, lane, call);
    step.start(arguments.sum.control, lane.blocks, entry.epoch);
  }
  body.receive(call, alive, board);
  if (!alive) return;
  if constexpr (Wire::kClears) {
    if (step.is_last_block(lane.blocks)) store_before(arguments.sum.control, Wire::after(call, body.packets()));
  }
  step.finish(arguments.sum.control, lane.blocks, entry.epoch, arguments.sum.bounds, arguments.sum.rank);
}

template <Form F>
void fused_flag(const FusedArguments& arguments, const Lane& lane, const Entry& entry, const HostBoard& board) {
  const bool runs = may_run(entry);
  bool alive = runs;
  FusedFlag<F, 0, kGroupsEach> body(arguments, lane);
  EpochStep step;
  if (runs) {
    body.send(entry.epoch);
    body.raise(entry.epoch);
    step.start(arguments.sum.control, lane.blocks, entry.epoch);
    alive = body.wait(entry.epoch);
  }
  body.receive(entry.epoch, alive, board);
  if (runs) step.finish(arguments.sum.control, lane.blocks, entry.epoch, arguments.sum.bounds, arguments.sum.rank);
}

template <Form F>
void run_as(const CandidateInfo& info, const FusedArguments& arguments, const Lane& lane, const HostBoard& board,
            const Entry& entry) {
  switch (info.protocol) {
    case Protocol::ll:
      return fused_packets<Ll, F>(arguments, lane, entry, board);
    case Protocol::sentinel:
      return fused_packets<Sentinel, F>(arguments, lane, entry, board);
    case Protocol::flag:
      return fused_flag<F>(arguments, lane, entry, board);
    case Protocol::none:
      return;
  }
}

template <DType D>
void norm_of(const NormArguments& norm, const void* sums) {
  const Lane lane{0, 1, 0, 1};
  RowNorm<D, kGroupsEach> rows(norm, RowLane::of(lane, 1));
  rows.load_weight();
  HostBoardMemory memory{};
  const HostBoard board{&memory, 0, 1, 0};
  for (std::uint32_t row = 0; row < norm.rows; ++row) {
    rows.load_residual(row);
    rows.run(row, row, board,
             [&](int, int, std::uint64_t unit, std::uint32_t(&words)[kRowWords]) { rows.load(sums, unit, words); });
  }
}

}  // namespace

NormArguments norm_arguments(const HostNormCall& call, int rank) {
  return {.residual = call.residuals[rank],
          .weight = call.weights[rank],
          .output = call.outputs[rank],
          .residual_out = call.residual_outs[rank],
          .rows = call.rows,
          .hidden = call.hidden,
          .inverse_hidden = 1.0F / static_cast<float>(call.hidden),
          .epsilon = call.epsilon,
          .one_plus = static_cast<std::uint16_t>(call.one_plus),
          .members = static_cast<std::uint16_t>(call.members)};
}

void host_rms_norm(const HostNormCall& call, int rank) {
  const NormArguments norm = norm_arguments(call, rank);
  if (call.dtype == DType::f16) return norm_of<DType::f16>(norm, call.inputs[rank]);
  norm_of<DType::bf16>(norm, call.inputs[rank]);
}

HostFused::HostFused(HostFamily& family, int ranks) : family_(family) {
  for (int rank = 0; rank < ranks; ++rank) boards_.emplace_back(kMostClusters * sizeof(HostBoardMemory), 0);
}

void HostFused::run(const HostNormCall& call, int rank, int block) {
  FusedArguments arguments{norm_arguments(call, rank), family_.one_shot(rank)};
  arguments.sum.input = call.inputs[rank];
  arguments.sum.count = std::uint64_t{call.rows} * call.hidden;
  const Lane lane{0, 1, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(call.blocks)};
  const RowLane at = RowLane::of(lane, arguments.norm.members);
  const Entry entry = load_entry(arguments.sum.control);
  const HostBoard board{reinterpret_cast<HostBoardMemory*>(boards_[rank].data()) + at.cluster, at.member, at.members,
                        call.number};
  if (!may_run(entry)) note_overlap(entry, arguments.sum.bounds, rank, lane.block);
  const CandidateInfo& info = info_of(family_.id());
  if (call.dtype == DType::f16) return run_as<Form::f16>(info, arguments, lane, board, entry);
  run_as<Form::bf16>(info, arguments, lane, board, entry);
}

}  // namespace artune
