// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/model/tree.hpp"

#include <map>
#include <string>

namespace artune::model {

Tree::Tree(const Rig& rig) {
  std::map<std::string, std::size_t> nodes;
  for (const RigSocket& socket : rig.sockets) nodes.emplace(socket.id, nodes.size());
  for (const RigRootPort& port : rig.root_ports) nodes.emplace(port.id, nodes.size());
  for (const RigSwitch& item : rig.switches) nodes.emplace(item.id, nodes.size());
  first_gpu_node_ = nodes.size();
  for (const RigGpu& gpu : rig.gpus) nodes.emplace(gpu.id, nodes.size());

  neighbours_.resize(nodes.size());
  const auto connect = [&](std::size_t a, std::size_t b, std::size_t link) {
    neighbours_[a].push_back({b, link, true});
    neighbours_[b].push_back({a, link, false});
  };
  for (const RigRootPort& port : rig.root_ports) connect(nodes.at(port.socket), nodes.at(port.id), kNoLink);
  for (std::size_t i = 0; i < rig.links.size(); ++i) {
    const RigLink& link = rig.links[i];
    connect(nodes.at(link.from), nodes.at(link.to), i);
    link_capacities_.push_back(link.gb_per_s.value);
    link_capacities_.push_back(link.reverse_gb_per_s ? link.reverse_gb_per_s->value : link.gb_per_s.value);
    link_latencies_us_.push_back(link.latency_us.value);
  }
  for (const RigSocket& socket : rig.sockets) memory_capacities_.push_back(socket.memory_gb_per_s.value);

  for (std::size_t gpu = 0; gpu < rig.gpus.size(); ++gpu) {
    std::size_t nearest = 0;
    std::size_t fewest_steps = kNoLink;
    for (std::size_t socket = 0; socket < rig.sockets.size(); ++socket) {
      const std::size_t steps = route(gpu_node(gpu), socket_node(socket)).size();
      if (steps < fewest_steps) {
        fewest_steps = steps;
        nearest = socket;
      }
    }
    socket_of_gpu_.push_back(nearest);
    link_of_gpu_.push_back(neighbours_[gpu_node(gpu)].front().link);
  }
}

std::vector<double> Tree::capacities(double link_fraction) const {
  std::vector<double> all;
  for (const double capacity : link_capacities_) all.push_back(capacity * link_fraction);
  all.insert(all.end(), memory_capacities_.begin(), memory_capacities_.end());
  return all;
}

std::vector<Tree::Step> Tree::route(std::size_t from_node, std::size_t to_node) const {
  // The reader has made sure that this is a tree: the first way found is the only one.
  struct Search {
    const Tree& tree;
    std::size_t target;
    std::vector<Step> steps;
    bool visit(std::size_t node, std::size_t came_from) {
      if (node == target) return true;
      for (const Step& step : tree.neighbours_[node]) {
        if (step.to_node == came_from) continue;
        steps.push_back(step);
        if (visit(step.to_node, node)) return true;
        steps.pop_back();
      }
      return false;
    }
  };
  Search search{*this, to_node, {}};
  search.visit(from_node, kNoLink);
  return search.steps;
}

Flow Tree::flow_along(const std::vector<Step>& steps, double bytes) const {
  Flow flow{.links = {}, .bytes = bytes};
  for (const Step& step : steps) {
    if (step.link != kNoLink) flow.links.push_back(2 * step.link + (step.forward ? 0 : 1));
  }
  return flow;
}

double Tree::latency_along(const std::vector<Step>& steps) const {
  double latency = 0;
  for (const Step& step : steps) {
    if (step.link != kNoLink) latency += link_latencies_us_[step.link];
  }
  return latency;
}

Flow Tree::between(std::size_t from_gpu, std::size_t to_gpu, double bytes) const {
  return flow_along(route(gpu_node(from_gpu), gpu_node(to_gpu)), bytes);
}

Flow Tree::to_host(std::size_t gpu, std::size_t owner_gpu, double bytes) const {
  const std::size_t socket = socket_of(owner_gpu);
  Flow flow = flow_along(route(gpu_node(gpu), socket_node(socket)), bytes);
  flow.links.push_back(link_capacities_.size() + socket);
  return flow;
}

Flow Tree::from_host(std::size_t gpu, std::size_t owner_gpu, double bytes) const {
  const std::size_t socket = socket_of(owner_gpu);
  Flow flow = flow_along(route(socket_node(socket), gpu_node(gpu)), bytes);
  flow.links.push_back(link_capacities_.size() + socket);
  return flow;
}

double Tree::latency_us(std::size_t from_gpu, std::size_t to_gpu) const {
  return latency_along(route(gpu_node(from_gpu), gpu_node(to_gpu)));
}

double Tree::host_latency_us(std::size_t gpu, std::size_t owner_gpu) const {
  return latency_along(route(gpu_node(gpu), socket_node(socket_of(owner_gpu))));
}

}  // namespace artune::model
