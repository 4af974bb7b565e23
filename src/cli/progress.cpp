// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "cli/interrupt.hpp"

namespace artune {
namespace {
constexpr std::size_t kLineWidth = 100;  // longer ones would wrap and could not be taken away
constexpr const char* kClearLine = "\r\x1b[K";
}  // namespace

TerminalHooks::~TerminalHooks() { clear(); }

bool TerminalHooks::interrupted() { return artune::interrupted(); }

void TerminalHooks::progress(const Progress& progress) {
  if (!context_.shows_progress()) return;
  const std::string line = fmt::format("[{}/{}] {} s left: {}", progress.done, progress.total, std::lround(progress.left_s), progress.text);
  context_.err() << kClearLine << line.substr(0, kLineWidth) << std::flush;
  shown_ = true;
}

void TerminalHooks::note(const std::string& line) {
  clear();
  context_.note(line);
}

void TerminalHooks::clear() {
  if (shown_) context_.err() << kClearLine << std::flush;
  shown_ = false;
}

}  // namespace artune
