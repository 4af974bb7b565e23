// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/float_bits.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace artune {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FloatBits, F16KnownValues) {
  struct Case {
    float value;
    std::uint16_t bits;
  };
  for (const Case& c :
       {Case{0.0F, 0x0000}, Case{-0.0F, 0x8000}, Case{1.0F, 0x3c00}, Case{-2.0F, 0xc000}, Case{65504.0F, 0x7bff},
        Case{65519.996F, 0x7bff},  // just below half way to the next, which would be infinity
        Case{65520.0F, 0x7c00}, Case{kInfinity, 0x7c00}, Case{-kInfinity, 0xfc00}, Case{0x1p-14F, 0x0400},  // smallest normal
        Case{0x1p-24F, 0x0001},                                                                             // smallest subnormal
        Case{0x1p-25F, 0x0000},  // half of it: tie, to even
        Case{0x1.8p-25F, 0x0001}, Case{0x1p-26F, 0x0000}, Case{0x1.ff8p-15F, 0x03ff},
        Case{0x1.fffp-15F, 0x0400},     // a subnormal that rounds up to the smallest normal
        Case{1.0F + 0x1p-11F, 0x3c00},  // tie, to even: down
        Case{1.0F + 0x3p-11F, 0x3c02},  // tie, to even: up
        Case{0.1F, 0x2e66}}) {
    EXPECT_EQ(float_to_f16(c.value), c.bits) << c.value;
  }
}

TEST(FloatBits, Bf16KnownValues) {
  struct Case {
    float value;
    std::uint16_t bits;
  };
  for (const Case& c : {Case{0.0F, 0x0000}, Case{-0.0F, 0x8000}, Case{1.0F, 0x3f80}, Case{kInfinity, 0x7f80},
                        Case{std::numeric_limits<float>::max(), 0x7f80},  // rounds to infinity
                        Case{1.0F + 0x1p-8F, 0x3f80},                     // tie, to even: down
                        Case{1.0F + 0x3p-8F, 0x3f82},                     // tie, to even: up
                        Case{std::numeric_limits<float>::denorm_min(), 0x0000}, Case{0x1p-133F, 0x0001}, Case{0.1F, 0x3dcd}}) {
    EXPECT_EQ(float_to_bf16(c.value), c.bits) << c.value;
  }
}

TEST(FloatBits, Every16BitValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (std::isnan(f16_to_float(half))) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(f16_to_float(half)))));
    } else {
      EXPECT_EQ(float_to_f16(f16_to_float(half)), half);
    }
    if (std::isnan(bf16_to_float(half))) {
      EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(bf16_to_float(half)))));
    } else {
      EXPECT_EQ(float_to_bf16(bf16_to_float(half)), half);
    }
  }
}

TEST(FloatBits, F16RoundsToTheNearestOfItsNeighbours) {
  // Against an independent rule: of the two neighbours of a float, the nearer one; on a tie the even one.
  for (std::uint16_t bits = 0x0000; bits < 0x7bff; ++bits) {
    const double low = f16_to_float(bits);
    const double high = f16_to_float(static_cast<std::uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    const auto even = static_cast<std::uint16_t>(bits + (bits & 1));
    EXPECT_EQ(float_to_f16(static_cast<float>(middle)), even);
    EXPECT_EQ(float_to_f16(std::nextafterf(static_cast<float>(middle), 0.0F)), bits);
    EXPECT_EQ(float_to_f16(std::nextafterf(static_cast<float>(middle), kInfinity)), bits + 1);
  }
}

TEST(FloatBits, EveryNanIsTheOneThatTheGpuGives) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xffc00000U, 0xff800001U, 0x7fffffffU}) {
    EXPECT_EQ(float_to_f16(std::bit_cast<float>(bits)), 0x7fff);
    EXPECT_EQ(float_to_bf16(std::bit_cast<float>(bits)), 0x7fff);
  }
}

}  // namespace
}  // namespace artune
