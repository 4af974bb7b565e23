// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One protocol family in plain memory, and its bodies as one CPU thread (or fiber) runs them: a block of a rank. HostGroup
// puts threads around it, the model of a weak memory (tests/protocol/model) a scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/candidate.hpp"
#include "comm/wiring.hpp"
#include "paths/menu.hpp"
#include "protocol/elements.cuh"

namespace artune {

/// Memory on a cache line, filled as the GPU's slabs are.
class HostMemory {
 public:
  HostMemory(std::size_t bytes, unsigned char fill) : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)) {
    if (fill != 0) {
      for (Line& line : lines_) {
        for (unsigned char& byte : line.bytes) byte = fill;
      }
    }
  }
  char* data() { return reinterpret_cast<char*>(lines_.data()); }
  std::size_t bytes() const { return lines_.size() * sizeof(Line); }

 private:
  struct alignas(128) Line {
    unsigned char bytes[128] = {};
  };
  std::vector<Line> lines_;
};

/// One launch: what every rank reduces.
struct HostCall {
  Form form = Form::f32;
  int blocks = 1;
  std::size_t chunk_bytes = 0;         ///< host/copy-engine
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::size_t count = 0;               ///< elements, at most max_bytes() of them
};

class HostFamily {
 public:
  /// Any candidate of the menu but nccl. `bounds` of a rank without its control, which is this family's.
  HostFamily(CandidateId id, int ranks, std::size_t max_bytes, const std::function<Bounds(int rank)>& bounds);

  CandidateId id() const { return id_; }
  std::size_t max_bytes() const { return max_bytes_; }
  /// How many blocks the bodies may be called with: one where copies order the steps.
  int most_blocks() const;

  /// As if `epoch` calls had been made. Before the first call.
  void start_at(std::uint64_t epoch);

  /// The part of block `block` of rank `rank` in one call. All (rank, block) of a call run concurrently, and a rank's next
  /// call only after all its blocks have ended (stream order).
  void run(const HostCall& call, int rank, int block);

  /// One-shot candidates that stage: what a rank's launches are told, but for the call's own fields.
  const OneShotArguments& one_shot(int rank) const { return one_shot_[rank]; }

  /// All memory that ranks share, for a model that wants to know it.
  std::vector<HostMemory*> shared_memory();

 private:
  template <Form F>
  void run_as(const HostCall& call, int rank, int block);
  template <Form F>
  void run_push(const HostCall& call, int rank);
  template <Form F>
  void run_staged(const HostCall& call, int rank);
  template <Form F>
  void run_ring(const HostCall& call, int rank);

  CandidateId id_;
  int ranks_;
  std::size_t max_bytes_;
  SlabLayout layout_;
  std::vector<HostMemory> controls_, device_;
  HostMemory host_;
  std::vector<Bounds> bounds_;
  std::vector<OneShotArguments> one_shot_;
  std::vector<TwoShotArguments> two_shot_;
  std::vector<DirectArguments> direct_;
  std::vector<HierarchicalArguments> hierarchical_;
  std::vector<CopyWiring> copies_;
};

}  // namespace artune
