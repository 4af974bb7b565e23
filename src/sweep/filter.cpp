// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/filter.hpp"

#include <algorithm>

#include "base/tuned_name.hpp"
#include "base/words.hpp"
#include "paths/menu.hpp"

namespace artune {
namespace {

bool glob_matches(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip) {
      if (glob_matches(glob.substr(1), text.substr(skip))) return true;
    }
    return false;
  }
  if (text.empty() || (glob.front() != '?' && glob.front() != text.front())) return false;
  return glob_matches(glob.substr(1), text.substr(1));
}

std::string_view path_of(std::string_view name) { return name.substr(0, name.find('/')); }

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

bool CandidateFilter::admits(std::string_view name) const {
  const bool path_ok = paths.empty() || std::find(paths.begin(), paths.end(), path_of(name)) != paths.end();
  const bool glob_ok = globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return glob_matches(glob, name); });
  return path_ok && glob_ok;
}

Result<CandidateFilter> make_filter(const std::vector<std::string>& paths, const std::vector<std::string>& globs) {
  for (const auto& path : paths) {
    if (!parse_word<Path>(path) && path != kTunedName) {
      return Error{Reason::usage, "path '" + path + "': is none of " + word_list<Path>() + ", " + std::string(kTunedName)};
    }
  }
  const std::vector<std::string> names = admitted_names({paths, {}});
  for (const auto& glob : globs) {
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return glob_matches(glob, name); })) {
      return Error{Reason::usage, "candidate '" + glob + "': matches none of " + join(names)};
    }
  }
  return CandidateFilter{paths, globs};
}

std::vector<std::string> admitted_names(const CandidateFilter& filter) {
  std::vector<std::string> names;
  for (const auto& info : menu()) {
    if (filter.admits(info.name)) names.emplace_back(info.name);
  }
  if (filter.admits(kTunedName)) names.emplace_back(kTunedName);
  return names;
}

}  // namespace artune
