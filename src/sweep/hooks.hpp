// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// SweepHooks: how a running sweep speaks with whoever started it. Every hook may be left as it is.
#pragma once

#include <cstddef>
#include <string>

namespace artune {

struct Progress {
  std::size_t done = 0, total = 0;  ///< shapes
  double left_s = 0;                ///< estimate
  std::string text;                 ///< what is being done: "64K bf16, 2 ranks, graph: verify p2p/one-shot/ll 8x512"
};

class SweepHooks {
 public:
  virtual ~SweepHooks() = default;
  /// Asked before every request to the machine; true ends the sweep with what it has.
  virtual bool interrupted() { return false; }
  /// Before every request to the machine.
  virtual void progress(const Progress&) {}
  /// One line worth telling at once: a candidate that crashed, a journal that can't be written.
  virtual void note(const std::string&) {}
};

}  // namespace artune
