// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"
#include "sweep/hooks.hpp"

namespace artune {

/// A running sweep on the terminal: one line that is overwritten, none in a pipe; Ctrl-C asked for it to end.
class TerminalHooks final : public SweepHooks {
 public:
  explicit TerminalHooks(CliContext& context) : context_(context) {}
  ~TerminalHooks() override;

  bool interrupted() override;
  void progress(const Progress& progress) override;
  void note(const std::string& line) override;
  /// Takes the overwritten line away, before other text is printed.
  void clear();

 private:
  CliContext& context_;
  bool shown_ = false;
};

}  // namespace artune
