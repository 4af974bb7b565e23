// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace artune {
namespace {

using Row = std::vector<std::string>;

/// Columns as wide as their widest cell, two spaces between them.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string mebibytes(std::size_t bytes) { return bytes == 0 ? "?" : fmt::format("{} MiB", bytes >> 20); }

std::string link_text(const LinkState& link) {
  if (link.generation == 0 && link.width == 0) return "?";
  return fmt::format("Gen{} x{}", link.generation == 0 ? "?" : std::to_string(link.generation), link.width);
}

std::string or_question(const std::string& text) { return text.empty() ? "?" : text; }

/// Idle GPUs lower their generation, never their width: the first is normal here, the second is not.
bool is_idle(const LinkState& now, const LinkState& max) { return now.generation > 0 && now.generation < max.generation; }
bool is_narrow(const LinkState& now, const LinkState& max) { return now.width > 0 && now.width < max.width; }

std::string link_now_text(const LinkState& now, const LinkState& max) {
  std::string text = link_text(now);
  if (is_idle(now, max)) text += " (idle)";
  if (is_narrow(now, max)) text += " (narrow)";
  return text;
}

std::string gpu_rows(const Topology& topology) {
  std::vector<Row> rows{
      {"GPU", "PCI address", "name", "memory", "BAR1", "CC", "SMs", "L2", "link now", "link max", "NUMA", "power", "CUDA"}};
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    const GpuFacts& gpu = topology.header.machine.gpus[i];
    rows.push_back({std::to_string(gpu.index), gpu.pci_address, gpu.name, mebibytes(gpu.memory_bytes), mebibytes(gpu.bar1_bytes),
                    or_question(gpu.compute_capability), gpu.multiprocessors == 0 ? "?" : std::to_string(gpu.multiprocessors),
                    mebibytes(gpu.l2_bytes), link_now_text(gpu.link_now, gpu.link_max), link_text(gpu.link_max),
                    gpu.numa_node < 0 ? "?" : std::to_string(gpu.numa_node),
                    gpu.power_limit_w > 0 ? fmt::format("{:.0f} W", gpu.power_limit_w) : "?",
                    topology.gpus[i].cuda_ordinal ? std::to_string(*topology.gpus[i].cuda_ordinal) : "hidden"});
  }
  return table(rows);
}

/// Only bridges: the GPUs' own ends stand in the table above.
std::string link_rows(const Topology& topology) {
  std::vector<Row> rows{{"port", "kind", "device", "link now", "link max", "ACS redirect", "GPUs"}};
  for (const auto& link : topology.links) {
    if (link.kind == LinkKind::gpu) continue;
    const std::string device = link.name.empty() ? link.vendor_device : link.vendor_device + " " + link.name;
    rows.push_back({link.address, std::string(to_string(link.kind)), device, link_now_text(link.now, link.max),
                    link_text(link.max), std::string(to_string(link.acs_redirect)),
                    fmt::format("{}", fmt::join(link.gpus, ","))});
  }
  return rows.size() == 1 ? "" : table(rows);
}

/// "PHB P2P", "SYS no (CNS)", "NODE P2P (risk)"
std::string pair_cell(const Pair& pair) {
  std::string text(to_string(pair.level));
  if (pair.nvml_nvlink == P2pStatus::ok) text += " NVLink";
  if (!pair.access) return text + " ?";
  if (*pair.access) return text + " P2P" + (pair.risks.empty() ? "" : " (risk)");
  const P2pStatus why = pair.nvml_write != P2pStatus::ok ? pair.nvml_write : pair.nvml_read;
  return text + " no" + (why == P2pStatus::ok || why == P2pStatus::unknown ? "" : fmt::format(" ({})", to_string(why)));
}

