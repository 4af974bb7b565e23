// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "model/choices.hpp"

#include <algorithm>
#include <utility>

namespace artune::model {

RandomChoices::RandomChoices(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d) {
  constexpr std::uint32_t kPreempt[] = {1 << 10, 1 << 12, 1 << 14, 3 << 14};  // of 65536
  constexpr std::uint32_t kStale[] = {0, 1 << 13, 1 << 15, 7 << 13};
  preempt_ = kPreempt[below(4)];
  stale_ = kStale[below(4)];
  stubbornness_ = 1 << below(3);
  by_priority_ = seed % 2 == 1;
  for (std::size_t i = 0; i < priority_.size(); ++i) priority_[i] = static_cast<int>(i) + 1;
  for (std::size_t i = priority_.size() - 1; i > 0; --i) std::swap(priority_[i], priority_[below(static_cast<int>(i) + 1)]);
  // Log-uniform: runs differ by orders of magnitude in length.
  for (int i = below(5); i > 0; --i) {
    const int order = 3 + below(11);
    drops_.push_back((1U << order) + static_cast<std::uint64_t>(below(1 << order)));
  }
}

std::uint64_t RandomChoices::random() {
  std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

int RandomChoices::next(std::span<const int> runnable, int current) {
  ++steps_;
  if (by_priority_) {
    if (current >= 0 && std::find(drops_.begin(), drops_.end(), steps_) != drops_.end()) priority_[current] = --lowest_;
    return *std::max_element(runnable.begin(), runnable.end(), [&](int a, int b) { return priority_[a] < priority_[b]; });
  }
  if (current >= 0 && !one_in(preempt_)) return current;
  return runnable[below(static_cast<int>(runnable.size()))];
}

int RandomChoices::staleness(int oldest) { return one_in(stale_) ? 1 + below(oldest) : 0; }

int AllChoices::choose(int options) {
  const std::size_t at = points_.size();
  const int chosen = at < prefix_.size() ? prefix_[at] : 0;
  points_.push_back({options, chosen});
  return chosen;
}

int AllChoices::next(std::span<const int> runnable, int current) {
  if (runnable.size() == 1) return runnable.front();
  // Going on comes first, then the lowest actor.
  std::array<int, kMostActors> order{};
  std::size_t size = 0;
  if (current >= 0) order[size++] = current;
  for (const int actor : runnable) {
    if (actor != current) order[size++] = actor;
  }
  return order[choose(static_cast<int>(size))];
}

bool AllChoices::advance() {
  int spent = 0;
  for (const Point& point : points_) spent += point.chosen > 0 ? 1 : 0;
  while (!points_.empty()) {
    Point& last = points_.back();
    if (last.chosen > 0) --spent;
    if (last.chosen + 1 < last.options && spent < most_deviations_) {
      ++last.chosen;
      prefix_.clear();
      for (const Point& point : points_) prefix_.push_back(point.chosen);
      points_.clear();
      return true;
    }
    points_.pop_back();
  }
  return false;
}

std::vector<int> AllChoices::prefix() const {
  std::vector<int> chosen;
  for (const Point& point : points_) chosen.push_back(point.chosen);
  while (!chosen.empty() && chosen.back() == 0) chosen.pop_back();
  return chosen;
}

}  // namespace artune::model
