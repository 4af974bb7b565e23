// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/rig_machine.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#include "base/sha256.hpp"
#include "machine/model/cost.hpp"
#include "machine/model/overlap.hpp"
#include "paths/menu.hpp"

namespace artune {
namespace {

/// Calls per simulated batch where the request leaves it open; the model's figure doesn't depend on it.
constexpr int kDefaultBatch = 50;
constexpr std::size_t kUuidDigits = 16;

/// What simulated machines answer where there is no fact to give.
const char* const kNoFact = "simulated";

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a: the same on every machine and library, unlike std::hash, since seeds must reproduce elsewhere.
std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// |z| of a standard normal, by Box and Muller from two hashed uniforms. One-sided: interference only ever delays.
double half_normal(std::uint64_t seed) {
  const auto uniform = [](std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform(mix(seed))));
  return std::abs(radius * std::cos(2 * std::numbers::pi * uniform(mix(seed + 0x9e3779b97f4a7c15))));
}

std::string key_of(const Candidate& candidate, const Shape& shape) {
  std::string key = candidate.label();
  for (const std::string_view word :
       {to_string(shape.dtype), to_string(shape.mode), to_string(shape.launch), to_string(shape.regime)}) {
    key += ' ';
    key += word;
  }
  if (shape.lossy()) key += " as " + std::string(to_string(shape.wire));
  return key + ' ' + std::to_string(shape.ranks) + ' ' + std::to_string(shape.bytes);
}

std::string pair_text(const Rig& rig, std::size_t from, std::size_t to) { return rig.gpus[from].id + " to " + rig.gpus[to].id; }

}  // namespace

RigMachine::RigMachine(Rig rig, World world, std::uint64_t seed)
    : rig_(std::move(rig)), world_(std::move(world)), seed_(seed), tree_(rig_) {}

std::vector<std::size_t> RigMachine::gpus_of(int ranks) const {
  if (ranks < 2 || static_cast<std::size_t>(ranks) > world_.devices.size()) return {};
  std::vector<std::size_t> gpus;
  for (int rank = 0; rank < ranks; ++rank)
    gpus.push_back(static_cast<std::size_t>(world_.devices[static_cast<std::size_t>(rank)]));
  return gpus;
}

Result<DocumentHeader> RigMachine::describe() {
  DocumentHeader header;
  header.tool = tool_name();
  header.created = now_rfc3339();
  header.simulated = true;
  header.world = world_;
  MachineFacts& machine = header.machine;
  std::set<int> nodes;
  for (const RigSocket& socket : rig_.sockets) nodes.insert(socket.numa_node);
  for (std::size_t i = 0; i < rig_.gpus.size(); ++i) {
    const RigGpu& gpu = rig_.gpus[i];
    const RigLink& link = rig_.links[tree_.link_of(i)];
    GpuFacts facts;
    facts.index = static_cast<int>(i);
    facts.name = gpu.name;
    facts.pci_address = gpu.pci_address;
    facts.uuid_sha256 = sha256_hex(rig_.name + "/" + gpu.id).substr(0, kUuidDigits);
    facts.memory_bytes = gpu.memory_bytes;
    facts.bar1_bytes = gpu.bar1_bytes;
    facts.l2_bytes = gpu.l2_bytes;
    facts.compute_capability = gpu.compute_capability;
    facts.multiprocessors = gpu.multiprocessors;
    facts.link_now = facts.link_max = {link.generation, link.width};
    facts.numa_node = rig_.sockets[tree_.socket_of(i)].numa_node;
    facts.power_limit_w = gpu.power_limit_w;
    machine.gpus.push_back(facts);
  }
  machine.driver = machine.cuda_driver = machine.cuda_runtime = machine.kernel = machine.bios = machine.iommu_mode = kNoFact;
  if (rig_.nccl.available) machine.nccl_version = kNoFact;
  machine.numa_nodes = static_cast<int>(nodes.size());
  machine.container = machine.vm = "none";
  return header;
}

PairVerdict RigMachine::verdict_of(std::size_t from, std::size_t to, Path path) const {
  PairVerdict verdict{
      .from = static_cast<int>(from), .to = static_cast<int>(to), .path = path, .verdict = "usable", .reason = {}};
  if (!peer_access_allowed(rig_, from, to)) {
    verdict.verdict = "unavailable";
    verdict.reason = "no peer access from " + pair_text(rig_, from, to);
    return verdict;
  }
  const RigFault* fault = fault_between(rig_, from, to);
  if (fault != nullptr && fault->kind == RigFaultKind::wrong_data) {
    verdict.verdict = "wrong-data";
    verdict.reason = "the owner doesn't read what was stored (" + fault->name + ")";
  } else if (fault != nullptr && fault->kind == RigFaultKind::hangs) {
    verdict.verdict = "hangs";
    verdict.reason = "the flag never arrives (" + fault->name + ")";
  } else {
    verdict.one_way_us = tree_.latency_us(from, to);
  }
  return verdict;
}

