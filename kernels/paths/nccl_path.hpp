// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL as a path: communicators of all ranks of one process, one set per CTA limit, through a library loaded at run
// time. The few declarations of NCCL's stable C interface that are needed stand in nccl_path.cpp: no nccl.h to build.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/words.hpp"
#include "seams/nccl_library.hpp"

namespace artune {

struct NcclFunctions;

class NcclPath {
 public:
  /// `limits`: CTA limits, one communicator set each; 0 = NCCL's own choice. Reason::unavailable when NCCL refuses:
  /// with several ranks on one GPU that is so before 2.30, and from 2.30 on without NCCL_MULTI_RANK_GPU_ENABLE=1.
  static Result<NcclPath> create(const NcclLibrary& library, const std::vector<int>& devices, const std::vector<int>& limits);
  NcclPath(NcclPath&& other) noexcept;
  NcclPath& operator=(NcclPath&&) = delete;
  ~NcclPath();

  const std::string& version() const { return version_; }
  const std::string& file() const { return file_; }

  void group_start() const;
  void group_end() const;
  /// Falls back to the first set when `max_ctas` isn't among the limits.
  void all_reduce(int rank, int max_ctas, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) const;
  /// Empty, or what ncclCommGetAsyncError says of any communicator.
  std::string async_error() const;
  void abort();

 private:
  struct CommunicatorSet {
    int max_ctas;
    std::vector<void*> of_rank;
  };
  NcclPath() = default;
  void check(int status, const char* call) const;

  const NcclFunctions* functions_ = nullptr;
  std::string version_, file_;
  std::vector<CommunicatorSet> sets_;
};

}  // namespace artune
