// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Clock: the time that a sweep's budget is counted on, behind a seam so that tests can let it jump.
#pragma once

#include <chrono>

namespace artune {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since some fixed moment; never runs backwards.
  virtual double now_s() const = 0;
};

class SteadyClock final : public Clock {
 public:
  double now_s() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace artune
