// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/host_group.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "protocol/exchange.cuh"
#include "protocol/failure_text.hpp"
#include "protocol/one_shot_flag.cuh"
#include "protocol/one_shot_ll.cuh"

namespace artune {
namespace {

// A block is a whole thread here: more of them than this only wait for a core.
constexpr int kMostHostBlocks = 8;

/// Zeroed memory on a cache line, as cudaMalloc and a clear give it.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : blocks_((bytes + sizeof(Line) - 1) / sizeof(Line)) {}
  char* data() { return reinterpret_cast<char*>(blocks_.data()); }

 private:
  struct alignas(128) Line {
    char bytes[128] = {};
  };
  std::vector<Line> blocks_;
};

/// The slots of one one-shot family: area(owner, source) is where `source` writes and `owner` reads. Through host memory
/// ("board") a source writes once for all readers.
struct OneShotFamily {
  OneShotFamily(int ranks, std::size_t slot, std::size_t flags, bool is_board)
      : slot_bytes(slot), flags_offset(flags), board(is_board), areas_bytes(kSlots * slot), controls(ranks) {
    for (int owner = 0; owner < (board ? 1 : ranks); ++owner) memory.emplace_back(areas_bytes * static_cast<std::size_t>(ranks));
  }
  char* area(int owner, int source) { return memory[board ? 0 : owner].data() + areas_bytes * static_cast<std::size_t>(source); }

  std::size_t slot_bytes, flags_offset;
  bool board;
  std::size_t areas_bytes;
  std::vector<Control> controls;
  std::vector<Memory> memory;
};

/// Flags and staging of one copy-engine family. The copies are memcpy by the rank's own thread.
struct ExchangeFamily {
  ExchangeFamily(int ranks, std::size_t bytes, std::size_t chunk_flags)
      : ranks_(ranks), staging_bytes((bytes + 127) / 128 * 128), flag_row((1 + chunk_flags) * kFlagStrideBytes), controls(ranks),
        flags(flag_row * static_cast<std::size_t>(ranks * ranks)), staging(staging_bytes * static_cast<std::size_t>(ranks * ranks)) {}
  char* free_flag(int writer, int reader) { return flags.data() + flag_row * static_cast<std::size_t>(writer * ranks_ + reader); }
  char* arrived_flags(int writer, int reader) { return free_flag(writer, reader) + kFlagStrideBytes; }
  char* landing(int owner, int source) { return staging.data() + staging_bytes * static_cast<std::size_t>(owner * ranks_ + source); }

  int ranks_;
  std::size_t staging_bytes, flag_row;
  std::vector<Control> controls;
  Memory flags, staging;
};

/// Buffers of one launch: `count` elements of the callers' buffers from `first_byte` on.
struct Piece {
  const std::vector<const void*>& inputs;
  const std::vector<void*>& outputs;
  std::size_t first_byte;
  std::size_t count;

  const char* input(int rank) const { return static_cast<const char*>(inputs[rank]) + first_byte; }
  char* output(int rank) const { return static_cast<char*>(outputs[rank]) + first_byte; }
};

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

Lane host_lane(int block, int blocks) { return {0, 1, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(blocks)}; }

}  // namespace

struct HostGroup::State {
  State(int ranks_, std::size_t max, std::chrono::milliseconds timeout_)
      : ranks(ranks_),
        max_bytes((std::max<std::size_t>(max, 16) + 15) / 16 * 16),
        timeout_ns(static_cast<std::uint64_t>(timeout_ / std::chrono::nanoseconds(1))),
        p2p_ll(ranks_, 2 * max_bytes, 0, false),
        host_ll(ranks_, 2 * max_bytes, 0, true),
        p2p_flag(ranks_, max_bytes + kMostHostBlocks * kFlagStrideBytes, max_bytes, false),
        host_flag(ranks_, max_bytes + kMostHostBlocks * kFlagStrideBytes, max_bytes, true),
        push(ranks_, max_bytes, 1),
        staged(ranks_, max_bytes, kMostChunks),
        reports(ranks_) {}

  Bounds bounds(Control& control, int rank) { return {&control, &reports[rank], &group_abort, timeout_ns}; }

