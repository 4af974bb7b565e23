// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_machine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "base/tuned_name.hpp"
#include "comm/self_test.hpp"
#include "machine/gpu_graphs.hpp"
#include "machine/gpu_overlap.hpp"
#include "machine/gpu_ranks.hpp"
#include "machine/gpu_tuned.hpp"
#include "probe/this_machine.hpp"
#if ARTUNE_TEST_FAULTS
#include "machine/faults.hpp"
#endif

namespace artune {
namespace {

// A batch lasts about this long: long against the resolution of events (half a microsecond), short against a budget.
constexpr double kBatchUs = 1000;
constexpr int kMostCallsPerBatch = 50;
constexpr int kFewestCallsPerBatch = 4;
constexpr int kIsolatedCalls = 15;
constexpr std::size_t kFamiliesBesideEachOther = 4;

/// A duration to size batches by. Only its order of magnitude matters, so a fast machine's rates do for all.
double rough_call_us(Path path, const Shape& shape) {
  const auto bytes = static_cast<double>(shape.bytes);
  switch (path) {
    case Path::host: return 8 + bytes * (shape.ranks - 1) / 20e3;
    case Path::nccl: return 10 + bytes / 100e3;
    default: return 3 + bytes / 200e3;
  }
}

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

class GpuMachine final : public Machine {
 public:
  GpuMachine(MachineOptions options, Topology topology) : options_(std::move(options)), topology_(std::move(topology)) {
    topology_.header.kind.clear();
    topology_.header.shared_gpu = options_.ranks_per_gpu > 1;
    topology_.header.world = World{options_.devices, options_.ranks_per_gpu, Launch::one_thread};
  }

  Result<DocumentHeader> describe() override { return topology_.header; }
  std::vector<PairVerdict> verdicts() override;
  std::vector<Offer> candidates(const Shape& shape) override;
  Verification verify(const Candidate& candidate, const Shape& shape) override;
  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override;
  OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) override;

 private:
  struct Key {
    Candidate candidate;
    Shape shape;
    int batch;
    auto operator<=>(const Key&) const = default;
  };

  int ordinal(int index) const { return *topology_.find_gpu(index)->cuda_ordinal; }
  std::string peer_refusal(int ranks);
  void use_ranks(int ranks);
  /// One call of all ranks.
  void issue(const Candidate& candidate, const Shape& shape, bool in_place);
  void issue_checked(const Candidate& candidate, const Shape& shape, GpuInput kind, bool in_place, std::uint32_t salt);
  std::string refusal_of(const CandidateInfo& info, const Shape& shape) const;
  std::string unavailable(const Candidate& candidate, const Shape& shape);
  TunedCalls* tuned_for(const Shape& shape);
  std::optional<std::string> tuned_failure() const;
  std::chrono::duration<double> deadline() const { return std::chrono::duration<double>(options_.timeout_s + 5); }
  Outcome hung(const std::string& what) const { return {OutcomeKind::hang, what}; }
  Outcome verdict(const Candidate& candidate, const Shape& shape, Numerics& numerics) const;

