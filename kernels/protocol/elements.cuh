// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements in 32-bit words: loading and storing at any element-aligned address, the form they travel in, and the sum.
//
// A Form is what the user's elements are and what goes over the link. Wire words are 32 bits of wire elements; protocols
// move units of wire words and never look inside.
//
// Numerics class rank-order-fp32: an fp32 accumulator starts at +0, contributions are added in rank order 0..N-1 and
// the result is rounded once to the dtype (to nearest, ties to even; subnormals are kept). One text for every protocol
// and geometry, so all of them give the same bits on all ranks. What would break this: adding the own contribution
// first, a second accumulator, -ftz or -fast-math.
//
// Class wire-bf16-in: f32 elements are rounded to bf16 before the sum, the rank's own too (or ranks would differ), and
// the fp32 sum is the result. Class wire-bf16-in-out: the sum is rounded to bf16 as well, since a second step sends it.
#pragma once

#include <cstdint>

#include "base/words.hpp"
#include "protocol/lane.cuh"
#include "protocol/memory.cuh"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#include "base/float_bits.hpp"

namespace artune {

enum class Form : std::uint8_t { f32, f16, bf16, f32_over_bf16 };

constexpr DType user_dtype(Form form) {
  switch (form) {
    case Form::f32:
    case Form::f32_over_bf16: return DType::f32;
    case Form::f16: return DType::f16;
    case Form::bf16: break;
  }
  return DType::bf16;
}
constexpr DType wire_dtype(Form form) { return form == Form::f32_over_bf16 ? DType::bf16 : user_dtype(form); }

/// The form of plain all-reduce, nothing lossy.
constexpr Form form_of(DType dtype) { return dtype == DType::f32 ? Form::f32 : dtype == DType::f16 ? Form::f16 : Form::bf16; }

template <Form F>
inline constexpr std::uint64_t kUserBytes = element_bytes(user_dtype(F));
template <Form F>
inline constexpr int kElementsPerWord = element_bytes(wire_dtype(F)) == 4 ? 1 : 2;

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

/// `Words` wire words as fp32, one lane an element.
template <Form F, int Words>
struct Sum {
  static constexpr DType kWire = wire_dtype(F);
  float lane[Words * kElementsPerWord<F>] = {};

  ARTUNE_BOTH void add(const std::uint32_t (&words)[Words]) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int w = 0; w < Words; ++w) {
      if constexpr (kWire == DType::f32) {
        lane[w] += word_to_float(words[w]);
      } else {
        lane[2 * w] += half_to_float<kWire>(words[w] & 0xffffU);
        lane[2 * w + 1] += half_to_float<kWire>(words[w] >> 16);
      }
    }
  }

  /// Rounded to the wire's type.
  ARTUNE_BOTH void round_to(std::uint32_t (&words)[Words]) const {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int w = 0; w < Words; ++w) {
      if constexpr (kWire == DType::f32) {
        words[w] = float_to_word<kWire>(lane[w], 0);
      } else {
        words[w] = float_to_word<kWire>(lane[2 * w], lane[2 * w + 1]);
      }
    }
  }
};

/// A quiet NaN of the dtype in every element: what a failed call leaves in the output.
template <DType D>
inline constexpr std::uint32_t kNanWord = D == DType::f32 ? 0x7fffffffU : 0x7fff7fffU;

template <DType D>
inline constexpr std::uint64_t kElementBytes = element_bytes(D);

template <int Words>
struct UserWords {
  std::uint32_t word[Words];
};

/// A unit that isn't aligned or isn't whole, element by element: `bytes` are left in the buffer.
template <DType D, int Words>
ARTUNE_BOTH UserWords<Words> load_ragged(const char* from, std::uint64_t bytes) {
  UserWords<Words> words{};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint64_t at = 0; at < 4 * Words; at += kElementBytes<D>) {
    if (at >= bytes) break;
    if constexpr (D == DType::f32) {
      words.word[at / 4] = *reinterpret_cast<const std::uint32_t*>(from + at);
    } else {
      words.word[at / 4] |= std::uint32_t{*reinterpret_cast<const std::uint16_t*>(from + at)} << (at % 4 * 8);
    }
  }
  return words;
}

template <DType D, int Words>
ARTUNE_BOTH void store_ragged(char* to, std::uint64_t bytes, UserWords<Words> words) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint64_t at = 0; at < 4 * Words; at += kElementBytes<D>) {
    if (at >= bytes) break;
    if constexpr (D == DType::f32) {
      *reinterpret_cast<std::uint32_t*>(to + at) = words.word[at / 4];
    } else {
      *reinterpret_cast<std::uint16_t*>(to + at) = static_cast<std::uint16_t>(words.word[at / 4] >> (at % 4 * 8));
    }
  }
}

/// One user buffer, read and written in units of `Words` wire words. Aligned units go in vector accesses; any other
/// alignment, and the ragged end, go element by element. Elements beyond the end read as zero and are never written.
template <Form F, int Words>
class UserBuffer {
 public:
  static constexpr DType kUser = user_dtype(F);
  /// 32-bit words of user elements in a unit.
  static constexpr int kUserWords = F == Form::f32_over_bf16 ? 2 * Words : Words;
  static constexpr std::uint32_t kUnitBytes = 4 * kUserWords;

  ARTUNE_BOTH UserBuffer(const void* address, std::uint64_t count)
      : base_(static_cast<char*>(const_cast<void*>(address))),
        bytes_(count * kUserBytes<F>),
        aligned_(reinterpret_cast<std::uintptr_t>(address) % (kUnitBytes < 16 ? kUnitBytes : 16) == 0) {}

