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
//   plain    payload that flags order: never polled, never looked at before its flag.
//   No read-modify-write ever leaves the device: PCIe peers have no atomics. Tickets are device-local.
#pragma once

#include <cstddef>
#include <cstdint>

// What a "host" access is: std::atomic_ref on CPU threads; tests put a model of a weak memory in its place.
#if defined(ARTUNE_MODEL_MEMORY)
#include ARTUNE_MODEL_MEMORY
#elif !defined(__CUDA_ARCH__)
#include "protocol/host_memory.hpp"
#endif

#if defined(__CUDACC__)
#define ARTUNE_BOTH __host__ __device__ __forceinline__
/// What a call that goes well never runs: out of the way of the instructions that it does run.
#define ARTUNE_BOTH_RARE inline __host__ __device__ __noinline__
#else
#define ARTUNE_BOTH inline
#define ARTUNE_BOTH_RARE inline
#endif

/// Before a loop of few steps over arrays that are to stay in registers.
#if defined(__CUDA_ARCH__)
#define ARTUNE_UNROLL _Pragma("unroll")
#else
#define ARTUNE_UNROLL
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
  host::store(words, packet.low, host::relaxed);
  host::store(words + 1, packet.high, host::relaxed);
#endif
}

ARTUNE_BOTH Packet load_packet(const void* from) {
  Packet packet;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(packet.low), "=l"(packet.high) : "l"(from) : "memory");
#else
  const auto* words = static_cast<const std::uint64_t*>(from);
  packet.low = host::load(words, host::relaxed);
  packet.high = host::load(words + 1, host::relaxed);
#endif
  return packet;
}

/// Four 32-bit words, each atomic by itself; a link may deliver them one by one.
struct Quad {
  std::uint32_t word[4];
};

ARTUNE_BOTH void store_quad(void* to, const std::uint32_t (&words)[4]) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#else
  for (int w = 0; w < 4; ++w) host::store(static_cast<std::uint32_t*>(to) + w, words[w], host::relaxed);
#endif
}

ARTUNE_BOTH Quad load_quad(const void* from) {
  Quad quad;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(quad.word[0]), "=r"(quad.word[1]), "=r"(quad.word[2]), "=r"(quad.word[3])
               : "l"(from)
               : "memory");
#else
  for (int w = 0; w < 4; ++w) quad.word[w] = host::load(static_cast<const std::uint32_t*>(from) + w, host::relaxed);
#endif
  return quad;
}

ARTUNE_BOTH void store_release(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  host::store(to, value, host::release);
#endif
}

ARTUNE_BOTH std::uint64_t load_acquire(const std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
#else
  return host::load(from, host::acquire);
#endif
}

/// Payload of one unit (8 or 16 bytes). Ordered by flags, not by itself.
template <int Words>
ARTUNE_BOTH void load_plain(const char* from, std::uint32_t (&words)[Words]) {
  static_assert(Words == 2 || Words == 4);
#if defined(__CUDA_ARCH__)
  if constexpr (Words == 4) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else {
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    words[0] = v.x, words[1] = v.y;
  }
#else
  host::copy_from(words, from, sizeof words);
#endif
}

template <int Words>
ARTUNE_BOTH void store_plain(char* to, const std::uint32_t (&words)[Words]) {
  static_assert(Words == 2 || Words == 4);
#if defined(__CUDA_ARCH__)
  if constexpr (Words == 4) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  } else {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
  }
#else
  host::copy_to(to, words, sizeof words);
#endif
}

/// Words that only this device and its host read: errors, aborts, epochs. Relaxed, never cached in L1.
ARTUNE_BOTH std::uint32_t load_word(const std::uint32_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  return host::load(from, host::relaxed);
#endif
}

ARTUNE_BOTH void store_word(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  host::store(to, value, host::relaxed);
#endif
}

