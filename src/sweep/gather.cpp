// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/gather.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/failure.hpp"
#include "base/tuned_name.hpp"
#include "base/units.hpp"
#include "paths/menu.hpp"

namespace artune {
namespace {

/// Why a candidate isn't tried at this size though it could run: whoever names it (--candidate) gets it all the same.
std::string hopeless(const ShapeContext& context, const std::string& name, std::size_t bytes) {
  const CandidateInfo* info = find_candidate(name);
  if (info == nullptr || info->worth_trying(bytes) || !context.filter.globs.empty()) return {};
  std::string range = info->worth_from_bytes > 0 ? "from " + format_size(info->worth_from_bytes) : "";
  if (info->worth_up_to_bytes > 0) range += (range.empty() ? "up to " : " to ") + format_size(info->worth_up_to_bytes);
  return "can win " + range + " only; name it with --candidate to have it timed";
}

}  // namespace

std::vector<Candidate> gather_candidates(const ShapeContext& context, const Shape& shape, std::vector<LeftOut>& left_out) {
  std::vector<Offer> offers;
  try {
    offers = context.machine.candidates(shape);
  } catch (const Failure& failure) {
    for (const auto& name : admitted_names(context.filter)) {
      if (name != kTunedName) left_out.push_back({{name, {}}, shape, "error", failure.what()});
    }
    return {};
  }
  std::vector<Candidate> tried;
  std::vector<std::string> refused;
  for (const Offer& offer : offers) {
    const std::string& name = offer.candidate.name;
    if (!context.filter.admits(name) || std::find(refused.begin(), refused.end(), name) != refused.end()) continue;
    if (!offer.unavailable.empty()) {
      left_out.push_back({{name, {}}, shape, "unavailable", offer.unavailable});
      refused.push_back(name);
    } else if (const std::string why = hopeless(context, name, shape.bytes); !why.empty()) {
      left_out.push_back({{name, {}}, shape, "pruned", why});
      refused.push_back(name);
    } else if (auto bar = context.bars.refuse(name, shape)) {
      left_out.push_back(std::move(*bar));
      refused.push_back(name);
    } else {
      tried.push_back(offer.candidate);
    }
  }
  return tried;
}

}  // namespace artune
