// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace artune {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Percentile, InterpolatesAsType7) {
  // numpy.percentile([1, 2, 3, 4], [5, 95]) = [1.15, 3.85]
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 5), 1.15);
  EXPECT_DOUBLE_EQ(percentile({4, 3, 2, 1}, 95), 3.85);
  EXPECT_DOUBLE_EQ(percentile(one_to(11), 90), 10);
  EXPECT_DOUBLE_EQ(percentile({1, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({1, 2}, 100), 2);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
}

// Lower ranks as in published tables of binomial confidence intervals of the median (e.g. Hahn and Meeker, table A.15):
// n = 6 to 8: 1, 9 to 11: 2, 12 to 14: 3, 15 and 16: 4, 17 to 19: 5, 20: 6, 100: 40.
TEST(MedianInterval, UsesTheBinomialRanks) {
  const std::vector<std::pair<int, int>> expected = {{6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {14, 3}, {15, 4}, {17, 5}, {20, 6}, {100, 40}};
  for (const auto& [n, rank] : expected) {
    const Interval interval = median_interval(one_to(n));
    EXPECT_DOUBLE_EQ(interval.low, rank) << n;
    EXPECT_DOUBLE_EQ(interval.high, n + 1 - rank) << n;
  }
}

TEST(MedianInterval, IsTheRangeWhenThereAreTooFewValues) {
  const Interval interval = median_interval({5, 1, 3});
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 5);
}

TEST(MedianInterval, HoldsForManyThousandValues) {
  const Interval interval = median_interval(one_to(10000));  // 2^-10000 underflows: the sum must not
  EXPECT_DOUBLE_EQ(interval.low, 4902);                      // scipy.stats.binom.ppf(0.025, 10000, 0.5) = 4902
  EXPECT_DOUBLE_EQ(interval.high, 5099);
}

TEST(MaxOverRanks, TakesTheSlowestRankOfEachSample) {
  EXPECT_EQ(max_over_ranks({{1, 3, 2}, {}, {5, 4}}), (std::vector<double>{3, 5}));
}

TEST(DifferencePercent, IsRelativeToTheSmallerMedian) {
  EXPECT_DOUBLE_EQ(difference_percent({10, 10, 10}, {11, 11, 11}), 10);
  EXPECT_DOUBLE_EQ(difference_percent({11}, {10}), 10);
  EXPECT_DOUBLE_EQ(difference_percent({}, {10}), 0);
}

TEST(Summary, SaysHowWellItIsKnown) {
  EXPECT_DOUBLE_EQ(summarize({10, 10, 10}).relative_half_width(), 1);  // three equal values prove little
  const Summary figure = summarize({9, 10, 10, 10, 10, 10, 10, 10, 12});
  EXPECT_EQ(figure.n, 9);
  EXPECT_DOUBLE_EQ(figure.relative_half_width(), 0);
  const Summary wide = summarize(one_to(9));
  EXPECT_DOUBLE_EQ(wide.median, 5);
  EXPECT_DOUBLE_EQ(wide.ci_low, 2);
  EXPECT_DOUBLE_EQ(wide.relative_half_width(), 0.6);
}

}  // namespace
}  // namespace artune
