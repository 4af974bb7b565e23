// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/budget.hpp"

#include <algorithm>
#include <utility>

#include "sweep/statistics.hpp"

namespace artune {
namespace {

constexpr double kGrace = 0.1;         // of the budget, for minimal passes
constexpr double kMinimalPass = 0.4;   // of a full screening: one geometry and one sample instead of about two and three

/// A first request may load a library and build communicators, seconds instead of milliseconds. Counted in full it
/// would make every later shape look unaffordable.
constexpr double kOutlier = 10;        // times the median request

double typical_total_s(const std::vector<double>& costs_s) {
  const double limit = kOutlier * median(costs_s);
  double total = 0;
  for (const double cost : costs_s) total += std::min(cost, limit);
  return total;
}

}  // namespace

Budget::Budget(const Clock& clock, double seconds, std::vector<std::size_t> shape_bytes)
    : clock_(clock), seconds_(seconds), start_s_(clock.now_s()), bytes_(std::move(shape_bytes)), done_(bytes_.size(), false) {}

double Budget::left_s() const { return seconds_ - (clock_.now_s() - start_s_); }

bool Budget::exhausted() const { return left_s() < -kGrace * seconds_; }

bool Budget::hurried(std::size_t index) const {
  return left_s() < forecast_s(index) + kMinimalPass * forecast_others_s(index);
}

double Budget::rounds_share_s(std::size_t index) const {
  return std::max(0.0, left_s() - forecast_others_s(index)) / static_cast<double>(open_shapes());
}

void Budget::skip(std::size_t index) { done_[index] = true; }

void Budget::finish(std::size_t index, const std::vector<double>& costs_s) {
  done_[index] = true;
  if (!costs_s.empty()) screening_s_[bytes_[index]] = typical_total_s(costs_s);
}

double Budget::forecast_s(std::size_t index) const {
  if (screening_s_.empty()) return 0;
  // The nearest size not above this one, else the smallest known: sizes come ascending.
  auto after = screening_s_.upper_bound(bytes_[index]);
  return after == screening_s_.begin() ? after->second : std::prev(after)->second;
}

double Budget::forecast_others_s(std::size_t index) const {
  double total = 0;
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (!done_[i] && i != index) total += forecast_s(i);
  }
  return total;
}

std::size_t Budget::open_shapes() const {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::count(done_.begin(), done_.end(), false)));
}

}  // namespace artune