  MachineOptions options_;
  Topology topology_;
  std::optional<std::vector<PairVerdict>> verdicts_;
  std::unique_ptr<Group> group_;
  std::array<std::unique_ptr<TunedCalls>, 2> tuned_;  ///< the second may send f32 as bf16; each made when first asked for
  std::unique_ptr<GpuRanks> ranks_;
  std::unique_ptr<GpuOverlap> overlap_;    ///< made when first asked for
  std::map<Key, RankGraphs> graphs_;       ///< of one shape: the next shape starts anew
  Shape graphs_shape_;
};

std::vector<PairVerdict> GpuMachine::verdicts() {
  if (verdicts_) return *verdicts_;
  if (options_.known_verdicts) return *(verdicts_ = options_.known_verdicts);
  verdicts_.emplace();
  const auto add = [&](int from, int to, Path path, const char* verdict, const std::string& reason, double one_way_us = 0) {
    verdicts_->push_back({from, to, path, verdict, reason, one_way_us});
  };
  unsigned nonce = static_cast<unsigned>(options_.seed) * 2654435761U;
  for (const int from : options_.devices) {
    for (const int to : options_.devices) {
      // Ranks that share a GPU are a pair too, of a GPU with itself.
      if (from == to && options_.ranks_per_gpu == 1) continue;
      if (from != to) {
        const Pair* pair = topology_.find_pair(from, to);
        std::string untested;
        if (pair != nullptr && !pair->risks.empty() && !options_.risky) {
          untested = pair->risks.front() + "; a peer test could hang this machine, allow it with --risky";
        }
        std::string denied;
        if (pair == nullptr || !pair->access.value_or(false)) denied = "the driver gives no peer access between these GPUs";
        if (!denied.empty() || !untested.empty()) {
          for (const Path path : {Path::p2p, Path::ce}) {
            add(from, to, path, denied.empty() ? "untested" : "unavailable", denied.empty() ? untested : denied);
          }
          continue;
        }
        for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
          const DeviceGuard guard(ordinal(a));
          const cudaError_t enabled = cudaDeviceEnablePeerAccess(ordinal(b), 0);
          if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
            cudaGetLastError();
          } else {
            check_cuda(enabled, "cudaDeviceEnablePeerAccess");
          }
        }
      }
      const PairTestResult result = test_pair(ordinal(from), ordinal(to), nonce++);
      if (result.store_fault.empty()) {
        add(from, to, Path::p2p, "usable", "", result.one_way_us);
      } else {
        add(from, to, Path::p2p, result.store_hangs ? "hangs" : "wrong-data", result.store_fault);
      }
      if (result.copy_fault.empty()) {
        add(from, to, Path::ce, "usable", "");
      } else {
        add(from, to, Path::ce, "wrong-data", result.copy_fault);
      }
    }
  }
  return *verdicts_;
}

/// Why the first `ranks` ranks may not use p2p and ce; empty = they may.
std::string GpuMachine::peer_refusal(int ranks) {
  const int used = (ranks + options_.ranks_per_gpu - 1) / options_.ranks_per_gpu;
  const std::set<int> devices(options_.devices.begin(), options_.devices.begin() + used);
  for (const PairVerdict& verdict : verdicts()) {
    if (!devices.contains(verdict.from) || !devices.contains(verdict.to) || verdict.verdict == "usable") continue;
    return "GPU " + std::to_string(verdict.from) + " -> GPU " + std::to_string(verdict.to) + ": " + verdict.verdict + ", " + verdict.reason;
  }
  return {};
}

void GpuMachine::use_ranks(int ranks) {
  if (group_ && group_->ranks() == ranks) return;
  graphs_.clear();
  for (auto& calls : tuned_) calls.reset();
  group_.reset();
  overlap_.reset();
  ranks_.reset();
  GroupOptions wanted;
  for (int rank = 0; rank < ranks; ++rank) wanted.devices.push_back(ordinal(options_.devices[rank / options_.ranks_per_gpu]));
  // libartune shares its memory out among the few families that a profile uses; here all stand side by side, and each
  // gets what it would get there.
  wanted.max_memory_bytes = kFamiliesBesideEachOther * options_.max_memory_bytes;
  wanted.largest_message.fill(std::size_t{1} << 40);
  wanted.timeout_s = options_.timeout_s;
  wanted.nccl_file = options_.nccl_file;
  wanted.nccl_max_ctas.clear();
  AdmitFacts facts{.ranks = ranks, .ranks_per_gpu = options_.ranks_per_gpu, .multiprocessors = 1 << 20, .bytes = 0, .peer_access = false, .nccl = true};
  for (const GpuFacts& gpu : topology_.header.machine.gpus) {
    const bool used = std::find(options_.devices.begin(), options_.devices.end(), gpu.index) != options_.devices.end();
    if (used) facts.multiprocessors = std::min(facts.multiprocessors, gpu.multiprocessors);
  }
  for (const Geometry& geometry : info_of(CandidateId::nccl).geometries(facts)) wanted.nccl_max_ctas.push_back(geometry.max_ctas);
  wanted.peer_refusal = peer_refusal(ranks);
  group_ = Group::create(wanted);
  ranks_ = std::make_unique<GpuRanks>(wanted.devices);
  if (const NcclPath* nccl = group_->nccl()) {
    topology_.header.machine.nccl_version = nccl->version();
    topology_.header.machine.nccl_file = nccl->file();
  }
}

