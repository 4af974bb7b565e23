// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// HostGroup: the same protocol bodies that the GPU runs, on CPU threads (one per rank and block). A machine
// without a GPU checks real sums with it, and ThreadSanitizer sees every access.
//
//   HostGroup group(4, /*max_bytes=*/1 << 20);
//   Status done = group.all_reduce(CandidateId::p2p_one_shot_ll, {.blocks = 2}, DType::bf16, inputs, outputs, count);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/candidate.hpp"
#include "base/result.hpp"
#include "base/words.hpp"
#include "paths/menu.hpp"

namespace artune {

class HostGroup {
 public:
  /// `max_bytes`: largest message of one launch; larger ones become several launches, as on the GPU.
  HostGroup(int ranks, std::size_t max_bytes, std::chrono::milliseconds timeout = std::chrono::seconds(10));
  ~HostGroup();

  /// inputs[r] and outputs[r]: `count` elements of `dtype` each, element-aligned; outputs[r] == inputs[r] is in place.
  /// Epochs go on from call to call. Every candidate of the menu but `nccl` and what these ranks can't have
  /// (Reason::unavailable). `lossy_wire`: f32 travels as bf16.
  /// Reason::hang with rank, peer, block, expected and seen when a rank waits longer than `timeout`.
  Status all_reduce(CandidateId candidate, const Geometry& geometry, DType dtype, const std::vector<const void*>& inputs,
                    const std::vector<void*>& outputs, std::size_t count, bool lossy_wire = false);

  /// For tests of the wraps: all families go on from this epoch. Only before the first call.
  void start_at_epoch(std::uint64_t epoch);

  /// For tests of bounded waiting: this rank doesn't take part from now on.
  void leave_out(int rank);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace artune
