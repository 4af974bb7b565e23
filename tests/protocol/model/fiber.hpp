// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A function that can be left in the middle and gone on with later. No threads: who runs when is the caller's choice.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace artune::model {

/// ThreadSanitizer keeps a stack of its own for every thread, which changing stacks would garble. One thread has no data
/// races that it could find anyway.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kFibersWork = false;
#else
inline constexpr bool kFibersWork = true;
#endif

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next resume() begins `body`. A body that was left in the middle is forgotten, not unwound: it must own nothing.
  void start(std::function<void()> body);
  /// Runs until the body suspends or ends.
  void resume();
  /// Called in a fiber: back to whoever resumed it.
  static void suspend();
  bool ended() const { return ended_; }

 private:
  struct Context;
  static void enter();

  std::unique_ptr<Context> context_;
  std::function<void()> body_;
  bool ended_ = true;
};

}  // namespace artune::model