  OneShotArguments one_shot_arguments(OneShotFamily& family, const Piece& piece, int rank) {
    OneShotArguments arguments{};
    arguments.input = piece.input(rank);
    arguments.output = piece.output(rank);
    arguments.count = piece.count;
    arguments.rank = rank;
    arguments.ranks = ranks;
    arguments.slot_bytes = family.slot_bytes;
    arguments.flags_offset = family.flags_offset;
    for (int p = 0; p < ranks; ++p) {
      if (p == rank) continue;
      arguments.area[p].receive = family.area(rank, p);
      if (!family.board) arguments.area[arguments.sends++].send = family.area(p, rank);
    }
    if (family.board) arguments.area[arguments.sends++].send = family.area(rank, rank);
    arguments.bounds = bounds(family.controls[rank], rank);
    return arguments;
  }

  ExchangeArguments exchange_arguments(ExchangeFamily& family, int rank) {
    ExchangeArguments arguments{};
    arguments.rank = rank;
    arguments.ranks = ranks;
    for (int p = 0; p < ranks; ++p) {
      if (p == rank) continue;
      arguments.free_out[p] = family.free_flag(rank, p);
      arguments.free_in[p] = family.free_flag(p, rank);
      arguments.arrived_out[p] = family.arrived_flags(rank, p);
      arguments.arrived_in[p] = family.arrived_flags(p, rank);
    }
    arguments.bounds = bounds(family.controls[rank], rank);
    return arguments;
  }

  template <DType D>
  void run_ll(OneShotFamily& family, const Piece& piece, int blocks) {
    on_threads(ranks, left_out, blocks, [&](int rank, int block) {
      const OneShotArguments arguments = one_shot_arguments(family, piece, rank);
      const Lane lane = host_lane(block, blocks);
      Control* control = arguments.bounds.control;
      const std::uint64_t epoch = load_entry(control).epoch;
      const LlFirst<D> first(arguments, lane);
      ll_send<D>(arguments, lane, epoch, first);
      if (last_of(&control->ticket, lane.blocks)) store_epoch(control, epoch + 1);
      ll_receive<D, 0>(arguments, lane, epoch, first);
    });
  }

  template <DType D>
  void run_flag(OneShotFamily& family, const Piece& piece, int blocks) {
    on_threads(ranks, left_out, blocks, [&](int rank, int block) {
      const OneShotArguments arguments = one_shot_arguments(family, piece, rank);
      const Lane lane = host_lane(block, blocks);
      Control* control = arguments.bounds.control;
      const std::uint64_t epoch = load_entry(control).epoch;
      flag_send<D>(arguments, lane, epoch);
      if (last_of(&control->ticket, lane.blocks)) store_epoch(control, epoch + 1);
      const bool alive = flag_wait(arguments, lane, epoch);
      flag_reduce<D, 0>(arguments, lane, epoch, alive);
    });
  }

  /// ce/push with memcpy as the copy engine.
  template <DType D>
  void run_push(const Piece& piece) {
    on_threads(ranks, left_out, 1, [&](int rank, int) {
      const ExchangeArguments arguments = exchange_arguments(push, rank);
      const Lane lane = host_lane(0, 1);
      Control* control = arguments.bounds.control;
      const std::uint64_t epoch = load_entry(control).epoch;
      bool alive = wait_free(arguments, lane, epoch);
      ChunkArguments chunk{piece.input(rank), piece.output(rank), piece.count, 0, {}};
      for (int p = 0; p < ranks && alive; ++p) {
        if (p != rank) std::memcpy(push.landing(p, rank), piece.input(rank), piece.count * element_bytes(D));
      }
      for (int p = 0; p < ranks; ++p) chunk.contribution[p] = push.landing(rank, p);
      if (alive) tell_arrived(arguments, lane, epoch, 0);
      alive = alive && wait_arrived(arguments, lane, epoch, 0);
      reduce_chunk<D>(arguments, chunk, lane, alive);
      if (alive) tell_free(arguments, lane, epoch);
      store_epoch(control, epoch + 1);
    });
  }