  ARTUNE_BOTH std::uint64_t units() const { return (bytes_ + kUnitBytes - 1) / kUnitBytes; }

  /// As it goes over the link.
  ARTUNE_BOTH void load(std::uint64_t unit, std::uint32_t (&words)[Words]) const {
    if constexpr (F == Form::f32_over_bf16) {
      std::uint32_t user[kUserWords];
      load_user(unit, user);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int w = 0; w < Words; ++w) words[w] = float_to_word<DType::bf16>(word_to_float(user[2 * w]), word_to_float(user[2 * w + 1]));
    } else {
      load_user(unit, words);
    }
  }

  /// Of a unit that came over the link.
  ARTUNE_BOTH void store(std::uint64_t unit, const std::uint32_t (&words)[Words]) const {
    if constexpr (F == Form::f32_over_bf16) {
      std::uint32_t user[kUserWords];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int w = 0; w < Words; ++w) {
        user[2 * w] = float_to_word<DType::f32>(half_to_float<DType::bf16>(words[w] & 0xffffU), 0);
        user[2 * w + 1] = float_to_word<DType::f32>(half_to_float<DType::bf16>(words[w] >> 16), 0);
      }
      store_user(unit, user);
    } else {
      store_user(unit, words);
    }
  }

  /// Whether the unit goes in vector accesses.
  ARTUNE_BOTH bool whole(std::uint64_t unit) const { return aligned_ && (unit + 1) * kUnitBytes <= bytes_; }

  /// Of a sum that doesn't travel on: rounded to the user's type only.
  ARTUNE_BOTH void store(std::uint64_t unit, const Sum<F, Words>& sum) const { store(unit, sum, whole(unit)); }
  ARTUNE_BOTH void store(std::uint64_t unit, const Sum<F, Words>& sum, bool whole_unit) const {
    std::uint32_t user[kUserWords];
    if constexpr (F == Form::f32_over_bf16) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int w = 0; w < kUserWords; ++w) user[w] = float_to_word<DType::f32>(sum.lane[w], 0);
    } else {
      sum.round_to(user);
    }
    store_user(unit, user, whole_unit);
  }

  ARTUNE_BOTH void store_nan(std::uint64_t unit) const {
    std::uint32_t user[kUserWords];
    for (int w = 0; w < kUserWords; ++w) user[w] = kNanWord<kUser>;
    store_user(unit, user);
  }

 private:
  ARTUNE_BOTH void load_user(std::uint64_t unit, std::uint32_t (&words)[kUserWords]) const {
    const std::uint64_t at = unit * kUnitBytes;
    if (__builtin_expect(static_cast<long>(whole(unit)), 1L) != 0) {
      constexpr int kVector = kUserWords < 4 ? kUserWords : 4;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int w = 0; w < kUserWords; w += kVector) {
        std::uint32_t vector[kVector];
        load_plain(base_ + at + 4 * w, vector);
        for (int v = 0; v < kVector; ++v) words[w + v] = vector[v];
      }
      return;
    }
    const UserWords<kUserWords> ragged = load_ragged<kUser, kUserWords>(base_ + at, at < bytes_ ? bytes_ - at : 0);
    for (int w = 0; w < kUserWords; ++w) words[w] = ragged.word[w];
  }

  ARTUNE_BOTH void store_user(std::uint64_t unit, const std::uint32_t (&words)[kUserWords]) const { store_user(unit, words, whole(unit)); }
  ARTUNE_BOTH void store_user(std::uint64_t unit, const std::uint32_t (&words)[kUserWords], bool whole_unit) const {
    const std::uint64_t at = unit * kUnitBytes;
    if (__builtin_expect(static_cast<long>(whole_unit), 1L) != 0) {
      constexpr int kVector = kUserWords < 4 ? kUserWords : 4;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int w = 0; w < kUserWords; w += kVector) {
        std::uint32_t vector[kVector];
        for (int v = 0; v < kVector; ++v) vector[v] = words[w + v];
        store_plain(base_ + at + 4 * w, vector);
      }
      return;
    }
    UserWords<kUserWords> ragged;
    for (int w = 0; w < kUserWords; ++w) ragged.word[w] = words[w];
    store_ragged<kUser, kUserWords>(base_ + at, at < bytes_ ? bytes_ - at : 0, ragged);
  }

  char* base_;
  std::uint64_t bytes_;
  bool aligned_;
};

/// What a block of a failed call leaves: NaN in the whole output, not only in its own part. Other blocks and ranks may
/// have failed elsewhere, and the parts are cut otherwise in every protocol; this is right whatever they did. A block
/// that does succeed may still store right sums over it.
template <Form F>
ARTUNE_BOTH void fill_with_nan(void* output_, std::uint64_t count, const Lane& lane) {
  const UserBuffer<F, 4> output(output_, count);
  for (std::uint64_t unit = lane.thread; unit < output.units(); unit += lane.threads) output.store_nan(unit);
}

/// Which units of a message belong to which rank in the protocols with two steps: consecutive, as equal as can be, some
/// empty when there are fewer units than ranks.
struct Shards {
  std::uint64_t units, each;

  ARTUNE_BOTH Shards(std::uint64_t units_, int ranks) : units(units_), each((units_ + ranks - 1) / ranks) {}
  ARTUNE_BOTH std::uint64_t begin(int owner) const { return clamp(each * owner); }
  ARTUNE_BOTH std::uint64_t size(int owner) const { return clamp(each * (owner + 1)) - begin(owner); }

 private:
  ARTUNE_BOTH std::uint64_t clamp(std::uint64_t unit) const { return unit < units ? unit : units; }
};

}  // namespace artune