/// Device-local compare-and-swap, used once per failure: true for the caller that changed 0 to 1.
ARTUNE_BOTH bool claim(std::uint32_t* word) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(before) : "l"(word) : "memory");
  return before == 0;
#else
  return host::compare_exchange(word, std::uint32_t{0}, std::uint32_t{1}) == 0;
#endif
}

/// Device-local ticket: the number of earlier callers of this launch. The last of `holders` (see is_last()) finds it
/// reset for the next launch. Acquire-release: what every earlier holder did before is visible to the last.
ARTUNE_BOTH std::uint32_t take_ticket(std::uint32_t* ticket, std::uint32_t holders) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(ticket), "r"(holders - 1) : "memory");
  return before;
#else
  const std::uint32_t before = host::fetch_add(ticket, 1U);
  if (before == holders - 1) host::store(ticket, 0U, host::relaxed);
  return before;
#endif
}

ARTUNE_BOTH bool is_last(std::uint32_t before, std::uint32_t holders) { return before == holders - 1; }

/// Of one rank and family, in its device's memory. The epoch is the number of launches that have ended; every thread
/// reads it at entry.
struct alignas(32) Control {
  std::uint64_t epoch;
  std::uint32_t error;     ///< sticky: set once, later launches leave at entry
  std::uint32_t ticket;    ///< device-local, see take_ticket()
  std::uint64_t units;     ///< that the launch before moved: what protocol/sentinel.cuh has to clear
  std::uint32_t turn;      ///< epoch modulo 3, kept apart because 2^64 isn't a multiple of 3
  std::uint32_t unused;
};

/// 0, in a way that the compiler can't know to be the same in all threads. It would move what all threads read alike into
/// uniform registers, and wait for the load right there, with the loads of the message not yet under way.
ARTUNE_BOTH std::uint32_t opaque_zero() {
#if defined(__CUDA_ARCH__)
  std::uint32_t zero;
  asm volatile("{ .reg .u32 own, lower; mov.u32 own, %%lanemask_eq; mov.u32 lower, %%lanemask_lt; and.b32 %0, own, lower; }" : "=r"(zero));
  return zero;
#else
  return 0;
#endif
}

#if defined(ARTUNE_UNGUARDED)
/// See protocol/wait.cuh: every block of the grid counts for itself.
ARTUNE_BOTH Control* own_control(Control* control) {
#if defined(__CUDA_ARCH__)
  return control + blockIdx.x;
#else
  return control;
#endif
}
ARTUNE_BOTH const Control* own_control(const Control* control) { return own_control(const_cast<Control*>(control)); }
#else
ARTUNE_BOTH const Control* own_control(const Control* control) { return control; }
ARTUNE_BOTH Control* own_control(Control* control) { return control; }
#endif

/// Has the value computed here and kept in a register. Else the compiler would rather compute it again where it is used,
/// from kernel parameters that it loads there: on the way from an arrival to what waits for it.
template <typename T>
ARTUNE_BOTH void keep(T& value) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof value == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
#else
  (void)value;
#endif
}

/// What a launch finds of its family, in one access on the GPU.
struct Entry {
  std::uint64_t epoch;
  std::uint32_t error, ticket;
};

ARTUNE_BOTH Entry load_entry(const Control* control) {
#if defined(__CUDA_ARCH__)
  std::uint64_t epoch, rest;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(epoch), "=l"(rest) : "l"(own_control(control)) : "memory");
  return {epoch ^ opaque_zero() * 0x100000001ULL, static_cast<std::uint32_t>(rest), static_cast<std::uint32_t>(rest >> 32)};
#else
  return {host::load(&control->epoch, host::relaxed), host::load(&control->error, host::relaxed), host::load(&control->ticket, host::relaxed)};
#endif
}

/// What else the launch before left.
struct Before {
  std::uint64_t units;
  std::uint32_t turn;
};

