// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Where each rank of a group writes and reads: from the slabs' layout to the arguments of the protocols. Pure pointer
// arithmetic, the same for device memory and for the arrays of the CPU proof.
#pragma once

#include <functional>

#include "comm/slab_plan.hpp"
#include "protocol/arguments.hpp"
#include "protocol/exchange.cuh"

namespace artune {

/// One family of one group.
struct Slabs {
  CandidateId id;
  SlabLayout layout;
  int ranks = 2;
  std::function<char*(int rank)> device;          ///< a rank's slab as every rank sees it
  char* host = nullptr;                           ///< the group's slab
  std::function<Bounds(int rank)> bounds;
};

OneShotArguments wire_one_shot(const Slabs& slabs, int rank);
TwoShotArguments wire_two_shot(const Slabs& slabs, int rank);
DirectArguments wire_direct(const Slabs& slabs, int rank);
HierarchicalArguments wire_hierarchical(const Slabs& slabs, int rank);

/// Signals of the copy-engine families, and where contributions land.
struct CopyWiring {
  ExchangeArguments signals{};           ///< null where there is nobody to signal
  const char* landing[kMaxRanks] = {};  ///< ce/push: where rank p's contribution shows here. host: p's staging
  char* target[kMaxRanks] = {};         ///< ce/push: where this rank's contribution goes at rank p
  char* own = nullptr;                  ///< host: this rank's staging; ring: its partial sum
  char* ring_here = nullptr;            ///< ring: landing places of the 2 (ranks - 1) steps, shard_bytes apart
  char* ring_next = nullptr;            ///< those of the next rank
};
CopyWiring wire_copies(const Slabs& slabs, int rank);

}  // namespace artune
