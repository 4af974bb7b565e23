// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/model/fair_share.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace artune::model {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// A link counts as full when less than this share of it is left: sums of shares don't cancel exactly.
constexpr double kFullBelow = 1e-9;

/// How much every open flow can still rise before a link fills.
double smallest_rise(const std::vector<double>& left, const std::vector<std::size_t>& open_through) {
  double rise = kInfinite;
  for (std::size_t link = 0; link < left.size(); ++link) {
    if (open_through[link] > 0) rise = std::min(rise, left[link] / static_cast<double>(open_through[link]));
  }
  return rise;
}

}  // namespace

std::vector<double> fair_rates(const std::vector<double>& capacities_gb_per_s, const std::vector<Flow>& flows) {
  std::vector<double> left = capacities_gb_per_s;
  std::vector<double> rates(flows.size(), 0);
  std::vector<bool> open(flows.size(), true);
  std::size_t open_count = flows.size();
  while (open_count > 0) {
    std::vector<std::size_t> open_through(left.size(), 0);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!open[i]) continue;
      for (const std::size_t link : flows[i].links) ++open_through[link];
    }
    const double rise = smallest_rise(left, open_through);
    if (std::isinf(rise)) {
      for (std::size_t i = 0; i < flows.size(); ++i) {
        if (open[i]) rates[i] = kInfinite;
      }
      break;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (open[i]) rates[i] += rise;
    }
    for (std::size_t link = 0; link < left.size(); ++link) left[link] -= rise * static_cast<double>(open_through[link]);
    // Each round closes at least the flow that set the rise, so the loop ends.
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!open[i]) continue;
      const bool blocked = std::any_of(flows[i].links.begin(), flows[i].links.end(),
                                       [&](std::size_t link) { return left[link] <= capacities_gb_per_s[link] * kFullBelow; });
      if (!blocked) continue;
      open[i] = false;
      --open_count;
    }
  }
  return rates;
}

std::vector<double> completion_us(const std::vector<double>& capacities_gb_per_s, const std::vector<Flow>& flows) {
  constexpr double kBytesPerUs = 1e3;  // of 1 GB/s
  std::vector<double> done(flows.size(), 0);
  std::vector<double> bytes_left;
  std::vector<std::size_t> running;
  for (const Flow& flow : flows) bytes_left.push_back(flow.bytes);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].bytes > 0) running.push_back(i);
  }
  double now_us = 0;
  while (!running.empty()) {
    std::vector<Flow> current;
    for (const std::size_t i : running) current.push_back(flows[i]);
    const std::vector<double> rates = fair_rates(capacities_gb_per_s, current);
    double step_us = kInfinite;
    for (std::size_t k = 0; k < running.size(); ++k) {
      step_us = std::min(step_us, bytes_left[running[k]] / (rates[k] * kBytesPerUs));
    }
    now_us += step_us;
    std::vector<std::size_t> still_running;
    for (std::size_t k = 0; k < running.size(); ++k) {
      const std::size_t i = running[k];
      const double moved = std::isinf(rates[k]) ? bytes_left[i] : rates[k] * kBytesPerUs * step_us;
      bytes_left[i] -= moved;
      if (bytes_left[i] > flows[i].bytes * kFullBelow) {
        still_running.push_back(i);
      } else {
        done[i] = now_us;
      }
    }
    running = std::move(still_running);
  }
  return done;
}

double last_completion_us(const std::vector<double>& capacities_gb_per_s, const std::vector<Flow>& flows) {
  const std::vector<double> done = completion_us(capacities_gb_per_s, flows);
  return done.empty() ? 0 : *std::max_element(done.begin(), done.end());
}

}  // namespace artune::model
