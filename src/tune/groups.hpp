// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One sweep, several groups. Two ranks of a box with four GPUs are a group of their own, the first two GPUs, with a
// fingerprint of its own: that is where a communicator over those two looks. A sweep over 2 and 4 ranks is decided as
// one, since what was found out about a candidate holds for both, and gives a profile for each.
//
//   const Profile profile = decide(sweep, options);
//   for (const MeasuredGroup& group : measured_groups(sweep)) install(part_for(group, profile));
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"
#include "sweep/sweep.hpp"

namespace artune {

struct MeasuredGroup {
  std::string fingerprint;
  std::vector<int> ranks;  ///< ascending; several where ranks share GPUs and not every GPU holds as many
};

/// Of fewer ranks first. Ranks that the sweep names no smaller group for belong to the whole one.
std::vector<MeasuredGroup> measured_groups(const Sweep& sweep);

/// What of `whole` is about the group, in a profile that matches there. Without tables where nothing was right.
Profile part_for(const MeasuredGroup& group, const Profile& whole);

}  // namespace artune