std::vector<PairVerdict> RigMachine::verdicts() {
  std::vector<PairVerdict> verdicts;
  for (const Path path : {Path::p2p, Path::ce}) {
    for (const int from : world_.devices) {
      for (const int to : world_.devices) {
        if (from != to) verdicts.push_back(verdict_of(static_cast<std::size_t>(from), static_cast<std::size_t>(to), path));
      }
    }
  }
  return verdicts;
}

std::string RigMachine::peer_refusal(const std::vector<std::size_t>& gpus) const {
  for (const std::size_t from : gpus) {
    for (const std::size_t to : gpus) {
      if (from == to) continue;
      const PairVerdict verdict = verdict_of(from, to, Path::p2p);
      if (verdict.verdict != "usable")
        return "pair " + pair_text(rig_, from, to) + ": " + verdict.verdict + ", " + verdict.reason;
    }
  }
  return {};
}

std::string RigMachine::refusal_of(const CandidateInfo& info, const Shape& shape) const {
  const std::vector<std::size_t> gpus = gpus_of(shape.ranks);
  if (gpus.empty()) return "the group has " + std::to_string(world_.devices.size()) + " GPUs, not " + std::to_string(shape.ranks);
  if (std::string why = wire_refusal(info, shape.dtype, shape.wire); !why.empty()) return why;
  if (info.needs_peer_access()) {
    if (std::string why = peer_refusal(gpus); !why.empty()) return why;
  }
  return refusal(info, {.ranks = shape.ranks,
                        .ranks_per_gpu = 1,
                        .multiprocessors = 1,
                        .bytes = shape.bytes,
                        .peer_access = true,
                        .nccl = rig_.nccl.available});
}

std::vector<Offer> RigMachine::candidates(const Shape& shape) {
  std::vector<Offer> offers;
  AdmitFacts facts{.ranks = shape.ranks,
                   .ranks_per_gpu = 1,
                   .multiprocessors = 0,
                   .bytes = shape.wire_bytes(),
                   .peer_access = true,
                   .nccl = rig_.nccl.available};
  for (const std::size_t gpu : gpus_of(shape.ranks)) {
    const int here = rig_.gpus[gpu].multiprocessors;
    facts.multiprocessors = facts.multiprocessors == 0 ? here : std::min(facts.multiprocessors, here);
  }
  for (const CandidateInfo& info : menu()) {
    const std::string why = refusal_of(info, shape);
    if (!why.empty()) {
      offers.push_back({{std::string(info.name), {}}, why});  // once, not once per geometry
      continue;
    }
    for (const Geometry& geometry : info.geometries(facts)) offers.push_back({{std::string(info.name), geometry}, {}});
  }
  return offers;
}

/// Faults are not looked at here: verify() must meet them when it is asked for a pair that the gate would refuse.
Outcome RigMachine::admit(const Candidate& candidate, const Shape& shape) const {
  const CandidateInfo* info = find_candidate(candidate.name);
  if (info == nullptr) return {OutcomeKind::error, "'" + candidate.name + "' is not on the menu"};
  const std::vector<std::size_t> gpus = gpus_of(shape.ranks);
  if (gpus.empty()) return {OutcomeKind::unavailable, refusal_of(*info, shape)};
  if (std::string why = wire_refusal(*info, shape.dtype, shape.wire); !why.empty()) return {OutcomeKind::unavailable, why};
  bool access = true;
  for (const std::size_t from : gpus) {
    for (const std::size_t to : gpus) access = access && peer_access_allowed(rig_, from, to);
  }
  const std::string why = refusal(*info, {.ranks = shape.ranks,
                                          .ranks_per_gpu = 1,
                                          .multiprocessors = 1,
                                          .bytes = shape.bytes,
                                          .peer_access = access,
                                          .nccl = rig_.nccl.available});
  return why.empty() ? Outcome{} : Outcome{OutcomeKind::unavailable, why};
}

