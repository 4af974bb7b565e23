// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a soak. One of them stands between two calls of a rank: it checks the output of the call before and
// makes the input of the next, in other buffers, so that a call costs two kernels and not three.
//
//   launch_step(nothing, fill(0)); call(0); launch_step(check(0), fill(1)); call(1); ... launch_step(check(n), nothing);
//
// An element is f(seed and number of the call, replay, rank, index): the check makes every rank's anew and sums them in
// the order that the candidate's class prescribes, so all classes are compared bit by bit. Asynchronous on `stream`, whose
// device must be current.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "protocol/elements.cuh"

namespace artune::soak {

/// Poisoned before a call on both sides of its output, and looked at after it.
inline constexpr std::size_t kGuardBytes = 64;

/// In which order contributions are added, and where they are rounded.
enum class SumOrder : std::uint8_t {
  ranks,      ///< rank-order-fp32, wire-bf16-in
  ranks_out,  ///< wire-bf16-in-out: the sum is rounded to the wire's type too
  islands,    ///< hierarchical-fp32
  ring,       ///< ring: a piece's sum goes round and is rounded at every step
};

/// Of one rank. Device memory, cleared before the first call.
struct WrongRecord {
  enum What : std::uint32_t { element = 1, guard_before = 2, guard_after = 3 };
  std::uint32_t count;   ///< elements and guard bytes that were wrong, over all calls
  std::uint32_t call;    ///< the first one's: number of the call,
  std::uint32_t replay;  ///< of its graph
  std::uint32_t what;
  std::uint64_t index;          ///< element; a guard's byte, counted from the message
  std::uint32_t got, expected;  ///< bits
};

struct Fill {
  void* input = nullptr;   ///< nullptr = nothing to make
  void* output = nullptr;  ///< its guards and itself are poisoned; in place only the guards
  std::uint32_t count = 0;
  std::uint32_t salt = 0;  ///< of seed and call
  Form form = Form::f32;
};

struct Check {
  const void* output = nullptr;  ///< nullptr = nothing to check
  std::uint32_t count = 0;
  std::uint32_t salt = 0;
  std::uint32_t call = 0;
  std::uint32_t piece = 0;  ///< elements of one launch, for SumOrder::ring
  Form form = Form::f32;
  SumOrder order = SumOrder::ranks;
};

struct Step {
  Check check;
  Fill fill;
  std::int32_t rank = 0, ranks = 0, island_size = 0;
  const std::uint32_t* replay = nullptr;  ///< device memory of this rank
  WrongRecord* record = nullptr;          ///< device memory of this rank
  std::uint32_t* progress = nullptr;      ///< mapped host memory; gets another value, or nullptr = not this time
};

void launch_step(const Step& step, int most_blocks, cudaStream_t stream);
/// ++*replay
void launch_next_replay(std::uint32_t* replay, cudaStream_t stream);
/// Copies a record to mapped host memory. By a kernel: copy engines have queues of their own, which ranks share.
void launch_show(const WrongRecord* record, WrongRecord* shown, cudaStream_t stream);

}  // namespace artune::soak
