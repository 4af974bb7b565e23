// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "base/float_bits.hpp"
#include "machine/reference.hpp"

namespace artune {
namespace {

TEST(Reference, SumStartsAtPlusZeroAndGoesInRankOrder) {
  const float minus_zero = -0.0F;
  float sum = 1;
  rank_order_sum(DType::f32, {&minus_zero, &minus_zero}, &sum, 1);
  EXPECT_FALSE(std::signbit(sum));

  const float big = 0x1p24F;
  const float one = 1;
  const float minus_big = -0x1p24F;
  rank_order_sum(DType::f32, {&big, &one, &minus_big}, &sum, 1);
  EXPECT_EQ(sum, 0.0F);  // 1 is lost in the big one
  rank_order_sum(DType::f32, {&big, &minus_big, &one}, &sum, 1);
  EXPECT_EQ(sum, 1.0F);
}

TEST(Reference, SixteenBitSumsAreRoundedOnce) {
  // 1 + 2^-8 + 2^-8: rounding after each step would stay at 1, fp32 in between gives 1 + 2^-7.
  std::uint16_t inputs[3] = {float_to_bf16(1), float_to_bf16(0x1p-8F), float_to_bf16(0x1p-8F)};
  std::uint16_t sum = 0;
  rank_order_sum(DType::bf16, {&inputs[0], &inputs[1], &inputs[2]}, &sum, 1);
  EXPECT_EQ(bf16_to_float(sum), 1 + 0x1p-7F);
}

TEST(Reference, SmallIntegersSumExactlyInEveryType) {
  constexpr std::size_t kCount = 500;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<std::vector<unsigned char>> arrays(16, std::vector<unsigned char>(kCount * 4));
    std::vector<const void*> forward, backward;
    for (int rank = 0; rank < 16; ++rank) {
      auto& array = arrays[static_cast<std::size_t>(rank)];
      fill_inputs(InputKind::small_integers, dtype, rank, 7, array.data(), kCount);
      forward.push_back(array.data());
      backward.insert(backward.begin(), array.data());
    }
    std::vector<unsigned char> a(kCount * 4), b(kCount * 4);
    rank_order_sum(dtype, forward, a.data(), kCount);
    rank_order_sum(dtype, backward, b.data(), kCount);
    EXPECT_FALSE(first_difference(dtype, a.data(), b.data(), kCount));
    float exact = 0;
    for (const void* array : forward) exact += load_element(dtype, array, 3);
    EXPECT_EQ(load_element(dtype, a.data(), 3), exact);
  }
}

TEST(Reference, InputsDifferByRankIndexAndCall) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t call = 0; call < 10; ++call) {
    for (int rank = 0; rank < 8; ++rank) {
      for (std::size_t index = 0; index < 50; ++index) seen.insert(input_hash(call, rank, index));
    }
  }
  EXPECT_EQ(seen.size(), 10U * 8 * 50);
}

TEST(Reference, RandomRealsShowTheOrderInEveryType) {
  constexpr std::size_t kCount = 4000;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<std::vector<unsigned char>> arrays(3, std::vector<unsigned char>(kCount * 4));
    for (int rank = 0; rank < 3; ++rank) {
      unsigned char* array = arrays[static_cast<std::size_t>(rank)].data();
      fill_inputs(InputKind::random_reals, dtype, rank, 1, array, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        const float magnitude = std::abs(load_element(dtype, array, i));
        EXPECT_GE(magnitude, 0x1p-16F);
        EXPECT_LE(magnitude, 0x1p8F);
      }
    }
    // Sums of 16-bit values only show it where fp32 itself must round, so the sums are compared before that: as f32.
    std::vector<float> in_order(kCount), other_order(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto element = [&](std::size_t rank) { return load_element(dtype, arrays[rank].data(), i); };
      in_order[i] = element(0) + element(1) + element(2);
      other_order[i] = element(2) + element(1) + element(0);
    }
    EXPECT_TRUE(first_difference(DType::f32, in_order.data(), other_order.data(), kCount)) << to_string(dtype);
  }
}

TEST(Reference, DifferencesAreBitwiseAndNansAClass) {
  const float zero = 0.0F;
  const float minus_zero = -0.0F;
  EXPECT_TRUE(first_difference(DType::f32, &zero, &minus_zero, 1));
  const auto nan = std::bit_cast<float>(0x7fc00001U);
  const auto other_nan = std::bit_cast<float>(0xffc00000U);
  EXPECT_FALSE(first_difference(DType::f32, &nan, &other_nan, 1));
  EXPECT_TRUE(first_difference(DType::f32, &zero, &nan, 1));
  const std::vector<float> expected = {1, 2, 4};
  const std::vector<float> got = {1, 2, 3};
  const auto difference = first_difference(DType::f32, expected.data(), got.data(), 3);
  ASSERT_TRUE(difference);
  EXPECT_EQ(describe(*difference), "element 2: got 3, expected 4");
}

TEST(Reference, ElementsNeedNoAlignment) {
  std::vector<unsigned char> bytes(64);
  store_element(DType::f32, bytes.data() + 1, 2, 1.5F);
  EXPECT_EQ(load_element(DType::f32, bytes.data() + 1, 2), 1.5F);
  fill_nan(DType::bf16, bytes.data() + 3, 4);
  EXPECT_TRUE(std::isnan(load_element(DType::bf16, bytes.data() + 3, 3)));
}

// 1 + 2^-9 is between two bf16 values, 257 the first integer that bf16 hasn't got.
TEST(Reference, ABf16WireRoundsContributionsAndPerhapsTheSum) {
  const std::vector<float> a = {1 + 0x1p-9F, 255, 1}, b = {2, 2, 2};
  std::vector<float> in(3), in_out(3);
  bf16_wire_sum({a.data(), b.data()}, false, in.data(), 3);
  bf16_wire_sum({a.data(), b.data()}, true, in_out.data(), 3);
  EXPECT_EQ(in, (std::vector<float>{3, 257, 3}));
  EXPECT_EQ(in_out, (std::vector<float>{3, 256, 3}));
}

}  // namespace
}  // namespace artune
