// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"

namespace artune {

/// `ar-tune sweep`: measures every way on the messages that are asked for.
extern const Verb kSweepVerb;

}  // namespace artune
