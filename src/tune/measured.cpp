// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/measured.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/units.hpp"
#include "sweep/overlap_cost.hpp"
#include "tune/rejected.hpp"
#include "tune/weights.hpp"

namespace artune {
namespace {

bool is_fault(const LeftOut& left_out) {
  return left_out.reason == "wrong-sum" || left_out.reason == "hang" || left_out.reason == "crash";
}

/// Order of tables and columns: the menu's, so that documents list candidates alike everywhere; exact before lossy, since
/// ties go to the first.
using OptionOrder = std::tuple<bool, CandidateId, Geometry>;
OptionOrder order_of(const SweepRow& row) {
  return {row.shape.lossy(), find_candidate(row.candidate.name)->id, row.candidate.geometry};
}

/// Why a measured row may not decide; empty when it may.
Rejected refuse_row(const SweepRow& row, bool simulated, const Faults& faults) {
  Rejected rejected{row.candidate, key_of(row.shape), row.shape.bytes, {}, {}};
  const CandidateInfo& info = *find_candidate(row.candidate.name);
  const Numerics claimed = numerics_of(info, row.shape.dtype, row.shape.wire);
  if (const LeftOut* fault = faults.find(row.candidate)) {
    rejected.reason = fault->reason;
    rejected.detail = fmt::format("not trusted after a {} at {} in {}: {}", fault->reason, format_size(fault->shape.bytes),
                                  key_text(key_of(fault->shape)), fault->detail);
  } else if (!row.verified && !simulated) {
    rejected.reason = "unverified";
    rejected.detail = "timed without a checked sum";
  } else if (info.numerics == Numerics::rank_order_fp32 && row.numerics != claimed && row.verified) {
    rejected.reason = "numerics";
    rejected.detail = fmt::format("claims {}, its sums are other", to_string(claimed));
  }
  return rejected;
}

/// µs of one reduction. Beside compute: what compute and reductions together take, per reduction, where there are as many
/// as the fastest candidate does alone while the load runs; the row's interval is taken to be as wide for that.
Figure figure_of(const SweepRow& row, double fastest_us) {
  if (row.overlap.empty()) return {row.median_us, row.ci_low_us, row.ci_high_us};
  const double total_us = fastest_us * (1 + overlap_cost(row, fastest_us));
  return {total_us, total_us * row.ci_low_us / row.median_us, total_us * row.ci_high_us / row.median_us};
}

std::map<std::size_t, double> fastest_by_size(const std::vector<const SweepRow*>& rows) {
  std::map<std::size_t, std::vector<const SweepRow*>> of_size;
  for (const SweepRow* row : rows) of_size[row->shape.bytes].push_back(row);
  std::map<std::size_t, double> fastest;
  for (const auto& [bytes, its_rows] : of_size) fastest[bytes] = fastest_alone_us(its_rows);
  return fastest;
}

using RowsOfKey = std::map<TableKey, std::vector<const SweepRow*>>;

Measured to_matrix(const TableKey& key, const std::vector<const SweepRow*>& rows) {
  Measured measured;
  measured.key = key;
  std::map<OptionOrder, const SweepRow*> candidates;
  std::set<std::size_t> sizes;
  for (const SweepRow* row : rows) {
    candidates.emplace(order_of(*row), row);
    sizes.insert(row->shape.bytes);
  }
  for (const auto& [unused, row] : candidates) {
    const CandidateInfo* info = find_candidate(row->candidate.name);
    measured.options.push_back({row->candidate, info, numerics_of(*info, row->shape.dtype, row->shape.wire)});
  }
  measured.sizes.assign(sizes.begin(), sizes.end());
  measured.figures.assign(sizes.size(), std::vector<std::optional<Figure>>(candidates.size()));
  const std::map<std::size_t, double> fastest = fastest_by_size(rows);
  for (const SweepRow* row : rows) {
    const auto size = static_cast<std::size_t>(std::distance(sizes.begin(), sizes.find(row->shape.bytes)));
    const auto option = static_cast<std::size_t>(std::distance(candidates.begin(), candidates.find(order_of(*row))));
    // A row that stands twice (the A/A pair) counts once, the first time: taking the better one would favour it.
    if (!measured.figures[size][option]) measured.figures[size][option] = figure_of(*row, fastest.at(row->shape.bytes));
  }
  return measured;
}

}  // namespace

std::optional<double> Measured::nccl_us(std::size_t size) const {
  std::optional<double> best;
  for (std::size_t option = 0; option < options.size(); ++option) {
    const auto& figure = figures[size][option];
    if (options[option].is_nccl() && figure && (!best || figure->median_us < *best)) best = figure->median_us;
  }
  return best;
}

Faults::Faults(const Sweep& sweep) {
  for (const LeftOut& left_out : sweep.left_out) {
    if (is_fault(left_out)) first_fault_.emplace(identity(left_out.candidate), &left_out);
  }
}

const LeftOut* Faults::find(const Candidate& candidate) const {
  const auto found = first_fault_.find(identity(candidate));
  return found == first_fault_.end() ? nullptr : found->second;
}

Candidate Faults::identity(const Candidate& candidate) {
  return {candidate.name, find_candidate(candidate.name)->path == Path::nccl ? candidate.geometry : Geometry{}};
}

TableKey key_of(const Shape& shape) {
  return {shape.op, shape.dtype, shape.wire, shape.ranks, shape.mode, shape.launch, shape.load};
}

std::string key_text(const TableKey& key) {
  return fmt::format("{} {}{}, {} ranks, {}, {}, {}", to_string(key.op), to_string(key.dtype),
                     key.wire == key.dtype ? std::string() : fmt::format(" as {} on the wire", to_string(key.wire)), key.ranks,
                     to_string(key.mode), to_string(key.launch), to_string(key.load));
}

std::vector<Measured> collect(const Sweep& sweep, const TuneOptions& options, std::vector<Rejected>& rejected) {
  const Faults faults(sweep);
  RejectionList refused;
  std::map<Regime, RowsOfKey> rows;
  for (const SweepRow& row : sweep.rows) {
    Rejected refusal = refuse_row(row, sweep.header.simulated, faults);
    if (refusal.reason.empty()) {
      rows[row.shape.regime][key_of(row.shape)].push_back(&row);
    } else {
      refused.add(std::move(refusal));
    }
  }
  refused.append_to(rejected);

  // A key is decided by the preferred regime; by the other only where that is all there is.
  RowsOfKey deciding = rows[options.regime];
  for (auto& [regime, keys] : rows) deciding.insert(keys.begin(), keys.end());
  std::vector<Measured> result;
  for (const auto& [key, rows_of_key] : deciding) {
    std::vector<const SweepRow*> all = rows_of_key;
    TableKey exact = key;
    exact.wire = exact.dtype;
    if (exact != key && deciding.contains(exact)) all.insert(all.end(), deciding[exact].begin(), deciding[exact].end());
    result.push_back(to_matrix(key, all));
  }
  return result;
}

namespace {

/// Of the keys whose wire is lossy, or of the others.
void keep_one_class(std::vector<Measured>& keys, bool lossy, const TuneOptions& options) {
  // A class that has nothing to offer at some size would leave a part of the table without evidence: worse than any slowness.
  constexpr double cost_of_a_gap = 100;
  std::optional<Numerics> best;
  double least = 0;
  for (const auto& entry : WordTable<Numerics>::entries) {
    double cost = 0;
    bool offered = false;
    for (const Measured& measured : keys) {
      if (measured.lossy() != lossy) continue;
      const std::vector<double> weights = size_weights(measured.sizes, options.weights);
      for (std::size_t size = 0; size < measured.sizes.size(); ++size) {
        const auto in_class = measured.fastest(size, [&](const Option& option) { return option.numerics == entry.value; });
        const auto of_all = measured.fastest(size);
        offered = offered || in_class.has_value();
        cost += !in_class ? cost_of_a_gap
                          : weights[size] * std::log(measured.figures[size][*in_class]->median_us /
                                                     measured.figures[size][*of_all]->median_us);
      }
    }
    if (offered && (!best || cost < least)) {
      best = entry.value;
      least = cost;
    }
  }
  for (Measured& measured : keys) {
    if (measured.lossy() != lossy) continue;
    for (Option& option : measured.options) option.admitted = option.numerics == best;
  }
}

}  // namespace

void keep_one_numerics_class(std::vector<Measured>& keys, const TuneOptions& options) {
  for (const bool lossy : {false, true}) keep_one_class(keys, lossy, options);
}

}  // namespace artune
