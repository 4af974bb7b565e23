// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"

namespace artune {

/// `ar-tune env`: every environment variable that is read, what it does, and what it is now.
extern const Verb kEnvVerb;

}  // namespace artune