std::string pair_rows(const Topology& topology) {
  Row heads{"from \\ to"};
  for (const auto& gpu : topology.gpus) heads.push_back(std::to_string(gpu.index));
  std::vector<Row> rows{heads};
  for (const auto& from : topology.gpus) {
    Row row{std::to_string(from.index)};
    for (const auto& to : topology.gpus) {
      const Pair* pair = topology.find_pair(from.index, to.index);
      row.push_back(pair == nullptr ? "-" : pair_cell(*pair));
    }
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string numa_rows(const Topology& topology) {
  std::vector<Row> rows{{"NUMA node", "CPUs", "GPUs"}};
  for (const auto& node : topology.numa) {
    rows.push_back({std::to_string(node.node), node.cpus == 0 ? "?" : std::to_string(node.cpus),
                    node.gpus.empty() ? "-" : fmt::format("{}", fmt::join(node.gpus, ","))});
  }
  return table(rows);
}

std::string machine_rows(const Topology& topology) {
  const MachineFacts& machine = topology.header.machine;
  std::vector<Row> rows{
      {"driver", or_question(machine.driver)},
      {"CUDA", fmt::format("{} (driver), {} (ar-tune)", or_question(machine.cuda_driver), or_question(machine.cuda_runtime))},
      {"NCCL", machine.nccl_version.empty() ? "none found" : fmt::format("{}  {}", machine.nccl_version, machine.nccl_file)},
      {"kernel", or_question(machine.kernel)},
      {"BIOS", or_question(machine.bios)},
      {"host bridge", or_question(topology.host_bridge) + (topology.intel_client ? " (Intel client)" : "")},
      {"IOMMU", machine.iommu_mode},
      {"container", machine.container},
      {"VM", machine.vm}};
  if (!machine.registry_dwords.empty()) rows.push_back({"RegistryDwords", machine.registry_dwords});
  if (!machine.boot_switches.empty()) rows.push_back({"boot switches", machine.boot_switches});
  return table(rows);
}

std::string process_text(const OtherProcess& process) {
  return fmt::format("{} (pid {}{})", process.name.empty() ? "a process" : process.name, process.pid,
                     process.memory_bytes ? ", " + mebibytes(*process.memory_bytes) : "");
}

std::string process_rows(const Topology& topology) {
  std::vector<Row> rows{{"GPU", "pid", "memory", "process"}};
  for (const auto& gpu : topology.gpus) {
    for (const auto& process : gpu.other_processes) {
      rows.push_back({std::to_string(gpu.index), std::to_string(process.pid),
                      process.memory_bytes ? mebibytes(*process.memory_bytes) : "?", or_question(process.name)});
    }
  }
  return rows.size() == 1 ? "" : table(rows);
}

/// "2x NVIDIA H200, 1x NVIDIA L4"
std::string gpu_summary(const Topology& topology) {
  std::vector<std::pair<std::string, int>> counts;
  for (const auto& gpu : topology.gpus) {
    const auto it = std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == gpu.name; });
    if (it == counts.end()) {
      counts.emplace_back(gpu.name, 1);
    } else {
      ++it->second;
    }
  }
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{}{}x {}", text.empty() ? "" : ", ", count, name);
  return text;
}

