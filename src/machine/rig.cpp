// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/rig.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/file.hpp"

namespace artune {
namespace {

namespace fs = std::filesystem;

/// Beside the executable first, so that an installed or unpacked tree may be moved; then where it was built for.
std::vector<fs::path> rig_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(executable.parent_path().parent_path() / ARTUNE_RIG_FOLDER_FROM_PREFIX);
  folders.emplace_back(ARTUNE_INSTALLED_RIG_FOLDER);
  folders.emplace_back(ARTUNE_SOURCE_RIG_FOLDER);
  return folders;
}

bool is_file_argument(const std::string& text) { return text.find('/') != std::string::npos || text.ends_with(".json"); }

Result<Rig> read_rig(const std::string& file) {
  Result<std::string> text = read_file(file);
  if (!text) return text.error();
  Result<Json> document = parse_json(*text, file);
  if (!document) return document.error();
  return rig_from_json(*document, file);
}

}  // namespace

std::vector<std::string> known_rigs() {
  std::set<std::string> names;
  for (const fs::path& folder : rig_folders()) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".json") names.insert(entry->path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

Result<Rig> load_rig(const std::string& name_or_file) {
  if (is_file_argument(name_or_file)) return read_rig(name_or_file);
  for (const fs::path& folder : rig_folders()) {
    const fs::path file = folder / (name_or_file + ".json");
    std::error_code error;
    if (!name_or_file.empty() && fs::is_regular_file(file, error)) return read_rig(file.string());
  }
  std::string known;
  for (const std::string& name : known_rigs()) known += (known.empty() ? "" : ", ") + name;
  return Error{Reason::usage, "there is no rig '" + name_or_file + "'; known rigs: " + (known.empty() ? "none" : known) +
                                  "; a file is given with its .json"};
}

bool peer_access_allowed(const Rig& rig, std::size_t from, std::size_t to) {
  if (from == to) return true;
  const auto fits = [](const std::string& pattern, const std::string& id) { return pattern == "*" || pattern == id; };
  const std::string& a = rig.gpus.at(from).id;
  const std::string& b = rig.gpus.at(to).id;
  bool allowed = false;
  for (const RigPeerRule& rule : rig.peer_access) {
    if ((fits(rule.a, a) && fits(rule.b, b)) || (fits(rule.a, b) && fits(rule.b, a))) allowed = rule.allowed;
  }
  return allowed;
}

const RigFault* fault_between(const Rig& rig, std::size_t from, std::size_t to) {
  const auto found = std::find_if(rig.faults.begin(), rig.faults.end(), [&](const RigFault& fault) {
    return fault.from == rig.gpus.at(from).id && fault.to == rig.gpus.at(to).id;
  });
  return found == rig.faults.end() ? nullptr : &*found;
}

}  // namespace artune
