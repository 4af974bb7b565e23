// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The fused bodies and the norm kernel's on CPU threads: the GPU's text, a block being one thread (see host_family.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "fused/row.cuh"
#include "protocol/host_family.hpp"

namespace artune {

/// What every rank brings and gets: rows x hidden elements each, `weights` hidden.
struct HostNormCall {
  DType dtype = DType::bf16;  ///< f16 or bf16
  int blocks = 1;             ///< a multiple of `members`
  int members = 1;
  std::uint32_t rows = 1, hidden = kLeastHidden;
  float epsilon = 1e-6F;
  bool one_plus = false;
  std::uint64_t number = 0;  ///< higher than those of earlier calls
  std::vector<const void*> inputs, residuals, weights;
  std::vector<void*> outputs, residual_outs;
};

/// Arguments of rank `rank`.
NormArguments norm_arguments(const HostNormCall& call, int rank);

/// The norm of one rank, its input being the sum.
void host_rms_norm(const HostNormCall& call, int rank);

class HostFused {
 public:
  static constexpr int kMostClusters = 8;

  /// The family of a candidate that is fused too (fused_menu.hpp). Fused and other calls may follow each other in it.
  explicit HostFused(HostFamily& family, int ranks);

  /// As HostFamily::run(). rows * hidden elements are at most the family's max_bytes().
  void run(const HostNormCall& call, int rank, int block);

  /// Of one rank, all its clusters.
  std::vector<HostMemory>& boards() { return boards_; }

 private:
  HostFamily& family_;
  std::vector<HostMemory> boards_;
};

}  // namespace artune
