// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/model/cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/failure.hpp"
#include "machine/model/nccl.hpp"
#include "paths/menu.hpp"

namespace artune::model {
namespace {

constexpr double kBytesPerUs = 1e3;             // of 1 GB/s
constexpr double kLlBytesPerByte = 2;           // half of every packet is the tag
constexpr double kFlagPacketBytes = 32;         // a flag is a PCIe packet of its own: 8 bytes and about 24 of header
constexpr double kBytesInFlightPerThread = 64;  // four vectors of 16 bytes: a choice, no figure for it is published
constexpr double kThreadsOfBlockRate = 512;     // what RigKernels::block_gb_per_s counts for

/// How long this geometry takes to issue `bytes` of loads or stores. Every thread has a few in flight at once; what goes
/// beyond that comes at the rate of its block.
double issue_us(const Rig& rig, const Geometry& geometry, double bytes) {
  const double threads = static_cast<double>(geometry.blocks) * geometry.threads;
  if (threads == 0) return 0;  // copy engines
  const double gb_per_s = rig.kernels.block_gb_per_s.value * threads / kThreadsOfBlockRate;
  return std::max(0.0, bytes - threads * kBytesInFlightPerThread) / (gb_per_s * kBytesPerUs);
}

double longest_way_us(const Group& group) {
  double longest = 0;
  for (const std::size_t a : group.gpus) {
    for (const std::size_t b : group.gpus) longest = std::max(longest, group.tree.latency_us(a, b));
  }
  return longest;
}

double longest_host_way_us(const Group& group) {
  double longest = 0;
  for (const std::size_t a : group.gpus) {
    for (const std::size_t owner : group.gpus) longest = std::max(longest, group.tree.host_latency_us(a, owner));
  }
  return longest;
}

/// Every rank sends `bytes` to every other at once.
double all_to_all_us(const Group& group, double bytes, double link_fraction) {
  std::vector<Flow> flows;
  for (const std::size_t from : group.gpus) {
    for (const std::size_t to : group.gpus) {
      if (from == to) continue;
      flows.push_back(group.tree.between(from, to, bytes));
    }
  }
  return last_completion_us(group.tree.capacities(link_fraction), flows);
}

/// Every rank writes `bytes` once into the host memory next to it.
double host_write_us(const Group& group, double bytes, double link_fraction) {
  std::vector<Flow> flows;
  for (const std::size_t gpu : group.gpus) flows.push_back(group.tree.to_host(gpu, gpu, bytes));
  return last_completion_us(group.tree.capacities(link_fraction), flows);
}

/// Every rank reads the `bytes` of every other.
double host_read_us(const Group& group, double bytes, double link_fraction) {
  std::vector<Flow> flows;
  for (const std::size_t reader : group.gpus) {
    for (const std::size_t writer : group.gpus) {
      if (reader != writer) flows.push_back(group.tree.from_host(reader, writer, bytes));
    }
  }
  return last_completion_us(group.tree.capacities(link_fraction), flows);
}

double push_us(const Group& group, double bytes, const Geometry& geometry, bool flag) {
  const RigKernels& kernels = group.rig.kernels;
  const double wire = flag ? bytes + geometry.blocks * kFlagPacketBytes : bytes * kLlBytesPerByte;
  const double peers = static_cast<double>(group.ranks()) - 1;
  return kernels.one_shot_us.value + (flag ? kernels.flag_us.value : 0) + longest_way_us(group) +
         std::max(all_to_all_us(group, wire, kernels.store_fraction.value), issue_us(group.rig, geometry, peers * wire));
}

/// Write once, N-1 readers. Reading starts when the writing is over: measured one after the other, not overlapped
/// (H200, two ranks on one Gen5 x16 link, 2026-12: LL took 39 µs at 256 KiB and 153 at 1 MiB, the sum of both ways).
double host_push_us(const Group& group, double bytes, const Geometry& geometry, bool flag) {
  const RigKernels& kernels = group.rig.kernels;
  const double wire = flag ? bytes + geometry.blocks * kFlagPacketBytes : bytes * kLlBytesPerByte;
  const double peers = static_cast<double>(group.ranks()) - 1;
  const double way = longest_host_way_us(group);
  // A store's way up, then half a poll that came too early and one that finds it; flag loads the data after that.
  const double round_trips = flag ? 2.5 : 1.5;
  return kernels.one_shot_us.value + (flag ? kernels.flag_us.value : 0) + way + round_trips * 2 * way +
         std::max(host_write_us(group, wire, kernels.store_fraction.value), issue_us(group.rig, geometry, wire)) +
         std::max(host_read_us(group, wire, kernels.load_fraction.value), issue_us(group.rig, geometry, peers * wire));
}

double chunks_of(double bytes, const Geometry& geometry) {
  if (geometry.chunk_bytes == 0) return 1;
  return std::max(1.0, std::ceil(bytes / static_cast<double>(geometry.chunk_bytes)));
}

/// Chunks go down while later ones still go up.
double host_copy_us(const Group& group, double bytes, const Geometry& geometry) {
  const double chunks = chunks_of(bytes, geometry);
  const double first = geometry.chunk_bytes == 0 ? bytes : std::min(bytes, static_cast<double>(geometry.chunk_bytes));
  const double up_first = host_write_us(group, first, 1);
  const double up_rest = host_write_us(group, bytes, 1) - up_first;
  const double down = host_read_us(group, bytes, 1);
  const double copies_down = chunks * static_cast<double>(group.ranks() - 1);
  return group.rig.copies.step_us.value + group.rig.copies.staged_us.value + up_first + std::max(up_rest, down) +
         (copies_down - 1) * group.rig.copies.issue_us.value + add_us(group, bytes);
}

double copy_push_us(const Group& group, double bytes) {
  const double further_copies = static_cast<double>(group.ranks()) - 2;
  return group.rig.copies.step_us.value + further_copies * group.rig.copies.issue_us.value + all_to_all_us(group, bytes, 1) +
         add_us(group, bytes);
}

/// A step more than one-shot, for 2 (N - 1) / N of the bytes instead of N - 1 times them, both ways.
double two_shot_us(const Group& group, double bytes, const Geometry& geometry, Protocol protocol) {
  const RigKernels& kernels = group.rig.kernels;
  const double n = static_cast<double>(group.ranks());
  const double shard = bytes / n * (protocol == Protocol::ll ? kLlBytesPerByte : 1) + (protocol == Protocol::flag ? geometry.blocks * kFlagPacketBytes : 0);
  const double step = longest_way_us(group) + (protocol == Protocol::flag ? kernels.flag_us.value : 0) +
                      std::max(all_to_all_us(group, shard, kernels.store_fraction.value), issue_us(group.rig, geometry, (n - 1) * shard));
  return kernels.one_shot_us.value + 2 * step;
}

/// Reads in place of writes: the flag's way, then the round trip of the loads.
double pull_us(const Group& group, double bytes, const Geometry& geometry, double ends) {
  const RigKernels& kernels = group.rig.kernels;
  const double peers = static_cast<double>(group.ranks()) - 1;
  return kernels.one_shot_us.value + (1 + ends) * (kernels.flag_us.value + longest_way_us(group)) + 2 * longest_way_us(group) +
         std::max(all_to_all_us(group, bytes, kernels.load_fraction.value), issue_us(group.rig, geometry, peers * bytes));
}

/// As two_shot_us, read by the owners and then by everybody.
double two_shot_pull_us(const Group& group, double bytes, const Geometry& geometry) {
  const double shard = bytes / static_cast<double>(group.ranks());
  return 2 * pull_us(group, shard, geometry, 0) - group.rig.kernels.one_shot_us.value;
}

/// Inside islands of consecutive ranks, across, inside; the ways inside are taken as long as the longest.
double hierarchical_us(const Group& group, double bytes, const Geometry& geometry) {
  const double shard = bytes / island_size_of(static_cast<int>(group.ranks()));
  const RigKernels& kernels = group.rig.kernels;
  const auto step = [&](double moved) {
    return longest_way_us(group) + kernels.flag_us.value + std::max(all_to_all_us(group, moved, kernels.store_fraction.value) / 2, issue_us(group.rig, geometry, moved));
  };
  return kernels.one_shot_us.value + 2 * step(shard) + step(2 * shard);
}

double ring_us(const Group& group, double bytes) {
  const double n = static_cast<double>(group.ranks());
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < group.gpus.size(); ++i) {
    flows.push_back(group.tree.between(group.gpus[i], group.gpus[(i + 1) % group.gpus.size()], bytes / n));
  }
  const double step = group.rig.copies.step_us.value + last_completion_us(group.tree.capacities(1), flows);
  return 2 * (n - 1) * step + add_us(group, bytes);
}

double device_us_of(const Group& group, const CandidateInfo& info, const Geometry& geometry, double bytes) {
  const bool flag = info.protocol == Protocol::flag;
  switch (info.algorithm) {
    case Algorithm::library: return nccl_cost(group, bytes, geometry.max_ctas).us;
    case Algorithm::one_shot:
      switch (info.staging) {
        case Staging::host: return host_push_us(group, bytes, geometry, flag);
        case Staging::sender: return pull_us(group, bytes, geometry, 0);
        case Staging::none: return pull_us(group, bytes, geometry, 1);
        case Staging::receiver: break;
      }
      // A sentinel costs no bytes, and no flag: half of what LL sends.
      return info.protocol == Protocol::sentinel ? push_us(group, bytes / kLlBytesPerByte, geometry, false) : push_us(group, bytes, geometry, flag);
    case Algorithm::two_shot:
      switch (info.staging) {
        case Staging::host: return 2 * host_push_us(group, bytes / static_cast<double>(group.ranks()) * 1.5, geometry, flag);
        case Staging::sender: return two_shot_pull_us(group, bytes, geometry);
        case Staging::none: return pull_us(group, 2 * bytes / static_cast<double>(group.ranks()), geometry, 1);
        case Staging::receiver: break;
      }
      return two_shot_us(group, bytes, geometry, info.protocol);
    case Algorithm::hierarchical: return hierarchical_us(group, bytes, geometry);
    case Algorithm::copies: return info.path == Path::host ? host_copy_us(group, bytes, geometry) : copy_push_us(group, bytes);
    case Algorithm::ring: return ring_us(group, bytes);
  }
  throw Failure("call_cost", "no formula for this candidate", static_cast<int>(info.id));
}

/// Host time to issue one eager call on one rank.
double eager_rank_us(const Group& group, const CandidateInfo& info, const Geometry& geometry, double bytes) {
  const RigLaunch& launch = group.rig.launch;
  const double peers = static_cast<double>(group.ranks()) - 1;
  switch (info.algorithm) {
    case Algorithm::library: return launch.nccl_eager_us.value;
    case Algorithm::copies:
      if (info.path == Path::ce) return launch.eager_call_us.value * (2 * peers + 2);  // copies, waits, event, add
      return launch.eager_call_us.value * (chunks_of(bytes, geometry) * (2 + 2 * peers) + 1);
    case Algorithm::ring: return launch.eager_call_us.value * (6 * peers + 1);
    default: return launch.eager_call_us.value;
  }
}

}  // namespace

