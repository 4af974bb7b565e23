// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/overlap_cost.hpp"

#include <algorithm>

namespace artune {

double overlap_cost(const OverlapFigures& figures, double fastest_alone_us) {
  const double wanted = figures.compute_idle_us / fastest_alone_us;
  const double done = figures.compute_beside_us / figures.reduction_beside_us;
  const double lost_us = figures.compute_beside_us - figures.compute_idle_us;
  const double added_us = lost_us * std::min(1.0, wanted / done) + std::max(0.0, wanted - done) * figures.reduction_idle_us;
  return added_us / figures.compute_idle_us;
}

double overlap_cost(const SweepRow& row, double fastest_alone_us) {
  double worst = overlap_cost(row.overlap.front(), fastest_alone_us);
  for (const OverlapFigures& figures : row.overlap) worst = std::max(worst, overlap_cost(figures, fastest_alone_us));
  return worst;
}

double fastest_alone_us(const std::vector<const SweepRow*>& rows) {
  double fastest = 0;
  for (const SweepRow* row : rows) {
    for (const OverlapFigures& figures : row->overlap) {
      if (fastest == 0 || figures.reduction_idle_us < fastest) fastest = figures.reduction_idle_us;
    }
  }
  return fastest;
}

}  // namespace artune
