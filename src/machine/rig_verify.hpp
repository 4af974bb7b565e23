// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Verification on a rig: the protocol bodies that GPUs run, compiled for the host, on CPU threads. The sums are real,
// only the link under them isn't.
//
//   RigVerifier verifier(4);
//   Verification got = verifier.verify(info, candidate, shape, {});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "machine/machine.hpp"
#include "paths/menu.hpp"
#include "protocol/host_group.hpp"

namespace artune {

/// Rank `to` never sees what rank `from` sends: its sum is short of that contribution.
struct LostContribution {
  int from = 0, to = 0;
};

class RigVerifier {
 public:
  explicit RigVerifier(int ranks);

  /// `lost`: a simulated fault of the link, applied to what the protocol delivered.
  Verification verify(const CandidateInfo& info, const Candidate& candidate, const Shape& shape,
                      const std::optional<LostContribution>& lost);

 private:
  int ranks_;
  std::uint64_t call_ = 0;            ///< inputs never repeat within one verifier
  std::unique_ptr<HostGroup> group_;  ///< kept from call to call, so that epochs go on as in use
};

}  // namespace artune
