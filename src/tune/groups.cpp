// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "tune/groups.hpp"

#include <algorithm>
#include <set>

#include "profile/fingerprint.hpp"

namespace artune {
namespace {

const std::string& fingerprint_of(const Sweep& sweep, int ranks) {
  const auto& groups = sweep.smaller_groups;
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const SmallerGroup& group) { return group.ranks == ranks; });
  return found == groups.end() ? sweep.fingerprint : found->fingerprint;
}

}  // namespace

std::vector<MeasuredGroup> measured_groups(const Sweep& sweep) {
  std::set<int> measured;
  for (const SweepRow& row : sweep.rows) measured.insert(row.shape.ranks);
  for (const LeftOut& entry : sweep.left_out) measured.insert(entry.shape.ranks);
  std::vector<MeasuredGroup> groups;
  for (const int ranks : measured) {
    const std::string& fingerprint = fingerprint_of(sweep, ranks);
    if (groups.empty() || groups.back().fingerprint != fingerprint) groups.push_back({fingerprint, {}});
    groups.back().ranks.push_back(ranks);
  }
  return groups;
}

Profile part_for(const MeasuredGroup& group, const Profile& whole) {
  Profile part = whole;
  part.fingerprint = group.fingerprint;
  if (group.fingerprint != whole.fingerprint) part.header.world = first_ranks(whole.header.world.value(), group.ranks.back());
  const auto is_anothers = [&](const auto& entry) {
    return std::count(group.ranks.begin(), group.ranks.end(), entry.key.ranks) == 0;
  };
  std::erase_if(part.tables, is_anothers);
  std::erase_if(part.rejected, is_anothers);
  const std::vector<int>& devices = part.header.world->devices;
  const auto is_member = [&](int device) { return std::count(devices.begin(), devices.end(), device) > 0; };
  std::erase_if(part.verdicts, [&](const VerdictRow& pair) { return !is_member(pair.from) || !is_member(pair.to); });
  return part;
}

}  // namespace artune