std::string p2p_line(const Topology& topology) {
  std::size_t allowed = 0, asked = 0, nvlink = 0;
  std::map<std::string, int> refusals;
  for (const auto& pair : topology.pairs) {
    if (!pair.access) continue;
    ++asked;
    if (*pair.access) {
      ++allowed;
      nvlink += pair.nvml_nvlink == P2pStatus::ok ? 1U : 0U;
    } else {
      const P2pStatus why = pair.nvml_write != P2pStatus::ok ? pair.nvml_write : pair.nvml_read;
      if (why != P2pStatus::ok) ++refusals[std::string(to_string(why))];
    }
  }
  const std::string who_says = topology.header.simulated ? "the rig" : "CUDA";
  if (asked == 0)
    return "P2P: " + who_says + " shows one GPU, so there is no pair; ranks can share it for a rehearsal with --ranks-per-gpu 2";
  const std::string who =
      topology.gpus.size() == 2 ? fmt::format("between {} and {}", topology.gpus[0].index, topology.gpus[1].index) : "";
  std::string text;
  if (allowed == asked) {
    text = who.empty() ? fmt::format("P2P: {} allows it for all {} ordered pairs", who_says, asked)
                       : "P2P " + who + ": " + who_says + " allows it both ways";
  } else if (allowed == 0) {
    text = who.empty() ? fmt::format("P2P: {} allows it for none of {} ordered pairs", who_says, asked)
                       : "P2P " + who + ": " + who_says + " doesn't allow it";
    if (!refusals.empty()) {
      const auto most =
          std::max_element(refusals.begin(), refusals.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      text += fmt::format(" (driver says {})", most->first);
    }
    return text + "; NCCL and the host paths remain";
  } else {
    text = fmt::format("P2P: {} allows it for {} of {} ordered pairs", who_says, allowed, asked);
  }
  if (nvlink > 0) text += nvlink == allowed ? ", over NVLink" : fmt::format(", {} of them over NVLink", nvlink);
  return text + (topology.header.simulated ? "" : " (its answer; not tested here)");
}

/// The first reason against an active test, and how many pairs have one.
std::string risk_line(const Topology& topology) {
  std::size_t risky = 0;
  const Pair* first = nullptr;
  for (const auto& pair : topology.pairs) {
    if (pair.risks.empty() || !pair.access.value_or(false)) continue;
    if (first == nullptr) first = &pair;
    ++risky;
  }
  if (first == nullptr) return "";
  return fmt::format("Not tested without --risky, {} of {} pairs: {}", risky, topology.pairs.size(), first->risks.front());
}

std::string narrow_line(const Topology& topology) {
  for (const auto& gpu : topology.header.machine.gpus) {
    for (const Link* link : topology.path_of(gpu.index)) {
      const bool own_end = link->kind == LinkKind::gpu;
      const LinkState& now = own_end ? gpu.link_now : link->now;
      const LinkState& max = own_end ? gpu.link_max : link->max;
      if (link->kind != LinkKind::upstream_port && !own_end) continue;  // the upper end of a link repeats its lower end
      if (!is_narrow(now, max)) continue;
      return fmt::format("GPU {}: the link of {} runs on {} of {} lanes; check slot, riser and BIOS if that is not meant",
                         gpu.index, own_end ? "the GPU itself" : link->address, now.width, max.width);
    }
  }
  return "";
}

std::string busy_line(const Topology& topology) {
  std::string text;
  std::size_t more = 0;
  for (const auto& gpu : topology.gpus) {
    for (const auto& process : gpu.other_processes) {
      if (text.empty()) {
        text = fmt::format("GPU {} is in use by {}", gpu.index, process_text(process));
      } else {
        ++more;
      }
    }
  }
  if (text.empty()) return "";
  if (more > 0) text += fmt::format(" and {} more", more);
  return text + ": measuring needs it idle, or --busy-ok";
}

}  // namespace

std::string topology_tables(const Topology& topology) {
  const auto section = [](const std::string& title, const std::string& body) {
    return body.empty() ? "" : title + "\n" + body + "\n";
  };
  std::string text = section("GPUs (index as nvidia-smi counts; CUDA: ordinal in this process)", gpu_rows(topology));
  text += section("Ports from the GPUs up to the CPU", link_rows(topology));
  if (topology.gpus.size() > 1) {
    text += section("Pairs (level as nvidia-smi; P2P: CUDA allows access; risk: an active test may wedge the machine)",
                    pair_rows(topology));
  }
  if (!topology.numa.empty())
    text += section(fmt::format("NUMA ({} CPU package{})", topology.packages, topology.packages == 1 ? "" : "s"),
                    numa_rows(topology));
  if (!topology.header.simulated) text += section("Machine", machine_rows(topology));
  text += section("Other processes", process_rows(topology));
  return text;
}

std::vector<std::string> topology_closing_lines(const Topology& topology, const std::string& next_command) {
  const MachineFacts& machine = topology.header.machine;
  const std::string versions =
      fmt::format("driver {}, CUDA {}, {}", or_question(machine.driver), or_question(machine.cuda_driver),
                  machine.nccl_version.empty() ? "no NCCL (name one with --nccl FILE)" : "NCCL " + machine.nccl_version);
  std::vector<std::string> lines{
      gpu_summary(topology) + (topology.header.simulated ? ": simulated, described by a rig" : ": " + versions),
      p2p_line(topology)};
  for (const std::string& line : {risk_line(topology), narrow_line(topology), busy_line(topology)}) {
    if (!line.empty()) lines.push_back(line);
  }
  lines.push_back("Next: " + next_command);
  return lines;
}

}  // namespace artune