std::vector<Offer> GpuMachine::candidates(const Shape& shape) {
  use_ranks(shape.ranks);
  std::vector<Offer> offers;
  if (const TunedCalls* tuned = tuned_for(shape)) {
    // Its communicator dispatches by the tables for an idle GPU.
    offers.push_back({{std::string(kTunedName), {}}, shape.load == Load::idle ? tuned->unavailable() : "is timed on idle GPUs only"});
  }
  for (const CandidateInfo& info : menu()) {
    const std::string name(info.name);
    if (std::string why = refusal_of(info, shape); !why.empty()) {
      offers.push_back({{name, {}}, why});
      continue;
    }
    for (const Geometry& geometry : info.geometries(group_->facts(shape.wire_bytes()))) offers.push_back({{name, geometry}, {}});
  }
  return offers;
}

/// The dispatch with a communicator that may do what the shape may. nullptr where no profile was given.
TunedCalls* GpuMachine::tuned_for(const Shape& shape) {
  if (options_.profile.empty()) return nullptr;
  std::unique_ptr<TunedCalls>& calls = tuned_[shape.lossy() ? 1 : 0];
  if (!calls) {
    std::vector<int> devices;
    for (int rank = 0; rank < ranks_->ranks(); ++rank) devices.push_back(ranks_->device(rank));
    calls = std::make_unique<TunedCalls>(devices, options_, shape.lossy());
  }
  return calls.get();
}

std::optional<std::string> GpuMachine::tuned_failure() const {
  for (const auto& calls : tuned_) {
    if (!calls) continue;
    if (auto failed = calls->failure()) return failed;
  }
  return std::nullopt;
}

std::string GpuMachine::refusal_of(const CandidateInfo& info, const Shape& shape) const {
  if (std::string why = wire_refusal(info, shape.dtype, shape.wire); !why.empty()) return why;
  return group_->unavailable(info.id);
}

std::string GpuMachine::unavailable(const Candidate& candidate, const Shape& shape) {
  if (candidate.name == kTunedName) {
    const TunedCalls* tuned = tuned_for(shape);
    return tuned != nullptr ? tuned->unavailable() : "no profile was given; name one with --profile";
  }
  const CandidateInfo* info = find_candidate(candidate.name);
  return info == nullptr ? "'" + candidate.name + "' is not on the menu" : refusal_of(*info, shape);
}

void GpuMachine::issue(const Candidate& candidate, const Shape& shape, bool in_place) {
  if (candidate.name == kTunedName) {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<cudaStream_t> streams;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      inputs.push_back(in_place ? ranks_->output(rank) : ranks_->input(rank));
      outputs.push_back(ranks_->output(rank));
      streams.push_back(ranks_->stream(rank));
    }
    tuned_for(shape)->all_reduce(inputs, outputs, shape.count(), shape.dtype, streams);
    return;
  }
  const Call call{find_candidate(candidate.name)->id, candidate.geometry, shape.lossy()};
  int ranks = shape.ranks;
#if ARTUNE_TEST_FAULTS
  if (fault_for(candidate, shape.bytes) == FaultKind::hang) --ranks;  // the last rank never comes
#endif
  std::vector<RankBuffers> buffers;
  for (int rank = 0; rank < shape.ranks; ++rank) buffers.push_back({in_place ? ranks_->output(rank) : ranks_->input(rank), ranks_->output(rank)});
  group_->begin_layer(call, buffers);
  for (int rank = 0; rank < ranks; ++rank) {
    group_->enqueue(rank, call, buffers[rank].input, buffers[rank].output, shape.count(), shape.dtype, ranks_->stream(rank));
  }
  group_->end_layer(call);
}

