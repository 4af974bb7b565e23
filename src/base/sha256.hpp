// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) of small texts: fingerprints and table digests. Not for secrets.
#pragma once

#include <string>
#include <string_view>

namespace artune {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace artune
