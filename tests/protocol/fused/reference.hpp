// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Residual add and RMSNorm as fused/rms_norm.cuh says it in words, written without its code; and what float64 makes of it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/float_bits.hpp"
#include "base/words.hpp"

namespace artune {

/// 16-bit elements of `dtype` as bits.
using Halves = std::vector<std::uint16_t>;

inline float value_of(DType dtype, std::uint16_t bits) { return dtype == DType::f16 ? f16_to_float(bits) : bf16_to_float(bits); }
inline std::uint16_t bits_of(DType dtype, float value) {
  return dtype == DType::f16 ? float_to_f16(value) : float_to_bf16(value);
}

struct NormShape {
  std::size_t rows, hidden;
  float epsilon = 1e-6F;
  bool one_plus = false;
  std::size_t group = 32;  ///< vectors that one warp folds
};

struct Normed {
  Halves output, residual;
};

/// Sums of every 2^k-th value, the even ones and the odd ones apart, in the end together.
inline float folded(const std::vector<float>& values, std::size_t first, std::size_t step, std::size_t count) {
  if (count == 1) return first < values.size() ? values[first] : 0.0F;
  return folded(values, first, 2 * step, count / 2) + folded(values, first + step, 2 * step, count / 2);
}

/// `sum`: what the all-reduce gives.
inline Normed normed(DType dtype, const NormShape& shape, const Halves& sum, const Halves& residual, const Halves& weight) {
  Normed result{Halves(sum.size()), Halves(sum.size())};
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::size_t begin = row * shape.hidden;
    for (std::size_t i = begin; i < begin + shape.hidden; ++i) {
      result.residual[i] = bits_of(dtype, value_of(dtype, sum[i]) + value_of(dtype, residual[i]));
    }
    std::vector<float> groups;
    for (std::size_t first = 0; first < shape.hidden; first += 8 * shape.group) {
      std::vector<float> vectors;
      for (std::size_t at = first; at < shape.hidden && vectors.size() < shape.group; at += 8) {
        float squares = 0;
        for (std::size_t i = at; i < at + 8; ++i) {
          const float r = value_of(dtype, result.residual[begin + i]);
          squares = std::fma(r, r, squares);
        }
        vectors.push_back(squares);
      }
      groups.push_back(folded(vectors, 0, 1, shape.group));
    }
    const float inverse_hidden = 1.0F / static_cast<float>(shape.hidden);
    const float scale = 1.0F / std::sqrt(std::fma(folded(groups, 0, 1, 64), inverse_hidden, shape.epsilon));
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      const float w = value_of(dtype, weight[i]);
      const float y = value_of(dtype, result.residual[begin + i]) * scale;
      result.output[begin + i] = bits_of(dtype, y * (shape.one_plus ? 1.0F + w : w));
    }
  }
  return result;
}

/// Against float64 of the same updated residual, by the bound of fused/rms_norm.cuh. Rows whose squares overflow fp32, or
/// that hold a NaN or an infinity, are left out. Nothing, or the first element out of bounds.
inline std::optional<std::string> out_of_bound(DType dtype, const NormShape& shape, const Halves& residual, const Halves& weight,
                                               const Halves& output) {
  const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8, least = dtype == DType::f16 ? 0x1p-25 : 0x1p-134;
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::size_t begin = row * shape.hidden;
    double squares = 0;
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      const double r = value_of(dtype, residual[begin + i]);
      squares += r * r;
    }
    if (!(squares < std::numeric_limits<float>::max())) continue;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(shape.hidden) + shape.epsilon);
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      const double w = value_of(dtype, weight[i]);
      const double y = value_of(dtype, residual[begin + i]) * scale * (shape.one_plus ? 1 + w : w);
      // Past the dtype's largest the nearest is infinity.
      if (std::abs(y) > (dtype == DType::f16 ? 65504.0 : 3.38e38)) continue;
      const double got = value_of(dtype, output[begin + i]);
      if (!(std::abs(got - y) <= (unit + 16 * 0x1p-24) * std::abs(y) + least + 0x1p-150 * std::abs(shape.one_plus ? 1 + w : w))) {
        return "row " + std::to_string(row) + ", element " + std::to_string(i) + ": got " + std::to_string(got) +
               ", float64 says " + std::to_string(y);
      }
    }
  }
  return std::nullopt;
}

/// The updated residual against float64 of what the ranks and the residual hold. Nothing, or the first element out of bounds.
inline std::optional<std::string> residual_out_of_bound(DType dtype, const std::vector<Halves>& inputs, const Halves& residual,
                                                        const Halves& updated) {
  const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8, least = dtype == DType::f16 ? 0x1p-25 : 0x1p-134, fp32 = 0x1p-24;
  const double largest = dtype == DType::f16 ? 65504.0 : 3.38e38;
  for (std::size_t i = 0; i < updated.size(); ++i) {
    double sum = 0, sizes = 0;
    for (const Halves& input : inputs) {
      sum += value_of(dtype, input[i]);
      sizes += std::abs(double{value_of(dtype, input[i])});
    }
    const double exact = sum + value_of(dtype, residual[i]);
    if (!(sizes + std::abs(exact) < largest)) continue;  // NaN and infinities, too
    const double bound = (1 + 2 * unit) * (unit * std::abs(sum) + (unit + fp32) * std::abs(exact) +
                                           1.1 * static_cast<double>(inputs.size() + 1) * fp32 * sizes) +
                         3 * least;
    if (!(std::abs(value_of(dtype, updated[i]) - exact) <= bound)) {
      return "element " + std::to_string(i) + ": got " + std::to_string(value_of(dtype, updated[i])) + ", float64 says " +
             std::to_string(exact);
    }
  }
  return std::nullopt;
}

/// Rows that break what was written without them in mind. `kind` counts on from 0; a hash makes the rest.
enum class Hostile : std::uint8_t { plain, zeros, one_huge, subnormals, infinity, nan, all_ones, alternating, kinds };

inline std::uint16_t element_of(DType dtype, Hostile kind, std::uint64_t hash, std::size_t index, std::size_t hidden) {
  const float plain = static_cast<float>(static_cast<double>(hash >> 11) * 0x1p-52 - 1.0);
  const bool here = index == hidden / 3;
  switch (kind) {
    case Hostile::zeros:
      return static_cast<std::uint16_t>(hash << 15);  // of both signs
    case Hostile::one_huge:
      return bits_of(dtype, here ? (dtype == DType::f16 ? 30000.0F : 3e18F) : plain);
    case Hostile::subnormals:
      return static_cast<std::uint16_t>(hash % 120 | hash << 15);
    case Hostile::infinity:
      return bits_of(dtype, here ? -std::numeric_limits<float>::infinity() : plain);
    case Hostile::nan:
      return bits_of(dtype, here ? std::numeric_limits<float>::quiet_NaN() : plain);
    case Hostile::all_ones:
      return index % 3 == 0 ? std::uint16_t{0xffff} : bits_of(dtype, plain);
    case Hostile::alternating:
      return bits_of(dtype, index % 2 == 0 ? 100.0F + plain : -100.0F);
    default:
      return bits_of(dtype, plain);
  }
}

/// The first element whose bits differ; two NaNs are equal.
inline std::optional<std::string> difference(DType dtype, const Halves& expected, const Halves& got) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == got[i] || (std::isnan(value_of(dtype, expected[i])) && std::isnan(value_of(dtype, got[i])))) continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(value_of(dtype, got[i])) + ", expected " +
           std::to_string(value_of(dtype, expected[i]));
  }
  return std::nullopt;
}

}  // namespace artune
