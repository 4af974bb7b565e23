// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What one all-reduce costs on a rig, by candidate: bytes by max-min fair share of the tree, latencies and fixed
// costs beside them in the manner of LogGP. docs/model.md says what each formula leaves out and how far it is off.
//
//   const Cost cost = call_cost(group, {"p2p/one-shot/ll", {.blocks = 8, .threads = 512}}, shape);
//   cost.call_us;   // what back-to-back calls take, each
#pragma once

#include "base/candidate.hpp"
#include "machine/machine.hpp"
#include "machine/model/group.hpp"

namespace artune::model {

struct Cost {
  double device_us = 0;  ///< on the GPUs and links, launch left out
  double host_us = 0;    ///< host time to issue one call on all ranks of one thread; graph: one replay call per rank
  double call_us = 0;    ///< back to back: graph = launch + device, eager = that or the host, whichever takes longer
};

/// `shape.ranks` must be the group's size, `candidate.name` on the menu (throws Failure).
Cost call_cost(const Group& group, const Candidate& candidate, const Shape& shape);

/// The kernel that adds n contributions after copies have brought them: n loads and a store of its own memory.
double add_us(const Group& group, double bytes);

/// Least time for `bytes`: no algorithm without a reducing switch moves less than 2(n-1)·bytes over all GPUs' links
/// together, nor less than `bytes` in and out of any part of the group; plus the longest way and one launch.
double limit_us(const Group& group, double bytes);

}  // namespace artune::model
