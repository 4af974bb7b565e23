// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Group: residual add and RMSNorm, after an all-reduce or in one launch with it.
#include <algorithm>

#include "comm/cuda_check.hpp"
#include "comm/group.hpp"
#include "fused/fused_launches.hpp"

namespace artune {
namespace {

// A grid has no more blocks than fit one dimension; rows beyond go round.
constexpr int kMostNormBlocks = 1 << 20;

/// Of the rows from `first` on.
NormArguments arguments_of(const NormBuffers& norm, const NormCall& shape, std::uint32_t first, std::uint32_t rows, DType dtype) {
  const std::size_t at = std::size_t{first} * shape.hidden * element_bytes(dtype);
  return {.residual = static_cast<const char*>(norm.residual) + at,
          .weight = norm.weight,
          .output = static_cast<char*>(norm.output) + at,
          .residual_out = static_cast<char*>(norm.residual_out) + at,
          .rows = rows,
          .hidden = shape.hidden,
          .inverse_hidden = 1.0F / static_cast<float>(shape.hidden),
          .epsilon = shape.epsilon,
          .one_plus = static_cast<std::uint16_t>(shape.one_plus_weight),
          .members = 1};
}

}  // namespace

std::string Group::fused_unavailable(CandidateId candidate, std::uint32_t hidden) const {
  const CandidateInfo& info = info_of(candidate);
  if (!fused_served(info)) return std::string(info.name) + " has no fused form";
  if (std::string why = unavailable(candidate); !why.empty()) return why;
  if (max_bytes(candidate) < std::size_t{hidden} * 2) {
    return "a row of " + std::to_string(hidden) + " elements doesn't fit its slots of " + std::to_string(max_bytes(candidate)) +
           " bytes";
  }
  return {};
}

void Group::enqueue_fused(int rank, const Call& call, const void* input, const NormBuffers& norm, const NormCall& shape,
                          DType dtype, cudaStream_t stream) {
  if (std::string why = fused_unavailable(call.candidate, shape.hidden); !why.empty()) throw Failure("enqueue_fused", why, 0);
  const DeviceGuard guard(device(rank));
  const Capture capture = capture_of(stream);
  order_streams(rank, capture, stream);
  const std::size_t row_bytes = std::size_t{shape.hidden} * element_bytes(dtype);
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(max_bytes(call.candidate) / row_bytes, shape.rows));
  for (std::uint32_t first = 0; first < shape.rows; first += most) {
    const std::uint32_t rows = std::min(most, shape.rows - first);
    OneShotArguments sum = one_shot(rank, call.candidate);
    sum.input = static_cast<const char*>(input) + first * row_bytes;
    const RowGrid grid = row_grid(rows, shape.hidden, call.geometry, row_limits());
    launch_fused(sum, arguments_of(norm, shape, first, rows, dtype), info_of(call.candidate).protocol, dtype, grid, stream);
  }
  after_call(rank, capture, stream);
}

void Group::enqueue_norm(int rank, const void* sums, const NormBuffers& norm, const NormCall& shape, DType dtype,
                         cudaStream_t stream, Geometry geometry) {
  if (shape.rows == 0) return;
  if (geometry.blocks == 0) geometry = norm_geometry(shape.rows, shape.hidden, clusters_.back() > 0 ? 8 : 1);
  const DeviceGuard guard(device(rank));
  const Capture capture = capture_of(stream);
  order_streams(rank, capture, stream);
  // It waits for nobody: its blocks need not be resident at once.
  RowLimits limits = single_blocks(kMostNormBlocks);
  for (std::size_t i = 1; i < limits.clusters.size(); ++i) limits.clusters[i] = clusters_[i - 1] > 0 ? kMostNormBlocks >> i : 0;
  const RowGrid grid = row_grid(shape.rows, shape.hidden, geometry, limits);
  launch_rms_norm(arguments_of(norm, shape, 0, shape.rows, dtype), sums, dtype, grid, stream);
  after_call(rank, capture, stream);
}

}  // namespace artune
