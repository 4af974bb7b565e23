// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table key as a matrix: sizes down, options (candidate with geometry) across. Options of a lossy wire's key
// are the lossy candidates and the exact ones, whose rows stand under the exact key: who allows the one is content with
// the other.
// Private to src/tune.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "paths/menu.hpp"
#include "profile/profile.hpp"
#include "sweep/sweep.hpp"
#include "tune/decide.hpp"

namespace artune {

struct Figure {
  double median_us = 0, low_us = 0, high_us = 0;
};

struct Option {
  Candidate candidate;
  const CandidateInfo* info = nullptr;
  Numerics numerics = Numerics::nccl;  ///< of its sums over the wire that it was measured with
  bool admitted = true;  ///< false: measured and right, but not of the uniform numerics class

  bool is_nccl() const { return info->path == Path::nccl; }
};

struct Measured {
  TableKey key;
  std::vector<Option> options;                              ///< in menu order, then by geometry: ties go to the first
  std::vector<std::size_t> sizes;                           ///< ascending; each has at least one figure
  std::vector<std::vector<std::optional<Figure>>> figures;  ///< [size][option]

  bool lossy() const { return key.wire != key.dtype; }
  bool usable(std::size_t size, std::size_t option) const {
    return options[option].admitted && figures[size][option].has_value();
  }
  /// Fastest usable option at a size for which `wanted` holds; nullopt when there is none.
  template <typename Predicate>
  std::optional<std::size_t> fastest(std::size_t size, const Predicate& wanted) const {
    std::optional<std::size_t> best;
    for (std::size_t option = 0; option < options.size(); ++option) {
      if (!usable(size, option) || !wanted(options[option])) continue;
      if (!best || figures[size][option]->median_us < figures[size][*best]->median_us) best = option;
    }
    return best;
  }
  std::optional<std::size_t> fastest(std::size_t size) const {
    return fastest(size, [](const Option&) { return true; });
  }
  /// NCCL's best time at a size, admitted or not: it is the yardstick even where it may not be used.
  std::optional<double> nccl_us(std::size_t size) const;
};

/// Candidates that may not be used at all, with the fault: "wrong-sum at 64K, bf16 graph".
/// Kernels are known by name; NCCL by name and limit, since each limit is a communicator of its own.
class Faults {
 public:
  explicit Faults(const Sweep& sweep);
  /// nullptr when `candidate` did nothing wrong anywhere.
  const LeftOut* find(const Candidate& candidate) const;

 private:
  static Candidate identity(const Candidate& candidate);
  std::map<Candidate, const LeftOut*> first_fault_;
};

TableKey key_of(const Shape& shape);
/// "all_reduce bf16, 2 ranks, graph, one-thread, idle"
std::string key_text(const TableKey& key);

/// One entry per key that has at least one row that counts, keys ascending. Why the other rows don't count is appended
/// to `rejected`.
std::vector<Measured> collect(const Sweep& sweep, const TuneOptions& options, std::vector<Rejected>& rejected);

/// Uniform numerics: withdraws admission from all classes but the one that costs least time over all keys; the keys of
/// lossy wires are judged by themselves, since a lossy class can't be had in the others.
void keep_one_numerics_class(std::vector<Measured>& keys, const TuneOptions& options);

}  // namespace artune
