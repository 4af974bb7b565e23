// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The right answer, computed slowly on the host: what verification compares with.
//
//   fill_inputs(InputKind::small_integers, DType::bf16, rank, call, input, count);
//   rank_order_sum(DType::bf16, inputs, expected, count);         // fp32, starts at +0, ranks in order, rounded once
//   if (auto wrong = first_difference(DType::bf16, expected, output, count)) ...   // bit by bit, NaNs as a class
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.hpp"

namespace artune {

/// Element `index` of an array of `dtype`; any alignment.
float load_element(DType dtype, const void* array, std::size_t index);
void store_element(DType dtype, void* array, std::size_t index, float value);

/// Numerics class rank-order-fp32: acc = +0; acc += inputs[0][i], inputs[1][i], …; rounded once to `dtype`.
void rank_order_sum(DType dtype, const std::vector<const void*>& inputs, void* output, std::size_t count);

/// f32 elements that went over the links as bf16, rounded before they are added: class wire-bf16-in. `out`: the fp32 sum
/// is rounded to bf16 too, wire-bf16-in-out.
void bf16_wire_sum(const std::vector<const void*>& inputs, bool out, void* output, std::size_t count);

/// Every call, rank and element has a value of its own, so that a stale slot can't look right.
std::uint64_t input_hash(std::uint64_t call, int rank, std::size_t index);

enum class InputKind {
  small_integers,  ///< -8 .. 7: sums of up to 16 ranks are exact in every dtype, whatever the order
  random_reals,    ///< uniform in [-1, 1): rounding shows the order of the sum
};
void fill_inputs(InputKind kind, DType dtype, int rank, std::uint64_t call, void* array, std::size_t count);

/// A quiet NaN in every element: outputs start as this, so that an element nobody wrote shows.
void fill_nan(DType dtype, void* array, std::size_t count);

struct ElementDifference {
  std::size_t index = 0;
  float expected = 0, got = 0;
};
/// The first element whose bits differ. Two NaNs are equal.
std::optional<ElementDifference> first_difference(DType dtype, const void* expected, const void* got, std::size_t count);

/// "element 517: got 3, expected 4"
std::string describe(const ElementDifference& difference);

}  // namespace artune