double add_us(const Group& group, double bytes) {
  double slowest = 0;
  for (const std::size_t gpu : group.gpus) {
    const double moved = (static_cast<double>(group.ranks()) + 1) * bytes;
    slowest = std::max(slowest, moved / (group.rig.gpus[gpu].memory_gb_per_s * kBytesPerUs));
  }
  return slowest;
}

Cost call_cost(const Group& group, const Candidate& candidate, const Shape& shape) {
  const CandidateInfo* info = find_candidate(candidate.name);
  if (info == nullptr) throw Failure("call_cost", "'" + candidate.name + "' is not on the menu", 0);
  const double bytes = static_cast<double>(shape.wire_bytes());
  Cost cost;
  cost.device_us = device_us_of(group, *info, candidate.geometry, bytes);
  const double one_rank_us = shape.mode == Mode::graph ? group.rig.launch.eager_call_us.value
                                                       : eager_rank_us(group, *info, candidate.geometry, bytes);
  const bool one_thread = shape.launch == Launch::one_thread;
  cost.host_us = one_rank_us * (one_thread ? static_cast<double>(group.ranks()) : 1);
  // A kernel of NCCL's is a launch like ours; its base latency was fitted without graphs and holds it already.
  const double launch_us = info->id == CandidateId::nccl ? 0 : group.rig.launch.graph_us.value;
  cost.call_us = launch_us + cost.device_us;
  if (shape.mode == Mode::eager) cost.call_us = std::max(cost.call_us, cost.host_us);
  return cost;
}

double limit_us(const Group& group, double bytes) {
  const std::vector<double> capacities = group.tree.capacities(1);
  const double n = static_cast<double>(group.ranks());
  double all_links = 0;
  double narrowest = 0;
  for (const std::size_t gpu : group.gpus) {
    const std::size_t link = group.tree.link_of(gpu);
    const double both_ways = std::min(capacities[2 * link], capacities[2 * link + 1]);
    all_links += both_ways;
    narrowest = narrowest == 0 ? both_ways : std::min(narrowest, both_ways);
  }
  // Any link between two members splits the group, and `bytes` must cross it each way.
  for (const std::size_t a : group.gpus) {
    for (const std::size_t b : group.gpus) {
      if (a == b) continue;
      for (const std::size_t resource : group.tree.between(a, b, 0).links) narrowest = std::min(narrowest, capacities[resource]);
    }
  }
  const double moving = std::max(2 * (n - 1) * bytes / (all_links * kBytesPerUs), bytes / (narrowest * kBytesPerUs));
  return group.rig.launch.graph_us.value + longest_way_us(group) + moving;
}

}  // namespace artune::model
