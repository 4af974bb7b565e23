// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/overlap_reading.hpp"

#include <gtest/gtest.h>

namespace artune {
namespace {

TEST(OverlapReading, LoadFirstCountsFromTheRelease) {
  // Released 1 µs into a load of 100 µs, a reduction every 20 µs.
  const RankReading reading = read_rank({11'000, 31'000, 51'000, 71'000, 91'000, 111'000, 131'000}, 10'000, 110'000);
  EXPECT_EQ(reading.completed, 4);
  EXPECT_DOUBLE_EQ(reading.beside_us, 20);
  EXPECT_TRUE(reading.outlasted);
}

TEST(OverlapReading, ReductionsFirstCountWholeOnesFromTheLastBoundaryBefore) {
  // 10 µs each before the load, 20 in it; the one that was under way when it began counts.
  const RankReading reading = read_rank({0, 10'000, 20'000, 35'000, 55'000, 75'000, 95'000}, 22'000, 80'000);
  EXPECT_EQ(reading.completed, 3);
  EXPECT_DOUBLE_EQ(reading.beside_us, (75.0 - 20) / 3);
  EXPECT_TRUE(reading.outlasted);
}

TEST(OverlapReading, StarvedIsNoCompletionAndTheTimeItTook) {
  const RankReading reading = read_rank({11'000, 5'020'000, 5'030'000}, 10'000, 5'010'000);
  EXPECT_EQ(reading.completed, 0);
  EXPECT_DOUBLE_EQ(reading.beside_us, 5009);
  EXPECT_TRUE(reading.outlasted);
}

TEST(OverlapReading, ReductionsThatEndBeforeTheLoadSaySo) {
  const RankReading reading = read_rank({11'000, 21'000, 31'000}, 10'000, 110'000);
  EXPECT_EQ(reading.completed, 2);
  EXPECT_FALSE(reading.outlasted);
  EXPECT_FALSE(read_rank({1'000, 2'000, 3'000}, 10'000, 110'000).outlasted) << "not even begun";
}

TEST(OverlapReading, Alone) { EXPECT_DOUBLE_EQ(per_reduction_us({5'000, 15'000, 35'000}), 15); }

}  // namespace
}  // namespace artune