void GpuMachine::issue_checked(const Candidate& candidate, const Shape& shape, GpuInput kind, bool in_place, std::uint32_t salt) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const DeviceGuard guard(ranks_->device(rank));
    fill_poison(ranks_->output(rank), shape.bytes, kGuardBytes, ranks_->stream(rank));
    void* input = in_place ? ranks_->output(rank) : ranks_->input(rank);
    fill_input(input, shape.count(), shape.dtype, kind, rank, ranks_->replay(rank), salt, ranks_->stream(rank));
  }
  issue(candidate, shape, in_place);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const DeviceGuard guard(ranks_->device(rank));
#if ARTUNE_TEST_FAULTS
    if (fault_for(candidate, shape.bytes) == FaultKind::wrong) {
      ARTUNE_CHECK_CUDA(cudaMemsetAsync(ranks_->output(rank), 0x3f, element_bytes(shape.dtype), ranks_->stream(rank)));
    }
#endif
    check_output(ranks_->output(rank), shape.count(), kGuardBytes, shape.dtype, shape.lossy(), kind, shape.ranks, ranks_->replay(rank), salt,
                 ranks_->report(rank), ranks_->stream(rank));
    next_replay(ranks_->replay(rank), ranks_->stream(rank));
  }
}

/// What the reports say after one replay of verification.
Outcome GpuMachine::verdict(const Candidate& candidate, const Shape& shape, Numerics& numerics) const {
  // Only what is true of all elements of all ranks is granted.
  bool exact = true, wire_in = shape.lossy(), wire_in_out = shape.lossy();
  std::uint64_t digest = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const CheckReport report = ranks_->read_report(rank);
    const std::string who = "rank " + std::to_string(rank);
    if (report.wrong_class != 0) {
      return {OutcomeKind::wrong_sum, who + ": " + std::to_string(report.wrong_class) + " wrong elements, first " + std::to_string(report.first) +
                                          ": got " + std::to_string(report.got) + ", expected " + std::to_string(report.expected)};
    }
    if (report.guard != 0) return {OutcomeKind::wrong_sum, who + ": " + std::to_string(report.guard) + " bytes beside the output were overwritten"};
    exact = exact && report.wrong_bits == 0;
    wire_in = wire_in && report.wrong_in == 0;
    wire_in_out = wire_in_out && report.wrong_in_out == 0;
    if (rank == 0) digest = report.digest;
    if (report.digest != digest) return {OutcomeKind::wrong_sum, who + " has other bits than rank 0: ranks would drift apart"};
  }
  const CandidateInfo* info = find_candidate(candidate.name);
  numerics = exact ? Numerics::rank_order_fp32 : wire_in ? Numerics::wire_bf16_in : wire_in_out ? Numerics::wire_bf16_in_out : Numerics::nccl;
  if (info == nullptr) return {};
  // NCCL adds in its own order. That two ranks' sum has but one order is arithmetic, no promise.
  const Numerics promised = numerics_of(*info, shape.dtype, shape.wire);
  const bool kept = promised == Numerics::rank_order_fp32 ? exact : promised == Numerics::wire_bf16_in ? wire_in : promised != Numerics::wire_bf16_in_out || wire_in_out;
  if (!kept) return {OutcomeKind::wrong_sum, "bits differ from the " + std::string(to_string(promised)) + " sum that this candidate promises"};
  numerics = promised;
  return {};
}