Verification RigMachine::verify(const Candidate& candidate, const Shape& shape) {
  if (Outcome refused = admit(candidate, shape); !refused.ok()) return {.outcome = refused, .checked = false};
  const CandidateInfo& info = *find_candidate(candidate.name);
  if (info.path == Path::nccl) return {.outcome = {}, .checked = false, .numerics = Numerics::nccl};

  std::optional<LostContribution> lost;
  const std::vector<std::size_t> gpus = gpus_of(shape.ranks);
  for (std::size_t from = 0; info.needs_peer_access() && from < gpus.size(); ++from) {
    for (std::size_t to = 0; to < gpus.size(); ++to) {
      const RigFault* fault = from == to ? nullptr : fault_between(rig_, gpus[from], gpus[to]);
      if (fault == nullptr) continue;
      if (fault->kind == RigFaultKind::hangs) {
        return {.outcome = {OutcomeKind::hang,
                            "rank " + std::to_string(to) + " waits for rank " + std::to_string(from) + " (" + fault->name + ")"}};
      }
      lost = LostContribution{static_cast<int>(from), static_cast<int>(to)};
    }
  }
  return verifiers_.try_emplace(shape.ranks, shape.ranks).first->second.verify(info, candidate, shape, lost);
}

Timing RigMachine::time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) {
  Timing timing;
  timing.outcome = admit(candidate, shape);
  if (!timing.outcome.ok()) return timing;
  timing.batch = request.batch > 0 ? request.batch : kDefaultBatch;

  const model::Cost cost = model::call_cost({rig_, tree_, gpus_of(shape.ranks)}, candidate, shape);
  const double spread = rig_.noise ? rig_.noise->value : 0;
  const std::string key = key_of(candidate, shape);
  std::uint64_t draw = mix(seed_ ^ hash_text(key)) + (times_asked_[key]++ << 32);
  const auto noisy = [&](double us) { return us * (1 + spread * half_normal(draw++)); };

  for (int sample = 0; sample < request.samples; ++sample) {
    std::vector<double>& per_rank = timing.samples_us.emplace_back();
    for (int rank = 0; rank < shape.ranks; ++rank) per_rank.push_back(noisy(cost.call_us));
    // A call by itself pays for being issued as well: nothing runs while the host still enqueues.
    if (request.isolated) timing.isolated_us.push_back(noisy(cost.call_us + cost.host_us));
  }
  timing.host_us = shape.mode == Mode::graph ? cost.host_us / timing.batch : cost.host_us;
  return timing;
}

OverlapTiming RigMachine::time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) {
  OverlapTiming timing;
  timing.outcome = admit(candidate, shape);
  if (!timing.outcome.ok()) return timing;
  const model::Overlap modelled = model::overlap({rig_, tree_, gpus_of(shape.ranks)}, candidate, shape, request.compute_us);
  timing.batch = modelled.batch;
  timing.samples.assign(static_cast<std::size_t>(std::max(request.samples, 0)), modelled.sample);
  return timing;
}

double RigMachine::limit_us(const Shape& shape) {
  const std::vector<std::size_t> gpus = gpus_of(shape.ranks);
  return gpus.empty() ? 0 : model::limit_us({rig_, tree_, gpus}, static_cast<double>(shape.wire_bytes()));
}

Result<std::unique_ptr<Machine>> make_rig_machine(const std::string& name_or_file, World world, std::uint64_t seed) {
  Result<Rig> rig = load_rig(name_or_file);
  if (!rig) return rig.error();
  const auto gpu_count = static_cast<int>(rig->gpus.size());
  if (world.devices.empty()) {
    for (int i = 0; i < gpu_count; ++i) world.devices.push_back(i);
  }
  std::set<int> seen;
  for (const int device : world.devices) {
    if (device < 0 || device >= gpu_count) {
      return Error{Reason::usage, "rig " + rig->name + " has no device " + std::to_string(device) + "; it has 0 to " +
                                      std::to_string(gpu_count - 1)};
    }
    if (!seen.insert(device).second) return Error{Reason::usage, "device " + std::to_string(device) + " is named twice"};
  }
  if (world.ranks_per_gpu != 1) {
    return Error{Reason::usage,
                 "a rig has one rank per GPU (its model is about the links between them); leave out --ranks-per-gpu"};
  }
  if (world.devices.size() < 2) {
    return Error{Reason::usage,
                 "an all-reduce needs two GPUs, rig " + rig->name + " was asked for " + std::to_string(world.devices.size())};
  }
  return std::unique_ptr<Machine>(std::make_unique<RigMachine>(std::move(*rig), std::move(world), seed));
}

}  // namespace artune
