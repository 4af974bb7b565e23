// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Sizes and durations as people type them. All size suffixes are binary, in either case:
// parse_size("64K") == parse_size("64KiB") == parse_size("64kb") == 65536; parse_size("1.5M") == 1572864.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artune {

/// Bytes. Errors (Reason::usage) name the word: "size '64Q': ...". Fractions are rounded down to whole bytes.
Result<std::size_t> parse_size(std::string_view text);

/// Seconds. "10s", "500ms", "2m"; a bare number is an error, since its unit would be a guess.
Result<double> parse_duration(std::string_view text);

/// The shortest exact spelling: 65536 -> "64K", 1572864 -> "1.5M", 1000 -> "1000".
std::string format_size(std::size_t bytes);

}  // namespace artune
