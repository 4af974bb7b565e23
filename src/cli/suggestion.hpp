// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artune {

/// What `word` was probably meant to be: the nearest of `known` by insertions, deletions, replacements and swaps, or
/// empty when none is near enough to be worth saying.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace artune