Verification GpuMachine::verify(const Candidate& candidate, const Shape& shape) {
  Verification result;
  use_ranks(shape.ranks);
  if (std::string why = unavailable(candidate, shape); !why.empty()) {
    result.outcome = {OutcomeKind::unavailable, why};
    return result;
  }
  ranks_->reserve(shape.bytes);
#if ARTUNE_TEST_FAULTS
  if (fault_for(candidate, shape.bytes) == FaultKind::crash) crash_device(ranks_->stream(0));
#endif
  // Exact integers and random reals out of place, reals in place; the same three again with fresh data, so that what
  // the first round left in the slots would show.
  const auto all = [&] {
    issue_checked(candidate, shape, GpuInput::small_integers, false, 1);
    issue_checked(candidate, shape, GpuInput::random_reals, false, 2);
    issue_checked(candidate, shape, GpuInput::random_reals, true, 3);
  };
  constexpr int kRounds = 2;
  ranks_->clear_reports();
  std::optional<std::string> trouble;
  if (shape.mode == Mode::graph) {
    // NCCL connects its transports at the first call, which a capture must not hold.
    issue_checked(candidate, shape, GpuInput::small_integers, false, 0);
    trouble = ranks_->wait(*group_, deadline());
    if (!trouble) {
      const RankGraphs graphs = RankGraphs::capture(*ranks_, all);
      for (int round = 0; round < kRounds; ++round) {
        for (int rank = 0; rank < shape.ranks; ++rank) graphs.launch(*ranks_, rank);
      }
      trouble = ranks_->wait(*group_, deadline());
    }
  } else {
    for (int round = 0; round < kRounds; ++round) all();
    trouble = ranks_->wait(*group_, deadline());
  }
  if (!trouble) trouble = tuned_failure();
  result.outcome = trouble ? hung(*trouble) : verdict(candidate, shape, result.numerics);
  return result;
}

Timing GpuMachine::time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) {
  Timing timing;
  use_ranks(shape.ranks);
  if (std::string why = unavailable(candidate, shape); !why.empty()) {
    timing.outcome = {OutcomeKind::unavailable, why};
    return timing;
  }
  ranks_->reserve(shape.bytes);
  if (graphs_shape_ != shape) {
    graphs_.clear();
    graphs_shape_ = shape;
  }
  const CandidateInfo* info = find_candidate(candidate.name);
  const double rough = rough_call_us(info == nullptr ? Path::nccl : info->path, shape);
  timing.batch = request.batch > 0 ? request.batch
                                   : std::clamp(static_cast<int>(kBatchUs / rough), kFewestCallsPerBatch, kMostCallsPerBatch);
  if (info != nullptr) {
    const int kernels = group_->kernels_per_call({info->id, candidate.geometry}, shape.bytes) * shape.ranks;
    timing.batch = std::min(timing.batch, std::max(kMostQueuedKernels / kernels, 1));
  }
  const auto graph_of = [&](int calls) -> const RankGraphs& {
    const Key key{candidate, shape, calls};
    auto found = graphs_.find(key);
    if (found == graphs_.end()) {
      found = graphs_.emplace(key, RankGraphs::capture(*ranks_, [&] {
                                for (int i = 0; i < calls; ++i) issue(candidate, shape, false);
                              })).first;
    }
    return found->second;
  };

  // Every rank's time for `calls` back-to-back calls; host_us is what issuing them took.
  const auto run = [&](int calls, double& host_us) -> std::optional<std::string> {
    ranks_->close_gate();
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const DeviceGuard guard(ranks_->device(rank));
      ranks_->record_start(rank);
    }
    if (shape.mode == Mode::graph) {
      const RankGraphs& graphs = graph_of(calls);
      const auto started = Clock::now();
      for (int rank = 0; rank < shape.ranks; ++rank) graphs.launch(*ranks_, rank);
      host_us = us_since(started);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const DeviceGuard guard(ranks_->device(rank));
        ranks_->record_end(rank);
      }
      ranks_->open_gate();
    } else {
      // The gate opens first: an eager caller's calls arrive as fast as its thread issues them, and that is the figure.
      ranks_->open_gate();
      const auto started = Clock::now();
      for (int i = 0; i < calls; ++i) issue(candidate, shape, false);
      host_us = us_since(started);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const DeviceGuard guard(ranks_->device(rank));
        ranks_->record_end(rank);
      }
    }
    auto trouble = ranks_->wait(*group_, deadline());
    if (!trouble) trouble = tuned_failure();
    return trouble;
  };

  if (shape.mode == Mode::graph) graph_of(timing.batch);  // captured before the gate closes
  double host_sum_us = 0;
  for (int sample = 0; sample < request.samples; ++sample) {
    double host_us = 0;
    if (auto trouble = run(timing.batch, host_us)) {
      timing.outcome = hung(*trouble);
      return timing;
    }
    host_sum_us += host_us;
    std::vector<double> of_ranks;
    for (int rank = 0; rank < shape.ranks; ++rank) of_ranks.push_back(ranks_->elapsed_us(rank) / timing.batch);
    timing.samples_us.push_back(std::move(of_ranks));
  }
  if (request.samples > 0) timing.host_us = host_sum_us / request.samples / timing.batch;
  if (request.isolated) {
    if (shape.mode == Mode::graph) graph_of(1);
    for (int i = 0; i < kIsolatedCalls; ++i) {
      double host_us = 0;
      if (auto trouble = run(1, host_us)) {
        timing.outcome = hung(*trouble);
        return timing;
      }
      double slowest = 0;
      for (int rank = 0; rank < shape.ranks; ++rank) slowest = std::max(slowest, ranks_->elapsed_us(rank));
      timing.isolated_us.push_back(slowest);
    }
  }
  return timing;
}

