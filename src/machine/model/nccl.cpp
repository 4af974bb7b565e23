// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/model/nccl.hpp"

#include <algorithm>

namespace artune::model {
namespace {

constexpr double kBytesPerUs = 1e3;  // of 1 GB/s

double protocol_us(std::size_t ranks, double bytes, double ring_gb_per_s, NcclProtocol protocol, const NcclConstants& constants) {
  const double n = static_cast<double>(ranks);
  const double bytes_on_a_link = 2 * (n - 1) / n * bytes;
  const double ratio = protocol == NcclProtocol::ll ? constants.ll_bandwidth_ratio : 1;
  return nccl_floor_us(ranks, protocol, constants) + bytes_on_a_link / (ring_gb_per_s * ratio * kBytesPerUs);
}

}  // namespace

NcclConstants nccl_constants(const Rig& rig) {
  NcclConstants constants = kPublishedNccl;
  const auto take = [](double& constant, const std::optional<Sourced>& override_by) {
    if (override_by) constant = override_by->value;
  };
  take(constants.base_ll_us, rig.nccl.base_ll_us);
  take(constants.base_simple_us, rig.nccl.base_simple_us);
  take(constants.hop_ll_us, rig.nccl.hop_ll_us);
  take(constants.hop_simple_us, rig.nccl.hop_simple_us);
  take(constants.ll_bandwidth_ratio, rig.nccl.ll_bandwidth_ratio);
  return constants;
}

double nccl_floor_us(std::size_t ranks, NcclProtocol protocol, const NcclConstants& constants) {
  const double hops = 2 * (static_cast<double>(ranks) - 1);
  return protocol == NcclProtocol::ll ? constants.base_ll_us + hops * constants.hop_ll_us
                                      : constants.base_simple_us + hops * constants.hop_simple_us;
}

double nccl_ring_gb_per_s(const Group& group, int max_ctas) {
  std::vector<Flow> hops;
  for (std::size_t r = 0; r < group.ranks(); ++r) {
    const std::size_t from = group.gpus[r];
    const std::size_t to = group.gpus[(r + 1) % group.ranks()];
    if (group.rig.nccl.transport == NcclTransport::p2p) {
      hops.push_back(group.tree.between(from, to, 1));
    } else {
      hops.push_back(group.tree.to_host(from, from, 1));
      hops.push_back(group.tree.from_host(to, from, 1));
    }
  }
  // A ring's links all carry the same bytes, so the slowest hop sets the pace of the others.
  const std::vector<double> rates = fair_rates(group.tree.capacities(1), hops);
  const double links = *std::min_element(rates.begin(), rates.end()) * group.rig.nccl.ring_fraction.value;
  return max_ctas > 0 ? std::min(links, max_ctas * group.rig.kernels.block_gb_per_s.value) : links;
}

NcclCost nccl_cost(const Group& group, double bytes, int max_ctas, const NcclConstants& achieved) {
  const double ring = nccl_ring_gb_per_s(group, max_ctas);
  const auto believed = [&](NcclProtocol protocol) { return protocol_us(group.ranks(), bytes, ring, protocol, kPublishedNccl); };
  const NcclProtocol choice =
      believed(NcclProtocol::ll) <= believed(NcclProtocol::simple) ? NcclProtocol::ll : NcclProtocol::simple;
  return {choice, protocol_us(group.ranks(), bytes, ring, choice, achieved)};
}

NcclCost nccl_cost(const Group& group, double bytes, int max_ctas) {
  return nccl_cost(group, bytes, max_ctas, nccl_constants(group.rig));
}

}  // namespace artune::model
