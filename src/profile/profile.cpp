// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.hpp"

#include <algorithm>

#include "base/failure.hpp"
#include "base/file.hpp"
#include "profile/document_text.hpp"

namespace artune {

const Range& Table::lookup(std::size_t bytes) const {
  bytes = std::max<std::size_t>(bytes, 1);
  const auto found = std::find_if(ranges.begin(), ranges.end(),
                                  [&](const Range& range) { return !range.max_bytes || bytes < *range.max_bytes; });
  if (found == ranges.end())
    throw Failure("Table::lookup", "the table isn't total; only the reader and the decision make tables", 0);
  return *found;
}

const Table* Profile::find(const TableKey& key) const {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const Table& table) { return table.key == key; });
  return found == tables.end() ? nullptr : &*found;
}

Result<Profile> read_profile(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const Result<Json> document = parse_json(*text, path);
  if (!document) return document.error();
  return profile_from_json(*document, path);
}

std::string profile_to_text(const Profile& profile) { return document_text(profile_to_json(profile)); }

}  // namespace artune