OverlapTiming GpuMachine::time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) {
  use_ranks(shape.ranks);
  if (std::string why = unavailable(candidate, shape); !why.empty()) return {.outcome = {OutcomeKind::unavailable, why}, .batch = 0, .samples = {}};
  ranks_->reserve(shape.bytes);
  if (!overlap_) overlap_ = std::make_unique<GpuOverlap>(*ranks_, *group_, deadline());
  if (graphs_shape_ != shape) {
    graphs_.clear();
    overlap_->forget();
    graphs_shape_ = shape;
  }
  const CandidateInfo* info = find_candidate(candidate.name);
  if (info == nullptr) return {.outcome = {OutcomeKind::unavailable, candidate.name + " is timed on idle GPUs only"}, .batch = 0, .samples = {}};
  const int kernels = group_->kernels_per_call({info->id, candidate.geometry}, shape.bytes);
  const OverlapWork work{.issue = [&] { issue(candidate, shape, false); },
                         .mode = shape.mode,
                         .kernels = kernels * shape.ranks,
                         .deadline = deadline()};
  return overlap_->time(candidate, work, request);
}

}  // namespace

Result<std::unique_ptr<Machine>> make_gpu_machine(const MachineOptions& options) {
  auto topology = probe_this_machine(options.nccl_file);
  if (!topology) return topology.error();
  MachineOptions resolved = options;
  if (resolved.devices.empty()) {
    for (const ProbedGpu& gpu : topology->gpus) {
      if (gpu.cuda_ordinal) resolved.devices.push_back(gpu.index);
    }
  }
  for (const int index : resolved.devices) {
    const ProbedGpu* gpu = topology->find_gpu(index);
    if (gpu == nullptr) return Error{Reason::usage, "there is no GPU " + std::to_string(index) + "; nvidia-smi -L lists them"};
    if (!gpu->cuda_ordinal) return Error{Reason::usage, "GPU " + std::to_string(index) + " is hidden by CUDA_VISIBLE_DEVICES"};
  }
  const int most = static_cast<int>(resolved.devices.size()) * resolved.ranks_per_gpu;
  for (const int ranks : resolved.ranks) {
    if (ranks > most) {
      return Error{Reason::usage, std::to_string(ranks) + " ranks need more than " + std::to_string(resolved.devices.size()) +
                                      " GPU(s) with " + std::to_string(resolved.ranks_per_gpu) +
                                      " rank(s) each; add devices, or let ranks share GPUs with --ranks-per-gpu"};
    }
  }
  return std::unique_ptr<Machine>(std::make_unique<GpuMachine>(std::move(resolved), std::move(*topology)));
}

}  // namespace artune
