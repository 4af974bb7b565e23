// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "soak/soak.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>

#include "base/failure.hpp"
#include "soak/runner.hpp"
#include "soak/watchdog.hpp"

namespace artune::soak {
namespace {

/// An error of CUDA: a crash of a kernel when the context is lost, else ours or the machine's.
Error explained(const SoakOptions& options, const Failure& failure) {
  if (failure.code() == cudaErrorMemoryAllocation)
    return {Reason::unavailable, std::string(failure.what()) + "; try a smaller --max-memory or --max"};
  bool lost = false;
  for (const int device : options.devices) {  // a question that waits for nothing
    cudaSetDevice(device);
    const cudaError_t status = cudaStreamQuery(nullptr);
    lost = lost || (status != cudaSuccess && status != cudaErrorNotReady);
  }
  return {lost ? Reason::crash : Reason::internal, failure.what()};
}

std::optional<Error> soak_group(const SoakOptions& options, int ranks, std::uint64_t calls, double seconds, Tally& tally,
                                Watchdog& watchdog) {
  std::unique_ptr<Runner> runner;
  std::optional<Error> error;
  const Clock::time_point start = Clock::now();
  const auto is_over = [&] {
    const std::uint64_t made = tally.total(ranks).all();
    tally.seconds[ranks] = since(start);
    options.progress(
        fmt::format("{} ranks: {} of {} calls, {:.0f}/s", ranks, made, calls, static_cast<double>(made) / tally.seconds[ranks]));
    return options.interrupted() || (seconds > 0 && tally.seconds[ranks] >= seconds);
  };
  try {
    runner = std::make_unique<Runner>(options, ranks, tally, watchdog);
    watchdog.beat();
    if (runner->has_cells()) error = runner->run(calls, is_over);
  } catch (const Failure& failure) {
    error = explained(options, failure);
  }
  tally.seconds[ranks] = since(start);
  // Kernels may still run in what it owns.
  if (error) static_cast<void>(runner.release());  // NOLINT(bugprone-unused-return-value): left on purpose
  if (!error && options.interrupted()) error = Error{Reason::interrupted, "interrupted; what is counted was checked"};
  return error;
}

}  // namespace

int ranks_on_a_gpu(const SoakOptions& options, int ranks) {
  const int gpus = static_cast<int>(options.devices.size());
  return options.ranks_per_gpu > 0 ? options.ranks_per_gpu : (ranks + gpus - 1) / gpus;
}

std::optional<Error> soak(const SoakOptions& options, Tally& tally) {
  tally.seed = options.seed;
  tally.ranks = options.ranks;
  Watchdog watchdog(2 * options.timeout_s + 20, options.stuck);
  const Clock::time_point start = Clock::now();
  bool complete = true;
  for (std::size_t i = 0; i < options.ranks.size(); ++i) {
    const std::uint64_t groups_left = options.ranks.size() - i;
    const std::uint64_t made = tally.total().all();
    const std::uint64_t calls = options.calls > made ? (options.calls - made + groups_left - 1) / groups_left : 0;
    const double left_s = options.duration_s - since(start);
    if (options.duration_s > 0 && left_s <= 0) break;
    const double seconds = options.duration_s > 0 ? left_s / static_cast<double>(groups_left) : 0;
    if (auto error = soak_group(options, options.ranks[i], calls, seconds, tally, watchdog)) return error;
    complete = complete && tally.total(options.ranks[i]).all() >= calls;
  }
  if (tally.total().all() == 0) return Error{Reason::no_candidate, "no candidate is available for what was asked"};
  tally.complete = complete && tally.total().all() >= options.calls;
  return std::nullopt;
}

}  // namespace artune::soak
