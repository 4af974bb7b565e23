// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "probe/cuda_facts.hpp"

namespace artune {
namespace {

/// Keeps the first error and clears CUDA's own record of it.
bool succeeded(cudaError_t code, CudaFacts& facts) {
  if (code == cudaSuccess) return true;
  if (facts.error_code == 0) {
    facts.error_code = static_cast<int>(code);
    facts.error = cudaGetErrorString(code);
  }
  static_cast<void>(cudaGetLastError());
  return false;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += digits;
  }
  return text;
}

int attribute(cudaDeviceAttr name, int ordinal, CudaFacts& facts) {
  int value = 0;
  return succeeded(cudaDeviceGetAttribute(&value, name, ordinal), facts) ? value : 0;
}

int peer_attribute(cudaDeviceP2PAttr name, int from, int to, CudaFacts& facts) {
  int value = 0;
  return succeeded(cudaDeviceGetP2PAttribute(&value, name, from, to), facts) ? value : 0;
}

CudaDevice read_device(int ordinal, CudaFacts& facts) {
  CudaDevice device;
  device.ordinal = ordinal;
  if (cudaDeviceProp properties{}; succeeded(cudaGetDeviceProperties(&properties, ordinal), facts)) {
    device.name = properties.name;
    device.uuid = uuid_text(properties.uuid);
    device.major = properties.major;
    device.minor = properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    device.memory_bytes = properties.totalGlobalMem;
  }
  char address[32] = {};
  if (succeeded(cudaDeviceGetPCIBusId(address, sizeof address, ordinal), facts)) device.pci_address = address;
  std::transform(device.pci_address.begin(), device.pci_address.end(), device.pci_address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  device.l2_bytes = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize, ordinal, facts));
  return device;
}

}  // namespace

CudaFacts read_cuda_facts() {
  CudaFacts facts;
  facts.built_with_cuda = true;
  succeeded(cudaRuntimeGetVersion(&facts.runtime_version), facts);
  succeeded(cudaDriverGetVersion(&facts.driver_version), facts);
  int count = 0;
  if (!succeeded(cudaGetDeviceCount(&count), facts)) return facts;
  for (int ordinal = 0; ordinal < count; ++ordinal) facts.devices.push_back(read_device(ordinal, facts));
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      CudaPeer peer{from, to};
      int access = 0;
      peer.access = succeeded(cudaDeviceCanAccessPeer(&access, from, to), facts) && access != 0;
      peer.performance_rank = peer_attribute(cudaDevP2PAttrPerformanceRank, from, to, facts);
      peer.native_atomics = peer_attribute(cudaDevP2PAttrNativeAtomicSupported, from, to, facts) != 0;
      facts.peers.push_back(peer);
    }
  }
  return facts;
}

}  // namespace artune
