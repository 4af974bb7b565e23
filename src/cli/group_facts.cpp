// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/group_facts.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "base/failure.hpp"

namespace artune {
namespace {

/// Next node towards a socket, by id; sockets have none.
std::map<std::string, std::string> parents_of(const Rig& rig) {
  std::multimap<std::string, std::string> neighbours;
  for (const RigLink& link : rig.links) {
    neighbours.emplace(link.from, link.to);
    neighbours.emplace(link.to, link.from);
  }
  std::map<std::string, std::string> parents;
  std::deque<std::string> reached;
  for (const RigSocket& socket : rig.sockets) {
    parents[socket.id] = "";
    reached.push_back(socket.id);
  }
  for (const RigRootPort& port : rig.root_ports) {
    parents[port.id] = port.socket;
    reached.push_back(port.id);
  }
  for (; !reached.empty(); reached.pop_front()) {
    const auto [begin, end] = neighbours.equal_range(reached.front());
    for (auto it = begin; it != end; ++it) {
      if (parents.try_emplace(it->second, reached.front()).second) reached.push_back(it->second);
    }
  }
  return parents;
}

/// From the node above `id` up to its socket.
std::vector<std::string> way_up(const std::map<std::string, std::string>& parents, const std::string& id) {
  std::vector<std::string> way;
  for (std::string at = parents.at(id); !at.empty(); at = parents.at(at)) way.push_back(at);
  return way;
}

}  // namespace

std::string rig_pair_class(const Rig& rig, std::size_t a, std::size_t b) {
  const std::map<std::string, std::string> parents = parents_of(rig);
  const std::vector<std::string> up_a = way_up(parents, rig.gpus[a].id);
  const std::vector<std::string> up_b = way_up(parents, rig.gpus[b].id);
  const auto meeting = std::find_if(up_a.begin(), up_a.end(), [&](const std::string& id) { return std::count(up_b.begin(), up_b.end(), id) > 0; });
  if (meeting == up_a.end()) return pair_class("SYS", false);
  const bool below_switch = std::any_of(rig.switches.begin(), rig.switches.end(), [&](const RigSwitch& s) { return s.id == *meeting; });
  if (!below_switch) return pair_class("PHB", false);
  return pair_class(meeting == up_a.begin() && up_b.front() == *meeting ? "PIX" : "PXB", false);
}

GroupFacts group_facts_of(const Rig& rig, const DocumentHeader& header) {
  return group_facts_from(header.machine, header.world.value(), header.simulated, [&](int from, int to) {
    return rig_pair_class(rig, static_cast<std::size_t>(from), static_cast<std::size_t>(to));
  });
}

GroupFacts group_facts_of(const Topology& topology, const World& world) {
  return group_facts_from(topology.header.machine, world, /*simulated=*/false, [&](int from, int to) {
    const Pair* pair = topology.find_pair(from, to);
    if (pair == nullptr) throw Failure("probe", "no pair " + std::to_string(from) + " to " + std::to_string(to), 0);
    return pair_class(to_string(pair->level), pair->nvml_nvlink == P2pStatus::ok);
  });
}

}  // namespace artune
