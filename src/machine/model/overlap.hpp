// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rig makes of reductions beside a compute load. The load lives on multiprocessors alone, so:
//   - a candidate whose blocks wait takes their room from it for as long as reductions run;
//   - copy engines take nothing, the kernel that adds after them takes the whole GPU for its own short time;
//   - every kernel of a reduction waits for blocks of the load to end before it has room.
// Priorities, clocks, power and the load's caches are not modelled, nor is there a difference between launch orders.
#pragma once

#include "machine/machine.hpp"
#include "machine/model/group.hpp"

namespace artune::model {

struct Overlap {
  int batch = 0;
  OverlapSample sample;
};

/// As call_cost(); `compute_us` above 0.
Overlap overlap(const Group& group, const Candidate& candidate, const Shape& shape, double compute_us);

}  // namespace artune::model
