// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/thresholds.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tune/rounding.hpp"

namespace artune {
namespace {

enum class Side { kernel, copy, nccl };

Side side_of(const Option& option) {
  if (option.is_nccl()) return Side::nccl;
  return option.info->path == Path::ce || option.info->id == CandidateId::host_copy_engine ? Side::copy : Side::kernel;
}

bool is_p2p_one_shot(const Option& option) {
  return option.info->path == Path::p2p && option.info->name.find("/one-shot/") != std::string_view::npos;
}

// What a consumer loses where a side wasn't measured at a size: enough that no split goes there if another can be had.
constexpr double kLossWithoutEvidence = 10;

/// Loss of a side at one size against the table, and whether the table itself is on that side.
struct Loss {
  double relative = 0;
  bool other_side = false;
};

template <typename Wanted>
Loss loss_of(const Measured& measured, std::size_t size, std::size_t chosen, const Wanted& wanted) {
  if (wanted(measured.options[chosen])) return {};
  const auto best = measured.fastest(size, wanted);
  if (!best) return {kLossWithoutEvidence, true};
  const double ratio = measured.figures[size][*best]->median_us / measured.figures[size][chosen]->median_us;
  return {std::max(0.0, ratio - 1), true};
}

/// Least regret first; among equals the split that contradicts the table at the fewest sizes.
struct Regret {
  double mean = 0;
  int contradictions = 0;

  void add(const Loss& loss, double weight) {
    mean += weight * loss.relative;
    contradictions += loss.other_side ? 1 : 0;
  }
  bool operator<(const Regret& other) const {
    constexpr double same = 1e-9;  // sums of the same terms in another order
    if (std::abs(mean - other.mean) > same) return mean < other.mean;
    return contradictions < other.contradictions;
  }
};

/// First byte count of the sizes from index `first` on; index 0 means always.
std::size_t first_bytes(const std::vector<std::size_t>& sizes, std::size_t first) {
  return first == 0 ? 1 : boundary_between(sizes[first - 1], sizes[first]);
}

double percent(const Regret& regret) { return round_significant(std::max(0.0, regret.mean) * 100); }

}  // namespace

std::size_t boundary_between(std::size_t below, std::size_t above) {
  const double mean = std::ceil(std::sqrt(static_cast<double>(below)) * std::sqrt(static_cast<double>(above)));
  return std::clamp(static_cast<std::size_t>(mean), below + 1, above);
}

std::vector<Threshold> thresholds_of(const Measured& measured, const std::vector<std::size_t>& sequence,
                                     const std::vector<double>& weights) {
  const std::size_t n = measured.sizes.size();
  const auto loss = [&](std::size_t size, Side side) {
    return loss_of(measured, size, sequence[size], [&](const Option& option) { return side_of(option) == side; });
  };

  std::size_t copy_from = n, nccl_from = n;
  Regret least;
  bool first = true;
  for (std::size_t nccl = 0; nccl <= n; ++nccl) {
    for (std::size_t copy = 0; copy <= nccl; ++copy) {
      Regret regret;
      for (std::size_t size = 0; size < n; ++size) {
        regret.add(loss(size, size >= nccl ? Side::nccl : size >= copy ? Side::copy : Side::kernel), weights[size]);
      }
      if (first || regret < least) std::tie(copy_from, nccl_from, least, first) = std::tuple(copy, nccl, regret, false);
    }
  }

  std::size_t one_shot_until = 0;
  Regret one_shot_least;
  for (std::size_t until = 0; until <= n; ++until) {
    Regret regret;
    for (std::size_t size = 0; size < n; ++size) {
      const auto wanted = [&](const Option& option) { return size < until ? is_p2p_one_shot(option) : option.is_nccl(); };
      regret.add(loss_of(measured, size, sequence[size], wanted), weights[size]);
    }
    if (until == 0 || regret < one_shot_least) std::tie(one_shot_until, one_shot_least) = std::tuple(until, regret);
  }

  Threshold nccl_min{"NCCL_MIN_BYTES", std::nullopt, "nccl when bytes >= this", percent(least)};
  if (nccl_from < n) nccl_min.bytes = first_bytes(measured.sizes, nccl_from);
  Threshold copy_min{"CE_MIN_BYTES", std::nullopt, "copy engines when bytes >= this and below NCCL_MIN_BYTES", percent(least)};
  if (copy_from < nccl_from) copy_min.bytes = first_bytes(measured.sizes, copy_from);
  Threshold one_shot_max{"ONESHOT_MAX_BYTES", std::nullopt, "p2p one-shot kernel when bytes < this, else nccl",
                         percent(one_shot_least)};
  // Never beyond what was measured: a consumer's single number carries no mark of extrapolation.
  if (one_shot_until > 0)
    one_shot_max.bytes = one_shot_until == n ? measured.sizes.back() + 1 : first_bytes(measured.sizes, one_shot_until);
  return {nccl_min, copy_min, one_shot_max};
}

}  // namespace artune
