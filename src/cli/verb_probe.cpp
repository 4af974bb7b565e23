// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_probe.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <ostream>
#include <set>

#include "base/file.hpp"
#include "cli/group_facts.hpp"
#include "cli/session.hpp"
#include "machine/rig.hpp"
#include "probe/device_selection.hpp"
#include "probe/print.hpp"
#include "probe/topology.hpp"

namespace artune {
namespace {

SupervisedMachine supervise(CliContext& context, const MachineOptions& options) {
  SupervisorSettings settings;
  settings.options = options;
  settings.deadlines = deadlines_for(options);
  settings.on_event = [&context](const std::string& line) { context.note(line); };
  return SupervisedMachine(std::move(settings));
}

PeerLevel level_of(const std::string& pair_class) {
  for (const auto& entry : WordTable<PeerLevel>::entries) {
    std::string spelling(entry.spelling);
    std::transform(spelling.begin(), spelling.end(), spelling.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (spelling == pair_class) return entry.value;
  }
  return PeerLevel::unknown;
}

/// A rig names its switches itself, and describes each as one thing: its ports have no PCI functions of their own.
std::vector<Link> links_of(const Rig& rig) {
  std::map<std::string, const RigLink*> upwards;  // by the id of the lower end
  for (const auto& link : rig.links) {
    const bool root_first =
        std::any_of(rig.root_ports.begin(), rig.root_ports.end(), [&](const RigRootPort& port) { return port.id == link.from; });
    const bool socket_first =
        std::any_of(rig.sockets.begin(), rig.sockets.end(), [&](const RigSocket& socket) { return socket.id == link.from; });
    const bool gpu_last = std::any_of(rig.gpus.begin(), rig.gpus.end(), [&](const RigGpu& gpu) { return gpu.id == link.to; });
    upwards.emplace(root_first || socket_first || gpu_last ? link.to : link.from, &link);
  }
  std::vector<Link> gpu_links, switch_links;
  for (std::size_t g = 0; g < rig.gpus.size(); ++g) {
    std::string id = rig.gpus[g].id;
    for (auto it = upwards.find(id); it != upwards.end(); it = upwards.find(id)) {
      const RigLink& up = *it->second;
      const std::string above = up.from == id ? up.to : up.from;
      const bool is_gpu = id == rig.gpus[g].id;
      const bool above_is_switch =
          std::any_of(rig.switches.begin(), rig.switches.end(), [&](const RigSwitch& s) { return s.id == above; });
      const auto same =
          std::find_if(switch_links.begin(), switch_links.end(), [&](const Link& link) { return link.address == id; });
      if (!is_gpu && same != switch_links.end()) {
        same->gpus.push_back(static_cast<int>(g));
      } else {
        Link link;
        link.address = is_gpu ? rig.gpus[g].pci_address : id;
        link.parent = above_is_switch ? above : "";
        link.kind = is_gpu ? LinkKind::gpu : LinkKind::upstream_port;
        link.name = is_gpu ? rig.gpus[g].name : "";
        link.gpus = {static_cast<int>(g)};
        link.now = link.max = {up.generation, up.width};
        link.acs_redirect = AcsRedirect::absent;
        (is_gpu ? gpu_links : switch_links).push_back(std::move(link));
      }
      if (!above_is_switch) break;
      id = above;
    }
  }
  gpu_links.insert(gpu_links.end(), switch_links.begin(), switch_links.end());
  return gpu_links;
}

Result<Topology> probe_rig(CliContext& context, const MachineOptions& options) {
  const Result<Rig> rig = load_rig(options.rig);
  if (!rig) return rig.error();
  const Result<DocumentHeader> header = supervise(context, options).describe();
  if (!header) return header.error();
  Topology topology;
  topology.header = *header;
  topology.header.kind = kProbeKind;
  topology.header.version = kProbeVersion;
  topology.header.world.reset();
  for (const GpuFacts& facts : header->machine.gpus) {
    ProbedGpu gpu;
    gpu.index = facts.index;
    gpu.pci_address = facts.pci_address;
    gpu.name = facts.name;
    gpu.cuda_ordinal = facts.index;
    gpu.iommu_group_type = header->machine.iommu_mode;
    topology.gpus.push_back(std::move(gpu));
  }
  topology.links = links_of(*rig);
  topology.packages = static_cast<int>(rig->sockets.size());
  std::set<int> nodes;
  for (const RigSocket& socket : rig->sockets) nodes.insert(socket.numa_node);
  for (const int number : nodes) {
    NumaNode node{number, 0, {}};
    for (const GpuFacts& facts : header->machine.gpus) {
      if (facts.numa_node == number) node.gpus.push_back(facts.index);
    }
    topology.numa.push_back(std::move(node));
  }
  for (std::size_t from = 0; from < rig->gpus.size(); ++from) {
    for (std::size_t to = 0; to < rig->gpus.size(); ++to) {
      if (from == to) continue;
      Pair pair;
      pair.from = static_cast<int>(from);
      pair.to = static_cast<int>(to);
      pair.level = level_of(rig_pair_class(*rig, from, to));
      pair.access = peer_access_allowed(*rig, from, to);
      topology.pairs.push_back(std::move(pair));
    }
  }
  return topology;
}

Result<Topology> probe_gpus(CliContext& context, const MachineOptions& options) {
  const Result<Json> probed = supervise(context, options).topology();
  if (!probed) return probed.error();
  Result<Topology> topology = topology_from_json(*probed, "probe");
  if (!topology) return Error{Reason::internal, topology.error().message};  // our own worker wrote it
  return topology;
}

std::string next_command(const CliContext& context, const Topology& topology) {
  std::string command = "ar-tune tune";
  if (!context.machine.rig.empty()) command += " --rig " + context.machine.rig;
  for (std::size_t i = 0; i < context.machine.devices.size(); ++i)
    command += (i == 0 ? " --devices " : ",") + context.machine.devices[i];
  const auto usable = std::count_if(topology.gpus.begin(), topology.gpus.end(),
                                    [](const ProbedGpu& gpu) { return gpu.cuda_ordinal.has_value(); });
  if (usable == 1) command += " --ranks-per-gpu 2";
  return command;
}

Status run(CliContext& context) {
  if (!context.output.file.empty()) {
    if (Status writable = check_writable(context.output.file); !writable) return writable;
  }
  const Result<MachineOptions> options = read_machine_flags(context.machine);
  if (!options) return options.error();
  if (!options->rig.empty() && !options->nccl_file.empty()) {
    return Error{Reason::usage, "--nccl names a library to run, a rig runs none; leave out one of them"};
  }
  Result<Topology> topology = options->rig.empty() ? probe_gpus(context, *options) : probe_rig(context, *options);
  if (!topology) return topology.error();
  if (!context.machine.devices.empty()) {
    const Result<std::vector<int>> devices = select_devices(context.machine.devices, *topology);
    if (!devices) return devices.error();
    *topology = restricted_to(*topology, *devices);
  }
  context.human() << topology_tables(*topology);
  for (const std::string& line : topology_closing_lines(*topology, next_command(context, *topology)))
    context.human() << line << "\n";
  context.human().flush();
  context.print_document(topology_to_json(*topology));
  return context.write_document(topology_to_text(*topology));
}

std::function<Status()> configure(CLI::App& app, CliContext& context) {
  add_machine_options(app, context.machine);
  app.add_option("-o,--output", context.output.file, "write the probe document here")->type_name("FILE");
  return [&context] { return run(context); };
}

}  // namespace

const Verb kProbeVerb{"probe", "Show what this machine is: GPUs, links, pairs, driver, NCCL",
                      "ar-tune probe\nar-tune probe --json -o probe.json", configure};

}  // namespace artune
