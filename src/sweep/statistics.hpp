// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The few statistics a sweep rests on. None assumes a distribution: latencies have long right tails.
//
//   const std::vector<double> calls = max_over_ranks(timing.samples_us);   // a call ends when its last rank ends
//   const Summary figure = summarize(calls);                               // figure.median in [ci_low, ci_high]
#pragma once

#include <vector>

namespace artune {

struct Interval {
  double low = 0, high = 0;
};

/// Middle value; mean of the two middle ones for an even number. 0 without values.
double median(std::vector<double> values);

/// `percent` in [0, 100], type 7 of Hyndman and Fan (linear interpolation at 1 + (n-1)p/100, as R, NumPy and
/// spreadsheets do by default). 0 without values.
double percentile(std::vector<double> values, double percent);

/// 95 % confidence interval of the median from order statistics: [x(k), x(n+1-k)] with the largest k for which
/// 2 P(Binomial(n, 1/2) < k) <= 0.05. Below six values no such k exists; then it is the range of the values, whose
/// coverage is 1 - 2^(1-n): 93.75 % for five, 75 % for three, none for one.
Interval median_interval(std::vector<double> values);

/// samples[i][rank] -> slowest rank of sample i. Samples without ranks are left out.
std::vector<double> max_over_ranks(const std::vector<std::vector<double>>& samples);

/// How far two runs of the same thing lie apart: |median a - median b| in percent of the smaller. 0 if one has no values.
double difference_percent(const std::vector<double>& a, const std::vector<double>& b);

struct Summary {
  int n = 0;
  double median = 0, ci_low = 0, ci_high = 0, p5 = 0, p95 = 0;

  /// Half the width of the interval over the median; 1 when there are too few values (below six) to say.
  double relative_half_width() const;
};
Summary summarize(const std::vector<double>& values);

}  // namespace artune