  /// host/copy-engine: each rank copies its chunks into its own staging, peers take them from there.
  template <DType D>
  void run_staged(const Piece& piece, std::size_t chunk_bytes) {
    const std::size_t bytes = piece.count * element_bytes(D);
    chunk_bytes = std::max({chunk_bytes / 16 * 16, (bytes / kMostChunks + 15) / 16 * 16 + 16, std::size_t{16}});
    on_threads(ranks, left_out, 1, [&](int rank, int) {
      const ExchangeArguments arguments = exchange_arguments(staged, rank);
      const Lane lane = host_lane(0, 1);
      Control* control = arguments.bounds.control;
      const std::uint64_t epoch = load_entry(control).epoch;
      bool alive = wait_free(arguments, lane, epoch);
      std::uint32_t index = 0;
      for (std::size_t at = 0; at < bytes && alive; at += chunk_bytes, ++index) {
        std::memcpy(staged.landing(rank, rank) + at, piece.input(rank) + at, std::min(chunk_bytes, bytes - at));
        tell_arrived(arguments, lane, epoch, index);
      }
      index = 0;
      for (std::size_t at = 0; at < bytes; at += chunk_bytes, ++index) {
        ChunkArguments chunk{piece.input(rank) + at, piece.output(rank) + at, std::min(chunk_bytes, bytes - at) / element_bytes(D), index, {}};
        for (int p = 0; p < ranks; ++p) chunk.contribution[p] = staged.landing(p, p) + at;
        alive = alive && wait_arrived(arguments, lane, epoch, index);
        reduce_chunk<D>(arguments, chunk, lane, alive);
      }
      if (alive) tell_free(arguments, lane, epoch);
      store_epoch(control, epoch + 1);
    });
  }

  template <DType D>
  void run(CandidateId candidate, const Geometry& geometry, const Piece& piece) {
    const int blocks = std::clamp(geometry.blocks, 1, kMostHostBlocks);
    switch (candidate) {
      case CandidateId::p2p_one_shot_ll: return run_ll<D>(p2p_ll, piece, blocks);
      case CandidateId::host_one_shot_ll: return run_ll<D>(host_ll, piece, blocks);
      case CandidateId::p2p_one_shot_flag: return run_flag<D>(p2p_flag, piece, blocks);
      case CandidateId::host_one_shot_flag: return run_flag<D>(host_flag, piece, blocks);
      case CandidateId::ce_push: return run_push<D>(piece);
      case CandidateId::host_copy_engine: return run_staged<D>(piece, geometry.chunk_bytes);
      case CandidateId::nccl: return;
    }
  }

  std::vector<Control*> all_controls() {
    std::vector<Control*> all;
    for (OneShotFamily* family : {&p2p_ll, &host_ll, &p2p_flag, &host_flag}) {
      for (Control& control : family->controls) all.push_back(&control);
    }
    for (ExchangeFamily* family : {&push, &staged}) {
      for (Control& control : family->controls) all.push_back(&control);
    }
    return all;
  }

  int ranks;
  std::size_t max_bytes;
  std::uint64_t timeout_ns;
  OneShotFamily p2p_ll, host_ll, p2p_flag, host_flag;
  ExchangeFamily push, staged;
  std::vector<FailureReport> reports;
  std::uint32_t group_abort = 0;
  int left_out = -1;
};

HostGroup::HostGroup(int ranks, std::size_t max_bytes, std::chrono::milliseconds timeout)
    : state_(std::make_unique<State>(ranks, max_bytes, timeout)) {}
HostGroup::~HostGroup() = default;

void HostGroup::start_at_epoch(std::uint64_t epoch) {
  // Flags of the exchange families count calls from 0 and are waited for one by one: they can't start in the middle.
  for (OneShotFamily* family : {&state_->p2p_ll, &state_->host_ll, &state_->p2p_flag, &state_->host_flag}) {
    for (Control& control : family->controls) control.epoch = epoch;
  }
}

void HostGroup::leave_out(int rank) { state_->left_out = rank; }

Status HostGroup::all_reduce(CandidateId candidate, const Geometry& geometry, DType dtype, const std::vector<const void*>& inputs,
                             const std::vector<void*>& outputs, std::size_t count) {
  if (candidate == CandidateId::nccl) return Error{Reason::unavailable, "nccl has no protocol of ours to run on CPU threads"};
  const std::size_t most = state_->max_bytes / element_bytes(dtype);
  for (std::size_t first = 0; first < count; first += most) {
    const Piece piece{inputs, outputs, first * element_bytes(dtype), std::min(most, count - first)};
    switch (dtype) {
      case DType::f32: state_->run<DType::f32>(candidate, geometry, piece); break;
      case DType::f16: state_->run<DType::f16>(candidate, geometry, piece); break;
      case DType::bf16: state_->run<DType::bf16>(candidate, geometry, piece); break;
    }
    const FailureReport* failure = first_cause(
        state_->ranks, [&](int rank) { return &state_->reports[rank]; }, [](const FailureReport& report) { return report.present != 0; });
    if (failure != nullptr) return Error{Reason::hang, describe_failure(*failure)};
  }
  return Ok{};
}

}  // namespace artune
