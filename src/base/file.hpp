// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artune {

/// The whole file, or Reason::unreadable_input with the path and the system's reason.
Result<std::string> read_file(const std::string& path);

/// Temporary file in the same directory, fsync, rename, fsync of the directory: a reader sees the old
/// document or the new one, and a full disk leaves the old one in place (Reason::unwritable_output).
Status write_file_atomically(const std::string& path, std::string_view text);

/// Whether write_file_atomically(path) can work, asked before long work starts: creates and removes the temporary file.
Status check_writable(const std::string& path);

}  // namespace artune
