// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace artune {
namespace {

constexpr double kTwoSidedRisk = 0.05;
constexpr int kFewestForInterval = 6;  // 2 * 2^-6 < 5 % < 2 * 2^-5

double percentile_of_sorted(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double position = static_cast<double>(sorted.size() - 1) * std::clamp(percent, 0.0, 100.0) / 100.0;
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

/// Rank (from 1) of the lower end of the interval, 0 when n is too small.
std::size_t lower_rank(std::size_t n) {
  // Log of the binomial probabilities, because 2^-n underflows for the sample counts of long sweeps.
  const double log_all = -static_cast<double>(n) * std::log(2.0);
  double log_choose = 0;  // of C(n, 0)
  double tail = 0;        // P(X <= k)
  std::size_t rank = 0;
  for (std::size_t k = 0; k < n; ++k) {
    tail += std::exp(log_choose + log_all);
    if (2 * tail > kTwoSidedRisk) break;
    rank = k + 1;
    log_choose += std::log(static_cast<double>(n - k)) - std::log(static_cast<double>(k + 1));
  }
  return rank;
}

Interval interval_of_sorted(const std::vector<double>& sorted) {
  if (sorted.empty()) return {};
  const std::size_t rank = std::max<std::size_t>(1, lower_rank(sorted.size()));
  return {sorted[rank - 1], sorted[sorted.size() - rank]};
}

}  // namespace

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return percentile_of_sorted(values, percent);
}

Interval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return interval_of_sorted(values);
}

std::vector<double> max_over_ranks(const std::vector<std::vector<double>>& samples) {
  std::vector<double> slowest;
  slowest.reserve(samples.size());
  for (const auto& ranks : samples) {
    if (!ranks.empty()) slowest.push_back(*std::max_element(ranks.begin(), ranks.end()));
  }
  return slowest;
}

double difference_percent(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 0;
  const double first = median(a);
  const double second = median(b);
  const double smaller = std::min(first, second);
  return smaller > 0 ? std::abs(first - second) / smaller * 100.0 : 0;
}

double Summary::relative_half_width() const {
  return n < kFewestForInterval || median <= 0 ? 1.0 : (ci_high - ci_low) / 2 / median;
}

Summary summarize(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const Interval interval = interval_of_sorted(sorted);
  return {.n = static_cast<int>(sorted.size()),
          .median = percentile_of_sorted(sorted, 50),
          .ci_low = interval.low,
          .ci_high = interval.high,
          .p5 = percentile_of_sorted(sorted, 5),
          .p95 = percentile_of_sorted(sorted, 95)};
}

}  // namespace artune
