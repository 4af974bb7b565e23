// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/reference.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/float_bits.hpp"

namespace artune {
namespace {

template <typename Bits>
Bits load_bits(const void* array, std::size_t index) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char*>(array) + index * sizeof(Bits), sizeof(Bits));
  return bits;
}

template <typename Bits>
void store_bits(void* array, std::size_t index, Bits bits) {
  std::memcpy(static_cast<char*>(array) + index * sizeof(Bits), &bits, sizeof(Bits));
}

/// Sign, 24 exponents, 23 bits of fraction. Values on one grid would add up exactly and hide the order of the sum.
float random_real(std::uint64_t hash) {
  constexpr std::uint32_t kLowestExponent = 127 - 16;
  const auto sign = static_cast<std::uint32_t>(hash >> 63);
  const auto exponent = kLowestExponent + static_cast<std::uint32_t>((hash >> 32) % 24);
  return std::bit_cast<float>(sign << 31 | exponent << 23 | static_cast<std::uint32_t>(hash & 0x7fffff));
}

std::uint32_t element_bits(DType dtype, const void* array, std::size_t index) {
  return dtype == DType::f32 ? load_bits<std::uint32_t>(array, index) : load_bits<std::uint16_t>(array, index);
}

}  // namespace

float load_element(DType dtype, const void* array, std::size_t index) {
  switch (dtype) {
    case DType::f32:
      return load_bits<float>(array, index);
    case DType::f16:
      return f16_to_float(load_bits<std::uint16_t>(array, index));
    case DType::bf16:
      return bf16_to_float(load_bits<std::uint16_t>(array, index));
  }
  return std::numeric_limits<float>::quiet_NaN();
}

void store_element(DType dtype, void* array, std::size_t index, float value) {
  switch (dtype) {
    case DType::f32:
      store_bits(array, index, value);
      break;
    case DType::f16:
      store_bits(array, index, float_to_f16(value));
      break;
    case DType::bf16:
      store_bits(array, index, float_to_bf16(value));
      break;
  }
}

void rank_order_sum(DType dtype, const std::vector<const void*>& inputs, void* output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (const void* input : inputs) sum += load_element(dtype, input, i);
    store_element(dtype, output, i, sum);
  }
}

void bf16_wire_sum(const std::vector<const void*>& inputs, bool out, void* output, std::size_t count) {
  const auto on_wire = [](float value) { return bf16_to_float(float_to_bf16(value)); };
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (const void* input : inputs) sum += on_wire(load_element(DType::f32, input, i));
    store_element(DType::f32, output, i, out ? on_wire(sum) : sum);
  }
}

std::uint64_t input_hash(std::uint64_t call, int rank, std::size_t index) {
  // splitmix64's finalizer over a sum of multiples of odd constants: neighbours in any of the three differ in all bits.
  std::uint64_t x = call * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(rank) * 0xd1b54a32d192ed03 +
                    static_cast<std::uint64_t>(index) * 0x8cb92ba72f3d8dd7 + 0x2545f4914f6cdd1d;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void fill_inputs(InputKind kind, DType dtype, int rank, std::uint64_t call, void* array, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t hash = input_hash(call, rank, i);
    const float value = kind == InputKind::small_integers ? static_cast<float>(hash >> 60) - 8 : random_real(hash);
    store_element(dtype, array, i, value);
  }
}

void fill_nan(DType dtype, void* array, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store_element(dtype, array, i, std::numeric_limits<float>::quiet_NaN());
}

std::optional<ElementDifference> first_difference(DType dtype, const void* expected, const void* got, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (element_bits(dtype, expected, i) == element_bits(dtype, got, i)) continue;
    const float wanted = load_element(dtype, expected, i);
    const float found = load_element(dtype, got, i);
    if (std::isnan(wanted) && std::isnan(found)) continue;
    return ElementDifference{i, wanted, found};
  }
  return std::nullopt;
}

std::string describe(const ElementDifference& difference) {
  char text[128];
  std::snprintf(text, sizeof text, "element %zu: got %.9g, expected %.9g", difference.index, static_cast<double>(difference.got),
                static_cast<double>(difference.expected));
  return text;
}

}  // namespace artune
