// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The candidates of op all_reduce_rms_norm: every row of the menu followed by the norm kernel, under the row's own name, and
// the rows that have a fused form, as "fused/p2p/one-shot/ll". A fused form uses its row's memory and epochs. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/candidate.hpp"
#include "fused/row_grid.hpp"
#include "paths/menu.hpp"

namespace artune {

struct NormCandidate {
  CandidateId candidate = CandidateId::nccl;
  bool fused = false;

  auto operator<=>(const NormCandidate&) const = default;
};

/// One-shot candidates that stage: a rank has all contributions of a row, so its statistics need no third step. Two-shot
/// would have to gather the output and the updated residual, twice the bytes.
bool fused_served(const CandidateInfo& info);

std::string name_of(NormCandidate candidate);
/// Nothing when there is no such candidate.
std::optional<NormCandidate> find_norm_candidate(std::string_view name);

/// What a rank's fused launches may have so that those of all ranks on its GPU are resident at once: as
/// most_resident_blocks(), but one block fills a multiprocessor, and clusters of 2, 4 and 8 blocks need them in one part of
/// the GPU: `clusters_of_gpu` fit at once (0 where there are none).
RowLimits fused_limits(const AdmitFacts& facts, const std::array<int, 3>& clusters_of_gpu);

/// Geometries of a fused form worth timing, best guess first.
std::vector<Geometry> fused_geometries(const RowLimits& limits, std::uint32_t rows, std::uint32_t hidden);

/// What the norm kernel runs with.
Geometry norm_geometry(std::uint32_t rows, std::uint32_t hidden, int members);

}  // namespace artune
