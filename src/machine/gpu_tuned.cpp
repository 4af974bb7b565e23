// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_tuned.hpp"

namespace artune {

TunedCalls::TunedCalls(const std::vector<int>& devices, const MachineOptions& options, bool bf16_wire) {
  artuneConfig_t config = ARTUNE_CONFIG_INITIALIZER;
  config.profile = options.profile.c_str();
  config.timeoutSeconds = options.timeout_s;
  config.ncclLibrary = options.nccl_file.empty() ? nullptr : options.nccl_file.c_str();
  config.maxMemoryBytes = options.max_memory_bytes;
  config.bf16Wire = bf16_wire ? 1 : 0;
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
