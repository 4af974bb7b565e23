// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Group: the ranks of one process that reduce together, with the memory, communicators and streams of every candidate.
// The C ABI (comm/artune.cpp) and the tool's GpuMachine both drive it; neither the menu nor dispatch knows of CUDA.
//
//   auto group = Group::create({.devices = {0, 1}});
//   if (const std::string why = group->unavailable(CandidateId::p2p_one_shot_ll); why.empty()) {
//     const Call call{CandidateId::p2p_one_shot_ll, {8, 512}};
//     group->begin_layer(call, buffers);                       // {in, out} of every rank
//     for (int r = 0; r < 2; ++r) group->enqueue(r, call, buffers[r].input, buffers[r].output, n, DType::bf16, stream[r]);
//     group->end_layer(call);
//   }
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "comm/memory.hpp"
#include "comm/slab_plan.hpp"
#include "comm/wiring.hpp"
#include "fused/fused_menu.hpp"
#include "paths/menu.hpp"
#include "paths/nccl_path.hpp"
#include "protocol/arguments.hpp"

namespace artune {

struct GroupOptions {
  std::vector<int> devices;                 ///< CUDA ordinal of each rank; a device may repeat (ranks sharing a GPU)
  std::size_t max_memory_bytes = kDefaultMaxMemoryBytes;
  BytesPerCandidate largest_message{};      ///< see SlabRequest
  double timeout_s = 600;                   ///< of one wait on the device; 0 = for ever
  std::string nccl_file;                    ///< empty = ARTUNE_NCCL_LIB, then the loader's search
  bool use_nccl = true;
  std::vector<int> nccl_max_ctas = {0};     ///< one communicator a limit; 0 = NCCL's own choice
  std::string peer_refusal;                 ///< not empty: p2p and ce are not to be used, and why
  std::uint64_t first_epoch = 0;            ///< for tests of the wraps: what all counters start at
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

struct Call {
  CandidateId candidate = CandidateId::nccl;
  Geometry geometry;
  bool lossy_wire = false;                  ///< f32 elements go over the link as bf16; only where lossy_wire_served()
};

struct RankBuffers {
  const void* input;
  void* output;
};

/// What follows a sum of rows x hidden elements of 16 bits: see fused/rms_norm.cuh. hidden is kLeastHidden to kMostHidden and
/// a multiple of kVectorElements.
struct NormCall {
  std::uint32_t rows = 1, hidden = 0;
  float epsilon = 0;
  bool one_plus_weight = false;             ///< Gemma's 1 + w
};

/// Of one rank, 16-byte aligned, rows x hidden elements, `weight` hidden. `residual_out` may be `residual`.
struct NormBuffers {
  const void* residual;
  const void* weight;
  void* output;
  void* residual_out;
};

class Group {
 public:
  /// Throws Failure when CUDA fails. A path that can't be had is not a failure: unavailable() says why.
  static std::unique_ptr<Group> create(GroupOptions options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int ranks() const { return static_cast<int>(options_.devices.size()); }
  int ranks_per_gpu() const { return ranks_per_gpu_; }
  int device(int rank) const { return options_.devices[rank]; }
  /// Facts for the menu's rules; `bytes` of the message at hand.
  AdmitFacts facts(std::size_t bytes) const;
  /// Empty when the candidate may be enqueued; else why not.
  std::string unavailable(CandidateId candidate) const;
  std::size_t max_bytes(CandidateId candidate) const { return planned_[static_cast<std::size_t>(candidate)]; }
  const NcclPath* nccl() const { return nccl_ ? &*nccl_ : nullptr; }

  /// Brackets one call of every rank when a single thread issues them: NCCL needs to know that, and the direct candidates
  /// all ranks' buffers (`buffers`, one a rank; empty where not all are known, then no direct candidate may be enqueued).
  void begin_layer(const Call& call, std::span<const RankBuffers> buffers);
  void end_layer(const Call& call);
  /// One rank's part of one all-reduce, asynchronous on `stream`. Buffers: `count` elements each, element-aligned,
  /// `output` may be `input`. Calls of one rank are ordered whatever streams they come on. Throws Failure.
  void enqueue(int rank, const Call& call, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream);

  /// All-reduce of `input`, residual add and RMSNorm in one launch, in the memory and under the epochs of `call.candidate`;
  /// `norm.output` may be `input`. More rows than fit a slot are several launches. Order and failures as enqueue().
  void enqueue_fused(int rank, const Call& call, const void* input, const NormBuffers& norm, const NormCall& shape, DType dtype,
                     cudaStream_t stream);
  /// Residual add and RMSNorm of `sums`; `norm.output` may be `sums`. After an enqueue() of the same stream it gives the
  /// bits of enqueue_fused(); with NCCL after end_layer(), which issues the sum.
  /// `geometry`: none = norm_geometry().
  void enqueue_norm(int rank, const void* sums, const NormBuffers& norm, const NormCall& shape, DType dtype, cudaStream_t stream,
                    Geometry geometry = {});
  /// Empty when enqueue_fused() may be called for rows of this length; else why not.
  std::string fused_unavailable(CandidateId candidate, std::uint32_t hidden) const;
  /// Of the grids of enqueue_fused().
  RowLimits row_limits() const { return fused_limits(facts(0), clusters_); }

  /// Kernels that one rank's part of such a call launches. What waits in the launch queues of all streams together has a
  /// limit of about a thousand; a rank whose kernels fill it while they wait for a rank that isn't issued yet waits for ever.
  int kernels_per_call(const Call& call, std::size_t bytes) const;

  /// The first failure of any rank, or nothing. Cheap: reads pinned memory.
  std::optional<std::string> failure() const;
  /// Ends every wait of every rank within about a millisecond. From any thread.
  void abort();

 private:
  struct Rank;
  explicit Group(GroupOptions options);

  void enable_peers();
  void allocate();
  void wire(const CandidateInfo& info);
  void start_counters(const CandidateInfo& info);
  void load_kernels();
  Bounds bounds(int rank, CandidateId candidate) const;
  const OneShotArguments& one_shot(int rank, CandidateId candidate) const;
  int blocks_of(const Call& call, std::size_t count, DType dtype) const;
  void launch_direct_call(int rank, const Call& call, std::size_t count, DType dtype, cudaStream_t stream);
  void launch_push(int rank, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream);
  void launch_ring(int rank, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream);
  void launch_staged(int rank, const Geometry& geometry, const void* input, void* output, std::size_t count, DType dtype,
                     cudaStream_t stream);
  void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) const;
  struct Capture {
    bool active = false;
    unsigned long long id = 0;
  };
  static Capture capture_of(cudaStream_t stream);
  void order_streams(int rank, const Capture& capture, cudaStream_t stream);
  void after_call(int rank, const Capture& capture, cudaStream_t stream);
  void launch_piece(int rank, const Call& call, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream);

  GroupOptions options_;
  int ranks_per_gpu_ = 1;
  int multiprocessors_ = 0;
  std::array<int, 3> clusters_{};     ///< see fused_limits(): of the GPU that fits fewest
  std::string peer_refusal_;
  std::string nccl_refusal_;
  BytesPerCandidate planned_{};
  std::vector<std::unique_ptr<Rank>> ranks_;
  PinnedMemory words_;        ///< FailureReport of every rank, then the group's abort word
  std::array<PinnedMemory, kMenuSize> host_slabs_;
  std::array<SlabLayout, kMenuSize> layouts_{};
  std::array<RankBuffers, kMaxRanks> layer_{};   ///< of the layer that is open
  bool layer_known_ = false, layer_in_place_ = false;
  std::optional<NcclPath> nccl_;
};

}  // namespace artune