ARTUNE_BOTH Before load_before(const Control* control) {
#if defined(__CUDA_ARCH__)
  std::uint64_t units, rest;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(units), "=l"(rest) : "l"(&own_control(control)->units) : "memory");
  return {units, static_cast<std::uint32_t>(rest)};
#else
  return {host::load(&control->units, host::relaxed), host::load(&control->turn, host::relaxed)};
#endif
}

ARTUNE_BOTH void store_before(Control* control, Before before) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(&own_control(control)->units), "l"(before.units), "l"(std::uint64_t{before.turn})
               : "memory");
#else
  host::store(&control->units, before.units, host::relaxed);
  host::store(&control->turn, before.turn, host::relaxed);
#endif
}

/// Of Control::ticket, where protocol/wait.cuh counts with it: the low bits count blocks, the others are the epoch's.
inline constexpr std::uint32_t kTicketPlaces = 0xffff;
ARTUNE_BOTH std::uint32_t first_ticket(std::uint64_t epoch) { return static_cast<std::uint32_t>(epoch) << 16; }

/// Device-local, ordering nothing: for callers whose earlier accesses have completed by themselves. On the GPU a release
/// here would wait for every store of the thread to arrive, half a microsecond of a two-microsecond call. The answer isn't
/// waited for either: look at it late.
ARTUNE_BOTH std::uint32_t draw_ticket(std::uint32_t* ticket) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(ticket) : "memory");
  return before;
#else
  return host::fetch_add(ticket, 1U);
#endif
}

/// Of a grid of one block: on to the next epoch's first ticket, with no answer. Two grids that do so at once leave a ticket
/// that is ahead of the epoch: see may_run() in protocol/wait.cuh.
ARTUNE_BOTH void pass_ticket(std::uint32_t* ticket) {
#if defined(__CUDA_ARCH__)
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(ticket), "r"(kTicketPlaces + 1) : "memory");
#else
  host::fetch_add(ticket, kTicketPlaces + 1);
#endif
}

ARTUNE_BOTH void store_epoch_word(Control* control, std::uint64_t epoch) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(&control->epoch), "l"(epoch) : "memory");
#else
  host::store(&control->epoch, epoch, host::relaxed);
#endif
}

/// The epoch of the next launch, and the first ticket of it.
ARTUNE_BOTH void store_epoch(Control* control, std::uint64_t epoch) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(&control->ticket), "r"(first_ticket(epoch)) : "memory");
#else
  host::store(&control->ticket, first_ticket(epoch), host::relaxed);
#endif
  store_epoch_word(control, epoch);
}

/// Steps the epoch that this launch read at entry, if it still stands there, and returns what stood: another value means
/// that another launch of the family ran beside this one. The answer isn't waited for: look at it late.
ARTUNE_BOTH std::uint64_t step_epoch(Control* control, std::uint64_t epoch) {
#if defined(__CUDA_ARCH__)
  std::uint64_t before;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(before) : "l"(&control->epoch), "l"(epoch), "l"(epoch + 1) : "memory");
  return before;
#else
  return host::compare_exchange(&control->epoch, epoch, epoch + 1);
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
  return host::now_ns();
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

/// As block_barrier(); whether all threads say so.
ARTUNE_BOTH bool block_agrees(bool yes) {
#if defined(__CUDA_ARCH__)
  return __syncthreads_and(yes) != 0;
#else
  return yes;
#endif
}

#if defined(__CUDACC__)
/// All threads of the blocks of a cluster (from sm_90 on; before, nothing is launched in clusters): what each stored before
/// it arrived, in any block's shared memory, is visible after the wait.
__device__ __forceinline__ void cluster_arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// Into the place that `place` names in this block's shared memory, but in block `member` of the cluster.
__device__ __forceinline__ void store_in_cluster(float* place, std::uint32_t member, float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const auto here = static_cast<std::uint32_t>(__cvta_generic_to_shared(place));
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(member));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
#endif
}
#endif

}  // namespace artune
