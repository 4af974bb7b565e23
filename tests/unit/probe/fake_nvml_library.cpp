// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A tiny libnvidia-ml.so.1 with two GPUs. Compile definitions take parts away:
// FAKE_NVML_SPARSE: only what must exist; FAKE_NVML_WITHOUT_UUID: not even that; FAKE_NVML_INIT_CODE: nvmlInit fails.
#include <cstring>

#include "seams/nvml_abi.hpp"

#ifndef FAKE_NVML_INIT_CODE
#define FAKE_NVML_INIT_CODE 0
#endif

using namespace artune::nvml_abi;

namespace {

// Handles are opaque: the address of the n-th cell stands for GPU n.
char cells[2];
Device handle(unsigned index) { return reinterpret_cast<Device>(&cells[index]); }
int index_of(Device device) { return static_cast<int>(reinterpret_cast<char*>(device) - cells); }

int write_text(char* to, unsigned length, const char* text) {
  if (std::strlen(text) + 1 > length) return kInsufficientSize;
  std::strcpy(to, text);
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return FAKE_NVML_INIT_CODE; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index > 1) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  *device = handle(index);
  return kSuccess;
}

int nvmlDeviceGetName(Device, char* name, unsigned length) { return write_text(name, length, "NVIDIA Fake 9000"); }

#ifndef FAKE_NVML_WITHOUT_UUID
int nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  return write_text(
      uuid, length,
      index_of(device) == 0 ? "GPU-00000000-0000-0000-0000-00000000000a" : "GPU-11111111-0000-0000-0000-00000000000b");
}
#endif

int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  *pci = {};
  std::strcpy(pci->bus_id, index_of(device) == 0 ? "00000000:0A:00.0" : "00010001:0B:00.0");
  return kSuccess;
}

#ifndef FAKE_NVML_SPARSE
int nvmlShutdown() { return kSuccess; }
int nvmlSystemGetDriverVersion(char* version, unsigned length) { return write_text(version, length, "580.159.03"); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
  *memory = {24ULL << 30, 23ULL << 30, 1ULL << 30};
  return kSuccess;
}
int nvmlDeviceGetBAR1MemoryInfo(Device, Bar1Memory* bar1) {
  *bar1 = {32ULL << 30, 31ULL << 30, 1ULL << 30};
  return kSuccess;
}
int nvmlDeviceGetCurrPcieLinkGeneration(Device, unsigned* value) { return *value = 1, kSuccess; }
int nvmlDeviceGetCurrPcieLinkWidth(Device, unsigned* value) { return *value = 8, kSuccess; }
int nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned* value) { return *value = 4, kSuccess; }
int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned* value) { return *value = 16, kSuccess; }
int nvmlDeviceGetGpuMaxPcieLinkGeneration(Device, unsigned* value) { return *value = 5, kSuccess; }
int nvmlDeviceGetVbiosVersion(Device, char* version, unsigned length) { return write_text(version, length, "95.02.18"); }
int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) { return *milliwatts = 350500, kSuccess; }
int nvmlDeviceGetDisplayActive(Device device, int* active) { return *active = index_of(device) == 0 ? 1 : 0, kSuccess; }
int nvmlDeviceGetTopologyCommonAncestor(Device, Device, unsigned* level) { return *level = 30, kSuccess; }

// Write works, read is refused by the chipset, atomics by a registry switch; the reverse direction may not be asked.
int nvmlDeviceGetP2PStatus(Device from, Device, unsigned caps, unsigned* status) {
  if (index_of(from) == 1) return kNotSupported;
  *status = caps == kCapsWrite ? 0 : caps == kCapsRead ? 1 : caps == kCapsAtomics ? 4 : 5;
  return kSuccess;
}

// Forty processes: more than one page of a caller's first guess.
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* list) {
  if (index_of(device) == 1) return kNoPermission;
  const unsigned room = *count;
  *count = 40;
  if (room < 40) return kInsufficientSize;
  for (unsigned i = 0; i < 40; ++i) list[i] = {1000 + i, i == 0 ? kValueNotAvailable : 64ULL << 20, ~0U, ~0U};
  return kSuccess;
}
int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return pid == 1001 ? kNoPermission : write_text(name, length, "python3");
}
#endif
}
