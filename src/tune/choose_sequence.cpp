// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/choose_sequence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace artune {
namespace {

// The table promises 5 % of the best candidate beyond the joint interval; a point less leaves room for rounding.
constexpr double kMostLoss = 0.04;
constexpr double kNever = std::numeric_limits<double>::infinity();

class Sequence {
 public:
  Sequence(const Measured& measured, const SequenceRules& rules)
      : measured_(measured), rules_(rules), threshold_(std::max(rules.margin, rules.noise)) {}

  std::vector<std::size_t> choose() const {
    const std::size_t sizes = measured_.sizes.size();
    const std::size_t options = measured_.options.size();
    std::vector<std::vector<double>> cost(sizes, std::vector<double>(options, kNever));
    std::vector<std::vector<std::size_t>> came_from(sizes, std::vector<std::size_t>(options, 0));
    for (std::size_t size = 0; size < sizes; ++size) {
      for (std::size_t option = 0; option < options; ++option) {
        if (!allowed(size, option)) continue;
        double least = size == 0 ? 0 : kNever;
        for (std::size_t before = 0; size > 0 && before < options; ++before) {
          const double reach = cost[size - 1][before] + switch_cost(size, before, option);
          if (reach < least) {
            least = reach;
            came_from[size][option] = before;
          }
        }
        cost[size][option] = least + step_cost(size, option);
      }
    }
    std::vector<std::size_t> sequence(sizes);
    for (std::size_t size = sizes; size-- > 0;) {
      sequence[size] = size + 1 == sizes
                           ? static_cast<std::size_t>(std::min_element(cost[size].begin(), cost[size].end()) - cost[size].begin())
                           : came_from[size + 1][sequence[size + 1]];
    }
    return sequence;
  }

 private:
  const Figure& figure(std::size_t size, std::size_t option) const { return *measured_.figures[size][option]; }

  bool allowed(std::size_t size, std::size_t option) const {
    if (!measured_.usable(size, option) || !pays(size, option)) return false;
    const auto index = [&](const Option& candidate) { return static_cast<std::size_t>(&candidate - measured_.options.data()); };
    const Figure& best = figure(size, *measured_.fastest(size, [&](const Option& candidate) { return pays(size, index(candidate)); }));
    const Figure& own = figure(size, option);
    const bool near_best = own.median_us <= best.median_us * (1 + kMostLoss) || own.low_us <= best.high_us * (1 + rules_.noise);
    const auto nccl = measured_.fastest(size, [](const Option& candidate) { return candidate.is_nccl(); });
    const bool keeps_promise = !nccl || own.median_us <= figure(size, *nccl).median_us * (1 + threshold_);
    return near_best && keeps_promise;
  }

  bool is_incumbent(std::size_t size, std::size_t option) const {
    const auto& incumbents = rules_.incumbents[size];
    return std::find(incumbents.begin(), incumbents.end(), option) != incumbents.end();
  }

  /// Bits are given away for a gain only: a lossy wire must beat every exact one by the threshold, at each size by itself.
  bool pays(std::size_t size, std::size_t option) const {
    if (!is_lossy(measured_.options[option].numerics) || is_incumbent(size, option)) return true;
    const auto exact = measured_.fastest(size, [](const Option& candidate) { return !is_lossy(candidate.numerics); });
    return !exact || figure(size, option).median_us * (1 + threshold_) < figure(size, *exact).median_us;
  }

  double step_cost(std::size_t size, std::size_t option) const {
    const auto& incumbents = rules_.incumbents[size];
    const bool challenger = !incumbents.empty() && !is_incumbent(size, option);
    return std::log(figure(size, option).median_us) + (challenger ? std::log1p(threshold_) : 0);
  }

  /// Half the margin a switch, so that going away and coming back costs the margin. Geometries that follow the message
  /// size change of necessity: leaving one that can't be had at this size costs nothing.
  double switch_cost(std::size_t size, std::size_t before, std::size_t option) const {
    if (before == option) return 0;
    const Option &from = measured_.options[before], &to = measured_.options[option];
    const bool same_candidate = from.info == to.info && from.numerics == to.numerics;
    if (same_candidate && !allowed(size, before)) return 0;
    return std::log1p(rules_.margin) / 2;
  }

  const Measured& measured_;
  const SequenceRules& rules_;
  double threshold_;
};

}  // namespace

std::vector<std::size_t> choose_sequence(const Measured& measured, const SequenceRules& rules) {
  return Sequence(measured, rules).choose();
}

}  // namespace artune
