// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>

#include "comm/cuda_check.hpp"
#include "comm/memory.hpp"
#include "comm/self_test.hpp"
#include "protocol/memory.cuh"

namespace artune {
namespace {

constexpr int kWords = 1 << 16;                       // 256 KiB: several pages of any size in use below 2 MiB
constexpr int kPings = 64;
constexpr std::uint64_t kPingBoundNs = 100'000'000;   // 64 round trips take well under a millisecond on every known link
constexpr auto kHostBound = std::chrono::seconds(2);

__host__ __device__ std::uint32_t pattern(std::uint32_t index, std::uint32_t nonce) {
  std::uint32_t x = index * 0x9e3779b9U ^ nonce;
  x = (x ^ x >> 16) * 0x85ebca6bU;
  return x ^ x >> 13;
}

__global__ void store_pattern(std::uint32_t* to, std::uint32_t nonce) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x) to[i] = pattern(i, nonce);
  __threadfence_system();
}

/// result[0]: words that differ, result[1]: the first of them, result[2]: what stands there.
__global__ void count_wrong(const std::uint32_t* mine, std::uint32_t nonce, std::uint32_t* result) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords; i += gridDim.x * blockDim.x) {
    const std::uint32_t word = load_word(mine + i);
    if (word == pattern(i, nonce)) continue;
    if (atomicAdd(result, 1U) == 0) result[1] = i, result[2] = word;
  }
}

/// Plays ping (first = true) or pong. elapsed_ns = 0 when time ran out.
__global__ void ping(std::uint64_t* theirs, const std::uint64_t* mine, bool first, std::uint64_t* elapsed_ns) {
  const std::uint64_t started = now_ns();
  for (std::uint64_t round = 1; round <= kPings; ++round) {
    if (first) store_release(theirs, round);
    while (load_acquire(mine) != round) {
      if (now_ns() - started > kPingBoundNs) {
        *elapsed_ns = 0;
        return;
      }
    }
    if (!first) store_release(theirs, round);
  }
  *elapsed_ns = now_ns() - started;
}

class TestStream {
 public:
  explicit TestStream(int device) : device_(device) {
    const DeviceGuard guard(device);
    ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  TestStream(const TestStream&) = delete;
  ~TestStream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor): an owner of the handle

  /// False when the stream didn't finish in time. Never blocks longer.
  bool finish() const {
    const DeviceGuard guard(device_);
    const auto end = std::chrono::steady_clock::now() + kHostBound;
    cudaError_t status = cudaStreamQuery(stream_);
    while (status == cudaErrorNotReady && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      status = cudaStreamQuery(stream_);
    }
    if (status == cudaErrorNotReady) return false;
    check_cuda(status, "cudaStreamQuery");
    return true;
  }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

std::string wrong_words(const PinnedMemory& result, const char* how) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(result.data());
  if (words[0] == 0) return {};
  return std::to_string(words[0]) + " of " + std::to_string(kWords) + " words that were " + how + " are not what their owner reads (word " +
         std::to_string(words[1]) + " is " + std::to_string(words[2]) + ")";
}

}  // namespace

PairTestResult test_pair(int from, int to, unsigned nonce) {
  PairTestResult found;
  DeviceMemory source(from, kWords * 4), target(to, kWords * 4), ping_flag(from, 128), pong_flag(to, 128);
  PinnedMemory result(128), elapsed(128);
  const TestStream sender(from), owner(to);
  auto* const words = reinterpret_cast<std::uint32_t*>(target.data());

  const auto owner_check = [&](const char* how, unsigned salt, std::string& fault) {
    if (!sender.finish()) {
      fault = std::string("the transfer (") + how + ") did not end";
      return false;
    }
    reinterpret_cast<std::uint32_t*>(result.data())[0] = 0;
    const DeviceGuard guard(to);
    count_wrong<<<32, 256, 0, owner>>>(words, salt, reinterpret_cast<std::uint32_t*>(result.data()));
    ARTUNE_CHECK_CUDA(cudaGetLastError());
    if (!owner.finish()) {
      fault = "the owner's own read did not end";
      return false;
    }
    fault = wrong_words(result, how);
    return fault.empty();
  };

  {
    const DeviceGuard guard(from);
    store_pattern<<<32, 256, 0, sender>>>(words, nonce);
    ARTUNE_CHECK_CUDA(cudaGetLastError());
  }
  if (owner_check("stored by a kernel", nonce, found.store_fault)) {
    auto* const elapsed_ns = reinterpret_cast<std::uint64_t*>(elapsed.data());
    {
      const DeviceGuard guard(to);
      ping<<<1, 1, 0, owner>>>(reinterpret_cast<std::uint64_t*>(ping_flag.data()), reinterpret_cast<std::uint64_t*>(pong_flag.data()), false,
                               elapsed_ns + 1);
      ARTUNE_CHECK_CUDA(cudaGetLastError());
    }
    {
      const DeviceGuard guard(from);
      ping<<<1, 1, 0, sender>>>(reinterpret_cast<std::uint64_t*>(pong_flag.data()), reinterpret_cast<std::uint64_t*>(ping_flag.data()), true,
                                elapsed_ns);
      ARTUNE_CHECK_CUDA(cudaGetLastError());
    }
    if (!sender.finish() || !owner.finish() || elapsed_ns[0] == 0 || elapsed_ns[1] == 0) {
      found.store_hangs = true;
      found.store_fault = "flags stored by running kernels did not reach each other within 100 ms";
    } else {
      found.one_way_us = static_cast<double>(elapsed_ns[0]) / (2.0 * kPings) / 1000.0;
    }
  }
  {
    const DeviceGuard guard(from);
    store_pattern<<<32, 256, 0, sender>>>(reinterpret_cast<std::uint32_t*>(source.data()), ~nonce);
    ARTUNE_CHECK_CUDA(cudaGetLastError());
    ARTUNE_CHECK_CUDA(cudaMemcpyAsync(words, source.data(), kWords * 4, cudaMemcpyDeviceToDevice, sender));
  }
  owner_check("copied by a copy engine", ~nonce, found.copy_fault);
  return found;
}

}  // namespace artune
