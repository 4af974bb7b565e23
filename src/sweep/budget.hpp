// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Budget: divides a sweep's time over its shapes. Verifying and screening comes first for every shape, what is left
// goes to rounds in equal shares, and what a shape doesn't use goes to those after it:
//
//   if (budget.exhausted()) …                      // list the rest as not reached
//   const bool hurried = budget.hurried(index);    // true: one geometry a candidate, one sample, no rounds
//   … verify and screen …
//   const double until = clock.now_s() + budget.rounds_share_s(index);
//   … rounds …
//   budget.finish(index, costs);
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "sweep/clock.hpp"

namespace artune {

class Budget {
 public:
  /// The time starts now. `shape_bytes`: message size of each shape, by index.
  Budget(const Clock& clock, double seconds, std::vector<std::size_t> shape_bytes);

  double left_s() const;
  /// Past the budget and the tenth beyond it that the minimal passes of the last shapes may use.
  bool exhausted() const;
  /// A full screening of this shape would take the time that the shapes after it need for a minimal one.
  bool hurried(std::size_t index) const;
  /// Time for the rounds of this shape, when it has been screened: an equal share of what the screening of the
  /// shapes after it will leave. Never negative.
  double rounds_share_s(std::size_t index) const;
  /// Time that a hang or a crash took is no measuring time: the budget grows by it.
  void extend(double lost_s) { seconds_ += lost_s; }
  /// The shape needs no more time: it ran hurried, was resumed, or could not be reached.
  void skip(std::size_t index);
  /// The shape ran in full; `costs_s` are the durations of its requests outside rounds: the forecast for shapes like it.
  void finish(std::size_t index, const std::vector<double>& costs_s);

 private:
  double forecast_s(std::size_t index) const;
  double forecast_others_s(std::size_t index) const;
  std::size_t open_shapes() const;

  const Clock& clock_;
  double seconds_;
  double start_s_;
  std::vector<std::size_t> bytes_;
  std::vector<bool> done_;
  std::map<std::size_t, double> screening_s_;  // by bytes, newest figure
};

}  // namespace artune
