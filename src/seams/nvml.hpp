// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// NVML behind an interface: what the NVIDIA driver says about GPUs, pairs and processes.
//
//   std::unique_ptr<Nvml> nvml = load_nvml();
//   Result<int> count = nvml->device_count();       // a missing library or driver is the Error of every answer
//   Result<NvmlDevice> gpu = nvml->device(0);       // fields that this GPU or driver can't tell are nullopt
//
// Needs neither NVML's header nor the library at build time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.hpp"
#include "base/result.hpp"
#include "base/words.hpp"

namespace artune {

/// What two GPUs share on the way between them, in nvidia-smi's words.
enum class PeerLevel : unsigned char { same, pix, pxb, phb, node, sys, unknown };

/// The driver's answer to "may these two talk like this?", in nvidia-smi's words.
enum class P2pStatus : unsigned char {
  ok,
  chipset_not_supported,   ///< CNS: the root complex isn't on the driver's list, or a VM hides it
  gpu_not_supported,       ///< GNS
  topology_not_supported,  ///< TNS: old two-hub Intel boards
  disabled_by_registry,    ///< DR: a RegistryDwords switch says no
  not_supported,           ///< NS
  unknown,                 ///< U, or the driver didn't answer
};

template <>
struct WordTable<PeerLevel> {
  static constexpr std::array<Word<PeerLevel>, 7> entries{{{PeerLevel::same, "SAME"},
                                                           {PeerLevel::pix, "PIX"},
                                                           {PeerLevel::pxb, "PXB"},
                                                           {PeerLevel::phb, "PHB"},
                                                           {PeerLevel::node, "NODE"},
                                                           {PeerLevel::sys, "SYS"},
                                                           {PeerLevel::unknown, "unknown"}}};
};
template <>
struct WordTable<P2pStatus> {
  static constexpr std::array<Word<P2pStatus>, 7> entries{{{P2pStatus::ok, "OK"},
                                                           {P2pStatus::chipset_not_supported, "CNS"},
                                                           {P2pStatus::gpu_not_supported, "GNS"},
                                                           {P2pStatus::topology_not_supported, "TNS"},
                                                           {P2pStatus::disabled_by_registry, "DR"},
                                                           {P2pStatus::not_supported, "NS"},
                                                           {P2pStatus::unknown, "U"}}};
};

struct NvmlSystem {
  std::string driver_version;              ///< "580.159.03"
  std::optional<int> cuda_driver_version;  ///< 13000
};

struct NvmlDevice {
  std::string name;
  std::string uuid;         ///< "GPU-8f3a…": never written to a document
  std::string pci_address;  ///< "0000:01:00.0", lower case
  std::optional<std::size_t> memory_bytes, bar1_bytes;
  LinkState link_now;          ///< 0 = the driver didn't say
  LinkState link_max;          ///< of GPU and system together
  int gpu_max_generation = 0;  ///< of the GPU alone
  std::optional<std::string> vbios;
  std::optional<double> power_limit_w;
  std::optional<bool> display_active;  ///< something is shown, or a console holds memory
};

struct NvmlPair {
  PeerLevel level = PeerLevel::unknown;
  P2pStatus read = P2pStatus::unknown, write = P2pStatus::unknown, nvlink = P2pStatus::unknown, atomics = P2pStatus::unknown,
            pci = P2pStatus::unknown;
};

struct NvmlProcess {
  unsigned pid = 0;
  std::string name;                         ///< empty when the driver may not tell
  std::optional<std::size_t> memory_bytes;  ///< nullopt inside some containers
};

class Nvml {
 public:
  virtual ~Nvml() = default;

  virtual Result<NvmlSystem> system() = 0;
  virtual Result<int> device_count() = 0;
  /// `index` as nvidia-smi counts.
  virtual Result<NvmlDevice> device(int index) = 0;
  /// From GPU `from` to GPU `to`: answers may differ by direction.
  virtual Result<NvmlPair> pair(int from, int to) = 0;
  /// Processes with a compute context, ours included.
  virtual Result<std::vector<NvmlProcess>> compute_processes(int index) = 0;
};

/// Never null: without a usable library or driver, every answer is the Error that says why.
std::unique_ptr<Nvml> load_nvml(const std::string& library = "libnvidia-ml.so.1");

/// An Nvml that answers everything with `why`.
std::unique_ptr<Nvml> unavailable_nvml(Error why);

PeerLevel peer_level_from_nvml(unsigned level);
P2pStatus p2p_status_from_nvml(unsigned status);
/// Words for NVML's return codes, for a library that is too broken to ask.
std::string_view nvml_error_words(int code);

}  // namespace artune
