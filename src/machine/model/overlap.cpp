// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/model/overlap.hpp"

#include <algorithm>
#include <cmath>

#include "machine/model/cost.hpp"
#include "paths/menu.hpp"

namespace artune::model {
namespace {

// Those of GpuMachine's load, machine/compute_load.hpp; how long its blocks take differs from GPU to GPU, this is its aim.
constexpr double kLoadBlocksPerMultiprocessor = 2;
constexpr double kLoadBlockUs = 20;
constexpr double kMostOfTheGpu = 0.95;  // the load's blocks come through even beside a grid of the GPU's size
constexpr int kNcclBlocks = 32;         // where its number is left to NCCL

double waiting_blocks(const Geometry& geometry, Path path) {
  if (path == Path::nccl) return geometry.max_ctas > 0 ? geometry.max_ctas : kNcclBlocks;
  return geometry.blocks;
}

/// One after the other in one reduction, each of them in need of room.
double kernels(const Group& group, const CandidateInfo& info, const Geometry& geometry, double bytes) {
  if (info.algorithm == Algorithm::ring) return 2 * (static_cast<double>(group.ranks()) - 1);
  if (info.algorithm == Algorithm::copies && geometry.chunk_bytes > 0) {
    return std::max(1.0, std::ceil(bytes / static_cast<double>(geometry.chunk_bytes)));
  }
  return 1;
}

}  // namespace

Overlap overlap(const Group& group, const Candidate& candidate, const Shape& shape, double compute_us) {
  const Cost cost = call_cost(group, candidate, shape);
  const CandidateInfo& info = *find_candidate(candidate.name);
  const auto bytes = static_cast<double>(shape.bytes);
  int multiprocessors = group.rig.gpus[group.gpus.front()].multiprocessors;
  for (const std::size_t gpu : group.gpus) multiprocessors = std::min(multiprocessors, group.rig.gpus[gpu].multiprocessors);

  OverlapSample sample;
  sample.compute_idle_us = compute_us;
  sample.reduction_idle_us = cost.call_us;
  // Half a block's time until enough of those that run have ended.
  sample.reduction_beside_us = cost.call_us + kernels(group, info, candidate.geometry, bytes) * kLoadBlockUs / 2;
  const bool copies = info.algorithm == Algorithm::copies || info.algorithm == Algorithm::ring;
  const double share = copies ? add_us(group, bytes) / sample.reduction_beside_us
                              : waiting_blocks(candidate.geometry, info.path) / (kLoadBlocksPerMultiprocessor * multiprocessors);
  sample.compute_beside_us = compute_us / (1 - std::min(share, kMostOfTheGpu));
  sample.completed = static_cast<int>(sample.compute_beside_us / sample.reduction_beside_us);
  return {sample.completed + 1, sample};
}

}  // namespace artune::model
