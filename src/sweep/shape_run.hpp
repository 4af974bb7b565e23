// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One shape of a sweep: verify, screen, drop losers, shuffled rounds, verify again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "sweep/budget.hpp"
#include "sweep/filter.hpp"
#include "sweep/left_out.hpp"
#include "sweep/shuffle.hpp"
#include "sweep/sweep.hpp"

namespace artune {

/// What is known of one shape. `left_out` names exact sizes; see collapse().
struct ShapeResult {
  std::size_t index = 0;             ///< in the plan
  std::vector<SweepRow> rows;
  std::vector<LeftOut> left_out;
  std::optional<double> aa_percent;  ///< incumbent against itself, when there were rounds
  bool stopped = false;              ///< ended by an interrupt or the end of the budget: not to be journaled
};

/// What a shape needs of the sweep around it.
struct ShapeContext {
  Machine& machine;
  const CandidateFilter& filter;
  const Bars& bars;
  const Clock& clock;
  Shuffler& shuffler;
  Budget& budget;
  double compute_us;                 ///< the load of shapes with Load::overlap
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> working_on;  ///< before each request
};

ShapeResult run_shape(ShapeContext& context, const Shape& shape, std::size_t index);

}  // namespace artune
