// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace artune {
namespace {

double log_of(std::size_t bytes) { return std::log(static_cast<double>(std::max<std::size_t>(bytes, 1))); }

std::vector<double> log_uniform(const std::vector<std::size_t>& sizes) {
  const std::size_t n = sizes.size();
  if (n < 2) return std::vector<double>(n, 1);
  std::vector<double> weights(n);
  for (std::size_t i = 0; i < n; ++i) {
    // At the ends the stretch is taken as wide outwards as inwards, so that equal steps give equal weights.
    const double below = i > 0 ? log_of(sizes[i]) - log_of(sizes[i - 1]) : log_of(sizes[1]) - log_of(sizes[0]);
    const double above = i + 1 < n ? log_of(sizes[i + 1]) - log_of(sizes[i]) : below;
    weights[i] = (below + above) / 2;
  }
  return weights;
}

std::size_t nearest(const std::vector<std::size_t>& sizes, std::size_t bytes) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (std::abs(log_of(sizes[i]) - log_of(bytes)) < std::abs(log_of(sizes[best]) - log_of(bytes))) best = i;
  }
  return best;
}

}  // namespace

std::vector<double> size_weights(const std::vector<std::size_t>& sizes, const std::vector<SizeWeight>& weights) {
  std::vector<double> result(sizes.size(), 0);
  if (!sizes.empty()) {
    for (const SizeWeight& entry : weights) result[nearest(sizes, entry.bytes)] += std::max(entry.weight, 0.0);
  }
  double sum = std::accumulate(result.begin(), result.end(), 0.0);
  if (sum <= 0) {
    result = log_uniform(sizes);
    sum = std::accumulate(result.begin(), result.end(), 0.0);
  }
  for (double& weight : result) weight /= sum;
  return result;
}

}  // namespace artune
