// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace artune::soak {

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Ends the program through `stuck` when its host thread stands still inside a CUDA call.
class Watchdog {
 public:
  Watchdog(double patience_s, std::function<void(const Error&)> stuck)
      : thread_([this, patience_s, stuck = std::move(stuck)](const std::stop_token& stop) { watch(stop, patience_s, stuck); }) {}
  void beat() { ++beats_; }

 private:
  void watch(const std::stop_token& stop, double patience_s, const std::function<void(const Error&)>& stuck) {
    std::uint64_t seen = 0;
    Clock::time_point last = Clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (const std::uint64_t beats = beats_; beats != seen) {
        seen = beats;
        last = Clock::now();
      } else if (since(last) > patience_s) {
        return stuck({Reason::hang, fmt::format("a CUDA call didn't return for {:.0f} s", patience_s)});
      }
    }
  }

  std::atomic<std::uint64_t> beats_ = 0;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace artune::soak
