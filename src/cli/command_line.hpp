// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <vector>

#include "cli/context.hpp"

namespace artune {

/// Parses, runs the verb, and maps what became of it to an exit status. Everything that goes wrong ends in one line on
/// `err` with its reason word.
int run_command_line(int argc, const char* const* argv, const std::vector<Verb>& verbs, std::ostream& out, std::ostream& err);

}  // namespace artune
