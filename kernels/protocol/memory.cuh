// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Every memory access that another rank can see, and nothing else: the only file with PTX or atomics.
// The same names compile for the GPU (PTX) and for CPU threads (std::atomic_ref), so a protocol body is one text.
//
//   packet   two 64-bit words {32-bit data, 32-bit tag}. Each 64-bit scalar of the vector access is atomic by the
//            PTX model (the whole 128 bits are not), so every word carries its own tag and needs no fence.
//   flag     64-bit word: stored with release, polled with acquire, at system scope. Plain stores before the
//            release (by the block: a barrier stands between) are visible after the acquire that saw it.
//   No read-modify-write ever leaves the device: PCIe peers have no atomics. Tickets are device-local.
//   On the CPU only acquire and release operations are used, no fences: ThreadSanitizer doesn't model fences.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__CUDA_ARCH__)
#include <atomic>
#include <chrono>
#endif

#if defined(__CUDACC__)
#define ARTUNE_BOTH __host__ __device__ __forceinline__
#else
#define ARTUNE_BOTH inline
#endif

namespace artune {

struct Packet {
  std::uint64_t low, high;
};

ARTUNE_BOTH void store_packet(void* to, Packet packet) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(packet.low), "l"(packet.high) : "memory");
#else
  auto* words = static_cast<std::uint64_t*>(to);
  std::atomic_ref(words[0]).store(packet.low, std::memory_order_relaxed);
  std::atomic_ref(words[1]).store(packet.high, std::memory_order_relaxed);
#endif
}

ARTUNE_BOTH Packet load_packet(const void* from) {
  Packet packet;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(packet.low), "=l"(packet.high) : "l"(from) : "memory");
#else
  auto* words = static_cast<std::uint64_t*>(const_cast<void*>(from));
  packet.low = std::atomic_ref(words[0]).load(std::memory_order_relaxed);
  packet.high = std::atomic_ref(words[1]).load(std::memory_order_relaxed);
#endif
  return packet;
}

ARTUNE_BOTH void store_release(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  std::atomic_ref(*to).store(value, std::memory_order_release);
#endif
}

ARTUNE_BOTH std::uint64_t load_acquire(const std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
#else
  return std::atomic_ref(*const_cast<std::uint64_t*>(from)).load(std::memory_order_acquire);
#endif
}

/// Words that only this device and its host read: errors, aborts, epochs. Relaxed, never cached in L1.
ARTUNE_BOTH std::uint32_t load_word(const std::uint32_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  return std::atomic_ref(*const_cast<std::uint32_t*>(from)).load(std::memory_order_relaxed);
#endif
}

ARTUNE_BOTH void store_word(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  std::atomic_ref(*to).store(value, std::memory_order_relaxed);
#endif
}

/// Device-local compare-and-swap, used once per failure: true for the caller that changed 0 to 1.
ARTUNE_BOTH bool claim(std::uint32_t* word) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(before) : "l"(word) : "memory");
  return before == 0;
#else
  std::uint32_t expected = 0;
  return std::atomic_ref(*word).compare_exchange_strong(expected, 1, std::memory_order_relaxed);
#endif
}

/// Device-local ticket: true for the last of `holders` callers, which also finds it reset for the next launch.
/// Acquire-release: what every earlier holder did before is visible to the last.
ARTUNE_BOTH bool last_of(std::uint32_t* ticket, std::uint32_t holders) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(ticket), "r"(holders - 1) : "memory");
  return before == holders - 1;
#else
  const bool last = std::atomic_ref(*ticket).fetch_add(1, std::memory_order_acq_rel) == holders - 1;
  if (last) std::atomic_ref(*ticket).store(0, std::memory_order_relaxed);
  return last;
#endif
}

/// As last_of(), ordering nothing: for callers whose earlier accesses have completed by themselves. On the GPU a release
/// here would wait for every store of the thread to arrive, half a microsecond of a two-microsecond call.
ARTUNE_BOTH bool last_of_unordered(std::uint32_t* ticket, std::uint32_t holders) {
#if defined(__CUDA_ARCH__)
  if (holders == 1) return true;
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(ticket), "r"(holders - 1) : "memory");
  return before == holders - 1;
#else
  return last_of(ticket, holders);
#endif
}

/// The epoch and the sticky error of a control block, in one access on the GPU.
struct EpochAndError {
  std::uint64_t epoch;
  std::uint32_t error;
};

struct alignas(16) Control {
  std::uint64_t epoch;   ///< number of launches that have ended; read at entry by every thread
  std::uint32_t error;   ///< sticky: set once, later launches leave at entry
  std::uint32_t ticket;  ///< device-local, see last_of()
};

ARTUNE_BOTH EpochAndError load_entry(const Control* control) {
#if defined(__CUDA_ARCH__)
  std::uint64_t epoch, rest;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(epoch), "=l"(rest) : "l"(control) : "memory");
  return {epoch, static_cast<std::uint32_t>(rest)};
#else
  auto* words = const_cast<Control*>(control);
  return {std::atomic_ref(words->epoch).load(std::memory_order_relaxed), std::atomic_ref(words->error).load(std::memory_order_relaxed)};
#endif
}

ARTUNE_BOTH void store_epoch(Control* control, std::uint64_t epoch) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&control->epoch), "l"(epoch) : "memory");
#else
  std::atomic_ref(control->epoch).store(epoch, std::memory_order_relaxed);
#endif
}

/// Orders what this thread wrote before (a failure report in host memory) before what it writes next.
/// Not on any path of a call that succeeds.
ARTUNE_BOTH void order_report() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

ARTUNE_BOTH std::uint64_t now_ns() {
#if defined(__CUDA_ARCH__)
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
#endif
}

/// One thread of the warp's active ones (always, on the CPU): spares the bus when many threads look at one word.
ARTUNE_BOTH bool elected() {
#if defined(__CUDA_ARCH__)
  return (threadIdx.x & 31U) == static_cast<unsigned>(__ffs(static_cast<int>(__activemask()))) - 1U;
#else
  return true;
#endif
}

/// All threads of the block. On the CPU a block is one thread.
ARTUNE_BOTH void block_barrier() {
#if defined(__CUDA_ARCH__)
  __syncthreads();
#endif
}

}  // namespace artune
