// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"

namespace artune {

/// `ar-tune tune`: sweeps, decides, and writes the profile that runtimes load.
extern const Verb kTuneVerb;

}  // namespace artune
