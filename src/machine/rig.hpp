// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A rig: a machine as a file describes it, so that ar-tune can be tried and tested where that machine isn't.
// JSON kind "ar-tune/rig", schema in profiles/schema/rig.schema.json, examples in profiles/rigs/.
//
//   Result<Rig> rig = load_rig("4x-rtx-pro-6000-switch");   // a name, or a file: "./my-rig.json"
//
// Every number says where it comes from: `source` is a key of the rig's own table `sources`.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/words.hpp"

namespace artune {

/// A number with its birth certificate.
struct Sourced {
  double value = 0;
  std::string source;  ///< key into Rig::sources
};

struct RigSource {
  std::string key, text;
};

struct RigSocket {
  std::string id;
  int numa_node = 0;
  Sourced memory_gb_per_s;  ///< host memory, reads and writes together
};

/// Where a PCIe tree leaves its socket. Costs nothing by itself: what a link to it costs stands at the link.
struct RigRootPort {
  std::string id, socket;
};

struct RigSwitch {
  std::string id;
};

struct RigGpu {
  std::string id, name, pci_address;
  std::size_t memory_bytes = 0, bar1_bytes = 0, l2_bytes = 0;
  int multiprocessors = 0;
  std::string compute_capability;
  double power_limit_w = 0;
  double memory_gb_per_s = 0;
  std::string source;  ///< of all the numbers above
};

struct RigLink {
  std::string from, to;  ///< ids of GPU, switch, root port or socket
  int generation = 0, width = 0;
  Sourced gb_per_s;                         ///< payload that a copy engine moves in one direction, and as much in the other
  std::optional<Sourced> reverse_gb_per_s;  ///< to -> from, where it differs
  Sourced latency_us;                       ///< one way
};

/// The last rule that fits a pair counts; a pair without a rule has no peer access.
struct RigPeerRule {
  std::string a, b;  ///< GPU ids, or "*"; both directions
  bool allowed = false;
  std::string source;
};

enum class RigFaultKind {
  wrong_data,  ///< the pair's functional check finds wrong data: the gate refuses it
  hangs,       ///< the pair's functional check never ends
  wrong_sum,   ///< the pair passes its check, and reductions over it come out wrong
};

template <>
struct WordTable<RigFaultKind> {
  static constexpr std::array<Word<RigFaultKind>, 3> entries{
      {{RigFaultKind::wrong_data, "wrong_data"}, {RigFaultKind::hangs, "hangs"}, {RigFaultKind::wrong_sum, "wrong_sum"}}};
};

struct RigFault {
  std::string name;
  RigFaultKind kind = RigFaultKind::wrong_data;
  std::string from, to;  ///< GPU ids: what `from` stores in `to`'s memory
  std::string source;
};

struct RigLaunch {
  Sourced graph_us;       ///< one kernel of a replayed graph
  Sourced eager_call_us;  ///< host time of one launch, copy or event call
  Sourced nccl_eager_us;  ///< host time of one rank's part of an NCCL group call
};

struct RigKernels {
  Sourced one_shot_us;     ///< fixed cost of a one-shot LL kernel: start, first load, poll, end; no link in it
  Sourced flag_us;         ///< what flag costs over LL: release, second round of polling
  Sourced store_fraction;  ///< of a link's payload rate that stores by multiprocessors reach
  Sourced load_fraction;   ///< same for loads
  Sourced block_gb_per_s;  ///< what one block of 512 threads can issue
};

struct RigCopies {
  Sourced step_us;    ///< one step of a copy-engine reduction: copy, event, add kernel
  Sourced staged_us;  ///< what a second, dependent copy through host memory adds
  Sourced issue_us;   ///< gap between copies of one engine
};

enum class NcclTransport { p2p, host };
template <>
struct WordTable<NcclTransport> {
  static constexpr std::array<Word<NcclTransport>, 2> entries{{{NcclTransport::p2p, "p2p"}, {NcclTransport::host, "host"}}};
};

struct RigNccl {
  bool available = true;
  NcclTransport transport = NcclTransport::p2p;
  std::string source;     ///< of the two above
  Sourced ring_fraction;  ///< of the ring's payload rate that large messages reach
  /// Where this rig departs from NCCL's published constants (model/nccl.hpp).
  std::optional<Sourced> base_ll_us, base_simple_us, hop_ll_us, hop_simple_us;
  std::optional<Sourced> ll_bandwidth_ratio;  ///< that LL really reaches; NCCL's choice goes on believing its own constant
};

struct Rig {
  std::string name, description;
  std::string source;  ///< of the layout: who hangs where, PCI addresses, generations and widths
  std::vector<RigSource> sources;
  std::vector<RigSocket> sockets;
  std::vector<RigRootPort> root_ports;
  std::vector<RigSwitch> switches;
  std::vector<RigGpu> gpus;
  std::vector<RigLink> links;
  std::vector<RigPeerRule> peer_access;
  std::vector<RigFault> faults;
  RigLaunch launch;
  RigKernels kernels;
  RigCopies copies;
  RigNccl nccl;
  std::optional<Sourced> noise;  ///< relative spread of simulated samples; absent = none
};

inline constexpr int kRigVersion = 1;
/// More GPUs than any box this project is about.
inline constexpr std::size_t kMaxRigGpus = 16;

/// Strict, with errors that carry the JSON path. Also checks what a schema can't: ids, sources, a tree without cycles.
Result<Rig> rig_from_json(const Json& document, const std::string& name);

/// `name_or_file`: a file when it holds a slash or ends in ".json", else the name of a rig that came with ar-tune
/// (Reason::usage lists them when there is no such rig).
Result<Rig> load_rig(const std::string& name_or_file);

/// Names of the rigs that came with ar-tune, sorted.
std::vector<std::string> known_rigs();

/// The rule for this ordered pair, the fault on it: pure look-ups in the description.
bool peer_access_allowed(const Rig& rig, std::size_t from, std::size_t to);
const RigFault* fault_between(const Rig& rig, std::size_t from, std::size_t to);

}  // namespace artune
