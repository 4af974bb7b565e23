// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/decide.hpp"

#include <algorithm>
#include <cmath>

#include "tune/choose_sequence.hpp"
#include "tune/measured.hpp"
#include "tune/rejected.hpp"
#include "tune/rounding.hpp"
#include "tune/thresholds.hpp"
#include "tune/weights.hpp"

namespace artune {
namespace {

/// The options that hold their place at a size: the existing profile's choice, else all of NCCL's settings.
std::vector<std::size_t> incumbents_at(const Measured& measured, std::size_t size, const Table* existing) {
  const auto matching = [&](const auto& wanted) {
    std::vector<std::size_t> options;
    for (std::size_t option = 0; option < measured.options.size(); ++option) {
      if (measured.usable(size, option) && wanted(measured.options[option])) options.push_back(option);
    }
    return options;
  };
  if (existing != nullptr) {
    const Range& range = existing->lookup(measured.sizes[size]);
    const Candidate& use = range.use;
    const auto same_sums = [&](const Option& option) { return option.numerics == range.numerics; };
    if (auto same = matching([&](const Option& option) { return option.candidate == use && same_sums(option); }); !same.empty())
      return same;
    if (auto same_name = matching([&](const Option& option) { return option.candidate.name == use.name && same_sums(option); });
        !same_name.empty())
      return same_name;
  }
  return matching([](const Option& option) { return option.is_nccl(); });
}

/// Sizes without any usable option (uniform numerics can leave such) say nothing and go.
void drop_empty_sizes(Measured& measured) {
  for (std::size_t size = measured.sizes.size(); size-- > 0;) {
    if (measured.fastest(size)) continue;
    measured.sizes.erase(measured.sizes.begin() + static_cast<std::ptrdiff_t>(size));
    measured.figures.erase(measured.figures.begin() + static_cast<std::ptrdiff_t>(size));
  }
}

/// The measured size in [first, last] nearest to the geometric middle of the two; of two equally near ones the smaller.
std::size_t middle_of(const std::vector<std::size_t>& sizes, std::size_t first, std::size_t last) {
  const auto log_of = [&](std::size_t index) { return std::log(static_cast<double>(sizes[index])); };
  const double middle = (log_of(first) + log_of(last)) / 2;
  std::size_t best = first;
  for (std::size_t index = first; index <= last; ++index) {
    constexpr double rounding = 1e-9;  // equal steps are never exactly equal in logs
    if (std::abs(log_of(index) - middle) < std::abs(log_of(best) - middle) - rounding) best = index;
  }
  return best;
}

std::vector<Range> ranges_of(const Measured& measured, const std::vector<std::size_t>& sequence) {
  std::vector<Range> ranges;
  for (std::size_t first = 0; first < sequence.size();) {
    std::size_t last = first;
    while (last + 1 < sequence.size() && sequence[last + 1] == sequence[first]) ++last;
    const std::size_t middle = middle_of(measured.sizes, first, last);
    const Option& option = measured.options[sequence[first]];
    Range range;
    range.min_bytes = ranges.empty() ? 1 : *ranges.back().max_bytes;
    if (last + 1 < sequence.size()) range.max_bytes = boundary_between(measured.sizes[last], measured.sizes[last + 1]);
    range.use = option.candidate;
    range.numerics = option.numerics;
    const double median_us = measured.figures[middle][sequence[middle]]->median_us;
    range.median_us = round_significant(median_us);
    if (const auto nccl_us = measured.nccl_us(middle)) {
      range.nccl_us = round_significant(*nccl_us);
      range.gain = round_significant(*nccl_us / median_us);
    }
    range.extrapolated = !range.max_bytes;
    ranges.push_back(std::move(range));
    first = last + 1;
  }
  return ranges;
}

}  // namespace

Profile decide(const Sweep& sweep, const TuneOptions& options, const Profile* incumbent) {
  Profile profile;
  profile.header = sweep.header;
  profile.header.kind = "ar-tune/profile";
  profile.header.version = 1;
  profile.header.tool = tool_name();
  if (!options.created.empty()) profile.header.created = options.created;
  profile.fingerprint = sweep.fingerprint;
  for (const PairVerdict& pair : sweep.verdicts)
    profile.verdicts.push_back({pair.from, pair.to, pair.path, pair.verdict, pair.reason});
  if (incumbent != nullptr && (incumbent->fingerprint != sweep.fingerprint || incumbent->table_abi != kTableAbi))
    incumbent = nullptr;

  reject_left_out(sweep, profile.rejected);
  std::vector<Measured> keys = collect(sweep, options, profile.rejected);
  if (options.numerics == NumericsRule::uniform) keep_one_numerics_class(keys, options);
  for (Measured& measured : keys) {
    drop_empty_sizes(measured);
    if (measured.sizes.empty()) continue;
    SequenceRules rules{.margin = options.margin, .noise = sweep.noise_floor_percent / 100, .incumbents = {}};
    const Table* existing = incumbent == nullptr ? nullptr : incumbent->find(measured.key);
    for (std::size_t size = 0; size < measured.sizes.size(); ++size)
      rules.incumbents.push_back(incumbents_at(measured, size, existing));
    const std::vector<std::size_t> sequence = choose_sequence(measured, rules);
    reject_losers(measured, sequence, profile.rejected);
    profile.tables.push_back({measured.key, ranges_of(measured, sequence),
                              thresholds_of(measured, sequence, size_weights(measured.sizes, options.weights))});
  }
  return profile;
}

}  // namespace artune
