// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_overlap.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/failure.hpp"
#include "comm/cuda_check.hpp"
#include "machine/overlap_reading.hpp"

namespace artune {
namespace {

constexpr int kMostCalls = 1000;        // stamps of one rank
constexpr int kPilotCalls = 4;
constexpr double kSpare = 2;            // reductions are queued for a load that takes twice as long beside them
constexpr int kTries = 4;               // with half the load each, where that wasn't enough
constexpr int kCalibrationWaves = 100;  // about 2 ms
constexpr int kCalibrations = 3;        // the first ones bring the clocks up

/// A run that doesn't end: that candidate's result, not a failure of CUDA.
struct Hang {
  std::string what;
};

}  // namespace

struct GpuOverlap::Load {
  explicit Load(int of) : device(of), window(of, sizeof(LoadWindow)) {
    const DeviceGuard guard(device);
    load_compute_kernels();
    wave = compute_load_wave();
    ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Load() {
    cudaSetDevice(device);
    cudaStreamDestroy(stream);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  LoadWindow* words() const { return reinterpret_cast<LoadWindow*>(window.data()); }
  int blocks_for(double us) const { return wave * std::max(1, static_cast<int>(std::lround(us / wave_us))); }

  int device;
  DeviceMemory window;
  cudaStream_t stream = nullptr;
  int wave = 0;           ///< blocks that are resident at once
  double wave_us = 20;    ///< calibrated
};

GpuOverlap::GpuOverlap(GpuRanks& ranks, const Group& group, std::chrono::duration<double> deadline) : ranks_(ranks), group_(group) {
  for (int rank = 0; rank < ranks_.ranks(); ++rank) {
    const int device = ranks_.device(rank);
    const auto known = std::find_if(loads_.begin(), loads_.end(), [&](const auto& load) { return load->device == device; });
    load_of_.push_back(static_cast<std::size_t>(known - loads_.begin()));
    if (known == loads_.end()) loads_.push_back(std::make_unique<Load>(device));
    stamps_.emplace_back(device, (kMostCalls + 1) * sizeof(std::uint64_t));
  }
  calibrate(deadline);
}

GpuOverlap::~GpuOverlap() = default;

std::uint64_t* GpuOverlap::stamp(int rank, int index) const { return reinterpret_cast<std::uint64_t*>(stamps_[rank].data()) + index; }

void GpuOverlap::calibrate(std::chrono::duration<double> deadline) {
  const OverlapWork nothing{.issue = {}, .mode = Mode::eager, .kernels = 0, .deadline = deadline};
  for (int i = 0; i < kCalibrations; ++i) {
    for (const auto& load : loads_) load->wave_us = 1;  // then `us` counts waves
    Readings readings;
    try {
      readings = run(nothing, nullptr, kCalibrationWaves, LaunchOrder::compute_first);
    } catch (const Hang& hang) {
      throw Failure("calibrating the compute load", hang.what, 0);
    }
    for (std::size_t i_load = 0; i_load < loads_.size(); ++i_load) {
      const LoadWindow& window = readings.windows[i_load];
      if (window.last <= window.first) throw Failure("calibrating the compute load", "it left no time stamps", 0);
      loads_[i_load]->wave_us = static_cast<double>(window.last - window.first) / 1000.0 / kCalibrationWaves;
    }
  }
}

void GpuOverlap::issue_stamped(const OverlapWork& work, int calls) {
  for (int call = 1; call <= calls; ++call) {
    work.issue();
    for (int rank = 0; rank < ranks_.ranks(); ++rank) {
      const DeviceGuard guard(ranks_.device(rank));
      launch_stamp(stamp(rank, call), ranks_.stream(rank));
    }
  }
}

void GpuOverlap::enqueue_reductions(const OverlapWork& work, const Plan& plan, bool after_load) {
  for (int rank = 0; rank < ranks_.ranks(); ++rank) {
    const DeviceGuard guard(ranks_.device(rank));
    const std::uint64_t* started = after_load ? &loads_[load_of_[rank]]->words()->first : nullptr;
    launch_await_word(started, kNotStarted, stamp(rank, 0), ranks_.stream(rank));
  }
  if (work.mode == Mode::graph) {
    for (int rank = 0; rank < ranks_.ranks(); ++rank) plan.graphs.launch(ranks_, rank);
  } else {
    issue_stamped(work, plan.calls);
  }
}

void GpuOverlap::enqueue_loads(double compute_us, bool after_reductions) {
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    const Load& load = *loads_[i];
    const DeviceGuard guard(load.device);
    const auto rank = static_cast<int>(std::find(load_of_.begin(), load_of_.end(), i) - load_of_.begin());
    if (after_reductions) launch_await_word(stamp(rank, 1), 0, nullptr, load.stream);
    launch_compute_load(load.words(), load.blocks_for(compute_us), load.stream);
  }
}

/// `reductions` = nullptr: the load alone; `compute_us` = 0: reductions alone.
GpuOverlap::Readings GpuOverlap::run(const OverlapWork& work, const Plan* reductions, double compute_us, LaunchOrder order) {
  for (int rank = 0; rank < ranks_.ranks(); ++rank) {
    const DeviceGuard guard(ranks_.device(rank));
    ARTUNE_CHECK_CUDA(cudaMemsetAsync(stamps_[rank].data(), 0, (kMostCalls + 1) * sizeof(std::uint64_t), ranks_.stream(rank)));
  }
  for (const auto& load : loads_) {
    const DeviceGuard guard(load->device);
    ARTUNE_CHECK_CUDA(cudaMemsetAsync(&load->words()->first, 0xff, sizeof(std::uint64_t), load->stream));
    ARTUNE_CHECK_CUDA(cudaMemsetAsync(&load->words()->last, 0, sizeof(std::uint64_t), load->stream));
  }
  wait(work.deadline);  // each side looks at the other's words

  ranks_.close_gate();
  for (const auto& load : loads_) {
    const DeviceGuard guard(load->device);
    ranks_.hold(load->stream);
  }
  try {
    // Who waits for the other is enqueued after it: should the driver put both streams into one hardware queue, they
    // would come one after the other, not wait for each other in a circle.
    const bool both = reductions != nullptr && compute_us > 0;
    const bool compute_first = order == LaunchOrder::compute_first;
    if (compute_us > 0 && compute_first) enqueue_loads(compute_us, false);
    if (reductions != nullptr) enqueue_reductions(work, *reductions, both && compute_first);
    if (compute_us > 0 && !compute_first) enqueue_loads(compute_us, both);
  } catch (...) {
    ranks_.open_gate();  // or the streams would stay held until the gate expires
    throw;
  }
  ranks_.open_gate();
  wait(work.deadline);

  Readings readings;
  for (const auto& load : loads_) {
    readings.windows.emplace_back();
    ARTUNE_CHECK_CUDA(cudaMemcpy(&readings.windows.back(), load->words(), sizeof(LoadWindow), cudaMemcpyDeviceToHost));
  }
  for (int rank = 0; reductions != nullptr && rank < ranks_.ranks(); ++rank) {
    auto& stamps = readings.stamps.emplace_back(static_cast<std::size_t>(reductions->calls) + 1);
    ARTUNE_CHECK_CUDA(cudaMemcpy(stamps.data(), stamps_[rank].data(), stamps.size() * sizeof(std::uint64_t), cudaMemcpyDeviceToHost));
    if (std::count(stamps.begin(), stamps.end(), 0U) > 0) throw Failure("overlap", "a reduction left no time stamp on rank " + std::to_string(rank), 0);
  }
  return readings;
}

void GpuOverlap::wait(std::chrono::duration<double> deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  if (auto trouble = ranks_.wait(group_, deadline)) throw Hang{*trouble};
  for (const auto& load : loads_) {
    const DeviceGuard guard(load->device);
    cudaError_t status = cudaStreamQuery(load->stream);
    for (; status == cudaErrorNotReady; status = cudaStreamQuery(load->stream)) {
      if (std::chrono::steady_clock::now() > end) throw Hang{"the compute load beside the reductions doesn't end"};
    }
    check_cuda(status, "cudaStreamQuery");
  }
}

double GpuOverlap::slowest_load_us(const Readings& readings) const {
  double slowest = 0;
  for (const LoadWindow& window : readings.windows) slowest = std::max(slowest, static_cast<double>(window.last - window.first) / 1000.0);
  return slowest;
}

double GpuOverlap::slowest_reduction_us(const Readings& readings) const {
  double slowest = 0;
  for (const auto& stamps : readings.stamps) slowest = std::max(slowest, per_reduction_us(stamps));
  return slowest;
}

bool GpuOverlap::read_beside(const Readings& readings, OverlapSample& sample) const {
  bool outlasted = true;
  sample.compute_beside_us = slowest_load_us(readings);
  for (std::size_t rank = 0; rank < readings.stamps.size(); ++rank) {
    const LoadWindow& window = readings.windows[load_of_[rank]];
    const RankReading reading = read_rank(readings.stamps[rank], window.first, window.last);
    outlasted = outlasted && reading.outlasted;
    sample.completed = rank == 0 ? reading.completed : std::min(sample.completed, reading.completed);
    sample.reduction_beside_us = std::max(sample.reduction_beside_us, reading.beside_us);
  }
  return outlasted;
}

GpuOverlap::Plan GpuOverlap::make_plan(const OverlapWork& work, double compute_us) {
  const int most = std::clamp(kMostQueuedKernels / (std::max(work.kernels, 1) + ranks_.ranks()), 2, kMostCalls);  // a stamp per rank and call
  OverlapWork eager = work;
  eager.mode = Mode::eager;  // nothing is captured yet
  const Plan pilot{.calls = std::min(kPilotCalls, most), .compute_us = 0, .graphs = {}};
  const double reduction_us = slowest_reduction_us(run(eager, &pilot, 0, LaunchOrder::compute_first));
  Plan plan;
  plan.compute_us = std::min(compute_us, most * reduction_us / kSpare);
  plan.calls = std::clamp(static_cast<int>(std::ceil(kSpare * plan.compute_us / reduction_us)) + 1, 2, most);
  if (work.mode == Mode::graph) plan.graphs = RankGraphs::capture(ranks_, [&] { issue_stamped(work, plan.calls); });
  return plan;
}

OverlapTiming GpuOverlap::time(const Candidate& candidate, const OverlapWork& work, const OverlapRequest& request) {
  OverlapTiming timing;
  try {
    auto found = plans_.find(candidate);
    if (found == plans_.end()) found = plans_.emplace(candidate, make_plan(work, request.compute_us)).first;
    Plan& plan = found->second;
    timing.batch = plan.calls;
    int tries = 0;
    while (timing.samples.size() < static_cast<std::size_t>(std::max(request.samples, 0))) {
      OverlapSample sample;
      sample.compute_idle_us = slowest_load_us(run(work, nullptr, plan.compute_us, request.order));
      sample.reduction_idle_us = slowest_reduction_us(run(work, &plan, 0, request.order));
      if (read_beside(run(work, &plan, plan.compute_us, request.order), sample)) {
        timing.samples.push_back(sample);
        continue;
      }
      if (++tries == kTries) {
        timing.outcome = {OutcomeKind::error, std::to_string(plan.calls) + " reductions end before the compute load does, however short it is"};
        return timing;
      }
      plan.compute_us /= 2;  // samples of the longer load would not be of the same thing
      timing.samples.clear();
    }
  } catch (const Hang& hang) {
    timing.outcome = {OutcomeKind::hang, "beside compute: " + hang.what};
  }
  return timing;
}

}  // namespace artune
