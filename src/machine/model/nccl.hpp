// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL's ring on one PCIe node, by NCCL's own published constants (NVIDIA/nccl, src/graph/tuning.cc): a base latency,
// a latency per hop over 2(n-1) hops, and bytes over the slowest link of the ring, for the protocols LL and Simple.
// LL128 is off on PCIe; the tree has the same number of hops on one node and a higher base, so it is left out.
//
//   nccl_cost(group, bytes, max_ctas).us;   // what NCCL takes, with the protocol that NCCL itself would choose
#pragma once

#include <cstddef>

#include "machine/model/group.hpp"

namespace artune::model {

struct NcclConstants {
  double base_ll_us = 6.6, base_simple_us = 8.4;
  double hop_ll_us = 1.0, hop_simple_us = 5.7;  ///< PCI
  double ll_bandwidth_ratio = 0.5;              ///< LL's share of the ring's bandwidth
};

/// As published.
inline constexpr NcclConstants kPublishedNccl{};

/// As published, save for what the rig overrides.
NcclConstants nccl_constants(const Rig& rig);

enum class NcclProtocol { ll, simple };

struct NcclCost {
  NcclProtocol protocol = NcclProtocol::ll;
  double us = 0;
};

/// `achieved`: what the protocols really reach. Which of the two NCCL takes, it decides by kPublishedNccl whatever the
/// rig says: a machine on which LL is slower than NCCL believes is a machine on which NCCL chooses LL for too long.
NcclCost nccl_cost(const Group& group, double bytes, int max_ctas, const NcclConstants& achieved);
NcclCost nccl_cost(const Group& group, double bytes, int max_ctas);

/// base + hops: what is left of a small message.
double nccl_floor_us(std::size_t ranks, NcclProtocol protocol, const NcclConstants& constants);

/// Payload rate of the slowest hop while all hops of the ring run, GB/s.
double nccl_ring_gb_per_s(const Group& group, int max_ctas);

}  // namespace artune::model
