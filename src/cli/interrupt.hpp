// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: the first asks the sweep to end with what it has, the second ends the program at once (its worker with it).
//
//   InterruptGuard guard;                 // from here on
//   while (!interrupted()) measure();
#pragma once

namespace artune {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();   ///< Ctrl-C kills again
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Whether SIGINT came since the guard was made.
bool interrupted();

}  // namespace artune
