// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA runtime says of devices and pairs, as plain data: tests fill it by hand.
// No CUDA header here: only cuda_facts_runtime.cpp includes one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace artune {

struct CudaDevice {
  int ordinal = 0;  ///< as cudaSetDevice counts: CUDA_VISIBLE_DEVICES hides and reorders
  std::string name;
  std::string uuid;          ///< "GPU-8f3a…"
  std::string pci_address;   ///< "0000:01:00.0"
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
};

/// One direction: a kernel on `from` reaching memory of `to`, both CUDA ordinals.
struct CudaPeer {
  int from = 0, to = 0;
  bool access = false;
  int performance_rank = 0;  ///< 0 = best of this machine
  bool native_atomics = false;
};

struct CudaFacts {
  bool built_with_cuda = false;
  int runtime_version = 0;  ///< 13000: what ar-tune was built with
  int driver_version = 0;   ///< newest CUDA that the driver serves; 0 = no driver found
  std::vector<CudaDevice> devices;
  std::vector<CudaPeer> peers;
  int error_code = 0;                          ///< of the first call that failed (cudaError_t), 0 = none
  std::string error;                           ///< its text
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES, for messages; the caller fills it
};

/// Asks the CUDA runtime, without making a context on any device. Never throws: errors are part of the facts.
CudaFacts read_cuda_facts();

}  // namespace artune
