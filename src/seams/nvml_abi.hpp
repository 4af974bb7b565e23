// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of NVML's binary interface that ar-tune calls: layouts and constants of NVIDIA's public API
// (Management Library API reference, 12.x; unchanged in 13.x). Private to nvml.cpp and its tests.
#pragma once

#include <cstddef>

namespace artune::nvml_abi {

using Return = int;                   // nvmlReturn_t
using Device = struct OpaqueDevice*;  // nvmlDevice_t

inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kLibraryVersionMismatch = 18;

inline constexpr unsigned kTextBytes = 96;  // the largest of NVML_DEVICE_NAME_V2, NVML_DEVICE_UUID_V2, driver and VBIOS buffers
inline constexpr unsigned long long kValueNotAvailable = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE

// nvmlGpuP2PCapsIndex_t
inline constexpr unsigned kCapsRead = 0, kCapsWrite = 1, kCapsNvlink = 2, kCapsAtomics = 3, kCapsPci = 4;

struct PciInfo {  // nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3 fills it
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];  // "00000000:01:00.0"
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct Bar1Memory {  // nvmlBAR1Memory_t
  unsigned long long total, free, used;
};
struct ProcessInfo {  // nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id, compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace artune::nvml_abi
