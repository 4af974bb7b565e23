// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Max-min fair share of links among concurrent flows (progressive filling): every flow's rate rises evenly until
// a link on its way is full; flows through that link stop there, the others rise on.
//
//   // two flows over link 0 (50 GB/s), one of them also over link 1 (10 GB/s):
//   fair_rates({50, 10}, {{.links = {0}}, {.links = {0, 1}}})  ->  {40, 10}
//
// 1 GB/s = 1000 bytes per µs.
#pragma once

#include <cstddef>
#include <vector>

namespace artune::model {

struct Flow {
  std::vector<std::size_t> links;  ///< indices into the capacities; each once
  double bytes = 0;
  double cap_gb_per_s = 0;  ///< what the sender itself can issue; 0 = no such limit
};

/// One rate per flow, GB/s. A flow without links has nothing that limits it: infinity.
std::vector<double> fair_rates(const std::vector<double>& capacities_gb_per_s, const std::vector<Flow>& flows);

/// When each flow is done if all start at 0, in µs: rates are shared anew whenever a flow ends.
std::vector<double> completion_us(const std::vector<double>& capacities_gb_per_s, const std::vector<Flow>& flows);

/// The last of completion_us(); 0 without flows.
double last_completion_us(const std::vector<double>& capacities_gb_per_s, const std::vector<Flow>& flows);

}  // namespace artune::model
