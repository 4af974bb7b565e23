// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences of fused and plain calls of one family on the model of a weak memory (model/): the rows' boards are memory that
// the blocks of a rank share. f16; the model's groups are of two vectors, so that a row of 64 elements has four.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fused/fused_packets.cuh"
#include "fused/host_board.hpp"
#include "fused/host_fused.hpp"
#include "model/choices.hpp"
#include "model/machine.hpp"

namespace artune::model {

/// One block of one fused call.
struct RowPlace {
  const FusedArguments& arguments;
  Lane lane;
  Entry entry;
  HostBoard board;
};
using RowBody = std::function<void(const RowPlace&)>;

struct RowCall {
  bool fused = true;
  std::uint32_t rows = 1, hidden = 64;  ///< a plain call: rows * hidden elements
  int blocks = 1, members = 1;
  bool in_place = false;
};
using RowCalls = std::vector<RowCall>;

struct RowExploration {
  std::uint64_t runs = 0;
  std::optional<Failure> failure;  ///< its text names the seed
};

class RowSubject {
 public:
  /// `body` empty: HostFused's.
  RowSubject(CandidateId id, int ranks, std::uint64_t start_epoch, RowBody body = {});

  /// Seeds first .. first + count - 1; no calls: random ones for every seed.
  RowExploration explore(const RowCalls& calls, std::uint64_t first, std::uint64_t count, Machine::Options options = {});

 private:
  class Calls;

  int ranks_;
  std::vector<FailureReport> reports_;
  std::uint32_t abort_ = 0;
  HostFamily family_;
  HostFused fused_;
  RowBody body_;
};

}  // namespace artune::model
