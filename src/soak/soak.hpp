// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// soak(): random calls on real GPUs until enough are made, time is up, or something is wrong.
//
// For every number of ranks: a graph a rank of random calls, replayed with other data each time; between replays, batches
// of eager calls over two streams a rank; after each of both the host looks at what the devices found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "soak/plan.hpp"
#include "soak/report.hpp"

namespace artune::soak {

struct SoakOptions {
  std::vector<int> ranks;          ///< groups, one after the other
  std::vector<int> devices;        ///< CUDA ordinals
  int ranks_per_gpu = 0;           ///< 0 = as few as a group needs
  std::uint64_t calls = kFullRun;  ///< over all groups
  double duration_s = 0;           ///< 0 = until the calls are made
  std::uint64_t seed = 1;
  Filter filter;
  std::size_t max_bytes = std::size_t{1} << 20;
  std::size_t max_memory_bytes = std::size_t{1} << 30;
  double timeout_s = 10;
  int graph_calls = 1000;
  std::uint64_t first_epoch = 0;                     ///< what the kernels' counters start at: near 2^32 or 2^64 they wrap
  std::function<void(const std::string&)> say;       ///< findings, several lines
  std::function<void(const std::string&)> progress;  ///< one line, called often
  std::function<bool()> interrupted;
  /// From another thread, when a CUDA call itself doesn't return. Must end the process.
  std::function<void(const Error&)> stuck;
};

/// `tally` is kept up to date. An error means that kernels may still run and memory was left to them: end the process
/// without destructors (std::_Exit), except for Reason::interrupted, usage and unavailable.
std::optional<Error> soak(const SoakOptions& options, Tally& tally);

/// Ranks that a group of `ranks` puts on one GPU.
int ranks_on_a_gpu(const SoakOptions& options, int ranks);

}  // namespace artune::soak
