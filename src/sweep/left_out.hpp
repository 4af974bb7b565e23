// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a sweep didn't measure and why: the rule by which a bad candidate isn't tried again, and the short form of
// the list for documents.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/sweep.hpp"

namespace artune {

/// "wrong-sum", "hang", "crash", "unavailable", "error": the word of a LeftOut. Not for `ok`.
std::string_view reason_word(OutcomeKind kind);

/// "64K bf16, 2 ranks, graph"
std::string describe(const Shape& shape);

/// Remembers what mustn't be tried again. A hang or crash costs a worker, a deadline, perhaps the machine: that
/// candidate, in any geometry, is done for the rest of the sweep. A wrong sum costs nothing to find, but a candidate
/// that lied once at a dtype and number of ranks isn't to be chosen there: it is done for those.
class Bars {
 public:
  /// Takes in the bad verdicts among `left_out`; other entries mean nothing here.
  void learn(const std::vector<LeftOut>& left_out);
  /// The entry to list instead of trying `name` at `shape`; nullopt when it may be tried.
  std::optional<LeftOut> refuse(const std::string& name, const Shape& shape) const;

 private:
  std::vector<LeftOut> bad_;
};

/// One entry with `bytes` 0 for a candidate that is missing for one and the same reason at several sizes of a block
/// (dtype, ranks, mode): it then means "at every size of the block that has no row of this candidate". Entries about
/// one geometry, and candidates with several reasons in one block, stay as they are. The order of first mention is kept.
std::vector<LeftOut> collapse(const std::vector<LeftOut>& left_out);

}  // namespace artune
