// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_tuned.hpp"

namespace artune {

TunedCalls::TunedCalls(const std::vector<int>& devices, const std::string& profile, double timeout_s, const std::string& nccl_file,
                       std::size_t max_memory_bytes) {
  artuneConfig_t config = ARTUNE_CONFIG_INITIALIZER;
  config.profile = profile.c_str();
  config.timeoutSeconds = timeout_s;
  config.ncclLibrary = nccl_file.empty() ? nullptr : nccl_file.c_str();
  config.maxMemoryBytes = max_memory_bytes;
  try {
    communicators_.emplace(devices, &config);
  } catch (const CallError& error) {
    unavailable_ = error.what();
  }
}

void TunedCalls::all_reduce(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, std::size_t count, DType dtype,
                            const std::vector<cudaStream_t>& streams) const {
  const artuneDataType_t type = dtype == DType::f32 ? artuneFloat32 : dtype == DType::f16 ? artuneFloat16 : artuneBfloat16;
  communicators_->all_reduce(inputs, outputs, count, type, streams);
}

std::optional<std::string> TunedCalls::failure() const {
  if (!communicators_) return std::nullopt;
  artuneResult_t state = artuneSuccess;
  check(artuneCommGetAsyncError((*communicators_)[0], &state), "artuneCommGetAsyncError");
  if (state == artuneSuccess) return std::nullopt;
  return artuneGetLastError();
}

}  // namespace artune
