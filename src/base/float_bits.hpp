// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// bf16 and f16 as bits, converted in integer arithmetic: round to nearest, ties to even, subnormals kept, NaN stays NaN.
// What the CPU uses wherever the GPU uses its own conversion instructions.
#pragma once

#include <bit>
#include <cstdint>

namespace artune {

constexpr float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;  // the NaN that the GPU's conversion gives
  const std::uint32_t odd = bits >> 16 & 1;
  return static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16);
}

constexpr float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0) return std::bit_cast<float>(sign);
  std::uint32_t shifted = 0;  // a subnormal: normalise
  while ((fraction & 0x400U) == 0) {
    fraction <<= 1;
    ++shifted;
  }
  return std::bit_cast<float>(sign | (113 - shifted) << 23 | (fraction & 0x3ffU) << 13);
}

constexpr std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fff;
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds past the largest f16
  if (magnitude < 0x33000001U) return static_cast<std::uint16_t>(sign);              // at most half the smallest subnormal
  std::uint32_t exponent = magnitude >> 23;
  std::uint32_t fraction = (magnitude & 0x7fffffU) | 0x800000U;
  std::uint32_t drop = 13;  // fraction bits lost
  std::uint32_t base = 0;
  if (exponent < 113) {
    drop += 113 - exponent;  // subnormal: the exponent can't go lower, so more bits are lost
  } else {
    base = (exponent - 113) << 10;  // the hidden bit of `fraction` adds the last one
  }
  const std::uint32_t kept = fraction >> drop;
  const std::uint32_t rest = fraction & ((1U << drop) - 1);
  const std::uint32_t half = 1U << (drop - 1);
  const std::uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1U) != 0) ? 1U : 0U);
  return static_cast<std::uint16_t>(sign | (base + rounded));
}

}  // namespace artune
