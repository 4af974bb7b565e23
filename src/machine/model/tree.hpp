// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A rig's links as resources that flows share. Each link is two resources, one per direction; each socket's memory
// is one more, taken by reads and writes alike.
//
//   const Tree tree(rig);
//   Flow flow = tree.between(0, 1, bytes);               // GPU 0 stores into GPU 1
//   last_completion_us(tree.capacities(0.85), {flow});   // by kernels that reach 85 % of a copy engine's rate
#pragma once

#include <cstddef>
#include <vector>

#include "machine/model/fair_share.hpp"
#include "machine/rig.hpp"

namespace artune::model {

class Tree {
 public:
  explicit Tree(const Rig& rig);

  /// GB/s per resource; `link_fraction` scales the links and leaves host memory alone.
  std::vector<double> capacities(double link_fraction) const;

  Flow between(std::size_t from_gpu, std::size_t to_gpu, double bytes) const;
  /// Into, or out of, the memory of the socket next to `owner_gpu`.
  Flow to_host(std::size_t gpu, std::size_t owner_gpu, double bytes) const;
  Flow from_host(std::size_t gpu, std::size_t owner_gpu, double bytes) const;

  double latency_us(std::size_t from_gpu, std::size_t to_gpu) const;
  double host_latency_us(std::size_t gpu, std::size_t owner_gpu) const;

  /// Index of the socket that `gpu` hangs on (the nearest one).
  std::size_t socket_of(std::size_t gpu) const { return socket_of_gpu_.at(gpu); }
  /// The link that ends at `gpu`, as index into Rig::links.
  std::size_t link_of(std::size_t gpu) const { return link_of_gpu_.at(gpu); }

 private:
  struct Step {
    std::size_t to_node;
    std::size_t link;  ///< index into Rig::links, or kNoLink for root port to socket
    bool forward;      ///< along `from` -> `to`
  };
  std::vector<Step> route(std::size_t from_node, std::size_t to_node) const;
  Flow flow_along(const std::vector<Step>& steps, double bytes) const;
  double latency_along(const std::vector<Step>& steps) const;
  std::size_t socket_node(std::size_t socket) const { return socket; }
  std::size_t gpu_node(std::size_t gpu) const { return first_gpu_node_ + gpu; }

  static constexpr std::size_t kNoLink = static_cast<std::size_t>(-1);

  std::vector<std::vector<Step>> neighbours_;  ///< nodes: sockets, root ports, switches, GPUs, in this order
  std::size_t first_gpu_node_ = 0;
  std::vector<double> link_capacities_;  ///< 2 per link: forward, backward
  std::vector<double> link_latencies_us_;
  std::vector<double> memory_capacities_;  ///< 1 per socket
  std::vector<std::size_t> socket_of_gpu_, link_of_gpu_;
};

}  // namespace artune::model
