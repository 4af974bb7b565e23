// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What every document says of itself and of the machine it comes from. The JSON of a document starts with
// these fields; the list that is its point (gpus, rows, tables) follows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "base/json.hpp"
#include "base/words.hpp"

namespace artune {

struct LinkState {
  int generation = 0;  ///< PCIe generation, 0 = not readable
  int width = 0;       ///< lanes, 0 = not readable
  auto operator<=>(const LinkState&) const = default;
};

/// One GPU as a person names it (index, address and name together) and as a matcher compares it.
struct GpuFacts {
  int index = 0;                     ///< as nvidia-smi counts
  std::string name;                  ///< "NVIDIA GeForce RTX 4090"
  std::string pci_address;           ///< "0000:01:00.0", lower case
  std::string uuid_sha256;           ///< first 16 hexadecimal digits: tells same from other, identifies nobody
  std::size_t memory_bytes = 0;
  std::size_t bar1_bytes = 0;        ///< 0 = not readable
  std::size_t l2_bytes = 0;
  std::string compute_capability;    ///< "9.0"
  int multiprocessors = 0;
  LinkState link_now;                ///< idle GPUs train down: a low generation here is no fault by itself
  LinkState link_max;                ///< of GPU and slot together
  int numa_node = -1;                ///< -1 = the system doesn't say
  std::string vbios;
  double power_limit_w = 0;          ///< 0 = not readable
};

struct MachineFacts {
  std::vector<GpuFacts> gpus;        ///< all GPUs that the driver shows, by nvidia-smi index
  std::string driver;                ///< "580.159.03"
  std::string cuda_driver;           ///< "13.0": the newest CUDA that the driver serves
  std::string cuda_runtime;          ///< "13.0": what ar-tune was built with
  std::string nccl_version;          ///< "2.30.7", empty = no NCCL
  std::string nccl_file;
  std::string kernel;
  std::string bios;
  std::string iommu_mode;            ///< "off", "identity", "DMA", "DMA-FQ", "not readable"
  std::string registry_dwords;       ///< the NVIDIA driver's RegistryDwords
  std::string boot_switches;         ///< of the kernel command line, only those that matter to PCIe and IOMMU
  int numa_nodes = 0;
  std::string container;             ///< "docker", "none", …
  std::string vm;                    ///< "kvm", "none", …
};

/// Which ranks run where. Rank r sits on devices[r / ranks_per_gpu].
struct World {
  std::vector<int> devices;          ///< nvidia-smi indices (or rig indices), ordered: the group
  int ranks_per_gpu = 1;
  Launch launch = Launch::one_thread;
};

struct DocumentHeader {
  std::string kind;                  ///< "ar-tune/sweep"
  int version = 1;
  std::string tool;                  ///< "ar-tune 0.1.0"
  std::string created;               ///< RFC 3339, UTC
  bool simulated = false;            ///< numbers come from a model of a rig
  bool shared_gpu = false;           ///< several ranks shared a GPU: a rehearsal, no interconnect
  MachineFacts machine;
  std::optional<World> world;        ///< absent in a probe
};

/// The fields above, ready for the document's own list to be appended.
Json header_to_json(const DocumentHeader& header);
/// Throws JsonError. Refuses another kind, and a version newer than `newest_version` with the way out.
DocumentHeader header_from_json(const JsonReader& document, std::string_view kind, int newest_version);
/// The keys that header_to_json writes, for expect_keys() of a whole document.
#define ARTUNE_HEADER_KEYS "kind", "version", "tool", "created", "simulated", "shared_gpu", "machine", "world"

Json geometry_to_json(const Geometry& geometry);   ///< zero fields are left out
Geometry geometry_from_json(const JsonReader& object);

/// Now, as RFC 3339 in UTC with seconds: "2026-12-01T04:39:15Z".
std::string now_rfc3339();
/// "ar-tune 0.1.0"
std::string tool_name();

}  // namespace artune
