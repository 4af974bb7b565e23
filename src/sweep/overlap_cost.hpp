// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a reduction beside compute costs in total: neither a candidate that leaves compute alone because it never gets
// going, nor one that is fast because compute stands still, may look cheap.
//
//   const double fastest = fastest_alone_us(rows);                   // of one size
//   overlap_cost(rows[0], fastest);                                  // 0.05: compute and reductions end 5 % later
//
// Beside a load that takes W by itself, W / fastest reductions are wanted: as many as the fastest candidate does alone in
// that time. Those that end while the load runs slow it down in proportion to how many of them were wanted; those that
// don't are done after it, at the candidate's own idle speed. The cost is what all that adds, as a share of W: 0 = free,
// 1 = as if the fastest candidate had waited for the load to end.
#pragma once

#include <vector>

#include "sweep/sweep.hpp"

namespace artune {

double overlap_cost(const OverlapFigures& figures, double fastest_alone_us);
/// In the worse of the row's launch orders. `row.overlap` has one at least.
double overlap_cost(const SweepRow& row, double fastest_alone_us);
/// The least reduction_idle_us of the rows, all orders; 0 when no row has one.
double fastest_alone_us(const std::vector<const SweepRow*>& rows);

}  // namespace artune
