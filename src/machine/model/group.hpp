// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the cost functions look at: a rig, its tree, and the GPUs that reduce together (rank r = gpus[r]).
#pragma once

#include <cstddef>
#include <vector>

#include "machine/model/tree.hpp"
#include "machine/rig.hpp"

namespace artune::model {

struct Group {
  const Rig& rig;
  const Tree& tree;
  std::vector<std::size_t> gpus;  ///< indices into rig.gpus, at least two

  std::size_t ranks() const { return gpus.size(); }
};

}  // namespace artune::model
