// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// CandidateFilter: which candidates a sweep tries, from `--path p2p,nccl` and `--candidate 'p2p/*/ll'`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace artune {

struct CandidateFilter {
  std::vector<std::string> paths;   ///< empty = all
  std::vector<std::string> globs;   ///< empty = all; `*` any text, `?` one character

  bool admits(std::string_view name) const;
  bool operator==(const CandidateFilter&) const = default;
};

/// Checks words against the menu: an unknown path, or a glob that no candidate of the admitted paths matches, is an
/// error that names the word and lists what there is.
Result<CandidateFilter> make_filter(const std::vector<std::string>& paths, const std::vector<std::string>& globs);

/// Names that the menu and the filter leave, in the menu's order, `tuned` last.
std::vector<std::string> admitted_names(const CandidateFilter& filter);

}  // namespace artune
