// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Topology: what `ar-tune probe` finds. JSON kind "ar-tune/probe", schema in profiles/schema/probe.schema.json.
//
//   Result<Topology> topology = probe_this_machine(nccl_file);        // this_machine.hpp, in a worker process
//   for (const Pair& pair : topology->pairs) if (!pair.risks.empty()) leave_alone(pair);
//   write_file_atomically(path, topology_to_json(*topology).dump(2));
//
// Names and capacities of the GPUs stand in header.machine.gpus, as in every document; here is what only a probe tells.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/document.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/words.hpp"
#include "probe/pci_config.hpp"
#include "seams/nvml.hpp"

namespace artune {

inline constexpr const char* kProbeKind = "ar-tune/probe";
inline constexpr int kProbeVersion = 1;

/// A process with a compute context on a GPU that isn't ours.
struct OtherProcess {
  unsigned pid = 0;
  std::string name;                         ///< empty = the driver may not tell
  std::optional<std::size_t> memory_bytes;  ///< nullopt = the driver may not tell
};

struct ProbedGpu {
  int index = 0;  ///< as nvidia-smi counts
  std::string pci_address;
  std::string name;
  std::optional<int> cuda_ordinal;  ///< nullopt = hidden by CUDA_VISIBLE_DEVICES
  std::optional<bool> display_active;
  std::string iommu_group_type;  ///< "identity", "DMA", "DMA-FQ", "off", "not readable"
  std::vector<OtherProcess> other_processes;
  /// "GPU-8f3a…", for --devices. Travels from the worker to its supervisor, never into a document.
  std::string uuid;
};

enum class LinkKind : unsigned char { gpu, downstream_port, upstream_port, root_port };
template <>
struct WordTable<LinkKind> {
  static constexpr std::array<Word<LinkKind>, 4> entries{{{LinkKind::gpu, "gpu"},
                                                          {LinkKind::downstream_port, "downstream-port"},
                                                          {LinkKind::upstream_port, "upstream-port"},
                                                          {LinkKind::root_port, "root-port"}}};
};

/// One PCI function on the way from GPUs to the root complex; shared ones are listed once.
struct Link {
  std::string address;
  std::string parent;  ///< next function upwards; empty = this one hangs on the host bridge
  LinkKind kind = LinkKind::gpu;
  std::string vendor_device;  ///< "1000:c030"; empty = not readable
  std::string name;           ///< of a GPU or of a known switch, else empty
  std::vector<int> gpus;      ///< GPUs that reach the root complex through it
  LinkState now, max;
  AcsRedirect acs_redirect = AcsRedirect::unread;
};

/// One direction: a kernel on `from` reaching memory of `to`, by nvidia-smi index.
struct Pair {
  int from = 0, to = 0;
  PeerLevel level = PeerLevel::unknown;
  std::optional<bool> access;           ///< as CUDA says; nullopt = CUDA doesn't see one of the two
  std::optional<int> performance_rank;  ///< 0 = best of this machine
  std::optional<bool> native_atomics;
  P2pStatus nvml_read = P2pStatus::unknown, nvml_write = P2pStatus::unknown, nvml_nvlink = P2pStatus::unknown,
            nvml_atomics = P2pStatus::unknown;
  /// Why an active peer test may wedge this machine; empty = nothing known against it. See peer_risk.hpp.
  std::vector<std::string> risks;
};

struct NumaNode {
  int node = 0;
  int cpus = 0;
  std::vector<int> gpus;
};

struct Finding {
  std::string rule, severity;  ///< severity: "fault", "warning", "info"
  std::vector<std::string> subjects;
  std::string evidence, meaning, remedy, source;
};

struct Topology {
  DocumentHeader header;
  std::vector<ProbedGpu> gpus;  ///< same order as header.machine.gpus
  std::vector<Link> links;
  std::vector<Pair> pairs;  ///< every ordered pair
  int packages = 0;         ///< CPU sockets, 0 = not readable
  std::vector<NumaNode> numa;
  std::string host_bridge;    ///< "8086:a700" at 0000:00:00.0; empty = not readable
  bool intel_client = false;  ///< an Intel client root complex: see peer_risk.hpp
  std::vector<Finding> findings;

  const ProbedGpu* find_gpu(int index) const;
  const Pair* find_pair(int from, int to) const;
  const Link* find_link(const std::string& address) const;
  /// From the GPU itself up to its root port.
  std::vector<const Link*> path_of(int index) const;
};

/// What is left when only these GPUs count, in the given order: --devices of `ar-tune probe`. All must exist.
Topology restricted_to(const Topology& topology, const std::vector<int>& gpus);

Json topology_to_json(const Topology& topology);
/// As above with the GPUs' UUIDs under `info`: what a worker sends to its supervisor.
Json topology_to_wire_json(const Topology& topology);
/// Strict; reads both forms. `name` is what messages call the document.
Result<Topology> topology_from_json(const Json& document, const std::string& name);
/// The document as written to a file: one link, pair and GPU per line, so that diffs read well.
std::string topology_to_text(const Topology& topology);

}  // namespace artune
