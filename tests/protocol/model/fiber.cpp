// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "model/fiber.hpp"

#include <cstdint>
#include <utility>

#if !defined(__x86_64__) || defined(ARTUNE_MODEL_UCONTEXT)
#include <ucontext.h>
#endif

namespace artune::model {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
Fiber* running = nullptr;

}  // namespace

#if defined(__x86_64__) && !defined(ARTUNE_MODEL_UCONTEXT)

// swapcontext() asks the kernel for the signal mask at every switch, which would be most of the model's time.
extern "C" void artune_model_switch(void** save_here, void* go_there);
__asm__(R"(
.text
.globl artune_model_switch
.hidden artune_model_switch
.type artune_model_switch, @function
artune_model_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size artune_model_switch, .-artune_model_switch
)");

struct Fiber::Context {
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  void* here = nullptr;
  void* caller = nullptr;

  void prepare(void (*entry)()) {
    // What the switch pops: six registers, the entry; above it a return address that is never used, for alignment.
    const std::uintptr_t top = (reinterpret_cast<std::uintptr_t>(stack.get()) + kStackBytes) / 16 * 16;
    auto* words = reinterpret_cast<std::uintptr_t*>(top) - 8;
    for (int i = 0; i < 8; ++i) words[i] = 0;
    words[6] = reinterpret_cast<std::uintptr_t>(entry);
    here = words;
  }
  void go() { artune_model_switch(&caller, here); }
  void leave() { artune_model_switch(&here, caller); }
};

#else

struct Fiber::Context {
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  ucontext_t here, caller;

  void prepare(void (*entry)()) {
    getcontext(&here);
    here.uc_stack.ss_sp = stack.get();
    here.uc_stack.ss_size = kStackBytes;
    here.uc_link = nullptr;
    makecontext(&here, entry, 0);
  }
  void go() { swapcontext(&caller, &here); }
  void leave() { swapcontext(&here, &caller); }
};

#endif

Fiber::Fiber() : context_(std::make_unique<Context>()) {}
Fiber::~Fiber() = default;

void Fiber::enter() {
  running->body_();
  running->ended_ = true;
  suspend();  // for ever
}

void Fiber::start(std::function<void()> body) {
  body_ = std::move(body);
  ended_ = false;
  context_->prepare(&Fiber::enter);
}

void Fiber::resume() {
  running = this;
  context_->go();
  running = nullptr;
}

void Fiber::suspend() { running->context_->leave(); }

}  // namespace artune::model
