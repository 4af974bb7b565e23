// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The text of a document: indented, but each row of a list (a range, a sweep row, a GPU) on one line of its own,
// so that a diff of two documents shows which rows changed.
//
//   write_file_atomically("profile.json", document_text(profile_to_json(profile)));
#pragma once

#include <string>

#include "base/json.hpp"

namespace artune {

/// Depends on `document` only, ends with a newline. Bytes that aren't UTF-8 (a BIOS string) become U+FFFD.
std::string document_text(const Json& document);

}  // namespace artune
