// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

#include <csignal>

namespace artune {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_interrupt(int) { g_interrupted = 1; }

/// SA_RESETHAND: the second Ctrl-C meets the default action. SA_RESTART: no call of a library sees EINTR because of us.
void set_handler(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_interrupted = 0;
  set_handler(on_interrupt, static_cast<int>(SA_RESETHAND) | SA_RESTART);
}

InterruptGuard::~InterruptGuard() { set_handler(SIG_DFL, 0); }

bool interrupted() { return g_interrupted != 0; }

}  // namespace artune
