// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements in 32-bit words: loading and storing at any element-aligned address, and the sum.
//
// Numerics class rank-order-fp32: an fp32 accumulator starts at +0, contributions are added in rank order 0..N-1 and
// the result is rounded once to the dtype (to nearest, ties to even; subnormals are kept). One text for every protocol
// and geometry, so all of them give the same bits on all ranks. What would break this: adding the own contribution
// first, a second accumulator, -ftz or -fast-math.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/words.hpp"
#include "protocol/memory.cuh"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#include "base/float_bits.hpp"

namespace artune {

template <DType D>
inline constexpr std::uint64_t kElementBytes = element_bytes(D);
template <DType D>
inline constexpr int kElementsPerWord = D == DType::f32 ? 1 : 2;

ARTUNE_BOTH float word_to_float(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(word);
#else
  return std::bit_cast<float>(word);
#endif
}

template <DType D>
ARTUNE_BOTH float half_to_float(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  if constexpr (D == DType::bf16) return __uint_as_float(bits << 16);
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
#else
  return D == DType::bf16 ? bf16_to_float(static_cast<std::uint16_t>(bits)) : f16_to_float(static_cast<std::uint16_t>(bits));
#endif
}

template <DType D>
ARTUNE_BOTH std::uint32_t float_to_word(float low, float high) {
#if defined(__CUDA_ARCH__)
  if constexpr (D == DType::f32) return __float_as_uint(low);
  if constexpr (D == DType::bf16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.x)) | static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
  }
  const __half2 pair = __floats2half2_rn(low, high);
  return static_cast<std::uint32_t>(__half_as_ushort(__low2half(pair))) |
         static_cast<std::uint32_t>(__half_as_ushort(__high2half(pair))) << 16;
#else
  if constexpr (D == DType::f32) return std::bit_cast<std::uint32_t>(low);
  if constexpr (D == DType::bf16) return std::uint32_t{float_to_bf16(low)} | std::uint32_t{float_to_bf16(high)} << 16;
  return std::uint32_t{float_to_f16(low)} | std::uint32_t{float_to_f16(high)} << 16;
#endif
}

/// The sum of `Words` words of elements.
template <DType D, int Words>
struct Sum {
  float lane[Words * kElementsPerWord<D>] = {};

  ARTUNE_BOTH void add(const std::uint32_t (&words)[Words]) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int w = 0; w < Words; ++w) {
      if constexpr (D == DType::f32) {
        lane[w] += word_to_float(words[w]);
      } else {
        lane[2 * w] += half_to_float<D>(words[w] & 0xffffU);
        lane[2 * w + 1] += half_to_float<D>(words[w] >> 16);
      }
    }
  }

  ARTUNE_BOTH void round_to(std::uint32_t (&words)[Words]) const {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int w = 0; w < Words; ++w) {
      if constexpr (D == DType::f32) {
        words[w] = float_to_word<D>(lane[w], 0);
      } else {
        words[w] = float_to_word<D>(lane[2 * w], lane[2 * w + 1]);
      }
    }
  }
};

/// A quiet NaN of the dtype in every element: what a failed call leaves in the output.
template <DType D>
inline constexpr std::uint32_t kNanWord = D == DType::f32 ? 0x7fffffffU : 0x7fff7fffU;

/// One user buffer, read and written in units of `Words` words. Aligned units go in one access; any other alignment,
/// and the ragged end, go element by element. Elements beyond `bytes` read as zero and are never written.
template <DType D, int Words>
class UserBuffer {
 public:
  static constexpr std::uint32_t kUnitBytes = 4 * Words;

  ARTUNE_BOTH UserBuffer(const void* address, std::uint64_t count)
      : base_(static_cast<char*>(const_cast<void*>(address))),
        bytes_(count * kElementBytes<D>),
        aligned_(reinterpret_cast<std::uintptr_t>(address) % kUnitBytes == 0) {}

  ARTUNE_BOTH std::uint64_t units() const { return (bytes_ + kUnitBytes - 1) / kUnitBytes; }

  ARTUNE_BOTH void load(std::uint64_t unit, std::uint32_t (&words)[Words]) const {
    const std::uint64_t at = unit * kUnitBytes;
    if (aligned_ && at + kUnitBytes <= bytes_) {
      load_unit(base_ + at, words);
      return;
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int w = 0; w < Words; ++w) {
      const std::uint64_t word_at = at + 4 * w;
      if constexpr (D == DType::f32) {
        words[w] = word_at < bytes_ ? *reinterpret_cast<const std::uint32_t*>(base_ + word_at) : 0;
      } else {
        const std::uint32_t low = word_at < bytes_ ? *reinterpret_cast<const std::uint16_t*>(base_ + word_at) : 0;
        const std::uint32_t high = word_at + 2 < bytes_ ? *reinterpret_cast<const std::uint16_t*>(base_ + word_at + 2) : 0;
        words[w] = low | high << 16;
      }
    }
  }

  ARTUNE_BOTH void store(std::uint64_t unit, const std::uint32_t (&words)[Words]) const {
    const std::uint64_t at = unit * kUnitBytes;
    if (aligned_ && at + kUnitBytes <= bytes_) {
      store_unit(base_ + at, words);
      return;
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int w = 0; w < Words; ++w) {
      const std::uint64_t word_at = at + 4 * w;
      if constexpr (D == DType::f32) {
        if (word_at < bytes_) *reinterpret_cast<std::uint32_t*>(base_ + word_at) = words[w];
      } else {
        if (word_at < bytes_) *reinterpret_cast<std::uint16_t*>(base_ + word_at) = static_cast<std::uint16_t>(words[w]);
        if (word_at + 2 < bytes_) *reinterpret_cast<std::uint16_t*>(base_ + word_at + 2) = static_cast<std::uint16_t>(words[w] >> 16);
      }
    }
  }

  ARTUNE_BOTH void store_nan(std::uint64_t unit) const {
    std::uint32_t words[Words];
    for (int w = 0; w < Words; ++w) words[w] = kNanWord<D>;
    store(unit, words);
  }

  /// Plain accesses of a whole unit in slab memory: ordered by flags, not by themselves.
  static ARTUNE_BOTH void load_unit(const char* from, std::uint32_t (&words)[Words]) {
#if defined(__CUDA_ARCH__)
    if constexpr (Words == 4) {
      const uint4 v = *reinterpret_cast<const uint4*>(from);
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else {
      const uint2 v = *reinterpret_cast<const uint2*>(from);
      words[0] = v.x, words[1] = v.y;
    }
#else
    std::memcpy(words, from, sizeof words);
#endif
  }

  static ARTUNE_BOTH void store_unit(char* to, const std::uint32_t (&words)[Words]) {
#if defined(__CUDA_ARCH__)
    if constexpr (Words == 4) {
      *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    } else {
      *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    }
#else
    std::memcpy(to, words, sizeof words);
#endif
  }

 private:
  char* base_;
  std::uint64_t bytes_;
  bool aligned_;
};

}  // namespace artune
