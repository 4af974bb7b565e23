// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.hpp"
#include "cli/group_facts.hpp"
#include "probe/device_selection.hpp"

namespace artune {
namespace {

std::unique_ptr<SupervisedMachine> supervise(CliContext& context, const MachineOptions& options) {
  SupervisorSettings settings;
  settings.options = options;
  settings.deadlines = deadlines_for(options);
  settings.on_event = [&context](const std::string& line) { context.note(line); };
  return std::make_unique<SupervisedMachine>(std::move(settings));
}

/// A rig's GPUs in the probe's words, so that --devices means the same for both.
Topology topology_of_rig(const DocumentHeader& header) {
  Topology topology;
  topology.header = header;
  for (const GpuFacts& gpu : header.machine.gpus) {
    ProbedGpu probed;
    probed.index = gpu.index;
    probed.pci_address = gpu.pci_address;
    probed.name = gpu.name;
    probed.cuda_ordinal = gpu.index;
    topology.gpus.push_back(std::move(probed));
  }
  return topology;
}

Result<MachineChoice> choose_rig(CliContext& context, MachineOptions options) {
  if (!options.nccl_file.empty()) return Error{Reason::usage, "--nccl names a library to run, a rig runs none; leave out one of them"};
  const Result<Rig> rig = load_rig(options.rig);
  if (!rig) return rig.error();
  Result<DocumentHeader> header = supervise(context, options)->describe();
  if (!header) return header.error();
  const Result<std::vector<int>> devices = select_devices(context.machine.devices, topology_of_rig(*header));
  if (!devices) return devices.error();
  options.devices = header->world->devices = *devices;
  if (devices->size() < 2) {
    return Error{Reason::usage, fmt::format("an all-reduce needs two ranks, and --devices names one GPU of rig {}; name two", rig->name)};
  }
  return MachineChoice{options, header->machine, group_facts_of(*rig, *header), Json::array()};
}

std::string process_text(const OtherProcess& process) {
  std::string text = "process " + std::to_string(process.pid);
  if (!process.name.empty()) text += " (" + process.name + ")";
  return text;
}

Status refuse_busy(const Topology& topology, const MachineChoice& choice) {
  for (const int device : choice.options.devices) {
    const ProbedGpu* gpu = topology.find_gpu(device);
    if (gpu == nullptr || gpu->other_processes.empty()) continue;
    const std::size_t more = gpu->other_processes.size() - 1;
    return Error{Reason::busy_gpu, fmt::format("GPU {} ({}, {}) is in use by {}{}; end it, choose other --devices, or measure beside it with --busy-ok",
                                               gpu->index, gpu->pci_address, gpu->name, process_text(gpu->other_processes.front()),
                                               more == 0 ? "" : fmt::format(" and {} more", more))};
  }
  return Ok{};
}

Json processes_to_json(const Topology& topology, const std::vector<int>& devices) {
  Json list = Json::array();
  for (const int device : devices) {
    const ProbedGpu* gpu = topology.find_gpu(device);
    if (gpu == nullptr) continue;
    for (const OtherProcess& process : gpu->other_processes) {
      list.push_back({{"gpu", gpu->index}, {"pci_address", gpu->pci_address}, {"gpu_name", gpu->name}, {"pid", process.pid}, {"name", process.name}});
    }
  }
  return list;
}

Result<MachineChoice> choose_gpus(CliContext& context, MachineOptions options) {
  const Result<Json> probed = supervise(context, options)->topology();
  if (!probed) return probed.error();
  const Result<Topology> topology = topology_from_json(*probed, "probe");
  if (!topology) return Error{Reason::internal, topology.error().message};
  const Result<std::vector<int>> devices = select_devices(context.machine.devices, *topology);
  if (!devices) return devices.error();
  options.devices = *devices;
  World world;
  world.devices = *devices;
  world.ranks_per_gpu = options.ranks_per_gpu;
  MachineChoice choice{options, topology->header.machine, group_facts_of(*topology, world), Json::array()};
  if (choice.ranks() < 2) {
    const ProbedGpu* gpu = devices->empty() ? nullptr : topology->find_gpu(devices->front());
    return Error{Reason::usage, fmt::format("an all-reduce needs two ranks, and the group has {}; add --ranks-per-gpu 2 to rehearse with ranks that share it",
                                            gpu == nullptr ? "no GPU" : fmt::format("one GPU (index {}, {}, {})", gpu->index, gpu->pci_address, gpu->name))};
  }
  if (context.machine.busy_ok) {
    choice.other_processes = processes_to_json(*topology, *devices);
    if (!choice.other_processes.empty()) context.note("other processes use these GPUs; the figures are those of a shared machine");
  } else if (Status free = refuse_busy(*topology, choice); !free) {
    return free.error();
  }
  return choice;
}

}  // namespace

Result<MachineOptions> read_machine_flags(const MachineFlags& flags) {
  const Result<std::size_t> max_memory = parse_size(flags.max_memory);
  if (!max_memory) return Error{Reason::usage, "--max-memory: " + max_memory.error().message};
  const Result<double> timeout = parse_duration(flags.timeout);
  if (!timeout) return Error{Reason::usage, "--timeout: " + timeout.error().message};
  constexpr double kLongestTimeout_s = 600;
  if (*timeout <= 0 || *timeout > kLongestTimeout_s) return Error{Reason::usage, "--timeout '" + flags.timeout + "': must be above 0 and at most 10m"};
  MachineOptions options;
  options.rig = flags.rig;
  options.ranks_per_gpu = flags.ranks_per_gpu;
  options.nccl_file = flags.nccl;
  options.max_memory_bytes = *max_memory;
  options.timeout_s = *timeout;
  options.seed = flags.seed;
  options.risky = flags.risky;
  return options;
}

Result<MachineChoice> choose_machine(CliContext& context) {
  const Result<MachineOptions> options = read_machine_flags(context.machine);
  if (!options) return options.error();
  return options->rig.empty() ? choose_gpus(context, *options) : choose_rig(context, *options);
}

Result<Session> open_session(CliContext& context, const MachineChoice& choice, std::vector<int> ranks, const std::string& profile) {
  Session session;
  if (!choice.simulated()) {
    std::vector<GpuFacts> gpus;
    for (const GpuFacts& gpu : choice.facts.gpus) {
      if (std::count(choice.options.devices.begin(), choice.options.devices.end(), gpu.index) > 0) gpus.push_back(gpu);
    }
    Result<GpuLock> lock = GpuLock::take(gpus, lock_directory());
    if (!lock) return lock.error();
    session.lock.emplace(std::move(*lock));
  }
  MachineOptions options = choice.options;
  options.ranks = std::move(ranks);
  options.profile = profile;
  session.machine = supervise(context, options);
  return session;
}

}  // namespace artune
