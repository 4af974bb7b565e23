// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Residual add and RMSNorm of rows: the arithmetic, one text for the norm kernel, the fused kernels and the CPU.
//
//   s = the all-reduce's sum, rounded to the dtype
//   r = s + residual in fp32, rounded to the dtype           (the updated residual)
//   q = sum of r * r over the row, fp32, in the order below
//   y = r * (1 / sqrt(q / hidden + eps)) * weight in fp32, rounded to the dtype; Gemma: weight is 1 + w, in fp32
//
// The order of q. A vector is 16 bytes, 8 elements: q_v = fma(r_7, r_7, … fma(r_0, r_0, +0)). A group is 32 consecutive
// vectors, folded in halves: v takes v + 16, then v + 8, 4, 2, 1. The sums of the 64 groups that the longest row has are
// folded the same way, from 32 to 1. What a row doesn't have is +0, which changes no sum of squares. So the order depends
// on the position in the row alone: a warp has a group whatever the number of threads and blocks, and fused or not, any
// geometry, any path gives the same bits.
//
// Bound. With u = 2^-24, d the dtype's unit roundoff (bf16 2^-8, f16 2^-11) and t half its least subnormal (bf16 2^-134,
// f16 2^-25), against float64 of the same r and weights, where q is finite in fp32 and eps no less than 2^-100:
//   q       18 roundings of sums of squares, all positive: 18 u
//   inverse 1 / hidden and the fma with eps: 20 u under the root, so 10 u; root and reciprocal: 12 u
//   y       two products and 1 + w: 15 u; then once to the dtype
//   |y - y64| <= (d + 16 u) |y64| + t + 2^-150 |weight|      (16 u: with the second-order terms; last: r / rms underflows)
// and for r, of N ranks with contributions x_i and the exact sum S:
//   |r - (S + residual)| <= (1 + 2 d) (d |S| + (d + u) |S + residual| + 1.1 (N + 1) u sum |x_i|) + 3 t
// Where q overflows (bf16 elements from about 1e19 on) the row is 0, and NaN at infinities, as fp32 has it.
//
// What would break the bits: a sum by arrival, a tree over threads, contraction of r + residual or of the products (hence
// the functions below and not operators), -ftz, rsqrt.
#pragma once

#include <cmath>
#include <cstdint>

#include "fused/norm_arguments.hpp"
#include "protocol/elements.cuh"

namespace artune {

inline constexpr int kRowWords = kRowVectorBytes / 4;
#if defined(ARTUNE_MODEL_MEMORY)
inline constexpr int kRowLanes = 2;  ///< the model's rows are short, and must have several groups all the same
#else
inline constexpr int kRowLanes = 32;  ///< vectors of a group: a warp's
#endif
inline constexpr int kMostGroups = 64;  ///< of a row
static_assert(kMostGroups * 32 * kVectorElements == kMostHidden);

ARTUNE_BOTH float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}
ARTUNE_BOTH float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
ARTUNE_BOTH float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

/// r of one vector in place of its residual; returns q_v.
template <DType D>
ARTUNE_BOTH float add_residual(const std::uint32_t (&sum)[kRowWords], std::uint32_t (&residual)[kRowWords]) {
  float squares = 0;
  ARTUNE_UNROLL
  for (int w = 0; w < kRowWords; ++w) {
    residual[w] = float_to_word<D>(add(half_to_float<D>(sum[w] & 0xffffU), half_to_float<D>(residual[w] & 0xffffU)),
                                   add(half_to_float<D>(sum[w] >> 16), half_to_float<D>(residual[w] >> 16)));
    const float low = half_to_float<D>(residual[w] & 0xffffU), high = half_to_float<D>(residual[w] >> 16);
    squares = multiply_add(low, low, squares);
    squares = multiply_add(high, high, squares);
  }
  return squares;
}

/// 1 / sqrt(q / hidden + eps), every step rounded to nearest.
ARTUNE_BOTH float row_scale(float squares, const NormArguments& norm) {
  const float mean = multiply_add(squares, norm.inverse_hidden, norm.epsilon);
#if defined(__CUDA_ARCH__)
  return __frcp_rn(__fsqrt_rn(mean));
#else
  return 1.0F / std::sqrt(mean);
#endif
}

/// y of one vector.
template <DType D>
ARTUNE_BOTH void normalise(const std::uint32_t (&r)[kRowWords], const std::uint32_t (&weight)[kRowWords], float scale,
                           bool one_plus, std::uint32_t (&y)[kRowWords]) {
  ARTUNE_UNROLL
  for (int w = 0; w < kRowWords; ++w) {
    float low = half_to_float<D>(weight[w] & 0xffffU), high = half_to_float<D>(weight[w] >> 16);
    if (one_plus) low = add(1.0F, low), high = add(1.0F, high);
    y[w] = float_to_word<D>(multiply(multiply(half_to_float<D>(r[w] & 0xffffU), scale), low),
                            multiply(multiply(half_to_float<D>(r[w] >> 16), scale), high));
  }
}

/// Folds in halves; values[0] is the result.
template <int Count>
ARTUNE_BOTH float fold_in_halves(float (&values)[Count]) {
  for (int half = Count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] = add(values[i], values[i + half]);
  }
  return values[0];
}

}  // namespace artune
